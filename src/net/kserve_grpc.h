/* SPDX-License-Identifier: MIT
 *
 * KServe v2 over gRPC: requests as bodies with their frame, and what answers say.
 *
 * kserve.proto has the messages; protobuf-c makes code of it when we are built.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_NET_KSERVE_GRPC_H
#define WG_NET_KSERVE_GRPC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/rng.h"
#include "net/kserve.h"

#define WG_KSERVE_SERVICE "/inference.GRPCInferenceService/"

/* Each replaces `out` by a framed message; out of memory is `out->failed`.
 * ModelReady, ModelMetadata, ModelConfig, ModelStatistics; `version` may be "". */
void wg__kserve_pack_model(struct wg_buffer *out, const char *model, const char *version);
/* ServerLive, ServerReady. */
void wg__kserve_pack_empty(struct wg_buffer *out);
/* RepositoryModelLoad, RepositoryModelUnload; `config` NULL: none. */
void wg__kserve_pack_repository(struct wg_buffer *out, const char *model, const char *config);
/* ModelInfer. WG_EINVAL: longer than a frame can be. */
enum wg_code wg__kserve_pack_infer(struct wg_buffer *out, const char *model, const char *version,
                                   const struct wg_kserve_tensor *inputs, size_t count,
                                   struct wg_rng *rng, struct wg_error *err);

/* Bodies of answers, with their frame. WG_EDATA, WG_ENOMEM. */
enum wg_code wg__kserve_unpack_ready(bool *out, const char *body, size_t length,
                                     struct wg_error *err);
enum wg_code wg__kserve_unpack_metadata(struct wg_kserve_metadata *out, const char *body,
                                        size_t length, struct wg_error *err);
enum wg_code wg__kserve_unpack_max_batch(size_t *out, const char *body, size_t length,
                                         struct wg_error *err);
enum wg_code wg__kserve_unpack_statistics(struct wg_kserve_statistics *out, const char *body,
                                          size_t length, struct wg_error *err);

/* Whether it is an inference: NULL, or what is wrong with it. */
const char *wg__kserve_check_grpc(const char *body, size_t length);

#endif
