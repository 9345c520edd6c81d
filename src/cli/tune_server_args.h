/* SPDX-License-Identifier: MIT
 *
 * The options of `wattgov tune` about a server that is measured under our own load.
 *
 * Owns: see the struct.    Threads: the main thread.
 */
#ifndef WG_CLI_TUNE_SERVER_ARGS_H
#define WG_CLI_TUNE_SERVER_ARGS_H

#include "cli/options.h"
#include "live/tune_knobs.h"
#include "live/workload_server.h"

enum { WG_TUNE_PATHS_MAX = 16, WG_TUNE_PATH_SIZE = 256 };

struct wg_tune_server_args {
    const char *url; /* NULL: there is no server */
    const char *protocol, *control_url, *model, *model_version, *data, *prompt, *batch_by;
    const char *model_config, *statistics, *ready_path, *log, *leave;
    struct wg_option_list shapes, bodies, paths;
    bool as_json, chat, stream, foreign_load;
    unsigned max_tokens, concurrency, max_outstanding;
    double request_timeout_s, warm_up_s, ready_s;
};

#define WG_TUNE_SERVER_ARGS_DEFAULT                                                                \
    {.protocol = "kserve_http",                                                                    \
     .data = "random",                                                                             \
     .batch_by = "server",                                                                         \
     .leave = "original",                                                                          \
     .statistics = "client",                                                                       \
     .max_tokens = 64,                                                                             \
     .max_outstanding = 1024,                                                                      \
     .request_timeout_s = 30,                                                                      \
     .warm_up_s = 1,                                                                               \
     .ready_s = 120}

/* clang-format off */
#define WG_TUNE_SERVER_OPTIONS(type, field)                                                        \
    {.name = "server",                                                                             \
     WG_OPTION_STRING(type, field.url),                                                            \
     .value = "URL",                                                                               \
     .fallback = "none: the command is measured",                                                  \
     .help = "Measures a server under our own load; a command behind -- is what starts it."},      \
    {.name = "protocol",                                                                           \
     WG_OPTION_STRING(type, field.protocol),                                                       \
     .value = "NAME",                                                                              \
     .choices = wg__tune_protocols,                                                                \
     .help = "What the server speaks: kserve_http, kserve_grpc (Triton and others) or openai."},   \
    {.name = "control-url",                                                                        \
     WG_OPTION_STRING(type, field.control_url),                                                    \
     .value = "URL",                                                                               \
     .fallback = "that of --server",                                                               \
     .help = "Triton's HTTP side, where requests go by gRPC."},                                    \
    {.name = "model",                                                                              \
     WG_OPTION_STRING(type, field.model),                                                          \
     .value = "NAME",                                                                              \
     .fallback = "the only one (openai)",                                                          \
     .help = "The model that is asked."},                                                          \
    {.name = "model-version",                                                                      \
     WG_OPTION_STRING(type, field.model_version),                                                  \
     .value = "N",                                                                                 \
     .fallback = "the server's choice",                                                            \
     .help = "Its version."},                                                                      \
    {.name = "shape",                                                                              \
     WG_OPTION_LIST(type, field.shapes),                                                           \
     .value = "INPUT:AxBxC",                                                                       \
     .help = "The shape of an input that the model leaves open."},                                 \
    {.name = "data",                                                                               \
     WG_OPTION_STRING(type, field.data),                                                           \
     .value = "KIND",                                                                              \
     .choices = wg__tune_data,                                                                     \
     .help = "What inputs hold: random or zeros."},                                                \
    {.name = "body",                                                                               \
     WG_OPTION_LIST(type, field.bodies),                                                           \
     .value = "FILE",                                                                              \
     .help = "Bodies of requests, sent in turn, instead of made ones."},                           \
    {.name = "tensors-as-json",                                                                    \
     WG_OPTION_FLAG(type, field.as_json),                                                          \
     .help = "Sends tensors as JSON, for servers without the binary extension."},                  \
    {.name = "prompt",                                                                             \
     WG_OPTION_STRING(type, field.prompt),                                                         \
     .value = "TEXT",                                                                              \
     .fallback = "some 32 words",                                                                  \
     .help = "What a language model is asked."},                                                   \
    {.name = "chat",                                                                               \
     WG_OPTION_FLAG(type, field.chat),                                                             \
     .help = "Asks at /v1/chat/completions, not /v1/completions."},                                \
    {.name = "stream",                                                                             \
     WG_OPTION_FLAG(type, field.stream),                                                           \
     .help = "Has tokens streamed, so that the first one has a time (ttft_p99_s)."},               \
    {.name = "max-tokens",                                                                         \
     WG_OPTION_UNSIGNED(type, field.max_tokens),                                                   \
     .value = "N", .min = 1, .max = 1000000,                                                       \
     .help = "Tokens that one request asks for."},                                                 \
    {.name = "concurrency",                                                                        \
     WG_OPTION_UNSIGNED(type, field.concurrency),                                                  \
     .value = "N", .min = 1, .max = 4096,                                                          \
     .fallback = "1; with --statistics triton twice the largest batch",                            \
     .help = "Requests under way at once, without --arrivals."},                                   \
    {.name = "max-outstanding",                                                                    \
     WG_OPTION_UNSIGNED(type, field.max_outstanding),                                              \
     .value = "N", .min = 1, .max = 65536,                                                         \
     .help = "Requests under way at once at most, with --arrivals; more wait, and count so."},     \
    {.name = "request-timeout",                                                                    \
     WG_OPTION_DURATION(type, field.request_timeout_s),                                            \
     .value = "TIME", .min = 0.01, .max = 3600,                                                    \
     .help = "A request without an answer for so long has failed."},                               \
    {.name = "warm-up",                                                                            \
     WG_OPTION_DURATION(type, field.warm_up_s),                                                    \
     .value = "TIME", .min = 0.01, .max = 3600,                                                    \
     .help = "A new configuration serves at least so long unmeasured."},                           \
    {.name = "batch-by",                                                                           \
     WG_OPTION_STRING(type, field.batch_by),                                                       \
     .value = "WHO",                                                                               \
     .choices = wg__tune_batch_by,                                                                 \
     .help = "Who makes batches of the knob batch: the server (max_batch_size) or the client."},   \
    {.name = "knob-path",                                                                          \
     WG_OPTION_LIST(type, field.paths),                                                            \
     .value = "NAME=PATH[*SCALE]",                                                                 \
     .help = "Where a knob goes: a place in the model's configuration (a[0].b), client.batch, "    \
             "client.concurrency, client.max_tokens or command."},                                 \
    {.name = "model-config",                                                                       \
     WG_OPTION_STRING(type, field.model_config),                                                   \
     .value = "FILE",                                                                              \
     .fallback = "the server is asked",                                                            \
     .help = "The model's configuration as JSON."},                                                \
    {.name = "statistics",                                                                         \
     WG_OPTION_STRING(type, field.statistics),                                                     \
     .value = "WHOSE",                                                                             \
     .choices = wg__tune_statistics,                                                               \
     .help = "Figures as the client sees them, or by Triton's own counts; with those, --arrivals " \
             "is simulated."},                                                                     \
    {.name = "leave",                                                                              \
     WG_OPTION_STRING(type, field.leave),                                                          \
     .value = "WHAT",                                                                              \
     .choices = wg__tune_leave,                                                                    \
     .help = "What a running server is left with: its original configuration, or the returned "    \
             "one."},                                                                              \
    {.name = "foreign-load",                                                                       \
     WG_OPTION_FLAG(type, field.foreign_load),                                                     \
     .help = "Somebody else sends the requests; only Triton's counts are read."},                  \
    {.name = "ready-path",                                                                         \
     WG_OPTION_STRING(type, field.ready_path),                                                     \
     .value = "PATH",                                                                              \
     .fallback = "/v2/health/ready; openai: /health",                                              \
     .help = "What answers 200 when the server is ready."},                                        \
    {.name = "ready-timeout",                                                                      \
     WG_OPTION_DURATION(type, field.ready_s),                                                      \
     .value = "TIME", .min = 0.1, .max = 86400,                                                    \
     .help = "Patience until the server or a model is ready."},                                    \
    {.name = "server-log",                                                                         \
     WG_OPTION_STRING(type, field.log),                                                            \
     .value = "FILE",                                                                              \
     .fallback = "thrown away",                                                                    \
     .help = "Where the output of a started server goes."}
/* clang-format on */

extern const char *const wg__tune_protocols[],
    *const wg__tune_data[], *const wg__tune_batch_by[], *const wg__tune_leave[],
                                                            *const wg__tune_statistics[];

/* What the opened workload reads from; must outlive the opening. */
struct wg_tune_server_opts {
    struct wg_workload_server_opts opts;
    struct wg_server_knob_path paths[WG_TUNE_PATHS_MAX];
    char names[WG_TUNE_PATHS_MAX][WG_TUNE_PATH_SIZE];
    const char *shapes[WG_OPTION_LIST_MAX + 1], *bodies[WG_OPTION_LIST_MAX + 1];
};

/* WG_EINVAL: an option, named. `command` may be NULL. */
enum wg_code wg__tune_server_opts(struct wg_tune_server_opts *out,
                                  const struct wg_tune_server_args *args, const char *command,
                                  const char *arrivals, uint64_t seed, struct wg_error *err);

/* What a running server has is the default of those knobs that tell none (default=) and have it
 * among their levels; says so, and where it is not among them. */
void wg__tune_server_defaults(struct wg_tune_knobs *knobs, struct wg_workload *workload,
                              bool is_quiet);

/* Whether a batch above 1 was allowed to the server and none was made: then its counts tell nothing
 * about that batch. */
bool wg__tune_server_lacks_batches(const struct wg_tune_knobs *knobs, size_t configuration,
                                   const struct wg_workload_figure *figures, size_t count);

#endif
