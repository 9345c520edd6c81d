/* SPDX-License-Identifier: MIT
 *
 * Asking a KServe v2 server, and telling Triton.
 *
 * Each call is one request, waited for. Both ways end in `ask`, which turns what came into a code
 * and the server's own words.
 *
 * Owns: a connection.    Threads: one at a time.
 */
#include "live/triton_control.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/json.h"
#include "net/grpc.h"
#include "net/http_call.h"
#include "net/kserve_grpc.h"
#include "net/kserve_json.h"

enum { ANSWER_MAX = 64 << 20, WORDS_SIZE = 180 };

struct wg_triton_control {
    struct wg_http_client *client;
    struct wg_http_headers *headers;
    struct wg_buffer url;  /* of the present call */
    struct wg_buffer body; /* the same */
    struct wg_http_reply reply;
    char *base, *model, *version;
    bool is_grpc;
    double timeout_s, load_s;
    const struct wg_http_stop *stop;
};

enum wg_code wg__triton_control_open(struct wg_triton_control **out,
                                     const struct wg_triton_control_opts *opts,
                                     struct wg_error *err)
{
    static const char *const grpc_headers[] = {"Content-Type: application/grpc", "TE: trailers",
                                               "Expect:", NULL};
    static const char *const http_headers[] = {"Content-Type: application/json", "Expect:", NULL};
    struct wg_triton_control *control = wg__alloc_zeroed(1, sizeof *control);
    if (control == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", opts->url);
    control->is_grpc = opts->is_grpc;
    control->timeout_s = opts->timeout_s;
    control->load_s = opts->load_s;
    control->stop = opts->stop;
    control->base = wg__strdup(opts->url);
    control->model = wg__strdup(opts->model != NULL ? opts->model : "");
    control->version = wg__strdup(opts->version != NULL ? opts->version : "");
    enum wg_code code = wg__http_client_open(&control->client, 1, ANSWER_MAX, err);
    if (code == WG_OK)
        code = wg__http_headers_new(&control->headers,
                                    control->is_grpc ? grpc_headers : http_headers, err);
    if (code == WG_OK &&
        (control->base == NULL || control->model == NULL || control->version == NULL))
        code = wg__fail(err, WG_ENOMEM, "%s: out of memory", opts->url);
    if (code != WG_OK) {
        wg__triton_control_close(control);
        return code;
    }
    *out = control;
    return WG_OK;
}

void wg__triton_control_close(struct wg_triton_control *control)
{
    if (control == NULL)
        return;
    wg__http_client_close(control->client);
    wg__http_headers_free(control->headers);
    wg__buffer_fini(&control->url);
    wg__buffer_fini(&control->body);
    wg__buffer_fini(&control->reply.body);
    wg__free(control->base);
    wg__free(control->model);
    wg__free(control->version);
    wg__free(control);
}

/* -- Calls ------------------------------------------------------------------------------------ */

static bool says_unknown(const char *words)
{
    static const char *const signs[] = {"not found", "unknown model", "no such model"};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (strcasestr(words, signs[i]) != NULL)
            return true;
    }
    return false;
}

static enum wg_code judge_grpc(const struct wg_http_answer *answer, const char *what,
                               struct wg_error *err)
{
    const int status = answer->grpc_status;
    if (answer->status != 200 || status < 0)
        return wg__fail(err, WG_EDATA, "%s: the answer is no gRPC (HTTP status %u)", what,
                        answer->status);
    enum wg_code code = WG_ESTATE;
    if (status == WG_GRPC_OK)
        return WG_OK;
    if (status == WG_GRPC_NOT_FOUND || says_unknown(answer->why))
        code = WG_ENOENT;
    else if (status == WG_GRPC_UNIMPLEMENTED)
        code = WG_EUNSUPPORTED;
    return wg__fail(err, code, "%s: %s: %s", what, wg__grpc_status_word(status), answer->why);
}

static enum wg_code judge_http(const struct wg_http_reply *reply, const char *what,
                               struct wg_error *err)
{
    const unsigned status = reply->answer.status;
    if (status >= 200 && status < 300)
        return WG_OK;
    char words[WORDS_SIZE];
    wg__http_error_text(words, sizeof words, reply->body.data, reply->body.length);
    enum wg_code code = WG_ESTATE;
    if (says_unknown(words))
        code = WG_ENOENT;
    else if (status == 404 || status == 405 || status == 501)
        code = WG_EUNSUPPORTED;
    return wg__fail(err, code, "%s: HTTP status %u%s%s", what, status, *words != '\0' ? ": " : "",
                    words);
}

/* A request to `url` with what is in `body` (`is_post`). */
static enum wg_code ask(struct wg_triton_control *control, const char *what, bool is_post,
                        double timeout_s, struct wg_error *err)
{
    if (control->url.failed || control->body.failed) {
        wg__buffer_fini(&control->url);
        wg__buffer_fini(&control->body);
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", what);
    }
    const struct wg_http_request request = {
        .url = control->url.data,
        .headers = control->headers,
        .body = !is_post                    ? NULL
                : control->body.length != 0 ? control->body.data
                                            : "",
        .length = control->body.length,
        .is_http2 = control->is_grpc,
        .timeout_s = timeout_s,
    };
    const enum wg_code code =
        wg__http_call(control->client, &request, control->stop, &control->reply, err);
    if (code != WG_OK)
        return code;
    return control->is_grpc ? judge_grpc(&control->reply.answer, what, err)
                            : judge_http(&control->reply, what, err);
}

static void begin_url(struct wg_triton_control *control)
{
    control->url.length = 0;
    wg__buffer_puts(&control->url, control->base);
}

/* A gRPC call of the message in `body`. */
static enum wg_code call(struct wg_triton_control *control, const char *method, double timeout_s,
                         struct wg_error *err)
{
    begin_url(control);
    wg__buffer_printf(&control->url, WG_KSERVE_SERVICE "%s", method);
    return ask(control, method, true, timeout_s, err);
}

/* A gRPC call that names the model. */
static enum wg_code call_model(struct wg_triton_control *control, const char *method,
                               struct wg_error *err)
{
    wg__kserve_pack_model(&control->body, control->model, control->version);
    return call(control, method, control->timeout_s, err);
}

/* GET /v2/models/M[/versions/V]TAIL. */
static enum wg_code get_model(struct wg_triton_control *control, const char *tail, const char *what,
                              struct wg_error *err)
{
    begin_url(control);
    wg__buffer_printf(&control->url, "/v2/models/%s", control->model);
    if (*control->version != '\0')
        wg__buffer_printf(&control->url, "/versions/%s", control->version);
    wg__buffer_puts(&control->url, tail);
    return ask(control, what, false, control->timeout_s, err);
}

/* -- What is asked ---------------------------------------------------------------------------- */

static enum wg_code read_ready(struct wg_triton_control *control, const char *what,
                               struct wg_error *err)
{
    bool is_ready = true;
    if (control->is_grpc) {
        const enum wg_code code = wg__kserve_unpack_ready(&is_ready, control->reply.body.data,
                                                          control->reply.body.length, err);
        if (code != WG_OK)
            return code;
    }
    return is_ready ? WG_OK : wg__fail(err, WG_ESTATE, "%s is not ready", what);
}

enum wg_code wg__triton_server_ready(struct wg_triton_control *control, struct wg_error *err)
{
    enum wg_code code;
    if (control->is_grpc) {
        wg__kserve_pack_empty(&control->body);
        code = call(control, "ServerReady", control->timeout_s, err);
    } else {
        begin_url(control);
        wg__buffer_puts(&control->url, "/v2/health/ready");
        code = ask(control, "whether the server is ready", false, control->timeout_s, err);
    }
    return code == WG_OK ? read_ready(control, "the server", err) : code;
}

enum wg_code wg__triton_model_ready(struct wg_triton_control *control, struct wg_error *err)
{
    const enum wg_code code = control->is_grpc
                                  ? call_model(control, "ModelReady", err)
                                  : get_model(control, "/ready", "whether the model is ready", err);
    return code == WG_OK ? read_ready(control, control->model, err) : code;
}

enum wg_code wg__triton_metadata(struct wg_triton_control *control, struct wg_kserve_metadata *out,
                                 struct wg_error *err)
{
    const struct wg_buffer *body = &control->reply.body;
    const enum wg_code code = control->is_grpc
                                  ? call_model(control, "ModelMetadata", err)
                                  : get_model(control, "", "the model's metadata", err);
    if (code != WG_OK)
        return code;
    return control->is_grpc ? wg__kserve_unpack_metadata(out, body->data, body->length, err)
                            : wg__kserve_read_metadata(out, body->data, body->length, err);
}

enum wg_code wg__triton_shape(struct wg_triton_control *control, size_t *batch_out,
                              size_t *instances_out, struct wg_error *err)
{
    const struct wg_buffer *body = &control->reply.body;
    const enum wg_code code = control->is_grpc
                                  ? call_model(control, "ModelConfig", err)
                                  : get_model(control, "/config", "the model's configuration", err);
    *instances_out = 0;
    if (code != WG_OK)
        return code;
    if (control->is_grpc)
        return wg__kserve_unpack_max_batch(batch_out, body->data, body->length, err);
    return wg__kserve_read_shape(batch_out, instances_out, body->data, body->length, err);
}

enum wg_code wg__triton_statistics(struct wg_triton_control *control,
                                   struct wg_kserve_statistics *out, struct wg_error *err)
{
    const struct wg_buffer *body = &control->reply.body;
    const enum wg_code code = control->is_grpc
                                  ? call_model(control, "ModelStatistics", err)
                                  : get_model(control, "/stats", "the model's statistics", err);
    if (code != WG_OK)
        return code;
    return control->is_grpc ? wg__kserve_unpack_statistics(out, body->data, body->length, err)
                            : wg__kserve_read_statistics(out, body->data, body->length, err);
}

enum wg_code wg__triton_config(struct wg_triton_control *control, char **out, struct wg_error *err)
{
    if (control->is_grpc)
        return wg__fail(err, WG_EUNSUPPORTED,
                        "the model's configuration comes by HTTP only: tell the server's HTTP "
                        "address for control, or a file with the configuration");
    const enum wg_code code = get_model(control, "/config", "the model's configuration", err);
    if (code != WG_OK)
        return code;
    if (!wg__kserve_is_config(control->reply.body.data, control->reply.body.length))
        return wg__fail(err, WG_EDATA, "the answer is no model's configuration: %.60s",
                        control->reply.body.length > 0 ? control->reply.body.data : "nothing");
    *out = wg__strdup(control->reply.body.data);
    return *out != NULL ? WG_OK
                        : wg__fail(err, WG_ENOMEM, "the model's configuration: out of memory");
}

enum wg_code wg__triton_models(struct wg_triton_control *control, struct wg_buffer *out,
                               struct wg_error *err)
{
    if (control->is_grpc)
        return wg__fail(err, WG_EUNSUPPORTED, "the list of models comes by HTTP only");
    begin_url(control);
    wg__buffer_puts(&control->url, "/v2/repository/index");
    control->body.length = 0;
    wg__buffer_puts(&control->body, "{}");
    const enum wg_code code = ask(control, "the list of models", true, control->timeout_s, err);
    return code == WG_OK ? wg__kserve_read_models(out, control->reply.body.data,
                                                  control->reply.body.length, err)
                         : code;
}

/* -- Loading ---------------------------------------------------------------------------------- */

static enum wg_code repository(struct wg_triton_control *control, const char *verb,
                               const char *config, struct wg_error *err)
{
    const bool is_load = strcmp(verb, "load") == 0;
    if (control->is_grpc) {
        wg__kserve_pack_repository(&control->body, control->model, config);
        return call(control, is_load ? "RepositoryModelLoad" : "RepositoryModelUnload",
                    control->load_s, err);
    }
    begin_url(control);
    wg__buffer_printf(&control->url, "/v2/repository/models/%s/%s", control->model, verb);
    control->body.length = 0;
    struct wg_json json;
    wg__json_init(&json, &control->body);
    wg__json_object(&json);
    if (config != NULL) {
        wg__json_key(&json, "parameters");
        wg__json_object(&json);
        wg__json_member_string(&json, "config", config);
        wg__json_close(&json);
    }
    wg__json_close(&json);
    return ask(control, is_load ? "loading the model" : "unloading the model", true,
               control->load_s, err);
}

enum wg_code wg__triton_load(struct wg_triton_control *control, const char *config,
                             struct wg_error *err)
{
    return repository(control, "load", config, err);
}

enum wg_code wg__triton_unload(struct wg_triton_control *control, struct wg_error *err)
{
    return repository(control, "unload", NULL, err);
}
