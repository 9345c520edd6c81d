/* SPDX-License-Identifier: MIT
 *
 * A chart of a few named values: bars from zero, each with its number and, where there is one, an
 * interval.
 *
 * For what lines can't show: the axis has names, not numbers. It looks like the charts of plot.h
 * and takes its colours from their style sheet.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_BAR_CHART_H
#define WG_CLI_BAR_CHART_H

#include <stddef.h>

#include "cli/plot.h"

struct wg_buffer;

struct wg_bar {
    const char *label; /* at the left */
    double value;      /* not finite or below 0: no bar */
    double low, high;  /* its interval; NAN: none */
    const char *text;  /* behind the bar */
    enum wg_plot_color color;
    double
        end_part; /* so much of the value, at the bar's end, is drawn pale: what could be saved */
};

struct wg_bar_chart {
    const char *title;
    const char *x_title;
    const struct wg_bar *bars; /* from the top down */
    size_t bar_count;
    unsigned width; /* user units; 0: 360, like a chart in a page's grid */
};

/* Appends one <svg> element. Labels are cut where they would take more than two fifths of it. */
void wg__bar_chart_write(const struct wg_bar_chart *chart, struct wg_buffer *out);

#endif
