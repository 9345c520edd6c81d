/* SPDX-License-Identifier: MIT
 *
 * Levels of knobs; see tune_levels.h.
 *
 * Nobody names levels: for limits and GPU clocks the list of train_settings.h, which has proven
 * itself there; for others evenly spread over what acts.
 */
#include "live/tune_levels.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "live/train_settings.h"
#include "live/tune_knobs.h"
#include "live/tune_quantity.h"

enum { OTHERS_MOST = 8, COUNT_MOST = 64 };

static const double clock_floor = 0.4; /* share of the largest clock: below, idle power rules */

static enum wg_code reject(const char *text, struct wg_error *err, const char *expected)
{
    return wg__fail(err, WG_EINVAL, "knob '%s': expected %s", text, expected);
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* -- As written ------------------------------------------------------------------------------- */

static bool is_possible(double value, enum wg_tuning_role role)
{
    return isfinite(value) && (value > 0 || (value == 0 && role == WG_TUNING_DELAY));
}

static enum wg_code read_range(const struct wg_tune_level_list *list, const char *text,
                               enum wg_tuning_role role, double *out, size_t *count,
                               struct wg_error *err)
{
    double low = 0, high = 0, step = 0;
    if (!wg__tune_quantity_parse(list->low, role, &low) ||
        !wg__tune_quantity_parse(list->high, role, &high) ||
        !wg__tune_quantity_parse(list->step, role, &step) || !is_possible(low, role) ||
        !(high >= low) || !(step > 0))
        return reject(text, err, "FROM:TO:STEP with FROM at most TO, and a step above 0");
    const double steps = floor((high - low) / step * (1 + 1e-12) + 1e-9);
    if (steps >= (double)WG_TUNING_LEVELS_MAX)
        return reject(text, err, "at most 1024 levels");
    for (size_t i = 0; i <= (size_t)steps; i++)
        out[(*count)++] = low + (double)i * step;
    return WG_OK;
}

static enum wg_code read_list(const char *list, const char *text, enum wg_tuning_role role,
                              double *out, size_t *count, struct wg_error *err)
{
    for (const char *at = list; at != NULL;) {
        const size_t length = strcspn(at, ",");
        char item[64];
        double value = 0;
        const bool fits = length > 0 && length < sizeof item;
        if (fits) {
            memcpy(item, at, length);
            item[length] = '\0';
        }
        if (!fits || !wg__tune_quantity_parse(item, role, &value) || !is_possible(value, role))
            return reject(text, err, "numbers above 0 between the commas");
        if (*count == WG_TUNING_LEVELS_MAX)
            return reject(text, err, "at most 1024 levels");
        out[(*count)++] = value;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    return WG_OK;
}

/* In the order of the text; `out` has room for WG_TUNING_LEVELS_MAX. */
static enum wg_code read_written(const struct wg_tune_level_list *list, const char *text,
                                 enum wg_tuning_role role, double *out, size_t *count,
                                 struct wg_error *err)
{
    *count = 0;
    return list->low != NULL ? read_range(list, text, role, out, count, err)
                             : read_list(list->list, text, role, out, count, err);
}

enum wg_code wg__tune_levels_written(const struct wg_tune_level_list *list, const char *text,
                                     struct wg_tune_knob *knob, double *first_out,
                                     struct wg_error *err)
{
    knob->levels = wg__alloc_zeroed(WG_TUNING_LEVELS_MAX, sizeof *knob->levels);
    if (knob->levels == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    const enum wg_code code = read_written(list, text, knob->role, knob->levels, &knob->count, err);
    if (code != WG_OK)
        return code;
    *first_out = knob->levels[0];
    qsort(knob->levels, knob->count, sizeof *knob->levels, compare);
    for (size_t i = 1; i < knob->count; i++)
        if (!(knob->levels[i] > knob->levels[i - 1]))
            return reject(text, err, "each level once");
    return WG_OK;
}

/* -- Of devices ------------------------------------------------------------------------------- */

static const struct wg_device_info *info_of(const struct wg_tune_devices *devices,
                                            const struct wg_tune_knob *knob, size_t d)
{
    return wg_device_get_info(wg_machine_device(devices->machine, knob->devices[d]));
}

/* A kind of device that is not here, and what the source that would have it says: a processor whose
 * energy cannot be read is none to us. */
static enum wg_code fail_absent(const struct wg_tune_devices *devices,
                                const struct wg_tune_knob *knob, struct wg_error *err)
{
    const bool is_processor = knob->device_knob == WG_KNOB_CPU_CLOCK;
    const char *source = is_processor ? "rapl" : "nvml", *why = "", *remedy = NULL;
    for (size_t i = 0; i < wg_machine_backend_count(devices->machine); i++) {
        const struct wg_backend_info *backend = wg_machine_backend(devices->machine, i);
        if (strcmp(backend->name, source) != 0 || backend->state == WG_OK)
            continue;
        why = backend->text;
        remedy = backend->remedy;
    }
    return wg__fail(err, WG_EUNSUPPORTED,
                    "knob '%s': there is no %s among the devices here (wattgov devices)%s%s%s%s",
                    knob->name, is_processor ? "processor" : "GPU", why[0] != '\0' ? "; " : "", why,
                    remedy != NULL ? "; " : "", remedy != NULL ? remedy : "");
}

static enum wg_code check_devices(const struct wg_tune_devices *devices,
                                  const struct wg_tune_knob *knob, struct wg_error *err)
{
    if (knob->device_count == 0)
        return fail_absent(devices, knob, err);
    for (size_t d = 0; d < knob->device_count; d++) {
        const struct wg_device_info *info = info_of(devices, knob, d);
        const struct wg_knob_info *found = &info->knobs[knob->device_knob];
        if (info->state != WG_OK)
            return wg__fail(err, info->state, "%s", info->state_text);
        if (!found->is_present)
            return wg__fail(err, WG_EUNSUPPORTED, "%s: no %s: %s%s%s", info->label, knob->name,
                            found->why_not, found->remedy != NULL ? "; " : "",
                            found->remedy != NULL ? found->remedy : "");
    }
    return WG_OK;
}

/* From where it acts to where it stands when nobody interferes. */
static void range_of(const struct wg_knob_info *info, enum wg_knob knob, double *low, double *high)
{
    *low = info->min;
    *high = info->max;
    if (knob == WG_KNOB_POWER_LIMIT && info->current > 0 && info->current < info->max)
        *high = info->current;
    if (knob == WG_KNOB_GPU_CLOCK || knob == WG_KNOB_CPU_CLOCK)
        *low = fmax(info->min, clock_floor * info->max);
}

static double nearest(const struct wg_knob_info *info, double value)
{
    if (info->level_count == 0)
        return value;
    double best = info->levels[0];
    for (size_t i = 1; i < info->level_count; i++)
        if (fabs(info->levels[i] - value) < fabs(best - value))
            best = info->levels[i];
    return best;
}

/* Evenly spread; whole watts, and supported clocks. */
static size_t spread(const struct wg_knob_info *info, enum wg_knob knob, size_t count, double *out)
{
    double low = 0, high = 0;
    range_of(info, knob, &low, &high);
    size_t made = 0;
    for (size_t i = 0; i < count; i++) {
        double value = count == 1 ? high : low + (high - low) * (double)i / (double)(count - 1);
        if (knob == WG_KNOB_POWER_LIMIT && i > 0 && i + 1 < count)
            value = round(value);
        value = nearest(info, value);
        if (made == 0 || value > out[made - 1])
            out[made++] = value;
    }
    return made;
}

/* So many levels, or as many as do for one knob; all where they are few. */
static size_t chosen(const struct wg_knob_info *info, enum wg_knob knob, size_t asked, double *out)
{
    size_t most = asked > 0 ? asked : OTHERS_MOST;
    if (asked == 0 && knob == WG_KNOB_MEMORY_CLOCK && info->level_count > 0 &&
        info->level_count <= COUNT_MOST) {
        memcpy(out, info->levels, info->level_count * sizeof *out);
        return info->level_count;
    }
    return spread(info, knob, most, out);
}

/* The numbers that are asked for, of the first device. */
static enum wg_code wanted(const struct wg_tune_level_list *list, const char *text,
                           const struct wg_knob_info *info, const struct wg_tune_knob *knob,
                           double *out, size_t *count, struct wg_error *err)
{
    uint64_t number = 0;
    const bool has_count = list->list != NULL && wg__parse_uint64(list->list, &number);
    if (has_count && (number < 1 || number > COUNT_MOST))
        return reject(text, err, "a number of levels from 1 to 64 (a level has a unit: 1200MHz)");
    if (has_count || (list->list == NULL && list->low == NULL)) {
        *count = chosen(info, knob->device_knob, (size_t)number, out);
        return WG_OK;
    }
    const enum wg_code code = read_written(list, text, knob->role, out, count, err);
    if (code != WG_OK)
        return code;
    qsort(out, *count, sizeof *out, compare);
    return WG_OK;
}

/* Each wanted number on each device; what rounds to the same is one level. */
static enum wg_code fill(const struct wg_tune_devices *devices, struct wg_tune_knob *knob,
                         const double *numbers, size_t count, struct wg_error *err)
{
    static const double slack = 1e-6;
    const size_t n = knob->device_count;
    for (size_t i = 0; i < count; i++) {
        for (size_t d = 0; d < n; d++) {
            const struct wg_device_info *device = info_of(devices, knob, d);
            const struct wg_knob_info *info = &device->knobs[knob->device_knob];
            double low = 0, high = 0;
            char value[WG_TUNE_QUANTITY_SIZE], from[WG_TUNE_QUANTITY_SIZE],
                to[WG_TUNE_QUANTITY_SIZE];
            range_of(info, knob->device_knob, &low, &high);
            if (numbers[i] < info->min * (1 - slack) || numbers[i] > high * (1 + slack)) {
                wg__tune_quantity_text(value, knob->role, numbers[i]);
                wg__tune_quantity_text(from, knob->role, info->min);
                wg__tune_quantity_text(to, knob->role, high);
                return wg__fail(err, WG_EINVAL, "knob '%s': %s is outside %s .. %s of %s",
                                knob->name, value, from, to, device->label);
            }
            knob->values[knob->count * n + d] = nearest(info, numbers[i]);
        }
        const double level = knob->values[knob->count * n];
        if (knob->count == 0 || level > knob->levels[knob->count - 1])
            knob->levels[knob->count++] = level;
    }
    return WG_OK;
}

/* The list that the training governor chooses from. */
static enum wg_code take_governor_list(const struct wg_tune_devices *devices,
                                       struct wg_tune_knob *knob, struct wg_error *err)
{
    const struct wg_device_info *infos[WG_TUNE_DEVICES_MAX];
    struct wg_train_settings *settings = wg__alloc_zeroed(1, sizeof *settings);
    if (settings == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    for (size_t d = 0; d < knob->device_count; d++)
        infos[d] = info_of(devices, knob, d);
    const enum wg_code code =
        wg__train_settings_init(settings, knob->device_knob, infos, knob->device_count, err);
    for (size_t i = 0; i < settings->count && code == WG_OK; i++) {
        knob->levels[i] = settings->setting[i];
        for (size_t d = 0; d < knob->device_count; d++)
            knob->values[i * knob->device_count + d] = settings->value[i][d];
        knob->count = i + 1;
    }
    wg__free(settings);
    return code;
}

static_assert(WG_TUNE_DEVICES_MAX + 0 <= WG_TRAIN_GPUS_MAX + 0,
              "the governor's list has room for all GPUs");

enum wg_code wg__tune_levels_of_devices(const struct wg_tune_level_list *list, const char *text,
                                        const struct wg_tune_devices *devices,
                                        struct wg_tune_knob *knob, struct wg_error *err)
{
    enum wg_code code = check_devices(devices, knob, err);
    if (code != WG_OK)
        return code;
    double *numbers = wg__alloc_zeroed(WG_TUNING_LEVELS_MAX, sizeof *numbers);
    knob->levels = wg__alloc_zeroed(WG_TUNING_LEVELS_MAX, sizeof *knob->levels);
    knob->values =
        wg__alloc_zeroed(WG_TUNING_LEVELS_MAX * knob->device_count, sizeof *knob->values);
    if (numbers == NULL || knob->levels == NULL || knob->values == NULL) {
        wg__free(numbers);
        return wg__fail(err, WG_ENOMEM, "out of memory");
    }
    const bool is_free = list->list == NULL && list->low == NULL;
    size_t count = 0;
    if (is_free &&
        (knob->device_knob == WG_KNOB_POWER_LIMIT || knob->device_knob == WG_KNOB_GPU_CLOCK)) {
        code = take_governor_list(devices, knob, err);
    } else {
        const struct wg_knob_info *info = &info_of(devices, knob, 0)->knobs[knob->device_knob];
        code = wanted(list, text, info, knob, numbers, &count, err);
        if (code == WG_OK)
            code = fill(devices, knob, numbers, count, err);
    }
    wg__free(numbers);
    if (code == WG_OK)
        knob->default_level = knob->count - 1;
    return code;
}
