/* SPDX-License-Identifier: MIT
 *
 * Results from marks that are written down by hand: measure/result.c.
 */
#include "measure/result.h"

#include <math.h>
#include <string.h>

#include "support/check.h"

static const uint64_t SECOND_NS = 1000000000U;

/* A mark at `t_s` of a device that draws 100 W, seen by a counter of 0.1 s, all of it covered. */
static struct wg_mark mark_at(double t_s)
{
    struct wg_mark mark = {.t_ns = SECOND_NS + (uint64_t)(t_s * 1e9), .has_energy = true};
    mark.energy.begin_ns = mark.t_ns;
    mark.energy.sums[WG_SUM_ENERGY_J] = 100 * t_s;
    mark.energy.sums[WG_SUM_COVERED_S] = t_s;
    mark.energy.sums[WG_SUM_COUNTER_S] = t_s;
    mark.energy.error = 0.3;
    mark.sides.sums[WG_SIDE_SAMPLES] = 10 * t_s;
    mark.sides.sums[WG_SIDE_IDLE_KNOWN_S] = t_s;
    mark.sides.sums[WG_SIDE_IDLE_S] = t_s / 4;
    mark.sides.sums[WG_SIDE_THROTTLED_KNOWN_S] = t_s;
    mark.period_s = 0.1;
    mark.power_w = 100;
    return mark;
}

static struct wg_window_result between(const struct wg_mark *from, const struct wg_mark *to)
{
    struct wg_window_result result;
    wg__result_between(&result, from, to, 120);
    return result;
}

static void a_window_is_the_difference_of_its_marks(void **state)
{
    (void)state;
    const struct wg_mark from = mark_at(2), to = mark_at(6);
    const struct wg_window_result result = between(&from, &to);
    check_close(result.energy_j, 400, 1e-12);
    check_close(result.energy_error_j, hypot(0.3, 0.3), 1e-12);
    check_close(result.time_s, 4, 1e-12);
    check_close(result.power_mean_w, 100, 1e-12);
    check_close(result.power_peak_w, 120, 1e-12);
    check_close(result.idle_share, 0.25, 1e-12);
    check_close_abs(result.throttled_s, 0, 0, 1e-12);
    check_close(result.coverage, 1, 0);
    check_close(result.resolution_s, 0.1, 1e-12);
    assert_int_equal(result.sample_count, 40);
    assert_int_equal(result.flags, 0);
    assert_int_equal(result.source, WG_ENERGY_COUNTER);
}

/* z times the root of the variance that grew, and both edges, as independent. */
static void the_half_width_joins_variance_and_edges(void **state)
{
    (void)state;
    const struct wg_mark from = mark_at(2);
    struct wg_mark to = mark_at(6);
    to.energy.sums[WG_SUM_VARIANCE_J2] = 4;
    to.energy.error = 0.4;
    check_close(between(&from, &to).energy_error_j, sqrt(1.96 * 1.96 * 4 + 0.09 + 0.16), 1e-12);
    to.energy.sums[WG_SUM_UNKNOWN_S] = 1; /* nobody knows what was drawn there */
    assert_true(isnan(between(&from, &to).energy_error_j));
}

/* Field report 19: what could not be measured is unknown, not 0. */
static void a_window_without_energy_is_unknown(void **state)
{
    (void)state;
    struct wg_mark from = mark_at(2), to = mark_at(6);
    from.has_energy = false;
    struct wg_window_result result = between(&from, &to);
    assert_true(isnan(result.energy_j) && isnan(result.power_peak_w));
    assert_int_equal(result.source, WG_ENERGY_NONE);
    from = mark_at(2);
    to.energy = from.energy; /* the line ended before it began */
    result = between(&from, &to);
    assert_true(isnan(result.energy_j) && isnan(result.energy_error_j));
    check_close_abs(result.coverage, 0, 0, 1e-12);
}

/* A device that was lost 1 s before the end: its last second may hold as much as the others. */
static void time_beyond_the_line_widens_the_error(void **state)
{
    (void)state;
    const struct wg_mark from = mark_at(2);
    struct wg_mark to = mark_at(5);
    to.t_ns += SECOND_NS;
    to.energy.distance_ns = SECOND_NS;
    const struct wg_window_result result = between(&from, &to);
    check_close(result.energy_j, 300, 1e-12);
    check_close(result.coverage, 0.75, 1e-12);
    check_close(result.power_mean_w, 100, 1e-12);
    check_close(result.energy_error_j, sqrt(0.09 + 0.09 + 100 * 100), 1e-12);
}

static void each_flag_has_its_sum(void **state)
{
    (void)state;
    const struct {
        bool is_side;
        int sum;
        uint32_t flag;
    } cases[] = {
        {true, WG_SIDE_GAP_S, WG_WINDOW_GAP},
        {true, WG_SIDE_HUNG_S, WG_WINDOW_HUNG},
        {true, WG_SIDE_CLOCK_STEP_S, WG_WINDOW_CLOCK_STEP},
        {true, WG_SIDE_SUSPENDED_S, WG_WINDOW_SUSPENDED},
        {true, WG_SIDE_CAPPED_S, WG_WINDOW_EXTERNALLY_CAPPED},
        {true, WG_SIDE_THROTTLED_S, WG_WINDOW_THROTTLED},
        {false, WG_SUM_RESET_S, WG_WINDOW_COUNTER_RESET},
        {false, WG_SUM_STUCK_S, WG_WINDOW_STUCK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wg_mark from = mark_at(2), to = mark_at(6);
        double *sums = cases[i].is_side ? to.sides.sums : to.energy.sums;
        sums[cases[i].sum] += 0.01;
        assert_int_equal(between(&from, &to).flags, cases[i].flag);
        (cases[i].is_side ? from.sides.sums : from.energy.sums)[cases[i].sum] += 0.01;
        assert_int_equal(between(&from, &to).flags, 0); /* it was before the window */
    }
}

/* Field report 25: by over 10 %, in 5 s or more, beyond what the power's own doubt explains. */
static void meters_disagree_only_when_it_is_sure(void **state)
{
    (void)state;
    const struct {
        double power_j, check_s, variance_j2;
        bool disagrees;
    } cases[] = {
        {440, 5, 0, false}, {450, 5, 0, true},     {450, 4.9, 0, false},
        {355, 5, 0, true},  {450, 5, 1000, false}, {365, 5, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct wg_mark from = mark_at(2);
        struct wg_mark to = mark_at(7);
        to.energy.sums[WG_SUM_CHECK_COUNTER_J] = 400;
        to.energy.sums[WG_SUM_CHECK_POWER_J] = cases[i].power_j;
        to.energy.sums[WG_SUM_CHECK_S] = cases[i].check_s;
        to.energy.sums[WG_SUM_CHECK_VARIANCE_J2] = cases[i].variance_j2;
        assert_int_equal((between(&from, &to).flags & WG_WINDOW_DISAGREES) != 0,
                         cases[i].disagrees);
    }
}

/* Field reports 22, 24. How rarely the device happened to be read is no property of its sensor. */
static void shorter_than_two_updates_is_below_resolution(void **state)
{
    (void)state;
    const struct wg_mark from = mark_at(2);
    struct wg_mark to = mark_at(2.19);
    assert_int_equal(between(&from, &to).flags, WG_WINDOW_BELOW_RESOLUTION);
    to = mark_at(2.21);
    assert_int_equal(between(&from, &to).flags, 0);
    to.energy.stretch_ns = SECOND_NS;
    to.energy.begin_ns = to.t_ns - SECOND_NS / 2;
    check_close(between(&from, &to).resolution_s, 0.1, 1e-12);
    assert_int_equal(between(&from, &to).flags, 0);
}

/* A peak above every sample, and above the power limit, would be a finding that nobody made. */
static void the_peak_is_a_sample_and_the_mean_only_without_one(void **state)
{
    (void)state;
    const struct wg_mark from = mark_at(2), to = mark_at(6);
    struct wg_window_result result;
    wg__result_between(&result, &from, &to, 97);
    check_close(result.power_mean_w, 100, 1e-12);
    check_close(result.power_peak_w, 97, 0);
    wg__result_between(&result, &from, &to, NAN);
    check_close(result.power_peak_w, 100, 1e-12);
}

static struct wg_window_result one(double energy_j, enum wg_energy_source source)
{
    struct wg_window_result result;
    wg__result_nothing(&result, 2);
    result.energy_j = energy_j;
    result.energy_error_j = 3;
    result.power_mean_w = energy_j / 2;
    result.coverage = 1;
    result.resolution_s = 0.1;
    result.sample_count = 20;
    result.source = source;
    return result;
}

static void a_total_adds_energy_and_joins_errors(void **state)
{
    (void)state;
    struct wg_window_result total, first = one(10, WG_ENERGY_COUNTER);
    struct wg_window_result second = one(20, WG_ENERGY_POWER);
    second.energy_error_j = 4;
    second.coverage = 0.5;
    second.throttled_s = 1;
    second.flags = WG_WINDOW_THROTTLED | WG_WINDOW_BELOW_RESOLUTION;
    wg__result_nothing(&total, 2);
    wg__result_add(&total, &first, true);
    assert_int_equal(total.source, WG_ENERGY_COUNTER);
    wg__result_add(&total, &second, false);
    wg__result_finish(&total, 17);
    check_close(total.energy_j, 30, 1e-12);
    check_close(total.energy_error_j, 5, 1e-12);
    check_close(total.power_mean_w, 15, 1e-12);
    check_close(total.power_peak_w, 17, 1e-12);
    check_close(total.coverage, 0.5, 0);
    check_close(total.throttled_s, 1, 0);
    assert_int_equal(total.sample_count, 40);
    assert_int_equal(total.source, WG_ENERGY_MIXED);
    assert_int_equal(total.flags, WG_WINDOW_THROTTLED);
}

/* Field report 76: a device whose energy is unknown adds no 0; the total says what it lacks. */
static void a_total_that_lacks_a_device_is_partial(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct wg_window_result total, known = one(10, WG_ENERGY_COUNTER), unknown;
        wg__result_nothing(&unknown, 2);
        wg__result_nothing(&total, 2);
        wg__result_add(&total, order ? &unknown : &known, true);
        wg__result_add(&total, order ? &known : &unknown, false);
        wg__result_finish(&total, NAN);
        check_close(total.energy_j, 10, 0);
        check_close(total.energy_error_j, 3, 0);
        assert_int_equal(total.flags, WG_WINDOW_PARTIAL);
        check_close_abs(total.coverage, 0, 0, 0);
    }
}

/* The error of one device is unknown: that of the total is as well, in any order. */
static void an_unknown_error_stays_unknown_in_the_total(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct wg_window_result total, first = one(10, WG_ENERGY_COUNTER);
        struct wg_window_result second = one(20, WG_ENERGY_COUNTER);
        (order ? &first : &second)->energy_error_j = NAN;
        wg__result_nothing(&total, 2);
        wg__result_add(&total, &first, true);
        wg__result_add(&total, &second, false);
        assert_true(isnan(total.energy_error_j));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_the_difference_of_its_marks),
        cmocka_unit_test(the_half_width_joins_variance_and_edges),
        cmocka_unit_test(a_window_without_energy_is_unknown),
        cmocka_unit_test(time_beyond_the_line_widens_the_error),
        cmocka_unit_test(each_flag_has_its_sum),
        cmocka_unit_test(meters_disagree_only_when_it_is_sure),
        cmocka_unit_test(shorter_than_two_updates_is_below_resolution),
        cmocka_unit_test(the_peak_is_a_sample_and_the_mean_only_without_one),
        cmocka_unit_test(a_total_adds_energy_and_joins_errors),
        cmocka_unit_test(a_total_that_lacks_a_device_is_partial),
        cmocka_unit_test(an_unknown_error_stays_unknown_in_the_total),
    };
    return run_tests(tests);
}
