/* SPDX-License-Identifier: MIT
 *
 * When fine-tuning steps in: the policies, one rule a test.
 */
#include "schedule/scheduler.h"

#include "tests/support/scheduler_case.h"

static void greedy_runs_whole_iterations_beside_inference(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_GREEDY);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    arrive(scheduler, 0.0, 1, 0.0);
    (void)expect(scheduler, 0.0, WG_ACTION_RUN_BATCH);
    submit(scheduler, 0.01, 7, 2);
    struct wg_action action = expect(scheduler, 0.01, WG_ACTION_RUN_STEP);
    assert_int_equal(action.step.rows, 64);
    assert_true(action.step.begins_iteration && action.step.ends_iteration);
    assert_false(action.step.is_alone);
    happen(scheduler, WG_EVENT_STEP_ENDED, 1.0);
    (void)expect(scheduler, 1.0, WG_ACTION_RUN_STEP);
    happen(scheduler, WG_EVENT_STEP_ENDED, 2.0);
    action = expect(scheduler, 2.0, WG_ACTION_JOB_DONE);
    assert_int_equal(action.id, 7);
    expect_nothing(scheduler, 2.0);
    wg__scheduler_close(scheduler);
}

static void polythrottle_waits_while_the_slo_would_break(void **state)
{
    (void)state;
    struct wg_serving_model model = usual_model;
    model.sample_count = 7;
    model.predictor.kind = WG_PREDICTOR_POLYTHROTTLE;
    model.slo_s = 0.4;
    struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_POLYTHROTTLE);
    setup.models = &model;
    setup.batcher = WG_BATCHER_TRITON;
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    arrive(scheduler, 0.0, 1, 0.0);
    (void)expect(scheduler, 0.0, WG_ACTION_RUN_BATCH);
    for (uint64_t id = 2; id < 6; id++)
        arrive(scheduler, 0.01, id, 0.0);
    submit(scheduler, 0.02, 7, 1);
    expect_nothing(scheduler, 0.02); /* four rows beside a step take 0.65 s */
    happen(scheduler, WG_EVENT_BATCH_ENDED, 0.126);
    (void)expect(scheduler, 0.126, WG_ACTION_RUN_BATCH);
    expect_nothing(scheduler, 0.13); /* it would stretch the batch beyond its deadlines */
    happen(scheduler, WG_EVENT_BATCH_ENDED, 0.45);
    (void)expect(scheduler, 0.45, WG_ACTION_RUN_STEP);
    wg__scheduler_close(scheduler);
}

static void micro_steps_add_up_to_iterations_and_run_alone(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_WATTGOV);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    submit(scheduler, 0.0, 7, 3);
    double now_s = 0.0;
    unsigned rows = 0;
    size_t ends = 0;
    struct wg_action action = {0};
    while (action.kind != WG_ACTION_JOB_DONE) {
        if (!wg__scheduler_ask(scheduler, now_s, &action)) {
            now_s = wg__scheduler_wake_s(scheduler);
            assert_true(isfinite(now_s));
        } else if (action.kind == WG_ACTION_RUN_BATCH) {
            now_s += batch_s(action.batch.rows);
            happen(scheduler, WG_EVENT_BATCH_ENDED, now_s);
        } else if (action.kind == WG_ACTION_RUN_STEP) {
            assert_true(action.step.is_alone);
            assert_int_equal(action.step.begins_iteration, rows % 64 == 0);
            rows += action.step.rows;
            assert_int_equal(action.step.ends_iteration, rows % 64 == 0);
            ends += action.step.ends_iteration;
            assert_in_range(action.step.rows, 1, 22); /* 0.32 of 0.7 s at most */
            arrive(scheduler, now_s, 1000 + rows, 0.0);
            struct wg_action other = {0};
            assert_false(wg__scheduler_ask(scheduler, now_s, &other));
            now_s += 0.005 + 0.01 * action.step.rows;
            happen(scheduler, WG_EVENT_STEP_ENDED, now_s);
        }
    }
    assert_int_equal(rows, 3 * 64);
    assert_int_equal(ends, 3);
    wg__scheduler_close(scheduler);
}

static void a_failed_step_takes_its_iteration_back(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_WATTGOV);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    submit(scheduler, 0.0, 7, 1);
    (void)expect(scheduler, 0.0, WG_ACTION_RUN_STEP);
    happen(scheduler, WG_EVENT_STEP_ENDED, 0.07);
    assert_false(expect(scheduler, 0.07, WG_ACTION_RUN_STEP).step.begins_iteration);
    tell(scheduler,
         &(struct wg_event){.kind = WG_EVENT_STEP_ENDED, .now_s = 0.1, .is_failed = true});
    assert_true(expect(scheduler, 0.1, WG_ACTION_RUN_STEP).step.begins_iteration);
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_JOB_CANCEL, .now_s = 0.1, .id = 7});
    happen(scheduler, WG_EVENT_STEP_ENDED, 0.2);
    expect_nothing(scheduler, 0.2);
    wg__scheduler_close(scheduler);
}

/* The first of the lane bears a step; one of a lower priority behind it does not. */
static void no_step_costs_a_lower_priority_its_deadline(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_WATTGOV);
    for (unsigned priority = 1; priority <= 2; priority++) {
        struct wg_scheduler *scheduler = open_scheduler(&setup);
        submit(scheduler, 0.0, 7, 1);
        for (uint64_t id = 1; id <= 2; id++)
            tell(scheduler, &(struct wg_event){.kind = WG_EVENT_ARRIVE,
                                               .request = {.id = id,
                                                           .rows = 1,
                                                           .priority = id == 1 ? 1 : priority,
                                                           .deadline_s = id == 1 ? 0.7 : 0.23}});
        (void)expect(scheduler, 0.0, WG_ACTION_RUN_BATCH);
        wg__scheduler_close(scheduler);
    }
}

static void says_that_an_slo_leaves_no_room(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_WATTGOV);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_SLO, .slo_s = 0.25});
    double now_s = 0.0;
    /* 8 a second: one by one they take 1.008 of the time, by two they'd wait too long. */
    for (uint64_t id = 1; id <= 80; id++) {
        now_s = 0.125 * (double)id;
        arrive(scheduler, now_s, id, 0.0);
        struct wg_action action;
        while (wg__scheduler_ask(scheduler, now_s, &action))
            if (action.kind == WG_ACTION_RUN_BATCH)
                happen(scheduler, WG_EVENT_BATCH_ENDED, now_s);
    }
    submit(scheduler, now_s, 7, 1);
    expect_nothing(scheduler, now_s);
    struct wg_scheduler_view view;
    wg__scheduler_view(scheduler, now_s, &view);
    assert_int_equal(view.finetune, WG_FINETUNE_NO_ROOM);
    assert_true(isfinite(wg__scheduler_wake_s(scheduler))); /* the rate may fall */
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_SLO, .now_s = now_s, .slo_s = 0.7});
    (void)expect(scheduler, now_s, WG_ACTION_RUN_STEP);
    wg__scheduler_view(scheduler, now_s, &view);
    assert_int_equal(view.finetune, WG_FINETUNE_RUNNING);
    wg__scheduler_close(scheduler);
}

/* A step that makes no batch larger costs nobody his echo: whoever comes while a batch of one runs
 * would be late without it, too. */
static void uses_the_slack_of_a_short_slo_at_light_load(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_WATTGOV);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_SLO, .slo_s = 0.25});
    for (uint64_t id = 1; id <= 40; id++) {
        const double now_s = 0.5 * (double)id;
        arrive(scheduler, now_s, id, 0.0);
        (void)expect(scheduler, now_s, WG_ACTION_RUN_BATCH);
        happen(scheduler, WG_EVENT_BATCH_ENDED, now_s + batch_s(1));
    }
    submit(scheduler, 20.2, 7, 1);
    (void)expect(scheduler, 20.2, WG_ACTION_RUN_STEP);
    wg__scheduler_close(scheduler);
}

/* The other half of "no room": what could not be given is not made up for at the users' cost. */
static void owes_nothing_for_a_time_without_room(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_WATTGOV);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_SLO, .slo_s = 0.25});
    double now_s = 0.0;
    for (uint64_t id = 1; id <= 1600; id++) {
        now_s = 0.125 * (double)id;
        arrive(scheduler, now_s, id, 0.0);
        if (id == 80)
            submit(scheduler, now_s, 7, 100);
        struct wg_action action;
        while (wg__scheduler_ask(scheduler, now_s, &action)) {
            assert_int_equal(action.kind, WG_ACTION_RUN_BATCH);
            happen(scheduler, WG_EVENT_BATCH_ENDED, now_s);
        }
    }
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_SLO, .now_s = now_s, .slo_s = 0.7});
    arrive(scheduler, now_s, 2000, now_s + 0.145); /* its batch is bounded by 0.139 s */
    (void)expect(scheduler, now_s, WG_ACTION_RUN_BATCH);
    wg__scheduler_close(scheduler);
}

/* At 0.25 s one request goes in time behind a step, but not one behind another: long steps would
 * make such pairs likelier. */
static void keeps_steps_short_where_no_two_requests_fit(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_WATTGOV);
    for (int is_tight = 0; is_tight < 2; is_tight++) {
        struct wg_scheduler *scheduler = open_scheduler(&setup);
        const double slo_s = is_tight ? 0.27 : 0.29; /* two bounds are 0.277 s */
        tell(scheduler, &(struct wg_event){.kind = WG_EVENT_SLO, .slo_s = slo_s});
        submit(scheduler, 0.0, 7, 1);
        const struct wg_action action = expect(scheduler, 0.0, WG_ACTION_RUN_STEP);
        const double step_s = 0.005 + 0.01 * action.step.rows;
        assert_true(is_tight ? step_s <= 0.08 * slo_s : step_s > 0.08 * slo_s);
        wg__scheduler_close(scheduler);
    }
}

/* 200 requests at an SLO and a rate that leave room, of which one in three is dropped; returns when
 * the last one came. */
static double miss_one_in_three(struct wg_scheduler *scheduler)
{
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_SLO, .slo_s = 0.25});
    double now_s = 0.0;
    for (uint64_t id = 1; id <= 200; id++) {
        now_s = 0.5 * (double)id;
        arrive(scheduler, now_s, id, id % 3 == 0 ? now_s + 0.01 : 0.0);
        struct wg_action action;
        while (wg__scheduler_ask(scheduler, now_s, &action))
            if (action.kind == WG_ACTION_RUN_BATCH)
                happen(scheduler, WG_EVENT_BATCH_ENDED, now_s);
    }
    return now_s;
}

static void gives_nothing_away_while_requests_are_missed(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_WATTGOV);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    const double now_s = miss_one_in_three(scheduler);
    submit(scheduler, now_s, 7, 1);
    expect_nothing(scheduler, now_s);
    struct wg_scheduler_view view;
    wg__scheduler_view(scheduler, now_s, &view);
    assert_int_equal(view.finetune, WG_FINETUNE_NO_ROOM);
    /* Nobody comes any more, and so nobody is missed. */
    double later_s = now_s;
    struct wg_action action = {0};
    while (later_s < now_s + 300.0 && !wg__scheduler_ask(scheduler, later_s, &action))
        later_s = wg__scheduler_wake_s(scheduler);
    assert_in_range((uint64_t)(later_s - now_s), 1, 120);
    assert_int_equal(action.kind, WG_ACTION_RUN_STEP);
    wg__scheduler_close(scheduler);
}

/* What was missed under another SLO says nothing of this one. */
static void begins_anew_when_the_slo_changes(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_WATTGOV);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    const double now_s = miss_one_in_three(scheduler);
    submit(scheduler, now_s, 7, 1);
    expect_nothing(scheduler, now_s);
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_SLO, .now_s = now_s, .slo_s = 0.3});
    (void)expect(scheduler, now_s, WG_ACTION_RUN_STEP);
    wg__scheduler_close(scheduler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_runs_whole_iterations_beside_inference),
        cmocka_unit_test(polythrottle_waits_while_the_slo_would_break),
        cmocka_unit_test(micro_steps_add_up_to_iterations_and_run_alone),
        cmocka_unit_test(a_failed_step_takes_its_iteration_back),
        cmocka_unit_test(no_step_costs_a_lower_priority_its_deadline),
        cmocka_unit_test(says_that_an_slo_leaves_no_room),
        cmocka_unit_test(uses_the_slack_of_a_short_slo_at_light_load),
        cmocka_unit_test(owes_nothing_for_a_time_without_room),
        cmocka_unit_test(keeps_steps_short_where_no_two_requests_fit),
        cmocka_unit_test(gives_nothing_away_while_requests_are_missed),
        cmocka_unit_test(begins_anew_when_the_slo_changes),
    };
    return run_tests(tests);
}
