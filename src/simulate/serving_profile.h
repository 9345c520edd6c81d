/* SPDX-License-Identifier: MIT
 *
 * A served model on a GPU, as `wattgov simulate serving` needs it: how long a batch and a
 * fine-tuning step take at each clock setting, how they hinder each other, and what power is drawn.
 *
 * The file is YAML (cli/serving_profile_file.h reads it):
 *
 *     name: orin-efficientnet-b7
 *     source: where the numbers come from
 *     max_batch: 8
 *     latency:                 a formula: seconds = fixed_s + per_row_s * b
 *       fixed_s: 0.061
 *       per_row_s: 0.066
 *     # or a table, linear between its rows:
 *     # latency: [{batch: 1, s: 0.127}, {batch: 2, s: 0.193}, {batch: 8, s: 0.589}]
 *     latency_share:           of that time at the highest clocks; what is left depends on neither
 *       gpu_clock: 0.6
 *       mem_clock: 0.3
 *     noise: 0.03              coefficient of variation of a batch's or step's time
 *     finetune:
 *       fixed_s: 0.005         of each step
 *       per_row_s: 0.0094
 *       update_s: 0.01         at the end of an iteration
 *     interference:            when both run: factors of their times
 *       inference: 2
 *       finetune: 2
 *     clocks:
 *       change_s: 0.02
 *       change_j: 0.1
 *       ladder:                the fastest first; latency: in a rung replaces the formula there
 *         - {name: max, gpu_clock: 1, mem_clock: 1, busy_w: 40, idle_w: 12, finetune_w: 42}
 *
 *     t(b, f, m) = t(b) (rest + gpu_clock / f + mem_clock / m)        of a step as of a batch
 *
 * A table reaches to max_batch at least. Clocks are relative to the first rung's.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_SIMULATE_SERVING_PROFILE_H
#define WG_SIMULATE_SERVING_PROFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "schedule/clock_governor.h"

enum { WG_PROFILE_TEXT_SIZE = 256, WG_PROFILE_POINTS_MAX = 64 };

/* Bounds of its fields; a message says them as they are here. */
#define WG_PROFILE_SECONDS_MAX  1e6
#define WG_PROFILE_JOULES_MAX   1e6
#define WG_PROFILE_WATTS_MAX    1e6
#define WG_PROFILE_NOISE_MAX    1.0
#define WG_PROFILE_SLOWDOWN_MAX 100.0
#define WG_PROFILE_CLOCK_MIN    0.01

struct wg_latency_law {
    size_t point_count;                   /* 0: the formula */
    double batch[WG_PROFILE_POINTS_MAX];  /* rising; the first is 1 */
    double time_s[WG_PROFILE_POINTS_MAX]; /* never falling */
    double fixed_s, per_row_s;
};

struct wg_serving_profile {
    char name[WG_PROFILE_TEXT_SIZE];
    char source[WG_PROFILE_TEXT_SIZE];
    unsigned max_batch;
    struct wg_latency_law latency; /* at rung 0 */
    double gpu_share, mem_share;   /* of that time */
    double noise;
    bool has_finetune;
    double step_fixed_s, step_per_row_s, update_s;
    double inference_slowdown, finetune_slowdown; /* >= 1 */
    struct wg_clock_ladder ladder;
    bool rung_has_latency[WG_RUNGS_MAX];
    struct wg_latency_law rung_latency[WG_RUNGS_MAX];
};

/* Seconds alone on the GPU, without noise. rows 1 .. max_batch. */
double wg__profile_batch_s(const struct wg_serving_profile *profile, size_t rung, unsigned rows);
double wg__profile_step_s(const struct wg_serving_profile *profile, size_t rung, unsigned rows,
                          bool ends_iteration);

/* WG_EINVAL: a field that cannot be, by its name in the file. */
enum wg_code wg__profile_check(const struct wg_serving_profile *profile, struct wg_error *err);

#endif
