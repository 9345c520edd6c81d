/* SPDX-License-Identifier: MIT
 *
 * The list of settings; see train_settings.h.
 *
 * Limits stand 25 W apart as in Zeus's traces, or so far that there are at most 16. GPUs of one
 * kind share the round values; where the ranges differ, the steps divide each GPU's own range
 * alike, so that a setting asks the same share of restraint of each.
 */
#include "live/train_settings.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

enum { LIMITS_MOST = 16, CLOCKS_MOST = 12 };

static const double least_step_w = 25;
static const double clock_floor = 0.4; /* share of the largest clock: below, idle power rules */

struct range {
    double low, high;
};

static bool is_number(double value)
{
    return isfinite(value) && value > 0;
}

static enum wg_code check_knob(const struct wg_device_info *info, enum wg_knob knob,
                               struct wg_error *err)
{
    const struct wg_knob_info *found = &info->knobs[knob];
    if (info->state != WG_OK)
        return wg__fail(err, info->state, "%s", info->state_text);
    if (!found->is_present)
        return wg__fail(err, WG_EUNSUPPORTED, "%s: no %s: %s%s%s", info->label, wg_knob_key(knob),
                        found->why_not, found->remedy != NULL ? "; " : "",
                        found->remedy != NULL ? found->remedy : "");
    return WG_OK;
}

/* From the smallest limit to the one that stands now. */
static struct range limit_range(const struct wg_knob_info *knob)
{
    const double high = is_number(knob->current) ? fmin(knob->current, knob->max) : knob->max;
    return (struct range){.low = knob->min, .high = high};
}

static struct range clock_range(const struct wg_knob_info *knob)
{
    return (struct range){.low = fmax(knob->min, clock_floor * knob->max), .high = knob->max};
}

/* The distance of the limits: 25, 50, 100, ... W. */
static double limit_step_w(struct range range)
{
    double step_w = least_step_w;
    while ((range.high - range.low) / step_w > LIMITS_MOST - 1)
        step_w *= 2;
    return step_w;
}

/* Round values above the lowest, then the highest. Returns how many. */
static size_t round_limits(struct range range, double out[static WG_TRAIN_SETTINGS_MAX])
{
    const double step_w = limit_step_w(range);
    size_t count = 0;
    out[count++] = range.low;
    const double first = floor(range.low / step_w) + 1;
    const double last = ceil(range.high / step_w) - 1;
    for (int i = 0; i <= (int)(last - first); i++) {
        const double limit_w = (first + i) * step_w;
        /* A value next to an end says nothing that the end does not. */
        if (limit_w - range.low >= step_w / 3 && range.high - limit_w >= step_w / 3)
            out[count++] = limit_w;
    }
    if (range.high > range.low)
        out[count++] = range.high;
    return count;
}

/* The supported value nearest to `value`, within the range. */
static double nearest_level(const struct wg_knob_info *knob, double value)
{
    double best = value;
    double distance = INFINITY;
    for (size_t i = 0; i < knob->level_count; i++) {
        if (fabs(knob->levels[i] - value) < distance) {
            distance = fabs(knob->levels[i] - value);
            best = knob->levels[i];
        }
    }
    return best;
}

static bool are_alike(const struct range *ranges, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (fabs(ranges[i].low - ranges[0].low) > 1e-6 * ranges[0].low ||
            fabs(ranges[i].high - ranges[0].high) > 1e-6 * ranges[0].high)
            return false;
    return true;
}

/* What setting `share` (0..1 of the range) means on one GPU. */
static double value_at(const struct wg_knob_info *knob, struct range range, double share)
{
    const double value = range.low + share * (range.high - range.low);
    return knob->level_count > 0 ? nearest_level(knob, value) : value;
}

static void fill(struct wg_train_settings *out, const struct wg_device_info *const *infos,
                 const struct range *ranges, const double *first, size_t count)
{
    const double width = ranges[0].high - ranges[0].low;
    for (size_t i = 0; i < count; i++) {
        const double share = width > 0 ? (first[i] - ranges[0].low) / width : 1;
        double sum = 0;
        for (size_t g = 0; g < out->gpu_count; g++) {
            const struct wg_knob_info *knob = &infos[g]->knobs[out->knob];
            const double value = are_alike(ranges, out->gpu_count) && knob->level_count == 0
                                     ? first[i]
                                     : value_at(knob, ranges[g], share);
            out->value[out->count][g] = value;
            sum += value;
        }
        const double mean = sum / (double)out->gpu_count;
        /* Two settings that the levels make one are one. */
        if (out->count == 0 || mean > out->setting[out->count - 1])
            out->setting[out->count++] = mean;
    }
}

enum wg_code wg__train_settings_init(struct wg_train_settings *out, enum wg_knob knob,
                                     const struct wg_device_info *const *infos, size_t gpu_count,
                                     struct wg_error *err)
{
    struct range ranges[WG_TRAIN_GPUS_MAX];
    double first[WG_TRAIN_SETTINGS_MAX];
    if (gpu_count == 0 || gpu_count > WG_TRAIN_GPUS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu GPUs, expected 1 to %d", gpu_count, WG_TRAIN_GPUS_MAX);
    for (size_t g = 0; g < gpu_count; g++) {
        const enum wg_code code = check_knob(infos[g], knob, err);
        if (code != WG_OK)
            return code;
        ranges[g] = knob == WG_KNOB_POWER_LIMIT ? limit_range(&infos[g]->knobs[knob])
                                                : clock_range(&infos[g]->knobs[knob]);
    }
    size_t count = 0;
    if (knob == WG_KNOB_POWER_LIMIT) {
        count = round_limits(ranges[0], first);
    } else {
        for (; count < CLOCKS_MOST; count++)
            first[count] = ranges[0].low +
                           (ranges[0].high - ranges[0].low) * (double)count / (CLOCKS_MOST - 1);
    }
    assert(count <= WG_TRAIN_SETTINGS_MAX);
    *out = (struct wg_train_settings){.knob = knob, .gpu_count = gpu_count};
    fill(out, infos, ranges, first, count);
    if (out->count < 2)
        return wg__fail(err, WG_EUNSUPPORTED,
                        "%s: there is nothing to choose: %s is at its smallest value already",
                        infos[0]->label, wg_knob_key(knob));
    return WG_OK;
}
