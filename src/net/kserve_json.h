/* SPDX-License-Identifier: MIT
 *
 * KServe v2 over HTTP: bodies of requests, and what answers say.
 *
 *     POST /v2/models/M/infer    { JSON header }bytes of the first input, of the second ...
 *                                Inference-Header-Content-Length tells where the header ends
 *
 * Texts are foreign: a field of another type than it should have is WG_EDATA, one that is missing
 * is 0.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_NET_KSERVE_JSON_H
#define WG_NET_KSERVE_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/rng.h"
#include "net/kserve.h"

/* Appends the body of an inference with these inputs, whose shapes are closed. `*json_length`: of
 * the header before binary data; 0 with `is_json`. Out of memory is `out->failed`. */
void wg__kserve_write_infer(struct wg_buffer *out, const struct wg_kserve_tensor *inputs,
                            size_t count, bool is_json, struct wg_rng *rng, size_t *json_length);

/* Of GET /v2/models/M and /v2/models/M/stats. */
enum wg_code wg__kserve_read_metadata(struct wg_kserve_metadata *out, const char *text,
                                      size_t length, struct wg_error *err);
enum wg_code wg__kserve_read_statistics(struct wg_kserve_statistics *out, const char *text,
                                        size_t length, struct wg_error *err);

/* Of GET /v2/models/M/config: its max_batch_size, and the instances that work side by side; a group
 * on GPUs has its count on each. One where it names none, as Triton does. */
enum wg_code wg__kserve_read_shape(size_t *batch_out, size_t *instances_out, const char *text,
                                   size_t length, struct wg_error *err);

/* Whether that can be a model's configuration: an object that says something. */
bool wg__kserve_is_config(const char *text, size_t length);

/* Of POST /v2/repository/index: the names, with ", " between them. */
enum wg_code wg__kserve_read_models(struct wg_buffer *out, const char *text, size_t length,
                                    struct wg_error *err);

/* Whether an answer of status 200 is an inference: NULL, or what is wrong with it. `json_length` as
 * its header told, 0: all is JSON. */
const char *wg__kserve_check_infer(const char *body, size_t length, size_t json_length);

/* The message of an error answer into `out`, on one line: {"error": TEXT}, {"error": {"message":
 * TEXT}}, {"detail": TEXT}, or the body itself. */
void wg__http_error_text(char *out, size_t size, const char *body, size_t length);

#endif
