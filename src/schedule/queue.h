/* SPDX-License-Identifier: MIT
 *
 * Requests that wait, in lanes.
 *
 * A lane holds what may run in one batch: one model, one merge key (schedule/merge.h). Within a
 * lane the order is priority (1 first), then deadline, then arrival. All lanes share a bounded
 * pool: what does not fit is refused at once, nothing is allocated after opening.
 *
 *     queue ─┬─ lane (model 0, key a):  r7 r9 r12         a lane without requests is given away
 *            └─ lane (model 1, key b):  r8
 *
 * Pushing walks from the lane's end, so requests that come in the order of their deadlines cost
 * O(1); finding by id is a hash table.
 *
 * Pure.    Owns: its state.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_QUEUE_H
#define WG_SCHEDULE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { WG_QUEUE_LANES_MAX = 64, WG_QUEUE_CAPACITY_MAX = 1 << 20, WG_PRIORITY_LEVELS = 16 };

struct wg_request {
    uint64_t id; /* the caller's; no two that wait have the same */
    double arrived_s;
    double deadline_s;
    uint64_t merge_key;
    unsigned model;
    unsigned rows;     /* >= 1 */
    unsigned priority; /* 1 (highest) .. WG_PRIORITY_LEVELS */
};

struct wg_lane {
    unsigned model;
    uint64_t merge_key;
    size_t count;
    size_t rows;
    uint32_t first, last; /* entries; for wg__lane_first and wg__lane_next */
};

struct wg_queue;

enum wg_queue_push { WG_QUEUE_PUSHED, WG_QUEUE_FULL, WG_QUEUE_LANES_FULL, WG_QUEUE_DUPLICATE };

enum wg_code wg__queue_open(struct wg_queue **out, size_t capacity, struct wg_error *err);
void wg__queue_close(struct wg_queue *queue);

enum wg_queue_push wg__queue_push(struct wg_queue *queue, const struct wg_request *request);

/* Takes out the one of this id; false: none waits. `out` may be NULL. */
bool wg__queue_remove(struct wg_queue *queue, uint64_t id, struct wg_request *out);

size_t wg__queue_count(const struct wg_queue *queue); /* requests in all lanes */

/* Lanes that have requests: 0 .. lane_count - 1, in no order; pushing and removing renumbers them.
 */
size_t wg__queue_lane_count(const struct wg_queue *queue);
const struct wg_lane *wg__queue_lane(const struct wg_queue *queue, size_t index);

/* The lane's requests in order; NULL behind the last. Valid until the request is removed. */
const struct wg_request *wg__lane_first(const struct wg_queue *queue, const struct wg_lane *lane);
const struct wg_request *wg__lane_last(const struct wg_queue *queue, const struct wg_lane *lane);
const struct wg_request *wg__lane_next(const struct wg_queue *queue,
                                       const struct wg_request *request);

/* The first of the next lower priority that the lane has: of each level the one with the earliest
 * deadline. NULL behind the last level. O(1). */
const struct wg_request *wg__lane_next_level(const struct wg_queue *queue,
                                             const struct wg_request *request);

#endif
