/* SPDX-License-Identifier: MIT
 *
 * One chart of cost against a limited figure: what was measured, the front, and where it is
 * allowed.
 *
 * The front is the least cost that is to be had for each value of the figure, over the points that
 * may lie on it; it is drawn as steps, because between two points nothing was seen. The side of the
 * bound that is allowed is tinted. Both `wattgov tune` (trials) and `wattgov simulate tuning`
 * (all of a grid) show their results by it.
 *
 *     const struct wg_front front = {
 *         .groups = groups, .group_count = 3, .points = points, .point_count = count,
 *         .x = {.title = "p99_s"}, .y = {.title = "energy_per_request_j"}, .bound = 0.1};
 *     wg__front_figure(&page, &front, "Each point is a trial.");
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_FRONT_PLOT_H
#define WG_CLI_FRONT_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/plot.h"

struct wg_page;

enum { WG_FRONT_GROUPS_MAX = 12 };

/* Points that look alike; drawn in their order, empty ones not at all. */
struct wg_front_group {
    const char *label;
    enum wg_plot_color color;
};

struct wg_front_point {
    double figure, cost; /* not finite: not drawn */
    size_t group;
    bool counts;       /* may lie on the front */
    const char *label; /* tooltip */
};

struct wg_front {
    const char *title;
    struct wg_plot_axis x, y;
    const struct wg_front_group *groups;
    size_t group_count; /* at most WG_FRONT_GROUPS_MAX */
    const struct wg_front_point *points;
    size_t point_count;
    double bound;    /* of the figure; NAN: none */
    bool is_minimum; /* figures from the bound upwards are allowed, and more is better */
    unsigned width, height;
};

/* The front's corners, from the strictest figure to the loosest; `x` and `y` hold at least `count`
 * numbers. Returns how many there are. `order` is scratch of `count` numbers. */
size_t wg__front_trace(const struct wg_front_point *points, size_t count, bool is_minimum,
                       size_t *order, double *x, double *y);

/* Appends the chart; the page's buffer has failed when memory runs out. */
void wg__front_figure(struct wg_page *page, const struct wg_front *front, const char *caption);

#endif
