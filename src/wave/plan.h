/* SPDX-License-Identifier: MIT
 *
 * Widths for a whole network, chosen at step ends under what ties them.
 *
 * Each free width takes one of its candidates: step ends of the layers that it feeds and comes
 * from, multiples of its alignment, and its present value. A layer's time depends on its input's
 * and its output's widths, so the widths form a graph whose edges are layers; along chains, dynamic
 * programming over (width, budget) is exact on the budget's grid; where widths meet in more than
 * two layers, tree decomposition by the order of elimination keeps it exact while the tables fit,
 * and beyond that a local search from several starts is used, which `is_optimal` says.
 *
 * Objectives:
 *   LATENCY     least time, with parameters (or operations) kept within `kept` of the original
 *   PARAMETERS  most parameters, the proxy of accuracy, with time at most `limit_s`
 *   ALIGN       a pruned list of widths given: move each to a step end nearby, down or up, so that
 *               time is least at parameters no fewer than the pruned ones' `kept` share
 *   GROW        each width to the largest that costs no time: fill the free waves
 *
 * Owns: a plan owns its arrays.    Threads: pure; one thread at a time a plan.
 */
#ifndef WG_WAVE_PLAN_H
#define WG_WAVE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wave/network.h"

enum wg_plan_goal {
    WG_PLAN_LATENCY,
    WG_PLAN_PARAMETERS,
    WG_PLAN_ALIGN,
    WG_PLAN_GROW,
    WG_PLAN_GOAL_COUNT
};

/* The time of a layer at some widths; called often, must be pure. */
typedef double (*wg_layer_time_fn)(const void *context, const struct wg_layer *layer);

struct wg_plan_opts {
    enum wg_plan_goal goal;
    double kept;            /* LATENCY, ALIGN: share of parameters to keep, (0, ..]; 0: 1 */
    bool keeps_flops;       /* LATENCY: `kept` is of operations instead */
    double limit_s;         /* PARAMETERS, GROW: 0: the present time */
    double least, most;     /* each width's range as a factor of the original: 0: 0.5 and 1.25 */
    uint32_t alignment;     /* of every width; 0: 8 */
    size_t candidates;      /* at most so many a width; 0: 24 */
    const uint32_t *pruned; /* ALIGN: a width each; NULL: the present ones */
    const double
        *importance;  /* a width each, weight of its parameters as accuracy proxy; NULL: 1 */
    double tolerance; /* a rise below this share of a layer's time is flat; 0: 0.01 */
    uint64_t seed;    /* of the local search */
};

struct wg_plan {
    uint32_t *channels; /* a width each */
    size_t width_count;
    double time_s, before_s;
    double parameters, before_parameters;
    double flops, before_flops;
    bool is_optimal; /* among the candidates, up to `gap` */
    double gap;      /* bound - found, as a share of found; 0: proven */
    size_t tried;    /* evaluations of whole or partial plans */
};

/* WG_EINVAL: options out of range (the message names it); WG_ESTATE: no choice of candidates meets
 * the limit (the message says what the least is); WG_ENOMEM. */
enum wg_code wg__plan(const struct wg_network *network, wg_layer_time_fn time_s,
                      const void *context, const struct wg_plan_opts *opts, struct wg_plan *out,
                      struct wg_error *err);
void wg__plan_fini(struct wg_plan *plan);

#endif
