/* SPDX-License-Identifier: MIT
 *
 * The whole state of the wattgov policy as bytes, so that a process need not rebuild it from ten
 * thousand recurrences.
 *
 * The bytes are the struct itself and the curves' prior (the one table that observations do not
 * give again), and mean something only to the program that wrote them: this is a cache. Indices are
 * checked before they are believed; what follows from the rest is computed anew.
 *
 * Threads: one at a time.
 */
#include <string.h>

#include "base/alloc.h"
#include "optimize/governor.h"

static size_t prior_size(const struct wg_governor *governor)
{
    return governor->model.hypothesis_count * sizeof *governor->model.log_prior;
}

/* What belongs to a policy and not to its state. */
static void take_pointers(struct wg_governor *state, const struct wg_governor *owner)
{
    state->base = owner->base;
    state->draws = owner->draws;
    state->model.shape = owner->model.shape;
    state->model.log_prior = owner->model.log_prior;
    state->model.weight = owner->model.weight;
    state->model.level_mean = owner->model.level_mean;
}

static void drop_pointers(struct wg_governor *state)
{
    state->base.ops = NULL;
    state->draws = NULL;
    state->model.shape = state->model.log_prior = NULL;
    state->model.weight = state->model.level_mean = NULL;
}

bool wg__governor_save(const struct wg_batch_policy *policy, struct wg_buffer *out)
{
    const struct wg_governor *governor = (const struct wg_governor *)policy;
    struct wg_governor *copy = wg__alloc(sizeof *copy);
    if (!copy)
        return false;
    *copy = *governor;
    drop_pointers(copy);
    wg__buffer_append(out, (const char *)copy, sizeof *copy);
    wg__buffer_append(out, (const char *)governor->model.log_prior, prior_size(governor));
    wg__free(copy);
    return !out->failed;
}

static bool is_sound_curve(const struct wg_learning_curve *curve)
{
    return curve->count <= WG_CURVE_POINTS_MAX;
}

static bool has_sound_counts(const struct wg_governor *kept, const struct wg_governor *owner)
{
    const size_t arms = owner->job.arm_count;
    return kept->job.arm_count == arms && kept->model.arm_count == arms &&
           kept->model.hypothesis_count == owner->model.hypothesis_count &&
           kept->observation_count <= WG_GOVERNOR_HISTORY_MAX && kept->incumbent < arms &&
           kept->in_flight <= WG_IN_FLIGHT_MAX && kept->curves.count <= WG_CURVES_MAX &&
           kept->curves.next < WG_CURVES_MAX && kept->version > 0 &&
           (arms == WG_ARMS_MAX || kept->survey_plan >> arms == 0);
}

static bool is_sound(const struct wg_governor *kept, const struct wg_governor *owner)
{
    const size_t arms = owner->job.arm_count;
    bool is_sound = has_sound_counts(kept, owner);
    for (size_t i = 0; is_sound && i < kept->observation_count; i++)
        is_sound = kept->observations[i].arm < arms;
    for (size_t i = 0; is_sound && i < WG_IN_FLIGHT_MAX; i++)
        is_sound = kept->flights[i].arm < arms && is_sound_curve(&kept->flights[i].curve);
    for (size_t i = 0; is_sound && i < WG_CURVES_MAX; i++)
        is_sound = is_sound_curve(&kept->curves.curves[i]);
    return is_sound;
}

bool wg__governor_load(struct wg_batch_policy *policy, const void *bytes, size_t length)
{
    struct wg_governor *governor = (struct wg_governor *)policy;
    if (length != sizeof *governor + prior_size(governor))
        return false;
    struct wg_governor *kept = wg__alloc(sizeof *kept);
    if (!kept)
        return false;
    memcpy(kept, bytes, sizeof *kept);
    const bool can = is_sound(kept, governor);
    if (can) {
        take_pointers(kept, governor);
        kept->job = governor->job;
        kept->options = governor->options;
        memcpy(kept->model.x, governor->model.x, sizeof kept->model.x);
        kept->model_version = 0; /* the posterior's tables are not among the bytes */
        *governor = *kept;
        memcpy(governor->model.log_prior, (const char *)bytes + sizeof *kept, prior_size(governor));
    }
    wg__free(kept);
    return can;
}
