/* SPDX-License-Identifier: MIT
 *
 * The inside of a served model as a workload: shared by workload_server.c (opening, windows),
 * server_setting.c (how it is brought to a configuration), server_give_back.c, server_window.c and
 * server_figures.c.
 *
 *     command --start--> ready --load with config--> metadata --> bodies --> warm up, measure
 *        ^ command changed, died     ^ config changed, server was started anew
 *
 * What the server is believed to have is kept (`config`, `line`); whatever goes wrong throws the
 * belief away, so that the next set does everything again.
 *
 * Owns: see workload_server.h.    Threads: one at a time.
 */
#ifndef WG_LIVE_SERVER_PARTS_H
#define WG_LIVE_SERVER_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "live/load_generator.h"
#include "live/server_original.h"
#include "live/server_process.h"
#include "live/server_target.h"
#include "live/triton_control.h"
#include "live/workload.h"
#include "live/workload_server.h"
#include "net/http_call.h"
#include "net/http_client.h"
#include "net/kserve.h"
#include "schedule/arrivals.h"

enum { WG_SERVER_SETTINGS_MAX = 32 };

/* What the requests are like. */
struct wg_server_client {
    size_t rows;
    size_t outstanding;
    uint64_t max_tokens;
};

struct wg_workload_server {
    struct wg_workload base;
    struct wg_arena arena; /* the texts of the options */
    struct wg_workload_server_opts opts;
    const char *model; /* NULL: not known yet */

    struct wg_server_process process;
    bool has_process;
    struct wg_buffer line; /* the command that runs */
    bool is_line_known;    /* it does, as far as we know */
    char *base_config;     /* the configuration that the server had at first; NULL: not known */
    struct wg_server_claim claim; /* that we set the model, and nobody else */
    char *original;               /* what it had before our first load; NULL: not known */
    bool was_left;                /* by one that was killed */
    char *held;   /* what it told after our last load, of one that is only set; NULL: not known */
    bool was_set; /* at least once: the model and its places are there */
    bool is_changed;          /* it has been loaded by us, and not given back */
    char *config;             /* the one that it has; NULL: not known, or its own */
    bool is_config_known;     /* it has it, as far as we know */
    struct wg_buffer setting; /* the last command line that was set; for recover */

    struct wg_http_stop stop;          /* of waiting for it: a signal came */
    struct wg_triton_control *control; /* NULL with openai */
    struct wg_http_client *client;
    struct wg_arrivals *arrivals;
    struct wg_load_generator *generator;
    struct wg_server_target *target;
    struct wg_load_result result;

    struct wg_server_client is, made_for; /* `made_for`: what the bodies and slots were made for */
    bool is_made;
    struct wg_kserve_metadata metadata;
    size_t max_batch; /* of the model; 0: it does not batch, or does not say */
    size_t instances; /* of the model, that work side by side; 0: it does not say */
    bool has_statistics;
    struct wg_kserve_statistics seen; /* at the last look */
    bool has_switched;                /* it was loaded or started by the present set */
    double switch_s;
};

static inline struct wg_workload_server *wg__server_of(struct wg_workload *workload)
{
    return (struct wg_workload_server *)workload;
}

/* The op `set`. */
enum wg_code wg__server_set(struct wg_workload *workload,
                            const struct wg_workload_setting *settings, size_t count,
                            enum wg_workload_outcome *outcome, char why[WG_WORKLOAD_WHY_SIZE],
                            struct wg_error *err);

/* " It has: classifier, voice" where the server tells its models; else nothing. */
enum { WG_SERVER_MODELS_SIZE = 128 };
void wg__server_models_text(struct wg_triton_control *control,
                            char out[static WG_SERVER_MODELS_SIZE]);

/* What the server is believed to have is no longer believed. */
void wg__server_forget(struct wg_workload_server *server);

/* Has the server load its model so (NULL: as in its repository). */
enum wg_code wg__server_load(struct wg_workload_server *server, const char *config,
                             struct wg_error *err);

/* Nobody else sets the model meanwhile. What one that was killed has left is the model's own. */
enum wg_code wg__server_claim_model(struct wg_workload_server *server, struct wg_error *err);

/* What the model has is kept before it is changed. That of the repository is meant where there is
 * none to read: by gRPC, or because it is not loaded. Where it is merely not told now, this fails,
 * and nothing is to be changed. */
enum wg_code wg__server_keep_original(struct wg_workload_server *server, struct wg_error *err);

/* The op `give_back`. */
enum wg_code wg__server_give_back(struct wg_workload *workload, char note[WG_WORKLOAD_WHY_SIZE],
                                  struct wg_error *err);

/* The op `adopt`. */
void wg__server_adopt(struct wg_workload *workload);

/* The op `recover`. */
enum wg_code wg__server_recover(struct wg_workload *workload, struct wg_error *err);

/* Asks what requests need to know, and makes them, if that is not done. */
enum wg_code wg__server_make(struct wg_workload_server *server, struct wg_error *err);

/* Looks at the counts: if the server was started anew since, its configuration is set again. */
enum wg_code wg__server_look(struct wg_workload_server *server, struct wg_error *err);

/* What a code of a call means for the trial: an outcome with `why`, and WG_OK; or it is ours. */
enum wg_code wg__server_outcome(enum wg_code code, const struct wg_error *err,
                                enum wg_workload_outcome *outcome, char why[WG_WORKLOAD_WHY_SIZE]);

/* The op `measure` (server_window.c). */
enum wg_code wg__server_measure(struct wg_workload *workload, const struct wg_workload_plan *plan,
                                struct wg_workload_sample *out, struct wg_error *err);

/* The figures of a window whose time is in `out`: of our own load (`result`, unless the load is
 * somebody else's), and of the counts in between (NULL: there are none). */
void wg__server_figures(struct wg_workload_sample *out, struct wg_workload_server *server,
                        const struct wg_kserve_statistics *counts,
                        const struct wg_workload_plan *plan);

#endif
