/* SPDX-License-Identifier: MIT
 *
 * An axis of a chart: its range, its ticks, and their labels.
 *
 * Ticks are whole multiples of 1, 2 or 5 times a power of ten (Heckbert's "nice numbers", Graphics
 * Gems I, 1990), computed as integers and divided at the end, so that 0.3 is 0.3 and not 3 x 0.1.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_PLOT_AXIS_H
#define WG_CLI_PLOT_AXIS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/plot.h"

enum { WG_TICKS_MAX = 24, WG_TICK_LABEL_BYTES = 32 };

struct wg_ticks {
    enum wg_plot_scale scale;
    double low; /* the axis' ends, as values, low < high */
    double high;
    size_t count;
    double values[WG_TICKS_MAX]; /* ascending, within low .. high */
    char labels[WG_TICKS_MAX][WG_TICK_LABEL_BYTES];
    const char *unit_prefix; /* what stands before the axis' unit: "M", or "" */
};

/* Whether a value has a place on an axis. */
bool wg__ticks_accept(enum wg_plot_scale scale, double value);

/* Chooses about `wanted` ticks for data in min .. max (both accepted; min > max: no data). With
 * `is_snug` the axis ends where the data does, else at a tick. */
void wg__ticks_choose(struct wg_ticks *ticks, const struct wg_plot_axis *axis, double min,
                      double max, unsigned wanted, bool is_snug);

/* Where an accepted value lies on the axis: 0 at its low end, 1 at the high end. */
double wg__ticks_place(const struct wg_ticks *ticks, double value);

/* A value for people: "12.3 MJ", "0.25 s", "1 200". `unit` may be NULL. */
void wg__format_quantity(char *text, size_t size, double value, const char *unit);

#endif
