/* SPDX-License-Identifier: MIT
 *
 * A served model as a workload: opening it, warming it up. Its windows: server_window.c.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "live/workload_server.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/source.h"
#include "live/child.h"
#include "live/server_parts.h"
#include "net/http_call.h"

enum {
    OUTSTANDING_OPEN = 1024, /* of an open loop */
    MAX_TOKENS = 64,
    ANSWER_MAX = 256 << 20,
    MODELS_MAX = 1 << 20,
    BURST_MAX = 256
};
static const double TIMEOUT_S = 30, WARM_UP_S = 1, READY_S = 120, ANSWER_S = 10;

static const char *const protocol_words[] = {
#define X(name, word) [WG_SERVER_##name] = word,
    WG_SERVER_PROTOCOLS(X)
#undef X
};

const char *wg__server_protocol_word(enum wg_server_protocol protocol)
{
    return protocol_words[protocol];
}

bool wg__server_protocol_parse(const char *word, enum wg_server_protocol *out)
{
    for (size_t i = 0; i < WG_SERVER_PROTOCOL_COUNT; i++) {
        if (strcmp(protocol_words[i], word) == 0) {
            *out = (enum wg_server_protocol)i;
            return true;
        }
    }
    return false;
}

/* -- Making requests -------------------------------------------------------------------------- */

/* The only model of an OpenAI server. */
static enum wg_code find_model(struct wg_workload_server *server, struct wg_error *err)
{
    struct wg_http_client *client = NULL;
    struct wg_http_reply reply = {.answer.status = 0};
    struct wg_buffer url;
    wg__buffer_init(&url);
    wg__buffer_printf(&url, "%s/v1/models", server->opts.url);
    enum wg_code code = wg__http_client_open(&client, 1, MODELS_MAX, err);
    if (code == WG_OK && url.failed)
        code = wg__fail(err, WG_ENOMEM, "%s: out of memory", server->opts.url);
    const struct wg_http_request request = {.url = url.data, .timeout_s = ANSWER_S};
    if (code == WG_OK)
        code = wg__http_call(client, &request, &server->stop, &reply, err);
    if (code == WG_OK) {
        json_t *root = json_loadb(reply.body.data, reply.body.length, 0, NULL);
        const json_t *data = json_object_get(root, "data");
        const char *name = json_string_value(json_object_get(json_array_get(data, 0), "id"));
        if (json_array_size(data) != 1 || name == NULL)
            code = wg__fail(err, WG_EINVAL, "%s tells %zu models: which one? (--model NAME)",
                            server->opts.url, json_array_size(data));
        else if ((server->model = wg__arena_strdup(&server->arena, name)) == NULL)
            code = wg__fail(err, WG_ENOMEM, "%s: out of memory", server->opts.url);
        json_decref(root);
    }
    wg__http_client_close(client);
    wg__buffer_fini(&reply.body);
    wg__buffer_fini(&url);
    return code;
}

/* Connections, target and generator for so many requests at once. */
static enum wg_code make_slots(struct wg_workload_server *server, struct wg_error *err)
{
    if (server->generator != NULL && server->made_for.outstanding == server->is.outstanding)
        return WG_OK;
    wg__load_generator_close(server->generator);
    wg__server_target_close(server->target);
    wg__http_client_close(server->client);
    server->generator = NULL;
    server->target = NULL;
    server->client = NULL;
    const size_t slots = server->is.outstanding;
    enum wg_code code = wg__http_client_open(&server->client, slots, ANSWER_MAX, err);
    if (code == WG_OK)
        code = wg__server_target_open(&server->target, &server->opts, server->model, slots, err);
    if (code != WG_OK)
        return code;
    const struct wg_load_config config = {
        .client = server->client,
        .target = wg__server_target_load(server->target),
        .arrivals = server->arrivals,
        .outstanding = slots,
        .timeout_s = server->opts.timeout_s,
    };
    return wg__load_generator_open(&server->generator, &config, err);
}

/* What the model takes; a server without Triton's extensions does not tell how it batches. */
static enum wg_code learn_model(struct wg_workload_server *server, struct wg_error *err)
{
    struct wg_error own = {.code = WG_OK};
    enum wg_code code = wg__triton_metadata(server->control, &server->metadata, err);
    if (code != WG_OK)
        return code;
    code = wg__triton_shape(server->control, &server->max_batch, &server->instances, &own);
    if (code == WG_EUNSUPPORTED || code == WG_ENOENT) {
        server->max_batch = server->instances = 0;
        code = WG_OK;
    }
    if (code == WG_OK) {
        const bool told = server->has_statistics;
        code = wg__triton_statistics(server->control, &server->seen, &own);
        server->has_statistics = told || code == WG_OK;
        /* 403 under some wrappers, 404 elsewhere: then it is measured without. One that told them
         * before has not yet come back. */
        if (!told &&
            (code == WG_EUNSUPPORTED || code == WG_ENOENT || code == WG_ESTATE || code == WG_EDATA))
            code = WG_OK;
    }
    if (code != WG_OK && err != NULL)
        *err = own;
    return code;
}

static bool is_batched(const struct wg_workload_server *server)
{
    const struct wg_kserve_tensor *first = &server->metadata.inputs[0];
    /* Without a configuration an open first dimension is taken for the batch. */
    return server->max_batch > 0 ||
           (server->metadata.input_count > 0 && first->dim_count > 0 && first->dims[0] == -1);
}

enum wg_code wg__server_make(struct wg_workload_server *server, struct wg_error *err)
{
    const bool is_same =
        server->is_made && memcmp(&server->is, &server->made_for, sizeof server->is) == 0;
    if (is_same || server->opts.is_only_set)
        return WG_OK;
    enum wg_code code = WG_OK;
    if (server->control != NULL && !server->is_made)
        code = learn_model(server, err);
    if (code == WG_OK && server->model == NULL)
        code = find_model(server, err);
    if (code == WG_OK && server->opts.statistics == WG_SERVER_STATISTICS_TRITON &&
        !server->has_statistics)
        return wg__fail(err, WG_EUNSUPPORTED, "%s does not tell a model's statistics",
                        server->opts.url);
    if (server->opts.is_foreign_load) {
        server->is_made = code == WG_OK;
        server->made_for = server->is;
        return code;
    }
    if (code == WG_OK)
        code = make_slots(server, err);
    if (code == WG_OK)
        code = server->control != NULL
                   ? wg__server_target_make(server->target, &server->metadata, is_batched(server),
                                            server->is.rows, err)
                   : wg__server_target_make_prompts(server->target, server->is.max_tokens, err);
    server->is_made = code == WG_OK;
    server->made_for = server->is;
    return code;
}

/* -- Warming up ------------------------------------------------------------------------------- */

static bool has_seen(const struct wg_kserve_statistics *counts, size_t batch)
{
    for (size_t i = 0; i < counts->batch_count; i++) {
        if (counts->batches[i].size >= batch)
            return true;
    }
    return false;
}

/* The largest burst that is of use. */
static size_t largest_burst(const struct wg_workload_server *server)
{
    if (server->opts.batch_by == WG_SERVER_BATCH_BY_CLIENT || server->max_batch <= 1)
        return 1;
    size_t most = server->max_batch < BURST_MAX ? server->max_batch : (size_t)BURST_MAX;
    return most < server->is.outstanding ? most : server->is.outstanding;
}

/* Up to three bursts, until a batch of that size was seen. */
static enum wg_code warm_batch(struct wg_workload_server *server, size_t size, uint64_t until_ns,
                               const struct wg_workload_plan *plan, struct wg_error *err)
{
    for (int tries = 0; tries < 3 && wg__clock_ns() < until_ns; tries++) {
        enum wg_code code =
            wg__load_generator_burst(server->generator, size, plan, &server->result, err);
        if (code != WG_OK || server->result.outcome != WG_WORKLOAD_OK || size == 1 ||
            !server->has_statistics)
            return code;
        code = wg__server_look(server, err);
        if (code != WG_OK || has_seen(&server->seen, size))
            return code;
    }
    return WG_OK;
}

/* Bursts of 1, 2, 4 ... requests at once, so that the server forms every size of batch. */
static enum wg_code warm_batches(struct wg_workload_server *server,
                                 const struct wg_workload_plan *plan, struct wg_error *err)
{
    const size_t most = largest_burst(server);
    const uint64_t until_ns = wg__clock_ns() + (uint64_t)(10 * server->opts.warm_up_s * 1e9);
    size_t size = 1;
    for (;;) {
        const enum wg_code code = warm_batch(server, size, until_ns, plan, err);
        if (code != WG_OK || server->result.outcome != WG_WORKLOAD_OK || size == most)
            return code;
        size = size * 2 < most ? size * 2 : most;
    }
}

static enum wg_code warm_up(struct wg_workload *workload, const struct wg_workload_plan *plan,
                            enum wg_workload_outcome *outcome, char why[WG_WORKLOAD_WHY_SIZE],
                            struct wg_error *err)
{
    struct wg_workload_server *server = wg__server_of(workload);
    struct wg_error own = {.code = WG_OK};
    struct wg_load_result *result = &server->result;
    enum wg_code code = wg__server_make(server, &own);
    if (code == WG_OK)
        code = wg__server_look(server, &own);
    if (server->opts.is_foreign_load || code != WG_OK) {
        code = wg__server_outcome(code, &own, outcome, why);
        if (code != WG_OK && err != NULL)
            *err = own;
        return code;
    }
    const struct wg_workload_plan quiet = {.min_s = server->opts.warm_up_s,
                                           .max_s = server->opts.warm_up_s,
                                           .hung_s = plan->hung_s,
                                           .should_stop = plan->should_stop,
                                           .context = plan->context};
    code = warm_batches(server, &quiet, &own);
    if (code == WG_OK && result->outcome == WG_WORKLOAD_OK)
        code = wg__load_generator_run(server->generator, &quiet, result, &own);
    code = wg__server_outcome(code, &own, outcome, why);
    if (code != WG_OK && err != NULL)
        *err = own;
    if (code == WG_OK && *outcome == WG_WORKLOAD_OK) {
        *outcome = result->outcome;
        (void)snprintf(why, WG_WORKLOAD_WHY_SIZE, "%s", result->why);
    }
    return code;
}

/* -- Opening ---------------------------------------------------------------------------------- */

static void close_server(struct wg_workload *workload)
{
    struct wg_workload_server *server = wg__server_of(workload);
    if (server == NULL)
        return;
    wg__load_generator_close(server->generator);
    wg__server_target_close(server->target);
    wg__http_client_close(server->client);
    wg__triton_control_close(server->control);
    wg__arrivals_close(server->arrivals);
    if (server->has_process)
        wg__server_process_fini(&server->process);
    wg__load_result_fini(&server->result);
    wg__buffer_fini(&server->line);
    wg__buffer_fini(&server->setting);
    wg__free(server->base_config);
    wg__free(server->original);
    wg__free(server->held);
    wg__server_unclaim(&server->claim);
    wg__free(server->config);
    wg__arena_fini(&server->arena);
    wg__free(server);
}

static const struct wg_workload_ops server_ops = {
    .set = wg__server_set,
    .warm_up = warm_up,
    .measure = wg__server_measure,
    .recover = wg__server_recover,
    .give_back = wg__server_give_back,
    .adopt = wg__server_adopt,
    .close = close_server,
};

static bool keep(struct wg_workload_server *server, const char **text)
{
    if (*text == NULL)
        return true;
    *text = wg__arena_strdup(&server->arena, *text);
    return *text != NULL;
}

static bool keep_list(struct wg_workload_server *server, const char *const **list)
{
    if (*list == NULL)
        return true;
    size_t count = 0;
    while ((*list)[count] != NULL)
        count++;
    const char **copy = wg__arena_alloc(&server->arena, count + 1, sizeof *copy);
    if (copy == NULL)
        return false;
    for (size_t i = 0; i < count; i++) {
        copy[i] = wg__arena_strdup(&server->arena, (*list)[i]);
        if (copy[i] == NULL)
            return false;
    }
    copy[count] = NULL;
    *list = copy;
    return true;
}

static bool keep_paths(struct wg_workload_server *server)
{
    struct wg_workload_server_opts *opts = &server->opts;
    if (opts->path_count == 0)
        return true;
    struct wg_server_knob_path *paths =
        wg__arena_alloc(&server->arena, opts->path_count, sizeof *paths);
    if (paths == NULL)
        return false;
    for (size_t i = 0; i < opts->path_count; i++) {
        paths[i] = opts->paths[i];
        if (!keep(server, &paths[i].knob) || !keep(server, &paths[i].path))
            return false;
    }
    opts->paths = paths;
    return true;
}

/* Its own copy of the options, with the defaults put in. */
static bool keep_options(struct wg_workload_server *server,
                         const struct wg_workload_server_opts *given)
{
    server->opts = *given;
    struct wg_workload_server_opts *opts = &server->opts;
    const char **const texts[] = {
        &opts->url,     &opts->control_url, &opts->model,       &opts->model_version,
        &opts->prompt,  &opts->arrivals,    &opts->config_file, &opts->ready_path,
        &opts->command, &opts->log_file,
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!keep(server, texts[i]))
            return false;
    }
    if (!keep_list(server, &opts->shapes) || !keep_list(server, &opts->body_files) ||
        !keep_paths(server))
        return false;
    opts->timeout_s = opts->timeout_s > 0 ? opts->timeout_s : TIMEOUT_S;
    opts->warm_up_s = opts->warm_up_s > 0 ? opts->warm_up_s : WARM_UP_S;
    opts->ready_s = opts->ready_s > 0 ? opts->ready_s : READY_S;
    server->model = opts->model;
    server->is.rows = 1;
    server->is.max_tokens = opts->max_tokens != 0 ? opts->max_tokens : MAX_TOKENS;
    const unsigned open = opts->max_outstanding != 0 ? opts->max_outstanding : OUTSTANDING_OPEN;
    const unsigned closed = opts->concurrency != 0 ? opts->concurrency : 1;
    server->is.outstanding = opts->arrivals != NULL ? open : closed;
    return true;
}

static enum wg_code open_control(struct wg_triton_control **out,
                                 const struct wg_workload_server_opts *opts,
                                 const struct wg_http_stop *stop, struct wg_error *err)
{
    const struct wg_triton_control_opts control = {
        .url = opts->control_url != NULL ? opts->control_url : opts->url,
        .model = opts->model,
        .version = opts->model_version,
        .is_grpc = opts->protocol == WG_SERVER_KSERVE_GRPC && opts->control_url == NULL,
        .timeout_s = ANSWER_S,
        .load_s = opts->ready_s,
        .stop = stop,
    };
    return wg__triton_control_open(out, &control, err);
}

/* No model was told: a server that runs and has a repository tells which ones there are. */
static enum wg_code name_models(const struct wg_workload_server_opts *opts, struct wg_error *err)
{
    struct wg_error ignored;
    struct wg_triton_control *control = NULL;
    char models[WG_SERVER_MODELS_SIZE] = "";
    if (opts->command == NULL && open_control(&control, opts, NULL, &ignored) == WG_OK)
        wg__server_models_text(control, models);
    wg__triton_control_close(control);
    return wg__fail(err, WG_EINVAL, "%.80s: which model? (--model NAME)%s", opts->url, models);
}

static enum wg_code check(const struct wg_workload_server_opts *opts, struct wg_error *err)
{
    if (opts->url == NULL ||
        (strncmp(opts->url, "http://", 7) != 0 && strncmp(opts->url, "https://", 8) != 0))
        return wg__fail(err, WG_EINVAL, "server '%s': expected http://HOST:PORT, of gRPC too",
                        opts->url != NULL ? opts->url : "");
    if (opts->model == NULL && opts->protocol != WG_SERVER_OPENAI)
        return name_models(opts, err);
    if (opts->is_foreign_load && opts->statistics != WG_SERVER_STATISTICS_TRITON)
        return wg__fail(err, WG_EINVAL,
                        "a load that others make is measured by Triton's statistics only");
    if (opts->statistics == WG_SERVER_STATISTICS_TRITON && opts->protocol == WG_SERVER_OPENAI)
        return wg__fail(err, WG_EINVAL, "an OpenAI server has no statistics of Triton");
    if (opts->body_files != NULL && opts->protocol == WG_SERVER_KSERVE_GRPC)
        return wg__fail(err, WG_EINVAL, "requests from files go over HTTP only");
    const unsigned most =
        opts->concurrency > opts->max_outstanding ? opts->concurrency : opts->max_outstanding;
    if (most > WG_HTTP_SLOTS_MAX)
        return wg__fail(err, WG_EINVAL, "%u requests at once: at most %d are possible", most,
                        WG_HTTP_SLOTS_MAX);
    return WG_OK;
}

static enum wg_code read_config(struct wg_workload_server *server, struct wg_error *err)
{
    if (server->opts.config_file == NULL)
        return WG_OK;
    json_error_t error;
    json_t *root = json_load_file(server->opts.config_file, 0, &error);
    if (root == NULL)
        return wg__fail(err, WG_EDATA, "%s:%d: %s", server->opts.config_file, error.line,
                        error.text);
    json_decref(root);
    struct wg_source source;
    enum wg_code code = wg__source_open(&source, server->opts.config_file, err);
    struct wg_buffer text;
    wg__buffer_init(&text);
    while (code == WG_OK && wg__source_peek(&source, err) >= 0) {
        wg__buffer_append(&text, source.cursor, (size_t)(source.end - source.cursor));
        source.cursor = source.end;
    }
    if (code == WG_OK) {
        code = source.stopped;
        wg__source_close(&source);
    }
    if (code == WG_OK && text.failed)
        code = wg__fail(err, WG_ENOMEM, "%s: out of memory", server->opts.config_file);
    if (code != WG_OK)
        wg__buffer_fini(&text);
    server->base_config = text.data;
    return code;
}

static enum wg_code open_parts(struct wg_workload_server *server, struct wg_error *err)
{
    const struct wg_workload_server_opts *opts = &server->opts;
    enum wg_code code = read_config(server, err);
    if (code == WG_OK && opts->arrivals != NULL) {
        struct wg_rng rng;
        wg__rng_init(&rng, opts->seed);
        const struct wg_rng arrivals = wg__rng_split(&rng, 1);
        code = wg__arrivals_open(&server->arrivals, opts->arrivals, &arrivals, err);
    }
    if (code == WG_OK && opts->protocol != WG_SERVER_OPENAI)
        code = open_control(&server->control, opts, &server->stop, err);
    if (code == WG_OK && opts->command != NULL) {
        code = wg__server_process_init(&server->process, opts->log_file, err);
        server->has_process = code == WG_OK;
    } else if (code == WG_OK && server->control != NULL) {
        code = wg__triton_server_ready(server->control, err);
    } else if (code == WG_OK && server->model == NULL) {
        code = find_model(server, err);
    }
    return code;
}

static bool has_signal(void *context)
{
    return wg__signals_have_come(context);
}

enum wg_code wg__workload_server_open(struct wg_workload **out,
                                      const struct wg_workload_server_opts *opts,
                                      struct wg_error *err)
{
    enum wg_code code = check(opts, err);
    if (code != WG_OK)
        return code;
    struct wg_workload_server *server = wg__alloc_zeroed(1, sizeof *server);
    if (server == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", opts->url);
    server->base.ops = &server_ops;
    server->claim.fd = -1;
    if (opts->signals != NULL)
        server->stop = (struct wg_http_stop){.should_stop = has_signal, .context = opts->signals};
    wg__arena_init(&server->arena);
    wg__load_result_init(&server->result);
    if (!keep_options(server, opts))
        code = wg__fail(err, WG_ENOMEM, "%s: out of memory", opts->url);
    if (code == WG_OK)
        code = open_parts(server, err);
    if (code != WG_OK) {
        close_server(&server->base);
        return code;
    }
    *out = &server->base;
    return WG_OK;
}

double wg__workload_server_switch_s(const struct wg_workload *workload)
{
    return ((const struct wg_workload_server *)workload)->switch_s;
}
