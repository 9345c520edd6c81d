/* SPDX-License-Identifier: MIT
 *
 * Streams of arrivals: the laws that they follow, traces that are scaled, cut and repeated.
 */
#include "schedule/arrivals.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "schedule/arrival_trace.h"
#include "support/arrivals.h"
#include "support/check.h"
#include "support/scratch.h"

/* A stream over a file that holds `text`; `options` begin with a comma or are empty. */
static struct wg_arrivals *open_trace(const char *text, const char *options)
{
    struct scratch scratch;
    scratch_open(&scratch);
    scratch_write(scratch_path(&scratch, "t.csv"), text, strlen(text));
    char wish[1024];
    (void)snprintf(wish, sizeof wish, "trace:%s%s", scratch.path, options);
    struct wg_arrivals *arrivals = open_arrivals(wish, 5);
    scratch_close(&scratch); /* the file has been read */
    return arrivals;
}

static void expect_next(struct wg_arrivals *arrivals, const double *expected_s, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_close_abs(wg__arrivals_next(arrivals), expected_s[i], 1e-12, 1e-12);
}

#define NEXT(arrivals, ...)                                                                        \
    expect_next(arrivals, (const double[]){__VA_ARGS__},                                           \
                sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void restarted_arrivals_come_as_those_that_were_opened_so(void **state)
{
    (void)state;
    struct wg_arrivals *streams[] = {
        open_arrivals("uniform:10", 3),
        open_arrivals("poisson:10", 3),
        open_trace("count\n3\n0\n5\n", ""),
        open_trace("arrival_s\n0\n1\n1.5\n", ",rate=7"),
    };
    struct wg_arrivals *fresh[] = {
        open_arrivals("uniform:10", 9),
        open_arrivals("poisson:10", 9),
        open_trace("count\n3\n0\n5\n", ""),
        open_trace("arrival_s\n0\n1\n1.5\n", ",rate=7"),
    };
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        const bool is_trace = i >= 2;
        struct wg_rng rng;
        assert_int_equal(wg__arrivals_is_steady(streams[i]), !is_trace);
        for (unsigned n = 0; n < 50; n++)
            (void)wg__arrivals_next(streams[i]);
        wg__rng_init(&rng, is_trace ? 5 : 9);
        wg__arrivals_restart(streams[i], &rng);
        for (unsigned n = 0; n < 50; n++)
            check_close(wg__arrivals_next(streams[i]), wg__arrivals_next(fresh[i]), 0.0);
        wg__arrivals_close(streams[i]);
        wg__arrivals_close(fresh[i]);
    }
}

static void uniform_arrivals_are_even_for_ever(void **state)
{
    (void)state;
    struct wg_arrivals *arrivals = open_arrivals("uniform:10", 1);
    check_close(wg__arrivals_rate(arrivals), 10.0, 0.0);
    for (unsigned i = 0; i < 100000; i++)
        check_close(wg__arrivals_next(arrivals), i / 10.0, 0.0);
    wg__arrivals_close(arrivals);
}

/* Gaps of a Poisson process are exponential: mean, variance and three tail shares, each within 4.5
 * standard errors (chance: 7 in a million a figure). */
static void poisson_arrivals_have_exponential_gaps(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    struct wg_arrivals *arrivals = open_arrivals("poisson:8", 2);
    double last_s = 0.0;
    double sum = 0.0;
    double squares = 0.0;
    unsigned beyond[3] = {0};
    for (unsigned i = 0; i < COUNT; i++) {
        const double now_s = wg__arrivals_next(arrivals);
        const double gap = 8.0 * (now_s - last_s);
        assert_true(gap > 0.0);
        sum += gap;
        squares += gap * gap;
        for (unsigned k = 0; k < 3; k++)
            beyond[k] += gap > (double)(k + 1);
        last_s = now_s;
    }
    const double mean = sum / (double)COUNT;
    check_close_abs(mean, 1.0, 0.0, 4.5 / sqrt(COUNT));
    check_close_abs(squares / (double)COUNT - mean * mean, 1.0, 0.0,
                    4.5 * sqrt(8.0 / (double)COUNT));
    for (unsigned k = 0; k < 3; k++) {
        const double share = exp(-(double)(k + 1));
        check_close_abs((double)beyond[k] / (double)COUNT, share, 0.0,
                        4.5 * sqrt(share * (1.0 - share) / (double)COUNT));
    }
    wg__arrivals_close(arrivals);
}

static void the_same_seed_gives_the_same_moments(void **state)
{
    (void)state;
    struct wg_arrivals *first = open_arrivals("poisson:3", 9);
    struct wg_arrivals *again = open_arrivals("poisson:3", 9);
    struct wg_arrivals *other = open_arrivals("poisson:3", 10);
    unsigned equal = 0;
    for (unsigned i = 0; i < 100; i++) {
        const double moment_s = wg__arrivals_next(first);
        check_close(wg__arrivals_next(again), moment_s, 0.0);
        equal += wg__arrivals_next(other) == moment_s;
    }
    assert_int_equal(equal, 0);
    wg__arrivals_close(first);
    wg__arrivals_close(again);
    wg__arrivals_close(other);
}

static void a_trace_of_moments_begins_again(void **state)
{
    (void)state;
    struct wg_arrivals *arrivals = open_trace("arrival_s\n5\n6\n8\n", "");
    check_close(wg__arrivals_rate(arrivals), 3.0 / 4.5, 1e-15);
    NEXT(arrivals, 0.0, 1.0, 3.0, 4.5, 5.5, 7.5, 9.0);
    wg__arrivals_close(arrivals);
}

static void a_trace_is_scaled_to_a_rate(void **state)
{
    (void)state;
    struct wg_arrivals *arrivals = open_trace("arrival_s\n5\n6\n8\n", ",rate=6");
    check_close(wg__arrivals_rate(arrivals), 6.0, 0.0);
    NEXT(arrivals, 0.0, 1.0 / 9.0, 3.0 / 9.0, 0.5, 5.5 / 9.0);
    wg__arrivals_close(arrivals);
    arrivals = open_trace("arrival_s\n0\n1\n2\n7\n9\n", ",rate=4,window=2:9");
    NEXT(arrivals, 0.0, 5.0 / 14.0, 7.0 / 14.0);
    wg__arrivals_close(arrivals);
}

static void gaps_of_a_list_follow_each_other(void **state)
{
    (void)state;
    struct wg_arrivals *arrivals = open_trace("[0.5, 0.25, 1]", ",as=gaps");
    NEXT(arrivals, 0.0, 0.5, 0.75, 1.75, 2.25, 2.5, 3.5);
    wg__arrivals_close(arrivals);
}

static void counts_are_kept_second_by_second(void **state)
{
    (void)state;
    static const unsigned counts[] = {3, 0, 7, 1, 0, 0, 12};
    struct wg_arrivals *arrivals = open_trace("count\n3\n0\n7\n1\n0\n0\n12\n", "");
    check_close(wg__arrivals_rate(arrivals), 23.0 / 7.0, 1e-15);
    double last_s = 0.0;
    for (unsigned pass = 0; pass < 50; pass++) {
        for (unsigned second = 0; second < 7; second++) {
            for (unsigned i = 0; i < counts[second]; i++) {
                const double moment_s = wg__arrivals_next(arrivals);
                assert_true(moment_s >= last_s);
                assert_int_equal((unsigned)moment_s, pass * 7 + second);
                last_s = moment_s;
            }
        }
    }
    wg__arrivals_close(arrivals);
}

/* k moments at random within a second are its order statistics: the i-th has mean i/(k + 1). */
static void moments_within_a_second_are_uniform(void **state)
{
    (void)state;
    enum { PASSES = 20000, COUNT = 4 };
    struct wg_arrivals *arrivals = open_trace("count\n4\n", "");
    double sums[COUNT] = {0};
    for (unsigned pass = 0; pass < PASSES; pass++) {
        for (unsigned i = 0; i < COUNT; i++)
            sums[i] += wg__arrivals_next(arrivals) - pass;
    }
    for (unsigned i = 0; i < COUNT; i++) {
        const double mean = (i + 1.0) / (COUNT + 1);
        const double variance = mean * (1.0 - mean) / (COUNT + 2);
        check_close_abs(sums[i] / (double)PASSES, mean, 0.0, 4.5 * sqrt(variance / (double)PASSES));
    }
    wg__arrivals_close(arrivals);
}

static void the_burstiest_minute_is_taken_and_scaled(void **state)
{
    (void)state;
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_puts(&text, "count\n");
    for (unsigned second = 0; second < 300; second++)
        wg__buffer_printf(&text, "%u\n", second == 170 ? 60 : 1);
    struct wg_arrivals *arrivals = open_trace(text.data, ",window=burstiest,rate=119");
    /* The minute that ends with the burst is the first of those that hold it: 111 .. 170. */
    check_close(wg__arrivals_rate(arrivals), 119.0, 0.0);
    double moment_s = 0.0;
    for (unsigned i = 0; i < 60; i++)
        moment_s = wg__arrivals_next(arrivals);
    assert_true(moment_s > 59.0 / 60.0 && moment_s < 1.0);
    wg__arrivals_close(arrivals);
    wg__buffer_fini(&text);
}

static void expect_error(const char *text, enum wg_code code, const char *expected)
{
    struct wg_arrivals *arrivals = NULL;
    struct wg_error err = {0};
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    assert_int_equal(wg__arrivals_open(&arrivals, text, &rng, &err), code);
    assert_null(arrivals);
    assert_string_equal(err.text, expected);
}

static void says_what_it_expects(void **state)
{
    (void)state;
    expect_error("poison:8", WG_EINVAL,
                 "arrivals 'poison:8': expected uniform:RATE, poisson:RATE or "
                 "trace:FILE[,rate=R][,window=burstiest|A:B]");
    expect_error("poisson:0", WG_EINVAL,
                 "arrivals: rate '0', expected requests per second from 1e-06 to 1e+09");
    expect_error("uniform:many", WG_EINVAL,
                 "arrivals: rate 'many', expected requests per second from 1e-06 to 1e+09");
    expect_error("trace:", WG_EINVAL, "arrivals '': expected a file behind trace:");
    expect_error("trace:/nowhere,rate=-1", WG_EINVAL,
                 "arrivals: rate '-1', expected requests per second from 1e-06 to 1e+09");
    expect_error("trace:/nowhere,window=noon", WG_EINVAL,
                 "arrivals: window 'noon', expected burstiest or A:B in seconds of the trace");
    expect_error("trace:/nowhere,as=joules", WG_EINVAL,
                 "arrivals: as 'joules', expected auto, moments, counts or gaps");
    expect_error("trace:/nowhere,spread=-1", WG_EINVAL,
                 "arrivals: spread '-1', expected seconds from 0 to 1e9");
    expect_error("trace:/nowhere,by=size", WG_EINVAL,
                 "arrivals: by 'size', expected time or count");
    expect_error("trace:/nowhere,speed=2", WG_EINVAL,
                 "arrivals: no option 'speed' of a trace; they are rate, by, window, as, skip and "
                 "spread");
    static const char *const twice[] = {"rate=2",  "by=count", "window=burstiest",
                                        "as=gaps", "skip=1",   "spread=1"};
    for (size_t i = 0; i < sizeof twice / sizeof twice[0]; i++) {
        char text[80];
        char message[80];
        (void)snprintf(text, sizeof text, "trace:/nowhere,%s,%s", twice[i], twice[i]);
        (void)snprintf(message, sizeof message, "arrivals: %.*s is given twice",
                       (int)strcspn(twice[i], "=") + 1, twice[i]);
        expect_error(text, WG_EINVAL, message);
    }
    expect_error("trace:/nowhere/a,b.csv,rate=2", WG_ENOENT,
                 "/nowhere/a,b.csv: cannot open: No such file or directory");
}

/* Counts of n become binomial (p), or n times the whole part of the factor and a binomial rest:
 * mean and variance of the counts of each second, within 4.5 standard errors. */
static void by_count_each_second_keeps_its_share(void **state)
{
    (void)state;
    enum { PASSES = 4000, SECONDS = 4 };
    static const unsigned counts[SECONDS] = {30, 0, 2, 8};
    static const double factors[] = {0.07, 0.5, 1.0, 1.3, 4.0, 3.9};
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
        char options[64];
        (void)snprintf(options, sizeof options, ",skip=0,by=count,rate=%.17g", 10.0 * factors[f]);
        struct wg_arrivals *arrivals = open_trace("count\n30\n0\n2\n8\n", options);
        check_close(wg__arrivals_rate(arrivals), 10.0 * factors[f], 1e-15);
        double sums[SECONDS] = {0};
        double squares[SECONDS] = {0};
        double next_s = wg__arrivals_next(arrivals);
        for (unsigned second = 0; second < PASSES * SECONDS; second++) {
            unsigned count = 0;
            while (next_s < second + 1.0) {
                next_s = wg__arrivals_next(arrivals);
                count++;
            }
            sums[second % SECONDS] += count;
            squares[second % SECONDS] += (double)count * count;
        }
        const double rest = factors[f] - floor(factors[f]);
        for (unsigned i = 0; i < SECONDS; i++) {
            const double variance = counts[i] * rest * (1.0 - rest);
            const double mean = sums[i] / (double)PASSES;
            check_close_abs(mean, counts[i] * factors[f], 1e-12,
                            4.5 * sqrt(variance / (double)PASSES));
            check_close_abs(squares[i] / (double)PASSES - mean * mean, variance, 1e-12,
                            4.5 * (variance + sqrt(variance)) * sqrt(2.0 / (double)PASSES) + 1e-9);
        }
        wg__arrivals_close(arrivals);
    }
}

/* What stays of moments is at its moment: a subset, at the rate, each equally often. */
static void by_count_some_moments_stay_where_they_are(void **state)
{
    (void)state;
    enum { PASSES = 20000 };
    struct wg_arrivals *arrivals = open_trace("arrival_s\n0\n1\n1.5\n6\n", ",by=count,rate=0.05");
    static const double moments_s[] = {0.0, 1.0, 1.5, 6.0}; /* in 8 s: .5 a second, 1 of 10 stays */
    unsigned stayed[4] = {0};
    for (;;) {
        const double moment_s = wg__arrivals_next(arrivals);
        if (moment_s >= 8.0 * (double)PASSES)
            break;
        const double within_s = fmod(moment_s, 8.0);
        unsigned which = 0;
        while (which < 4 && within_s != moments_s[which])
            which++;
        assert_true(which < 4);
        stayed[which]++;
    }
    for (unsigned i = 0; i < 4; i++)
        check_close_abs(stayed[i] / (double)PASSES, 0.1, 0.0, 4.5 * sqrt(0.09 / (double)PASSES));
    wg__arrivals_close(arrivals);
}

static void by_count_moments_are_multiplied_within_their_second(void **state)
{
    (void)state;
    struct wg_arrivals *arrivals = open_trace("arrival_s\n0\n1\n1.5\n6\n", ",by=count,rate=1.5");
    for (unsigned pass = 0; pass < 100; pass++) {
        static const unsigned seconds[] = {0, 0, 0, 1, 1, 1, 1, 1, 1, 6, 6, 6};
        for (size_t i = 0; i < 12; i++)
            assert_int_equal((unsigned)wg__arrivals_next(arrivals), pass * 8 + seconds[i]);
    }
    wg__arrivals_close(arrivals);
}

/* Times between requests may end with 0: the last one is where the trace begins again. */
static void by_count_a_moment_at_the_very_end_is_in_the_last_second(void **state)
{
    (void)state;
    struct wg_arrivals *arrivals = open_trace("gap_s\n2\n0\n", ",by=count,rate=3");
    static const unsigned seconds[] = {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
        assert_int_equal((unsigned)wg__arrivals_next(arrivals), seconds[i]);
    wg__arrivals_close(arrivals);
}

static void by_count_a_trace_too_long_is_not_multiplied(void **state)
{
    (void)state;
    struct scratch scratch;
    char wish[1024];
    char expected[256];
    scratch_open(&scratch);
    scratch_write(scratch_path(&scratch, "t.csv"), "arrival_s\n0\n2e8\n", 16);
    (void)snprintf(wish, sizeof wish, "trace:%s,by=count,rate=1", scratch.path);
    (void)snprintf(expected, sizeof expected,
                   "by count: the trace lasts 4e+08 s, expected at most %d to multiply requests in",
                   WG_ARRIVALS_MAX);
    expect_error(wish, WG_EINVAL, expected);
    scratch_close(&scratch);
}

static void by_count_a_trace_restarts_as_it_was_opened(void **state)
{
    (void)state;
    static const char *const texts[] = {"count\n3\n0\n5\n", "arrival_s\n0\n1\n1.5\n"};
    for (size_t i = 0; i < 2; i++) {
        struct wg_arrivals *fresh = open_trace(texts[i], ",by=count,rate=.4");
        struct wg_arrivals *again = open_trace(texts[i], ",by=count,rate=.4");
        struct wg_rng rng;
        for (unsigned n = 0; n < 50; n++)
            (void)wg__arrivals_next(again);
        wg__arrivals_seek(again, 0.5);
        wg__rng_init(&rng, 5);
        wg__arrivals_restart(again, &rng);
        for (unsigned n = 0; n < 50; n++)
            check_close(wg__arrivals_next(again), wg__arrivals_next(fresh), 0.0);
        wg__arrivals_close(fresh);
        wg__arrivals_close(again);
    }
}

static void a_trace_may_begin_anywhere(void **state)
{
    (void)state;
    struct wg_arrivals *arrivals = open_trace("arrival_s\n0\n1\n3\n6\n", ",rate=1"); /* 8 s to 4 */
    wg__arrivals_seek(arrivals, 0.25);
    NEXT(arrivals, 0.5, 2.0, 3.0, 3.5, 4.5);
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    wg__arrivals_restart(arrivals, &rng);
    wg__arrivals_seek(arrivals, 0.875); /* behind the last one */
    NEXT(arrivals, 0.5, 1.0, 2.0);
    wg__arrivals_close(arrivals);
    arrivals = open_trace("count\n2\n0\n1\n0\n", ",skip=0,rate=0.375");
    wg__arrivals_seek(arrivals, 0.6); /* the third second; stretched by 2 */
    static const unsigned seconds[] = {0, 2, 2, 4, 6, 6};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
        assert_int_equal((unsigned)(wg__arrivals_next(arrivals) / 2.0), seconds[i]);
    wg__arrivals_close(arrivals);
    arrivals = open_arrivals("uniform:10", 1);
    wg__arrivals_seek(arrivals, 0.5);
    NEXT(arrivals, 0.0, 0.1);
    wg__arrivals_close(arrivals);
}

static void survives_every_failing_allocation(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const char *path = scratch_path(&scratch, "t.csv");
    scratch_write(path, "arrival_s\n1\n70\n65\n", 18);
    char wish[1024];
    (void)snprintf(wish, sizeof wish, "trace:%s,window=burstiest,by=count,rate=5", path);
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    enum wg_code code = WG_ENOMEM;
    for (size_t nth = 1; code != WG_OK; nth++) {
        assert_true(nth < 50);
        struct wg_arrivals *arrivals = NULL;
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        code = wg__arrivals_open(&arrivals, wish, &rng, &err);
        wg__alloc_fail_from(0);
        assert_int_equal(code != WG_OK, arrivals == NULL);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        wg__arrivals_close(arrivals);
    }
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(restarted_arrivals_come_as_those_that_were_opened_so),
        cmocka_unit_test(uniform_arrivals_are_even_for_ever),
        cmocka_unit_test(poisson_arrivals_have_exponential_gaps),
        cmocka_unit_test(the_same_seed_gives_the_same_moments),
        cmocka_unit_test(a_trace_of_moments_begins_again),
        cmocka_unit_test(a_trace_is_scaled_to_a_rate),
        cmocka_unit_test(gaps_of_a_list_follow_each_other),
        cmocka_unit_test(counts_are_kept_second_by_second),
        cmocka_unit_test(moments_within_a_second_are_uniform),
        cmocka_unit_test(the_burstiest_minute_is_taken_and_scaled),
        cmocka_unit_test(by_count_each_second_keeps_its_share),
        cmocka_unit_test(by_count_some_moments_stay_where_they_are),
        cmocka_unit_test(by_count_moments_are_multiplied_within_their_second),
        cmocka_unit_test(by_count_a_moment_at_the_very_end_is_in_the_last_second),
        cmocka_unit_test(by_count_a_trace_too_long_is_not_multiplied),
        cmocka_unit_test(by_count_a_trace_restarts_as_it_was_opened),
        cmocka_unit_test(a_trace_may_begin_anywhere),
        cmocka_unit_test(says_what_it_expects),
        cmocka_unit_test(survives_every_failing_allocation),
    };
    return run_tests(tests);
}
