/* SPDX-License-Identifier: MIT
 *
 * One line of progress: what is understood, and that nothing else is.
 */
#include "live/progress_line.h"

#include <string.h>

#include "support/check.h"

static struct wg_progress_line parse(const char *text)
{
    struct wg_progress_line line;
    if (!wg__progress_parse(&line, text, strlen(text)))
        fail_msg("'%s' is not understood", text);
    return line;
}

static void expect_none(const char *text, size_t length)
{
    struct wg_progress_line line = {.value = 7};
    if (wg__progress_parse(&line, text, length))
        fail_msg("'%s' is understood", text);
    check_close(line.value, 7, 0); /* left alone */
}

/* Without a zero behind it. */
static void put(char *at, const char *text)
{
    while (*text != '\0')
        *at++ = *text++;
}

static void each_kind_is_read_with_its_number(void **state)
{
    (void)state;
    struct wg_progress_line line = parse("step 12");
    assert_int_equal(line.kind, WG_PROGRESS_STEP);
    check_close(line.value, 12, 0);
    assert_int_equal(line.rank, 0);
    assert_false(line.has_t);
    line = parse("epoch 1.25");
    assert_int_equal(line.kind, WG_PROGRESS_EPOCH);
    check_close(line.value, 1.25, 0);
    line = parse("metric -0.5e-3");
    assert_int_equal(line.kind, WG_PROGRESS_METRIC);
    check_close(line.value, -0.0005, 0);
    assert_string_equal(line.name, "");
    line = parse("batch_size 256");
    assert_int_equal(line.kind, WG_PROGRESS_BATCH_SIZE);
    check_close(line.value, 256, 0);
}

static void rank_and_moment_stand_at_the_end_in_any_order(void **state)
{
    (void)state;
    struct wg_progress_line line = parse("step 3 rank 4294967295 at 18446744073709551615");
    assert_true(line.rank == UINT32_MAX && line.has_t && line.t_ns == UINT64_MAX);
    line = parse("step 3 at 5 rank 6");
    assert_true(line.rank == 6 && line.has_t && line.t_ns == 5);
    line = parse("metric 0.9 top5 rank 2");
    assert_string_equal(line.name, "top5");
    assert_int_equal(line.rank, 2);
    line = parse("  step\t 3   rank  1 \t\r");
    assert_true(line.value == 3 && line.rank == 1);
}

static void a_metric_may_be_not_finite_in_any_spelling(void **state)
{
    (void)state;
    static const char *const nans[] = {"metric nan", "metric NaN", "metric -nan loss",
                                       "metric NAN"};
    static const char *const infinities[] = {"metric inf", "metric +Inf", "metric Infinity"};
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++)
        assert_true(isnan(parse(nans[i]).value));
    for (size_t i = 0; i < sizeof infinities / sizeof *infinities; i++)
        check_close(parse(infinities[i]).value > 1e308, 1, 0);
    assert_true(parse("metric -inf").value < -1e308);
    assert_true(isnan(parse("metric nan rank 3").value));
}

static void a_long_name_is_cut(void **state)
{
    (void)state;
    const struct wg_progress_line line = parse("metric 1 abcdefghijklmnopqrstuvwxyz0123456789");
    assert_string_equal(line.name, "abcdefghijklmnopqrstuvwxyz01234");
}

static void what_is_not_understood_to_its_end_is_no_progress(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        " ",
        "step",
        "step ",
        "step x",
        "steps 1",
        "Step 1",
        "step -1",
        "step 1.5",
        "step nan",
        "step inf",
        "step 0x10",
        "step 1e16",
        "step 1 2",
        "step 1 rank",
        "step 1 rank -1",
        "step 1 rank 4294967296",
        "step 1 at",
        "step 1 at 1.5",
        "step 1 rank 1 rank 2",
        "step 1 at 1 at 2",
        "epoch -1",
        "epoch nan",
        "epoch",
        "metric",
        "metric x",
        "metric 1 a b",
        "metric 1e999",
        "metric 1 rank 0 name",
        "batch_size 0",
        "batch_size 1.5",
        "loss 0.1",
        "step 1\x1b[0m",
        "step 1\rstep 2",
        "step=1",
        "step 18446744073709551616",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_none(texts[i], strlen(texts[i]));
    expect_none("step 1\0", 7);
    expect_none("step\0 1", 7);
    expect_none("metric 1 \x7F", 10);
}

static void a_number_or_a_line_that_is_too_long_is_no_progress(void **state)
{
    (void)state;
    char text[WG_PROGRESS_LINE_MAX + 8];
    memset(text, ' ', sizeof text);
    put(text, "step 5");
    struct wg_progress_line line;
    assert_true(wg__progress_parse(&line, text, WG_PROGRESS_LINE_MAX));
    expect_none(text, WG_PROGRESS_LINE_MAX + 1);
    memset(text + 5, '0', 80);
    text[85] = '5';
    expect_none(text, 86);
}

static void whole_numbers_are_exact_up_to_two_to_the_53(void **state)
{
    (void)state;
    check_close(parse("step 9007199254740992").value, 9007199254740992.0, 0);
    check_close(parse("step 0").value, 0, 0);
    check_close(parse("step 1e3").value, 1000, 0);
    expect_none("step 9007199254740994", 21);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_read_with_its_number),
        cmocka_unit_test(rank_and_moment_stand_at_the_end_in_any_order),
        cmocka_unit_test(a_metric_may_be_not_finite_in_any_spelling),
        cmocka_unit_test(a_long_name_is_cut),
        cmocka_unit_test(what_is_not_understood_to_its_end_is_no_progress),
        cmocka_unit_test(a_number_or_a_line_that_is_too_long_is_no_progress),
        cmocka_unit_test(whole_numbers_are_exact_up_to_two_to_the_53),
    };
    return run_tests(tests);
}
