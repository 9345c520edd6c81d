/* SPDX-License-Identifier: MIT
 *
 * Running a command: exit statuses, signals on their way to it, what it used.
 */
#include "live/child.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "support/check.h"
#include "support/scratch.h"

static const uint64_t ns_per_s = 1000000000;

/* Runs the shell's `script` to its end; passes on what comes, or is ours alone. */
static struct wg_child run_script_with(const char *script, int signal,
                                       const struct wg_child_setup *setup)
{
    struct wg_signals signals;
    struct wg_child child;
    struct wg_error err;
    char *words[] = {(char[]){"sh"}, (char[]){"-c"}, strdup(script), NULL};
    wg__signals_block(&signals, true);
    if (wg__child_start(&child, words, &signals, setup, &err) != WG_OK)
        fail_msg("%s", err.text);
    if (signal != 0)
        wg__child_pass(&child, signal, false);
    const uint64_t deadline_ns = wg__clock_ns() + 20 * ns_per_s;
    while (!child.has_ended && wg__clock_ns() < deadline_ns) {
        bool to_group = true;
        if (wg__signals_wait(&signals, deadline_ns, &to_group) == SIGCHLD)
            wg__child_check(&child);
        assert_false(to_group);
    }
    wg__signals_restore(&signals);
    free(words[2]);
    assert_true(child.has_ended);
    return child;
}

static struct wg_child run_script(const char *script, int signal)
{
    return run_script_with(script, signal, NULL);
}

static void its_own_environment_stands_beside_and_before_ours(void **state)
{
    (void)state;
    const char *const own[] = {"WATTGOV_TEST_A=new", "WATTGOV_TEST_C=1", NULL};
    const struct wg_child_setup setup = {.out = -1, .err = -1, .environment = own};
    assert_int_equal(setenv("WATTGOV_TEST_A", "old", 1), 0);
    assert_int_equal(setenv("WATTGOV_TEST_AB", "kept", 1), 0);
    const struct wg_child child =
        run_script_with("test $WATTGOV_TEST_A:$WATTGOV_TEST_AB:$WATTGOV_TEST_C = new:kept:1 && "
                        "test $(env | grep -c WATTGOV_TEST_A=) = 1",
                        0, &setup);
    assert_int_equal(child.status, 0);
    assert_string_equal(getenv("WATTGOV_TEST_A"), "old");
    assert_int_equal(unsetenv("WATTGOV_TEST_A"), 0);
    assert_int_equal(unsetenv("WATTGOV_TEST_AB"), 0);
}

static void its_output_goes_where_it_should(void **state)
{
    (void)state;
    int out[2], err[2];
    char text[16] = "";
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    const struct wg_child_setup setup = {.out = out[1], .err = err[1]};
    assert_int_equal(run_script_with("echo one; echo two >&2", 0, &setup).status, 0);
    assert_int_equal(read(out[0], text, sizeof text), 4);
    assert_memory_equal(text, "one\n", 4);
    assert_int_equal(read(err[0], text, sizeof text), 4);
    assert_memory_equal(text, "two\n", 4);
    for (size_t i = 0; i < 2; i++) {
        (void)close(out[i]);
        (void)close(err[i]);
    }
}

static void the_exit_status_is_that_of_the_command(void **state)
{
    (void)state;
    static const int statuses[] = {0, 1, 77, 255};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        char script[32];
        (void)snprintf(script, sizeof script, "exit %d", statuses[i]);
        const struct wg_child child = run_script(script, 0);
        assert_int_equal(child.status, statuses[i]);
        assert_int_equal(child.signal, 0);
    }
}

static void a_signal_that_ends_it_is_128_and_its_number(void **state)
{
    (void)state;
    struct wg_child child = run_script("kill -KILL $$", 0);
    assert_int_equal(child.status, 128 + SIGKILL);
    assert_int_equal(child.signal, SIGKILL);
    child = run_script("exec sleep 60", SIGTERM);
    assert_int_equal(child.status, 128 + SIGTERM);
}

static void the_command_sees_no_blocked_or_ignored_signals_of_ours(void **state)
{
    (void)state;
    void (*before)(int) = signal(SIGPIPE, SIG_IGN); /* as main has it */
    /* glibc ignores its own two, 32 and 33, in what it spawns. */
    const struct wg_child child =
        run_script("test $(grep -c -E 'Sig(Blk|Ign):.*[08]0000000$' /proc/self/status) = 2", 0);
    (void)signal(SIGPIPE, before);
    assert_int_equal(child.status, 0);
}

static void what_is_not_there_is_127_and_what_cannot_run_126(void **state)
{
    (void)state;
    struct wg_signals signals;
    struct wg_child child;
    struct wg_error err;
    char *missing[] = {(char[]){"no-such-program-anywhere"}, NULL};
    char *folder[] = {(char[]){"/"}, NULL};
    wg__signals_block(&signals, true);
    assert_int_equal(wg__child_start(&child, missing, &signals, NULL, &err), WG_ENOENT);
    assert_true(child.has_ended);
    assert_int_equal(child.status, 127);
    assert_string_equal(err.text,
                        "cannot run 'no-such-program-anywhere': No such file or directory");
    assert_int_equal(wg__child_start(&child, folder, &signals, NULL, &err), WG_EPERM);
    assert_int_equal(child.status, 126);
    assert_non_null(strstr(err.text, "cannot run '/': "));
    wg__child_pass(&child, SIGKILL, false); /* to nobody */
    wg__signals_restore(&signals);
}

static void time_and_memory_of_the_command_are_counted(void **state)
{
    (void)state;
    const struct wg_child child =
        run_script("i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done", 0);
    assert_true(child.user_s > 0 && child.user_s < 60);
    assert_true(child.system_s >= 0);
    assert_in_range(child.peak_memory_bytes, 256 << 10, 1 << 30);
}

static void waiting_ends_at_the_deadline(void **state)
{
    (void)state;
    struct wg_signals signals;
    bool to_group = false;
    wg__signals_block(&signals, false);
    const uint64_t start_ns = wg__clock_ns();
    assert_int_equal(wg__signals_wait(&signals, start_ns + 5000000, &to_group), 0);
    assert_true(wg__clock_ns() >= start_ns + 5000000);
    assert_int_equal(wg__signals_wait(&signals, 0, &to_group), 0); /* has passed already */
    wg__signals_restore(&signals);
}

/* What a process finds that leads a group of its own and is signalled in four ways; its exit status
 * names the first that went wrong. */
static int signalled_in_four_ways(void)
{
    struct wg_signals signals;
    bool to_group = false;
    if (setpgid(0, 0) != 0)
        return 1;
    wg__signals_block(&signals, true);
    if (signals.watch.pid == 0)
        return 2;
    const uint64_t deadline_ns = wg__clock_ns() + 20 * ns_per_s;
    (void)kill(0, SIGTERM);
    if (wg__signals_wait(&signals, deadline_ns, &to_group) != SIGTERM || !to_group)
        return 3;
    (void)kill(getpid(), SIGTERM);
    if (wg__signals_wait(&signals, deadline_ns, &to_group) != SIGTERM || to_group)
        return 4;
    (void)kill(getpid(), SIGUSR1); /* as timeout(1) does it */
    (void)kill(0, SIGUSR1);
    if (wg__signals_wait(&signals, deadline_ns, &to_group) != SIGUSR1 || !to_group)
        return 5;
    if (wg__signals_wait(&signals, 0, &to_group) != 0)
        return 6;
    (void)kill(signals.watch.pid, SIGKILL); /* without it, all is ours */
    (void)waitid(P_PID, (id_t)signals.watch.pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
    (void)kill(0, SIGHUP);
    int number;
    do
        number = wg__signals_wait(&signals, deadline_ns, &to_group);
    while (number == SIGCHLD);
    if (number != SIGHUP || to_group)
        return 7;
    wg__signals_restore(&signals);
    return 0;
}

static void a_signal_to_the_group_is_told_from_one_to_us(void **state)
{
    (void)state;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(signalled_in_four_ways());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_signal_of_our_group_is_passed_to_a_command_that_has_left_it(void **state)
{
    (void)state;
    struct wg_signals signals;
    struct wg_error err;
    char setsid[] = "setsid", cat[] = "cat";
    char *with_setsid[] = {setsid, cat, NULL}, **const without = with_setsid + 1;
    int input[2];
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    const int before = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    assert_int_equal(dup2(input[0], STDIN_FILENO), STDIN_FILENO);
    for (int has_left = 0; has_left < 2; has_left++) {
        struct wg_child child;
        wg__signals_block(&signals, true);
        assert_int_equal(
            wg__child_start(&child, has_left ? with_setsid : without, &signals, NULL, &err), WG_OK);
        const uint64_t deadline_ns = wg__clock_ns() + 20 * ns_per_s;
        while (has_left && getpgid(child.pid) == getpgrp())
            assert_true(wg__clock_ns() < deadline_ns);
        wg__child_pass(&child, SIGTERM, true);
        if (!has_left) /* then only this one reaches it */
            wg__child_pass(&child, SIGKILL, false);
        bool to_group;
        while (!child.has_ended && wg__signals_wait(&signals, deadline_ns, &to_group) != 0)
            wg__child_check(&child);
        assert_int_equal(child.signal, has_left ? SIGTERM : SIGKILL);
        wg__signals_restore(&signals);
    }
    (void)dup2(before, STDIN_FILENO);
    (void)close(before);
    (void)close(input[0]);
    (void)close(input[1]);
}

static void write_script(const char *path, const char *text)
{
    scratch_write(path, text, strlen(text));
    assert_int_equal(chmod(path, 0755), 0);
}

static void a_script_that_names_no_interpreter_is_one_of_the_shell(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    char path[512], command[600];
    (void)snprintf(path, sizeof path, "%s/script", scratch.folder);
    write_script(path, "test \"$1 $2\" = 'one two three' && exit 5\n");
    /* By its path; by its name, found in PATH behind a file that may not be run. */
    struct wg_signals signals;
    char one[] = "one", two[] = "two three", name[] = "script";
    const char *const before = getenv("PATH");
    char *const kept = strdup(before != NULL ? before : "");
    (void)snprintf(command, sizeof command, "/dev/null:%s:%s", scratch.folder, kept);
    assert_int_equal(setenv("PATH", command, 1), 0);
    char *const programs[] = {path, name};
    for (size_t i = 0; i < 2; i++) {
        char *words[] = {programs[i], one, two, NULL};
        struct wg_child child;
        struct wg_error err;
        wg__signals_block(&signals, true);
        if (wg__child_start(&child, words, &signals, NULL, &err) != WG_OK)
            fail_msg("%s", err.text);
        const uint64_t deadline_ns = wg__clock_ns() + 20 * ns_per_s;
        bool to_group;
        while (!child.has_ended && wg__signals_wait(&signals, deadline_ns, &to_group) != 0)
            wg__child_check(&child);
        assert_int_equal(child.status, 5);
        wg__signals_restore(&signals);
        wg__alloc_fail_from(1);
        wg__signals_block(&signals, true);
        assert_int_equal(wg__child_start(&child, words, &signals, NULL, &err), WG_ENOMEM);
        assert_int_equal(child.status, 126);
        wg__signals_restore(&signals);
        wg__alloc_fail_from(0);
    }
    assert_int_equal(setenv("PATH", kept, 1), 0);
    free(kept);
    scratch_close(&scratch);
}

static void an_ignored_signal_stays_ignored(void **state)
{
    (void)state;
    struct wg_signals signals;
    void (*before)(int) = signal(SIGHUP, SIG_IGN); /* as nohup does */
    wg__signals_block(&signals, true);
    assert_int_equal(sigismember(&signals.waited, SIGHUP), 0);
    assert_int_equal(sigismember(&signals.waited, SIGINT), 1);
    assert_int_equal(sigismember(&signals.waited, SIGUSR1), 1);
    wg__signals_restore(&signals);
    (void)signal(SIGHUP, before);
}

static void children_are_reaped_by_us_even_where_sigchld_was_ignored(void **state)
{
    (void)state;
    (void)signal(SIGCHLD, SIG_IGN);
    assert_int_equal(run_script("exit 7", 0).status, 7);
}

static void signals_have_names(void **state)
{
    (void)state;
    char name[WG_SIGNAL_NAME_SIZE];
    wg__signal_name(name, SIGKILL);
    assert_string_equal(name, "SIGKILL");
    wg__signal_name(name, SIGRTMIN + 3);
    assert_non_null(strstr(name, "signal 3"));
}

static void one_that_ends_us_is_seen_and_stays(void **state)
{
    (void)state;
    struct wg_signals signals;
    bool to_group = false;
    wg__signals_block(&signals, true);
    wg__signals_add(&signals, SIGCONT);
    assert_false(wg__signals_have_come(&signals));
    assert_int_equal(kill(getpid(), SIGCHLD), 0);
    assert_int_equal(kill(getpid(), SIGCONT), 0);
    assert_false(wg__signals_have_come(&signals)); /* neither asks us to end */
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_true(wg__signals_have_come(&signals));
    assert_true(wg__signals_have_come(&signals));
    bool has_continued = false;
    int ending = 0;
    for (int i = 0; i < 3; i++) {
        const int number = wg__signals_wait(&signals, 0, &to_group);
        has_continued |= number == SIGCONT;
        ending = wg__signal_ends(number) ? number : ending;
    }
    assert_true(has_continued);
    assert_int_equal(ending, SIGTERM);
    assert_false(wg__signals_have_come(&signals));
    wg__signals_restore(&signals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exit_status_is_that_of_the_command),
        cmocka_unit_test(its_own_environment_stands_beside_and_before_ours),
        cmocka_unit_test(its_output_goes_where_it_should),
        cmocka_unit_test(a_signal_that_ends_it_is_128_and_its_number),
        cmocka_unit_test(the_command_sees_no_blocked_or_ignored_signals_of_ours),
        cmocka_unit_test(what_is_not_there_is_127_and_what_cannot_run_126),
        cmocka_unit_test(time_and_memory_of_the_command_are_counted),
        cmocka_unit_test(waiting_ends_at_the_deadline),
        cmocka_unit_test(a_signal_to_the_group_is_told_from_one_to_us),
        cmocka_unit_test(a_signal_of_our_group_is_passed_to_a_command_that_has_left_it),
        cmocka_unit_test(a_script_that_names_no_interpreter_is_one_of_the_shell),
        cmocka_unit_test(an_ignored_signal_stays_ignored),
        cmocka_unit_test(children_are_reaped_by_us_even_where_sigchld_was_ignored),
        cmocka_unit_test(signals_have_names),
        cmocka_unit_test(one_that_ends_us_is_seen_and_stays),
    };
    return run_tests(tests);
}
