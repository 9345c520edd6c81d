/* SPDX-License-Identifier: MIT
 *
 * amdgpu's tables of clocks, pp_dpm_sclk and pp_dpm_mclk.
 *
 *     S: 19Mhz *          asleep (not a level)
 *     0: 500Mhz
 *     1: 2304Mhz          the one that is marked runs now
 *
 * Threads: pure, any thread.
 */
#ifndef WG_DEVICE_CLOCK_TABLE_H
#define WG_DEVICE_CLOCK_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { WG_CLOCK_TABLE_LEVELS = 32 };

struct wg_clock_table {
    double levels_hz[WG_CLOCK_TABLE_LEVELS]; /* rising; more than fit are left out */
    unsigned numbers[WG_CLOCK_TABLE_LEVELS]; /* of the table, which are written to allow a level */
    size_t count;
    double current_hz; /* NAN: none is marked */
};

/* False: not one line of such a table. */
bool wg__clock_table_parse(const char *text, struct wg_clock_table *out);

#endif
