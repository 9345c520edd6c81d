/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of expressions: any text compiles or is refused by one line, and what compiles
 * has names that differ and a value that depends on nothing but them, in brackets or without.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true
 *     ninja -C build/fuzz tests/fuzz/fuzz_expression
 *     build/fuzz/tests/fuzz/fuzz_expression -max_total_time=60 NEW_FOLDER \
 *         tests/fuzz/corpus/expression
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/expression.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_error(enum wg_code code, const struct wg_error *err)
{
    require(code == WG_EINVAL && err->code == code && err->text[0] != '\0');
    require(strpbrk(err->text, "\n\r\x1B") == NULL);
}

static double evaluate(const struct wg_expression *expression)
{
    static const double values[WG_EXPRESSION_NAMES_MAX] = {3, 0.5, -2, 1e9, 0, 7};
    return wg__expression_evaluate(expression, values);
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void check_names(const struct wg_expression *expression)
{
    const size_t count = wg__expression_name_count(expression);
    require(count <= WG_EXPRESSION_NAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        require(wg__expression_name(expression, i)[0] != '\0');
        for (size_t j = 0; j < i; j++)
            require(strcmp(wg__expression_name(expression, i),
                           wg__expression_name(expression, j)) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 3);
    require(text != NULL);
    text[0] = '(';
    if (size != 0)
        memcpy(text + 1, data, size);
    text[size + 1] = '\0';
    const size_t length = strlen(text);
    struct wg_expression *plain = NULL, *bracketed = NULL;
    struct wg_error err = {0};
    const enum wg_code code = wg__expression_compile(&plain, text + 1, &err);
    if (code == WG_OK) {
        check_names(plain);
        const double value = evaluate(plain);
        require(is_same(value, evaluate(plain)));
        text[length] = ')';
        text[length + 1] = '\0';
        if (wg__expression_compile(&bracketed, text, &err) == WG_OK) /* else one level too deep */
            require(is_same(value, evaluate(bracketed)));
    } else {
        check_error(code, &err);
    }
    wg__expression_free(plain);
    wg__expression_free(bracketed);
    free(text);
    return 0;
}
