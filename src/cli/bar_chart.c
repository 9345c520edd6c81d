/* SPDX-License-Identifier: MIT
 *
 * Drawing of bar charts: see bar_chart.h.
 */
#include "cli/bar_chart.h"

#include <math.h>
#include <stdbool.h>

#include "base/buffer.h"
#include "cli/markup.h"
#include "cli/plot_axis.h"
#include "cli/plot_style.h"

/* Lengths in user units. */
static const double WIDTH_DEFAULT = 360;
static const double LABEL_SHARE = 0.4; /* of the width, at most */
static const double EDGE = 3;
static const double TOP = 32;
static const double ROW_HEIGHT = 26;
static const double BAR_HEIGHT = 15;
static const double GAP = 8;
static const double TICK_HEIGHT = 20;
static const double AXIS_TITLE_HEIGHT = 20;

struct layout {
    const struct wg_bar_chart *chart;
    struct wg_buffer *out;
    double width, left, right, bottom;
    struct wg_ticks x;
};

static bool has_bar(const struct wg_bar *bar)
{
    return isfinite(bar->value) && bar->value >= 0;
}

static bool has_interval(const struct wg_bar *bar)
{
    return has_bar(bar) && isfinite(bar->low) && isfinite(bar->high);
}

static void lay_out(struct layout *layout)
{
    const struct wg_bar_chart *chart = layout->chart;
    double label_width = 0, text_width = 0, most = 0;
    for (size_t i = 0; i < chart->bar_count; i++) {
        const struct wg_bar *bar = &chart->bars[i];
        label_width = fmax(label_width, wg__plot_text_width(bar->label, WG_PLOT_TEXT));
        text_width = fmax(text_width, wg__plot_text_width(bar->text, WG_PLOT_TEXT));
        if (has_bar(bar))
            most = fmax(most, bar->value);
        if (has_interval(bar))
            most = fmax(most, bar->high);
    }
    layout->width = chart->width > 0 ? chart->width : WIDTH_DEFAULT;
    layout->left = EDGE + fmin(label_width, LABEL_SHARE * layout->width) + GAP;
    layout->right = layout->width - EDGE - text_width - GAP;
    layout->bottom = TOP + ROW_HEIGHT * (double)chart->bar_count;
    const struct wg_plot_axis axis = {.from_zero = true};
    wg__ticks_choose(&layout->x, &axis, 0, most > 0 ? most : 1, 4, true);
}

static double place(const struct layout *layout, double value)
{
    return layout->left +
           wg__ticks_place(&layout->x, fmax(value, 0)) * (layout->right - layout->left);
}

static void draw_part(const struct layout *layout, const struct wg_bar *bar, double middle,
                      double from, double to, const char *opacity)
{
    wg__buffer_printf(layout->out,
                      "<rect class=\"c%d\" fill=\"currentColor\" fill-opacity=\"%s\" "
                      "x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\"/>\n",
                      (int)bar->color, opacity, from, middle - BAR_HEIGHT / 2, to - from,
                      BAR_HEIGHT);
}

static void draw_bar(const struct layout *layout, size_t index)
{
    const struct wg_bar *bar = &layout->chart->bars[index];
    struct wg_buffer *out = layout->out;
    const double middle = TOP + ROW_HEIGHT * ((double)index + 0.5);
    double end = layout->left;
    wg__buffer_printf(out, "<text class=\"e k\" x=\"%.1f\" y=\"%.1f\">", layout->left - GAP,
                      middle + 4);
    (void)wg__plot_text_fit(bar->label, WG_PLOT_TEXT, LABEL_SHARE * layout->width, out);
    wg__buffer_puts(out, "</text>\n");
    if (has_bar(bar)) {
        const bool has_part = bar->end_part > 0 && bar->end_part <= bar->value;
        const double split = place(layout, bar->value - (has_part ? bar->end_part : 0));
        end = place(layout, bar->value);
        draw_part(layout, bar, middle, layout->left, split, ".8");
        if (has_part)
            draw_part(layout, bar, middle, split, end, ".3");
    }
    if (has_interval(bar)) {
        const double low = place(layout, bar->low), high = place(layout, bar->high);
        wg__buffer_printf(out,
                          "<path class=\"c%d l\" d=\"M%.1f %.1fv8M%.1f %.1fh%.1fM%.1f "
                          "%.1fv8\"/>\n",
                          WG_PLOT_INK, low, middle - 4, low, middle, high - low, high, middle - 4);
        end = fmax(end, high);
    }
    wg__buffer_printf(out, "<text x=\"%.1f\" y=\"%.1f\">", end + GAP, middle + 4);
    wg__append_escaped(out, bar->text);
    wg__buffer_puts(out, "</text>\n");
}

static void draw_axis(const struct layout *layout)
{
    struct wg_buffer *out = layout->out;
    for (size_t i = 0; i < layout->x.count; i++) {
        const double x = place(layout, layout->x.values[i]);
        wg__buffer_printf(out,
                          "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n"
                          "<text class=\"m\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                          i == 0 ? "a" : "g", x, TOP, x, layout->bottom, x,
                          layout->bottom + TICK_HEIGHT - 4, layout->x.labels[i]);
    }
    wg__buffer_printf(out, "<text class=\"m\" x=\"%.1f\" y=\"%.1f\">",
                      (layout->left + layout->right) / 2,
                      layout->bottom + TICK_HEIGHT + AXIS_TITLE_HEIGHT - 6);
    wg__append_escaped(out, layout->chart->x_title);
    wg__buffer_puts(out, "</text>\n");
}

void wg__bar_chart_write(const struct wg_bar_chart *chart, struct wg_buffer *out)
{
    struct layout layout = {.chart = chart, .out = out};
    lay_out(&layout);
    wg__buffer_printf(out,
                      "<svg class=\"wg-plot\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
                      "style=\"max-width:%.0fpx\" aria-label=\"",
                      layout.width, ceil(layout.bottom + TICK_HEIGHT + AXIS_TITLE_HEIGHT + EDGE),
                      1.15 * layout.width);
    wg__append_escaped(out, chart->title);
    wg__buffer_printf(out, "\">\n<text class=\"t\" x=\"%.0f\" y=\"%.0f\">", EDGE,
                      EDGE + WG_PLOT_TITLE);
    (void)wg__plot_text_fit(chart->title, WG_PLOT_TITLE, layout.width - 2 * EDGE, out);
    wg__buffer_puts(out, "</text>\n");
    draw_axis(&layout);
    for (size_t i = 0; i < chart->bar_count; i++)
        draw_bar(&layout, i);
    wg__buffer_puts(out, "</svg>\n");
}
