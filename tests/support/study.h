/* SPDX-License-Identifier: MIT
 *
 * Requests for studies of the bundled traces and of the tiny one, and looking at what comes out.
 *
 * Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_STUDY_H
#define WG_TESTS_SUPPORT_STUDY_H

#include <math.h>

#include "simulate/study.h"
#include "support/tiny_trace.h"

static const char *const all_policies[] = {"default", "grid", "zeus", "wattgov", "oracle"};
static const char *const yardsticks[] = {"default", "oracle"};

static inline struct wg_study_request request_of(const struct wg_training_trace *trace,
                                                 const struct wg_job_table *jobs)
{
    return (struct wg_study_request){
        .trace = trace,
        .jobs = jobs,
        .policies = all_policies,
        .policy_count = 5,
        .rules = {.eta = 0.5, .survey_s = 2, .concurrency = 1, .recurrences = 20},
        .beta = 2,
        .target_metric = NAN,
        .default_batch_size = NAN,
        .first_seed = 1,
        .seeds = 4,
        .threads = 2,
    };
}

static inline void open_bundled(struct tiny *traces)
{
    char path[TINY_PATH_BYTES];
    struct wg_error err = {0};
    tiny_source_path(path, "data/zeus/trace");
    scratch_require(wg__trace_open(&traces->trace, path, &err) == WG_OK, err.text);
    scratch_require(wg__job_table_open(&traces->jobs, NULL, &err) == WG_OK, err.text);
}

static inline struct wg_study *run(const struct wg_study_request *request)
{
    struct wg_study *study = NULL;
    struct wg_error err = {0};
    scratch_require(wg__study_run(request, &study, &err) == WG_OK, err.text);
    return study;
}

static inline const struct wg_study_case *find(const struct wg_study *study, const char *gpu,
                                               const char *job, const char *policy)
{
    for (size_t i = 0; i < study->case_count; i++) {
        const struct wg_study_world *world = &study->worlds[study->cases[i].world];
        if (strcmp(world->gpu, gpu) == 0 && strcmp(world->job, job) == 0 &&
            strcmp(study->cases[i].policy, policy) == 0)
            return &study->cases[i];
    }
    scratch_require(false, "no such case");
    return NULL;
}

/* One world: the tiny job `name` on GPU toy. */
static inline struct wg_study_request request_of_toy(const struct tiny *tiny,
                                                     const char *const *name)
{
    static const char *const gpus[] = {"toy"};
    struct wg_study_request request = request_of(tiny->trace, tiny->jobs);
    request.gpus = gpus;
    request.gpu_count = 1;
    request.job_names = name;
    request.job_count = 1;
    return request;
}

/* The study fails with `code` and a message that has `part`. */
static inline void check_rejects(const struct wg_study_request *request, enum wg_code code,
                                 const char *part)
{
    struct wg_study *study = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__study_run(request, &study, &err), code);
    assert_null(study);
    check_says(err, part);
}

#endif
