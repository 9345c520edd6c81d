/* SPDX-License-Identifier: MIT
 *
 * The scheduler as one object: turns, answers, clocks, and what it refuses.
 */
#include "schedule/scheduler.h"

#include "base/alloc.h"
#include "tests/support/scheduler_case.h"

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

/* The first of the lane has more time than one of a lower priority behind it. */
static void drops_at_the_deadline_in_every_priority(void **state)
{
    (void)state;
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    arrive(scheduler, 0.0, 1, 0.0);
    (void)expect(scheduler, 0.0, WG_ACTION_RUN_BATCH);
    for (unsigned priority = 1; priority <= 3; priority++)
        tell(scheduler, &(struct wg_event){.kind = WG_EVENT_ARRIVE,
                                           .request = {.id = 1 + priority,
                                                       .rows = 1,
                                                       .priority = priority,
                                                       .deadline_s = 0.1 / priority}});
    expect_nothing(scheduler, 0.01);
    check_close(wg__scheduler_wake_s(scheduler), 0.1 / 3.0, 1e-12);
    assert_int_equal(expect(scheduler, 0.06, WG_ACTION_ANSWER).id, 3);
    assert_int_equal(expect(scheduler, 0.06, WG_ACTION_ANSWER).id, 4);
    expect_nothing(scheduler, 0.06);
    check_close(wg__scheduler_wake_s(scheduler), 0.1, 1e-12);
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

struct crowd {
    struct wg_scheduler *scheduler;
    double end_s; /* of the batch that runs; INFINITY: none */
    unsigned met;
};

/* Does what the scheduler wants at this moment; counts who is in time. */
static void obey(struct crowd *crowd, double now_s)
{
    struct wg_action action;
    while (wg__scheduler_ask(crowd->scheduler, now_s, &action)) {
        if (action.kind != WG_ACTION_RUN_BATCH)
            continue;
        crowd->end_s = now_s + batch_s(action.batch.rows);
        for (size_t i = 0; i < action.batch.count; i++)
            crowd->met += crowd->end_s <= action.batch.requests[i].deadline_s;
    }
}

/* Requests a second that are met when `rate` come. */
static double goodput(double rate, double duration_s)
{
    const struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    struct crowd crowd = {.scheduler = open_scheduler(&setup), .end_s = (double)INFINITY};
    const uint64_t count = (uint64_t)(rate * duration_s);
    for (uint64_t id = 1; id <= count; id++) {
        const double now_s = (double)id / rate;
        while (crowd.end_s <= now_s) {
            const double ended_s = crowd.end_s;
            crowd.end_s = (double)INFINITY;
            happen(crowd.scheduler, WG_EVENT_BATCH_ENDED, ended_s);
            obey(&crowd, ended_s);
        }
        arrive(crowd.scheduler, now_s, id, 0.0);
        obey(&crowd, now_s);
    }
    wg__scheduler_close(crowd.scheduler);
    return crowd.met / duration_s;
}

/* Full batches are 13.6 requests a second. Who became hopeless by waiting must not be served to
 * learn from, and who could only be met in a small batch must not take the time of eight. */
static void serves_as_many_in_a_crowd_as_it_could_without(void **state)
{
    (void)state;
    static const double rates[] = {20, 50, 100, 300, 1000, 3000};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        if (goodput(rates[i], 20.0) < 11.0)
            fail_msg("%g of %g requests a second", goodput(rates[i], 20.0), rates[i]);
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

static void lowers_the_clocks_of_a_server_that_nobody_asks(void **state)
{
    (void)state;
    struct wg_scheduler_setup setup = usual_setup(WG_FINETUNE_NONE);
    setup.clocks = WG_CLOCKS_GOVERNED;
    struct wg_scheduler *scheduler = open_scheduler(&setup);
    double now_s = 0.0;
    struct wg_action action = {0};
    for (uint64_t id = 1; id <= 400; id++) {
        now_s = 0.1 * (double)id;
        arrive(scheduler, now_s, id, 0.0);
        while (wg__scheduler_ask(scheduler, now_s, &action))
            if (action.kind == WG_ACTION_RUN_BATCH)
                happen(scheduler, WG_EVENT_BATCH_ENDED, now_s);
            else if (action.kind == WG_ACTION_SET_CLOCKS)
                tell(scheduler, &(struct wg_event){.kind = WG_EVENT_CLOCKS_CHANGED,
                                                   .now_s = now_s,
                                                   .rung = action.rung});
    }
    struct wg_scheduler_view view;
    wg__scheduler_view(scheduler, now_s, &view);
    assert_int_equal(view.rung, 0); /* the slow one serves 7 a second */
    const double end_s = now_s + 120.0;
    bool is_lowered = false;
    while (now_s < end_s && !is_lowered) {
        is_lowered = wg__scheduler_ask(scheduler, now_s, &action) &&
                     action.kind == WG_ACTION_SET_CLOCKS && action.rung == 1;
        now_s = is_lowered ? now_s : wg__scheduler_wake_s(scheduler);
    }
    assert_true(is_lowered);
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
        cmocka_unit_test(drops_at_the_deadline_in_every_priority),
        cmocka_unit_test(refuses_at_once_what_cannot_wait_or_run),
        cmocka_unit_test(serves_the_model_that_must_begin_soonest),
        cmocka_unit_test(no_lower_priority_costs_a_request_its_turn),
        cmocka_unit_test(serves_what_can_be_met_before_what_is_late_anyway),
        cmocka_unit_test(a_lane_that_waits_to_fill_does_not_hold_up_another),
        cmocka_unit_test(recovers_from_a_prediction_that_makes_everything_hopeless),
        cmocka_unit_test(serves_as_many_in_a_crowd_as_it_could_without),
        cmocka_unit_test(orders_one_change_of_clocks_at_a_time),
        cmocka_unit_test(lowers_the_clocks_of_a_server_that_nobody_asks),
        cmocka_unit_test(refuses_events_that_cannot_be),
        cmocka_unit_test(names_setups_that_cannot_be),
        cmocka_unit_test(gives_all_back_when_memory_runs_out),
    };
    return run_tests(tests);
}
