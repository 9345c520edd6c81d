/* SPDX-License-Identifier: MIT
 *
 * Widths for a whole network, chosen at step ends under what ties them.
 *
 * Each free width takes one of its candidates: step ends of the layers that it feeds and comes
 * from, multiples of its alignment, and its present value. A layer's time depends on the channels
 * that go in and those that come out, so a plan is a path through a graph of states: widths are
 * chosen one after the other, and a state is what the layers still to be counted must know of
 * those already chosen (docs/internals/wave-plan.md). While that graph fits into memory the best
 * plan is found and proven; beyond that parts of the network are planned in turn, exactly each,
 * which `is_optimal` and `gap` say.
 *
 * Goals:
 *   LATENCY     least time, with parameters, operations or both at least a share of the present
 *   PARAMETERS  most parameters, the proxy of accuracy, with time at most `limit_s`
 *   ALIGN       a pruned list of widths given: move each to a step end nearby, down or up, but not
 *               above what the network had, so that time is least with the same kept of the pruned
 *               ones
 *   GROW        no width smaller, as many parameters as cost no time: fill the free waves
 * Of plans that are equally good the one that gives more (parameters, or less time) is taken.
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

/* The time of a layer at some widths; called often, must be pure, and may depend on the layer's
 * widths through the sums of its input and output channels only. NAN: not known, which fails the
 * plan at the present widths and rules the candidate out at others. */
typedef double (*wg_layer_time_fn)(const void *context, const struct wg_layer *layer);

struct wg_plan_opts {
    enum wg_plan_goal goal;
    /* LATENCY, ALIGN: the shares of parameters and of operations to keep, (0, ..]. 0: not kept; of
     * both: all parameters are. */
    double kept, flops_kept;
    double limit_s;         /* PARAMETERS, GROW: 0: the present time */
    double least, most;     /* each width's range as a factor of the present; 0: 0.8 and 1.25 */
    uint32_t alignment;     /* of every width; 0: 8 */
    size_t candidates;      /* at most so many a width, 4 at least; 0: 24 */
    const uint32_t *pruned; /* the present widths, one each; NULL: those of the network */
    /* A weight for each width: what a parameter (and an operation) of the layers that produce it
     * counts; NULL: 1. */
    const double *importance;
    double tolerance; /* a rise below this share of a layer's time is flat; 0: 0.01 */
    uint64_t seed;    /* of the search where the graph of states does not fit */
    size_t states;    /* moves that the graph may hold (24 bytes each); 0: 3 million */
};

struct wg_plan {
    uint32_t *channels; /* a width each */
    size_t width_count;
    double time_s, before_s;
    double parameters, before_parameters;
    double flops, before_flops;
    bool is_optimal; /* proven the best among the candidates */
    double gap;      /* no plan is better by more than this share of the found; NAN: not known */
    size_t tried;    /* moves between states that were looked at */
};

/* WG_EINVAL: options out of range (the message names it); WG_EUNSUPPORTED: a layer whose time is
 * not known (names it); WG_ESTATE: no choice of candidates meets the limit (the message says what
 * the least is); WG_ENOMEM. */
enum wg_code wg__plan(const struct wg_network *network, wg_layer_time_fn time_s,
                      const void *context, const struct wg_plan_opts *opts, struct wg_plan *out,
                      struct wg_error *err);
void wg__plan_fini(struct wg_plan *plan);

#endif
