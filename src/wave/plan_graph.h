/* SPDX-License-Identifier: MIT
 *
 * The graph of states, and the best path through it.
 *
 * Level by level one variable is chosen. A state of a level is what the layers that are not counted
 * yet need to know of the variables chosen before: for each of their sides the sum of channels so
 * far. An arc chooses a value; it carries the cost and the gain of the layers that are thereby
 * counted. Any path from the root to the one state of the last level is a plan, and any plan is a
 * path.
 *
 * Owns: a graph owns its arrays.    Threads: one thread at a time.
 */
#ifndef WG_WAVE_PLAN_GRAPH_H
#define WG_WAVE_PLAN_GRAPH_H

#include "wave/plan_space.h"

#define WG_PLAN_NO_STATE UINT32_MAX

struct wg_plan_arc {
    double cost, gain;
    uint32_t to; /* state of the next level; WG_PLAN_NO_STATE: not possible */
};

struct wg_plan_level {
    size_t state_count, first_state; /* states are numbered through all levels */
    size_t choice_count;             /* arcs of each state, in the order of the variable's values */
    size_t first_arc;
    uint32_t variable;
};

struct wg_plan_graph {
    struct wg_plan_level *levels; /* level_count + 1; the last has one state and no arcs */
    size_t level_count;
    struct wg_plan_arc *arcs;
    size_t arc_count, state_count;
    double cost, gain; /* of layers that no variable touches */
    bool fits;         /* false: stopped at the limit; there are no arcs then */
};

/* A variable's values that may be chosen now: a subset of its candidates. */
struct wg_plan_domain {
    const uint32_t *values;
    size_t count;
};

/* An order of the variables that keeps the levels small: `order` has space for all. */
enum wg_code wg__plan_order(const struct wg_plan_space *space, uint32_t *order,
                            struct wg_error *err);

/* `by_value`: an arc costs minus its value and gains minus its time, for goals that ask for the
 * most value; else it costs its time and gains its value. */
enum wg_code wg__plan_graph_init(struct wg_plan_graph *graph, struct wg_plan_space *space,
                                 const struct wg_plan_domain *domains, const uint32_t *order,
                                 bool by_value, size_t arc_limit, struct wg_error *err);
void wg__plan_graph_fini(struct wg_plan_graph *graph);

struct wg_plan_path {
    uint16_t *choices;  /* one a level; the caller's */
    size_t label_limit; /* the caller's: how many a proof may take; 0: 400,000 */
    double cost, gain;  /* with the graph's own; an infinite cost: there is no path at all */
    double bound;       /* no path that gains enough costs less */
    bool is_found;      /* false: no path gains enough; this is the one that gains most */
    bool is_proven;     /* the bound is the cost, but for rounding */
    size_t tried;
};

/* The path of least cost among those that gain `need` at least; of equal ones that which gains
 * most. WG_ENOMEM. */
enum wg_code wg__plan_path(const struct wg_plan_graph *graph, double need, struct wg_plan_path *out,
                           struct wg_error *err);

#endif
