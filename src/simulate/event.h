/* SPDX-License-Identifier: MIT
 *
 * What happens next in a simulation: a heap of moments.
 *
 * Events of the same moment come in the order in which they were pushed, so that a simulation
 * repeats. An event can be taken back by its handle.
 *
 * Owns: its array.    Threads: one at a time.
 */
#ifndef WG_SIMULATE_EVENT_H
#define WG_SIMULATE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wg_event_item {
    double at_s;
    uint64_t order;
    unsigned kind; /* the simulation's own meaning */
    uint64_t value;
};

struct wg_event_heap {
    struct wg_event_item *items;
    size_t count, capacity;
    uint64_t next_order;
};

void wg__event_heap_init(struct wg_event_heap *heap);
void wg__event_heap_fini(struct wg_event_heap *heap);
/* False: no memory. `*order_out` (may be NULL) is the handle. */
bool wg__event_push(struct wg_event_heap *heap, double at_s, unsigned kind, uint64_t value,
                    uint64_t *order_out);
bool wg__event_pop(struct wg_event_heap *heap, struct wg_event_item *out);
const struct wg_event_item *wg__event_peek(const struct wg_event_heap *heap); /* NULL: none */
bool wg__event_take_back(struct wg_event_heap *heap, uint64_t order);

#endif
