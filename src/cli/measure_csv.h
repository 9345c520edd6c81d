/* SPDX-License-Identifier: MIT
 *
 * `wattgov measure --csv`: samples as they come, one row a sample and device.
 *
 * Columns: run (counted from 1), t_s (since the first run began), device (its label), one a metric
 * by its key, and throttle (words, joined by ';'). A field is empty where the device does not
 * report it. Rows are on the disk by the next tick, so a long measurement can be watched, and what
 * was written stays when it is killed. The first failure to write sticks.
 *
 * Owns: the file.    Threads: one thread at a time.
 */
#ifndef WG_CLI_MEASURE_CSV_H
#define WG_CLI_MEASURE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buffer.h"
#include "wattgov/device.h"

struct wg_measure_csv {
    FILE *file; /* NULL: none was asked for, or it failed */
    const char *path;
    struct wg_buffer rows; /* of this tick */
    uint64_t start_ns;     /* of t_s; 0: not begun */
    uint64_t *newest_ns;   /* a device: time of the sample that was last written */
    size_t device_count;
};

/* Opens the file anew and writes the header; `path` NULL makes one that does nothing. */
enum wg_code wg__measure_csv_open(struct wg_measure_csv *csv, const char *path, size_t device_count,
                                  struct wg_error *err);

/* Adds a sample, unless it was added before or was taken before the start. */
void wg__measure_csv_add(struct wg_measure_csv *csv, size_t run, size_t device, const char *label,
                         const struct wg_sample *sample);

/* Writes what was added. After an error it is closed. */
enum wg_code wg__measure_csv_flush(struct wg_measure_csv *csv, struct wg_error *err);

/* Closes it; may be called twice. */
enum wg_code wg__measure_csv_close(struct wg_measure_csv *csv, struct wg_error *err);

#endif
