/* SPDX-License-Identifier: MIT
 *
 * Running a command: exit statuses, signals on their way to it, what it used.
 */
#include "cli/child.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/check.h"

static const uint64_t ns_per_s = 1000000000;

/* Runs the shell's `script` to its end; passes on what comes, or is ours alone. */
static struct wg_child run_script(const char *script, int signal)
{
    struct wg_signals signals;
    struct wg_child child;
    struct wg_error err;
    char *words[] = {(char[]){"sh"}, (char[]){"-c"}, strdup(script), NULL};
    wg__signals_block(&signals, true);
    if (wg__child_start(&child, words, &signals, &err) != WG_OK)
        fail_msg("%s", err.text);
    if (signal != 0)
        wg__child_pass(&child, signal);
    const uint64_t deadline_ns = wg__clock_ns() + 20 * ns_per_s;
    while (!child.has_ended && wg__clock_ns() < deadline_ns) {
        bool from_terminal = true;
        if (wg__signals_wait(&signals, deadline_ns, &from_terminal) == SIGCHLD)
            wg__child_check(&child);
        assert_false(from_terminal); /* the kernel's CLD_EXITED is not SI_KERNEL */
    }
    wg__signals_restore(&signals);
    free(words[2]);
    assert_true(child.has_ended);
    return child;
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
    assert_int_equal(wg__child_start(&child, missing, &signals, &err), WG_ENOENT);
    assert_true(child.has_ended);
    assert_int_equal(child.status, 127);
    assert_string_equal(err.text,
                        "cannot run 'no-such-program-anywhere': No such file or directory");
    assert_int_equal(wg__child_start(&child, folder, &signals, &err), WG_EPERM);
    assert_int_equal(child.status, 126);
    assert_non_null(strstr(err.text, "cannot run '/': "));
    wg__child_pass(&child, SIGKILL); /* to nobody */
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
    bool from_terminal = false;
    wg__signals_block(&signals, false);
    const uint64_t start_ns = wg__clock_ns();
    assert_int_equal(wg__signals_wait(&signals, start_ns + 5000000, &from_terminal), 0);
    assert_true(wg__clock_ns() >= start_ns + 5000000);
    assert_int_equal(wg__signals_wait(&signals, 0, &from_terminal), 0); /* has passed already */
    wg__signals_restore(&signals);
}

static void a_signal_of_a_process_is_told_from_the_terminals(void **state)
{
    (void)state;
    struct wg_signals signals;
    bool from_terminal = true;
    wg__signals_block(&signals, false);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_int_equal(wg__signals_wait(&signals, UINT64_MAX, &from_terminal), SIGTERM);
    assert_false(from_terminal);
    wg__signals_restore(&signals);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exit_status_is_that_of_the_command),
        cmocka_unit_test(a_signal_that_ends_it_is_128_and_its_number),
        cmocka_unit_test(the_command_sees_no_blocked_or_ignored_signals_of_ours),
        cmocka_unit_test(what_is_not_there_is_127_and_what_cannot_run_126),
        cmocka_unit_test(time_and_memory_of_the_command_are_counted),
        cmocka_unit_test(waiting_ends_at_the_deadline),
        cmocka_unit_test(a_signal_of_a_process_is_told_from_the_terminals),
        cmocka_unit_test(an_ignored_signal_stays_ignored),
        cmocka_unit_test(children_are_reaped_by_us_even_where_sigchld_was_ignored),
        cmocka_unit_test(signals_have_names),
    };
    return run_tests(tests);
}
