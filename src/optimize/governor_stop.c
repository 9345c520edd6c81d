/* SPDX-License-Identifier: MIT
 *
 * How long a trial may run: a bound on its epochs from its cost, and a check of its learning curve.
 *
 * A trial of arm i that is stopped after k epochs has cost c k and is followed by a run of the
 * incumbent, which costs F. With lognormal epochs N and a chance pd that the arm never reaches the
 * target ("doomed"), the expected cost above the incumbent's run is
 *
 *     (1 - pd) (c E min(N, k) + P(N > k) F) + pd (c k + F) - F
 *
 * and the bound is the k that makes it least. Sunk cost does not enter, unlike in a fixed multiple
 * of the best cost so far. The bound never falls below what 1.15 incumbents cost, so that a trial
 * that is as good as the incumbent is not cut by noise.
 *
 * Threads: one at a time.
 */
#include <math.h>

#include "math/normal.h"
#include "optimize/governor.h"

enum { BOUNDS_TRIED = 24 };

/* Lognormal epochs: mean and sd of ln N. */
struct epochs_law {
    double mean_ln;
    double sd_ln;
};

static double mean_min(const struct epochs_law *law, double k)
{
    const double z = (log(k) - law->mean_ln) / law->sd_ln;
    return exp(law->mean_ln + 0.5 * law->sd_ln * law->sd_ln) * wg__normal_cdf(z - law->sd_ln) +
           k * wg__normal_cdf(-z);
}

static double probability_above(const struct epochs_law *law, double k)
{
    return wg__normal_cdf((law->mean_ln - log(k)) / law->sd_ln);
}

static double doom_probability(const struct wg_governor *governor, size_t arm)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    const unsigned successes = governor->model.success_count[arm];
    if (successes > 0)
        return c->doom_known / successes;
    double octaves = INFINITY;
    for (size_t i = 0; i < governor->job.arm_count; i++)
        if (governor->model.success_count[i] > 0)
            octaves = fmin(octaves, fabs(governor->model.x[i] - governor->model.x[arm]));
    if (!isfinite(octaves))
        octaves = 0;
    const double doom = c->doom_base + c->doom_per_octave * octaves +
                        (governor->failures_after_success[arm] > 0 ? c->doom_after_failure : 0);
    return fmin(doom, 0.95);
}

static struct epochs_law law_of(const struct wg_governor *governor, size_t arm)
{
    const double variance = governor->model.variance[arm] + governor->model.noise_variance[arm];
    return (struct epochs_law){M_LN2 * governor->model.mean[arm], M_LN2 * sqrt(variance)};
}

unsigned wg__governor_stop_epochs(const struct wg_governor *governor, size_t arm, double *price_out)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    const double max_epochs = governor->job.max_epochs, epoch_j = governor->cost[arm].epoch_j;
    const double fallback_j = governor->incumbent_j;
    if (price_out)
        *price_out = 0;
    if (arm == governor->incumbent) {
        const double expected = governor->expected_j[arm] / epoch_j;
        return (unsigned)fmin(max_epochs, ceil(c->incumbent_patience * expected));
    }
    const struct epochs_law law = law_of(governor, arm);
    const double doom = doom_probability(governor, arm);
    double first = ceil(c->stop_floor * fallback_j / epoch_j);
    first = fmax(1, fmin(first, max_epochs));
    const double ratio = pow(max_epochs / first, 1.0 / (BOUNDS_TRIED - 1));
    double best_price = INFINITY, best = first, wanted = first, previous = 0;
    for (int i = 0; i < BOUNDS_TRIED; i++, wanted *= ratio) {
        const double k = fmin(max_epochs, ceil(wanted - 1e-9));
        if (k <= previous)
            continue;
        previous = k;
        const double price =
            (1 - doom) * (epoch_j * mean_min(&law, k) + probability_above(&law, k) * fallback_j) +
            doom * (epoch_j * k + fallback_j) - fallback_j;
        if (price < best_price) {
            best_price = price;
            best = k;
        }
    }
    if (price_out)
        *price_out = best_price;
    return (unsigned)best;
}

bool wg__governor_is_hopeless(const struct wg_governor *governor, struct wg_flight *flight,
                              unsigned epochs_done)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    struct wg_curve_forecast forecast;
    if (epochs_done == 0 || flight->arm == governor->incumbent || !(governor->incumbent_j > 0) ||
        !wg__curve_book_forecast(&governor->curves, &flight->curve, epochs_done, &forecast))
        return false;
    /* What was believed before, updated by the forecast. */
    const double prior_variance =
        governor->model.variance[flight->arm] + governor->model.noise_variance[flight->arm];
    const double forecast_variance = forecast.sd * forecast.sd;
    const double gain = prior_variance / (prior_variance + forecast_variance);
    const double prior_mean = governor->model.mean[flight->arm];
    /* Stopping is for the clear cases: the forecast counts for less than it says. */
    const double optimistic = forecast.log2_epochs - c->curve_optimism * forecast.sd;
    const double mean = prior_mean + gain * (optimistic - prior_mean);
    const struct epochs_law law = {M_LN2 * mean, M_LN2 * sqrt(gain * forecast_variance)};
    /* Going on to the bound costs the epochs that are left, and the incumbent's run if it fails. */
    const double k = fmin(flight->stop_epochs, governor->job.max_epochs), done = epochs_done;
    const double alive = probability_above(&law, done);
    if (!(alive > 1e-6) || k <= done)
        return false;
    const double left = (mean_min(&law, k) - mean_min(&law, done)) / alive;
    const double fails = probability_above(&law, k) / alive;
    const double go_on_j =
        governor->cost[flight->arm].epoch_j * left + fails * governor->incumbent_j;
    if (go_on_j <= c->curve_hurdle * governor->incumbent_j)
        return false;
    flight->log2_guess = prior_mean + gain * (forecast.log2_epochs - prior_mean);
    return true;
}
