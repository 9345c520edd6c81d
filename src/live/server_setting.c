/* SPDX-License-Identifier: MIT
 *
 * How a served model is brought to a configuration, and back to life.
 *
 * Loading with another configuration keeps the old model until the new one is there, so both must
 * fit into memory. Where that fails for memory the old one is unloaded first and the load tried
 * once more: only then is it the configuration that does not fit.
 *
 * Owns: nothing of its own.    Threads: one at a time.
 */
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "live/server_config.h"
#include "live/server_parts.h"
#include "net/http_call.h"
#include "net/kserve_json.h"

enum { ASK_AGAIN_MS = 50, STOP_S = 10, MODELS_MAX = 1 << 20 };
static const double READY_ANSWER_S = 2;

/* -- Outcomes --------------------------------------------------------------------------------- */

enum wg_code wg__server_outcome(enum wg_code code, const struct wg_error *err,
                                enum wg_workload_outcome *outcome, char why[WG_WORKLOAD_WHY_SIZE])
{
    *outcome = WG_WORKLOAD_OK;
    why[0] = '\0';
    if (code == WG_OK || code == WG_ENOMEM || code == WG_EINVAL || code == WG_EUNSUPPORTED ||
        code == WG_EBUSY)
        return code;
    (void)snprintf(why, WG_WORKLOAD_WHY_SIZE, "%.*s", WG_WORKLOAD_WHY_SIZE - 1, err->text);
    *outcome = code == WG_ETIMEOUT ? WG_WORKLOAD_HUNG : WG_WORKLOAD_CRASHED;
    if (wg__is_out_of_memory(err->text))
        *outcome = WG_WORKLOAD_OUT_OF_MEMORY;
    return WG_OK;
}

static enum wg_code no_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "a configuration of the server: out of memory");
}

/* -- Readiness -------------------------------------------------------------------------------- */

/* GET of a path, whatever the protocol: OpenAI's servers, and a `ready_path`. */
static enum wg_code get(struct wg_workload_server *server, const char *path,
                        struct wg_http_reply *reply, struct wg_error *err)
{
    const char *base =
        server->opts.control_url != NULL ? server->opts.control_url : server->opts.url;
    struct wg_buffer url;
    wg__buffer_init(&url);
    wg__buffer_printf(&url, "%s%s", base, path);
    enum wg_code code = url.failed ? no_memory(err) : WG_OK;
    struct wg_http_client *client = NULL;
    if (code == WG_OK)
        code = wg__http_client_open(&client, 1, MODELS_MAX, err);
    const struct wg_http_request request = {.url = url.data, .timeout_s = READY_ANSWER_S};
    if (code == WG_OK)
        code = wg__http_call(client, &request, &server->stop, reply, err);
    wg__http_client_close(client);
    wg__buffer_fini(&url);
    return code;
}

static enum wg_code ask_ready(struct wg_workload_server *server, struct wg_error *err)
{
    if (server->control != NULL && server->opts.ready_path == NULL)
        return wg__triton_server_ready(server->control, err);
    const char *path = server->opts.ready_path != NULL ? server->opts.ready_path : "/health";
    struct wg_http_reply reply = {.answer.status = 0};
    enum wg_code code = get(server, path, &reply, err);
    if (code == WG_OK && reply.answer.status != 200)
        code = wg__fail(err, WG_ESTATE, "%s%s: HTTP status %u", server->opts.url, path,
                        reply.answer.status);
    wg__buffer_fini(&reply.body);
    return code;
}

/* Until it is ready, it has died (WG_ELOST), or patience is over (WG_ETIMEOUT). */
static enum wg_code wait_ready(struct wg_workload_server *server, struct wg_error *err)
{
    const uint64_t until_ns = wg__clock_ns() + (uint64_t)(server->opts.ready_s * 1e9);
    for (;;) {
        struct wg_error last = {.code = WG_OK};
        const enum wg_code code = ask_ready(server, &last);
        if (code == WG_OK)
            return WG_OK;
        if (code == WG_ENOMEM || code == WG_EINVAL) {
            if (err != NULL)
                *err = last;
            return code;
        }
        if (server->has_process && !wg__server_process_is_running(&server->process)) {
            char why[160];
            (void)wg__server_process_why(&server->process, why, sizeof why);
            return wg__fail(err, WG_ELOST, "%s", why);
        }
        if (server->stop.should_stop != NULL && server->stop.should_stop(server->stop.context))
            return wg__fail(err, WG_ETIMEOUT, "%s: given up: a signal came", server->opts.url);
        if (wg__clock_ns() >= until_ns)
            return wg__fail(err, WG_ETIMEOUT, "not ready within %g s: %.120s", server->opts.ready_s,
                            last.text);
        (void)poll(NULL, 0, ASK_AGAIN_MS);
    }
}

/* -- The command ------------------------------------------------------------------------------ */

void wg__server_forget(struct wg_workload_server *server)
{
    server->is_config_known = false;
    server->is_made = false;
    server->seen = (struct wg_kserve_statistics){.inferences = 0};
}

static enum wg_code start(struct wg_workload_server *server, struct wg_error *err)
{
    wg__server_process_stop(&server->process, STOP_S);
    wg__server_forget(server);
    server->has_switched = true;
    server->is_line_known = false;
    server->line.length = 0;
    wg__buffer_append(&server->line, server->setting.data, server->setting.length);
    if (server->line.failed)
        return no_memory(err);
    struct wg_error ignored;
    if (ask_ready(server, &ignored) == WG_OK) /* or we would measure that one */
        return wg__fail(err, WG_EINVAL, "%s: another server answers there before ours is started",
                        server->opts.url);
    enum wg_code code = wg__server_process_start(&server->process, server->line.data, err);
    if (code == WG_OK)
        code = wait_ready(server, err);
    if (code == WG_OK) {
        server->is_line_known = true;
        return WG_OK;
    }
    if (code != WG_ELOST)
        wg__server_process_stop(&server->process, STOP_S);
    return code;
}

/* Starts the server if its command is another one, or it does not run. */
static enum wg_code run_command(struct wg_workload_server *server,
                                const struct wg_workload_setting *settings, size_t count,
                                struct wg_error *err)
{
    if (!server->has_process)
        return WG_OK;
    server->setting.length = 0;
    wg__server_command_fill(&server->setting, server->opts.command, settings, count);
    if (server->setting.failed)
        return no_memory(err);
    const bool is_same = server->is_line_known && server->line.length == server->setting.length &&
                         memcmp(server->line.data, server->setting.data, server->line.length) == 0;
    if (is_same && wg__server_process_is_running(&server->process))
        return WG_OK;
    return start(server, err);
}

/* -- The model's configuration ---------------------------------------------------------------- */

enum wg_code wg__server_load(struct wg_workload_server *server, const char *config,
                             struct wg_error *err)
{
    struct wg_error first = {.code = WG_OK};
    enum wg_code code = wg__triton_load(server->control, config, &first);
    if (code == WG_ESTATE && wg__is_out_of_memory(first.text)) {
        struct wg_error ignored;
        (void)wg__triton_unload(server->control, &ignored);
        code = wg__triton_load(server->control, config, &first);
    }
    if (code != WG_OK && err != NULL)
        *err = first;
    return code;
}

/* What the model is like before we change it. One that a running server cannot even load as its
 * repository has it is not there: Triton has no status of its own for that. */
static enum wg_code learn_base(struct wg_workload_server *server, struct wg_error *err)
{
    const enum wg_code claimed = wg__server_claim_model(server, err);
    if (claimed != WG_OK || server->base_config != NULL)
        return claimed;
    struct wg_error ignored, cause = {.code = WG_OK};
    if (wg__triton_model_ready(server->control, &ignored) != WG_OK) {
        const enum wg_code code = wg__server_load(server, NULL, &cause);
        if (code == WG_ESTATE && !server->has_process && !wg__is_out_of_memory(cause.text))
            return wg__fail(err, WG_ENOENT, "%s", cause.text);
        if (code != WG_OK && err != NULL)
            *err = cause;
        if (code != WG_OK)
            return code;
    }
    return wg__triton_config(server->control, &server->base_config, err);
}

/* A server in explicit mode that was started anew has no model: ours is loaded as it is in the
 * repository. One that cannot load says so when it is asked about the model. */
static void load_if_missing(struct wg_workload_server *server)
{
    struct wg_error ignored;
    if (wg__triton_model_ready(server->control, &ignored) != WG_OK)
        (void)wg__server_load(server, NULL, &ignored);
}

/* The settings that go into the configuration, with their paths. */
struct edits {
    const char *paths[WG_SERVER_SETTINGS_MAX];
    struct wg_workload_setting values[WG_SERVER_SETTINGS_MAX];
    size_t count;
};

/* Has the server take `config` (which is ours from then on); NULL: what it was set to last. */
static enum wg_code apply(struct wg_workload_server *server, char *config, struct wg_error *err)
{
    if (config != NULL) {
        wg__free(server->config);
        server->config = config;
    }
    wg__server_forget(server);
    server->has_switched = true;
    enum wg_code code = wg__server_keep_original(server, err);
    if (code == WG_OK)
        code = wg__server_load(server, server->config, err);
    server->is_config_known = code == WG_OK;
    struct wg_error ignored;
    wg__free(server->held);
    server->held = NULL;
    if (code == WG_OK && server->opts.is_only_set)
        (void)wg__triton_config(server->control, &server->held, &ignored);
    return code;
}

static enum wg_code configure(struct wg_workload_server *server, const struct edits *edits,
                              struct wg_error *err)
{
    if (edits->count == 0) {
        if (server->control != NULL && !server->is_made)
            load_if_missing(server);
        return WG_OK;
    }
    char *config = NULL;
    enum wg_code code = learn_base(server, err);
    if (code == WG_OK)
        code = wg__server_config_edit(&config, server->base_config, edits->paths, edits->values,
                                      edits->count, err);
    if (code != WG_OK)
        return code;
    if (server->is_config_known && server->config != NULL && strcmp(server->config, config) == 0) {
        wg__free(config);
        return WG_OK;
    }
    return apply(server, config, err);
}

/* -- Settings --------------------------------------------------------------------------------- */

const char *wg__workload_server_path(const struct wg_workload_server_opts *opts, const char *knob,
                                     double *scale_out)
{
    double scale = 0;
    const char *path = NULL;
    for (size_t i = 0; i < opts->path_count && path == NULL; i++) {
        if (strcmp(opts->paths[i].knob, knob) == 0) {
            path = opts->paths[i].path;
            scale = opts->paths[i].scale;
        }
    }
    if (path == NULL && opts->command != NULL && wg__server_command_has(opts->command, knob))
        path = "command";
    if (path == NULL)
        path = wg__server_path(knob, opts->batch_by == WG_SERVER_BATCH_BY_CLIENT);
    if (path != NULL)
        *scale_out = scale != 0 ? scale : wg__server_scale(path);
    return path;
}

enum wg_code wg__workload_server_find_place(const struct wg_workload_server_opts *opts,
                                            const char *knob, const char **path_out,
                                            double *scale_out, struct wg_error *err)
{
    const char *path = wg__workload_server_path(opts, knob, scale_out);
    if (path == NULL)
        return wg__fail(err, WG_EINVAL,
                        "knob '%s': tell its place (client.batch, command, or a path in the "
                        "model's configuration)",
                        knob);
    if (opts->protocol == WG_SERVER_OPENAI && wg__server_place(path) == WG_SERVER_PLACE_CONFIG)
        return wg__fail(err, WG_EINVAL,
                        "knob '%s': '%s' is a place in a model's configuration, which an OpenAI "
                        "server does not have",
                        knob, path);
    *path_out = path;
    return WG_OK;
}

static enum wg_code whole(const struct wg_workload_setting *setting, double most, uint64_t *out,
                          struct wg_error *err)
{
    double value = setting->value;
    /* A category's value is its place in the list: what it says counts. */
    if (setting->label != NULL && !wg__parse_double(setting->label, &value))
        value = NAN;
    if (!(value >= 1 && value <= most) || value != (double)(uint64_t)value)
        return wg__fail(err, WG_EINVAL,
                        "knob '%s' is %s%.6g: a whole number of 1..%.0f is expected", setting->name,
                        setting->label != NULL ? "a category with the value " : "", value, most);
    *out = (uint64_t)value;
    return WG_OK;
}

/* Puts one setting where it belongs. */
static enum wg_code place(const struct wg_workload_server *server,
                          const struct wg_workload_setting *setting, struct edits *edits,
                          struct wg_server_client *client, struct wg_error *err)
{
    double scale = 1;
    const char *path = NULL;
    uint64_t value = 0;
    enum wg_code code =
        wg__workload_server_find_place(&server->opts, setting->name, &path, &scale, err);
    if (code != WG_OK)
        return code;
    switch (wg__server_place(path)) {
    case WG_SERVER_PLACE_BATCH:
        code = whole(setting, 1 << 20, &value, err);
        client->rows = (size_t)value;
        break;
    case WG_SERVER_PLACE_CONCURRENCY:
        code = whole(setting, WG_HTTP_SLOTS_MAX, &value, err);
        client->outstanding = (size_t)value;
        break;
    case WG_SERVER_PLACE_MAX_TOKENS:
        code = whole(setting, 1 << 24, &client->max_tokens, err);
        break;
    case WG_SERVER_PLACE_COMMAND:
        break;
    case WG_SERVER_PLACE_CONFIG:
        if (edits->count == WG_SERVER_SETTINGS_MAX)
            return wg__fail(err, WG_EINVAL, "more than %d knobs of a model",
                            WG_SERVER_SETTINGS_MAX);
        edits->paths[edits->count] = path;
        edits->values[edits->count] = *setting;
        edits->values[edits->count++].value *= scale;
        break;
    }
    return code;
}

static enum wg_code bring(struct wg_workload_server *server,
                          const struct wg_workload_setting *settings, size_t count,
                          struct wg_error *err)
{
    struct edits edits = {.count = 0};
    struct wg_server_client client = server->is;
    enum wg_code code = WG_OK;
    for (size_t i = 0; code == WG_OK && i < count; i++)
        code = place(server, &settings[i], &edits, &client, err);
    if (code != WG_OK)
        return code;
    server->is = client;
    code = run_command(server, settings, count, err);
    if (code == WG_OK)
        code = configure(server, &edits, err);
    return code == WG_OK ? wg__server_make(server, err) : code;
}

void wg__server_models_text(struct wg_triton_control *control,
                            char out[static WG_SERVER_MODELS_SIZE])
{
    struct wg_error ignored;
    struct wg_buffer names;
    wg__buffer_init(&names);
    out[0] = '\0';
    if (control != NULL && wg__triton_models(control, &names, &ignored) == WG_OK &&
        names.length > 0 && !names.failed)
        (void)snprintf(out, WG_SERVER_MODELS_SIZE, " It has: %.100s", names.data);
    wg__buffer_fini(&names);
}

/* What was never there is a wrong set-up, not a configuration that fails. */
static enum wg_code blame_set_up(struct wg_workload_server *server, struct wg_error *err)
{
    const struct wg_error cause = *err;
    char models[WG_SERVER_MODELS_SIZE];
    wg__server_models_text(server->control, models);
    return wg__fail(err, WG_EINVAL,
                    "%.180s: is the model's name right?%s%s A server that has no model "
                    "configuration is set by the client (--batch-by client), or by a command "
                    "behind -- that starts it",
                    cause.text, models, models[0] != '\0' ? "." : "");
}

enum wg_code wg__server_set(struct wg_workload *workload,
                            const struct wg_workload_setting *settings, size_t count,
                            enum wg_workload_outcome *outcome, char why[WG_WORKLOAD_WHY_SIZE],
                            struct wg_error *err)
{
    struct wg_workload_server *server = wg__server_of(workload);
    struct wg_error own = {.code = WG_OK};
    const uint64_t begin_ns = wg__clock_ns();
    server->has_switched = false;
    enum wg_code code = bring(server, settings, count, &own);
    server->switch_s = server->has_switched ? (double)(wg__clock_ns() - begin_ns) * 1e-9 : 0;
    if (code != WG_OK)
        wg__server_forget(server);
    server->was_set |= code == WG_OK;
    if (code == WG_ENOENT && !server->was_set)
        code = blame_set_up(server, &own);
    code = wg__server_outcome(code, &own, outcome, why);
    if (*outcome == WG_WORKLOAD_CRASHED && server->has_process &&
        wg__server_process_why(&server->process, own.text, sizeof own.text) &&
        server->process.pid == 0)
        *outcome = WG_WORKLOAD_OUT_OF_MEMORY;
    if (code != WG_OK && err != NULL)
        *err = own;
    return code;
}

bool wg__workload_server_present(struct wg_workload *workload, const char *knob, double *value_out,
                                 char text_out[static WG_WORKLOAD_NAME_SIZE])
{
    struct wg_workload_server *server = wg__server_of(workload);
    struct wg_error ignored;
    double scale = 1;
    const char *path = wg__workload_server_path(&server->opts, knob, &scale);
    if (path == NULL || wg__server_place(path) != WG_SERVER_PLACE_CONFIG ||
        server->control == NULL || server->has_process || learn_base(server, &ignored) != WG_OK)
        return false;
    /* What a killed run has left is none of the server's own. */
    const char *config = server->original != NULL ? server->original : server->base_config;
    if (!wg__server_config_value(config, path, value_out, text_out))
        return false;
    *value_out /= scale;
    return true;
}

/* -- Back to life ----------------------------------------------------------------------------- */

enum wg_code wg__server_recover(struct wg_workload *workload, struct wg_error *err)
{
    struct wg_workload_server *server = wg__server_of(workload);
    wg__server_forget(server);
    if (!server->has_process)
        return wait_ready(server, err);
    /* Ended now, whatever state it is in: the next set starts it, with its own command. */
    wg__server_process_stop(&server->process, STOP_S);
    server->is_line_known = false;
    return WG_OK;
}

enum wg_code wg__server_look(struct wg_workload_server *server, struct wg_error *err)
{
    if (!server->has_statistics)
        return WG_OK;
    struct wg_kserve_statistics now;
    enum wg_code code = wg__triton_statistics(server->control, &now, err);
    const bool is_new =
        code == WG_ENOENT || (code == WG_OK && wg__kserve_has_fallen(&server->seen, &now));
    if (code != WG_OK && !is_new)
        return code;
    if (is_new) {
        /* Somebody has started the server anew: it has its own configuration now. */
        if (server->config != NULL) {
            code = apply(server, NULL, err);
        } else {
            wg__server_forget(server);
            load_if_missing(server);
            code = WG_OK;
        }
        if (code == WG_OK)
            code = wg__server_make(server, err);
        if (code == WG_OK)
            code = wg__triton_statistics(server->control, &now, err);
    }
    if (code == WG_OK)
        server->seen = now;
    return code;
}
