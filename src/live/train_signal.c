/* SPDX-License-Identifier: MIT
 *
 * Steps from the period of the power; see train_signal.h.
 */
#include "live/train_signal.h"

#include <math.h>

#include "base/alloc.h"

static const double window_s = 30; /* how much of the past a period is looked for in */
static const double look_every_s = 1;
static const double forget_s = 60, forget_periods = 20; /* without it */
static const double slack = 0.15;    /* of a step's length, beyond what the clock explains */
static const double ambiguous = 0.5; /* confidence in what cannot be */

void wg__train_signal_init(struct wg_train_signal *signal, double update_s)
{
    *signal = (struct wg_train_signal){.update_s = update_s,
                                       .period = {.period_s = NAN, .error_s = NAN},
                                       .first_period_s = NAN,
                                       .first_clock_hz = NAN,
                                       .looked_s = -INFINITY,
                                       .changed_s = -INFINITY,
                                       .idle_w = NAN,
                                       .next_step_s = NAN};
}

static size_t at(const struct wg_train_signal *signal, size_t i)
{
    return (signal->first + i) % WG_SIGNAL_SAMPLES;
}

void wg__train_signal_idle(struct wg_train_signal *signal, double power_w)
{
    signal->idle_w = power_w;
}

void wg__train_signal_add(struct wg_train_signal *signal, double t_s, double power_w,
                          double clock_hz)
{
    if (!isfinite(power_w))
        return;
    if (signal->count > 0 && t_s <= signal->t_s[at(signal, signal->count - 1)])
        return;
    if (signal->count == WG_SIGNAL_SAMPLES) {
        signal->first = at(signal, 1);
        signal->count--;
    }
    const size_t place = at(signal, signal->count++);
    signal->t_s[place] = t_s;
    signal->power_w[place] = power_w;
    signal->clock_hz[place] = clock_hz;
    /* Somebody else's work may have been taken for idleness. */
    if (power_w < signal->idle_w)
        signal->idle_w = power_w;
}

void wg__train_signal_change(struct wg_train_signal *signal, double t_s)
{
    signal->changed_s = t_s;
    signal->seen_s = t_s; /* it needs some time to be seen again */
}

/* How long a step may be now, by what is known of it at another clock; NAN: nothing is known. */
struct bounds {
    double least_s, most_s;
};

static struct bounds bounds_of(const struct wg_train_signal *signal, double clock_hz)
{
    const double period_s = signal->first_period_s;
    const double slower = signal->first_clock_hz / clock_hz;
    if (!(slower > 0) || isinf(slower))
        return (struct bounds){.least_s = period_s / 2, .most_s = period_s * 2};
    return (struct bounds){.least_s = period_s * fmin(1, slower) * (1 - slack),
                           .most_s = period_s * fmax(1, slower) * (1 + slack)};
}

/* The samples between two moments, as two arrays in one piece of memory. Returns how many. */
static size_t take(const struct wg_train_signal *signal, double begin_s, double end_s,
                   double t_s[static WG_SIGNAL_SAMPLES], double power_w[static WG_SIGNAL_SAMPLES],
                   double *clock_hz_out)
{
    double clock_hz = 0;
    size_t count = 0, clocks = 0;
    for (size_t i = 0; i < signal->count; i++) {
        const size_t place = at(signal, i);
        if (signal->t_s[place] < begin_s || signal->t_s[place] > end_s)
            continue;
        t_s[count] = signal->t_s[place];
        power_w[count++] = signal->power_w[place];
        if (isfinite(signal->clock_hz[place])) {
            clock_hz += signal->clock_hz[place];
            clocks++;
        }
    }
    *clock_hz_out = clocks > 0 ? clock_hz / (double)clocks : (double)NAN;
    return count;
}

/* The period between two moments, and the mean clock; NAN and confidence 0 when there is too little
 * to see. */
static void find(const struct wg_train_signal *signal, double begin_s, double end_s,
                 struct wg_period *out, double *clock_hz)
{
    *out = (struct wg_period){.period_s = NAN, .error_s = NAN};
    *clock_hz = NAN;
    double *t_s = wg__alloc_zeroed((size_t)2 * WG_SIGNAL_SAMPLES, sizeof *t_s);
    if (t_s == NULL)
        return;
    double *power_w = t_s + WG_SIGNAL_SAMPLES;
    const size_t count = take(signal, begin_s, end_s, t_s, power_w, clock_hz);
    const struct bounds bounds = bounds_of(signal, *clock_hz);
    const struct wg_period_hint hint = {.update_s = signal->update_s,
                                        .expected_s = sqrt(bounds.least_s * bounds.most_s),
                                        .floor = isfinite(signal->idle_w) ? signal->idle_w : 0};
    struct wg_period found;
    if (wg__period_find(t_s, power_w, count, &hint, &found, NULL) == WG_OK) {
        if (found.period_s < bounds.least_s || found.period_s > bounds.most_s)
            found.confidence = fmin(found.confidence, ambiguous);
        *out = found;
    }
    wg__free(t_s);
}

static bool is_trusted(const struct wg_period *period)
{
    return isfinite(period->period_s) && period->confidence >= WG_SIGNAL_TRUST;
}

/* Nothing has been seen of the period for so long that the job must do something else. */
static void forget(struct wg_train_signal *signal, double now_s)
{
    if (now_s - signal->seen_s < fmax(forget_s, forget_periods * signal->period.period_s))
        return;
    signal->period = (struct wg_period){.period_s = NAN, .error_s = NAN};
    signal->first_period_s = signal->first_clock_hz = signal->next_step_s = NAN;
}

bool wg__train_signal_look(struct wg_train_signal *signal, double now_s)
{
    if (now_s - signal->looked_s >= look_every_s) {
        struct wg_period found;
        double clock_hz;
        signal->looked_s = now_s;
        find(signal, fmax(now_s - window_s, signal->changed_s), now_s, &found, &clock_hz);
        if (is_trusted(&found)) {
            if (isnan(signal->first_period_s)) {
                signal->next_step_s = now_s + found.period_s;
                signal->first_period_s = found.period_s;
                signal->first_clock_hz = clock_hz;
            }
            signal->period = found;
            signal->seen_s = now_s;
        } else if (isnan(signal->period.period_s)) {
            signal->period.confidence = found.confidence;
        } else {
            forget(signal, now_s);
        }
    }
    return is_trusted(&signal->period);
}

bool wg__train_signal_step(struct wg_train_signal *signal, double now_s)
{
    if (!is_trusted(&signal->period) || now_s < signal->next_step_s)
        return false;
    const double passed = floor((now_s - signal->next_step_s) / signal->period.period_s) + 1;
    signal->steps += passed;
    signal->next_step_s += passed * signal->period.period_s;
    return true;
}

bool wg__train_signal_within(const struct wg_train_signal *signal, double begin_s, double end_s,
                             struct wg_period *out)
{
    double clock_hz;
    find(signal, begin_s, end_s, out, &clock_hz);
    return is_trusted(out);
}
