/* SPDX-License-Identifier: MIT
 *
 * Reading a moment.
 *
 * strptime knows no fractions of a second and follows the locale, so the fields are read one by
 * one. The day number is the usual count of days before a March-based year: leap days then come
 * last and need no case of their own.
 *
 * Threads: pure, any thread.
 */
#include "schedule/arrival_moment.h"

#include <stddef.h>

#include "base/number.h"

/* Exactly `digits` decimal digits in min .. max; moves the cursor behind them. */
static bool take_number(const char **cursor, size_t digits, int min, int max, int *out)
{
    int value = 0;
    for (size_t i = 0; i < digits; i++) {
        const char digit = (*cursor)[i];
        if (digit < '0' || digit > '9')
            return false;
        value = 10 * value + (digit - '0');
    }
    if (value < min || value > max)
        return false;
    *cursor += digits;
    *out = value;
    return true;
}

static bool take_byte(const char **cursor, char byte)
{
    if (**cursor != byte)
        return false;
    (*cursor)++;
    return true;
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in(int year, int month)
{
    if (month == 2)
        return is_leap(year) ? 29 : 28;
    return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/* Days from 1970-01-01. */
static int64_t day_number(int year, int month, int day)
{
    const int64_t y = month > 2 ? year : year - 1;
    const int64_t m = month > 2 ? month - 3 : month + 9;
    const int64_t before_year = 365 * y + y / 4 - y / 100 + y / 400;
    return before_year + (153 * m + 2) / 5 + day - 1 - 719468;
}

static bool take_date(const char **cursor, int64_t *days_out)
{
    int year = 0;
    int month = 0;
    int day = 0;
    if (!take_number(cursor, 4, 1, 9999, &year) || !take_byte(cursor, '-') ||
        !take_number(cursor, 2, 1, 12, &month) || !take_byte(cursor, '-') ||
        !take_number(cursor, 2, 1, days_in(year, month), &day))
        return false;
    *days_out = day_number(year, month, day);
    return true;
}

/* ".6805900"; none is 0. Digits beyond the 15th say nothing that a double could keep. */
static bool take_fraction(const char **cursor, double *out)
{
    double value = 0.0;
    double unit = 1.0;
    if (take_byte(cursor, '.')) {
        const char *first = *cursor;
        for (; **cursor >= '0' && **cursor <= '9'; (*cursor)++) {
            if (unit < 1e15) {
                unit *= 10.0;
                value = 10.0 * value + (**cursor - '0');
            }
        }
        if (*cursor == first)
            return false;
    }
    *out = value / unit;
    return true;
}

/* Seconds east of Greenwich: "", "Z", "+01:00", "-0730". */
static bool take_zone(const char **cursor, int *east_s_out)
{
    *east_s_out = 0;
    if (**cursor == '\0' || take_byte(cursor, 'Z'))
        return true;
    const bool is_west = **cursor == '-';
    if (!is_west && **cursor != '+')
        return false;
    (*cursor)++;
    int hours = 0;
    int minutes = 0;
    if (!take_number(cursor, 2, 0, 23, &hours))
        return false;
    (void)take_byte(cursor, ':');
    if (!take_number(cursor, 2, 0, 59, &minutes))
        return false;
    *east_s_out = (hours * 3600 + minutes * 60) * (is_west ? -1 : 1);
    return true;
}

static bool parse_date(const char *text, struct wg_arrival_moment *out)
{
    const char *cursor = text;
    int64_t days = 0;
    int hour = 0;
    int minute = 0;
    int second = 0;
    int east_s = 0;
    double fraction_s = 0.0;
    if (!take_date(&cursor, &days) || (!take_byte(&cursor, ' ') && !take_byte(&cursor, 'T')) ||
        !take_number(&cursor, 2, 0, 23, &hour) || !take_byte(&cursor, ':') ||
        !take_number(&cursor, 2, 0, 59, &minute) || !take_byte(&cursor, ':') ||
        !take_number(&cursor, 2, 0, 60, &second) || /* 60: a leap second */
        !take_fraction(&cursor, &fraction_s) || !take_zone(&cursor, &east_s) || *cursor != '\0')
        return false;
    out->is_date = true;
    out->whole_s = days * 86400 + (hour * 3600 + minute * 60 + second - east_s);
    out->rest_s = fraction_s;
    return true;
}

bool wg__arrival_moment_parse(const char *text, struct wg_arrival_moment *out)
{
    struct wg_arrival_moment moment = {0};
    if (!wg__parse_double(text, &moment.rest_s) && !parse_date(text, &moment))
        return false;
    *out = moment;
    return true;
}
