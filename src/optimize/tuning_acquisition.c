/* SPDX-License-Identifier: MIT
 *
 * Logarithms of probabilities and of expected improvements, exact where both underflow.
 *
 * Policies compare products such as PF(x) EI(x) over thousands of configurations, most of them
 * hopeless: in plain numbers those are all 0, and the first one wins by accident. Logarithms keep
 * their order. Far out the asymptotic series of the Mills ratio is used (Abramowitz and Stegun,
 * 26.2.12); at the seams it is good to 1e-12. The acquisition itself: Gardner et al., "Bayesian
 * optimization with inequality constraints", ICML'14.
 *
 * Threads: pure.
 */
#include <math.h>
#include <stddef.h>

#include "math/normal.h"
#include "optimize/tuning_policy.h"

static const double log_root_2pi = 0.91893853320467274178;

/* 1 + c[0] / z^2 + c[1] / z^4 + ..., by Horner. */
static double series(double z, const double *coefficients, size_t count)
{
    const double inverse = 1 / (z * z);
    double sum = 0;

    for (size_t i = count; i-- > 0;)
        sum = (sum + coefficients[i]) * inverse;
    return 1 + sum;
}

double wg__log_normal_cdf(double z)
{
    static const double tail[] = {-1, 3, -15, 105, -945, 10395};

    if (z > 0)
        return log1p(-wg__normal_cdf(-z));
    if (z > -30)
        return log(wg__normal_cdf(z));
    return -z * z / 2 - log_root_2pi - log(-z) + log(series(z, tail, sizeof tail / sizeof tail[0]));
}

double wg__log_expected_improvement(double u)
{
    static const double tail[] = {-3, 15, -105, 945, -10395, 135135};

    if (u > -25)
        return log(u * wg__normal_cdf(u) + wg__normal_pdf(u));
    return -u * u / 2 - log_root_2pi - 2 * log(-u) +
           log(series(u, tail, sizeof tail / sizeof tail[0]));
}

double wg__tuning_switch_penalty(const struct wg_tuning_view *view, size_t configuration)
{
    if (!(view->trial_s > 0) || view->present >= view->space->count)
        return 0;
    const double switch_s = wg__tuning_switch_s(view->space, view->present, configuration);

    return view->budget_left * log1p(switch_s / view->trial_s);
}
