/* SPDX-License-Identifier: MIT
 *
 * The order in which waiting requests are best served: the fewest missed deadlines, then the
 * earliest end.
 *
 * Batches take requests that follow each other in the queue's order; a request may be left out, and
 * is missed then. Among all such plans, f(i, k) is the earliest moment at which the first i
 * requests are settled with k of them missed:
 *
 *     f(i + 1, k + 1) <- f(i, k)                              request i is left out
 *     f(i + c, k)     <- f(i, k) + t(rows of i .. i + c - 1)   if no deadline in it is passed
 *
 * k grows only until all are settled, so a queue without trouble costs O(n c). Exact for one server
 * and a queue in the order of deadlines; checked against trying everything on small cases.
 *
 * Pure.    Owns: nothing.    Threads: any.
 */
#ifndef WG_SCHEDULE_BATCH_PLAN_H
#define WG_SCHEDULE_BATCH_PLAN_H

#include <stddef.h>

enum { WG_PLAN_ITEMS_MAX = 64 };

struct wg_plan_item {
    double deadline_s;
    unsigned rows; /* 1 .. max_rows */
};

struct wg_plan {
    size_t missed;
    double end_s;       /* of the last batch; start_s when there is none */
    size_t first_skips; /* requests left out before the first batch */
    size_t first_count; /* requests in the first batch; 0: all are missed */
};

/* `batch_s[r]` is the time of r rows, r = 1 .. max_rows, never falling. `count` <=
 * WG_PLAN_ITEMS_MAX. `keep_first`: item 0 must be in the first batch, even past its deadline (then
 * it counts as missed). */
void wg__batch_plan(const struct wg_plan_item *items, size_t count, const double *batch_s,
                    unsigned max_rows, double start_s, int keep_first, struct wg_plan *out);

#endif
