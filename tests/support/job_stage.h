/* SPDX-License-Identifier: MIT
 *
 * A store with one job in it, in a scratch folder.
 *
 * Threads: belongs to one test.
 */
#ifndef WG_TESTS_SUPPORT_JOB_STAGE_H
#define WG_TESTS_SUPPORT_JOB_STAGE_H

#include <string.h>

#include "live/job.h"
#include "live/job_policy.h"
#include "support/check.h"
#include "support/scratch.h"

struct job_stage {
    struct scratch scratch;
    struct wg_store *store;
    struct wg_store_job job;
    double now_s;
};

static inline void job_stage_open(struct job_stage *stage, const char *policy)
{
    struct wg_error err = {0};
    *stage = (struct job_stage){.now_s = 1e9,
                                .job = {.name = "job",
                                        .batch_count = 4,
                                        .batch_size = {8, 16, 32, 64},
                                        .default_batch = 16,
                                        .metric = "acc",
                                        .higher_is_better = true,
                                        .target = 0.8,
                                        .max_epochs = 30,
                                        .objective = "energy",
                                        .max_power_w = NAN,
                                        .learning_rate = 0.1,
                                        .learning_rate_batch = 16,
                                        .optimizer = "sgd",
                                        .lease_s = 100}};
    (void)snprintf(stage->job.policy, sizeof stage->job.policy, "%s", policy);
    scratch_open(&stage->scratch);
    const struct wg_store_opts opts = {.path = scratch_path(&stage->scratch, "jobs.db")};
    if (wg__store_open(&stage->store, &opts, &err) != WG_OK ||
        stage->store->ops->begin(stage->store, true, &err) != WG_OK ||
        stage->store->ops->job_add(stage->store, &stage->job, &err) != WG_OK ||
        stage->store->ops->commit(stage->store, &err) != WG_OK)
        fail_msg("%s", err.text);
}

static inline void job_stage_close(struct job_stage *stage)
{
    wg__store_close(stage->store);
    scratch_close(&stage->scratch);
}

static inline struct wg_job_request job_stage_request(const struct job_stage *stage)
{
    return (struct wg_job_request){.gpu_model = "A40",
                                   .gpu_count = 1,
                                   .max_power_w = 300,
                                   .host = "here",
                                   .now_s = stage->now_s};
}

static inline struct wg_job_order job_stage_next(struct job_stage *stage)
{
    const struct wg_job_request request = job_stage_request(stage);
    struct wg_job_order order;
    struct wg_error err = {0};
    if (wg__job_next(stage->store, "job", &request, &order, &err) != WG_OK)
        fail_msg("%s", err.text);
    return order;
}

static inline struct wg_job_receipt job_stage_end(struct job_stage *stage, int64_t run,
                                                  enum wg_run_state state, double epochs,
                                                  double energy_j)
{
    const struct wg_job_report report = {.run = run,
                                         .state = state,
                                         .epochs = epochs,
                                         .energy_j = energy_j,
                                         .time_s = epochs,
                                         .metric = NAN,
                                         .setting = NAN,
                                         .now_s = stage->now_s};
    struct wg_job_receipt receipt;
    struct wg_error err = {0};
    if (wg__job_report(stage->store, "job", &report, &receipt, &err) != WG_OK)
        fail_msg("%s", err.text);
    return receipt;
}

#endif
