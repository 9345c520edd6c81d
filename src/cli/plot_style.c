/* SPDX-License-Identifier: MIT
 *
 * Style sheet, shapes and text widths of charts; see plot_style.h and plot.h.
 *
 * A series is a group whose class sets `color`; its lines and areas are painted in `currentColor`.
 * That is understood by every SVG renderer, unlike CSS variables.
 */
#include "cli/plot_style.h"

#include <math.h>
#include <string.h>

#include "base/buffer.h"
#include "cli/markup.h"

/* Okabe & Ito, "Color Universal Design", 2008; the dark screen's are the same hues, lighter. */
static const struct {
    const char *light;
    const char *dark;
} colors[WG_PLOT_COLOR_COUNT] = {
    [WG_PLOT_AUTO] = {"#6b7280", "#9aa3af"},      [WG_PLOT_BLUE] = {"#0072b2", "#4aa8e0"},
    [WG_PLOT_VERMILION] = {"#d55e00", "#f07f2e"}, [WG_PLOT_GREEN] = {"#009e73", "#2fc49a"},
    [WG_PLOT_PURPLE] = {"#cc79a7", "#dc95bc"},    [WG_PLOT_ORANGE] = {"#e69f00", "#f0b429"},
    [WG_PLOT_SKY] = {"#56b4e9", "#7cc7f0"},       [WG_PLOT_YELLOW] = {"#d9c800", "#f0e442"},
    [WG_PLOT_INK] = {"#1f2328", "#e6e8eb"},       [WG_PLOT_GREY] = {"#6b7280", "#9aa3af"},
};

/* Widths in ems of DejaVu Sans, the widest of the usual interface fonts, rounded up. */
static double character_width(uint32_t code)
{
    if (code >= 0x80) {
        const unsigned columns = wg__code_point_width(code);
        return columns == 0 ? 0 : columns == 2 ? 1.1 : 0.84;
    }
    if (strchr("ijlI'|", (int)code) != NULL)
        return 0.30;
    if (strchr(" .,:;!/\\()[]ftr-", (int)code) != NULL)
        return 0.42;
    if (strchr("mwMW%@+=<>~#&", (int)code) != NULL)
        return 1.0;
    if (code >= 'A' && code <= 'Z')
        return 0.79;
    return 0.64;
}

double wg__plot_text_width(const char *text, double size)
{
    double width = 0;
    while (*text != '\0') {
        uint32_t code;
        text += wg__utf8_next(text, &code);
        width += character_width(code);
    }
    /* Titles are bold, which is wider. */
    return width * size * (size > WG_PLOT_TEXT ? 1.12 : 1);
}

bool wg__plot_text_fit(const char *text, double size, double width, struct wg_buffer *out)
{
    if (wg__plot_text_width(text, size) <= width) {
        wg__append_escaped(out, text);
        return false;
    }
    const double bold = size > WG_PLOT_TEXT ? 1.12 : 1;
    double used = bold * size * character_width(0x2026);
    while (*text != '\0') {
        uint32_t code;
        char one[8] = "";
        const size_t length = wg__utf8_next(text, &code);
        used += bold * size * character_width(code);
        if (used > width)
            break;
        memcpy(one, text, length);
        wg__append_escaped(out, one);
        text += length;
    }
    wg__buffer_puts(out, "…");
    return true;
}

void wg__plot_marker(enum wg_plot_color color, double x, double y, const char *class_name,
                     const char *title_markup, struct wg_buffer *out)
{
    /* Radii that give the shapes about the same area. */
    const char *element = "polygon";
    switch (color) {
    case WG_PLOT_VERMILION:
        element = "rect";
        wg__buffer_printf(out,
                          "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"6.4\" "
                          "height=\"6.4\">",
                          class_name, x - 3.2, y - 3.2);
        break;
    case WG_PLOT_GREEN:
    case WG_PLOT_YELLOW:
        wg__buffer_printf(out, "<polygon class=\"%s\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\">",
                          class_name, x, y - 4.6, x + 4.2, y + 3.0, x - 4.2, y + 3.0);
        break;
    case WG_PLOT_PURPLE:
    case WG_PLOT_SKY:
        wg__buffer_printf(out,
                          "<polygon class=\"%s\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f "
                          "%.1f,%.1f\">",
                          class_name, x, y - 4.6, x + 4.6, y, x, y + 4.6, x - 4.6, y);
        break;
    case WG_PLOT_ORANGE:
        wg__buffer_printf(out, "<polygon class=\"%s\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\">",
                          class_name, x, y + 4.6, x + 4.2, y - 3.0, x - 4.2, y - 3.0);
        break;
    case WG_PLOT_AUTO:
    case WG_PLOT_BLUE:
    case WG_PLOT_INK:
    case WG_PLOT_GREY:
    case WG_PLOT_COLOR_COUNT:
        element = "circle";
        wg__buffer_printf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.6\">",
                          class_name, x, y);
        break;
    }
    wg__buffer_printf(out, "%s</%s>\n", title_markup, element);
}

static void append_colors(struct wg_buffer *out, bool is_dark)
{
    for (int i = 0; i < WG_PLOT_COLOR_COUNT; i++)
        wg__buffer_printf(out, ".wg-plot .c%d{color:%s}", i,
                          is_dark ? colors[i].dark : colors[i].light);
    wg__buffer_puts(out, "\n");
}

void wg__plot_css(struct wg_buffer *out)
{
    wg__buffer_puts(
        out,
        ".wg-plot{display:block;width:100%;height:auto;font-family:system-ui,-apple-system,"
        "\"Segoe UI\",Roboto,\"Helvetica "
        "Neue\",Arial,sans-serif;font-variant-numeric:tabular-nums}\n"
        ".wg-plot text{fill:#4b5563;font-size:12px}\n"
        ".wg-plot .t{fill:#1f2328;font-size:14px;font-weight:600}\n"
        ".wg-plot .k{fill:#1f2328}\n"
        ".wg-plot .e{text-anchor:end}.wg-plot .m{text-anchor:middle}\n"
        ".wg-plot .g{stroke:#e5e7eb}.wg-plot .a{stroke:#9aa3af}\n"
        ".wg-plot .l{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;"
        "stroke-linecap:round}\n"
        ".wg-plot .d{fill:none;stroke:currentColor;stroke-width:1.6;stroke-dasharray:6 4}\n"
        ".wg-plot .b{fill:currentColor;fill-opacity:.16}\n"
        ".wg-plot .p{fill:currentColor;stroke:#fff;stroke-width:1}\n"
        ".wg-plot .h{fill:transparent;pointer-events:all}.wg-plot .h:hover{fill:currentColor}\n");
    append_colors(out, false);
    wg__buffer_puts(out, "@media screen and (prefers-color-scheme:dark){\n"
                         ".wg-plot text{fill:#aab2bd}.wg-plot .t,.wg-plot .k{fill:#e6e8eb}\n"
                         ".wg-plot .g{stroke:#2d333b}.wg-plot .a{stroke:#6b7280}"
                         ".wg-plot .p{stroke:#16191d}\n");
    append_colors(out, true);
    wg__buffer_puts(out, "}\n");
}
