/* SPDX-License-Identifier: MIT
 *
 * The small languages of `wattgov simulate tuning`. What its refusals say is in
 * tests/integration/simulate_tuning.py too, as the user sees it.
 */
#include "cli/tuning_study_args.h"

#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

static int open_arena(void **state)
{
    static struct wg_arena arena;
    wg__arena_init(&arena);
    *state = &arena;
    return 0;
}

static int close_arena(void **state)
{
    wg__arena_fini(*state);
    return 0;
}

static void conditions_are_split_at_commas(void **state)
{
    struct wg_tuning_match matches[4];
    size_t count = 1;
    assert_int_equal(wg__parse_matches("where", "a=1,b c=x=y,d=", *state, matches, &count, 4, NULL),
                     WG_OK);
    assert_int_equal(count, 4);
    assert_string_equal(matches[1].column, "a");
    assert_string_equal(matches[1].value, "1");
    assert_string_equal(matches[2].column, "b c");
    assert_string_equal(matches[2].value, "x=y");
    assert_string_equal(matches[3].value, "");
    struct wg_error err = {0};
    assert_int_equal(wg__parse_matches("where", "a=1", *state, matches, &count, 4, &err),
                     WG_EINVAL);
    assert_string_equal(err.text, "--where: more than 4 conditions");
    static const char *const bad[] = {"", "a", "=1", "a=1,", "a=1,,b=2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        count = 0;
        assert_int_equal(wg__parse_matches("where", bad[i], *state, matches, &count, 4, &err),
                         WG_EINVAL);
        assert_non_null(strstr(err.text, "COLUMN=VALUE"));
    }
}

static void a_knob_is_a_column_and_a_role(void **state)
{
    struct wg_tuning_axis axis;
    struct wg_error err = {0};
    assert_int_equal(wg__parse_axis("a:b:mem_clock", *state, &axis, NULL), WG_OK);
    assert_string_equal(axis.column, "a:b");
    assert_int_equal(axis.role, WG_TUNING_MEM_CLOCK);
    assert_int_equal(wg__parse_axis("a:memclock", *state, &axis, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "--knob: 'memclock' is not a role"));
    assert_int_equal(wg__parse_axis(":batch", *state, &axis, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "COLUMN:ROLE"));
}

static void check_bound(void *arena, const char *text, struct wg_tuning_bound expected)
{
    struct wg_tuning_bound bound;
    struct wg_error err = {0};
    if (wg__parse_bound(text, arena, &bound, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_string_equal(bound.expression, expected.expression);
    assert_int_equal(bound.kind, expected.kind);
    assert_int_equal(bound.is_minimum, expected.is_minimum);
    assert_int_equal(bound.is_relative, expected.is_relative);
    check_close(bound.value, expected.value, 0);
}

static void a_limit_has_kind_expression_sense_and_bound(void **state)
{
    check_bound(*state, "p99_s<=0.1",
                (struct wg_tuning_bound){"p99_s", WG_TUNING_TIME, false, false, 0.1});
    check_bound(*state, "1 / x <= 1.5x",
                (struct wg_tuning_bound){"1 / x", WG_TUNING_TIME, false, true, 1.5});
    check_bound(*state, "accuracy>=0.98x",
                (struct wg_tuning_bound){"accuracy", WG_TUNING_OTHER, true, true, 0.98});
    check_bound(*state, "energy:j>=2",
                (struct wg_tuning_bound){"j", WG_TUNING_ENERGY, true, false, 2});
    check_bound(*state, "other:memory<=8e9",
                (struct wg_tuning_bound){"memory", WG_TUNING_OTHER, false, false, 8e9});
    check_bound(*state, "p99_s <= 300ms",
                (struct wg_tuning_bound){"p99_s", WG_TUNING_TIME, false, false, 0.3});
    check_bound(
        *state, "other:power_w / inferences_per_s <= 2J",
        (struct wg_tuning_bound){"power_w / inferences_per_s", WG_TUNING_OTHER, false, false, 2});
    static const char *const bad[] = {"t",     "t<1",      "t<=",   "t<=x",   "<=1",
                                      "t<=-1", "time:<=1", "t<=1y", "t<=nan", "t==1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wg_tuning_bound bound;
        struct wg_error err = {0};
        assert_int_equal(wg__parse_bound(bad[i], *state, &bound, &err), WG_EINVAL);
        assert_non_null(strstr(err.text, "1.5x"));
    }
}

static void a_unit_needs_columns_that_tell_si(void **state)
{
    static const char *const bad[] = {"latency<=300ms", "p99_ms<=300ms", "a_s*b_kj<=1s", "x<=2W"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wg_tuning_bound bound;
        struct wg_error err = {0};
        assert_int_equal(wg__parse_bound(bad[i], *state, &bound, &err), WG_EINVAL);
        assert_non_null(strstr(err.text, bad[i]));
        assert_non_null(strstr(err.text, "without a unit"));
    }
    struct wg_tuning_bound bound;
    struct wg_error err = {0};
    assert_int_equal(wg__parse_bound("a_s + <= 1ms", *state, &bound, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "--limit: 'a_s +', column 6"));
    wg__alloc_fail_from(1);
    assert_int_equal(wg__parse_bound("a_s<=1ms", *state, &bound, &err), WG_ENOMEM);
    wg__alloc_fail_from(0);
}

static void failures_are_collected(void **state)
{
    struct wg_tuning_failures failures = {0};
    static const char *const texts[] = {"crash:0.1", "hang:0.05",       "restart:0.02", "oom:0.33",
                                        "cut:2",     "refuse:hz=1,b=x", "crash:0.2"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(wg__parse_failure(texts[i], *state, &failures, NULL), WG_OK);
    assert_true(failures.crash == 0.2 && failures.hang == 0.05 && failures.restart == 0.02);
    assert_true(failures.out_of_memory == 0.33 && failures.cut == 2);
    assert_int_equal(failures.refusal_count, 2);
    assert_string_equal(failures.refusals[1].value, "x");
    static const char *const bad[] = {"crash", "crash:", "crash:1", "crash:-1", "oom:0.96",
                                      "cut:1", "burn:1", "refuse:", "refuse:hz"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wg_error err = {0};
        assert_int_equal(wg__parse_failure(bad[i], *state, &failures, &err), WG_EINVAL);
        assert_non_null(strstr(err.text, "--fail: "));
    }
}

static void a_run_is_a_policy_and_a_seed(void **state)
{
    (void)state;
    enum wg_tuner_policy policy = WG_TUNER_RANDOM;
    uint64_t seed = 0;
    struct wg_error err = {0};
    assert_int_equal(wg__parse_run("trials-of", "cbo:18446744073709551615", &policy, &seed, NULL),
                     WG_OK);
    assert_int_equal(policy, WG_TUNER_CBO);
    assert_true(seed == UINT64_MAX);
    static const char *const bad[] = {"cbo", "cbo:", "cbo:x", ":1",
                                      "a-policy-whose-name-is-longer-than-any:1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(wg__parse_run("trials-of", bad[i], &policy, &seed, &err), WG_EINVAL);
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    struct wg_arena arena;
    struct wg_tuning_match matches[2];
    struct wg_tuning_axis axis;
    struct wg_tuning_bound bound;
    size_t count = 0;
    wg__arena_init(&arena);
    wg__alloc_fail_from(1);
    const enum wg_code codes[] = {
        wg__parse_matches("where", "a=1", &arena, matches, &count, 2, NULL),
        wg__parse_axis("a:batch", &arena, &axis, NULL),
        wg__parse_bound("a<=1", &arena, &bound, NULL),
    };
    wg__alloc_fail_from(0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(codes[i], WG_ENOMEM);
    wg__arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(conditions_are_split_at_commas, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(a_knob_is_a_column_and_a_role, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(a_limit_has_kind_expression_sense_and_bound, open_arena,
                                        close_arena),
        cmocka_unit_test_setup_teardown(a_unit_needs_columns_that_tell_si, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(failures_are_collected, open_arena, close_arena),
        cmocka_unit_test(a_run_is_a_policy_and_a_seed),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return run_tests(tests);
}
