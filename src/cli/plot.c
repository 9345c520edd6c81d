/* SPDX-License-Identifier: MIT
 *
 * Layout and drawing of charts; see plot.h.
 *
 *     title                                     From top to bottom, each part takes the height that
 *     -o- legend  -x- legend  ...               it needs; what is left is the data area. If that is
 *     y title (unit)                            too little, the chart grows. The left margin
 * follows 20 +--------------------------+          from the widest y label. The y title lies flat:
 * it 10 |        data area         |          reads without turning one's head, and costs no 0
 * +--------------------------+          width. 1       50     100 x title (unit)
 *
 * All that is drawn lies within the ranges of the axes, which are chosen from it, so nothing needs
 * clipping.
 */
#include "cli/plot.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/buffer.h"
#include "cli/markup.h"
#include "cli/plot_axis.h"
#include "cli/plot_style.h"

/* Lengths in user units. */
static const double EDGE = 3; /* free space around everything */
static const double WIDTH_DEFAULT = 360;
static const double WIDTH_MIN = 200;
static const double HEIGHT_DEFAULT = 260;
static const double DATA_HEIGHT_MIN = 90;
static const double TITLE_HEIGHT = 24;
static const double LEGEND_ROW = 19;
static const double SWATCH = 22; /* the line or point in the legend */
static const double SWATCH_GAP = 6;
static const double LEGEND_GAP = 16;
static const double AXIS_TITLE_HEIGHT = 20;
static const double TICK_HEIGHT = 20;
static const double LABEL_GAP = 8; /* between tick labels and the data area, and between x labels */

enum { HOVER_TARGETS = 25 };

/* One entry of the legend. */
struct entry {
    const char *label;
    enum wg_plot_mark mark;
    enum wg_plot_color color;
};

struct frame {
    const struct wg_plot *plot;
    struct wg_buffer *out;
    double width, height;
    double left, right, top, bottom; /* of the data area */
    double legend_y, y_title_y;      /* upper edges */
    struct wg_ticks x, y;
};

static enum wg_plot_color color_of(const struct wg_plot *plot, size_t index)
{
    const struct wg_plot_series *series = &plot->series[index];
    if (series->color != WG_PLOT_AUTO || series->mark == WG_PLOT_BAND)
        return series->color;
    unsigned position = 0;
    for (size_t i = 0; i < index; i++)
        position += plot->series[i].color == WG_PLOT_AUTO && plot->series[i].mark != WG_PLOT_BAND;
    return (enum wg_plot_color)(WG_PLOT_BLUE + position % (WG_PLOT_YELLOW - WG_PLOT_BLUE + 1));
}

/* The `index`th entry of the legend, if it has one. */
static bool legend_entry(const struct wg_plot *plot, size_t index, struct entry *out)
{
    if (index < plot->series_count) {
        const struct wg_plot_series *series = &plot->series[index];
        *out = (struct entry){series->label, series->mark, color_of(plot, index)};
    } else {
        const struct wg_plot_reference *reference = &plot->references[index - plot->series_count];
        *out = (struct entry){reference->label, WG_PLOT_DASHED, reference->color};
    }
    return out->label != NULL;
}

static double x_of(const struct wg_plot_series *series, size_t i)
{
    return series->x != NULL ? series->x[i] : (double)(i + 1);
}

/* Whether point `i` of a series can be drawn on these axes. */
static bool has_point(const struct wg_plot *plot, const struct wg_plot_series *series, size_t i)
{
    return wg__ticks_accept(plot->x.scale, x_of(series, i)) &&
           wg__ticks_accept(plot->y.scale, series->y[i]) &&
           (series->mark != WG_PLOT_BAND || wg__ticks_accept(plot->y.scale, series->y_low[i]));
}

struct range {
    double min, max;
};

static void include(struct range *range, double value)
{
    range->min = fmin(range->min, value);
    range->max = fmax(range->max, value);
}

/* What the axes must show. */
static void find_ranges(const struct wg_plot *plot, struct range *x, struct range *y)
{
    *x = *y = (struct range){HUGE_VAL, -HUGE_VAL};
    for (size_t s = 0; s < plot->series_count; s++) {
        const struct wg_plot_series *series = &plot->series[s];
        for (size_t i = 0; i < series->count; i++) {
            if (!has_point(plot, series, i))
                continue;
            include(x, x_of(series, i));
            include(y, series->y[i]);
            if (series->mark == WG_PLOT_BAND)
                include(y, series->y_low[i]);
        }
    }
    for (size_t r = 0; r < plot->reference_count; r++) {
        const struct wg_plot_reference *reference = &plot->references[r];
        const enum wg_plot_scale scale = reference->is_vertical ? plot->x.scale : plot->y.scale;
        if (wg__ticks_accept(scale, reference->value))
            include(reference->is_vertical ? x : y, reference->value);
    }
}

/* Whether some series is made of points alone, which should not sit on the frame. */
static bool has_points(const struct wg_plot *plot)
{
    for (size_t s = 0; s < plot->series_count; s++)
        if (plot->series[s].mark == WG_PLOT_POINTS)
            return true;
    return false;
}

static void draw_swatch(const struct entry *entry, double x, double y, struct wg_buffer *out)
{
    wg__buffer_printf(out, "<g class=\"c%d\">", (int)entry->color);
    if (entry->mark == WG_PLOT_BAND)
        wg__buffer_printf(out,
                          "<rect class=\"b\" x=\"%.1f\" y=\"%.1f\" width=\"%.0f\" "
                          "height=\"10\"/>",
                          x, y - 5, SWATCH);
    else if (entry->mark != WG_PLOT_POINTS)
        wg__buffer_printf(out,
                          "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
                          "y2=\"%.1f\"/>",
                          entry->mark == WG_PLOT_DASHED ? "d" : "l", x + 1, y, x + SWATCH - 1, y);
    if (entry->mark == WG_PLOT_LINE || entry->mark == WG_PLOT_STEP || entry->mark == WG_PLOT_POINTS)
        wg__plot_marker(entry->color, x + SWATCH / 2.0, y, "p", "", out);
    wg__buffer_puts(out, "</g>");
}

/* Lays out the legend from `y` down, and draws it if asked to; returns its height. */
static double lay_legend(const struct frame *frame, double y, bool is_drawing)
{
    const struct wg_plot *plot = frame->plot;
    if (plot->without_legend)
        return 0;
    const double widest = frame->width - 2 * EDGE;
    double x = EDGE, height = 0;
    for (size_t i = 0; i < plot->series_count + plot->reference_count; i++) {
        struct entry entry;
        if (!legend_entry(plot, i, &entry))
            continue;
        const double room = widest - SWATCH - SWATCH_GAP;
        const double text_width = fmin(wg__plot_text_width(entry.label, WG_PLOT_TEXT), room);
        const double item_width = SWATCH + SWATCH_GAP + text_width;
        if (height == 0) {
            height = LEGEND_ROW;
        } else if (x + item_width > EDGE + widest) {
            height += LEGEND_ROW;
            x = EDGE;
        }
        if (is_drawing) {
            const double middle = y + height - LEGEND_ROW / 2.0;
            draw_swatch(&entry, x, middle, frame->out);
            wg__buffer_printf(frame->out, "<text class=\"k\" x=\"%.1f\" y=\"%.1f\">",
                              x + SWATCH + SWATCH_GAP, middle + 4);
            if (wg__plot_text_fit(entry.label, WG_PLOT_TEXT, room, frame->out)) {
                wg__buffer_puts(frame->out, "<title>");
                wg__append_escaped(frame->out, entry.label);
                wg__buffer_puts(frame->out, "</title>");
            }
            wg__buffer_puts(frame->out, "</text>\n");
        }
        x += item_width + LEGEND_GAP;
    }
    return height > 0 ? height + 4 : 0;
}

/* Whether the x labels stand apart from each other. */
static bool x_labels_fit(const struct frame *frame)
{
    double last_end = -HUGE_VAL;
    for (size_t i = 0; i < frame->x.count; i++) {
        const double half = wg__plot_text_width(frame->x.labels[i], WG_PLOT_TEXT) / 2;
        const double center = frame->left + wg__ticks_place(&frame->x, frame->x.values[i]) *
                                                (frame->right - frame->left);
        if (center - half < last_end + LABEL_GAP)
            return false;
        last_end = center + half;
    }
    return true;
}

static void lay_out(struct frame *frame)
{
    const struct wg_plot *plot = frame->plot;
    frame->width = fmax(plot->width != 0 ? plot->width : WIDTH_DEFAULT, WIDTH_MIN);
    frame->height = plot->height != 0 ? plot->height : HEIGHT_DEFAULT;
    double y = EDGE + (plot->title != NULL ? TITLE_HEIGHT : 0);
    frame->legend_y = y;
    y += lay_legend(frame, y, false);
    frame->y_title_y = y;
    y += plot->y.title != NULL ? AXIS_TITLE_HEIGHT : 0;
    frame->top = y + LABEL_GAP;
    const double below = TICK_HEIGHT + (plot->x.title != NULL ? AXIS_TITLE_HEIGHT : 0) + EDGE;
    frame->height = fmax(frame->height, frame->top + DATA_HEIGHT_MIN + below);
    frame->bottom = frame->height - below;

    struct range x_range, y_range;
    find_ranges(plot, &x_range, &y_range);
    const double data_height = frame->bottom - frame->top;
    wg__ticks_choose(&frame->y, &plot->y, y_range.min, y_range.max,
                     (unsigned)fmin(fmax(data_height / 32, 2), 7), false);
    double widest = 0;
    for (size_t i = 0; i < frame->y.count; i++)
        widest = fmax(widest, wg__plot_text_width(frame->y.labels[i], WG_PLOT_TEXT));
    frame->left = EDGE + widest + LABEL_GAP;

    /* Half of the last x label may reach beyond the data area. */
    for (unsigned wanted = (unsigned)fmax((frame->width - frame->left) / 60, 2);; wanted--) {
        wg__ticks_choose(&frame->x, &plot->x, x_range.min, x_range.max, wanted, !has_points(plot));
        const char *last = frame->x.count > 0 ? frame->x.labels[frame->x.count - 1] : "";
        frame->right =
            frame->width - EDGE - fmax(wg__plot_text_width(last, WG_PLOT_TEXT) / 2, LABEL_GAP);
        if (wanted == 1 || x_labels_fit(frame))
            break;
    }
}

static double place_x(const struct frame *frame, double value)
{
    return frame->left + wg__ticks_place(&frame->x, value) * (frame->right - frame->left);
}

static double place_y(const struct frame *frame, double value)
{
    return frame->bottom - wg__ticks_place(&frame->y, value) * (frame->bottom - frame->top);
}

static void draw_line(const struct frame *frame, const char *class_name, double x1, double y1,
                      double x2, double y2)
{
    wg__buffer_printf(frame->out,
                      "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
                      class_name, x1, y1, x2, y2);
}

/* An axis title with its unit: "Energy (MJ)". */
static void draw_axis_title(const struct frame *frame, const struct wg_plot_axis *axis,
                            const char *prefix, bool is_centered, double y)
{
    if (axis->title == NULL)
        return;
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_puts(&text, axis->title);
    if (axis->unit != NULL)
        wg__buffer_printf(&text, " (%s%s)", prefix, axis->unit);
    frame->out->failed |= text.failed;
    if (!text.failed) {
        const double room = frame->width - 2 * EDGE;
        const double width = fmin(wg__plot_text_width(text.data, WG_PLOT_TEXT), room);
        const double center = (frame->left + frame->right) / 2;
        const double x = is_centered ? fmin(center, frame->width - EDGE - width / 2) : EDGE;
        wg__buffer_printf(frame->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">",
                          is_centered ? "m" : "", x, y);
        (void)wg__plot_text_fit(text.data, WG_PLOT_TEXT, room, frame->out);
        wg__buffer_puts(frame->out, "</text>\n");
    }
    wg__buffer_fini(&text);
}

static void draw_axes(const struct frame *frame)
{
    struct wg_buffer *out = frame->out;
    double last_y = HUGE_VAL; /* labels go upward */
    for (size_t i = 0; i < frame->y.count; i++) {
        const double y = place_y(frame, frame->y.values[i]);
        draw_line(frame, "g", frame->left, y, frame->right, y);
        if (last_y - y < WG_PLOT_TEXT + 2)
            continue;
        last_y = y;
        wg__buffer_printf(out, "<text class=\"e\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                          frame->left - LABEL_GAP, y + 4, frame->y.labels[i]);
    }
    double last_end = -HUGE_VAL;
    for (size_t i = 0; i < frame->x.count; i++) {
        const double x = place_x(frame, frame->x.values[i]);
        const double half = wg__plot_text_width(frame->x.labels[i], WG_PLOT_TEXT) / 2;
        draw_line(frame, "g", x, frame->top, x, frame->bottom);
        draw_line(frame, "a", x, frame->bottom, x, frame->bottom + 4);
        const double center = fmin(fmax(x, half + 2), frame->width - half - 2);
        if (center - half < last_end + 2)
            continue;
        last_end = center + half;
        wg__buffer_printf(out, "<text class=\"m\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", center,
                          frame->bottom + TICK_HEIGHT - 3, frame->x.labels[i]);
    }
    draw_line(frame, "a", frame->left, frame->bottom, frame->right, frame->bottom);
    draw_axis_title(frame, &frame->plot->y, frame->y.unit_prefix, false,
                    frame->y_title_y + WG_PLOT_TEXT + 2);
    draw_axis_title(frame, &frame->plot->x, frame->x.unit_prefix, true, frame->height - EDGE - 2);
}

/* The end of the run of drawable points that begins at `first`. */
static size_t run_end(const struct frame *frame, const struct wg_plot_series *series, size_t first)
{
    size_t end = first;
    while (end < series->count && has_point(frame->plot, series, end))
        end++;
    return end;
}

static void draw_band_run(const struct frame *frame, const struct wg_plot_series *series,
                          size_t first, size_t end)
{
    wg__buffer_puts(frame->out, "<polygon class=\"b\" points=\"");
    for (size_t i = first; i < end; i++)
        wg__buffer_printf(frame->out, "%.1f,%.1f ", place_x(frame, x_of(series, i)),
                          place_y(frame, series->y[i]));
    for (size_t i = end; i-- > first;)
        wg__buffer_printf(frame->out, "%.1f,%.1f ", place_x(frame, x_of(series, i)),
                          place_y(frame, series->y_low[i]));
    wg__buffer_puts(frame->out, "\"/>\n");
}

static void draw_line_run(const struct frame *frame, const struct wg_plot_series *series,
                          size_t first, size_t end)
{
    if (end == first + 1) { /* alone between gaps: a line of no length is a round dot */
        const double x = place_x(frame, x_of(series, first));
        const double y = place_y(frame, series->y[first]);
        draw_line(frame, "l", x, y, x, y);
        return;
    }
    wg__buffer_printf(frame->out, "<polyline class=\"%s\" points=\"",
                      series->mark == WG_PLOT_DASHED ? "d" : "l");
    for (size_t i = first; i < end; i++) {
        const double x = place_x(frame, x_of(series, i));
        if (series->mark == WG_PLOT_STEP && i > first)
            wg__buffer_printf(frame->out, "%.1f,%.1f ", x, place_y(frame, series->y[i - 1]));
        wg__buffer_printf(frame->out, "%.1f,%.1f ", x, place_y(frame, series->y[i]));
    }
    wg__buffer_puts(frame->out, "\"/>\n");
}

/* The tooltip of a point, as a <title> element. */
static void make_tooltip(const struct frame *frame, const struct wg_plot_series *series, size_t i,
                         struct wg_buffer *out)
{
    const struct wg_plot *plot = frame->plot;
    char x[64], y[64];
    wg__buffer_puts(out, "<title>");
    if (series->point_labels != NULL) {
        wg__append_escaped(out, series->point_labels[i]);
    } else {
        wg__format_quantity(x, sizeof x, x_of(series, i), plot->x.unit);
        wg__format_quantity(y, sizeof y, series->y[i], plot->y.unit);
        if (series->label != NULL) {
            wg__append_escaped(out, series->label);
            wg__buffer_puts(out, "\n");
        }
        wg__append_escaped(out, plot->x.title != NULL ? plot->x.title : "x");
        wg__buffer_puts(out, ": ");
        wg__append_escaped(out, x);
        wg__buffer_puts(out, "\n");
        wg__append_escaped(out, plot->y.title != NULL ? plot->y.title : "y");
        wg__buffer_puts(out, ": ");
        wg__append_escaped(out, y);
    }
    wg__buffer_puts(out, "</title>");
}

static void draw_tooltip_point(const struct frame *frame, const struct wg_plot_series *series,
                               size_t i, enum wg_plot_color color, const char *class_name)
{
    struct wg_buffer tooltip;
    wg__buffer_init(&tooltip);
    make_tooltip(frame, series, i, &tooltip);
    frame->out->failed |= tooltip.failed;
    const double x = place_x(frame, x_of(series, i)), y = place_y(frame, series->y[i]);
    if (!tooltip.failed)
        wg__plot_marker(color, x, y, class_name, tooltip.data, frame->out);
    wg__buffer_fini(&tooltip);
}

/* Markers: of a points series all; of a line the last, and invisible ones to hover over. */
static void draw_markers(const struct frame *frame, const struct wg_plot_series *series,
                         enum wg_plot_color color)
{
    const bool is_line = series->mark != WG_PLOT_POINTS;
    const size_t stride = is_line ? (series->count + HOVER_TARGETS - 1) / HOVER_TARGETS : 1;
    size_t last = series->count;
    for (size_t i = 0; i < series->count; i++) {
        if (!has_point(frame->plot, series, i))
            continue;
        last = i;
        if (i % stride == 0)
            draw_tooltip_point(frame, series, i, color, is_line ? "h" : "p");
    }
    if (is_line && series->mark != WG_PLOT_DASHED && last < series->count)
        draw_tooltip_point(frame, series, last, color, "p");
}

static void draw_series(const struct frame *frame, size_t index)
{
    const struct wg_plot_series *series = &frame->plot->series[index];
    const enum wg_plot_color color = color_of(frame->plot, index);
    wg__buffer_printf(frame->out, "<g class=\"c%d\">\n", (int)color);
    for (size_t i = 0; i < series->count && series->mark != WG_PLOT_POINTS; i++) {
        const size_t end = run_end(frame, series, i);
        if (end == i)
            continue;
        if (series->mark == WG_PLOT_BAND)
            draw_band_run(frame, series, i, end);
        else
            draw_line_run(frame, series, i, end);
        i = end;
    }
    if (series->mark != WG_PLOT_BAND)
        draw_markers(frame, series, color);
    wg__buffer_puts(frame->out, "</g>\n");
}

/* From the line to the edge of the data area. */
static void shade(const struct frame *frame, const struct wg_plot_reference *reference)
{
    double left = frame->left, right = frame->right, top = frame->top, bottom = frame->bottom;
    const bool is_below = reference->shaded == WG_PLOT_BELOW;
    if (reference->shaded == WG_PLOT_NEITHER)
        return;
    if (reference->is_vertical)
        *(is_below ? &right : &left) = place_x(frame, reference->value);
    else
        *(is_below ? &top : &bottom) = place_y(frame, reference->value);
    wg__buffer_printf(frame->out,
                      "<rect class=\"b\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                      "height=\"%.1f\"/>",
                      left, top, fmax(0, right - left), fmax(0, bottom - top));
}

static void draw_references(const struct frame *frame)
{
    for (size_t r = 0; r < frame->plot->reference_count; r++) {
        const struct wg_plot_reference *reference = &frame->plot->references[r];
        const struct wg_ticks *ticks = reference->is_vertical ? &frame->x : &frame->y;
        if (!wg__ticks_accept(ticks->scale, reference->value))
            continue;
        wg__buffer_printf(frame->out, "<g class=\"c%d\">", (int)reference->color);
        if (reference->is_vertical) {
            const double x = place_x(frame, reference->value);
            draw_line(frame, "d", x, frame->top, x, frame->bottom);
        } else {
            const double y = place_y(frame, reference->value);
            draw_line(frame, "d", frame->left, y, frame->right, y);
        }
        shade(frame, reference);
        wg__buffer_puts(frame->out, "</g>\n");
    }
}

/* The opening tag, and the title above all. */
static void draw_head(const struct frame *frame)
{
    const struct wg_plot *plot = frame->plot;
    struct wg_buffer *out = frame->out;
    wg__buffer_printf(out, "<svg class=\"wg-plot\" viewBox=\"0 0 %.0f %.0f\" role=\"img\"",
                      frame->width, ceil(frame->height));
    if (plot->is_standalone)
        wg__buffer_printf(out,
                          " width=\"%.0f\" height=\"%.0f\" "
                          "xmlns=\"http://www.w3.org/2000/svg\"",
                          frame->width, ceil(frame->height));
    else
        wg__buffer_printf(out, " style=\"max-width:%.0fpx\"", 1.15 * frame->width);
    wg__buffer_puts(out, " aria-label=\"");
    wg__append_escaped(out, plot->title != NULL ? plot->title : "chart");
    wg__buffer_puts(out, "\">\n");
    if (plot->is_standalone) {
        wg__buffer_puts(out, "<style>\n");
        wg__plot_css(out);
        wg__buffer_puts(out, "</style>\n");
    }
    if (plot->title == NULL)
        return;
    wg__buffer_printf(out, "<text class=\"t\" x=\"%.0f\" y=\"%.0f\">", EDGE, EDGE + WG_PLOT_TITLE);
    if (wg__plot_text_fit(plot->title, WG_PLOT_TITLE, frame->width - 2 * EDGE, out)) {
        wg__buffer_puts(out, "<title>");
        wg__append_escaped(out, plot->title);
        wg__buffer_puts(out, "</title>");
    }
    wg__buffer_puts(out, "</text>\n");
}

void wg__plot_write(const struct wg_plot *plot, struct wg_buffer *out)
{
    struct frame frame = {.plot = plot, .out = out};
    lay_out(&frame);
    draw_head(&frame);
    (void)lay_legend(&frame, frame.legend_y, true);
    draw_axes(&frame);
    for (size_t s = 0; s < plot->series_count; s++)
        if (plot->series[s].mark == WG_PLOT_BAND)
            draw_series(&frame, s);
    draw_references(&frame);
    for (size_t s = 0; s < plot->series_count; s++)
        if (plot->series[s].mark != WG_PLOT_BAND)
            draw_series(&frame, s);
    wg__buffer_puts(out, "</svg>\n");
}

void wg__plot_legend_html(const struct wg_plot *plot, struct wg_buffer *out)
{
    wg__buffer_puts(out, "<p class=\"legend\">");
    for (size_t i = 0; i < plot->series_count + plot->reference_count; i++) {
        struct entry entry;
        if (!legend_entry(plot, i, &entry))
            continue;
        wg__buffer_printf(out, "<span><svg class=\"wg-plot\" viewBox=\"0 0 %.0f 12\">", SWATCH);
        draw_swatch(&entry, 0, 6, out);
        wg__buffer_puts(out, "</svg>");
        wg__append_escaped(out, entry.label);
        wg__buffer_puts(out, "</span>\n");
    }
    wg__buffer_puts(out, "</p>\n");
}
