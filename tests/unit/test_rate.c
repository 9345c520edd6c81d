/* SPDX-License-Identifier: MIT
 *
 * The rate against closed forms: even arrivals, a Poisson process, and one that switches between
 * two rates (Markov-modulated; Heffes and Lucantoni, "A Markov modulated characterization of
 * packetized voice and data traffic", IEEE JSAC 4, 1986).
 */
#include "schedule/rate.h"

#include <stdbool.h>

#include "base/rng.h"
#include "support/check.h"

static double exponential(struct wg_rng *rng, double rate)
{
    return -log(wg__rng_uniform(rng)) / rate;
}

static void even_arrivals_have_their_rate_and_no_dispersion(void **state)
{
    (void)state;
    struct wg_rate rate;
    wg__rate_init(&rate, 0.5);
    assert_true(wg__rate_mean(&rate, 0.0) == 0.0);
    assert_true(wg__rate_dispersion(&rate, 0.0) == 1.0);
    for (int i = 0; i <= 4000; i++) { /* dyadic times: 8 in each slot */
        const double now_s = 1000.0 + (double)i * 0.0625;
        wg__rate_tell(&rate, now_s, 1.0);
        if (i >= 8)
            check_close(wg__rate_mean(&rate, now_s), 16.0, 0.125);
        if (i >= 64) /* the first slot lacks the event that began it */
            assert_true(wg__rate_dispersion(&rate, now_s) < 0.02);
        if (i >= 8 * WG_RATE_SLOTS)
            assert_true(wg__rate_dispersion(&rate, now_s) == 0.0);
    }
    check_close(wg__rate_expect(&rate, 1250.0, 0.5, 3.0), 8.0, 0.01);
}

static void rows_count_and_not_requests(void **state)
{
    (void)state;
    struct wg_rate rate;
    wg__rate_init(&rate, 0.5);
    for (int i = 0; i <= 2000; i++)
        wg__rate_tell(&rate, (double)i * 0.0625, 4.0);
    check_close(wg__rate_mean(&rate, 125.0), 64.0, 0.01);
}

/* Mean and dispersion, averaged over times that lie windows apart. */
static void a_poisson_process_has_its_rate_and_dispersion_one(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 76);
    const double rates[] = {3.0, 40.0, 900.0};
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        struct wg_rate rate;
        wg__rate_init(&rate, 0.1);
        double now_s = 0.0;
        double means = 0.0;
        double dispersions = 0.0;
        double n = 0.0;
        double next_s = 12.8;
        while (n < 400.0) {
            now_s += exponential(&rng, rates[r]);
            wg__rate_tell(&rate, now_s, 1.0);
            if (now_s < next_s)
                continue;
            next_s += 6.4;
            n += 1.0;
            means += rate.sum / (6.3 * rates[r]); /* of the window: its mean may hold a burst */
            dispersions += wg__rate_dispersion(&rate, now_s);
        }
        /* The variance of a window's mean is 1/(6.3 rate), of its dispersion 2/62. */
        check_close_abs(means / n, 1.0, 0.0, 4.0 / sqrt(n * 6.3 * rates[r]));
        check_close_abs(dispersions / n, 1.0, 0.0, 4.0 * sqrt(2.0 / 62.0 / n));
    }
}

/* Asked every 1.37 slots, over a Poisson process that is told in between: the mean, and how often
 * no more comes in the next slot than the upper decile that is expected. */
static void check_poisson(double per_slot)
{
    struct wg_rng rng;
    struct wg_rate rate;
    wg__rng_init(&rng, 77);
    wg__rate_init(&rate, 1.0);
    double next_s = exponential(&rng, per_slot);
    double sum = 0.0;
    double told = 0.0;
    int covered = 0;
    const int asks = 6000;
    for (int i = 0; i < asks; i++) {
        const double ask_s = 100.0 + 1.37 * (double)i;
        while (next_s <= ask_s) {
            wg__rate_tell(&rate, next_s, 1.0);
            told += 1.0;
            next_s += exponential(&rng, per_slot);
        }
        sum += wg__rate_mean(&rate, ask_s);
        const double most = wg__rate_expect(&rate, ask_s, 1.0, 1.2816);
        double came = 0.0;
        while (next_s <= ask_s + 1.0) {
            wg__rate_tell(&rate, next_s, 1.0);
            next_s += exponential(&rng, per_slot);
            came += 1.0;
        }
        told += came;
        covered += came <= most;
    }
    check_close(sum / (double)asks, told / next_s, 0.02); /* as many as chance made them */
    check_close((double)covered / (double)asks, 0.875, 0.05);
}

static void a_steady_process_is_seldom_taken_for_a_burst(void **state)
{
    (void)state;
    check_poisson(0.3);
    check_poisson(1.0);
    check_poisson(10.0);
    check_poisson(100.0);
}

struct mmpp {
    double rates[2];
    double leave[2]; /* rate of leaving the state */
};

/* Variance of the count in t seconds, in the steady state. */
static double mmpp_variance(const struct mmpp *p, double t)
{
    const double both = p->leave[0] + p->leave[1];
    const double share = p->leave[1] / both; /* of state 0 */
    const double mean = share * p->rates[0] + (1.0 - share) * p->rates[1];
    const double gap = p->rates[0] - p->rates[1];
    const double spread = share * (1.0 - share) * gap * gap; /* of the rate */
    return mean * t + 2.0 * spread / both * (t - (1.0 - exp(-both * t)) / both);
}

static void bursts_show_in_the_dispersion(void **state)
{
    (void)state;
    const struct mmpp p = {.rates = {20.0, 120.0}, .leave = {0.5, 2.0}};
    struct wg_rng rng;
    wg__rng_init(&rng, 78);
    struct wg_rate rate;
    wg__rate_init(&rate, 0.1);
    double now_s = 0.0;
    double switch_s = 0.0;
    size_t at = 1;
    double variances = 0.0;
    double n = 0.0;
    double next_s = 6.4;
    while (n < 3000.0) {
        const double event_s = now_s + exponential(&rng, p.rates[at]);
        if (event_s >= switch_s) { /* a Poisson process may be drawn anew at any moment */
            now_s = switch_s;
            at = 1 - at;
            switch_s += exponential(&rng, p.leave[at]);
            continue;
        }
        now_s = event_s;
        wg__rate_tell(&rate, now_s, 1.0);
        if (now_s < next_s)
            continue;
        next_s += 6.4;
        n += 1.0;
        variances += wg__rate_dispersion(&rate, now_s) * rate.sum / (double)rate.filled;
    }
    /* Counts of one window hang together, so the sample variance is low by what their mean varies.
     */
    const double slots = 63.0;
    const double expected =
        (slots * mmpp_variance(&p, 0.1) - mmpp_variance(&p, slots * 0.1) / slots) / (slots - 1.0);
    check_close(variances / n, expected, 0.08);
    assert_true(expected / (p.rates[0] * 0.08 + p.rates[1] * 0.02) > 2.0);
}

static void a_burst_is_believed_within_a_few_slots_and_a_lull_with_time(void **state)
{
    (void)state;
    struct wg_rate rate;
    wg__rate_init(&rate, 0.1);
    double now_s = 0.0;
    for (int i = 0; i < 400; i++) { /* 20 a second */
        wg__rate_tell(&rate, now_s, 1.0);
        now_s += 0.05;
    }
    check_close(wg__rate_mean(&rate, now_s), 20.0, 0.02);
    const double burst_s = now_s;
    double believed_s = HUGE_VAL;
    for (int i = 0; i < 60; i++) { /* 100 a second */
        wg__rate_tell(&rate, now_s, 1.0);
        if (believed_s == HUGE_VAL && wg__rate_mean(&rate, now_s) > 60.0)
            believed_s = now_s;
        now_s += 0.01;
    }
    assert_true(believed_s - burst_s < 0.3);
    check_close(wg__rate_mean(&rate, now_s), 100.0, 0.25);
    double last = wg__rate_mean(&rate, now_s);
    bool fell = false;
    for (int i = 0; i < 64; i++) { /* nothing comes any more */
        const double mean = wg__rate_mean(&rate, now_s);
        assert_true(mean <= last * 1.001);
        fell = fell || mean < 30.0;
        if (i == 2)
            assert_true(mean > 20.0); /* not at once */
        last = mean;
        now_s += 0.1;
    }
    assert_true(fell && last < 1.0);
}

static void a_pause_of_hours_empties_the_window(void **state)
{
    (void)state;
    struct wg_rate rate;
    wg__rate_init(&rate, 0.001);
    for (int i = 0; i < 1000; i++)
        wg__rate_tell(&rate, (double)i * 0.0001, 1.0);
    assert_true(wg__rate_mean(&rate, 0.1) > 9000.0);
    for (int day = 1; day < 1000; day++) { /* 86.4e6 slots each: one by one would not end */
        const double now_s = 86400.0 * (double)day;
        assert_true(wg__rate_mean(&rate, now_s) == 0.0);
        assert_true(wg__rate_dispersion(&rate, now_s) == 1.0);
        wg__rate_tell(&rate, now_s, 1.0);
        check_close(wg__rate_mean(&rate, now_s), 1.0 / 0.063, 0.02);
    }
    assert_true(wg__rate_expect(&rate, 1e9, 5.0, 3.0) == 0.0);
}

/* The same events, asked or not asked in between, from another origin: the same answers; never
 * negative, never infinite; and the sums are those of the ring. */
static void irregular_clocks_change_nothing(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 79);
    struct wg_rate asked;
    struct wg_rate quiet;
    wg__rate_init(&asked, 0.25);
    wg__rate_init(&quiet, 0.25);
    double now_s = 0.0;
    for (int i = 0; i < 20000; i++) {
        const unsigned kind = wg__rng_below(&rng, 10);
        if (kind == 0)
            now_s += ldexp((double)wg__rng_below(&rng, 1 << 16), -8);
        else if (kind < 8)
            now_s += ldexp((double)wg__rng_below(&rng, 1 << 8), -10);
        const double rows = 1.0 + (double)wg__rng_below(&rng, 8);
        assert_true(wg__rate_expect(&asked, now_s, wg__rng_uniform(&rng), -3.0) >= 0.0);
        wg__rate_tell(&asked, now_s, rows);
        wg__rate_tell(&quiet, now_s, rows);
        const double mean = wg__rate_mean(&asked, now_s);
        assert_true(mean >= 0.0 && mean < 1e6);
        assert_true(wg__rate_dispersion(&asked, now_s) >= 0.0);
        double sum = 0.0;
        for (size_t slot = 0; slot < WG_RATE_SLOTS; slot++)
            sum += slot == asked.at ? 0.0 : asked.counts[slot];
        assert_true(sum == asked.sum);
    }
    assert_true(wg__rate_mean(&asked, now_s) == wg__rate_mean(&quiet, now_s));
    assert_true(wg__rate_dispersion(&asked, now_s) == wg__rate_dispersion(&quiet, now_s));
}

static void two_events_at_once_are_no_infinite_rate(void **state)
{
    (void)state;
    struct wg_rate rate;
    wg__rate_init(&rate, 0.5);
    wg__rate_tell(&rate, 3.0, 1.0);
    assert_true(wg__rate_mean(&rate, 3.0) == 0.0);
    wg__rate_tell(&rate, 3.0, 1.0);
    assert_true(wg__rate_mean(&rate, 3.0) == 2.0);
    assert_true(wg__rate_mean(&rate, 3.5) == 2.0);
    assert_true(wg__rate_mean(&rate, 4.0) == 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_arrivals_have_their_rate_and_no_dispersion),
        cmocka_unit_test(rows_count_and_not_requests),
        cmocka_unit_test(a_poisson_process_has_its_rate_and_dispersion_one),
        cmocka_unit_test(a_steady_process_is_seldom_taken_for_a_burst),
        cmocka_unit_test(bursts_show_in_the_dispersion),
        cmocka_unit_test(a_burst_is_believed_within_a_few_slots_and_a_lull_with_time),
        cmocka_unit_test(a_pause_of_hours_empties_the_window),
        cmocka_unit_test(irregular_clocks_change_nothing),
        cmocka_unit_test(two_events_at_once_are_no_infinite_rate),
    };
    return run_tests(tests);
}
