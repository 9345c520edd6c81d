/* SPDX-License-Identifier: MIT
 *
 * The epochs curve against a Bayesian computation written another way: per hypothesis a dense
 * Gaussian over all observations, conditioned through a Cholesky factor, where the code under test
 * has closed forms over sums per arm. Noise, tempering and the rest by hand; sampling by its
 * moments. The constants are read, never copied.
 */
#include "optimize/epochs_model.h"

#include <string.h>

#include "base/alloc.h"
#include "math/normal.h"
#include "optimize/governor_constants.h"
#include "support/batch_driver.h"

enum { ARMS = 6, DEFAULT_ARM = 2, HYPOTHESES_MAX = 400, RUNS_MAX = 40 };

static const struct wg_governor_constants *const c = &wg__governor_constants;

static struct wg_epochs_model make_model(size_t arms, size_t default_arm)
{
    const struct wg_batch_job job = make_batch_job(arms, default_arm, 1);
    struct wg_epochs_model model;
    assert_int_equal(wg__epochs_model_init(&model, &job, NULL), WG_OK);
    return model;
}

static struct wg_epochs_observation success(unsigned arm, double log2_epochs)
{
    return (struct wg_epochs_observation){.arm = (unsigned char)arm, .log2_epochs = log2_epochs};
}

static struct wg_epochs_observation failure(unsigned arm, double log2_epochs, double log2_guess)
{
    return (struct wg_epochs_observation){.arm = (unsigned char)arm,
                                          .is_censored = true,
                                          .log2_epochs = log2_epochs,
                                          .log2_guess = log2_guess};
}

/* The reference. The prior of the grid is part of the model: knees u in -5..9 and l in -9..0, l
 * below u, slopes 1 and 3. */
struct reference {
    size_t hypotheses;
    double shape[HYPOTHESES_MAX][WG_ARMS_MAX];
    double log_weight[HYPOTHESES_MAX]; /* of the prior, then of the posterior, up to a constant */
    double mean_of[HYPOTHESES_MAX][WG_ARMS_MAX];
    double within[WG_ARMS_MAX][WG_ARMS_MAX]; /* covariance given the hypothesis: the same for all */
    double mean[WG_ARMS_MAX];
    double covariance[WG_ARMS_MAX][WG_ARMS_MAX];
};

static void fill_prior(struct reference *r, const double *x, size_t arms)
{
    r->hypotheses = 0;
    for (int u = -5; u <= 9; u++)
        for (int l = -9; l <= 0 && l < u; l++)
            for (int k = 1; k <= 3; k += 2) {
                const size_t h = r->hypotheses++;
                r->log_weight[h] =
                    log(wg__normal_pdf((u - c->upper_knee_mean) / c->upper_knee_sd)) +
                    log(wg__normal_pdf((l - c->lower_knee_mean) / c->lower_knee_sd));
                for (size_t i = 0; i < arms; i++)
                    r->shape[h][i] = log2(1 + pow(2, x[i] - u)) + log2(1 + pow(2, k * (l - x[i])));
            }
}

/* Solves L L' out = right in place, for the lower triangle L. */
static void cholesky_solve(double l[RUNS_MAX][RUNS_MAX], size_t n, double *right)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++)
            right[i] -= l[i][j] * right[j];
        right[i] /= l[i][i];
    }
    for (size_t i = n; i-- > 0;) {
        for (size_t j = i + 1; j < n; j++)
            right[i] -= l[j][i] * right[j];
        right[i] /= l[i][i];
    }
}

static void cholesky(double a[RUNS_MAX][RUNS_MAX], size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            for (size_t k = 0; k < j; k++)
                a[i][j] -= a[i][k] * a[j][k];
            a[i][j] = i == j ? sqrt(a[i][i]) : a[i][j] / a[j][j];
        }
}

/* The observations that count, each with its own variance: failures do only on arms that never
 * reached the target. */
static size_t list_runs(const struct wg_epochs_observation *all, size_t count,
                        const double *noise_variance, unsigned *arm, double *y, double *variance)
{
    size_t n = 0;
    for (size_t t = 0; t < count; t++) {
        bool has_success = false;
        for (size_t s = 0; s < count; s++)
            has_success |= all[s].arm == all[t].arm && !all[s].is_censored;
        if (all[t].is_censored && has_success)
            continue;
        arm[n] = all[t].arm;
        y[n] = all[t].is_censored ? fmax(all[t].log2_epochs + c->censored_excess, all[t].log2_guess)
                                  : all[t].log2_epochs;
        variance[n++] = all[t].is_censored ? c->censored_variance : noise_variance[all[t].arm];
    }
    return n;
}

static double prior_covariance(size_t i, size_t j)
{
    return c->level_sd * c->level_sd + (i == j ? c->deviation_sd * c->deviation_sd : 0);
}

static void mix(struct reference *r, size_t arms)
{
    double largest = -(double)INFINITY, total = 0;
    for (size_t h = 0; h < r->hypotheses; h++)
        largest = fmax(largest, r->log_weight[h]);
    for (size_t h = 0; h < r->hypotheses; h++)
        total += exp(r->log_weight[h] - largest);
    memset(r->mean, 0, sizeof r->mean);
    for (size_t h = 0; h < r->hypotheses; h++) {
        r->log_weight[h] -= largest + log(total);
        for (size_t i = 0; i < arms; i++)
            r->mean[i] += exp(r->log_weight[h]) * r->mean_of[h][i];
    }
    for (size_t i = 0; i < arms; i++)
        for (size_t j = 0; j < arms; j++) {
            r->covariance[i][j] = r->within[i][j];
            for (size_t h = 0; h < r->hypotheses; h++)
                r->covariance[i][j] += exp(r->log_weight[h]) * (r->mean_of[h][i] - r->mean[i]) *
                                       (r->mean_of[h][j] - r->mean[j]);
        }
}

/* Conditions on `count` observations; the noise is taken from the model. */
static void compute_reference(struct reference *r, const struct wg_epochs_model *model,
                              const struct wg_epochs_observation *all, size_t count)
{
    static double k[RUNS_MAX][RUNS_MAX];
    const size_t arms = model->arm_count;
    unsigned arm[RUNS_MAX];
    double y[RUNS_MAX], variance[RUNS_MAX], gain[WG_ARMS_MAX][RUNS_MAX];
    const size_t n = list_runs(all, count, model->noise_variance, arm, y, variance);
    for (size_t s = 0; s < n; s++)
        for (size_t t = 0; t < n; t++)
            k[s][t] = prior_covariance(arm[s], arm[t]) + (s == t ? variance[s] : 0);
    cholesky(k, n);
    for (size_t i = 0; i < arms; i++) {
        for (size_t t = 0; t < n; t++)
            gain[i][t] = prior_covariance(i, arm[t]);
        cholesky_solve(k, n, gain[i]);
        for (size_t j = 0; j < arms; j++) {
            r->within[i][j] = prior_covariance(i, j);
            for (size_t t = 0; t < n; t++)
                r->within[i][j] -= gain[i][t] * prior_covariance(j, arm[t]);
        }
    }
    for (size_t h = 0; h < r->hypotheses; h++) {
        double residual[RUNS_MAX], solved[RUNS_MAX], squares = 0, log_determinant = 0;
        for (size_t t = 0; t < n; t++)
            solved[t] = residual[t] = y[t] - c->level_mean - r->shape[h][arm[t]];
        cholesky_solve(k, n, solved);
        for (size_t t = 0; t < n; t++) {
            squares += residual[t] * solved[t];
            log_determinant += 2 * log(k[t][t]);
        }
        r->log_weight[h] += c->evidence_power * -0.5 * (squares + log_determinant);
        for (size_t i = 0; i < arms; i++) {
            r->mean_of[h][i] = c->level_mean + r->shape[h][i];
            for (size_t t = 0; t < n; t++)
                r->mean_of[h][i] += gain[i][t] * residual[t];
        }
    }
    mix(r, arms);
}

static void check_against(const struct wg_epochs_model *model, const struct reference *r)
{
    assert_int_equal(model->hypothesis_count, r->hypotheses);
    for (size_t h = 0; h < r->hypotheses; h++)
        check_close_abs(model->weight[h], exp(r->log_weight[h]), 1e-7, 1e-12);
    for (size_t i = 0; i < model->arm_count; i++) {
        check_close_abs(model->mean[i], r->mean[i], 1e-8, 1e-8);
        check_close_abs(model->variance[i], r->covariance[i][i], 1e-7, 1e-8);
    }
}

static struct reference *update_both(struct wg_epochs_model *model,
                                     const struct wg_epochs_observation *all, size_t count)
{
    static struct reference reference;
    wg__epochs_model_update(model, all, count);
    fill_prior(&reference, model->x, model->arm_count);
    compute_reference(&reference, model, all, count);
    return &reference;
}

static void places_the_default_at_zero_and_shapes_around_it(void **state)
{
    (void)state;
    struct wg_batch_job job = make_batch_job(3, 1, 1);
    job.batch_size[0] = 96;
    job.batch_size[1] = 128;
    job.batch_size[2] = 512;
    struct wg_epochs_model model;
    assert_int_equal(wg__epochs_model_init(&model, &job, NULL), WG_OK);
    check_close(model.x[0], log2(0.75), 1e-14);
    check_close_abs(model.x[1], 0, 0, 0);
    check_close(model.x[2], 2, 1e-14);
    static struct reference reference;
    fill_prior(&reference, model.x, 3);
    assert_int_equal(model.hypothesis_count, reference.hypotheses);
    for (size_t h = 0; h < reference.hypotheses; h++)
        for (size_t i = 0; i < 3; i++)
            check_close(model.shape[h * 3 + i], reference.shape[h][i], 1e-12);
    wg__epochs_model_fini(&model);
}

static void knows_only_its_prior_before_any_run(void **state)
{
    (void)state;
    struct wg_epochs_model model = make_model(ARMS, DEFAULT_ARM);
    struct reference *reference = update_both(&model, NULL, 0);
    check_against(&model, reference);
    double total = 0;
    for (size_t h = 0; h < model.hypothesis_count; h++)
        total += model.weight[h];
    check_close(total, 1, 1e-12);
    for (size_t i = 0; i < ARMS; i++) {
        check_close(model.noise_variance[i], c->noise_sd * c->noise_sd, 1e-12);
        assert_int_equal(model.success_count[i] + model.failure_count[i], 0);
        assert_true(model.variance[i] >= c->level_sd * c->level_sd);
    }
    wg__epochs_model_fini(&model);
}

static void posterior_agrees_with_dense_conditioning_on_a_worked_history(void **state)
{
    (void)state;
    const struct wg_epochs_observation all[] = {
        success(2, 3.2), success(3, 3.5),       success(2, 3.0), failure(5, 4.5, 0),
        success(1, 3.1), failure(5, 4.0, 6.25), success(3, 3.3), failure(3, 5.0, 0),
        success(2, 3.4), failure(0, 2.0, 2.5),
    };
    struct wg_epochs_model model = make_model(ARMS, DEFAULT_ARM);
    for (size_t count = 1; count <= sizeof all / sizeof all[0]; count++)
        check_against(&model, update_both(&model, all, count));
    wg__epochs_model_fini(&model);
}

/* Histories of any kind: random arms, curves, failures, up to 40 runs. */
static size_t make_history(struct wg_rng *rng, size_t arms, struct wg_epochs_observation *out)
{
    const size_t count = 1 + wg__rng_below(rng, RUNS_MAX);
    const double level = 8 * wg__rng_uniform(rng), slope = 3 * wg__rng_uniform(rng);
    for (size_t t = 0; t < count; t++) {
        const unsigned arm = wg__rng_below(rng, (uint32_t)arms);
        const double y = level + slope * fabs(arm - 2.0) + 0.3 * wg__rng_normal(rng);
        out[t] = wg__rng_below(rng, 4) == 0 ? failure(arm, y, y + 2 * wg__rng_uniform(rng))
                                            : success(arm, y);
    }
    return count;
}

static void posterior_agrees_with_dense_conditioning_on_random_histories(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 11);
    for (unsigned trial = 0; trial < 60; trial++) {
        const size_t arms = 1 + wg__rng_below(&rng, 9);
        struct wg_epochs_model model = make_model(arms, wg__rng_below(&rng, (uint32_t)arms));
        struct wg_epochs_observation all[RUNS_MAX];
        const size_t count = make_history(&rng, arms, all);
        check_against(&model, update_both(&model, all, count));
        wg__epochs_model_fini(&model);
    }
}

static void the_posterior_does_not_depend_on_what_was_believed_before(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 12);
    struct wg_epochs_model used = make_model(ARMS, DEFAULT_ARM),
                           fresh = make_model(ARMS, DEFAULT_ARM);
    struct wg_epochs_observation before[RUNS_MAX], all[RUNS_MAX];
    wg__epochs_model_update(&used, before, make_history(&rng, ARMS, before));
    const size_t count = make_history(&rng, ARMS, all);
    wg__epochs_model_update(&used, all, count);
    wg__epochs_model_update(&fresh, all, count);
    assert_memory_equal(used.mean, fresh.mean, sizeof used.mean);
    assert_memory_equal(used.variance, fresh.variance, sizeof used.variance);
    wg__epochs_model_fini(&used);
    wg__epochs_model_fini(&fresh);
}

/* Arm 2: 3, 4, 3.5, so half squared steps of 0.5 and 0.125; arm 4: 5, 5.2, so 0.02. Failures and
 * single runs say nothing. */
static void noise_is_estimated_from_successive_differences(void **state)
{
    (void)state;
    const struct wg_epochs_observation all[] = {
        success(2, 3), success(4, 5),   failure(2, 9, 0), success(2, 4),
        success(1, 7), success(2, 3.5), success(4, 5.2),
    };
    struct wg_epochs_model model = make_model(ARMS, DEFAULT_ARM);
    wg__epochs_model_update(&model, all, sizeof all / sizeof all[0]);
    const double shared =
        (c->noise_prior_runs * c->noise_sd * c->noise_sd + 0.645) / (c->noise_prior_runs + 3);
    check_close(model.noise_variance[0], shared, 1e-12);
    check_close(model.noise_variance[1], shared, 1e-12);
    check_close(model.noise_variance[2],
                (c->noise_arm_runs * shared + 0.625) / (c->noise_arm_runs + 2), 1e-12);
    check_close(model.noise_variance[4],
                (c->noise_arm_runs * shared + 0.02) / (c->noise_arm_runs + 1), 1e-12);
    wg__epochs_model_fini(&model);
}

static void noise_has_a_floor_and_ignores_a_slow_drift(void **state)
{
    (void)state;
    struct wg_epochs_observation same[2000], drifting[2000];
    for (size_t t = 0; t < 2000; t++) {
        same[t] = success(2, 5);
        drifting[t] = success(2, 5 + 0.001 * (double)t); /* two octaves in all */
    }
    struct wg_epochs_model model = make_model(ARMS, DEFAULT_ARM);
    wg__epochs_model_update(&model, same, 2000);
    check_close(model.noise_variance[2], c->noise_sd_min * c->noise_sd_min, 1e-12);
    wg__epochs_model_update(&model, drifting, 2000);
    assert_true(model.noise_variance[2] < 0.01); /* their own variance is 1/3 */
    wg__epochs_model_fini(&model);
}

static void failures_count_in_the_epochs_only_where_nothing_succeeded(void **state)
{
    (void)state;
    const struct wg_epochs_observation all[] = {
        success(2, 3),    failure(2, 4, 9), failure(2, 5, 9), /* 16 and 32 epochs: 24 */
        failure(4, 3, 0), failure(4, 3, 5),
    };
    struct wg_epochs_model model = make_model(ARMS, DEFAULT_ARM);
    wg__epochs_model_update(&model, all, 5);
    assert_int_equal(model.success_count[2], 1);
    assert_int_equal(model.failure_count[2], 2);
    check_close(model.failure_epochs[2], 24, 1e-12);
    check_close(model.arm_mean[2], 3, 1e-12);
    check_close(model.arm_precision[2], 1 / model.noise_variance[2], 1e-12);
    assert_int_equal(model.success_count[4], 0);
    check_close(model.failure_epochs[4], 8, 1e-12);
    check_close(model.arm_mean[4], 0.5 * (3 + c->censored_excess + 5), 1e-12);
    check_close(model.arm_precision[4], 2 / c->censored_variance, 1e-12);
    wg__epochs_model_fini(&model);
}

/* A hockey stick with its knee at x = 1: the arms beyond it are foreseen from those before. */
static void a_rise_seen_at_two_arms_is_carried_to_the_next(void **state)
{
    (void)state;
    struct wg_epochs_observation all[12];
    for (size_t t = 0; t < 12; t++) {
        const unsigned arm = (unsigned)(1 + t % 4);
        all[t] = success(arm, 4 + log2(1 + exp2((double)(int)(arm - 1 - DEFAULT_ARM))));
    }
    struct wg_epochs_model model = make_model(ARMS, DEFAULT_ARM);
    wg__epochs_model_update(&model, all, 12);
    const double sd = sqrt(model.variance[5]);
    assert_true(sd < 0.5);
    check_close_abs(model.mean[5], 4 + log2(1 + exp2(2)), 0, 2 * sd);
    assert_true(model.variance[3] < model.variance[5]); /* seen is surer than foreseen */
    wg__epochs_model_fini(&model);
}

/* With the weight of the evidence below 1, two lucky runs exclude nothing for good: each weight is
 * the prior times the likelihood to that power, as the reference has it. Here the ratio of two
 * hypotheses against a single run is worked out in full. */
static void evidence_is_tempered(void **state)
{
    (void)state;
    struct wg_epochs_model model = make_model(1, 0);
    double prior[HYPOTHESES_MAX];
    memcpy(prior, model.weight, model.hypothesis_count * sizeof prior[0]);
    const struct wg_epochs_observation run = success(0, 20);
    wg__epochs_model_update(&model, &run, 1);
    const double variance =
        c->level_sd * c->level_sd + c->deviation_sd * c->deviation_sd + model.noise_variance[0];
    const size_t a = 0, b = model.hypothesis_count - 1;
    const double za = 20 - c->level_mean - model.shape[a], zb = 20 - c->level_mean - model.shape[b];
    assert_true(fabs(za - zb) > 1);
    check_close(
        log(model.weight[a] / model.weight[b]),
        log(prior[a] / prior[b]) + c->evidence_power * -0.5 * (za * za - zb * zb) / variance, 1e-9);
    wg__epochs_model_fini(&model);
}

static void remembers_as_much_of_the_shape_as_is_trusted(void **state)
{
    (void)state;
    const struct wg_epochs_observation all[] = {success(2, 3), success(3, 4), success(4, 5.2),
                                                success(2, 3.1)};
    const double trusts[] = {0, 0.3, 1};
    for (size_t i = 0; i < 3; i++) {
        struct wg_epochs_model model = make_model(ARMS, DEFAULT_ARM);
        double prior[HYPOTHESES_MAX], posterior[HYPOTHESES_MAX], expected[HYPOTHESES_MAX];
        memcpy(prior, model.weight, model.hypothesis_count * sizeof prior[0]);
        wg__epochs_model_update(&model, all, 4);
        memcpy(posterior, model.weight, model.hypothesis_count * sizeof posterior[0]);
        wg__epochs_model_remember_shape(&model, trusts[i]);
        wg__epochs_model_update(&model, NULL, 0);
        double total = 0;
        for (size_t h = 0; h < model.hypothesis_count; h++)
            total += expected[h] = prior[h] * pow(posterior[h] / prior[h], trusts[i]);
        for (size_t h = 0; h < model.hypothesis_count; h++)
            check_close_abs(model.weight[h], expected[h] / total, 1e-9, 1e-15);
        /* The level is forgotten whatever the trust. */
        assert_true(model.variance[2] >= c->level_sd * c->level_sd);
        wg__epochs_model_fini(&model);
    }
}

static void remembering_again_and_again_stays_finite(void **state)
{
    (void)state;
    struct wg_epochs_model model = make_model(ARMS, DEFAULT_ARM);
    struct wg_rng rng;
    wg__rng_init(&rng, 5);
    for (unsigned trial = 0; trial < 200; trial++) {
        struct wg_epochs_observation all[RUNS_MAX];
        wg__epochs_model_update(&model, all, make_history(&rng, ARMS, all));
        double total = 0;
        for (size_t h = 0; h < model.hypothesis_count; h++)
            total += model.weight[h];
        check_close(total, 1, 1e-9);
        for (size_t i = 0; i < ARMS; i++)
            assert_true(isfinite(model.mean[i]) && model.variance[i] > 0);
        wg__epochs_model_remember_shape(&model, 1);
    }
    wg__epochs_model_fini(&model);
}

/* Over 400 calls of 256 draws: means, variances and covariances are those of the reference, within
 * five standard errors of as many independent draws (their own errors are smaller or alike). */
static void draws_have_the_moments_of_the_posterior(void **state)
{
    (void)state;
    const struct wg_epochs_observation all[] = {success(2, 3.2), success(3, 3.6), success(2, 3),
                                                failure(5, 4.5, 0), success(1, 3.3)};
    const double draws = 400.0 * WG_EPOCHS_DRAWS;
    struct wg_epochs_model model = make_model(ARMS, DEFAULT_ARM);
    for (size_t count = 0; count <= 5; count += 5) { /* of the prior and of a posterior */
        const struct reference *r = update_both(&model, all, count);
        double sum[ARMS] = {0}, product[ARMS][ARMS] = {0};
        struct wg_rng rng;
        wg__rng_init(&rng, 99);
        for (unsigned call = 0; call < 400; call++) {
            double y[WG_EPOCHS_DRAWS * ARMS];
            wg__epochs_model_sample(&model, &rng, y);
            for (size_t m = 0; m < WG_EPOCHS_DRAWS; m++) {
                const double *at = &y[m * ARMS];
                for (size_t i = 0; i < ARMS; i++) {
                    sum[i] += at[i] - r->mean[i];
                    for (size_t j = 0; j <= i; j++)
                        product[i][j] += (at[i] - r->mean[i]) * (at[j] - r->mean[j]);
                }
            }
        }
        for (size_t i = 0; i < ARMS; i++) {
            check_close_abs(sum[i] / draws, 0, 0, 5 * sqrt(r->covariance[i][i] / draws));
            for (size_t j = 0; j <= i; j++)
                check_close_abs(product[i][j] / draws, r->covariance[i][j], 0,
                                5 * sqrt(2 * r->covariance[i][i] * r->covariance[j][j] / draws));
        }
    }
    wg__epochs_model_fini(&model);
}

/* Strata: within one call the mean of the draws is far nearer to the truth than that of as many
 * independent ones would be. */
static void one_call_covers_the_posterior_evenly(void **state)
{
    (void)state;
    const struct wg_epochs_observation run = success(DEFAULT_ARM, 4);
    struct wg_epochs_model model = make_model(ARMS, DEFAULT_ARM);
    wg__epochs_model_update(&model, &run, 1);
    struct wg_rng rng;
    wg__rng_init(&rng, 3);
    double squares = 0;
    for (unsigned call = 0; call < 100; call++) {
        double y[WG_EPOCHS_DRAWS * ARMS], sum = 0;
        wg__epochs_model_sample(&model, &rng, y);
        for (size_t m = 0; m < WG_EPOCHS_DRAWS; m++)
            sum += y[m * ARMS + DEFAULT_ARM];
        const double error = sum / WG_EPOCHS_DRAWS - model.mean[DEFAULT_ARM];
        squares += error * error / 100;
    }
    assert_true(squares < 0.1 * model.variance[DEFAULT_ARM] / WG_EPOCHS_DRAWS);
    wg__epochs_model_fini(&model);
}

static void draws_repeat_from_the_seed(void **state)
{
    (void)state;
    const struct wg_epochs_observation run = success(DEFAULT_ARM, 4);
    struct wg_epochs_model model = make_model(ARMS, DEFAULT_ARM);
    wg__epochs_model_update(&model, &run, 1);
    double y[3][WG_EPOCHS_DRAWS * ARMS];
    for (size_t i = 0; i < 3; i++) {
        struct wg_rng rng;
        wg__rng_init(&rng, i < 2 ? 7 : 8);
        wg__epochs_model_sample(&model, &rng, y[i]);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_memory_not_equal(y[0], y[2], sizeof y[0]);
    wg__epochs_model_fini(&model);
}

static void works_with_one_arm_and_with_the_most(void **state)
{
    (void)state;
    const size_t counts[] = {1, WG_ARMS_MAX};
    for (size_t i = 0; i < 2; i++) {
        struct wg_epochs_model model = make_model(counts[i], counts[i] / 2);
        const struct wg_epochs_observation all[] = {success((unsigned)counts[i] - 1, 4),
                                                    failure(0, 0, 0), success(0, 5)};
        check_against(&model, update_both(&model, all, 3));
        static double y[WG_EPOCHS_DRAWS * WG_ARMS_MAX];
        struct wg_rng rng;
        wg__rng_init(&rng, 1);
        wg__epochs_model_sample(&model, &rng, y);
        for (size_t at = 0; at < WG_EPOCHS_DRAWS * counts[i]; at++)
            assert_true(isfinite(y[at]));
        wg__epochs_model_fini(&model);
    }
}

static void reports_that_memory_ran_out(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(ARMS, DEFAULT_ARM, 1);
    struct wg_epochs_model model;
    struct wg_error err = {0};
    wg__alloc_fail_from(1);
    const enum wg_code code = wg__epochs_model_init(&model, &job, &err);
    wg__alloc_fail_from(0);
    assert_int_equal(code, WG_ENOMEM);
    assert_int_equal(err.code, WG_ENOMEM);
    wg__epochs_model_fini(&model); /* half-built and again */
    wg__epochs_model_fini(&model);
    wg__epochs_model_fini(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_the_default_at_zero_and_shapes_around_it),
        cmocka_unit_test(knows_only_its_prior_before_any_run),
        cmocka_unit_test(posterior_agrees_with_dense_conditioning_on_a_worked_history),
        cmocka_unit_test(posterior_agrees_with_dense_conditioning_on_random_histories),
        cmocka_unit_test(the_posterior_does_not_depend_on_what_was_believed_before),
        cmocka_unit_test(noise_is_estimated_from_successive_differences),
        cmocka_unit_test(noise_has_a_floor_and_ignores_a_slow_drift),
        cmocka_unit_test(failures_count_in_the_epochs_only_where_nothing_succeeded),
        cmocka_unit_test(a_rise_seen_at_two_arms_is_carried_to_the_next),
        cmocka_unit_test(evidence_is_tempered),
        cmocka_unit_test(remembers_as_much_of_the_shape_as_is_trusted),
        cmocka_unit_test(remembering_again_and_again_stays_finite),
        cmocka_unit_test(draws_have_the_moments_of_the_posterior),
        cmocka_unit_test(one_call_covers_the_posterior_evenly),
        cmocka_unit_test(draws_repeat_from_the_seed),
        cmocka_unit_test(works_with_one_arm_and_with_the_most),
        cmocka_unit_test(reports_that_memory_ran_out),
    };
    return run_tests(tests);
}
