/* SPDX-License-Identifier: MIT
 *
 * The progress socket and its clients, well-behaved or not.
 */
#include "live/progress_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/progress_events.h"

static const struct wg_progress_opts as_socket = {.is_socket = true};

/* A client; -1: it was not let in. */
static int try_client(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path));
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static int client(const struct progress_events *events)
{
    const int fd = try_client(wg__progress_path(events->progress));
    scratch_require(fd >= 0, "a client is not let in");
    return fd;
}

static void say(int fd, const char *text)
{
    scratch_require(fd >= 0, text);
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void clients_say_their_lines_at_once(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, as_socket);
    const int first = client(&events), second = client(&events);
    say(first, "step 1 rank 0\nstep 2 ra");
    say(second, "step 1 rank 1\n");
    progress_events_wait(&events, 1);
    say(first, "nk 0\n");
    say(second, "step 2 rank 1");
    (void)close(second); /* without a line end */
    progress_events_wait(&events, 2);
    progress_events_drain(&events);
    check_close(events.last.value, 2, 0);
    assert_int_equal(wg__progress_ranks(events.progress), 2);
    assert_int_equal(wg__progress_rejected(events.progress, NULL), 0);
    (void)close(first);
    progress_events_fini(&events);
}

static void what_was_said_before_the_end_counts(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, as_socket);
    const int fd = client(&events);
    progress_events_drain(&events);
    say(fd, "epoch 1\nmetric 0.5");
    progress_events_close(&events);
    progress_events_expect(&events, "epoch 1@0;metric 0.5@0;");
    (void)close(fd);
    progress_events_fini(&events);
}

static void the_socket_is_private_and_goes_with_its_folder(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, as_socket);
    char path[256];
    (void)snprintf(path, sizeof path, "%s", wg__progress_path(events.progress));
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_true(S_ISSOCK(status.st_mode));
    assert_int_equal(status.st_mode & 0777, 0600);
    progress_events_close(&events);
    assert_int_equal(stat(path, &status), -1);
    *strrchr(path, '/') = '\0';
    assert_int_equal(stat(path, &status), -1);
    progress_events_fini(&events);
}

static void a_path_that_is_taken_is_refused_and_a_left_over_one_replaced(void **state)
{
    (void)state;
    struct scratch scratch;
    struct progress_events events, second;
    struct wg_error err;
    scratch_open(&scratch);
    struct wg_progress_opts opts = as_socket;
    opts.path = scratch_path(&scratch, "socket");
    progress_events_open(&events, opts);
    assert_int_equal(progress_events_try(&second, opts, &err), WG_EBUSY);
    assert_non_null(strstr(err.text, opts.path));
    progress_events_fini(&second);
    const int fd = client(&events); /* the first one still listens */
    (void)close(fd);
    progress_events_fini(&events);

    const int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, opts.path, strlen(opts.path));
    assert_int_equal(bind(dead, (struct sockaddr *)&address, sizeof address), 0);
    (void)close(dead);
    progress_events_open(&events, opts);
    progress_events_fini(&events);

    scratch_write(opts.path, "precious", 8);
    assert_int_equal(progress_events_try(&events, opts, &err), WG_EBUSY);
    progress_events_fini(&events);
    char *kept = scratch_read(opts.path, NULL);
    assert_string_equal(kept, "precious");
    free(kept);

    char longest[200];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    opts.path = longest;
    assert_int_equal(progress_events_try(&events, opts, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "has 199 bytes; it may have 1 to 107"));
    progress_events_fini(&events);
    scratch_close(&scratch);
}

static void a_client_that_floods_does_not_keep_the_others_waiting(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, as_socket);
    const int flood = client(&events), calm = client(&events);
    char bytes[65536];
    memset(bytes, 'x', sizeof bytes);
    say(calm, "step 1\n");
    bool is_full = false;
    for (unsigned round = 0; round < 200; round++) {
        while (send(flood, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
            ;
        is_full = errno == EAGAIN;
        (void)wg__progress_pump(events.progress);
    }
    assert_true(is_full); /* what is not read stays with the client */
    assert_int_equal(events.count, 1);
    (void)close(flood);
    say(calm, "\nmetric 3\n");
    progress_events_wait(&events, 2);
    progress_events_expect(&events, "step 1@0;metric 3@0;");
    assert_int_equal(wg__progress_rejected(events.progress, NULL), 1); /* one line, cut */
    (void)close(calm);
    progress_events_fini(&events);
}

/* Two thousand ranks at once, as far as the limit of descriptors goes: both ends are ours here. */
static void thousands_of_clients_are_heard(void **state)
{
    (void)state;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit most = before;
    most.rlim_cur = most.rlim_max < 8192 ? most.rlim_max : 8192;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &most), 0);
    const unsigned count = most.rlim_cur >= 4200 ? 2000 : (unsigned)most.rlim_cur / 2 - 50;
    struct progress_events events;
    progress_events_open(&events, as_socket);
    int *fds = calloc(count, sizeof *fds);
    scratch_require(fds != NULL, "memory");
    for (unsigned i = 0; i < count; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "step 1 rank %u\nmetric %u rank %u\n", i, i, i);
        fds[i] = client(&events);
        say(fds[i], line);
        if (i % 100 == 0)
            (void)wg__progress_pump(events.progress);
    }
    progress_events_wait(&events, count + 1);
    assert_int_equal(wg__progress_ranks(events.progress), count);
    for (unsigned i = 0; i < count; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "step 2 rank %u\n", i);
        say(fds[i], line);
        (void)close(fds[i]);
    }
    progress_events_wait(&events, count + 2);
    check_close(events.last.value, 2, 0);
    free(fds);
    progress_events_fini(&events);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Without a descriptor for one more, it is turned away instead of waking us without end. */
static void without_descriptors_clients_are_turned_away(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, as_socket);
    const int waiting = client(&events);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit few = before;
    few.rlim_cur = (rlim_t)waiting + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    progress_events_drain(&events); /* would not end */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    char byte = 0;
    assert_int_equal(recv(waiting, &byte, 1, 0), 0); /* closed */
    (void)close(waiting);
    const int later = client(&events);
    say(later, "step 1\n");
    progress_events_wait(&events, 1);
    (void)close(later);
    progress_events_fini(&events);
}

static void clients_beyond_the_most_are_turned_away(void **state)
{
    (void)state;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit most = before;
    most.rlim_cur = most.rlim_max;
    if (most.rlim_cur < 2 * WG_PROGRESS_CLIENTS_MAX + 100)
        skip();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &most), 0);
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct wg_progress_feed feed;
    struct wg_progress_socket *made = NULL;
    struct wg_error err;
    wg__progress_feed_init(&feed, NULL, NULL, 0);
    assert_int_equal(wg__progress_socket_open(&made, NULL, epoll_fd, &feed, &err), WG_OK);
    static int fds[WG_PROGRESS_CLIENTS_MAX + 10];
    for (unsigned i = 0; i < WG_PROGRESS_CLIENTS_MAX + 10; i++) {
        fds[i] = try_client(wg__progress_socket_path(made));
        scratch_require(fds[i] >= 0, "a client is not let in");
        struct epoll_event event;
        while (epoll_wait(epoll_fd, &event, 1, 0) == 1) {
            struct wg_progress_source *source = event.data.ptr;
            source->ready(source, event.events);
        }
    }
    assert_int_equal(wg__progress_socket_clients(made), WG_PROGRESS_CLIENTS_MAX);
    char byte = 0;
    assert_int_equal(recv(fds[WG_PROGRESS_CLIENTS_MAX], &byte, 1, 0), 0);
    assert_int_equal(recv(fds[0], &byte, 1, 0), -1); /* still there */
    wg__progress_socket_close(made);
    for (unsigned i = 0; i < WG_PROGRESS_CLIENTS_MAX + 10; i++)
        (void)close(fds[i]);
    wg__progress_feed_fini(&feed);
    (void)close(epoll_fd);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void without_memory_a_client_is_turned_away(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, as_socket);
    const int fd = client(&events);
    wg__alloc_fail_from(1);
    (void)wg__progress_pump(events.progress);
    wg__alloc_fail_from(0);
    char byte = 0;
    assert_int_equal(recv(fd, &byte, 1, 0), 0);
    (void)close(fd);
    progress_events_fini(&events);
    struct wg_progress *progress = NULL;
    struct wg_error err;
    for (size_t nth = 1; nth <= 2; nth++) {
        wg__alloc_fail_from(nth);
        assert_int_equal(wg__progress_open(&progress, &as_socket, &err), WG_ENOMEM);
        wg__alloc_fail_from(0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_say_their_lines_at_once),
        cmocka_unit_test(what_was_said_before_the_end_counts),
        cmocka_unit_test(the_socket_is_private_and_goes_with_its_folder),
        cmocka_unit_test(a_path_that_is_taken_is_refused_and_a_left_over_one_replaced),
        cmocka_unit_test(a_client_that_floods_does_not_keep_the_others_waiting),
        cmocka_unit_test(thousands_of_clients_are_heard),
        cmocka_unit_test(without_descriptors_clients_are_turned_away),
        cmocka_unit_test(clients_beyond_the_most_are_turned_away),
        cmocka_unit_test(without_memory_a_client_is_turned_away),
    };
    return run_tests(tests);
}
