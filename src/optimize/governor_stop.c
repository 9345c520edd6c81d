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
 * of the best cost so far. The bound never falls below what `stop_floor` incumbents cost, so that a
 * trial that is as good as the incumbent is not cut by noise.
 *
 * Threads: one at a time.
 */
#include <math.h>

#include "math/normal.h"
#include "optimize/governor.h"

enum { BOUNDS_TRIED = 24, LAW_PARTS = 32 };

static const double part_width = 0.25; /* octaves */

/* Epochs to the target as a mixture of lognormals: one part per quarter of an octave of what the
 * curves predict. One lognormal of the same moments would not do: an arm is often either as good as
 * its neighbour or far worse, and then a run that has outlasted the neighbour is known to be a bad
 * one. */
struct epochs_law {
    size_t count;
    double weight[LAW_PARTS];
    double mean_ln[LAW_PARTS];
    double sd_ln; /* of each part */
};

static void law_of(const struct wg_governor *governor, size_t arm, struct epochs_law *law)
{
    const struct wg_epochs_model *model = &governor->model;
    const double gain = model->gain[arm];
    double sum[LAW_PARTS] = {0}, weight[LAW_PARTS] = {0};
    for (size_t h = 0; h < model->hypothesis_count; h++) {
        const double at = model->level_mean[h] + model->shape[h * model->arm_count + arm];
        const double mean = at + gain * (model->arm_mean[arm] - at);
        /* Parts are counted from 16 quarters below the mean of all; the ends take what lies beyond.
         */
        const double offset = (mean - model->mean[arm]) / part_width + 0.5 * (double)LAW_PARTS;
        const size_t part = (size_t)fmax(0, fmin((double)LAW_PARTS - 1, offset));
        weight[part] += model->weight[h];
        sum[part] += model->weight[h] * mean;
    }
    law->count = 0;
    for (size_t part = 0; part < LAW_PARTS; part++) {
        if (weight[part] < 1e-4)
            continue;
        law->weight[law->count] = weight[part];
        law->mean_ln[law->count++] = M_LN2 * sum[part] / weight[part];
    }
    const double variance = model->rest[arm] + (1 - gain) * (1 - gain) * model->level_variance +
                            model->noise_variance[arm] + part_width * part_width / 12;
    law->sd_ln = M_LN2 * sqrt(variance);
}

/* E min(N, k), and P(N > k). */
struct truncation {
    double mean_min;
    double above;
};

static struct truncation truncate_at(const struct epochs_law *law, double k)
{
    struct truncation sum = {0, 0};
    double total = 0;
    const double ln_k = log(k);
    for (size_t i = 0; i < law->count; i++) {
        const double z = (ln_k - law->mean_ln[i]) / law->sd_ln;
        const double above = wg__normal_cdf(-z);
        const double below =
            exp(law->mean_ln[i] + 0.5 * law->sd_ln * law->sd_ln) * wg__normal_cdf(z - law->sd_ln);
        sum.above += law->weight[i] * above;
        sum.mean_min += law->weight[i] * (below + k * above);
        total += law->weight[i];
    }
    sum.above /= total;
    sum.mean_min /= total;
    return sum;
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
    struct epochs_law law;
    law_of(governor, arm, &law);
    const double doom = doom_probability(governor, arm);
    double first = ceil(c->stop_floor * fallback_j / epoch_j);
    first = fmax(1, fmin(first, max_epochs));
    const double ratio = pow(max_epochs / first, 1 / ((double)BOUNDS_TRIED - 1));
    double best_price = INFINITY, best = first, previous = 0;
    for (int i = 0; i < BOUNDS_TRIED; i++) {
        const double k = fmin(max_epochs, ceil(first * pow(ratio, i) - 1e-9));
        if (k <= previous)
            continue;
        previous = k;
        const struct truncation at = truncate_at(&law, k);
        const double price = (1 - doom) * (epoch_j * at.mean_min + at.above * fallback_j) +
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

/* Updates each part by what the learning curve says, and returns the mean of log2 N after that. */
static double update_law(struct epochs_law *law, double forecast_ln, double sd_ln)
{
    const double variance = law->sd_ln * law->sd_ln, noise = sd_ln * sd_ln;
    const double gain = variance / (variance + noise);
    double mean = 0, total = 0;
    for (size_t i = 0; i < law->count; i++) {
        const double surprise = forecast_ln - law->mean_ln[i];
        law->weight[i] *= exp(-0.5 * surprise * surprise / (variance + noise));
        law->mean_ln[i] += gain * surprise;
        mean += law->weight[i] * law->mean_ln[i];
        total += law->weight[i];
    }
    law->sd_ln = sqrt(gain * noise);
    return total > 0 ? mean / total / M_LN2 : forecast_ln / M_LN2;
}

bool wg__governor_is_hopeless(const struct wg_governor *governor, struct wg_flight *flight,
                              unsigned epochs_done)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    struct wg_curve_forecast forecast;
    if (epochs_done == 0 || flight->arm == governor->incumbent || !(governor->incumbent_j > 0) ||
        !wg__curve_book_forecast(&governor->curves, &flight->curve, epochs_done, &forecast))
        return false;
    struct epochs_law law, guess;
    law_of(governor, flight->arm, &law);
    guess = law;
    /* Stopping is for the clear cases: the forecast counts for less than it says. */
    const double optimistic = forecast.log2_epochs - c->curve_optimism * forecast.sd;
    (void)update_law(&law, M_LN2 * optimistic, M_LN2 * forecast.sd);
    /* Going on to the bound costs the epochs that are left, and the incumbent's run if it fails. */
    const double k = fmin(flight->stop_epochs, governor->job.max_epochs), done = epochs_done;
    if (k <= done)
        return false;
    const struct truncation now = truncate_at(&law, done), end = truncate_at(&law, k);
    if (!(now.above > 1e-6))
        return false;
    const double go_on_j =
        governor->cost[flight->arm].epoch_j * (end.mean_min - now.mean_min) / now.above +
        end.above / now.above * governor->incumbent_j;
    if (go_on_j <= c->curve_hurdle * governor->incumbent_j)
        return false;
    flight->log2_guess = update_law(&guess, M_LN2 * forecast.log2_epochs, M_LN2 * forecast.sd);
    return true;
}
