/* SPDX-License-Identifier: MIT
 *
 * The least of a few moments: see event.h.
 *
 * Owns: nothing.    Threads: as the header says.
 */
#include "simulate/event.h"

size_t wg__events_pop(struct wg_events *events, double *at_s_out)
{
    size_t next = 0;
    for (size_t i = 1; i < WG_EVENTS_MAX; i++)
        next = events->at_s[i] < events->at_s[next] ? i : next;
    if (!(events->at_s[next] < HUGE_VAL))
        return WG_EVENTS_MAX;
    *at_s_out = events->at_s[next];
    events->at_s[next] = HUGE_VAL;
    return next;
}
