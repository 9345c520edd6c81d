/* SPDX-License-Identifier: MIT
 *
 * The generic constrained search: where it begins, that it finds what is there, and what it does
 * with limits, bounds, minima and switches.
 */
#include "support/check.h"
#include "support/tuner_stage.h"

#include <string.h>

static void the_default_comes_first_and_of_one_knob_its_middle_second(void **state)
{
    struct wg_tuning_space *space = tuning_space(1);
    const struct wg_tuner_config config = tuning_config(space, WG_TUNER_CBO, 0.1);
    struct wg_tuner *tuner = tuning_tuner(&config);

    (void)state;
    struct wg_tuner_question question = tuning_ask(tuner);
    assert_int_equal(question.configuration, TUNING_CLOCKS - 1);
    assert_int_equal(question.reason, WG_TUNER_DEFAULT);
    struct wg_trial trial = tuning_trial(space, question.configuration, 0, NULL);
    tuning_tell(tuner, &trial);
    question = tuning_ask(tuner);
    assert_int_equal(question.configuration, TUNING_CLOCKS / 2);
    assert_int_equal(question.reason, WG_TUNER_START);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

/* Of an even number of levels either middle one, by chance. */
static void of_two_middles_either_is_taken(void **state)
{
    static const struct wg_tuning_knob knob = {
        "cap", WG_TUNING_POWER_LIMIT, tuning_clocks, NULL, TUNING_CLOCKS - 1, 7, 0};
    struct wg_tuning_space *space = NULL;
    unsigned taken[TUNING_CLOCKS] = {0};

    (void)state;
    assert_int_equal(wg__tuning_space_box(&space, &knob, 1, NULL, NULL, NULL), WG_OK);
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct wg_tuner_config config = tuning_config(space, WG_TUNER_CBO, 0.1);
        config.seed = seed;
        struct wg_tuner *tuner = tuning_tuner(&config);
        const struct wg_trial trial = tuning_trial(space, 7, 0, NULL);

        tuning_tell(tuner, &trial);
        taken[tuning_ask(tuner).configuration]++;
        wg__tuner_free(tuner);
    }
    assert_int_equal(taken[3] + taken[4], 40);
    assert_in_range(taken[3], 8, 32);
    wg__tuning_space_free(space);
}

static void finds_the_optimum_in_a_third_of_the_space_and_says_why_it_stops(void **state)
{
    struct wg_tuning_space *space = tuning_space(3);
    size_t where = space->count, right = 0, trials = 0;
    const double least = tuning_optimum(space, 0.15, &where);

    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct wg_tuner_config config = tuning_config(space, WG_TUNER_CBO, 0.15);
        struct wg_tuner_question question;
        struct wg_rng rng;
        double time_s, energy_j;

        config.seed = seed;
        config.max_trials = 60;
        wg__rng_init(&rng, seed);
        struct wg_tuner *tuner = tuning_tuner(&config);
        while (question = tuning_ask(tuner), question.kind == WG_TUNER_MEASURE) {
            const struct wg_trial trial = tuning_trial(space, question.configuration, 0.02, &rng);
            tuning_tell(tuner, &trial);
        }
        const struct wg_tuner_result result = tuning_result(tuner);
        tuning_truth(space, result.configuration, &time_s, &energy_j);
        right += time_s <= 0.15 && energy_j <= 1.05 * least;
        trials += result.trials;
        assert_int_equal(question.end, WG_TUNER_CONVERGED);
        assert_non_null(strstr(question.why, "no trial is expected to save more than"));
        assert_true(result.expected_saving < 0.003);
        check_close(result.forecast.objective, energy_j, 0.08);
        check_close(result.forecast.figures[0], time_s, 0.08);
        wg__tuner_free(tuner);
    }
    assert_in_range(right, 8, 10);
    assert_in_range(trials, 40, 360); /* of 108 each */
    wg__tuning_space_free(space);
}

static void with_nothing_within_the_limit_the_most_probable_is_returned(void **state)
{
    struct wg_tuning_space *space = tuning_space(2);
    struct wg_tuner_config config = tuning_config(space, WG_TUNER_CBO, 0.04); /* least: 0.05 */
    struct wg_tuner_question question;

    (void)state;
    config.max_trials = 12;
    struct wg_tuner *tuner = tuning_tuner(&config);
    while (question = tuning_ask(tuner), question.kind == WG_TUNER_MEASURE) {
        const struct wg_trial trial = tuning_trial(space, question.configuration, 0, NULL);

        assert_true(question.reason == WG_TUNER_DEFAULT || question.reason == WG_TUNER_FEASIBLE);
        tuning_tell(tuner, &trial);
    }
    const struct wg_tuner_result result = tuning_result(tuner);
    assert_false(result.is_feasible);
    assert_false(result.is_validated);
    assert_int_equal(result.configuration, space->default_configuration); /* the fastest */
    assert_int_equal(result.runner_up, space->count);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

/* A second limit, from below: a throughput. Both must hold. */
static void holds_a_maximum_and_a_minimum_at_once(void **state)
{
    struct wg_tuning_space *space = tuning_space(2);
    struct wg_tuner_config config = tuning_config(space, WG_TUNER_CBO, 0.2);
    struct wg_tuner_question question;
    double least = 1e300;

    (void)state;
    config.goal.limit_count = 2;
    config.goal.limits[1] = (struct wg_tuning_limit){
        .name = "requests_per_s", .kind = WG_TUNING_OTHER, .bound = 22, .is_minimum = true};
    for (size_t c = 0; c < space->count; c++) {
        const struct wg_trial trial = tuning_trial(space, c, 0, NULL);
        const double rate = wg__tuning_value(space, c, 1) / trial.figures[0];

        if (trial.figures[0] <= 0.2 && rate >= 22)
            least = fmin(least, trial.objective);
    }
    struct wg_tuner *tuner = tuning_tuner(&config);
    while (question = tuning_ask(tuner), question.kind == WG_TUNER_MEASURE) {
        struct wg_trial trial = tuning_trial(space, question.configuration, 0, NULL);

        trial.figures[1] = wg__tuning_value(space, question.configuration, 1) / trial.figures[0];
        tuning_tell(tuner, &trial);
    }
    const struct wg_tuner_result result = tuning_result(tuner);
    const struct wg_trial found = tuning_trial(space, result.configuration, 0, NULL);
    const double rate = wg__tuning_value(space, result.configuration, 1) / found.figures[0];
    assert_true(result.is_feasible);
    assert_true(found.figures[0] <= 0.2 && rate >= 22);
    check_close(found.objective, least, 0.05);
    check_close(result.forecast.figures[1], rate, 0.05);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

/* The window of the slow one was ended at twice the limit, its energy unknown. */
static void a_cut_trial_counts_as_a_bound(void **state)
{
    struct wg_tuning_space *space = tuning_space(1);
    const struct wg_tuner_config config = tuning_config(space, WG_TUNER_CBO, 0.1);
    struct wg_tuner *tuner = tuning_tuner(&config);
    const struct wg_trial fast = tuning_trial(space, 8, 0, NULL);
    const struct wg_trial cut = {
        .configuration = 0, .outcome = WG_TRIAL_CUT, .objective = (double)NAN, .figures = {0.2}};
    struct wg_tuning_forecast before, after;

    (void)state;
    tuning_tell(tuner, &fast);
    assert_true(wg__tuner_forecast(tuner, 0, &before));
    tuning_tell(tuner, &cut);
    assert_true(wg__tuner_forecast(tuner, 0, &after));
    assert_true(after.figures[0] > 1.5 * before.figures[0]);
    assert_true(after.figure_sds[0] > 0.08); /* it is a bound, not a measurement */
    assert_true(after.feasible < 0.05 && before.feasible > 0.3);
    assert_int_equal(tuning_result(tuner).trials, 2);
    assert_int_equal(tuning_result(tuner).configuration, 8);
    assert_false(wg__tuner_is_banned(tuner, 0));
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

/* Engines that take a minute to change against trials of a second: few changes, and the same end.
 */
static size_t count_switches(double trial_s, uint64_t seed, double *energy_out)
{
    struct wg_tuning_space *space = tuning_space(3);
    struct wg_tuner_config config = tuning_config(space, WG_TUNER_CBO, 0.15);
    struct wg_tuner_question question;
    size_t switches = 0, engine = 0;
    double time_s;

    config.trial_s = trial_s;
    config.seed = seed;
    struct wg_tuner *tuner = tuning_tuner(&config);
    while (question = tuning_ask(tuner), question.kind == WG_TUNER_MEASURE) {
        const struct wg_trial trial = tuning_trial(space, question.configuration, 0, NULL);

        switches += engine != wg__tuning_level(space, question.configuration, 2);
        engine = wg__tuning_level(space, question.configuration, 2);
        tuning_tell(tuner, &trial);
    }
    tuning_truth(space, tuning_result(tuner).configuration, &time_s, energy_out);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
    return switches;
}

static void groups_that_are_dear_to_enter_are_finished_first(void **state)
{
    size_t free_of_cost = 0, weighed = 0;
    double loss = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        double cheap, dear;

        free_of_cost += count_switches(0, seed, &cheap);
        weighed += count_switches(1, seed, &dear);
        loss += dear / cheap - 1;
    }
    assert_true(weighed * 2 <= free_of_cost);
    assert_true(loss / 10 < 0.03);
}

/* All trials at the default fail: it searches on without it. */
static void goes_on_when_the_default_crashes(void **state)
{
    struct wg_tuning_space *space = tuning_space(2);
    const struct wg_tuner_config config = tuning_config(space, WG_TUNER_CBO, 0.15);
    struct wg_tuner *tuner = tuning_tuner(&config);
    struct wg_tuner_question question = tuning_ask(tuner);
    const struct wg_trial crash = {.configuration = question.configuration,
                                   .outcome = WG_TRIAL_CRASHED};
    size_t where;

    (void)state;
    tuning_tell(tuner, &crash);
    tuning_tell(tuner, &crash);
    while (question = tuning_ask(tuner), question.kind == WG_TUNER_MEASURE) {
        const struct wg_trial trial = tuning_trial(space, question.configuration, 0, NULL);

        assert_int_not_equal(question.configuration, space->default_configuration);
        tuning_tell(tuner, &trial);
    }
    const struct wg_tuner_result result = tuning_result(tuner);
    const struct wg_trial found = tuning_trial(space, result.configuration, 0, NULL);
    assert_true(result.is_feasible && found.figures[0] <= 0.15);
    check_close(found.objective, tuning_optimum(space, 0.15, &where), 0.05);
    assert_int_equal(result.failed_trials, 2);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

static void every_failing_allocation_is_reported_and_the_next_call_goes_on(void **state)
{
    (void)state;
    tuning_check_allocations(WG_TUNER_CBO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_comes_first_and_of_one_knob_its_middle_second),
        cmocka_unit_test(of_two_middles_either_is_taken),
        cmocka_unit_test(finds_the_optimum_in_a_third_of_the_space_and_says_why_it_stops),
        cmocka_unit_test(with_nothing_within_the_limit_the_most_probable_is_returned),
        cmocka_unit_test(holds_a_maximum_and_a_minimum_at_once),
        cmocka_unit_test(a_cut_trial_counts_as_a_bound),
        cmocka_unit_test(groups_that_are_dear_to_enter_are_finished_first),
        cmocka_unit_test(goes_on_when_the_default_crashes),
        cmocka_unit_test(every_failing_allocation_is_reported_and_the_next_call_goes_on),
    };
    return run_tests(tests);
}
