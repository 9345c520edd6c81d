/* SPDX-License-Identifier: MIT
 *
 * What must hold for every policy, on random spaces, goals and outcomes: measured, cut, crashed,
 * hung, out of memory, refused and thrown away in any order, and knobs that do not bind.
 *
 * A run asks until it is done, and holds after each answer that nothing banned is asked for, that
 * nothing is repeated without a reason, and that the result agrees with what was told. Then a
 * second tuner is told the same without being asked: it must stand where the first one stands.
 */
#include "support/check.h"
#include "support/tuner_stage.h"

#include <string.h>

enum { STEPS_MAX = 2000, SPACE_MAX = 8 * 8 * 8, KNOBS = 3 };

struct run {
    struct wg_tuning_space *space;
    struct wg_tuner_config config;
    struct wg_trial told[STEPS_MAX];
    struct wg_tuner_question asked[STEPS_MAX];
    size_t steps, counted, failed;
    uint8_t measured[SPACE_MAX];
    bool is_tried[SPACE_MAX];
    size_t class_of[SPACE_MAX]; /* any one of those that are the same */
    struct wg_rng rng;
    double trouble; /* share of trials that fail */
    bool has_slack;
    uint32_t only; /* 0, or the outcome that all these have */
};

static bool allows(const size_t *levels, void *context)
{
    const uint64_t *salt = context;
    const uint64_t code = levels[0] * 64 + levels[1] * 8 + levels[2];

    return code == 0 || (code * 2654435761U ^ *salt) % 8 != 0;
}

static void make_space(struct run *run)
{
    static const double levels[] = {1, 2, 3, 4, 5, 6, 7, 8}, kinds[] = {0, 1, 2, 3};
    struct wg_tuning_knob knobs[KNOBS];
    static const char *const names[] = {"a", "b", "c"};
    uint64_t salt = wg__rng_u32(&run->rng);

    for (size_t k = 0; k < KNOBS; k++) {
        const enum wg_tuning_role role =
            (enum wg_tuning_role)wg__rng_below(&run->rng, WG_TUNING_ROLE_COUNT);
        const bool is_category = role == WG_TUNING_CATEGORY;

        knobs[k] = (struct wg_tuning_knob){
            .name = names[k],
            .role = role,
            .levels = is_category ? kinds : levels,
            .count = 1 + wg__rng_below(&run->rng, is_category ? 4 : 6),
            .switch_s = wg__rng_below(&run->rng, 3) == 0 ? 30 : 0.02,
        };
    }
    assert_int_equal(wg__tuning_space_box(&run->space, knobs, KNOBS, allows, &salt, NULL), WG_OK);
}

static void make_config(struct run *run, enum wg_tuner_policy policy)
{
    run->config = (struct wg_tuner_config){
        .space = run->space,
        .goal = {.objective = wg__rng_below(&run->rng, 2) ? WG_TUNING_ENERGY : WG_TUNING_OTHER,
                 .limit_count = wg__rng_below(&run->rng, 4)},
        .policy = policy,
        .seed = wg__rng_u32(&run->rng),
        .max_trials = wg__rng_below(&run->rng, 3) == 0 ? 0 : 1 + wg__rng_below(&run->rng, 40),
        .validate = wg__rng_below(&run->rng, 2) != 0,
        .never_stops = wg__rng_below(&run->rng, 4) == 0,
        .trial_s = wg__rng_below(&run->rng, 2) ? 5 : 0,
        .cpu_apart = wg__rng_below(&run->rng, 2) != 0,
        .xi = (double)NAN,
    };
    for (size_t i = 0; i < run->config.goal.limit_count; i++)
        run->config.goal.limits[i] =
            (struct wg_tuning_limit){.name = "x",
                                     .kind = (enum wg_tuning_kind)wg__rng_below(&run->rng, 3),
                                     .bound = 0.3 + 2 * wg__rng_uniform(&run->rng),
                                     .is_minimum = wg__rng_below(&run->rng, 3) == 0};
    run->only = wg__rng_below(&run->rng, 2) * wg__rng_below(&run->rng, WG_TRIAL_OUTCOME_COUNT);
    run->has_slack = wg__rng_below(&run->rng, 2) != 0;
    for (size_t c = 0; c < run->space->count; c++)
        run->class_of[c] = c;
    run->trouble = wg__rng_uniform(&run->rng) * (wg__rng_below(&run->rng, 4) == 0 ? 1 : 0.4);
}

/* Of half of the runs some trials say that a knob did not bind. */
static void tell_slack(struct run *run, struct wg_trial *trial)
{
    const size_t knob = wg__rng_below(&run->rng, KNOBS);
    const size_t own = wg__tuning_level(run->space, trial->configuration, knob);

    if (!run->has_slack || wg__rng_below(&run->rng, 3) > 0 ||
        run->space->knobs[knob].role == WG_TUNING_CATEGORY)
        return;
    trial->is_slack = true;
    trial->slack_knob = knob;
    trial->slack_level =
        run->space->knobs[knob].levels[wg__rng_below(&run->rng, (uint32_t)own + 1)];
}

/* Whether the trial says that c is the same as its own configuration. */
static bool is_slack(const struct run *run, const struct wg_trial *trial, size_t c)
{
    bool is_same = trial->outcome == WG_TRIAL_MEASURED && trial->is_slack;

    for (size_t k = 0; k < KNOBS && is_same; k++)
        is_same = k == trial->slack_knob
                      ? wg__tuning_value(run->space, c, k) >= trial->slack_level
                      : wg__tuning_level(run->space, c, k) ==
                            wg__tuning_level(run->space, trial->configuration, k);
    return is_same;
}

static bool is_class_allowed(const struct run *run, const struct wg_tuner *tuner, size_t c)
{
    for (size_t i = 0; i < run->space->count; i++)
        if (run->class_of[i] == run->class_of[c] && !wg__tuner_is_banned(tuner, i))
            return true;
    return false;
}

/* Before the tuner is told, for what it had banned stays apart. */
static void book_slack(struct run *run, const struct wg_tuner *tuner, const struct wg_trial *trial)
{
    bool joins[SPACE_MAX];
    const size_t to = run->class_of[trial->configuration];

    for (size_t c = 0; c < run->space->count; c++)
        joins[c] = is_slack(run, trial, c) && is_class_allowed(run, tuner, c);
    for (size_t c = 0; c < run->space->count; c++)
        for (size_t i = 0, from = run->class_of[c]; joins[c] && i < run->space->count; i++)
            if (run->class_of[i] == from)
                run->class_of[i] = to;
}

static size_t measured_of(const struct run *run, size_t c)
{
    size_t sum = 0;

    for (size_t i = 0; i < run->space->count; i++)
        sum += run->class_of[i] == run->class_of[c] ? run->measured[i] : 0;
    return sum;
}

/* Of what a trial has made the same, one configuration at most is asked for afterwards. */
static void hold_slack(const struct run *run, size_t c)
{
    for (size_t i = 0; i < run->steps; i++)
        for (size_t j = i + 1; j < run->steps && is_slack(run, &run->told[i], c); j++)
            if (is_slack(run, &run->told[i], run->told[j].configuration))
                assert_int_equal(run->told[j].configuration, c);
}

static struct wg_trial outcome_of(struct run *run, size_t c)
{
    struct wg_trial trial = {.configuration = c,
                             .objective = exp(wg__rng_normal(&run->rng)),
                             .refused_knob = wg__rng_below(&run->rng, KNOBS)};

    for (size_t i = 0; i < run->config.goal.limit_count; i++)
        trial.figures[i] = exp(wg__rng_normal(&run->rng));
    if (wg__rng_uniform(&run->rng) >= run->trouble) {
        tell_slack(run, &trial);
        return trial;
    }
    const uint32_t any = 1 + wg__rng_below(&run->rng, WG_TRIAL_OUTCOME_COUNT - 1);
    trial.outcome = (enum wg_trial_outcome)(run->only > 0 ? run->only : any);
    if (wg__rng_below(&run->rng, 2))
        trial.objective = (double)NAN; /* which only CUT may have, and the others do not read */
    for (size_t i = 0; i < run->config.goal.limit_count; i++)
        if (wg__rng_below(&run->rng, 3) == 0)
            trial.figures[i] = (double)NAN;
    return trial;
}

/* Nothing that failed, but a default's second try, and no level that was refused, may come back. */
static void hold_failures(const struct run *run, size_t c)
{
    size_t failed = 0;

    for (size_t i = 0; i < run->steps; i++) {
        const struct wg_trial *told = &run->told[i];
        const size_t knob = told->refused_knob;

        if (told->outcome == WG_TRIAL_CRASHED || told->outcome == WG_TRIAL_HUNG)
            failed += told->configuration == c;
        if (told->outcome == WG_TRIAL_OUT_OF_MEMORY)
            assert_int_not_equal(told->configuration, c);
        if (told->outcome == WG_TRIAL_REFUSED)
            assert_int_not_equal(wg__tuning_level(run->space, told->configuration, knob),
                                 wg__tuning_level(run->space, c, knob));
    }
    assert_true(failed <= (c == run->space->default_configuration ? 1 : 0));
}

static void hold_question(const struct run *run, const struct wg_tuner *tuner,
                          const struct wg_tuner_question *question)
{
    const size_t c = question->configuration;

    assert_true(c < run->space->count);
    assert_false(wg__tuner_is_banned(tuner, c));
    hold_failures(run, c);
    hold_slack(run, c);
    assert_true(question->why[0] != '\0' && question->reason < WG_TUNER_REASON_COUNT);
    if (run->is_tried[c])
        assert_true(question->reason == WG_TUNER_REMEASURE ||
                    question->reason == WG_TUNER_VALIDATE || question->reason == WG_TUNER_AGAIN);
    if (question->reason == WG_TUNER_AGAIN) {
        const struct wg_trial *last = &run->told[run->steps - 1];
        assert_int_equal(last->configuration, c);
        assert_true(last->outcome == WG_TRIAL_DISCARDED || c == run->space->default_configuration);
    }
}

static void book(struct run *run, const struct wg_trial *trial)
{
    const size_t c = trial->configuration;
    size_t discards = 0;

    for (size_t i = 0; i < run->steps; i++)
        discards += run->told[i].configuration == c && run->told[i].outcome == WG_TRIAL_DISCARDED;
    switch (trial->outcome) {
    case WG_TRIAL_MEASURED:
    case WG_TRIAL_CUT:
        run->is_tried[c] = true;
        run->measured[c] = (uint8_t)(run->measured[c] + (trial->outcome == WG_TRIAL_MEASURED));
        run->counted++;
        break;
    case WG_TRIAL_DISCARDED:
        run->counted += discards >= 3;
        run->failed += discards >= 3;
        break;
    case WG_TRIAL_REFUSED:
        break;
    default:
        run->counted++;
        run->failed++;
    }
    run->told[run->steps++] = *trial;
}

static bool is_anything_left(const struct run *run, const struct wg_tuner *tuner)
{
    for (size_t c = 0; c < run->space->count; c++)
        if (!run->is_tried[c] && !wg__tuner_is_banned(tuner, c))
            return true;
    return false;
}

static void hold_claims(const struct run *run, const struct wg_tuner_result *result)
{
    const size_t measured = result->is_feasible ? measured_of(run, result->configuration) : 0;

    assert_true(!result->is_feasible || measured > 0);
    assert_true(result->is_validated == (measured > 1));
    assert_true(!result->is_certain || result->is_feasible);
}

static void hold_result(const struct run *run, struct wg_tuner *tuner, enum wg_tuner_end end)
{
    const struct wg_tuner_result result = tuning_result(tuner);
    const size_t count = run->space->count, c = result.configuration;
    const size_t budget =
        run->config.max_trials > 0 ? run->config.max_trials : wg__tuner_usual_trials(run->space);

    assert_int_equal(result.end, end);
    assert_int_equal(result.trials, run->counted);
    assert_int_equal(result.failed_trials, run->failed);
    assert_true(run->counted <= budget);
    assert_true(end != WG_TUNER_BUDGET || run->counted == budget);
    assert_true(end != WG_TUNER_BUDGET || is_anything_left(run, tuner));
    assert_true(end != WG_TUNER_CONVERGED || !run->config.never_stops);
    assert_true(result.why[0] != '\0');
    hold_claims(run, &result);
    assert_true(c == count || (run->is_tried[c] && !wg__tuner_is_banned(tuner, c)));
    assert_true(result.runner_up == count ||
                (measured_of(run, result.runner_up) > 0 && result.runner_up != c));
    for (size_t i = 0; i < count && c == count; i++) /* nothing is returned: nothing is there */
        assert_true(run->measured[i] == 0 || wg__tuner_is_banned(tuner, i));
}

/* What is returned in the end was confirmed, or three confirmations were not enough. */
static void hold_validation(const struct run *run, struct wg_tuner *tuner)
{
    const struct wg_tuner_result result = tuning_result(tuner);
    size_t confirmations = 0;

    for (size_t i = 0; i < run->steps; i++)
        confirmations += run->asked[i].reason == WG_TUNER_VALIDATE &&
                         run->told[i].outcome != WG_TRIAL_REFUSED &&
                         run->told[i].outcome != WG_TRIAL_DISCARDED;
    if (!run->config.validate || run->config.never_stops || run->config.policy != WG_TUNER_WATTGOV)
        assert_int_equal(confirmations, 0);
    else if (result.is_feasible && result.end == WG_TUNER_CONVERGED)
        assert_true(result.is_validated || result.is_certain || confirmations == 3 ||
                    run->counted == run->config.max_trials ||
                    (run->config.max_trials == 0 && run->counted >= 30));
}

/* Told the same without a question, another tuner asks the same next, and ends the same. */
static void hold_resumption(const struct run *run, size_t from)
{
    struct wg_tuner *tuner = tuning_tuner(&run->config);

    for (size_t i = 0; i < from; i++)
        tuning_tell(tuner, &run->told[i]);
    for (size_t i = from; i <= run->steps; i++) {
        const struct wg_tuner_question question = tuning_ask(tuner);

        assert_int_equal(question.kind, run->asked[i].kind);
        assert_int_equal(question.configuration, run->asked[i].configuration);
        assert_int_equal(question.reason, run->asked[i].reason);
        assert_int_equal(question.end, run->asked[i].end);
        assert_string_equal(question.why, run->asked[i].why);
        if (i < run->steps)
            tuning_tell(tuner, &run->told[i]);
    }
    wg__tuner_free(tuner);
}

static void run_once(enum wg_tuner_policy policy, uint64_t seed)
{
    static struct run run;

    memset(&run, 0, sizeof run);
    wg__rng_init(&run.rng, seed);
    make_space(&run);
    make_config(&run, policy);
    struct wg_tuner *tuner = tuning_tuner(&run.config);
    for (;;) {
        const struct wg_tuner_question question = tuning_ask(tuner);

        run.asked[run.steps] = question;
        if (question.kind == WG_TUNER_DONE) {
            hold_result(&run, tuner, question.end);
            hold_validation(&run, tuner);
            break;
        }
        hold_question(&run, tuner, &question);
        if (wg__rng_below(&run.rng, 3) == 0)
            hold_result(&run, tuner, WG_TUNER_RUNNING);
        const struct wg_trial trial = outcome_of(&run, question.configuration);
        book_slack(&run, tuner, &trial);
        tuning_tell(tuner, &trial);
        book(&run, &trial);
        assert_true(run.steps < STEPS_MAX - 1);
    }
    wg__tuner_free(tuner);
    hold_resumption(&run, wg__rng_below(&run.rng, (uint32_t)run.steps + 1));
    wg__tuning_space_free(run.space);
}

static void run_policy(enum wg_tuner_policy policy, uint64_t rounds)
{
    for (uint64_t seed = 1; seed <= rounds; seed++)
        run_once(policy, seed);
}

static void blind_search_keeps_its_word_whatever_happens(void **state)
{
    (void)state;
    run_policy(WG_TUNER_RANDOM, 400);
}

static void the_published_search_keeps_its_word_whatever_happens(void **state)
{
    (void)state;
    run_policy(WG_TUNER_POLYTHROTTLE, 80);
}

static void the_generic_search_keeps_its_word_whatever_happens(void **state)
{
    (void)state;
    run_policy(WG_TUNER_CBO, 80);
}

static void the_own_search_keeps_its_word_whatever_happens(void **state)
{
    (void)state;
    run_policy(WG_TUNER_WATTGOV, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blind_search_keeps_its_word_whatever_happens),
        cmocka_unit_test(the_published_search_keeps_its_word_whatever_happens),
        cmocka_unit_test(the_generic_search_keeps_its_word_whatever_happens),
        cmocka_unit_test(the_own_search_keeps_its_word_whatever_happens),
    };
    return run_tests(tests);
}
