/* SPDX-License-Identifier: MIT
 *
 * What the replays of one case under one policy add up to.
 *
 * Records are added one by one, always in the order of the seeds, so that the sums are the same to
 * the last bit however many threads replay. Beside the sums it keeps three totals per seed, and for
 * the quantiles the cumulative cost of each seed at as many recurrences as fit into a fixed amount
 * of memory (all of them in any usual study).
 *
 * Owns: its arrays.    Threads: one at a time.
 */
#ifndef WG_SIMULATE_STUDY_SUM_H
#define WG_SIMULATE_STUDY_SUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "simulate/study.h"

struct wg_study_sum {
    size_t recurrences;
    size_t seeds;
    size_t bin_count;
    size_t checkpoint_count;
    size_t added;         /* records so far */
    double *cumulative_j; /* [recurrence], summed over the seeds */
    double *checkpoint_j; /* [checkpoint][seed] */
    double *energy_j;     /* [seed], totals */
    double *time_s;
    double *cost_j;
    unsigned *choices; /* [bin][WG_ARMS_MAX] */
    unsigned *finals;  /* [WG_ARMS_MAX][WG_POWER_LIMITS_MAX] */
    uint64_t attempts;
    uint64_t gave_up;
};

enum wg_code wg__study_sum_init(struct wg_study_sum *sum, size_t recurrences, size_t seeds,
                                size_t bin_count, struct wg_error *err);
void wg__study_sum_fini(struct wg_study_sum *sum);

/* Adds the record of the next seed. */
void wg__study_sum_add(struct wg_study_sum *sum, const struct wg_training_record *record);

/* Fills all of `out` but its `world` and `policy`, with arrays from `arena`, and starts anew. All
 * seeds must have been added. */
enum wg_code wg__study_sum_finish(struct wg_study_sum *sum, const struct wg_study_world *world,
                                  struct wg_arena *arena, struct wg_study_case *out,
                                  struct wg_error *err);

#endif
