/* SPDX-License-Identifier: MIT
 *
 * Blocks, base line and two detectors: see train_governor_watch.h.
 *
 * Threads: one at a time.
 */
#include "optimize/train_governor_watch.h"

#include <math.h>

#include "math/statistics.h"

static const double block_s = 10, blind_block_s = 20; /* without steps pauses are not seen */
static const double median_inefficiency = 1.2533;     /* sd of a median over that of a mean */
static const double drift_least = 0.02;               /* relative */
static const double allowance = 1, threshold = 6;     /* of the detectors, in sd of a block */
enum { BASE_BLOCKS = 3, BLOCK_BEATS_LEAST = 6 };

void wg__train_watch_init(struct wg_train_watch *watch, double from_s)
{
    *watch = (struct wg_train_watch){.from_s = from_s};
    wg__change_detector_init(&watch->speed, allowance, threshold);
    wg__change_detector_init(&watch->power, allowance, threshold);
}

/* One value of a block against its base line, which it joins while that is young. True: drift. */
static bool compare(struct wg_change_detector *detector, double *base, unsigned blocks,
                    double value, double noise)
{
    if (blocks < BASE_BLOCKS) {
        *base += (value - *base) / (blocks + 1.0);
        return false;
    }
    const double sd = hypot(drift_least, noise) * sqrt(1 + 1.0 / (double)BASE_BLOCKS);

    return wg__change_detector_tell(detector, (value - *base) / sd);
}

static enum wg_train_drift close_block(struct wg_train_watch *watch,
                                       const struct wg_train_pace *pace)
{
    double step_s = NAN;
    const double power_w = watch->powered_s > 0 ? watch->energy_j / watch->powered_s : (double)NAN;
    const double beats = (double)watch->beats;

    if (watch->steps > 0)
        step_s = wg__quantile_inplace(watch->step_s, watch->beats, 0.5);
    const double step_noise = median_inefficiency * pace->step_noise / sqrt(fmax(watch->steps, 1));
    const bool is_slower =
        compare(&watch->speed, &watch->log_step_s, watch->blocks, log(step_s), step_noise);
    const bool is_hotter = compare(&watch->power, &watch->log_power_w, watch->blocks, log(power_w),
                                   pace->power_noise / sqrt(beats));

    watch->blocks++;
    watch->beats = 0;
    watch->time_s = watch->steps = watch->energy_j = watch->powered_s = 0;
    if (is_slower)
        return WG_TRAIN_DRIFT_SPEED;
    return is_hotter ? WG_TRAIN_DRIFT_POWER : WG_TRAIN_DRIFT_NONE;
}

enum wg_train_drift wg__train_watch_tell(struct wg_train_watch *watch,
                                         const struct wg_train_pace *pace)
{
    const struct wg_train_beat *beat = wg__train_pace_beat(pace, 0);

    if (beat->is_pause || beat->begin_s < watch->from_s)
        return WG_TRAIN_DRIFT_NONE;
    const size_t slot = watch->beats < WG_TRAIN_BLOCK_BEATS ? watch->beats++ : 0;

    watch->step_s[slot] = beat->steps > 0 ? beat->time_s / beat->steps : (double)NAN;
    watch->time_s += beat->time_s;
    watch->steps += beat->steps > 0 ? beat->steps : 0;
    if (isfinite(beat->power_w)) {
        watch->energy_j += beat->power_w * beat->time_s;
        watch->powered_s += beat->time_s;
    }
    if (watch->time_s < (pace->has_step_ends ? block_s : blind_block_s) ||
        watch->beats < BLOCK_BEATS_LEAST)
        return WG_TRAIN_DRIFT_NONE;
    return close_block(watch, pace);
}
