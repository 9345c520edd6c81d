/* SPDX-License-Identifier: MIT
 *
 * What the tuner does whatever the policy: with blind search, the simplest of them.
 */
#include "support/check.h"

#include <string.h>

#include "base/alloc.h"
#include "optimize/tuner.h"

static const double clocks[] = {300, 600, 900};
static const double batches[] = {1, 4};

static struct wg_tuning_space *small_space(void)
{
    static const struct wg_tuning_knob knobs[] = {
        {"clock", WG_TUNING_GPU_CLOCK, clocks, NULL, 3, 2, 0.02},
        {"batch", WG_TUNING_BATCH, batches, NULL, 2, 0, 0},
    };
    struct wg_tuning_space *space = NULL;

    assert_int_equal(wg__tuning_space_box(&space, knobs, 2, NULL, NULL, NULL), WG_OK);
    return space;
}

static struct wg_tuner_config config_of(const struct wg_tuning_space *space)
{
    return (struct wg_tuner_config){
        .space = space,
        .goal = {.objective = WG_TUNING_ENERGY,
                 .limit_count = 1,
                 .limits = {{.name = "p99_s", .kind = WG_TUNING_TIME, .bound = 0.1}}},
        .policy = WG_TUNER_RANDOM,
        .xi = (double)NAN,
        .seed = 7,
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
    struct wg_tuner_question question, again;

    assert_int_equal(wg__tuner_ask(tuner, &question, NULL), WG_OK);
    assert_int_equal(wg__tuner_ask(tuner, &again, NULL), WG_OK);
    assert_int_equal(again.kind, question.kind);
    assert_int_equal(again.configuration, question.configuration);
    assert_string_equal(again.why, question.why);
    return question;
}

static void tell(struct wg_tuner *tuner, size_t configuration, double objective, double figure)
{
    const struct wg_trial trial = {
        .configuration = configuration, .objective = objective, .figures = {figure}};

    assert_int_equal(wg__tuner_tell(tuner, &trial, NULL), WG_OK);
}

static void tell_failure(struct wg_tuner *tuner, size_t configuration,
                         enum wg_trial_outcome outcome)
{
    const struct wg_trial trial = {.configuration = configuration, .outcome = outcome};

    assert_int_equal(wg__tuner_tell(tuner, &trial, NULL), WG_OK);
}

static void blind_search_tries_all_once_and_returns_the_best_within_the_limit(void **state)
{
    /*                            300/1 300/4 600/1 600/4 900/1 900/4 */
    static const double cost[] = {1, 2, 4, 3, 5, 6};
    static const double time_s[] = {0.2, 0.11, 0.1, 0.1, 0.05, 0.07};
    struct wg_tuning_space *space = small_space();
    const struct wg_tuner_config config = config_of(space);
    struct wg_tuner *tuner = tuner_of(&config);
    struct wg_tuner_result result;
    unsigned seen = 0;

    (void)state;
    for (size_t n = 0; n < 6; n++) {
        const struct wg_tuner_question question = ask(tuner);

        assert_int_equal(question.kind, WG_TUNER_MEASURE);
        assert_int_equal(question.reason, WG_TUNER_START);
        assert_int_equal(seen & 1U << question.configuration, 0);
        seen |= 1U << question.configuration;
        tell(tuner, question.configuration, cost[question.configuration],
             time_s[question.configuration]);
    }
    assert_int_equal(ask(tuner).kind, WG_TUNER_DONE);
    assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
    assert_int_equal(result.configuration, 3);
    assert_int_equal(result.runner_up, 2);
    assert_true(result.is_feasible && !result.is_validated);
    assert_int_equal(result.trials, 6);
    assert_int_equal(result.end, WG_TUNER_EXHAUSTED); /* the default budget is all of them */
    assert_string_equal(result.why, "every configuration was tried");
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

static void with_nothing_within_the_limit_the_nearest_is_returned_and_said_so(void **state)
{
    static const double time_s[] = {0.3, 0.25, 0.22, 0.2, 0.13, 0.12};
    struct wg_tuning_space *space = small_space();
    struct wg_tuner_config config = config_of(space);
    struct wg_tuner_result result;

    (void)state;
    config.max_trials = 20;
    struct wg_tuner *tuner = tuner_of(&config);
    assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
    assert_int_equal(result.configuration, 6);
    assert_int_equal(result.end, WG_TUNER_RUNNING);
    struct wg_tuner_question question = ask(tuner);
    for (; question.kind == WG_TUNER_MEASURE; question = ask(tuner))
        tell(tuner, question.configuration, 1, time_s[question.configuration]);
    assert_int_equal(question.end, WG_TUNER_EXHAUSTED);
    assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
    assert_int_equal(result.configuration, 5);
    assert_false(result.is_feasible);
    assert_int_equal(result.runner_up, 6);
    assert_int_equal(result.trials, 6);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

static void a_thrown_away_sample_is_asked_again_a_bounded_number_of_times(void **state)
{
    struct wg_tuning_space *space = small_space();
    const struct wg_tuner_config config = config_of(space);
    struct wg_tuner *tuner = tuner_of(&config);
    const size_t first = ask(tuner).configuration;
    struct wg_tuner_result result;

    (void)state;
    for (unsigned n = 1; n <= 3; n++) {
        tell_failure(tuner, first, WG_TRIAL_DISCARDED);
        const struct wg_tuner_question question = ask(tuner);
        assert_int_equal(question.configuration, first);
        assert_int_equal(question.reason, WG_TUNER_AGAIN);
    }
    assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
    assert_int_equal(result.trials, 0);
    tell_failure(tuner, first, WG_TRIAL_DISCARDED);
    assert_true(wg__tuner_is_banned(tuner, first));
    assert_int_not_equal(ask(tuner).configuration, first);
    assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
    assert_int_equal(result.trials, 1);
    assert_int_equal(result.failed_trials, 1);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

/* Two engines of six configurations each. */
static struct wg_tuning_space *space_of_engines(void)
{
    static const double kinds[] = {0, 1};
    static const struct wg_tuning_knob knobs[] = {
        {"engine", WG_TUNING_CATEGORY, kinds, NULL, 2, 0, 60},
        {"clock", WG_TUNING_GPU_CLOCK, clocks, NULL, 3, 2, 0.02},
        {"batch", WG_TUNING_BATCH, batches, NULL, 2, 0, 0},
    };
    struct wg_tuning_space *space = NULL;

    assert_int_equal(wg__tuning_space_box(&space, knobs, 3, NULL, NULL, NULL), WG_OK);
    return space;
}

static size_t count_banned(const struct wg_tuner *tuner, size_t from, size_t to)
{
    size_t banned = 0;

    for (size_t c = from; c < to; c++)
        banned += wg__tuner_is_banned(tuner, c);
    return banned;
}

static void a_group_that_crashes_twice_is_banned_unless_it_works_as_often(void **state)
{
    struct wg_tuning_space *space = space_of_engines();
    struct wg_tuner_config config = config_of(space);

    (void)state;
    config.max_trials = 30;
    struct wg_tuner *tuner = tuner_of(&config);
    tell_failure(tuner, 6, WG_TRIAL_CRASHED);
    assert_int_equal(count_banned(tuner, 0, 12), 1);
    tell(tuner, 8, 1, 0.05);
    tell_failure(tuner, 7, WG_TRIAL_HUNG);
    assert_int_equal(count_banned(tuner, 6, 12), 5); /* what was measured is left */
    assert_false(wg__tuner_is_banned(tuner, 8));
    assert_int_equal(count_banned(tuner, 0, 6), 0);
    wg__tuner_free(tuner);

    tuner = tuner_of(&config);
    tell(tuner, 8, 1, 0.05);
    tell(tuner, 9, 1, 0.05);
    tell_failure(tuner, 6, WG_TRIAL_CRASHED);
    tell_failure(tuner, 7, WG_TRIAL_CRASHED);
    assert_int_equal(count_banned(tuner, 0, 12), 2);
    tell_failure(tuner, 10, WG_TRIAL_CRASHED); /* three of five */
    assert_int_equal(count_banned(tuner, 6, 12), 4);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

static void out_of_memory_and_refusals_ban_what_they_imply(void **state)
{
    struct wg_tuning_space *space = space_of_engines();
    struct wg_tuner_config config = config_of(space);
    struct wg_tuner *tuner = tuner_of(&config);
    const struct wg_trial refused = {
        .configuration = 9, .outcome = WG_TRIAL_REFUSED, .refused_knob = 1};
    struct wg_tuner_result result;

    (void)state;
    tell_failure(tuner, 0, WG_TRIAL_OUT_OF_MEMORY); /* batch 1 of the first engine and clock */
    assert_true(wg__tuner_is_banned(tuner, 0) && wg__tuner_is_banned(tuner, 1));
    assert_int_equal(count_banned(tuner, 0, 12), 2);
    assert_int_equal(wg__tuner_tell(tuner, &refused, NULL), WG_OK);
    assert_int_equal(count_banned(tuner, 0, 12), 6); /* the second clock, of both engines */
    assert_false(wg__tuner_is_banned(tuner, 12));
    assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
    assert_int_equal(result.trials, 1);
    assert_int_equal(result.failed_trials, 1);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

static void figures_that_cannot_be_change_nothing(void **state)
{
    struct wg_tuning_space *space = small_space();
    const struct wg_tuner_config config = config_of(space);
    struct wg_tuner *tuner = tuner_of(&config);
    const size_t asked = ask(tuner).configuration;
    static const struct {
        struct wg_trial trial;
        const char *text;
    } cases[] = {
        {{.configuration = 6}, "configuration 6 is none of the 6"},
        {{.outcome = WG_TRIAL_OUTCOME_COUNT}, "trial outcome 7 is unknown"},
        {{.outcome = WG_TRIAL_REFUSED, .refused_knob = 2}, "the refused knob 2 is none of the 2"},
        {{.figures = {1}}, "the objective is 0, not above 0"},
        {{.objective = 1}, "p99_s is 0, which cannot be"},
        {{.objective = 1, .figures = {-1}, .outcome = WG_TRIAL_CUT},
         "p99_s is -1, which cannot be"},
        {{.objective = 1, .figures = {1}, .figure_errors = {-1}},
         "a relative standard error is not a number of at least 0"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_error err = {0};

        assert_int_equal(wg__tuner_tell(tuner, &cases[i].trial, &err), WG_EINVAL);
        assert_string_equal(err.text, cases[i].text);
        assert_int_equal(ask(tuner).configuration, asked);
    }
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

static void a_config_that_cannot_be_is_refused(void **state)
{
    struct wg_tuning_space *space = small_space();
    const struct wg_tuner_config good = config_of(space);
    struct wg_tuner_config bad[9];
    static const char *const texts[] = {
        "a tuner needs a space",
        "tuning policy 4 is unknown",
        "a relative standard error of -1: at least 0 is needed",
        "a saving of 1 to stop at: it must be in 0..1",
        "xi is -1: at least 0 is needed",
        "9 limits: at most 8 can be held",
        "the bound of limit 'p99_s' is 0, not above 0",
        "limit 1 has no name",
        "a trial of -1 s: at least 0 is needed",
    };

    (void)state;
    for (size_t i = 0; i < 9; i++)
        bad[i] = good;
    bad[0].space = NULL;
    bad[1].policy = WG_TUNER_POLICY_COUNT;
    bad[2].noise = -1;
    bad[3].stop_share = 1;
    bad[4].xi = -1;
    bad[5].goal.limit_count = 9;
    bad[6].goal.limits[0].bound = 0;
    bad[7].goal.limits[0].name = NULL;
    bad[8].trial_s = -1;
    for (size_t i = 0; i < 9; i++) {
        struct wg_tuner *tuner = NULL;
        struct wg_error err = {0};

        assert_int_equal(wg__tuner_new(&tuner, &bad[i], &err), WG_EINVAL);
        assert_string_equal(err.text, texts[i]);
        assert_null(tuner);
    }
    wg__tuning_space_free(space);
}

static void every_failing_allocation_is_reported_and_repeated_calls_go_on(void **state)
{
    struct wg_tuning_space *space = small_space();
    const struct wg_tuner_config config = config_of(space);
    const struct wg_trial trial = {.configuration = 1, .objective = 1, .figures = {1}};
    size_t failures = 0;

    (void)state;
    for (size_t nth = 1;; nth++) {
        struct wg_tuner *tuner = NULL;

        wg__alloc_fail_from(nth);
        enum wg_code code = wg__tuner_new(&tuner, &config, NULL);
        if (code == WG_OK)
            code = wg__tuner_tell(tuner, &trial, NULL);
        wg__alloc_fail_from(0);
        if (code != WG_OK) {
            assert_int_equal(code, WG_ENOMEM);
            failures++;
        }
        if (tuner != NULL && code != WG_OK)
            assert_int_equal(wg__tuner_tell(tuner, &trial, NULL), WG_OK);
        wg__tuner_free(tuner);
        if (code == WG_OK)
            break;
    }
    assert_in_range(failures, 7, 12);
    wg__tuner_free(NULL);
    wg__tuning_space_free(space);
}

/* Where every window had to be cut there is still one that its bound puts nearest. */
static void with_everything_cut_the_least_bound_is_returned(void **state)
{
    static const double time_s[] = {0.3, 0.25, 0.2, 0.2, 0.14, 0.12};
    struct wg_tuning_space *space = small_space();

    (void)state;
    for (unsigned policy = 0; policy < WG_TUNER_POLICY_COUNT; policy++) {
        struct wg_tuner_config config = config_of(space);
        struct wg_tuner_result result;

        config.policy = (enum wg_tuner_policy)policy;
        struct wg_tuner *tuner = tuner_of(&config);
        for (size_t c = 0; c < 6; c++) {
            const struct wg_trial trial = {.configuration = c,
                                           .outcome = WG_TRIAL_CUT,
                                           .objective = (double)NAN,
                                           .figures = {time_s[c]}};
            assert_int_equal(wg__tuner_tell(tuner, &trial, NULL), WG_OK);
        }
        assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
        assert_int_equal(result.configuration, 5);
        assert_false(result.is_feasible || result.is_validated);
        tell(tuner, 4, 1, 0.14); /* measured counts before cut */
        assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
        assert_int_equal(result.configuration, 4);
        wg__tuner_free(tuner);
    }
    wg__tuning_space_free(space);
}

static void the_default_comes_first_whatever_the_policy_where_that_is_asked_for(void **state)
{
    struct wg_tuning_space *space = small_space();

    (void)state;
    for (unsigned policy = 0; policy < WG_TUNER_POLICY_COUNT; policy++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct wg_tuner_config config = config_of(space);

            config.policy = (enum wg_tuner_policy)policy;
            config.seed = seed;
            config.default_first = true;
            struct wg_tuner *tuner = tuner_of(&config);
            const struct wg_tuner_question question = ask(tuner);
            assert_int_equal(question.configuration, space->default_configuration);
            assert_int_equal(question.reason, WG_TUNER_DEFAULT);
            tell_failure(tuner, question.configuration, WG_TRIAL_OUT_OF_MEMORY);
            assert_int_not_equal(ask(tuner).configuration, space->default_configuration);
            wg__tuner_free(tuner);
        }
    }
    wg__tuning_space_free(space);
}

/* Its first crash may have been an accident; its second one was none. */
static void a_default_that_failed_has_a_second_try(void **state)
{
    struct wg_tuning_space *space = small_space();
    const size_t first = space->default_configuration;

    (void)state;
    for (unsigned policy = 0; policy < 2U * WG_TUNER_POLICY_COUNT; policy++) {
        const bool has_hung = policy % 2 == 1, works_then = policy % 3 == 0;
        struct wg_tuner_config config = config_of(space);
        config.policy = (enum wg_tuner_policy)(policy / 2);
        config.default_first = true;
        struct wg_tuner *tuner = tuner_of(&config);
        tell_failure(tuner, ask(tuner).configuration, has_hung ? WG_TRIAL_HUNG : WG_TRIAL_CRASHED);
        const struct wg_tuner_question question = ask(tuner);
        assert_int_equal(question.configuration, first);
        assert_int_equal(question.reason, WG_TUNER_AGAIN);
        assert_non_null(strstr(question.why, "tried once more"));
        if (works_then)
            tell(tuner, first, 5, 0.01);
        else
            tell_failure(tuner, first, WG_TRIAL_CRASHED);
        for (int i = 0; i < 3 && ask(tuner).kind == WG_TUNER_MEASURE; i++) {
            assert_int_not_equal(ask(tuner).configuration, first);
            tell_failure(tuner, ask(tuner).configuration, WG_TRIAL_CRASHED);
        }
        struct wg_tuner_result result;
        assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
        assert_int_equal(result.configuration, works_then ? first : space->count);
        wg__tuner_free(tuner);
    }
    wg__tuning_space_free(space);
}

/* 900/1 is the default, at 5; 900/4 costs less by a share that is within its error, or beyond. */
static void a_saving_within_its_error_is_no_reason_to_leave_the_default(void **state)
{
    static const struct {
        double cost, error, preset_s;
        bool live;
        size_t returned;
    } cases[] = {
        {4.9, 0.02, 0.05, true, 4},  /* 2 % +- 2.8 % */
        {4.9, 0.005, 0.05, true, 5}, /* 2 % +- 0.7 % */
        {4.9, 0.02, 0.05, false, 5}, /* a study returns the best */
        {4.9, 0.02, 0.2, true, 5},   /* the default is over its limit, */
        {4.9, 0.02, 0.098, true, 5}, /* or perhaps */
    };
    struct wg_tuning_space *space = small_space();

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_tuner_config config = config_of(space);
        struct wg_tuner_result result;

        config.default_first = cases[i].live;
        struct wg_tuner *tuner = tuner_of(&config);
        const struct wg_trial preset = {.configuration = 4,
                                        .objective = 5,
                                        .objective_error = cases[i].error,
                                        .figures = {cases[i].preset_s}};
        const struct wg_trial other = {.configuration = 5,
                                       .objective = cases[i].cost,
                                       .objective_error = cases[i].error,
                                       .figures = {0.06}};
        assert_int_equal(wg__tuner_tell(tuner, &preset, NULL), WG_OK);
        assert_int_equal(wg__tuner_tell(tuner, &other, NULL), WG_OK);
        assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
        assert_int_equal(result.configuration, cases[i].returned);
        assert_true(result.is_feasible);
        if (result.configuration == 4)
            assert_int_equal(result.runner_up, 5);
        wg__tuner_free(tuner);
    }
    wg__tuning_space_free(space);
}

/* Thousands of old trials: no decision in between, the same knowledge, and one that is bounded. */
static void recalled_trials_count_as_told_ones(void **state)
{
    enum { MANY = 4000 };
    static const double cost[] = {1, 2, 4, 3, 5, 6};
    static const double time_s[] = {0.2, 0.11, 0.1, 0.09, 0.05, 0.07};
    struct wg_tuning_space *space = small_space();
    struct wg_tuner_config config = config_of(space);
    struct wg_tuner_result result;

    (void)state;
    config.policy = WG_TUNER_WATTGOV;
    config.max_trials = MANY + 2;
    struct wg_tuner *tuner = tuner_of(&config);
    for (size_t i = 0; i < MANY; i++) {
        const size_t c = i % 6;
        const struct wg_trial trial = {
            .configuration = c, .objective = cost[c], .figures = {time_s[c]}};
        assert_int_equal(wg__tuner_recall(tuner, &trial, NULL), WG_OK);
    }
    const struct wg_trial bad = {.configuration = 0, .objective = -1, .figures = {1}};
    assert_int_equal(wg__tuner_recall(tuner, &bad, NULL), WG_EINVAL);
    assert_int_equal(wg__tuner_result(tuner, &result, NULL), WG_OK);
    assert_int_equal(result.trials, MANY);
    assert_int_equal(result.configuration, 3);
    assert_true(result.is_feasible && result.is_validated);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blind_search_tries_all_once_and_returns_the_best_within_the_limit),
        cmocka_unit_test(with_nothing_within_the_limit_the_nearest_is_returned_and_said_so),
        cmocka_unit_test(with_everything_cut_the_least_bound_is_returned),
        cmocka_unit_test(the_default_comes_first_whatever_the_policy_where_that_is_asked_for),
        cmocka_unit_test(a_default_that_failed_has_a_second_try),
        cmocka_unit_test(a_saving_within_its_error_is_no_reason_to_leave_the_default),
        cmocka_unit_test(recalled_trials_count_as_told_ones),
        cmocka_unit_test(a_thrown_away_sample_is_asked_again_a_bounded_number_of_times),
        cmocka_unit_test(a_group_that_crashes_twice_is_banned_unless_it_works_as_often),
        cmocka_unit_test(out_of_memory_and_refusals_ban_what_they_imply),
        cmocka_unit_test(figures_that_cannot_be_change_nothing),
        cmocka_unit_test(a_config_that_cannot_be_is_refused),
        cmocka_unit_test(every_failing_allocation_is_reported_and_repeated_calls_go_on),
    };
    return run_tests(tests);
}
