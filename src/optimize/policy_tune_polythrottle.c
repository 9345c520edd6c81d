/* SPDX-License-Identifier: MIT
 *
 * The published method: PolyThrottle's constrained Bayesian optimisation (arXiv 2310.19991, 5.1).
 *
 * Five random configurations, then the largest PF(x) EI(x) with xi = 0.1 (Gardner et al., ICML'14).
 * What the paper leaves open is read so: knobs linear in 0..1; figures as they are, standardised by
 * the mean and deviation of what was observed; independent processes with an isotropic Matern-5/2
 * of variance 1, noise variance 1e-6 and the length of the largest likelihood; the incumbent is the
 * cheapest observation within the limits; with none the largest PF alone. xi is a saving in units
 * of the default's cost: as a bare number it would mean something else in joules than in
 * millijoules. Products underflow to 0 far out, and ties are broken at random, as a plain program
 * does. The paper has no stopping rule; here it stops after six trials once the largest PF EI (xi
 * 0) is below a share of the incumbent.
 *
 * The paper tunes the CPU clock apart, first, which is an option: while a configuration is left
 * that differs from the default in that clock alone, and the rule does not fire, the search stays
 * on that line; then on the plane of the best level found.
 *
 * Owns: its processes.    Threads: as the tuner.
 */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "optimize/tuning_surrogate.h"

enum { START = 5, STOP_FROM = 6, LENGTHS = 14, NO_LEVEL = WG_TUNING_LEVELS_MAX };
static const double xi_paper = 0.1, noise_variance = 1e-6, stop_share_default = 0.003;
static const double length_first = 0.05, length_ratio = 1.4;

struct polythrottle {
    struct wg_tuning_surrogate surrogate;
    bool *counts; /* which trials the processes see */
    size_t counts_capacity;
    size_t cpu_knob;  /* tuned apart; knob_count: none */
    size_t cpu_level; /* fixed by the first phase; NO_LEVEL: it goes on */
    bool is_ready;    /* the surrogates are fitted */
};

/* What one look over the open configurations finds. */
struct look {
    size_t open;
    size_t best, ties; /* of the largest score */
    double best_score;
    double largest_gain; /* PF EI with xi = 0 */
};

static void destroy(void *state)
{
    struct polythrottle *poly = state;

    if (poly == NULL)
        return;
    wg__tuning_surrogate_fini(&poly->surrogate);
    wg__free(poly->counts);
    wg__free(poly);
}

static enum wg_code create(void **out, const struct wg_tuning_view *view, struct wg_error *err)
{
    static const bool is_log[WG_TUNING_KNOBS_MAX] = {false};
    struct polythrottle *poly = wg__alloc_zeroed(1, sizeof *poly);

    if (poly == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for the policy");
    const enum wg_code code = wg__tuning_surrogate_init(&poly->surrogate, view, is_log, err);
    if (code != WG_OK) {
        wg__free(poly);
        return code;
    }
    poly->cpu_knob = view->space->knob_count;
    poly->cpu_level = NO_LEVEL;
    for (size_t k = view->space->knob_count; view->cpu_apart && k-- > 0;)
        if (view->space->knobs[k].role == WG_TUNING_CPU_CLOCK)
            poly->cpu_knob = k;
    *out = poly;
    return WG_OK;
}

/* -- The two phases --------------------------------------------------------------------------- */

/* Whether a configuration is on the line of the first phase. */
static bool is_on_line(const struct polythrottle *poly, const struct wg_tuning_space *space,
                       size_t configuration)
{
    for (size_t k = 0; k < space->knob_count; k++)
        if (k != poly->cpu_knob &&
            wg__tuning_level(space, configuration, k) != space->knobs[k].default_level)
            return false;
    return true;
}

static bool is_in_scope(const struct polythrottle *poly, const struct wg_tuning_space *space,
                        size_t configuration)
{
    if (poly->cpu_knob >= space->knob_count)
        return true;
    if (poly->cpu_level == NO_LEVEL)
        return is_on_line(poly, space, configuration);
    return wg__tuning_level(space, configuration, poly->cpu_knob) == poly->cpu_level;
}

static bool is_open(const void *state, const struct wg_tuning_view *view, size_t configuration)
{
    const struct polythrottle *poly = state;

    return !view->is_tried[configuration] && !view->is_banned[configuration] &&
           is_in_scope(poly, view->space, configuration);
}

/* Marks the trials in scope, and counts those that this phase made: of the second one the trials
 * off the line. */
static enum wg_code mark_trials(struct polythrottle *poly, const struct wg_tuning_view *view,
                                size_t *made_out, struct wg_error *err)
{
    if (view->trial_count > poly->counts_capacity) {
        bool *grown = wg__realloc_array(poly->counts, 2 * view->trial_count, sizeof *grown);

        if (grown == NULL)
            return wg__fail(err, WG_ENOMEM, "out of memory for %zu trials", view->trial_count);
        poly->counts = grown;
        poly->counts_capacity = 2 * view->trial_count;
    }
    *made_out = 0;
    for (size_t i = 0; i < view->trial_count; i++) {
        const size_t c = view->trials[i].configuration;

        poly->counts[i] = is_in_scope(poly, view->space, c);
        *made_out +=
            poly->counts[i] && (poly->cpu_level == NO_LEVEL || !is_on_line(poly, view->space, c));
    }
    return WG_OK;
}

/* Ends the first phase: keeps the level of the best trial on the line. */
static void fix_cpu(struct polythrottle *poly, const struct wg_tuning_view *view)
{
    const struct wg_tuning_space *space = view->space;
    const struct wg_trial *best = NULL;
    double best_excess = 0;

    for (size_t i = 0; i < view->trial_count; i++) {
        const struct wg_trial *trial = &view->trials[i];
        const double excess = fmax(wg__tuning_excess(view->goal, trial), 0);

        if (!poly->counts[i] || trial->outcome != WG_TRIAL_MEASURED ||
            view->is_banned[trial->configuration])
            continue;
        if (best == NULL || excess < best_excess ||
            (!(excess > best_excess) && trial->objective < best->objective)) {
            best = trial;
            best_excess = excess;
        }
    }
    poly->cpu_level = best != NULL ? wg__tuning_level(space, best->configuration, poly->cpu_knob)
                                   : space->knobs[poly->cpu_knob].default_level;
}

/* -- Searching -------------------------------------------------------------------------------- */

/* The length scale of the largest likelihood on a grid. */
static void fit(struct wg_tuning_quantity *quantity)
{
    struct wg_gp_kernel kernel = {.amplitude = 1}, best = {.amplitude = 1};
    double best_likelihood = -(double)INFINITY, length = length_first;

    for (size_t i = 0; i < LENGTHS; i++) {
        for (size_t d = 0; d < quantity->gp.axes; d++)
            kernel.length[d] = length;
        const double likelihood = wg__gp_fit(&quantity->gp, &kernel, noise_variance);
        if (i == 0 || likelihood > best_likelihood) {
            best = kernel;
            best_likelihood = likelihood;
        }
        length *= length_ratio;
    }
    (void)wg__gp_fit(&quantity->gp, &best, noise_variance);
}

/* The least objective seen within the limits and in scope; NAN: none. */
static double incumbent_of(const struct polythrottle *poly, const struct wg_tuning_view *view)
{
    double best = (double)NAN;

    for (size_t i = 0; i < view->trial_count; i++) {
        const struct wg_trial *trial = &view->trials[i];

        if (poly->counts[i] && trial->outcome == WG_TRIAL_MEASURED &&
            !view->is_banned[trial->configuration] && wg__tuning_excess(view->goal, trial) <= 0)
            best = fmin(trial->objective, best); /* a NAN loses */
    }
    return best;
}

/* xi in the units of the objective. */
static double xi_of(const struct polythrottle *poly, const struct wg_tuning_view *view)
{
    const double xi = isnan(view->xi) ? xi_paper : view->xi;

    return xi * (view->default_objective > 0 ? view->default_objective
                                             : poly->surrogate.quantities[0].offset);
}

static void keep(struct look *look, size_t configuration, double score, struct wg_rng *rng)
{
    if (look->open > 1 && score < look->best_score)
        return;
    look->ties = look->open > 1 && !(score > look->best_score) ? look->ties + 1 : 1;
    if (look->ties == 1 || wg__rng_below(rng, (uint32_t)look->ties) == 0)
        look->best = configuration;
    look->best_score = score;
}

static void score_block(const struct polythrottle *poly, const struct wg_tuning_view *view,
                        const struct wg_tuning_block *block, double incumbent, struct look *look)
{
    const double xi = xi_of(poly, view);

    for (size_t i = 0; i < block->count; i++) {
        const double feasible = exp(wg__tuning_log_feasible(&poly->surrogate, block, i));
        const double sd = block->sd[0][i], room = incumbent - block->mean[0][i];
        double score = feasible;

        if (!isnan(room)) {
            score *= sd * exp(wg__log_expected_improvement((room - xi) / sd));
            look->largest_gain = fmax(look->largest_gain,
                                      feasible * sd * exp(wg__log_expected_improvement(room / sd)));
        }
        look->open++;
        keep(look, block->configurations[i], score, view->rng);
    }
}

/* Looks at all open configurations with the fitted processes. */
static void look_around(struct polythrottle *poly, const struct wg_tuning_view *view,
                        double incumbent, struct look *look)
{
    struct wg_tuning_block block = {.count = 0};

    while (wg__tuning_surrogate_walk(&poly->surrogate, view, is_open, poly, &block))
        score_block(poly, view, &block, incumbent, look);
}

/* One of the open ones, blindly. */
static void start(const struct polythrottle *poly, const struct wg_tuning_view *view, size_t made,
                  struct wg_tuning_choice *out)
{
    struct look look = {0};

    for (size_t c = 0; c < view->space->count; c++)
        if (is_open(poly, view, c)) {
            look.open++;
            keep(&look, c, 0, view->rng);
        }
    if (look.open == 0)
        return;
    out->next = look.best;
    out->reason = WG_TUNER_START;
    (void)snprintf(out->why, sizeof out->why, "random start %zu of %d", made + 1, START);
}

static enum wg_code search(struct polythrottle *poly, const struct wg_tuning_view *view,
                           size_t made, struct wg_tuning_choice *out, struct wg_error *err)
{
    const struct wg_tuning_gathering how = {.by_deviation = true, .counts = poly->counts};
    struct look look = {0};
    const enum wg_code code = wg__tuning_surrogate_gather(&poly->surrogate, view, &how, err);
    if (code != WG_OK)
        return code;
    for (size_t q = 0; q < poly->surrogate.quantity_count; q++)
        fit(&poly->surrogate.quantities[q]);
    poly->is_ready = true;
    if (made < START) {
        start(poly, view, made, out);
        return WG_OK;
    }
    const double incumbent = incumbent_of(poly, view);
    const double share = view->stop_share > 0 ? view->stop_share : stop_share_default;
    look_around(poly, view, incumbent, &look);
    if (look.open == 0)
        return WG_OK;
    out->next = look.best;
    if (isnan(incumbent)) {
        out->reason = WG_TUNER_FEASIBLE;
        (void)snprintf(out->why, sizeof out->why,
                       "nothing within the limits yet: this with probability %.2g",
                       look.best_score);
        return WG_OK;
    }
    out->reason = WG_TUNER_SAVING;
    out->expected_saving = look.largest_gain / incumbent;
    out->should_stop = made >= STOP_FROM && out->expected_saving < share;
    (void)snprintf(out->why, sizeof out->why, "PF EI is largest here: %.3g of the best seen",
                   look.best_score / incumbent);
    return WG_OK;
}

static enum wg_code decide(void *state, const struct wg_tuning_view *view,
                           struct wg_tuning_choice *out, struct wg_error *err)
{
    struct polythrottle *poly = state;
    size_t made = 0;

    wg__tuning_best_seen(view, out);
    for (;;) {
        enum wg_code code = mark_trials(poly, view, &made, err);

        if (code == WG_OK)
            code = search(poly, view, made, out, err);
        if (code != WG_OK)
            return code;
        const bool is_first_phase =
            poly->cpu_knob < view->space->knob_count && poly->cpu_level == NO_LEVEL;
        if (!is_first_phase || (out->next < view->space->count && !out->should_stop))
            return WG_OK;
        fix_cpu(poly, view);
        out->next = view->space->count;
        out->should_stop = false;
        out->expected_saving = (double)NAN;
    }
}

static bool forecast(void *state, const struct wg_tuning_view *view, size_t configuration,
                     struct wg_tuning_forecast *out)
{
    struct polythrottle *poly = state;

    (void)view;
    return poly->is_ready && wg__tuning_surrogate_forecast(&poly->surrogate, configuration, out);
}

const struct wg_tuning_policy_ops wg__tuning_policy_polythrottle = {
    .create = create, .destroy = destroy, .decide = decide, .forecast = forecast};
