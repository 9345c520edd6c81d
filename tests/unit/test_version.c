/* SPDX-License-Identifier: MIT
 *
 * The version of the library against the one that meson.build gives this test.
 */
#include <string.h>

#include "support/check.h"
#include "wattgov/version.h"

static void version_is_that_of_the_project(void **state)
{
    (void)state;
    assert_string_equal(wg_version(), WG_VERSION);
}

static void version_is_three_numbers(void **state)
{
    (void)state;
    const char *rest = wg_version();
    for (int part = 0; part < 3; part++) {
        const size_t digits = strspn(rest, "0123456789");
        assert_true(digits > 0);
        rest += digits;
        assert_int_equal(*rest, part < 2 ? '.' : '\0');
        rest++;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_is_that_of_the_project),
        cmocka_unit_test(version_is_three_numbers),
    };
    return run_tests(tests);
}
