/* SPDX-License-Identifier: MIT
 *
 * The policy `wattgov` through its interface: what it runs first, after failures, with many runs in
 * flight, after changes and on another GPU. Its parts have tests of their own; its surveys are in
 * test_policy_wattgov_surveys.c, that it converges and what it may cost in
 * test_policy_wattgov_tables.c.
 */
#include <string.h>

#include "base/alloc.h"
#include "support/governor_stage.h"

static const struct wg_batch_policy_ops *const ops = &wg__batch_policy_wattgov;

static void recur_times(struct stage *stage, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        (void)recur(stage);
}

static size_t best_arm(const struct stage *stage)
{
    return ops->best_arm(stage->driver.policy);
}

static void the_first_run_is_the_default_without_any_survey(void **state)
{
    (void)state;
    for (size_t default_arm = 0; default_arm < 7; default_arm++) {
        struct toy_world world = make_ladder();
        world.default_arm = default_arm;
        struct stage stage = open_stage(&world, default_arm);
        assert_int_equal(best_arm(&stage), default_arm);
        const struct wg_batch_step step = ask_step(&stage.driver);
        assert_int_equal(step.arm, default_arm);
        assert_int_equal(step.limit, WG_LIMIT_BEST);
        assert_int_equal(allowed_epochs(&stage.driver, &step, 1000), 1000); /* nothing stops it */
        close_stage(&stage);
    }
}

static void finds_the_cheapest_batch_size(void **state)
{
    (void)state;
    const struct toy_world world = make_ladder();
    const size_t cheapest = cheapest_arm(&world);
    assert_int_equal(cheapest, 4);
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct stage stage = open_stage(&world, seed);
        recur_times(&stage, 50);
        assert_int_equal(best_arm(&stage), cheapest);
        assert_true(stage.runs[cheapest] >= 30);
        close_stage(&stage);
    }
}

/* The largest batch size never reaches the target; whatever fails is followed by an arm that has
 * reached it and did not fail in this recurrence, and that run is not stopped. */
static void a_failed_run_is_followed_by_a_proven_arm_without_a_bound(void **state)
{
    (void)state;
    struct toy_world world = make_ladder();
    world.epochs[4] = world.epochs[5] = world.epochs[6] = (double)INFINITY;
    unsigned retries = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct stage stage = open_stage(&world, seed);
        for (uint64_t n = 0; n < 40; n++) {
            struct wg_batch_step step = ask_for(&stage, (struct wg_batch_request){.recurrence = n});
            const size_t first = step.arm;
            if (train(&stage, &step))
                continue;
            retries++;
            step = ask_for(&stage, (struct wg_batch_request){.recurrence = n, .attempt = 1});
            assert_int_not_equal(step.arm, first);
            assert_true(stage.governor->model.success_count[step.arm] > 0);
            assert_int_equal(allowed_epochs(&stage.driver, &step, 1000), 1000);
            assert_true(train(&stage, &step));
        }
        assert_int_equal(best_arm(&stage), cheapest_arm(&world));
        close_stage(&stage);
    }
    assert_true(retries > 0);
}

/* Before any result: the default, then arms one octave up and down, then two, each once, then the
 * default. Those that are more than twice as dear per epoch are left out. */
static void the_first_runs_in_flight_look_around_the_default(void **state)
{
    (void)state;
    const size_t expected[] = {2, 3, 1, 4, 0, 2, 2};
    struct toy_world world = make_ladder();
    for (unsigned dear = 0; dear < 2; dear++) {
        world.epoch_j[0] = world.epoch_j[2] * (dear ? 2.1 : 1.9);
        struct stage stage = open_stage(&world, 1);
        uint64_t last_ticket = 0;
        for (uint64_t n = 0; n < 7; n++) {
            const struct wg_batch_step step =
                ask_for(&stage, (struct wg_batch_request){.recurrence = n});
            assert_int_equal(step.arm, dear && expected[n] == 0 ? 2 : expected[n]);
            assert_true(step.ticket > last_ticket);
            last_ticket = step.ticket;
            (void)profile_arm(&stage, step.arm);
        }
        close_stage(&stage);
    }
}

/* Runs are told in another order than they were asked for; each counts for its own arm. */
static void results_are_matched_by_ticket(void **state)
{
    (void)state;
    const struct toy_world world = make_ladder();
    struct stage stage = open_stage(&world, 1);
    struct wg_batch_step step[4];
    for (uint64_t n = 0; n < 4; n++)
        step[n] = ask_for(&stage, (struct wg_batch_request){.recurrence = n});
    for (size_t n = 4; n-- > 0;) {
        assert_int_equal(stage.governor->in_flight, n + 1);
        const struct wg_batch_outcome outcome = {
            .reached = true, .epochs = 10 + (unsigned)n, .cost_j = 1000};
        ops->tell_run(stage.driver.policy, step[n].ticket, &outcome);
    }
    wg__governor_refresh(stage.governor);
    for (size_t n = 0; n < 4; n++) {
        assert_int_equal(stage.governor->model.success_count[step[n].arm], 1);
        check_close(stage.governor->model.arm_mean[step[n].arm], log2(10 + (double)n), 1e-12);
    }
    check_close(stage.governor->spent_j, stage.surveys_j + 4000, 1e-12);
    close_stage(&stage);
}

static void unknown_tickets_are_ignored(void **state)
{
    (void)state;
    const struct toy_world world = make_ladder();
    struct stage stage = open_stage(&world, 1);
    recur_times(&stage, 5);
    const struct wg_batch_step step = ask_for(&stage, stage.driver.next);
    const double spent_j = stage.governor->spent_j;
    const struct wg_batch_outcome outcome = {.reached = true, .epochs = 1, .cost_j = 1e-9};
    const uint64_t unknown[] = {0, 1, step.ticket + 1, UINT64_MAX}; /* 1 has ended */
    for (size_t i = 0; i < 4; i++) {
        ops->tell_run(stage.driver.policy, unknown[i], &outcome);
        assert_true(ops->may_continue(stage.driver.policy, unknown[i], 1, 0.5));
    }
    check_close(stage.governor->spent_j, spent_j, 0);
    assert_int_equal(stage.governor->in_flight, 1);
    assert_int_equal(stage.governor->completed, 5);
    ops->tell_run(stage.driver.policy, step.ticket, &outcome);
    ops->tell_run(stage.driver.policy, step.ticket, &outcome); /* told twice, counts once */
    assert_int_equal(stage.governor->in_flight, 0);
    assert_int_equal(stage.governor->completed, 6);
    close_stage(&stage);
}

/* Those beyond the room run to their end like the others; only what they teach is lost. */
static void more_runs_in_flight_than_there_is_room_do_no_harm(void **state)
{
    (void)state;
    enum { RUNS = WG_IN_FLIGHT_MAX + 10 };
    const struct toy_world world = make_ladder();
    struct stage stage = open_stage(&world, 1);
    for (uint64_t round = 0; round < 3; round++) {
        struct wg_batch_step step[RUNS];
        for (uint64_t n = 0; n < RUNS; n++)
            step[n] = ask_for(&stage, (struct wg_batch_request){.recurrence = round * RUNS + n});
        assert_int_equal(stage.governor->in_flight, WG_IN_FLIGHT_MAX);
        for (size_t n = RUNS; n-- > 0;)
            (void)train(&stage, &step[n]);
        assert_int_equal(stage.governor->in_flight, 0);
    }
    stage.driver.next.recurrence = UINT64_C(3) * RUNS;
    recur_times(&stage, 40);
    assert_int_equal(best_arm(&stage), cheapest_arm(&world));
    close_stage(&stage);
}

/* Of 70 recurrences in flight at once every one fails once before any comes back. */
static void more_failed_recurrences_than_there_is_room_do_no_harm(void **state)
{
    (void)state;
    const struct toy_world world = make_ladder();
    struct stage stage = open_stage(&world, 1);
    (void)recur(&stage);
    const struct wg_batch_outcome failed = {.epochs = 3, .cost_j = 10};
    for (uint64_t n = 1; n <= 70; n++) {
        const struct wg_batch_step step =
            ask_for(&stage, (struct wg_batch_request){.recurrence = n});
        ops->tell_run(stage.driver.policy, step.ticket, &failed);
    }
    for (uint64_t n = 1; n <= 70; n++) {
        const struct wg_batch_step step =
            ask_for(&stage, (struct wg_batch_request){.recurrence = n, .attempt = 1});
        assert_true(stage.governor->model.success_count[step.arm] > 0);
        assert_true(train(&stage, &step));
    }
    close_stage(&stage);
}

static void a_window_keeps_the_latest_runs_of_each_arm(void **state)
{
    (void)state;
    const struct toy_world world = make_ladder();
    const struct wg_batch_options options = {.window = 3};
    struct stage stage = open_stage_with(&world, &options, 2);
    recur_times(&stage, 30);
    wg__governor_refresh(stage.governor);
    const struct wg_epochs_model *model = &stage.governor->model;
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(model->success_count[i] + model->failure_count[i],
                         stage.runs[i] < 3 ? stage.runs[i] : 3);
    assert_int_equal(best_arm(&stage), cheapest_arm(&world));
    /* Three runs at other epochs, and nothing of the old ones is left. */
    const size_t arm = best_arm(&stage);
    stage.world.epochs[arm] *= 0.7;
    stage.governor->detector.threshold = 1e9; /* it is the window that forgets */
    for (unsigned runs = 0, asks = 0; runs < 3; asks++) {
        assert_true(asks < 60);
        (void)recur(&stage);
        runs += stage.last_arm == arm;
    }
    wg__governor_refresh(stage.governor);
    check_close(model->arm_mean[arm], log2(round(stage.world.epochs[arm])), 1e-9);
    close_stage(&stage);
}

/* After 30 recurrences every batch size needs `factor` times the epochs. Returns after how many
 * more the model is within half an octave of what the best arm needs now. */
static unsigned recurrences_to_notice(double factor, uint64_t seed)
{
    struct toy_world world = make_ladder();
    world.max_epochs = 4000;
    world.noise_sd = 0.05;
    struct stage stage = open_stage(&world, seed);
    recur_times(&stage, 30);
    const size_t best = best_arm(&stage);
    for (size_t i = 0; i < 7; i++)
        stage.world.epochs[i] *= factor;
    unsigned count = 0;
    const double now = log2(stage.world.epochs[best]);
    do {
        assert_true(count++ < 20);
        (void)recur(&stage);
        wg__governor_refresh(stage.governor);
    } while (fabs(stage.governor->model.mean[best] - now) > 0.5);
    assert_true(stage.governor->observation_count <= 12); /* the old level is forgotten */
    recur_times(&stage, 30);
    assert_true(run_cost_j(&stage.world, best_arm(&stage)) <=
                1.25 * run_cost_j(&stage.world, cheapest_arm(&stage.world)));
    close_stage(&stage);
    return count;
}

static void a_change_of_level_is_noticed_within_a_few_runs(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        assert_in_range(recurrences_to_notice(4, seed), 1, 6);
        assert_in_range(recurrences_to_notice(0.25, seed), 1, 6);
    }
}

static void without_a_change_nothing_is_forgotten(void **state)
{
    (void)state;
    struct toy_world world = make_ladder();
    world.noise_sd = 0.1;
    unsigned quiet = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct stage stage = open_stage(&world, seed);
        unsigned runs = 0;
        recur_times(&stage, 60);
        for (size_t i = 0; i < 7; i++)
            runs += stage.runs[i];
        quiet += stage.governor->observation_count == runs;
        close_stage(&stage);
    }
    assert_true(quiet >= 32);
}

/* Epochs of the arm in use cost three times as much; the others are taken to have changed alike
 * until they are seen, in any order of telling. */
static void a_change_of_epoch_cost_rescales_the_other_arms(void **state)
{
    (void)state;
    const struct toy_world world = make_ladder();
    struct stage stage = open_stage(&world, 2);
    recur_times(&stage, 20);
    struct wg_governor *governor = stage.governor;
    wg__governor_refresh(governor);
    double before_j[7];
    for (size_t i = 0; i < 7; i++)
        before_j[i] = governor->cost[i].epoch_j;
    const size_t used = best_arm(&stage);
    for (size_t i = 0; i < 7; i++)
        stage.world.epoch_j[i] *= 3;
    (void)profile_arm(&stage, used);
    wg__governor_refresh(governor);
    for (size_t i = 0; i < 7; i++)
        check_close(governor->cost[i].epoch_j, 3 * before_j[i], 1e-9);
    assert_int_equal(best_arm(&stage), used);
    recur_times(&stage, 20); /* and the arms that tell the same again change nothing */
    wg__governor_refresh(governor);
    for (size_t i = 0; i < 7; i++)
        check_close(governor->cost[i].epoch_j, 3 * before_j[i], 1e-9);
    assert_int_equal(best_arm(&stage), cheapest_arm(&world));
    close_stage(&stage);
}

static const size_t same_arms[] = {0, 1, 2, 3, 4, 5, 6};

/* On the other GPU an epoch costs 1.7 times as much: there the first run is nearly always the best
 * arm's, and else explores beside it. */
static void starts_on_another_gpu_near_the_best_arm(void **state)
{
    (void)state;
    unsigned cheaper = 0, with_best = 0;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct toy_world world = make_ladder();
        struct stage there = open_stage(&world, seed);
        recur_times(&there, 40);
        for (size_t i = 0; i < 7; i++)
            world.epoch_j[i] *= 1.7;
        struct stage here = open_stage(&world, seed);
        ops->transfer(here.driver.policy, there.driver.policy, same_arms);
        const double first_j = recur(&here);
        with_best += here.last_arm == 4;
        assert_in_range(here.last_arm, 3, 5);
        assert_int_equal(here.surveys[here.last_arm], 1); /* not unseen */
        cheaper += first_j < run_cost_j(&world, 2);
        recur_times(&here, 20);
        assert_int_equal(here.runs[2] + here.failures[4], 0); /* the default was never needed */
        close_stage(&there);
        close_stage(&here);
    }
    assert_true(cheaper >= 7); /* one more trial is allowed, and may fail */
    assert_true(with_best >= 8);
}

static void believes_no_joules_before_a_cost_on_its_own_gpu(void **state)
{
    (void)state;
    const struct toy_world world = make_ladder();
    struct stage there = open_stage(&world, 1), here = open_stage(&world, 1);
    struct wg_batch_belief taught, belief;
    recur_times(&there, 40);
    ops->transfer(here.driver.policy, there.driver.policy, same_arms);
    for (size_t i = 0; i < 7; i++) {
        assert_true(ops->believe(there.driver.policy, i, &taught));
        assert_true(ops->believe(here.driver.policy, i, &belief));
        assert_true(belief.epochs_low < belief.epochs && belief.epochs < belief.epochs_high);
        check_close(belief.epochs, taught.epochs, 0.5 * taught.epochs);
        assert_true(taught.cost_j > taught.epochs); /* an epoch costs more than 1 J there */
        assert_true(isnan(belief.cost_j) && isnan(belief.low_j) && isnan(belief.high_j) &&
                    isnan(belief.recurrence_j));
    }
    ops->tell_survey(here.driver.policy, 3, 5, 1);
    for (size_t i = 0; i < 7; i++) {
        assert_true(ops->believe(here.driver.policy, i, &belief));
        assert_true(belief.low_j < belief.cost_j && belief.cost_j < belief.high_j);
    }
    close_stage(&there);
    close_stage(&here);
}

/* There: arms 8..512; here only those from 32 on, so arm i there is arm i - 2 here. */
static void transfers_between_different_sets_of_batch_sizes(void **state)
{
    (void)state;
    struct toy_world world = make_ladder(), part = make_world(5, 0);
    const size_t map[] = {SIZE_MAX, SIZE_MAX, 0, 1, 2, 3, 4};
    struct stage there = open_stage(&world, 1);
    recur_times(&there, 40);
    for (size_t i = 0; i < 5; i++) {
        part.epochs[i] = world.epochs[i + 2];
        part.epoch_j[i] = world.epoch_j[i + 2] * 0.6;
    }
    struct stage here = open_stage(&part, 1);
    ops->transfer(here.driver.policy, there.driver.policy, map);
    (void)recur(&here);
    assert_int_equal(here.last_arm, 2);
    close_stage(&there);
    close_stage(&here);
}

static void transfer_from_one_that_knows_nothing_is_a_cold_start(void **state)
{
    (void)state;
    const struct toy_world world = make_ladder();
    struct stage there = open_stage(&world, 1), here = open_stage(&world, 1);
    ops->transfer(here.driver.policy, there.driver.policy, same_arms);
    (void)recur(&here);
    assert_int_equal(here.last_arm, world.default_arm);
    recur_times(&here, 50);
    assert_int_equal(best_arm(&here), cheapest_arm(&world));
    close_stage(&there);
    close_stage(&here);
}

/* A full history, twice: the oldest make room. */
static void transferred_histories_do_not_overflow(void **state)
{
    (void)state;
    const struct toy_world world = make_ladder();
    struct stage there = open_stage(&world, 1), here = open_stage(&world, 2);
    recur_times(&there, WG_GOVERNOR_HISTORY_MAX + 50);
    recur_times(&here, 30);
    assert_int_equal(there.governor->observation_count, WG_GOVERNOR_HISTORY_MAX);
    for (unsigned i = 0; i < 2; i++) {
        ops->transfer(here.driver.policy, there.driver.policy, same_arms);
        assert_int_equal(here.governor->observation_count, WG_GOVERNOR_HISTORY_MAX);
    }
    recur_times(&here, 20);
    assert_int_equal(best_arm(&here), cheapest_arm(&world));
    close_stage(&there);
    close_stage(&here);
}

static void a_default_that_always_fails_does_not_hold_it_up(void **state)
{
    (void)state;
    struct toy_world world = make_ladder();
    world.epochs[2] = (double)INFINITY;
    for (uint64_t seed = 0; seed < 10; seed++) {
        struct stage stage = open_stage(&world, seed);
        recur_times(&stage, 50);
        unsigned reached = 0;
        for (size_t i = 0; i < 7; i++)
            reached += stage.runs[i] - stage.failures[i];
        assert_int_equal(reached, 50); /* every recurrence came to its end */
        assert_true(stage.runs[2] <= 5);
        assert_int_equal(best_arm(&stage), 4);
        close_stage(&stage);
    }
}

/* Nothing ever works: every attempt is a run, none is asked for ever, and many arms get a chance.
 */
static void a_job_that_never_reaches_its_target_tries_other_arms(void **state)
{
    (void)state;
    struct toy_world world = make_ladder();
    for (size_t i = 0; i < 7; i++)
        world.epochs[i] = (double)INFINITY;
    struct stage stage = open_stage(&world, 1);
    recur_times(&stage, 5);
    unsigned runs = 0, tried = 0;
    for (size_t i = 0; i < 7; i++) {
        runs += stage.runs[i];
        tried += stage.runs[i] > 0;
    }
    assert_int_equal(runs, 5 * WG_ATTEMPTS_MAX);
    assert_int_equal(tried, 7);
    close_stage(&stage);
}

static void jobs_at_the_edges_run(void **state)
{
    (void)state;
    const size_t arms[] = {1, 2, WG_ARMS_MAX};
    for (size_t i = 0; i < 3; i++)
        for (unsigned max_epochs = 1; max_epochs <= 100; max_epochs += 99) {
            struct toy_world world = make_world(arms[i], arms[i] / 2);
            world.max_epochs = max_epochs;
            for (size_t arm = 0; arm < arms[i]; arm++) {
                world.epochs[arm] = max_epochs == 1 ? 1 : 10 + (double)arm;
                world.epoch_j[arm] = 100 / (1 + (double)arm);
            }
            struct stage stage = open_stage(&world, i);
            recur_times(&stage, 40);
            assert_true(run_cost_j(&world, best_arm(&stage)) <=
                        run_cost_j(&world, world.default_arm));
            check_close(stage.governor->spent_j, stage.paid_j, 1e-9);
            assert_int_equal(stage.governor->completed, 40);
            close_stage(&stage);
        }
}

static void a_full_history_forgets_the_oldest(void **state)
{
    (void)state;
    const struct toy_world world = make_ladder();
    struct stage stage = open_stage(&world, 6);
    recur_times(&stage, WG_GOVERNOR_HISTORY_MAX + 100);
    assert_int_equal(stage.governor->observation_count, WG_GOVERNOR_HISTORY_MAX);
    assert_int_equal(stage.governor->completed, WG_GOVERNOR_HISTORY_MAX + 100);
    assert_int_equal(best_arm(&stage), cheapest_arm(&world));
    assert_int_equal(stage.governor->observations[0].arm, 4); /* the first runs are gone */
    close_stage(&stage);
}

static void refuses_a_job_that_makes_no_sense(void **state)
{
    (void)state;
    struct wg_batch_job job = make_batch_job(3, 1, 1);
    const struct wg_batch_options options = {0};
    struct wg_batch_policy *policy = NULL;
    struct wg_error err = {0};
    job.max_epochs = 0;
    assert_int_equal(ops->create(&policy, &job, &options, &err), WG_EINVAL);
    assert_null(policy);
    assert_non_null(strstr(err.text, "epoch"));
}

static void reports_that_memory_ran_out(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(3, 1, 1);
    const struct wg_batch_options options = {0};
    struct wg_batch_policy *policy = NULL;
    wg__alloc_fail_from(0);
    assert_int_equal(ops->create(&policy, &job, &options, NULL), WG_OK);
    const size_t allocations = wg__alloc_count();
    ops->destroy(policy);
    assert_true(allocations > 0);
    for (size_t nth = 1; nth <= allocations; nth++) {
        struct wg_error err = {0};
        policy = NULL;
        wg__alloc_fail_from(nth);
        const enum wg_code code = ops->create(&policy, &job, &options, &err);
        wg__alloc_fail_from(0);
        assert_int_equal(code, WG_ENOMEM);
        assert_int_equal(err.code, WG_ENOMEM);
        assert_null(policy);
    }
    ops->destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_run_is_the_default_without_any_survey),
        cmocka_unit_test(finds_the_cheapest_batch_size),
        cmocka_unit_test(a_failed_run_is_followed_by_a_proven_arm_without_a_bound),
        cmocka_unit_test(the_first_runs_in_flight_look_around_the_default),
        cmocka_unit_test(results_are_matched_by_ticket),
        cmocka_unit_test(unknown_tickets_are_ignored),
        cmocka_unit_test(more_runs_in_flight_than_there_is_room_do_no_harm),
        cmocka_unit_test(more_failed_recurrences_than_there_is_room_do_no_harm),
        cmocka_unit_test(a_window_keeps_the_latest_runs_of_each_arm),
        cmocka_unit_test(a_change_of_level_is_noticed_within_a_few_runs),
        cmocka_unit_test(without_a_change_nothing_is_forgotten),
        cmocka_unit_test(a_change_of_epoch_cost_rescales_the_other_arms),
        cmocka_unit_test(starts_on_another_gpu_near_the_best_arm),
        cmocka_unit_test(believes_no_joules_before_a_cost_on_its_own_gpu),
        cmocka_unit_test(transfers_between_different_sets_of_batch_sizes),
        cmocka_unit_test(transfer_from_one_that_knows_nothing_is_a_cold_start),
        cmocka_unit_test(transferred_histories_do_not_overflow),
        cmocka_unit_test(a_default_that_always_fails_does_not_hold_it_up),
        cmocka_unit_test(a_job_that_never_reaches_its_target_tries_other_arms),
        cmocka_unit_test(jobs_at_the_edges_run),
        cmocka_unit_test(a_full_history_forgets_the_oldest),
        cmocka_unit_test(refuses_a_job_that_makes_no_sense),
        cmocka_unit_test(reports_that_memory_ran_out),
    };
    return run_tests(tests);
}
