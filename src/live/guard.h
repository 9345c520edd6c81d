/* SPDX-License-Identifier: MIT
 *
 * The guard: a small process that gives the settings back when the governor dies.
 *
 * It is started before the first write, in a session of its own, ignoring what ends programs, and
 * with nothing open but the journal (control.h). It watches the governor by a pidfd; when that is
 * gone, by whatever cause, it restores what the journal says and ends. The governor in turn watches
 * the guard and starts another when it dies. When both die at once the journal is stale and the
 * next wattgov command restores it (device/restore.h).
 *
 * The guard is the program itself, run anew (/proc/self/exe guard ...): NVML does not survive fork,
 * and a guard that shares no memory with the governor shares no bug's damage with it.
 *
 * What ends a whole cgroup (a batch system, systemd's last resort) takes the guard along.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#ifndef WG_LIVE_GUARD_H
#define WG_LIVE_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct wg_guard {
    pid_t pid; /* 0: none */
    int pidfd; /* readable when the guard has died; -1: none */
};

/* Starts it and waits until it watches. `program` NULL: /proc/self/exe. WG_EIO: it could not be
 * started or gave no sign of life in time. */
enum wg_code wg__guard_start(struct wg_guard *guard, const char *program, int journal_fd,
                             struct wg_error *err);

/* Whether it still runs; does not wait. */
bool wg__guard_is_alive(const struct wg_guard *guard);

/* Tells it to end, and waits for it: the journal was ended, there is nothing left to restore. Where
 * something did not come back the journal is not ended, and the guard stays to try it again as soon
 * as this process has gone. */
void wg__guard_stop(struct wg_guard *guard);

/* The guard's own main function: `wattgov guard`, which no user needs to call. */
int wg__guard_main(int argc, char *argv[]);

#endif
