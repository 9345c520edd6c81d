/* SPDX-License-Identifier: MIT
 *
 * A gate that threads wait at until the test opens it: calls that hang, without sleeping.
 *
 * Owns: its lock.    Threads: any.
 */
#ifndef WG_TESTS_SUPPORT_GATE_H
#define WG_TESTS_SUPPORT_GATE_H

#include <pthread.h>
#include <stdbool.h>

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_open;
    unsigned waiting; /* threads at the gate now */
    unsigned passed;
};

#define GATE_CLOSED                                                                                \
    ((struct gate){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER})

/* What hangs: waits until the gate is open. */
static inline void gate_pass(struct gate *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->waiting++;
    (void)pthread_cond_broadcast(&gate->changed);
    while (!gate->is_open)
        (void)pthread_cond_wait(&gate->changed, &gate->lock);
    gate->waiting--;
    gate->passed++;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
}

static inline void gate_open(struct gate *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    gate->is_open = true;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->lock);
}

/* The test's side: until somebody stands at the gate. */
static inline void gate_await_waiting(struct gate *gate)
{
    (void)pthread_mutex_lock(&gate->lock);
    while (gate->waiting == 0)
        (void)pthread_cond_wait(&gate->changed, &gate->lock);
    (void)pthread_mutex_unlock(&gate->lock);
}

/* Until so many have passed in all. */
static inline void gate_await_passed(struct gate *gate, unsigned count)
{
    (void)pthread_mutex_lock(&gate->lock);
    while (gate->passed < count)
        (void)pthread_cond_wait(&gate->changed, &gate->lock);
    (void)pthread_mutex_unlock(&gate->lock);
}

#endif
