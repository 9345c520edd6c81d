/* SPDX-License-Identifier: MIT
 *
 * The power rails of a Jetson: which there are, where they are read, and which of them make the
 * total.
 *
 *     hwmon (JetPack 5 and later)                     iio (before)
 *     .../i2c/drivers/ina3221/1-0040/hwmon/hwmon3/    .../i2c/drivers/ina3221x/7-0040/iio:device0/
 *         in1_label   "VDD_GPU_SOC"                       rail_name_0       "VDD_IN"
 *         in1_input   mV                                  in_power0_input   mW
 *         curr1_input mA
 *
 * A chip has three channels; "NC" is a channel that nothing is connected to, and in7 is a sum of
 * voltages. A rail that supplies the others (VDD_IN, POM_5V_IN, VIN) is the total, and they are
 * parts of it. Where there is none (AGX Xavier, AGX Orin) the rails add up, but for
 * VDDQ_VDD2_1V8AO, which hangs behind VIN_SYS_5V0 (both read the same 5 V).
 *
 * Threads: any thread.
 */
#ifndef WG_DEVICE_JETSON_RAILS_H
#define WG_DEVICE_JETSON_RAILS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

enum wg_rail_layout { WG_RAIL_HWMON, WG_RAIL_IIO, WG_RAIL_INA238 /* power1_input, uW */ };

struct wg_jetson_rail {
    const char *label;  /* "VDD_GPU_SOC" */
    const char *chip;   /* "1-0040"; "" when it is not known */
    const char *folder; /* the numbers in it change with each boot */
    unsigned channel;
    enum wg_rail_layout layout;
    bool counts; /* in the total */
};

/* In the order of chips and channels, but a total first; texts and array in `arena`. WG_ENOMEM. */
enum wg_code wg__jetson_rails(const char *root, struct wg_arena *arena,
                              struct wg_jetson_rail **rails_out, size_t *count_out,
                              struct wg_error *err);

#endif
