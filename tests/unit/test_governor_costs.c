/* SPDX-License-Identifier: MIT
 *
 * Costs per epoch from profiles, surveys, neighbours and another GPU, and the plan of the surveys,
 * all worked by hand. Arms are the batch sizes 8, 16, 32, ...: one octave apart.
 */
#include "support/governor_stage.h"

static const struct wg_governor_constants *const c = &wg__governor_constants;

static void profile(struct stage *stage, size_t arm, double best_j, double max_limit_j,
                    double first_j)
{
    const struct wg_batch_profile told = {best_j, max_limit_j, first_j};
    stage->driver.ops->tell_profile(stage->driver.policy, arm, &told);
}

static void survey(struct stage *stage, size_t arm, double max_limit_j)
{
    stage->driver.ops->tell_survey(stage->driver.policy, arm, max_limit_j, 1);
}

static struct stage open_arms(size_t arms, size_t default_arm)
{
    const struct toy_world world = make_world(arms, default_arm);
    return open_stage(&world, 1);
}

static void check_costs(const struct stage *stage, const double *expected_j)
{
    wg__governor_update_costs(stage->governor);
    for (size_t i = 0; i < stage->world.arm_count; i++)
        check_close(stage->governor->cost[i].epoch_j, expected_j[i], 1e-12);
}

static void arms_are_alike_before_anything_is_known(void **state)
{
    (void)state;
    struct stage stage = open_arms(4, 1);
    check_costs(&stage, (const double[]){1, 1, 1, 1});
    close_stage(&stage);
}

static void one_known_arm_is_flat_above_and_rises_below(void **state)
{
    (void)state;
    struct stage stage = open_arms(5, 2);
    profile(&stage, 2, 100, 125, 150);
    check_costs(&stage, (const double[]){100 * exp(2 * c->slope_below), 100 * exp(c->slope_below),
                                         100, 100, 100});
    close_stage(&stage);
}

/* Arm 2 saves a fifth at its best limit, and so will arm 4: 50 J become 40 J. Between them lies
 * their geometric mean. Once arm 4 is profiled it counts itself, and arm 0 saves the geometric mean
 * of a fifth and a half. */
static void surveys_count_what_the_profiled_arms_save(void **state)
{
    (void)state;
    struct stage stage = open_arms(5, 2);
    profile(&stage, 2, 100, 125, 150);
    survey(&stage, 4, 50);
    check_costs(&stage, (const double[]){100 * exp(2 * c->slope_below), 100 * exp(c->slope_below),
                                         100, sqrt(100 * 40), 40});
    profile(&stage, 4, 30, 60, 60);
    survey(&stage, 0, 500);
    const double smallest = 500 * sqrt(0.8 * 0.5);
    check_costs(&stage, (const double[]){smallest, sqrt(smallest * 100), 100, sqrt(3000), 30});
    close_stage(&stage);
}

static void a_survey_alone_saves_nothing(void **state)
{
    (void)state;
    struct stage stage = open_arms(2, 0);
    survey(&stage, 1, 50);
    check_costs(&stage, (const double[]){50 * exp(c->slope_below), 50});
    close_stage(&stage);
}

/* 8 and 64 are three octaves apart; 24 lies log2 3 above 8. */
static void interpolates_by_the_logarithm_of_the_batch_size(void **state)
{
    (void)state;
    struct wg_batch_job job = make_batch_job(3, 0, 1);
    job.batch_size[1] = 24;
    job.batch_size[2] = 64;
    const struct wg_batch_options options = {0};
    struct stage stage = {.world = make_world(3, 0)};
    stage.driver = start_driver(&wg__batch_policy_wattgov, &job, &options, 1);
    stage.governor = (struct wg_governor *)stage.driver.policy;
    profile(&stage, 0, 80, 80, 80);
    profile(&stage, 2, 10, 10, 10);
    /* A line through (0, ln 80) and (3, ln 10): 8 times less over 3 octaves is half per octave. */
    check_costs(&stage, (const double[]){80, 80 / 3.0, 10});
    close_stage(&stage);
}

/* There: 10, 20, 40, 80, 160 J. Here arm 1 costs twice and arm 3 eight times that, so arm 2 costs
 * four times; beyond, the ratio stays that of the nearest. */
static void another_gpus_costs_are_scaled_by_what_is_known_here(void **state)
{
    (void)state;
    struct stage there = open_arms(5, 1), here = open_arms(5, 1);
    for (size_t i = 0; i < 5; i++)
        profile(&there, i, ldexp(10, (int)i), ldexp(10, (int)i), 99);
    wg__governor_update_costs(there.governor);
    const size_t same[] = {0, 1, 2, 3, 4};
    here.driver.ops->transfer(here.driver.policy, there.driver.policy, same);
    check_costs(&here, (const double[]){1, 1, 1, 1, 1}); /* no arm to compare with */
    profile(&here, 1, 40, 40, 60);
    check_costs(&here, (const double[]){20, 40, 80, 160, 320});
    profile(&here, 3, 640, 640, 660);
    check_costs(&here, (const double[]){20, 40, 160, 640, 1280});
    close_stage(&there);
    close_stage(&here);
}

/* Ours are 8, 16, 32, 64; there only 16 and 64 are the same. */
static void arms_that_the_other_gpu_lacks_are_interpolated(void **state)
{
    (void)state;
    struct stage there = open_arms(3, 0), here = open_arms(4, 1);
    for (size_t i = 0; i < 3; i++)
        profile(&there, i, 10 + 10 * (double)i, 99, 99);
    wg__governor_update_costs(there.governor);
    const size_t ours[] = {1, SIZE_MAX, 3};
    here.driver.ops->transfer(here.driver.policy, there.driver.policy, ours);
    profile(&here, 1, 20, 20, 30); /* twice; so arm 3 costs 60 */
    check_costs(&here, (const double[]){20 * exp(c->slope_below), 20, sqrt(20 * 60), 60});
    close_stage(&there);
    close_stage(&here);
}

/* First epochs cost 1.5 and 2.5 times an epoch: one epoch more on average. */
static void the_premium_is_what_first_epochs_cost_above_others(void **state)
{
    (void)state;
    struct stage stage = open_arms(3, 1);
    check_close_abs(wg__governor_premium_j(stage.governor, 2), 0, 0, 0);
    profile(&stage, 0, 10, 10, 15);
    profile(&stage, 1, 20, 20, 50);
    wg__governor_update_costs(stage.governor);
    check_close(wg__governor_premium_j(stage.governor, 2), 20, 1e-12);
    check_close_abs(wg__governor_premium_j(stage.governor, 1), 0, 0, 0);
    close_stage(&stage);
}

/* The default is known, its run cost `affordable` surveys' worth of the share for surveys; each
 * survey costs 1 J. Notes which arms are surveyed; returns how many, and the first one. */
static size_t survey_all(size_t arms, size_t default_arm, double affordable, bool *is_surveyed,
                         size_t *first_out)
{
    struct stage stage = open_arms(arms, default_arm);
    profile(&stage, default_arm, 10, 10, 15);
    stage.governor->first_run_j = affordable / c->survey_share;
    size_t count = 0, arm, last = 0;
    for (size_t i = 0; i < arms; i++)
        is_surveyed[i] = false;
    while (wg__governor_next_survey(stage.governor, &arm)) {
        assert_true(arm < arms && arm != default_arm);
        assert_false(is_surveyed[arm]); /* none twice */
        assert_true(count < 2 || arm > last);
        is_surveyed[arm] = true;
        last = arm;
        if (count++ == 0)
            *first_out = arm;
        survey(&stage, arm, 10);
    }
    close_stage(&stage);
    return count;
}

static void surveys_every_arm_when_the_first_run_was_dear(void **state)
{
    (void)state;
    bool is_surveyed[9];
    size_t first;
    assert_int_equal(survey_all(9, 4, 8.001, is_surveyed, &first), 8);
    assert_int_equal(first, 8);
}

/* Nine arms, the default in the middle. After the largest come the default's neighbours, then the
 * widest gap: with 3, 4, 5 and 8 known that is arm 0, three octaves away, which counts half: 1.5.
 * Then arm 6, one octave away. */
static void surveys_in_the_order_of_need_when_money_is_short(void **state)
{
    (void)state;
    const struct {
        double affordable;
        bool is_surveyed[9];
    } cases[] = {
        {0.01, {[8] = true, [5] = true}}, /* two at least */
        {2.9, {[8] = true, [5] = true}},
        {3.5, {[8] = true, [5] = true, [3] = true}},
        {4.5, {[8] = true, [5] = true, [3] = true, [0] = true}},
        {5.5, {[8] = true, [5] = true, [3] = true, [0] = true, [6] = true}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool is_surveyed[9];
        size_t first;
        (void)survey_all(9, 4, cases[i].affordable, is_surveyed, &first);
        assert_int_equal(first, 8);
        for (size_t arm = 0; arm < 9; arm++)
            assert_int_equal(is_surveyed[arm], cases[i].is_surveyed[arm]);
    }
}

static void plans_at_the_edges(void **state)
{
    (void)state;
    bool is_surveyed[WG_ARMS_MAX];
    size_t first;
    assert_int_equal(survey_all(1, 0, 100, is_surveyed, &first), 0);
    assert_int_equal(survey_all(2, 1, 0.01, is_surveyed, &first), 1);
    assert_int_equal(survey_all(5, 4, 0.01, is_surveyed, &first), 2); /* the largest is known */
    assert_int_equal(first, 3);
    assert_int_equal(survey_all(5, 0, 0.01, is_surveyed, &first), 2);
    assert_true(is_surveyed[4] && is_surveyed[1]);
    assert_int_equal(survey_all(WG_ARMS_MAX, 63, 1000, is_surveyed, &first), 63);
    for (unsigned step = 0; step < 100; step++) {
        const double affordable = 0.05 + 0.7 * step;
        const size_t count = survey_all(WG_ARMS_MAX, 30, affordable, is_surveyed, &first);
        assert_true((double)count <= fmax(2, affordable));
        assert_true((double)count >= fmin(63, floor(affordable)));
    }
}

/* A survey that costs nothing must not ask for ever. */
static void free_surveys_end(void **state)
{
    (void)state;
    struct stage stage = open_arms(6, 2);
    profile(&stage, 2, 10, 10, 15);
    stage.governor->first_run_j = 100;
    size_t count = 0, arm;
    while (wg__governor_next_survey(stage.governor, &arm)) {
        assert_true(++count <= 5);
        stage.driver.ops->tell_survey(stage.driver.policy, arm, 10, 0);
    }
    assert_int_equal(count, 5);
    close_stage(&stage);
}

/* Without a first run of its own, a transferred policy surveys the arms that may be best. */
static void after_a_transfer_surveys_the_arms_near_the_best(void **state)
{
    (void)state;
    struct stage stage = open_arms(6, 2);
    size_t arm;
    assert_true(wg__governor_next_survey(stage.governor, &arm));
    assert_int_equal(arm, 5);
    survey(&stage, 5, 10);
    const double factors[] = {1.2, 0.5, 0.9, 0.25, 1.01, 9};
    for (size_t i = 0; i < 6; i++) /* arm 3 is the least: 1/4 of the reach */
        stage.governor->expected_j[i] = 100 * factors[i] * c->survey_reach;
    stage.governor->expected_j[3] = 100;
    bool planned[6] = {false};
    while (wg__governor_next_survey(stage.governor, &arm)) {
        planned[arm] = true;
        survey(&stage, arm, 10);
    }
    assert_false(planned[0] || planned[4] || planned[5]); /* too dear, too dear, known */
    assert_true(planned[1] && planned[2] && planned[3]);
    close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arms_are_alike_before_anything_is_known),
        cmocka_unit_test(one_known_arm_is_flat_above_and_rises_below),
        cmocka_unit_test(surveys_count_what_the_profiled_arms_save),
        cmocka_unit_test(a_survey_alone_saves_nothing),
        cmocka_unit_test(interpolates_by_the_logarithm_of_the_batch_size),
        cmocka_unit_test(another_gpus_costs_are_scaled_by_what_is_known_here),
        cmocka_unit_test(arms_that_the_other_gpu_lacks_are_interpolated),
        cmocka_unit_test(the_premium_is_what_first_epochs_cost_above_others),
        cmocka_unit_test(surveys_every_arm_when_the_first_run_was_dear),
        cmocka_unit_test(surveys_in_the_order_of_need_when_money_is_short),
        cmocka_unit_test(plans_at_the_edges),
        cmocka_unit_test(free_surveys_end),
        cmocka_unit_test(after_a_transfer_surveys_the_arms_near_the_best),
    };
    return run_tests(tests);
}
