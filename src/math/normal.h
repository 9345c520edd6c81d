/* SPDX-License-Identifier: MIT
 *
 * The normal distribution.
 *
 * The quantile is algorithm AS 241 (PPND16; Wichura, Applied Statistics 37, 1988), relative error
 * about 1e-16: one uniform number gives one normal number, so streams stay aligned whatever is
 * drawn.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_MATH_NORMAL_H
#define WG_MATH_NORMAL_H

#include "base/rng.h"

/* The quantile of 0.975: half the width of a 95 % interval, in standard deviations. */
#define WG_NORMAL_975 1.959963984540054

double wg__normal_pdf(double z);
double wg__normal_cdf(double z);                /* by erfc: accurate in both tails */
double wg__normal_quantile(double probability); /* 0 gives -inf, 1 gives +inf, outside NaN */

/* One draw of N(0, 1). */
double wg__rng_normal(struct wg_rng *rng);

#endif
