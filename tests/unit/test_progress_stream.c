/* SPDX-License-Identifier: MIT
 *
 * The job's output on its way through us: unchanged, at once, and whatever its reader does.
 */
#include "live/progress_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/check.h"
#include "support/progress_events.h"

static const struct wg_progress_opts by_step = {.step_regex = "step (\\d+)",
                                                .metric_regex = "acc (\\S+)"};

struct pipes {
    int job;      /* the job writes here */
    int copy_in;  /* our stdout */
    int copy_out; /* its reader */
    struct progress_events events;
};

static void open_pipe(int fds[static 2])
{
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
}

static void open_pipes(struct pipes *pipes)
{
    int job[2], copy[2];
    struct wg_error err;
    open_pipe(job);
    open_pipe(copy);
    progress_events_open(&pipes->events, by_step);
    if (wg__progress_add_stream(pipes->events.progress, job[0], copy[1], &err) != WG_OK)
        fail_msg("%s", err.text);
    pipes->job = job[1];
    pipes->copy_in = copy[1];
    pipes->copy_out = copy[0];
    assert_int_equal(fcntl(pipes->copy_out, F_SETFL, O_NONBLOCK), 0);
}

static void close_pipes(struct pipes *pipes)
{
    const int fds[] = {pipes->job, pipes->copy_in, pipes->copy_out};
    progress_events_fini(&pipes->events);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
    }
}

static void say(int fd, const char *text)
{
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void expect_copied(int fd, const char *expected)
{
    char text[256] = "";
    const ssize_t got = read(fd, text, sizeof text - 1);
    assert_int_equal(got, strlen(expected));
    assert_memory_equal(text, expected, strlen(expected));
}

static void what_the_job_prints_goes_on_unchanged_and_at_once(void **state)
{
    (void)state;
    struct pipes pipes;
    open_pipes(&pipes);
    say(pipes.job, "no line end, \x1b[31mstep 3");
    (void)wg__progress_pump(pipes.events.progress);
    expect_copied(pipes.copy_out, "no line end, \x1b[31mstep 3");
    assert_int_equal(pipes.events.count, 0);
    say(pipes.job, "\x1b[0m\racc 0.5\r\nstep 4\n");
    progress_events_wait(&pipes.events, 3);
    expect_copied(pipes.copy_out, "\x1b[0m\racc 0.5\r\nstep 4\n");
    assert_true(wg__progress_is_copied(pipes.events.progress));
    say(pipes.job, "step 5");
    assert_false(wg__progress_is_copied(pipes.events.progress));
    (void)close(pipes.job);
    pipes.job = -1;
    progress_events_wait(&pipes.events, 4);
    progress_events_expect(&pipes.events, "step 3@0;metric 0.5@0;step 4@0;step 5@0;");
    expect_copied(pipes.copy_out, "step 5");
    progress_events_drain(&pipes.events); /* the end wakes nobody again and again */
    assert_true(wg__progress_is_copied(pipes.events.progress));
    close_pipes(&pipes);
}

/* Random bytes in random pieces, to a reader that takes random pieces. */
static void every_byte_arrives_in_order(void **state)
{
    (void)state;
    enum { BYTES = 3 << 20 };
    struct pipes pipes;
    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    open_pipes(&pipes);
    unsigned char *sent = malloc(BYTES), *got = malloc(BYTES);
    scratch_require(sent != NULL && got != NULL, "memory");
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (unsigned char)wg__rng_below(&rng, 256);
    assert_int_equal(fcntl(pipes.job, F_SETFL, O_NONBLOCK), 0);
    size_t out = 0, in = 0;
    while (in < BYTES) {
        const size_t piece = 1 + wg__rng_below(&rng, 100000);
        const ssize_t written =
            write(pipes.job, sent + out, BYTES - out < piece ? BYTES - out : piece);
        out += written > 0 ? (size_t)written : 0;
        (void)wg__progress_pump(pipes.events.progress);
        const ssize_t taken = read(pipes.copy_out, got + in, wg__rng_below(&rng, 50000));
        in += taken > 0 ? (size_t)taken : 0;
    }
    assert_memory_equal(sent, got, BYTES);
    free(sent);
    free(got);
    close_pipes(&pipes);
}

static void a_reader_that_stops_holds_the_job_and_not_us(void **state)
{
    (void)state;
    struct pipes pipes;
    char bytes[4096];
    open_pipes(&pipes);
    memset(bytes, '.', sizeof bytes);
    assert_int_equal(fcntl(pipes.job, F_SETFL, O_NONBLOCK), 0);
    size_t written = 0;
    for (unsigned i = 0; i < 200; i++) { /* 800 kB: more than both pipes and our buffer hold */
        const ssize_t now = write(pipes.job, bytes, sizeof bytes);
        written += now > 0 ? (size_t)now : 0;
        progress_events_drain(&pipes.events); /* and nobody wakes us for what can't go on */
    }
    assert_in_range(written, 65536, 4 * 65536);
    assert_false(wg__progress_is_copied(pipes.events.progress));
    /* Other ways go on meanwhile. */
    progress_say(&pipes.events, "step 1\n");
    progress_events_wait(&pipes.events, 1);
    size_t got = 0;
    while (got < written) {
        const ssize_t now = read(pipes.copy_out, bytes, sizeof bytes);
        got += now > 0 ? (size_t)now : 0;
        (void)wg__progress_pump(pipes.events.progress);
    }
    assert_int_equal(got, written);
    assert_true(wg__progress_is_copied(pipes.events.progress));
    close_pipes(&pipes);
}

static void a_reader_that_goes_ends_no_job(void **state)
{
    (void)state;
    struct pipes pipes;
    (void)signal(SIGPIPE, SIG_IGN); /* as main has it */
    open_pipes(&pipes);
    (void)close(pipes.copy_out);
    pipes.copy_out = -1;
    for (unsigned i = 1; i <= 50; i++) {
        char line[4096];
        (void)memset(line, '.', sizeof line);
        const int length = snprintf(line, sizeof line, "step %u\n", i);
        line[length] = '.';
        assert_int_equal(write(pipes.job, line, (size_t)length), length);
        progress_events_wait(&pipes.events, i); /* is still read */
    }
    assert_true(wg__progress_is_copied(pipes.events.progress));
    close_pipes(&pipes);
    (void)signal(SIGPIPE, SIG_DFL);
}

/* A socket is written to through a duplicate, which epoll does not forget when it is closed. */
static void a_socket_whose_reader_goes_wakes_nobody(void **state)
{
    (void)state;
    struct progress_events events;
    struct wg_error err;
    char bytes[4096];
    int job[2], copy[2];
    open_pipe(job);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, copy), 0);
    progress_events_open(&events, by_step);
    assert_int_equal(wg__progress_add_stream(events.progress, job[0], copy[0], &err), WG_OK);
    memset(bytes, '.', sizeof bytes);
    assert_int_equal(fcntl(job[1], F_SETFL, O_NONBLOCK), 0);
    while (write(job[1], bytes, sizeof bytes) > 0)
        progress_events_drain(&events); /* until all is full, and we wait for the socket */
    (void)close(copy[1]);
    progress_events_drain(&events);
    say(job[1], "\nstep 1\n");
    progress_events_wait(&events, 1);
    struct pollfd ready = {.fd = wg__progress_fd(events.progress), .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 0), 0);
    (void)close(job[1]);
    progress_events_fini(&events);
    (void)close(copy[0]);
}

/* Our stdout may be a socket, a file, or nothing that waits. */
static void copies_go_to_anything(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "log");
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const int copies[] = {open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), ends[0],
                          open("/dev/null", O_WRONLY | O_CLOEXEC), -1};
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        struct progress_events events;
        struct wg_error err;
        int job[2];
        open_pipe(job);
        progress_events_open(&events, by_step);
        assert_int_equal(wg__progress_add_stream(events.progress, job[0], copies[i], &err), WG_OK);
        say(job[1], "step 1\n");
        progress_events_wait(&events, 1);
        (void)close(job[1]);
        progress_events_fini(&events);
        if (copies[i] >= 0) /* the mode of what others share was left alone */
            assert_int_equal(fcntl(copies[i], F_GETFL) & O_NONBLOCK, 0);
    }
    char *log = scratch_read(path, NULL);
    assert_string_equal(log, "step 1\n");
    free(log);
    expect_copied(ends[1], "step 1\n");
    (void)close(ends[1]);
    for (size_t i = 0; i < 3; i++)
        (void)close(copies[i]);
    scratch_close(&scratch);
}

/* A terminal whose output is stopped (Ctrl-S) waits like a pipe that is full; the job's own
 * terminal ends with EIO. */
static void terminals_stop_and_end(void **state)
{
    (void)state;
    struct progress_events events;
    struct wg_error err;
    const int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    const int jobs = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ours < 0 || jobs < 0)
        skip();
    assert_true(grantpt(ours) == 0 && unlockpt(ours) == 0 && grantpt(jobs) == 0 &&
                unlockpt(jobs) == 0);
    const int screen = ioctl(ours, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    const int job = ioctl(jobs, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(screen >= 0 && job >= 0);
    progress_events_open(&events, by_step);
    assert_int_equal(wg__progress_add_stream(events.progress, jobs, screen, &err), WG_OK);
    assert_int_equal(tcflow(screen, TCOOFF), 0);
    /* A terminal hands on what was written in pieces. The first is read and can't be shown; the
     * rest of its line is read all the same. */
    say(job, "st");
    struct pollfd arrived = {.fd = jobs, .events = POLLIN};
    assert_int_equal(poll(&arrived, 1, 20000), 1);
    progress_events_drain(&events);
    say(job, "ep 1\n");
    progress_events_wait(&events, 1); /* read, and not shown */
    assert_int_equal(fcntl(ours, F_SETFL, O_RDWR | O_NONBLOCK), 0);
    char text[64] = "";
    assert_int_equal(read(ours, text, sizeof text), -1);
    assert_false(wg__progress_is_copied(events.progress));
    assert_int_equal(tcflow(screen, TCOON), 0);
    progress_events_drain(&events);
    struct pollfd shown = {.fd = ours, .events = POLLIN};
    assert_int_equal(poll(&shown, 1, 20000), 1);
    assert_true(read(ours, text, sizeof text - 1) >= 8);
    assert_non_null(strstr(text, "step 1\r"));
    say(job, "step 2");
    (void)close(job);
    progress_events_wait(&events, 2);
    progress_events_drain(&events);
    progress_events_fini(&events);
    (void)close(screen);
    (void)close(ours);
}

/* As a training with a progress bar an epoch that also tells wattgov its steps. */
static void printed_steps_do_not_count_once_steps_are_told(void **state)
{
    (void)state;
    enum { EPOCHS = 3, STEPS = 100 };
    struct pipes pipes;
    char line[64];
    open_pipes(&pipes);
    for (unsigned step = 0; step < EPOCHS * STEPS; step++) {
        (void)snprintf(line, sizeof line, "step %u\n", step % STEPS + 1);
        say(pipes.job, line);
        progress_events_drain(&pipes.events);
        (void)snprintf(line, sizeof line, "step %u\n", step + 1);
        progress_say(&pipes.events, line);
        progress_events_drain(&pipes.events);
        check_close(pipes.events.last.value, step + 1, 0);
        assert_true(pipes.events.last.is_printed == (step == 0)); /* the first one, before */
    }
    assert_int_equal(pipes.events.count, EPOCHS * STEPS);
    assert_int_equal(wg__progress_ranks(pipes.events.progress), 1);
    close_pipes(&pipes);
}

static void what_is_told_goes_on_where_what_was_printed_came_to(void **state)
{
    (void)state;
    struct pipes pipes;
    open_pipes(&pipes);
    say(pipes.job, "step 40\n");
    progress_events_wait(&pipes.events, 1);
    progress_say(&pipes.events, "step 1\nepoch 1\nstep 2\n");
    progress_events_wait(&pipes.events, 3);
    say(pipes.job, "step 80\nacc 0.5\n");
    progress_events_wait(&pipes.events, 4);
    progress_events_expect(&pipes.events, "step 40@0;epoch 1@0;step 41@0;metric 0.5@0;");
    close_pipes(&pipes);
}

static void a_wild_number_is_rejected(void **state)
{
    (void)state;
    struct pipes pipes;
    const char *last = NULL;
    open_pipes(&pipes);
    say(pipes.job, "step 1\nstep 9007199254740992\nstep 2\n");
    progress_events_wait(&pipes.events, 2);
    assert_int_equal(wg__progress_rejected(pipes.events.progress, &last), 1);
    assert_string_equal(last, "step 9007199254740992");
    progress_say(&pipes.events, "step 3\nstep 9007199254740992\n");
    progress_events_wait(&pipes.events, 3);
    progress_events_drain(&pipes.events);
    assert_int_equal(wg__progress_rejected(pipes.events.progress, NULL), 2);
    progress_events_expect(&pipes.events, "step 1@0;step 2@0;step 3@0;");
    close_pipes(&pipes);
}

static void several_streams_count_together(void **state)
{
    (void)state;
    struct progress_events events;
    struct wg_error err;
    progress_events_open(&events, (struct wg_progress_opts){.step_regex = "tick"});
    enum { STREAMS = 16 };
    int jobs[STREAMS];
    for (unsigned i = 0; i < STREAMS; i++) {
        int job[2];
        open_pipe(job);
        jobs[i] = job[1];
        assert_int_equal(wg__progress_add_stream(events.progress, job[0], -1, &err), WG_OK);
        say(job[1], "tick\n");
    }
    progress_events_wait(&events, STREAMS);
    check_close(events.last.value, STREAMS, 0);
    int more[2];
    open_pipe(more);
    assert_int_equal(wg__progress_add_stream(events.progress, more[0], -1, &err), WG_ESTATE);
    assert_int_equal(fcntl(more[0], F_GETFD), -1); /* taken over all the same */
    assert_int_equal(errno, EBADF);
    (void)close(more[1]);
    for (unsigned i = 0; i < STREAMS; i++)
        (void)close(jobs[i]);
    progress_events_fini(&events);
}

static void without_memory_or_with_a_folder_it_fails(void **state)
{
    (void)state;
    struct progress_events events;
    struct wg_error err;
    int job[2];
    progress_events_open(&events, by_step);
    open_pipe(job);
    wg__alloc_fail_from(1);
    assert_int_equal(wg__progress_add_stream(events.progress, job[0], -1, &err), WG_ENOMEM);
    wg__alloc_fail_from(0);
    (void)close(job[1]);
    const int folder = open("/", O_RDONLY | O_CLOEXEC); /* epoll takes none */
    assert_int_equal(wg__progress_add_stream(events.progress, folder, -1, &err), WG_EPERM);
    assert_non_null(strstr(err.text, "cannot read the output of the job"));
    progress_events_fini(&events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_job_prints_goes_on_unchanged_and_at_once),
        cmocka_unit_test(every_byte_arrives_in_order),
        cmocka_unit_test(a_reader_that_stops_holds_the_job_and_not_us),
        cmocka_unit_test(a_reader_that_goes_ends_no_job),
        cmocka_unit_test(a_socket_whose_reader_goes_wakes_nobody),
        cmocka_unit_test(copies_go_to_anything),
        cmocka_unit_test(terminals_stop_and_end),
        cmocka_unit_test(printed_steps_do_not_count_once_steps_are_told),
        cmocka_unit_test(what_is_told_goes_on_where_what_was_printed_came_to),
        cmocka_unit_test(a_wild_number_is_rejected),
        cmocka_unit_test(several_streams_count_together),
        cmocka_unit_test(without_memory_or_with_a_folder_it_fails),
    };
    return run_tests(tests);
}
