/* SPDX-License-Identifier: MIT
 *
 * The levels of a knob: as they are written, or as devices offer them.
 *
 * Devices that are tuned together get one list: each level means a value on each of them, the one
 * that it supports nearest to what was asked for. Levels that round to the same are one.
 *
 * Owns: nothing; what it allocates is the knob's.    Threads: pure, any thread.
 */
#ifndef WG_LIVE_TUNE_LEVELS_H
#define WG_LIVE_TUNE_LEVELS_H

#include "base/error.h"

struct wg_tune_devices;
struct wg_tune_knob;

enum { WG_TUNE_SPEC_SIZE = 1024 };

/* What was written behind NAME=; all NULL: nothing. */
struct wg_tune_level_list {
    const char *list;              /* "1,2,4"; of a device "6": so many */
    const char *low, *high, *step; /* instead */
};

/* Of a workload's knob with numbers: `levels` and `count`; the value that was written first. */
enum wg_code wg__tune_levels_written(const struct wg_tune_level_list *list, const char *text,
                                     struct wg_tune_knob *knob, double *first_out,
                                     struct wg_error *err);

/* Of devices: `levels`, `values`, `count` and `default_level`. */
enum wg_code wg__tune_levels_of_devices(const struct wg_tune_level_list *list, const char *text,
                                        const struct wg_tune_devices *devices,
                                        struct wg_tune_knob *knob, struct wg_error *err);

#endif
