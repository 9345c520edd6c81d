/* SPDX-License-Identifier: MIT
 *
 * One line of the progress of a job: reading the words that progress.h lists.
 *
 * Lines come from anybody's program, so everything is checked: words are apart by blanks, a number
 * is a whole word, and what is not understood to its end is no progress at all. A carriage return
 * at the end does not count; a zero byte or another control byte makes the line no progress.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_LIVE_PROGRESS_LINE_H
#define WG_LIVE_PROGRESS_LINE_H

#include "live/progress.h"

enum { WG_PROGRESS_LINE_MAX = 512 }; /* bytes of a line; a longer one is no progress */

struct wg_progress_line {
    enum wg_progress_kind kind;
    double value; /* METRIC: may be not finite */
    unsigned rank;
    bool has_t;
    uint64_t t_ns; /* when has_t */
    char name[32];
};

/* False: it is no progress, and `out` stays as it was. */
bool wg__progress_parse(struct wg_progress_line *out, const char *text, size_t length);

/* The number of such a line, or what a regular expression found: steps and samples are whole, all
 * but a metric are at least 0 and at most 2^53; a metric may be "nan", "inf" or "-Infinity". */
bool wg__progress_parse_value(double *out, enum wg_progress_kind kind, const char *text,
                              size_t length);

#endif
