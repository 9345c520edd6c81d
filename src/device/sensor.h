/* SPDX-License-Identifier: MIT
 *
 * How a power sensor lies: what of the true power its readings show.
 *
 * A reading is the mean over an averaging window, renewed once per update period. When the window
 * is shorter than the period (A100, H100: 25 of 100 ms) most of the time is never seen; when it is
 * longer (1 s on Ampere and Ada boards) a reading shows the past. The table is by architecture,
 * driver and field, from "Part-time Power Measurements: nvidia-smi's Lack of Attention" (Yang,
 * Adamek, Armour, SC 2024; arXiv 2312.02741), as measured by its authors.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_DEVICE_SENSOR_H
#define WG_DEVICE_SENSOR_H

#include <stdbool.h>

#include "wattgov/device.h"

struct wg_sensor {
    double update_period_s;    /* a new value this often; 0: at each read */
    double averaging_window_s; /* mean over this long, ending at the update; 0: instant */
    double seen_share;         /* min(1, window / period): the share of the time that is seen; 1
                                  without a known window, for lack of better knowledge */
    bool is_known;             /* from the table or the driver; else assumed */
};

/* The sensor behind `metric` (WG_METRIC_POWER_W, WG_METRIC_POWER_AVERAGE_W or WG_METRIC_ENERGY_J)
 * of a device: what its meter info says, else the table, else 100 ms and unknown. */
struct wg_sensor wg__sensor_of(const struct wg_device_info *info, enum wg_metric metric);

/* What nvmlDeviceGetPowerUsage shows: on branch 530 and before it something else than field 186. */
bool wg__sensor_lookup_usage(const char *architecture, unsigned driver_major,
                             struct wg_sensor *out);

/* The branch of an NVIDIA driver's version, its first number: 535 of "535.129.03"; 0: unknown. */
unsigned wg__sensor_driver_branch(const char *version);

/* The table alone: by architecture ("volta", "ampere-ga100", ...), driver branch and field. False:
 * not in the table. Backends use it to fill wg_meter_info. */
bool wg__sensor_lookup(const char *architecture, unsigned driver_major, enum wg_metric metric,
                       struct wg_sensor *out);

#endif
