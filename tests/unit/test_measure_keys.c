/* SPDX-License-Identifier: MIT
 *
 * The tables of include/wattgov/window.h.
 */
#include "support/check.h"
#include "wattgov/window.h"

static void flags_and_sources_have_words(void **state)
{
    (void)state;
    assert_string_equal(wg_energy_source_key(WG_ENERGY_COUNTER), "counter");
    assert_string_equal(wg_window_flag_key(WG_WINDOW_LOST), "lost");
    assert_non_null(wg_window_flag_help(WG_WINDOW_BELOW_RESOLUTION));
    assert_null(wg_energy_source_key(WG_ENERGY_SOURCE_COUNT));
    // NOLINTNEXTLINE(*EnumCastOutOfRange): an unknown value is what is tested
    assert_null(wg_window_flag_key((enum wg_window_flag)(1u << 30)));
    // NOLINTNEXTLINE(*EnumCastOutOfRange): an unknown value is what is tested
    assert_null(wg_window_flag_help((enum wg_window_flag)(1u << 30)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_and_sources_have_words),
    };
    return run_tests(tests);
}
