/* SPDX-License-Identifier: MIT
 *
 * Tables of clocks.
 */
#include "device/clock_table.h"

#include <stdio.h>
#include <string.h>

#include "support/check.h"

static void reads_levels_and_the_marked_one(void **state)
{
    (void)state;
    struct wg_clock_table table;
    assert_true(wg__clock_table_parse("0: 500Mhz\n1: 1200Mhz *\n2: 2304Mhz\n", &table));
    assert_int_equal(table.count, 3);
    check_close(table.levels_hz[0], 500e6, 1e-12);
    check_close(table.levels_hz[1], 1200e6, 1e-12);
    check_close(table.levels_hz[2], 2304e6, 1e-12);
    check_close(table.current_hz, 1200e6, 1e-12);
}

static void sleep_is_a_clock_but_no_level(void **state)
{
    (void)state;
    struct wg_clock_table table;
    assert_true(wg__clock_table_parse("S: 19Mhz *\n0: 500Mhz\n1: 2482Mhz", &table));
    assert_int_equal(table.count, 2);
    check_close(table.levels_hz[0], 500e6, 1e-12);
    check_close(table.current_hz, 19e6, 1e-12);
}

static void levels_rise_and_stand_once(void **state)
{
    (void)state;
    struct wg_clock_table table;
    assert_true(wg__clock_table_parse("0: 900MHz\n1: 500mhz\n2: 900Mhz\n3: 700Mhz\n", &table));
    assert_int_equal(table.count, 3);
    check_close(table.levels_hz[0], 500e6, 1e-12);
    check_close(table.levels_hz[1], 700e6, 1e-12);
    check_close(table.levels_hz[2], 900e6, 1e-12);
    assert_true(isnan(table.current_hz));
}

static void other_lines_are_left_out(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "\n",
                                        "OD_SCLK:\n",
                                        "0: Mhz\n",
                                        "0: 5000\n",
                                        "0 500Mhz",
                                        "0: 12345678901234567890Mhz\n"};
    struct wg_clock_table table;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_false(wg__clock_table_parse(texts[i], &table));
    assert_true(wg__clock_table_parse("OD_SCLK:\n0: 800Mhz\nOD_RANGE:\n", &table));
    assert_int_equal(table.count, 1);
}

static void a_long_table_is_cut(void **state)
{
    (void)state;
    char text[64 * 16] = "";
    size_t length = 0;
    for (int i = 0; i < 60; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%d: %dMhz\n", i, 100 + i);
    struct wg_clock_table table;
    assert_true(wg__clock_table_parse(text, &table));
    assert_int_equal(table.count, WG_CLOCK_TABLE_LEVELS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_levels_and_the_marked_one),
        cmocka_unit_test(sleep_is_a_clock_but_no_level),
        cmocka_unit_test(levels_rise_and_stand_once),
        cmocka_unit_test(other_lines_are_left_out),
        cmocka_unit_test(a_long_table_is_cut),
    };
    return run_tests(tests);
}
