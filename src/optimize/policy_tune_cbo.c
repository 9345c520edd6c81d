/* SPDX-License-Identifier: MIT
 *
 * Constrained Bayesian optimisation as one would build it well today, without any physics: the
 * yardstick for what knowledge of boards is worth.
 *
 * The default first; where there is one knob only, its middle second. Logarithms of all figures.
 * A Matern-5/2 with a length per axis, plus a constant; hyper-parameters by their largest posterior
 * (priors below; NLopt's Nelder-Mead, from the last optimum). The incumbent is the least posterior
 * mean among what was tried and is within the limits by half a standard deviation; the score is
 * log EI + log PF, and log PF alone while there is no incumbent; where trials failed, plus the
 * logarithm of the chance that one there works. It stops when the largest expected
 * relative saving, PF EI, is below 0.3 %.
 *
 * The priors were chosen on the grids of docs/results/tuning.md, as those of the policy it is
 * compared with: the comparison is not against an untuned one.
 *
 * Owns: its processes.    Threads: as the tuner.
 */
#include <math.h>
#include <nlopt.h>
#include <stdio.h>

#include "base/alloc.h"
#include "optimize/tuning_surrogate.h"

enum {
    PARAMETERS_MAX = WG_TUNING_KNOBS_MAX + 2, /* log lengths, log amplitude, log noise */
    STOP_FROM = 4,
    EVALUATIONS = 90,
    LATE_FROM = 30, /* trials */
    LATE_EVALUATIONS = 50
};
static const double kappa = 0.5, stop_share_default = 0.003, constant = 0.25;
static const double length_sd = 0.9, amplitude_median = 0.45, amplitude_sd = 0.8, noise_sd = 0.5;
static const double log_length_max = 4, simplex_step = 0.4, simplex_tolerance = 0.001;

struct cbo {
    struct wg_tuning_surrogate surrogate;
    double best[WG_TUNING_QUANTITIES_MAX][PARAMETERS_MAX]; /* of the last decision */
    bool is_ready;
};

static void destroy(void *state)
{
    struct cbo *cbo = state;

    if (cbo == NULL)
        return;
    wg__tuning_surrogate_fini(&cbo->surrogate);
    wg__free(cbo);
}

static void set_medians(double *parameters, size_t axes, double noise)
{
    for (size_t d = 0; d < axes; d++)
        parameters[d] = 0;
    parameters[axes] = log(amplitude_median);
    parameters[axes + 1] = log(noise);
}

static enum wg_code create(void **out, const struct wg_tuning_view *view, struct wg_error *err)
{
    struct cbo *cbo = wg__alloc_zeroed(1, sizeof *cbo);
    bool is_log[WG_TUNING_KNOBS_MAX] = {false};

    if (cbo == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for the policy");
    for (size_t k = 0; k < view->space->knob_count; k++) {
        const enum wg_tuning_role role = view->space->knobs[k].role;

        is_log[k] = role == WG_TUNING_BATCH || role == WG_TUNING_TRAIN_BATCH ||
                    role == WG_TUNING_REPLICAS || role == WG_TUNING_SPLIT;
    }
    const enum wg_code code = wg__tuning_surrogate_init(&cbo->surrogate, view, is_log, err);
    if (code != WG_OK) {
        wg__free(cbo);
        return code;
    }
    for (size_t q = 0; q < WG_TUNING_QUANTITIES_MAX; q++)
        set_medians(cbo->best[q], view->space->knob_count, view->noise);
    *out = cbo;
    return WG_OK;
}

/* -- Hyper-parameters ------------------------------------------------------------------------- */

struct fit {
    struct wg_gp *gp;
    double log_noise; /* the median */
};

static double square(double x)
{
    return x * x;
}

static double fit_with(struct wg_gp *gp, const double *parameters)
{
    struct wg_gp_kernel kernel = {.amplitude = exp(parameters[gp->axes]), .constant = constant};

    for (size_t d = 0; d < gp->axes; d++)
        kernel.length[d] = exp(fmin(fmax(parameters[d], -log_length_max), log_length_max));
    return wg__gp_fit(gp, &kernel, exp(2 * parameters[gp->axes + 1]));
}

/* Minus the logarithm of the posterior of the hyper-parameters, for NLopt. */
static double surprise(unsigned count, const double *parameters,
                       double *gradient, /* NOLINT(readability-non-const-parameter): NLopt's type */
                       void *context)
{
    const struct fit *fit = context;
    const size_t axes = fit->gp->axes;
    double sum = square((parameters[axes] - log(amplitude_median)) / amplitude_sd) +
                 square((parameters[axes + 1] - fit->log_noise) / noise_sd);

    (void)count;
    (void)gradient;
    for (size_t d = 0; d < axes; d++)
        sum += square(parameters[d] / length_sd);
    const double value = sum / 2 - fit_with(fit->gp, parameters);
    return isfinite(value) ? value : 1e10;
}

/* Moves `parameters` to the largest posterior near them. */
static enum wg_code maximise(struct fit *fit, double *parameters, int evaluations,
                             struct wg_error *err)
{
    nlopt_opt search = nlopt_create(NLOPT_LN_NELDERMEAD, (unsigned)fit->gp->axes + 2);
    double least;

    if (search == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for Nelder-Mead");
    bool is_set = nlopt_set_min_objective(search, surprise, fit) >= 0;
    is_set = is_set && nlopt_set_initial_step1(search, simplex_step) >= 0;
    is_set = is_set && nlopt_set_maxeval(search, evaluations) >= 0;
    is_set = is_set && nlopt_set_ftol_abs(search, simplex_tolerance) >= 0;
    /* That rounding stopped it is no failure: the best point so far is there. */
    const nlopt_result result =
        is_set ? nlopt_optimize(search, parameters, &least) : NLOPT_OUT_OF_MEMORY;
    nlopt_destroy(search);
    if (result == NLOPT_OUT_OF_MEMORY)
        return wg__fail(err, WG_ENOMEM, "out of memory for Nelder-Mead");
    return WG_OK;
}

static enum wg_code fit_all(struct cbo *cbo, const struct wg_tuning_view *view,
                            struct wg_error *err)
{
    const size_t axes = view->space->knob_count;
    const int evaluations = view->trial_count < LATE_FROM ? EVALUATIONS : LATE_EVALUATIONS;
    double found[WG_TUNING_QUANTITIES_MAX][PARAMETERS_MAX] = {{0}};

    for (size_t q = 0; q < cbo->surrogate.quantity_count; q++) {
        struct wg_gp *gp = &cbo->surrogate.quantities[q].gp;
        struct fit fit = {.gp = gp, .log_noise = log(view->noise)};

        for (size_t i = 0; i < axes + 2; i++)
            found[q][i] = cbo->best[q][i];
        const enum wg_code code =
            gp->count > 1 ? maximise(&fit, found[q], evaluations, err) : WG_OK;
        if (code != WG_OK)
            return code;
        (void)fit_with(gp, found[q]);
    }
    /* Only now: a decision that failed must not bend the next one. */
    for (size_t q = 0; q < cbo->surrogate.quantity_count; q++)
        for (size_t i = 0; i < axes + 2; i++)
            cbo->best[q][i] = found[q][i];
    return WG_OK;
}

/* -- What was tried --------------------------------------------------------------------------- */

struct tried {
    size_t incumbent, second; /* certified ones by rising posterior mean; count: none */
    double incumbent_mean, second_mean;
    size_t likeliest; /* to be within the limits; a measured one before a cut one */
    double log_feasible;
    bool is_likeliest_measured;
};

static bool is_certified(const struct wg_tuning_surrogate *surrogate,
                         const struct wg_tuning_block *block, size_t at)
{
    for (size_t q = 1; q < surrogate->quantity_count; q++)
        if (!(block->mean[q][at] + kappa * block->sd[q][at] <= surrogate->quantities[q].bound))
            return false;
    return !isnan(block->mean[0][at]);
}

static void weigh_tried(const struct cbo *cbo, const struct wg_tuning_view *view,
                        const struct wg_tuning_block *block, size_t at, struct tried *tried)
{
    const size_t c = block->configurations[at], count = view->space->count;
    const double log_feasible = wg__tuning_log_feasible(&cbo->surrogate, block, at);
    const bool is_measured = view->measured[c] > 0;

    if (tried->likeliest == count || is_measured > tried->is_likeliest_measured ||
        (is_measured == tried->is_likeliest_measured && log_feasible > tried->log_feasible)) {
        tried->likeliest = c;
        tried->log_feasible = log_feasible;
        tried->is_likeliest_measured = is_measured;
    }
    if (!is_measured || !is_certified(&cbo->surrogate, block, at))
        return;
    const double mean = block->mean[0][at];
    if (tried->incumbent == count || mean < tried->incumbent_mean) {
        tried->second = tried->incumbent;
        tried->second_mean = tried->incumbent_mean;
        tried->incumbent = c;
        tried->incumbent_mean = mean;
    } else if (tried->second == count || mean < tried->second_mean) {
        tried->second = c;
        tried->second_mean = mean;
    }
}

static bool was_tried(const void *context, const struct wg_tuning_view *view, size_t configuration)
{
    (void)context;
    return view->is_tried[configuration] && !view->is_banned[configuration];
}

static struct tried look_back(struct cbo *cbo, const struct wg_tuning_view *view)
{
    const size_t count = view->space->count;
    struct tried tried = {.incumbent = count, .second = count, .likeliest = count};
    struct wg_tuning_block block = {.count = 0};

    while (wg__tuning_surrogate_walk(&cbo->surrogate, view, was_tried, NULL, &block))
        for (size_t i = 0; i < block.count; i++)
            weigh_tried(cbo, view, &block, i, &tried);
    return tried;
}

/* -- What to try ------------------------------------------------------------------------------ */

struct look {
    size_t next, ties; /* of the largest score, less what a switch costs */
    double next_score, largest;
};

static void weigh_open(const struct cbo *cbo, const struct wg_tuning_view *view,
                       const struct wg_tuning_block *block, size_t at, double incumbent,
                       struct look *look)
{
    const size_t c = block->configurations[at];
    double score =
        wg__tuning_log_feasible(&cbo->surrogate, block, at) + wg__tuning_log_survival(view, c);

    if (!isnan(incumbent)) {
        const double sd = block->sd[0][at];

        score += log(sd) + wg__log_expected_improvement((incumbent - block->mean[0][at]) / sd);
    }
    look->largest = look->ties == 0 ? score : fmax(look->largest, score);
    score -= wg__tuning_switch_penalty(view, c);
    if (look->ties > 0 && score < look->next_score)
        return;
    look->ties = look->ties > 0 && !(score > look->next_score) ? look->ties + 1 : 1;
    if (look->ties == 1 || wg__rng_below(view->rng, (uint32_t)look->ties) == 0)
        look->next = c;
    look->next_score = score;
}

static bool is_open(const void *context, const struct wg_tuning_view *view, size_t configuration)
{
    (void)context;
    return !view->is_tried[configuration] && !view->is_banned[configuration];
}

static struct look look_ahead(struct cbo *cbo, const struct wg_tuning_view *view, double incumbent)
{
    struct look look = {.next = view->space->count};
    struct wg_tuning_block block = {.count = 0};

    while (wg__tuning_surrogate_walk(&cbo->surrogate, view, is_open, NULL, &block))
        for (size_t i = 0; i < block.count; i++)
            weigh_open(cbo, view, &block, i, incumbent, &look);
    return look;
}

/* The open configuration nearest to the middle of the only knob's axis; of two equally near ones
 * either. */
static size_t middle_of(const struct cbo *cbo, const struct wg_tuning_view *view)
{
    static const double tolerance = 1e-9; /* of what rounding makes of equal distances */
    size_t nearest = view->space->count;
    double least = 1;
    uint32_t ties = 0;

    for (size_t c = 0; c < view->space->count; c++) {
        const double distance =
            fabs(cbo->surrogate.axis[0][wg__tuning_level(view->space, c, 0)] - 0.5);

        if (view->is_tried[c] || view->is_banned[c] || distance > least + tolerance)
            continue;
        ties = distance < least - tolerance ? 1 : ties + 1;
        if (ties == 1 || wg__rng_below(view->rng, ties) == 0)
            nearest = c;
        least = fmin(least, distance);
    }
    return nearest;
}

static void explain(const struct look *look, const struct wg_tuning_view *view,
                    const struct tried *tried, struct wg_tuning_choice *out)
{
    const double share = view->stop_share > 0 ? view->stop_share : stop_share_default;

    if (out->next == view->space->count)
        return;
    if (tried->incumbent == view->space->count) {
        out->reason = WG_TUNER_FEASIBLE;
        (void)snprintf(out->why, sizeof out->why,
                       "nothing is known to be within the limits: this with probability %.2g",
                       exp(look->largest));
        return;
    }
    out->reason = WG_TUNER_SAVING;
    out->expected_saving = exp(look->largest);
    out->should_stop = view->trial_count >= STOP_FROM && out->expected_saving < share;
    (void)snprintf(out->why, sizeof out->why, "an expected saving of %.2g %% within the limits",
                   100 * out->expected_saving);
}

static enum wg_code decide(void *state, const struct wg_tuning_view *view,
                           struct wg_tuning_choice *out, struct wg_error *err)
{
    const struct wg_tuning_gathering how = {.use_logs = true, .use_errors = true};
    struct cbo *cbo = state;
    enum wg_code code = wg__tuning_surrogate_gather(&cbo->surrogate, view, &how, err);

    if (code == WG_OK)
        code = fit_all(cbo, view, err);
    if (code != WG_OK)
        return code;
    cbo->is_ready = true;
    const size_t count = view->space->count;
    const struct tried tried = look_back(cbo, view);
    const bool is_known = tried.incumbent < count;
    const struct look look = look_ahead(cbo, view, is_known ? tried.incumbent_mean : (double)NAN);

    out->returned = is_known ? tried.incumbent : tried.likeliest;
    out->is_feasible = is_known;
    out->runner_up = tried.second;
    out->next = look.next;
    explain(&look, view, &tried, out);
    if (view->space->knob_count == 1 && view->trial_count == 1 && look.next < count) {
        out->next = middle_of(cbo, view);
        out->reason = WG_TUNER_START;
        (void)snprintf(out->why, sizeof out->why, "the middle of the only knob");
    }
    return WG_OK;
}

static bool forecast(void *state, const struct wg_tuning_view *view, size_t configuration,
                     struct wg_tuning_forecast *out)
{
    struct cbo *cbo = state;

    (void)view;
    return cbo->is_ready && wg__tuning_surrogate_forecast(&cbo->surrogate, configuration, out);
}

const struct wg_tuning_policy_ops wg__tuning_policy_cbo = {.default_first = true,
                                                           .prunes = true,
                                                           .create = create,
                                                           .destroy = destroy,
                                                           .decide = decide,
                                                           .forecast = forecast};
