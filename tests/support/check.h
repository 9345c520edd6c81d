/* SPDX-License-Identifier: MIT
 *
 * Checks that cmocka 1.1.5 lacks. Include this instead of cmocka.h.
 *
 * A unit test's main ends with `return run_tests(tests)`: 0 or 1, never the raw count of failures,
 * which could read as 77, the status of a skipped program.
 */
#ifndef WG_TESTS_SUPPORT_CHECK_H
#define WG_TESTS_SUPPORT_CHECK_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* It jumps back to the runner, which compilers that look for null pointers must be told. */
__attribute__((noreturn)) void _fail(const char *file, int line); /* NOLINT: adds the attribute */

/* |actual - expected| <= relative * |expected| + absolute; NaN never passes. */
#define check_close_abs(actual, expected, relative, absolute)                                      \
    do {                                                                                           \
        const double check_a = (actual), check_e = (expected);                                     \
        if (!(fabs(check_a - check_e) <= (relative) * fabs(check_e) + (absolute)))                 \
            fail_msg("%s is %.17g, expected %.17g", #actual, check_a, check_e);                    \
    } while (0)

#define check_close(actual, expected, relative) check_close_abs(actual, expected, relative, 0.0)

/* cmocka has an old macro of this name. */
#undef run_tests
#define run_tests(tests) (cmocka_run_group_tests(tests, NULL, NULL) != 0)

#endif
