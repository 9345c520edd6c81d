/* SPDX-License-Identifier: MIT
 *
 * A GPU whose batches take known times, for tests of the predictor.
 */
#ifndef WG_TESTS_SUPPORT_PREDICTOR_STAGE_H
#define WG_TESTS_SUPPORT_PREDICTOR_STAGE_H

#include "base/rng.h"
#include "math/normal.h"
#include "schedule/predictor.h"
#include "support/check.h"

enum { STAGE_ROWS = 8, STAGE_CLOCKS = 5 };

/* Seconds = scale (fixed + per_row b) (rest + gpu / f + mem / m); steps: rows in whole waves. */
struct gpu {
    double scale, fixed_s, per_row_s, gpu_share, mem_share;
    double wave;       /* rows a wave; 0: any */
    unsigned odd_rows; /* a size whose time is multiplied by odd_factor */
    double odd_factor;
    double step_s; /* a row of a step beside it, at full clocks */
    double noise;
};

static const double stage_clocks[STAGE_CLOCKS][2] = {
    {1.0, 1.0}, {0.85, 1.0}, {0.7, 0.9}, {0.55, 0.8}, {0.4, 0.6}};

static const struct gpu orin = {.scale = 1.0,
                                .fixed_s = 0.061,
                                .per_row_s = 0.066,
                                .gpu_share = 0.6,
                                .mem_share = 0.3,
                                .step_s = 0.003};

static inline struct wg_predictor_point point_at(double rows, size_t clocks)
{
    return (struct wg_predictor_point){
        .rows = rows, .gpu_clock = stage_clocks[clocks][0], .mem_clock = stage_clocks[clocks][1]};
}

static inline double true_time(const struct gpu *gpu, const struct wg_predictor_point *point)
{
    const double rows = gpu->wave > 0.0 ? ceil(point->rows / gpu->wave) * gpu->wave : point->rows;
    const double rest = 1.0 - gpu->gpu_share - gpu->mem_share;
    double time_s = gpu->scale * (gpu->fixed_s + gpu->per_row_s * rows) *
                    (rest + gpu->gpu_share / point->gpu_clock + gpu->mem_share / point->mem_clock);
    if (gpu->odd_rows > 0 && point->rows == (double)gpu->odd_rows)
        time_s *= gpu->odd_factor;
    return time_s + gpu->step_s * point->finetune_rows / point->gpu_clock;
}

static inline struct wg_predictor_sample
run_batch(const struct gpu *gpu, struct wg_predictor_point point, struct wg_rng *rng)
{
    const double luck = gpu->noise > 0.0 ? exp(gpu->noise * wg__rng_normal(rng)) : 1.0;
    return (struct wg_predictor_sample){point, true_time(gpu, &point) * luck};
}

/* Fitted to each size at every second clock setting. */
static inline struct wg_predictor *
open_fitted(const struct gpu *gpu, const struct wg_predictor_setup *setup, struct wg_rng *rng)
{
    struct wg_predictor_sample samples[STAGE_ROWS * STAGE_CLOCKS];
    size_t count = 0;
    for (size_t clocks = 0; clocks < STAGE_CLOCKS; clocks += 2) {
        for (unsigned rows = 1; rows <= STAGE_ROWS; rows++)
            samples[count++] = run_batch(gpu, point_at(rows, clocks), rng);
    }
    struct wg_predictor *predictor = NULL;
    struct wg_error err = {0};
    if (wg__predictor_open(&predictor, setup, samples, count, &err) != WG_OK)
        fail_msg("%s", err.text);
    return predictor;
}

/* Tells batches of any size at any clocks. */
static inline void tell_batches(struct wg_predictor *predictor, const struct gpu *gpu, size_t count,
                                struct wg_rng *rng)
{
    for (size_t i = 0; i < count; i++) {
        const double rows = 1.0 + wg__rng_below(rng, STAGE_ROWS);
        const size_t clocks = wg__rng_below(rng, STAGE_CLOCKS);
        const struct wg_predictor_sample sample = run_batch(gpu, point_at(rows, clocks), rng);
        wg__predictor_tell(predictor, &sample);
    }
}

/* Errors over all sizes and clocks, as shares. */
struct errors {
    double mean, square, largest; /* square: root of the mean square */
};

static inline struct errors errors_of(const struct wg_predictor *predictor, const struct gpu *gpu)
{
    struct errors errors = {0};
    for (size_t clocks = 0; clocks < STAGE_CLOCKS; clocks++) {
        for (unsigned rows = 1; rows <= STAGE_ROWS; rows++) {
            const struct wg_predictor_point point = point_at(rows, clocks);
            const double error =
                wg__predictor_time(predictor, &point) / true_time(gpu, &point) - 1.0;
            errors.mean += error / (STAGE_ROWS * STAGE_CLOCKS);
            errors.square += error * error / (STAGE_ROWS * STAGE_CLOCKS);
            errors.largest = fmax(errors.largest, fabs(error));
        }
    }
    errors.square = sqrt(errors.square);
    return errors;
}

#endif
