/* SPDX-License-Identifier: MIT
 *
 * What the load generator asks of a server.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "live/server_target.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/rng.h"
#include "base/source.h"
#include "base/utf8.h"
#include "net/grpc.h"
#include "net/kserve_grpc.h"
#include "net/kserve_json.h"
#include "net/openai.h"
#include "net/sse.h"

enum { VARIANTS = 8, BODY_FILES_MAX = 4096, BODY_FILE_MAX = 256 << 20 };

static const char *const PROMPT =
    "Tell the story of a lighthouse keeper who counts every ship that passes, and of the one night "
    "on which the lamp went out. Begin with the weather, end with the morning.";

struct body {
    struct wg_buffer bytes;
    struct wg_http_headers *headers;
};

/* Of a stream: one a slot. */
struct stream {
    struct wg_sse sse;
    uint64_t pieces; /* with text */
    uint64_t tokens; /* as the usage tells */
    bool is_done, has_choices;
    bool is_wrong;
    char why[WG_WORKLOAD_WHY_SIZE];
};

struct wg_server_target {
    struct wg_load_target load;
    struct wg_load_target_ops ops;
    const struct wg_workload_server_opts *opts;
    const char *model;
    struct wg_buffer url;
    struct body *bodies;
    size_t body_count;
    size_t next; /* body to send */
    struct stream *streams;
    size_t slots;
    bool is_from_files;
};

/* -- Bodies ----------------------------------------------------------------------------------- */

static void free_bodies(struct wg_server_target *target)
{
    for (size_t i = 0; i < target->body_count; i++) {
        wg__buffer_fini(&target->bodies[i].bytes);
        wg__http_headers_free(target->bodies[i].headers);
    }
    wg__free(target->bodies);
    target->bodies = NULL;
    target->body_count = target->next = 0;
}

static enum wg_code new_bodies(struct wg_server_target *target, size_t count, struct wg_error *err)
{
    free_bodies(target);
    target->bodies = wg__alloc_zeroed(count, sizeof *target->bodies);
    if (target->bodies == NULL)
        return wg__fail(err, WG_ENOMEM, "%zu bodies of requests: out of memory", count);
    target->body_count = count;
    return WG_OK;
}

/* The headers that a body of `json_length` bytes of JSON (0: all) needs. */
static enum wg_code make_headers(struct wg_server_target *target, struct body *body,
                                 size_t json_length, struct wg_error *err)
{
    char length_line[64], timeout_line[64], timeout[WG_GRPC_TIMEOUT_SIZE];
    (void)snprintf(length_line, sizeof length_line, "Inference-Header-Content-Length: %zu",
                   json_length);
    wg__grpc_timeout(timeout, target->opts->timeout_s);
    (void)snprintf(timeout_line, sizeof timeout_line, "grpc-timeout: %s", timeout);
    const char *const grpc[] = {"Content-Type: application/grpc", "TE: trailers", timeout_line,
                                "Expect:", NULL};
    const char *const binary[] = {"Content-Type: application/octet-stream", length_line,
                                  "Expect:", NULL};
    const char *const json[] = {"Content-Type: application/json", "Expect:", NULL};
    const char *const *lines = json;
    if (target->opts->protocol == WG_SERVER_KSERVE_GRPC)
        lines = grpc;
    else if (json_length != 0)
        lines = binary;
    return wg__http_headers_new(&body->headers, lines, err);
}

static enum wg_code read_file(struct body *body, const char *path, struct wg_error *err)
{
    struct wg_source source;
    const enum wg_code code = wg__source_open(&source, path, err);
    if (code != WG_OK)
        return code;
    int byte;
    while ((byte = wg__source_peek(&source, err)) >= 0 && body->bytes.length <= BODY_FILE_MAX &&
           !body->bytes.failed) {
        (void)byte;
        wg__buffer_append(&body->bytes, source.cursor, (size_t)(source.end - source.cursor));
        source.cursor = source.end;
    }
    const enum wg_code stopped = source.stopped;
    wg__source_close(&source);
    if (stopped != WG_OK)
        return stopped;
    if (body->bytes.failed)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
    if (body->bytes.length == 0 || body->bytes.length > BODY_FILE_MAX)
        return wg__fail(err, WG_EINVAL, "%s: a request's body has 1..%d bytes", path,
                        BODY_FILE_MAX);
    return WG_OK;
}

static enum wg_code read_files(struct wg_server_target *target, struct wg_error *err)
{
    const char *const *files = target->opts->body_files;
    size_t count = 0;
    while (count < BODY_FILES_MAX && files[count] != NULL)
        count++;
    if (count == 0 || count == BODY_FILES_MAX)
        return wg__fail(err, WG_EINVAL, "files of requests: 1..%d are possible",
                        BODY_FILES_MAX - 1);
    enum wg_code code = new_bodies(target, count, err);
    for (size_t i = 0; code == WG_OK && i < count; i++) {
        code = read_file(&target->bodies[i], files[i], err);
        if (code == WG_OK)
            code = make_headers(target, &target->bodies[i], 0, err);
    }
    target->is_from_files = code == WG_OK;
    return code;
}

/* The inputs with their shapes as the options and the rows have them. */
static enum wg_code close_shapes(const struct wg_server_target *target,
                                 struct wg_kserve_tensor *inputs, size_t count, bool is_batched,
                                 size_t rows, struct wg_error *err)
{
    const char *const *shapes = target->opts->shapes;
    for (size_t s = 0; shapes != NULL && shapes[s] != NULL; s++) {
        bool is_known = false;
        for (size_t i = 0; i < count; i++) {
            bool is_it = false;
            const enum wg_code code =
                wg__kserve_shape(&inputs[i], shapes[s], is_batched, &is_it, err);
            if (code != WG_OK)
                return code;
            is_known = is_known || is_it;
        }
        if (!is_known)
            return wg__fail(err, WG_EINVAL, "shape '%s': the model has no such input", shapes[s]);
    }
    for (size_t i = 0; i < count; i++) {
        const enum wg_code code = wg__kserve_close_shape(&inputs[i], is_batched, rows, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static enum wg_code make_body(struct wg_server_target *target, struct body *body,
                              const struct wg_kserve_tensor *inputs, size_t count,
                              struct wg_rng *rng, struct wg_error *err)
{
    const struct wg_workload_server_opts *opts = target->opts;
    size_t json_length = 0;
    if (opts->protocol == WG_SERVER_KSERVE_GRPC) {
        const char *version = opts->model_version != NULL ? opts->model_version : "";
        const enum wg_code code =
            wg__kserve_pack_infer(&body->bytes, target->model, version, inputs, count, rng, err);
        if (code != WG_OK)
            return code;
    } else {
        wg__kserve_write_infer(&body->bytes, inputs, count, opts->is_json, rng, &json_length);
    }
    if (body->bytes.failed)
        return wg__fail(err, WG_ENOMEM, "the body of a request: out of memory");
    return make_headers(target, body, json_length, err);
}

/* Different data keep a server from answering out of a cache; of large ones there are fewer, so
 * that all together take no more than the largest one may. */
static size_t variants_of(size_t bytes)
{
    const size_t fit = bytes > 0 ? WG_KSERVE_INPUT_BYTES_MAX / bytes : (size_t)VARIANTS;
    return fit < 1 ? 1 : fit < VARIANTS ? fit : (size_t)VARIANTS;
}

enum wg_code wg__server_target_make(struct wg_server_target *target,
                                    const struct wg_kserve_metadata *metadata, bool is_batched,
                                    size_t rows, struct wg_error *err)
{
    if (target->is_from_files)
        return WG_OK;
    struct wg_kserve_tensor inputs[WG_KSERVE_TENSORS_MAX];
    const size_t count = metadata->input_count;
    memcpy(inputs, metadata->inputs, count * sizeof inputs[0]);
    size_t bytes = 0;
    enum wg_code code = close_shapes(target, inputs, count, is_batched, rows, err);
    if (code == WG_OK)
        code = wg__kserve_request_bytes(inputs, count, target->opts->is_json, &bytes, err);
    if (code == WG_OK)
        code = new_bodies(target, variants_of(bytes), err);
    struct wg_rng rng;
    wg__rng_init(&rng, target->opts->seed);
    struct wg_rng *drawn = target->opts->data == WG_SERVER_DATA_RANDOM ? &rng : NULL;
    for (size_t i = 0; code == WG_OK && i < target->body_count; i++)
        code = make_body(target, &target->bodies[i], inputs, count, drawn, err);
    return code;
}

enum wg_code wg__server_target_make_prompts(struct wg_server_target *target, uint64_t max_tokens,
                                            struct wg_error *err)
{
    if (target->is_from_files)
        return WG_OK;
    enum wg_code code = new_bodies(target, VARIANTS, err);
    for (size_t i = 0; code == WG_OK && i < VARIANTS; i++) {
        struct body *body = &target->bodies[i];
        struct wg_buffer prompt;
        wg__buffer_init(&prompt);
        /* Another beginning each time: servers keep what they have computed of the same one. */
        wg__buffer_printf(&prompt, "%zu. %s", i + 1,
                          target->opts->prompt != NULL ? target->opts->prompt : PROMPT);
        const struct wg_openai_request request = {
            .model = target->model,
            .prompt = prompt.failed ? "" : prompt.data,
            .max_tokens = max_tokens,
            .is_chat = target->opts->is_chat,
            .is_streaming = target->opts->is_streaming,
        };
        wg__openai_write(&body->bytes, &request);
        if (prompt.failed || body->bytes.failed)
            code = wg__fail(err, WG_ENOMEM, "the body of a request: out of memory");
        else
            code = make_headers(target, body, 0, err);
        wg__buffer_fini(&prompt);
    }
    return code;
}

/* -- Requests and answers --------------------------------------------------------------------- */

static struct wg_server_target *self(struct wg_load_target *load)
{
    return (struct wg_server_target *)load;
}

static void begin(struct wg_load_target *load, struct wg_load_attempt *attempt,
                  struct wg_http_request *out)
{
    struct wg_server_target *target = self(load);
    assert(target->body_count > 0);
    const struct body *body = &target->bodies[target->next];
    target->next = (target->next + 1) % target->body_count;
    out->url = target->url.data;
    out->headers = body->headers;
    out->body = body->bytes.data;
    out->length = body->bytes.length;
    out->is_http2 = target->opts->protocol == WG_SERVER_KSERVE_GRPC;
    if (target->streams != NULL) {
        struct stream *stream = &target->streams[attempt->index];
        wg__sse_restart(&stream->sse);
        stream->pieces = stream->tokens = 0;
        stream->is_done = stream->is_wrong = stream->has_choices = false;
        stream->why[0] = '\0';
    }
}

static enum wg_load_verdict bad(char why[static WG_WORKLOAD_WHY_SIZE], const char *words)
{
    wg__utf8_copy_plain(why, WG_WORKLOAD_WHY_SIZE, words); /* it goes to terminals as it is */
    return wg__is_out_of_memory(words) ? WG_LOAD_OUT_OF_MEMORY : WG_LOAD_BAD;
}

static enum wg_load_verdict bad_status(const struct wg_http_answer *answer,
                                       char why[static WG_WORKLOAD_WHY_SIZE])
{
    char words[WG_WORKLOAD_WHY_SIZE - 32], line[WG_WORKLOAD_WHY_SIZE];
    wg__http_error_text(words, sizeof words, answer->body, answer->length);
    (void)snprintf(line, sizeof line, "HTTP status %u%s%s", answer->status,
                   *words != '\0' ? ": " : "", words);
    return bad(why, line);
}

static enum wg_load_verdict judge_http(struct wg_load_target *load, struct wg_load_attempt *attempt,
                                       const struct wg_http_answer *answer,
                                       char why[static WG_WORKLOAD_WHY_SIZE])
{
    (void)load;
    (void)attempt;
    if (answer->status != 200)
        return bad_status(answer, why);
    const char *wrong = wg__kserve_check_infer(answer->body, answer->length, answer->json_length);
    return wrong == NULL ? WG_LOAD_GOOD : bad(why, wrong);
}

static enum wg_load_verdict judge_grpc(struct wg_load_target *load, struct wg_load_attempt *attempt,
                                       const struct wg_http_answer *answer,
                                       char why[static WG_WORKLOAD_WHY_SIZE])
{
    (void)load;
    (void)attempt;
    if (answer->status != 200)
        return bad_status(answer, why);
    if (answer->grpc_status < 0)
        return bad(why, "the answer has no grpc-status");
    if (answer->grpc_status != WG_GRPC_OK) {
        char line[WG_WORKLOAD_WHY_SIZE];
        (void)snprintf(line, sizeof line, "%s: %.150s", wg__grpc_status_word(answer->grpc_status),
                       answer->why);
        const enum wg_load_verdict verdict = bad(why, line);
        return answer->grpc_status == WG_GRPC_DEADLINE_EXCEEDED ? WG_LOAD_LATE : verdict;
    }
    const char *wrong = wg__kserve_check_grpc(answer->body, answer->length);
    return wrong == NULL ? WG_LOAD_GOOD : bad(why, wrong);
}

static enum wg_load_verdict judge_openai(struct wg_load_target *load,
                                         struct wg_load_attempt *attempt,
                                         const struct wg_http_answer *answer,
                                         char why[static WG_WORKLOAD_WHY_SIZE])
{
    (void)load;
    if (answer->status != 200)
        return bad_status(answer, why);
    struct wg_openai_piece piece;
    char words[WG_WORKLOAD_WHY_SIZE];
    if (!wg__openai_read(&piece, answer->body, answer->length, words, sizeof words))
        return bad(why, words);
    if (!piece.has_choices)
        return bad(why, "the answer's list 'choices' is empty");
    attempt->tokens = piece.tokens;
    return WG_LOAD_GOOD;
}

/* Of a stream that is being read: the attempt and its target. */
struct reader {
    struct stream *stream;
    struct wg_load_attempt *attempt;
};

static void take_event(void *context, const char *data, size_t length)
{
    const struct reader *reader = context;
    struct stream *stream = reader->stream;
    struct wg_openai_piece piece;
    if (stream->is_wrong)
        return;
    if (!wg__openai_read(&piece, data, length, stream->why, sizeof stream->why)) {
        stream->is_wrong = true;
        return;
    }
    stream->is_done = stream->is_done || piece.is_done;
    stream->has_choices = stream->has_choices || piece.has_choices;
    if (piece.tokens != 0)
        stream->tokens = piece.tokens;
    if (!piece.has_text)
        return;
    stream->pieces++;
    reader->attempt->last_ns = wg__clock_ns();
    if (reader->attempt->first_ns == 0)
        reader->attempt->first_ns = reader->attempt->last_ns;
}

static void take_piece(struct wg_load_target *load, struct wg_load_attempt *attempt,
                       const char *bytes, size_t length)
{
    struct reader reader = {.stream = &self(load)->streams[attempt->index], .attempt = attempt};
    struct stream *stream = reader.stream;
    /* An error's body is no stream; its words are kept as they come. */
    if (stream->pieces == 0 && !stream->is_wrong && length > 0 && *bytes == '{') {
        wg__http_error_text(stream->why, sizeof stream->why, bytes, length);
        stream->is_wrong = true;
        return;
    }
    if (!wg__sse_push(&stream->sse, bytes, length, take_event, &reader) && !stream->is_wrong) {
        (void)snprintf(stream->why, sizeof stream->why, "an event of the stream is too long");
        stream->is_wrong = true;
    }
}

static enum wg_load_verdict judge_stream(struct wg_load_target *load,
                                         struct wg_load_attempt *attempt,
                                         const struct wg_http_answer *answer,
                                         char why[static WG_WORKLOAD_WHY_SIZE])
{
    const struct stream *stream = &self(load)->streams[attempt->index];
    if (answer->status != 200) {
        char line[WG_WORKLOAD_WHY_SIZE];
        (void)snprintf(line, sizeof line, "HTTP status %u%s%.160s", answer->status,
                       stream->why[0] != '\0' ? ": " : "", stream->why);
        return bad(why, line);
    }
    if (stream->is_wrong)
        return bad(why, stream->why);
    if (!stream->is_done)
        return bad(why, "the stream ended before its [DONE]");
    if (!stream->has_choices)
        return bad(why, "the stream holds nothing but its end");
    attempt->tokens = stream->tokens != 0 ? stream->tokens : stream->pieces;
    return WG_LOAD_GOOD;
}

/* -- Opening ---------------------------------------------------------------------------------- */

static void write_url(struct wg_server_target *target)
{
    const struct wg_workload_server_opts *opts = target->opts;
    wg__buffer_puts(&target->url, opts->url);
    switch (opts->protocol) {
    case WG_SERVER_KSERVE_GRPC:
        wg__buffer_puts(&target->url, WG_KSERVE_SERVICE "ModelInfer");
        break;
    case WG_SERVER_OPENAI:
        wg__buffer_puts(&target->url, opts->is_chat ? "/v1/chat/completions" : "/v1/completions");
        break;
    default:
        wg__buffer_printf(&target->url, "/v2/models/%s", target->model);
        if (opts->model_version != NULL)
            wg__buffer_printf(&target->url, "/versions/%s", opts->model_version);
        wg__buffer_puts(&target->url, "/infer");
        break;
    }
}

static void choose_ops(struct wg_server_target *target)
{
    target->ops.begin = begin;
    target->ops.judge = judge_http;
    if (target->opts->protocol == WG_SERVER_KSERVE_GRPC)
        target->ops.judge = judge_grpc;
    if (target->opts->protocol == WG_SERVER_OPENAI)
        target->ops.judge = target->streams != NULL ? judge_stream : judge_openai;
    if (target->streams != NULL)
        target->ops.piece = take_piece;
    target->load.ops = &target->ops;
}

enum wg_code wg__server_target_open(struct wg_server_target **out,
                                    const struct wg_workload_server_opts *opts, const char *model,
                                    size_t slots, struct wg_error *err)
{
    struct wg_server_target *target = wg__alloc_zeroed(1, sizeof *target);
    if (target == NULL)
        return wg__fail(err, WG_ENOMEM, "requests to %s: out of memory", opts->url);
    target->opts = opts;
    target->model = model;
    target->slots = slots;
    write_url(target);
    enum wg_code code = WG_OK;
    if (opts->protocol == WG_SERVER_OPENAI && opts->is_streaming) {
        target->streams = wg__alloc_zeroed(slots, sizeof *target->streams);
        if (target->streams == NULL)
            code = WG_ENOMEM;
    }
    if (code != WG_OK || target->url.failed)
        code = wg__fail(err, WG_ENOMEM, "requests to %s: out of memory", opts->url);
    choose_ops(target);
    if (code == WG_OK && opts->body_files != NULL)
        code = read_files(target, err);
    if (code != WG_OK) {
        wg__server_target_close(target);
        return code;
    }
    *out = target;
    return WG_OK;
}

void wg__server_target_close(struct wg_server_target *target)
{
    if (target == NULL)
        return;
    free_bodies(target);
    for (size_t i = 0; target->streams != NULL && i < target->slots; i++)
        wg__sse_fini(&target->streams[i].sse);
    wg__free(target->streams);
    wg__buffer_fini(&target->url);
    wg__free(target);
}

struct wg_load_target *wg__server_target_load(struct wg_server_target *target)
{
    return &target->load;
}
