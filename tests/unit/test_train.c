/* SPDX-License-Identifier: MIT
 *
 * wg_train_*: what a training process tells reaches the real reader, and nothing that happens to
 * the reader reaches the training.
 */
#include "wattgov/train.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/progress_events.h"

static const char *const rank_names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID",
                                         "PMI_RANK"};

static int clear_environment(void **state)
{
    (void)state;
    (void)unsetenv("WATTGOV_PROGRESS");
    for (size_t i = 0; i < sizeof rank_names / sizeof *rank_names; i++)
        (void)unsetenv(rank_names[i]);
    return 0;
}

static struct wg_train *open_train(const struct wg_train_opts *opts)
{
    struct wg_train *train = NULL;
    struct wg_error err;
    if (wg_train_open(&train, opts, &err) != WG_OK)
        fail_msg("%s", err.text);
    return train;
}

/* A reporter to the reader of `events`. */
static struct wg_train *open_to(const struct progress_events *events)
{
    const struct wg_train_opts opts = WG_TRAIN_OPTS(.path = wg__progress_path(events->progress));
    return open_train(&opts);
}

static void work_for(uint64_t duration_ns)
{
    const uint64_t end_ns = wg__clock_ns() + duration_ns;
    while (wg__clock_ns() < end_ns)
        ;
}

static void use_all(struct wg_train *train)
{
    wg_train_step(train);
    wg_train_steps(train, 3);
    wg_train_epoch(train);
    wg_train_metric(train, "acc", 0.5);
    wg_train_batch_size(train, 32);
}

static void without_a_governor_it_does_nothing(void **state)
{
    (void)state;
    struct wg_train *train = open_train(NULL);
    assert_non_null(train);
    assert_false(wg_train_is_active(train));
    use_all(train);
    wg_train_close(train);
    assert_int_equal(setenv("WATTGOV_PROGRESS", "", 1), 0);
    train = open_train(NULL);
    assert_false(wg_train_is_active(train));
    wg_train_close(train);
    use_all(NULL);
    assert_false(wg_train_is_active(NULL));
    wg_train_close(NULL);
}

static void each_call_is_an_event(bool is_socket)
{
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){.is_socket = is_socket});
    assert_int_equal(setenv("WATTGOV_PROGRESS", wg__progress_path(events.progress), 1), 0);
    struct wg_train *train = open_train(NULL);
    assert_true(wg_train_is_active(train));
    wg_train_batch_size(train, 256);
    wg_train_step(train);
    wg_train_steps(train, 9);
    wg_train_metric(train, NULL, 0.25);
    wg_train_metric(train, "val acc\n", NAN);
    wg_train_metric(train, "a name of more than thirty-one bytes", -INFINITY);
    wg_train_epoch(train);
    wg_train_epoch(train);
    wg_train_steps(train, 0);
    wg_train_batch_size(train, 0);
    wg_train_close(train);
    progress_events_wait(&events, 9);
    progress_events_drain(&events);
    progress_events_expect(&events,
                           "step 0@0;batch_size 256@0;step 1@0;step 10@0;metric 0.25@0;metric nan "
                           "val_acc_@0;metric -inf a_name_of_more_than_thirty-one_@0;"
                           "epoch 1@0;epoch 2@0;");
    assert_int_equal(wg__progress_rejected(events.progress, NULL), 0);
    progress_events_fini(&events);
}

static void each_call_is_an_event_of_the_file(void **state)
{
    (void)state;
    each_call_is_an_event(false);
}

static void each_call_is_an_event_of_the_socket(void **state)
{
    (void)state;
    each_call_is_an_event(true);
}

static void fast_steps_are_few_lines_and_none_is_lost(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    struct wg_train *train = open_to(&events);
    const uint64_t from_ns = wg__clock_ns();
    enum { STEPS = 200000 };
    for (unsigned i = 0; i < STEPS; i++)
        wg_train_step(train);
    const uint64_t last_ns = wg__clock_ns();
    wg_train_close(train);
    progress_events_drain(&events);
    check_close(events.last.value, STEPS, 0);
    assert_true(events.last.t_ns >= from_ns && events.last.t_ns <= last_ns); /* of the last step */
    assert_true(events.count <= (last_ns - from_ns) / 5000000 + 4);
    progress_events_fini(&events);
}

static void steps_and_epochs_of_an_earlier_run_count(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    const struct wg_train_opts opts = WG_TRAIN_OPTS(.path = wg__progress_path(events.progress),
                                                    .first_step = 1000, .first_epoch = 3);
    struct wg_train *train = open_train(&opts);
    wg_train_step(train);
    wg_train_epoch(train);
    wg_train_close(train);
    progress_events_drain(&events);
    progress_events_expect(&events, "step 1000@0;step 1001@0;epoch 4@0;");
    progress_events_fini(&events);
}

static void the_rank_is_that_of_the_launcher_or_of_the_options(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    struct wg_train_opts opts = WG_TRAIN_OPTS(.path = wg__progress_path(events.progress));
    for (unsigned i = 0; i < sizeof rank_names / sizeof *rank_names; i++) {
        char text[8];
        (void)snprintf(text, sizeof text, "%u", i + 1);
        assert_int_equal(setenv(rank_names[i], text, 1), 0);
        struct wg_train *train = open_train(&opts);
        wg_train_batch_size(train, 8);
        wg_train_close(train);
        progress_events_drain(&events);
        assert_int_equal(events.last.rank, i + 1);
        assert_int_equal(setenv(rank_names[i], "first", 1), 0); /* no number: the next one counts */
    }
    opts.has_rank = true;
    opts.rank = 77;
    struct wg_train *train = open_train(&opts);
    wg_train_batch_size(train, 8);
    wg_train_close(train);
    progress_events_drain(&events);
    assert_int_equal(events.last.rank, 77);
    assert_int_equal(wg__progress_ranks(events.progress), 5);
    progress_events_fini(&events);
}

static void a_path_that_cannot_be_opened_is_named_and_hurts_nobody(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *fifo = scratch_path(&scratch, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    const char *const paths[] = {"/no/such/file", fifo, "/dev/null", scratch.folder, longest};
    const enum wg_code codes[] = {WG_ENOENT, WG_EIO, WG_EIO, WG_EIO, WG_EIO};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct wg_train *train = NULL;
        struct wg_error err;
        const struct wg_train_opts opts = WG_TRAIN_OPTS(.path = paths[i]);
        assert_int_equal(wg_train_open(&train, &opts, &err), codes[i]);
        assert_non_null(strstr(err.text, "cannot tell progress"));
        assert_non_null(train);
        assert_false(wg_train_is_active(train));
        use_all(train);
        wg_train_close(train);
    }
    scratch_close(&scratch);
}

static void options_of_another_age_are_told_apart(void **state)
{
    (void)state;
    struct wg_train *train = NULL;
    struct wg_error err;
    struct {
        struct wg_train_opts opts;
        uint64_t future;
    } larger = {.opts = WG_TRAIN_OPTS(.first_step = 1)};
    larger.opts.size = sizeof larger;
    assert_int_equal(wg_train_open(&train, &larger.opts, &err), WG_OK);
    wg_train_close(train);
    larger.future = 1;
    assert_int_equal(wg_train_open(NULL, NULL, &err), WG_EINVAL);
    assert_int_equal(wg_train_open(&train, &larger.opts, &err), WG_EINVAL);
    assert_null(train);
    larger.opts.size = 1;
    assert_int_equal(wg_train_open(&train, &larger.opts, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "wg_train_opts.size is 1"));
    wg__alloc_fail_from(1);
    assert_int_equal(wg_train_open(&train, NULL, &err), WG_ENOMEM);
    wg__alloc_fail_from(0);
    assert_null(train);
}

static void a_child_of_fork_says_nothing(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    struct wg_train *train = open_to(&events);
    wg_train_step(train);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool is_active = wg_train_is_active(train);
        use_all(train);
        wg_train_close(train);
        _exit(is_active ? 1 : 0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    wg_train_step(train);
    wg_train_close(train);
    progress_events_drain(&events);
    progress_events_expect(&events, "step 0@0;step 1@0;step 2@0;");
    progress_events_fini(&events);
}

/* Ranks in processes of their own, all at one file: no line is torn, no step is lost. */
static void many_ranks_write_at_once(void **state)
{
    (void)state;
    enum { RANKS = 8, STEPS = 20000, METRICS = 2000 };
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    for (unsigned rank = 0; rank < RANKS; rank++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child != 0)
            continue;
        const struct wg_train_opts opts = WG_TRAIN_OPTS(.path = wg__progress_path(events.progress),
                                                        .rank = rank, .has_rank = true);
        struct wg_train *train = NULL;
        if (wg_train_open(&train, &opts, NULL) != WG_OK)
            _exit(1);
        for (unsigned i = 0; i < STEPS; i++)
            wg_train_step(train);
        for (unsigned i = 0; i < METRICS; i++)
            wg_train_metric(train, "of_this_rank", i);
        wg_train_close(train);
        _exit(0);
    }
    for (unsigned ended = 0; ended < RANKS;) {
        int status = -1;
        const pid_t child = waitpid(-1, &status, WNOHANG);
        assert_true(child == 0 || status == 0);
        ended += child > 0;
        (void)wg__progress_pump(events.progress);
    }
    progress_events_drain(&events);
    assert_int_equal(wg__progress_rejected(events.progress, NULL), 0);
    assert_int_equal(wg__progress_ranks(events.progress), RANKS);
    size_t metrics = 0;
    for (const char *at = events.text.data; (at = strstr(at, "of_this_rank")) != NULL; at++)
        metrics++;
    assert_int_equal(metrics, RANKS * METRICS);
    assert_non_null(strstr(events.text.data, ";step 20000@"));
    progress_events_fini(&events);
}

/* The file of a governor that has ended is gone, or nobody holds its lock: nothing is written. */
static void without_a_listener_the_file_does_not_grow(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "progress");
    scratch_write(path, "", 0);
    const struct wg_train_opts opts = WG_TRAIN_OPTS(.path = path);
    struct wg_train *train = open_train(&opts);
    assert_false(wg_train_is_active(train));
    use_all(train);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 0);
    /* A governor comes: within about a second it is heard of. */
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){.path = path});
    assert_true(wg_train_is_active(train));
    const uint64_t deadline_ns = wg__clock_ns() + 20000000000U;
    while (events.count == 0 && wg__clock_ns() < deadline_ns) {
        wg_train_step(train);
        (void)wg__progress_pump(events.progress);
    }
    assert_true(events.count > 0 && events.last.value > 4);
    progress_events_fini(&events);
    assert_false(wg_train_is_active(train));
    wg_train_close(train);
    scratch_close(&scratch);
}

static void a_file_that_was_removed_is_found_again(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    struct wg_train *train = open_to(&events);
    assert_int_equal(unlink(wg__progress_path(events.progress)), 0);
    assert_false(wg_train_is_active(train));
    progress_events_drain(&events);
    const size_t before = events.count;
    const uint64_t deadline_ns = wg__clock_ns() + 20000000000U;
    while (events.count == before && wg__clock_ns() < deadline_ns) {
        wg_train_step(train);
        work_for(1000000);
        (void)wg__progress_pump(events.progress);
    }
    assert_true(events.count > before);
    assert_true(wg_train_is_active(train));
    wg_train_close(train);
    progress_events_fini(&events);
}

static void a_governor_that_dies_raises_no_signal_and_another_is_found(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_DFL);
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "socket");
    const struct wg_progress_opts opts = {.path = path, .is_socket = true};
    struct progress_events events;
    progress_events_open(&events, opts);
    struct wg_train *train = open_to(&events);
    wg_train_step(train);
    progress_events_fini(&events);
    for (unsigned i = 0; i < 10; i++)
        use_all(train);
    assert_false(wg_train_is_active(train));
    progress_events_open(&events, opts);
    const uint64_t deadline_ns = wg__clock_ns() + 20000000000U;
    while (events.count == 0 && wg__clock_ns() < deadline_ns) {
        wg_train_step(train);
        (void)wg__progress_pump(events.progress);
    }
    assert_true(events.count > 0 && events.last.value > 41);
    assert_true(wg_train_is_active(train));
    wg_train_close(train);
    progress_events_fini(&events);
    scratch_close(&scratch);
}

/* A socket whose reader hangs fills; nobody waits, and what is said later is whole lines. */
static void a_governor_that_hangs_blocks_nobody(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = scratch_path(&scratch, "socket");
    assert_true(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path));
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    const struct wg_train_opts opts = WG_TRAIN_OPTS(.path = address.sun_path);
    struct wg_train *train = open_train(&opts);
    const int reader = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    enum { METRICS = 50000 };
    for (unsigned i = 0; i < METRICS; i++)
        wg_train_metric(train, "name", i);
    assert_true(wg_train_is_active(train));
    size_t lines = 0, length = 0;
    const char *last = "";
    static char text[16 << 20];
    for (unsigned round = 0; round < 2; round++) {
        ssize_t got = 0;
        while ((got = recv(reader, text + length, sizeof text - length, MSG_DONTWAIT)) > 0)
            length += (size_t)got;
        if (round == 0)
            wg_train_metric(train, "last", 1);
    }
    wg_train_close(train);
    for (char *at = text; at < text + length; lines++) {
        char *end = memchr(at, '\n', length - (size_t)(at - text));
        assert_non_null(end);
        assert_true(strncmp(at, "metric ", 7) == 0 || strncmp(at, "step 0 ", 7) == 0);
        *end = '\0';
        assert_non_null(strstr(at, " at "));
        last = at;
        at = end + 1;
    }
    assert_in_range(lines, 100, METRICS);
    assert_non_null(strstr(last, "metric 1 last at "));
    (void)close(reader);
    (void)close(listener);
    scratch_close(&scratch);
}

static void a_limit_on_the_size_of_files_ends_no_training(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    struct wg_train *train = open_to(&events);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {.rlim_cur = 100, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (unsigned i = 0; i < 10; i++)
        use_all(train); /* SIGXFSZ would end us */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    use_all(train);
    wg_train_close(train);
    progress_events_drain(&events);
    assert_int_equal(wg__progress_rejected(events.progress, NULL), 0);
    assert_true(events.count >= 5);
    progress_events_fini(&events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_a_governor_it_does_nothing, clear_environment),
        cmocka_unit_test_setup(each_call_is_an_event_of_the_file, clear_environment),
        cmocka_unit_test_setup(each_call_is_an_event_of_the_socket, clear_environment),
        cmocka_unit_test_setup(fast_steps_are_few_lines_and_none_is_lost, clear_environment),
        cmocka_unit_test_setup(steps_and_epochs_of_an_earlier_run_count, clear_environment),
        cmocka_unit_test_setup(the_rank_is_that_of_the_launcher_or_of_the_options,
                               clear_environment),
        cmocka_unit_test_setup(a_path_that_cannot_be_opened_is_named_and_hurts_nobody,
                               clear_environment),
        cmocka_unit_test_setup(options_of_another_age_are_told_apart, clear_environment),
        cmocka_unit_test_setup(a_child_of_fork_says_nothing, clear_environment),
        cmocka_unit_test_setup(many_ranks_write_at_once, clear_environment),
        cmocka_unit_test_setup(without_a_listener_the_file_does_not_grow, clear_environment),
        cmocka_unit_test_setup(a_file_that_was_removed_is_found_again, clear_environment),
        cmocka_unit_test_setup(a_governor_that_dies_raises_no_signal_and_another_is_found,
                               clear_environment),
        cmocka_unit_test_setup(a_governor_that_hangs_blocks_nobody, clear_environment),
        cmocka_unit_test_setup(a_limit_on_the_size_of_files_ends_no_training, clear_environment),
    };
    return run_tests(tests);
}
