/* SPDX-License-Identifier: MIT
 *
 * `wattgov tune --json`: schema wattgov.tune/1 (docs/tune.md).
 */
#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "cli/tune_report.h"
#include "wattgov/version.h"

static void write_settings(const struct wg_tune_report *report, size_t configuration,
                           struct wg_json *json)
{
    const struct wg_tuning_space *space = report->setup->knobs.space;
    wg__json_key(json, "settings");
    wg__json_object(json);
    for (size_t k = 0; k < space->knob_count; k++) {
        const struct wg_tuning_knob *knob = &space->knobs[k];
        const size_t level = wg__tuning_level(space, configuration, k);
        if (knob->labels != NULL)
            wg__json_member_string(json, knob->name, knob->labels[level]);
        else
            wg__json_member_double(json, knob->name, knob->levels[level]);
    }
    wg__json_close(json);
}

static void write_knobs(const struct wg_tune_report *report, struct wg_json *json)
{
    const struct wg_tune_knobs *knobs = &report->setup->knobs;
    wg__json_key(json, "knobs");
    wg__json_array(json);
    for (size_t k = 0; k < knobs->count; k++) {
        const struct wg_tune_knob *knob = &knobs->knobs[k];
        wg__json_object(json);
        wg__tune_knob_write(json, knob);
        wg__json_member_uint(json, "default_level", knob->default_level);
        wg__json_member_double(json, "switch_s", knob->switch_s);
        wg__json_close(json);
    }
    wg__json_close(json);
}

static void write_goal(const struct wg_tune_report *report, struct wg_json *json)
{
    const struct wg_tune_goal *goal = &report->setup->goal;
    wg__json_key(json, "objective");
    wg__json_object(json);
    wg__json_member_string(json, "figure", goal->objective.text);
    wg__json_member_string(json, "kind", wg__tuning_kind_word(goal->objective.kind));
    wg__json_close(json);
    wg__json_key(json, "limits");
    wg__json_array(json);
    for (size_t i = 0; i < goal->limit_count; i++) {
        wg__json_object(json);
        wg__json_member_string(json, "figure", goal->limits[i].text);
        wg__json_member_string(json, "kind", wg__tuning_kind_word(goal->limits[i].kind));
        wg__json_member_bool(json, "is_minimum", goal->limits[i].is_minimum);
        wg__json_member_double(json, "bound", report->result->bounds[i]);
        wg__json_close(json);
    }
    wg__json_close(json);
}

/* null where no load was simulated. */
static void write_at_load(const struct wg_tune_report *report, size_t configuration,
                          struct wg_json *json)
{
    struct wg_tune_at_load load;
    wg__json_key(json, "at_load");
    if (!wg__tune_at_load(report, configuration, &load)) {
        wg__json_null(json);
        return;
    }
    wg__json_object(json);
    wg__json_member_double(json, "utilization", load.utilization);
    wg__json_member_double(json, "batch_mean", load.batch_mean);
    wg__json_member_double(json, "energy_per_request_j", load.request_j);
    wg__json_member_double(json, "idle_per_request_j", load.idle_j);
    wg__json_close(json);
}

static void write_making(const struct wg_tune_report *report, struct wg_json *json)
{
    const struct wg_tune_devices *devices = &report->setup->devices;
    wg__json_member_string(json, "version", wg_version());
    wg__json_member_string(json, "command", report->command);
    wg__json_member_string(json, "made_at", report->made_at);
    wg__json_member_string(json, "host", report->host);
    wg__json_key(json, "gpus");
    wg__json_array(json);
    for (size_t g = 0; g < devices->gpu_count; g++) {
        const struct wg_device_info *info =
            wg_device_get_info(wg_machine_device(devices->machine, devices->gpus[g]));
        wg__json_object(json);
        wg__json_member_string(json, "label", info->label);
        wg__json_member_string(json, "id", info->id);
        wg__json_member_string(json, "name", info->name);
        wg__json_close(json);
    }
    wg__json_close(json);
}

/* null where there is none. */
static void write_configuration(const struct wg_tune_report *report, const char *key,
                                size_t configuration, struct wg_json *json)
{
    struct wg_tune_standing standing;
    wg__json_key(json, key);
    if (configuration >= report->setup->knobs.space->count) {
        wg__json_null(json);
        return;
    }
    wg__tune_standing(report, configuration, &standing);
    wg__json_object(json);
    write_settings(report, configuration, json);
    wg__json_member_uint(json, "trials", standing.trials);
    wg__json_member_double(json, "objective", standing.objective);
    wg__json_member_doubles(json, "limits", standing.figures, report->setup->goal.limit_count);
    write_at_load(report, configuration, json);
    wg__json_close(json);
}

static void write_forecast(const struct wg_tune_report *report, struct wg_json *json)
{
    const struct wg_tune_result *result = report->result;
    const size_t limits = report->setup->goal.limit_count;
    struct wg_tuning_forecast forecast;
    wg__json_key(json, "forecast");
    if (result->tuner == NULL || result->best.configuration >= report->setup->knobs.space->count ||
        !wg__tuner_forecast(result->tuner, result->best.configuration, &forecast)) {
        wg__json_null(json);
        return;
    }
    wg__json_object(json);
    wg__json_member_double(json, "objective", forecast.objective);
    wg__json_member_double(json, "objective_sd", forecast.objective_sd);
    wg__json_member_doubles(json, "limits", forecast.figures, limits);
    wg__json_member_doubles(json, "limit_sds", forecast.figure_sds, limits);
    wg__json_member_double(json, "feasible", forecast.feasible);
    wg__json_close(json);
}

/* utilization and batch_mean: no window has them, so they mean the same wherever they stand. */
static bool is_of_load_only(const char *name)
{
    return strcmp(name, "utilization") == 0 || strcmp(name, "batch_mean") == 0;
}

/* Those of the window in `figures`, those that were simulated in `at_load` (null: none were). */
static void write_figures(const struct wg_tune_report *report, const struct wg_tune_trial *trial,
                          struct wg_json *json)
{
    wg__json_key(json, "figures");
    wg__json_object(json);
    for (size_t i = 0; i < trial->figure_count; i++)
        if (!wg__tune_is_at_load(report, trial->figures[i].name) ||
            is_of_load_only(trial->figures[i].name))
            wg__json_member_double(json, trial->figures[i].name, trial->figures[i].value);
    if (report->setup->request.arrivals != NULL && trial->energy_j > 0 && trial->requests > 0)
        wg__json_member_double(json, "energy_per_request_j", trial->energy_j / trial->requests);
    wg__json_close(json);
    wg__json_key(json, "at_load");
    if (report->setup->request.arrivals == NULL) {
        wg__json_null(json);
        return;
    }
    wg__json_object(json);
    for (size_t i = 0; i < trial->figure_count; i++)
        if (wg__tune_is_at_load(report, trial->figures[i].name))
            wg__json_member_double(json, trial->figures[i].name, trial->figures[i].value);
    wg__json_close(json);
}

static void write_error(struct wg_json *json, double error)
{
    wg__json_double(json, error > 0 && error < 0.99 ? error : (double)NAN);
}

static void write_trial(const struct wg_tune_report *report, size_t index, struct wg_json *json)
{
    const struct wg_tune_trial *trial = &report->result->trials[index];
    const size_t limits = report->setup->goal.limit_count;
    wg__json_object(json);
    wg__json_member_uint(json, "number", index + 1);
    write_settings(report, trial->told.configuration, json);
    wg__json_member_string(json, "outcome", wg__trial_outcome_word(trial->told.outcome));
    wg__json_member_string(json, "reason", wg__tuner_reason_word(trial->reason));
    wg__json_member_string(json, "why", trial->why);
    wg__json_member_string(json, "failure", trial->failure[0] != '\0' ? trial->failure : NULL);
    wg__json_member_double(json, "objective", trial->told.objective);
    wg__json_key(json, "objective_error");
    write_error(json, trial->told.objective_error);
    wg__json_member_doubles(json, "limits", trial->told.figures, limits);
    wg__json_key(json, "limit_errors");
    wg__json_array(json);
    for (size_t i = 0; i < limits; i++)
        write_error(json, trial->told.figure_errors[i]);
    wg__json_close(json);
    wg__json_member_uint(json, "windows", trial->windows);
    wg__json_member_double(json, "at_s", trial->at_s);
    wg__json_member_double(json, "time_s", trial->time_s);
    wg__json_member_double(json, "energy_j", trial->energy_j);
    wg__json_member_double(json, "power_w", trial->power_w);
    wg__json_member_double(json, "requests", trial->requests);
    wg__json_member_bool(json, "is_resumed", trial->is_resumed);
    write_figures(report, trial, json);
    wg__json_close(json);
}

static void write_end(const struct wg_tune_report *report, struct wg_json *json)
{
    const struct wg_tune_result *result = report->result;
    wg__json_member_string(json, "end", wg__tune_end_key(report));
    wg__json_member_string(json, "why", result->best.why);
    wg__json_member_bool(json, "is_feasible", result->best.is_feasible);
    wg__json_member_bool(json, "is_validated", result->best.is_validated);
    wg__json_member_bool(json, "is_certain", result->best.is_certain);
    wg__json_member_uint(json, "trials_counted", result->best.trials);
    wg__json_member_uint(json, "trials_failed", result->best.failed_trials);
    wg__json_member_uint(json, "trials_resumed", result->resumed);
    wg__json_member_double(json, "expected_saving", result->best.expected_saving);
    wg__json_member_double(json, "time_s", result->time_s);
    wg__json_member_uint(json, "not_restored", result->not_restored);
    if (result->workload_end[0] != '\0')
        wg__json_member_string(json, "workload_end", result->workload_end);
}

static void write_saving(const struct wg_tune_report *report, struct wg_json *json)
{
    const struct wg_tune_saving saving =
        wg__tune_saving(report, report->result->best.configuration);
    wg__json_member_double(json, "saving", saving.share);
    wg__json_member_double(json, "saving_error", saving.error);
}

void wg__tune_json(const struct wg_tune_report *report, struct wg_buffer *out)
{
    const struct wg_tune_setup *setup = report->setup;
    char energy[WG_TUNE_ENERGY_TEXT_SIZE];
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.tune/1");
    write_making(report, &json);
    wg__json_member_string(&json, "workload", setup->workload_text);
    wg__json_member_string(&json, "policy", wg__tuner_policy_word(setup->request.policy));
    wg__json_member_uint(&json, "seed", setup->request.seed);
    wg__json_member_uint(&json, "configurations", setup->knobs.space->count);
    write_knobs(report, &json);
    write_goal(report, &json);
    wg__tune_report_energy(report, energy);
    wg__json_key(&json, "energy");
    wg__json_object(&json);
    wg__json_member_string(&json, "source", wg__tune_energy_word(setup->energy.kind));
    wg__json_member_string(&json, "text", energy);
    wg__json_member_double(&json, "idle_w", report->result->idle_w);
    wg__json_close(&json);
    wg__json_member_string(&json, "arrivals", setup->args->arrivals);
    write_end(report, &json);
    write_configuration(report, "returned", report->result->best.configuration, &json);
    write_forecast(report, &json);
    write_configuration(report, "runner_up", report->result->best.runner_up, &json);
    write_configuration(report, "default", setup->knobs.space->default_configuration, &json);
    write_saving(report, &json);
    wg__json_key(&json, "trials");
    wg__json_array(&json);
    for (size_t i = 0; i < report->result->count; i++)
        write_trial(report, i, &json);
    wg__json_close(&json);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}
