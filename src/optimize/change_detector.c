/* SPDX-License-Identifier: MIT
 *
 * Two-sided CUSUM over clipped residuals: see change_detector.h.
 *
 * Threads: one at a time.
 */
#include "optimize/change_detector.h"

#include <math.h>

static const double clip_sd = 3;

void wg__change_detector_init(struct wg_change_detector *detector, double allowance,
                              double threshold)
{
    *detector = (struct wg_change_detector){.allowance = allowance, .threshold = threshold};
}

bool wg__change_detector_tell(struct wg_change_detector *detector, double residual)
{
    if (isnan(residual))
        return false;
    const double clipped = fmax(-clip_sd, fmin(clip_sd, residual));
    detector->up = fmax(0, detector->up + clipped - detector->allowance);
    detector->down = fmax(0, detector->down - clipped - detector->allowance);
    if (detector->up <= detector->threshold && detector->down <= detector->threshold)
        return false;
    detector->up = detector->down = 0;
    return true;
}
