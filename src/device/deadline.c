/* SPDX-License-Identifier: MIT
 *
 * Calls that may never return.
 *
 *                start                thread: run, then
 *     IDLE ----------------> CALLED ----------------------> DONE ---- wait ----> IDLE
 *                              |
 *                              | wait, too late                    thread: run returns,
 *                              +------------------> ABANDONED ---- drop ----> IDLE
 *
 * The state changes under one mutex, so a call that returns at the very moment of its deadline is
 * either DONE or ABANDONED, never both: that decides who owns the context. An abandoned worker is
 * IDLE again before `drop` runs, because `drop` is what tells others that they may call again.
 *
 * The condition variables wait on CLOCK_MONOTONIC: setting the date neither shortens nor lengthens
 * a deadline. Cancelling the thread instead of leaving it is no way out: a driver's call holds
 * locks, and one that blocks in the kernel is not cancelled anyway.
 *
 * After fork the child has no such thread, and the locks may have been held: the first user in the
 * child makes them anew. A context that was abandoned in the parent stays untouched in the child,
 * for nobody knows how far its call had come.
 *
 * Owns: see struct wg_worker.    Threads: see deadline.h.
 */
#include "device/deadline.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

/* Drivers put tables on the stack and load libraries; only pages that are touched count. */
enum { STACK_BYTES = 512 * 1024 };

/* What a worker's pid is while one thread of a forked child makes it anew. */
enum { PID_BUSY = -1 };

enum worker_state { IDLE, CALLED, DONE, ABANDONED };

struct wg_worker {
    pthread_mutex_t lock; /* guards all below but the atomics */
    pthread_cond_t wake;  /* the thread waits for a job or for the end */
    pthread_cond_t done;  /* the caller waits for DONE */
    pthread_t thread;
    bool has_thread;
    bool has_job; /* and the thread has not taken it yet */
    bool is_ending;
    bool is_orphan; /* the thread frees the worker */
    enum worker_state state;
    void (*run)(void *context);
    void (*drop)(void *context);
    void *context;
    atomic_bool is_hung; /* state is ABANDONED */
    _Atomic pid_t pid;   /* of the process that the thread is in */
};

static enum wg_code make_locks(struct wg_worker *worker)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return WG_ENOMEM;
    bool good = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0;
    good = good && pthread_mutex_init(&worker->lock, NULL) == 0;
    good = good && pthread_cond_init(&worker->wake, &attributes) == 0;
    good = good && pthread_cond_init(&worker->done, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return good ? WG_OK : WG_ENOMEM;
}

static void destroy(struct wg_worker *worker)
{
    (void)pthread_cond_destroy(&worker->done);
    (void)pthread_cond_destroy(&worker->wake);
    (void)pthread_mutex_destroy(&worker->lock);
    wg__free(worker);
}

/* In a forked child: what the parent's threads held is gone with them. The old locks are not
 * destroyed, for that would wait for the parent's waiters. */
static void forget_parent(struct wg_worker *worker)
{
    const pid_t mine = getpid();
    pid_t seen = atomic_load(&worker->pid);
    while (seen != mine) {
        if (seen == PID_BUSY) {
            (void)sched_yield();
            seen = atomic_load(&worker->pid);
        } else if (atomic_compare_exchange_strong(&worker->pid, &seen, PID_BUSY)) {
            (void)make_locks(worker); /* succeeded before, and takes nothing from the system */
            worker->has_thread = false;
            worker->has_job = false;
            worker->state = IDLE;
            atomic_store(&worker->is_hung, false);
            atomic_store(&worker->pid, mine);
            return;
        }
    }
}

/* -- The thread's side ------------------------------------------------------------------------ */

/* Runs the job that was taken. Locked, but not while it runs. */
static void run_job(struct wg_worker *worker)
{
    void (*const run)(void *context) = worker->run;
    void (*const drop)(void *context) = worker->drop;
    void *const context = worker->context;
    worker->has_job = false;
    (void)pthread_mutex_unlock(&worker->lock);
    run(context);
    (void)pthread_mutex_lock(&worker->lock);
    if (worker->state != ABANDONED) {
        worker->state = DONE;
        (void)pthread_cond_signal(&worker->done);
        return;
    }
    worker->state = IDLE;
    atomic_store(&worker->is_hung, false);
    (void)pthread_mutex_unlock(&worker->lock);
    if (drop != NULL)
        drop(context);
    (void)pthread_mutex_lock(&worker->lock);
}

static void *work(void *argument)
{
    struct wg_worker *worker = argument;
    (void)pthread_mutex_lock(&worker->lock);
    while (worker->has_job || !worker->is_ending) {
        if (worker->has_job)
            run_job(worker);
        else
            (void)pthread_cond_wait(&worker->wake, &worker->lock);
    }
    const bool is_orphan = worker->is_orphan;
    (void)pthread_mutex_unlock(&worker->lock);
    if (is_orphan)
        destroy(worker);
    return NULL;
}

/* A thread inherits the signal mask of the one that makes it. Those that a fault raises stay open:
 * blocked, they would kill without the program's own report. */
static int start_thread(struct wg_worker *worker)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0)
        return error;
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigset_t blocked;
    sigset_t before;
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        (void)sigdelset(&blocked, faults[i]);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, &before);
    error = pthread_create(&worker->thread, &attributes, work, worker);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (error == 0)
        (void)pthread_setname_np(worker->thread, "wattgov-call");
    return error;
}

/* -- The caller's side ------------------------------------------------------------------------ */

enum wg_code wg__worker_new(struct wg_worker **out, struct wg_error *err)
{
    struct wg_worker *worker = wg__alloc_zeroed(1, sizeof *worker);
    if (worker == NULL || make_locks(worker) != WG_OK) {
        wg__free(worker);
        return wg__fail(err, WG_ENOMEM, "cannot make a worker: out of memory");
    }
    atomic_store(&worker->pid, getpid());
    *out = worker;
    return WG_OK;
}

void wg__worker_free(struct wg_worker *worker)
{
    if (worker == NULL)
        return;
    forget_parent(worker);
    (void)pthread_mutex_lock(&worker->lock);
    worker->is_ending = true;
    const bool has_thread = worker->has_thread;
    const pthread_t thread = worker->thread;
    worker->is_orphan = worker->state == CALLED || worker->state == ABANDONED;
    if (worker->is_orphan) {
        worker->state = ABANDONED;
        (void)pthread_detach(thread);
        (void)pthread_mutex_unlock(&worker->lock);
        return; /* it may be gone already */
    }
    (void)pthread_cond_signal(&worker->wake);
    (void)pthread_mutex_unlock(&worker->lock);
    if (has_thread)
        (void)pthread_join(thread, NULL);
    destroy(worker);
}

enum wg_code wg__worker_start(struct wg_worker *worker, void (*run)(void *context),
                              void (*drop)(void *context), void *context)
{
    forget_parent(worker);
    enum wg_code code = WG_OK;
    (void)pthread_mutex_lock(&worker->lock);
    if (worker->state != IDLE) {
        code = WG_ESTATE;
    } else if (!worker->has_thread) {
        const int error = start_thread(worker);
        worker->has_thread = error == 0;
        if (error != 0)
            code = error == ENOMEM ? WG_ENOMEM : WG_EIO;
    }
    if (code == WG_OK) {
        worker->run = run;
        worker->drop = drop;
        worker->context = context;
        worker->state = CALLED;
        worker->has_job = true;
        (void)pthread_cond_signal(&worker->wake);
    }
    (void)pthread_mutex_unlock(&worker->lock);
    return code;
}

enum wg_code wg__worker_wait(struct wg_worker *worker, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000U),
                                   .tv_nsec = (long)(until_ns % 1000000000U)};
    enum wg_code code = WG_OK;
    int error = 0;
    (void)pthread_mutex_lock(&worker->lock);
    assert(worker->state == CALLED || worker->state == DONE); /* started, and not waited for yet */
    while (worker->state == CALLED && error == 0)
        error = pthread_cond_timedwait(&worker->done, &worker->lock, &until);
    if (worker->state == DONE) {
        worker->state = IDLE;
    } else {
        worker->state = ABANDONED;
        atomic_store(&worker->is_hung, true);
        code = WG_ETIMEOUT;
    }
    (void)pthread_mutex_unlock(&worker->lock);
    return code;
}

enum wg_code wg__worker_call(struct wg_worker *worker, void (*run)(void *context),
                             void (*drop)(void *context), void *context, uint64_t timeout_ns)
{
    const enum wg_code code = wg__worker_start(worker, run, drop, context);
    if (code != WG_OK)
        return code;
    const uint64_t now_ns = wg__clock_ns();
    const uint64_t limit_ns = (uint64_t)INT64_MAX; /* fits time_t wherever it has 64 bits */
    return wg__worker_wait(worker, timeout_ns < limit_ns - now_ns ? now_ns + timeout_ns : limit_ns);
}

bool wg__worker_is_hung(const struct wg_worker *worker)
{
    return atomic_load(&worker->is_hung) && atomic_load(&worker->pid) == getpid();
}
