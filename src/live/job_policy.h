/* SPDX-License-Identifier: MIT
 *
 * The decider of a recurring job, rebuilt from the facts in the store.
 *
 * Each GPU type (model and number) has a policy of its own, because costs differ; a new one starts
 * with what the one that has reached the target most often knows (`transfer`). What the facts mean:
 *
 *     STARTED, REVIVED   resume                     PROFILED   tell_profile
 *     EPOCH              may_continue               TAKEN_BACK forget
 *     ENDED              a survey: tell_survey; reached, stopped or failed: tell_run, and what its
 *                        epochs cost as a profile when none was told; else forget
 *
 * The order of the facts is the order in which the policies hear them, so every process arrives at
 * the same state. A snapshot in the store spares it all but the latest facts; it is a cache,
 * written by whoever had much to replay.
 *
 * Owns: its policies.    Threads: that of the store.
 */
#ifndef WG_LIVE_JOB_POLICY_H
#define WG_LIVE_JOB_POLICY_H

#include "optimize/batch_size.h"
#include "store/store.h"

enum { WG_JOB_GPUS_MAX = 16 };

struct wg_job_gpu {
    char model[WG_STORE_TEXT_SIZE];
    unsigned count;
    uint64_t reached; /* runs that did */
    double
        max_limit_factor[WG_ARMS_MAX]; /* cost at the largest limit over the best's; 0: unknown */
    struct wg_batch_policy *policy;
};

struct wg_job_policy {
    const struct wg_store_job *job;
    const struct wg_batch_policy_ops *ops;
    struct wg_batch_job batch_job;
    size_t gpu_count;
    struct wg_job_gpu gpus[WG_JOB_GPUS_MAX];
    uint64_t last_fact;    /* the latest that it knows */
    bool has_met_snapshot; /* its fact is in the log */
    size_t replayed;       /* facts that no snapshot spared it */
    bool may_continue;     /* what the policy said to the latest EPOCH */
    struct wg_error err;   /* of the walk */
};

/* Rebuilds the policies of `job`, which must live as long; within a transaction of the store.
 * `ignores_snapshot` replays everything. */
enum wg_code wg__job_policy_open(struct wg_job_policy **out, struct wg_store *store,
                                 const struct wg_store_job *job, bool ignores_snapshot,
                                 struct wg_error *err);
void wg__job_policy_free(struct wg_job_policy *policy);

/* The policy of a GPU type, made when there is none. WG_EUNSUPPORTED: too many types. */
enum wg_code wg__job_policy_of(struct wg_job_policy *policy, const char *gpu_model,
                               unsigned gpu_count, struct wg_job_gpu **out, struct wg_error *err);

/* The number of a batch size among the job's; SIZE_MAX: it is none. */
size_t wg__job_arm(const struct wg_store_job *job, uint32_t batch_size);

/* Keeps a snapshot of what is known now. */
enum wg_code wg__job_policy_save(const struct wg_job_policy *policy, struct wg_store *store,
                                 struct wg_error *err);

/* The policy that the job names, NULL: none. */
const struct wg_batch_policy_ops *wg__job_policy_ops(const char *name);

#endif
