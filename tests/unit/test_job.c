/* SPDX-License-Identifier: MIT */
#include "live/job.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "live/profile_cache.h"
#include "support/job_stage.h"

static bool count_fact(void *context, const struct wg_store_fact *fact,
                       const struct wg_store_run *run)
{
    (void)run;
    *(size_t *)context = (size_t)fact->number;
    return true;
}

static size_t read_facts(struct job_stage *stage)
{
    size_t last = 0;
    struct wg_error err;
    assert_int_equal(
        stage->store->ops->fact_each(stage->store, stage->job.id, 0, count_fact, &last, &err),
        WG_OK);
    return last;
}

static void scales_the_learning_rate(void **state)
{
    (void)state;
    struct wg_store_job job = {.optimizer = "sgd", .learning_rate = 0.1, .learning_rate_batch = 16};
    check_close(wg__job_learning_rate(&job, 64), 0.4, 1e-15);
    (void)snprintf(job.optimizer, sizeof job.optimizer, "adam");
    check_close(wg__job_learning_rate(&job, 64), 0.2, 1e-15);
    job.learning_rate = NAN;
    assert_true(isnan(wg__job_learning_rate(&job, 64)));
}

static void weighs_energy_and_time_as_the_objective_says(void **state)
{
    (void)state;
    struct wg_store_job job = {.name = "j", .objective = "cost:0.25", .max_power_w = NAN};
    struct wg_error err;
    double cost_j = 0;
    assert_int_equal(wg__job_cost(&job, 200, 1000, 10, &cost_j, &err), WG_OK);
    check_close(cost_j, 0.25 * 1000 + 0.75 * 200 * 10, 1e-12);
    assert_int_equal(wg__job_cost(&job, NAN, 1000, 10, &cost_j, &err), WG_EINVAL);
    job.max_power_w = 100;
    assert_int_equal(wg__job_cost(&job, NAN, 1000, 10, &cost_j, &err), WG_OK);
    check_close(cost_j, 0.25 * 1000 + 0.75 * 100 * 10, 1e-12);
    (void)snprintf(job.objective, sizeof job.objective, "time");
    job.max_power_w = NAN;
    assert_int_equal(wg__job_cost(&job, NAN, 1000, 10, &cost_j, &err), WG_OK);
    check_close(cost_j, 10, 1e-12);
}

static void an_epoch_is_answered_and_the_same_answer_is_given_again(void **state)
{
    (void)state;
    struct job_stage stage;
    struct wg_error err;
    enum wg_job_answer answer = WG_JOB_STOP;
    job_stage_open(&stage, "wattgov");
    const int64_t run = job_stage_next(&stage).run.id;
    assert_int_equal(wg__job_epoch(stage.store, "job", run, 1, 0.3, stage.now_s, &answer, &err),
                     WG_OK);
    assert_int_equal(answer, WG_JOB_CONTINUE);
    const size_t facts = read_facts(&stage);
    assert_int_equal(wg__job_epoch(stage.store, "job", run, 1, 0.3, stage.now_s, &answer, &err),
                     WG_OK);
    assert_int_equal(answer, WG_JOB_CONTINUE);
    assert_int_equal(read_facts(&stage), facts);
    assert_int_equal(wg__job_epoch(stage.store, "job", run, 2, NAN, stage.now_s, &answer, &err),
                     WG_OK);
    assert_int_equal(answer, WG_JOB_CONTINUE);
    assert_int_equal(wg__job_epoch(stage.store, "job", run, 3, 0.8, stage.now_s, &answer, &err),
                     WG_OK);
    assert_int_equal(answer, WG_JOB_REACHED);
    assert_int_equal(wg__job_epoch(stage.store, "job", run, 30, 0.7, stage.now_s, &answer, &err),
                     WG_OK);
    assert_int_equal(answer, WG_JOB_EXHAUSTED);
    job_stage_close(&stage);
}

static void stops_a_run_that_costs_far_more_than_the_best(void **state)
{
    (void)state;
    struct job_stage stage;
    struct wg_error err;
    job_stage_open(&stage, "wattgov");
    for (unsigned i = 0; i < 3; i++)
        (void)job_stage_end(&stage, job_stage_next(&stage).run.id, WG_RUN_REACHED, 3, 300);
    const int64_t run = job_stage_next(&stage).run.id;
    enum wg_job_answer answer = WG_JOB_CONTINUE;
    unsigned epoch = 0;
    while (answer == WG_JOB_CONTINUE && epoch < 29)
        assert_int_equal(
            wg__job_epoch(stage.store, "job", run, ++epoch, 0.1, stage.now_s, &answer, &err),
            WG_OK);
    assert_int_equal(answer, WG_JOB_STOP);
    assert_in_range(epoch, 2, 25);
    assert_true(job_stage_end(&stage, run, WG_RUN_STOPPED, epoch, 100.0 * epoch).wants_retry);
    job_stage_close(&stage);
}

static void gives_a_recurrence_up_after_so_many_attempts(void **state)
{
    (void)state;
    struct job_stage stage;
    job_stage_open(&stage, "fixed");
    for (unsigned i = 0; i < WG_ATTEMPTS_MAX; i++) {
        const struct wg_job_order order = job_stage_next(&stage);
        assert_int_equal(order.run.recurrence, 0);
        assert_int_equal(order.run.attempt, i);
        assert_int_equal(job_stage_end(&stage, order.run.id, WG_RUN_FAILED, 30, 100).wants_retry,
                         i + 1 < WG_ATTEMPTS_MAX);
    }
    assert_int_equal(job_stage_next(&stage).run.recurrence, 1);
    job_stage_close(&stage);
}

static void refuses_more_open_runs_than_a_policy_can_hold(void **state)
{
    (void)state;
    struct job_stage stage;
    job_stage_open(&stage, "zeus");
    for (unsigned i = 0; i < WG_IN_FLIGHT_MAX; i++)
        (void)job_stage_next(&stage);
    const struct wg_job_request request = job_stage_request(&stage);
    struct wg_job_order order;
    struct wg_error err;
    assert_int_equal(wg__job_next(stage.store, "job", &request, &order, &err), WG_EBUSY);
    assert_non_null(strstr(err.text, "64 open runs"));
    stage.now_s += 101; /* all leases have passed */
    assert_int_equal(job_stage_next(&stage).taken_back, WG_IN_FLIGHT_MAX);
    job_stage_close(&stage);
}

/* A run of its own recurrence, ended with the steps that an epoch had. */
static void end_with_steps(struct job_stage *stage, uint32_t batch_size, unsigned gpu_count,
                           double steps)
{
    struct wg_error err = {0};
    struct wg_store *store = stage->store;
    struct wg_store_run run = {.job = stage->job.id,
                               .recurrence = 0,
                               .batch_size = batch_size,
                               .gpu_model = "A40",
                               .gpu_count = gpu_count,
                               .max_power_w = NAN,
                               .metric = NAN};
    if (store->ops->run_add(store, &run, &err) != WG_OK)
        fail_msg("%s", err.text);
    run.state = WG_RUN_REACHED;
    run.time_s = 100;
    run.steps_per_epoch = steps;
    if (store->ops->run_end(store, &run, &err) != WG_OK)
        fail_msg("%s", err.text);
}

static double samples_of(struct job_stage *stage, unsigned gpu_count)
{
    struct wg_job_survey_plan plan;
    struct wg_error err = {0};
    if (wg__job_survey_plan(stage->store, "job", gpu_count, &plan, &err) != WG_OK)
        fail_msg("%s", err.text);
    if (!isnan(plan.samples_per_epoch))
        assert_true(plan.most_s == 25);
    return plan.samples_per_epoch;
}

static void a_survey_needs_an_epoch_whose_steps_follow_from_the_batch_size(void **state)
{
    (void)state;
    struct job_stage stage;
    job_stage_open(&stage, "fixed");
    assert_true(isnan(samples_of(&stage, 1)));
    end_with_steps(&stage, 16, 1, NAN);
    assert_true(isnan(samples_of(&stage, 1)));
    end_with_steps(&stage, 16, 1, 100);
    assert_true(samples_of(&stage, 1) == 1600);
    assert_true(isnan(samples_of(&stage, 2))); /* its batches may be shared out otherwise */
    end_with_steps(&stage, 16, 1, NAN);
    assert_true(samples_of(&stage, 1) == 1600);
    end_with_steps(&stage, 32, 1, 51); /* the last step is not full */
    assert_true(samples_of(&stage, 1) == 51 * 32);
    end_with_steps(&stage, 64, 1, 51); /* as many steps, whatever the batch size */
    assert_true(isnan(samples_of(&stage, 1)));
    end_with_steps(&stage, 32, 1, 102); /* mended since */
    assert_true(samples_of(&stage, 1) == 102 * 32);
    job_stage_close(&stage);
}

/* What the policy expects of the batch size that was surveyed: at 30 J an epoch. */
static double believed_after_survey(bool by_steps)
{
    struct job_stage stage;
    struct wg_error err = {0};
    struct wg_job_order order;
    struct wg_job_policy *decider = NULL;
    struct wg_job_gpu *gpu = NULL;
    struct wg_batch_belief belief = {0};
    job_stage_open(&stage, "wattgov");
    const int64_t first = job_stage_next(&stage).run.id;
    (void)job_stage_end(&stage, first, WG_RUN_REACHED, 4, 100);
    struct wg_job_request request = job_stage_request(&stage);
    request.may_survey = true;
    assert_int_equal(wg__job_next(stage.store, "job", &request, &order, &err), WG_OK);
    assert_true(order.run.is_survey);
    /* It paid 60 J, half of them before its first step. */
    const struct wg_job_costs costs = {30, 30, 30};
    if (by_steps)
        assert_int_equal(
            wg__job_profile(stage.store, "job", order.run.id, &costs, stage.now_s, &err), WG_OK);
    (void)job_stage_end(&stage, order.run.id, WG_RUN_REACHED, by_steps ? 1 : 2, 60);
    assert_int_equal(wg__job_policy_open(&decider, stage.store, &order.job, false, &err), WG_OK);
    assert_int_equal(wg__job_policy_of(decider, "A40", 1, &gpu, &err), WG_OK);
    assert_true(
        decider->ops->believe(gpu->policy, wg__job_arm(&order.job, order.run.batch_size), &belief));
    wg__job_policy_free(decider);
    job_stage_close(&stage);
    return belief.cost_j;
}

static void a_survey_by_its_steps_leaves_the_start_of_the_command_out(void **state)
{
    (void)state;
    const double by_steps = believed_after_survey(true);
    assert_true(by_steps > 0);
    check_close(by_steps, believed_after_survey(false), 1e-9 * by_steps);
}

static void a_survey_is_followed_by_the_run_of_its_recurrence(void **state)
{
    (void)state;
    struct job_stage stage;
    struct wg_job_order order;
    struct wg_error err;
    job_stage_open(&stage, "wattgov");
    (void)job_stage_end(&stage, job_stage_next(&stage).run.id, WG_RUN_REACHED, 5, 500);
    struct wg_job_request request = job_stage_request(&stage);
    request.may_survey = true;
    unsigned surveys = 0;
    for (;;) {
        assert_int_equal(wg__job_next(stage.store, "job", &request, &order, &err), WG_OK);
        assert_int_equal(order.run.recurrence, 1);
        if (!order.run.is_survey)
            break;
        surveys++;
        (void)job_stage_end(&stage, order.run.id, WG_RUN_REACHED, 0.1, 10);
    }
    assert_in_range(surveys, 1, 3);
    job_stage_close(&stage);
}

static void names_the_power_limit_that_the_profile_found_best(void **state)
{
    (void)state;
    struct job_stage stage;
    struct wg_error err;
    char owner[WG_STORE_TEXT_SIZE + 8];
    job_stage_open(&stage, "fixed");
    const struct wg_train_point points[] = {
        {.setting = 100, .power_w = 90, .throughput = 1, .settle_s = NAN},
        {.setting = 150, .power_w = 120, .throughput = 2, .settle_s = NAN},
        {.setting = 300, .power_w = 290, .throughput = 2.5, .settle_s = NAN}};
    wg__job_profile_owner("job", owner);
    const struct wg_store_profile_key key = {owner, "A40", 1, "power_limit", 16};
    assert_true(isnan(job_stage_next(&stage).setting));
    assert_int_equal(wg__store_profile_put(stage.store, &key, 1, points, 3, &err), WG_OK);
    assert_true(job_stage_next(&stage).setting == 150);
    job_stage_close(&stage);
}

static void a_batch_size_without_a_profile_begins_at_its_nearest_ones_best_limit(void **state)
{
    (void)state;
    struct job_stage stage;
    struct wg_error err;
    char owner[WG_STORE_TEXT_SIZE + 8];
    job_stage_open(&stage, "fixed"); /* 16, of 8, 16, 32 and 64 */
    wg__job_profile_owner("job", owner);
    assert_true(isnan(job_stage_next(&stage).neighbor_setting));
    /* By ratio 32 is nearer than 64; what 8 has is another GPU's. */
    const struct {
        const char *gpu;
        uint32_t batch_size;
        double best_w;
    } profiles[] = {{"A40", 64, 200}, {"A40", 32, 150}, {"V100", 8, 125}};
    for (size_t i = 0; i < 3; i++) {
        const struct wg_store_profile_key key = {owner, profiles[i].gpu, 1, "power_limit",
                                                 profiles[i].batch_size};
        const struct wg_train_point points[] = {
            {.setting = profiles[i].best_w, .power_w = 100, .throughput = 2, .settle_s = NAN},
            {.setting = 300, .power_w = 290, .throughput = 2.5, .settle_s = NAN}};
        assert_int_equal(wg__store_profile_put(stage.store, &key, 1, points, 2, &err), WG_OK);
        assert_true(job_stage_next(&stage).neighbor_setting == (i == 0 ? 200 : 150));
    }
    /* Its own profile makes the neighbours' needless. */
    const struct wg_store_profile_key own = {owner, "A40", 1, "power_limit", 16};
    const struct wg_train_point point = {
        .setting = 175, .power_w = 100, .throughput = 2, .settle_s = NAN};
    assert_int_equal(wg__store_profile_put(stage.store, &own, 1, &point, 1, &err), WG_OK);
    const struct wg_job_order order = job_stage_next(&stage);
    assert_true(order.setting == 175);
    assert_true(isnan(order.neighbor_setting));
    job_stage_close(&stage);
}

/* What two rebuilt deciders of the same facts say next. */
static void same_decision(struct job_stage *stage)
{
    struct wg_error err = {0};
    struct wg_job_policy *policies[2];
    struct wg_batch_step steps[2];
    for (int i = 0; i < 2; i++) {
        struct wg_job_gpu *gpu = NULL;
        struct wg_rng rng;
        wg__rng_init(&rng, 99);
        if (wg__job_policy_open(&policies[i], stage->store, &stage->job, i == 0, &err) != WG_OK ||
            wg__job_policy_of(policies[i], "A40", 1, &gpu, &err) != WG_OK)
            fail_msg("%s", err.text);
        policies[i]->ops->ask(gpu->policy,
                              &(struct wg_batch_request){.recurrence = 1000, .no_survey = true},
                              &rng, &steps[i]);
    }
    assert_int_equal(policies[0]->last_fact, policies[1]->last_fact);
    assert_int_equal(policies[0]->gpu_count, policies[1]->gpu_count);
    assert_true(policies[0]->replayed >= policies[1]->replayed);
    assert_int_equal(steps[0].arm, steps[1].arm);
    assert_int_equal(steps[0].ticket, steps[1].ticket);
    wg__job_policy_free(policies[0]);
    wg__job_policy_free(policies[1]);
}

static void a_snapshot_says_what_the_whole_log_says(void **state)
{
    (void)state;
    static const char *const names[] = {"wattgov", "zeus", "grid", "fixed"};
    for (size_t p = 0; p < 4; p++) {
        struct job_stage stage;
        struct wg_rng luck;
        wg__rng_init(&luck, p);
        job_stage_open(&stage, names[p]);
        for (unsigned i = 0; i < 60; i++) {
            struct wg_job_request request = job_stage_request(&stage);
            struct wg_job_order order;
            struct wg_error err;
            enum wg_job_answer answer = WG_JOB_CONTINUE;
            request.gpu_model = i < 20 || i % 4 == 0 ? "V100" : "A40";
            request.lease_s = wg__rng_below(&luck, 5) == 0 ? 1 : 0; /* will be taken back */
            assert_int_equal(wg__job_next(stage.store, "job", &request, &order, &err), WG_OK);
            unsigned epoch = 0;
            const unsigned needs = 4 + order.run.batch_size / 8 + wg__rng_below(&luck, 4);
            while (answer == WG_JOB_CONTINUE) {
                epoch++;
                assert_int_equal(wg__job_epoch(stage.store, "job", order.run.id, epoch,
                                               0.8 * epoch / needs, stage.now_s, &answer, &err),
                                 WG_OK);
            }
            stage.now_s += request.lease_s > 0 ? 5 : 1;
            if (request.lease_s > 0 && wg__rng_below(&luck, 2) == 0)
                continue; /* never heard of again */
            if (request.lease_s > 0)
                (void)job_stage_next(&stage); /* somebody takes it back before it reports */
            (void)job_stage_end(&stage, order.run.id,
                                answer == WG_JOB_REACHED ? WG_RUN_REACHED : WG_RUN_STOPPED, epoch,
                                100.0 * epoch);
            if (i % 10 == 9)
                same_decision(&stage);
        }
        job_stage_close(&stage);
    }
}

static void a_damaged_snapshot_is_left_out(void **state)
{
    (void)state;
    struct job_stage stage;
    struct wg_error err;
    struct wg_job_policy *policy = NULL;
    job_stage_open(&stage, "wattgov");
    for (unsigned i = 0; i < 5; i++)
        (void)job_stage_end(&stage, job_stage_next(&stage).run.id, WG_RUN_REACHED, 5, 500);
    assert_int_equal(wg__job_policy_open(&policy, stage.store, &stage.job, true, &err), WG_OK);
    assert_int_equal(wg__job_policy_save(policy, stage.store, &err), WG_OK);
    wg__job_policy_free(policy);
    assert_int_equal(wg__job_policy_open(&policy, stage.store, &stage.job, false, &err), WG_OK);
    assert_int_equal(policy->replayed, 0);
    char version[96];
    (void)snprintf(version, sizeof version, "%s", "nobody's");
    assert_int_equal(
        stage.store->ops->snapshot_put(stage.store, stage.job.id, 3, version, "abc", 3, &err),
        WG_OK);
    wg__job_policy_free(policy);
    assert_int_equal(wg__job_policy_open(&policy, stage.store, &stage.job, false, &err), WG_OK);
    assert_int_equal(policy->replayed, 10);
    wg__job_policy_free(policy);
    job_stage_close(&stage);
}

static void a_question_without_memory_changes_nothing(void **state)
{
    (void)state;
    struct job_stage stage;
    struct wg_job_order order;
    struct wg_error err;
    job_stage_open(&stage, "wattgov");
    for (unsigned i = 0; i < 130; i++) /* enough that the next question writes a snapshot */
        (void)job_stage_end(&stage, job_stage_next(&stage).run.id, WG_RUN_REACHED, 5, 500);
    struct wg_job_request request = job_stage_request(&stage);
    request.gpu_model = "another";
    const size_t facts = read_facts(&stage);
    size_t nth = 0;
    enum wg_code code;
    do {
        wg__alloc_fail_from(++nth);
        code = wg__job_next(stage.store, "job", &request, &order, &err);
        wg__alloc_fail_from(0);
        if (code != WG_OK) {
            assert_int_equal(code, WG_ENOMEM);
            assert_int_equal(read_facts(&stage), facts);
        }
    } while (code != WG_OK && nth < 1000);
    assert_in_range(nth, 5, 100);
    assert_int_equal(read_facts(&stage), facts + 1);
    job_stage_close(&stage);
}

static void a_run_that_reached_its_target_for_nothing_is_no_measurement(void **state)
{
    (void)state;
    struct job_stage stage;
    struct wg_job_receipt receipt;
    struct wg_error err;
    job_stage_open(&stage, "wattgov");
    struct wg_job_report report = {.run = job_stage_next(&stage).run.id,
                                   .state = WG_RUN_REACHED,
                                   .epochs = 5,
                                   .metric = NAN,
                                   .setting = NAN,
                                   .now_s = stage.now_s};
    static const double nothing[][2] = {{0, 10}, {1000, 0}, {0, 0}, {NAN, 10}};
    const size_t facts = read_facts(&stage);
    for (size_t i = 0; i < 4; i++) {
        report.energy_j = nothing[i][0];
        report.time_s = nothing[i][1];
        assert_int_equal(wg__job_report(stage.store, "job", &report, &receipt, &err), WG_EINVAL);
        assert_non_null(strstr(err.text, "no measurement"));
        assert_int_equal(read_facts(&stage), facts);
    }
    report.energy_j = 1000; /* and it can still be told */
    report.time_s = 10;
    assert_int_equal(wg__job_report(stage.store, "job", &report, &receipt, &err), WG_OK);
    assert_true(receipt.cost_j == 1000);
    job_stage_close(&stage);
}

static void a_gpu_whose_name_cannot_be_shown_is_one_type_all_the_same(void **state)
{
    (void)state;
    struct job_stage stage;
    struct wg_error err = {0};
    struct wg_job_policy *policy = NULL;
    char model[300] = "A\n\xff";
    memset(model + 3, 'x', sizeof model - 4);
    job_stage_open(&stage, "wattgov");
    struct wg_job_request request = job_stage_request(&stage);
    request.gpu_model = request.host = model;
    for (unsigned i = 0; i < 3; i++) {
        struct wg_job_order order;
        if (wg__job_next(stage.store, "job", &request, &order, &err) != WG_OK)
            fail_msg("%s", err.text);
        assert_memory_equal(order.run.gpu_model, "A??xxx", 6);
        assert_int_equal(strlen(order.run.gpu_model), WG_STORE_TEXT_SIZE - 1);
        assert_string_equal(order.run.host, order.run.gpu_model);
        (void)job_stage_end(&stage, order.run.id, WG_RUN_REACHED, 5, 100);
    }
    assert_int_equal(wg__job_policy_open(&policy, stage.store, &stage.job, false, &err), WG_OK);
    assert_int_equal(policy->gpu_count, 1);
    assert_int_equal(policy->gpus[0].reached, 3);
    wg__job_policy_free(policy);
    job_stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_the_learning_rate),
        cmocka_unit_test(weighs_energy_and_time_as_the_objective_says),
        cmocka_unit_test(an_epoch_is_answered_and_the_same_answer_is_given_again),
        cmocka_unit_test(stops_a_run_that_costs_far_more_than_the_best),
        cmocka_unit_test(gives_a_recurrence_up_after_so_many_attempts),
        cmocka_unit_test(refuses_more_open_runs_than_a_policy_can_hold),
        cmocka_unit_test(a_survey_needs_an_epoch_whose_steps_follow_from_the_batch_size),
        cmocka_unit_test(a_survey_by_its_steps_leaves_the_start_of_the_command_out),
        cmocka_unit_test(a_survey_is_followed_by_the_run_of_its_recurrence),
        cmocka_unit_test(names_the_power_limit_that_the_profile_found_best),
        cmocka_unit_test(a_batch_size_without_a_profile_begins_at_its_nearest_ones_best_limit),
        cmocka_unit_test(a_snapshot_says_what_the_whole_log_says),
        cmocka_unit_test(a_damaged_snapshot_is_left_out),
        cmocka_unit_test(a_run_that_reached_its_target_for_nothing_is_no_measurement),
        cmocka_unit_test(a_gpu_whose_name_cannot_be_shown_is_one_type_all_the_same),
        cmocka_unit_test(a_question_without_memory_changes_nothing),
    };
    return run_tests(tests);
}
