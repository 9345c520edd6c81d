/* SPDX-License-Identifier: MIT
 *
 * Expressions: values against C's own arithmetic, precedence against texts written out in full.
 */
#include "base/expression.h"

#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

static struct wg_expression *compile(const char *text)
{
    struct wg_expression *expression = NULL;
    struct wg_error err = {0};
    if (wg__expression_compile(&expression, text, &err) != WG_OK)
        fail_msg("'%s': %s", text, err.text);
    return expression;
}

/* With a = 3, b = 0.5, c = -2 in the order of their first use. */
static double value_of(const char *text)
{
    struct wg_expression *expression = compile(text);
    double values[WG_EXPRESSION_NAMES_MAX];
    for (size_t i = 0; i < wg__expression_name_count(expression); i++) {
        const char *name = wg__expression_name(expression, i);
        values[i] = strcmp(name, "a") == 0 ? 3 : strcmp(name, "b") == 0 ? 0.5 : -2;
    }
    const double value = wg__expression_evaluate(expression, values);
    wg__expression_free(expression);
    return value;
}

static void follows_the_rules_of_precedence(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"1", 1},
        {" 1.5e-3\t", 1.5e-3},
        {".5", 0.5},
        {"2e3", 2000},
        {"a - b - c", 3 - 0.5 + 2},
        {"a / b / c", 3 / 0.5 / -2},
        {"a + b * c", 3 + 0.5 * -2},
        {"(a + b) * c", 3.5 * -2},
        {"-a^2", -9},
        {"(-a)^2", 9},
        {"2^-2", 0.25},
        {"2^3^2", 512},
        {"a*-b", -1.5},
        {"a - -b", 3.5},
        {"-(-a)", 3},
        {"1/a", 1.0 / 3},
        {"min(a, b, c)", -2},
        {"max(a, b, c)", 3},
        {"max(a)", 3},
        {"min(a, max(b, 1) * 2) + 1", 3},
        {"sqrt(a * a)", 3},
        {"log(exp(2))", 2},
        {"abs(c) + abs(a)", 5},
        {"2 * sqrt(4) ^ 2", 8},
        {"exp(0) - min(1, 2)", 0},
        {"((((a))))", 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_close_abs(value_of(cases[i].text), cases[i].value, 1e-15, 0);
}

static void names_are_listed_once_in_the_order_of_their_first_use(void **state)
{
    (void)state;
    struct wg_expression *expression =
        compile("`p99 (s)` + x.y_1 * max + `x.y_1` / _z - `p99 (s)` + max(1, 2)");
    static const char *const names[] = {"p99 (s)", "x.y_1", "max", "_z"};
    assert_int_equal(wg__expression_name_count(expression), 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(wg__expression_name(expression, i), names[i]);
    const double values[] = {1, 10, 100, 1000};
    check_close(wg__expression_evaluate(expression, values), 1 + 1000 + 0.01 - 1 + 2, 1e-15);
    wg__expression_free(expression);
}

static void what_is_no_number_is_not_hidden(void **state)
{
    (void)state;
    assert_true(isnan(value_of("min(0/0, 1)")) && isnan(value_of("max(1, 0/0)")));
    assert_true(isnan(value_of("min(1, 0/0)")) && isnan(value_of("max(0/0, 1)")));
    assert_true(isnan(value_of("sqrt(-1)")) && isnan(value_of("log(c)")));
    assert_true(isinf(value_of("1/0")) && isinf(value_of("log(0)")));
}

static void an_error_names_the_text_the_column_and_what_was_expected(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "'', column 1: expected a number, a name, a function or '('"},
        {"a +", "'a +', column 4: expected a number, a name, a function or '('"},
        {"a b", "'a b', column 3: expected an operator or the end"},
        {"1.5x", "'1.5x', column 4: expected an operator or the end"},
        {"0x10", "'0x10', column 2: expected an operator or the end"},
        {"(a", "'(a', column 3: expected ')' or an operator"},
        {"a)", "'a)', column 2: expected an operator or the end"},
        {"sqrt(1, 2)", "'sqrt(1, 2)', column 7: expected ')', the function has one argument"},
        {"min(1 2)", "'min(1 2)', column 7: expected ',', ')' or an operator"},
        {"log(1", "'log(1', column 6: expected ')' or an operator"},
        {"min()", "'min()', column 5: expected a number, a name, a function or '('"},
        {"1 + foo(2)", "'1 + foo(2)', column 5: 'foo' is not a function (min, max, sqrt, log, exp, "
                       "abs)"},
        {"2 * 1..2", "'2 * 1..2', column 5: not a number that can be read"},
        {"1e999", "'1e999', column 1: not a number that can be read"},
        {"1e", "'1e', column 2: expected an operator or the end"},
        {"a + `b", "'a + `b', column 5: the backquote that opens here is never closed"},
        {"``", "'``', column 1: expected a name between the backquotes"},
        {"a, b", "'a, b', column 2: expected an operator or the end"},
        {"a <= 1", "'a <= 1', column 3: expected an operator or the end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_expression *expression = NULL;
        struct wg_error err = {0};
        assert_int_equal(wg__expression_compile(&expression, cases[i].text, &err), WG_EINVAL);
        assert_string_equal(err.text, cases[i].message);
        assert_null(expression);
    }
}

static void depth_names_and_numbers_are_bounded(void **state)
{
    (void)state;
    char text[512];
    for (size_t depth = 1; depth < (size_t)2 * WG_EXPRESSION_DEPTH_MAX; depth++) {
        memset(text, '(', depth);
        text[depth] = '1';
        memset(text + depth + 1, ')', depth);
        text[2 * depth + 1] = '\0';
        struct wg_expression *expression = NULL;
        struct wg_error err = {0};
        const enum wg_code code = wg__expression_compile(&expression, text, &err);
        assert_int_equal(code, depth < WG_EXPRESSION_DEPTH_MAX ? WG_OK : WG_EINVAL);
        if (code != WG_OK)
            assert_non_null(strstr(err.text, "nested too deeply"));
        wg__expression_free(expression);
    }
    size_t length = 0;
    for (size_t i = 0; i <= WG_EXPRESSION_NAMES_MAX; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "%sn%zu", i == 0 ? "" : "+", i);
    struct wg_expression *expression = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__expression_compile(&expression, text, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "one name too many, at most 32"));
    *strrchr(text, '+') = '\0';
    wg__expression_free(compile(text));
}

/* Deep on the left of every operator as well: each level holds up to four values back. */
static void the_deepest_texts_evaluate(void **state)
{
    (void)state;
    char text[1024] = "";
    size_t length = 0, brackets = 0;
    while (brackets < WG_EXPRESSION_DEPTH_MAX - 3) {
        length += (size_t)snprintf(text + length, sizeof text - length, "1+2*(");
        brackets++;
    }
    length += (size_t)snprintf(text + length, sizeof text - length, "2^0");
    for (size_t i = 0; i < brackets; i++)
        text[length++] = ')';
    text[length] = '\0';
    double expected = 1;
    for (size_t i = 0; i < brackets; i++)
        expected = 1 + 2 * expected;
    check_close(value_of(text), expected, 1e-12);
}

static void every_failing_allocation_is_reported(void **state)
{
    (void)state;
    size_t failures = 0;
    for (size_t nth = 1;; nth++) {
        struct wg_expression *expression = NULL;
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code =
            wg__expression_compile(&expression, "a+b*c-d/e+f+g+h+i+j+min(k,l,m)+1+2+3+4+5+6", &err);
        wg__alloc_fail_from(0);
        wg__expression_free(expression);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        failures++;
    }
    assert_in_range(failures, 14, 20); /* itself, 13 names, the code twice or three times */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_rules_of_precedence),
        cmocka_unit_test(names_are_listed_once_in_the_order_of_their_first_use),
        cmocka_unit_test(what_is_no_number_is_not_hidden),
        cmocka_unit_test(an_error_names_the_text_the_column_and_what_was_expected),
        cmocka_unit_test(depth_names_and_numbers_are_bounded),
        cmocka_unit_test(the_deepest_texts_evaluate),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return run_tests(tests);
}
