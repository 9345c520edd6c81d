/* SPDX-License-Identifier: MIT
 *
 * What a chart looks like: its CSS, its point shapes, and how wide its texts are.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_CLI_PLOT_STYLE_H
#define WG_CLI_PLOT_STYLE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/plot.h"

struct wg_buffer;

/* Text sizes in user units. */
static const double WG_PLOT_TEXT = 12;
static const double WG_PLOT_TITLE = 14;

/* The width of a text of that size, rather too much than too little. */
double wg__plot_text_width(const char *text, double size);

/* Appends a text, escaped, cut with an ellipsis to `width`. Returns whether it was cut. */
bool wg__plot_text_fit(const char *text, double size, double width, struct wg_buffer *out);

/* Appends a point's shape around (x, y); each colour has its own. */
void wg__plot_marker(enum wg_plot_color color, double x, double y, const char *class_name,
                     const char *title_markup, struct wg_buffer *out);

#endif
