/* SPDX-License-Identifier: MIT
 *
 * A layer's latency against one of its sizes: filters, input channels, batch or resolution.
 *
 * The curve is a staircase: flat while the last wave fills, then a step. For a present value the
 * step's ends are what a designer wants: the largest size at no more time (free channels), and the
 * largest smaller one at less. Larger can even be faster, where the library changes its kernel.
 *
 * Owns: nothing; the caller owns points.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_STAIRCASE_H
#define WG_WAVE_STAIRCASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wave/kernel_model.h"
#include "wave/network.h"

enum wg_sweep_axis {
    WG_SWEEP_FILTERS,    /* conv: filters; gemm: n */
    WG_SWEEP_CHANNELS,   /* conv: c; gemm: k */
    WG_SWEEP_BATCH,      /* conv: n; gemm: m, scaled by m / samples */
    WG_SWEEP_RESOLUTION, /* conv: h, and w in proportion */
    WG_SWEEP_AXIS_COUNT
};

struct wg_sweep_point {
    uint64_t value;
    struct wg_prediction prediction;
};

/* Predicts values first, first + step, ..., `count` of them. `samples`: the batch at which the
 * layer's dimensions are given. WG_EINVAL: the axis is none of the layer's. No allocation. */
enum wg_code wg__sweep(const struct wg_kernel_model *model, const struct wg_layer *layer,
                       enum wg_sweep_axis axis, uint64_t samples, uint64_t first, uint64_t step,
                       size_t count, struct wg_sweep_point *points, struct wg_error *err);

struct wg_stair {
    uint64_t value;        /* the present one */
    uint64_t below, above; /* step ends: see above; equal to value where there is none */
    double time_s, below_s, above_s;
    double saved_s_per_channel; /* (time_s - below_s) / (value - below); 0 where below == value */
    uint64_t faster;            /* a larger value that is faster by 3 % at least; 0: none */
    double faster_s;
};

/* Reads a stair off points, which must hold `value`; rises below `tolerance` (0.01) are flat. */
enum wg_code wg__stair_find(const struct wg_sweep_point *points, size_t count, uint64_t value,
                            double tolerance, struct wg_stair *out, struct wg_error *err);

/* Whether time rises from point i - 1 to i by a step: more than `rise` (0.08), and not on one ramp.
 */
bool wg__sweep_is_step(const struct wg_sweep_point *points, size_t index, double rise);

#endif
