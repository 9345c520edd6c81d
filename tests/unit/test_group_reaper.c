/* SPDX-License-Identifier: MIT
 *
 * The reaper: a group ends with who started it, however that ends, and not before.
 *
 * Each process of the group holds the end of a pipe: its end of file says that all are gone.
 */
#include "live/group_reaper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

enum { DEADLINE_MS = 20000 };

/* A group of two that SIGTERM, or only SIGKILL, ends. A program of its own, as what we start always
 * is: it has none of our files but its output. */
static pid_t start_group(int held, bool is_stubborn)
{
    const pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0);
        (void)dup2(held, STDOUT_FILENO);
        (void)execl("/bin/sh", "sh", "-c",
                    is_stubborn ? "trap '' TERM; sleep 600 & printf rr; wait"
                                : "sleep 600 & printf rr; wait",
                    (char *)NULL);
        _exit(127);
    }
    (void)setpgid(pid, pid);
    return pid;
}

static void await_byte(int fd)
{
    char byte = 0;
    assert_int_equal(read(fd, &byte, 1), 1);
}

static bool await_end(int fd)
{
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    char byte = 0;
    return poll(&watched, 1, DEADLINE_MS) == 1 && read(fd, &byte, 1) == 0;
}

/* Somebody starts a group and is killed. */
static void is_killed(bool is_stubborn)
{
    int held[2], ready[2];
    assert_int_equal(pipe2(held, O_CLOEXEC), 0);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        struct wg_group_reaper reaper;
        wg__group_reaper_start(&reaper);
        wg__group_reaper_tell(&reaper, start_group(held[1], is_stubborn));
        (void)!write(ready[1], "r", 1);
        for (;;)
            (void)pause();
    }
    (void)close(held[1]);
    await_byte(ready[0]);
    await_byte(held[0]);
    await_byte(held[0]);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(await_end(held[0]));
    (void)close(held[0]);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void a_group_ends_with_who_was_killed(void **state)
{
    (void)state;
    is_killed(false);
}

static void a_group_that_ignores_the_request_is_killed_too(void **state)
{
    (void)state;
    is_killed(true);
}

static void an_orderly_end_ends_no_group(void **state)
{
    (void)state;
    int held[2];
    assert_int_equal(pipe2(held, O_CLOEXEC), 0);
    struct wg_group_reaper reaper;
    wg__group_reaper_start(&reaper);
    assert_true(reaper.pid > 0);
    const pid_t group = start_group(held[1], false);
    await_byte(held[0]);
    await_byte(held[0]);
    wg__group_reaper_tell(&reaper, group);
    wg__group_reaper_stop(&reaper); /* it has ended by now */
    assert_int_equal(reaper.pid, 0);
    assert_int_equal(kill(group, 0), 0);
    assert_int_equal(waitpid(group, NULL, WNOHANG), 0);
    (void)close(held[1]);
    (void)kill(-group, SIGKILL);
    assert_int_equal(waitpid(group, NULL, 0), group);
    assert_true(await_end(held[0]));
    (void)close(held[0]);
    wg__group_reaper_stop(&reaper); /* of none */
}

static void a_reaper_that_was_killed_does_no_harm(void **state)
{
    (void)state;
    struct wg_group_reaper reaper;
    wg__group_reaper_start(&reaper);
    assert_int_equal(kill(reaper.pid, SIGKILL), 0);
    assert_int_equal(waitpid(reaper.pid, NULL, 0), reaper.pid);
    wg__group_reaper_tell(&reaper, getpid());
    wg__group_reaper_stop(&reaper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_ends_with_who_was_killed),
        cmocka_unit_test(a_group_that_ignores_the_request_is_killed_too),
        cmocka_unit_test(an_orderly_end_ends_no_group),
        cmocka_unit_test(a_reaper_that_was_killed_does_no_harm),
    };
    return run_tests(tests);
}
