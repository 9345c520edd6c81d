/* SPDX-License-Identifier: MIT
 *
 * Counters that wrap, against sums that are known.
 */
#include "device/wrap.h"

#include "base/rng.h"
#include "support/check.h"

static const uint64_t KILO = 1000;
static const uint64_t MEGA = 1000000;
static const uint64_t SECOND_NS = UINT64_C(1000000000);
static const uint64_t SERVER_RANGE_UJ = UINT64_C(262143328850);
static const uint64_t CLIENT_RANGE_UJ = UINT64_C(65532610987);
static const double MOST_UW = 2e9; /* 2 kW */

static void a_wrap_adds_what_was_left_and_what_came_after(void **state)
{
    (void)state; /* field report 2 */
    struct wg_wrap counter;
    wg__wrap_init(&counter, SERVER_RANGE_UJ, MOST_UW);
    assert_true(wg__wrap_add(&counter, SERVER_RANGE_UJ - 5 * MEGA, 0));
    assert_true(wg__wrap_add(&counter, 7 * MEGA, SECOND_NS));
    assert_int_equal(counter.total, SERVER_RANGE_UJ + 7 * MEGA);
    assert_true(wg__wrap_add(&counter, 107 * MEGA, 2 * SECOND_NS));
    assert_int_equal(counter.total, SERVER_RANGE_UJ + 107 * MEGA);
}

static void zones_of_several_ranges_wrap_at_their_own_times(void **state)
{
    (void)state; /* field report 3: psys, package and memory, each with a range of its own */
    static const uint64_t ranges[] = {262143328850, 65532610987, 17179869184};
    static const uint64_t powers_w[] = {310, 180, 24};
    struct wg_wrap counters[3];
    for (size_t i = 0; i < 3; i++)
        wg__wrap_init(&counters[i], ranges[i], MOST_UW);
    uint64_t wraps[3] = {0};
    for (uint64_t second = 0; second < 4000; second++) {
        for (size_t i = 0; i < 3; i++) {
            const uint64_t energy_uj = powers_w[i] * MEGA * second;
            wraps[i] = energy_uj / ranges[i];
            assert_true(wg__wrap_add(&counters[i], energy_uj % ranges[i], second * SECOND_NS));
            assert_true(counters[i].total == energy_uj);
        }
    }
    assert_true(wraps[0] == 4 && wraps[1] == 10 && wraps[2] == 5);
}

static void without_a_range_a_step_back_is_dropped_and_the_total_never_falls(void **state)
{
    (void)state; /* field report 1: max_energy_range_uj cannot be read, 4e9 is followed by 1e4 */
    struct wg_wrap counter;
    wg__wrap_init(&counter, 0, MOST_UW);
    assert_true(wg__wrap_add(&counter, 4 * MEGA * KILO, 0));
    assert_false(wg__wrap_add(&counter, 10 * KILO, SECOND_NS));
    assert_true(counter.total == 4 * MEGA * KILO);
    assert_true(wg__wrap_add(&counter, 10 * KILO + 50 * MEGA, 2 * SECOND_NS));
    assert_true(counter.total == 4 * MEGA * KILO + 50 * MEGA);
    check_close_abs(wg__wrap_period_s(&counter), 0.0, 0.0, 0.0);
}

static void a_step_that_no_power_explains_is_a_reset(void **state)
{
    (void)state;
    struct wg_wrap counter;
    wg__wrap_init(&counter, SERVER_RANGE_UJ, MOST_UW);
    assert_true(wg__wrap_add(&counter, 1000 * MEGA, 0));
    /* Back to 0: as a wrap that would be 261 kJ in a second. */
    assert_false(wg__wrap_add(&counter, 0, SECOND_NS));
    assert_true(counter.total == 1000 * MEGA);
    assert_true(wg__wrap_add(&counter, 300 * MEGA, 2 * SECOND_NS));
    assert_true(counter.total == 1300 * MEGA);
    /* Forward just as well: field report 73, where 260 kW were reported. */
    assert_false(wg__wrap_add(&counter, 260000 * MEGA, 3 * SECOND_NS));
    assert_true(counter.total == 1300 * MEGA);
    /* A value beyond the range is nonsense, and what follows it is no wrap. */
    assert_false(wg__wrap_add(&counter, SERVER_RANGE_UJ + 1, 4 * SECOND_NS));
    assert_false(wg__wrap_add(&counter, 5, 5 * SECOND_NS));
    assert_true(wg__wrap_add(&counter, 6, 6 * SECOND_NS));
    assert_true(counter.total == 1300 * MEGA + 1);
}

static void two_reads_around_one_tick_of_the_register_are_believed(void **state)
{
    (void)state;
    struct wg_wrap counter;
    wg__wrap_init(&counter, SERVER_RANGE_UJ, MOST_UW);
    assert_true(wg__wrap_add(&counter, 0, 0));
    assert_true(wg__wrap_add(&counter, 400 * KILO, 5 * KILO)); /* 0.4 J, 5 us later */
    assert_int_equal(counter.total, 400 * KILO);
}

static void a_day_at_400_watts_is_exact_when_read_each_minute(void **state)
{
    (void)state; /* field report 72 */
    struct wg_wrap counter;
    wg__wrap_init(&counter, SERVER_RANGE_UJ, MOST_UW);
    check_close(wg__wrap_period_s(&counter), 131.07, 1e-3);
    const uint64_t day_s = 86400;
    for (uint64_t second = 0; second <= day_s; second += 60) {
        const uint64_t energy_uj = 400 * MEGA * second;
        assert_true(wg__wrap_add(&counter, energy_uj % SERVER_RANGE_UJ, second * SECOND_NS));
    }
    assert_true(counter.total == 400 * MEGA * day_s);
}

static void reads_too_far_apart_are_refused_and_never_counted_short(void **state)
{
    (void)state; /* field report 72: it may have gone round several times */
    struct wg_wrap counter;
    wg__wrap_init(&counter, CLIENT_RANGE_UJ, MOST_UW);
    uint64_t refused = 0;
    for (uint64_t second = 0; second <= 86400; second += 600) {
        const uint64_t energy_uj = 400 * MEGA * second;
        refused += !wg__wrap_add(&counter, energy_uj % CLIENT_RANGE_UJ, second * SECOND_NS);
    }
    assert_int_equal(refused, 144);
    assert_int_equal(counter.total, 0);
}

/* Field report 73. The oracle counts with one number of 64 bits that never wraps. */
static void any_order_of_wraps_gives_the_exact_sum(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 73);
    for (int round = 0; round < 200; round++) {
        struct wg_wrap counters[4];
        uint64_t ranges[4];
        uint64_t energies_uj[4];
        for (size_t i = 0; i < 4; i++) {
            ranges[i] = MEGA + (uint64_t)(wg__rng_uniform(&rng) * 1e11);
            energies_uj[i] = (uint64_t)(wg__rng_uniform(&rng) * (double)ranges[i]);
            wg__wrap_init(&counters[i], ranges[i], MOST_UW);
            assert_true(wg__wrap_add(&counters[i], energies_uj[i], 0));
        }
        uint64_t t_ns = 0;
        for (int step = 0; step < 300; step++) {
            t_ns += (uint64_t)(wg__rng_uniform(&rng) * 2e9);
            for (size_t i = 0; i < 4; i++) {
                const double elapsed_s = (double)(t_ns - counters[i].t_ns) * 1e-9;
                const bool in_time = elapsed_s < wg__wrap_period_s(&counters[i]);
                const double power_uw = wg__rng_uniform(&rng) * MOST_UW;
                energies_uj[i] += (uint64_t)(power_uw * elapsed_s);
                const uint64_t before = counters[i].total;
                const bool known = wg__wrap_add(&counters[i], energies_uj[i] % ranges[i], t_ns);
                assert_int_equal(known, in_time);
                if (!known) { /* start the oracle where the counter goes on */
                    assert_true(counters[i].total == before);
                    energies_uj[i] %= ranges[i];
                    counters[i].total = energies_uj[i];
                }
                assert_true(counters[i].total == energies_uj[i]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrap_adds_what_was_left_and_what_came_after),
        cmocka_unit_test(zones_of_several_ranges_wrap_at_their_own_times),
        cmocka_unit_test(without_a_range_a_step_back_is_dropped_and_the_total_never_falls),
        cmocka_unit_test(a_step_that_no_power_explains_is_a_reset),
        cmocka_unit_test(two_reads_around_one_tick_of_the_register_are_believed),
        cmocka_unit_test(a_day_at_400_watts_is_exact_when_read_each_minute),
        cmocka_unit_test(reads_too_far_apart_are_refused_and_never_counted_short),
        cmocka_unit_test(any_order_of_wraps_gives_the_exact_sum),
    };
    return run_tests(tests);
}
