/* SPDX-License-Identifier: MIT
 *
 * A recorded load: moments of requests, or how many came in each second.
 *
 * Reading takes CSV with a header, text of one number a line, a JSON list of numbers, and JSON
 * objects one a line; plain or gzipped:
 *
 *     CSV     a column `count` or `requests` (of a second; `second` beside it tells jumps), else
 *             `gap_s` (since the request before), else `arrival_s`, `timestamp_s`, `TIMESTAMP`,
 *             `timestamp`, `time_s` or `time` (seconds, or a date), else the first numeric column
 *     text    moments where the numbers never fall, counts a second where they are whole numbers
 *             that do; `as` says it when that is wrong, and says gaps
 *     objects `arrival_s` or `timestamp_s`, else `timestamp` in milliseconds (as Mooncake's)
 *
 * Moments need not be in order and count from the first one. After `length_s` a trace begins again;
 * that of n moments is the time between the first and the last, times n/(n - 1).
 *
 * When the collection stood still that was no lull: seconds that the column `second` leaves out are
 * skipped, and so are, where there is none, long runs of zeros (`skip_s`).
 *
 * Owns: its array.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_ARRIVAL_TRACE_H
#define WG_SCHEDULE_ARRIVAL_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"

enum { WG_ARRIVALS_MAX = 100000000 }; /* moments or seconds in a trace */

/* What the numbers of a trace are. */
#define WG_ARRIVAL_KINDS(X)                                                                        \
    X(AUTO, "auto")                                                                                \
    X(MOMENTS, "moments")                                                                          \
    X(COUNTS, "counts")                                                                            \
    X(GAPS, "gaps")

enum wg_arrival_kind {
#define X(name, word) WG_ARRIVAL_##name,
    WG_ARRIVAL_KINDS(X)
#undef X
        WG_ARRIVAL_KIND_COUNT
};

struct wg_arrival_trace {
    bool is_counts;
    size_t count;      /* of moments, or of seconds */
    double *moments_s; /* never falling, in 0 .. length_s; NULL for counts */
    uint32_t *counts;  /* NULL for moments */
    double requests;   /* in the whole, at least 1 */
    double length_s;
};

struct wg_arrival_reading {
    enum wg_arrival_kind as;
    double skip_s; /* runs of zeros so long are skipped; 0: never; < 0: the longer of 10 s and 300
                      times the mean time between requests, a run that chance doesn't make */
};

/* WG_ENOENT, WG_EPERM, WG_EIO: the file; WG_EDATA: what is in it, with the line; WG_ENOMEM. */
enum wg_code wg__arrival_trace_read(struct wg_arrival_trace *out, const char *path,
                                    const struct wg_arrival_reading *reading, struct wg_error *err);

/* The same over memory; `name` stands for the file in messages. */
enum wg_code wg__arrival_trace_read_memory(struct wg_arrival_trace *out, const char *name,
                                           const char *bytes, size_t length,
                                           const struct wg_arrival_reading *reading,
                                           struct wg_error *err);
void wg__arrival_trace_fini(struct wg_arrival_trace *trace);

/* The first moment at or behind `at_s`; `count`: there is none. Moments only. */
size_t wg__arrival_trace_find(const struct wg_arrival_trace *trace, double at_s);

/* Keeps the seconds from_s .. to_s, which become its length. WG_EINVAL: they are not in the trace,
 * no request is in them, or they are not whole where the trace counts. */
enum wg_code wg__arrival_trace_cut(struct wg_arrival_trace *trace, double from_s, double to_s,
                                   struct wg_error *err);

/* Where the minute begins in which the requests per second vary most (whole seconds; the first of
 * equals). WG_EINVAL: the trace is shorter. WG_ENOMEM. */
enum wg_code wg__arrival_trace_burstiest(const struct wg_arrival_trace *trace, double *from_s_out,
                                         struct wg_error *err);

/* Makes a trace of moments one of counts per second; the last second is filled up. WG_EINVAL: it
 * lasts too long. WG_ENOMEM. */
enum wg_code wg__arrival_trace_count(struct wg_arrival_trace *trace, struct wg_error *err);

/* For a coarse clock: each moment goes to a random place in the `spread_s` behind it. Moments only;
 * counts are left alone. */
void wg__arrival_trace_spread(struct wg_arrival_trace *trace, double spread_s, struct wg_rng *rng);

#endif
