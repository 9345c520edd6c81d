/* SPDX-License-Identifier: MIT
 *
 * UTF-8 decoding (the cases of Unicode's table 3-7), display widths, escaping.
 */
#include "cli/markup.h"

#include <string.h>

#include "base/buffer.h"
#include "base/rng.h"
#include "support/check.h"

static void decodes_the_ends_of_each_length(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t code;
        size_t length;
    } cases[] = {
        {"A", 'A', 1},
        {"\xc2\xa0", 0xA0, 2},
        {"\xdf\xbf", 0x7FF, 2},
        {"\xe0\xa0\x80", 0x800, 3},
        {"\xed\x9f\xbf", 0xD7FF, 3},
        {"\xee\x80\x80", 0xE000, 3},
        {"\xf0\x90\x80\x80", 0x10000, 4},
        {"\xf4\x8f\xbf\xbd", 0x10FFFD, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t code;
        assert_int_equal(wg__utf8_next(cases[i].text, &code), cases[i].length);
        assert_int_equal(code, cases[i].code);
        struct wg_buffer out;
        wg__buffer_init(&out);
        wg__append_code_point(&out, code);
        assert_string_equal(out.data, cases[i].text);
        wg__buffer_fini(&out);
    }
}

static void replaces_ill_formed_bytes(void **state)
{
    (void)state;
    static const char *const cases[] = {"\x80",
                                        "\xbf",
                                        "\xc0\xaf",
                                        "\xc1\xbf",
                                        "\xe0\x9f\xbf",
                                        "\xed\xa0\x80" /* a surrogate */,
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xff",
                                        "\xc3" /* cut */,
                                        "\xe2\x82",
                                        "\xf0\x9f\x98",
                                        "\xe2(\xa1"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t code;
        assert_int_equal(wg__utf8_next(cases[i], &code), 1);
        assert_int_equal(code, 0xFFFD);
    }
}

static void blanks_control_characters(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__append_plain(&out, "a\033[1m\tb\x7f\xc2\x9b!\xef\xbf\xbe");
    assert_string_equal(out.data, "a [1m b  !\xef\xbf\xbd");
    wg__buffer_fini(&out);
}

static void counts_terminal_columns(void **state)
{
    (void)state;
    assert_int_equal(wg__text_width(""), 0);
    assert_int_equal(wg__text_width("naïve"), 5);
    assert_int_equal(wg__text_width("nai\xcc\x88ve"), 5); /* combining diaeresis */
    assert_int_equal(wg__text_width("日本"), 4);
    assert_int_equal(wg__text_width("한글"), 4);
    assert_int_equal(wg__text_width("─━╸µ−…"), 6);
    assert_int_equal(wg__text_width("\xf0\x9f\x98\x80"), 2); /* an emoji */
    assert_int_equal(wg__text_width("a\xe2\x80\x8b"), 1);    /* zero width space */
}

static void escapes_what_means_something(void **state)
{
    (void)state;
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__append_escaped(&out, "<a href=\"x\">&'é</a>");
    assert_string_equal(out.data, "&lt;a href=&quot;x&quot;&gt;&amp;&#39;é&lt;/a&gt;");
    wg__buffer_fini(&out);
}

/* Any bytes become well-formed: decoding the output again finds nothing to replace. */
static void makes_any_bytes_well_formed(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 3);
    for (int round = 0; round < 5000; round++) {
        char text[24];
        const size_t length = wg__rng_below(&rng, sizeof text);
        for (size_t i = 0; i < length; i++)
            text[i] = (char)(1 + wg__rng_below(&rng, 255));
        text[length] = '\0';
        struct wg_buffer once, twice;
        wg__buffer_init(&once);
        wg__buffer_init(&twice);
        wg__append_plain(&once, text);
        if (length > 0) {
            wg__append_plain(&twice, once.data);
            assert_string_equal(once.data, twice.data);
            assert_int_equal(wg__text_width(text), wg__text_width(once.data));
        }
        wg__buffer_fini(&once);
        wg__buffer_fini(&twice);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_the_ends_of_each_length),
        cmocka_unit_test(replaces_ill_formed_bytes),
        cmocka_unit_test(blanks_control_characters),
        cmocka_unit_test(counts_terminal_columns),
        cmocka_unit_test(escapes_what_means_something),
        cmocka_unit_test(makes_any_bytes_well_formed),
    };
    return run_tests(tests);
}
