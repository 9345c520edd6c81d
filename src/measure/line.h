/* SPDX-License-Identifier: MIT
 *
 * A line of running sums over time: what a device has drawn, idled and been throttled up to t.
 *
 * Every quantity of a window is the difference of a running sum at its two edges. The sums are
 * points of a line, straight between them, that only ever grows at its end:
 *
 *     sum  |                 ____o      a point is final once it is appended, so every window that
 *          |          o-----'           asks for the same moment gets the same answer: windows that
 *          |     __.-'                  follow each other add up exactly, nested ones never exceed
 *          | o--'                       what holds them. This is the whole proof of conservation.
 *          +--------------------- t
 *
 * Only the last WG_LINE_POINTS points are kept. A window takes the sums at its edges as soon as the
 * line has passed them, so memory does not depend on how long a window is.
 *
 * Owns: its points.    Threads: one at a time.
 */
#ifndef WG_MEASURE_LINE_H
#define WG_MEASURE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WG_LINE_POINTS = 128, WG_LINE_COLUMNS = 12 };

struct wg_line_point {
    uint64_t t_ns;
    double sums[WG_LINE_COLUMNS];
    /* Of the first sum: how far this point may be off, and by how much its rate may have changed
     * within the stretch that ends here (a step that the straight line hides). */
    double error;
    double bend;
};

struct wg_line {
    struct wg_line_point points[WG_LINE_POINTS]; /* a ring */
    size_t count;                                /* ever appended */
};

/* A moment on the line. */
struct wg_line_moment {
    double sums[WG_LINE_COLUMNS];
    double error;         /* of the first sum: half width, from the points and the bend */
    uint64_t stretch_ns;  /* length of the stretch that holds the moment; 0: outside of the line */
    uint64_t begin_ns;    /* of that stretch */
    uint64_t distance_ns; /* from the moment to the line, when it lies outside */
};

void wg__line_init(struct wg_line *line);

/* The last point; NULL: there is none yet. */
const struct wg_line_point *wg__line_last(const struct wg_line *line);

/* Appends a copy; its time must be after the last point's. */
void wg__line_append(struct wg_line *line, const struct wg_line_point *point);

/* Whether the line has reached `t_ns`: what it says there will not change any more. */
bool wg__line_reaches(const struct wg_line *line, uint64_t t_ns);

/* The sums at `t_ns`; outside of the points kept, those of the nearest. */
void wg__line_at(const struct wg_line *line, uint64_t t_ns, struct wg_line_moment *out);

#endif
