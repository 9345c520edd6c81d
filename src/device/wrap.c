/* SPDX-License-Identifier: MIT
 *
 * Counters that wrap.
 *
 * powercap says the largest value, one unit of the register (61 uJ, say) below the true modulus;
 * taking it for the modulus leaves out that unit at each wrap, which is 1 in 4 thousand million.
 *
 * Owns: nothing.    Threads: pure, one thread at a time per counter.
 */
#include "device/wrap.h"

/* A register changes about once in a millisecond, in steps: two reads just around such a moment see
 * more than the time between them can explain. */
static const double SLACK_S = 0.05;

void wg__wrap_init(struct wg_wrap *counter, uint64_t range, double most_per_s)
{
    *counter = (struct wg_wrap){.range = range, .most_per_s = most_per_s};
}

double wg__wrap_period_s(const struct wg_wrap *counter)
{
    return (double)counter->range / counter->most_per_s;
}

/* How far the counter went if it went round at most once; false when it cannot be told. */
static bool step_of(const struct wg_wrap *counter, uint64_t value, uint64_t *out)
{
    if (value >= counter->last) {
        *out = value - counter->last;
        return true;
    }
    if (counter->range == 0 || counter->last > counter->range)
        return false;
    *out = counter->range - counter->last + value;
    return true;
}

bool wg__wrap_add(struct wg_wrap *counter, uint64_t value, uint64_t t_ns)
{
    if (!counter->has_last) {
        counter->total = value;
        counter->last = value;
        counter->t_ns = t_ns;
        counter->has_last = true;
        return true;
    }
    const double elapsed_s = (double)(t_ns - counter->t_ns) * 1e-9;
    uint64_t step = 0;
    const bool is_known = (counter->range == 0 || elapsed_s < wg__wrap_period_s(counter)) &&
                          step_of(counter, value, &step) &&
                          (double)step <= counter->most_per_s * (elapsed_s + SLACK_S);
    if (is_known)
        counter->total += step;
    counter->last = value;
    counter->t_ns = t_ns;
    return is_known;
}
