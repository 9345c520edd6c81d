/* SPDX-License-Identifier: MIT
 *
 * Calls that may never return. What hangs here waits at a gate that the test opens.
 */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/deadline.h"
#include "support/check.h"
#include "support/gate.h"

/* Long enough for a call that returns at once, on a machine that is busy; what hangs is waited for
 * only so long as SHORT_NS. */
static const uint64_t LONG_NS = UINT64_C(60) * 1000000000;
static const uint64_t SHORT_NS = UINT64_C(20) * 1000000;

struct call {
    struct gate gate;    /* closed: `hang` waits */
    struct gate dropped; /* passed by `drop` */
    pthread_t thread;
    sigset_t mask;
    unsigned runs;
};

static struct wg_worker *worker_new(void)
{
    struct wg_worker *worker = NULL;
    assert_int_equal(wg__worker_new(&worker, NULL), WG_OK);
    return worker;
}

static struct call call_new(void)
{
    struct call call = {.gate = GATE_CLOSED, .dropped = GATE_CLOSED};
    call.dropped.is_open = true;
    return call;
}

static void note(void *context)
{
    struct call *call = context;
    call->thread = pthread_self();
    (void)pthread_sigmask(SIG_SETMASK, NULL, &call->mask);
    call->runs++;
}

static void hang(void *context)
{
    struct call *call = context;
    call->runs++;
    gate_pass(&call->gate);
}

static void drop(void *context)
{
    struct call *call = context;
    gate_pass(&call->dropped);
}

static void calls_run_one_after_the_other_on_one_thread_of_their_own(void **state)
{
    (void)state;
    struct wg_worker *worker = worker_new();
    struct call call = call_new();
    pthread_t first = pthread_self();
    for (unsigned i = 1; i <= 100; i++) {
        assert_int_equal(wg__worker_call(worker, note, drop, &call, LONG_NS), WG_OK);
        assert_int_equal(call.runs, i);
        assert_false(pthread_equal(call.thread, pthread_self()));
        if (i > 1)
            assert_true(pthread_equal(call.thread, first));
        first = call.thread;
    }
    assert_int_equal(call.dropped.passed, 0); /* the contexts came back */
    assert_false(wg__worker_is_hung(worker));
    wg__worker_free(worker);
    wg__worker_free(NULL);
    wg__worker_free(worker_new()); /* never called: it has no thread */
}

static void the_thread_takes_no_signals_but_its_own_faults(void **state)
{
    (void)state;
    struct wg_worker *worker = worker_new();
    struct call call = call_new();
    sigset_t before;
    sigset_t after;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(wg__worker_call(worker, note, NULL, &call, LONG_NS), WG_OK);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    static const int blocked[] = {SIGINT, SIGTERM, SIGCHLD, SIGWINCH, SIGALRM, SIGPROF, SIGUSR1};
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++) {
        assert_int_equal(sigismember(&call.mask, blocked[i]), 1);
        assert_int_equal(sigismember(&after, blocked[i]), sigismember(&before, blocked[i]));
    }
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        assert_int_equal(sigismember(&call.mask, open[i]), 0);
    wg__worker_free(worker);
}

static void a_late_call_is_abandoned_dropped_when_it_returns_and_then_others_run(void **state)
{
    (void)state;
    struct wg_worker *worker = worker_new();
    struct call call = call_new();
    struct call other = call_new();
    const uint64_t before_ns = wg__clock_ns();
    assert_int_equal(wg__worker_call(worker, hang, drop, &call, SHORT_NS), WG_ETIMEOUT);
    assert_true(wg__clock_ns() - before_ns >= SHORT_NS);
    assert_true(wg__worker_is_hung(worker));
    assert_int_equal(wg__worker_call(worker, note, drop, &other, LONG_NS), WG_ESTATE);
    assert_int_equal(other.runs + call.dropped.passed, 0);
    gate_open(&call.gate);
    gate_await_passed(&call.dropped, 1);
    assert_false(wg__worker_is_hung(worker)); /* before drop, so that drop may tell others */
    assert_int_equal(wg__worker_call(worker, note, drop, &other, LONG_NS), WG_OK);
    assert_int_equal(other.runs, 1);
    assert_int_equal(call.dropped.passed, 1);
    wg__worker_free(worker);
}

static void freeing_a_worker_that_hangs_returns_at_once_and_leaks_nothing(void **state)
{
    (void)state;
    struct wg_worker *worker = worker_new();
    struct call call = call_new();
    assert_int_equal(wg__worker_call(worker, hang, drop, &call, SHORT_NS), WG_ETIMEOUT);
    wg__worker_free(worker); /* returns though the gate is closed */
    assert_int_equal(call.dropped.passed, 0);
    gate_open(&call.gate);
    gate_await_passed(&call.dropped, 1);
}

static void a_call_that_was_started_and_not_waited_for_is_dropped_too(void **state)
{
    (void)state;
    struct wg_worker *worker = worker_new();
    struct call call = call_new();
    assert_int_equal(wg__worker_start(worker, hang, drop, &call), WG_OK);
    wg__worker_free(worker);
    gate_open(&call.gate);
    gate_await_passed(&call.dropped, 1);
    assert_int_equal(call.runs, 1);
}

static void several_workers_are_waited_for_until_one_common_moment(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    struct wg_worker *workers[COUNT];
    struct call calls[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        workers[i] = worker_new();
        calls[i] = call_new();
        assert_int_equal(wg__worker_start(workers[i], i == 3 ? note : hang, drop, &calls[i]),
                         WG_OK);
        assert_int_equal(wg__worker_start(workers[i], note, drop, &calls[i]), WG_ESTATE);
    }
    const uint64_t until_ns = wg__clock_ns() + UINT64_C(500) * 1000000;
    gate_open(&calls[5].gate);
    gate_await_passed(&calls[5].gate, 1);
    for (size_t i = 0; i < COUNT; i++) {
        const enum wg_code expected = i == 3 || i == 5 ? WG_OK : WG_ETIMEOUT;
        assert_int_equal(wg__worker_wait(workers[i], until_ns), expected);
    }
    /* One timeout, not six of them. */
    assert_true(wg__clock_ns() < until_ns + UINT64_C(1000) * 1000000);
    for (size_t i = 0; i < COUNT; i++)
        gate_open(&calls[i].gate);
    for (size_t i = 0; i < COUNT; i++) {
        if (i != 3 && i != 5)
            gate_await_passed(&calls[i].dropped, 1);
        wg__worker_free(workers[i]);
    }
}

/* Many deadlines that fall together with the return: one owner each time. */
static void the_context_has_exactly_one_owner_however_close_the_race(void **state)
{
    (void)state;
    struct wg_worker *worker = worker_new();
    struct call call = call_new();
    unsigned kept = 0;
    unsigned returned = 0;
    for (unsigned i = 0; i < 2000; i++) {
        const enum wg_code code =
            wg__worker_call(worker, note, drop, &call, i % 40 * UINT64_C(1000));
        if (code == WG_OK) {
            returned++;
            continue;
        }
        assert_int_equal(code, WG_ETIMEOUT);
        gate_await_passed(&call.dropped, ++kept);
    }
    assert_int_equal(returned + kept, 2000);
    assert_int_equal(call.runs, 2000);
    assert_int_equal(call.dropped.passed, kept);
    wg__worker_free(worker);
}

/* Field report 5. */
static void a_forked_child_gets_a_thread_of_its_own(void **state)
{
    (void)state;
    struct wg_worker *idle = worker_new();
    struct wg_worker *hung = worker_new();
    struct call call = call_new();
    struct call stuck = call_new();
    assert_int_equal(wg__worker_call(idle, note, NULL, &call, LONG_NS), WG_OK);
    assert_int_equal(wg__worker_call(hung, hang, drop, &stuck, SHORT_NS), WG_ETIMEOUT);
    const pid_t child = fork();
    if (child == 0) {
        int status = 0;
        if (wg__worker_is_hung(hung) ||
            wg__worker_call(idle, note, NULL, &call, LONG_NS) != WG_OK || call.runs != 2)
            status = 1;
        if (wg__worker_call(hung, note, NULL, &call, LONG_NS) != WG_OK || call.runs != 3)
            status = 2;
        wg__worker_free(idle);
        wg__worker_free(hung);
        _exit(status);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(call.runs, 1);
    assert_true(wg__worker_is_hung(hung));
    gate_open(&stuck.gate);
    gate_await_passed(&stuck.dropped, 1);
    wg__worker_free(idle);
    wg__worker_free(hung);
}

static void running_out_of_memory_is_an_error(void **state)
{
    (void)state;
    struct wg_worker *worker = NULL;
    struct wg_error err = {0};
    wg__alloc_fail_from(1);
    const enum wg_code code = wg__worker_new(&worker, &err);
    wg__alloc_fail_from(0);
    assert_int_equal(code, WG_ENOMEM);
    assert_string_equal(err.text, "cannot make a worker: out of memory");
    assert_null(worker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_run_one_after_the_other_on_one_thread_of_their_own),
        cmocka_unit_test(the_thread_takes_no_signals_but_its_own_faults),
        cmocka_unit_test(a_late_call_is_abandoned_dropped_when_it_returns_and_then_others_run),
        cmocka_unit_test(freeing_a_worker_that_hangs_returns_at_once_and_leaks_nothing),
        cmocka_unit_test(a_call_that_was_started_and_not_waited_for_is_dropped_too),
        cmocka_unit_test(several_workers_are_waited_for_until_one_common_moment),
        cmocka_unit_test(the_context_has_exactly_one_owner_however_close_the_race),
        cmocka_unit_test(a_forked_child_gets_a_thread_of_its_own),
        cmocka_unit_test(running_out_of_memory_is_an_error),
    };
    return run_tests(tests);
}
