/* SPDX-License-Identifier: MIT
 *
 * The profile that an earlier run of the same command has left: where `wattgov train` begins.
 *
 * It is remembered per name (or command and folder), GPU model and number, knob and batch size. A
 * store that cannot be used costs a line of warning and a longer search, never the run.
 *
 * Owns: the text of the name.    Threads: the main thread.
 */
#ifndef WG_CLI_TRAIN_CACHE_H
#define WG_CLI_TRAIN_CACHE_H

#include "live/train_runner.h"

struct wg_train_cache_opts {
    const char *store;  /* NULL: the usual one */
    const char *name;   /* NULL: the words of the command and the present folder */
    char *const *words; /* ended by NULL */
    const char *gpu_model;
    size_t gpu_count;
    unsigned batch_size; /* 0: not known */
};

/* Gets the profile for `knob`: at most WG_POWER_LIMITS_MAX points; a count of 0: there is none. */
enum wg_code wg__train_cache_get(const struct wg_train_cache_opts *opts, enum wg_knob knob,
                                 struct wg_train_point *out, size_t *count_out,
                                 struct wg_error *err);

/* Keeps what a stage has measured, if it came to a choice. */
enum wg_code wg__train_cache_put(const struct wg_train_cache_opts *opts,
                                 const struct wg_train_stage *stage, struct wg_error *err);

#endif
