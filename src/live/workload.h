/* SPDX-License-Identifier: MIT
 *
 * What `wattgov tune` measures: something that serves requests and can be set to a configuration.
 *
 * One interface, several makers: a command that prints its figures (workload_command.c), a server
 * under our own load (workload_server.c). The runner sets the device's knobs and measures energy
 * around `measure`; the workload sets its own knobs and tells its figures by name.
 *
 *     set -> warm_up -> measure (one window; again until the figures are precise enough)
 *
 * Figures, where they exist: p50_s p90_s p95_s p99_s mean_s (latency of a request, queueing
 * included), requests_per_s, requests, errors, samples (latencies seen), batch_mean, service_s
 * (of a batch, the server's own count), queue_s; and whatever a command prints.
 *
 * Threads: one at a time.
 */
#ifndef WG_LIVE_WORKLOAD_H
#define WG_LIVE_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { WG_WORKLOAD_FIGURES_MAX = 64, WG_WORKLOAD_NAME_SIZE = 48, WG_WORKLOAD_WHY_SIZE = 200 };

/* A knob of the workload (not of a device) at a level. */
struct wg_workload_setting {
    const char *name;  /* "batch" */
    double value;      /* the level; the index of a category */
    const char *label; /* of a category, else NULL */
};

struct wg_workload_figure {
    char name[WG_WORKLOAD_NAME_SIZE];
    double value;
    double error; /* relative standard error; 0: not known */
};

/* How a window ended. */
enum wg_workload_outcome {
    WG_WORKLOAD_OK,
    WG_WORKLOAD_CUT,     /* hopeless, as the plan says: figures are lower bounds */
    WG_WORKLOAD_CRASHED, /* the command failed, the server died or answered errors only */
    WG_WORKLOAD_HUNG,    /* no answer within the plan's patience */
    WG_WORKLOAD_OUT_OF_MEMORY,
    WG_WORKLOAD_INTERRUPTED /* a signal asked us to end */
};

struct wg_workload_plan {
    uint64_t number;            /* of the window within its trial, from 0: window k of every
                                   configuration meets the same load */
    double min_s, max_s;        /* of the window */
    double relative_error;      /* ends when the figures named in `precise` reach it; 0: at max_s */
    const char *const *precise; /* names of the figures that must be precise; NULL-ended */
    double hung_s;              /* no answer for so long: HUNG */
    const char *cut_name;       /* a latency figure with an upper limit; NULL: never cut */
    double cut_above;           /* its limit: cut when its lower confidence bound is above */
    bool (*should_stop)(void *context); /* polled at least 10 times a second; NULL: never */
    /* The measured part of a window begins (true), ends (false): what is before and after (starting
     * a program, opening connections, draining) is none of its energy. Once each at most; a
     * workload that does not know never calls it, and all of `measure` counts. NULL: nobody asks.
     */
    void (*mark)(bool begins, void *context);
    void *context; /* of both */
};

struct wg_workload_sample {
    enum wg_workload_outcome outcome;
    double time_s;   /* of the window */
    double requests; /* answered within it; NAN: the command did not say */
    size_t figure_count;
    struct wg_workload_figure figures[WG_WORKLOAD_FIGURES_MAX];
    char why[WG_WORKLOAD_WHY_SIZE]; /* of a failure: one line */
};

/* A workload is the first member of its maker's struct. Errors returned are ours (a bad template,
 * out of memory): the tuning ends. What the work does wrong is an outcome. */
struct wg_workload {
    const struct wg_workload_ops *ops;
    /* A signal has come: the next one ends waiting for what cannot be given back. Else it takes
     * two, as the first only means to end us. */
    bool is_interrupted;
};

struct wg_workload_ops {
    /* Sets its knobs; `*outcome` OK, CRASHED, HUNG, OUT_OF_MEMORY with `why`. */
    enum wg_code (*set)(struct wg_workload *workload, const struct wg_workload_setting *settings,
                        size_t count, enum wg_workload_outcome *outcome,
                        char why[WG_WORKLOAD_WHY_SIZE], struct wg_error *err);
    /* Serves unmeasured until the present configuration is warm. */
    enum wg_code (*warm_up)(struct wg_workload *workload, const struct wg_workload_plan *plan,
                            enum wg_workload_outcome *outcome, char why[WG_WORKLOAD_WHY_SIZE],
                            struct wg_error *err);
    enum wg_code (*measure)(struct wg_workload *workload, const struct wg_workload_plan *plan,
                            struct wg_workload_sample *out, struct wg_error *err);
    /* After CRASHED or HUNG: brings it back (restarts the server, kills the command). */
    enum wg_code (*recover)(struct wg_workload *workload, struct wg_error *err);
    /* At the end: as it was found before the first set. `note` is a line about what was done, ""
     * when nothing was. NULL: nothing of it outlives us. */
    enum wg_code (*give_back)(struct wg_workload *workload, char note[WG_WORKLOAD_WHY_SIZE],
                              struct wg_error *err);
    /* At the end, instead: what it has now is its own from here on. NULL: the same. */
    void (*adopt)(struct wg_workload *workload);
    void (*close)(struct wg_workload *workload); /* frees it too */
};

#endif
