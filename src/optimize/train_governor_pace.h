/* SPDX-License-Identifier: MIT
 *
 * The pace of a training job: its steps and their power, cut into beats, and whether both are
 * steady.
 *
 * A beat runs from one end of a step to another, at least a tenth of a second later: many short
 * steps make one beat, a long step is one. Its power is averaged over the same whole steps, so the
 * swing of power within a step is not taken for a change. Where no ends of steps are told, a beat
 * is a quarter of a second and its steps are those that the caller believes in, or unknown.
 *
 * A beat that takes far longer than its steps should is a pause (evaluation, the end of an epoch, a
 * checkpoint) and is left out of every average.
 *
 * Threads: one at a time; no memory of its own.
 */
#ifndef WG_OPTIMIZE_TRAIN_GOVERNOR_PACE_H
#define WG_OPTIMIZE_TRAIN_GOVERNOR_PACE_H

#include <stdbool.h>
#include <stddef.h>

#include "optimize/train_governor.h"

enum { WG_TRAIN_BEATS_MAX = 512 };

struct wg_train_beat {
    double begin_s, time_s;
    double steps;   /* NAN: unknown */
    double power_w; /* NAN: unknown */
    bool is_pause;
};

struct wg_train_pace {
    bool has_step_ends;
    double step_s;      /* typical time of a step at the present setting; NAN: unknown */
    double step_noise;  /* relative standard deviation of one step's time */
    double power_noise; /* and of one beat's power */
    double step_worth, power_worth; /* by how many differences they are known */
    size_t count;                   /* of beats since the last reset, at most the ring's size */
    size_t newest;
    struct wg_train_beat beats[WG_TRAIN_BEATS_MAX];
    /* the beat that is open */
    struct wg_train_tick last; /* the newest tick */
    bool has_last;
    bool is_whole; /* it began at the end of a step */
    double begin_s, begin_steps;
    double told_steps, stride; /* at the newest end of a step; and by how many steps are told */
    double energy_j, powered_s;
};

/* Means over several beats. */
struct wg_train_span {
    double begin_s; /* of the first of them */
    double time_s, steps;
    double power_w; /* NAN: unknown */
    double rate;    /* steps per second; NAN: unknown */
    size_t beats;
};

void wg__train_pace_init(struct wg_train_pace *pace);

/* Forgets the beats, but not the noise and the typical step, when a new setting begins. */
void wg__train_pace_reset(struct wg_train_pace *pace);

/* Takes the next tick; true: a beat has ended with it, and it is the newest now. The same tick
 * again does nothing. */
bool wg__train_pace_tick(struct wg_train_pace *pace, const struct wg_train_tick *tick);

/* No step has ended for so long that this is a pause. */
bool wg__train_pace_is_paused(const struct wg_train_pace *pace);

/* Beat number `age` back from the newest (0). */
const struct wg_train_beat *wg__train_pace_beat(const struct wg_train_pace *pace, size_t age);

/* The means over the beats that lie within, pauses left out. */
void wg__train_pace_span(const struct wg_train_pace *pace, double from_s, double to_s,
                         struct wg_train_span *out);

/* By how much one of two spans may differ from the other by noise alone: in rate and in power,
 * relative, for `sd` standard deviations. */
double wg__train_pace_rate_tolerance(const struct wg_train_pace *pace,
                                     const struct wg_train_span *a, const struct wg_train_span *b,
                                     double sd);
double wg__train_pace_power_tolerance(const struct wg_train_pace *pace,
                                      const struct wg_train_span *a, const struct wg_train_span *b,
                                      double sd);

/* Learns the noise from the beats since `from_s`: added to what is known, for good (`is_kept`: the
 * beats are steady and were not learned from before), or instead of it. */
void wg__train_pace_learn(struct wg_train_pace *pace, double from_s, bool is_kept);

#endif
