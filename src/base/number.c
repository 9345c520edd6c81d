/* SPDX-License-Identifier: MIT
 *
 * Numbers from and to text, the same in every locale.
 *
 * Reading: our own scanner checks the grammar
 *
 *     [+-] ( digits [. digits] | . digits ) [ (e|E) [+-] digits ]
 *
 * and collects up to 19 digits. When they fit into 2^53 and the power of ten is at most 10^22, both
 * are exact doubles and one multiplication or division rounds correctly (Clinger, "How to read
 * floating point numbers accurately", PLDI 1990). Nearly every cell of a trace takes this path;
 * the rest goes to strtod under the C locale, which is exact as well, only slower.
 *
 * The C locale is asked for at each use instead of being kept in a global: glibc and musl hand out
 * a static object for it, so newlocale("C") neither allocates nor fails there.
 *
 * Owns: nothing.    Threads: pure, any thread (uselocale is per thread and is put back).
 */
#include "base/number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the scanner found: value = digits * 10^exponent when `exact`. */
struct decimal {
    uint64_t digits;
    int exponent;
    bool negative;
    bool exact; /* all digits fitted */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads a run of digits into `number`, those after the point if `after_point`; false when empty. */
static bool scan_digits(const char **cursor, bool after_point, struct decimal *number)
{
    const char *p = *cursor;
    for (; is_digit(*p); p++) {
        if (number->digits > (UINT64_MAX - 9) / 10) {
            number->exact = false;
            continue;
        }
        number->digits = number->digits * 10 + (uint64_t)(*p - '0');
        if (after_point && number->exponent > -100000)
            number->exponent--;
        else if (after_point)
            number->exact = false; /* the exponent no longer counts all places */
    }
    const bool any = p != *cursor;
    *cursor = p;
    return any;
}

static bool scan_exponent(const char **cursor, struct decimal *number)
{
    const char *p = *cursor + 1;
    const bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (!is_digit(*p))
        return false;
    int exponent = 0;
    for (; is_digit(*p); p++) {
        if (exponent < 100000) /* far out of range already; stop before it overflows */
            exponent = exponent * 10 + (*p - '0');
    }
    number->exponent += negative ? -exponent : exponent;
    *cursor = p;
    return true;
}

static bool scan(const char *text, struct decimal *number)
{
    *number = (struct decimal){.exact = true, .negative = *text == '-'};
    const char *p = text;
    if (*p == '-' || *p == '+')
        p++;
    bool any = scan_digits(&p, false, number);
    if (*p == '.') {
        p++;
        any |= scan_digits(&p, true, number);
    }
    if (!any)
        return false;
    if ((*p == 'e' || *p == 'E') && !scan_exponent(&p, number))
        return false;
    return *p == '\0';
}

static bool parse_slowly(const char *text, double *out)
{
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0)
        return false;
    const double value = strtod_l(text, NULL, c_locale);
    freelocale(c_locale);
    if (!isfinite(value))
        return false;
    *out = value;
    return true;
}

bool wg__parse_double(const char *text, double *out)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    struct decimal number;
    if (!scan(text, &number))
        return false;
    const bool is_small = number.exact && number.digits <= (UINT64_C(1) << 53);
    if (is_small && number.digits == 0) {
        *out = number.negative ? -0.0 : 0.0;
        return true;
    }
    /* With x87 arithmetic (FLT_EVAL_METHOD 2) the one operation would round twice. */
    if (FLT_EVAL_METHOD == 0 && is_small && number.exponent >= -22 && number.exponent <= 22) {
        const double digits = (double)number.digits;
        const double value = number.exponent < 0 ? digits / powers[-number.exponent]
                                                 : digits * powers[number.exponent];
        *out = number.negative ? -value : value;
        return true;
    }
    double value = 0.0;
    /* A nonzero number that came out as zero is below the smallest double: out of range. */
    if (!parse_slowly(text, &value) || value == 0.0)
        return false;
    *out = value;
    return true;
}

bool wg__parse_uint64(const char *text, uint64_t *out)
{
    uint64_t value = 0;
    if (*text == '\0')
        return false;
    for (const char *p = text; *p != '\0'; p++) {
        if (!is_digit(*p))
            return false;
        const uint64_t digit = (uint64_t)(*p - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

int wg__format(char *out, size_t size, const char *format, va_list args)
{
    const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c_locale == (locale_t)0)
        return -1;
    const locale_t before = uselocale(c_locale);
    const int length = vsnprintf(out, size, format, args);
    (void)uselocale(before);
    freelocale(c_locale);
    return length;
}

__attribute__((format(printf, 3, 4))) static int format_to(char *out, size_t size,
                                                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = wg__format(out, size, format, args);
    va_end(args);
    return length;
}

/* 15 digits always survive decimal -> double -> decimal for normal numbers, so a shorter text is
 * found as a 15-digit one whose zeros %g drops. Subnormals have fewer digits: start at one. */
void wg__format_double(char out[static WG_DOUBLE_TEXT_SIZE], double value)
{
    const int first = fpclassify(value) == FP_SUBNORMAL ? 1 : 15;
    for (int digits = first; digits <= 17; digits++) {
        double back = 0.0;
        if (format_to(out, WG_DOUBLE_TEXT_SIZE, "%.*g", digits, value) < 0)
            break;
        if (wg__parse_double(out, &back) && back == value)
            return;
    }
}
