/* SPDX-License-Identifier: MIT
 *
 * Notices that a stream of surprises is no longer centred: a two-sided CUSUM (Page, 1954).
 *
 * Each surprise is a standardised residual, clipped so that one outlier cannot raise the alarm
 * alone. The sums grow by what exceeds an allowance and are reset by the alarm.
 *
 * Threads: one at a time; no memory of its own.
 */
#ifndef WG_OPTIMIZE_CHANGE_DETECTOR_H
#define WG_OPTIMIZE_CHANGE_DETECTOR_H

#include <stdbool.h>

struct wg_change_detector {
    double allowance; /* in standard deviations */
    double threshold;
    double up, down; /* the two sums */
};

void wg__change_detector_init(struct wg_change_detector *detector, double allowance,
                              double threshold);

/* Takes one standardised residual (NaN is ignored); true: the alarm, and the sums begin again. */
bool wg__change_detector_tell(struct wg_change_detector *detector, double residual);

#endif
