/* SPDX-License-Identifier: MIT
 *
 * Dimensions in the ways that tools write them.
 */
#include "model/launch_dims.h"

#include "support/check.h"

static void expect(const char *text, uint64_t x, uint64_t y, uint64_t z, size_t count)
{
    uint64_t dims[WG_LAUNCH_DIMS] = {0};
    size_t found = 0;
    if (!wg__launch_dims_parse(text, dims, &found))
        fail_msg("'%s' is not read", text);
    assert_int_equal(dims[0], x);
    assert_int_equal(dims[1], y);
    assert_int_equal(dims[2], z);
    assert_int_equal(found, count);
    assert_true(wg__launch_dims_parse(text, dims, NULL));
}

static void reads_each_way_to_write_them(void **state)
{
    (void)state;
    expect("9x32x1", 9, 32, 1, 3);
    expect("(9, 32, 2)", 9, 32, 2, 3);
    expect("[9,32]", 9, 32, 1, 2);
    expect("9 32 3", 9, 32, 3, 3);
    expect(" 128X64 ", 128, 64, 1, 2);
    expect("7", 7, 1, 1, 1);
    expect("{2147483647, 1, 1}", INT32_MAX, 1, 1, 3);
}

static void refuses_what_is_no_launch(void **state)
{
    (void)state;
    static const char *const texts[] = {"",      "x",       "9x",     "9x32x1x1",  "0x1",
                                        "-1x2",  "9xx2",    "(9, 32", "9, 32)",    "[9,32)",
                                        "9.5x2", "9;2",     "9x32 a", "1e3",       "2147483648x1",
                                        "9 x",   "(9,32)x", "()",     "(9,,32,1)", "9,32,1,"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint64_t dims[WG_LAUNCH_DIMS] = {5, 6, 7};
        if (wg__launch_dims_parse(texts[i], dims, NULL))
            fail_msg("'%s' is read", texts[i]);
        assert_true(dims[0] == 5 && dims[1] == 6 && dims[2] == 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_way_to_write_them),
        cmocka_unit_test(refuses_what_is_no_launch),
    };
    return run_tests(tests);
}
