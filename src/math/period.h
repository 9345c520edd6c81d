/* SPDX-License-Identifier: MIT
 *
 * The period of a signal: how long a training step takes, from nothing but the GPU's power.
 *
 * (The method and its source stand in period.c.)
 *
 * Threads: pure, any thread.
 */
#ifndef WG_MATH_PERIOD_H
#define WG_MATH_PERIOD_H

#include <stddef.h>

#include "base/error.h"

struct wg_period {
    double period_s;   /* NAN: none found */
    double error_s;    /* standard error of period_s */
    double confidence; /* 0..1: that the signal repeats with this period, and not by chance */
};

struct wg_period_hint {
    double update_s;   /* the sensor's: nothing below twice that can be seen */
    double expected_s; /* a period that is known to be near (of another setting of the same job),
                          which chooses among multiples; NAN: none */
    double floor;      /* the signal never falls below it: a GPU at work draws no less than an idle
                          one; 0 is sure for any power */
};

/* Finds the period of `count` samples `value` at the times `t_s` (rising, need not be regular).
 * WG_EINVAL: fewer than 16 samples, times that do not rise, a hint that is none; WG_ENOMEM. No
 * period is a success with NAN and the confidence of the best candidate. */
enum wg_code wg__period_find(const double *t_s, const double *value, size_t count,
                             const struct wg_period_hint *hint, struct wg_period *out,
                             struct wg_error *err);

#endif
