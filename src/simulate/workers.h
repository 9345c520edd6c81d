/* SPDX-License-Identifier: MIT
 *
 * Tasks spread over processes.
 *
 * Processes and not threads, because a linear-algebra library may be built for one thread: Debian's
 * OpenBLAS "serial" has no locks, and two threads in it at once give wrong numbers without a word.
 * A process has its own.
 *
 * Studies of training (study.h) stay with threads: no policy of theirs calls that library, and they
 * add their records one by one in the order of the tasks, into one sum under one mutex. Through
 * processes each record would have to be shared memory first, for nothing that a user sees.
 *
 *     parent --fork--> worker 0, 1, 2 ...      each takes the next task until none is left
 *        ^------ one byte a finished task ---- (a pipe: progress, and the end when all have ended)
 *
 * What a task writes for others must lie in shared memory (wg__shared_alloc). With one process the
 * tasks run in the caller itself.
 *
 * Owns: its workers, which have ended when it returns.    Threads: callers use one, and have no
 * other that holds a lock.
 */
#ifndef WG_SIMULATE_WORKERS_H
#define WG_SIMULATE_WORKERS_H

#include <stddef.h>

#include "base/error.h"

enum { WG_WORKERS_MAX = 256 };

struct wg_workers_request {
    size_t tasks;
    size_t processes; /* 1 .. WG_WORKERS_MAX */
    enum wg_code (*run)(void *context, size_t task, struct wg_error *err);
    void *context;
    void (*progress)(void *context); /* after each task, in the caller's process; NULL: never */
    void *progress_context;
};

/* Runs all tasks, or until one fails: then the error of the least task that failed. WG_EIO: a
 * worker died, with its signal. WG_ENOMEM. A system that grants fewer processes is only slower. */
enum wg_code wg__workers_run(const struct wg_workers_request *request, struct wg_error *err);

/* Processors that this process may use, at least 1 and at most `max`. */
size_t wg__processor_count(size_t max);

/* Zeroed memory that forked workers share; NULL: none is left. `size` may be 0. */
void *wg__shared_alloc(size_t count, size_t size);
void wg__shared_free(void *memory, size_t count, size_t size); /* NULL does nothing */

#endif
