/* SPDX-License-Identifier: MIT
 *
 * The present rate of arrivals.
 *
 *     time      first |---|---|---|--...--|---|-*    now
 *     counts            3   2   4          1    1
 *                      `- oldest full slot      `- the present slot, not full
 *
 * The first event starts the clock and is not counted, so k gaps are k events: the mean is right
 * from the second event on, for even arrivals and for a Poisson process.
 *
 * A burst is looked for in the last 2, 4, 8 and 16 slots, each against what lies before them: it is
 * one when 2 (sqrt(c + 3/8) - sqrt(m + 3/8)) exceeds BURST_SIGMAS sqrt(dispersion), c rows where m
 * were expected; Anscombe's transform makes the spread of counts the same for all means, so three
 * rows a day and thousands a second are judged alike (Anscombe, "The transformation of Poisson,
 * binomial and negative-binomial data", Biometrika 35, 1948). The dispersion is that of the slots
 * before, otherwise a burst would excuse itself.
 *
 * Sums are kept while slots go by, and made anew once a round of the ring, so rounding does not
 * grow. A pause longer than the window empties it at once, in O(slots).
 *
 * Threads: one at a time.
 */
#include "schedule/rate.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum {
    FULL_MAX = WG_RATE_SLOTS - 1,
    BURST_SLOTS_MAX = 16,
    BEFORE_SLOTS_MIN = 8, /* less in front of a burst tells nothing */
    DISPERSION_SLOTS_MIN = 8,
};

#define DISPERSION_ROWS_MIN 8.0
#define BURST_SIGMAS        3.0

void wg__rate_init(struct wg_rate *rate, double slot_s)
{
    assert(slot_s > 0.0 && isfinite(slot_s));
    *rate = (struct wg_rate){.slot_s = slot_s, .begin_s = (double)NAN};
}

/* The count of the slot `back` slots ago; 0: the present one. */
static double count_at(const struct wg_rate *rate, size_t back)
{
    return rate->counts[(rate->at + WG_RATE_SLOTS - back) % WG_RATE_SLOTS];
}

static void sum_anew(struct wg_rate *rate)
{
    rate->sum = 0.0;
    rate->squares = 0.0;
    for (size_t back = 1; back <= rate->filled; back++) {
        const double count = count_at(rate, back);
        rate->sum += count;
        rate->squares += count * count;
    }
}

static void next_slot(struct wg_rate *rate)
{
    const double closed = rate->counts[rate->at];
    rate->sum += closed;
    rate->squares += closed * closed;
    rate->at = (rate->at + 1) % WG_RATE_SLOTS;
    if (rate->filled == FULL_MAX) {
        const double oldest = rate->counts[rate->at];
        rate->sum -= oldest;
        rate->squares -= oldest * oldest;
    } else {
        rate->filled++;
    }
    rate->counts[rate->at] = 0.0;
    if (rate->at == 0)
        sum_anew(rate);
}

/* Goes on to the slot that holds `now_s`. */
static void advance(struct wg_rate *rate, double now_s)
{
    const double passed = floor((now_s - rate->begin_s) / rate->slot_s);
    if (!(passed >= 1.0))
        return;
    if (passed >= (double)WG_RATE_SLOTS) {
        memset(rate->counts, 0, sizeof rate->counts);
        rate->filled = FULL_MAX;
        rate->sum = 0.0;
        rate->squares = 0.0;
    } else {
        for (size_t left = (size_t)passed; left > 0; left--)
            next_slot(rate);
    }
    /* The product may be rounded past now_s. */
    rate->begin_s = fmin(rate->begin_s + passed * rate->slot_s, now_s);
}

void wg__rate_tell(struct wg_rate *rate, double now_s, double rows)
{
    if (isnan(rate->begin_s)) {
        rate->begin_s = now_s;
        return;
    }
    advance(rate, now_s);
    rate->counts[rate->at] += rows;
}

/* -- What it tells -------------------------------------------------------------------------- */

/* Variance over mean of `slots` counts with these sums. */
static double dispersion_of(double sum, double squares, size_t slots)
{
    if (slots < DISPERSION_SLOTS_MIN || sum < DISPERSION_ROWS_MIN)
        return 1.0;
    const double n = (double)slots;
    return fmax(0.0, (squares - sum * sum / n) / (n - 1.0) / (sum / n));
}

/* How far the clock is into the present slot. */
static double present_s(const struct wg_rate *rate, double now_s)
{
    return fmin(fmax(now_s - rate->begin_s, 0.0), rate->slot_s);
}

/* The highest mean of the last slots that is a burst against those before; 0: there is none. */
static double burst_mean(const struct wg_rate *rate, double into_s)
{
    double highest = 0.0;
    double rows = count_at(rate, 0);
    double squares = 0.0; /* of the full ones among them */
    for (size_t back = 1; back <= BURST_SLOTS_MAX; back++) {
        if (rate->filled < back + BEFORE_SLOTS_MIN)
            break;
        const double count = count_at(rate, back);
        rows += count;
        squares += count * count;
        if (back == 1 || (back & (back - 1)) != 0)
            continue;
        const double span_s = (double)back * rate->slot_s + into_s;
        const size_t slots = rate->filled - back;
        const double before = fmax(rate->sum + count_at(rate, 0) - rows, 0.0);
        const double spread =
            sqrt(fmax(1.0, dispersion_of(before, rate->squares - squares, slots)));
        const double expected = before / ((double)slots * rate->slot_s) * span_s;
        const double sigmas = 2.0 * (sqrt(rows + 0.375) - sqrt(expected + 0.375)) / spread;
        if (sigmas > BURST_SIGMAS)
            highest = fmax(highest, rows / span_s);
    }
    return highest;
}

double wg__rate_mean(struct wg_rate *rate, double now_s)
{
    if (isnan(rate->begin_s))
        return 0.0;
    advance(rate, now_s);
    const double into_s = present_s(rate, now_s);
    const double rows = fmax(rate->sum, 0.0) + count_at(rate, 0);
    /* Within the first slot, its whole length: two events at once are no infinite rate. */
    const double span_s = fmax((double)rate->filled * rate->slot_s + into_s, rate->slot_s);
    return fmax(rows / span_s, burst_mean(rate, into_s));
}

double wg__rate_error(struct wg_rate *rate, double now_s)
{
    const double mean = wg__rate_mean(rate, now_s);
    const double span_s = (double)rate->filled * rate->slot_s + present_s(rate, now_s);
    return sqrt(mean / fmax(span_s, rate->slot_s));
}

double wg__rate_dispersion(struct wg_rate *rate, double now_s)
{
    if (isnan(rate->begin_s))
        return 1.0;
    advance(rate, now_s);
    return dispersion_of(rate->sum, rate->squares, rate->filled);
}

double wg__rate_expect(struct wg_rate *rate, double now_s, double span_s, double z)
{
    const double mean = wg__rate_mean(rate, now_s) * span_s;
    return fmax(0.0, mean + z * sqrt(mean * wg__rate_dispersion(rate, now_s)));
}
