/* SPDX-License-Identifier: MIT
 *
 * A study of tuning: policies on one measured grid, over many seeds.
 *
 * A run is a policy and a seed; worker processes (workers.h says why no threads) take them one by
 * one and write each into its own place, and sums are made afterwards in the order of the seeds. So
 * nothing but the times of decisions depends on their number. Intervals are of 95 %: of a mean by
 * Student's t, of a share Wilson's.
 *
 * Owns: the study owns its arrays; the scene must outlive it.    Threads: callers use one.
 */
#ifndef WG_SIMULATE_TUNING_STUDY_H
#define WG_SIMULATE_TUNING_STUDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "simulate/tuning_run.h"

enum { WG_TUNING_SEEDS_MAX = 100000, WG_TUNING_TRIALS_MAX = 10000, WG_TUNING_HIT_CAP = 100 };

struct wg_tuning_study_request {
    const struct wg_tuning_scene *scene;
    size_t policy_count;
    enum wg_tuner_policy policies[WG_TUNER_POLICY_COUNT];
    uint64_t first_seed;
    size_t seeds;
    double stop_share; /* 0: the policy's own */
    double xi;         /* of polythrottle, in costs of the default; NAN: as published */
    size_t max_trials; /* 0: 30, or the number of configurations if that is less */
    bool validate;
    size_t processes;
    /* Called once before the first run with their number, and after each one; NULL: never. */
    void (*started)(void *context, size_t runs);
    void (*progress)(void *context);
    void *progress_context;
};

/* A share of the runs. */
struct wg_tuning_share {
    double share, low, high;
};

struct wg_tuning_mean {
    double mean, low, high; /* low and high are NAN for a single run */
};

/* What would be returned after so many trials. */
struct wg_tuning_after {
    double within_5, over_limit; /* shares */
    double regret;               /* mean of the feasible ones; NAN: there are none */
};

struct wg_tuning_summary {
    enum wg_tuner_policy policy;
    const struct wg_tuning_outcome *outcomes; /* one a seed, in their order */

    struct wg_tuning_mean first_hit; /* a run without one counts cap + 1 */
    double first_hit_sd, first_hit_p95;
    double first_hit_exact; /* of `random`, without cap: (N + 1) / (k + 1); else NAN */
    size_t misses;
    double *hit_by; /* [cap]: the share of runs with a hit within n + 1 trials */

    struct wg_tuning_mean trials; /* to the end */
    double trials_p95;
    double failed_trials; /* mean */
    struct wg_tuning_share within_5, within_10, feasible, over_limit;
    struct wg_tuning_mean regret; /* of those that are feasible; NAN: none */
    struct wg_tuning_mean saving; /* of those, against the default's cost */
    double validated;             /* share */
    size_t ends[WG_TUNER_END_COUNT];

    struct wg_tuning_after *after; /* [max_trials]: after n + 1 trials */
    double decision_ms_p50, decision_ms_p99;
};

struct wg_tuning_study {
    struct wg_arena arena;
    const struct wg_tuning_scene *scene;
    size_t seeds;
    size_t max_trials;
    size_t hit_cap;
    size_t task_count;
    struct wg_tuning_outcome *outcomes; /* [policy][seed] */
    uint32_t *returned_after;           /* [policy][seed][max_trials] */
    size_t summary_count;
    struct wg_tuning_summary *summaries;
};

/* WG_EINVAL: the request; else the codes of the tuner. */
enum wg_code wg__tuning_study_run(const struct wg_tuning_study_request *request,
                                  struct wg_tuning_study **out, struct wg_error *err);
void wg__tuning_study_free(struct wg_tuning_study *study);

/* max_trials of a request, 0 resolved. */
size_t wg__tuning_study_trials(const struct wg_tuning_study_request *request);

#endif
