/* SPDX-License-Identifier: MIT
 *
 * Finding a size among measured ones.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_MEASURED_POINTS_H
#define WG_WAVE_MEASURED_POINTS_H

#include <stdbool.h>

#include "wave/calibration.h"

struct wg_points_near {
    const struct wg_point *below, *above; /* of the same batch, n, k and bytes; both the very point
                                             where `is_exact` */
    bool is_exact;
};

/* `points` rise as wg__point_compare says. false: the size is neither there nor between two. */
bool wg__points_find(const struct wg_point *points, size_t count, const struct wg_point *wanted,
                     struct wg_points_near *out);

#endif
