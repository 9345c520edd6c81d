/* SPDX-License-Identifier: MIT
 *
 * Reading numbers from text, the same in every locale.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_BASE_NUMBER_H
#define WG_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole of `text` as a decimal number ("1e-3", "-2.5", ".5"); false when anything is left over,
 * when it is empty, has leading or trailing blanks, is hexadecimal, infinite or not a number, or is
 * out of range. */
bool wg__parse_double(const char *text, double *out);

/* The whole of `text` as decimal digits; false when it is anything else or too large. */
bool wg__parse_uint64(const char *text, uint64_t *out);

#endif
