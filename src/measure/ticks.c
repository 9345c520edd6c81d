/* SPDX-License-Identifier: MIT
 *
 * Interval arithmetic on the moment and the period of ticks.
 *
 * The moment of a tick n periods after the reference lies in tick + n * period +- (half + |n| *
 * period_error). A pair of reads cuts that interval; the cut one becomes the new reference, and its
 * distance from a tick long before (`far`), divided by the number of periods, cuts the interval for
 * the period. Both have floors (FLOOR_NS, DRIFT): a timer is never better than its jitter, and
 * clocks drift apart.
 *
 * The search reads each eighth of a period until a change is seen. With an unknown period it reads
 * each 2 ms until two changes are seen, at most for SEARCH_LIMIT_NS: a counter that moves slower is
 * given up for RETRY_NS.
 *
 * Threads: pure, one at a time.
 */
#include "measure/ticks.h"

#include <math.h>

static const double FLOOR_NS = 60e3;      /* the interval is never held narrower than +- this */
static const double DRIFT = 30e-6;        /* of a period, each period */
static const double NOMINAL_ERROR = 0.01; /* of a declared period */
static const double CONTINUOUS_NS = 2.5e6;
static const double SEARCH_STEP_NS = 2e6;
static const double SEARCH_LIMIT_NS = 300e6;
static const uint64_t RETRY_NS = 10000000000U;
static const uint64_t CONFIRM_NS = 1000000000U;
static const double WIDE_SHARE = 0.01; /* cut further while half is above this share of a period */
static const double MISS_SHARE = 0.12, JITTER_MAX = 0.2;      /* of a period */
static const double JITTER_FACTOR = 1.5, JITTER_FADES = 0.98; /* per tick that was as expected */
static const double FAR_WORSE = 3;
static const double FAR_NS = 60e9;
enum { MISSES_MAX = 4 };

void wg__ticks_init(struct wg_ticks *ticks, double period_s)
{
    *ticks = (struct wg_ticks){.nominal_ns = period_s * 1e9, .period_ns = period_s * 1e9};
    ticks->period_error_ns = ticks->period_ns * NOMINAL_ERROR;
    if (period_s > 0 && ticks->period_ns <= CONTINUOUS_NS)
        ticks->state = WG_TICKS_CONTINUOUS;
}

static void search_again(struct wg_ticks *ticks)
{
    ticks->state = WG_TICKS_SEARCHING;
    ticks->search_from_ns = 0;
    ticks->change_high_ns = 0;
    ticks->misses = 0;
    ticks->expected_ns = 0;
    ticks->period_ns = ticks->nominal_ns > 0 ? ticks->nominal_ns : ticks->period_ns;
    ticks->period_error_ns = ticks->period_ns * NOMINAL_ERROR;
}

uint64_t wg__ticks_search_step_ns(const struct wg_ticks *ticks)
{
    const double eighth = ticks->nominal_ns / 8;
    return (uint64_t)(ticks->nominal_ns > 0 && eighth > SEARCH_STEP_NS / 2 ? eighth
                                                                           : SEARCH_STEP_NS);
}

void wg__ticks_retry(struct wg_ticks *ticks, uint64_t now_ns)
{
    if (ticks->state == WG_TICKS_UNKNOWN && now_ns >= ticks->retry_ns)
        search_again(ticks);
}

static double half_at(const struct wg_ticks *ticks, double n)
{
    return ticks->half_ns + fabs(n) * (ticks->period_error_ns + DRIFT * ticks->period_ns);
}

uint64_t wg__ticks_nearest(const struct wg_ticks *ticks, uint64_t t_ns, double *half_out)
{
    const double offset = (double)(int64_t)(t_ns - ticks->tick_ns);
    const double n = round(offset / ticks->period_ns);
    *half_out = half_at(ticks, n);
    return ticks->tick_ns + (uint64_t)(int64_t)llround(n * ticks->period_ns);
}

uint64_t wg__ticks_next(const struct wg_ticks *ticks, uint64_t t_ns, double *half_out)
{
    uint64_t tick_ns = wg__ticks_nearest(ticks, t_ns, half_out);
    if (tick_ns <= t_ns)
        tick_ns = wg__ticks_nearest(ticks, tick_ns + (uint64_t)ticks->period_ns, half_out);
    return tick_ns;
}

bool wg__ticks_floor(const struct wg_ticks *ticks, uint64_t t_ns, uint64_t slack_ns,
                     uint64_t *tick_out, double *half_out)
{
    const uint64_t nearest_ns = wg__ticks_nearest(ticks, t_ns, half_out);
    const double since = (double)(int64_t)(t_ns - nearest_ns);
    const double doubt = *half_out + (double)slack_ns;
    if (since >= doubt) {
        *tick_out = nearest_ns;
        return true;
    }
    *tick_out =
        wg__ticks_nearest(ticks, nearest_ns - (uint64_t)llround(ticks->period_ns), half_out);
    return since <= -doubt;
}

double wg__ticks_wide_ns(const struct wg_ticks *ticks)
{
    return fmax(2 * FLOOR_NS + 1.5 * ticks->jitter_ns, WIDE_SHARE * ticks->period_ns);
}

bool wg__ticks_wants_cut(const struct wg_ticks *ticks, uint64_t t_ns)
{
    if (ticks->state != WG_TICKS_LOCKED)
        return false;
    double half;
    const uint64_t tick_ns = wg__ticks_nearest(ticks, t_ns, &half);
    return half > wg__ticks_wide_ns(ticks) || tick_ns > ticks->tick_ns + CONFIRM_NS;
}

/* No tick is known better than this. */
static double floor_ns(const struct wg_ticks *ticks)
{
    return FLOOR_NS + ticks->jitter_ns;
}

static void lock_on(struct wg_ticks *ticks, double low_ns, double high_ns, uint64_t base_ns)
{
    ticks->tick_ns = base_ns + (uint64_t)llround((low_ns + high_ns) / 2);
    ticks->half_ns = fmax((high_ns - low_ns) / 2, floor_ns(ticks));
    ticks->state = WG_TICKS_LOCKED;
}

static void search(struct wg_ticks *ticks, uint64_t before_ns, uint64_t after_ns, bool has_changed,
                   uint64_t slack_ns)
{
    if (ticks->search_from_ns == 0)
        ticks->search_from_ns = before_ns;
    const double slack = (double)slack_ns;
    const double width = (double)(after_ns - before_ns) + 2 * slack;
    const double limit = ticks->nominal_ns > 0 ? fmin(2.5 * ticks->nominal_ns, 4 * SEARCH_LIMIT_NS)
                                               : SEARCH_LIMIT_NS;
    if (has_changed && ticks->nominal_ns > 0) {
        if (width <= 0.45 * ticks->nominal_ns) {
            lock_on(ticks, -slack, width - slack, before_ns);
            ticks->far_ns = ticks->tick_ns;
            ticks->far_half_ns = ticks->half_ns;
            return;
        }
    } else if (has_changed && width <= 4 * SEARCH_STEP_NS && ticks->change_high_ns == 0) {
        ticks->change_low_ns = before_ns;
        ticks->change_high_ns = after_ns;
    } else if (has_changed && width <= 4 * SEARCH_STEP_NS) {
        /* The second change: the period is known to the widths of both. */
        const double low = (double)(before_ns - ticks->change_high_ns) - 2 * slack;
        const double high = (double)(after_ns - ticks->change_low_ns) + 2 * slack;
        ticks->period_ns = (low + high) / 2;
        ticks->period_error_ns = (high - low) / 2;
        if (low <= CONTINUOUS_NS) {
            ticks->period_ns = high / 2;
            ticks->state = WG_TICKS_CONTINUOUS;
        } else {
            lock_on(ticks, -slack, width - slack, before_ns);
            ticks->far_ns = ticks->tick_ns;
            ticks->far_half_ns = ticks->half_ns;
        }
        return;
    }
    if ((double)(after_ns - ticks->search_from_ns) > limit) {
        ticks->state = WG_TICKS_UNKNOWN;
        ticks->retry_ns = after_ns + RETRY_NS;
    }
}

/* What was seen contradicts what was held: holds less, and after some such events nothing. */
static void miss(struct wg_ticks *ticks)
{
    if (++ticks->misses > MISSES_MAX) {
        search_again(ticks);
        return;
    }
    if (ticks->expected_ns == 0)
        ticks->expected_ns = ticks->tick_ns;
    ticks->half_ns = fmax(2 * ticks->half_ns, MISS_SHARE * ticks->period_ns);
    ticks->period_error_ns = fmax(2 * ticks->period_error_ns, 1e-4 * ticks->period_ns);
    ticks->far_ns = ticks->tick_ns;
    ticks->far_half_ns = ticks->half_ns;
}

/* After a contradiction the tick is found again: how far it was from where it should be. */
static void learn_jitter(struct wg_ticks *ticks)
{
    const double moved = (double)(int64_t)(ticks->tick_ns - ticks->expected_ns);
    const double strayed = fabs(moved - round(moved / ticks->period_ns) * ticks->period_ns);
    ticks->jitter_ns =
        fmin(fmax(ticks->jitter_ns, JITTER_FACTOR * strayed), JITTER_MAX * ticks->period_ns);
    ticks->expected_ns = 0;
    ticks->misses = 0;
}

/* The period, from the tick in base + [low, high] and the far one. A far tick that was known badly,
 * or is long past (the timer's rate wanders), gives way to this one. */
static void measure_period(struct wg_ticks *ticks, uint64_t base_ns, double low, double high)
{
    const double offset = (double)(int64_t)(base_ns - ticks->far_ns);
    const double n = round((offset + (low + high) / 2) / ticks->period_ns);
    if (n >= 1 && n * ticks->period_error_ns < 0.3 * ticks->period_ns) {
        const double doubt = ticks->far_half_ns + WG_TICKS_STRAY * ticks->period_ns;
        const double from =
            fmax((offset + low - doubt) / n, ticks->period_ns - ticks->period_error_ns);
        const double to =
            fmin((offset + high + doubt) / n, ticks->period_ns + ticks->period_error_ns);
        if (to > from) {
            ticks->period_ns = (from + to) / 2;
            ticks->period_error_ns = (to - from) / 2;
        } else {
            ticks->period_error_ns *= 2;
        }
    }
    const double half = (high - low) / 2;
    if (ticks->far_half_ns > FAR_WORSE * fmax(half, floor_ns(ticks)) || offset > FAR_NS || n < 0) {
        ticks->far_ns = base_ns + (uint64_t)llround((low + high) / 2);
        ticks->far_half_ns = fmax(half, floor_ns(ticks));
    }
}

/* The tick lies in base + [low, high]. */
static void narrow(struct wg_ticks *ticks, uint64_t base_ns, double low, double high)
{
    measure_period(ticks, base_ns, low, high);
    lock_on(ticks, low, high, base_ns);
    if (ticks->expected_ns == 0)
        ticks->jitter_ns *= JITTER_FADES;
    else if (ticks->half_ns <= wg__ticks_wide_ns(ticks))
        learn_jitter(ticks);
}

enum evidence { SAYS_NOTHING, CUTS, CONTRADICTS };

/* What a pair says of the tick that lies in [-half, half]; both reads are given from its middle.
 * Cuts [low, high]. */
static enum evidence weigh(double before, double after, bool has_changed, double slack,
                           double period_ns, double half, double *low, double *high)
{
    if (has_changed) {
        if (before <= half - period_ns - slack)
            return SAYS_NOTHING; /* more than one tick may lie between them */
        if (before >= half + slack || after + slack <= -half)
            return CONTRADICTS;
        *low = fmax(*low, before - slack);
        *high = fmin(*high, after + slack);
    } else if (before <= -half) {
        if (after >= half + slack)
            return CONTRADICTS;
        *low = fmax(*low, after - slack);
    } else if (before < half && after >= half) {
        *high = fmin(*high, before + slack);
    } else {
        return SAYS_NOTHING;
    }
    return *high > *low ? CUTS : CONTRADICTS;
}

void wg__ticks_observe(struct wg_ticks *ticks, uint64_t before_ns, uint64_t after_ns,
                       bool has_changed, uint64_t slack_ns)
{
    if (ticks->state == WG_TICKS_SEARCHING)
        search(ticks, before_ns, after_ns, has_changed, slack_ns);
    if (ticks->state != WG_TICKS_LOCKED)
        return;
    /* The tick that this pair speaks of: the one nearest to its later read. */
    double half;
    const uint64_t tick_ns = wg__ticks_nearest(ticks, after_ns, &half);
    if (half > 0.4 * ticks->period_ns) {
        search_again(ticks);
        return;
    }
    double low = -half, high = half;
    const enum evidence evidence =
        weigh((double)(int64_t)(before_ns - tick_ns), (double)(int64_t)(after_ns - tick_ns),
              has_changed, (double)slack_ns, ticks->period_ns, half, &low, &high);
    if (evidence == CONTRADICTS)
        miss(ticks);
    else if (evidence == CUTS && (tick_ns > ticks->tick_ns + (uint64_t)(ticks->period_ns / 2) ||
                                  low > -half || high < half))
        narrow(ticks, tick_ns, low, high);
}
