/* SPDX-License-Identifier: MIT
 *
 * The small languages of `wattgov simulate tuning`'s options: where, knobs, figures, limits,
 * failures.
 *
 *     --where   COLUMN=VALUE,COLUMN=VALUE ...        --knob   COLUMN:ROLE
 *     --objective  [KIND:]EXPR                       --limit  [KIND:]EXPR<=BOUND, BOUND = 2,
 * 5ms, 1.5x
 *     --fail    crash:SHARE | hang:SHARE | restart:SHARE | oom:SHARE | cut:FACTOR
 *               | refuse:COLUMN=VALUE
 *
 * Owns: nothing; texts are copied into the caller's arena.    Threads: pure.
 */
#ifndef WG_CLI_TUNING_STUDY_ARGS_H
#define WG_CLI_TUNING_STUDY_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "simulate/tuning_grid.h"
#include "simulate/tuning_world.h"

/* Each is WG_EINVAL with one line that names the option and what is accepted, or WG_ENOMEM. */

/* Adds "COLUMN=VALUE,..." to `matches`, of which `*count` are used. */
enum wg_code wg__parse_matches(const char *option, const char *text, struct wg_arena *arena,
                               struct wg_tuning_match *matches, size_t *count, size_t max,
                               struct wg_error *err);

enum wg_code wg__parse_axis(const char *text, struct wg_arena *arena, struct wg_tuning_axis *out,
                            struct wg_error *err);

enum wg_code wg__parse_bound(const char *text, struct wg_arena *arena, struct wg_tuning_bound *out,
                             struct wg_error *err);

enum wg_code wg__parse_failure(const char *text, struct wg_arena *arena,
                               struct wg_tuning_failures *failures, struct wg_error *err);

/* "POLICY:SEED". */
enum wg_code wg__parse_run(const char *option, const char *text, enum wg_tuner_policy *policy,
                           uint64_t *seed, struct wg_error *err);

/* A policy's word. */
enum wg_code wg__parse_policy(const char *option, const char *text, enum wg_tuner_policy *out,
                              struct wg_error *err);

#endif
