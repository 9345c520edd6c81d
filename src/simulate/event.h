/* SPDX-License-Identifier: MIT
 *
 * What happens next in a simulation: one moment for each kind of event.
 *
 *     kind      0       1      2       3 ...
 *     at_s    12.5    HUGE   12.7    HUGE          next: kind 0
 *
 * A server has a handful of things that can happen next, and of each at most one: the next request,
 * the end of the batch, the end of the step. So there is no heap: to move or to take back an event
 * is to write its moment, and the next one is the least of a few numbers. (A binary heap with the
 * same moves was tried, and took twice as long.)
 *
 * Events of the same moment come in the order of their kinds.
 *
 * Pure.    Owns: nothing.    Threads: one at a time.
 */
#ifndef WG_SIMULATE_EVENT_H
#define WG_SIMULATE_EVENT_H

#include <math.h>
#include <stddef.h>

enum { WG_EVENTS_MAX = 8 };

struct wg_events {
    double at_s[WG_EVENTS_MAX]; /* HUGE_VAL: it does not happen */
};

static inline void wg__events_init(struct wg_events *events)
{
    for (size_t i = 0; i < WG_EVENTS_MAX; i++)
        events->at_s[i] = HUGE_VAL;
}

/* `kind` < WG_EVENTS_MAX happens at `at_s`, and not when it was to before; HUGE_VAL: never. */
static inline void wg__events_set(struct wg_events *events, size_t kind, double at_s)
{
    events->at_s[kind] = at_s;
}

/* Takes out the next event. WG_EVENTS_MAX: there is none. */
size_t wg__events_pop(struct wg_events *events, double *at_s_out);

#endif
