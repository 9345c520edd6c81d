/* SPDX-License-Identifier: MIT
 *
 * The best configuration by what was measured, taken at its word; and when that is no better than
 * the default.
 *
 * This is what the paper's method and blind search return. It chooses the luckiest measurement
 * among many, so it tends to return something a little worse, and a little more often over a limit,
 * than it looks; policies with a model return by their posterior instead.
 *
 * Threads: pure.
 */
#include <math.h>

#include "optimize/tuning_policy.h"

double wg__tuning_excess(const struct wg_tuning_goal *goal, const struct wg_trial *trial)
{
    double worst = -(double)INFINITY;

    for (size_t i = 0; i < goal->limit_count; i++) {
        const struct wg_tuning_limit *limit = &goal->limits[i];
        const double over = (trial->figures[i] - limit->bound) / limit->bound;

        worst = fmax(worst, isnan(over) ? 0 : limit->is_minimum ? -over : over);
    }
    return worst;
}

/* Whether trial `a` is the better one to return: measured before cut, within the limits before not,
 * then the cheaper, or the one that exceeds by less. */
static bool is_better(const struct wg_tuning_view *view, const struct wg_trial *a,
                      const struct wg_trial *b)
{
    const double over_a = wg__tuning_excess(view->goal, a);
    const double over_b = wg__tuning_excess(view->goal, b);

    if ((a->outcome == WG_TRIAL_MEASURED) != (b->outcome == WG_TRIAL_MEASURED))
        return a->outcome == WG_TRIAL_MEASURED;
    if ((over_a <= 0) != (over_b <= 0))
        return over_a <= 0;
    if (over_a <= 0 && a->outcome == WG_TRIAL_MEASURED)
        return a->objective < b->objective;
    return over_a < over_b;
}

/* The best trial of a configuration other than `but`; NULL: none. */
static const struct wg_trial *best_but(const struct wg_tuning_view *view, size_t but)
{
    const struct wg_trial *best = NULL;

    for (size_t i = 0; i < view->trial_count; i++) {
        const struct wg_trial *trial = &view->trials[i];

        if (trial->configuration == but || view->is_banned[trial->configuration])
            continue;
        if (best == NULL || is_better(view, trial, best))
            best = trial;
    }
    return best;
}

static bool is_within(const struct wg_tuning_view *view, const struct wg_trial *trial)
{
    return trial->outcome == WG_TRIAL_MEASURED && wg__tuning_excess(view->goal, trial) <= 0;
}

void wg__tuning_best_seen(const struct wg_tuning_view *view, struct wg_tuning_choice *choice)
{
    const struct wg_trial *best = best_but(view, view->space->count);

    choice->returned = choice->runner_up = view->space->count;
    choice->is_feasible = false;
    if (best == NULL)
        return;
    choice->returned = best->configuration;
    choice->is_feasible = is_within(view, best);
    const struct wg_trial *second = best_but(view, best->configuration);
    if (second != NULL && is_within(view, second))
        choice->runner_up = second->configuration;
}

/* Whether each limit is kept by two standard errors. */
static bool is_well_within(const struct wg_tuning_view *view, const struct wg_trial *trial)
{
    for (size_t i = 0; i < view->goal->limit_count; i++) {
        const struct wg_tuning_limit *limit = &view->goal->limits[i];
        const double room =
            2 * wg__trial_error(trial, i + 1, view->noise) * fabs(trial->figures[i]);
        const double slack = limit->bound - trial->figures[i];

        if (!((limit->is_minimum ? -slack : slack) >= room))
            return false;
    }
    return true;
}

/* The mean objective of a configuration's measured trials, and its relative standard error; 0: it
 * has none, or (`within`) one that is not well within the limits. */
static double mean_objective(const struct wg_tuning_view *view, size_t configuration, bool within,
                             double *error)
{
    double sum = 0, variance = 0, count = 0;

    for (size_t i = 0; i < view->trial_count; i++) {
        const struct wg_trial *trial = &view->trials[i];

        if (trial->configuration != configuration || trial->outcome != WG_TRIAL_MEASURED)
            continue;
        if (within && !is_well_within(view, trial))
            return 0;
        const double error_here = wg__trial_error(trial, 0, view->noise);
        sum += trial->objective;
        variance += error_here * error_here;
        count++;
    }
    *error = count > 0 ? sqrt(variance) / count : 0;
    return count > 0 ? sum / count : 0;
}

void wg__tuning_keep_default(const struct wg_tuning_view *view, struct wg_tuning_choice *choice)
{
    const size_t preset = view->space->default_configuration;
    double preset_error = 0, error = 0;

    if (choice->returned >= view->space->count || choice->returned == preset ||
        !choice->is_feasible || view->is_banned[preset])
        return;
    const double usual = mean_objective(view, preset, true, &preset_error);
    const double cost = mean_objective(view, choice->returned, false, &error);
    if (!(usual > 0 && cost > 0) || cost < usual * (1 - hypot(error, preset_error)))
        return;
    choice->runner_up = choice->returned;
    choice->returned = preset;
}
