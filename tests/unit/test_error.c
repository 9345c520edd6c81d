/* SPDX-License-Identifier: MIT
 *
 * Error texts: one line, whole characters, the right code.
 */
#include "base/error.h"

#include <errno.h>
#include <string.h>

#include "support/check.h"

static void a_failure_carries_code_and_text(void **state)
{
    (void)state;
    struct wg_error err = {0};
    assert_int_equal(wg__fail(&err, WG_EDATA, "%s:%d: no", "a.csv", 7), WG_EDATA);
    assert_int_equal(err.code, WG_EDATA);
    assert_string_equal(err.text, "a.csv:7: no");
    assert_int_equal(wg__fail(NULL, WG_EIO, "nobody listens"), WG_EIO);
}

static void a_long_text_is_cut_between_characters(void **state)
{
    (void)state;
    /* Each alignment of a two-, three- and four-byte character against the end of the text. */
    static const char *const characters[] = {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x94\x8B"};
    for (size_t kind = 0; kind < 3; kind++) {
        const size_t size = kind + 2;
        for (size_t offset = 0; offset < size; offset++) {
            char text[1024] = "";
            memset(text, 'x', offset);
            for (size_t at = offset; at + size < sizeof text; at += size)
                memcpy(text + at, characters[kind], size);
            struct wg_error err;
            (void)wg__fail(&err, WG_EDATA, "%s", text);
            const size_t length = strlen(err.text);
            assert_in_range(length, sizeof err.text - size, sizeof err.text - 1);
            assert_int_equal((length - offset) % size, 0);
            assert_memory_equal(err.text, text, length);
        }
    }
}

static void control_bytes_cannot_break_the_line(void **state)
{
    (void)state;
    struct wg_error err;
    (void)wg__fail(&err, WG_EDATA, "cell '%s'", "a\nb\x1B[31m\x7F\tc");
    assert_string_equal(err.text, "cell 'a?b?[31m??c'");
    (void)wg__fail(&err, WG_EDATA, "cell '%s'", "\xff\xc3\xa9\xc2\x9b");
    assert_string_equal(err.text, "cell '?\xc3\xa9?"
                                  "?'");
}

static void errno_gives_code_and_cause(void **state)
{
    (void)state;
    static const struct {
        int error_number;
        enum wg_code code;
    } cases[] = {{EACCES, WG_EPERM},   {EPERM, WG_EPERM},   {EROFS, WG_EPERM}, {ENOENT, WG_ENOENT},
                 {ENOTDIR, WG_ENOENT}, {ENOMEM, WG_ENOMEM}, {ENOSPC, WG_EIO}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_error err;
        char expected[128];
        (void)snprintf(expected, sizeof expected, "f: %s", strerror(cases[i].error_number));
        assert_int_equal(wg__fail_errno(&err, cases[i].error_number, "%s", "f"), cases[i].code);
        assert_int_equal(err.code, cases[i].code);
        assert_string_equal(err.text, expected);
        assert_int_equal(wg__fail_errno(NULL, cases[i].error_number, "f"), cases[i].code);
    }
}

static void a_cause_that_does_not_fit_is_cut(void **state)
{
    (void)state;
    for (int width = 490; width < 520; width++) {
        struct wg_error err;
        (void)wg__fail_errno(&err, ENOSPC, "%*s", width, "f");
        const size_t length = strlen(err.text);
        assert_in_range(length, 490, sizeof err.text - 1);
        assert_int_equal(strspn(err.text, " "),
                         (size_t)width - 1 < length ? (size_t)width - 1 : length);
    }
}

static void every_code_has_a_name_and_a_text(void **state)
{
    (void)state;
    assert_string_equal(wg_code_name(WG_EINVAL), "WG_EINVAL");
    assert_string_equal(wg_code_text(WG_OK), "success");
    assert_string_equal(wg_code_text(WG_EUNREACHABLE), "the target cannot be reached");
    /* Values that no code has are the point. */
    assert_string_equal(wg_code_name((enum wg_code)99), "unknown code");  /* NOLINT */
    assert_string_equal(wg_code_text((enum wg_code)99), "unknown error"); /* NOLINT */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_carries_code_and_text),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(control_bytes_cannot_break_the_line),
        cmocka_unit_test(errno_gives_code_and_cause),
        cmocka_unit_test(a_cause_that_does_not_fit_is_cut),
        cmocka_unit_test(every_code_has_a_name_and_a_text),
    };
    return run_tests(tests);
}
