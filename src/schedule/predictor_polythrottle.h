/* SPDX-License-Identifier: MIT
 *
 * PolyThrottle's predictor (section 6): plain non-negative least squares in seconds, on operations
 * and operations a byte, at the clocks of its samples.
 *
 * Owns: nothing; the caller's memory.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_PREDICTOR_POLYTHROTTLE_H
#define WG_SCHEDULE_PREDICTOR_POLYTHROTTLE_H

#include <stddef.h>

#include "math/nnls.h"
#include "schedule/predictor.h"

enum { WG_POLYTHROTTLE_FEATURES = 6 };

struct wg_polythrottle {
    struct wg_work_shape inference, finetune; /* in units of the work of one row */
    double theta[WG_POLYTHROTTLE_FEATURES];
};

void wg__polythrottle_init(struct wg_polythrottle *polythrottle,
                           const struct wg_predictor_setup *setup,
                           const struct wg_predictor_sample *samples, size_t count);

double wg__polythrottle_time(const struct wg_polythrottle *polythrottle,
                             const struct wg_predictor_point *point);

#endif
