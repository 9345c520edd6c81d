/* SPDX-License-Identifier: MIT
 *
 * A counter that wraps, made into a total that only grows.
 *
 * A counter of energy goes back to zero behind its largest value, and now and then for other
 * reasons: a driver is loaded anew, someone writes 0 into it. The two are told apart by physics: no
 * device draws more than `most_per_s`. A step is believed when it is possible in the time that went
 * by; else nothing is added, and counting goes on from the new value. So the total never falls and
 * never jumps, and the caller learns when something is missing from it.
 *
 * Between two reads that are further apart than `wg__wrap_period_s` the counter may have gone round
 * unseen: such a step is not believed either, however small it looks.
 *
 * Threads: pure, one thread at a time per counter.
 */
#ifndef WG_DEVICE_WRAP_H
#define WG_DEVICE_WRAP_H

#include <stdbool.h>
#include <stdint.h>

struct wg_wrap {
    uint64_t range; /* the largest value: behind it comes 0; 0: unknown, a wrap is not believed */
    double most_per_s; /* steps above this rate are not believed */
    uint64_t total;    /* what the counter said first, and all steps since */
    uint64_t last;     /* what it said last, at `t_ns` */
    uint64_t t_ns;
    bool has_last;
};

void wg__wrap_init(struct wg_wrap *counter, uint64_t range, double most_per_s);

/* The counter said `value` at `t_ns` (monotonic): adds the step. False: the step is unknown, the
 * total stays as it was. */
bool wg__wrap_add(struct wg_wrap *counter, uint64_t value, uint64_t t_ns);

/* The longest time between two reads in which no round can be missed; 0: does not wrap. */
double wg__wrap_period_s(const struct wg_wrap *counter);

#endif
