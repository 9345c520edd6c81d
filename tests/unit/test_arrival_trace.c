/* SPDX-License-Identifier: MIT
 *
 * Traces of arrivals: what is read from which file, what is refused and where, parts of a trace.
 */
#include "schedule/arrival_trace.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "schedule/arrival_moment.h"
#include "support/check.h"

static const struct wg_arrival_reading usual = {.as = WG_ARRIVAL_AUTO, .skip_s = -1.0};

static struct wg_arrival_trace read_as(const char *text, const struct wg_arrival_reading *reading)
{
    struct wg_arrival_trace trace = {0};
    struct wg_error err = {0};
    if (wg__arrival_trace_read_memory(&trace, "t.csv", text, strlen(text), reading, &err) != WG_OK)
        fail_msg("'%s' is not read: %s", text, err.text);
    return trace;
}

static void expect_moments(const char *text, enum wg_arrival_kind as, const double *expected_s,
                           size_t count, double length_s)
{
    const struct wg_arrival_reading reading = {.as = as, .skip_s = -1.0};
    struct wg_arrival_trace trace = read_as(text, &reading);
    assert_false(trace.is_counts);
    assert_int_equal(trace.count, count);
    for (size_t i = 0; i < count; i++)
        check_close_abs(trace.moments_s[i], expected_s[i], 1e-15, 1e-12);
    check_close(trace.requests, (double)count, 0.0);
    check_close(trace.length_s, length_s, 1e-12);
    wg__arrival_trace_fini(&trace);
}

#define MOMENTS(text, as, length_s, ...)                                                           \
    expect_moments(text, as, (const double[]){__VA_ARGS__},                                        \
                   sizeof((const double[]){__VA_ARGS__}) / sizeof(double), length_s)

static void expect_counts(const char *text, const struct wg_arrival_reading *reading,
                          const char *expected)
{
    struct wg_arrival_trace trace = read_as(text, reading);
    assert_true(trace.is_counts);
    check_close(trace.length_s, (double)trace.count, 0.0);
    struct wg_buffer out;
    wg__buffer_init(&out);
    for (size_t i = 0; i < trace.count; i++)
        wg__buffer_printf(&out, "%s%u", i == 0 ? "" : " ", trace.counts[i]);
    assert_string_equal(out.data, expected);
    wg__buffer_fini(&out);
    wg__arrival_trace_fini(&trace);
}

static void expect_error(const char *text, enum wg_arrival_kind as, const char *expected)
{
    const struct wg_arrival_reading reading = {.as = as, .skip_s = -1.0};
    struct wg_arrival_trace trace = {0};
    struct wg_error err = {0};
    assert_int_equal(
        wg__arrival_trace_read_memory(&trace, "t.csv", text, strlen(text), &reading, &err),
        WG_EDATA);
    assert_string_equal(err.text, expected);
    assert_null(trace.moments_s);
    assert_null(trace.counts);
}

static void reads_moments_from_the_column_that_is_called_so(void **state)
{
    (void)state;
    MOMENTS("id,arrival_s,tokens\n1,5,9\n2,7.5,9\n3,8,9\n", WG_ARRIVAL_AUTO, 4.5, 0.0, 2.5, 3.0);
    MOMENTS("timestamp_s\n0\n1\n", WG_ARRIVAL_AUTO, 2.0, 0.0, 1.0);
    MOMENTS("app,func,end_timestamp,duration\nx,y,3,9\nx,y,5,1\n", WG_ARRIVAL_AUTO, 4.0, 0.0, 2.0);
    MOMENTS("name,gap_s\na,0.5\nb,0\nc,1.5\n", WG_ARRIVAL_AUTO, 2.0, 0.0, 0.5, 0.5);
}

static void reads_dates_with_all_the_digits_that_they_have(void **state)
{
    (void)state;
    MOMENTS("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
            "2023-11-16 18:15:50.9951690,396,109\n2023-11-17 00:00:00.0000001,1,1",
            WG_ARRIVAL_AUTO, 20653.3194101 * 1.5, 0.0, 4.314579, 20653.3194101);
    MOMENTS("timestamp,duration\n2017-10-09T07:01:55Z,66\n2017-10-09 07:02:00+00:01,6\n\n",
            WG_ARRIVAL_AUTO, 110.0, 0.0, 55.0);
}

static void sorts_moments_that_are_not_in_order(void **state)
{
    (void)state;
    MOMENTS("timestamp\n9\n4\n6\n", WG_ARRIVAL_AUTO, 7.5, 0.0, 2.0, 5.0);
    MOMENTS("0.5\n0.25\n0.75\n", WG_ARRIVAL_MOMENTS, 0.75, 0.0, 0.25, 0.5);
}

static void tells_text_of_moments_from_text_of_counts(void **state)
{
    (void)state;
    MOMENTS("1\n2\n4\n", WG_ARRIVAL_AUTO, 4.5, 0.0, 1.0, 3.0);
    MOMENTS("# seconds\n\n 1.5 \r\n2.5\t\r\n", WG_ARRIVAL_AUTO, 2.0, 0.0, 1.0);
    MOMENTS("-1\n0\n1", WG_ARRIVAL_AUTO, 3.0, 0.0, 1.0, 2.0);
    expect_counts("52\n55\n48\n", &usual, "52 55 48");
    expect_counts("1\n0\n0\n0\n0\n", &usual, "1 0 0 0 0");
    expect_counts("5\n5\n5\n", &usual, "5 5 5");
    expect_counts("\xEF\xBB\xBF"
                  "52\n55\n48\n",
                  &usual, "52 55 48");
    expect_counts("\xEF\xBB\xBF"
                  "second,count\n10,3\n11,4\n",
                  &usual, "3 4");
    const struct wg_arrival_reading counts = {.as = WG_ARRIVAL_COUNTS, .skip_s = -1.0};
    expect_counts("1\n2\n3\n", &counts, "1 2 3");
}

static void reads_a_list_of_gaps(void **state)
{
    (void)state;
    MOMENTS("[0.031, 0.012,\n 0.073]", WG_ARRIVAL_GAPS, 0.116, 0.0, 0.031, 0.043);
    MOMENTS("[1,2]\n", WG_ARRIVAL_AUTO, 2.0, 0.0, 1.0);
}

static void reads_objects_one_a_line(void **state)
{
    (void)state;
    MOMENTS("{\"timestamp\": 3000, \"input_length\": 6758, \"hash_ids\": [0, 1]}\n\n"
            "{\"timestamp\": 3000}\r\n {\"timestamp\": 6500}",
            WG_ARRIVAL_AUTO, 5.25, 0.0, 0.0, 3.5);
    MOMENTS("{\"arrival_s\": 1.5, \"timestamp\": 9}\n{\"timestamp_s\": 0.5}", WG_ARRIVAL_AUTO, 2.0,
            0.0, 1.0);
}

static void skips_where_the_collection_stood_still(void **state)
{
    (void)state;
    expect_counts("second,count\n10,3\n11,0\n400,5\n", &usual, "3 0 5");
    expect_counts("timestamp,requests\n2021-08-01 00:00:00,3\n2021-08-01 00:00:01,4\n", &usual,
                  "3 4");
    const struct wg_arrival_reading three = {.as = WG_ARRIVAL_COUNTS, .skip_s = 3.0};
    expect_counts("0\n0\n0\n7\n0\n0\n8\n0\n0\n0\n0\n9\n0\n0\n0\n", &three, "7 0 0 8 9");
    const struct wg_arrival_reading never = {.as = WG_ARRIVAL_COUNTS, .skip_s = 0.0};
    expect_counts("9\n0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n", &never, "9 0 0 0 0 0 0 0 0 0 0 0");
    /* 80 a second: ten seconds without one are no lull; nine may be. */
    expect_counts("800\n160\n0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n0\n80\n", &usual, "800 160 80");
    expect_counts("800\n720\n0\n0\n0\n0\n0\n0\n0\n0\n0\n80\n", &usual,
                  "800 720 0 0 0 0 0 0 0 0 0 80");
}

static void says_what_is_wrong_and_where(void **state)
{
    (void)state;
    expect_error("", WG_ARRIVAL_AUTO, "t.csv:1: the file is empty, expected arrivals");
    expect_error("arrival_s\n", WG_ARRIVAL_AUTO,
                 "t.csv:1: no arrivals in it, expected one at least");
    expect_error("1\nx\n", WG_ARRIVAL_AUTO, "t.csv:2: 'x' is not a number, expected one a line");
    expect_error("1\n2 3\n", WG_ARRIVAL_AUTO,
                 "t.csv:2: '2 3' is not a number, expected one a line");
    expect_error("[1, 2", WG_ARRIVAL_AUTO, "t.csv:1: expected one list of numbers, ended by ']'");
    expect_error("[1, 2]\n[3]", WG_ARRIVAL_AUTO,
                 "t.csv:1: expected one list of numbers, ended by ']'");
    expect_error("[1, true]", WG_ARRIVAL_AUTO, "t.csv:1: 'true' is not a number, expected one");
    expect_error("0.5\n0.25\n", WG_ARRIVAL_AUTO,
                 "t.csv:2: numbers that fall, and 0.5 on line 1 that is no count: say as=moments "
                 "or as=gaps");
    expect_error(
        "2\n1\n-3\n", WG_ARRIVAL_COUNTS,
        "t.csv:3: -3 is no count of requests in a second, expected a whole number from 0 to 1e9");
    expect_error("0\n0\n", WG_ARRIVAL_COUNTS,
                 "t.csv:2: no second has a request, expected one at least");
    expect_error("0.5\n-0.25\n", WG_ARRIVAL_GAPS,
                 "t.csv:2: -0.25 is no time between two requests, expected 0 s or more");
    expect_error("0\n0\n", WG_ARRIVAL_GAPS,
                 "t.csv:2: the times between requests add up to 0 s, expected 1e-06 to 1e+12 s");
    expect_error("arrival_s\n3\n3\n", WG_ARRIVAL_AUTO,
                 "t.csv:3: 2 moments over 0 s, expected two that differ by 1e-06 to 1e+12 s");
    expect_error("7.5\n", WG_ARRIVAL_AUTO,
                 "t.csv:1: 1 moment over 0 s, expected two that differ by 1e-06 to 1e+12 s");
    expect_error("arrival_s\n1\nsoon\n", WG_ARRIVAL_AUTO,
                 "t.csv:3: column 'arrival_s': 'soon' is neither seconds nor a date with a time");
    expect_error("arrival_s\n1\n2020-01-01 00:00:00\n", WG_ARRIVAL_AUTO,
                 "t.csv:3: column 'arrival_s': '2020-01-01 00:00:00' is a date, unlike the row "
                 "before");
    expect_error("count\n1\n-1\n", WG_ARRIVAL_AUTO,
                 "t.csv:3: column 'count': '-1' is not a whole number from 0 to 1000000000");
    expect_error("second,count\n1,1\n1,1\n", WG_ARRIVAL_AUTO,
                 "t.csv:3: column 'second': '1' is not a second after the row before, expected one "
                 "row a second in order");
    expect_error("{\"arrival_s\": 1}\n{\"arrival_s\": \"soon\"}", WG_ARRIVAL_AUTO,
                 "t.csv:2: expected an object with a number arrival_s, timestamp_s or timestamp");
    expect_error("{\"arrival_s\": 1", WG_ARRIVAL_AUTO,
                 "t.csv:1: no JSON: '}' expected near end of file");
    expect_error("a,b\nx,y\n", WG_ARRIVAL_AUTO,
                 "t.csv:2: no column holds a number or a date, expected one of arrivals "
                 "(arrival_s, timestamp) or of counts a second (count, requests)");
    expect_error("a,b\n1\n", WG_ARRIVAL_AUTO,
                 "t.csv:2: expected 2 fields as in the header, found 1");
}

static void knows_dates(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        long long whole_s;
        double rest_s;
    } good[] = {
        {"1970-01-01 00:00:00", 0, 0.0},
        {"1969-12-31T23:59:59.5Z", -1, 0.5},
        {"2000-02-29 12:00:00", 951825600, 0.0}, /* date -u -d ... +%s, as the others */
        {"2100-03-01 00:00:00", 4107542400, 0.0},
        {"2023-11-16 18:15:46.6805900", 1700158546, 0.68059},
        {"2023-11-16 18:15:46-07:30", 1700185546, 0.0},
        {"0001-01-01 00:00:00", -62135596800, 0.0},
        {"9999-12-31 23:59:59", 253402300799, 0.0},
    };
    struct wg_arrival_moment moment;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(wg__arrival_moment_parse(good[i].text, &moment));
        assert_true(moment.is_date);
        assert_int_equal(moment.whole_s, good[i].whole_s);
        check_close_abs(moment.rest_s, good[i].rest_s, 1e-15, 0.0);
    }
    static const char *const bad[] = {
        "",
        "2023-11-16",
        "2023-02-29 00:00:00",
        "2100-02-29 00:00:00",
        "2023-13-01 00:00:00",
        "2023-11-16 24:00:00",
        "2023-11-16 18:15:46.",
        "2023-11-16 18:15:46 ",
        "2023-11-16 18:15:46+1:00",
        "2023-11-16_18:15:46",
        "0000-01-01 00:00:00",
        "1e999",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(wg__arrival_moment_parse(bad[i], &moment));
}

static void cuts_a_window_out(void **state)
{
    (void)state;
    struct wg_error err = {0};
    struct wg_arrival_trace trace = read_as("arrival_s\n10\n11\n12.5\n14\n", &usual);
    assert_int_equal(wg__arrival_trace_cut(&trace, 1.0, 4.0, &err), WG_OK);
    assert_int_equal(trace.count, 2);
    check_close_abs(trace.moments_s[0], 0.0, 0.0, 0.0);
    check_close(trace.moments_s[1], 1.5, 0.0);
    check_close(trace.length_s, 3.0, 0.0);
    assert_int_equal(wg__arrival_trace_cut(&trace, 2.0, 3.0, &err), WG_EINVAL);
    assert_string_equal(err.text, "window 2:3: no request of the trace is in it");
    assert_int_equal(wg__arrival_trace_cut(&trace, 2.0, 3.5, &err), WG_EINVAL);
    assert_string_equal(err.text, "window 2:3.5: expected a part of 0:3, the trace's seconds");
    wg__arrival_trace_fini(&trace);

    trace = read_as("count\n1\n0\n3\n4\n", &usual);
    assert_int_equal(wg__arrival_trace_cut(&trace, 1.0, 3.0, &err), WG_OK);
    assert_int_equal(trace.count, 2);
    assert_int_equal(trace.counts[0], 0);
    assert_int_equal(trace.counts[1], 3);
    check_close(trace.requests, 3.0, 0.0);
    assert_int_equal(wg__arrival_trace_cut(&trace, 0.5, 2.0, &err), WG_EINVAL);
    assert_int_equal(wg__arrival_trace_cut(&trace, 0.0, 1.0, &err), WG_EINVAL);
    assert_int_equal(wg__arrival_trace_cut(&trace, (double)NAN, 1.0, &err), WG_EINVAL);
    wg__arrival_trace_fini(&trace);
}

/* Where the variance over 60 whole numbers is greatest, by its definition. */
static size_t search_burstiest(const uint32_t *counts, size_t seconds)
{
    double best = -1.0;
    size_t at = 0;
    for (size_t first = 0; first + 60 <= seconds; first++) {
        double mean = 0.0;
        double variance = 0.0;
        for (size_t i = 0; i < 60; i++)
            mean += counts[first + i] / 60.0;
        for (size_t i = 0; i < 60; i++)
            variance += (counts[first + i] - mean) * (counts[first + i] - mean);
        if (variance > best * (1.0 + 1e-9)) {
            best = variance;
            at = first;
        }
    }
    return at;
}

static void finds_the_minute_that_varies_most(void **state)
{
    (void)state;
    struct wg_error err = {0};
    double from_s = -1.0;
    struct wg_arrival_trace trace = read_as("count\n1\n2\n", &usual);
    assert_int_equal(wg__arrival_trace_burstiest(&trace, &from_s, &err), WG_EINVAL);
    assert_string_equal(err.text,
                        "window burstiest: the trace lasts 2 s, expected a minute at least");
    wg__arrival_trace_fini(&trace);

    trace = read_as("arrival_s\n0\n4e7\n", &usual);
    assert_int_equal(wg__arrival_trace_burstiest(&trace, &from_s, &err), WG_EINVAL);
    assert_string_equal(err.text,
                        "window burstiest: the trace lasts 8e+07 s, expected at most a year");
    wg__arrival_trace_fini(&trace);

    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    for (unsigned round = 0; round < 20; round++) {
        struct wg_buffer counted;
        struct wg_buffer moments;
        wg__buffer_init(&counted);
        wg__buffer_init(&moments);
        wg__buffer_puts(&counted, "count\n");
        wg__buffer_puts(&moments, "arrival_s\n0\n");
        for (unsigned second = 0; second < 200; second++) {
            const unsigned count = wg__rng_below(&rng, 1 + second % 40);
            wg__buffer_printf(&counted, "%u\n", second == 0 ? 1 : count);
            for (unsigned i = 0; i < count && second != 0; i++)
                wg__buffer_printf(&moments, "%u.5\n", second);
        }
        wg__buffer_puts(&moments, "200\n");
        trace = read_as(counted.data, &usual);
        const double expected_s = (double)search_burstiest(trace.counts, trace.count);
        assert_int_equal(wg__arrival_trace_burstiest(&trace, &from_s, &err), WG_OK);
        check_close(from_s, expected_s, 0.0);
        wg__arrival_trace_fini(&trace);
        trace = read_as(moments.data, &usual);
        assert_int_equal(wg__arrival_trace_burstiest(&trace, &from_s, &err), WG_OK);
        check_close(from_s, expected_s, 0.0);
        wg__arrival_trace_fini(&trace);
        wg__buffer_fini(&counted);
        wg__buffer_fini(&moments);
    }
}

static void spreads_the_ticks_of_a_coarse_clock(void **state)
{
    (void)state;
    struct wg_arrival_trace trace = read_as("arrival_s\n0\n0\n0\n3\n3\n3\n3\n6\n", &usual);
    struct wg_rng rng;
    wg__rng_init(&rng, 3);
    wg__arrival_trace_spread(&trace, 3.0, &rng);
    check_close(trace.length_s, 9.0, 0.0);
    for (size_t i = 0; i < trace.count; i++) {
        const double tick_s = i < 3 ? 0.0 : i < 7 ? 3.0 : 6.0;
        assert_true(trace.moments_s[i] > tick_s && trace.moments_s[i] < tick_s + 3.0);
        assert_true(i == 0 || trace.moments_s[i] > trace.moments_s[i - 1]);
    }
    wg__arrival_trace_fini(&trace);
}

static void survives_every_failing_allocation(void **state)
{
    (void)state;
    static const char *const texts[] = {"count\n1\n2\n", "arrival_s\n1\n0\n", "[1,2,4]", "3\n1\n",
                                        "{\"arrival_s\":1}\n{\"arrival_s\":2}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        enum wg_code code = WG_ENOMEM;
        for (size_t nth = 1; code != WG_OK; nth++) {
            assert_true(nth < 50);
            struct wg_arrival_trace trace = {0};
            struct wg_error err = {0};
            wg__alloc_fail_from(nth);
            code = wg__arrival_trace_read_memory(&trace, "t", texts[i], strlen(texts[i]), &usual,
                                                 &err);
            wg__alloc_fail_from(0);
            assert_true(code == WG_OK || code == WG_ENOMEM);
            wg__arrival_trace_fini(&trace);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_moments_from_the_column_that_is_called_so),
        cmocka_unit_test(reads_dates_with_all_the_digits_that_they_have),
        cmocka_unit_test(sorts_moments_that_are_not_in_order),
        cmocka_unit_test(tells_text_of_moments_from_text_of_counts),
        cmocka_unit_test(reads_a_list_of_gaps),
        cmocka_unit_test(reads_objects_one_a_line),
        cmocka_unit_test(skips_where_the_collection_stood_still),
        cmocka_unit_test(says_what_is_wrong_and_where),
        cmocka_unit_test(knows_dates),
        cmocka_unit_test(cuts_a_window_out),
        cmocka_unit_test(finds_the_minute_that_varies_most),
        cmocka_unit_test(spreads_the_ticks_of_a_coarse_clock),
        cmocka_unit_test(survives_every_failing_allocation),
    };
    return run_tests(tests);
}
