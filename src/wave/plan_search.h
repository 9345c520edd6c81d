/* SPDX-License-Identifier: MIT
 *
 * Planning in parts, where the graph of all states does not fit.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#ifndef WG_WAVE_PLAN_SEARCH_H
#define WG_WAVE_PLAN_SEARCH_H

#include "wave/plan_graph.h"

struct wg_plan_found {
    uint32_t *values;  /* one a variable; the caller's */
    double cost, gain; /* see wg__plan_graph_init */
    bool is_found;     /* false: none was found that gains enough; this gains most */
    size_t tried;
};

/* From the present widths on, plans some variables exactly while the others stay, in turn, until
 * nothing gets better. */
enum wg_code wg__plan_search(struct wg_plan_space *space, const uint32_t *order, bool by_value,
                             double need, struct wg_plan_found *out, struct wg_error *err);

#endif
