/* SPDX-License-Identifier: MIT
 *
 * The energy-time front: the settings that no other setting beats in both energy and time.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_OPTIMIZE_PARETO_H
#define WG_OPTIMIZE_PARETO_H

#include <stddef.h>

/* Of `count` points (time_s[i], energy_j[i]) writes the indices of the non-dominated ones to
 * `front` (room for `count`), by ascending time and so by descending energy; returns how many. A
 * point is dominated when another is no worse in both and better in one; of equal points the first
 * stays. Points with a coordinate that is not finite are left out. */
size_t wg__pareto_front(const double *time_s, const double *energy_j, size_t count, size_t *front);

#endif
