/* SPDX-License-Identifier: MIT
 *
 * The checkpoint; see tune_checkpoint.h.
 */
#include "live/tune_checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"

static const char schema[] = "wattgov.tune.state/1";

/* -- Writing ---------------------------------------------------------------------------------- */

static void write_knob(struct wg_json *json, const struct wg_tune_knob *knob)
{
    wg__json_object(json);
    wg__tune_knob_write(json, knob);
    wg__json_member_uint(json, "default", knob->default_level);
    wg__json_close(json);
}

/* Watts of one GPU say nothing of another one's, of the same model even. */
static void write_devices(struct wg_json *json, const struct wg_tune_devices *devices)
{
    wg__json_key(json, "devices");
    wg__json_array(json);
    for (size_t i = 0; i < devices->gpu_count + devices->cpu_count; i++) {
        const size_t position =
            i < devices->gpu_count ? devices->gpus[i] : devices->cpus[i - devices->gpu_count];
        const struct wg_device_info *info =
            wg_device_get_info(wg_machine_device(devices->machine, position));
        wg__json_object(json);
        wg__json_member_string(json, "id", info->id);
        wg__json_member_string(json, "name", info->name);
        wg__json_close(json);
    }
    wg__json_close(json);
}

static void write_limit(struct wg_json *json, const struct wg_tune_term *limit)
{
    wg__json_object(json);
    wg__json_member_string(json, "figure", limit->text);
    wg__json_member_bool(json, "is_minimum", limit->is_minimum);
    wg__json_member_bool(json, "is_relative", limit->is_relative);
    wg__json_member_double(json, "bound", limit->bound);
    wg__json_close(json);
}

void wg__tune_identity(struct wg_buffer *out, const struct wg_tune_knobs *knobs,
                       const struct wg_tune_goal *goal, enum wg_tuner_policy policy, uint64_t seed,
                       const char *workload, const char *energy, const char *arrivals)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_key(&json, "knobs");
    wg__json_array(&json);
    for (size_t k = 0; k < knobs->count; k++)
        write_knob(&json, &knobs->knobs[k]);
    wg__json_close(&json);
    wg__json_member_uint(&json, "configurations", knobs->space->count);
    write_devices(&json, &knobs->devices);
    wg__json_member_string(&json, "objective", goal->objective.text);
    wg__json_key(&json, "limits");
    wg__json_array(&json);
    for (size_t i = 0; i < goal->limit_count; i++)
        write_limit(&json, &goal->limits[i]);
    wg__json_close(&json);
    wg__json_member_string(&json, "policy", wg__tuner_policy_word(policy));
    wg__json_member_uint(&json, "seed", seed);
    wg__json_member_string(&json, "workload", workload);
    wg__json_member_string(&json, "energy", energy);
    wg__json_member_string(&json, "arrivals", arrivals);
    wg__json_close(&json);
}

static void write_trial(struct wg_json *json, const struct wg_tune_request *request,
                        const struct wg_tune_trial *trial)
{
    const struct wg_tune_knobs *knobs = request->knobs;
    const size_t limits = request->goal->limit_count;
    const struct wg_trial *told = &trial->told;
    wg__json_object(json);
    wg__json_key(json, "levels");
    wg__json_array(json);
    for (size_t k = 0; k < knobs->count; k++)
        wg__json_uint(json, wg__tuning_level(knobs->space, told->configuration, k));
    wg__json_close(json);
    wg__json_member_string(json, "outcome", wg__trial_outcome_word(told->outcome));
    wg__json_member_string(json, "reason", wg__tuner_reason_word(trial->reason));
    wg__json_member_double(json, "objective", told->objective);
    wg__json_member_double(json, "objective_error", told->objective_error);
    wg__json_member_doubles(json, "figures", told->figures, limits);
    wg__json_member_doubles(json, "figure_errors", told->figure_errors, limits);
    wg__json_member_uint(json, "refused_knob", told->refused_knob);
    if (told->is_slack) {
        wg__json_member_uint(json, "slack_knob", told->slack_knob);
        wg__json_member_double(json, "slack_level", told->slack_level);
    }
    wg__json_member_uint(json, "windows", trial->windows);
    wg__json_member_double(json, "time_s", trial->time_s);
    wg__json_member_double(json, "at_s", trial->at_s);
    wg__json_member_double(json, "energy_j", trial->energy_j);
    wg__json_member_double(json, "power_w", trial->power_w);
    wg__json_member_double(json, "requests", trial->requests);
    wg__json_member_string(json, "why", trial->why);
    wg__json_member_string(json, "failure", trial->failure);
    wg__json_key(json, "measured");
    wg__json_object(json);
    for (size_t i = 0; i < trial->figure_count; i++)
        wg__json_member_double(json, trial->figures[i].name, trial->figures[i].value);
    wg__json_close(json);
    wg__json_close(json);
}

/* The identity is JSON already. */
static void write_head(struct wg_buffer *out, const struct wg_tune_request *request,
                       const struct wg_tune_result *result)
{
    struct wg_json json;
    wg__buffer_printf(out, "{\"schema\":\"%s\",\"identity\":%s,\"bounds\":", schema,
                      request->identity);
    wg__json_init(&json, out);
    wg__json_array(&json);
    for (size_t i = 0; i < request->goal->limit_count; i++)
        wg__json_double(&json, result->bounds[i]);
    wg__json_close(&json);
    wg__buffer_puts(out, ",\"trials\":[");
}

enum wg_code wg__tune_checkpoint_write(const char *path, const struct wg_tune_request *request,
                                       const struct wg_tune_result *result, struct wg_error *err)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    write_head(&text, request, result);
    for (size_t i = 0; i < result->count; i++) {
        struct wg_json json;
        wg__buffer_puts(&text, i > 0 ? ",\n" : "\n");
        wg__json_init(&json, &text);
        write_trial(&json, request, &result->trials[i]);
    }
    wg__buffer_puts(&text, "\n]}\n");
    const enum wg_code code = text.failed ? wg__fail(err, WG_ENOMEM, "out of memory")
                                          : wg__file_write(path, text.data, text.length, err);
    wg__buffer_fini(&text);
    return code;
}

/* -- One at a time ---------------------------------------------------------------------------- */

enum wg_code wg__tune_checkpoint_claim(const char *path, int *lock, struct wg_error *err)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
    long holder = 0;
    if (fd < 0)
        return WG_OK;
    if (wg__file_lock(fd, &holder) != EBUSY) { /* a file system without locks is no reason */
        if (*lock >= 0)
            (void)close(*lock);
        *lock = fd;
        return WG_OK;
    }
    char who[32] = "";
    if (holder > 0)
        (void)snprintf(who, sizeof who, " (pid %ld)", holder);
    (void)close(fd);
    return wg__fail(err, WG_EBUSY, "%s: another wattgov tune writes it%s", path, who);
}

/* -- Reading ---------------------------------------------------------------------------------- */

struct reader {
    const char *path;
    const struct wg_tune_request *request;
    size_t trial; /* its number, from 1 */
    struct wg_error *err;
};

static enum wg_code fail(const struct reader *reader, const char *cause)
{
    return wg__fail(reader->err, WG_EDATA, "%s: trial %zu: %s", reader->path, reader->trial, cause);
}

static double number(const json_t *object, const char *key)
{
    const json_t *member = json_object_get(object, key);
    return json_is_number(member) ? json_number_value(member) : (double)NAN;
}

static void copy_text(char *out, size_t size, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    (void)snprintf(out, size, "%s", text != NULL ? text : "");
}

static bool parse_reason(const char *word, enum wg_tuner_reason *out)
{
    for (int reason = 0; word != NULL && reason < WG_TUNER_REASON_COUNT; reason++) {
        if (strcmp(word, wg__tuner_reason_word((enum wg_tuner_reason)reason)) != 0)
            continue;
        *out = (enum wg_tuner_reason)reason;
        return true;
    }
    return false;
}

static enum wg_code read_levels(const struct reader *reader, const json_t *object, size_t *out)
{
    const struct wg_tune_knobs *knobs = reader->request->knobs;
    const json_t *levels = json_object_get(object, "levels");
    size_t of[WG_TUNING_KNOBS_MAX];
    if (!json_is_array(levels) || json_array_size(levels) != knobs->count)
        return fail(reader, "levels: expected one position a knob");
    for (size_t k = 0; k < knobs->count; k++) {
        const json_t *level = json_array_get(levels, k);
        const json_int_t value = json_is_integer(level) ? json_integer_value(level) : -1;
        if (value < 0 || value >= (json_int_t)knobs->knobs[k].count)
            return fail(reader, "levels: a position that is none");
        of[k] = (size_t)value;
    }
    *out = wg__tuning_space_find(knobs->space, of);
    return *out < knobs->space->count ? WG_OK : fail(reader, "levels: a forbidden combination");
}

static void read_numbers(const json_t *object, const char *key, size_t count, double fallback,
                         double *out)
{
    const json_t *list = json_object_get(object, key);
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_array_get(list, i);
        out[i] = json_is_number(item) ? json_number_value(item) : fallback;
    }
}

static enum wg_code read_measured(const struct reader *reader, const json_t *object,
                                  struct wg_tune_trial *out)
{
    json_t *measured = json_object_get(object, "measured");
    out->figures = wg__alloc_zeroed(WG_WORKLOAD_FIGURES_MAX, sizeof *out->figures);
    if (out->figures == NULL)
        return wg__fail(reader->err, WG_ENOMEM, "out of memory");
    for (void *at = json_object_iter(measured);
         at != NULL && out->figure_count < WG_WORKLOAD_FIGURES_MAX;
         at = json_object_iter_next(measured, at)) {
        struct wg_workload_figure *figure = &out->figures[out->figure_count++];
        (void)snprintf(figure->name, sizeof figure->name, "%s", json_object_iter_key(at));
        figure->value = json_is_number(json_object_iter_value(at))
                            ? json_number_value(json_object_iter_value(at))
                            : (double)NAN;
    }
    return WG_OK;
}

/* The knob that did not bind, if the trial tells one. False: it cannot be. */
static bool read_slack(const struct wg_tune_knobs *knobs, const json_t *object,
                       struct wg_trial *told)
{
    const double knob = number(object, "slack_knob"), level = number(object, "slack_level");
    if (json_object_get(object, "slack_knob") == NULL)
        return true;
    if (!(knob >= 0 && knob < (double)knobs->count) ||
        knobs->space->knobs[(size_t)knob].role == WG_TUNING_CATEGORY ||
        !(level <= wg__tuning_value(knobs->space, told->configuration, (size_t)knob)))
        return false;
    told->is_slack = true;
    told->slack_knob = (size_t)knob;
    told->slack_level = level;
    return true;
}

static enum wg_code read_trial(const struct reader *reader, const json_t *object,
                               struct wg_tune_trial *out)
{
    const size_t limits = reader->request->goal->limit_count;
    struct wg_trial *told = &out->told;
    enum wg_code code = read_levels(reader, object, &told->configuration);
    if (code != WG_OK)
        return code;
    const char *outcome = json_string_value(json_object_get(object, "outcome"));
    if (outcome == NULL || !wg__trial_outcome_parse(outcome, &told->outcome))
        return fail(reader, "outcome: not one that is known");
    if (!parse_reason(json_string_value(json_object_get(object, "reason")), &out->reason))
        return fail(reader, "reason: not one that is known");
    const double refused = number(object, "refused_knob");
    told->objective = number(object, "objective");
    told->objective_error = fmax(0, number(object, "objective_error"));
    for (size_t i = 0; i < WG_TUNING_LIMITS_MAX; i++)
        told->figures[i] = NAN;
    read_numbers(object, "figures", limits, NAN, told->figures);
    read_numbers(object, "figure_errors", limits, 0, told->figure_errors);
    if (told->outcome == WG_TRIAL_REFUSED &&
        !(refused >= 0 && refused < (double)reader->request->knobs->count))
        return fail(reader, "refused_knob: no knob");
    told->refused_knob = refused > 0 ? (size_t)refused : 0;
    if (!read_slack(reader->request->knobs, object, told))
        return fail(reader, "slack_knob, slack_level: no knob, or above the level that was set");
    out->windows = (unsigned)fmax(0, fmin(1e6, number(object, "windows")));
    out->time_s = number(object, "time_s");
    out->at_s = number(object, "at_s");
    out->energy_j = number(object, "energy_j");
    out->power_w = number(object, "power_w");
    out->requests = number(object, "requests");
    copy_text(out->why, sizeof out->why, object, "why");
    copy_text(out->failure, sizeof out->failure, object, "failure");
    out->is_resumed = true;
    return read_measured(reader, object, out);
}

/* Which part of the identity is another one. */
static enum wg_code check_identity(const char *path, const struct wg_tune_request *request,
                                   const json_t *root, struct wg_error *err)
{
    json_t *ours = json_loads(request->identity, 0, NULL);
    json_t *theirs = json_object_get(root, "identity");
    if (ours == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    enum wg_code code = WG_OK;
    for (void *at = json_object_iter(ours); at != NULL && code == WG_OK;
         at = json_object_iter_next(ours, at)) {
        const char *key = json_object_iter_key(at);
        if (!json_equal(json_object_iter_value(at), json_object_get(theirs, key)))
            code = wg__fail(err, WG_EDATA,
                            "%s is of another tuning: its %s differ%s; name another --state, or "
                            "leave --resume out to begin anew",
                            path, key, key[strlen(key) - 1] == 's' ? "" : "s");
    }
    json_decref(ours);
    return code;
}

static enum wg_code read_trials(struct reader *reader, const json_t *list,
                                struct wg_tune_result *result)
{
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count > WG_TUNE_TRIALS_MAX)
        return wg__fail(reader->err, WG_EDATA, "%s: trials: expected a list", reader->path);
    for (size_t i = 0; i < count; i++) {
        reader->trial = i + 1;
        struct wg_tune_trial *trial = &result->trials[result->count++];
        const enum wg_code code = read_trial(reader, json_array_get(list, i), trial);
        if (code != WG_OK)
            return code;
    }
    result->resumed = result->count;
    return WG_OK;
}

enum wg_code wg__tune_checkpoint_read(const char *path, const struct wg_tune_request *request,
                                      struct wg_tune_result *result, struct wg_error *err)
{
    json_error_t cause;
    struct reader reader = {.path = path, .request = request, .err = err};
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &cause);
    if (root == NULL && json_error_code(&cause) == json_error_cannot_open_file)
        return wg__fail(err, WG_ENOENT, "%s: there is no state to resume from", path);
    if (root == NULL)
        return wg__fail(err, WG_EDATA, "%s:%d: %s", path, cause.line, cause.text);
    enum wg_code code = WG_OK;
    const char *found = json_string_value(json_object_get(root, "schema"));
    if (found == NULL || strcmp(found, schema) != 0)
        code = wg__fail(err, WG_EDATA, "%s: not a state of wattgov tune (\"schema\": \"%s\")", path,
                        schema);
    if (code == WG_OK)
        code = check_identity(path, request, root, err);
    if (code == WG_OK) {
        read_numbers(root, "bounds", request->goal->limit_count, NAN, result->bounds);
        code = read_trials(&reader, json_object_get(root, "trials"), result);
    }
    json_decref(root);
    return code;
}
