/* SPDX-License-Identifier: MIT
 *
 * Calls that may never return, made on another thread and waited for only so long.
 *
 * A driver whose GPU is gone can block a call for good, in a state that no signal ends. So each
 * call whose caller must go on runs here: a worker thread runs `run(context)`, the caller waits
 * until it is done or the deadline has passed. A call that is late is abandoned: its thread goes on
 * alone, and when it ever returns, `drop(context)` frees what it used. Exactly one of the two owns
 * the context at each moment: on WG_OK the caller has it back, on WG_ETIMEOUT the thread keeps it.
 *
 * A worker is reused from call to call (`struct wg_worker`), so a call costs a wake-up, not a
 * thread. One worker per device. Its thread blocks all signals: they belong to the program.
 *
 * Threads: one caller at a time per worker; while its call runs, another's start is WG_ESTATE.
 */
#ifndef WG_DEVICE_DEADLINE_H
#define WG_DEVICE_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct wg_worker;

/* Makes a worker; its thread starts with the first call. */
enum wg_code wg__worker_new(struct wg_worker **out, struct wg_error *err);

/* Ends the thread and frees; when a call still runs, returns at once: the call is abandoned if it
 * was not yet, and the thread frees the rest when it returns. NULL does nothing. */
void wg__worker_free(struct wg_worker *worker);

/* Runs `run(context)`. WG_OK: it has run. WG_ETIMEOUT: it has not returned after `timeout_ns`; the
 * text is left to the caller. WG_ESTATE: an earlier call still hangs (nothing was started, the
 * context is the caller's). WG_EIO: no thread; WG_ENOMEM. `drop` may be NULL. In a process that was
 * forked since, the worker starts a thread of its own. */
enum wg_code wg__worker_call(struct wg_worker *worker, void (*run)(void *context),
                             void (*drop)(void *context), void *context, uint64_t timeout_ns);

/* The two halves of wg__worker_call, for calls on several workers at once: start them all, then
 * wait for each until one common moment of CLOCK_MONOTONIC. Each start that gave WG_OK needs its
 * wait; that one gives WG_OK or WG_ETIMEOUT. A call that is done counts as done, however late it is
 * asked for. */
enum wg_code wg__worker_start(struct wg_worker *worker, void (*run)(void *context),
                              void (*drop)(void *context), void *context);
enum wg_code wg__worker_wait(struct wg_worker *worker, uint64_t until_ns);

/* Whether a call hangs still. */
bool wg__worker_is_hung(const struct wg_worker *worker);

#endif
