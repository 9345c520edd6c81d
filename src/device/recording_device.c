/* SPDX-License-Identifier: MIT
 *
 * Reading a device's line of a recording: the way back of wg__device_info_write.
 *
 * Metrics and knobs that this version does not know are left out and counted; those that the
 * recording does not know are absent and say so.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/recording_parts.h"

static const double MEMORY_MAX_BYTES = 9007199254740992.0; /* a double holds it: 2^53 */
enum { MIGS_MAX = 64, LEVELS_MAX = 4096, WHERE_MAX = 64 };

static enum wg_code fail_memory(struct wg_members *members)
{
    if (members->code == WG_OK)
        members->code = wg__fail(members->err, WG_ENOMEM, "%s: out of memory", members->file);
    return members->code;
}

static enum wg_device_kind read_kind(struct wg_members *members)
{
    const char *key = wg__member_text(members, "kind", true);
    for (int i = 0; i < WG_DEVICE_KIND_COUNT && key != NULL; i++) {
        if (strcmp(wg_device_kind_key((enum wg_device_kind)i), key) == 0)
            return (enum wg_device_kind)i;
    }
    (void)wg__members_fail(members, "'kind': there is no kind '%.40s'", key != NULL ? key : "");
    return WG_DEVICE_RAIL;
}

static void read_migs(struct wg_members *members, struct wg_device_info *out)
{
    const json_t *array = wg__member_array(members, "mig_uuids", MIGS_MAX);
    const size_t count = json_array_size(array);
    if (count == 0)
        return;
    const char **uuids = wg__arena_alloc(&members->recording->arena, count, sizeof *uuids);
    if (uuids == NULL) {
        (void)fail_memory(members);
        return;
    }
    for (size_t i = 0; i < count && members->code == WG_OK; i++)
        uuids[i] = wg__members_element(members, "mig_uuids", json_array_get(array, i));
    out->mig_uuids = uuids;
    out->mig_count = count;
}

static void read_identity(struct wg_members *members, struct wg_device_info *out)
{
    out->kind = read_kind(members);
    out->index = (unsigned)wg__member_uint(members, "index", WG_RECORDING_DEVICES_MAX - 1);
    out->label = wg__member_text(members, "label", true);
    out->id = wg__member_text(members, "id", true);
    out->name = wg__member_text(members, "name", true);
    out->backend = wg__member_text(members, "backend", true);
    out->uuid = wg__member_text(members, "uuid", false);
    out->pci = wg__member_text(members, "pci", false);
    out->driver = wg__member_text(members, "driver", false);
    out->architecture = wg__member_text(members, "architecture", false);
    const double node = wg__member_number(members, "numa_node", 0.0, 65535.0, -1.0);
    out->numa_node = node < 0.0 ? UINT_MAX : (unsigned)node;
    out->memory_bytes =
        (uint64_t)wg__member_number(members, "memory_bytes", 0.0, MEMORY_MAX_BYTES, 0.0);
    out->counts_in_total = wg__member_bool(members, "counts_in_total");
    out->is_mig = wg__member_bool(members, "is_mig");
    out->is_persistent = wg__member_bool(members, "is_persistent");
    read_migs(members, out);
    out->state = wg__member_code(members, "state");
    out->state_text = wg__member_text(members, "state_text", out->state != WG_OK);
}

static void read_meter(struct wg_members *members, struct wg_meter_info *out)
{
    out->is_present = wg__member_bool(members, "present");
    out->source = wg__member_text(members, "source", true);
    out->resolution = wg__member_number(members, "resolution", 0.0, DBL_MAX, 0.0);
    out->update_period_s = wg__member_number(members, "update_period_s", 0.0, 1e6, 0.0);
    out->averaging_window_s = wg__member_number(members, "averaging_window_s", 0.0, 1e6, 0.0);
    out->why_not = wg__member_text(members, "why_not", !out->is_present);
    out->remedy = wg__member_text(members, "remedy", false);
}

static void read_levels(struct wg_members *members, struct wg_knob_info *out)
{
    const json_t *array = wg__member_array(members, "levels", LEVELS_MAX);
    const size_t count = json_array_size(array);
    if (count == 0)
        return;
    double *levels = wg__arena_alloc(&members->recording->arena, count, sizeof *levels);
    if (levels == NULL) {
        (void)fail_memory(members);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *element = json_array_get(array, i);
        levels[i] = json_number_value(element);
        if (!json_is_number(element) || (i > 0 && levels[i] <= levels[i - 1])) {
            (void)wg__members_fail(members, "'levels' are not rising numbers");
            return;
        }
    }
    out->levels = levels;
    out->level_count = count;
}

static void read_knob(struct wg_members *members, struct wg_knob_info *out)
{
    out->is_present = wg__member_bool(members, "present");
    out->is_writable = wg__member_bool(members, "writable");
    out->source = wg__member_text(members, "source", true);
    const double absent = out->is_present ? (double)INFINITY : 0.0;
    out->min = wg__member_number(members, "min", -DBL_MAX, DBL_MAX, absent);
    out->max = wg__member_number(members, "max", -DBL_MAX, DBL_MAX, absent);
    out->step = wg__member_number(members, "step", 0.0, DBL_MAX, 0.0);
    out->preset = wg__member_number(members, "preset", -DBL_MAX, DBL_MAX, (double)NAN);
    out->current = wg__member_number(members, "current", -DBL_MAX, DBL_MAX, (double)NAN);
    read_levels(members, out);
    out->why_not = wg__member_text(members, "why_not", !out->is_present);
    out->remedy = wg__member_text(members, "remedy", false);
    if (out->max < out->min)
        (void)wg__members_fail(members, "'max' is below 'min'");
}

/* Goes into the object that `parent` holds under `key`; false: there is none, or it is none. */
static bool enter(const struct wg_members *members, const json_t *parent, const char *what,
                  const char *key, char where[static WHERE_MAX], struct wg_members *inner)
{
    (void)snprintf(where, WHERE_MAX, "%s '%s': ", what, key);
    *inner = *members;
    inner->where = where;
    inner->object = parent;
    inner->object = wg__member_object(inner, key);
    return inner->object != NULL && inner->code == WG_OK;
}

static size_t count_known(const json_t *object, const char *(*key_of)(unsigned), unsigned count)
{
    size_t known = 0;
    for (unsigned i = 0; i < count; i++)
        known += json_object_get(object, key_of(i)) != NULL;
    return known;
}

static const char *metric_key(unsigned i)
{
    return wg_metric_key((enum wg_metric)i);
}

static const char *knob_key(unsigned i)
{
    return wg_knob_key((enum wg_knob)i);
}

static void read_meters(struct wg_members *members, struct wg_device_info *out)
{
    const json_t *meters = wg__member_object(members, "meters");
    for (unsigned i = 0; i < WG_METRIC_COUNT && members->code == WG_OK; i++) {
        char where[WHERE_MAX];
        struct wg_members inner;
        out->meters[i].source = "none";
        out->meters[i].why_not = "the recording does not know it";
        if (enter(members, meters, "meter", metric_key(i), where, &inner))
            read_meter(&inner, &out->meters[i]);
        members->code = inner.code;
    }
    members->recording->unknown_keys +=
        json_object_size(meters) - count_known(meters, metric_key, WG_METRIC_COUNT);
}

static void read_knobs(struct wg_members *members, struct wg_device_info *out)
{
    const json_t *knobs = wg__member_object(members, "knobs");
    for (unsigned i = 0; i < WG_KNOB_COUNT && members->code == WG_OK; i++) {
        char where[WHERE_MAX];
        struct wg_members inner;
        out->knobs[i].source = "none";
        out->knobs[i].why_not = "the recording does not know it";
        out->knobs[i].preset = out->knobs[i].current = (double)NAN;
        if (enter(members, knobs, "knob", knob_key(i), where, &inner))
            read_knob(&inner, &out->knobs[i]);
        members->code = inner.code;
    }
    members->recording->unknown_keys +=
        json_object_size(knobs) - count_known(knobs, knob_key, WG_KNOB_COUNT);
}

enum wg_code wg__recording_read_info(struct wg_members *members, struct wg_device_info *out)
{
    *out = (struct wg_device_info){0};
    read_identity(members, out);
    if (members->code == WG_OK)
        read_meters(members, out);
    if (members->code == WG_OK)
        read_knobs(members, out);
    return members->code;
}
