/* SPDX-License-Identifier: MIT
 *
 * The result file, written and read; see tune_result.h.
 */
#include "cli/tune_result.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/number.h"
#include "cli/tune_report.h"
#include "cli/yaml_file.h"
#include "live/server_config.h"
#include "live/tune_quantity.h"
#include "wattgov/version.h"

static const char schema[] = "wattgov.tune.result/1";

/* -- Writing ---------------------------------------------------------------------------------- */

/* In quotes, whatever it holds. */
static void put_text(struct wg_buffer *out, const char *text)
{
    wg__buffer_puts(out, "'");
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;
        wg__buffer_printf(out, "%c%s", byte < 0x20 ? ' ' : *text, *text == '\'' ? "'" : "");
    }
    wg__buffer_puts(out, "'");
}

static void put_number(struct wg_buffer *out, double value)
{
    char text[WG_DOUBLE_TEXT_SIZE];
    wg__format_double(text, value);
    wg__buffer_puts(out, isfinite(value) ? text : "~");
}

/* Of a served model: where the knob stands there. */
static void put_place(const struct wg_tune_report *report, const struct wg_tune_knob *knob,
                      struct wg_buffer *out)
{
    const struct wg_workload_server_opts *server = &report->setup->server.opts;
    double scale = 1;
    if (server->url == NULL || knob->is_device)
        return;
    const char *path = wg__workload_server_path(server, knob->name, &scale);
    if (path == NULL)
        return;
    wg__buffer_puts(out, ", path: ");
    put_text(out, path);
    wg__buffer_puts(out, ", scale: ");
    put_number(out, scale);
}

static void put_server(const struct wg_workload_server_opts *server, struct wg_buffer *out)
{
    const struct {
        const char *key, *text;
    } texts[] = {{"control_url", server->control_url},
                 {"model", server->model},
                 {"model_version", server->model_version},
                 {"model_config", server->config_file}};
    if (server->url == NULL)
        return;
    wg__buffer_puts(out, "server: {url: ");
    put_text(out, server->url);
    wg__buffer_printf(out, ", protocol: %s", wg__server_protocol_word(server->protocol));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].text == NULL)
            continue;
        wg__buffer_printf(out, ", %s: ", texts[i].key);
        put_text(out, texts[i].text);
    }
    wg__buffer_puts(out, "}\n");
}

static void put_knob(const struct wg_tune_report *report, size_t k, struct wg_buffer *out)
{
    const struct wg_tune_knob *knob = &report->setup->knobs.knobs[k];
    char text[WG_TUNE_QUANTITY_SIZE];
    const size_t level =
        wg__tuning_level(report->setup->knobs.space, report->result->best.configuration, k);
    wg__buffer_printf(out, "  - {name: %s, role: %s, ", knob->name,
                      wg__tuning_role_word(knob->role));
    if (knob->is_device)
        wg__buffer_puts(out, "is_device: true, ");
    wg__buffer_puts(out, "value: ");
    if (knob->labels != NULL)
        put_text(out, knob->labels[level]);
    else
        put_number(out, knob->levels[level]);
    wg__tune_level_text(text, &report->setup->knobs.space->knobs[k], level);
    put_place(report, knob, out);
    wg__buffer_printf(out, "}%s%s\n", knob->is_device ? " # " : "", knob->is_device ? text : "");
}

/* The GPUs that were chosen, set or not: measured they were. */
static void put_gpus(const struct wg_tune_report *report, struct wg_buffer *out)
{
    const struct wg_tune_devices *devices = &report->setup->devices;
    if (devices->gpu_count == 0)
        return;
    wg__buffer_puts(out, "gpus:\n");
    for (size_t g = 0; g < devices->gpu_count; g++) {
        const struct wg_device_info *info =
            wg_device_get_info(wg_machine_device(devices->machine, devices->gpus[g]));
        wg__buffer_printf(out, "  - {index: %u, uuid: ", info->index);
        put_text(out, info->uuid != NULL ? info->uuid : info->id);
        wg__buffer_puts(out, ", name: ");
        put_text(out, info->name);
        wg__buffer_puts(out, "}\n");
    }
}

/* When, by what, and what was asked for. */
static void put_making(const struct wg_tune_report *report, struct wg_buffer *out)
{
    const struct wg_tune_args *args = report->setup->args;
    char date[32] = "";
    struct tm parts;
    const time_t now = (time_t)wg__clock_wall_s();
    if (gmtime_r(&now, &parts) != NULL)
        (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    wg__buffer_printf(out, "date: '%s'\nversion: '%s'\npolicy: %s\nseed: %" PRIu64 "\n", date,
                      wg_version(), args->policy, args->seed);
    if (args->arrivals != NULL) {
        wg__buffer_puts(out, "arrivals: ");
        put_text(out, args->arrivals);
        wg__buffer_puts(out, "\n");
    }
    if (args->slo != NULL) {
        wg__buffer_puts(out, "slo: ");
        put_text(out, args->slo);
        wg__buffer_puts(out, "\n");
    }
}

static void put_limits(const struct wg_tune_report *report, const struct wg_tune_standing *standing,
                       struct wg_buffer *out)
{
    const struct wg_tune_goal *goal = &report->setup->goal;
    if (goal->limit_count == 0)
        return;
    wg__buffer_puts(out, "limits:\n");
    for (size_t i = 0; i < goal->limit_count; i++) {
        wg__buffer_puts(out, "  - {figure: ");
        put_text(out, goal->limits[i].text);
        wg__buffer_printf(
            out, ", is_minimum: %s, bound: ", goal->limits[i].is_minimum ? "true" : "false");
        put_number(out, report->result->bounds[i]);
        wg__buffer_puts(out, ", measured: ");
        put_number(out, standing->figures[i]);
        wg__buffer_puts(out, "}\n");
    }
}

void wg__tune_result_yaml(const struct wg_tune_report *report, struct wg_buffer *out)
{
    const struct wg_tuner_result *best = &report->result->best;
    struct wg_tune_standing standing;
    char energy[WG_TUNE_ENERGY_TEXT_SIZE];
    wg__tune_standing(report, best->configuration, &standing);
    wg__tune_report_energy(report, energy);
    wg__buffer_printf(out,
                      "# Made by wattgov tune. Hold it with: wattgov tune apply FILE -- CMD\n"
                      "# Values are SI: Hz, W, s.\nschema: %s\n",
                      schema);
    put_making(report, out);
    put_gpus(report, out);
    put_server(&report->setup->server.opts, out);
    wg__buffer_puts(out, "knobs:\n");
    for (size_t k = 0; k < report->setup->knobs.count; k++)
        put_knob(report, k, out);
    wg__buffer_puts(out, "workload: ");
    put_text(out, report->setup->workload_text);
    wg__buffer_puts(out, "\nobjective: {figure: ");
    put_text(out, report->setup->goal.objective.text);
    wg__buffer_puts(out, ", measured: ");
    put_number(out, standing.objective);
    wg__buffer_puts(out, "}\n");
    put_limits(report, &standing, out);
    wg__buffer_puts(out, "energy: ");
    put_text(out, energy);
    wg__buffer_printf(out,
                      "\nend: %s\nis_feasible: %s\nis_validated: %s\nis_certain: %s\n"
                      "trials: %zu\n",
                      wg__tune_end_key(report), best->is_feasible ? "true" : "false",
                      best->is_validated ? "true" : "false", best->is_certain ? "true" : "false",
                      best->trials);
}

/* -- Reading ---------------------------------------------------------------------------------- */

static const char *member(const struct wg_yaml *yaml, wg_yaml_node map, const char *key)
{
    return wg__yaml_text(yaml, wg__yaml_find(yaml, map, key));
}

/* YAML's spellings; false: another word. */
static bool read_bool(const char *text, bool *out)
{
    static const char *const words[] = {"false", "False", "FALSE", "true", "True", "TRUE"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(text, words[i]) != 0)
            continue;
        *out = i >= 3;
        return true;
    }
    return false;
}

/* What is a device's knob is so by its name; who says otherwise is mistaken. */
static enum wg_code check_device(const struct wg_yaml *yaml, wg_yaml_node node,
                                 enum wg_tuning_role told, struct wg_tune_applied *out,
                                 struct wg_error *err)
{
    const size_t at = out->count - 1;
    const char *name = out->knobs[at].name, *word = member(yaml, node, "is_device");
    enum wg_tuning_role role = told;
    const bool is_known = wg__tune_device_knob(name, &role, &out->knobs[at].knob);
    bool is_device = is_known;
    if (word[0] != '\0' && !read_bool(word, &is_device))
        return wg__yaml_fail(yaml, node, err, "%s: is_device is '%s': expected true or false", name,
                             word);
    if (is_device && !is_known)
        return wg__yaml_fail(yaml, node, err, "'%s' is no knob of a device", name);
    if (is_known && (!is_device || role != told))
        return wg__yaml_fail(yaml, node, err,
                             "%s is a knob of a device: expected role: %s, is_device: true", name,
                             wg__tuning_role_word(role));
    out->knobs[at].is_device = is_device;
    for (size_t i = 0; i < at; i++)
        if (strcmp(out->knobs[i].name, name) == 0)
            return wg__yaml_fail(yaml, node, err, "knob '%s' is given twice", name);
    return WG_OK;
}

/* "" where the key is missing; false: it is too long. */
static bool read_text(const struct wg_yaml *yaml, wg_yaml_node map, const char *key, char *out,
                      size_t size)
{
    const char *text = member(yaml, map, key);
    const size_t length = strlen(text);
    if (length >= size)
        return false;
    memcpy(out, text, length + 1);
    return true;
}

/* Where a knob of a served model stands. */
static enum wg_code read_place(const struct wg_yaml *yaml, wg_yaml_node node,
                               struct wg_tune_applied *out, struct wg_error *err)
{
    const size_t at = out->count - 1;
    const char *name = out->knobs[at].name, *scale = member(yaml, node, "scale");
    if (!read_text(yaml, node, "path", out->knobs[at].path, sizeof out->knobs[at].path))
        return wg__yaml_fail(yaml, node, err, "%s: path is longer than %d bytes", name,
                             WG_TUNE_PATH_SIZE - 1);
    out->knobs[at].scale = wg__server_scale(out->knobs[at].path);
    if (scale[0] != '\0' &&
        (!wg__parse_double(scale, &out->knobs[at].scale) || !(out->knobs[at].scale > 0)))
        return wg__yaml_fail(yaml, node, err, "%s: scale is '%s': expected a number above 0", name,
                             scale);
    return WG_OK;
}

static enum wg_code read_server(const struct wg_yaml *yaml, wg_yaml_node root,
                                struct wg_tune_applied *out, struct wg_error *err)
{
    const wg_yaml_node node = wg__yaml_find(yaml, root, "server");
    struct wg_tune_applied_server *server = &out->server;
    if (node == 0)
        return WG_OK;
    if (!read_text(yaml, node, "url", server->url, sizeof server->url) || server->url[0] == '\0' ||
        !wg__server_protocol_parse(member(yaml, node, "protocol"), &server->protocol))
        return wg__yaml_fail(yaml, node, err,
                             "server: expected {url: ..., protocol: ..., model: ...}");
    const struct {
        const char *key;
        char *out;
        size_t size;
    } texts[] = {
        {"control_url", server->control_url, sizeof server->control_url},
        {"model", server->model, sizeof server->model},
        {"model_version", server->model_version, sizeof server->model_version},
        {"model_config", server->model_config, sizeof server->model_config},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!read_text(yaml, node, texts[i].key, texts[i].out, texts[i].size))
            return wg__yaml_fail(yaml, node, err, "server: %s is longer than %zu bytes",
                                 texts[i].key, texts[i].size - 1);
    return WG_OK;
}

static enum wg_code read_knob(const struct wg_yaml *yaml, wg_yaml_node node,
                              struct wg_tune_applied *out, struct wg_error *err)
{
    enum wg_tuning_role role = WG_TUNING_CATEGORY;
    const char *name = member(yaml, node, "name"), *value = member(yaml, node, "value");
    if (out->count == WG_TUNING_KNOBS_MAX)
        return wg__yaml_fail(yaml, node, err, "more than %d knobs", WG_TUNING_KNOBS_MAX);
    const size_t at = out->count++;
    if (name[0] == '\0' || strlen(name) >= WG_TUNE_NAME_SIZE || value[0] == '\0' ||
        strlen(value) >= WG_TUNE_NAME_SIZE)
        return wg__yaml_fail(yaml, node, err, "expected {name: ..., role: ..., value: ...}");
    memcpy(out->knobs[at].name, name, strlen(name) + 1);
    if (!wg__tuning_role_parse(member(yaml, node, "role"), &role))
        return wg__yaml_fail(yaml, node, err, "%s: '%s' is no role", name,
                             member(yaml, node, "role"));
    out->knobs[at].value = NAN;
    out->knobs[at].label[0] = '\0';
    enum wg_code code = check_device(yaml, node, role, out, err);
    if (code == WG_OK)
        code = read_place(yaml, node, out, err);
    if (code != WG_OK)
        return code;
    if (role == WG_TUNING_CATEGORY)
        memcpy(out->knobs[at].label, value, strlen(value) + 1);
    else if (!wg__parse_double(value, &out->knobs[at].value))
        return wg__yaml_fail(yaml, node, err, "%s: '%s' is not a number", name, value);
    return WG_OK;
}

static enum wg_code read_gpu(const struct wg_yaml *yaml, wg_yaml_node node,
                             struct wg_tune_applied *out, struct wg_error *err)
{
    const char *uuid = member(yaml, node, "uuid"), *name = member(yaml, node, "name");
    uint64_t index = 0;
    if (out->gpu_count == WG_TUNE_DEVICES_MAX)
        return wg__yaml_fail(yaml, node, err, "more than %d GPUs", WG_TUNE_DEVICES_MAX);
    struct wg_tune_applied_gpu *gpu = &out->gpus[out->gpu_count++];
    if (uuid[0] == '\0' || strlen(uuid) >= sizeof gpu->uuid || strlen(name) >= sizeof gpu->name ||
        !wg__parse_uint64(member(yaml, node, "index"), &index) || index > UINT_MAX)
        return wg__yaml_fail(yaml, node, err, "expected {index: ..., uuid: ..., name: ...}");
    gpu->index = (unsigned)index;
    memcpy(gpu->uuid, uuid, strlen(uuid) + 1);
    memcpy(gpu->name, name, strlen(name) + 1);
    return WG_OK;
}

static enum wg_code read_gpus(const struct wg_yaml *yaml, wg_yaml_node root,
                              struct wg_tune_applied *out, struct wg_error *err)
{
    const wg_yaml_node gpus = wg__yaml_find(yaml, root, "gpus");
    enum wg_code code = WG_OK;
    if (gpus == 0)
        return WG_OK;
    if (wg__yaml_kind(yaml, gpus) != WG_YAML_LIST || wg__yaml_count(yaml, gpus) == 0)
        return wg__yaml_fail(yaml, gpus, err, "gpus: expected a list");
    for (size_t i = 0; i < wg__yaml_count(yaml, gpus) && code == WG_OK; i++)
        code = read_gpu(yaml, wg__yaml_item(yaml, gpus, i), out, err);
    return code;
}

enum wg_code wg__tune_result_read(const char *path, struct wg_tune_applied *out,
                                  struct wg_error *err)
{
    struct wg_yaml *yaml = NULL;
    enum wg_code code = wg__yaml_open(&yaml, path, err);
    if (code != WG_OK)
        return code;
    *out = (struct wg_tune_applied){0};
    const wg_yaml_node root = wg__yaml_root(yaml);
    const wg_yaml_node knobs = wg__yaml_find(yaml, root, "knobs");
    if (strcmp(member(yaml, root, "schema"), schema) != 0)
        code = wg__yaml_fail(yaml, root, err, "not a result of wattgov tune: expected schema: %s",
                             schema);
    else if (wg__yaml_kind(yaml, knobs) != WG_YAML_LIST || wg__yaml_count(yaml, knobs) == 0)
        code = wg__yaml_fail(yaml, knobs, err, "knobs: expected a list");
    for (size_t i = 0; i < wg__yaml_count(yaml, knobs) && code == WG_OK; i++)
        code = read_knob(yaml, wg__yaml_item(yaml, knobs, i), out, err);
    if (code == WG_OK)
        code = read_gpus(yaml, root, out, err);
    if (code == WG_OK)
        code = read_server(yaml, root, out, err);
    bool is_feasible = true;
    out->is_infeasible = read_bool(member(yaml, root, "is_feasible"), &is_feasible) && !is_feasible;
    wg__yaml_close(yaml);
    return code;
}
