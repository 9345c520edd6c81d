/* SPDX-License-Identifier: MIT
 *
 * Which clocks a server needs now: the cheapest rung of a short ladder that still keeps the SLO.
 *
 * The ladder is a handful of Pareto settings (what `wattgov tune` found), rung 0 the fastest. A
 * rung holds when the latency that the promised share of requests is predicted to keep (p99 for a
 * target of 0.99; schedule/clock_predict.h) at the present rate and burstiness is within the SLO,
 * times a safety factor that learns from what was really late. The cheapest one has the least
 * expected power at this rate, idle power counted:
 *
 *     P = rho P_busy + (1 - rho) P_idle
 *     rho = rate * t(b) / b        at the batch b that the rate brings
 *
 *             rung 0 <──────────── slack gone, or nothing else holds: at once
 *               │  ▲
 *   cheaper for │  │ does not hold: at once, to the cheapest that does
 *      hold_s   ▼  │
 *             rung r
 *
 * Up at once (to rung 0) when the queue's slack is gone; down only after a rung has been cheaper
 * and has held for `hold_s` without a break, and only when what it saves in that time pays the
 * change.
 *
 * The safety factor follows the outcomes as adaptive conformal inference does (Gibbs and Candes,
 * NeurIPS 2021): up by a step at each request that takes longer than forecast, down by three
 * quarters of (1 - target) of a step at each other, so that in the long run no more than 1 - target
 * do, whatever the forecast's error; it learns at every rung, before anything is late. Beside
 * exclusive fine-tuning requests wait on purpose; then only what is late counts.
 *
 * Pure.    Owns: its state, in the caller's memory.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_CLOCK_GOVERNOR_H
#define WG_SCHEDULE_CLOCK_GOVERNOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "schedule/clock_predict.h"
#include "schedule/predictor.h"

enum { WG_RUNGS_MAX = 16, WG_RUNG_NAME_SIZE = 32, WG_GOVERNED_ROWS_MAX = 1 << 16 };

struct wg_rung {
    char name[WG_RUNG_NAME_SIZE];
    double gpu_clock, mem_clock; /* relative to rung 0's, in (0, 1] */
    double busy_power_w;         /* while a batch runs */
    double idle_power_w;
    double finetune_power_w; /* while a fine-tuning step runs */
};

struct wg_clock_ladder {
    size_t count; /* >= 1 */
    struct wg_rung rungs[WG_RUNGS_MAX];
    double change_s; /* from the request until the new clocks act */
    double change_j; /* what a change costs */
};

struct wg_clock_setup {
    struct wg_clock_ladder ladder;
    unsigned max_rows;
    double hold_s; /* before a step down; 0: 2 s */
    double target; /* share of requests within the SLO that is promised; 0: 0.99 */
};

/* What the governor is told when it is asked. */
struct wg_clock_view {
    double now_s;
    double rate;       /* rows a second */
    double dispersion; /* index of dispersion of counts */
    double slo_s;
    double slack_s; /* until the tightest waiting or running request must begin to be served, at
                       rung 0; HUGE_VAL: none waits */
    double rows;    /* of the batch that it would be in; 0: not known, the largest */
    double finetune_share; /* of the GPU that exclusive fine-tuning steps take now */
    double step_s;         /* length of such a step: a request may have to wait for it */
    const struct wg_predictor *predictor;
};

/* What is known of a rung; kept because the view changes less often than the governor is asked. */
struct wg_rung_outlook {
    struct wg_batch_law law;
    const struct wg_predictor *law_of; /* whose; and its version */
    size_t law_version;
    bool has_law;
    bool is_stale;    /* the figures below are of an older law or view */
    double latency_s; /* of the promised share, before the safety factor */
    double power_w;
};

struct wg_clock_governor {
    struct wg_clock_setup setup;
    size_t rung;      /* the one asked for last */
    size_t candidate; /* that would be cheaper, and since when */
    double since_s;
    double safety;         /* factor on the predicted latency */
    size_t before;         /* the rung before the last change */
    unsigned since_change; /* requests that were told since */
    double slo_s;          /* when it was asked last */
    /* What was seen, and what comes of it. */
    double seen_s, seen_rate;
    struct wg_clock_load load;
    double finetune_share;
    size_t refreshed; /* the rung that was looked at last, besides the present one */
    bool is_evaluated;
    struct wg_rung_outlook outlook[WG_RUNGS_MAX];
};

/* WG_EINVAL: a field of the setup that cannot be, named. */
enum wg_code wg__clock_governor_init(struct wg_clock_governor *governor,
                                     const struct wg_clock_setup *setup, struct wg_error *err);

/* The rung that should act. Asked at arrivals and ends of batches. */
size_t wg__clock_governor_ask(struct wg_clock_governor *governor, const struct wg_clock_view *view);

/* A request was answered: its latency over its SLO; HUGE_VAL: it was dropped. */
void wg__clock_governor_tell(struct wg_clock_governor *governor, double latency_share);

/* Predicted p99 in seconds at a rung, HUGE_VAL when requests come faster than it serves them; and
 * the mean power then. All is computed anew: what an ask keeps is tested against it. */
double wg__clock_predict_p99(const struct wg_clock_governor *governor,
                             const struct wg_clock_view *view, size_t rung, double *power_w_out);

#endif
