/* SPDX-License-Identifier: MIT
 *
 * The settings that a governor may choose from: one list for all GPUs of a job.
 *
 * A setting is a step of the list; what it means on each GPU stands in a table, since the GPUs may
 * differ. Power limits: round steps from the smallest limit to the one that stands when the job
 * starts, which is never exceeded: whoever lowered it had a reason (a rack's supply, heat). Clocks:
 * up to a dozen of the supported ones, evenly spread, from where they matter to the largest.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_LIVE_TRAIN_SETTINGS_H
#define WG_LIVE_TRAIN_SETTINGS_H

#include <stddef.h>

#include "base/error.h"
#include "optimize/power_limit.h"
#include "wattgov/device.h"

enum { WG_TRAIN_GPUS_MAX = 64, WG_TRAIN_SETTINGS_MAX = 24 };

struct wg_train_settings {
    enum wg_knob knob;
    size_t count;
    size_t gpu_count;
    double setting[WG_TRAIN_SETTINGS_MAX];                  /* mean over the GPUs, rising */
    double value[WG_TRAIN_SETTINGS_MAX][WG_TRAIN_GPUS_MAX]; /* what each GPU is set to */
};

/* `infos` in the order of the job's GPUs. WG_EUNSUPPORTED: a GPU lacks the knob, or it has fewer
 * than two values; the text says which and why. WG_EINVAL: too many GPUs or none. */
enum wg_code wg__train_settings_init(struct wg_train_settings *out, enum wg_knob knob,
                                     const struct wg_device_info *const *infos, size_t gpu_count,
                                     struct wg_error *err);

#endif
