/* SPDX-License-Identifier: MIT
 *
 * Charts as SVG text.
 *
 * A chart is described by one struct and written into a buffer: no state, no drawing calls. The
 * legend stands above the data area, never over it; margins are computed from the widest label with
 * deliberately generous character widths, because the reader's font is unknown. Colours are those
 * of Okabe and Ito (distinct for colour-blind readers), and series differ in dash or point shape
 * too. All colours come from CSS variables, so that one chart serves light and dark screens and
 * paper.
 *
 *     const struct wg_plot plot = {
 *         .title = "BERT on A40", .x = {.title = "Recurrence", .is_whole = true},
 *         .y = {.title = "Cumulative cost", .unit = "J", .from_zero = true},
 *         .series = series, .series_count = 4};
 *     wg__plot_write(&plot, &out);
 *
 * A point is drawn if both numbers are finite, smaller than 1e300 in size, and positive on a
 * logarithmic axis; any other breaks the line there.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_PLOT_H
#define WG_CLI_PLOT_H

#include <stdbool.h>
#include <stddef.h>

struct wg_buffer;

enum wg_plot_scale {
    WG_PLOT_LINEAR,
    WG_PLOT_LOG,  /* ticks at 1, 10, 100; at 1, 2, 5, 10 when there are few */
    WG_PLOT_LOG2, /* ticks at powers of two: batch sizes */
};

struct wg_plot_axis {
    const char *title; /* "Energy"; NULL: none */
    const char *unit;  /* "J": shown behind the title, with a prefix for large numbers (MJ); NULL */
    enum wg_plot_scale scale;
    bool from_zero; /* linear: the axis includes 0 */
    bool is_whole;  /* linear: counts, so no tick between whole numbers */
};

enum wg_plot_mark {
    WG_PLOT_LINE,
    WG_PLOT_STEP,   /* a value holds until the next point */
    WG_PLOT_POINTS, /* markers without a line; each with a tooltip */
    WG_PLOT_DASHED, /* a dashed line: a yardstick */
    WG_PLOT_BAND,   /* filled between y_low and y: the spread of seeds */
};

/* Fixed colours, so that a policy looks the same in each figure. */
enum wg_plot_color {
    WG_PLOT_AUTO, /* by the series' position among the automatic ones; not for bands */
    WG_PLOT_BLUE,
    WG_PLOT_VERMILION,
    WG_PLOT_GREEN,
    WG_PLOT_PURPLE,
    WG_PLOT_ORANGE,
    WG_PLOT_SKY,
    WG_PLOT_YELLOW,
    WG_PLOT_INK,  /* the text's colour */
    WG_PLOT_GREY, /* for what stands back */
    WG_PLOT_COLOR_COUNT,
};

struct wg_plot_series {
    const char *label; /* in the legend and the tooltips; NULL: not in the legend */
    enum wg_plot_mark mark;
    enum wg_plot_color color;
    const double *x; /* NULL: 1, 2, 3, ... */
    const double *y;
    const double *y_low; /* bands only: the lower edge, y being the upper */
    size_t count;
    const char *const *point_labels; /* tooltips, `count` of them; NULL: made from the numbers */
};

enum wg_plot_side { WG_PLOT_NEITHER, WG_PLOT_BELOW, WG_PLOT_ABOVE };

/* A dashed line across the whole data area, labelled in the legend. */
struct wg_plot_reference {
    const char *label;
    double value;
    bool is_vertical; /* at x = value; else at y = value */
    enum wg_plot_color color;
    enum wg_plot_side shaded; /* tinted up to the edge: what is allowed */
};

struct wg_plot {
    const char *title; /* above the legend, and what a screen reader says */
    struct wg_plot_axis x;
    struct wg_plot_axis y;
    const struct wg_plot_series *series; /* drawn in this order, bands first */
    size_t series_count;
    const struct wg_plot_reference *references;
    size_t reference_count;
    unsigned width;      /* user units, a text being 12 high; 0: 360, a cell of a page's grid */
    unsigned height;     /* 0: 260; grows when the legend needs it */
    bool without_legend; /* small multiples that share one */
    bool is_standalone;  /* a file of its own: with XML namespace and styles */
};

/* Appends one <svg> element. */
void wg__plot_write(const struct wg_plot *plot, struct wg_buffer *out);

/* Appends a line of HTML that explains the colours, for a group of plots written without legends.
 */
void wg__plot_legend_html(const struct wg_plot *plot, struct wg_buffer *out);

/* Appends the CSS that charts in a page need, once a page (wg__page_begin does it). */
void wg__plot_css(struct wg_buffer *out);

#endif
