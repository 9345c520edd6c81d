/* SPDX-License-Identifier: MIT
 *
 * The normal distribution.
 *
 * The quantile is PPND16 of algorithm AS 241 (M. J. Wichura, "The percentage points of the normal
 * distribution", Applied Statistics 37, 1988): three rational approximations of degree 7, in the
 * middle (|p - 1/2| <= 0.425, 85 % of the draws: no logarithm there), in the tails and in the far
 * tails. Rejected: Box-Muller and the ziggurat, which take a varying number of uniforms for a
 * normal, so a changed draw would shift all later ones of the stream.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "math/normal.h"

#include <math.h>
#include <stdbool.h>

double wg__normal_pdf(double z)
{
    return 0.398942280401432677939946059934 * exp(-0.5 * z * z); /* 1 / sqrt(2 pi) */
}

double wg__normal_cdf(double z)
{
    return 0.5 * erfc(-z * 0.707106781186547524400844362105); /* sqrt(1/2) */
}

/* Numerator and denominator of a rational function, the constant term first. */
struct rational {
    double a[8];
    double b[8];
};

static inline double evaluate(const struct rational *f, double x)
{
    double numerator = f->a[7];
    double denominator = f->b[7];
    for (int i = 6; i >= 0; i--) {
        numerator = numerator * x + f->a[i];
        denominator = denominator * x + f->b[i];
    }
    return numerator / denominator;
}

static const struct rational middle = {
    {3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3,
     1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
     3.3430575583588128105e+4, 2.5090809287301226727e+3},
    {1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
     2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4,
     5.2264952788528545610e+3}};

static const struct rational tail = {
    {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4},
    {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9}};

static const struct rational far_tail = {
    {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7},
    {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15}};

static __attribute__((noinline)) double tail_quantile(double probability)
{
    const bool is_lower = probability < 0.5;
    const double r = sqrt(-log(is_lower ? probability : 1.0 - probability));
    const double z = r <= 5.0 ? evaluate(&tail, r - 1.6) : evaluate(&far_tail, r - 5.0);
    return is_lower ? -z : z;
}

/* Likewise; small enough to stand inline, with the rare part out of the way. */
static inline double quantile(double probability)
{
    const double q = probability - 0.5;
    if (fabs(q) <= 0.425)
        return q * evaluate(&middle, 0.180625 - q * q);
    return tail_quantile(probability);
}

double wg__normal_quantile(double probability)
{
    if (!(probability >= 0.0 && probability <= 1.0))
        return (double)NAN;
    if (probability == 0.0)
        return -(double)INFINITY;
    if (probability == 1.0)
        return (double)INFINITY;
    return quantile(probability);
}

double wg__rng_normal(struct wg_rng *rng)
{
    return quantile(wg__rng_uniform(rng));
}
