/* SPDX-License-Identifier: MIT
 *
 * The HTML page of a report; see page.h.
 *
 * Paper can't be unfolded, so a print shows all; browsers that don't know ::details-content yet
 * print what the reader has opened. A wide chart would have unreadable text on a phone, so it is
 * written twice, and the style sheet shows the one that fits.
 */
#include "cli/page.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/bar_chart.h"
#include "cli/markup.h"
#include "cli/plot.h"
#include "cli/table.h"

enum { WIDE = 420 }; /* charts above this width get a row of their own */

static const char page_css[] =
    ":root{color-scheme:light "
    "dark;--ink:#1f2328;--soft:#5b6470;--line:#e2e5e9;--mid:#c3c9d1;--paper:#fff;"
    "--card:#f6f7f9;--accent:#0072b2}\n"
    "@media screen and (prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#9aa3af;"
    "--line:#2d333b;--mid:#4a525d;--paper:#16191d;--card:#1d2126;--accent:#4aa8e0}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,"
    "-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif;"
    "-webkit-text-size-adjust:100%}\n"
    "main{max-width:1120px;margin:0 auto;padding:40px 24px 56px}\n"
    "header{border-bottom:3px solid var(--accent);padding-bottom:16px;margin-bottom:28px}\n"
    "h1{font-size:30px;line-height:1.2;margin:0;letter-spacing:-.01em}\n"
    "header p{margin:6px 0 0;color:var(--soft);font-size:17px}\n"
    "h2{font-size:22px;line-height:1.3;margin:44px 0 10px}\n"
    "h3{font-size:17px;margin:28px 0 6px}\n"
    "p{max-width:74ch;margin:10px 0}\n"
    "code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:13px}\n"
    "pre{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:12px 14px;"
    "overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}\n"
    ".facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:14px;"
    "margin:0 0 28px;padding:0;list-style:none}\n"
    ".facts li{background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:14px 16px}\n"
    ".facts b{display:block;font-size:28px;line-height:1.2;font-weight:650;"
    "font-variant-numeric:tabular-nums}\n"
    ".facts span{display:block;margin-top:2px}.facts small{display:block;color:var(--soft);"
    "font-size:13px;line-height:1.4;margin-top:4px}\n"
    ".scroll{overflow-x:auto;margin:16px 0}\n"
    "table{border-collapse:collapse;font-size:14px;line-height:1.4;"
    "font-variant-numeric:tabular-nums}\n"
    "th,td{text-align:left;padding:6px 18px 6px 0;border-bottom:1px solid var(--line);"
    "white-space:nowrap}\n"
    "th:last-child,td:last-child{padding-right:4px}\n"
    "thead th{color:var(--soft);font-weight:600;border-bottom:1.5px solid var(--soft);"
    "vertical-align:bottom}\n"
    ".w{white-space:normal;min-width:18em}\n"
    ".n{text-align:right}tr.line td{border-top:2px solid var(--mid)}\n"
    ".figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr));"
    "gap:28px 32px;margin:20px 0}\n"
    "figure{margin:0;min-width:0;break-inside:avoid}\n"
    ".table{margin:16px 0}.table figcaption{margin:0 0 8px;font-size:14px;max-width:74ch}"
    ".table .scroll{margin:0}\n"
    ".wide{grid-column:1/-1}.phone{display:none}\n"
    "figcaption{color:var(--soft);font-size:13.5px;line-height:1.45;margin:6px 3px 0;"
    "max-width:64ch}\n"
    ".legend{display:flex;flex-wrap:wrap;gap:4px 20px;font-size:14px;max-width:none}\n"
    ".legend span{display:inline-flex;align-items:center;gap:7px}.legend .wg-plot{width:26px}\n"
    "details{border-top:1px solid var(--line);padding:4px 0}\n"
    "details:last-of-type{border-bottom:1px solid var(--line)}\n"
    "summary{cursor:pointer;padding:8px 0;font-weight:600}\n"
    "summary:hover{color:var(--accent)}\n"
    "footer{margin-top:56px;border-top:1px solid var(--line);color:var(--soft);font-size:14px}\n"
    "@media(max-width:560px){main{padding:22px 16px 40px}h1{font-size:24px}h2{font-size:20px;"
    "margin-top:34px}.facts{grid-template-columns:1fr 1fr;gap:10px}.facts li{padding:10px 12px}"
    ".facts b{font-size:22px}.desk{display:none}.phone{display:block}td,th{padding-right:14px}}\n"
    "@media print{body{font-size:11pt}main{max-width:none;padding:0}.facts li,pre{"
    "background:none}h2,h3{break-after:avoid}tr{break-inside:avoid}.scroll{overflow:visible}"
    "table{font-size:8pt}th,td{padding:3px 9px 3px 0}th{white-space:normal}"
    "details::details-content{content-visibility:visible;display:block;block-size:auto;"
    "opacity:1}}\n";

static void append_element(struct wg_buffer *out, const char *name, const char *text)
{
    wg__buffer_printf(out, "<%s>", name);
    wg__append_escaped(out, text);
    wg__buffer_printf(out, "</%s>\n", name);
}

void wg__page_begin(struct wg_page *page, struct wg_buffer *out, const char *title,
                    const char *subtitle)
{
    *page = (struct wg_page){.out = out};
    wg__buffer_puts(out,
                    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    append_element(out, "title", title);
    wg__buffer_puts(out, "<style>\n");
    wg__buffer_puts(out, page_css);
    wg__plot_css(out);
    wg__buffer_puts(out, "</style>\n</head>\n<body>\n<main>\n<header>\n");
    append_element(out, "h1", title);
    if (subtitle != NULL)
        append_element(out, "p", subtitle);
    wg__buffer_puts(out, "</header>\n");
}

void wg__page_facts(struct wg_page *page, const struct wg_page_fact *facts, size_t count)
{
    wg__buffer_puts(page->out, "<ul class=\"facts\">\n");
    for (size_t i = 0; i < count; i++) {
        wg__buffer_puts(page->out, "<li>");
        append_element(page->out, "b", facts[i].value);
        append_element(page->out, "span", facts[i].label);
        if (facts[i].note != NULL)
            append_element(page->out, "small", facts[i].note);
        wg__buffer_puts(page->out, "</li>\n");
    }
    wg__buffer_puts(page->out, "</ul>\n");
}

void wg__page_heading(struct wg_page *page, const char *text)
{
    append_element(page->out, "h2", text);
}

void wg__page_subheading(struct wg_page *page, const char *text)
{
    append_element(page->out, "h3", text);
}

void wg__page_paragraph(struct wg_page *page, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = length < 0 ? NULL : wg__alloc((size_t)length + 1);
    if (text == NULL) {
        page->out->failed = true;
    } else {
        (void)vsnprintf(text, (size_t)length + 1, format, again);
        append_element(page->out, "p", text);
    }
    va_end(again);
    wg__free(text);
}

void wg__page_code(struct wg_page *page, const char *text)
{
    wg__buffer_puts(page->out, "<pre>");
    /* The escaper turns control characters into blanks; lines must stay lines. */
    for (const char *line = text; *line != '\0';) {
        char piece[256];
        size_t length = 0;
        while (line[length] != '\0' && line[length] != '\n' && length < sizeof piece - 1) {
            piece[length] = line[length];
            length++;
        }
        while (length > 4 && ((unsigned char)line[length] & 0xC0) == 0x80)
            length--; /* no cut within a character */
        piece[length] = '\0';
        wg__append_escaped(page->out, piece);
        line += length;
        if (*line == '\n') {
            wg__buffer_puts(page->out, "\n");
            line++;
        }
    }
    wg__buffer_puts(page->out, "</pre>\n");
}

void wg__page_table(struct wg_page *page, const struct wg_table *table, const char *caption)
{
    wg__table_write_html(table, caption, page->out);
}

void wg__page_figures_begin(struct wg_page *page)
{
    assert(!page->has_figures_open);
    page->has_figures_open = true;
    wg__buffer_puts(page->out, "<div class=\"figures\">\n");
}

static void end_figure(struct wg_page *page, const char *caption)
{
    if (caption != NULL)
        append_element(page->out, "figcaption", caption);
    wg__buffer_puts(page->out, "</figure>\n");
}

void wg__page_bars(struct wg_page *page, const struct wg_bar_chart *chart, const char *caption)
{
    if (chart->width > WIDE) {
        struct wg_bar_chart narrow = *chart;
        narrow.width = 0;
        wg__buffer_puts(page->out, "<figure class=\"wide\">\n<div class=\"desk\">\n");
        wg__bar_chart_write(chart, page->out);
        wg__buffer_puts(page->out, "</div>\n<div class=\"phone\">\n");
        wg__bar_chart_write(&narrow, page->out);
        wg__buffer_puts(page->out, "</div>\n");
    } else {
        wg__buffer_puts(page->out, "<figure>\n");
        wg__bar_chart_write(chart, page->out);
    }
    end_figure(page, caption);
}

void wg__page_figure(struct wg_page *page, const struct wg_plot *plot, const char *caption)
{
    if (plot->width > WIDE) {
        struct wg_plot narrow = *plot;
        narrow.width = narrow.height = 0;
        wg__buffer_puts(page->out, "<figure class=\"wide\">\n<div class=\"desk\">\n");
        wg__plot_write(plot, page->out);
        wg__buffer_puts(page->out, "</div>\n<div class=\"phone\">\n");
        wg__plot_write(&narrow, page->out);
        wg__buffer_puts(page->out, "</div>\n");
    } else {
        wg__buffer_puts(page->out, "<figure>\n");
        wg__plot_write(plot, page->out);
    }
    end_figure(page, caption);
}

void wg__page_figures_end(struct wg_page *page)
{
    assert(page->has_figures_open);
    page->has_figures_open = false;
    wg__buffer_puts(page->out, "</div>\n");
}

void wg__page_legend(struct wg_page *page, const struct wg_plot *plot)
{
    wg__plot_legend_html(plot, page->out);
}

void wg__page_fold_begin(struct wg_page *page, const char *summary, bool is_open)
{
    assert(!page->has_figures_open);
    page->fold_depth++;
    wg__buffer_puts(page->out, is_open ? "<details open>" : "<details>");
    append_element(page->out, "summary", summary);
}

void wg__page_fold_end(struct wg_page *page)
{
    assert(page->fold_depth > 0 && !page->has_figures_open);
    page->fold_depth--;
    wg__buffer_puts(page->out, "</details>\n");
}

void wg__page_end(struct wg_page *page, const char *command)
{
    assert(page->fold_depth == 0 && !page->has_figures_open);
    if (command != NULL) {
        wg__buffer_puts(page->out, "<footer><p>Made by</p>\n");
        wg__page_code(page, command);
        wg__buffer_puts(page->out, "</footer>\n");
    }
    wg__buffer_puts(page->out, "</main>\n</body>\n</html>\n");
}
