/* SPDX-License-Identifier: MIT
 *
 * The replay world: recurring training jobs on measured energy and time.
 *
 * The rules are those of Zeus's own trace-driven simulator (NSDI'23), so that policies can be
 * compared on its terms: one recorded run is drawn uniformly for each attempt; its epochs come from
 * the job's target; the first epoch of a batch size that was not used before costs the mean energy
 * and time over all power limits; a failed or stopped attempt is paid for, and the recurrence goes
 * on until the target is reached. Beyond Zeus: profiling can be charged as the seconds really
 * measured, policies may buy surveys (a few seconds at the largest limit), see the learning curve
 * of a run, have several runs in flight, and the job may turn into another one.
 *
 * Random numbers are drawn by name (seed, recurrence, attempt), so every policy meets the same
 * luck.
 *
 * Owns: one replay's state.    Threads: cases are read-only and shared; a replay belongs to one
 * thread.
 */
#ifndef WG_SIMULATE_TRAINING_H
#define WG_SIMULATE_TRAINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "optimize/batch_size.h"
#include "simulate/trace.h"

/* How the profiling of a new batch size is charged. */
enum wg_profile_charge {
    WG_CHARGE_EPOCH,  /* its first epoch at the mean energy and time over all limits (Zeus) */
    WG_CHARGE_SECONDS /* seconds per limit that the search really measures */
};

struct wg_training_rules {
    double eta;
    enum wg_profile_charge charge;
    double probe_s;      /* WG_CHARGE_SECONDS: per limit */
    double probe_noise;  /* relative sd of a probe's power and throughput */
    double survey_s;     /* seconds of one survey */
    double survey_noise; /* relative sd of what a survey says */
    double concurrency;  /* mean number of runs in flight; 1: one after another */
    size_t recurrences;
    size_t drift_at; /* recurrences before the job turns into `drifted`, if there is one */
};

/* Costs that follow from a case and eta. */
struct wg_training_costs {
    double epoch_cost_j[WG_ARMS_MAX][WG_POWER_LIMITS_MAX];
    size_t best_limit[WG_ARMS_MAX];
    double first_epoch_energy_j[WG_ARMS_MAX]; /* mean over the limits */
    double first_epoch_time_s[WG_ARMS_MAX];
    /* Expected per recurrence, retries included; infinity where the target is never reached. */
    double expected_epochs[WG_ARMS_MAX]; /* paid per recurrence */
    size_t oracle_arm;
    size_t oracle_limit;
};

void wg__training_costs(const struct wg_training_case *training_case, double eta,
                        struct wg_training_costs *out);

/* Expected energy, time and cost of one recurrence at a fixed arm and limit. */
struct wg_training_bill {
    double energy_j;
    double time_s;
    double cost_j;
};
struct wg_training_bill wg__training_expected(const struct wg_training_case *training_case,
                                              const struct wg_training_costs *costs, double eta,
                                              size_t arm, size_t limit);

/* Expected bill of somebody who always runs the default at the largest limit, and after
 * WG_ATTEMPTS_MAX attempts in vain (a job that drifted) the best setting. */
struct wg_training_bill wg__training_default(const struct wg_training_case *training_case,
                                             const struct wg_training_costs *costs, double eta);

/* What a replay has seen; arrays hold one entry per recurrence. */
struct wg_training_record {
    double *cost_j; /* paid for recurrence i, by whichever attempt */
    double *energy_j;
    double *time_s;
    unsigned char *arm; /* of the attempt that reached the target */
    unsigned char *limit;
    size_t decisions;
    float *decision_us;       /* ask to choice plus telling the outcome, wall clock */
    size_t decision_capacity; /* decisions beyond it are not kept */
    size_t attempts;
    size_t gave_up; /* recurrences that needed the default's help after WG_ATTEMPTS_MAX attempts */
};

/* A policy to replay, and the cases it lives in. */
struct wg_training_setup {
    const struct wg_training_case *training_case;
    const struct wg_training_case *drifted; /* same arms; NULL: no drift */
    const struct wg_training_case *warm;    /* another GPU to learn on first; NULL: none */
    size_t warm_recurrences;
    const struct wg_batch_policy_ops *ops;
    struct wg_batch_options options;
    enum wg_power_search_method search; /* WG_CHARGE_SECONDS: how limits are probed */
};

/* Replays `rules->recurrences` recurrences under `seed` and fills `record`, whose arrays (one entry
 * per recurrence) are the caller's. `rng_key` names the case, so that two cases of one seed differ
 * in luck while two policies on one case share it. */
enum wg_code wg__training_replay(const struct wg_training_setup *setup,
                                 const struct wg_training_rules *rules, uint64_t seed,
                                 uint64_t rng_key, struct wg_training_record *record,
                                 struct wg_error *err);

#endif
