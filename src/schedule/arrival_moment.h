/* SPDX-License-Identifier: MIT
 *
 * One moment of a trace: seconds as a number, or a date with the time of the day.
 *
 *     17.25    1700158546.68    2023-11-16 18:15:46.6805900    2023-11-16T18:15:46Z
 *
 * Dates keep whole seconds and their fraction apart, because a double that holds the seconds since
 * 1970 has only quarter microseconds left: traces come with 100 ns.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_SCHEDULE_ARRIVAL_MOMENT_H
#define WG_SCHEDULE_ARRIVAL_MOMENT_H

#include <stdbool.h>
#include <stdint.h>

struct wg_arrival_moment {
    bool is_date;
    int64_t whole_s; /* since 1970 for a date, 0 for a number */
    double rest_s;   /* the fraction of a date, the whole of a number */
};

/* False when `text` is neither. A date is in the proleptic Gregorian calendar, of the years 1 to
 * 9999; its zone may be missing, Z, +01:00 or +0100. */
bool wg__arrival_moment_parse(const char *text, struct wg_arrival_moment *out);

#endif
