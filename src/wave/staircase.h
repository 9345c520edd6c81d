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

/* `layer`, whose dimensions are given at a batch of `samples`, with one size at `value`. Filters of
 * a depth-wise convolution are its channels. On the batch axis what counts samples grows: a
 * convolution's n, a GEMM's products where there are several (attention) and else its rows; what is
 * no multiple of `samples` has nothing to do with them and stays. WG_EINVAL: the axis is none of
 * the layer's, value is 0 or none that its groups divide, or a size beyond 2^63. */
enum wg_code wg__layer_resize(const struct wg_layer *layer, enum wg_sweep_axis axis,
                              uint64_t samples, uint64_t value, struct wg_layer *out,
                              struct wg_error *err);
/* The present value on an axis, by the same rules; 0: the axis is none of the layer's. */
uint64_t wg__layer_size(const struct wg_layer *layer, enum wg_sweep_axis axis, uint64_t samples);

/* "filters", "channels", "batch", "resolution". */
const char *wg__sweep_axis_name(enum wg_sweep_axis axis);

/* Predicts values first, first + step, ..., `count` of them; errors as of wg__layer_resize and
 * wg__layer_predict. No allocation. */
enum wg_code wg__sweep(const struct wg_kernel_model *model, const struct wg_layer *layer,
                       enum wg_sweep_axis axis, uint64_t samples, uint64_t first, uint64_t step,
                       size_t count, struct wg_sweep_point *points, struct wg_error *err);

struct wg_stair {
    uint64_t value; /* the present one */
    uint64_t below; /* the largest smaller value at less time; `value`: none */
    uint64_t above; /* the largest value at no more time: above - value are free */
    double time_s, below_s, above_s;
    double saved_s_per_channel; /* (time_s - below_s) / (value - below); 0 where below == value */
    uint64_t faster;            /* the fastest larger value, if by 3 % at least; 0: none */
    double faster_s;
};

/* Reads a stair off points, which stand in rising order and must hold `value` (else WG_EINVAL).
 * Differences below the share `tolerance` (0.01 is usual) are none. */
enum wg_code wg__stair_find(const struct wg_sweep_point *points, size_t count, uint64_t value,
                            double tolerance, struct wg_stair *out, struct wg_error *err);

/* Whether time rises from point index - 1 to index by a step: by more than the share `rise` (0.08
 * is usual), and by more than twice what its neighbours rise on average, which is how a ramp rises.
 */
bool wg__sweep_is_step(const struct wg_sweep_point *points, size_t count, size_t index,
                       double rise);

#endif
