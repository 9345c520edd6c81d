/* SPDX-License-Identifier: MIT
 *
 * The progress file: what writers of all kinds do to it, and what comes of it.
 */
#include "live/progress_file.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/progress_events.h"

/* Without a zero behind it. */
static void put(char *at, const char *text)
{
    while (*text != '\0')
        *at++ = *text++;
}

static void lines_that_are_appended_are_events(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    progress_say(&events, "step 1\nstep 2\nepoch 1\n");
    progress_events_wait(&events, 3);
    progress_say(&events, "metric 0.75 acc\nmetric nan\nbatch_size 32 rank 1\n");
    progress_events_wait(&events, 6);
    progress_events_expect(&events, "step 1@0;step 2@0;epoch 1@0;metric 0.75 acc@0;metric nan@0;"
                                    "batch_size 32@1;");
    assert_int_equal(wg__progress_rejected(events.progress, NULL), 0);
    assert_int_equal(wg__progress_ranks(events.progress), 1);
    progress_events_fini(&events);
}

static void the_descriptor_is_quiet_while_nothing_comes(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    progress_events_drain(&events);
    struct pollfd ready = {.fd = wg__progress_fd(events.progress), .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 0), 0);
    progress_say(&events, "step 1\n");
    assert_int_equal(poll(&ready, 1, 20000), 1);
    assert_int_equal(wg__progress_pump(events.progress), 1);
    assert_int_equal(wg__progress_pump(events.progress), 0);
    assert_int_equal(poll(&ready, 1, 0), 0);
    progress_events_fini(&events);
}

static void a_part_of_a_line_waits_for_its_rest(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    progress_say(&events, "step 1");
    progress_events_drain(&events);
    assert_int_equal(events.count, 0);
    progress_say(&events, "2\r\nstep 1");
    progress_events_wait(&events, 1);
    progress_say(&events, "3");
    progress_events_drain(&events);
    progress_events_close(&events); /* now it is the last line */
    progress_events_expect(&events, "step 12@0;step 13@0;");
    progress_events_fini(&events);
}

static void what_is_no_progress_is_counted_and_the_last_is_kept(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    const char bytes[] = "loss 0.5\n\r\n\nstep\0 5\nstep -1\n\x1b[31mred\xff\nstep 4\n";
    progress_append(wg__progress_path(events.progress), bytes, sizeof bytes - 1);
    progress_events_wait(&events, 1);
    const char *last = NULL;
    assert_int_equal(wg__progress_rejected(events.progress, &last), 4);
    assert_string_equal(last, "?[31mred?");
    progress_events_fini(&events);
}

static void a_line_of_ten_megabytes_costs_no_memory_and_hides_nothing(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    const size_t length = 10 << 20;
    char *many = malloc(length);
    scratch_require(many != NULL, "memory");
    memset(many, '1', length);
    put(many, "step ");
    progress_say(&events, "step 1\n");
    progress_append(wg__progress_path(events.progress), many, length);
    progress_say(&events, "\nstep 2\n");
    free(many);
    progress_events_wait(&events, 2);
    progress_events_expect(&events, "step 1@0;step 2@0;");
    assert_int_equal(wg__progress_rejected(events.progress, NULL), 1);
    progress_events_fini(&events);
}

static void a_moment_that_cannot_be_is_now(void **state)
{
    (void)state;
    struct progress_events events;
    const uint64_t before_ns = wg__clock_ns();
    progress_events_open(&events, (struct wg_progress_opts){0});
    const uint64_t told_ns = wg__clock_ns();
    char line[64];
    (void)snprintf(line, sizeof line, "metric 1 at %llu\n", (unsigned long long)told_ns);
    progress_say(&events, line);
    progress_events_wait(&events, 1);
    assert_true(events.last.t_ns == told_ns);
    static const char *const absurd[] = {"metric 1 at 18446744073709551615\n", "metric 1 at 5\n",
                                         "metric 1 at 0\n", "metric 1\n"};
    for (size_t i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        const uint64_t from_ns = wg__clock_ns();
        progress_say(&events, absurd[i]);
        progress_events_wait(&events, i + 2);
        assert_true(events.last.t_ns >= from_ns && events.last.t_ns <= wg__clock_ns());
    }
    /* And moments of one kind never go back. */
    const uint64_t last_ns = events.last.t_ns;
    (void)snprintf(line, sizeof line, "metric 1 at %llu\n", (unsigned long long)told_ns);
    progress_say(&events, line);
    progress_events_wait(&events, 6);
    assert_true(events.last.t_ns == last_ns && last_ns > before_ns);
    progress_events_fini(&events);
}

static void a_file_of_ours_is_private_and_goes_at_the_end(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    char path[512];
    (void)snprintf(path, sizeof path, "%s", wg__progress_path(events.progress));
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    progress_events_close(&events);
    assert_int_equal(stat(path, &status), -1);
    progress_events_fini(&events);
}

static void a_file_of_the_users_is_read_from_its_end_and_stays(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "progress");
    scratch_write(path, "step 7\nmetric 3\n", 16);
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){.path = path});
    progress_events_drain(&events);
    assert_int_equal(events.count, 0);
    progress_say(&events, "step 8\n");
    progress_events_wait(&events, 1);
    progress_events_expect(&events, "step 8@0;");
    progress_events_fini(&events);
    size_t length = 0;
    char *text = scratch_read(path, &length);
    assert_string_equal(text, "step 7\nmetric 3\nstep 8\n");
    free(text);
    scratch_close(&scratch);
}

/* `>` where `>>` was meant: each line is the whole file. */
static void a_file_that_is_written_anew_each_time_is_read_each_time(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    const char *path = wg__progress_path(events.progress);
    char line[32];
    for (unsigned i = 1; i <= 12; i++) {
        const int length = snprintf(line, sizeof line, "step %u\n", i);
        scratch_write(path, line, (size_t)length);
        progress_events_wait(&events, i);
    }
    check_close(events.last.value, 12, 0);
    scratch_write(path, "step 9\nstep 13", 14); /* without an end, shorter, longer */
    progress_events_drain(&events);
    scratch_write(path, "metric 4\n", 9);
    progress_events_wait(&events, 14);
    progress_events_drain(&events);
    progress_events_expect(&events, "step 1@0;step 2@0;step 3@0;step 4@0;step 5@0;step 6@0;step "
                                    "7@0;step 8@0;step 9@0;step 10@0;step 11@0;step 12@0;"
                                    "step 13@0;metric 4@0;");
    progress_events_fini(&events);
}

static void a_file_that_is_removed_or_replaced_is_followed(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    char path[512], other[520];
    (void)snprintf(path, sizeof path, "%s", wg__progress_path(events.progress));
    (void)snprintf(other, sizeof other, "%s.new", path);
    progress_say(&events, "step 1\n");
    progress_events_wait(&events, 1);
    assert_int_equal(unlink(path), 0);
    progress_events_drain(&events);
    progress_say(&events, "step 2\n");
    progress_events_wait(&events, 2);
    scratch_write(other, "step 3\n", 7);
    assert_int_equal(rename(other, path), 0);
    progress_events_wait(&events, 3);
    progress_say(&events, "step 4\n");
    progress_events_wait(&events, 4);
    progress_events_expect(&events, "step 1@0;step 2@0;step 3@0;step 4@0;");
    progress_events_fini(&events);
    struct stat status;
    assert_int_equal(stat(path, &status), -1);
}

static void what_was_read_is_given_back_to_the_file_system(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    const char *path = wg__progress_path(events.progress);
    struct stat status;
    static char lines[1 << 20];
    memset(lines, '\n', sizeof lines);
    for (unsigned i = 0; i < 24; i++) {
        progress_append(path, lines, sizeof lines);
        progress_events_drain(&events);
    }
    progress_say(&events, "step 1\n");
    progress_events_wait(&events, 1);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, sizeof lines * 24 + 7);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    const bool can_punch = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0;
    (void)close(fd);
    if (can_punch)
        assert_true((uint64_t)status.st_blocks * 512 < 4 * sizeof lines);
    progress_events_fini(&events);
}

static void far_behind_only_the_end_is_read(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    const char *path = wg__progress_path(events.progress);
    progress_say(&events, "step 1\n");
    assert_int_equal(truncate(path, (off_t)1 << 36), 0); /* 64 GiB of nothing */
    progress_say(&events, "\nstep 2\n");
    progress_events_wait(&events, 1);
    progress_events_expect(&events, "step 2@0;");
    progress_events_fini(&events);
}

static void a_flood_is_read_in_parts(void **state)
{
    (void)state;
    struct progress_events events;
    progress_events_open(&events, (struct wg_progress_opts){0});
    enum { LINES = 400000 };
    char *lines = malloc((size_t)LINES * 9);
    scratch_require(lines != NULL, "memory");
    for (size_t i = 0; i < LINES; i++)
        put(lines + 9 * i, "metric 1\n");
    progress_append(wg__progress_path(events.progress), lines, (size_t)LINES * 9);
    free(lines);
    const size_t first = wg__progress_pump(events.progress);
    assert_in_range(first, 1000, LINES - 1);
    progress_events_wait(&events, LINES); /* the descriptor stays readable until all is read */
    assert_int_equal(events.count, LINES);
    progress_events_fini(&events);
}

static void a_path_that_will_not_do_is_refused_by_name(void **state)
{
    (void)state;
    struct scratch scratch;
    struct progress_events events;
    struct wg_error err;
    scratch_open(&scratch);
    const struct wg_progress_opts folder = {.path = scratch.folder};
    assert_int_not_equal(progress_events_try(&events, folder, &err), WG_OK);
    assert_non_null(strstr(err.text, scratch.folder));
    progress_events_fini(&events);
    const char *fifo = scratch_path(&scratch, "fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(progress_events_try(&events, (struct wg_progress_opts){.path = fifo}, &err),
                     WG_EINVAL);
    assert_non_null(strstr(err.text, "is no regular file"));
    progress_events_fini(&events);
    const struct wg_progress_opts nowhere = {.path = "/no/such/folder/file"};
    assert_int_equal(progress_events_try(&events, nowhere, &err), WG_ENOENT);
    progress_events_fini(&events);
    assert_int_equal(progress_events_try(&events, (struct wg_progress_opts){.path = ""}, &err),
                     WG_EINVAL);
    progress_events_fini(&events);
    scratch_close(&scratch);
}

static void without_memory_or_descriptors_it_fails_and_leaves_nothing(void **state)
{
    (void)state;
    struct progress_events events;
    struct wg_error err;
    const struct wg_progress_opts opts = {.step_regex = "a(.)", .metric_regex = "b(.)"};
    bool has_opened = false;
    for (size_t nth = 1; !has_opened; nth++) {
        assert_true(nth < 1000);
        *(&events) = (struct progress_events){0};
        const struct wg_progress_opts plain = opts;
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__progress_open(&events.progress, &plain, &err);
        wg__alloc_fail_from(0);
        has_opened = code == WG_OK;
        if (!has_opened)
            assert_int_equal(code, WG_ENOMEM);
        wg__progress_close(events.progress);
    }
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int next = fcntl(0, F_DUPFD_CLOEXEC, 0);
    assert_true(next > 0);
    (void)close(next);
    for (unsigned more = 0; more < 6; more++) {
        few = before;
        few.rlim_cur = (rlim_t)next + more;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        struct wg_progress *progress = NULL;
        const enum wg_code code = wg__progress_open(&progress, &opts, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (more < 4)
            assert_int_equal(code, WG_EIO);
        wg__progress_close(progress);
    }
    assert_int_equal(fcntl(0, F_DUPFD_CLOEXEC, 0), next); /* none was left open */
    (void)close(next);
}

/* In a user namespace of its own, where there is no inotify: 0 fine, 77 no such namespace. */
static int read_without_inotify(void)
{
    if (unshare(CLONE_NEWUSER) != 0)
        return 77;
    const int limit = open("/proc/sys/user/max_inotify_instances", O_WRONLY | O_CLOEXEC);
    if (limit < 0 || write(limit, "0", 1) != 1 || inotify_init1(IN_CLOEXEC) >= 0)
        return 77;
    struct progress_events events;
    struct wg_error err;
    if (progress_events_try(&events, (struct wg_progress_opts){0}, &err) != WG_OK)
        return 1;
    progress_say(&events, "step 1\n");
    (void)wg__progress_pump(events.progress);
    progress_say(&events, "step 2\n");
    const uint64_t deadline_ns = wg__clock_ns() + 20000000000U;
    while (events.count < 2 && wg__clock_ns() < deadline_ns) {
        struct pollfd ready = {.fd = wg__progress_fd(events.progress), .events = POLLIN};
        if (poll(&ready, 1, 20000) != 1)
            return 2;
        (void)wg__progress_pump(events.progress);
    }
    const bool is_right = strcmp(events.text.data, "step 1@0;step 2@0;") == 0;
    progress_events_fini(&events);
    return is_right ? 0 : 3;
}

static void without_inotify_it_looks_by_the_clock(void **state)
{
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(read_without_inotify());
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_are_appended_are_events),
        cmocka_unit_test(the_descriptor_is_quiet_while_nothing_comes),
        cmocka_unit_test(a_part_of_a_line_waits_for_its_rest),
        cmocka_unit_test(what_is_no_progress_is_counted_and_the_last_is_kept),
        cmocka_unit_test(a_line_of_ten_megabytes_costs_no_memory_and_hides_nothing),
        cmocka_unit_test(a_moment_that_cannot_be_is_now),
        cmocka_unit_test(a_file_of_ours_is_private_and_goes_at_the_end),
        cmocka_unit_test(a_file_of_the_users_is_read_from_its_end_and_stays),
        cmocka_unit_test(a_file_that_is_written_anew_each_time_is_read_each_time),
        cmocka_unit_test(a_file_that_is_removed_or_replaced_is_followed),
        cmocka_unit_test(what_was_read_is_given_back_to_the_file_system),
        cmocka_unit_test(far_behind_only_the_end_is_read),
        cmocka_unit_test(a_flood_is_read_in_parts),
        cmocka_unit_test(a_path_that_will_not_do_is_refused_by_name),
        cmocka_unit_test(without_inotify_it_looks_by_the_clock),
        cmocka_unit_test(without_memory_or_descriptors_it_fails_and_leaves_nothing),
    };
    return run_tests(tests);
}
