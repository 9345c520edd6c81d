/* SPDX-License-Identifier: MIT
 *
 * The guard: it starts, ignores what ends programs, ends with its journal, and watches its parent.
 *
 * What it restores is for tests/integration/control.py, which kills real governors.
 */
#include "live/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/journal_folder.h"
#include "support/check.h"
#include "support/scratch.h"

enum { DEADLINE_MS = 60000 };

struct scene {
    struct scratch scratch;
    struct wg_journal journal;
    struct wg_guard guard;
    char program[512];
};

static void open_scene(struct scene *scene)
{
    struct wg_error err = {0};
    *scene = (struct scene){.guard = {.pidfd = -1}};
    scratch_open(&scene->scratch);
    const char *build = getenv("WATTGOV_BUILD_ROOT");
    scratch_require(build != NULL, "WATTGOV_BUILD_ROOT");
    (void)snprintf(scene->program, sizeof scene->program, "%s/wattgov", build);
    if (wg__journal_make(&scene->journal, scene->scratch.folder, "test", "/", 1000, &err) != WG_OK)
        fail_msg("%s", err.text);
}

static void close_scene(struct scene *scene)
{
    wg__journal_fini(&scene->journal);
    (void)unlink(scratch_path(&scene->scratch, "journal/lock"));
    (void)rmdir(scratch_path(&scene->scratch, "journal"));
    scratch_close(&scene->scratch);
}

static void start(struct scene *scene)
{
    struct wg_error err = {0};
    if (wg__guard_start(&scene->guard, scene->program, scene->journal.fd, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_true(wg__guard_is_alive(&scene->guard));
}

static bool await_end(const struct wg_guard *guard)
{
    struct pollfd watched = {.fd = guard->pidfd, .events = POLLIN};
    return poll(&watched, 1, DEADLINE_MS) == 1;
}

static void it_ends_when_the_journal_was_ended(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    start(&scene);
    const pid_t pid = scene.guard.pid;
    assert_int_equal(wg__journal_remove(&scene.journal, NULL), WG_OK);
    wg__guard_stop(&scene.guard);
    assert_int_equal(scene.guard.pid, 0);
    assert_int_equal(scene.guard.pidfd, -1);
    assert_false(wg__guard_is_alive(&scene.guard));
    assert_int_equal(kill(pid, 0), -1); /* it was waited for, too */
    assert_int_equal(errno, ESRCH);
    wg__guard_stop(&scene.guard);
    close_scene(&scene);
}

static void what_ends_programs_does_not_end_it_and_its_death_shows(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    start(&scene);
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM, SIGUSR1};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_int_equal(kill(scene.guard.pid, numbers[i]), 0);
    assert_true(getsid(scene.guard.pid) == scene.guard.pid);
    assert_true(wg__guard_is_alive(&scene.guard));
    assert_int_equal(kill(scene.guard.pid, SIGKILL), 0);
    assert_true(await_end(&scene.guard));
    assert_false(wg__guard_is_alive(&scene.guard));
    wg__guard_stop(&scene.guard);
    (void)wg__journal_remove(&scene.journal, NULL);
    close_scene(&scene);
}

/* It has the journal, its parent's pidfd and what NVML may open; no file of ours. */
static void it_has_no_file_of_its_parent_but_the_journal(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    const int leak = open("/dev/zero", O_RDONLY); /* NOLINT: meant to be inherited */
    assert_true(leak >= 0);
    start(&scene);
    char path[64];
    size_t journals = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)scene.guard.pid);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        char link[128];
        char target[512];
        (void)snprintf(link, sizeof link, "%s/%.32s", path, entry->d_name);
        const ssize_t length = readlink(link, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        assert_null(strstr(target, "/dev/zero"));
        journals += strstr(target, ".journal") != NULL;
    }
    (void)closedir(folder);
    (void)close(leak);
    assert_int_equal(journals, 1);
    (void)wg__journal_remove(&scene.journal, NULL);
    wg__guard_stop(&scene.guard);
    close_scene(&scene);
}

static void a_journal_that_was_not_ended_keeps_it(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    start(&scene);
    const struct wg_guard kept = {.pid = scene.guard.pid, .pidfd = dup(scene.guard.pidfd)};
    wg__guard_stop(&scene.guard);
    assert_int_equal(scene.guard.pid, 0);
    assert_true(wg__guard_is_alive(&kept));
    assert_int_equal(wg__journal_remove(&scene.journal, NULL), WG_OK);
    struct wg_guard guard = kept;
    wg__guard_stop(&guard);
    assert_int_equal(waitpid(kept.pid, NULL, WNOHANG), -1);
    close_scene(&scene);
}

static void a_guard_that_cannot_be_started_is_an_error_with_its_program(void **state)
{
    (void)state;
    struct scene scene;
    struct wg_error err = {0};
    open_scene(&scene);
    assert_int_equal(wg__guard_start(&scene.guard, "/nowhere/wattgov", scene.journal.fd, &err),
                     WG_EIO);
    assert_non_null(strstr(err.text, "starting the guard of settings, /nowhere/wattgov: "));
    assert_int_equal(scene.guard.pid, 0);
    assert_int_equal(wg__guard_start(&scene.guard, "/bin/true", scene.journal.fd, &err), WG_EIO);
    assert_non_null(strstr(err.text, "has given no sign of life"));
    assert_false(wg__guard_is_alive(&scene.guard));
    assert_int_equal(wg__guard_start(&scene.guard, scene.program, -1, &err), WG_EIO);
    (void)wg__journal_remove(&scene.journal, NULL);
    close_scene(&scene);
}

/* The parent dies: the journal, in which nothing was set, is worked off and removed. */
static void when_its_parent_dies_it_works_the_journal_off_and_ends(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    const pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0) {
        struct wg_guard guard;
        if (wg__guard_start(&guard, scene.program, scene.journal.fd, NULL) == WG_OK)
            (void)!write(ready[1], "1", 1);
        for (;;)
            (void)pause();
    }
    char byte = 0;
    char path[512];
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)snprintf(path, sizeof path, "%s", scene.journal.path);
    wg__journal_fini(&scene.journal); /* now parent and guard hold it */
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    for (int i = 0; i < DEADLINE_MS && access(path, F_OK) == 0; i++)
        (void)poll(NULL, 0, 1);
    assert_int_equal(access(path, F_OK), -1);
    (void)close(ready[0]);
    (void)close(ready[1]);
    close_scene(&scene);
}

static void by_hand_it_does_nothing(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    /* Without files 3, 4 and 5, as from a shell. */
    char command[600];
    (void)snprintf(command, sizeof command, "%s guard 3<&- 4<&- 5<&- 2>/dev/null", scene.program);
    const int status = system(command); /* NOLINT: a test's own words */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
    (void)wg__journal_remove(&scene.journal, NULL);
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_when_the_journal_was_ended),
        cmocka_unit_test(what_ends_programs_does_not_end_it_and_its_death_shows),
        cmocka_unit_test(it_has_no_file_of_its_parent_but_the_journal),
        cmocka_unit_test(a_journal_that_was_not_ended_keeps_it),
        cmocka_unit_test(a_guard_that_cannot_be_started_is_an_error_with_its_program),
        cmocka_unit_test(when_its_parent_dies_it_works_the_journal_off_and_ends),
        cmocka_unit_test(by_hand_it_does_nothing),
    };
    return run_tests(tests);
}
