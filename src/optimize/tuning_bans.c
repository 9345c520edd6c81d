/* SPDX-License-Identifier: MIT
 *
 * Bans by comparing levels: each is one walk over all configurations, at most once a trial.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "optimize/tuning_bans.h"

#include <math.h>

#include "base/alloc.h"
#include "optimize/tuning_policy.h"

enum wg_code wg__tuning_bans_init(struct wg_tuning_bans *bans, const struct wg_tuning_space *space,
                                  struct wg_error *err)
{
    *bans = (struct wg_tuning_bans){.space = space};
    bans->is_banned = wg__alloc_zeroed(space->count, sizeof *bans->is_banned);
    bans->is_out = wg__alloc_zeroed(space->count, sizeof *bans->is_out);
    if (bans->is_banned != NULL && bans->is_out != NULL)
        return WG_OK;
    wg__tuning_bans_fini(bans);
    return wg__fail(err, WG_ENOMEM, "out of memory for the bans of %zu configurations",
                    space->count);
}

void wg__tuning_bans_fini(struct wg_tuning_bans *bans)
{
    wg__free(bans->is_banned);
    wg__free(bans->is_out);
    *bans = (struct wg_tuning_bans){0};
}

void wg__tuning_ban(struct wg_tuning_bans *bans, size_t configuration)
{
    bans->is_banned[configuration] = true;
    bans->is_out[configuration] = true;
}

/* How configuration `other` stands to `from`, in the knobs that `counts` marks: in none lower (or,
 * with `lower`, higher), in one at least different, and all the others equal. */
static bool goes_one_way(const struct wg_tuning_space *space, size_t from, size_t other,
                         const bool *counts, bool lower)
{
    bool differs = false;

    for (size_t k = 0; k < space->knob_count; k++) {
        const size_t a = wg__tuning_level(space, from, k), b = wg__tuning_level(space, other, k);

        if (a == b)
            continue;
        if (!counts[k] || (b < a) != lower)
            return false;
        differs = true;
    }
    return differs;
}

void wg__tuning_ban_memory(struct wg_tuning_bans *bans, size_t configuration,
                           const uint8_t *measured)
{
    const struct wg_tuning_space *space = bans->space;
    bool counts[WG_TUNING_KNOBS_MAX];

    for (size_t k = 0; k < space->knob_count; k++) {
        const enum wg_tuning_role role = space->knobs[k].role;

        counts[k] =
            role == WG_TUNING_BATCH || role == WG_TUNING_TRAIN_BATCH || role == WG_TUNING_REPLICAS;
    }
    wg__tuning_ban(bans, configuration);
    for (size_t c = 0; c < space->count; c++)
        if (measured[c] == 0 && goes_one_way(space, configuration, c, counts, false))
            wg__tuning_ban(bans, c);
}

void wg__tuning_ban_level(struct wg_tuning_bans *bans, size_t knob, size_t level)
{
    for (size_t c = 0; c < bans->space->count; c++)
        if (wg__tuning_level(bans->space, c, knob) == level)
            wg__tuning_ban(bans, c);
}

bool wg__tuning_same_group(const struct wg_tuning_space *space, size_t a, size_t b)
{
    for (size_t k = 0; k < space->knob_count; k++) {
        const struct wg_tuning_knob *knob = &space->knobs[k];
        const bool is_dear = knob->role == WG_TUNING_CATEGORY || knob->role == WG_TUNING_SPLIT ||
                             knob->switch_s >= (double)WG_TUNING_DEAR_SWITCH_S;

        if (is_dear && wg__tuning_level(space, a, k) != wg__tuning_level(space, b, k))
            return false;
    }
    return true;
}

void wg__tuning_ban_group(struct wg_tuning_bans *bans, size_t configuration,
                          const uint8_t *measured)
{
    const struct wg_tuning_space *space = bans->space;
    bool is_another_left = false;

    for (size_t c = 0; c < space->count && !is_another_left; c++)
        is_another_left = !bans->is_banned[c] && !wg__tuning_same_group(space, configuration, c);
    if (!is_another_left)
        return;
    for (size_t c = 0; c < space->count; c++)
        if (measured[c] == 0 && wg__tuning_same_group(space, configuration, c))
            wg__tuning_ban(bans, c);
}

/* Whether one of the trial's latencies is over its limit by far. */
static bool is_far_over(const struct wg_tuning_goal *goal, const struct wg_trial *trial,
                        double noise)
{
    for (size_t i = 0; i < goal->limit_count; i++) {
        const struct wg_tuning_limit *limit = &goal->limits[i];
        const double error = wg__trial_error(trial, i + 1, noise);

        /* A figure that is unknown compares false. */
        if (limit->kind == WG_TUNING_TIME && !limit->is_minimum &&
            trial->figures[i] > limit->bound * WG_TUNING_FAR * (1 + 3 * error))
            return true;
    }
    return false;
}

void wg__tuning_rule_out_slower(struct wg_tuning_bans *bans, const struct wg_tuning_goal *goal,
                                const struct wg_trial *trial, double noise, const uint8_t *measured)
{
    const struct wg_tuning_space *space = bans->space;
    bool counts[WG_TUNING_KNOBS_MAX];

    if (!is_far_over(goal, trial, noise))
        return;
    for (size_t k = 0; k < space->knob_count; k++) {
        const enum wg_tuning_role role = space->knobs[k].role;

        counts[k] = role == WG_TUNING_GPU_CLOCK || role == WG_TUNING_CPU_CLOCK ||
                    role == WG_TUNING_POWER_LIMIT;
    }
    for (size_t c = 0; c < space->count; c++)
        if (measured[c] == 0 && goes_one_way(space, trial->configuration, c, counts, true))
            bans->is_out[c] = true;
}
