/* SPDX-License-Identifier: MIT
 *
 * The ring of points, and straight lines between them.
 *
 * How far off a moment is: let it lie at the share x of a stretch of length s. Its ends are known
 * to
 * +- e0 and +- e1, which mix as (1 - x) e0 + x e1. Between them the rate may have made one step of
 * size `bend` at an unknown place; the straight line is then off by at most bend * s * x * (1 - x),
 * reached when the step is just here. The two are independent, so their squares add.
 *
 * Threads: one at a time.
 */
#include "measure/line.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void wg__line_init(struct wg_line *line)
{
    line->count = 0;
}

static const struct wg_line_point *point_at(const struct wg_line *line, size_t index)
{
    return &line->points[index % WG_LINE_POINTS];
}

const struct wg_line_point *wg__line_last(const struct wg_line *line)
{
    return line->count > 0 ? point_at(line, line->count - 1) : NULL;
}

void wg__line_append(struct wg_line *line, const struct wg_line_point *point)
{
    assert(line->count == 0 || point->t_ns > wg__line_last(line)->t_ns);
    line->points[line->count % WG_LINE_POINTS] = *point;
    line->count++;
}

bool wg__line_reaches(const struct wg_line *line, uint64_t t_ns)
{
    return line->count > 0 && wg__line_last(line)->t_ns >= t_ns;
}

static void copy_point(const struct wg_line_point *point, uint64_t distance_ns,
                       struct wg_line_moment *out)
{
    memcpy(out->sums, point->sums, sizeof out->sums);
    out->error = point->error;
    out->stretch_ns = 0;
    out->begin_ns = point->t_ns;
    out->distance_ns = distance_ns;
}

void wg__line_at(const struct wg_line *line, uint64_t t_ns, struct wg_line_moment *out)
{
    assert(line->count > 0);
    size_t high = line->count - 1;
    size_t low = line->count > WG_LINE_POINTS ? line->count - WG_LINE_POINTS : 0;
    const struct wg_line_point *last = point_at(line, high);
    const struct wg_line_point *first = point_at(line, low);
    if (t_ns >= last->t_ns && (t_ns > last->t_ns || high == low)) {
        copy_point(last, t_ns - last->t_ns, out);
        return;
    }
    if (t_ns < first->t_ns) {
        copy_point(first, first->t_ns - t_ns, out);
        return;
    }
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (point_at(line, middle)->t_ns <= t_ns)
            low = middle;
        else
            high = middle;
    }
    const struct wg_line_point *a = point_at(line, low), *b = point_at(line, high);
    const uint64_t stretch_ns = b->t_ns - a->t_ns;
    const double x = (double)(t_ns - a->t_ns) / (double)stretch_ns;
    for (size_t i = 0; i < WG_LINE_COLUMNS; i++)
        out->sums[i] = a->sums[i] + (b->sums[i] - a->sums[i]) * x;
    const double ends = (1 - x) * a->error + x * b->error;
    const double shape = b->bend * (double)stretch_ns * 1e-9 * x * (1 - x);
    out->error = hypot(ends, shape);
    out->stretch_ns = stretch_ns;
    out->begin_ns = a->t_ns;
    out->distance_ns = 0;
}
