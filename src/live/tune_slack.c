/* SPDX-License-Identifier: MIT
 *
 * Whether a power limit bound: what a trial says of the limits that were not set.
 *
 * A limit that the power never came near changes nothing, and neither does any other one above that
 * power. So the largest power that was seen in the trial's windows, with a margin for what the
 * meter may err by, tells which levels are the same. That is only believed where the driver never
 * said that a power limit slows the device down, and while some of the devices had work: an idle
 * GPU tells nothing of what it will draw.
 *
 * Threads: pure.
 */
#include <math.h>

#include "live/tune_parts.h"

enum { LOOKS_LEAST = 4 }; /* of a GPU: one alone may be from before the work began */

static const double meter_error = 0.05; /* of a board's power sensor, as vendors state it */

void wg__tune_power_begin(struct wg_tune_power *power)
{
    *power = (struct wg_tune_power){.is_working = false};
    for (size_t g = 0; g < WG_TUNE_DEVICES_MAX; g++)
        power->throttled_s[g] = NAN;
}

static bool has(const struct wg_sample *sample, enum wg_metric metric)
{
    return (sample->present >> metric & 1U) != 0;
}

void wg__tune_power_look(struct wg_tune_power *power, size_t gpu, const struct wg_sample *sample)
{
    double now_w = NAN;
    if (has(sample, WG_METRIC_POWER_W))
        now_w = sample->values[WG_METRIC_POWER_W];
    if (has(sample, WG_METRIC_POWER_AVERAGE_W))
        now_w = fmax(now_w, sample->values[WG_METRIC_POWER_AVERAGE_W]);
    if (sample->has_throttle && (sample->throttle & WG_THROTTLE_POWER_LIMIT) != 0)
        power->is_held[gpu] = true;
    if (has(sample, WG_METRIC_THROTTLED_POWER_S)) {
        const double throttled_s = sample->values[WG_METRIC_THROTTLED_POWER_S];
        if (isnan(power->throttled_s[gpu]))
            power->throttled_s[gpu] = throttled_s;
        power->is_held[gpu] |= throttled_s > power->throttled_s[gpu];
    }
    /* Who does not tell whether there is work may have some. */
    power->is_working |=
        !has(sample, WG_METRIC_UTILIZATION) || sample->values[WG_METRIC_UTILIZATION] > 0;
    if (!isfinite(now_w))
        return;
    power->peak_w[gpu] = power->looks[gpu] > 0 ? fmax(power->peak_w[gpu], now_w) : now_w;
    power->looks[gpu]++;
}

/* What level `level` must exceed on device d of a knob; infinite: that is not known. */
static double needed_w(const struct wg_tune_power *power, const struct wg_tune_devices *devices,
                       size_t position)
{
    for (size_t g = 0; g < devices->gpu_count; g++)
        if (devices->gpus[g] == position)
            return power->looks[g] >= LOOKS_LEAST && !power->is_held[g]
                       ? power->peak_w[g] * (1 + meter_error)
                       : (double)INFINITY;
    return INFINITY;
}

static bool is_above(const struct wg_tune_power *power, const struct wg_tune_knobs *knobs,
                     const struct wg_tune_knob *knob, size_t level)
{
    for (size_t d = 0; d < knob->device_count; d++)
        if (!(knob->values[level * knob->device_count + d] >
              needed_w(power, &knobs->devices, knob->devices[d])))
            return false;
    return true;
}

void wg__tune_tell_slack(const struct wg_tune_power *power, const struct wg_tune_knobs *knobs,
                         struct wg_trial *told)
{
    for (size_t k = 0; k < knobs->count && power->is_working; k++) {
        const struct wg_tune_knob *knob = &knobs->knobs[k];
        if (!knob->is_device || knob->device_knob != WG_KNOB_POWER_LIMIT || told->is_slack)
            continue;
        const size_t own = wg__tuning_level(knobs->space, told->configuration, k);
        size_t level = 0;
        while (level <= own && !is_above(power, knobs, knob, level))
            level++;
        if (level > own)
            continue;
        told->is_slack = true;
        told->slack_knob = k;
        told->slack_level = knobs->space->knobs[k].levels[level];
    }
}
