/* SPDX-License-Identifier: MIT
 *
 * The energy-time front: hand-worked cases, and the definition itself as the oracle of random ones.
 */
#include "support/check.h"

#include <stdbool.h>

#include "base/rng.h"
#include "optimize/pareto.h"

enum { POINTS_MAX = 200 };

/* (3,1) (1,3) (2,2) are the front; (2,3) and (3,3) are beaten by (2,2), (4,1) by (3,1). */
static void finds_the_front_of_a_hand_worked_case_by_ascending_time(void **state)
{
    static const double time_s[] = {3, 2, 1, 3, 2, 4};
    static const double energy_j[] = {1, 3, 3, 3, 2, 1};
    size_t front[6];

    (void)state;
    assert_int_equal(wg__pareto_front(time_s, energy_j, 6, front), 3);
    assert_int_equal(front[0], 2);
    assert_int_equal(front[1], 4);
    assert_int_equal(front[2], 0);
}

static void no_points_make_an_empty_front(void **state)
{
    size_t front[1] = {77};

    (void)state;
    assert_int_equal(wg__pareto_front(NULL, NULL, 0, front), 0);
    assert_int_equal(front[0], 77);
}

static void of_equal_points_the_first_stays(void **state)
{
    static const double time_s[] = {5, 1, 1, 1};
    static const double energy_j[] = {5, 2, 2, 2};
    size_t front[4];

    (void)state;
    assert_int_equal(wg__pareto_front(time_s, energy_j, 4, front), 1);
    assert_int_equal(front[0], 1);
}

static void leaves_out_points_that_are_not_finite(void **state)
{
    const double time_s[] = {(double)NAN, 1, 0, -(double)INFINITY, 2};
    const double energy_j[] = {0, 2, (double)NAN, 0, (double)INFINITY};
    size_t front[5];

    (void)state;
    assert_int_equal(wg__pareto_front(time_s, energy_j, 5, front), 1);
    assert_int_equal(front[0], 1);
    assert_int_equal(wg__pareto_front(time_s, energy_j, 1, front), 0);
}

/* Straight from the definition. */
static bool is_dominated(const double *time_s, const double *energy_j, size_t count, size_t point)
{
    for (size_t i = 0; i < count; i++) {
        const bool no_worse = time_s[i] <= time_s[point] && energy_j[i] <= energy_j[point];
        const bool better = time_s[i] < time_s[point] || energy_j[i] < energy_j[point];

        if (no_worse && (better || i < point))
            return true;
    }
    return false;
}

/* Coordinates from a small grid, so that ties and equal points abound. */
static void random_fronts_agree_with_the_definition(void **state)
{
    struct wg_rng rng;

    (void)state;
    wg__rng_init(&rng, 3);
    for (unsigned round = 0; round < 300; round++) {
        const size_t count = 1 + wg__rng_below(&rng, POINTS_MAX);
        const uint32_t grid = 2 + wg__rng_below(&rng, 60);
        double time_s[POINTS_MAX], energy_j[POINTS_MAX];
        size_t front[POINTS_MAX], expected = 0;

        for (size_t i = 0; i < count; i++) {
            time_s[i] = wg__rng_below(&rng, grid);
            energy_j[i] = wg__rng_below(&rng, grid);
        }
        const size_t front_count = wg__pareto_front(time_s, energy_j, count, front);

        for (size_t i = 0; i < count; i++)
            expected += is_dominated(time_s, energy_j, count, i) ? 0 : 1;
        assert_int_equal(front_count, expected);
        for (size_t i = 0; i < front_count; i++) {
            assert_false(is_dominated(time_s, energy_j, count, front[i]));
            if (i > 0) {
                assert_true(time_s[front[i]] > time_s[front[i - 1]]);
                assert_true(energy_j[front[i]] < energy_j[front[i - 1]]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_front_of_a_hand_worked_case_by_ascending_time),
        cmocka_unit_test(no_points_make_an_empty_front),
        cmocka_unit_test(of_equal_points_the_first_stays),
        cmocka_unit_test(leaves_out_points_that_are_not_finite),
        cmocka_unit_test(random_fronts_agree_with_the_definition),
    };

    return run_tests(tests);
}
