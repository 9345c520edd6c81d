/* SPDX-License-Identifier: MIT
 *
 * Which texts can be shown as they are.
 */
#include "base/utf8.h"

#include "support/check.h"

static void a_plain_text_is_well_formed_and_controls_nothing(void **state)
{
    (void)state;
    static const char *const plain[] = {"", "NVIDIA A100-SXM4-80GB", "\xc2\xb5W \xe2\x82\xac",
                                        "\xf0\x9f\x90\x8c", "\xc2\xa0"};
    static const char *const others[] = {
        "a\nb",         "\x1b[31m",        "\x7f",     "\xc2\x85" /* next line */,
        "\xff\xfe",     "caf\xe9",         "\xe2\x82", "\xc0\xaf" /* overlong */,
        "\xed\xa0\x80", "\xf4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        assert_true(wg__utf8_is_plain(plain[i]));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(wg__utf8_is_plain(others[i]));
}

static void what_is_not_plain_becomes_question_marks(void **state)
{
    (void)state;
    static const struct {
        const char *text, *copied;
        size_t size;
    } cases[] = {{"", "", 1},
                 {"abc", "", 1},
                 {"abc", "ab", 3},
                 {"a\nb\xff\xfe", "a?b??", 16},
                 {"\xe2\x82\xac\xe2\x82\xac", "\xe2\x82\xac", 6}, /* no half of a character */
                 {"\xc2\x85", "??", 16},
                 {"\xe2\x82", "??", 16}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[16];
        wg__utf8_copy_plain(out, cases[i].size, cases[i].text);
        assert_string_equal(out, cases[i].copied);
        assert_true(wg__utf8_is_plain(out));
    }
}

static void a_cut_stands_between_two_characters(void **state)
{
    (void)state;
    static const char text[] = "a\xe2\x82\xac"
                               "b"; /* a, euro, b */
    static const int shown[] = {0, 1, 1, 1, 4, 5, 5};
    for (size_t max = 0; max < sizeof shown / sizeof shown[0]; max++)
        assert_int_equal(wg__utf8_cut(text, sizeof text - 1, max), shown[max]);
    assert_int_equal(wg__utf8_cut(text, 1, 9), 1); /* never beyond what there is */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_text_is_well_formed_and_controls_nothing),
        cmocka_unit_test(what_is_not_plain_becomes_question_marks),
        cmocka_unit_test(a_cut_stands_between_two_characters),
    };
    return run_tests(tests);
}
