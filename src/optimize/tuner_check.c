/* SPDX-License-Identifier: MIT
 *
 * Whether what a tuner is given can be: a message for each thing that cannot.
 *
 * Threads: pure.
 */
#include "optimize/tuner_check.h"

#include <math.h>

static enum wg_code check_goal(const struct wg_tuning_goal *goal, struct wg_error *err)
{
    if ((unsigned)goal->objective > WG_TUNING_OTHER)
        return wg__fail(err, WG_EINVAL, "objective kind %u is unknown", (unsigned)goal->objective);
    if (goal->limit_count > WG_TUNING_LIMITS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu limits: at most %d can be held", goal->limit_count,
                        WG_TUNING_LIMITS_MAX);
    for (size_t i = 0; i < goal->limit_count; i++) {
        const struct wg_tuning_limit *limit = &goal->limits[i];

        if (limit->name == NULL || *limit->name == '\0')
            return wg__fail(err, WG_EINVAL, "limit %zu has no name", i + 1);
        if ((unsigned)limit->kind > WG_TUNING_OTHER)
            return wg__fail(err, WG_EINVAL, "limit '%s' has the unknown kind %u", limit->name,
                            (unsigned)limit->kind);
        if (!(isfinite(limit->bound) && limit->bound > 0))
            return wg__fail(err, WG_EINVAL, "the bound of limit '%s' is %g, not above 0",
                            limit->name, limit->bound);
    }
    return WG_OK;
}

enum wg_code wg__tuner_check_config(const struct wg_tuner_config *config, struct wg_error *err)
{
    if (config->space == NULL)
        return wg__fail(err, WG_EINVAL, "a tuner needs a space");
    if ((unsigned)config->policy >= WG_TUNER_POLICY_COUNT)
        return wg__fail(err, WG_EINVAL, "tuning policy %u is unknown", (unsigned)config->policy);
    if (!(isfinite(config->noise) && config->noise >= 0))
        return wg__fail(err, WG_EINVAL, "a relative standard error of %g: at least 0 is needed",
                        config->noise);
    if (!(config->stop_share >= 0 && config->stop_share < 1))
        return wg__fail(err, WG_EINVAL, "a saving of %g to stop at: it must be in 0..1",
                        config->stop_share);
    if (!(isfinite(config->trial_s) && config->trial_s >= 0))
        return wg__fail(err, WG_EINVAL, "a trial of %g s: at least 0 is needed", config->trial_s);
    if (!isnan(config->xi) && !(isfinite(config->xi) && config->xi >= 0))
        return wg__fail(err, WG_EINVAL, "xi is %g: at least 0 is needed", config->xi);
    if (!(isfinite(config->default_objective) && config->default_objective >= 0))
        return wg__fail(err, WG_EINVAL, "the default's objective is %g, not above 0",
                        config->default_objective);
    return check_goal(&config->goal, err);
}

static enum wg_code check_errors(const struct wg_tuner_config *config, const struct wg_trial *trial,
                                 struct wg_error *err)
{
    bool is_bad = !(isfinite(trial->objective_error) && trial->objective_error >= 0);

    for (size_t i = 0; i < config->goal.limit_count; i++)
        is_bad = is_bad || !(isfinite(trial->figure_errors[i]) && trial->figure_errors[i] >= 0);
    if (is_bad)
        return wg__fail(err, WG_EINVAL, "a relative standard error is not a number of at least 0");
    return WG_OK;
}

static enum wg_code check_figures(const struct wg_tuner_config *config,
                                  const struct wg_trial *trial, struct wg_error *err)
{
    const struct wg_tuning_goal *goal = &config->goal;
    const bool may_miss = trial->outcome == WG_TRIAL_CUT;

    if (!(may_miss && isnan(trial->objective)) &&
        !(isfinite(trial->objective) && trial->objective > 0))
        return wg__fail(err, WG_EINVAL, "the objective is %g, not above 0", trial->objective);
    for (size_t i = 0; i < goal->limit_count; i++) {
        const double figure = trial->figures[i];

        if (may_miss && isnan(figure))
            continue;
        if (!isfinite(figure) || (goal->limits[i].kind != WG_TUNING_OTHER && !(figure > 0)))
            return wg__fail(err, WG_EINVAL, "%s is %g, which cannot be", goal->limits[i].name,
                            figure);
    }
    return check_errors(config, trial, err);
}

static enum wg_code check_slack(const struct wg_tuning_space *space, const struct wg_trial *trial,
                                struct wg_error *err)
{
    if (!trial->is_slack)
        return WG_OK;
    if (trial->slack_knob >= space->knob_count ||
        space->knobs[trial->slack_knob].role == WG_TUNING_CATEGORY)
        return wg__fail(err, WG_EINVAL, "the slack knob %zu is none of the %zu that have an order",
                        trial->slack_knob, space->knob_count);
    const double own = wg__tuning_value(space, trial->configuration, trial->slack_knob);
    if (!(trial->slack_level <= own))
        return wg__fail(err, WG_EINVAL, "%s is said not to bind from %g on, but was %g",
                        space->knobs[trial->slack_knob].name, trial->slack_level, own);
    return WG_OK;
}

enum wg_code wg__tuner_check_trial(const struct wg_tuner_config *config,
                                   const struct wg_trial *trial, struct wg_error *err)
{
    const struct wg_tuning_space *space = config->space;

    if (trial->configuration >= space->count)
        return wg__fail(err, WG_EINVAL, "configuration %zu is none of the %zu",
                        trial->configuration, space->count);
    if ((unsigned)trial->outcome >= WG_TRIAL_OUTCOME_COUNT)
        return wg__fail(err, WG_EINVAL, "trial outcome %u is unknown", (unsigned)trial->outcome);
    if (trial->outcome == WG_TRIAL_REFUSED && trial->refused_knob >= space->knob_count)
        return wg__fail(err, WG_EINVAL, "the refused knob %zu is none of the %zu",
                        trial->refused_knob, space->knob_count);
    if (trial->outcome != WG_TRIAL_MEASURED && trial->outcome != WG_TRIAL_CUT)
        return WG_OK;
    const enum wg_code code = check_figures(config, trial, err);
    return code == WG_OK && trial->outcome == WG_TRIAL_MEASURED ? check_slack(space, trial, err)
                                                                : code;
}
