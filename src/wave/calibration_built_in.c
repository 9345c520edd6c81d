/* SPDX-License-Identifier: MIT
 *
 * The calibrations that are built in: the files of data/wave/calibration, as a table.
 *
 * tools/calibrations writes the table when the program is built, so that no JSON is read when it
 * starts and no page of a correction is touched that nobody asks for.
 *
 * Threads: pure, any thread.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "wave/calibration_set.h"

#include "wave/built_in_calibrations.h"

enum wg_code wg__calibration_built_in(struct wg_calibration **out, struct wg_error *err)
{
    struct wg_calibration *calibration = NULL;
    enum wg_code code = wg__calibration_new(&calibration, err);
    if (code != WG_OK)
        return code;
    calibration->entries = built_in_entries;
    calibration->count = sizeof built_in_entries / sizeof *built_in_entries;
    *out = calibration;
    return WG_OK;
}
