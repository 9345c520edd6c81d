/* SPDX-License-Identifier: MIT
 *
 * Joining what is the same: each trial costs one walk over all configurations.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "optimize/tuning_slack.h"

#include "base/alloc.h"

enum wg_code wg__tuning_slack_init(struct wg_tuning_slack *slack,
                                   const struct wg_tuning_space *space, struct wg_error *err)
{
    *slack = (struct wg_tuning_slack){.space = space};
    slack->same_as = wg__alloc_zeroed(space->count, sizeof *slack->same_as);
    if (slack->same_as == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu configurations", space->count);
    for (size_t c = 0; c < space->count; c++)
        slack->same_as[c] = (uint32_t)c;
    return WG_OK;
}

void wg__tuning_slack_fini(struct wg_tuning_slack *slack)
{
    wg__free(slack->same_as);
    *slack = (struct wg_tuning_slack){0};
}

size_t wg__tuning_same(const struct wg_tuning_slack *slack, size_t configuration)
{
    while (slack->same_as[configuration] != configuration)
        configuration = slack->same_as[configuration];
    return configuration;
}

bool wg__tuning_is_slack(const struct wg_tuning_space *space, const struct wg_trial *trial,
                         size_t configuration)
{
    if (wg__tuning_value(space, configuration, trial->slack_knob) < trial->slack_level)
        return false;
    for (size_t k = 0; k < space->knob_count; k++)
        if (k != trial->slack_knob && wg__tuning_level(space, configuration, k) !=
                                          wg__tuning_level(space, trial->configuration, k))
            return false;
    return true;
}

/* Where a configuration was told first; `count`: never. */
static size_t first_told(const struct wg_trial *trials, size_t count, size_t configuration)
{
    size_t i = 0;

    while (i < count && trials[i].configuration != configuration)
        i++;
    return i;
}

/* Who stands for all of them; space->count: nobody can. */
static size_t choose(const struct wg_tuning_slack *slack, const struct wg_trial *trial,
                     const struct wg_tuning_bans *bans, const struct wg_trial *trials,
                     size_t trial_count, const uint8_t *measured)
{
    const struct wg_tuning_space *space = slack->space;
    size_t chosen = space->count, earliest = trial_count;

    for (size_t c = 0; c < space->count; c++) {
        if (!wg__tuning_is_slack(space, trial, c))
            continue;
        const size_t same = wg__tuning_same(slack, c);
        if (measured[same] == 0 || bans->is_banned[same])
            continue;
        if (same == space->default_configuration)
            return same;
        const size_t told = first_told(trials, trial_count, same);
        if (told < earliest) {
            earliest = told;
            chosen = same;
        }
    }
    return chosen;
}

static void join(struct wg_tuning_slack *slack, size_t from, size_t to, struct wg_tuning_bans *bans,
                 struct wg_trial *trials, size_t trial_count, uint8_t *measured)
{
    const unsigned sum = (unsigned)measured[to] + measured[from];

    slack->same_as[from] = (uint32_t)to;
    measured[to] = (uint8_t)(sum < UINT8_MAX ? sum : UINT8_MAX);
    wg__tuning_ban(bans, from);
    for (size_t i = 0; i < trial_count; i++)
        if (trials[i].configuration == from)
            trials[i].configuration = to;
}

void wg__tuning_slack_take(struct wg_tuning_slack *slack, const struct wg_trial *trial,
                           struct wg_tuning_bans *bans, struct wg_trial *trials, size_t trial_count,
                           uint8_t *measured)
{
    const struct wg_tuning_space *space = slack->space;
    const size_t to = choose(slack, trial, bans, trials, trial_count, measured);

    if (to == space->count)
        return;
    for (size_t c = 0; c < space->count; c++) {
        if (!wg__tuning_is_slack(space, trial, c))
            continue;
        const size_t from = wg__tuning_same(slack, c);
        /* What was banned before, for a crash or a refusal, keeps its own reason. */
        if (from != to && !bans->is_banned[from])
            join(slack, from, to, bans, trials, trial_count, measured);
    }
}
