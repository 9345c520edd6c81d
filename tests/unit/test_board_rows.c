/* SPDX-License-Identifier: MIT
 *
 * Pooled and thinned rows, against hand-computed means and what must stay.
 */
#include "optimize/board_rows.h"

#include "support/check.h"

static void measurements_of_one_configuration_become_one(void **state)
{
    struct wg_board_row rows[] = {{7, 1.0, 0.1}, {3, 5.0, 0.2}, {7, 2.0, 0.2}, {7, 1.5, 0.1}};
    (void)state;
    assert_int_equal(wg__board_rows_pool(rows, 4), 2);
    assert_int_equal(rows[0].configuration, 3);
    check_close(rows[0].value, 5, 1e-12);
    check_close(rows[0].sd, 0.2, 1e-12);
    /* Weights 100, 25 and 100. */
    assert_int_equal(rows[1].configuration, 7);
    check_close(rows[1].value, (100 * 1.0 + 25 * 2.0 + 100 * 1.5) / 225, 1e-12);
    check_close(rows[1].sd, 1 / sqrt(225), 1e-12);
    assert_int_equal(wg__board_rows_pool(rows, 0), 0);
}

/* Of 1000 with the values 0..999: those near 500, and the rest evenly. */
static void the_nearest_stay_and_the_rest_is_spread(void **state)
{
    static struct wg_board_row rows[1000];
    static bool is_kept[1000];
    size_t low = 0, high = 0;
    (void)state;
    for (uint32_t i = 0; i < 1000; i++)
        rows[i] = (struct wg_board_row){i, (double)i, 0.1};
    assert_int_equal(wg__board_rows_thin(rows, 1000, 100, 500, 999), 100);
    for (size_t i = 0; i < 100; i++) {
        assert_false(is_kept[rows[i].configuration]); /* none twice */
        is_kept[rows[i].configuration] = true;
        check_close(rows[i].value, rows[i].configuration, 1e-9);
        low += rows[i].value < 400;
        high += rows[i].value > 600;
    }
    for (size_t i = 476; i <= 524; i++)
        assert_true(is_kept[i]);
    assert_true(is_kept[999]);
    assert_true(low >= 15 && high >= 15);
}

static void few_rows_are_left_alone(void **state)
{
    struct wg_board_row rows[] = {{7, 1.0, 0.1}, {3, 5.0, 0.2}};
    (void)state;
    assert_int_equal(wg__board_rows_thin(rows, 2, 2, 0, 3), 2);
    assert_int_equal(rows[0].configuration, 7);
}

/* Of 2000 configurations, each measured twice, the cheapest stay. */
static void very_many_rows_are_bounded(void **state)
{
    static struct wg_board_row rows[4000];
    double highest = 0;
    (void)state;
    for (uint32_t i = 0; i < 4000; i++)
        rows[i] = (struct wg_board_row){i % 2000, (double)(i % 2000), 0.1};
    assert_int_equal(wg__board_rows_bound(rows, WG_BOARD_ROWS_MOST, NAN, 0), WG_BOARD_ROWS_MOST);
    const size_t kept = wg__board_rows_bound(rows, 4000, NAN, 1000);
    assert_int_equal(kept, WG_BOARD_ROWS_MOST);
    for (size_t i = 0; i < kept / 2; i++) {
        assert_true(rows[i].value < (double)kept / 2);
        check_close(rows[i].sd, 0.1 / sqrt(2), 1e-12);
    }
    for (size_t i = 0; i < kept; i++)
        highest = fmax(highest, rows[i].value);
    assert_true(highest > 1900);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measurements_of_one_configuration_become_one),
        cmocka_unit_test(the_nearest_stay_and_the_rest_is_spread),
        cmocka_unit_test(very_many_rows_are_bounded),
        cmocka_unit_test(few_rows_are_left_alone),
    };
    return run_tests(tests);
}
