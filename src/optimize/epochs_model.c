/* SPDX-License-Identifier: MIT
 *
 * The posterior of the epochs curve: see epochs_model.h for the model.
 *
 * Per arm with data, precision w_i and mean ybar_i of its observations give v_i = tau^2 + 1/w_i.
 * Per hypothesis the level is Gaussian with precision W = 1/s_e^2 + sum 1/v_i, and the evidence is
 * closed:
 *
 *     ln p(data | h) = -1/2 (sum (ybar_i - S_hi)^2 / v_i - B^2 / W) - 1/2 ln W + const
 *
 * The evidence is tempered (power kappa < 1) because the curve family is only nearly right: with
 * full weight two lucky runs can exclude the truth for good. Noise between runs of one arm is
 * estimated from successive differences (von Neumann), which a slow drift does not inflate. A
 * censored run is taken as a wide observation a little above the epochs that it did.
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

static size_t fill_grid(struct wg_epochs_model *model)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    size_t count = 0;
    for (int upper = -5; upper <= 9; upper++)
        for (int lower = -9; lower <= 0 && lower < upper; lower++)
            for (int slope = 1; slope <= 3; slope += 2) {
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
    model->shape = wg__alloc_zeroed(hypotheses * (model->arm_count + 3), sizeof *model->shape);
    if (!model->shape)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    model->log_prior = model->shape + hypotheses * model->arm_count;
    model->weight = model->log_prior + hypotheses;
    model->level_mean = model->weight + hypotheses;
    (void)fill_grid(model);
    for (size_t i = 0; i < WG_EPOCHS_DRAWS; i++)
        model->normal[i] = wg__normal_quantile(((double)i + 0.5) / WG_EPOCHS_DRAWS);
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

/* The variance between runs, from successive successes on the same arm. What all arms say together
 * is shrunk to the prior's, and what one arm says to that. */
static void estimate_noise(struct wg_epochs_model *model,
                           const struct wg_epochs_observation *observations, size_t count)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    double last[WG_ARMS_MAX], squares[WG_ARMS_MAX] = {0}, all_squares = 0;
    unsigned seen[WG_ARMS_MAX] = {0}, all_pairs = 0;
    for (size_t t = 0; t < count; t++) {
        const struct wg_epochs_observation *o = &observations[t];
        if (o->is_censored)
            continue;
        if (seen[o->arm]++ > 0) {
            const double difference = o->log2_epochs - last[o->arm];
            squares[o->arm] += 0.5 * difference * difference;
            all_squares += 0.5 * difference * difference;
            all_pairs++;
        }
        last[o->arm] = o->log2_epochs;
    }
    const double prior = c->noise_sd * c->noise_sd;
    const double shared =
        (c->noise_prior_runs * prior + all_squares) / (c->noise_prior_runs + all_pairs);
    for (size_t i = 0; i < model->arm_count; i++) {
        const double pairs = seen[i] > 0 ? seen[i] - 1 : 0;
        const double own = (c->noise_arm_runs * shared + squares[i]) / (c->noise_arm_runs + pairs);
        model->noise_variance[i] = fmax(own, c->noise_sd_min * c->noise_sd_min);
    }
}

/* Precision and mean of each arm's observations. */
static void summarise_arms(struct wg_epochs_model *model,
                           const struct wg_epochs_observation *observations, size_t count)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    double sum[WG_ARMS_MAX] = {0}, guesses[WG_ARMS_MAX] = {0};
    for (size_t i = 0; i < model->arm_count; i++) {
        model->arm_precision[i] = model->arm_mean[i] = model->failure_epochs[i] = 0;
        model->success_count[i] = model->failure_count[i] = 0;
    }
    for (size_t t = 0; t < count; t++) {
        const struct wg_epochs_observation *o = &observations[t];
        if (o->is_censored) {
            model->failure_count[o->arm]++;
            model->failure_epochs[o->arm] += exp2(o->log2_epochs);
            guesses[o->arm] += fmax(o->log2_epochs + c->censored_excess, o->log2_guess);
        } else {
            model->success_count[o->arm]++;
            sum[o->arm] += o->log2_epochs;
        }
    }
    for (size_t i = 0; i < model->arm_count; i++) {
        const double failures = model->failure_count[i], successes = model->success_count[i];
        if (failures > 0)
            model->failure_epochs[i] /= failures;
        if (successes > 0) {
            /* Where runs do reach the target, failures are a matter of chance: they count in the
             * failure probability, not in the epochs of a success. */
            model->arm_precision[i] = successes / model->noise_variance[i];
            model->arm_mean[i] = sum[i] / successes;
        } else if (failures > 0) {
            model->arm_precision[i] = failures / c->censored_variance;
            model->arm_mean[i] = guesses[i] / failures;
        }
    }
}

/* The evidence of each curve; leaves its logarithm in `weight` and returns the largest. */
static double weigh_curves(struct wg_epochs_model *model)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    const size_t arms = model->arm_count;
    const double tau2 = c->deviation_sd * c->deviation_sd;
    const double level_precision = 1 / (c->level_sd * c->level_sd);
    double inverse_v[WG_ARMS_MAX], precision = level_precision, largest = -INFINITY;
    for (size_t i = 0; i < arms; i++) {
        const bool seen = model->arm_precision[i] > 0;
        const double spread = seen ? 1 / model->arm_precision[i] : 0;
        inverse_v[i] = seen ? 1 / (tau2 + spread) : 0;
        model->gain[i] = seen ? tau2 * inverse_v[i] : 0;
        model->rest[i] = seen ? model->gain[i] * spread : tau2;
        precision += inverse_v[i];
    }
    model->level_variance = 1 / precision;
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
        const double evidence = -0.5 * (squares - pull * pull / precision);
        model->weight[h] = model->log_prior[h] + c->evidence_power * evidence;
        largest = fmax(largest, model->weight[h]);
    }
    return largest;
}

/* Mean and variance of every arm over the mixture. */
static void mix_moments(struct wg_epochs_model *model)
{
    const size_t arms = model->arm_count;
    double first[WG_ARMS_MAX] = {0}, second[WG_ARMS_MAX] = {0};
    for (size_t h = 0; h < model->hypothesis_count; h++) {
        const double weight = model->weight[h];
        if (weight < 1e-12)
            continue;
        const double *shape = model->shape + h * arms;
        for (size_t i = 0; i < arms; i++) {
            const double at = model->level_mean[h] + shape[i];
            const double mean = at + model->gain[i] * (model->arm_mean[i] - at);
            first[i] += weight * mean;
            second[i] += weight * mean * mean;
        }
    }
    for (size_t i = 0; i < arms; i++) {
        const double through_level =
            (1 - model->gain[i]) * (1 - model->gain[i]) * model->level_variance;
        model->mean[i] = first[i];
        model->variance[i] =
            fmax(0, second[i] - first[i] * first[i]) + model->rest[i] + through_level;
    }
}

void wg__epochs_model_update(struct wg_epochs_model *model,
                             const struct wg_epochs_observation *observations, size_t count)
{
    estimate_noise(model, observations, count);
    summarise_arms(model, observations, count);
    const double largest = weigh_curves(model);
    double total = 0;
    for (size_t h = 0; h < model->hypothesis_count; h++)
        total += model->weight[h] = exp(model->weight[h] - largest);
    for (size_t h = 0; h < model->hypothesis_count; h++)
        model->weight[h] /= total;
    mix_moments(model);
}

double wg__epochs_model_failure_share(const struct wg_epochs_model *model, size_t arm)
{
    const double successes = model->success_count[arm];
    const double failures = model->failure_count[arm];
    return successes > 0 ? failures / (successes + failures + 1) : 0;
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

/* A random permutation of the strata, cheap enough to have one per arm: Latin hypercube sampling.
 */
struct lattice {
    uint32_t multiplier; /* odd */
    uint32_t offset;
    uint32_t scramble;
};

static void lattice_init(struct lattice *lattice, struct wg_rng *rng)
{
    *lattice = (struct lattice){
        .multiplier = wg__rng_u32(rng) | 1,
        .offset = wg__rng_u32(rng),
        .scramble = wg__rng_u32(rng),
    };
}

static double lattice_at(const struct wg_epochs_model *model, const struct lattice *lattice,
                         size_t draw)
{
    const uint32_t at = (uint32_t)draw * lattice->multiplier + lattice->offset;
    return model->normal[(at ^ lattice->scramble) % WG_EPOCHS_DRAWS];
}

void wg__epochs_model_sample(const struct wg_epochs_model *model, struct wg_rng *rng, double *y)
{
    const size_t arms = model->arm_count;
    const double level_sd = sqrt(model->level_variance);
    double sd[WG_ARMS_MAX];
    for (size_t i = 0; i < arms; i++)
        sd[i] = sqrt(model->rest[i]);
    struct lattice level_z, arm_z[WG_ARMS_MAX];
    lattice_init(&level_z, rng);
    for (size_t i = 0; i < arms; i++)
        lattice_init(&arm_z[i], rng);
    const double offset = wg__rng_uniform(rng);
    double cumulative = model->weight[0];
    size_t h = 0;
    for (size_t draw = 0; draw < WG_EPOCHS_DRAWS; draw++) {
        const double position = ((double)draw + offset) / WG_EPOCHS_DRAWS;
        while (cumulative < position && h + 1 < model->hypothesis_count)
            cumulative += model->weight[++h];
        const double *shape = model->shape + h * arms;
        const double level = model->level_mean[h] + level_sd * lattice_at(model, &level_z, draw);
        for (size_t i = 0; i < arms; i++) {
            const double at = level + shape[i];
            y[draw * arms + i] = at + model->gain[i] * (model->arm_mean[i] - at) +
                                 sd[i] * lattice_at(model, &arm_z[i], draw);
        }
    }
}
