/* SPDX-License-Identifier: MIT
 *
 * Steps of a job that says nothing: seen as the period of its power.
 *
 * Keeps the newest samples of the GPUs' power and looks for their period (math/period.h). Once one
 * is found, steps are counted as if each took a period; how many a measurement really had is
 * computed from the samples within it.
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
    size_t first, count;     /* a ring */
    struct wg_period period; /* the newest that was found; period_s NAN: none yet */
    double looked_s;         /* when it was looked for */
    double steps;            /* counted so far */
    double next_step_s;      /* when the next one ends */
};

void wg__train_signal_init(struct wg_train_signal *signal, double update_s);

/* A sample of the power of all GPUs together; older ones than the last are dropped. */
void wg__train_signal_add(struct wg_train_signal *signal, double t_s, double power_w);

/* Looks for a period in the samples of the last half minute, at most once a second. True: there is
 * one now that can be trusted. */
bool wg__train_signal_look(struct wg_train_signal *signal, double now_s);

/* Whether a step has ended by `now_s`; counts it. */
bool wg__train_signal_step(struct wg_train_signal *signal, double now_s);

/* The period within a measurement. False: none that can be trusted. */
bool wg__train_signal_within(const struct wg_train_signal *signal, double begin_s, double end_s,
                             struct wg_period *out);

/* The confidence from which on a period is trusted. */
#define WG_SIGNAL_TRUST 0.9

#endif
