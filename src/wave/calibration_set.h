/* SPDX-License-Identifier: MIT
 *
 * The inside of a calibration, for the files that make one.
 *
 * Owns: a calibration owns its entries and their points, unless they are the built-in ones.
 * Threads: one thread at a time.
 */
#ifndef WG_WAVE_CALIBRATION_SET_H
#define WG_WAVE_CALIBRATION_SET_H

#include "wave/calibration.h"

struct wg_calibration {
    const struct wg_calibrated *entries; /* `own`, or the table that is built in */
    struct wg_calibrated *own;           /* made by the first change */
    size_t count;
};

/* Frees what the entry owns, not `entry` itself. */
void wg__calibrated_fini(struct wg_calibrated *entry);

enum wg_code wg__calibration_new(struct wg_calibration **out, struct wg_error *err);
/* Takes over `entry` with its points, in place of one of the same GPU, dtype and class; on failure
 * they stay the caller's. */
enum wg_code wg__calibration_put(struct wg_calibration *calibration, struct wg_calibrated *entry,
                                 struct wg_error *err);
/* Order of points, for qsort and search: batch, n, k, bytes, m. */
int wg__point_compare(const void *a, const void *b);

#endif
