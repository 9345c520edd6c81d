/* SPDX-License-Identifier: MIT
 *
 * Energy from power readings: measure/power_line.c.
 */
#include "measure/power_line.h"

#include "support/check.h"

static const struct wg_sensor of_the_moment = {0, 0, 1, true};
static const struct wg_sensor averaged = {0.1, 1, 1, true};
static const uint64_t EPOCH_NS = 1000000000000U;

static uint64_t at(double t_s)
{
    return EPOCH_NS + (uint64_t)llround(t_s * 1e9);
}

static void time_weighs_not_change(void **state)
{
    (void)state;
    struct wg_power_line power;
    wg__power_line_init(&power, &of_the_moment, 1);
    const double times_s[] = {0, 0.3, 0.31, 1.1, 1.2, 2, 2.5, 3};
    for (size_t i = 0; i < sizeof times_s / sizeof times_s[0]; i++)
        wg__power_line_add(&power, at(times_s[i]), 100);
    double energy_j, variance_j2, seen_s;
    assert_true(wg__power_line_between(&power, at(0), at(3), &energy_j, &variance_j2, &seen_s));
    check_close(energy_j, 300, 1e-12);
    check_close_abs(variance_j2, 0, 0, 1e-12);
    check_close(seen_s, 3, 1e-12);
}

static void a_ramp_is_its_trapezium(void **state)
{
    (void)state;
    struct wg_power_line power;
    wg__power_line_init(&power, &of_the_moment, 1);
    for (int i = 0; i <= 20; i++)
        wg__power_line_add(&power, at(0.1 * i), 10.0 * i);
    double energy_j, variance_j2, seen_s;
    assert_true(wg__power_line_between(&power, at(0.5), at(1.5), &energy_j, &variance_j2, &seen_s));
    check_close(energy_j, 100, 1e-9);
    assert_true(variance_j2 > 0);
}

static void a_reading_is_half_a_period_and_half_a_window_old(void **state)
{
    (void)state;
    struct wg_power_line power;
    const struct wg_sensor sensor = {0.1, 0.025, 0.25, true};
    wg__power_line_init(&power, &sensor, 1);
    assert_int_equal(power.delay_ns, 62500000);
}

static void no_reading_means_no_energy(void **state)
{
    (void)state;
    struct wg_power_line power;
    wg__power_line_init(&power, &of_the_moment, 1);
    double energy_j, variance_j2, seen_s;
    assert_false(wg__power_line_between(&power, 0, 1, &energy_j, &variance_j2, &seen_s));
}

static void a_gap_is_not_seen_and_wide_open(void **state)
{
    (void)state;
    struct wg_power_line power;
    wg__power_line_init(&power, &of_the_moment, 0.25);
    for (int i = 0; i <= 10; i++)
        wg__power_line_add(&power, at(0.1 * i), 100);
    wg__power_line_add(&power, at(6), 100);
    double energy_j, variance_j2, seen_s;
    assert_true(wg__power_line_between(&power, at(0), at(6), &energy_j, &variance_j2, &seen_s));
    check_close(energy_j, 600, 1e-9);
    check_close(seen_s, 1, 1e-9);
    assert_true(sqrt(variance_j2) > 100);
}

/* The mean over [t - 1, t] of a step from 50 to 250 W at 5 s. */
static double averaged_step_w(double t_s)
{
    return t_s <= 5 ? 50 : t_s >= 6 ? 250 : 50 + 200 * (t_s - 5);
}

static void an_average_over_a_second_is_undone(void **state)
{
    (void)state;
    struct wg_power_line power;
    wg__power_line_init(&power, &averaged, 0.25);
    for (int i = 0; i <= 120; i++) /* each reading is half a period old */
        wg__power_line_add(&power, at(0.1 * i), averaged_step_w(0.1 * i - 0.05));
    double energy_j, variance_j2, seen_s;
    /* Within the second before the step, and the one after: the readings alone would say 150 W for
     * the second after it. */
    assert_true(wg__power_line_between(&power, at(4.5), at(5), &energy_j, &variance_j2, &seen_s));
    check_close_abs(energy_j, 25, 0, 6);
    assert_true(wg__power_line_between(&power, at(5), at(6), &energy_j, &variance_j2, &seen_s));
    check_close_abs(energy_j, 250, 0, 15);
    assert_true(wg__power_line_between(&power, at(2), at(11), &energy_j, &variance_j2, &seen_s));
    check_close(energy_j, 3 * 50 + 6 * 250, 0.005);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_weighs_not_change),
        cmocka_unit_test(a_ramp_is_its_trapezium),
        cmocka_unit_test(a_reading_is_half_a_period_and_half_a_window_old),
        cmocka_unit_test(no_reading_means_no_energy),
        cmocka_unit_test(a_gap_is_not_seen_and_wide_open),
        cmocka_unit_test(an_average_over_a_second_is_undone),
    };
    return run_tests(tests);
}
