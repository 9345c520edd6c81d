/* SPDX-License-Identifier: MIT
 *
 * Gamma variables: Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS
 * 26 (2000). A shape below 1 comes from the next one, times a power of a uniform.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "math/gamma.h"

#include <math.h>

#include "math/normal.h"

/* Below it the shape, 1 / cv^2, is so large that the test of what is drawn is lost in rounding, or
 * no number at all; the distribution is normal then, its skewness (2 cv) beyond notice. */
#define CV_NORMAL 1e-6

/* Gamma with mean 1 and shape >= 1. */
static double draw_gamma(double shape, struct wg_rng *rng)
{
    const double d = shape - 1.0 / 3.0;
    const double c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        const double z = wg__rng_normal(rng);
        const double root = 1.0 + c * z;
        const double v = root * root * root;
        if (root > 0.0 && log(wg__rng_uniform(rng)) < 0.5 * z * z + d - d * v + d * log(v))
            return d * v / shape;
    }
}

double wg__rng_gamma_factor(struct wg_rng *rng, double cv)
{
    if (cv == 0.0)
        return 1.0;
    if (cv == 1.0)
        return -log(wg__rng_uniform(rng));
    if (cv < CV_NORMAL)
        return 1.0 + cv * wg__rng_normal(rng);
    const double shape = 1.0 / (cv * cv);
    if (shape >= 1.0)
        return draw_gamma(shape, rng);
    const double grown = draw_gamma(shape + 1.0, rng) * (shape + 1.0) / shape;
    return grown * pow(wg__rng_uniform(rng), 1.0 / shape);
}
