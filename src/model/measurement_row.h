/* SPDX-License-Identifier: MIT
 *
 * One record of a CSV of measurements as a measurement; see measurements.h.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_MEASUREMENT_ROW_H
#define WG_MODEL_MEASUREMENT_ROW_H

#include "base/csv.h"
#include "base/error.h"
#include "model/measurement_columns.h"
#include "model/measurements.h"

/* Everything but gpu, op and the time. WG_EDATA: "FILE:LINE: column 'm': ...". */
enum wg_code wg__measurement_row(const struct wg_csv *csv,
                                 const struct wg_measurement_columns *columns,
                                 const struct wg_measurements_opts *opts, struct wg_measured *out,
                                 struct wg_error *err);

/* The time in column `time`; NAN where the text says that there is none. */
enum wg_code wg__measurement_time(const struct wg_csv *csv, const struct wg_measurement_time *time,
                                  double *out_s, struct wg_error *err);

#endif
