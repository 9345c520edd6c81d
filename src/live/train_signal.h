/* SPDX-License-Identifier: MIT
 *
 * Steps of a job that says nothing: seen as the period of its power.
 *
 * Keeps the newest samples of the GPUs' power and looks for their period (math/period.h). Once one
 * is found, steps are counted as if each took a period; how many a measurement really had is
 * computed from the samples within it.
 *
 * What is known bounds what is believed. Power does not fall below what the GPUs drew before the
 * job began, which tells most periods from aliases. A step takes no longer at another setting than
 * the clock has slowed down, and not less than at the faster one, so that multiples of it are told.
 * When nothing has been seen of a period for a minute it is forgotten: the job does something else.
 *
 * Owns: its samples.    Threads: one at a time; no clock of its own.
 */
#ifndef WG_LIVE_TRAIN_SIGNAL_H
#define WG_LIVE_TRAIN_SIGNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "math/period.h"

enum { WG_SIGNAL_SAMPLES = 2048 };

struct wg_train_signal {
    double update_s; /* of the sensor */
    double t_s[WG_SIGNAL_SAMPLES];
    double power_w[WG_SIGNAL_SAMPLES];
    double clock_hz[WG_SIGNAL_SAMPLES]; /* NAN: unknown */
    size_t first, count;                /* a ring */
    struct wg_period period;            /* the newest that was found; period_s NAN: none yet */
    double first_period_s;              /* what the next ones are compared with; NAN: none yet */
    double first_clock_hz;              /* the mean clock at which it was found; NAN: unknown */
    double seen_s;                      /* when it was last seen */
    double looked_s;                    /* when it was looked for */
    double changed_s;   /* when the setting was changed: older samples are of another */
    double idle_w;      /* before the job began, or the least since; NAN: unknown */
    double steps;       /* counted so far */
    double next_step_s; /* when the next one ends */
};

void wg__train_signal_init(struct wg_train_signal *signal, double update_s);

/* The power of all GPUs before the job began. */
void wg__train_signal_idle(struct wg_train_signal *signal, double power_w);

/* A sample of the power of all GPUs together and of their mean clock (NAN: unknown), with the time
 * at which the newest of them was taken; such as are not newer than the last are dropped. */
void wg__train_signal_add(struct wg_train_signal *signal, double t_s, double power_w,
                          double clock_hz);

/* The setting was changed. */
void wg__train_signal_change(struct wg_train_signal *signal, double t_s);

/* Looks for a period in the samples of the last half minute, at the present setting, at most once a
 * second. True: there is one now that can be trusted. */
bool wg__train_signal_look(struct wg_train_signal *signal, double now_s);

/* Whether a step has ended by `now_s`; counts it. */
bool wg__train_signal_step(struct wg_train_signal *signal, double now_s);

/* The period within a measurement. False: none that can be trusted. */
bool wg__train_signal_within(const struct wg_train_signal *signal, double begin_s, double end_s,
                             struct wg_period *out);

/* The confidence from which on a period is trusted. */
#define WG_SIGNAL_TRUST 0.9

#endif
