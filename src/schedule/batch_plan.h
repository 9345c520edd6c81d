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
 * k grows only until all are settled, so a queue without trouble costs O(n c), and one with trouble
 * O(missed x met x c). Exact for one server and a queue in the order of deadlines; checked against
 * trying everything on small cases. Where that would take longer than some 10 us (long queues in
 * trouble whose requests differ in rows), the plan ends with the requests that it has settled by
 * then, the first ones of the queue.
 *
 * Where two plans are equally good, the one is taken that leaves out fewer requests before its
 * first batch, then the one with the larger first batch.
 *
 * Pure.    Owns: nothing.    Threads: any.
 */
#ifndef WG_SCHEDULE_BATCH_PLAN_H
#define WG_SCHEDULE_BATCH_PLAN_H

#include <stddef.h>

enum { WG_PLAN_ITEMS_MAX = 64 };

struct wg_plan_item {
    double deadline_s;
    unsigned rows;     /* 1 .. max_rows */
    unsigned priority; /* for the batcher; the plan does not look at it */
};

/* What becomes of item 0. */
enum wg_plan_first {
    WG_PLAN_FREE,       /* as with the others */
    WG_PLAN_KEEP_FIRST, /* in the first batch, even past its deadline: then it counts as missed */
    WG_PLAN_MEET_FIRST  /* in the first batch and in time; when it can't be, as KEEP_FIRST */
};

struct wg_plan {
    size_t settled;     /* requests that it speaks of: all, or the first ones, see above */
    size_t missed;      /* of them */
    double end_s;       /* of the last batch; start_s when there is none */
    double slack_s;     /* all may begin that much later and no more is missed; HUGE_VAL: ever */
    size_t first_skips; /* requests left out before the first batch */
    size_t first_count; /* requests in the first batch; 0: all are missed */
};

/* `batch_s[r]` is the time of r rows, r = 1 .. max_rows, never falling. `count` <=
 * WG_PLAN_ITEMS_MAX; with none, `first` is WG_PLAN_FREE. */
void wg__batch_plan(const struct wg_plan_item *items, size_t count, const double *batch_s,
                    unsigned max_rows, double start_s, enum wg_plan_first first,
                    struct wg_plan *out);

#endif
