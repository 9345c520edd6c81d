/* SPDX-License-Identifier: MIT
 *
 * What the load generator asks of a server: inferences of KServe by HTTP or gRPC, completions of
 * OpenAI.
 *
 * Bodies are made once, a few different ones (VARIANTS), and sent in turn: making one a request
 * would cost more than sending it. Random data, so that a cache of the server does not answer.
 *
 * Owns: the bodies.    Threads: one at a time.
 */
#ifndef WG_LIVE_SERVER_TARGET_H
#define WG_LIVE_SERVER_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "live/load_generator.h"
#include "live/workload_server.h"
#include "net/kserve.h"

struct wg_server_target;

/* `opts` must live until it is closed; `slots` requests at most at once. WG_EINVAL, WG_ENOENT (a
 * body file), WG_ENOMEM. */
enum wg_code wg__server_target_open(struct wg_server_target **out,
                                    const struct wg_workload_server_opts *opts, const char *model,
                                    size_t slots, struct wg_error *err);
void wg__server_target_close(struct wg_server_target *target);

/* The bodies for a model like this: `is_batched`: the first dimension is the batch, `rows` of it.
 * Nothing to do where bodies come from files. WG_EINVAL: a shape that is open, or contradicts;
 * WG_ENOMEM. */
enum wg_code wg__server_target_make(struct wg_server_target *target,
                                    const struct wg_kserve_metadata *metadata, bool is_batched,
                                    size_t rows, struct wg_error *err);
/* The same for OpenAI. */
enum wg_code wg__server_target_make_prompts(struct wg_server_target *target, uint64_t max_tokens,
                                            struct wg_error *err);

struct wg_load_target *wg__server_target_load(struct wg_server_target *target);

#endif
