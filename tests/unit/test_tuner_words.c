/* SPDX-License-Identifier: MIT
 *
 * The words of a tuner: each parses to what it came from.
 */
#include "support/check.h"

#include "optimize/tuner.h"

static void each_word_is_read_back(void **state)
{
    enum wg_tuner_policy policy = WG_TUNER_POLICY_COUNT;
    enum wg_trial_outcome outcome = WG_TRIAL_OUTCOME_COUNT;

    (void)state;
    for (unsigned i = 0; i < WG_TUNER_POLICY_COUNT; i++) {
        assert_true(
            wg__tuner_policy_parse(wg__tuner_policy_word((enum wg_tuner_policy)i), &policy));
        assert_int_equal(policy, i);
    }
    for (unsigned i = 0; i < WG_TRIAL_OUTCOME_COUNT; i++) {
        assert_true(
            wg__trial_outcome_parse(wg__trial_outcome_word((enum wg_trial_outcome)i), &outcome));
        assert_int_equal(outcome, i);
    }
    assert_string_equal(wg__tuner_policy_word(WG_TUNER_POLYTHROTTLE), "polythrottle");
    assert_string_equal(wg__trial_outcome_word(WG_TRIAL_OUT_OF_MEMORY), "out_of_memory");
    assert_string_equal(wg__tuner_reason_word(WG_TUNER_REMEASURE), "remeasure");
    assert_string_equal(wg__tuner_end_word(WG_TUNER_CONVERGED), "converged");
}

static void what_is_no_word_is_refused_and_changes_nothing(void **state)
{
    enum wg_tuner_policy policy = WG_TUNER_CBO;
    enum wg_trial_outcome outcome = WG_TRIAL_HUNG;

    (void)state;
    assert_false(wg__tuner_policy_parse("CBO", &policy));
    assert_false(wg__tuner_policy_parse(NULL, &policy));
    assert_false(wg__trial_outcome_parse("", &outcome));
    assert_int_equal(policy, WG_TUNER_CBO);
    assert_int_equal(outcome, WG_TRIAL_HUNG);
    assert_null(wg__tuner_policy_word(WG_TUNER_POLICY_COUNT));
    assert_null(wg__tuner_reason_word(WG_TUNER_REASON_COUNT));
    assert_null(wg__tuner_end_word(WG_TUNER_END_COUNT));
    assert_null(wg__trial_outcome_word(WG_TRIAL_OUTCOME_COUNT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_is_read_back),
        cmocka_unit_test(what_is_no_word_is_refused_and_changes_nothing),
    };
    return run_tests(tests);
}
