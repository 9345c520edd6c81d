/* SPDX-License-Identifier: MIT
 *
 * The table behind wg__plan_cost_find and wg__plan_cost_ask, and a layer's cost without it.
 *
 * Owns: a table owns its slots.    Threads: one thread at a time.
 */
#ifndef WG_WAVE_PLAN_COST_H
#define WG_WAVE_PLAN_COST_H

#include "wave/plan_space.h"

struct wg_plan_cost_table *wg__plan_cost_table_new(void); /* NULL: no memory */
void wg__plan_cost_table_free(struct wg_plan_cost_table *table);

/* At a width each in `channels`; a time of NAN where it is not possible or not known. */
struct wg_plan_cost wg__plan_cost_at(const struct wg_plan_space *space, size_t layer,
                                     const uint32_t *channels);
double wg__plan_layer_flops(const struct wg_layer *layer);

#endif
