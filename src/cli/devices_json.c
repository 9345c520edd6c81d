/* SPDX-License-Identifier: MIT
 *
 * `wattgov devices --json`: schema wattgov.devices/1. man/wattgov-devices.1.scd describes each key.
 *
 * Every meter and knob is there, present or not; what is unknown is null.
 */
#include "cli/devices_report.h"

#include <math.h>

#include "base/json.h"
#include "device/recording.h"
#include "device/sample.h"

/* 0 stands for "unknown" in the interface. */
static double known(double value)
{
    return value > 0 ? value : (double)NAN;
}

static void write_meters(struct wg_json *json, const struct wg_device_info *info,
                         const struct wg_sample *sample)
{
    wg__json_key(json, "meters");
    wg__json_object(json);
    for (int i = 0; i < WG_METRIC_COUNT; i++) {
        const struct wg_meter_info *meter = &info->meters[i];
        const bool has_value = wg__sample_has(sample, (enum wg_metric)i);
        wg__json_key(json, wg_metric_key((enum wg_metric)i));
        wg__json_object(json);
        wg__json_member_bool(json, "present", meter->is_present);
        wg__json_member_double(json, "value", has_value ? sample->values[i] : (double)NAN);
        wg__json_member_string(json, "source", meter->source);
        wg__json_member_double(json, "resolution", known(meter->resolution));
        wg__json_member_double(json, "update_period_s", known(meter->update_period_s));
        wg__json_member_double(json, "averaging_window_s", known(meter->averaging_window_s));
        wg__json_member_string(json, "why_not", meter->why_not);
        wg__json_member_string(json, "remedy", meter->remedy);
        wg__json_close(json);
    }
    wg__json_close(json);
}

static void write_knobs(struct wg_json *json, const struct wg_device_info *info)
{
    wg__json_key(json, "knobs");
    wg__json_object(json);
    for (int i = 0; i < WG_KNOB_COUNT; i++) {
        const struct wg_knob_info *knob = &info->knobs[i];
        const bool is_there = knob->is_present;
        wg__json_key(json, wg_knob_key((enum wg_knob)i));
        wg__json_object(json);
        wg__json_member_bool(json, "present", is_there);
        wg__json_member_bool(json, "writable", is_there && knob->is_writable);
        wg__json_member_double(json, "min", is_there ? knob->min : (double)NAN);
        wg__json_member_double(json, "max", is_there ? knob->max : (double)NAN);
        wg__json_member_double(json, "step", is_there ? known(knob->step) : (double)NAN);
        wg__json_member_double(json, "preset", is_there ? knob->preset : (double)NAN);
        wg__json_member_double(json, "current", is_there ? knob->current : (double)NAN);
        if (is_there && knob->levels != NULL) {
            wg__json_member_doubles(json, "levels", knob->levels, knob->level_count);
        } else {
            wg__json_key(json, "levels");
            wg__json_null(json);
        }
        wg__json_member_string(json, "unit", wg_knob_unit((enum wg_knob)i));
        wg__json_member_string(json, "source", knob->source);
        wg__json_member_string(json, "why_not", knob->why_not);
        wg__json_member_string(json, "remedy", knob->remedy);
        wg__json_close(json);
    }
    wg__json_close(json);
}

/* Why the clock is below what it could be, in words; null where the device does not tell. */
static void write_throttle(struct wg_json *json, const struct wg_sample *sample)
{
    wg__json_key(json, "throttle");
    if (!sample->has_throttle) {
        wg__json_null(json);
        return;
    }
    wg__json_array(json);
    for (unsigned bit = 0; bit < 32; bit++) {
        const char *text = (sample->throttle >> bit & 1u) != 0
                               ? wg_throttle_text((enum wg_throttle)(1u << bit))
                               : NULL;
        if (text != NULL)
            wg__json_string(json, text);
    }
    wg__json_close(json);
}

static void write_processes(struct wg_json *json, const struct wg_device_look *look)
{
    wg__json_key(json, "processes");
    wg__json_array(json);
    for (size_t i = 0; i < look->process_count; i++) {
        const struct wg_process_line *line = &look->processes[i];
        wg__json_object(json);
        wg__json_member_uint(json, "pid", line->process.pid);
        if (line->process.memory_bytes != UINT64_MAX) {
            wg__json_member_uint(json, "memory_bytes", line->process.memory_bytes);
        } else {
            wg__json_key(json, "memory_bytes");
            wg__json_null(json);
        }
        wg__json_member_string(json, "name", line->name[0] != '\0' ? line->name : NULL);
        wg__json_close(json);
    }
    wg__json_close(json);
    wg__json_member_string(json, "processes_why_not", look->process_trouble);
}

static void write_device(struct wg_json *json, const struct wg_devices_report *report,
                         size_t position)
{
    const struct wg_device_info *info = report->infos[position];
    const struct wg_device_look *look = &report->looks[position];
    wg__json_object(json);
    wg__device_identity_write(json, info);
    wg__json_member_string(json, "state", wg_code_name(info->state));
    wg__json_member_string(json, "state_text",
                           info->state != WG_OK ? info->state_text : look->trouble);
    write_throttle(json, &look->sample);
    write_meters(json, info, &look->sample);
    write_knobs(json, info);
    if (report->has_processes)
        write_processes(json, look);
    wg__json_close(json);
}

void wg__devices_json(const struct wg_devices_report *report, struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.devices/1");
    wg__json_key(&json, "devices");
    wg__json_array(&json);
    for (size_t i = 0; i < report->device_count; i++)
        write_device(&json, report, i);
    wg__json_close(&json);
    wg__json_key(&json, "backends");
    wg__json_array(&json);
    for (size_t i = 0; i < report->backend_count; i++) {
        const struct wg_backend_info *backend = report->backends[i];
        wg__json_object(&json);
        wg__json_member_string(&json, "name", backend->name);
        wg__json_member_string(&json, "state", wg_code_name(backend->state));
        wg__json_member_string(&json, "text", backend->text);
        wg__json_member_string(&json, "remedy", backend->remedy);
        wg__json_member_uint(&json, "device_count", backend->device_count);
        wg__json_close(&json);
    }
    wg__json_close(&json);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}
