/* SPDX-License-Identifier: MIT
 *
 * What the governor of live training does when the job or the device misbehaves: slow settling,
 * throttling, pauses, drift, foreign writes, refusals, steps that stop or were never seen.
 */
#include "optimize/train_governor.h"

#include <string.h>

#include "support/train_stage.h"

enum { SEEDS = 6 };

static struct train_world_result run(const struct train_world_job *job,
                                     const struct train_world_conditions *conditions,
                                     const struct wg_train_config *config, uint64_t seed,
                                     double duration_s)
{
    struct train_world_result result;

    train_world_run(job, conditions, config, seed, duration_s, &result);
    return result;
}

static void expect_found(const struct train_world_result *result, uint64_t seed, double regret)
{
    if (!(result->first_regret <= regret))
        fail_msg(
            "seed %u: setting %zu, regret %g, held at %g s, %zu sets, %zu measured, %zu aborted",
            (unsigned)seed, result->first_hold, result->first_regret, result->hold_s, result->sets,
            result->measurements, result->aborts);
}

static void settings_that_act_late_are_waited_for(void **state)
{
    static const double settle_s[] = {0.05, 0.5, 2, 0.05}, dead_s[] = {0, 0.2, 0, 2};
    const struct train_world_job job = make_job(0.1);
    const struct wg_train_config config = config_of("cost:0.5");

    (void)state;
    for (size_t i = 0; i < 4; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct train_world_conditions conditions = usual();

            conditions.settle_s = settle_s[i];
            conditions.dead_s = dead_s[i];
            const struct train_world_result result = run(&job, &conditions, &config, seed, 200);

            expect_found(&result, seed, 0.02);
            /* Small changes hide in the noise; larger ones were seen to take their time. */
            assert_true(settle_s[i] < 0.5 || result.settle_seen_s > 0.25 * settle_s[i]);
        }
}

static void a_long_warm_up_is_seen(void **state)
{
    const struct train_world_job job = make_job(0.1);
    const struct wg_train_config config = config_of("slowdown:1.07");

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct train_world_conditions conditions = usual();

        conditions.warm_s = 8;
        conditions.warm_share = 2;
        const struct train_world_result result = run(&job, &conditions, &config, seed, 300);

        assert_true(result.hold_s > 24);
        assert_true(result.slowdown <= 1.07);
    }
}

static void a_given_warm_up_is_kept(void **state)
{
    const struct train_world_job job = make_job(0.1);
    const struct train_world_conditions conditions = usual();
    struct wg_train_config config = config_of("energy");

    (void)state;
    config.warmup_s = 40;
    config.measure_s = 2;
    const struct train_world_result result = run(&job, &conditions, &config, 1, 200);

    assert_true(result.hold_s > 40 + 3 * 2 && result.hold_s < 120);
    for (size_t i = 0; i < result.point_count; i++)
        check_close_abs(result.points[i].measured_s / result.points[i].measurements, 2, 0, 0.3);
}

static void throttled_measurements_are_thrown_away(void **state)
{
    const struct train_world_job job = make_job(0.1);
    const struct wg_train_config config = config_of("cost:0.5");

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct train_world_conditions conditions = usual();

        conditions.throttle_from_s = 10 + (double)seed;
        conditions.throttle_to_s = 18 + (double)seed;
        const struct train_world_result result = run(&job, &conditions, &config, seed, 200);

        expect_found(&result, seed, 0.02);
        assert_true(result.hold_s > conditions.throttle_to_s);
    }
}

static void a_device_that_is_always_throttled_is_not_waited_for(void **state)
{
    const struct train_world_job job = make_job(0.1);
    const struct wg_train_config config = config_of("energy");
    struct train_world_conditions conditions = usual();

    (void)state;
    conditions.throttle_to_s = 1e9;
    const struct train_world_result result = run(&job, &conditions, &config, 1, 900);

    assert_true(result.hold_s > 0);
    assert_int_equal(result.point_count, 0);
    assert_int_equal(result.setting, job.count - 1);
}

/* A script that prints each tenth step: what lies between two lines is no pause. */
static void steps_that_are_told_by_tens_are_as_good(void **state)
{
    const struct train_world_job job = make_job(0.08);
    const struct wg_train_config config = config_of("cost:0.5");

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct train_world_conditions conditions = usual();
        const struct train_world_result each = run(&job, &conditions, &config, seed, 300);

        conditions.tell_every = 10;
        const struct train_world_result tenth = run(&job, &conditions, &config, seed, 300);

        expect_found(&tenth, seed, 0.01);
        assert_int_equal(tenth.aborts, 0);
        if (!(tenth.hold_s < 2 * each.hold_s))
            fail_msg("held at %g s, and at %g s when each step is told", tenth.hold_s, each.hold_s);
    }
}

static void pauses_are_neither_steps_nor_drift(void **state)
{
    static const size_t every[] = {400, 100, 12};
    static const double pause_s[] = {20, 3, 0.5};
    const struct train_world_job job = make_job(0.1);
    const struct wg_train_config config = config_of("cost:0.5");

    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct train_world_conditions conditions = usual();

            conditions.pause_every = every[i];
            conditions.pause_s = pause_s[i];
            const struct train_world_result result = run(&job, &conditions, &config, seed, 900);

            expect_found(&result, seed, 0.03);
            assert_int_equal(result.drifts, 0);
        }
}

static void nothing_drifts_in_a_steady_job(void **state)
{
    const struct train_world_job job = make_job(0.2);
    const struct wg_train_config config = config_of("cost:0.5");

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct train_world_conditions conditions = usual();

        conditions.step_noise = 0.05;
        conditions.pause_every = 500;
        conditions.pause_s = 5;
        const struct train_world_result result = run(&job, &conditions, &config, seed, 1800);

        assert_int_equal(result.drifts, 0);
        assert_int_equal(result.hold_sets, 0);
    }
}

/* Another process on the device ends in the midst of the search: what was measured before is of
 * another world, in which no setting was as fast. */
static void a_job_that_becomes_faster_in_the_search_leaves_no_profile_of_two_worlds(void **state)
{
    const struct train_world_job job = make_job(0.1);
    const struct wg_train_config config = config_of("cost:0.5");
    unsigned torn = 0;

    (void)state;
    for (unsigned i = 0; i < 36; i++) {
        const double at_s = 2 + 0.5 * i;
        struct train_world_conditions conditions = usual();

        conditions.drift_at_s = at_s;
        conditions.drift_speed = 1.6;
        conditions.drift_power = 1;
        const struct train_world_result result = run(&job, &conditions, &config, 3, 200);

        torn += result.drifts;
        expect_found(&result, 3, 0.01);
        for (size_t k = 1; k < result.point_count; k++) {
            if (!(result.points[k].throughput > 0.97 * result.points[k - 1].throughput))
                fail_msg("at %g s: %g W is said to make %g steps a second, %g W %g", at_s,
                         result.points[k - 1].setting, result.points[k - 1].throughput,
                         result.points[k].setting, result.points[k].throughput);
        }
    }
    assert_true(torn > 0);
}

static void drift_is_checked_again_and_not_for_ever(void **state)
{
    const struct train_world_job job = make_job(0.1);
    const struct wg_train_config config = config_of("cost:0.5");

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct train_world_conditions conditions = usual();

        conditions.drift_at_s = 300;
        conditions.drift_speed = 0.85;
        conditions.drift_power = 1;
        const struct train_world_result result = run(&job, &conditions, &config, seed, 1500);

        assert_in_range(result.drifts, 1, 2);
        assert_true(result.hold_sets >= 2 && result.hold_sets < 30);
        assert_true(result.regret < 0.02);
    }
}

static void what_somebody_else_sets_is_left_alone(void **state)
{
    const struct train_world_job job = make_job(0.1);
    const struct wg_train_config config = config_of("energy");
    struct train_world_conditions conditions = usual();

    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        const double at_s = 0.5 + 7.3 * i;

        conditions.foreign_at_s = at_s;
        const struct train_world_result before = run(&job, &conditions, &config, 1, at_s);
        const struct train_world_result result = run(&job, &conditions, &config, 1, 900);

        assert_int_equal(result.sets, before.sets);
        assert_int_equal(result.setting, before.setting);
        assert_in_range(result.aborts, before.aborts, before.aborts + 1);
    }
}

static void a_refused_setting_leaves_the_search(void **state)
{
    const struct train_world_job job = make_job(0.1);
    struct train_world_conditions conditions = usual();

    (void)state;
    for (uint64_t refused = 1; refused < 128; refused += 7) {
        const struct wg_train_config config = config_of("cost:0.5");

        conditions.refused = refused;
        const struct train_world_result result = run(&job, &conditions, &config, refused, 200);

        assert_true(result.hold_s > 0);
        for (size_t i = 0; i < result.point_count; i++)
            for (size_t k = 0; k < job.count; k++)
                assert_false(result.points[i].setting == job.setting[k] && (refused >> k & 1) != 0);
    }
    conditions.refused = 127;
    const struct wg_train_config config = config_of("cost:0.5");
    const struct train_world_result result = run(&job, &conditions, &config, 1, 100);

    assert_int_equal(result.sets, 0);
    assert_int_equal(result.refusals, 7);
    assert_int_equal(result.measurements, 0);
}

static void steps_that_stop_are_not_waited_for(void **state)
{
    const struct train_world_job job = make_job(0.1);
    const struct wg_train_config config = config_of("cost:0.5");

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        const double at_s = 1.5 + 4.1 * i;
        struct train_world_conditions conditions = usual();

        conditions.steps_stop_s = at_s;
        conditions.steps_resume_s = at_s + 400;
        const struct train_world_result stopped =
            run(&job, &conditions, &config, 1, conditions.steps_resume_s);
        const struct train_world_result result = run(&job, &conditions, &config, 1, 900);

        /* In the warm-up the largest setting holds anyway. */
        assert_true(!isnan(stopped.hold_s) || stopped.setting == job.count - 1);
        expect_found(&result, 1, 1);
        assert_true(result.regret < 0.03);
    }
}

static void a_job_that_shows_no_steps_keeps_the_largest_setting(void **state)
{
    const struct train_world_job job = make_job(1e6);
    const struct wg_train_config config = config_of("energy");
    struct train_world_conditions conditions = usual();
    struct train_world_result result;

    (void)state;
    conditions.warm_share = 0;
    result = run(&job, &conditions, &config, 1, 1000);
    assert_int_equal(result.setting, job.count - 1);
    assert_int_equal(result.point_count, 0);
    conditions.is_blind = true;
    result = run(&job, &conditions, &config, 1, 1000);
    assert_int_equal(result.setting, job.count - 1);
    assert_int_equal(result.sets, 1);
    assert_int_equal(result.point_count, 0);
    assert_true(result.measurements < 40);
}

static void steps_seen_only_in_the_signal_do(void **state)
{
    const struct train_world_job job = make_job(0.3);
    const struct wg_train_config config = config_of("cost:0.5");

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct train_world_conditions conditions = usual();

        conditions.is_blind = true;
        const struct train_world_result result = run(&job, &conditions, &config, seed, 600);

        expect_found(&result, seed, 0.03);
        assert_int_equal(result.drifts, 0);
    }
}

/* The reckoned pace changes in the middle of a measurement, when the new setting's period is seen;
 * the steps within it are told apart from that. */
static void measurements_by_the_period_are_not_thrown_away(void **state)
{
    const struct train_world_job job = make_job(0.5);
    struct wg_train_config config = config_of("cost:0.5");
    size_t measurements = 0, discarded = 0;

    (void)state;
    config.warmup_s = 5;
    config.measure_s = 6;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct train_world_conditions conditions = usual();

        conditions.step_noise = 0.005;
        conditions.is_reckoned = true;
        const struct train_world_result result = run(&job, &conditions, &config, seed, 300);

        expect_found(&result, seed, 0.03);
        measurements += result.measurements;
        discarded += result.discarded;
    }
    if (!(discarded * 10 <= measurements))
        fail_msg("%zu of %zu measurements thrown away", discarded, measurements);
}

static void long_steps_and_epochs_are_measured_one_by_one(void **state)
{
    static const double steps_s[] = {10, 60, 300};
    const struct wg_train_config config = config_of("cost:0.5");

    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            const struct train_world_job job = make_job(steps_s[i]);
            struct train_world_conditions conditions = usual();

            conditions.step_noise = 0.01;
            const struct train_world_result result =
                run(&job, &conditions, &config, seed, 60 * steps_s[i]);

            expect_found(&result, seed, 0.03);
            assert_true(result.hold_s < 55 * steps_s[i]);
        }
}

static void a_caller_that_asks_once_loses_only_time(void **state)
{
    const struct train_world_job job = make_job(0.1);
    const struct wg_train_config config = config_of("cost:0.5");
    struct train_world_conditions conditions = usual();

    (void)state;
    conditions.asks_once = true;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        const struct train_world_result result = run(&job, &conditions, &config, seed, 200);

        expect_found(&result, seed, 0.02);
    }
}

static void a_budget_ends_the_search(void **state)
{
    const struct train_world_job job = make_job(0.1);
    const struct train_world_conditions conditions = usual();
    struct wg_train_config config = config_of("energy");

    (void)state;
    config.budget_s = 8;
    const struct train_world_result result = run(&job, &conditions, &config, 1, 200);

    assert_true(result.hold_s < 25);
    assert_true(result.point_count >= 1 && result.point_count <= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_that_act_late_are_waited_for),
        cmocka_unit_test(a_long_warm_up_is_seen),
        cmocka_unit_test(a_given_warm_up_is_kept),
        cmocka_unit_test(throttled_measurements_are_thrown_away),
        cmocka_unit_test(a_device_that_is_always_throttled_is_not_waited_for),
        cmocka_unit_test(steps_that_are_told_by_tens_are_as_good),
        cmocka_unit_test(pauses_are_neither_steps_nor_drift),
        cmocka_unit_test(nothing_drifts_in_a_steady_job),
        cmocka_unit_test(a_job_that_becomes_faster_in_the_search_leaves_no_profile_of_two_worlds),
        cmocka_unit_test(drift_is_checked_again_and_not_for_ever),
        cmocka_unit_test(what_somebody_else_sets_is_left_alone),
        cmocka_unit_test(a_refused_setting_leaves_the_search),
        cmocka_unit_test(steps_that_stop_are_not_waited_for),
        cmocka_unit_test(a_job_that_shows_no_steps_keeps_the_largest_setting),
        cmocka_unit_test(steps_seen_only_in_the_signal_do),
        cmocka_unit_test(measurements_by_the_period_are_not_thrown_away),
        cmocka_unit_test(long_steps_and_epochs_are_measured_one_by_one),
        cmocka_unit_test(a_caller_that_asks_once_loses_only_time),
        cmocka_unit_test(a_budget_ends_the_search),
    };

    return run_tests(tests);
}
