/* SPDX-License-Identifier: MIT
 *
 * Laws of a served model's times, and what can't be one: see serving_profile.h.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "simulate/serving_profile.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "schedule/scheduler.h"

/* -- Times --------------------------------------------------------------------------------- */

static double law_s(const struct wg_latency_law *law, double batch)
{
    if (law->point_count == 0)
        return law->fixed_s + law->per_row_s * batch;
    const double *const x = law->batch;
    const double *const y = law->time_s;
    if (law->point_count == 1 || batch <= x[0])
        return y[0];
    size_t i = 1;
    while (i + 1 < law->point_count && x[i] < batch)
        i++;
    return y[i - 1] + (y[i] - y[i - 1]) * (batch - x[i - 1]) / (x[i] - x[i - 1]);
}

/* What the clocks of a rung make of a time at the highest ones. */
static double clock_factor(const struct wg_serving_profile *profile, size_t rung)
{
    const struct wg_rung *at = &profile->ladder.rungs[rung];
    const double rest = 1.0 - profile->gpu_share - profile->mem_share;
    return rest + profile->gpu_share / at->gpu_clock + profile->mem_share / at->mem_clock;
}

double wg__profile_batch_s(const struct wg_serving_profile *profile, size_t rung, unsigned rows)
{
    assert(rung < profile->ladder.count && rows >= 1 && rows <= profile->max_batch);
    if (profile->rung_has_latency[rung])
        return law_s(&profile->rung_latency[rung], rows);
    return law_s(&profile->latency, rows) * clock_factor(profile, rung);
}

double wg__profile_step_s(const struct wg_serving_profile *profile, size_t rung, unsigned rows,
                          bool ends_iteration)
{
    assert(rung < profile->ladder.count && rows >= 1);
    const double work_s = profile->step_fixed_s + profile->step_per_row_s * rows +
                          (ends_iteration ? profile->update_s : 0.0);
    return work_s * clock_factor(profile, rung);
}

/* -- What can be --------------------------------------------------------------------------- */

/* Where a field stands in the file: "latency", or behind a rung: "clocks.ladder[2].latency". */
struct place {
    const struct wg_serving_profile *profile;
    const char *name;
    size_t rung;
    bool is_rung;
};

enum { PLACE_SIZE = 64 };

static const char *name_of(const struct place *place, char *out)
{
    if (place->is_rung)
        (void)snprintf(out, PLACE_SIZE, "clocks.ladder[%zu]%s", place->rung, place->name);
    else
        (void)snprintf(out, PLACE_SIZE, "%s", place->name);
    return out;
}

struct bound {
    const char *name; /* as in the file, behind the place's */
    double value;
    double least, most;
};

/* NAN is outside. */
static enum wg_code check_bounds(const struct bound *bounds, size_t count,
                                 const struct place *place, struct wg_error *err)
{
    char name[PLACE_SIZE];
    for (size_t i = 0; i < count; i++) {
        const struct bound *bound = &bounds[i];
        if (!(bound->value >= bound->least && bound->value <= bound->most))
            return wg__fail(err, WG_EINVAL, "profile: %s%s is %g, expected %g to %g",
                            name_of(place, name), bound->name, bound->value, bound->least,
                            bound->most);
    }
    return WG_OK;
}

static enum wg_code check_table(const struct wg_latency_law *law, const struct place *place,
                                struct wg_error *err)
{
    char text[PLACE_SIZE];
    const char *name = name_of(place, text);
    const unsigned max_batch = place->profile->max_batch;
    const size_t count = law->point_count;
    if (count > WG_PROFILE_POINTS_MAX)
        return wg__fail(err, WG_EINVAL, "profile: %s has %zu rows, expected at most %d", name,
                        count, WG_PROFILE_POINTS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 ? law->batch[i] != 1.0 : !(law->batch[i] > law->batch[i - 1]))
            return wg__fail(err, WG_EINVAL,
                            "profile: %s[%zu].batch is %g, expected batches that rise from 1", name,
                            i, law->batch[i]);
        if (!(law->time_s[i] > 0.0 && law->time_s[i] <= WG_PROFILE_SECONDS_MAX))
            return wg__fail(err, WG_EINVAL, "profile: %s[%zu].s is %g, expected above 0 to %g",
                            name, i, law->time_s[i], WG_PROFILE_SECONDS_MAX);
        if (i > 0 && law->time_s[i] < law->time_s[i - 1])
            return wg__fail(err, WG_EINVAL,
                            "profile: %s[%zu].s is %g, less than that of the smaller batch", name,
                            i, law->time_s[i]);
    }
    if (law->batch[count - 1] < max_batch)
        return wg__fail(err, WG_EINVAL,
                        "profile: %s ends at batch %g, expected max_batch (%u) at least", name,
                        law->batch[count - 1], max_batch);
    return WG_OK;
}

static enum wg_code check_law(const struct wg_latency_law *law, const struct place *place,
                              struct wg_error *err)
{
    char name[PLACE_SIZE];
    if (law->point_count > 0)
        return check_table(law, place, err);
    const struct bound bounds[] = {
        {".fixed_s", law->fixed_s, 0.0, WG_PROFILE_SECONDS_MAX},
        {".per_row_s", law->per_row_s, 0.0, WG_PROFILE_SECONDS_MAX},
    };
    const enum wg_code code = check_bounds(bounds, sizeof bounds / sizeof *bounds, place, err);
    if (code == WG_OK && law->fixed_s + law->per_row_s <= 0.0)
        return wg__fail(err, WG_EINVAL, "profile: %s: a batch takes 0 s, expected more",
                        name_of(place, name));
    return code;
}

static enum wg_code check_rung(const struct wg_serving_profile *profile, size_t i,
                               struct wg_error *err)
{
    const struct wg_rung *rung = &profile->ladder.rungs[i];
    const struct place place = {profile, "", i, true};
    const struct place law = {profile, ".latency", i, true};
    if (rung->name[0] == '\0')
        return wg__fail(err, WG_EINVAL, "profile: clocks.ladder[%zu].name is empty", i);
    for (size_t k = 0; k < i; k++) {
        if (strcmp(rung->name, profile->ladder.rungs[k].name) == 0)
            return wg__fail(err, WG_EINVAL,
                            "profile: clocks.ladder[%zu].name is '%s', as another one's", i,
                            rung->name);
    }
    const double least =
        i == 0 ? 1.0 : WG_PROFILE_CLOCK_MIN; /* clocks are relative to the first one's */
    const struct bound bounds[] = {
        {".gpu_clock", rung->gpu_clock, least, 1.0},
        {".mem_clock", rung->mem_clock, least, 1.0},
        {".busy_w", rung->busy_power_w, 0.0, WG_PROFILE_WATTS_MAX},
        {".idle_w", rung->idle_power_w, 0.0, WG_PROFILE_WATTS_MAX},
        {".finetune_w", rung->finetune_power_w, 0.0, WG_PROFILE_WATTS_MAX},
    };
    const enum wg_code code = check_bounds(bounds, sizeof bounds / sizeof *bounds, &place, err);
    if (code != WG_OK || !profile->rung_has_latency[i])
        return code;
    return check_law(&profile->rung_latency[i], &law, err);
}

static enum wg_code check_ladder(const struct wg_serving_profile *profile, struct wg_error *err)
{
    const struct wg_clock_ladder *ladder = &profile->ladder;
    if (ladder->count == 0 || ladder->count > WG_RUNGS_MAX)
        return wg__fail(err, WG_EINVAL, "profile: clocks.ladder has %zu rungs, expected 1 to %d",
                        ladder->count, WG_RUNGS_MAX);
    const struct bound bounds[] = {
        {"change_s", ladder->change_s, 0.0, WG_PROFILE_SECONDS_MAX},
        {"change_j", ladder->change_j, 0.0, WG_PROFILE_JOULES_MAX},
    };
    const struct place place = {profile, "clocks.", 0, false};
    enum wg_code code = check_bounds(bounds, sizeof bounds / sizeof *bounds, &place, err);
    for (size_t i = 0; i < ladder->count && code == WG_OK; i++)
        code = check_rung(profile, i, err);
    return code;
}

static enum wg_code check_finetune(const struct wg_serving_profile *profile, struct wg_error *err)
{
    if (!profile->has_finetune)
        return WG_OK;
    const struct bound bounds[] = {
        {"fixed_s", profile->step_fixed_s, 0.0, WG_PROFILE_SECONDS_MAX},
        {"per_row_s", profile->step_per_row_s, 0.0, WG_PROFILE_SECONDS_MAX},
        {"update_s", profile->update_s, 0.0, WG_PROFILE_SECONDS_MAX},
    };
    const struct place place = {profile, "finetune.", 0, false};
    const enum wg_code code = check_bounds(bounds, sizeof bounds / sizeof *bounds, &place, err);
    if (code == WG_OK && profile->step_fixed_s + profile->step_per_row_s <= 0.0)
        return wg__fail(err, WG_EINVAL, "profile: finetune: a step takes 0 s, expected more");
    return code;
}

enum wg_code wg__profile_check(const struct wg_serving_profile *profile, struct wg_error *err)
{
    const struct bound bounds[] = {
        {"max_batch", profile->max_batch, 1.0, WG_BATCH_ROWS_MAX},
        {"latency_share.gpu_clock", profile->gpu_share, 0.0, 1.0},
        {"latency_share.mem_clock", profile->mem_share, 0.0, 1.0},
        {"noise", profile->noise, 0.0, WG_PROFILE_NOISE_MAX},
        {"interference.inference", profile->inference_slowdown, 1.0, WG_PROFILE_SLOWDOWN_MAX},
        {"interference.finetune", profile->finetune_slowdown, 1.0, WG_PROFILE_SLOWDOWN_MAX},
    };
    const struct place top = {profile, "", 0, false};
    const struct place law = {profile, "latency", 0, false};
    enum wg_code code = check_bounds(bounds, sizeof bounds / sizeof *bounds, &top, err);
    /* Shares of .7 and .3 add up to a bit more than 1. */
    if (code == WG_OK && profile->gpu_share + profile->mem_share > 1.0 + 1e-9)
        return wg__fail(err, WG_EINVAL,
                        "profile: latency_share.gpu_clock and .mem_clock are %g together, expected "
                        "at most 1",
                        profile->gpu_share + profile->mem_share);
    if (code == WG_OK)
        code = check_law(&profile->latency, &law, err);
    if (code == WG_OK)
        code = check_finetune(profile, err);
    return code == WG_OK ? check_ladder(profile, err) : code;
}
