/* SPDX-License-Identifier: MIT
 *
 * The CSV reader.
 *
 * The bytes come from base/source.h. The parser copies each field, unquoted and ended by a zero
 * byte, into one record buffer that grows to RECORD_MAX and is reused:
 *
 *     record   e p o c h \0 1 7 \0 \0          fields   0   6   9
 *
 * Offsets instead of pointers, because the buffer moves when it grows.
 *
 * Stricter than most readers on purpose, since a damaged trace must not turn into wrong joules: a
 * zero byte, a lone carriage return, text behind a closing quote, a blank line between records and
 * a record of another length than the header are errors. A quote inside an unquoted field is text.
 *
 * Owns: see struct wg_csv.    Threads: one thread at a time.
 */
#include "base/csv.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/number.h"
#include "base/source.h"
#include "base/utf8.h"

enum {
    RECORD_FIRST = 1024,
    RECORD_MAX = 1 << 20,
    TEXT_SHOWN_MAX = 40 /* of a field or column name */
};

struct wg_csv {
    struct wg_source source; /* owned */

    struct wg_arena arena; /* the column names */
    const char **columns;  /* in the arena */
    size_t column_count;   /* 0 while the header is read */
    bool is_loose;

    char *record; /* owned; the fields' texts */
    size_t record_size;
    size_t record_capacity;
    size_t fields[WG_CSV_COLUMNS_MAX]; /* offsets into record */
    size_t field_count;                /* may exceed the columns; only that many are stored */
    size_t record_line;
    size_t blanks_owed;  /* blank lines that turned out to be records of one empty field */
    size_t blanks_first; /* the line of the first of them */
};

/* -- Messages ----------------------------------------------------------------------------- */

static int shown(const char *text)
{
    return wg__utf8_cut(text, strnlen(text, TEXT_SHOWN_MAX + 1), TEXT_SHOWN_MAX);
}

__attribute__((format(printf, 4, 5))) static enum wg_code
fail_at(const struct wg_csv *csv, size_t line, struct wg_error *err, const char *format, ...)
{
    char detail[256];
    va_list args;
    va_start(args, format);
    if (wg__format(detail, sizeof detail, format, args) < 0)
        detail[0] = '\0';
    va_end(args);
    return wg__fail(err, WG_EDATA, "%s:%zu: %s", csv->source.name, line, detail);
}

/* An error that ends reading: what comes behind it cannot be trusted. */
#define STOP_AT(csv, line, err, ...)                                                               \
    ((csv)->source.stopped = fail_at((csv), (line), (err), __VA_ARGS__))

static enum wg_code stop_memory(struct wg_csv *csv, struct wg_error *err)
{
    csv->source.stopped = wg__fail(err, WG_ENOMEM, "%s: out of memory", csv->source.name);
    return csv->source.stopped;
}

enum wg_code wg__csv_fail(const struct wg_csv *csv, size_t column, struct wg_error *err,
                          const char *format, ...)
{
    char detail[256];
    va_list args;
    va_start(args, format);
    if (wg__format(detail, sizeof detail, format, args) < 0)
        detail[0] = '\0';
    va_end(args);
    const char *title = column < csv->column_count ? csv->columns[column] : "?";
    return wg__fail(err, WG_EDATA, "%s:%zu: column '%.*s': %s", csv->source.name, csv->record_line,
                    shown(title), title, detail);
}

/* -- The record buffer ------------------------------------------------------------------------ */

static enum wg_code grow_record(struct wg_csv *csv, size_t needed, struct wg_error *err)
{
    if (needed > RECORD_MAX)
        return STOP_AT(csv, csv->record_line, err, "a record is longer than %d bytes", RECORD_MAX);
    size_t capacity = csv->record_capacity != 0 ? csv->record_capacity : RECORD_FIRST;
    while (capacity < needed)
        capacity *= 2;
    char *record = wg__realloc_array(csv->record, capacity, 1);
    if (record == NULL)
        return stop_memory(csv, err);
    csv->record = record;
    csv->record_capacity = capacity;
    return WG_OK;
}

static enum wg_code append(struct wg_csv *csv, const char *bytes, size_t length,
                           struct wg_error *err)
{
    const size_t needed = csv->record_size + length;
    if (needed > csv->record_capacity && grow_record(csv, needed, err) != WG_OK)
        return csv->source.stopped;
    memcpy(csv->record + csv->record_size, bytes, length);
    csv->record_size = needed;
    return WG_OK;
}

static enum wg_code begin_field(struct wg_csv *csv, struct wg_error *err)
{
    const bool is_header = csv->column_count == 0;
    if (is_header && csv->field_count == WG_CSV_COLUMNS_MAX)
        return STOP_AT(csv, csv->source.line, err, "more than %d columns", WG_CSV_COLUMNS_MAX);
    if (csv->field_count < WG_CSV_COLUMNS_MAX)
        csv->fields[csv->field_count] = csv->record_size;
    csv->field_count++;
    return WG_OK;
}

/* -- The grammar --------------------------------------------------------------------------------
 */

/* Copies bytes up to the next one that `read_bare` or `read_quoted` must look at. */
static enum wg_code copy_span(struct wg_csv *csv, bool quoted, struct wg_error *err)
{
    const char *p = csv->source.cursor;
    if (quoted) {
        while (p < csv->source.end && *p != '"' && *p != '\n' && *p != '\0')
            p++;
    } else {
        while (p < csv->source.end && *p != ',' && *p != '\n' && *p != '\r' && *p != '\0')
            p++;
    }
    const char *from = csv->source.cursor;
    csv->source.cursor = p;
    return append(csv, from, (size_t)(p - from), err);
}

static enum wg_code stop_zero_byte(struct wg_csv *csv, struct wg_error *err)
{
    return STOP_AT(csv, csv->source.line, err, "a zero byte in field %zu: this is not a text file",
                   csv->field_count);
}

/* A field without quotes, up to the comma or the line end, which stay. */
static enum wg_code read_bare(struct wg_csv *csv, struct wg_error *err)
{
    for (;;) {
        const int byte = wg__source_peek(&csv->source, err);
        if (byte == WG_SOURCE_BROKEN)
            return csv->source.stopped;
        if (byte == WG_SOURCE_END || byte == ',' || byte == '\n' || byte == '\r')
            return WG_OK;
        if (byte == '\0')
            return stop_zero_byte(csv, err);
        if (copy_span(csv, false, err) != WG_OK)
            return csv->source.stopped;
    }
}

/* The rest of a field behind its opening quote, up to and with the closing one. */
static enum wg_code read_quoted(struct wg_csv *csv, struct wg_error *err)
{
    const size_t opened = csv->source.line;
    for (;;) {
        int byte = wg__source_peek(&csv->source, err);
        if (byte == WG_SOURCE_BROKEN)
            return csv->source.stopped;
        if (byte == WG_SOURCE_END)
            return STOP_AT(csv, opened, err, "the quote that opens in field %zu is never closed",
                           csv->field_count);
        if (byte == '\0')
            return stop_zero_byte(csv, err);
        if (byte == '"') {
            wg__source_skip(&csv->source);
            byte = wg__source_peek(&csv->source, err);
            if (byte == WG_SOURCE_BROKEN)
                return csv->source.stopped;
            if (byte != '"')
                return WG_OK;
        }
        if (byte == '"' || byte == '\n') { /* a doubled quote, or a line end inside quotes */
            const char text = (char)byte;
            wg__source_skip(&csv->source);
            if (append(csv, &text, 1, err) != WG_OK)
                return csv->source.stopped;
            continue;
        }
        if (copy_span(csv, true, err) != WG_OK)
            return csv->source.stopped;
    }
}

/* Passes the LF, CRLF or end of file behind a record; a CR that ends the file counts as well. */
static enum wg_code read_line_end(struct wg_csv *csv, struct wg_error *err)
{
    int byte = wg__source_peek(&csv->source, err);
    if (byte == '\r') {
        wg__source_skip(&csv->source);
        byte = wg__source_peek(&csv->source, err);
        if (byte != '\n' && byte != WG_SOURCE_END && byte != WG_SOURCE_BROKEN)
            return STOP_AT(csv, csv->source.line, err, "a carriage return without a line feed");
    }
    if (byte == WG_SOURCE_BROKEN)
        return csv->source.stopped;
    if (byte == '\n')
        wg__source_skip(&csv->source);
    return WG_OK;
}

/* One record, whatever its number of fields. The caller knows that there is a byte to read. */
static enum wg_code read_record(struct wg_csv *csv, struct wg_error *err)
{
    csv->record_size = 0;
    csv->field_count = 0;
    csv->record_line = csv->source.line;
    for (;;) {
        if (begin_field(csv, err) != WG_OK)
            return csv->source.stopped;
        int byte = wg__source_peek(&csv->source, err);
        if (byte == '"') {
            wg__source_skip(&csv->source);
            if (read_quoted(csv, err) != WG_OK)
                return csv->source.stopped;
            byte = wg__source_peek(&csv->source, err);
            if (byte != ',' && byte != '\r' && byte != '\n' && byte != WG_SOURCE_END &&
                byte != WG_SOURCE_BROKEN)
                return STOP_AT(csv, csv->source.line, err,
                               "text behind the closing quote of field %zu", csv->field_count);
        } else if (read_bare(csv, err) != WG_OK) {
            return csv->source.stopped;
        }
        if (append(csv, "", 1, err) != WG_OK)
            return csv->source.stopped;
        byte = wg__source_peek(&csv->source, err);
        if (byte == WG_SOURCE_BROKEN)
            return csv->source.stopped;
        if (byte != ',')
            return read_line_end(csv, err);
        wg__source_skip(&csv->source);
    }
}

/* Passes blank lines; `*count` of them, the first on line `*first`. A line with only a CR is blank.
 */
static enum wg_code skip_blank_lines(struct wg_csv *csv, size_t *count, size_t *first,
                                     struct wg_error *err)
{
    *count = 0;
    *first = csv->source.line;
    for (;;) {
        const int byte = wg__source_peek(&csv->source, err);
        if (byte == WG_SOURCE_BROKEN)
            return csv->source.stopped;
        if (byte != '\n' && byte != '\r')
            return WG_OK;
        if (read_line_end(csv, err) != WG_OK)
            return csv->source.stopped;
        ++*count;
    }
}

/* -- Opening --------------------------------------------------------------------------------------
 */

/* Keeps the present record as the column names. */
static enum wg_code adopt_header(struct wg_csv *csv, struct wg_error *err)
{
    const char **columns = wg__arena_alloc(&csv->arena, csv->field_count, sizeof *columns);
    if (columns == NULL)
        return stop_memory(csv, err);
    for (size_t i = 0; i < csv->field_count; i++) {
        const char *name = csv->record + csv->fields[i];
        if (*name == '\0' && !csv->is_loose)
            return STOP_AT(csv, csv->record_line, err, "column %zu has no name", i + 1);
        for (size_t j = 0; j < i && !csv->is_loose; j++) {
            if (strcmp(columns[j], name) == 0)
                return STOP_AT(csv, csv->record_line, err, "columns %zu and %zu are both '%.*s'",
                               j + 1, i + 1, shown(name), name);
        }
        columns[i] = wg__arena_strdup(&csv->arena, name);
        if (columns[i] == NULL)
            return stop_memory(csv, err);
    }
    csv->columns = columns;
    csv->column_count = csv->field_count;
    return WG_OK;
}

static enum wg_code read_header(struct wg_csv *csv, struct wg_error *err)
{
    if (wg__source_skip_mark(&csv->source, err) != WG_OK)
        return csv->source.stopped;
    size_t blanks = 0;
    size_t first = 0;
    if (skip_blank_lines(csv, &blanks, &first, err) != WG_OK)
        return csv->source.stopped;
    const int byte = wg__source_peek(&csv->source, err);
    if (byte == WG_SOURCE_BROKEN)
        return csv->source.stopped;
    if (byte == WG_SOURCE_END)
        return STOP_AT(csv, first, err, "the file is empty, expected a header line");
    if (blanks != 0)
        return STOP_AT(csv, first, err, "a blank line, expected the header");
    if (read_record(csv, err) != WG_OK)
        return csv->source.stopped;
    return adopt_header(csv, err);
}

static bool has_mark(const struct wg_csv *csv, const char *const *marks)
{
    for (size_t i = 0; i < csv->field_count && i < WG_CSV_COLUMNS_MAX; i++)
        for (size_t mark = 0; marks[mark] != NULL; mark++)
            if (strcmp(csv->record + csv->fields[i], marks[mark]) == 0)
                return true;
    return false;
}

/* Passes records up to the header. */
static enum wg_code find_header(struct wg_csv *csv, const char *const *marks, struct wg_error *err)
{
    csv->is_loose = true;
    if (wg__source_skip_mark(&csv->source, err) != WG_OK)
        return csv->source.stopped;
    for (;;) {
        size_t blanks = 0;
        size_t first = 0;
        if (skip_blank_lines(csv, &blanks, &first, err) != WG_OK)
            return csv->source.stopped;
        if (wg__source_peek(&csv->source, err) == WG_SOURCE_END)
            return STOP_AT(csv, csv->source.line, err, "no header with a column '%s'", marks[0]);
        if (read_record(csv, err) != WG_OK)
            return csv->source.stopped;
        if (has_mark(csv, marks))
            return adopt_header(csv, err);
    }
}

/* Takes over `source`, also when it fails. `marks`: of a loose reader; NULL. */
static enum wg_code open_reader(struct wg_csv **out, struct wg_source *source,
                                const char *const *marks, struct wg_error *err)
{
    struct wg_csv *csv = wg__alloc_zeroed(1, sizeof *csv);
    if (csv == NULL) {
        const enum wg_code code = wg__fail(err, WG_ENOMEM, "%s: out of memory", source->name);
        wg__source_close(source);
        return code;
    }
    csv->source = *source;
    wg__arena_init(&csv->arena);
    const enum wg_code code = marks != NULL ? find_header(csv, marks, err) : read_header(csv, err);
    if (code != WG_OK) {
        wg__csv_close(csv);
        return code;
    }
    *out = csv;
    return WG_OK;
}

enum wg_code wg__csv_open(struct wg_csv **out, const char *path, struct wg_error *err)
{
    struct wg_source source;
    const enum wg_code code = wg__source_open(&source, path, err);
    return code == WG_OK ? open_reader(out, &source, NULL, err) : code;
}

enum wg_code wg__csv_open_memory(struct wg_csv **out, const char *name, const char *bytes,
                                 size_t length, struct wg_error *err)
{
    struct wg_source source;
    const enum wg_code code = wg__source_open_memory(&source, name, bytes, length, err);
    return code == WG_OK ? open_reader(out, &source, NULL, err) : code;
}

enum wg_code wg__csv_open_loose(struct wg_csv **out, struct wg_source *source,
                                const char *const *marks, struct wg_error *err)
{
    return open_reader(out, source, marks, err);
}

void wg__csv_close(struct wg_csv *csv)
{
    if (csv == NULL)
        return;
    wg__source_close(&csv->source);
    wg__arena_fini(&csv->arena);
    wg__free(csv->record);
    wg__free(csv);
}

/* -- Reading --------------------------------------------------------------------------------------
 */

/* Presents one of the blank lines that are records of a file with one column. */
static enum wg_code give_blank(struct wg_csv *csv, struct wg_error *err)
{
    csv->record_size = 0;
    csv->field_count = 0;
    csv->record_line = csv->blanks_first++;
    csv->blanks_owed--;
    if (begin_field(csv, err) != WG_OK)
        return csv->source.stopped;
    return append(csv, "", 1, err);
}

/* Gives a record of a loose reader as many fields as the header has. */
static void fit_record(struct wg_csv *csv)
{
    for (size_t i = csv->field_count; i < csv->column_count; i++)
        csv->fields[i] = csv->record_size - 1; /* the zero byte behind the last field */
    csv->field_count = csv->column_count;
}

enum wg_code wg__csv_next(struct wg_csv *csv, bool *has_record, struct wg_error *err)
{
    if (csv->source.stopped != WG_OK)
        return wg__fail(err, csv->source.stopped, "%s: reading ended at an earlier error",
                        csv->source.name);
    if (csv->blanks_owed == 0) {
        size_t blanks = 0;
        size_t first = 0;
        if (skip_blank_lines(csv, &blanks, &first, err) != WG_OK)
            return csv->source.stopped;
        const int byte = wg__source_peek(&csv->source, err);
        if (byte == WG_SOURCE_BROKEN)
            return csv->source.stopped;
        if (byte == WG_SOURCE_END) {
            *has_record = false;
            return WG_OK;
        }
        if (blanks != 0 && csv->column_count > 1 && !csv->is_loose)
            return STOP_AT(csv, first, err, "a blank line between records");
        csv->blanks_owed = csv->is_loose ? 0 : blanks;
        csv->blanks_first = first;
    }
    const enum wg_code code = csv->blanks_owed != 0 ? give_blank(csv, err) : read_record(csv, err);
    if (code != WG_OK)
        return code;
    if (csv->is_loose)
        fit_record(csv);
    if (csv->field_count != csv->column_count)
        return STOP_AT(csv, csv->record_line, err,
                       "expected %zu fields as in the header, found %zu", csv->column_count,
                       csv->field_count);
    *has_record = true;
    return WG_OK;
}

size_t wg__csv_line(const struct wg_csv *csv)
{
    return csv->record_line;
}

static bool find_column(const struct wg_csv *csv, const char *name, size_t *out)
{
    for (size_t i = 0; i < csv->column_count; i++) {
        if (strcmp(csv->columns[i], name) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

size_t wg__csv_column_count(const struct wg_csv *csv)
{
    return csv->column_count;
}

const char *wg__csv_column_name(const struct wg_csv *csv, size_t column)
{
    return csv->columns[column];
}

bool wg__csv_has_column(const struct wg_csv *csv, const char *name)
{
    size_t column = 0;
    return find_column(csv, name, &column);
}

enum wg_code wg__csv_column(const struct wg_csv *csv, const char *name, size_t *column_out,
                            struct wg_error *err)
{
    if (find_column(csv, name, column_out))
        return WG_OK;
    char list[200] = "";
    size_t length = 0;
    for (size_t i = 0; i < csv->column_count; i++) {
        const char *title = csv->columns[i];
        const size_t size = (size_t)shown(title);
        if (length + 2 + size + sizeof ", ..." > sizeof list) {
            memcpy(list + length, ", ...", sizeof ", ...");
            break;
        }
        memcpy(list + length, ", ", 2);
        memcpy(list + length + 2, title, size);
        length += 2 + size;
        list[length] = '\0';
    }
    return wg__fail(err, WG_EDATA, "%s: no column '%.*s'; its columns are: %s", csv->source.name,
                    shown(name), name, list + 2);
}

const char *wg__csv_text(const struct wg_csv *csv, size_t column)
{
    assert(column < csv->column_count && csv->field_count == csv->column_count);
    return csv->record + csv->fields[column];
}

static enum wg_code fail_number(const struct wg_csv *csv, size_t column, struct wg_error *err)
{
    const char *text = wg__csv_text(csv, column);
    if (*text == '\0')
        return wg__csv_fail(csv, column, err, "the field is empty, expected a number");
    return wg__csv_fail(csv, column, err, "'%.*s' is not a number", shown(text), text);
}

enum wg_code wg__csv_double(const struct wg_csv *csv, size_t column, double *out,
                            struct wg_error *err)
{
    if (!wg__parse_double(wg__csv_text(csv, column), out))
        return fail_number(csv, column, err);
    return WG_OK;
}

enum wg_code wg__csv_double_or_nan(const struct wg_csv *csv, size_t column, double *out,
                                   struct wg_error *err)
{
    if (strcasecmp(wg__csv_text(csv, column), "nan") == 0) {
        *out = (double)NAN;
        return WG_OK;
    }
    return wg__csv_double(csv, column, out, err);
}

enum wg_code wg__csv_uint(const struct wg_csv *csv, size_t column, unsigned min, unsigned max,
                          unsigned *out, struct wg_error *err)
{
    const char *text = wg__csv_text(csv, column);
    uint64_t value = 0;
    if (*text == '\0')
        return wg__csv_fail(csv, column, err,
                            "the field is empty, expected a whole number from %u "
                            "to %u",
                            min, max);
    if (!wg__parse_uint64(text, &value) || value < min || value > max)
        return wg__csv_fail(csv, column, err, "'%.*s' is not a whole number from %u to %u",
                            shown(text), text, min, max);
    *out = (unsigned)value;
    return WG_OK;
}
