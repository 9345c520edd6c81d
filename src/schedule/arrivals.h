/* SPDX-License-Identifier: MIT
 *
 * When requests come: evenly, as a Poisson process, or as a trace says.
 *
 *     uniform:RATE  poisson:RATE  trace:FILE[,rate=R][,window=burstiest|A:B]
 *
 * A trace is a CSV or text file of exact moments (a column `arrival_s`, `timestamp_s`, `TIMESTAMP`
 * or the first numeric one), or of counts per second (a column `count` or `requests`): those are
 * placed at random within their second. schedule/arrival_trace.h tells what else is read.
 *
 *     rate=R        scales the whole to that many requests a second on average
 *     by=time|count how: by stretching time (default), or by thinning and multiplying the requests
 *     window=A:B    takes the seconds A to B; `burstiest`: the minute of highest variance
 *     as=KIND       what text without a header holds: moments, counts or gaps
 *     skip=S        leaves out S seconds or more without a request (counts only; 0: never)
 *     spread=S      the clock ticks every S seconds: each moment goes to a random place in its tick
 *
 * Stretching keeps how requests follow each other but makes bursts longer or shorter. By count,
 * bursts last as long as in the trace: each request stays with probability p, or becomes n or n + 1
 * of them at random places in its second.
 *
 * The moments are a stream: the next one is drawn when it is asked for, so an hour costs no memory.
 * A trace that ends begins again.
 *
 * Pure but for reading the file once.    Owns: the trace.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_ARRIVALS_H
#define WG_SCHEDULE_ARRIVALS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/rng.h"

struct wg_arrivals;

/* From the text above. `rng` is copied: the same text and generator give the same moments.
 * WG_EINVAL, WG_EDATA (a file: with its line), WG_ENOENT, WG_ENOMEM. */
enum wg_code wg__arrivals_open(struct wg_arrivals **out, const char *text, const struct wg_rng *rng,
                               struct wg_error *err);
void wg__arrivals_close(struct wg_arrivals *arrivals);

/* From the beginning again, as if it had been opened with `rng`; the file is not read again. */
void wg__arrivals_restart(struct wg_arrivals *arrivals, const struct wg_rng *rng);

/* A trace then begins at this share of its length, 0 <= share < 1: moments count from there (from
 * the whole second, in one of counts), and its end is followed by its beginning. Right after
 * opening or a restart. The others are left alone. */
void wg__arrivals_seek(struct wg_arrivals *arrivals, double share);

/* Whether the rate is the same all the time: no trace. */
bool wg__arrivals_is_steady(const struct wg_arrivals *arrivals);

/* Mean rate in requests a second. */
double wg__arrivals_rate(const struct wg_arrivals *arrivals);

/* The next moment in seconds from 0, never falling. */
double wg__arrivals_next(struct wg_arrivals *arrivals);

#endif
