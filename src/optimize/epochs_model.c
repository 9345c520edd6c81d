/* SPDX-License-Identifier: MIT
 *
 * The posterior of the epochs curve: see epochs_model.h for the model.
 *
 * Per arm with data, precision w_i and mean ybar_i of its observations give v_i = tau^2 + 1/w_i. Per
 * hypothesis the level is Gaussian with precision W = 1/s_e^2 + sum 1/v_i, and the evidence is closed:
 *
 *     ln p(data | h) = -1/2 (sum (ybar_i - S_hi)^2 / v_i - B^2 / W) - 1/2 ln W + const
 *
 * The evidence is tempered (power kappa < 1) because the curve family is only nearly right: with full
 * weight two lucky runs can exclude the truth for good. Noise between runs of one arm is estimated from
 * successive differences (von Neumann), which a slow drift does not inflate. A censored run is taken as a
 * wide observation a little above the epochs that it did.
 *
 * Threads: pure, any thread.
 */
#include "optimize/epochs_model.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "math/normal.h"
#include "optimize/governor_constants.h"

static double log2_1p_exp2(double x)
{
    return x > 40 ? x : log2(1 + exp2(x));
}

struct grid {
    double upper_min, upper_max, lower_min, lower_max, step;
};

static size_t fill_grid(struct wg_epochs_model *model)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    size_t count = 0;
    for (double upper = -5; upper <= 9; upper += 1)
        for (double lower = -9; lower <= 0; lower += 1)
            for (int slope = 1; slope <= 3; slope += 2) {
                if (!(lower < upper))
                    continue;
                if (model->shape) {
                    for (size_t i = 0; i < model->arm_count; i++)
                        model->shape[count * model->arm_count + i] =
                            log2_1p_exp2(model->x[i] - upper) +
                            log2_1p_exp2(slope * (lower - model->x[i]));
                    const double zu = (upper - c->upper_knee_mean) / c->upper_knee_sd;
                    const double zl = (lower - c->lower_knee_mean) / c->lower_knee_sd;
                    model->log_prior[count] = -0.5 * (zu * zu + zl * zl);
                }
                count++;
            }
    return count;
}

enum wg_code wg__epochs_model_init(struct wg_epochs_model *model, const struct wg_batch_job *job,
                                   struct wg_error *err)
{
    *model = (struct wg_epochs_model){.arm_count = job->arm_count};
    for (size_t i = 0; i < job->arm_count; i++)
        model->x[i] = log2(job->batch_size[i] / job->batch_size[job->default_arm]);
    model->hypothesis_count = fill_grid(model);
    const size_t hypotheses = model->hypothesis_count;
    model->shape = wg__alloc_zeroed(hypotheses * (model->arm_count + 4), sizeof *model->shape);
    if (!model->shape)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    model->log_prior = model->shape + hypotheses * model->arm_count;
    model->weight = model->log_prior + hypotheses;
    model->level_mean = model->weight + hypotheses;
    model->level_variance = model->level_mean + hypotheses;
    (void)fill_grid(model);
    wg__epochs_model_update(model, NULL, 0);
    return WG_OK;
}

void wg__epochs_model_fini(struct wg_epochs_model *model)
{
    if (!model)
        return;
    wg__free(model->shape);
    *model = (struct wg_epochs_model){0};
}

/* The variance between runs, from successive successes on the same arm, shrunk to the prior's. */
static double estimate_noise(const struct wg_epochs_observation *observations, size_t count)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    double last[WG_ARMS_MAX], squares = 0;
    bool has_last[WG_ARMS_MAX] = {false};
    unsigned pairs = 0;
    for (size_t t = 0; t < count; t++) {
        const struct wg_epochs_observation *o = &observations[t];
        if (o->is_censored)
            continue;
        if (has_last[o->arm]) {
            const double difference = o->log2_epochs - last[o->arm];
            squares += 0.5 * difference * difference;
            pairs++;
        }
        last[o->arm] = o->log2_epochs;
        has_last[o->arm] = true;
    }
    const double prior = c->noise_sd * c->noise_sd;
    const double estimate =
        (c->noise_prior_runs * prior + squares) / (c->noise_prior_runs + pairs);
    return fmax(estimate, c->noise_sd_min * c->noise_sd_min);
}

/* Precision and mean of each arm's observations. */
static void summarise_arms(struct wg_epochs_model *model,
                           const struct wg_epochs_observation *observations, size_t count)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    double sum[WG_ARMS_MAX] = {0};
    memset(model->success_count, 0, sizeof model->success_count);
    for (size_t i = 0; i < model->arm_count; i++)
        model->arm_precision[i] = model->arm_mean[i] = 0;
    const double precision = 1 / model->noise_variance;
    for (size_t t = 0; t < count; t++) {
        const struct wg_epochs_observation *o = &observations[t];
        if (o->is_censored)
            continue;
        model->success_count[o->arm]++;
        model->arm_precision[o->arm] += precision;
        sum[o->arm] += precision * o->log2_epochs;
    }
    for (size_t i = 0; i < model->arm_count; i++)
        if (model->success_count[i])
            model->arm_mean[i] = sum[i] / model->arm_precision[i];
    for (size_t t = 0; t < count; t++) {
        const struct wg_epochs_observation *o = &observations[t];
        if (!o->is_censored)
            continue;
        const double guess = o->log2_epochs + c->censored_excess;
        if (model->success_count[o->arm] && model->arm_mean[o->arm] > guess)
            continue;
        const double weight = 1 / c->censored_variance;
        sum[o->arm] += weight * guess;
        model->arm_precision[o->arm] += weight;
    }
    for (size_t i = 0; i < model->arm_count; i++)
        if (model->arm_precision[i] > 0)
            model->arm_mean[i] = sum[i] / model->arm_precision[i];
}

void wg__epochs_model_update(struct wg_epochs_model *model,
                             const struct wg_epochs_observation *observations, size_t count)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    const size_t arms = model->arm_count;
    model->noise_variance = estimate_noise(observations, count);
    summarise_arms(model, observations, count);

    const double tau2 = c->deviation_sd * c->deviation_sd;
    const double level_precision = 1 / (c->level_sd * c->level_sd);
    double inverse_v[WG_ARMS_MAX], gain[WG_ARMS_MAX], rest[WG_ARMS_MAX];
    double precision = level_precision;
    for (size_t i = 0; i < arms; i++) {
        const bool seen = model->arm_precision[i] > 0;
        const double spread = seen ? 1 / model->arm_precision[i] : 0;
        inverse_v[i] = seen ? 1 / (tau2 + spread) : 0;
        gain[i] = seen ? tau2 * inverse_v[i] : 0;        /* share of the residual that is d_i */
        rest[i] = seen ? gain[i] * spread : tau2;        /* variance of d_i given level and data */
        precision += inverse_v[i];
    }
    double largest = -INFINITY;
    for (size_t h = 0; h < model->hypothesis_count; h++) {
        const double *shape = model->shape + h * arms;
        double squares = level_precision * c->level_mean * c->level_mean;
        double pull = level_precision * c->level_mean;
        for (size_t i = 0; i < arms; i++) {
            const double residual = model->arm_mean[i] - shape[i];
            pull += inverse_v[i] * residual;
            squares += inverse_v[i] * residual * residual;
        }
        model->level_mean[h] = pull / precision;
        model->level_variance[h] = 1 / precision;
        const double evidence = -0.5 * (squares - pull * pull / precision);
        model->weight[h] = model->log_prior[h] + c->evidence_power * evidence;
        largest = fmax(largest, model->weight[h]);
    }
    double total = 0;
    for (size_t h = 0; h < model->hypothesis_count; h++)
        total += model->weight[h] = exp(model->weight[h] - largest);
    double first[WG_ARMS_MAX] = {0}, second[WG_ARMS_MAX] = {0};
    for (size_t h = 0; h < model->hypothesis_count; h++) {
        const double weight = model->weight[h] /= total;
        const double *shape = model->shape + h * arms;
        for (size_t i = 0; i < arms; i++) {
            const double at = model->level_mean[h] + shape[i];
            const double mean = at + gain[i] * (model->arm_mean[i] - at);
            first[i] += weight * mean;
            second[i] += weight * mean * mean;
        }
    }
    for (size_t i = 0; i < arms; i++) {
        const double through_level = (1 - gain[i]) * (1 - gain[i]) / precision;
        model->mean[i] = first[i];
        model->variance[i] = fmax(0, second[i] - first[i] * first[i]) + rest[i] + through_level;
    }
}

void wg__epochs_model_remember_shape(struct wg_epochs_model *model, double trust)
{
    double largest = -INFINITY;
    for (size_t h = 0; h < model->hypothesis_count; h++) {
        const double evidence = log(fmax(model->weight[h], 1e-300)) - model->log_prior[h];
        model->log_prior[h] += trust * evidence;
        largest = fmax(largest, model->log_prior[h]);
    }
    for (size_t h = 0; h < model->hypothesis_count; h++)
        model->log_prior[h] -= largest;
}

void wg__epochs_model_sample(const struct wg_epochs_model *model, struct wg_rng *rng, size_t count,
                             double *y)
{
    const double tau2 = wg__governor_constants.deviation_sd * wg__governor_constants.deviation_sd;
    const size_t arms = model->arm_count;
    double gain[WG_ARMS_MAX], sd[WG_ARMS_MAX];
    for (size_t i = 0; i < arms; i++) {
        const bool seen = model->arm_precision[i] > 0;
        const double spread = seen ? 1 / model->arm_precision[i] : 0;
        gain[i] = seen ? tau2 / (tau2 + spread) : 0;
        sd[i] = sqrt(seen ? gain[i] * spread : tau2);
    }
    const double level_sd = sqrt(model->level_variance[0]);
    const double offset = wg__rng_uniform(rng);
    double cumulative = model->weight[0];
    size_t h = 0;
    for (size_t draw = 0; draw < count; draw++) {
        const double position = ((double)draw + offset) / (double)count;
        while (cumulative < position && h + 1 < model->hypothesis_count)
            cumulative += model->weight[++h];
        const double *shape = model->shape + h * arms;
        const double level = model->level_mean[h] + level_sd * wg__rng_normal(rng);
        for (size_t i = 0; i < arms; i++) {
            const double at = level + shape[i];
            y[draw * arms + i] =
                at + gain[i] * (model->arm_mean[i] - at) + sd[i] * wg__rng_normal(rng);
        }
    }
}
