/* SPDX-License-Identifier: MIT
 *
 * How alike two configurations err: the covariance of what no board can bend to.
 *
 *     K = am^2 sum_j M52(|d_j|/.6)                smooth along each knob
 *       + al^2 sum_j [same level of j]            an offset of each level: a clock that behaves
 *                                                 oddly whatever else is set
 *       + ap^2 sum_(i<j) M52(|d_i|/.5) M52(|d_j|/.5)   pairs of knobs
 *       + af^2 M52(||d||/.35)                     what is left, near each point
 *
 * with d the distances of board_axes.h. A figure without physics (memory, accuracy) adds a
 * constant and a line along each knob, so that its plain mean is learned.
 *
 * Source: additive kernels, Duvenaud, Nickisch, Rasmussen (NIPS 2011).
 *
 * Threads: pure.
 */
#ifndef WG_OPTIMIZE_RESIDUAL_KERNEL_H
#define WG_OPTIMIZE_RESIDUAL_KERNEL_H

#include "optimize/board_axes.h"
#include "optimize/tuner.h"

struct wg_residual_kernel {
    double smooth, level, pair, local; /* am, al, ap, af */
    double line;                       /* sd of the slope along a knob */
    double constant;                   /* sd of what all figures share: the noise of the first */
};

/* That of a kind of figure. */
struct wg_residual_kernel wg__residual_kernel_of(enum wg_tuning_kind kind);

/* What a level adds, seen from one configuration: scratch of a row. */
struct wg_residual_along {
    float smooth, pair, line, square;
};

/* K, without the constant, of one configuration with `count` others. `scratch` has
 * axes->first[knob_count] entries. */
void wg__residual_kernel_row(const struct wg_residual_kernel *kernel,
                             const struct wg_board_axes *axes, size_t configuration,
                             const uint32_t *others, size_t count,
                             struct wg_residual_along *scratch, float *out);

/* K of a configuration with itself. */
double wg__residual_kernel_variance(const struct wg_residual_kernel *kernel,
                                    const struct wg_board_axes *axes, size_t configuration);

#endif
