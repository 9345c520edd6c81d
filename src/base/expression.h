/* SPDX-License-Identifier: MIT
 *
 * Arithmetic on named columns: "wall_power_w / inferences_per_s", "1/tokens_per_s", "p99_s".
 *
 *     expression = term { ("+" | "-") term }        term = factor { ("*" | "/") factor }
 *     factor = ["-"] power                          power = primary ["^" factor]
 *     primary = number | name | "(" expression ")" | function "(" expression {"," expression} ")"
 *     function = min | max | sqrt | log | exp | abs
 *     name = letter or _, then letters, digits, _ and "."; or any text in `backquotes`
 *
 * Compiled once, evaluated many times. Results that are not finite are the caller's to judge.
 *
 * Owns: its program and the names.    Threads: evaluation is pure, any thread.
 */
#ifndef WG_BASE_EXPRESSION_H
#define WG_BASE_EXPRESSION_H

#include <stddef.h>

#include "base/error.h"

enum { WG_EXPRESSION_NAMES_MAX = 32, WG_EXPRESSION_DEPTH_MAX = 64 };

struct wg_expression;

/* WG_EINVAL: one line with the text, the column and what was expected there. */
enum wg_code wg__expression_compile(struct wg_expression **out, const char *text,
                                    struct wg_error *err);
void wg__expression_free(struct wg_expression *expression);

/* The names in it, each once, in the order of their first use. */
size_t wg__expression_name_count(const struct wg_expression *expression);
const char *wg__expression_name(const struct wg_expression *expression, size_t index);

/* Its value where name i stands for values[i]. */
double wg__expression_evaluate(const struct wg_expression *expression, const double *values);

#endif
