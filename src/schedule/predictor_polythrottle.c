/* SPDX-License-Identifier: MIT
 *
 * PolyThrottle's features and their fit.
 *
 * Operations a byte may fall with the rows (when operations are mostly fixed), and then so might
 * the time. As a function of the rows they are convex in that case, and so is the time; the largest
 * time up to b rows is that of 1 row or that of b, and that is what is predicted.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include "schedule/predictor_polythrottle.h"

#include <math.h>
#include <stdbool.h>

static void normalise(double *fixed, double *per_row, bool is_operations)
{
    const double whole = *fixed + *per_row;
    *fixed = whole > 0.0 ? *fixed / whole : is_operations ? 0.0 : 1.0;
    *per_row = whole > 0.0 ? *per_row / whole : is_operations ? 1.0 : 0.0;
}

static struct wg_work_shape normalised(const struct wg_work_shape *shape)
{
    struct wg_work_shape out = *shape;
    normalise(&out.operations_fixed, &out.operations_per_row, true);
    normalise(&out.bytes_fixed, &out.bytes_per_row, false);
    return out;
}

/* Operations, and operations a byte. */
static void work_of(const struct wg_work_shape *shape, double rows, double *out)
{
    const double operations = shape->operations_fixed + shape->operations_per_row * rows;
    const double bytes = shape->bytes_fixed + shape->bytes_per_row * rows;
    out[0] = rows > 0.0 ? operations : 0.0;
    out[1] = rows > 0.0 ? operations / bytes : 0.0;
}

static void features_of(const struct wg_polythrottle *polythrottle, double rows,
                        double finetune_rows, double *out)
{
    out[0] = 1.0;
    work_of(&polythrottle->inference, rows, out + 1);
    work_of(&polythrottle->finetune, finetune_rows, out + 3);
    out[5] = rows;
}

void wg__polythrottle_init(struct wg_polythrottle *polythrottle,
                           const struct wg_predictor_setup *setup,
                           const struct wg_predictor_sample *samples, size_t count)
{
    /* Columns may be the same but for a factor (operations and rows): a little of each then. */
    const double ridge = 1e-12;
    struct wg_nnls fit = {.count = WG_POLYTHROTTLE_FEATURES};
    polythrottle->inference = normalised(&setup->inference);
    polythrottle->finetune = normalised(&setup->finetune);
    for (size_t s = 0; s < count; s++) {
        double row[WG_POLYTHROTTLE_FEATURES];
        features_of(polythrottle, samples[s].point.rows, samples[s].point.finetune_rows, row);
        for (size_t i = 0; i < fit.count; i++) {
            fit.moment[i] += row[i] * samples[s].time_s;
            for (size_t k = 0; k < fit.count; k++)
                fit.gram[i][k] += row[i] * row[k];
        }
    }
    for (size_t i = 0; i < fit.count; i++)
        fit.gram[i][i] = fit.gram[i][i] > 0.0 ? fit.gram[i][i] * (1.0 + ridge) : 1.0;
    (void)wg__nnls_solve(&fit); /* with the ridge it always is positive definite */
    for (size_t i = 0; i < fit.count; i++)
        polythrottle->theta[i] = fit.x[i];
}

double wg__polythrottle_time(const struct wg_polythrottle *polythrottle,
                             const struct wg_predictor_point *point)
{
    double row[WG_POLYTHROTTLE_FEATURES], of_one[WG_POLYTHROTTLE_FEATURES];
    double time_s = 0.0, time_of_one_s = 0.0;
    features_of(polythrottle, fmax(point->rows, 1.0), point->finetune_rows, row);
    features_of(polythrottle, 1.0, point->finetune_rows, of_one);
    for (size_t i = 0; i < WG_POLYTHROTTLE_FEATURES; i++) {
        time_s += polythrottle->theta[i] * row[i];
        time_of_one_s += polythrottle->theta[i] * of_one[i];
    }
    return fmax(time_s, time_of_one_s);
}
