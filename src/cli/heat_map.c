/* SPDX-License-Identifier: MIT
 *
 * Drawing of heat maps: see heat_map.h.
 */
#include "cli/heat_map.h"

#include <math.h>
#include <stdio.h>

#include "base/buffer.h"
#include "cli/markup.h"
#include "cli/plot_axis.h"
#include "cli/plot_style.h"

enum { LEVELS = 10 };

/* Lengths in user units. */
static const double WIDTH = 360;
static const double EDGE = 3;
static const double TOP = 56;          /* title, axis title, a gap */
static const double ROW_MAX = 22;      /* a row is at most this high, */
static const double ROW_MIN = 13;      /* and high enough for its label */
static const double ROWS_WANTED = 105; /* all rows together, if they can */
static const double TICK_HEIGHT = 20;
static const double AXIS_TITLE_HEIGHT = 20;
static const double LABEL_GAP = 8;
static const double LEAST_SHARE = 0.005; /* less is not drawn */

struct layout {
    const struct wg_heat_map *map;
    struct wg_buffer *out;
    double left, right, bottom, height, row_height, bin_width;
    struct wg_ticks x;
};

static void lay_out(struct layout *layout)
{
    const struct wg_heat_map *map = layout->map;
    double label_width = 0, note_width = 0;
    for (size_t i = 0; i < map->row_count; i++) {
        label_width = fmax(label_width, wg__plot_text_width(map->rows[i].label, WG_PLOT_TEXT));
        if (map->rows[i].note != NULL)
            note_width = fmax(note_width, wg__plot_text_width(map->rows[i].note, WG_PLOT_TEXT));
    }
    layout->left = EDGE + label_width + LABEL_GAP;
    layout->right = WIDTH - EDGE - (note_width > 0 ? note_width + LABEL_GAP : LABEL_GAP);
    layout->row_height = fmin(fmax(ROWS_WANTED / (double)map->row_count, ROW_MIN), ROW_MAX);
    layout->bottom = TOP + layout->row_height * (double)map->row_count;
    layout->height = layout->bottom + TICK_HEIGHT + AXIS_TITLE_HEIGHT + EDGE;
    layout->bin_width = (layout->right - layout->left) / (double)map->bin_count;
    const struct wg_plot_axis axis = {.is_whole = true};
    wg__ticks_choose(&layout->x, &axis, 0, map->x_last, 4, true);
}

static double share_at(const struct wg_heat_map *map, size_t row, size_t bin)
{
    return (double)map->shares[bin * map->stride + map->rows[row].column];
}

/* 0: not drawn; up to LEVELS. */
static int level_of(double share)
{
    if (!(share >= LEAST_SHARE))
        return 0;
    const double level = ceil(share * (double)LEVELS);
    return level < (double)LEVELS ? (int)level : LEVELS;
}

/* All cells of one level as one path; neighbours in a row are drawn as one. */
static void draw_level(const struct layout *layout, int level)
{
    const struct wg_heat_map *map = layout->map;
    bool has_begun = false;
    for (size_t row = 0; row < map->row_count; row++) {
        for (size_t bin = 0; bin < map->bin_count; bin++) {
            if (level_of(share_at(map, row, bin)) != level)
                continue;
            size_t end = bin + 1;
            while (end < map->bin_count && level_of(share_at(map, row, end)) == level)
                end++;
            if (!has_begun)
                wg__buffer_printf(layout->out, "<path fill-opacity=\"%.2f\" d=\"",
                                  0.10 + 0.90 * level / (double)LEVELS);
            has_begun = true;
            const double width = layout->bin_width * (double)(end - bin);
            wg__buffer_printf(layout->out, "M%.1f %.1fh%.1fv%.1fh%.1fz",
                              layout->left + layout->bin_width * (double)bin,
                              TOP + layout->row_height * (double)row + 0.5, width,
                              layout->row_height - 1, -width);
            bin = end;
        }
    }
    if (has_begun)
        wg__buffer_puts(layout->out, "\"/>\n");
}

/* The row's label and note, and a strip to hover over that says how often it was chosen in all. */
static void draw_row(const struct layout *layout, size_t row)
{
    const struct wg_heat_map *map = layout->map;
    const struct wg_heat_row *of = &map->rows[row];
    const double y = TOP + layout->row_height * (double)row;
    const double text_y = y + layout->row_height / 2 + 4;
    wg__buffer_printf(layout->out, "<text class=\"e\" x=\"%.1f\" y=\"%.1f\">",
                      layout->left - LABEL_GAP, text_y);
    wg__append_escaped(layout->out, of->label);
    wg__buffer_puts(layout->out, "</text>\n");
    if (of->note != NULL) {
        wg__buffer_printf(layout->out, "<text x=\"%.1f\" y=\"%.1f\">", layout->right + LABEL_GAP,
                          text_y);
        wg__append_escaped(layout->out, of->note);
        wg__buffer_puts(layout->out, "</text>\n");
    }
    double total = 0;
    for (size_t bin = 0; bin < map->bin_count; bin++)
        total += share_at(map, row, bin);
    wg__buffer_printf(layout->out,
                      "<rect fill=\"transparent\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                      "height=\"%.1f\"><title>",
                      layout->left, y, layout->right - layout->left, layout->row_height);
    wg__append_escaped(layout->out, of->label);
    wg__buffer_printf(layout->out, ": %.1f %% of all</title></rect>\n",
                      100 * total / (double)map->bin_count);
}

static void draw_grid(const struct layout *layout)
{
    struct wg_buffer *out = layout->out;
    for (size_t row = 0; row <= layout->map->row_count; row++) {
        const double y = TOP + layout->row_height * (double)row;
        wg__buffer_printf(
            out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
            row == layout->map->row_count ? "a" : "g", layout->left, y, layout->right, y);
    }
    for (size_t i = 0; i < layout->x.count; i++) {
        const double x = layout->left + wg__ticks_place(&layout->x, layout->x.values[i]) *
                                            (layout->right - layout->left);
        wg__buffer_printf(out,
                          "<line class=\"a\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n"
                          "<text class=\"m\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
                          x, layout->bottom, x, layout->bottom + 4, x,
                          layout->bottom + TICK_HEIGHT - 3, layout->x.labels[i]);
    }
}

void wg__heat_map_write(const struct wg_heat_map *map, struct wg_buffer *out)
{
    struct layout layout = {.map = map, .out = out};
    lay_out(&layout);
    wg__buffer_printf(out,
                      "<svg class=\"wg-plot\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
                      "style=\"max-width:%.0fpx\" aria-label=\"",
                      WIDTH, ceil(layout.height), 1.15 * WIDTH);
    wg__append_escaped(out, map->title);
    wg__buffer_printf(out, "\">\n<text class=\"t\" x=\"%.0f\" y=\"%.0f\">", EDGE,
                      EDGE + WG_PLOT_TITLE);
    (void)wg__plot_text_fit(map->title, WG_PLOT_TITLE, WIDTH - 2 * EDGE, out);
    wg__buffer_printf(out, "</text>\n<text x=\"%.0f\" y=\"%.0f\">", EDGE, TOP - LABEL_GAP - 4);
    wg__append_escaped(out, map->y_title);
    wg__buffer_puts(out, "</text>\n");
    draw_grid(&layout);
    wg__buffer_printf(out, "<g class=\"c%d\" fill=\"currentColor\">\n", (int)map->color);
    for (int level = 1; level <= LEVELS; level++)
        draw_level(&layout, level);
    wg__buffer_puts(out, "</g>\n");
    for (size_t row = 0; row < map->row_count; row++)
        draw_row(&layout, row);
    wg__buffer_printf(out, "<text class=\"m\" x=\"%.1f\" y=\"%.1f\">",
                      (layout.left + layout.right) / 2, layout.height - EDGE - 2);
    wg__append_escaped(out, map->x_title);
    wg__buffer_puts(out, "</text>\n</svg>\n");
}
