/* SPDX-License-Identifier: MIT
 *
 * What the limits that were not measured yet may give, from those that were.
 *
 * Threads: pure, any thread; no allocation.
 */
#ifndef WG_OPTIMIZE_POWER_CURVE_H
#define WG_OPTIMIZE_POWER_CURVE_H

#include <stddef.h>

struct wg_power_search;

/* The expected gain of measuring one more limit: by how much, as a share of the least cost found so
 * far, the best cost is expected to fall. `*index_out` is the limit where it is largest (a tie goes
 * to the larger limit), `search->count` when all are measured. The largest limit must have been
 * told. */
double wg__power_curve_best_gain(const struct wg_power_search *search, size_t *index_out);

#endif
