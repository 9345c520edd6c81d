/* SPDX-License-Identifier: MIT
 *
 * The period and phase of a counter's ticks, found from reads: measure/ticks.c.
 */
#include "measure/ticks.h"

#include "base/rng.h"
#include "support/check.h"

static const uint64_t EPOCH_NS = 5000000000000U;

struct timer {
    double period_ns, phase_ns, jitter_ns;
    struct wg_rng rng;
};

/* How many ticks there have been by `t_ns`. */
static int64_t ticks_by(const struct timer *timer, uint64_t t_ns)
{
    const double t = (double)(int64_t)(t_ns - EPOCH_NS) - timer->phase_ns;
    return (int64_t)floor(t / timer->period_ns);
}

/* Reads each `step_ns` until `until_ns`. */
static uint64_t read_evenly(struct wg_ticks *ticks, const struct timer *timer, uint64_t from_ns,
                            uint64_t step_ns, uint64_t until_ns)
{
    uint64_t t_ns = from_ns;
    while (t_ns + step_ns <= until_ns) {
        const bool has_changed = ticks_by(timer, t_ns) != ticks_by(timer, t_ns + step_ns);
        wg__ticks_observe(ticks, t_ns, t_ns + step_ns, has_changed, 10000);
        t_ns += step_ns;
    }
    return t_ns;
}

static double tick_error_ns(const struct wg_ticks *ticks, const struct timer *timer, uint64_t t_ns,
                            double *half_out)
{
    const uint64_t tick_ns = wg__ticks_nearest(ticks, t_ns, half_out);
    const double t = (double)(int64_t)(tick_ns - EPOCH_NS) - timer->phase_ns;
    return fabs(t - round(t / timer->period_ns) * timer->period_ns);
}

static void locks_on_a_declared_period_within_two_periods(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 3);
    for (int i = 0; i < 200; i++) {
        const double period_ns = i % 2 ? 20e6 : 100e6;
        const struct timer timer = {period_ns * (0.99 + 0.02 * wg__rng_uniform(&rng)),
                                    period_ns * wg__rng_uniform(&rng), 0, rng};
        struct wg_ticks ticks;
        wg__ticks_init(&ticks, period_ns * 1e-9);
        const uint64_t until_ns = EPOCH_NS + (uint64_t)(2 * period_ns);
        (void)read_evenly(&ticks, &timer, EPOCH_NS, wg__ticks_search_step_ns(&ticks), until_ns);
        assert_int_equal(ticks.state, WG_TICKS_LOCKED);
        double half_ns;
        const double error_ns = tick_error_ns(&ticks, &timer, until_ns, &half_ns);
        assert_true(error_ns <= half_ns);
        assert_true(half_ns < period_ns / 8);
    }
}

/* Field report 24: a counter that moves each 10 to 20 ms, with nobody saying so. */
static void infers_a_period_that_nobody_declares(void **state)
{
    (void)state;
    const double periods_ns[] = {10e6, 20e6, 50e6, 100e6};
    for (size_t i = 0; i < 4; i++) {
        const struct timer timer = {periods_ns[i], 0.3 * periods_ns[i], 0, {0}};
        struct wg_ticks ticks;
        wg__ticks_init(&ticks, 0);
        (void)read_evenly(&ticks, &timer, EPOCH_NS, wg__ticks_search_step_ns(&ticks),
                          EPOCH_NS + 290000000);
        assert_int_equal(ticks.state, WG_TICKS_LOCKED);
        check_close_abs(ticks.period_ns, periods_ns[i], 0, ticks.period_error_ns + 1);
        assert_true(ticks.period_error_ns < 4e6);
    }
}

static void takes_a_millisecond_for_continuous(void **state)
{
    (void)state;
    struct wg_ticks declared, inferred;
    wg__ticks_init(&declared, 0.001);
    assert_int_equal(declared.state, WG_TICKS_CONTINUOUS);
    const struct timer timer = {1e6, 0, 0, {0}};
    wg__ticks_init(&inferred, 0);
    (void)read_evenly(&inferred, &timer, EPOCH_NS, 2000000, EPOCH_NS + 100000000);
    assert_int_equal(inferred.state, WG_TICKS_CONTINUOUS);
}

static void gives_up_a_counter_that_stands_still_and_tries_again_later(void **state)
{
    (void)state;
    struct wg_ticks ticks;
    wg__ticks_init(&ticks, 0.02);
    uint64_t t_ns = EPOCH_NS;
    while (ticks.state == WG_TICKS_SEARCHING && t_ns < EPOCH_NS + 1000000000) {
        wg__ticks_observe(&ticks, t_ns, t_ns + 2500000, false, 0);
        t_ns += 2500000;
    }
    assert_int_equal(ticks.state, WG_TICKS_UNKNOWN);
    assert_true(t_ns <= EPOCH_NS + 60000000);
    wg__ticks_retry(&ticks, t_ns + 1000000000);
    assert_int_equal(ticks.state, WG_TICKS_UNKNOWN);
    wg__ticks_retry(&ticks, t_ns + 20000000000);
    assert_int_equal(ticks.state, WG_TICKS_SEARCHING);
}

static void halves_the_doubt_with_each_read_in_its_middle(void **state)
{
    (void)state;
    const struct timer timer = {100e6, 37e6, 0, {0}};
    struct wg_ticks ticks;
    wg__ticks_init(&ticks, 0.1);
    uint64_t t_ns = read_evenly(&ticks, &timer, EPOCH_NS, 12500000, EPOCH_NS + 200000000);
    for (int i = 0; i < 16; i++) {
        double before_ns, after_ns;
        const uint64_t tick_ns = wg__ticks_next(&ticks, t_ns, &before_ns);
        const bool has_changed = ticks_by(&timer, t_ns) != ticks_by(&timer, tick_ns);
        wg__ticks_observe(&ticks, t_ns, tick_ns, has_changed, 1000);
        const uint64_t behind_ns = tick_ns + 30000000;
        wg__ticks_observe(&ticks, tick_ns, behind_ns,
                          ticks_by(&timer, tick_ns) != ticks_by(&timer, behind_ns), 1000);
        t_ns = behind_ns;
        const double error_ns = tick_error_ns(&ticks, &timer, tick_ns, &after_ns);
        assert_true(error_ns <= after_ns);
        assert_true(after_ns < 0.7 * before_ns || after_ns < 3e6);
    }
    double half_ns;
    (void)wg__ticks_nearest(&ticks, t_ns, &half_ns);
    assert_true(half_ns < 1e6);
}

static void the_last_sure_tick_is_not_one_that_may_yet_come(void **state)
{
    (void)state;
    const struct timer timer = {20e6, 5e6, 0, {0}};
    struct wg_ticks ticks;
    wg__ticks_init(&ticks, 0.02);
    const uint64_t t_ns = read_evenly(&ticks, &timer, EPOCH_NS, 2500000, EPOCH_NS + 40000000);
    unsigned doubtful = 0;
    for (uint64_t s_ns = t_ns; s_ns < t_ns + 100000000; s_ns += 100000) {
        uint64_t tick_ns;
        double half_ns;
        if (!wg__ticks_floor(&ticks, s_ns, 0, &tick_ns, &half_ns)) {
            doubtful++;
            continue;
        }
        const double by = (double)(int64_t)(tick_ns - EPOCH_NS) - timer.phase_ns;
        assert_int_equal(llround(by / timer.period_ns), ticks_by(&timer, s_ns));
    }
    assert_true(doubtful > 0 && doubtful < 500);
}

static void finds_a_timer_again_that_has_jumped(void **state)
{
    (void)state;
    struct timer timer = {20e6, 5e6, 0, {0}};
    struct wg_ticks ticks;
    wg__ticks_init(&ticks, 0.02);
    uint64_t t_ns = read_evenly(&ticks, &timer, EPOCH_NS, 2500000, EPOCH_NS + 200000000);
    timer.phase_ns = 14e6;
    t_ns = read_evenly(&ticks, &timer, t_ns, 2500000, t_ns + 400000000);
    assert_int_equal(ticks.state, WG_TICKS_LOCKED);
    double half_ns;
    assert_true(tick_error_ns(&ticks, &timer, t_ns, &half_ns) <= half_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(locks_on_a_declared_period_within_two_periods),
        cmocka_unit_test(infers_a_period_that_nobody_declares),
        cmocka_unit_test(takes_a_millisecond_for_continuous),
        cmocka_unit_test(gives_up_a_counter_that_stands_still_and_tries_again_later),
        cmocka_unit_test(halves_the_doubt_with_each_read_in_its_middle),
        cmocka_unit_test(the_last_sure_tick_is_not_one_that_may_yet_come),
        cmocka_unit_test(finds_a_timer_again_that_has_jumped),
    };
    return run_tests(tests);
}
