/* SPDX-License-Identifier: MIT
 *
 * Options about a served model; see tune_server_args.h.
 */
#include "cli/tune_server_args.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"
#include "live/tune_quantity.h"

const char *const wg__tune_protocols[] = {
#define X(name, word) word,
    WG_SERVER_PROTOCOLS(X)
#undef X
        NULL};
const char *const wg__tune_data[] = {"random", "zeros", NULL};
const char *const wg__tune_batch_by[] = {"server", "client", NULL};
const char *const wg__tune_leave[] = {"original", "returned", NULL};
const char *const wg__tune_statistics[] = {"client", "triton", NULL};

/* "NAME=PATH", "NAME=PATH*1e6" */
static enum wg_code take_path(struct wg_tune_server_opts *out, const char *text,
                              struct wg_error *err)
{
    const size_t at = out->opts.path_count;
    const size_t length = strlen(text);
    if (at == WG_TUNE_PATHS_MAX)
        return wg__fail(err, WG_EINVAL, "--knob-path: more than %d", WG_TUNE_PATHS_MAX);
    if (length >= WG_TUNE_PATH_SIZE)
        return wg__option_reject(err, "knob-path", text, "shorter than 256 bytes");
    char *name = out->names[at];
    memcpy(name, text, length + 1);
    char *path = strchr(name, '=');
    if (path == NULL || path == name || path[1] == '\0')
        return wg__option_reject(err, "knob-path", text,
                                 "of the form NAME=PATH or NAME=PATH*SCALE");
    *path++ = '\0';
    struct wg_server_knob_path *place = &out->paths[at];
    *place = (struct wg_server_knob_path){.knob = name, .path = path};
    char *star = strrchr(path, '*');
    if (star != NULL) {
        *star = '\0';
        if (!wg__parse_double(star + 1, &place->scale) || !(place->scale > 0))
            return wg__option_reject(err, "knob-path", text,
                                     "of the form NAME=PATH*SCALE with a scale above 0");
    }
    out->opts.path_count++;
    return WG_OK;
}

static const char *const *copy_list(const struct wg_option_list *list, const char **out)
{
    memcpy(out, list->items, list->count * sizeof *out);
    out[list->count] = NULL;
    return list->count > 0 ? out : NULL;
}

enum wg_code wg__tune_server_opts(struct wg_tune_server_opts *out,
                                  const struct wg_tune_server_args *args, const char *command,
                                  const char *arrivals, uint64_t seed, struct wg_error *err)
{
    const bool is_triton = strcmp(args->statistics, "triton") == 0;
    *out = (struct wg_tune_server_opts){0};
    out->opts = (struct wg_workload_server_opts){
        .url = args->url,
        .control_url = args->control_url,
        .model = args->model,
        .model_version = args->model_version,
        .shapes = copy_list(&args->shapes, out->shapes),
        .data = strcmp(args->data, "zeros") == 0 ? WG_SERVER_DATA_ZEROS : WG_SERVER_DATA_RANDOM,
        .body_files = copy_list(&args->bodies, out->bodies),
        .is_json = args->as_json,
        .prompt = args->prompt,
        .is_chat = args->chat,
        .is_streaming = args->stream,
        .max_tokens = args->max_tokens,
        .arrivals = is_triton ? NULL : arrivals,
        .concurrency = args->concurrency,
        .max_outstanding = args->max_outstanding,
        .timeout_s = args->request_timeout_s,
        .warm_up_s = args->warm_up_s,
        .seed = seed,
        .batch_by = strcmp(args->batch_by, "client") == 0 ? WG_SERVER_BATCH_BY_CLIENT
                                                          : WG_SERVER_BATCH_BY_SERVER,
        .paths = out->paths,
        .config_file = args->model_config,
        .statistics = is_triton ? WG_SERVER_STATISTICS_TRITON : WG_SERVER_STATISTICS_CLIENT,
        .is_foreign_load = args->foreign_load,
        .command = command,
        .ready_path = args->ready_path,
        .ready_s = args->ready_s,
        .log_file = args->log,
    };
    (void)wg__server_protocol_parse(args->protocol, &out->opts.protocol); /* one of the choices */
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < args->paths.count && code == WG_OK; i++)
        code = take_path(out, args->paths.items[i], err);
    return code;
}

/* The level that this is; `knob->count`: none. */
static size_t level_of(const struct wg_tune_knob *knob, double value, const char *text)
{
    for (size_t i = 0; i < knob->count; i++)
        if (knob->labels != NULL ? strcmp(knob->labels[i], text) == 0
                                 : fabs(knob->levels[i] - value) <= 1e-9 * fabs(value))
            return i;
    return knob->count;
}

static void say_level(const struct wg_tuning_space *space, size_t k, size_t level,
                      struct wg_buffer *out)
{
    char text[WG_TUNE_QUANTITY_SIZE];
    wg__tune_level_text(text, &space->knobs[k], level);
    wg__buffer_printf(out, "%s%s %s", out->length > 0 ? ", " : "", space->knobs[k].name, text);
}

void wg__tune_server_defaults(struct wg_tune_knobs *knobs, struct wg_workload *workload,
                              bool is_quiet)
{
    size_t levels[WG_TUNING_KNOBS_MAX];
    struct wg_buffer own, other;
    wg__buffer_init(&own);
    wg__buffer_init(&other);
    for (size_t k = 0; k < knobs->count; k++) {
        const struct wg_tune_knob *knob = &knobs->knobs[k];
        double value = NAN;
        char text[WG_WORKLOAD_NAME_SIZE];
        levels[k] = knob->default_level;
        if (knob->is_device || knob->is_default_said ||
            !wg__workload_server_present(workload, knob->name, &value, text))
            continue;
        const size_t level = level_of(knob, value, text);
        if (level < knob->count)
            levels[k] = level;
        say_level(knobs->space, k, levels[k], level < knob->count ? &own : &other);
    }
    const bool is_allowed = wg__tune_knobs_set_default(knobs, levels);
    if (!is_quiet && own.length > 0 && !own.failed)
        (void)fprintf(stderr, "wattgov tune: %s: %s\n",
                      is_allowed ? "the default that all is compared with is what the server has"
                                 : "what the server has is forbidden, and no default",
                      own.data);
    if (!is_quiet && other.length > 0 && !other.failed)
        (void)fprintf(stderr,
                      "wattgov tune: the default that all is compared with is not what the server "
                      "has, which is no level: %s\n",
                      other.data);
    wg__buffer_fini(&own);
    wg__buffer_fini(&other);
}

bool wg__tune_server_lacks_batches(const struct wg_tune_knobs *knobs, size_t configuration,
                                   const struct wg_workload_figure *figures, size_t count)
{
    double allowed = 1, mean = NAN;
    for (size_t k = 0; k < knobs->count; k++)
        if (knobs->knobs[k].role == WG_TUNING_BATCH)
            allowed = fmax(allowed, wg__tuning_value(knobs->space, configuration, k));
    for (size_t i = 0; i < count; i++)
        if (strcmp(figures[i].name, "batch_mean") == 0)
            mean = figures[i].value;
    return allowed > 1 && mean <= 1;
}
