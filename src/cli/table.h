/* SPDX-License-Identifier: MIT
 *
 * Tables: rows of cells, written as text for a terminal or as HTML.
 *
 * Cells are appended from left to right; the next row begins by itself. As with `wg_buffer`, errors
 * stick: when memory runs out, later cells are dropped and the writer marks its buffer as failed.
 * Widths are counted in terminal columns (wide and combining characters are known). Control
 * characters in cells become blanks, so a file's content can't steer the terminal.
 *
 *     struct wg_table table;
 *     wg__table_init(&table, columns, 3);
 *     wg__table_cell(&table, "%s", job);
 *     wg__table_cell(&table, "%.1f", energy_j / 1e6);
 *     wg__table_cell(&table, "%+.1f %%", 100 * saving);
 *     wg__table_write(&table, wg__wants_color(stdout), &out);
 *     wg__table_fini(&table);
 *
 * Owns: copies of the cells; the columns must outlive the table.    Threads: one thread at a time.
 */
#ifndef WG_CLI_TABLE_H
#define WG_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buffer.h"

enum wg_align { WG_ALIGN_LEFT, WG_ALIGN_RIGHT };

struct wg_table_column {
    const char *title;
    enum wg_align align;
};

struct wg_table_cell; /* where a cell's text lies, and how it stands out */

struct wg_table {
    const struct wg_table_column *columns;
    size_t column_count;
    struct wg_table_cell *cells; /* row by row */
    size_t cell_count;
    size_t cell_capacity;
    struct wg_buffer text; /* all cells, each ended by a zero byte */
    bool failed;
};

void wg__table_init(struct wg_table *table, const struct wg_table_column *columns, size_t count);
void wg__table_fini(struct wg_table *table);

/* Appends a cell. */
void wg__table_cell(struct wg_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes the newest cell stand out (bold; the best of a row, a total). */
void wg__table_emphasize(struct wg_table *table);

/* Draws a line above the row that begins now; must not stand inside a row. */
void wg__table_separate(struct wg_table *table);

/* Appends the table as text, two blanks between columns, a line under the header. The last row must
 * be complete. */
void wg__table_write(const struct wg_table *table, bool with_color, struct wg_buffer *out);

/* Appends the table as HTML; `caption` may be NULL. */
void wg__table_write_html(const struct wg_table *table, const char *caption, struct wg_buffer *out);

/* Whether colour is welcome: `stream` is a terminal, NO_COLOR is unset or empty, TERM is not dumb.
 */
bool wg__wants_color(FILE *stream);

#endif
