/* SPDX-License-Identifier: MIT
 *
 * Ends a process group when we are killed.
 *
 * A command that is measured runs in a group of its own, so that it can be ended with all that it
 * started. But who is killed outright (SIGKILL, out of memory) ends nothing, and a workload that
 * goes on loads the very device that the next one measures. The kernel's own means,
 * PR_SET_PDEATHSIG, reaches one process and none of its children. So a small process stands beside
 * us, in a session of its own, at the other end of a socket: it is told which group runs, and when
 * the socket ends, so do we, and so does the group.
 *
 *     us ---- "group 4711 runs" ----> reaper
 *     us ---- "none runs" ----------> reaper
 *     (end of the socket) ----------> reaper: SIGTERM, 2 s, SIGKILL to the group that runs
 *
 * A group that is started in the instant before we are killed may be missed.
 *
 * Owns: the process and the socket.    Threads: one at a time.
 */
#ifndef WG_LIVE_GROUP_REAPER_H
#define WG_LIVE_GROUP_REAPER_H

#include <sys/types.h>

struct wg_group_reaper {
    pid_t pid; /* 0: there is none */
    int socket;
};

/* Starts it. Without memory or processes there is none, and nothing is ended. */
void wg__group_reaper_start(struct wg_group_reaper *reaper);

/* Which group runs now; 0: none. */
void wg__group_reaper_tell(const struct wg_group_reaper *reaper, pid_t group);

/* Ends it; no group must run. */
void wg__group_reaper_stop(struct wg_group_reaper *reaper);

#endif
