/* SPDX-License-Identifier: MIT
 *
 * A command as a workload: run once a window, and what it prints are the figures.
 *
 *     bench --batch {batch} --precision {precision}
 *       |  prints {"p99_s": 0.031, "requests": 640}        workload_figures.h
 *       |  or "wattgov: begin" ... "wattgov: end"          what lies between is the window, so that
 *       |                                                  starting up costs no energy
 *       `- exit status 0, else it crashed; out of memory is told from what it wrote to stderr or
 *          from the kernel's SIGKILL
 *
 * A line of JSON before the last is how it stands so far: a run whose latency is hopeless is ended
 * by it. The command has a process group of its own, and what is left of the group is ended with
 * it: SIGTERM, after two seconds SIGKILL. No output for the plan's patience is a hung one.
 *
 * Owns: the running command.    Threads: the main thread (it waits for children).
 */
#ifndef WG_LIVE_WORKLOAD_COMMAND_H
#define WG_LIVE_WORKLOAD_COMMAND_H

#include "live/child.h"
#include "live/workload.h"

enum { WG_WORKLOAD_OUTPUT_MAX = 16 << 20 };

struct wg_workload_command_opts {
    char *const *words;               /* the template (tune_template.h); must outlive it */
    const struct wg_signals *signals; /* blocked, for a command; must outlive it */
    double requests;                  /* of a run that does not tell; 0: unknown */
    bool shows_stderr;                /* what the command writes there goes to ours too */
};

/* WG_ENOMEM. */
enum wg_code wg__workload_command_open(struct wg_workload **out,
                                       const struct wg_workload_command_opts *opts,
                                       struct wg_error *err);

/* Whether a failed command's last words (or the kernel's way to end it) say that memory ran out. */
bool wg__workload_is_out_of_memory(const char *words, int status);

#endif
