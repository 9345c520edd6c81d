/* SPDX-License-Identifier: MIT
 *
 * One measurement of a training job: how long it must be, whether it is worth anything, and what
 * becomes of it.
 *
 * It ends when the scatter of steps and power, as seen so far, leaves half a per cent or so of the
 * cost open, within bounds: a long step is a measurement by itself, and a setting that is clearly
 * dear needs no precision. It is thrown away when the device was held down by something else than
 * our setting, when the job paused, when its second half is unlike its first (the setting had not
 * acted yet, or the job changed), and when the meter has gaps.
 *
 * Without ends of steps the caller must find the steps in the signal itself, so such a measurement
 * is a stretch of time, longer each time that the steps were not found well enough.
 *
 * Threads: as train_governor.h.
 */
#include <math.h>

#include "optimize/train_governor_parts.h"

static const double measure_least_s = 1.5, measure_most_s = 5, measure_steps_least = 3;
static const double long_step_s = 2;   /* from here on one step makes a measurement */
static const double pause_wait_s = 10; /* for the end of a pause, to begin or end with */
static const double pauses_cease_s = 15;
static const double measure_sd_first = 0.01, measure_sd = 0.006;
static const double hopeless_cost = 1.12; /* over the best: known well enough at once */
static const double blind_measure_most_s = 40, blind_longer = 1.6, blind_sd = 0.01;
static const double drift_share = 0.01, drift_sd = 3;
static const double cached_power_share = 0.04, cached_rate_share = 0.05;
static const double cached_beats = 10; /* that a measurement's power is worth, at least */
enum { TRIES_MOST = 4, DRIFTS_MOST = 2, HALVES_BEATS = 6 };

/* What this setting seems to cost, by the ticks alone, is far above the best. */
static bool is_hopeless(const struct wg_train_governor *governor, const struct wg_train_span *span)
{
    const size_t best = wg__train_governor_best(governor);
    double sd;

    if (best == governor->book.count || best == governor->target || !(span->rate > 0) ||
        !(span->power_w > 0) || governor->book.objective.kind == WG_OBJECTIVE_SLOWDOWN)
        return false;
    return wg__objective_cost_per_s(&governor->book.objective, span->power_w) / span->rate >
           hopeless_cost * wg__train_book_cost(&governor->book, best, &sd);
}

bool wg__train_is_between_pauses(const struct wg_train_governor *governor,
                                 const struct wg_train_tick *tick, double since_s)
{
    const struct wg_train_pace *pace = &governor->pace;
    const bool is_end =
        tick->is_step_end && pace->count > 0 && wg__train_pace_beat(pace, 0)->is_pause;

    /* A host that was busy for a while makes pauses that do not come again. */
    return governor->takes_pauses && !is_end && tick->t_s - since_s < pause_wait_s &&
           tick->t_s - governor->paused_at_s < pauses_cease_s;
}

bool wg__train_is_long_enough(const struct wg_train_governor *governor,
                              const struct wg_train_tick *tick)
{
    const struct wg_train_pace *pace = &governor->pace;
    const double time_s = tick->t_s - governor->begin_s;
    const double steps = tick->steps - governor->begin_steps;
    struct wg_train_span span;

    if (!pace->has_step_ends)
        return time_s >= (governor->measure_s > 0 ? governor->measure_s : governor->blind_s);
    if (!tick->is_step_end || !(steps >= 1))
        return false;
    if (governor->measure_s > 0)
        return time_s >= governor->measure_s;
    if (time_s / steps < long_step_s && steps < measure_steps_least)
        return false;
    if (time_s < measure_least_s ||
        wg__train_is_between_pauses(governor, tick, governor->begin_s + measure_most_s))
        return false;
    if (time_s >= measure_most_s)
        return true;
    const bool is_first = !wg__train_book_is_known(&governor->book, governor->target);

    wg__train_pace_span(pace, governor->begin_s, tick->t_s, &span);
    return hypot(pace->step_noise / sqrt(steps),
                 pace->power_noise / sqrt(fmax((double)span.beats, 1))) <
               (is_first ? measure_sd_first : measure_sd) ||
           is_hopeless(governor, &span);
}

void wg__train_compare_halves(struct wg_train_governor *governor, double t_s)
{
    const struct wg_train_pace *pace = &governor->pace;
    struct wg_train_span a, b;

    wg__train_pace_span(pace, governor->begin_s, 0.5 * (governor->begin_s + t_s), &a);
    wg__train_pace_span(pace, 0.5 * (governor->begin_s + t_s) - 1e-9, t_s, &b);
    governor->is_pace_uneven = governor->is_power_uneven = false;
    if (a.beats + b.beats < HALVES_BEATS || a.beats == 0 || b.beats == 0)
        return;
    governor->is_pace_uneven =
        fabs(log(b.rate / a.rate)) >
        fmax(drift_share, wg__train_pace_rate_tolerance(pace, &a, &b, drift_sd));
    governor->is_power_uneven =
        fabs(log(b.power_w / a.power_w)) >
        fmax(drift_share, wg__train_pace_power_tolerance(pace, &a, &b, drift_sd));
}

void wg__train_lose(struct wg_train_governor *governor)
{
    struct wg_train_row *row = &governor->book.rows[governor->target];

    row->discarded++;
    governor->is_checking = governor->is_checking && governor->tries + 1 < TRIES_MOST;
    if (++governor->tries >= TRIES_MOST) {
        row->is_skipped = true;
        governor->tries = 0;
    }
}

/* Compares what was measured with what the cache says; false: they disagree, the cache is void. */
static bool agrees_with_cache(const struct wg_train_governor *governor,
                              const struct wg_train_measurement *measurement)
{
    struct wg_train_point point;

    wg__train_book_point(&governor->book, governor->target, &point);
    const double power = log(measurement->energy_j / measurement->time_s / point.power_w);
    const double rate = log(measurement->steps / measurement->time_s / point.throughput);
    const double rate_sd = governor->pace.step_noise / sqrt(fmax(measurement->steps, 1));

    return fabs(power) < cached_power_share + 3 * governor->pace.power_noise / sqrt(cached_beats) &&
           fabs(rate) < cached_rate_share + 3 * rate_sd;
}

static void void_cache(struct wg_train_governor *governor)
{
    struct wg_train_book *book = &governor->book;

    for (size_t i = 0; i < book->count; i++)
        if (book->rows[i].is_cached)
            book->rows[i] =
                (struct wg_train_row){.settle_s = NAN, .is_refused = book->rows[i].is_refused};
    book->neighbor_setting = book->setting[governor->target];
}

/* Steps unknown: nothing shows how fast the job is. Longer, and later again. */
static void lose_blind(struct wg_train_governor *governor)
{
    governor->book.rows[governor->target].discarded++;
    governor->blind_s = fmin(governor->blind_s * blind_longer, blind_measure_most_s);
    governor->blind_tries++;
}

static bool is_sound(const struct wg_train_measurement *measurement)
{
    return !measurement->is_throttled && !measurement->is_gap && isfinite(measurement->energy_j) &&
           measurement->energy_j > 0 && isfinite(measurement->time_s) && measurement->time_s > 0;
}

/* What was told of a measurement that is worth something. */
static void take(struct wg_train_governor *governor, const struct wg_train_measurement *measurement)
{
    const bool has_ends = governor->pace.has_step_ends;
    const double told = isfinite(measurement->steps_error) ? measurement->steps_error / 1.96 : 0;

    governor->tries = governor->blind_tries = 0;
    if (governor->is_checking) {
        governor->is_checking = false;
        governor->is_agreed = agrees_with_cache(governor, measurement);
        if (governor->is_agreed)
            return;
        void_cache(governor);
    }
    if (!has_ends && told > blind_sd * measurement->steps)
        governor->blind_s = fmin(governor->blind_s * blind_longer, blind_measure_most_s);
    /* How reckoned ends of steps scatter says how fine the ticks are; the error is told. */
    governor->book.step_noise = has_ends && !governor->is_reckoned ? governor->pace.step_noise : 0;
    wg__train_book_add(&governor->book, governor->target, measurement, told);
}

void wg__train_governor_tell(struct wg_train_governor *governor,
                             const struct wg_train_measurement *measurement)
{
    if (!governor->is_awaiting)
        return;
    governor->is_awaiting = false;
    governor->was_told = true;
    governor->is_reckoned = governor->pace.has_step_ends && measurement->steps_error > 0;
    /* Reckoned ends of steps follow the guess of the period, which gets better in the course of a
     * measurement: that says nothing of the job. */
    const bool is_uneven =
        governor->is_power_uneven || (governor->is_pace_uneven && !governor->is_reckoned);

    if (!is_sound(measurement)) {
        wg__train_lose(governor);
    } else if (!isfinite(measurement->steps) || !(measurement->steps > 0)) {
        lose_blind(governor);
    } else if (is_uneven && governor->drifts_in_row < DRIFTS_MOST) {
        governor->drifts_in_row++;
        governor->book.rows[governor->target].discarded++;
    } else {
        take(governor, measurement);
    }
    wg__train_update_points(governor);
}

void wg__train_update_points(struct wg_train_governor *governor)
{
    governor->point_count = 0;
    for (size_t i = 0; i < governor->book.count; i++)
        if (governor->book.rows[i].measurements > 0)
            wg__train_book_point(&governor->book, i, &governor->points[governor->point_count++]);
}
