/* SPDX-License-Identifier: MIT
 *
 * The chance that a trial works: hand-worked values, and a search that learns where memory ends.
 */
#include "support/check.h"
#include "support/tuner_stage.h"

#include "optimize/tuning_policy.h"

static void is_certain_while_nothing_failed(void **state)
{
    struct wg_tuning_space *space = tuning_space(3);
    const struct wg_trial worked = {.configuration = 5};
    const struct wg_tuning_view view = {.space = space, .trials = &worked, .trial_count = 1};

    (void)state;
    for (size_t c = 0; c < space->count; c++)
        assert_true(wg__tuning_log_survival(&view, c) == 0);
    wg__tuning_space_free(space);
}

/* One knob of nine levels: a step is 1/8, and beyond a distance of 0.9 nothing is known. */
static void falls_near_failures_and_rises_near_successes(void **state)
{
    struct wg_tuning_space *space = tuning_space(1);
    const struct wg_trial failures[] = {
        {.configuration = 8, .outcome = WG_TRIAL_OUT_OF_MEMORY},
        {.configuration = 8, .outcome = WG_TRIAL_CRASHED},
    };
    const struct wg_trial worked = {.configuration = 6};
    struct wg_tuning_view view = {.space = space, .failures = failures, .failure_count = 1};
    const double one = pow(1 - 1 / (64 * 0.81), 2), two = pow(1 - 4 / (64 * 0.81), 2);

    (void)state;
    check_close(wg__tuning_log_survival(&view, 8), -1 / 1.5, 1e-14);
    check_close(wg__tuning_log_survival(&view, 7), -one * one / (0.5 + one), 1e-14);
    assert_true(wg__tuning_log_survival(&view, 0) == 0);
    view.failure_count = 2;
    check_close(wg__tuning_log_survival(&view, 8), -4 / 2.5, 1e-14);
    view.trials = &worked;
    view.trial_count = 1;
    check_close(wg__tuning_log_survival(&view, 8), -4 / (2.5 + two), 1e-14);
    wg__tuning_space_free(space);
}

static void knows_nothing_of_other_categories(void **state)
{
    struct wg_tuning_space *space = tuning_space(3);
    const struct wg_trial failure = {.configuration = 0, .outcome = WG_TRIAL_OUT_OF_MEMORY};
    const struct wg_tuning_view view = {.space = space, .failures = &failure, .failure_count = 1};

    (void)state;
    assert_true(wg__tuning_log_survival(&view, 1) == 0);             /* the next engine */
    assert_true(wg__tuning_log_survival(&view, TUNING_ENGINES) < 0); /* the next batch */
    wg__tuning_space_free(space);
}

/* Whatever is fast fails, and no knob's role would say so: a board that browns out. */
static void a_search_learns_where_trials_fail(void **state)
{
    enum { LEVELS = 20 };
    static const double highest = LEVELS, works = 0.5;
    double levels[LEVELS];
    for (size_t i = 0; i < LEVELS; i++)
        levels[i] = 1 + (double)i;
    const struct wg_tuning_knob knobs[] = {
        {"clock", WG_TUNING_GPU_CLOCK, levels, NULL, LEVELS, LEVELS - 1, 0},
        {"cores", WG_TUNING_CORES, levels, NULL, LEVELS, LEVELS - 1, 0},
    };
    struct wg_tuning_space *space = NULL;
    struct wg_tuner_question question;

    (void)state;
    assert_int_equal(wg__tuning_space_box(&space, knobs, 2, NULL, NULL, NULL), WG_OK);
    struct wg_tuner_config config = tuning_config(space, WG_TUNER_CBO, 1);
    config.max_trials = 80;
    struct wg_tuner *tuner = tuning_tuner(&config);
    while (question = tuning_ask(tuner), question.kind == WG_TUNER_MEASURE) {
        const double f = wg__tuning_value(space, question.configuration, 0) / highest;
        const double n = wg__tuning_value(space, question.configuration, 1) / highest;
        const struct wg_trial trial = {.configuration = question.configuration,
                                       .outcome = f > works ? WG_TRIAL_CRASHED : WG_TRIAL_MEASURED,
                                       .objective = (0.1 + 0.2 / f) * (0.3 + f * f * f + n),
                                       .figures = {0.1 + 0.2 / f + 0.02 / n}};
        tuning_tell(tuner, &trial);
    }
    const struct wg_tuner_result result = tuning_result(tuner);
    assert_int_equal(question.end, WG_TUNER_CONVERGED);
    assert_true(result.is_feasible);
    assert_in_range(result.failed_trials, 1, 20); /* of the 200 that would fail */
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_certain_while_nothing_failed),
        cmocka_unit_test(falls_near_failures_and_rises_near_successes),
        cmocka_unit_test(knows_nothing_of_other_categories),
        cmocka_unit_test(a_search_learns_where_trials_fail),
    };
    return run_tests(tests);
}
