/* SPDX-License-Identifier: MIT
 *
 * Covariance functions of Gaussian processes.
 *
 * Source: Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), eq. 4.17.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_MATH_KERNEL_H
#define WG_MATH_KERNEL_H

#include <math.h>

/* Matern 5/2 of the distance over the length scale. */
static inline double wg__matern52(double r)
{
    const double root5_r = 2.2360679774997896964 * r;
    return (1 + root5_r + root5_r * root5_r / 3) * exp(-root5_r);
}

#endif
