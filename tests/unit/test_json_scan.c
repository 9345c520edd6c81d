/* SPDX-License-Identifier: MIT
 *
 * Walking JSON: what is passed, what is taken, what is refused and where, in windows of any size.
 */
#include "model/json_scan.h"

#include <string.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/scratch.h"

/* Opens memory, or a file, whose windows are 64 KiB. */
static struct wg_source open_text(const char *text, size_t length)
{
    struct wg_source source = {0};
    assert_int_equal(wg__source_open_memory(&source, "t.json", text, length, NULL), WG_OK);
    return source;
}

/* The members of the array or object `text` as "key=text|key=text|". */
static enum wg_code walk(struct wg_source *source, char closer, bool is_taken,
                         struct wg_buffer *out, struct wg_error *err)
{
    struct wg_json_scan scan;
    bool has_member = true;
    wg__json_scan_init(&scan, source);
    enum wg_code code = wg__json_scan_enter(&scan, closer == '}' ? '{' : '[', err);
    while (code == WG_OK) {
        code = wg__json_scan_more(&scan, closer, &has_member, err);
        if (code != WG_OK || !has_member)
            break;
        if (closer == '}')
            wg__buffer_printf(out, "%s=", scan.key);
        code = is_taken ? wg__json_scan_take(&scan, 100, err) : wg__json_scan_skip(&scan, err);
        if (code == WG_OK && is_taken)
            wg__buffer_append(out, scan.text.data, scan.text.length);
        wg__buffer_puts(out, "|");
    }
    wg__json_scan_fini(&scan);
    return code;
}

static void expect(const char *text, char closer, bool is_taken, const char *expected)
{
    struct wg_source source = open_text(text, strlen(text));
    struct wg_error err = {0};
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__buffer_puts(&out, "");
    if (walk(&source, closer, is_taken, &out, &err) != WG_OK)
        fail_msg("'%s': %s", text, err.text);
    assert_string_equal(out.data, expected);
    wg__buffer_fini(&out);
    wg__source_close(&source);
}

static void expect_error(const char *text, char closer, const char *expected)
{
    for (int is_taken = 0; is_taken < 2; is_taken++) {
        struct wg_source source = open_text(text, strlen(text));
        struct wg_error err = {0};
        struct wg_buffer out;
        wg__buffer_init(&out);
        assert_int_equal(walk(&source, closer, is_taken != 0, &out, &err), WG_EDATA);
        assert_string_equal(err.text, expected);
        wg__buffer_fini(&out);
        wg__source_close(&source);
    }
}

static void gives_the_members_of_arrays_and_objects(void **state)
{
    (void)state;
    expect("[1, \"a,]\" ,{\"b\": [2, 3]}\n, true]", ']', true, "1|\"a,]\"|{\"b\": [2, 3]}|true|");
    expect(" { \"a\" : 1,\"b\":{\"c\":\"}\\\"}\"} } rest", '}', true, "a=1|b={\"c\":\"}\\\"}\"}|");
    expect("[]", ']', true, "");
    expect("{ }", '}', true, "");
    expect("[\"\\\\\", \"\\\"\"]", ']', true, "\"\\\\\"|\"\\\"\"|");
}

static void passes_what_nobody_wants(void **state)
{
    (void)state;
    expect("{\"a\":[[[]],\"]\"],\"b\":-1.5e3,\"c\":null}", '}', false, "a=|b=|c=|");
}

static void cuts_a_key_that_is_too_long(void **state)
{
    (void)state;
    char text[200], expected[100];
    (void)snprintf(text, sizeof text, "{\"%0*d\":1}", 150, 7);
    (void)snprintf(expected, sizeof expected, "%0*d=1|", WG_JSON_SCAN_KEY_SIZE - 1, 0);
    expect(text, '}', true, expected);
}

static void says_what_was_expected_and_where(void **state)
{
    (void)state;
    expect_error("{}", ']', "t.json:1: found '{', expected an array");
    expect_error("", '}', "t.json:1: the file ends, expected an object");
    expect_error("[1\n2]", ']', "t.json:2: found '2', expected ',' or ']'");
    expect_error("[1,\n", ']', "t.json:2: the file ends, expected another member");
    expect_error("[1", ']', "t.json:1: the file ends, expected ',' or ']'");
    expect_error("[,]", ']', "t.json:1: found ',', expected a value");
    expect_error("[\n[1, {", ']', "t.json:2: the file ends, expected the end of a value");
    expect_error("[\"ab", ']', "t.json:1: the file ends, expected the end of a value");
    expect_error("{a:1}", '}', "t.json:1: found 'a', expected a key in quotes");
    expect_error("{\"a\" 1}", '}', "t.json:1: found '1', expected a ':' behind a key");
    expect_error("{\"a\":1]", '}', "t.json:1: found ']', expected ',' or '}'");
}

static void refuses_a_value_that_is_too_long_to_take(void **state)
{
    (void)state;
    char text[300];
    (void)snprintf(text, sizeof text, "[\n\"%0*d\"]", 99, 1);
    struct wg_source source = open_text(text, strlen(text));
    struct wg_error err = {0};
    struct wg_buffer out;
    wg__buffer_init(&out);
    assert_int_equal(walk(&source, ']', true, &out, &err), WG_EDATA);
    assert_string_equal(err.text, "t.json:2: a value of more than 100 bytes");
    wg__source_close(&source);
    source = open_text(text, strlen(text));
    assert_int_equal(walk(&source, ']', false, &out, &err), WG_OK);
    wg__source_close(&source);
    wg__buffer_fini(&out);
}

/* Values that lie across the ends of a file's windows come out whole. */
static void joins_what_windows_cut(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_buffer text, out;
    wg__buffer_init(&text);
    wg__buffer_init(&out);
    for (size_t i = 0; i < 20000; i++)
        wg__buffer_printf(&text, "%s{\"n\\\"%zu\": [\"}]\", %zu]}", i == 0 ? "[" : ",\n", i, i);
    wg__buffer_puts(&text, "]");
    scratch_open(&scratch);
    scratch_write(scratch_path(&scratch, "t.json"), text.data, text.length);
    struct wg_source source = {0};
    assert_int_equal(wg__source_open(&source, scratch.path, NULL), WG_OK);
    assert_int_equal(walk(&source, ']', true, &out, NULL), WG_OK);
    assert_int_equal(source.line, 20000);
    wg__source_close(&source);
    const char *at = out.data;
    for (size_t i = 0; i < 20000; i++) {
        char expected[64];
        const int length =
            snprintf(expected, sizeof expected, "{\"n\\\"%zu\": [\"}]\", %zu]}|", i, i);
        assert_memory_equal(at, expected, (size_t)length);
        at += length;
    }
    assert_string_equal(at, "");
    scratch_close(&scratch);
    wg__buffer_fini(&text);
    wg__buffer_fini(&out);
}

static void fails_cleanly_without_memory(void **state)
{
    (void)state;
    struct wg_source source = open_text("[1]", 3);
    struct wg_json_scan scan;
    struct wg_error err = {0};
    bool has_member = false;
    wg__json_scan_init(&scan, &source);
    assert_int_equal(wg__json_scan_enter(&scan, '[', &err), WG_OK);
    assert_int_equal(wg__json_scan_more(&scan, ']', &has_member, &err), WG_OK);
    wg__alloc_fail_from(1);
    assert_int_equal(wg__json_scan_take(&scan, 10, &err), WG_ENOMEM);
    wg__alloc_fail_from(0);
    wg__json_scan_fini(&scan);
    wg__source_close(&source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_the_members_of_arrays_and_objects),
        cmocka_unit_test(passes_what_nobody_wants),
        cmocka_unit_test(cuts_a_key_that_is_too_long),
        cmocka_unit_test(says_what_was_expected_and_where),
        cmocka_unit_test(refuses_a_value_that_is_too_long_to_take),
        cmocka_unit_test(joins_what_windows_cut),
        cmocka_unit_test(fails_cleanly_without_memory),
    };
    return run_tests(tests);
}
