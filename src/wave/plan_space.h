/* SPDX-License-Identifier: MIT
 *
 * What a plan chooses among: the free widths with their candidates, and what a layer costs.
 *
 * A free width is a variable. A layer sees variables through two sums only, its channels in and
 * out; what it costs at two sums is asked for once and remembered.
 *
 * Owns: a space owns all in its arena and its table of costs.    Threads: one thread at a time.
 */
#ifndef WG_WAVE_PLAN_SPACE_H
#define WG_WAVE_PLAN_SPACE_H

#include "base/arena.h"
#include "wave/plan.h"

struct wg_plan_variable {
    uint32_t width;   /* index into the network's widths */
    uint32_t present; /* channels */
    uint32_t *values; /* candidates, rising; the present one among them */
    size_t value_count;
};

struct wg_plan_part {
    uint32_t variable;
    uint64_t multiple;
};

/* One side of a layer. */
struct wg_plan_side {
    struct wg_plan_part *parts; /* each variable once */
    size_t part_count;
    uint64_t constant; /* channels of fixed widths, and those that no width moves */
};

struct wg_plan_layer {
    const struct wg_layer *layer;
    struct wg_plan_side in, out;
    double weight; /* of its parameters and operations */
};

struct wg_plan_cost {
    double time_s;            /* NAN: not possible at these widths */
    double parameters, flops; /* weighted by importance */
};

struct wg_plan_cost_table;

struct wg_plan_space {
    struct wg_arena arena;
    const struct wg_network *network;
    wg_layer_time_fn layer_time;
    const void *context;
    const struct wg_plan_opts *opts; /* defaults filled in */
    struct wg_plan_variable *variables;
    size_t variable_count;
    int32_t *variable_of; /* for each width; -1: fixed */
    struct wg_plan_layer *layers;
    size_t layer_count;
    uint32_t *present;  /* a width each */
    uint32_t *channels; /* scratch: a width each */
    struct wg_plan_cost_table *costs;
    /* What a plan is worth: a sum of parameters and operations at these prices. */
    double per_parameter, per_flop;
};

static inline double wg__plan_value(const struct wg_plan_space *space,
                                    const struct wg_plan_cost *cost)
{
    return space->per_parameter * cost->parameters + space->per_flop * cost->flops;
}

/* `opts` must outlive the space and have its defaults filled in. WG_EUNSUPPORTED: see wg__plan. */
enum wg_code wg__plan_space_init(struct wg_plan_space *space, const struct wg_network *network,
                                 wg_layer_time_fn time_s, const void *context,
                                 const struct wg_plan_opts *opts, struct wg_error *err);
void wg__plan_space_fini(struct wg_plan_space *space);

/* Fills in the variables' candidates (plan_candidates.c). */
enum wg_code wg__plan_candidates(struct wg_plan_space *space, struct wg_error *err);

/* The cost that is remembered of a layer at these sums; NULL: not asked for yet. Valid until the
 * next call of `ask`. */
const struct wg_plan_cost *wg__plan_cost_find(const struct wg_plan_space *space, size_t layer,
                                              uint64_t in, uint64_t out);
/* Asks for it, at the widths in `space->channels`, whose sums must be these; NULL: no memory. */
const struct wg_plan_cost *wg__plan_cost_ask(struct wg_plan_space *space, size_t layer, uint64_t in,
                                             uint64_t out);

/* The sums of the whole network at `channels`, a width each. false: not possible there. */
bool wg__plan_space_total(const struct wg_plan_space *space, const uint32_t *channels,
                          struct wg_plan_cost *out);

#endif
