/* SPDX-License-Identifier: MIT
 *
 * When a device is read next: as rarely as the accuracy allows, since each read costs the workload.
 *
 *     regular   one read a period, moved to just behind a tick of the counter, where what it says
 *               is freshest; a late one is skipped, never made up for. A sensor of power that sees
 *               only a part of the time is read at a random place of each period instead: a load
 *               that keeps time itself (one batch each 100 ms) would else always be met in the same
 *               state
 *     search    while the ticks are unknown (ticks.h): some 20 reads, once
 *     cut       a read at the middle of where the next tick may be, or just before it: a few when
 *               the meter starts, then one a second
 *     edge      a window begins or ends: one read within the present tick and one behind the next
 *               pin the energy at both ends of the tick that holds the edge; at most EDGES_A_SECOND
 *
 * Without edge reads left (thousands of windows a second) an edge lies between regular reads, and
 * the result's resolution says so.
 *
 * Threads: pure, one at a time; time is an argument.
 */
#ifndef WG_MEASURE_SCHEDULE_H
#define WG_MEASURE_SCHEDULE_H

#include "base/rng.h"
#include "measure/account.h"

enum wg_read_purpose {
    WG_READ_NONE,
    WG_READ_REGULAR,
    WG_READ_TICK, /* search or cut */
    WG_READ_EDGE
};

struct wg_schedule {
    uint64_t period_ns;
    bool has_edges;      /* reads for edges are allowed */
    uint64_t regular_ns; /* the next regular read, before it is moved to a tick */
    struct wg_rng rng;   /* for its place within the period; seeded with the time of the start */
    double place;        /* of the next one, -0.5 to 0.5 of a period off the grid */
    bool is_jittered;    /* such places are used */
    uint64_t slow_ns;    /* from here on a read asks for everything */
    uint64_t last_ns;    /* of the last read; 0: none yet */
    uint64_t last_regular_ns;
    double edges_left;
    uint64_t edges_ns; /* when edges_left was brought up to date */
};

void wg__schedule_init(struct wg_schedule *schedule, uint64_t period_ns, bool has_edges,
                       uint64_t now_ns);

/* The time of the next read, at least `now_ns`. `edge_ns`: the oldest edge that waits for the
 * energy to be known there; 0: none. */
uint64_t wg__schedule_next(struct wg_schedule *schedule, const struct wg_account *account,
                           uint64_t edge_ns, uint64_t now_ns, enum wg_read_purpose *purpose_out);

/* Whether the read at `now_ns` asks for everything, else only for power, energy and throttling. */
bool wg__schedule_is_slow(const struct wg_schedule *schedule, uint64_t now_ns);

/* A read was made at `t_ns`. */
void wg__schedule_done(struct wg_schedule *schedule, uint64_t t_ns, enum wg_read_purpose purpose,
                       bool was_slow);

/* The next time at which to look whether there was an edge, when callers do not ring: just before
 * the next tick of the counter, where a read still belongs to the edge's own tick; else soon. */
uint64_t wg__schedule_look_ns(const struct wg_account *account, uint64_t now_ns);

/* Whether an edge now would make the device be read: else nobody need be woken for it. */
bool wg__schedule_wants_edge(const struct wg_schedule *schedule, const struct wg_account *account,
                             uint64_t now_ns);

#endif
