/* SPDX-License-Identifier: MIT
 *
 * The scheduler as one object: turns, answers, jobs, clocks, and what must hold whatever happens.
 */
#include "schedule/scheduler.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/support/check.h"

/* t(b) = 0.06 + 0.066 b, as EfficientNet-B7 on a small board; a step of r rows takes 0.005 + 0.01
 * r. */
static const struct wg_predictor_sample batch_samples[] = {
    {{1, 1, 1, 0}, 0.126},  {{2, 1, 1, 0}, 0.192},  {{4, 1, 1, 0}, 0.324},  {{8, 1, 1, 0}, 0.588},
    {{1, 1, 1, 64}, 0.252}, {{4, 1, 1, 64}, 0.648}, {{8, 1, 1, 64}, 1.176},
};
static const struct wg_predictor_sample step_samples[] = {
    {{1, 1, 1, 0}, 0.015}, {{8, 1, 1, 0}, 0.085}, {{64, 1, 1, 0}, 0.645}};

static double batch_s(unsigned rows)
{
    return 0.06 + 0.066 * rows;
}

static const struct wg_serving_model usual_model = {
    .max_rows = 8, .slo_s = 0.7, .samples = batch_samples, .sample_count = 4};

static struct wg_scheduler_setup usual_setup(enum wg_finetune_policy finetune)
{
    struct wg_scheduler_setup setup = {
        .model_count = 1,
        .models = &usual_model,
        .batcher = WG_BATCHER_WATTGOV,
        .drop = WG_DROP_EARLY,
        .finetune = finetune,
        .step_samples = step_samples,
        .step_sample_count = 3,
        .clock_setup = {.max_rows = 8,
                        .ladder = {.count = 2,
                                   .change_s = 0.01,
                                   .change_j = 0.1,
                                   .rungs = {{"max", 1, 1, 40, 12, 42},
                                             {"slow", 0.5, 1, 20, 8, 21}}}},
    };
    return setup;
}

static struct wg_scheduler *open_scheduler(const struct wg_scheduler_setup *setup)
{
    struct wg_scheduler *scheduler = NULL;
    struct wg_error err = {0};
    if (wg__scheduler_open(&scheduler, setup, &err) != WG_OK)
        fail_msg("%s", err.text);
    return scheduler;
}

static void tell(struct wg_scheduler *scheduler, const struct wg_event *event)
{
    struct wg_error err = {0};
    if (wg__scheduler_tell(scheduler, event, &err) != WG_OK)
        fail_msg("%s", err.text);
}

static void arrive(struct wg_scheduler *scheduler, double now_s, uint64_t id, double deadline_s)
{
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_ARRIVE,
                                       .now_s = now_s,
                                       .request = {.id = id, .rows = 1, .deadline_s = deadline_s}});
}

static void submit(struct wg_scheduler *scheduler, double now_s, uint64_t id, uint64_t iterations)
{
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_JOB,
                                       .now_s = now_s,
                                       .job = {.id = id, .batch = 64, .iterations = iterations}});
}

static void happen(struct wg_scheduler *scheduler, enum wg_event_kind kind, double now_s)
{
    tell(scheduler, &(struct wg_event){.kind = kind, .now_s = now_s});
}

/* The next action must be of this kind. */
static struct wg_action expect(struct wg_scheduler *scheduler, double now_s,
                               enum wg_action_kind kind)
{
    struct wg_action action = {0};
    assert_true(wg__scheduler_ask(scheduler, now_s, &action));
    assert_int_equal(action.kind, kind);
    return action;
}

static void expect_nothing(struct wg_scheduler *scheduler, double now_s)
{
    struct wg_action action = {0};
    assert_false(wg__scheduler_ask(scheduler, now_s, &action));
}

/* -- Turns ---------------------------------------- */

static void serves_what_waits_in_one_batch_and_learns_its_time(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    arrive(scheduler, 0.0, 1, 0.0);
    struct wg_action action = expect(scheduler, 0.0, WG_ACTION_RUN_BATCH);
    assert_int_equal(action.batch.count, 1);
    check_close(action.batch.predicted_s, batch_s(1), 1e-3);
    arrive(scheduler, 0.01, 2, 0.0);
    arrive(scheduler, 0.02, 3, 0.0);
    expect_nothing(scheduler, 0.02);
    check_close(wg__scheduler_wake_s(scheduler), 0.71, 1e-12); /* the deadline of the second */
    happen(scheduler, WG_EVENT_BATCH_ENDED, 0.13);
    action = expect(scheduler, 0.13, WG_ACTION_RUN_BATCH);
    assert_int_equal(action.batch.count, 2);
    assert_int_equal(action.batch.requests[0].id, 2);
    assert_int_equal(action.batch.requests[1].id, 3);
    check_close(action.batch.requests[1].deadline_s, 0.72, 1e-12);
    wg__scheduler_close(scheduler);
}

static void drops_at_the_deadline_though_the_server_is_busy(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    arrive(scheduler, 0.0, 1, 0.0);
    (void)expect(scheduler, 0.0, WG_ACTION_RUN_BATCH);
    arrive(scheduler, 0.01, 2, 0.05);
    expect_nothing(scheduler, 0.02);
    check_close(wg__scheduler_wake_s(scheduler), 0.05, 1e-12);
    const struct wg_action action = expect(scheduler, 0.05, WG_ACTION_ANSWER);
    assert_int_equal(action.id, 2);
    assert_int_equal(action.answer, WG_ANSWER_PAST);
    expect_nothing(scheduler, 0.05);
    wg__scheduler_close(scheduler);
}

static void refuses_at_once_what_cannot_wait_or_run(void **state)
{
    (void)state;
    struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    setup.queue_capacity = 2;
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    arrive(scheduler, 0.0, 1, 0.0);
    (void)expect(scheduler, 0.0, WG_ACTION_RUN_BATCH);
    arrive(scheduler, 0.0, 1, 0.0); /* runs */
    assert_int_equal(expect(scheduler, 0.0, WG_ACTION_ANSWER).answer, WG_ANSWER_DUPLICATE);
    arrive(scheduler, 0.0, 2, 0.0);
    arrive(scheduler, 0.0, 2, 0.0); /* waits */
    assert_int_equal(expect(scheduler, 0.0, WG_ACTION_ANSWER).answer, WG_ANSWER_DUPLICATE);
    arrive(scheduler, 0.0, 3, 0.0);
    arrive(scheduler, 0.0, 4, 0.0);
    assert_int_equal(expect(scheduler, 0.0, WG_ACTION_ANSWER).answer, WG_ANSWER_FULL);
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_ARRIVE, .request = {.id = 5, .rows = 9}});
    assert_int_equal(expect(scheduler, 0.0, WG_ACTION_ANSWER).answer, WG_ANSWER_TOO_LARGE);
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_CANCEL, .id = 3});
    assert_int_equal(expect(scheduler, 0.0, WG_ACTION_ANSWER).answer, WG_ANSWER_CANCELLED);
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_CANCEL, .id = 3});
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_CANCEL, .id = 1});
    expect_nothing(scheduler, 0.0);
    wg__scheduler_close(scheduler);
}

static void serves_the_model_that_must_begin_soonest(void **state)
{
    (void)state;
    const struct wg_serving_model models[] = {usual_model, usual_model};
    struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    setup.models = models;
    setup.model_count = 2;
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    arrive(scheduler, 0.0, 1, 0.69);
    tell(scheduler,
         &(struct wg_event){.kind = WG_EVENT_ARRIVE,
                            .request = {.id = 2, .model = 1, .rows = 4, .deadline_s = 0.7}});
    struct wg_action action = expect(scheduler, 0.0, WG_ACTION_RUN_BATCH);
    assert_int_equal(action.batch.model, 1); /* four rows take longer */
    happen(scheduler, WG_EVENT_BATCH_ENDED, 0.33);
    action = expect(scheduler, 0.33, WG_ACTION_RUN_BATCH);
    assert_int_equal(action.batch.requests[0].id, 1);
    wg__scheduler_close(scheduler);
}

/* One that can be met only alone, and three only without it. */
static void arrive_in_conflict(struct wg_scheduler *scheduler, unsigned priority)
{
    for (uint64_t id = 1; id <= 4; id++)
        tell(scheduler, &(struct wg_event){.kind = WG_EVENT_ARRIVE,
                                           .request = {.id = id,
                                                       .rows = 1,
                                                       .priority = id == 1 ? priority : 2,
                                                       .deadline_s = id == 1 ? 0.15 : 0.3}});
}

static void no_lower_priority_costs_a_request_its_turn(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    for (unsigned priority = 1; priority <= 2; priority++) {
        struct wg_scheduler *scheduler = open_scheduler(&setup);
        arrive_in_conflict(scheduler, priority);
        struct wg_action action = {0};
        while (action.kind != WG_ACTION_RUN_BATCH || action.batch.count == 0)
            assert_true(wg__scheduler_ask(scheduler, 0.0, &action));
        assert_int_equal(action.batch.count, priority == 1 ? 1 : 3);
        assert_int_equal(action.batch.requests[0].id, priority == 1 ? 1 : 2);
        wg__scheduler_close(scheduler);
    }
}

static void serves_what_can_be_met_before_what_is_late_anyway(void **state)
{
    (void)state;
    const struct wg_serving_model models[] = {usual_model, usual_model};
    struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    setup.models = models;
    setup.model_count = 2;
    setup.drop = WG_DROP_STANDARD;
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    arrive(scheduler, 0.0, 1, 0.05); /* one row takes 0.126 s */
    tell(scheduler,
         &(struct wg_event){.kind = WG_EVENT_ARRIVE,
                            .request = {.id = 2, .model = 1, .rows = 1, .deadline_s = 0.2}});
    assert_int_equal(expect(scheduler, 0.0, WG_ACTION_RUN_BATCH).batch.requests[0].id, 2);
    wg__scheduler_close(scheduler);
}

static void a_lane_that_waits_to_fill_does_not_hold_up_another(void **state)
{
    (void)state;
    const struct wg_serving_model models[] = {usual_model, usual_model};
    struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    setup.models = models;
    setup.model_count = 2;
    setup.batcher = WG_BATCHER_TRITON;
    setup.batch_delay_s = 0.1;
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    arrive(scheduler, 0.0, 1, 0.3);
    expect_nothing(scheduler, 0.0);
    check_close(wg__scheduler_wake_s(scheduler), 0.1, 1e-9);
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_ARRIVE,
                                       .now_s = 0.05,
                                       .request = {.id = 2, .model = 1, .rows = 8}});
    assert_int_equal(expect(scheduler, 0.05, WG_ACTION_RUN_BATCH).batch.requests[0].id, 2);
    wg__scheduler_close(scheduler);
}

/* Told ten times the truth, everything looks hopeless; what runs all the same teaches better. */
static void recovers_from_a_prediction_that_makes_everything_hopeless(void **state)
{
    (void)state;
    struct wg_predictor_sample wrong[4];
    for (size_t i = 0; i < 4; i++) {
        wrong[i] = batch_samples[i];
        wrong[i].time_s *= 10.0;
    }
    struct wg_serving_model model = usual_model;
    model.samples = wrong;
    struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    setup.models = &model;
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    unsigned served = 0; /* of the last 200 */
    for (uint64_t id = 1; id <= 1000; id++) {
        const double now_s = (double)id;
        arrive(scheduler, now_s, id, 0.0);
        struct wg_action action = {0};
        bool is_served = false;
        while (!is_served && wg__scheduler_ask(scheduler, now_s, &action))
            is_served = action.kind == WG_ACTION_RUN_BATCH;
        if (is_served)
            happen(scheduler, WG_EVENT_BATCH_ENDED, now_s + batch_s(action.batch.rows));
        served += is_served && id > 800;
    }
    assert_int_equal(served, 200);
    wg__scheduler_close(scheduler);
}

/* -- Fine-tuning ---------------------------------------- */

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

/* -- Clocks ---------------------------------------- */

static void orders_one_change_of_clocks_at_a_time(void **state)
{
    (void)state;
    struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    setup.clocks = WG_CLOCKS_GOVERNED;
    setup.first_rung = 1;
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    for (uint64_t id = 1; id <= 8; id++)
        arrive(scheduler, 0.0, id, 0.6); /* 0.588 s at the highest clocks */
    const struct wg_action action = expect(scheduler, 0.0, WG_ACTION_SET_CLOCKS);
    assert_int_equal(action.rung, 0);
    (void)expect(scheduler, 0.0, WG_ACTION_RUN_BATCH);
    tell(scheduler, &(struct wg_event){.kind = WG_EVENT_CLOCKS_CHANGED, .now_s = 0.01, .rung = 0});
    struct wg_scheduler_view view;
    wg__scheduler_view(scheduler, 0.01, &view);
    assert_int_equal(view.rung, 0);
    wg__scheduler_close(scheduler);
}

/* -- Whatever happens ---------------------------------------- */

static void refuses_events_that_cannot_be(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_WATTGOV);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    arrive(scheduler, 1.0, 1, 0.0);
    const struct wg_event wrong[] = {
        {.kind = WG_EVENT_BATCH_ENDED, .now_s = 1.0},
        {.kind = WG_EVENT_STEP_ENDED, .now_s = 1.0},
        {.kind = WG_EVENT_CANCEL, .now_s = 0.5},
        {.kind = WG_EVENT_CANCEL, .now_s = (double)NAN},
        {.kind = WG_EVENT_ARRIVE, .now_s = 1.0, .request = {.id = 2, .rows = 1, .model = 1}},
        {.kind = WG_EVENT_ARRIVE, .now_s = 1.0, .request = {.id = 2, .rows = 0}},
        {.kind = WG_EVENT_ARRIVE, .now_s = 1.0, .request = {.id = 2, .rows = 1, .priority = 17}},
        {.kind = WG_EVENT_ARRIVE,
         .now_s = 1.0,
         .request = {.id = 2, .rows = 1, .deadline_s = (double)NAN}},
        {.kind = WG_EVENT_SLO, .now_s = 1.0, .slo_s = 0.0},
        {.kind = WG_EVENT_SLO, .now_s = 1.0, .slo_s = 1.0, .model = 3},
        {.kind = WG_EVENT_CLOCKS_CHANGED, .now_s = 1.0, .rung = 2},
        {.kind = WG_EVENT_JOB, .now_s = 1.0, .job = {.id = 1, .batch = 0, .iterations = 1}},
        {.kind = WG_EVENT_JOB, .now_s = 1.0, .job = {.id = 1, .batch = 1, .iterations = 0}},
        {.kind = WG_EVENT_JOB_CANCEL, .now_s = 1.0, .id = 5},
        {.kind = WG_EVENT_KIND_COUNT, .now_s = 1.0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct wg_error err = {0};
        assert_int_equal(wg__scheduler_tell(scheduler, &wrong[i], &err), WG_EINVAL);
        assert_true(err.text[0] != '\0');
    }
    assert_int_equal(expect(scheduler, 1.0, WG_ACTION_RUN_BATCH).batch.count, 1);
    wg__scheduler_close(scheduler);
}

static void names_setups_that_cannot_be(void **state)
{
    (void)state;
    struct wg_scheduler_setup wrong[10];
    for (size_t i = 0; i < 10; i++)
        wrong[i] = usual_setup(WG_FINETUNE_WATTGOV);
    struct wg_serving_model no_rows = usual_model, no_slo = usual_model, no_samples = usual_model;
    no_rows.max_rows = 0;
    no_slo.slo_s = 0.0;
    no_samples.sample_count = 0;
    wrong[0].model_count = 0;
    wrong[1].models = &no_rows;
    wrong[2].models = &no_slo;
    wrong[3].models = &no_samples;
    wrong[4].queue_capacity = (size_t)WG_QUEUE_CAPACITY_MAX + 1;
    wrong[5].batcher = WG_BATCHER_COUNT;
    wrong[6].step_share = 1.5;
    wrong[7].first_rung = 2;
    wrong[8].update_s = -1.0;
    wrong[9].batch_delay_s = (double)NAN;
    for (size_t i = 0; i < 10; i++) {
        struct wg_scheduler *scheduler = NULL;
        struct wg_error err = {0};
        assert_int_equal(wg__scheduler_open(&scheduler, &wrong[i], &err), WG_EINVAL);
        assert_null(scheduler);
        assert_true(err.text[0] != '\0');
    }
}

static void gives_all_back_when_memory_runs_out(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_WATTGOV);
    enum wg_code code = WG_ENOMEM;
    size_t nth = 1;
    for (; code != WG_OK; nth++) {
        struct wg_scheduler *scheduler = NULL;
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        code = wg__scheduler_open(&scheduler, &setup, &err);
        wg__alloc_fail_from(0);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        wg__scheduler_close(scheduler);
    }
    assert_true(nth > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_what_waits_in_one_batch_and_learns_its_time),
        cmocka_unit_test(drops_at_the_deadline_though_the_server_is_busy),
        cmocka_unit_test(refuses_at_once_what_cannot_wait_or_run),
        cmocka_unit_test(serves_the_model_that_must_begin_soonest),
        cmocka_unit_test(no_lower_priority_costs_a_request_its_turn),
        cmocka_unit_test(serves_what_can_be_met_before_what_is_late_anyway),
        cmocka_unit_test(a_lane_that_waits_to_fill_does_not_hold_up_another),
        cmocka_unit_test(recovers_from_a_prediction_that_makes_everything_hopeless),
        cmocka_unit_test(greedy_runs_whole_iterations_beside_inference),
        cmocka_unit_test(polythrottle_waits_while_the_slo_would_break),
        cmocka_unit_test(micro_steps_add_up_to_iterations_and_run_alone),
        cmocka_unit_test(a_failed_step_takes_its_iteration_back),
        cmocka_unit_test(says_that_an_slo_leaves_no_room),
        cmocka_unit_test(owes_nothing_for_a_time_without_room),
        cmocka_unit_test(orders_one_change_of_clocks_at_a_time),
        cmocka_unit_test(refuses_events_that_cannot_be),
        cmocka_unit_test(names_setups_that_cannot_be),
        cmocka_unit_test(gives_all_back_when_memory_runs_out),
    };
    return run_tests(tests);
}
