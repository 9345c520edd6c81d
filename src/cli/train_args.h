/* SPDX-License-Identifier: MIT
 *
 * What `wattgov train` and `wattgov job run` share: the options about the command that they run,
 * and which GPUs it runs on.
 *
 *     struct args { struct wg_train_args train; ... };
 *     static const struct wg_option options[] = {
 *         WG_TRAIN_OPTIONS(struct args, train),
 *         ...
 *     };
 *
 * Owns: nothing.    Threads: the main thread.
 */
#ifndef WG_CLI_TRAIN_ARGS_H
#define WG_CLI_TRAIN_ARGS_H

#include "cli/options.h"
#include "live/train_runner.h"

struct wg_train_args {
    const char *profile;
    bool observe;
    const char *step_regex, *epoch_regex, *metric_regex;
    bool quiet;
};

/* clang-format off */
#define WG_TRAIN_OPTIONS(type, field)                                                              \
    {.name = "profile",                                                                            \
     WG_OPTION_STRING(type, field.profile),                                                        \
     .value = "warmup=TIME,measure=TIME",                                                          \
     .fallback = "as long as it needs",                                                            \
     .help = "Time before the first measurement, and of each."},                                   \
    {.name = "observe",                                                                            \
     WG_OPTION_FLAG(type, field.observe),                                                          \
     .help = "Sets nothing: measures, and says what governing would save."},                       \
    {.name = "step-regex",                                                                         \
     WG_OPTION_STRING(type, field.step_regex),                                                     \
     .value = "REGEX",                                                                             \
     .fallback = "none",                                                                           \
     .help = "Matches lines that the command prints at steps; a group is the step's number."},     \
    {.name = "epoch-regex",                                                                        \
     WG_OPTION_STRING(type, field.epoch_regex),                                                    \
     .value = "REGEX",                                                                             \
     .fallback = "none",                                                                           \
     .help = "The same for epochs."},                                                              \
    {.name = "metric-regex",                                                                       \
     WG_OPTION_STRING(type, field.metric_regex),                                                   \
     .value = "REGEX",                                                                             \
     .fallback = "none",                                                                           \
     .help = "Matches lines with the target metric; its group is the value."},                     \
    {.name = "quiet",                                                                              \
     .letter = 'q',                                                                                \
     WG_OPTION_FLAG(type, field.quiet),                                                            \
     .help = "Tells no choices while it runs."}
/* clang-format on */

/* Fills what the options say into the request. WG_EINVAL: --profile is malformed:
 * "warmup=5s,measure=10s", either may be left out, each is above 0 and at most a day. */
enum wg_code wg__train_args_take(const struct wg_train_args *args, struct wg_train_request *out,
                                 struct wg_error *err);

struct wg_train_gpus {
    size_t count;
    const struct wg_device_info *infos[WG_TRAIN_GPUS_MAX];
    size_t positions[WG_TRAIN_GPUS_MAX]; /* in the machine */
};

/* The machine's GPUs. WG_EINVAL: more than WG_TRAIN_GPUS_MAX. */
enum wg_code wg__train_gpus_find(const struct wg_machine *machine, struct wg_train_gpus *out,
                                 struct wg_error *err);

#endif
