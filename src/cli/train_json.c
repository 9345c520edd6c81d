/* SPDX-License-Identifier: MIT
 *
 * `wattgov train --json`: schema wattgov.train/1. man/wattgov-train.1.scd describes each key.
 *
 * Keys may be added, those that exist stay. What is unknown is null.
 */
#include <math.h>

#include "base/json.h"
#include "cli/train_report.h"
#include "cli/window_json.h"

static void write_row(struct wg_json *json, const struct wg_train_report *report,
                      const struct wg_train_stage *stage, size_t i)
{
    struct wg_train_row row;
    wg__train_row(report, stage, i, &row);
    wg__json_object(json);
    wg__json_member_double(json, "setting", row.point->setting);
    wg__json_member_double(json, "power_w", row.point->power_w);
    wg__json_member_double(json, "power_sd_w", row.point->power_sd);
    wg__json_member_double(json, "steps_per_s", row.point->throughput);
    wg__json_member_double(json, "steps_per_s_sd", row.point->throughput_sd);
    wg__json_member_double(json, "step_energy_j", row.step_j);
    wg__json_member_double(json, "energy_ratio", row.energy_ratio);
    wg__json_member_double(json, "speed_ratio", row.speed_ratio);
    wg__json_member_double(json, "cost_ratio", row.cost_ratio);
    wg__json_member_double(json, "measured_s", row.point->measured_s);
    wg__json_member_uint(json, "measurements", row.point->measurements);
    wg__json_member_uint(json, "discarded", row.point->discarded);
    wg__json_member_double(json, "settle_s", row.point->settle_s);
    wg__json_member_bool(json, "is_best", row.is_best);
    wg__json_member_bool(json, "is_remembered", row.is_remembered);
    wg__json_close(json);
}

static void write_stage(struct wg_json *json, const struct wg_train_report *report,
                        const struct wg_train_stage *stage)
{
    const bool has_best = stage->best < stage->settings.count;
    wg__json_object(json);
    wg__json_member_string(json, "knob", wg_knob_key(stage->settings.knob));
    wg__json_member_string(json, "unit", wg_knob_unit(stage->settings.knob));
    wg__json_member_doubles(json, "settings", stage->settings.setting, stage->settings.count);
    wg__json_member_double(json, "best",
                           has_best ? stage->settings.setting[stage->best] : (double)NAN);
    wg__json_member_double(json, "search_s", stage->search_s);
    wg__json_member_uint(json, "drifts", stage->drifts);
    wg__json_key(json, "profile");
    wg__json_array(json);
    for (size_t i = 0; i < stage->point_count; i++)
        write_row(json, report, stage, i);
    wg__json_close(json);
    wg__json_close(json);
}

static void write_saving(struct wg_json *json, const struct wg_train_report *report)
{
    struct wg_train_saving saving;
    wg__train_saving(report->result, &saving);
    const bool is_known = report->result->is_governed && saving.is_known;
    wg__json_key(json, "saving");
    wg__json_object(json);
    wg__json_member_double(json, "energy_j", is_known ? saving.energy_j : (double)NAN);
    wg__json_member_double(json, "energy_share", is_known ? saving.energy_share : (double)NAN);
    wg__json_member_double(json, "energy_share_error", is_known ? saving.share_error : (double)NAN);
    wg__json_member_double(json, "slower_share", is_known ? saving.slower_share : (double)NAN);
    wg__json_member_double(json, "expected_cost_share", report->expected_cost_share);
    wg__json_close(json);
}

static void write_devices(struct wg_json *json, const struct wg_train_report *report)
{
    wg__json_key(json, "devices");
    wg__json_array(json);
    for (size_t g = 0; g < report->gpu_count; g++) {
        wg__json_object(json);
        wg__json_member_string(json, "label", report->infos[g]->label);
        wg__json_member_string(json, "id", report->infos[g]->id);
        wg__json_member_string(json, "name", report->infos[g]->name);
        wg__window_json(json, &report->result->devices[g]);
        wg__json_close(json);
    }
    wg__json_close(json);
    wg__json_key(json, "total");
    wg__json_object(json);
    wg__window_json(json, &report->result->total);
    wg__json_close(json);
}

void wg__train_json(const struct wg_train_report *report, struct wg_buffer *out)
{
    const struct wg_train_result *result = report->result;
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.train/1");
    wg__json_key(&json, "command");
    wg__json_array(&json);
    for (char *const *word = report->command; *word != NULL; word++)
        wg__json_string(&json, *word);
    wg__json_close(&json);
    wg__json_member_uint(&json, "exit_status", (uint64_t)result->child.status);
    wg__json_member_string(&json, "objective", report->objective);
    wg__json_member_bool(&json, "is_governed", result->is_governed);
    wg__json_member_string(&json, "why_not", result->is_governed ? NULL : result->why_not);
    wg__json_member_double(&json, "time_s", result->time_s);
    wg__json_member_string(&json, "progress", wg__train_source_key(result->source));
    wg__json_member_double(&json, "confidence", result->confidence);
    wg__json_member_uint(&json, "ranks", result->ranks);
    wg__json_member_double(&json, "steps", result->steps);
    wg__json_member_double(&json, "epochs", result->epochs);
    wg__json_member_double(&json, "steps_per_epoch", result->steps_per_epoch);
    wg__json_member_double(&json, "metric", result->metric);
    wg__json_member_double(&json, "batch_size", result->batch_size);
    wg__json_member_double(&json, "max_power_w", result->max_power_w);
    wg__json_member_bool(&json, "was_foreign", result->was_foreign);
    wg__json_member_uint(&json, "not_restored", result->not_restored);
    wg__json_key(&json, "stages");
    wg__json_array(&json);
    for (size_t i = 0; i < result->stage_count; i++)
        write_stage(&json, report, &result->stages[i]);
    wg__json_close(&json);
    write_saving(&json, report);
    write_devices(&json, report);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}
