/* SPDX-License-Identifier: MIT
 *
 * The surveys that the policy `wattgov` asks for: when, how many, and what they may cost.
 */
#include "support/governor_stage.h"

static const struct wg_governor_constants *const c = &wg__governor_constants;

static void every_arm_is_surveyed_before_its_first_run(void **state)
{
    (void)state;
    for (unsigned dear = 0; dear < 2; dear++) {
        struct toy_world world = make_ladder();
        world.survey_j = dear ? 150 : 1;
        struct stage stage = open_stage(&world, 3);
        for (uint64_t n = 0; n < 60; n++) {
            const struct wg_batch_step step =
                ask_for(&stage, (struct wg_batch_request){.recurrence = n});
            if (step.arm != world.default_arm)
                assert_int_equal(stage.surveys[step.arm], 1);
            (void)train(&stage, &step);
        }
        assert_int_equal(stage.surveys[world.default_arm], 0); /* its profile says more */
        close_stage(&stage);
    }
}

/* When the second run starts, the plan has been bought: within the share of the first run's cost,
 * or two surveys; then what may be spent in time; and perhaps one for the arm that was chosen. */
static void surveys_stay_within_their_budget(void **state)
{
    (void)state;
    for (int step = 0; step < 14; step++) {
        const double survey_j = 0.5 * pow(1.7, step);
        struct toy_world world = make_ladder();
        world.survey_j = survey_j;
        struct stage stage = open_stage(&world, 3);
        const double first_run_j = recur(&stage);
        check_close_abs(stage.surveys_j, 0, 0, 0);
        (void)ask_for(&stage, stage.driver.next);
        const double at_once_j = c->survey_share * first_run_j;
        const double in_time_j = c->late_survey_share * (first_run_j + stage.surveys_j);
        assert_true(stage.surveys_j <= fmax(2 * survey_j, fmax(at_once_j, in_time_j)) + survey_j);
        if (6 * survey_j <= at_once_j)
            check_close(stage.surveys_j, 6 * survey_j, 1e-12);
        close_stage(&stage);
    }
}

/* Surveys that cost a good part of a run come one by one as the runs go by, each arm once, and only
 * where what is expected lies within reach of the best. */
static void dear_surveys_are_made_in_time(void **state)
{
    (void)state;
    struct toy_world world = make_ladder();
    struct stage stage = open_stage(&world, 3);
    const double first_run_j = recur(&stage);
    stage.world.survey_j = 0.15 * first_run_j;
    size_t known_at_first = 0, known = 0;
    for (unsigned n = 0; n < 40; n++) {
        (void)recur(&stage);
        assert_true(stage.surveys_j <=
                    c->late_survey_share * stage.governor->spent_j + 3 * stage.world.survey_j);
        known = 0;
        for (size_t i = 0; i < 7; i++) {
            known += stage.governor->cost[i].is_surveyed || stage.governor->cost[i].is_profiled;
            assert_true(stage.surveys[i] <= 1);
        }
        if (n == 0)
            known_at_first = known;
    }
    assert_true(known_at_first < 5);
    wg__governor_refresh(stage.governor);
    for (size_t i = 0; i < 7; i++)
        assert_true(stage.governor->cost[i].is_surveyed || stage.governor->cost[i].is_profiled ||
                    stage.governor->expected_j[i] > c->survey_reach * stage.governor->incumbent_j);
    assert_true(known > known_at_first);
    close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_arm_is_surveyed_before_its_first_run),
        cmocka_unit_test(surveys_stay_within_their_budget),
        cmocka_unit_test(dear_surveys_are_made_in_time),
    };
    return run_tests(tests);
}
