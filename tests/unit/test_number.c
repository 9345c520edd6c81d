/* SPDX-License-Identifier: MIT
 *
 * Numbers from and to text, against strtod and printf of the C locale (the programs of this suite
 * never call setlocale, so that is what they have).
 */
#include "base/number.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "support/check.h"

static void assert_same_double(const char *text, double expected)
{
    double value = 42.0;
    if (!wg__parse_double(text, &value))
        fail_msg("'%s' was not taken for a number", text);
    /* Also the sign of zero. */
    if (value != expected || signbit(value) != signbit(expected))
        fail_msg("'%s' gives %.17g, expected %.17g", text, value, expected);
}

static void reads_decimal_numbers(void **state)
{
    (void)state;
    assert_same_double("0", 0.0);
    assert_same_double("-0", -0.0);
    assert_same_double("1e-3", 1e-3);
    assert_same_double("-2.5", -2.5);
    assert_same_double("+2.5E+1", 25.0);
    assert_same_double(".5", 0.5);
    assert_same_double("5.", 5.0);
    assert_same_double("0.1", 0.1);
    assert_same_double("0e999999999999", 0.0);
    assert_same_double("17976931348623157e292", DBL_MAX);
    assert_same_double("4.9406564584124654e-324", 4.9406564584124654e-324);
    assert_same_double("9007199254740993", 9007199254740992.0); /* a tie: to even */
    assert_same_double("9007199254740993.00000000000000000001", 9007199254740994.0);
    assert_same_double("123456789012345678901234567890", 123456789012345678901234567890.0);
    assert_same_double("1e22", 1e22);
    assert_same_double("1e23", 1e23); /* just beyond the fast path, and hard to round */
}

static void rejects_what_is_not_a_whole_decimal_number(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",    " ",       " 1",       "1 ",    "1\n",    "abc",    "1x",
        "1,5", "1.2.3",   ".",        "-",     "+",      "--1",    "e5",
        "1e",  "1e+",     "1e5x",     "0x10",  "inf",    "-inf",   "nan",
        "NAN", "1_000",   "infinity", "1e309", "-1e400", "1e-400", "1e99999999999999999999",
        "1d5", "\xC2\xA0" /* no-break space */};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double value = 42.0;
        if (wg__parse_double(texts[i], &value))
            fail_msg("'%s' was taken for the number %g", texts[i], value);
        assert_true(value == 42.0);
    }
}

static void long_digit_strings_do_not_lose_the_exponent(void **state)
{
    (void)state;
    enum { ZEROS = 150000 };
    static char text[ZEROS + 32];
    text[0] = '0';
    text[1] = '.';
    memset(text + 2, '0', ZEROS);
    memcpy(text + 2 + ZEROS, "25e150001", 10); /* 0.[150000 zeros]25 * 10^150001 */
    assert_same_double(text, 2.5);
    memset(text, '0', ZEROS);
    memcpy(text + ZEROS, "17", 3);
    assert_same_double(text, 17.0);
}

/* Both paths of the parser against strtod: random digits, points and exponents. */
static void agrees_with_strtod_on_random_numbers(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 20250101);
    for (int i = 0; i < 100000; i++) {
        char text[64];
        const uint64_t digits =
            ((uint64_t)wg__rng_u32(&rng) << 32 | wg__rng_u32(&rng)) >> wg__rng_below(&rng, 64);
        const unsigned fraction = wg__rng_u32(&rng);
        const int exponent = (int)wg__rng_below(&rng, 61) - 30;
        (void)snprintf(text, sizeof text, "%s%" PRIu64 ".%ue%d", i % 2 ? "-" : "", digits,
                       i % 3 ? fraction >> (i % 32) : 0, exponent);
        assert_same_double(text, strtod(text, NULL));
    }
}

static void reads_whole_numbers(void **state)
{
    (void)state;
    uint64_t value = 42;
    assert_true(wg__parse_uint64("0", &value));
    assert_true(value == 0);
    assert_true(wg__parse_uint64("007", &value));
    assert_true(value == 7);
    assert_true(wg__parse_uint64("18446744073709551615", &value));
    assert_true(value == UINT64_MAX);
    static const char *const texts[] = {"",
                                        " 1",
                                        "1 ",
                                        "+1",
                                        "-1",
                                        "1.0",
                                        "1e3",
                                        "0x1",
                                        "a",
                                        "18446744073709551616",
                                        "99999999999999999999999"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(wg__parse_uint64(texts[i], &value));
        assert_true(value == UINT64_MAX);
    }
}

static void writes_the_fewest_digits_that_read_back(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.0, "0"},
                 {-0.0, "-0"},
                 {0.1, "0.1"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {1.0 / 3.0, "0.3333333333333333"},
                 {100.0, "100"},
                 {1e21, "1e+21"},
                 {DBL_MAX, "1.7976931348623157e+308"},
                 {DBL_MIN, "2.2250738585072014e-308"},
                 {4.9406564584124654e-324, "5e-324"},
                 {-123456.789, "-123456.789"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[WG_DOUBLE_TEXT_SIZE];
        wg__format_double(text, cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
}

static void what_is_written_reads_back(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = (uint64_t)wg__rng_u32(&rng) << 32 | wg__rng_u32(&rng);
        double value = 0.0;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        char text[WG_DOUBLE_TEXT_SIZE];
        wg__format_double(text, value);
        assert_same_double(text, value);
    }
}

static void a_decimal_comma_of_the_program_changes_nothing(void **state)
{
    (void)state;
    /* Whichever of these is installed; without any, the C locale still checks the rest. */
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8", "de_DE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (setlocale(LC_ALL, names[i]) != NULL)
            break;
    }
    char text[WG_DOUBLE_TEXT_SIZE];
    wg__format_double(text, 1234.5);
    assert_string_equal(text, "1234.5");
    assert_same_double("1234.5", 1234.5);
    assert_same_double("1234.50000000000000000000000001", 1234.5); /* the slow path */
    double value = 0.0;
    assert_false(wg__parse_double("1234,5", &value));
    (void)setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_decimal_numbers),
        cmocka_unit_test(rejects_what_is_not_a_whole_decimal_number),
        cmocka_unit_test(long_digit_strings_do_not_lose_the_exponent),
        cmocka_unit_test(agrees_with_strtod_on_random_numbers),
        cmocka_unit_test(reads_whole_numbers),
        cmocka_unit_test(writes_the_fewest_digits_that_read_back),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(a_decimal_comma_of_the_program_changes_nothing),
    };
    return run_tests(tests);
}
