/* SPDX-License-Identifier: MIT
 *
 * Reading and writing spans of time; see duration.h.
 */
#include "cli/duration.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

static const struct {
    const char *name;
    double factor; /* what one of the smallest unit, a microsecond, is multiplied by */
} units[] = {
    {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6},
};
enum { UNIT_COUNT = sizeof units / sizeof *units };

/* Seconds times this are microseconds. We divide by it last: 100 ms are 1e5 / 1e6 = 0.1 exactly as
 * the compiler reads 0.1, while 100 * 0.001 is not. */
static const double us_per_s = 1e6;

bool wg__parse_duration(const char *text, double *seconds_out)
{
    char digits[WG_DOUBLE_TEXT_SIZE];
    const size_t length = strspn(text, "0123456789.");
    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    double number;
    if (!wg__parse_double(digits, &number))
        return false;
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (strcmp(text + length, units[i].name) == 0) {
            *seconds_out = number * units[i].factor / us_per_s;
            return true;
        }
    }
    return false;
}

void wg__format_duration(char out[static WG_DURATION_TEXT_SIZE], double seconds)
{
    char digits[WG_DOUBLE_TEXT_SIZE];
    /* Hours and minutes only where they come out whole: 90 s is better than 1.5 m. */
    for (size_t i = UNIT_COUNT; i-- > 0;) {
        const double number = seconds * us_per_s / units[i].factor;
        const bool is_large = units[i].factor > us_per_s;
        if (number >= 1 && (!is_large || number == floor(number))) {
            wg__format_double(digits, number);
            (void)snprintf(out, WG_DURATION_TEXT_SIZE, "%s%s", digits, units[i].name);
            return;
        }
    }
    wg__format_double(digits, seconds);
    (void)snprintf(out, WG_DURATION_TEXT_SIZE, "%ss", digits);
}
