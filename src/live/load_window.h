/* SPDX-License-Identifier: MIT
 *
 * The latencies of a window: percentiles, how precise they are, and whether a limit is out of
 * reach.
 *
 * All latencies are kept, up to WG_LOAD_WINDOW_MAX (32 MiB), so percentiles are exact; a window
 * that is full is precise enough for anything and ends.
 *
 * Latencies of one server depend on one another: a queue makes a whole burst slow. So the error of
 * the percentile q at its value x is that of the share F(x) of latencies up to x, which is found
 * from the means of BATCHES contiguous parts (batch means), never taken smaller than independent
 * draws would give:
 *
 *     sd(F)^2 = max(q (1 - q) / n,  variance of the parts' shares / BATCHES)
 *     interval = [ value at q - z sd(F), value at q + z sd(F) ]        (an order statistic each)
 *     relative standard error = (value at q + sd - value at q - sd) / (2 value at q)
 *
 * No density has to be estimated for that. When q + sd(F) is beyond the largest latency, the error
 * is infinite: too few. Source: Heidelberger and Lewis, "Quantile estimation in dependent
 * sequences", Operations Research 32 (1984); the order-statistic interval is in any textbook. The
 * mean's error is that of batch means.
 *
 * Pure.    Owns: the latencies.    Threads: one at a time.
 */
#ifndef WG_LIVE_LOAD_WINDOW_H
#define WG_LIVE_LOAD_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { WG_LOAD_WINDOW_MAX = 1 << 22, WG_LOAD_WINDOW_BATCHES = 30 };

struct wg_load_window {
    double *values; /* in the order in which they came */
    size_t count;
    size_t capacity;
    double *sorted; /* of the first `sorted_count`; room for `capacity` */
    size_t sorted_count;
};

struct wg_load_estimate {
    double value; /* NAN: no latencies */
    double error; /* relative standard error; INFINITY: too few */
};

void wg__load_window_init(struct wg_load_window *window);
void wg__load_window_fini(struct wg_load_window *window);
/* Forgets the latencies, keeps the memory. */
void wg__load_window_clear(struct wg_load_window *window);

static inline bool wg__load_window_is_full(const struct wg_load_window *window)
{
    return window->count == WG_LOAD_WINDOW_MAX;
}

/* One more; nothing when it is full. WG_ENOMEM. */
enum wg_code wg__load_window_add(struct wg_load_window *window, double value, struct wg_error *err);

/* The latency that a share 0 < q < 1 of all is at or below. Sorts, if more have come. */
struct wg_load_estimate wg__load_window_percentile(struct wg_load_window *window, double q);
struct wg_load_estimate wg__load_window_mean(struct wg_load_window *window);

/* The lower end of the interval of `z` standard errors of percentile q; NAN: no latencies. */
double wg__load_window_lower(struct wg_load_window *window, double q, double z);
double wg__load_window_mean_lower(struct wg_load_window *window, double z);

/* Whether percentile q is above `limit`, given also `late` latencies that are not known yet but
 * above it for sure: the share within the limit is below q by more than `z` standard errors of a
 * share that were q. Dependence widens them as above; before there are enough latencies to see it,
 * WG_LOAD_WINDOW_BATCHES times 10, it is taken to double them. */
bool wg__load_window_is_above(const struct wg_load_window *window, double q, double limit,
                              size_t late, double z);
bool wg__load_window_mean_is_above(struct wg_load_window *window, double limit, double z);

#endif
