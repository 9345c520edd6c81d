/* SPDX-License-Identifier: MIT
 *
 * A study: every combination of GPU, job and policy, over many seeds, with what it cost beside the
 * default and the oracle.
 *
 * Replays run in parallel; each draws its numbers from a stream named by (GPU, job, seed), and the
 * results are added up in the order of the seeds, so they do not depend on the number of threads,
 * nor a case's luck on which other cases are asked for. Only one (case, policy) holds per-seed
 * arrays at a time, so memory does not grow with the number of cases.
 *
 * Owns: the results own all their arrays and texts; the policies' names are static.
 * Threads: starts and joins its own; callers use one.
 */
#ifndef WG_SIMULATE_STUDY_H
#define WG_SIMULATE_STUDY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "simulate/job_table.h"
#include "simulate/trace.h"
#include "simulate/training.h"

enum { WG_STUDY_BINS_MAX = 200, WG_STUDY_THREADS_MAX = 256, WG_STUDY_POLICIES_MAX = 32 };

struct wg_study_request {
    const struct wg_training_trace *trace;
    const struct wg_job_table *jobs;
    const char *const *gpus; /* NULL: all of the trace */
    size_t gpu_count;
    const char *const *job_names; /* NULL: all of the table that the trace has on that GPU */
    size_t job_count;
    const char *const
        *policies; /* "default", "oracle", or a name of wg__batch_policies but "fixed" */
    size_t policy_count;
    struct wg_training_rules rules;
    double beta;
    unsigned window;
    double target_metric;      /* NaN: the job table's */
    double default_batch_size; /* NaN: the job table's */
    const char *drift_job; /* the job that each one turns into after rules.drift_at; NULL: none */
    const char *warm_gpu;  /* learn on this GPU first; cases on it are left out; NULL: none */
    size_t warm_recurrences;
    uint64_t first_seed;
    size_t seeds;
    size_t threads;
    /* Called once before the first replay with their number, and after each one, from any thread;
     * NULL: never. */
    void (*started)(void *context, size_t replays);
    void (*progress)(void *context);
    void *progress_context;
};

/* Mean and spread over the seeds. */
struct wg_spread {
    double mean;
    double sd;    /* sample standard deviation */
    double worst; /* the largest */
};

/* One point of a case's energy-time plane: a batch size at a limit, expected per recurrence. */
struct wg_study_point {
    double batch_size;
    double power_limit_w;
    double energy_j;
    double time_s;
    bool is_on_front;
};

/* What all policies of one GPU and job share. */
struct wg_study_world {
    const char *gpu;
    const char *job;
    const char *metric;
    double target_metric;
    size_t arm_count;
    double batch_size[WG_ARMS_MAX];
    size_t limit_count;
    double limit_w[WG_POWER_LIMITS_MAX];
    double default_batch_size;
    double max_power_w;
    double oracle_batch_size;
    double oracle_limit_w;
    struct wg_training_bill default_bill; /* expected per recurrence; of the world after a drift */
    struct wg_training_bill oracle_bill;
    struct wg_training_bill default_total; /* expected over all recurrences, the drift included */
    struct wg_training_bill oracle_total;
    double *cumulative_default_j; /* expected, per recurrence, the drift included */
    double *cumulative_oracle_j;
    size_t left_out_count; /* batch sizes with runs but without power rows */
    double left_out[WG_ARMS_MAX];
    size_t point_count;
    struct wg_study_point *points; /* those that reach the target, by batch size and limit */
};

struct wg_study_case {
    size_t world; /* index into wg_study.worlds */
    const char *policy;
    struct wg_spread energy_j; /* totals over all recurrences */
    struct wg_spread time_s;
    struct wg_spread cost_j;
    struct wg_spread cost_over_oracle; /* ratios of totals */
    struct wg_spread cost_over_default;
    struct wg_spread
        regret_oracle_runs;  /* (cost - expected oracle cost) / the oracle's cost per run */
    double final_batch_size; /* the most frequent choice of the last recurrence */
    double final_limit_w;
    double *cumulative_cost_j; /* mean over the seeds, one per recurrence */
    /* 10 % and 90 % quantiles over the seeds; of very many recurrences and seeds they are taken at
     * a selection of recurrences, and between those along straight lines. */
    double *cumulative_low_j;
    double *cumulative_high_j;
    /* [bin][arm]: the share of recurrences, over all seeds, that reached the target with that batch
     * size. Recurrence r is in bin r * bin_count / recurrences. */
    float *choices;
    double attempts_per_recurrence;
    size_t gave_up; /* recurrences, over all seeds, that the default had to finish */
};

struct wg_study_summary {
    const char *policy;
    size_t case_count;
    double geomean_cost_over_default;
    double geomean_energy_over_default;
    double geomean_time_over_default;
    double mean_excess_over_oracle; /* share: 0.07 is 7 % above the oracle */
    double worst_excess_over_oracle;
    size_t cases_above_default; /* dearer than default is expected to be; 0 for default itself */
    double decision_us_p50;     /* NaN for default and oracle, which decide nothing */
    double decision_us_p99;
};

struct wg_study {
    struct wg_arena arena; /* holds all that the pointers below reach */
    size_t recurrences;
    size_t seeds;
    size_t bin_count; /* of wg_study_case.choices: one per recurrence, WG_STUDY_BINS_MAX at most */
    size_t world_count;
    struct wg_study_world *worlds;
    size_t case_count;
    struct wg_study_case *cases; /* by world, then in the order of the policies */
    size_t summary_count;
    struct wg_study_summary *summaries; /* one per policy */
    /* Of the deciding policy (not default, oracle) with the largest median; NaN: there is none. */
    double decision_us_p50;
    double decision_us_p99;
    const char *slowest_policy; /* its name, or NULL */
};

/* Runs the study. Everything is checked and every case is built before the first replay. A
 * combination of a GPU and a job that were both named must exist; of what was not named, all that
 * the trace has is taken. WG_EINVAL: the request; else the codes of wg__trace_case. */
enum wg_code wg__study_run(const struct wg_study_request *request, struct wg_study **out,
                           struct wg_error *err);
void wg__study_free(struct wg_study *study);

#endif
