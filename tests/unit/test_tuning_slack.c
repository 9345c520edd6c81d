/* SPDX-License-Identifier: MIT
 *
 * Configurations that are the same one: which these are, who stands for them, and what the tuner
 * makes of it.
 */
#include "support/check.h"
#include "support/tuner_stage.h"

#include "base/alloc.h"
#include "optimize/tuning_slack.h"

enum { LIMITS = 5, CLOCKS = 3 };

static const double limits_w[LIMITS] = {200, 250, 300, 350, 400};
static const double clocks[CLOCKS] = {600, 900, 1200};

static const struct wg_tuning_knob knobs[] = {
    {"gpu_clock", WG_TUNING_GPU_CLOCK, clocks, NULL, CLOCKS, CLOCKS - 1, 0.02},
    {"power_limit", WG_TUNING_POWER_LIMIT, limits_w, NULL, LIMITS, LIMITS - 1, 0.02},
};

static struct wg_tuning_space *make_space(void)
{
    struct wg_tuning_space *space = NULL;

    assert_int_equal(wg__tuning_space_box(&space, knobs, 2, NULL, NULL, NULL), WG_OK);
    return space;
}

static size_t at(size_t clock, size_t limit)
{
    return clock * LIMITS + limit;
}

/* A trial that says that its limit did not bind from `from_w` on; 0: it says nothing. */
static struct wg_trial trial_at(size_t clock, size_t limit, double objective, double from_w)
{
    return (struct wg_trial){.configuration = at(clock, limit),
                             .objective = objective,
                             .figures = {0.01},
                             .is_slack = from_w > 0,
                             .slack_knob = 1,
                             .slack_level = from_w};
}

static void levels_from_the_slack_one_on_are_the_same_at_equal_other_knobs(void **state)
{
    struct wg_tuning_space *space = make_space();
    const struct wg_trial trial = trial_at(1, 3, 1, 300);

    (void)state;
    for (size_t c = 0; c < CLOCKS; c++)
        for (size_t l = 0; l < LIMITS; l++)
            assert_int_equal(wg__tuning_is_slack(space, &trial, at(c, l)), c == 1 && l >= 2);
    wg__tuning_space_free(space);
}

/* What was measured before keeps its place, and all trials become its own. */
static void the_first_measured_stands_for_all(void **state)
{
    struct wg_tuning_space *space = make_space();
    struct wg_tuning_slack slack;
    struct wg_tuning_bans bans;
    struct wg_trial trials[] = {trial_at(0, 3, 1, 0), trial_at(0, 4, 1, 0), trial_at(0, 1, 1, 250)};
    const struct wg_trial last = trials[2];
    uint8_t measured[CLOCKS * LIMITS] = {0};

    (void)state;
    measured[at(0, 3)] = measured[at(0, 4)] = measured[at(0, 1)] = 1;
    assert_int_equal(wg__tuning_bans_init(&bans, space, NULL), WG_OK);
    assert_int_equal(wg__tuning_slack_init(&slack, space, NULL), WG_OK);
    wg__tuning_ban(&bans, at(0, 2)); /* it crashed: it stays apart */
    wg__tuning_slack_take(&slack, &last, &bans, trials, 3, measured);
    assert_int_equal(measured[at(0, 3)], 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(trials[i].configuration, at(0, 3));
    for (size_t l = 0; l < LIMITS; l++) {
        assert_int_equal(wg__tuning_same(&slack, at(0, l)), l == 0 || l == 2 ? at(0, l) : at(0, 3));
        assert_int_equal(bans.is_banned[at(0, l)], l == 1 || l == 2 || l == 4);
    }
    wg__tuning_slack_fini(&slack);
    wg__tuning_bans_fini(&bans);
    wg__tuning_space_free(space);
}

static struct wg_tuner *make_tuner(const struct wg_tuning_space *space, enum wg_tuner_policy policy)
{
    struct wg_tuner_config config = tuning_config(space, policy, 1);

    config.max_trials = 40;
    config.never_stops = true;
    return tuning_tuner(&config);
}

/* The limit never binds: there are as many different configurations as clocks. */
static void the_tuner_asks_for_one_limit_a_clock(void **state)
{
    struct wg_tuning_space *space = make_space();

    (void)state;
    for (int policy = 0; policy < WG_TUNER_POLICY_COUNT; policy++) {
        struct wg_tuner *tuner = make_tuner(space, (enum wg_tuner_policy)policy);
        size_t asked[CLOCKS] = {0}, limit_of[CLOCKS] = {0};
        struct wg_tuner_question question = tuning_ask(tuner);

        for (; question.kind == WG_TUNER_MEASURE; question = tuning_ask(tuner)) {
            const size_t clock = question.configuration / LIMITS;
            const size_t limit = question.configuration % LIMITS;
            const struct wg_trial trial = trial_at(clock, limit, 1 + (double)clock, limits_w[0]);

            assert_true(asked[clock]++ == 0 || limit_of[clock] == limit);
            limit_of[clock] = limit;
            tuning_tell(tuner, &trial);
        }
        assert_true(tuning_result(tuner).configuration / LIMITS == 0);
        for (size_t c = 0; c < CLOCKS && policy == WG_TUNER_RANDOM; c++)
            assert_int_equal(asked[c], 1);
        if (policy == WG_TUNER_RANDOM)
            assert_int_equal(question.end, WG_TUNER_EXHAUSTED);
        wg__tuner_free(tuner);
    }
    wg__tuning_space_free(space);
}

/* An old measurement of a configuration that is another one by now counts for that one. */
static void what_is_told_of_an_equal_one_counts_for_the_one_that_stands_for_it(void **state)
{
    struct wg_tuning_space *space = make_space();
    struct wg_tuner *tuner = make_tuner(space, WG_TUNER_WATTGOV);
    const struct wg_trial first = trial_at(2, 4, 1, 250), other = trial_at(2, 1, 1, 0);

    (void)state;
    tuning_tell(tuner, &first);
    assert_true(wg__tuner_is_banned(tuner, at(2, 1)) && !wg__tuner_is_banned(tuner, at(2, 0)));
    tuning_tell(tuner, &other);
    const struct wg_tuner_result result = tuning_result(tuner);
    assert_int_equal(result.configuration, at(2, 4));
    assert_int_equal(result.trials, 2);
    assert_true(result.is_validated);
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
}

static void refuses_what_cannot_be(void **state)
{
    static const double clocks_and_kinds[] = {0, 1};
    static const struct wg_tuning_knob kinds[] = {
        {"kind", WG_TUNING_CATEGORY, clocks_and_kinds, NULL, 2, 0, 0}};
    struct wg_tuning_space *space = make_space(), *categories = NULL;
    struct wg_tuner *tuner = make_tuner(space, WG_TUNER_RANDOM);
    struct wg_trial trial = trial_at(0, 1, 1, 300);
    struct wg_error err;

    (void)state;
    assert_int_equal(wg__tuner_tell(tuner, &trial, &err), WG_EINVAL);
    assert_string_equal(err.text, "power_limit is said not to bind from 300 on, but was 250");
    trial.slack_level = NAN;
    assert_int_equal(wg__tuner_tell(tuner, &trial, &err), WG_EINVAL);
    trial.slack_knob = 2;
    assert_int_equal(wg__tuner_tell(tuner, &trial, &err), WG_EINVAL);
    wg__tuner_free(tuner);
    assert_int_equal(wg__tuning_space_box(&categories, kinds, 1, NULL, NULL, NULL), WG_OK);
    tuner = make_tuner(categories, WG_TUNER_RANDOM);
    trial = (struct wg_trial){.objective = 1, .figures = {0.01}, .is_slack = true};
    assert_int_equal(wg__tuner_tell(tuner, &trial, &err), WG_EINVAL);
    wg__tuner_free(tuner);
    wg__tuning_space_free(categories);
    wg__tuning_space_free(space);
}

static void lack_of_memory_is_told(void **state)
{
    struct wg_tuning_space *space = make_space();
    struct wg_tuning_slack slack;

    (void)state;
    wg__alloc_fail_from(1);
    assert_int_equal(wg__tuning_slack_init(&slack, space, NULL), WG_ENOMEM);
    wg__alloc_fail_from(0);
    wg__tuning_slack_fini(&slack);
    wg__tuning_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_from_the_slack_one_on_are_the_same_at_equal_other_knobs),
        cmocka_unit_test(the_first_measured_stands_for_all),
        cmocka_unit_test(the_tuner_asks_for_one_limit_a_clock),
        cmocka_unit_test(what_is_told_of_an_equal_one_counts_for_the_one_that_stands_for_it),
        cmocka_unit_test(refuses_what_cannot_be),
        cmocka_unit_test(lack_of_memory_is_told),
    };
    return run_tests(tests);
}
