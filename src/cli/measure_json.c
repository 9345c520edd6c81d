/* SPDX-License-Identifier: MIT
 *
 * `wattgov measure --json`: schema wattgov.measure/1. man/wattgov-measure.1.scd describes each key.
 *
 * Keys may be added, those that exist stay. What is unknown is null.
 */
#include "cli/measure_report.h"

#include <math.h>

#include "base/json.h"
#include "cli/window_json.h"

static void write_device(struct wg_json *json, const struct wg_measure_report *report,
                         size_t device, const struct wg_window_result *result)
{
    const struct wg_device_info *info = report->infos[device];
    wg__json_object(json);
    wg__json_member_string(json, "label", info->label);
    wg__json_member_string(json, "id", info->id);
    wg__json_member_string(json, "kind", wg_device_kind_key(info->kind));
    wg__json_member_string(json, "name", info->name);
    wg__json_member_bool(json, "counts_in_total", info->counts_in_total);
    wg__window_json(json, result);
    wg__json_member_string(json, "trouble", report->troubles[device]);
    wg__json_close(json);
}

static void write_run(struct wg_json *json, const struct wg_measure_report *report,
                      const struct wg_measure_run *run)
{
    wg__json_object(json);
    wg__json_member_double(json, "time_s", run->time_s);
    wg__json_key(json, "exit_status");
    if (report->command != NULL)
        wg__json_uint(json, (uint64_t)run->child.status);
    else
        wg__json_null(json);
    wg__json_member_double(json, "user_s", run->has_child ? run->child.user_s : (double)NAN);
    wg__json_member_double(json, "system_s", run->has_child ? run->child.system_s : (double)NAN);
    wg__json_key(json, "peak_memory_bytes");
    if (run->has_child)
        wg__json_uint(json, run->child.peak_memory_bytes);
    else
        wg__json_null(json);
    wg__json_key(json, "devices");
    wg__json_array(json);
    for (size_t i = 0; i < report->device_count; i++)
        write_device(json, report, i, &run->devices[i]);
    wg__json_close(json);
    wg__json_key(json, "total");
    wg__json_object(json);
    wg__window_json(json, &run->total);
    wg__json_close(json);
    wg__json_close(json);
}

static void write_spread(struct wg_json *json, const char *key,
                         const struct wg_measure_report *report, int device,
                         enum wg_measure_number number)
{
    const struct wg_spread spread = wg__measure_spread(report, device, number);
    wg__json_key(json, key);
    wg__json_object(json);
    wg__json_member_uint(json, "count", spread.count);
    wg__json_member_double(json, "mean", spread.mean);
    wg__json_member_double(json, "sd", spread.sd);
    wg__json_member_double(json, "relative_sd",
                           spread.mean > 0 ? spread.sd / spread.mean : (double)NAN);
    wg__json_member_double(json, "min", spread.min);
    wg__json_member_double(json, "max", spread.max);
    wg__json_close(json);
}

static void write_summary(struct wg_json *json, const struct wg_measure_report *report)
{
    wg__json_key(json, "summary");
    wg__json_object(json);
    wg__json_member_uint(json, "run_count", report->run_count);
    wg__json_member_uint(json, "runs_wanted", report->runs_wanted);
    write_spread(json, "time_s", report, WG_MEASURE_TOTAL, WG_MEASURE_TIME);
    write_spread(json, "energy_j", report, WG_MEASURE_TOTAL, WG_MEASURE_ENERGY);
    write_spread(json, "power_mean_w", report, WG_MEASURE_TOTAL, WG_MEASURE_POWER);
    wg__json_key(json, "devices");
    wg__json_array(json);
    for (size_t i = 0; i < report->device_count; i++) {
        wg__json_object(json);
        wg__json_member_string(json, "label", report->infos[i]->label);
        write_spread(json, "energy_j", report, (int)i, WG_MEASURE_ENERGY);
        write_spread(json, "power_mean_w", report, (int)i, WG_MEASURE_POWER);
        wg__json_close(json);
    }
    wg__json_close(json);
    wg__json_close(json);
}

/* Why there are no devices of some kind. */
static void write_backends(struct wg_json *json, const struct wg_measure_report *report)
{
    wg__json_key(json, "backends");
    wg__json_array(json);
    for (size_t i = 0; i < report->backend_count; i++) {
        const struct wg_backend_info *backend = report->backends[i];
        wg__json_object(json);
        wg__json_member_string(json, "name", backend->name);
        wg__json_member_string(json, "state", wg_code_name(backend->state));
        wg__json_member_string(json, "text", backend->text);
        wg__json_member_string(json, "remedy", backend->remedy);
        wg__json_member_uint(json, "device_count", backend->device_count);
        wg__json_close(json);
    }
    wg__json_close(json);
}

void wg__measure_json(const struct wg_measure_report *report, int exit_status,
                      struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.measure/1");
    wg__json_key(&json, "command");
    if (report->command != NULL) {
        wg__json_array(&json);
        for (size_t i = 0; report->command[i] != NULL; i++)
            wg__json_string(&json, report->command[i]);
        wg__json_close(&json);
    } else {
        wg__json_null(&json);
    }
    wg__json_key(&json, "exit_status");
    if (report->command != NULL)
        wg__json_uint(&json, (uint64_t)exit_status);
    else
        wg__json_null(&json);
    wg__json_key(&json, "repeats");
    wg__json_array(&json);
    for (size_t i = 0; i < report->run_count; i++)
        write_run(&json, report, &report->runs[i]);
    wg__json_close(&json);
    write_summary(&json, report);
    write_backends(&json, report);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}
