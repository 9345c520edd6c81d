/* SPDX-License-Identifier: MIT
 *
 * The model behind the few-probes search: what it expects where the answer is plain.
 */
#include "support/check.h"

#include "optimize/power_curve.h"
#include "optimize/power_limit.h"

static const double limits_w[] = {100, 125, 150, 175, 200, 225, 250, 275, 300};
enum { LIMITS = sizeof limits_w / sizeof limits_w[0] };

static void begin(struct wg_power_search *search, enum wg_objective_kind kind)
{
    const struct wg_objective objective = {
        .kind = kind, .eta = 0.5, .max_slowdown = 1.1, .max_power_w = 300.0};

    assert_int_equal(wg__power_search_init(search, &objective, WG_POWER_SEARCH_FEW_PROBES, limits_w,
                                           LIMITS, (double)NAN, NULL),
                     WG_OK);
}

static void tell(struct wg_power_search *search, size_t index, double power_w, double throughput)
{
    assert_int_equal(wg__power_search_tell(search, index, power_w, throughput, NULL), WG_OK);
}

static void nothing_is_left_to_gain_when_all_limits_are_measured(void **state)
{
    struct wg_power_search search;
    size_t index = 0;

    (void)state;
    begin(&search, WG_OBJECTIVE_ENERGY);
    for (size_t i = 0; i < LIMITS; i++)
        tell(&search, i, limits_w[i], 1.0 + (double)i);
    check_close(wg__power_curve_best_gain(&search, &index), 0.0, 0.0);
    assert_int_equal(index, LIMITS);
}

/* A job that draws all that it may has much to gain in energy; one that draws 40 W under a lowest
 * limit of 100 W has nothing but the scatter of its measurements. */
static void a_job_below_every_limit_promises_less_than_one_at_the_largest(void **state)
{
    struct wg_power_search bound, host_bound;
    size_t index;

    (void)state;
    begin(&bound, WG_OBJECTIVE_ENERGY);
    begin(&host_bound, WG_OBJECTIVE_ENERGY);
    tell(&bound, LIMITS - 1, 295.0, 1.0);
    tell(&host_bound, LIMITS - 1, 40.0, 1.0);
    const double bound_gain = wg__power_curve_best_gain(&bound, &index);
    const double host_bound_gain = wg__power_curve_best_gain(&host_bound, &index);

    assert_true(bound_gain > 0.1);
    assert_true(host_bound_gain < 0.05);
    assert_true(host_bound_gain >= 0.0);
}

/* For time alone a lower limit never helps, but for the scatter. */
static void time_alone_promises_little(void **state)
{
    struct wg_power_search search;
    size_t index;

    (void)state;
    begin(&search, WG_OBJECTIVE_TIME);
    tell(&search, LIMITS - 1, 295.0, 1.0);
    assert_true(wg__power_curve_best_gain(&search, &index) < 0.03);
    tell(&search, LIMITS - 2, 275.0, 0.98);
    assert_true(wg__power_curve_best_gain(&search, &index) < 0.01);
}

/* Throughput in proportion to power: energy per unit is the same everywhere, and under SLOWDOWN the
 * limits below 1/1.1 of the fastest are forbidden, so they promise less than without the floor. */
static void a_floor_on_throughput_lowers_the_promise(void **state)
{
    struct wg_power_search free, floored;
    size_t index;

    (void)state;
    begin(&free, WG_OBJECTIVE_ENERGY);
    begin(&floored, WG_OBJECTIVE_SLOWDOWN);
    tell(&free, LIMITS - 1, 300.0, 3.0);
    tell(&floored, LIMITS - 1, 300.0, 3.0);
    tell(&free, 4, 200.0, 2.5);
    tell(&floored, 4, 200.0, 2.5);
    assert_true(wg__power_curve_best_gain(&free, &index) > 0.0);
    assert_int_not_equal(index, 4);
    /* 200 W is too slow for 1.1, so the best allowed is still the largest limit: more to gain. */
    assert_true(wg__power_curve_best_gain(&floored, &index) > 0.01);
    assert_true(index > 4);
}

static void the_unit_of_throughput_does_not_matter(void **state)
{
    struct wg_power_search small, large;
    size_t index_small, index_large;

    (void)state;
    begin(&small, WG_OBJECTIVE_COST);
    begin(&large, WG_OBJECTIVE_COST);
    for (size_t i = 2; i < LIMITS; i += 3) {
        tell(&small, i, limits_w[i] - 5.0, 1e-6 * (1.0 + 0.1 * (double)i));
        tell(&large, i, limits_w[i] - 5.0, 1e6 * (1.0 + 0.1 * (double)i));
    }
    const double gain_small = wg__power_curve_best_gain(&small, &index_small);
    const double gain_large = wg__power_curve_best_gain(&large, &index_large);

    check_close(gain_small, gain_large, 1e-9);
    assert_int_equal(index_small, index_large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left_to_gain_when_all_limits_are_measured),
        cmocka_unit_test(a_job_below_every_limit_promises_less_than_one_at_the_largest),
        cmocka_unit_test(time_alone_promises_little),
        cmocka_unit_test(a_floor_on_throughput_lowers_the_promise),
        cmocka_unit_test(the_unit_of_throughput_does_not_matter),
    };

    return run_tests(tests);
}
