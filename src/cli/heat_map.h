/* SPDX-License-Identifier: MIT
 *
 * A chart of shares over time: one row per choice, the darker a cell, the more often it was chosen.
 *
 * Made for what a policy chose in the course of a job's recurrences: with many seeds the choices
 * are a distribution per recurrence, which lines can't show and which stacked areas show badly when
 * there are twenty choices. It looks like the charts of plot.h and takes its colours from their
 * style sheet.
 *
 * Cells of the same darkness are one path, so a map of 100 x 20 cells stays below 10 KB.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_HEAT_MAP_H
#define WG_CLI_HEAT_MAP_H

#include <stddef.h>

#include "cli/plot.h"

struct wg_buffer;

struct wg_heat_row {
    const char *label; /* at the left */
    const char *note;  /* behind it: "default"; NULL: nothing */
    size_t column;     /* of `shares` */
};

struct wg_heat_map {
    const char *title;
    const char *x_title;
    const char *y_title;
    enum wg_plot_color color;
    double x_last;                  /* the bins span 0 .. x_last evenly */
    const struct wg_heat_row *rows; /* from the top down */
    size_t row_count;
    const float *shares; /* [bin][stride], 0..1 */
    size_t bin_count;
    size_t stride;
};

/* Appends one <svg> element, 360 user units wide like a chart in a page's grid. */
void wg__heat_map_write(const struct wg_heat_map *map, struct wg_buffer *out);

#endif
