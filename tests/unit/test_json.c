/* SPDX-License-Identifier: MIT
 *
 * The JSON writer: commas, escapes, numbers, misuse.
 */
#include "base/json.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/check.h"

struct fixture {
    struct wg_buffer out;
    struct wg_json json;
};

static void begin(struct fixture *f)
{
    wg__buffer_init(&f->out);
    wg__json_init(&f->json, &f->out);
}

static void expect(struct fixture *f, const char *text)
{
    assert_false(f->out.failed);
    assert_int_equal(f->json.depth, 0);
    assert_string_equal(f->out.data, text);
    wg__buffer_fini(&f->out);
}

static void write_document(struct wg_json *json)
{
    wg__json_object(json);
    wg__json_member_string(json, "schema", "x/1");
    wg__json_key(json, "empty");
    wg__json_object(json);
    wg__json_close(json);
    wg__json_key(json, "list");
    wg__json_array(json);
    wg__json_array(json);
    wg__json_close(json);
    wg__json_bool(json, true);
    wg__json_bool(json, false);
    wg__json_null(json);
    wg__json_string(json, NULL);
    wg__json_uint(json, UINT64_MAX);
    wg__json_close(json);
    wg__json_member_double(json, "d", 0.5);
    wg__json_member_uint(json, "u", 7);
    wg__json_member_doubles(json, "ds", (const double[]){1, -2.5e-7, 1e300}, 3);
    wg__json_member_doubles(json, "none", NULL, 0);
    wg__json_member_string(json, "null", NULL);
    wg__json_close(json);
}

static const char document[] =
    "{\"schema\":\"x/1\",\"empty\":{},\"list\":[[],true,false,null,null,18446744073709551615],"
    "\"d\":0.5,\"u\":7,\"ds\":[1,-2.5e-07,1e+300],\"none\":[],\"null\":null}";

static void nests_and_separates(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    write_document(&f.json);
    expect(&f, document);
}

static void a_lone_value_is_a_document(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    wg__json_double(&f.json, 0.1);
    expect(&f, "0.1");
}

static void numbers_that_json_lacks_become_null(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    wg__json_array(&f.json);
    wg__json_double(&f.json, (double)NAN);
    wg__json_double(&f.json, (double)INFINITY);
    wg__json_double(&f.json, -(double)INFINITY);
    wg__json_close(&f.json);
    expect(&f, "[null,null,null]");
}

static void strings_are_escaped(void **state)
{
    (void)state;
    struct fixture f;
    begin(&f);
    wg__json_string(&f.json, "a\"b\\c/\b\f\n\r\t\x01\x1F\x7F \xC3\xA9 \xF0\x9F\x94\x8B");
    expect(&f, "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\x7F \xC3\xA9 \xF0\x9F\x94\x8B\"");
    begin(&f);
    wg__json_object(&f.json);
    wg__json_member_string(&f.json, "k\"\n", "");
    wg__json_close(&f.json);
    expect(&f, "{\"k\\\"\\n\":\"\"}");
}

/* The borders of Unicode's table 3-7 (well-formed UTF-8): good ones stay, each bad byte is
 * replaced. */
static void bytes_that_are_not_utf8_are_replaced(void **state)
{
    (void)state;
    static const char *const good[] = {"\xC2\x80",         "\xDF\xBF",        "\xE0\xA0\x80",
                                       "\xED\x9F\xBF",     "\xEE\x80\x80",    "\xEF\xBF\xBF",
                                       "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"};
    static const char *const bad[] = {"\x80",
                                      "\xBF",
                                      "\xC0\x80",
                                      "\xC1\xBF",
                                      "\xC2",
                                      "\xE0\x9F\xBF",
                                      "\xE2\x82",
                                      "\xED\xA0\x80",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF0\x9F\x94",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xFF"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct fixture f;
        char expected[16];
        (void)snprintf(expected, sizeof expected, "\"%s\"", good[i]);
        begin(&f);
        wg__json_string(&f.json, good[i]);
        expect(&f, expected);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fixture f;
        char text[16];
        (void)snprintf(text, sizeof text, "%sz", bad[i]);
        struct wg_buffer expected;
        wg__buffer_init(&expected);
        wg__buffer_puts(&expected, "\"");
        for (size_t k = 0; k < strlen(bad[i]); k++)
            wg__buffer_puts(&expected, "\xEF\xBF\xBD");
        wg__buffer_puts(&expected, "z\"");
        begin(&f);
        wg__json_string(&f.json, text);
        expect(&f, expected.data);
        wg__buffer_fini(&expected);
    }
}

static void every_failing_allocation_is_seen_in_the_buffer(void **state)
{
    (void)state;
    size_t failures = 0;
    for (size_t nth = 1;; nth++) {
        struct fixture f;
        begin(&f);
        wg__alloc_fail_from(nth);
        for (int i = 0; i < 20; i++)
            write_document(&f.json);
        wg__alloc_fail_from(0);
        const bool failed = f.out.failed;
        wg__buffer_fini(&f.out);
        if (!failed)
            break;
        failures++;
    }
    assert_in_range(failures, 2, 10);
}

static void value_without_key(struct wg_json *json)
{
    wg__json_object(json);
    wg__json_uint(json, 1);
}

static void key_in_array(struct wg_json *json)
{
    wg__json_array(json);
    wg__json_key(json, "k");
}

static void key_without_value(struct wg_json *json)
{
    wg__json_object(json);
    wg__json_key(json, "k");
    wg__json_close(json);
}

static void close_too_often(struct wg_json *json)
{
    wg__json_close(json);
}

static void nest_too_deeply(struct wg_json *json)
{
    for (int i = 0; i <= WG_JSON_DEPTH_MAX; i++)
        wg__json_array(json);
}

static void misuse_aborts(void **state)
{
    (void)state;
    static void (*const misuses[])(struct wg_json *) = {
        value_without_key, key_in_array, key_without_value, close_too_often, nest_too_deeply};
    for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            /* cmocka catches SIGABRT; neither it, a message nor a core file belongs here. */
            const struct rlimit no_core = {0, 0};
            (void)setrlimit(RLIMIT_CORE, &no_core);
            (void)signal(SIGABRT, SIG_DFL);
            (void)close(STDERR_FILENO);
            struct fixture f;
            begin(&f);
            misuses[i](&f.json);
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nests_and_separates),
        cmocka_unit_test(a_lone_value_is_a_document),
        cmocka_unit_test(numbers_that_json_lacks_become_null),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
        cmocka_unit_test(every_failing_allocation_is_seen_in_the_buffer),
        cmocka_unit_test(misuse_aborts),
    };
    return run_tests(tests);
}
