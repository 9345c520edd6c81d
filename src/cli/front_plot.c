/* SPDX-License-Identifier: MIT
 *
 * Cost against a limited figure; see front_plot.h.
 */
#include "cli/front_plot.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/page.h"

/* -- The front -------------------------------------------------------------------------------- */

struct order {
    const struct wg_front_point *points;
    bool is_minimum;
};

/* Stricter figures first; of equal ones the cheaper. */
static int compare(const void *a, const void *b, void *context)
{
    const struct order *order = context;
    const struct wg_front_point *p = &order->points[*(const size_t *)a];
    const struct wg_front_point *q = &order->points[*(const size_t *)b];
    if (p->figure != q->figure)
        return (p->figure < q->figure) != order->is_minimum ? -1 : 1;
    return (p->cost > q->cost) - (p->cost < q->cost);
}

size_t wg__front_trace(const struct wg_front_point *points, size_t count, bool is_minimum,
                       size_t *order, double *x, double *y)
{
    struct order context = {points, is_minimum};
    size_t kept = 0, corners = 0;
    for (size_t i = 0; i < count; i++)
        if (points[i].counts && isfinite(points[i].figure) && isfinite(points[i].cost))
            order[kept++] = i;
    qsort_r(order, kept, sizeof *order, compare, &context);
    for (size_t i = 0; i < kept; i++) {
        if (corners > 0 && points[order[i]].cost >= y[corners - 1])
            continue;
        x[corners] = points[order[i]].figure;
        y[corners++] = points[order[i]].cost;
    }
    return corners;
}

/* -- The chart -------------------------------------------------------------------------------- */

/* The points sorted by group, as the plot wants them. */
struct columns {
    double *x, *y;
    const char **labels;
    double *front_x, *front_y;
    size_t *order;
};

static bool columns_init(struct columns *columns, size_t count)
{
    const size_t places = count + 1;
    columns->x = wg__alloc_zeroed(4 * places, sizeof *columns->x);
    columns->labels = wg__alloc_zeroed(places, sizeof *columns->labels);
    columns->order = wg__alloc_zeroed(places, sizeof *columns->order);
    if (columns->x == NULL || columns->labels == NULL || columns->order == NULL)
        return false;
    columns->y = columns->x + places;
    columns->front_x = columns->y + places;
    columns->front_y = columns->front_x + places;
    return true;
}

static void columns_fini(struct columns *columns)
{
    wg__free(columns->x);
    wg__free(columns->labels);
    wg__free(columns->order);
}

/* Appends the points of a group at `*at` and makes a series of them; false: there are none. */
static bool take_group(const struct wg_front *front, size_t group, struct columns *columns,
                       size_t *at, struct wg_plot_series *out)
{
    const size_t first = *at;
    for (size_t i = 0; i < front->point_count; i++) {
        const struct wg_front_point *point = &front->points[i];
        if (point->group != group || !isfinite(point->figure) || !isfinite(point->cost))
            continue;
        columns->x[*at] = point->figure;
        columns->y[*at] = point->cost;
        columns->labels[(*at)++] = point->label;
    }
    *out = (struct wg_plot_series){.label = front->groups[group].label,
                                   .mark = WG_PLOT_POINTS,
                                   .color = front->groups[group].color,
                                   .x = columns->x + first,
                                   .y = columns->y + first,
                                   .count = *at - first,
                                   .point_labels = columns->labels + first};
    return *at > first;
}

static void draw(struct wg_page *page, const struct wg_front *front, struct columns *columns,
                 const char *caption)
{
    struct wg_plot_series series[1 + WG_FRONT_GROUPS_MAX];
    size_t count = 0, at = 0;
    const size_t corners = wg__front_trace(front->points, front->point_count, front->is_minimum,
                                           columns->order, columns->front_x, columns->front_y);
    if (corners > 0) {
        series[0] = (struct wg_plot_series){.label = "front",
                                            .mark = WG_PLOT_STEP,
                                            .color = WG_PLOT_INK,
                                            .x = columns->front_x,
                                            .y = columns->front_y,
                                            .count = corners};
        count = 1;
    }
    for (size_t group = 0; group < front->group_count; group++)
        count += take_group(front, group, columns, &at, &series[count]);
    const struct wg_plot_reference bound = {.label = "limit: allowed where tinted",
                                            .value = front->bound,
                                            .is_vertical = true,
                                            .color = WG_PLOT_GREEN,
                                            .shaded =
                                                front->is_minimum ? WG_PLOT_ABOVE : WG_PLOT_BELOW};
    const struct wg_plot plot = {.title = front->title,
                                 .x = front->x,
                                 .y = front->y,
                                 .series = series,
                                 .series_count = count,
                                 .references = isfinite(front->bound) ? &bound : NULL,
                                 .reference_count = isfinite(front->bound) ? 1 : 0,
                                 .width = front->width,
                                 .height = front->height};
    wg__page_figure(page, &plot, caption);
}

void wg__front_figure(struct wg_page *page, const struct wg_front *front, const char *caption)
{
    struct columns columns = {0};
    assert(front->group_count <= WG_FRONT_GROUPS_MAX);
    if (columns_init(&columns, front->point_count))
        draw(page, front, &columns, caption);
    else
        page->out->failed = true;
    columns_fini(&columns);
}
