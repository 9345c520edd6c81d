/* SPDX-License-Identifier: MIT
 *
 * The policy `wattgov` through the tuner, on boards whose figures are known in closed form.
 */
#include "support/check.h"

#include <string.h>

#include "base/alloc.h"
#include "math/normal.h"
#include "optimize/tuner.h"
#include "support/board_spaces.h"

static const double clocks[] = {300, 450, 600, 750, 900, 1050, 1200, 1350};
static const double batches[] = {1, 2, 4, 8, 16};
static const double scale_of_test = 1e-3;

static struct wg_tuning_space *box_of(bool is_reversed)
{
    const struct wg_tuning_knob clock = {"clock", WG_TUNING_GPU_CLOCK, clocks, NULL, 8, 7, 0.02};
    const struct wg_tuning_knob batch = {"batch", WG_TUNING_BATCH, batches, NULL, 5, 0, 0};
    const struct wg_tuning_knob forward[] = {clock, batch}, backward[] = {batch, clock};
    struct wg_tuning_space *space = NULL;

    assert_int_equal(
        wg__tuning_space_box(&space, is_reversed ? backward : forward, 2, NULL, NULL, NULL), WG_OK);
    return space;
}

static double value_of(const struct wg_tuning_space *space, size_t c, const char *knob)
{
    for (size_t k = 0; k < space->knob_count; k++)
        if (strcmp(space->knobs[k].name, knob) == 0)
            return wg__tuning_value(space, c, k);
    fail_msg("no knob %s", knob);
    return 0;
}

/* Seconds of a batch and joules of a request: half the time follows the clock, power its square. */
static void truth(const struct wg_tuning_space *space, size_t c, double *t_s, double *energy_j)
{
    const double f = value_of(space, c, "clock") / 1350, b = value_of(space, c, "batch");

    *t_s = 0.004 + 0.01 * (1 + b) / f;
    *energy_j = (10 + 40 * f * f) * *t_s / b;
}

static struct wg_tuner_config config_of(const struct wg_tuning_space *space, double bound)
{
    return (struct wg_tuner_config){
        .space = space,
        .goal = {.objective = WG_TUNING_ENERGY,
                 .limit_count = 1,
                 .limits = {{.name = "t", .kind = WG_TUNING_TIME, .bound = bound}}},
        .policy = WG_TUNER_WATTGOV,
        .xi = (double)NAN,
        .seed = 3,
        .validate = true,
    };
}

static struct wg_tuner *tuner_of(const struct wg_tuner_config *config)
{
    struct wg_tuner *tuner = NULL;
    struct wg_error err = {0};

    if (wg__tuner_new(&tuner, config, &err) != WG_OK)
        fail_msg("%s", err.text);
    return tuner;
}

static struct wg_tuner_question ask(struct wg_tuner *tuner)
{
    struct wg_tuner_question question;
    struct wg_error err = {0};

    if (wg__tuner_ask(tuner, &question, &err) != WG_OK)
        fail_msg("%s", err.text);
    return question;
}

static struct wg_trial trial_of(const struct wg_tuning_space *space, size_t c)
{
    struct wg_trial trial = {.configuration = c};

    truth(space, c, &trial.figures[0], &trial.objective);
    return trial;
}

static double cheapest(const struct wg_tuning_space *space, double bound)
{
    double best = (double)INFINITY, t_s = 0, energy_j = 0;

    for (size_t c = 0; c < space->count; c++) {
        truth(space, c, &t_s, &energy_j);
        if (t_s <= bound)
            best = fmin(best, energy_j);
    }
    return best;
}

static struct wg_tuner_result run(struct wg_tuner *tuner, const struct wg_tuning_space *space,
                                  double unit)
{
    struct wg_tuner_result result;
    struct wg_tuner_question question = ask(tuner);

    for (; question.kind == WG_TUNER_MEASURE; question = ask(tuner)) {
        struct wg_trial trial = trial_of(space, question.configuration);
        trial.objective *= unit;
        trial.figures[0] *= unit;
        assert_true(question.why[0] != '\0');
        assert_int_equal(wg__tuner_tell(tuner, &trial, NULL), WG_OK);
    }
    assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
    return result;
}

static void finds_the_cheapest_within_each_limit_in_few_trials(void **state)
{
    (void)state;
    /* Each is met by the cheapest configuration with some percent to spare. */
    static const double bounds[] = {0.031, 0.052, 0.1, 0.33};
    struct wg_tuning_space *space = box_of(false);

    for (size_t i = 0; i < 4; i++) {
        const struct wg_tuner_config config = config_of(space, bounds[i]);
        struct wg_tuner *tuner = tuner_of(&config);
        const struct wg_tuner_result result = run(tuner, space, 1);
        double t_s = 0, energy_j = 0;

        truth(space, result.configuration, &t_s, &energy_j);
        assert_true(result.is_feasible && result.end == WG_TUNER_CONVERGED);
        assert_true(t_s <= bounds[i]);
        assert_true(energy_j <= 1.05 * cheapest(space, bounds[i]));
        assert_true(result.trials <= 12);
        wg__tuner_free(tuner);
    }
    wg__tuning_space_free(space);
}

static void the_units_of_time_and_energy_change_nothing(void **state)
{
    (void)state;
    struct wg_tuning_space *space = box_of(false);
    const struct wg_tuner_config seconds = config_of(space, 0.05);
    const struct wg_tuner_config other = config_of(space, 0.05 * scale_of_test);
    struct wg_tuner *a = tuner_of(&seconds), *b = tuner_of(&other);
    const struct wg_tuner_result x = run(a, space, 1), y = run(b, space, scale_of_test);

    assert_int_equal(x.configuration, y.configuration);
    assert_int_equal(x.trials, y.trials);
    check_close(y.forecast.objective, scale_of_test * x.forecast.objective, 1e-5);
    wg__tuner_free(a);
    wg__tuner_free(b);
    wg__tuning_space_free(space);
}

static void the_order_of_knobs_changes_nothing(void **state)
{
    (void)state;
    struct wg_tuning_space *forward = box_of(false), *backward = box_of(true);
    const struct wg_tuner_config one = config_of(forward, 0.05), two = config_of(backward, 0.05);
    struct wg_tuner *a = tuner_of(&one), *b = tuner_of(&two);
    const struct wg_tuner_result x = run(a, forward, 1), y = run(b, backward, 1);

    assert_int_equal(x.trials, y.trials);
    check_close(value_of(backward, y.configuration, "clock"),
                value_of(forward, x.configuration, "clock"), 0);
    check_close(value_of(backward, y.configuration, "batch"),
                value_of(forward, x.configuration, "batch"), 0);
    check_close(y.forecast.objective, x.forecast.objective, 1e-4);
    wg__tuner_free(a);
    wg__tuner_free(b);
    wg__tuning_space_free(forward);
    wg__tuning_space_free(backward);
}

static void a_default_that_crashes_is_replaced_as_the_reference(void **state)
{
    (void)state;
    struct wg_tuning_space *space = box_of(false);
    const struct wg_tuner_config config = config_of(space, 0.1);
    struct wg_tuner *tuner = tuner_of(&config);
    const struct wg_trial crash = {.configuration = space->default_configuration,
                                   .outcome = WG_TRIAL_CRASHED};

    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask(tuner).configuration, space->default_configuration);
        assert_int_equal(wg__tuner_tell(tuner, &crash, NULL), WG_OK);
    }
    const struct wg_tuner_result result = run(tuner, space, 1);
    double t_s = 0, energy_j = 0;

    truth(space, result.configuration, &t_s, &energy_j);
    assert_true(result.is_feasible && t_s <= 0.1);
    assert_true(energy_j <= 1.05 * cheapest(space, 0.1));
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

/* The default is the fastest of a board that browns out in the upper third of what can be set. */
static void walks_away_from_a_default_around_which_nothing_works(void **state)
{
    (void)state;
    struct wg_tuning_space *space = inference_space();
    const struct wg_tuner_config config = config_of(space, 1e9);
    struct wg_tuner *tuner = tuner_of(&config);
    size_t failed = 0;

    for (;; failed++) {
        const struct wg_tuner_question question = ask(tuner);
        double places = 0;
        assert_int_equal(question.kind, WG_TUNER_MEASURE);
        for (size_t k = 0; k < 4; k++)
            places += (double)wg__tuning_level(space, question.configuration, k) /
                      (double)(space->knobs[k].count - 1);
        if (places < 2.33)
            break;
        const struct wg_trial crash = {.configuration = question.configuration,
                                       .outcome = WG_TRIAL_CRASHED};
        assert_int_equal(wg__tuner_tell(tuner, &crash, NULL), WG_OK);
    }
    assert_in_range(failed, 2, 12);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

/* Figures that no board has: whatever is measured with an error of 2 % is believed within 5 of
 * them. */
static void believes_what_was_plainly_measured_whatever_boards_do(void **state)
{
    (void)state;
    static const double cost[] = {20.6, 15.4, 7.4, 2.6, 1, 1.4, 30};
    static const double levels[] = {1, 2, 4, 6, 8, 9, 16};
    const struct wg_tuning_knob knob = {"batch", WG_TUNING_BATCH, levels, NULL, 7, 0, 0};
    struct wg_tuning_space *space = NULL;

    assert_int_equal(wg__tuning_space_box(&space, &knob, 1, NULL, NULL, NULL), WG_OK);
    for (unsigned order = 0; order < 7; order++) {
        struct wg_tuner_config config = config_of(space, 1e9);
        config.noise = 0.02;
        struct wg_tuner *tuner = tuner_of(&config);
        struct wg_tuner_result result;
        for (size_t i = 0; i < 7; i++) {
            const size_t c = (order + 3 * i) % 7;
            const struct wg_trial trial = {
                .configuration = c, .objective = cost[c], .figures = {0.01 * levels[c]}};
            assert_int_equal(wg__tuner_tell(tuner, &trial, NULL), WG_OK);
            (void)ask(tuner);
            if (c == 4 || i == 6) {
                assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
                assert_int_equal(result.configuration, 4);
                check_close(result.forecast.objective, cost[4], 0.1);
            }
        }
        wg__tuner_free(tuner);
    }
    wg__tuning_space_free(space);
}

/* A bound above what is believed moves the belief up; one below it moves nothing. */
static void a_cut_trial_never_lowers_what_is_believed(void **state)
{
    (void)state;
    struct wg_tuning_space *space = box_of(false);
    const struct wg_tuner_config config = config_of(space, 0.1);
    const size_t slow = 2; /* 300 MHz, batch 4 */

    for (int i = 0; i < 2; i++) {
        struct wg_tuner *tuner = tuner_of(&config);
        struct wg_tuning_forecast before, after;
        const struct wg_trial first = trial_of(space, space->default_configuration);
        assert_int_equal(wg__tuner_tell(tuner, &first, NULL), WG_OK);
        assert_true(wg__tuner_forecast(tuner, slow, &before));
        const double bound = before.figures[0] * (i == 0 ? 4 : 0.25);
        const struct wg_trial cut = {.configuration = slow,
                                     .outcome = WG_TRIAL_CUT,
                                     .objective = (double)NAN,
                                     .figures = {bound}};
        assert_int_equal(wg__tuner_tell(tuner, &cut, NULL), WG_OK);
        assert_true(wg__tuner_forecast(tuner, slow, &after));
        if (i == 0)
            assert_true(after.figures[0] > 2 * before.figures[0]);
        else
            check_close(after.figures[0], before.figures[0], 1e-6);
        wg__tuner_free(tuner);
    }
    wg__tuning_space_free(space);
}

/* Memory has no physics: it is learned, and a limit on it is held. */
static void a_limit_without_physics_is_learned(void **state)
{
    (void)state;
    struct wg_tuning_space *space = box_of(false);
    struct wg_tuner_config config = config_of(space, 0.3);
    config.goal.limit_count = 3;
    config.goal.limits[1] =
        (struct wg_tuning_limit){.name = "memory", .kind = WG_TUNING_OTHER, .bound = 2.9};
    config.goal.limits[2] = (struct wg_tuning_limit){
        .name = "accuracy", .kind = WG_TUNING_OTHER, .bound = 0.7, .is_minimum = true};
    struct wg_tuner *tuner = tuner_of(&config);
    struct wg_tuner_question question = ask(tuner);

    for (; question.kind == WG_TUNER_MEASURE; question = ask(tuner)) {
        struct wg_trial trial = trial_of(space, question.configuration);
        trial.figures[1] = 1 + 0.25 * value_of(space, question.configuration, "batch");
        trial.figures[2] = 0.75;
        assert_int_equal(wg__tuner_tell(tuner, &trial, NULL), WG_OK);
    }
    struct wg_tuner_result result;
    assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
    assert_true(result.is_feasible);
    assert_true(value_of(space, result.configuration, "batch") <= 4);
    check_close(value_of(space, result.configuration, "batch"), 4, 0);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

/* Errors are relative to the figure, not to the largest one: 0.2 +- 0.2 is not surely below 0.5,
 * however small both are beside -100. */
static void a_figure_that_falls_below_0_is_as_uncertain_as_it_was_told(void **state)
{
    (void)state;
    struct wg_tuning_space *space = box_of(false);
    struct wg_tuner_config config = config_of(space, 0.1);
    config.goal.limit_count = 2;
    config.goal.limits[1] =
        (struct wg_tuning_limit){.name = "drift", .kind = WG_TUNING_OTHER, .bound = 0.5};
    struct wg_tuner *tuner = tuner_of(&config);
    struct wg_trial preset = trial_of(space, space->default_configuration);
    struct wg_trial other = trial_of(space, 0);
    struct wg_tuner_result result;

    preset.figures[1] = 0.2;
    preset.figure_errors[1] = 1;
    other.figures[1] = -100;
    other.objective = 2 * preset.objective;
    assert_int_equal(wg__tuner_tell(tuner, &preset, NULL), WG_OK);
    assert_int_equal(wg__tuner_tell(tuner, &other, NULL), WG_OK);
    assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
    assert_int_equal(result.configuration, space->default_configuration);
    assert_true(result.is_feasible && !result.is_certain);
    check_close(result.forecast.figures[1], 0.2, 0.1);
    check_close(result.forecast.figure_sds[1], 1, 0.2);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

static void every_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    struct wg_tuning_space *space = box_of(false);
    const struct wg_tuner_config config = config_of(space, 0.1);
    bool is_done = false;

    for (size_t nth = 1; !is_done && nth < 2000; nth += 1 + nth / 8) {
        struct wg_tuner *tuner = NULL;
        struct wg_tuner_question question = {.kind = WG_TUNER_MEASURE};
        wg__alloc_fail_from(nth);
        enum wg_code code = wg__tuner_new(&tuner, &config, NULL);
        for (int i = 0; i < 3 && code == WG_OK; i++) {
            code = wg__tuner_ask(tuner, &question, NULL);
            const struct wg_trial trial = trial_of(space, question.configuration);
            if (code == WG_OK)
                code = wg__tuner_tell(tuner, &trial, NULL);
        }
        wg__alloc_fail_from(0);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        is_done = code == WG_OK;
        wg__tuner_free(tuner);
    }
    assert_true(is_done);
    wg__tuning_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_cheapest_within_each_limit_in_few_trials),
        cmocka_unit_test(the_units_of_time_and_energy_change_nothing),
        cmocka_unit_test(the_order_of_knobs_changes_nothing),
        cmocka_unit_test(a_default_that_crashes_is_replaced_as_the_reference),
        cmocka_unit_test(walks_away_from_a_default_around_which_nothing_works),
        cmocka_unit_test(believes_what_was_plainly_measured_whatever_boards_do),
        cmocka_unit_test(a_cut_trial_never_lowers_what_is_believed),
        cmocka_unit_test(a_limit_without_physics_is_learned),
        cmocka_unit_test(a_figure_that_falls_below_0_is_as_uncertain_as_it_was_told),
        cmocka_unit_test(every_failed_allocation_is_an_error_and_leaks_nothing),
    };
    return run_tests(tests);
}
