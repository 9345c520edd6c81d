/* SPDX-License-Identifier: MIT
 *
 * One tuner in one simulated world.
 *
 * Two runs of the same seed answer two questions:
 *
 *   to its end     what does it return, and after how many trials, by its own rule?
 *   on and on      after how many trials was a near-optimal configuration measured, whatever the
 *                  tuner knew of it? And what would it return if it had to end after n trials?
 *
 * The second one never stops by itself: it ends at the first hit once all n are known, or at the
 * cap.
 *
 * Owns: nothing.    Threads: pure; one at a time each.
 */
#ifndef WG_SIMULATE_TUNING_RUN_H
#define WG_SIMULATE_TUNING_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "simulate/tuning_world.h"

struct wg_tuning_setup {
    const struct wg_tuning_scene *scene;
    enum wg_tuner_policy policy;
    uint64_t seed;
    double stop_share;
    double xi;         /* of polythrottle; NAN: as published */
    size_t max_trials; /* of the run to its end, at least 1 */
    size_t hit_cap;    /* of the other one */
    bool validate;
};

/* How long decisions took; what does not fit is not kept. */
struct wg_tuning_stopwatch {
    double *ms;
    size_t count, capacity;
};

struct wg_tuning_outcome {
    uint64_t seed;
    size_t first_hit; /* trials; 0: none up to the cap */
    size_t trials;    /* of the run to its end */
    size_t failed_trials;
    enum wg_tuner_end end;
    size_t returned; /* a configuration; the space's count: nothing was measured */
    bool claims_feasible;
    bool is_validated;
};

/* Hears of each question and its answer. */
typedef void wg_tuning_listener(const struct wg_tuner_question *question,
                                const struct wg_trial *trial, size_t trials, void *context);

/* To its end. `stopwatch` and `listener` may be NULL. */
enum wg_code wg__tuning_run_to_end(const struct wg_tuning_setup *setup,
                                   struct wg_tuning_stopwatch *stopwatch,
                                   wg_tuning_listener *listener, void *context,
                                   struct wg_tuning_outcome *out, struct wg_tuner_result *result,
                                   struct wg_error *err);

/* On and on: `first_hit`, and into `returned_after[n - 1]` what would be returned after n trials, n
 * up to max_trials. */
enum wg_code wg__tuning_run_on(const struct wg_tuning_setup *setup,
                               struct wg_tuning_stopwatch *stopwatch, size_t *first_hit,
                               uint32_t *returned_after, struct wg_error *err);

#endif
