/* SPDX-License-Identifier: MIT
 *
 * Reading numbers from text and writing them, the same in every locale.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_BASE_NUMBER_H
#define WG_BASE_NUMBER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole of `text` as a decimal number ("1e-3", "-2.5", ".5"), correctly rounded; false when
 * anything is left over, when it is empty, has leading or trailing blanks, is hexadecimal, infinite
 * or not a number, or is out of range (too large, or not zero but nearer to zero than any double).
 */
bool wg__parse_double(const char *text, double *out);

/* The whole of `text` as decimal digits; false when it is anything else or too large. */
bool wg__parse_uint64(const char *text, uint64_t *out);

enum { WG_DOUBLE_TEXT_SIZE = 32 };

/* Writes `value` with the fewest digits of %g (at most 17) that read back to the same double;
 * "inf",
 * "-inf" or "nan" when it is not finite. */
void wg__format_double(char out[static WG_DOUBLE_TEXT_SIZE], double value);

/* vsnprintf under the C locale: a decimal point is a point. Negative when the format fails. */
int wg__format(char *out, size_t size, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

#endif
