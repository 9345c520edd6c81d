/* SPDX-License-Identifier: MIT
 *
 * Cutting a stream into lines: the same lines however the bytes come, and no more memory than
 * given.
 */
#include "live/line_splitter.h"

#include <string.h>

#include "base/buffer.h"
#include "base/rng.h"
#include "support/check.h"

static void take(const char *line, size_t length, bool is_cut, void *context)
{
    struct wg_buffer *out = context;
    wg__buffer_append(out, line, length);
    wg__buffer_puts(out, is_cut ? "~|" : "|");
}

/* What comes out of `text`, cut into pieces of at most `piece` bytes. */
static void expect_lines(const char *text, size_t length, size_t piece, bool is_terminal,
                         const char *expected)
{
    char data[8];
    struct wg_line_splitter lines = {
        .data = data, .capacity = sizeof data, .is_terminal = is_terminal};
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__buffer_puts(&out, "");
    for (size_t at = 0; at < length; at += piece) {
        wg__lines_split(&lines, text + at, length - at < piece ? length - at : piece, take, &out);
        assert_true(lines.length <= sizeof data);
    }
    wg__lines_end(&lines, take, &out);
    assert_string_equal(out.data, expected);
    wg__buffer_fini(&out);
}

static void expect(const char *text, bool is_terminal, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++)
        expect_lines(text, strlen(text), piece, is_terminal, expected);
}

static void lines_come_out_however_the_bytes_come_in(void **state)
{
    (void)state;
    expect("a\nbc\n\ndef\n", false, "a|bc|def|");
    expect("a\nlast", false, "a|last|");
    expect("", false, "");
    expect("\n\n\n", false, "");
    expect("a\r\nb\rc\n", false, "a\r|b\rc|");
}

static void a_terminal_ends_lines_at_returns_and_backspaces(void **state)
{
    (void)state;
    expect("1%\r2%\r\n3%\n", true, "1%|2%|3%|");
    expect("10/20\b\b\b\b\b11/20\r", true, "10/20|11/20|");
}

static void a_long_line_is_handed_on_once_and_its_rest_skipped(void **state)
{
    (void)state;
    expect("12345678\n1\n", false, "12345678|1|");
    expect("123456789\n1\n", false, "12345678~|1|");
    expect("12345678901234567890123\n1", false, "12345678~|1|");
    expect("12345678901234567890123", false, "12345678~|");
}

static void ten_megabytes_without_an_end_are_one_cut_line(void **state)
{
    (void)state;
    static char many[10 << 20];
    memset(many, 'x', sizeof many);
    expect_lines(many, sizeof many, 65536, false, "xxxxxxxx~|");
    expect_lines(many, sizeof many, sizeof many, true, "xxxxxxxx~|");
    many[sizeof many - 2] = '\n';
    expect_lines(many, sizeof many, 4096, true, "xxxxxxxx~|x|");
}

static void zero_bytes_are_bytes(void **state)
{
    (void)state;
    char data[8];
    struct wg_line_splitter lines = {.data = data, .capacity = sizeof data};
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__lines_split(&lines, "a\0b\n", 4, take, &out);
    assert_int_equal(out.length, 4);
    assert_memory_equal(out.data, "a\0b|", 4);
    wg__buffer_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_out_however_the_bytes_come_in),
        cmocka_unit_test(a_terminal_ends_lines_at_returns_and_backspaces),
        cmocka_unit_test(a_long_line_is_handed_on_once_and_its_rest_skipped),
        cmocka_unit_test(ten_megabytes_without_an_end_are_one_cut_line),
        cmocka_unit_test(zero_bytes_are_bytes),
    };
    return run_tests(tests);
}
