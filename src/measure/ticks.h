/* SPDX-License-Identifier: MIT
 *
 * When an energy counter moves: its period and phase, found from few reads.
 *
 * A counter shows the energy as of its last tick. Whoever knows the tick's moment turns one read,
 * made at any time, into an exact point (tick, value). Two reads say where ticks are: the value has
 * changed between them, or it has not. We hold what all reads so far leave possible, an interval
 * for the moment of a tick and one for the period, and cut it with each pair:
 *
 *     possible moments of tick k     [lo ......... hi]
 *     unchanged up to r                    r             ->  [r ... hi]
 *     changed up to r                      r             ->  [lo .. r]
 *
 * A read in the middle halves it (bisection), so a tick is known to some 0.1 ms after few reads
 * instead of by busy polling, and one pair of reads a second keeps it. Evidence that contradicts
 * (jitter of the driver, drift) widens the interval, and where the tick is then found tells the
 * jitter, below which no later interval is cut; when that goes on, the search begins anew.
 * Rejected: least squares over the moments of change, which a jump of the driver's timer bends.
 *
 * Threads: pure, one at a time.
 */
#ifndef WG_MEASURE_TICKS_H
#define WG_MEASURE_TICKS_H

#include <stdbool.h>
#include <stdint.h>

enum wg_tick_state {
    WG_TICKS_SEARCHING,  /* reads in quick succession are wanted */
    WG_TICKS_LOCKED,     /* moments are known to +- half */
    WG_TICKS_CONTINUOUS, /* so fast that each read shows the present */
    WG_TICKS_UNKNOWN     /* given up for now: a reading may be a period old */
};

/* A tick may stray by this share of a period before that counts as a contradiction: reads keep as
 * far away from where ticks are expected. */
#define WG_TICKS_STRAY 0.015

struct wg_ticks {
    enum wg_tick_state state;
    double nominal_ns; /* period that was declared; 0: unknown */
    double period_ns;
    double period_error_ns; /* half width */
    uint64_t tick_ns;       /* the middle of the interval for a tick */
    double half_ns;         /* and its half width */
    double jitter_ns;       /* by how much ticks were seen to stray */
    unsigned misses;        /* contradictions in a row */
    uint64_t expected_ns;   /* the tick as it was held when a contradiction came; 0: none since */
    uint64_t far_ns;        /* an earlier tick: the period is measured from there */
    double far_half_ns;
    /* While searching. */
    uint64_t search_from_ns;                /* 0: not begun */
    uint64_t change_low_ns, change_high_ns; /* the first change seen; high 0: none */
    uint64_t retry_ns;                      /* given up: search again at this time */
};

/* `period_s` as the device's meter says; 0: unknown, it is inferred. */
void wg__ticks_init(struct wg_ticks *ticks, double period_s);

/* Two reads that follow each other, the moments of which are sure to +- `slack_ns`. */
void wg__ticks_observe(struct wg_ticks *ticks, uint64_t before_ns, uint64_t after_ns,
                       bool has_changed, uint64_t slack_ns);

/* How long until the next read while searching. */
uint64_t wg__ticks_search_step_ns(const struct wg_ticks *ticks);

/* Starts the search again when it is time to. */
void wg__ticks_retry(struct wg_ticks *ticks, uint64_t now_ns);

/* The tick that is nearest to `t_ns` and how well it is known. Locked only. */
uint64_t wg__ticks_nearest(const struct wg_ticks *ticks, uint64_t t_ns, double *half_out);

/* The last tick that has surely happened at `t_ns`, and whether none may have come since. */
bool wg__ticks_floor(const struct wg_ticks *ticks, uint64_t t_ns, uint64_t slack_ns,
                     uint64_t *tick_out, double *half_out);

/* The first tick after `t_ns`. Locked only. */
uint64_t wg__ticks_next(const struct wg_ticks *ticks, uint64_t t_ns, double *half_out);

/* Doubt above which a tick is cut further. */
double wg__ticks_wide_ns(const struct wg_ticks *ticks);

/* Whether another cut would help: the interval is wide, or was not confirmed for a second. */
bool wg__ticks_wants_cut(const struct wg_ticks *ticks, uint64_t t_ns);

#endif
