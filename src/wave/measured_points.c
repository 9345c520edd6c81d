/* SPDX-License-Identifier: MIT
 *
 * A binary search over measured sizes.
 *
 * Threads: pure, any thread.
 */
#include "wave/measured_points.h"

#include "wave/calibration_set.h"

/* Of the same curve over m. */
static bool is_kin(const struct wg_point *a, const struct wg_point *b)
{
    struct wg_point moved = *a;
    moved.m = b->m;
    return wg__point_compare(&moved, b) == 0;
}

bool wg__points_find(const struct wg_point *points, size_t count, const struct wg_point *wanted,
                     struct wg_points_near *out)
{
    size_t low = 0, high = count; /* the first point that is not below `wanted` */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (wg__point_compare(&points[middle], wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < count && wg__point_compare(&points[low], wanted) == 0) {
        *out = (struct wg_points_near){&points[low], &points[low], true};
        return true;
    }
    if (low == 0 || low == count || !is_kin(&points[low - 1], wanted) ||
        !is_kin(&points[low], wanted))
        return false;
    *out = (struct wg_points_near){&points[low - 1], &points[low], false};
    return true;
}
