/* SPDX-License-Identifier: MIT
 *
 * A served model as a workload: set through the server's own configuration, measured under our own
 * load or by the server's own counts.
 *
 *     protocol   kserve_http  kserve_grpc   Triton and whoever else speaks KServe v2
 *                openai                     vLLM, llama.cpp, ...: /v1/completions, /v1/chat/...
 *
 * Where a knob goes is told by its path:
 *
 *     client.batch         rows that one request carries          client.concurrency
 *     client.max_tokens    tokens that one request asks for
 *     command              {NAME} in `command`: the server is started anew
 *     anything else        a place in the model's configuration, "dynamic_batching.x", "a[0].b":
 *                          the model is loaded anew with it (Triton's repository API; the server
 *                          runs with --model-control-mode=explicit)
 *
 * A knob without a path has one by its name: batch (client.batch or max_batch_size, by
 * `batch_by`), delay (dynamic_batching.max_queue_delay_microseconds), instances or replicas
 * (instance_group[0].count), threads (parameters.threads.string_value), concurrency, max_tokens,
 * and `command` where the command names it. Values are SI: a path that ends in `_microseconds` gets
 * the value times 1e6. A category gives its label.
 *
 * Figures beside those of workload.h: ttft_*_s (time to the first token), tpot_*_s (time per output
 * token after it), output_tokens_per_s; send_lag_p99_s (how late we ourselves sent, which is
 * counted in the latency of open loops); service_s, queue_s, batch_mean, batch_<N>_service_s,
 * batch_<N>_share (from Triton's counts, where it has them).
 *
 * Owns: connections, and the server if it started it.    Threads: one at a time.
 */
#ifndef WG_LIVE_WORKLOAD_SERVER_H
#define WG_LIVE_WORKLOAD_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "live/child.h"
#include "live/workload.h"

#define WG_SERVER_PROTOCOLS(X)                                                                     \
    X(KSERVE_HTTP, "kserve_http")                                                                  \
    X(KSERVE_GRPC, "kserve_grpc")                                                                  \
    X(OPENAI, "openai")

enum wg_server_protocol {
#define X(name, word) WG_SERVER_##name,
    WG_SERVER_PROTOCOLS(X)
#undef X
        WG_SERVER_PROTOCOL_COUNT
};

enum wg_server_data {
    WG_SERVER_DATA_RANDOM, /* floats in [0, 1), bytes and integers small */
    WG_SERVER_DATA_ZEROS
};

enum wg_server_batch_by {
    WG_SERVER_BATCH_BY_SERVER, /* requests of one row; the server gathers them */
    WG_SERVER_BATCH_BY_CLIENT  /* requests of `batch` rows */
};

enum wg_server_statistics {
    WG_SERVER_STATISTICS_CLIENT, /* latencies as we see them; Triton's counts beside, if it has
                                    them */
    WG_SERVER_STATISTICS_TRITON  /* Triton's counts are the figures; see `is_foreign_load` */
};

struct wg_server_knob_path {
    const char *knob;
    const char *path;
    double scale; /* the value is multiplied by it; 0: as said above */
};

/* Zero or NULL means the default that is named. Nothing of it must outlive the opening. */
struct wg_workload_server_opts {
    enum wg_server_protocol protocol;
    const char *url;           /* "http://127.0.0.1:8000"; of gRPC too: "http://127.0.0.1:8001" */
    const char *control_url;   /* Triton's HTTP side; NULL: url */
    const char *model;         /* NULL with openai: the only one that the server has */
    const char *model_version; /* NULL: the server's choice */

    /* The requests. */
    const char *const *shapes; /* "NAME:1x3x48x192", ended by NULL: what metadata leaves open (-1);
                                  with or without the batch dimension */
    enum wg_server_data data;
    const char *const *body_files; /* instead: bodies to send in turn, ended by NULL (kserve_http:
                                      JSON; openai: JSON, `stream` as it says) */
    bool is_json;                  /* tensors as JSON, not binary (kserve_http) */
    const char *prompt;            /* openai; NULL: a text of some 32 words */
    bool is_chat;                  /* openai: /v1/chat/completions, not /v1/completions */
    bool is_streaming;             /* openai: the first token has a time */
    unsigned max_tokens;           /* openai; 0: 64 */

    /* The load. */
    const char *arrivals;     /* as wg__arrivals_open takes it; NULL: closed loop */
    unsigned concurrency;     /* of a closed loop; 0: 1 */
    unsigned max_outstanding; /* of an open loop; 0: 1024. More wait for a free one; their latency
                                 counts from the moment they were meant for */
    double timeout_s;         /* of a request; 0: 30 */
    double warm_up_s;         /* at least; 0: 1. And until every batch was seen that the
                                 configuration allows, within ten times that */
    uint64_t seed;

    /* The configuration. */
    enum wg_server_batch_by batch_by;
    const struct wg_server_knob_path *paths; /* `path_count` */
    size_t path_count;
    const char *config_file; /* the model's configuration, JSON, where the server does not tell it;
                                NULL: it is asked */

    enum wg_server_statistics statistics;
    bool is_foreign_load; /* somebody else sends the requests: only the counts are read */
    bool is_only_set;     /* nothing is measured: it gets a configuration, and its own back */

    /* A server of our own: started at the first set, and again when a `command` knob changes or it
     * died. Its process group is ended with SIGTERM, after 10 s with SIGKILL. */
    struct wg_signals *signals; /* one ends waiting for the server; NULL: none does */
    const char *command;    /* for /bin/sh -c; {NAME} is a knob's value. NULL: it runs already */
    const char *ready_path; /* answers 200 when ready; NULL: /v2/health/ready, /health (openai) */
    double ready_s;         /* patience until it is ready, of a load and a start; 0: 120 */
    const char *log_file;   /* its output; NULL: thrown away */
};

/* Opens without asking the server for anything if there is a command, else the server must answer.
 * WG_EINVAL: an option, named; WG_EIO: no answer; WG_EDATA: an answer that is no KServe or OpenAI;
 * WG_ENOENT: no such model or file; WG_ENOMEM. */
enum wg_code wg__workload_server_open(struct wg_workload **out,
                                      const struct wg_workload_server_opts *opts,
                                      struct wg_error *err);

/* Seconds that the last `set` took, if it loaded the model or started the server; 0: it did not. */
double wg__workload_server_switch_s(const struct wg_workload *workload);

/* The place of a knob by the options or its name, and what its value is multiplied by there; NULL:
 * it has none. */
const char *wg__workload_server_path(const struct wg_workload_server_opts *opts, const char *knob,
                                     double *scale_out);

/* The same, and WG_EINVAL with the reason where it has none. */
enum wg_code wg__workload_server_find_place(const struct wg_workload_server_opts *opts,
                                            const char *knob, const char **path_out,
                                            double *scale_out, struct wg_error *err);

/* What a running server's model has at a knob's place in its configuration, as the knob would be
 * told. False: that is not known, or it is another place. `*value_out` is NAN of a text that is no
 * number. */
bool wg__workload_server_present(struct wg_workload *workload, const char *knob, double *value_out,
                                 char text_out[static WG_WORKLOAD_NAME_SIZE]);

const char *wg__server_protocol_word(enum wg_server_protocol protocol);
bool wg__server_protocol_parse(const char *word, enum wg_server_protocol *out);

#endif
