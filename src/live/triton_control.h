/* SPDX-License-Identifier: MIT
 *
 * Asking a KServe v2 server about a model, and Triton to load it as we want it: by HTTP or gRPC.
 *
 *     GET  /v2/health/ready   /v2/models/M/ready   /v2/models/M   .../config   .../stats
 *     POST /v2/repository/models/M/load    {"parameters": {"config": "TEXT OF A CONFIGURATION"}}
 *     POST /v2/repository/models/M/unload
 *
 * Triton must run with --model-control-mode=explicit to load. Its configuration as JSON comes by
 * HTTP only; by gRPC it is a message whose every field we would have to know.
 *
 * Codes of the calls: WG_EUNREACHABLE: nobody listens; WG_ETIMEOUT; WG_EIO: the answer broke off;
 * WG_EDATA: it is not what KServe says; WG_ENOENT: no such model; WG_EUNSUPPORTED: the server
 * cannot do that; WG_ESTATE: it said no, in its own words; WG_ENOMEM: ours.
 *
 * Owns: a connection.    Threads: one at a time.
 */
#ifndef WG_LIVE_TRITON_CONTROL_H
#define WG_LIVE_TRITON_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "net/http_call.h"
#include "net/kserve.h"

struct wg_triton_control;

struct wg_triton_control_opts {
    const char *url;             /* "http://127.0.0.1:8000", copied */
    const char *model, *version; /* no model: only the server is asked */
    bool is_grpc;
    double timeout_s;                /* of an answer */
    double load_s;                   /* of a load */
    const struct wg_http_stop *stop; /* of both; NULL: never. It must outlive the control */
};

/* WG_EINVAL, WG_ENOMEM, WG_EIO. Nothing is asked yet. */
enum wg_code wg__triton_control_open(struct wg_triton_control **out,
                                     const struct wg_triton_control_opts *opts,
                                     struct wg_error *err);
void wg__triton_control_close(struct wg_triton_control *control);

/* WG_OK: ready; WG_ESTATE: it answers that it is not. */
enum wg_code wg__triton_server_ready(struct wg_triton_control *control, struct wg_error *err);
enum wg_code wg__triton_model_ready(struct wg_triton_control *control, struct wg_error *err);

enum wg_code wg__triton_metadata(struct wg_triton_control *control, struct wg_kserve_metadata *out,
                                 struct wg_error *err);
/* `*instances_out` that work side by side; 0: not told (gRPC). */
enum wg_code wg__triton_shape(struct wg_triton_control *control, size_t *batch_out,
                              size_t *instances_out, struct wg_error *err);
enum wg_code wg__triton_statistics(struct wg_triton_control *control,
                                   struct wg_kserve_statistics *out, struct wg_error *err);

/* The model's configuration as JSON; the caller frees it with wg__free. WG_EUNSUPPORTED by gRPC. */
enum wg_code wg__triton_config(struct wg_triton_control *control, char **out, struct wg_error *err);

/* The names of the models that the server has, with ", " between them. WG_EUNSUPPORTED by gRPC. */
enum wg_code wg__triton_models(struct wg_triton_control *control, struct wg_buffer *out,
                               struct wg_error *err);

/* `config` NULL: the one in the repository. */
enum wg_code wg__triton_load(struct wg_triton_control *control, const char *config,
                             struct wg_error *err);
enum wg_code wg__triton_unload(struct wg_triton_control *control, struct wg_error *err);

#endif
