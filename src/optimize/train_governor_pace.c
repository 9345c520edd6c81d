/* SPDX-License-Identifier: MIT
 *
 * Beats, pauses, and the noise of both: see train_governor_pace.h.
 *
 * Noise is taken from the differences of successive beats, which a drift does not inflate (von
 * Neumann); stragglers are cut at four medians.
 *
 * Threads: one at a time.
 */
#include "optimize/train_governor_pace.h"

#include <math.h>

#include "math/statistics.h"

enum { TYPICAL_BEATS = 15, NOISE_BEATS = 64 };

static const double beat_least_s = 0.1;
static const double blind_beat_s = 0.25; /* of a beat where no ends of steps are told */
static const double noise_first = 0.03;  /* believed before anything was seen */
static const double noise_least = 0.002; /* no measured training is steadier */
static const double noise_most = 0.5;
static const double worth_first = 6, worth_most = 150; /* differences */
static const double pause_share = 0.25; /* a beat so much longer than its steps is a pause */
static const double pause_least_s = 0.15;
static const double pause_noise_sd = 5;
static const double stride_fades = 0.9;      /* a job that tells ten steps at once does so again */
static const double first_slowdown_most = 6; /* of a new setting, before its steps are known */

void wg__train_pace_init(struct wg_train_pace *pace)
{
    *pace = (struct wg_train_pace){.step_s = NAN,
                                   .step_noise = noise_first,
                                   .power_noise = noise_first,
                                   .step_worth = worth_first,
                                   .power_worth = worth_first};
}

/* Begins a beat at the newest tick. */
static void open_beat(struct wg_train_pace *pace)
{
    pace->begin_s = pace->last.t_s;
    pace->begin_steps = pace->last.steps;
    pace->is_whole = pace->last.is_step_end;
    pace->energy_j = 0;
    pace->powered_s = 0;
}

void wg__train_pace_reset(struct wg_train_pace *pace)
{
    pace->count = 0;
    open_beat(pace);
}

const struct wg_train_beat *wg__train_pace_beat(const struct wg_train_pace *pace, size_t age)
{
    return &pace->beats[(pace->newest + WG_TRAIN_BEATS_MAX - age) % WG_TRAIN_BEATS_MAX];
}

/* The median step of the newest beats; NAN while there are fewer than three. Beats that were taken
 * for pauses are in it: when they are the most, they are the job's steps at this setting. */
static double typical_step_s(const struct wg_train_pace *pace)
{
    double step_s[TYPICAL_BEATS];
    size_t count = 0;

    for (size_t age = 0; age < pace->count && count < TYPICAL_BEATS; age++) {
        const struct wg_train_beat *beat = wg__train_pace_beat(pace, age);

        if (beat->steps > 0)
            step_s[count++] = beat->time_s / beat->steps;
    }
    return count < 3 ? (double)NAN : wg__quantile_inplace(step_s, count, 0.5);
}

/* Whether `time_s` is too long for `steps` steps. */
static bool is_pause(const struct wg_train_pace *pace, double time_s, double steps)
{
    const double typical_s = typical_step_s(pace);

    if (isnan(typical_s))
        return !isnan(pace->step_s) &&
               time_s > steps * pace->step_s * first_slowdown_most + 4 * pause_least_s;
    const double share = fmax(pause_share, pause_noise_sd * pace->step_noise / sqrt(steps));

    return time_s > steps * typical_s * (1 + share) + pause_least_s;
}

bool wg__train_pace_is_paused(const struct wg_train_pace *pace)
{
    if (!pace->has_step_ends || !pace->has_last)
        return false;
    const double steps = pace->last.steps - pace->begin_steps;

    return is_pause(pace, pace->last.t_s - pace->begin_s,
                    (isfinite(steps) ? steps : 0) + fmax(pace->stride, 1));
}

/* Adds the open beat to the ring. */
static void close_beat(struct wg_train_pace *pace)
{
    const double time_s = pace->last.t_s - pace->begin_s;
    const double steps = pace->last.steps - pace->begin_steps;
    const double power_w = pace->powered_s > 0 ? pace->energy_j / pace->powered_s : (double)NAN;
    const bool is_late =
        pace->has_step_ends && isfinite(steps) && is_pause(pace, time_s, fmax(steps, 1));

    pace->newest = pace->count > 0 ? (pace->newest + 1) % WG_TRAIN_BEATS_MAX : 0;
    pace->beats[pace->newest] = (struct wg_train_beat){.begin_s = pace->begin_s,
                                                       .time_s = time_s,
                                                       .steps = steps >= 0 ? steps : (double)NAN,
                                                       .power_w = power_w,
                                                       .is_pause = is_late};
    if (pace->count < WG_TRAIN_BEATS_MAX)
        pace->count++;
    const double typical_s = typical_step_s(pace);

    if (!isnan(typical_s))
        pace->step_s = typical_s;
    else if (isnan(pace->step_s) && steps > 0)
        pace->step_s = time_s / steps;
    open_beat(pace);
}

/* Takes the newest tick, and the power since the one before. */
static void take(struct wg_train_pace *pace, const struct wg_train_tick *tick)
{
    /* A sample is held until the next is seen: late by one, but every sample has its own time. To
     * give each the time before it would weigh them by where the ends of steps happen to fall. */
    if (pace->has_last && isfinite(pace->last.power_w)) {
        const double since_s = tick->t_s - pace->last.t_s;

        pace->energy_j += pace->last.power_w * since_s;
        pace->powered_s += since_s;
    }
    pace->last = *tick;
    pace->has_last = true;
    if (tick->is_step_end && isfinite(tick->steps)) {
        if (pace->has_step_ends)
            pace->stride = fmax(tick->steps - pace->told_steps, stride_fades * pace->stride);
        pace->told_steps = tick->steps;
    }
}

bool wg__train_pace_tick(struct wg_train_pace *pace, const struct wg_train_tick *tick)
{
    const bool is_first = !pace->has_last;

    if (!is_first && !(tick->t_s > pace->last.t_s))
        return false;
    take(pace, tick);
    if (tick->is_step_end && !pace->has_step_ends) { /* what came before had no whole steps */
        pace->has_step_ends = true;
        wg__train_pace_reset(pace);
        return false;
    }
    if (pace->has_step_ends && !tick->is_step_end)
        return false;
    if (is_first || (pace->has_step_ends && !(pace->is_whole && isfinite(pace->begin_steps)))) {
        open_beat(pace);
        return false;
    }
    if (tick->t_s - pace->begin_s < (pace->has_step_ends ? beat_least_s : blind_beat_s))
        return false;
    close_beat(pace);
    return true;
}

void wg__train_pace_span(const struct wg_train_pace *pace, double from_s, double to_s,
                         struct wg_train_span *out)
{
    double energy_j = 0, powered_s = 0, known_s = 0;

    *out = (struct wg_train_span){.begin_s = NAN};
    for (size_t age = 0; age < pace->count; age++) {
        const struct wg_train_beat *beat = wg__train_pace_beat(pace, age);

        if (beat->begin_s + beat->time_s > to_s + 1e-9 || beat->is_pause)
            continue;
        if (beat->begin_s < from_s - 1e-9)
            break;
        out->begin_s = beat->begin_s;
        out->time_s += beat->time_s;
        out->beats++;
        if (isfinite(beat->steps)) {
            out->steps += beat->steps;
            known_s += beat->time_s;
        }
        if (isfinite(beat->power_w)) {
            energy_j += beat->power_w * beat->time_s;
            powered_s += beat->time_s;
        }
    }
    out->power_w = powered_s > 0 ? energy_j / powered_s : (double)NAN;
    out->rate = known_s > 0 ? out->steps / known_s : (double)NAN;
}

double wg__train_pace_rate_tolerance(const struct wg_train_pace *pace,
                                     const struct wg_train_span *a, const struct wg_train_span *b,
                                     double sd)
{
    return sd * pace->step_noise * sqrt(1 / fmax(a->steps, 1) + 1 / fmax(b->steps, 1));
}

double wg__train_pace_power_tolerance(const struct wg_train_pace *pace,
                                      const struct wg_train_span *a, const struct wg_train_span *b,
                                      double sd)
{
    return sd * pace->power_noise *
           sqrt(1 / fmax((double)a->beats, 1) + 1 / fmax((double)b->beats, 1));
}

/* The scatter that `count` absolute differences tell, stragglers cut short, mixed into what was
 * believed, which is worth as many differences as it was made of. */
static void mix(double *noise, double *worth, double *difference, size_t count, bool is_kept)
{
    double sum2 = 0;

    if (count < 3)
        return;
    const double cut = 4 * wg__quantile_inplace(difference, count, 0.5);

    for (size_t i = 0; i < count; i++)
        sum2 += fmin(difference[i], cut) * fmin(difference[i], cut);
    const double seen = sqrt(sum2 / (double)count);
    const double bounded = fmin(fmax(seen, noise_least), noise_most);
    const double before = is_kept ? *noise : noise_first;
    const double weight = is_kept ? *worth : worth_first;

    *noise = before + (bounded - before) * (double)count / ((double)count + weight);
    if (is_kept)
        *worth = fmin(weight + (double)count, worth_most);
}

void wg__train_pace_learn(struct wg_train_pace *pace, double from_s, bool is_kept)
{
    double step[NOISE_BEATS], power[NOISE_BEATS];
    size_t steps = 0, powers = 0;

    for (size_t age = 0; age + 1 < pace->count && steps < NOISE_BEATS && powers < NOISE_BEATS;
         age++) {
        const struct wg_train_beat *b = wg__train_pace_beat(pace, age);
        const struct wg_train_beat *a = wg__train_pace_beat(pace, age + 1);

        if (a->begin_s < from_s - 1e-9)
            break;
        if (a->is_pause || b->is_pause)
            continue;
        if (a->steps > 0 && b->steps > 0) {
            const double a_s = a->time_s / a->steps, b_s = b->time_s / b->steps;

            step[steps++] =
                fabs(b_s - a_s) / (0.5 * (a_s + b_s)) / sqrt(1 / a->steps + 1 / b->steps);
        }
        if (isfinite(a->power_w) && isfinite(b->power_w))
            power[powers++] = fabs(b->power_w - a->power_w) /
                              fmax(0.5 * (a->power_w + b->power_w), 1e-9) / sqrt(2);
    }
    mix(&pace->step_noise, &pace->step_worth, step, steps, is_kept);
    mix(&pace->power_noise, &pace->power_worth, power, powers, is_kept);
}
