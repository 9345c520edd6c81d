/* SPDX-License-Identifier: MIT
 *
 * Notices that a training job no longer draws the power, or takes the time per step, that it did
 * when its setting was chosen.
 *
 * Beats are gathered into blocks of some seconds; a block is the median time of a step and the mean
 * power. The first blocks are the base line, later ones feed one CUSUM each for speed and power
 * (change_detector.h). Pauses are no beats here, so evaluation and ends of epochs are no drift;
 * what is no more than a hand's breadth (2 %) is none either, for no setting is worth changing for
 * it.
 *
 * Threads: one at a time; no memory of its own.
 */
#ifndef WG_OPTIMIZE_TRAIN_GOVERNOR_WATCH_H
#define WG_OPTIMIZE_TRAIN_GOVERNOR_WATCH_H

#include <stdbool.h>

#include "optimize/change_detector.h"
#include "optimize/train_governor_pace.h"

enum { WG_TRAIN_BLOCK_BEATS = 128 };

enum wg_train_drift { WG_TRAIN_DRIFT_NONE, WG_TRAIN_DRIFT_SPEED, WG_TRAIN_DRIFT_POWER };

struct wg_train_watch {
    double from_s; /* beats before are still settling */
    unsigned blocks;
    double log_step_s, log_power_w; /* base line: means of the first blocks; NAN: unknown */
    struct wg_change_detector speed, power;
    /* the block that is open */
    size_t beats;
    double step_s[WG_TRAIN_BLOCK_BEATS];
    double time_s, steps, energy_j, powered_s;
};

void wg__train_watch_init(struct wg_train_watch *watch, double from_s);

/* Takes the beat that has just ended. */
enum wg_train_drift wg__train_watch_tell(struct wg_train_watch *watch,
                                         const struct wg_train_pace *pace);

#endif
