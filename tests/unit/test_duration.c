/* SPDX-License-Identifier: MIT
 *
 * Spans of time: read and written.
 */
#include "cli/duration.h"

#include "support/check.h"

static void reads_spans_with_their_unit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } cases[] = {
        {"100ms", 0.1}, {"1ms", 0.001},    {"2s", 2}, {"1.5s", 1.5}, {"1m", 60},
        {"0.5h", 1800}, {"250us", 250e-6}, {"0s", 0}, {".5s", 0.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds = -1;
        assert_true(wg__parse_duration(cases[i].text, &seconds));
        check_close(seconds, cases[i].seconds, 0);
    }
}

static void refuses_what_has_no_unit_or_is_no_number(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",     "5",    "s",    "ms",
        "-1s",  "+1s",  "1 s",  " 1s",
        "1s ",  "1sec", "1e3s", "1.2.3s",
        "nans", "1S",   "1d",   "0000000000000000000000000000000000000000001s"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double seconds = 42;
        if (wg__parse_duration(texts[i], &seconds))
            fail_msg("'%s' was read as %g s", texts[i], seconds);
        check_close(seconds, 42, 0);
    }
}

static void writes_what_reads_back_in_the_shortest_unit(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {
        {0.1, "100ms"}, {0.001, "1ms"}, {1, "1s"}, {90, "90s"},    {60, "1m"}, {3600, "1h"},
        {5400, "90m"},  {2.5, "2.5s"},  {0, "0s"}, {1e-5, "10us"}, {5, "5s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[WG_DURATION_TEXT_SIZE];
        double seconds = -1;
        wg__format_duration(text, cases[i].seconds);
        assert_string_equal(text, cases[i].text);
        assert_true(wg__parse_duration(text, &seconds));
        check_close(seconds, cases[i].seconds, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_spans_with_their_unit),
        cmocka_unit_test(refuses_what_has_no_unit_or_is_no_number),
        cmocka_unit_test(writes_what_reads_back_in_the_shortest_unit),
    };
    return run_tests(tests);
}
