/* SPDX-License-Identifier: MIT
 *
 * Times that vary: factors of mean 1 that follow the gamma distribution, exponential at a
 * coefficient of variation of 1, nearly normal when it is small, never negative.
 *
 * Threads: pure; the generator belongs to one thread.
 */
#ifndef WG_MATH_GAMMA_H
#define WG_MATH_GAMMA_H

#include "base/rng.h"

/* Mean 1, standard deviation `cv` >= 0; 0 draws nothing and gives 1. */
double wg__rng_gamma_factor(struct wg_rng *rng, double cv);

#endif
