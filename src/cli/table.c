/* SPDX-License-Identifier: MIT
 *
 * Tables as text and as HTML; see table.h.
 *
 * All cells lie in one buffer, one behind the other; a cell remembers its offset, because the
 * buffer may move. The text is written in two passes: measure the columns, then print.
 */
#include "cli/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/markup.h"

struct wg_table_cell {
    size_t offset;
    bool is_strong;
    bool has_line_above; /* on the first cell of a row */
};

enum { GAP = 2 }; /* blanks between columns */

#define BOLD  "\033[1m"
#define DIM   "\033[2m"
#define PLAIN "\033[0m"

void wg__table_init(struct wg_table *table, const struct wg_table_column *columns, size_t count)
{
    assert(count > 0);
    *table = (struct wg_table){.columns = columns, .column_count = count};
    wg__buffer_init(&table->text);
}

void wg__table_fini(struct wg_table *table)
{
    wg__free(table->cells);
    wg__buffer_fini(&table->text);
    *table = (struct wg_table){.columns = table->columns, .column_count = table->column_count};
}

/* The place of the next cell, which isn't counted yet; NULL when memory has run out. A line that
 * was asked for above it is kept. */
static struct wg_table_cell *next_cell(struct wg_table *table)
{
    if (table->failed)
        return NULL;
    if (table->cell_count == table->cell_capacity) {
        const size_t capacity =
            table->cell_capacity == 0 ? 8 * table->column_count : 2 * table->cell_capacity;
        struct wg_table_cell *cells =
            wg__realloc_array(table->cells, capacity, sizeof *table->cells);
        if (cells == NULL) {
            table->failed = true;
            return NULL;
        }
        memset(cells + table->cell_capacity, 0,
               (capacity - table->cell_capacity) * sizeof *table->cells);
        table->cells = cells;
        table->cell_capacity = capacity;
    }
    return &table->cells[table->cell_count];
}

void wg__table_cell(struct wg_table *table, const char *format, ...)
{
    struct wg_table_cell *cell = next_cell(table);
    if (cell == NULL)
        return;
    cell->offset = table->text.length;

    va_list arguments;
    va_start(arguments, format);
    char *text = NULL;
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length >= 0)
        text = wg__alloc((size_t)length + 1);
    if (text != NULL) {
        (void)vsnprintf(text, (size_t)length + 1, format, again);
        wg__buffer_append(&table->text, text, (size_t)length + 1);
    }
    va_end(again);
    if (text == NULL || table->text.failed)
        table->failed = true;
    else
        table->cell_count++;
    wg__free(text);
}

void wg__table_emphasize(struct wg_table *table)
{
    if (table->failed)
        return;
    assert(table->cell_count > 0);
    table->cells[table->cell_count - 1].is_strong = true;
}

void wg__table_separate(struct wg_table *table)
{
    assert(table->failed || table->cell_count % table->column_count == 0);
    struct wg_table_cell *cell = next_cell(table);
    if (cell != NULL)
        cell->has_line_above = true;
}

static const char *cell_text(const struct wg_table *table, size_t index)
{
    return table->text.data + table->cells[index].offset;
}

/* The terminal columns that each column of the table needs. */
static void measure(const struct wg_table *table, size_t *widths)
{
    for (size_t c = 0; c < table->column_count; c++)
        widths[c] = wg__text_width(table->columns[c].title);
    for (size_t i = 0; i < table->cell_count; i++) {
        const size_t width = wg__text_width(cell_text(table, i));
        if (width > widths[i % table->column_count])
            widths[i % table->column_count] = width;
    }
}

static void append_blanks(struct wg_buffer *out, size_t count)
{
    wg__buffer_printf(out, "%*s", (int)count, "");
}

/* One cell of column `c`, padded; the last column gets no trailing blanks. */
static void append_cell(const struct wg_table *table, const size_t *widths, size_t c,
                        const char *text, const char *style, struct wg_buffer *out)
{
    const size_t padding = widths[c] - wg__text_width(text);
    const bool is_right = table->columns[c].align == WG_ALIGN_RIGHT;
    if (c > 0)
        append_blanks(out, GAP);
    if (is_right)
        append_blanks(out, padding);
    if (style != NULL)
        wg__buffer_puts(out, style);
    wg__append_plain(out, text);
    if (style != NULL)
        wg__buffer_puts(out, PLAIN);
    if (!is_right && c + 1 < table->column_count)
        append_blanks(out, padding);
}

static void append_line(const struct wg_table *table, const size_t *widths, bool with_color,
                        struct wg_buffer *out)
{
    if (with_color)
        wg__buffer_puts(out, DIM);
    for (size_t c = 0; c < table->column_count; c++) {
        if (c > 0)
            append_blanks(out, GAP);
        for (size_t i = 0; i < widths[c]; i++)
            wg__buffer_puts(out, "─");
    }
    wg__buffer_puts(out, with_color ? PLAIN "\n" : "\n");
}

void wg__table_write(const struct wg_table *table, bool with_color, struct wg_buffer *out)
{
    size_t *widths = wg__alloc_zeroed(table->column_count, sizeof *widths);
    if (table->failed || widths == NULL) {
        out->failed = true;
        wg__free(widths);
        return;
    }
    assert(table->cell_count % table->column_count == 0);
    measure(table, widths);
    for (size_t c = 0; c < table->column_count; c++)
        append_cell(table, widths, c, table->columns[c].title, with_color ? BOLD : NULL, out);
    wg__buffer_puts(out, "\n");
    append_line(table, widths, with_color, out);
    for (size_t i = 0; i < table->cell_count; i++) {
        const size_t c = i % table->column_count;
        const struct wg_table_cell *cell = &table->cells[i];
        if (cell->has_line_above)
            append_line(table, widths, with_color, out);
        append_cell(table, widths, c, cell_text(table, i),
                    with_color && cell->is_strong ? BOLD : NULL, out);
        if (c + 1 == table->column_count)
            wg__buffer_puts(out, "\n");
    }
    wg__free(widths);
}

/* A cell of more bytes than this is a sentence, and may break into lines. */
enum { LONG_TEXT = 60 };

static void append_html_cell(const struct wg_table *table, size_t index, struct wg_buffer *out)
{
    const size_t c = index % table->column_count;
    const bool is_strong = table->cells[index].is_strong;
    const bool is_long = strlen(cell_text(table, index)) > LONG_TEXT;
    wg__buffer_puts(out, table->columns[c].align == WG_ALIGN_RIGHT ? "<td class=\"n\">"
                         : is_long                                 ? "<td class=\"w\">"
                                                                   : "<td>");
    wg__buffer_puts(out, is_strong ? "<b>" : "");
    wg__append_escaped(out, cell_text(table, index));
    wg__buffer_puts(out, is_strong ? "</b></td>" : "</td>");
}

void wg__table_write_html(const struct wg_table *table, const char *caption, struct wg_buffer *out)
{
    if (table->failed) {
        out->failed = true;
        return;
    }
    assert(table->cell_count % table->column_count == 0);
    /* A <caption> would scroll away with a wide table on a phone. */
    wg__buffer_puts(out, "<figure class=\"table\">\n");
    if (caption != NULL) {
        wg__buffer_puts(out, "<figcaption>");
        wg__append_escaped(out, caption);
        wg__buffer_puts(out, "</figcaption>\n");
    }
    wg__buffer_puts(out, "<div class=\"scroll\"><table>\n");
    wg__buffer_puts(out, "<thead><tr>");
    for (size_t c = 0; c < table->column_count; c++) {
        const bool is_right = table->columns[c].align == WG_ALIGN_RIGHT;
        wg__buffer_puts(out, is_right ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
        wg__append_escaped(out, table->columns[c].title);
        wg__buffer_puts(out, "</th>");
    }
    wg__buffer_puts(out, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < table->cell_count; i++) {
        if (i % table->column_count == 0)
            wg__buffer_puts(out, table->cells[i].has_line_above ? "<tr class=\"line\">" : "<tr>");
        append_html_cell(table, i, out);
        if ((i + 1) % table->column_count == 0)
            wg__buffer_puts(out, "</tr>\n");
    }
    wg__buffer_puts(out, "</tbody></table></div>\n</figure>\n");
}

bool wg__wants_color(FILE *stream)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (no_color != NULL && no_color[0] != '\0')
        return false;
    if (term == NULL || strcmp(term, "dumb") == 0)
        return false;
    return isatty(fileno(stream)) == 1;
}
