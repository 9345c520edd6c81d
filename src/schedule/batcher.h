/* SPDX-License-Identifier: MIT
 *
 * What the server takes next from a lane, and what it gives up.
 *
 *   WATTGOV  the batch that the best plan (batch_plan.h) begins with: as many as keep the oldest
 *            deadline, fewer where more would break one
 *   TRITON   whoever waits, up to max_rows, at once (dynamic batching without a queue delay), or,
 *            with a delay, when the batch is full or the oldest has waited that long
 *   NONE     one request a batch
 *
 * Given up is
 *   STANDARD  what is past its deadline (Clipper, Nexus; what PolyThrottle compares with)
 *   EARLY     also what would be late as likely as not if it began now, alone; and, by
 *             WATTGOV, what costs at least two others their deadlines. Only those of its own
 *             priority count: the lower ones never cost a higher one its turn
 *
 * Plans count on bounds. What they cannot count on but is not given up (under STANDARD that is
 * whatever is not past its deadline) waits on, and is taken, late perhaps, when it fits into a
 * batch whose plan bears that (no known deadline is missed for it), or when nothing else waits;
 * then alone, the one that is late by the least, so that whoever comes meanwhile waits as short as
 * may be. Otherwise it is past its deadline soon.
 *
 * Pure.    Owns: nothing.    Threads: any.
 */
#ifndef WG_SCHEDULE_BATCHER_H
#define WG_SCHEDULE_BATCHER_H

#include <stdbool.h>
#include <stddef.h>

#include "schedule/batch_plan.h"

#define WG_BATCHERS(X) X(WATTGOV, "wattgov") X(TRITON, "triton") X(NONE, "none")
enum wg_batcher_kind {
#define X(name, word) WG_BATCHER_##name,
    WG_BATCHERS(X)
#undef X
        WG_BATCHER_COUNT
};

#define WG_DROPS(X) X(STANDARD, "standard") X(EARLY, "early")
enum wg_drop_kind {
#define X(name, word) WG_DROP_##name,
    WG_DROPS(X)
#undef X
        WG_DROP_COUNT
};

enum wg_verdict {
    WG_VERDICT_WAIT,
    WG_VERDICT_TAKE,
    WG_VERDICT_PAST,      /* dropped: its deadline is past */
    WG_VERDICT_HOPELESS,  /* dropped: it could not be met even alone */
    WG_VERDICT_SACRIFICED /* dropped: it would cost two others their deadlines */
};

struct wg_batcher {
    enum wg_batcher_kind kind;
    enum wg_drop_kind drop;
    unsigned max_rows;
    double delay_s;      /* TRITON only */
    double likely_share; /* of its bound that a batch's time is predicted to be, in (0, 1] */
};

struct wg_batch_choice {
    size_t take_count;
    size_t drop_count;
    unsigned rows; /* of what is taken */
    double wake_s; /* ask again then, always after now_s; HUGE_VAL: when something happens */
};

/* `items` in the lane's order, the first WG_PLAN_ITEMS_MAX of them at most, each with at most
 * max_rows rows; `oldest_arrived_s` of the oldest item. `batch_s[1 .. max_rows]`: bounds of a
 * batch's time. `earliest_s` >= now_s: when a batch may begin. Fills one verdict an item; what is
 * taken may have waiting ones before it. A batch is taken only if earliest_s is now_s; drops that
 * are certain (PAST, HOPELESS) are told at once. */
void wg__batcher_choose(const struct wg_batcher *batcher, const struct wg_plan_item *items,
                        size_t count, double oldest_arrived_s, const double *batch_s, double now_s,
                        double earliest_s, enum wg_verdict *verdicts, struct wg_batch_choice *out);

#endif
