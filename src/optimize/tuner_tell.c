/* SPDX-License-Identifier: MIT
 *
 * What a trial that was told changes: figures are kept, failures ban what they imply, a sample that
 * was thrown away is asked for again. The rules are tuner.h's.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "base/alloc.h"
#include "optimize/tuner_parts.h"

static bool reserve_trials(struct wg_trial **trials, size_t count, size_t *capacity)
{
    if (count < *capacity)
        return true;
    const size_t wanted = 2 * *capacity + 32;
    struct wg_trial *grown = wg__realloc_array(*trials, wanted, sizeof *grown);
    if (grown == NULL)
        return false;
    *trials = grown;
    *capacity = wanted;
    return true;
}

/* Room for one more of each, before anything changes. */
static enum wg_code reserve(struct wg_tuner *tuner, struct wg_error *err)
{
    if (reserve_trials(&tuner->trials, tuner->trial_count, &tuner->trial_capacity) &&
        reserve_trials(&tuner->failures, tuner->failed, &tuner->failure_capacity))
        return WG_OK;
    return wg__fail(err, WG_ENOMEM, "out of memory for the trials");
}

static void count_validation(struct wg_tuner *tuner, size_t configuration)
{
    const bool was_asked =
        tuner->question.kind == WG_TUNER_MEASURE && tuner->question.configuration == configuration;

    if (was_asked && tuner->question.reason == WG_TUNER_VALIDATE) {
        tuner->validations++;
        tuner->validated = configuration;
    }
}

static void take_figures(struct wg_tuner *tuner, const struct wg_trial *trial)
{
    const size_t c = wg__tuning_same(&tuner->slack, trial->configuration);

    count_validation(tuner, c);
    tuner->trials[tuner->trial_count] = *trial;
    tuner->trials[tuner->trial_count++].configuration = c;
    tuner->is_tried[c] = true;
    tuner->present = trial->configuration;
    if (trial->outcome == WG_TRIAL_MEASURED && tuner->measured[c] < UINT8_MAX)
        tuner->measured[c]++;
    if (trial->outcome == WG_TRIAL_MEASURED && trial->is_slack)
        wg__tuning_slack_take(&tuner->slack, trial, &tuner->bans, tuner->trials, tuner->trial_count,
                              tuner->measured);
    if (tuner->validated < tuner->config.space->count)
        tuner->validated = wg__tuning_same(&tuner->slack, tuner->validated);
    wg__tuning_rule_out_slower(&tuner->bans, &tuner->config.goal, trial, tuner->config.noise,
                               tuner->measured);
}

/* Whether the group crashed twice, and more often than it worked. */
static bool is_group_broken(const struct wg_tuner *tuner, size_t configuration)
{
    const struct wg_tuning_space *space = tuner->config.space;
    size_t crashed = 0, worked = 0;

    for (size_t i = 0; i < tuner->failed; i++)
        crashed += tuner->failures[i].outcome != WG_TRIAL_OUT_OF_MEMORY &&
                   wg__tuning_same_group(space, tuner->failures[i].configuration, configuration);
    for (size_t i = 0; i < tuner->trial_count; i++)
        worked += wg__tuning_same_group(space, tuner->trials[i].configuration, configuration);
    return crashed >= 2 && crashed > worked;
}

/* All else is compared with the default, and most crash by accident, a server that was just
 * starting say: it has a second try. What is out of memory will be so again. */
static bool deserves_another(const struct wg_tuner *tuner, size_t configuration,
                             enum wg_trial_outcome outcome)
{
    if (!wg__tuner_wants_default(tuner) || outcome == WG_TRIAL_OUT_OF_MEMORY ||
        configuration != tuner->config.space->default_configuration ||
        tuner->is_tried[configuration] || tuner->discards[configuration] > 0)
        return false;
    for (size_t i = 0; i < tuner->failed; i++)
        if (tuner->failures[i].configuration == configuration)
            return false;
    return true;
}

static void take_failure(struct wg_tuner *tuner, const struct wg_trial *trial,
                         enum wg_trial_outcome outcome)
{
    const size_t c = trial->configuration;

    count_validation(tuner, c);
    if (deserves_another(tuner, c, outcome))
        tuner->again = c;
    tuner->failures[tuner->failed] = *trial;
    tuner->failures[tuner->failed++].outcome = outcome;
    tuner->present = tuner->config.space->count; /* it starts anew with who knows what */
    if (outcome == WG_TRIAL_OUT_OF_MEMORY) {
        wg__tuning_ban_memory(&tuner->bans, c, tuner->measured);
        return;
    }
    if (tuner->again != c)
        wg__tuning_ban(&tuner->bans, c);
    if (is_group_broken(tuner, c))
        wg__tuning_ban_group(&tuner->bans, c, tuner->measured);
}

static void take(struct wg_tuner *tuner, const struct wg_trial *trial)
{
    const size_t c = trial->configuration;

    tuner->again = tuner->config.space->count;
    switch (trial->outcome) {
    case WG_TRIAL_MEASURED:
    case WG_TRIAL_CUT:
        take_figures(tuner, trial);
        break;
    case WG_TRIAL_CRASHED:
    case WG_TRIAL_HUNG:
    case WG_TRIAL_OUT_OF_MEMORY:
        take_failure(tuner, trial, trial->outcome);
        break;
    case WG_TRIAL_REFUSED:
        wg__tuning_ban_level(&tuner->bans, trial->refused_knob,
                             wg__tuning_level(tuner->config.space, c, trial->refused_knob));
        break;
    case WG_TRIAL_DISCARDED:
        if (tuner->discards[c] == WG_TUNER_DISCARDS_MAX) {
            take_failure(tuner, trial, WG_TRIAL_CRASHED);
        } else {
            tuner->discards[c]++;
            tuner->again = c;
        }
        break;
    case WG_TRIAL_OUTCOME_COUNT:
        break;
    }
}

enum wg_code wg__tuner_remember(struct wg_tuner *tuner, const struct wg_trial *trial,
                                struct wg_error *err)
{
    const enum wg_code code = reserve(tuner, err);

    if (code != WG_OK)
        return code;
    take(tuner, trial);
    tuner->tells++;
    tuner->has_plan = false;
    return WG_OK;
}
