/* SPDX-License-Identifier: MIT
 *
 * Steps from the period of the power; see train_signal.h.
 */
#include "live/train_signal.h"

#include <math.h>

#include "base/alloc.h"

static const double window_s = 30; /* how much of the past a period is looked for in */
static const double look_every_s = 1;

void wg__train_signal_init(struct wg_train_signal *signal, double update_s)
{
    *signal = (struct wg_train_signal){.update_s = update_s,
                                       .period = {.period_s = NAN, .error_s = NAN},
                                       .looked_s = -INFINITY,
                                       .next_step_s = NAN};
}

static size_t at(const struct wg_train_signal *signal, size_t i)
{
    return (signal->first + i) % WG_SIGNAL_SAMPLES;
}

void wg__train_signal_add(struct wg_train_signal *signal, double t_s, double power_w)
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
}

/* The period between two moments; NAN and confidence 0 when there is too little to see. */
static void find(const struct wg_train_signal *signal, double begin_s, double end_s,
                 struct wg_period *out)
{
    *out = (struct wg_period){.period_s = NAN, .error_s = NAN};
    double *t_s = wg__alloc_zeroed((size_t)2 * WG_SIGNAL_SAMPLES, sizeof *t_s);
    if (t_s == NULL)
        return;
    double *power_w = t_s + WG_SIGNAL_SAMPLES;
    size_t count = 0;
    for (size_t i = 0; i < signal->count; i++) {
        const size_t place = at(signal, i);
        if (signal->t_s[place] < begin_s || signal->t_s[place] > end_s)
            continue;
        t_s[count] = signal->t_s[place];
        power_w[count++] = signal->power_w[place];
    }
    struct wg_period found;
    if (wg__period_find(t_s, power_w, count, signal->update_s, signal->period.period_s, &found,
                        NULL) == WG_OK)
        *out = found;
    wg__free(t_s);
}

static bool is_trusted(const struct wg_period *period)
{
    return isfinite(period->period_s) && period->confidence >= WG_SIGNAL_TRUST;
}

bool wg__train_signal_look(struct wg_train_signal *signal, double now_s)
{
    if (now_s - signal->looked_s >= look_every_s) {
        struct wg_period found;
        signal->looked_s = now_s;
        find(signal, now_s - window_s, now_s, &found);
        if (is_trusted(&found)) {
            if (isnan(signal->next_step_s))
                signal->next_step_s = now_s + found.period_s;
            signal->period = found;
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
    find(signal, begin_s, end_s, out);
    return is_trusted(out);
}
