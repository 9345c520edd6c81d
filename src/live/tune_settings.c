/* SPDX-License-Identifier: MIT
 *
 * Setting a configuration: devices through the guarded control, the workload by its own way.
 *
 * Only what changes is set. A value that the driver refuses, or that reads back as another one, is
 * a level that does not exist here: the tuner is told, and the level leaves the space.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "live/tune_parts.h"
#include "live/tune_quantity.h"

static const double same_share = 0.01; /* a value that reads back within this is the one set */

void wg__tune_levels_of(const struct wg_tuning_space *space, size_t configuration,
                        struct wg_tune_levels *out)
{
    *out = (struct wg_tune_levels){0};
    for (size_t k = 0; k < space->knob_count; k++)
        out->of[k] = (uint16_t)wg__tuning_level(space, configuration, k);
}

size_t wg__tune_find_role(const struct wg_tune_knobs *knobs, enum wg_tuning_role role)
{
    size_t k = 0;
    while (k < knobs->count && (knobs->knobs[k].is_device || knobs->knobs[k].role != role))
        k++;
    return k;
}

size_t wg__tune_find_device(const struct wg_tune_knobs *knobs, enum wg_knob knob)
{
    size_t k = 0;
    while (k < knobs->count && !(knobs->knobs[k].is_device && knobs->knobs[k].device_knob == knob))
        k++;
    return k;
}

/* -- Devices ---------------------------------------------------------------------------------- */

enum wg_code wg__tune_take_devices(struct wg_tune_run *run, struct wg_error *err)
{
    const struct wg_tune_request *request = run->request;
    const struct wg_tune_knobs *knobs = request->knobs;
    bool has_device = false;
    for (size_t k = 0; k < knobs->count; k++)
        has_device |= knobs->knobs[k].is_device;
    if (!has_device)
        return WG_OK;
    const struct wg_control_opts opts = {
        .state_dir = request->state_dir, .holder = request->holder, .root = request->root};
    run->hold.say = request->say;
    run->hold.context = request->context;
    enum wg_code code = wg__device_hold_open(&run->hold, request->machine, &opts, err);
    for (size_t k = 0; k < knobs->count && code == WG_OK; k++) {
        const struct wg_tune_knob *knob = &knobs->knobs[k];
        for (size_t d = 0; d < knob->device_count && code == WG_OK && knob->is_device; d++)
            code = wg__device_hold_take(&run->hold, knob->devices[d], knob->device_knob, err);
    }
    return code;
}

/* A refusal of one level, or the end of all. */
static enum wg_code judge_refusal(struct wg_tune_run *run, const struct wg_error *cause,
                                  enum wg_tune_set_outcome *outcome, struct wg_error *err)
{
    if (run->hold.is_foreign || run->hold.is_lost) {
        *outcome = WG_TUNE_SET_ENDED;
        return WG_OK;
    }
    switch (cause->code) {
    case WG_EINVAL:
    case WG_EUNSUPPORTED:
    case WG_EIO:
    case WG_ETIMEOUT:
        *outcome = WG_TUNE_SET_REFUSED;
        return WG_OK;
    default:
        if (err != NULL)
            *err = *cause;
        return cause->code;
    }
}

static bool reads_back(double value, double applied)
{
    return !isfinite(applied) || fabs(applied - value) <= same_share * fabs(value);
}

/* A value that reads back as another may have been lost on the way (a driver that was just loaded
 * anew), so it is set twice before it is believed. */
static enum wg_code set_device(struct wg_tune_run *run, const struct wg_tune_knob *knob, size_t d,
                               double value, double *applied, struct wg_error *err)
{
    enum wg_code code = WG_OK;
    for (unsigned i = 0; i < 2; i++) {
        *applied = NAN;
        code = wg__device_hold_set(&run->hold, knob->devices[d], knob->device_knob, value, applied,
                                   err);
        if (code != WG_OK || reads_back(value, *applied))
            break;
    }
    return code;
}

static enum wg_code set_knob(struct wg_tune_run *run, const struct wg_tune_knob *knob, size_t level,
                             enum wg_tune_set_outcome *outcome, char why[WG_WORKLOAD_WHY_SIZE],
                             struct wg_error *err)
{
    for (size_t d = 0; d < knob->device_count; d++) {
        const double value = knob->values[level * knob->device_count + d];
        double applied = NAN;
        struct wg_error cause;
        if (set_device(run, knob, d, value, &applied, &cause) != WG_OK) {
            (void)snprintf(why, WG_WORKLOAD_WHY_SIZE, "%.*s", WG_WORKLOAD_WHY_SIZE - 1, cause.text);
            return judge_refusal(run, &cause, outcome, err);
        }
        if (!reads_back(value, applied)) {
            char asked[WG_TUNE_QUANTITY_SIZE], got[WG_TUNE_QUANTITY_SIZE];
            wg__tune_quantity_text(asked, knob->role, value);
            wg__tune_quantity_text(got, knob->role, applied);
            (void)snprintf(why, WG_WORKLOAD_WHY_SIZE,
                           "%.32s of %s was asked for, and reads back as %s", knob->name, asked,
                           got);
            *outcome = WG_TUNE_SET_REFUSED;
            return WG_OK;
        }
    }
    return WG_OK;
}

enum wg_code wg__tune_set_devices(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                                  enum wg_tune_set_outcome *outcome, size_t *refused_knob,
                                  char why[WG_WORKLOAD_WHY_SIZE], struct wg_error *err)
{
    const struct wg_tune_knobs *knobs = run->request->knobs;
    bool has_changed = false;
    *outcome = WG_TUNE_SET;
    why[0] = '\0';
    for (size_t k = 0; k < knobs->count; k++) {
        if (!knobs->knobs[k].is_device ||
            (run->devices_are_set && run->present.of[k] == levels->of[k]))
            continue;
        has_changed = true;
        const enum wg_code code = set_knob(run, &knobs->knobs[k], levels->of[k], outcome, why, err);
        if (code != WG_OK || *outcome != WG_TUNE_SET) {
            *refused_knob = k;
            run->devices_are_set = false;
            return code;
        }
        run->present.of[k] = levels->of[k];
    }
    run->devices_are_set = true;
    if (has_changed)
        (void)wg__tune_wait(run, run->request->settle_s);
    return WG_OK;
}

/* -- The workload ----------------------------------------------------------------------------- */

static bool is_same_workload(const struct wg_tune_knobs *knobs, const struct wg_tune_levels *a,
                             const struct wg_tune_levels *b)
{
    for (size_t k = 0; k < knobs->count; k++)
        if (!knobs->knobs[k].is_device && a->of[k] != b->of[k])
            return false;
    return true;
}

static bool is_warm(const struct wg_tune_run *run, const struct wg_tune_levels *levels)
{
    for (size_t i = 0; i < run->warmed_count; i++)
        if (is_same_workload(run->request->knobs, &run->warmed[i], levels))
            return true;
    return false;
}

enum wg_code wg__tune_set_workload(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                                   enum wg_workload_outcome *outcome,
                                   char why[WG_WORKLOAD_WHY_SIZE], struct wg_error *err)
{
    const struct wg_tune_request *request = run->request;
    struct wg_workload *workload = request->workload;
    struct wg_workload_setting settings[WG_TUNING_KNOBS_MAX];
    *outcome = WG_WORKLOAD_OK;
    why[0] = '\0';
    enum wg_code code = WG_OK;
    if (!run->workload_is_set || !is_same_workload(request->knobs, &run->present, levels)) {
        const size_t count = wg__tune_workload_settings(request->knobs, levels->of, settings);
        run->workload_is_set = false;
        code = workload->ops->set(workload, settings, count, outcome, why, err);
        if (code != WG_OK || *outcome != WG_WORKLOAD_OK)
            return code;
        for (size_t k = 0; k < request->knobs->count; k++)
            if (!request->knobs->knobs[k].is_device)
                run->present.of[k] = levels->of[k];
        run->workload_is_set = true;
    }
    if (!request->warms_up || is_warm(run, levels))
        return WG_OK;
    struct wg_workload_plan plan;
    wg__tune_plan(run, &plan);
    code = workload->ops->warm_up(workload, &plan, outcome, why, err);
    if (code == WG_OK && *outcome == WG_WORKLOAD_OK && run->warmed_count < WG_TUNE_TRIALS_MAX)
        run->warmed[run->warmed_count++] = *levels;
    return code;
}

enum wg_code wg__tune_leave_workload(struct wg_tune_run *run, const struct wg_tune_levels *levels,
                                     enum wg_workload_outcome *outcome,
                                     char why[WG_WORKLOAD_WHY_SIZE], struct wg_error *err)
{
    struct wg_workload_setting settings[WG_TUNING_KNOBS_MAX];
    struct wg_workload *workload = run->request->workload;
    const size_t count = wg__tune_workload_settings(run->request->knobs, levels->of, settings);
    const enum wg_code code = workload->ops->set(workload, settings, count, outcome, why, err);
    if (code == WG_OK && *outcome == WG_WORKLOAD_OK && workload->ops->adopt != NULL)
        workload->ops->adopt(workload);
    return code;
}

enum wg_code wg__tune_recover(struct wg_tune_run *run, struct wg_error *err)
{
    run->workload_is_set = false;
    run->warmed_count = 0;
    const enum wg_code code = run->request->workload->ops->recover(run->request->workload, err);
    return wg__tune_should_stop(run) ? WG_OK : code; /* given up, not failed */
}
