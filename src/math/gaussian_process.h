/* SPDX-License-Identifier: MIT
 *
 * A Gaussian process of zero mean over a few axes: fit by Cholesky, likelihood, prediction.
 *
 *     cov(f(x), f(x')) = amplitude^2 M52(r) + constant,   r^2 = sum_d ((x_d - x'_d) / length_d)^2
 *     y_i = f(x_i) + noise of its own variance
 *
 * `constant` is the variance of a level common to all points. Source: Rasmussen and Williams,
 * "Gaussian Processes for Machine Learning" (2006), algorithm 2.1. Predictions go block by block
 * through one triangular solve with many right-hand sides, which is where the time goes.
 *
 * A likelihood that is to be made largest is asked for hundreds of times at the same points: then
 * the squared differences of the points along each axis, which do not change, are kept (`set`), and
 * only lengths, amplitude and noise come anew (`fit`).
 *
 * Owns: its arrays, which grow as needed; points and observations are copied.
 * Threads: one at a time.
 */
#ifndef WG_MATH_GAUSSIAN_PROCESS_H
#define WG_MATH_GAUSSIAN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { WG_GP_AXES_MAX = 16, WG_GP_BLOCK = 64 };

struct wg_gp_kernel {
    double amplitude;              /* standard deviation */
    double length[WG_GP_AXES_MAX]; /* of each axis, > 0 */
    double constant;               /* variance, >= 0 */
};

struct wg_gp {
    size_t axes, count, capacity;
    struct wg_gp_kernel kernel; /* of the last fit */
    double *x;                  /* [axes][count] */
    double *y;
    double *extra;   /* variance of each observation's own noise, beside the common one */
    double *squares; /* [axes][packed lower triangle]: (x_d - x'_d)^2 */
    double *factor;  /* [count * count], lower, by columns */
    double *weights; /* K^-1 y */
    double *block;   /* [count * WG_GP_BLOCK] */
    bool is_fitted;
};

/* An empty process; allocates nothing. `axes` is 1 .. WG_GP_AXES_MAX. */
void wg__gp_init(struct wg_gp *gp, size_t axes);
void wg__gp_fini(struct wg_gp *gp);

/* The observations: `count` points of `axes` numbers, their values, and the variance of the noise
 * that each has beside the common one (NULL: none). WG_ENOMEM. */
enum wg_code wg__gp_set(struct wg_gp *gp, const double *x, const double *y, const double *extra,
                        size_t count, struct wg_error *err);

/* Conditions on the observations, with `noise` as the variance that all of them have. Returns the
 * log marginal likelihood; -INFINITY when the covariance is not positive definite. Allocates
 * nothing. */
double wg__gp_fit(struct wg_gp *gp, const struct wg_gp_kernel *kernel, double noise);

/* Means and standard deviations of f at `count` points, of the last fit; without observations those
 * of the prior given then. Allocates nothing. */
void wg__gp_predict(struct wg_gp *gp, const double *x, size_t count, double *mean_out,
                    double *sd_out);

#endif
