/* SPDX-License-Identifier: MIT
 *
 * Whether a training job has warmed up, and whether a new setting has acted: both are seen in the
 * job's own pace and power, and both are bounded.
 *
 * The first steps are slow: data are not cached, kernels are compiled and tuned. Nobody knows for
 * how long, and the end fades. So the last quarter of the time so far is compared with the one
 * before it: the slower the fading, the longer the quarters.
 *
 * A setting acts within some 50 ms (clocks) to a second or two (a limit's control loop, a sensor's
 * average), mostly as an exponential. Two windows in a row that are alike are not enough, since the
 * end of an exponential is flat: they must be alike within a share of what has changed so far. What
 * one setting took, the next ones are given at least.
 *
 * Threads: as train_governor.h.
 */
#include <math.h>

#include "optimize/train_governor_parts.h"

static const double warm_least_s = 3, warm_most_s = 60, warm_most_steps = 3;
static const double blind_warm_least_s = 6, blind_warm_most_s = 30;
static const double warm_unsure_s = 15, warm_unsure_share = 0.04;
static const double warm_power_share = 0.01, blind_warm_power_share = 0.03;
static const double steady_sd = 2.5, steady_share = 0.005;
static const double settle_window_s = 0.4, settle_most_s = 5, settle_most_steps = 4;
static const double settle_again = 0.8;  /* of the time that a setting took: the next one's least */
static const double settle_share = 0.05; /* of the change, that is still to come */
static const double long_beat_s = 1.5;   /* a step in which any setting has acted long before */
static const double instant_share = 40;  /* steps so many times longer need no settling at all */
static const double instant_late = 0.01; /* of a step, that a measurement may begin late */
static const double settle_floor_s = 0.5; /* what a setting is believed to take, at least */

/* Two spans are one and the same but for noise and a share. */
static bool is_alike(const struct wg_train_governor *governor, const struct wg_train_span *a,
                     const struct wg_train_span *b, double power_share)
{
    const struct wg_train_pace *pace = &governor->pace;
    const double rate = fabs(log(b->rate / a->rate));
    const double power = fabs(log(b->power_w / a->power_w));

    return (governor->is_reckoned ||
            !(rate > steady_share + wg__train_pace_rate_tolerance(pace, a, b, steady_sd))) &&
           !(power > power_share + wg__train_pace_power_tolerance(pace, a, b, steady_sd));
}

/* The last quarter of the time so far is like the quarter before it. */
static bool is_even(struct wg_train_governor *governor, double from_s, double t_s,
                    double power_share)
{
    struct wg_train_pace *pace = &governor->pace;
    const double part_s = (t_s - from_s) / 4;
    struct wg_train_span before, last;

    wg__train_pace_learn(pace, from_s + 2 * part_s, false);
    wg__train_pace_span(pace, from_s + 3 * part_s, t_s, &last);
    wg__train_pace_span(pace, from_s + 2 * part_s, last.begin_s, &before);
    if (pace->count >= 2 && wg__train_pace_beat(pace, 1)->time_s > part_s) { /* one and one */
        const double middle_s = wg__train_pace_beat(pace, 0)->begin_s;

        wg__train_pace_span(pace, middle_s, t_s, &last);
        wg__train_pace_span(pace, wg__train_pace_beat(pace, 1)->begin_s, middle_s, &before);
    }
    if (t_s - from_s < warm_unsure_s &&
        wg__train_pace_rate_tolerance(pace, &before, &last, steady_sd) > warm_unsure_share)
        return false; /* too few steps to tell */
    return last.beats > 0 && before.beats > 0 && is_alike(governor, &before, &last, power_share);
}

bool wg__train_is_warm(struct wg_train_governor *governor, const struct wg_train_tick *tick)
{
    const struct wg_train_pace *pace = &governor->pace;
    const double step_s = isnan(pace->step_s) ? 0 : pace->step_s;

    if (pace->has_step_ends && !tick->is_step_end)
        return false;
    if (governor->warmup_s > 0)
        return tick->t_s - governor->start_s >= governor->warmup_s && pace->count > 0;
    if (!pace->has_step_ends) {
        if (tick->steps <= governor->start_steps)
            return false; /* they are counted, so the first one will come */
        const double since_s = tick->t_s - governor->start_s;

        return since_s > blind_warm_most_s ||
               (since_s >= blind_warm_least_s &&
                is_even(governor, governor->start_s, tick->t_s, blind_warm_power_share));
    }
    const double since_s = tick->t_s - governor->first_step_s;

    return since_s > fmax(warm_most_s, warm_most_steps * step_s) ||
           (since_s >= warm_least_s &&
            is_even(governor, governor->first_step_s, tick->t_s, warm_power_share));
}

/* The newest beats that last `settle_window_s` together and end by `to_s`. */
static bool window_before(const struct wg_train_pace *pace, double to_s, struct wg_train_span *out)
{
    for (size_t age = 0; age < pace->count; age++) {
        const struct wg_train_beat *beat = wg__train_pace_beat(pace, age);

        if (beat->begin_s > to_s - settle_window_s + 1e-9)
            continue;
        wg__train_pace_span(pace, beat->begin_s, to_s, out);
        return out->beats > 0;
    }
    return false;
}

/* Two windows in a row are alike, but for what is small against the change so far. Notes how long
 * that took. */
static bool is_level(struct wg_train_governor *governor, double t_s)
{
    const struct wg_train_pace *pace = &governor->pace;
    struct wg_train_span before, last;

    if (!window_before(pace, t_s, &last))
        return false;
    if (last.beats == 1 && last.time_s >= long_beat_s)
        return true;
    if (!window_before(pace, last.begin_s, &before))
        return false;
    const double changed = fabs(log(last.power_w / governor->power_before_w));
    const double share = fmax(steady_share, isnan(changed) ? 0 : settle_share * changed);

    if (!is_alike(governor, &before, &last, share))
        return false;
    const double took_s = fmax(0, before.begin_s - governor->set_s);

    governor->book.rows[governor->present].settle_s = took_s;
    governor->settle_least_s = fmax(governor->settle_least_s, settle_again * took_s);
    return true;
}

bool wg__train_has_settled(struct wg_train_governor *governor, const struct wg_train_tick *tick)
{
    const struct wg_train_pace *pace = &governor->pace;
    const double since_s = tick->t_s - governor->set_s;
    const double step_s = isnan(pace->step_s) ? 0 : pace->step_s;

    if (step_s > instant_share * fmax(settle_floor_s, governor->settle_least_s) &&
        since_s <= instant_late * step_s)
        return true;
    if (pace->count == 0 || wg__train_pace_beat(pace, 0)->is_pause ||
        (pace->has_step_ends && !tick->is_step_end) || since_s < governor->settle_least_s)
        return false;
    return since_s > fmax(settle_most_s, settle_most_steps * step_s) ||
           is_level(governor, tick->t_s);
}
