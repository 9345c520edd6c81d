/* SPDX-License-Identifier: MIT
 *
 * A stage for the replay world: a case of the tiny trace, and a policy that follows a script and
 * remembers what it was told.
 *
 *     struct stage *stage = stage_open("toy", &run_8, 1, 2);    job, steps, how many, recurrences
 *     stage_replay(stage, 1);
 *     check_close(stage->cost_j[1], 7200, 1e-14);
 *     stage_close(stage);
 *
 * Threads: one stage at a time.
 */
#ifndef WG_TESTS_SUPPORT_TRAINING_STAGE_H
#define WG_TESTS_SUPPORT_TRAINING_STAGE_H

#include <limits.h>

#include "base/alloc.h"
#include "simulate/training.h"
#include "support/tiny_trace.h"

enum { HEARD_MAX = 64, RECURRENCES_MAX = 20000 };

/* What the scripted policy does, and what it has heard. One at a time: `create` is given no
 * context. */
struct script {
    const struct wg_batch_step *steps; /* the last one is repeated */
    size_t step_count;
    size_t stopped_arm;  /* attempts of this arm */
    unsigned stop_after; /* end after so many epochs; UINT_MAX: never */

    size_t asked;
    size_t created, destroyed;
    uint64_t next_ticket;
    size_t arm_of_ticket[RECURRENCES_MAX];
    size_t open, most_open;
    size_t profile_count, survey_count, outcome_count, metric_count;
    size_t profiled_arm[HEARD_MAX];
    struct wg_batch_profile profiles[HEARD_MAX];
    double survey_cost_j[HEARD_MAX], survey_paid_j[HEARD_MAX];
    struct wg_batch_outcome outcomes[HEARD_MAX];
    double metrics[HEARD_MAX];
    size_t transfers;
    size_t arm_of_source[WG_ARMS_MAX];
};

static struct script *script;
static const struct wg_batch_policy_ops script_ops;

static inline enum wg_code script_create(struct wg_batch_policy **out,
                                         const struct wg_batch_job *job,
                                         const struct wg_batch_options *options,
                                         struct wg_error *err)
{
    (void)options;
    enum wg_code code = wg__batch_job_check(job, err);
    if (code != WG_OK)
        return code;
    *out = wg__alloc_zeroed(1, sizeof **out);
    if (*out == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    (*out)->ops = &script_ops;
    script->created++;
    return WG_OK;
}

static inline void script_destroy(struct wg_batch_policy *policy)
{
    script->destroyed += policy != NULL;
    wg__free(policy);
}

static inline void script_ask(struct wg_batch_policy *policy,
                              const struct wg_batch_request *request, struct wg_rng *rng,
                              struct wg_batch_step *out)
{
    (void)policy;
    (void)request;
    (void)rng;
    const size_t last = script->step_count - 1;
    *out = script->steps[script->asked < last ? script->asked : last];
    script->asked++;
    if (out->kind != WG_STEP_RUN)
        return;
    out->ticket = script->next_ticket++;
    script->arm_of_ticket[out->ticket] = out->arm;
    script->open++;
    if (script->open > script->most_open)
        script->most_open = script->open;
}

static inline bool script_may_continue(struct wg_batch_policy *policy, uint64_t ticket,
                                       unsigned epochs_done, double metric)
{
    (void)policy;
    if (script->metric_count < HEARD_MAX)
        script->metrics[script->metric_count++] = metric;
    return script->arm_of_ticket[ticket] != script->stopped_arm || epochs_done < script->stop_after;
}

static inline void script_tell_survey(struct wg_batch_policy *policy, size_t arm,
                                      double epoch_cost_j, double paid_j)
{
    (void)policy;
    (void)arm;
    script->survey_cost_j[script->survey_count] = epoch_cost_j;
    script->survey_paid_j[script->survey_count++] = paid_j;
}

static inline void script_tell_profile(struct wg_batch_policy *policy, size_t arm,
                                       const struct wg_batch_profile *profile)
{
    (void)policy;
    script->profiled_arm[script->profile_count] = arm;
    script->profiles[script->profile_count++] = *profile;
}

static inline void script_tell_run(struct wg_batch_policy *policy, uint64_t ticket,
                                   const struct wg_batch_outcome *outcome)
{
    (void)policy;
    (void)ticket;
    script->open--;
    if (script->outcome_count < HEARD_MAX)
        script->outcomes[script->outcome_count] = *outcome;
    script->outcome_count++;
}

static inline void script_transfer(struct wg_batch_policy *policy, struct wg_batch_policy *source,
                                   const size_t *arm_of_source)
{
    assert_ptr_not_equal(policy, source);
    script->transfers++;
    memcpy(script->arm_of_source, arm_of_source, 2 * sizeof *arm_of_source);
}

static const struct wg_batch_policy_ops script_ops = {
    .name = "script",
    .create = script_create,
    .destroy = script_destroy,
    .ask = script_ask,
    .may_continue = script_may_continue,
    .tell_survey = script_tell_survey,
    .tell_profile = script_tell_profile,
    .tell_run = script_tell_run,
    .transfer = script_transfer,
};

/* A world to replay in, with everything that it needs. */
struct stage {
    struct tiny tiny;
    struct script script;
    struct wg_training_setup setup;
    struct wg_training_rules rules;
    struct wg_training_record record;
    struct wg_error err;
    double cost_j[RECURRENCES_MAX], energy_j[RECURRENCES_MAX], time_s[RECURRENCES_MAX];
    unsigned char arm[RECURRENCES_MAX], limit[RECURRENCES_MAX];
    float decision_us[8];
    struct wg_training_case *cases[3];
};

static const struct wg_batch_step run_8 = {.kind = WG_STEP_RUN, .arm = 0, .limit = WG_LIMIT_BEST};
static const struct wg_batch_step run_16 = {.kind = WG_STEP_RUN, .arm = 1, .limit = WG_LIMIT_BEST};
static const struct wg_batch_step run_8_at_200_w = {.kind = WG_STEP_RUN, .arm = 0, .limit = 1};
static const struct wg_batch_step run_32_at_200_w = {.kind = WG_STEP_RUN, .arm = 1, .limit = 1};

/* The job on GPU toy at eta 0.5, under the script. */
static inline struct stage *stage_open(const char *job, const struct wg_batch_step *steps,
                                       size_t step_count, size_t recurrences)
{
    struct stage *stage = calloc(1, sizeof *stage);
    scratch_require(stage != NULL, "stage");
    tiny_open(&stage->tiny);
    stage->cases[0] = tiny_case(&stage->tiny, "toy", job);
    stage->script.steps = steps;
    stage->script.step_count = step_count;
    stage->script.stop_after = UINT_MAX;
    script = &stage->script;
    stage->setup.training_case = stage->cases[0];
    stage->setup.ops = &script_ops;
    stage->rules = (struct wg_training_rules){
        .eta = 0.5, .survey_s = 2, .concurrency = 1, .recurrences = recurrences};
    stage->record = (struct wg_training_record){.cost_j = stage->cost_j,
                                                .energy_j = stage->energy_j,
                                                .time_s = stage->time_s,
                                                .arm = stage->arm,
                                                .limit = stage->limit,
                                                .decision_us = stage->decision_us,
                                                .decision_capacity = 8};
    return stage;
}

static inline void stage_close(struct stage *stage)
{
    assert_int_equal(stage->script.created, stage->script.destroyed);
    for (size_t i = 0; i < 3; i++)
        wg__case_free(stage->cases[i]);
    tiny_close(&stage->tiny);
    free(stage);
    script = NULL;
}

static inline void stage_replay(struct stage *stage, uint64_t seed)
{
    assert_int_equal(
        wg__training_replay(&stage->setup, &stage->rules, seed, 7, &stage->record, &stage->err),
        WG_OK);
    assert_int_equal(stage->script.open, 0);
}

/* The fixed policy in place of the script. */
static inline void use_fixed(struct stage *stage, size_t arm, int limit)
{
    stage->setup.ops = &wg__batch_policy_fixed;
    stage->setup.options = (struct wg_batch_options){.fixed_arm = arm, .fixed_limit = limit};
}

#endif
