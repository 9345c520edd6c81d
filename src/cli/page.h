/* SPDX-License-Identifier: MIT
 *
 * A report as one HTML page that needs nothing else: no network, no script, no other file.
 *
 * The calls append to a buffer in the order of the page; what is opened must be closed, which `end`
 * asserts. All texts are escaped. The page reads on a phone, on paper and on a dark screen.
 *
 *     struct wg_page page;
 *     wg__page_begin(&page, &out, "Training governor", "Replay of measured traces");
 *     wg__page_facts(&page, facts, 3);
 *     wg__page_heading(&page, "Result");
 *     wg__page_paragraph(&page, "%zu cases, %u seeds.", case_count, seeds);
 *     wg__page_table(&page, &table, "Cost over the oracle");
 *     wg__page_figures_begin(&page);
 *     wg__page_figure(&page, &plot, "Cumulative cost; the band spans 80 %% of the seeds.");
 *     wg__page_figures_end(&page);
 *     wg__page_end(&page, "wattgov simulate training --trace data/zeus");
 *
 * Owns: nothing; writes into the caller's buffer, where failures stick.
 * Threads: one thread at a time.
 */
#ifndef WG_CLI_PAGE_H
#define WG_CLI_PAGE_H

#include <stdbool.h>
#include <stddef.h>

struct wg_bar_chart;
struct wg_buffer;
struct wg_plot;
struct wg_table;

struct wg_page {
    struct wg_buffer *out;
    unsigned fold_depth;
    bool has_figures_open;
};

/* A number that the reader should see first. */
struct wg_page_fact {
    const char *value; /* "-23 %" */
    const char *label; /* "energy against the default" */
    const char *note;  /* small print; NULL: none */
};

/* `subtitle` may be NULL. */
void wg__page_begin(struct wg_page *page, struct wg_buffer *out, const char *title,
                    const char *subtitle);

void wg__page_facts(struct wg_page *page, const struct wg_page_fact *facts, size_t count);
void wg__page_heading(struct wg_page *page, const char *text);    /* of a section */
void wg__page_subheading(struct wg_page *page, const char *text); /* within it */
void wg__page_paragraph(struct wg_page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Text as it is, in a fixed-width font: a command, a log. */
void wg__page_code(struct wg_page *page, const char *text);
void wg__page_table(struct wg_page *page, const struct wg_table *table, const char *caption);

/* A grid of charts: three beside each other, one on a phone. A chart wider than 420 units gets a
 * row of its own; a phone shows it 360 units wide. */
void wg__page_figures_begin(struct wg_page *page);
void wg__page_figure(struct wg_page *page, const struct wg_plot *plot, const char *caption);
void wg__page_bars(struct wg_page *page, const struct wg_bar_chart *chart, const char *caption);
void wg__page_figures_end(struct wg_page *page);

/* One legend for all charts of a grid, taken from `plot`; stands before the grid. */
void wg__page_legend(struct wg_page *page, const struct wg_plot *plot);

/* A section that unfolds; may be nested. */
void wg__page_fold_begin(struct wg_page *page, const char *summary, bool is_open);
void wg__page_fold_end(struct wg_page *page);

/* Closes the page; `command` (may be NULL) is shown as what made it. */
void wg__page_end(struct wg_page *page, const char *command);

#endif
