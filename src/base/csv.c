/* SPDX-License-Identifier: MIT
 *
 * The CSV reader.
 *
 * Bytes come in windows (64 KiB pieces out of zlib, or the caller's whole memory at once); the
 * parser copies each field, unquoted and ended by a zero byte, into one record buffer that grows to
 * RECORD_MAX and is reused:
 *
 *     record.data   e p o c h \0 1 7 \0 \0          fields   0   6   9
 *
 * Offsets instead of pointers, because the buffer moves when it grows. zlib's gzread takes plain
 * files too. It reports a truncated gzip file as an error state beside a short read, which a reader
 * that only looks at the count would take for the end of the file; fill_window asks for the state.
 *
 * Stricter than most readers on purpose, since a damaged trace must not turn into wrong joules: a
 * zero byte, a lone carriage return, text behind a closing quote, a blank line between records and
 * a record of another length than the header are errors. A quote inside an unquoted field is text.
 *
 * Owns: see struct wg_csv.    Threads: one thread at a time.
 */
#include "base/csv.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/number.h"

enum {
    WINDOW_SIZE = 1 << 16,
    RECORD_FIRST = 1024,
    RECORD_MAX = 1 << 20,
    NAME_SHOWN_MAX = 160, /* of the file's name in messages, so that the message keeps its end */
    TEXT_SHOWN_MAX = 40   /* of a field or column name */
};

/* What next_byte gives besides 0..255. */
enum { END = -1, BROKEN = -2 };

struct wg_csv {
    char *name;   /* owned; for messages */
    gzFile file;  /* owned; NULL when reading from memory */
    char *window; /* owned; NULL when reading from memory */
    const char *cursor;
    const char *end;      /* of the bytes behind cursor that are there already */
    bool at_end;          /* nothing comes after them */
    enum wg_code stopped; /* the error that ended reading; WG_OK until then */

    struct wg_arena arena; /* the column names */
    const char **columns;  /* in the arena */
    size_t column_count;   /* 0 while the header is read */

    char *record; /* owned; the fields' texts */
    size_t record_size;
    size_t record_capacity;
    size_t fields[WG_CSV_COLUMNS_MAX]; /* offsets into record */
    size_t field_count;                /* may exceed the columns; only that many are stored */
    size_t record_line;
    size_t line;         /* of the byte at cursor */
    size_t blanks_owed;  /* blank lines that turned out to be records of one empty field */
    size_t blanks_first; /* the line of the first of them */
};

/* -- Messages ----------------------------------------------------------------------------- */

/* How many bytes of `text` to show: at most `max`, cut in front of a UTF-8 character. */
static int shown(const char *text, size_t max)
{
    size_t length = strnlen(text, max + 1);
    if (length > max) {
        length = max;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80)
            length--;
    }
    return (int)length;
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
    return wg__fail(err, WG_EDATA, "%s:%zu: %s", csv->name, line, detail);
}

/* An error that ends reading: what comes behind it cannot be trusted. */
#define STOP_AT(csv, line, err, ...) ((csv)->stopped = fail_at((csv), (line), (err), __VA_ARGS__))

static enum wg_code stop_memory(struct wg_csv *csv, struct wg_error *err)
{
    csv->stopped = wg__fail(err, WG_ENOMEM, "%s: out of memory", csv->name);
    return csv->stopped;
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
    return wg__fail(err, WG_EDATA, "%s:%zu: column '%.*s': %s", csv->name, csv->record_line,
                    shown(title, TEXT_SHOWN_MAX), title, detail);
}

/* -- Bytes -------------------------------------------------------------------------------- */

static enum wg_code fill_window(struct wg_csv *csv, struct wg_error *err)
{
    csv->cursor = csv->end;
    if (csv->file == NULL) {
        csv->at_end = true;
        return WG_OK;
    }
    const int got = gzread(csv->file, csv->window, WINDOW_SIZE);
    if (got > 0) {
        csv->cursor = csv->window;
        csv->end = csv->window + got;
        return WG_OK;
    }
    int state = Z_OK;
    const char *cause = gzerror(csv->file, &state);
    if (got == 0 && (state == Z_OK || state == Z_STREAM_END)) {
        csv->at_end = true;
        return WG_OK;
    }
    if (state == Z_ERRNO)
        csv->stopped = wg__fail_errno(err, errno, "%s: cannot read", csv->name);
    else if (state == Z_MEM_ERROR)
        csv->stopped = stop_memory(csv, err);
    else if (state == Z_BUF_ERROR)
        csv->stopped = fail_at(csv, csv->line, err, "the gzip file is cut off");
    else
        csv->stopped = fail_at(csv, csv->line, err, "the gzip file is damaged: %s", cause);
    return csv->stopped;
}

/* The byte at the cursor, END or BROKEN. */
static inline int peek(struct wg_csv *csv, struct wg_error *err)
{
    while (csv->cursor == csv->end) {
        if (csv->stopped != WG_OK)
            return BROKEN;
        if (csv->at_end)
            return END;
        if (fill_window(csv, err) != WG_OK)
            return BROKEN;
    }
    return (unsigned char)*csv->cursor;
}

/* Passes the byte that peek showed. */
static inline void skip(struct wg_csv *csv)
{
    if (*csv->cursor == '\n')
        csv->line++;
    csv->cursor++;
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
        return csv->stopped;
    memcpy(csv->record + csv->record_size, bytes, length);
    csv->record_size = needed;
    return WG_OK;
}

static enum wg_code begin_field(struct wg_csv *csv, struct wg_error *err)
{
    const bool is_header = csv->column_count == 0;
    if (is_header && csv->field_count == WG_CSV_COLUMNS_MAX)
        return STOP_AT(csv, csv->line, err, "more than %d columns", WG_CSV_COLUMNS_MAX);
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
    const char *p = csv->cursor;
    if (quoted) {
        while (p < csv->end && *p != '"' && *p != '\n' && *p != '\0')
            p++;
    } else {
        while (p < csv->end && *p != ',' && *p != '\n' && *p != '\r' && *p != '\0')
            p++;
    }
    const char *from = csv->cursor;
    csv->cursor = p;
    return append(csv, from, (size_t)(p - from), err);
}

static enum wg_code stop_zero_byte(struct wg_csv *csv, struct wg_error *err)
{
    return STOP_AT(csv, csv->line, err, "a zero byte in field %zu: this is not a text file",
                   csv->field_count);
}

/* A field without quotes, up to the comma or the line end, which stay. */
static enum wg_code read_bare(struct wg_csv *csv, struct wg_error *err)
{
    for (;;) {
        const int byte = peek(csv, err);
        if (byte == BROKEN)
            return csv->stopped;
        if (byte == END || byte == ',' || byte == '\n' || byte == '\r')
            return WG_OK;
        if (byte == '\0')
            return stop_zero_byte(csv, err);
        if (copy_span(csv, false, err) != WG_OK)
            return csv->stopped;
    }
}

/* The rest of a field behind its opening quote, up to and with the closing one. */
static enum wg_code read_quoted(struct wg_csv *csv, struct wg_error *err)
{
    const size_t opened = csv->line;
    for (;;) {
        int byte = peek(csv, err);
        if (byte == BROKEN)
            return csv->stopped;
        if (byte == END)
            return STOP_AT(csv, opened, err, "the quote that opens in field %zu is never closed",
                           csv->field_count);
        if (byte == '\0')
            return stop_zero_byte(csv, err);
        if (byte == '"') {
            skip(csv);
            byte = peek(csv, err);
            if (byte == BROKEN)
                return csv->stopped;
            if (byte != '"')
                return WG_OK;
        }
        if (byte == '"' || byte == '\n') { /* a doubled quote, or a line end inside quotes */
            const char text = (char)byte;
            skip(csv);
            if (append(csv, &text, 1, err) != WG_OK)
                return csv->stopped;
            continue;
        }
        if (copy_span(csv, true, err) != WG_OK)
            return csv->stopped;
    }
}

/* Passes the LF, CRLF or end of file behind a record; a CR that ends the file counts as well. */
static enum wg_code read_line_end(struct wg_csv *csv, struct wg_error *err)
{
    int byte = peek(csv, err);
    if (byte == '\r') {
        skip(csv);
        byte = peek(csv, err);
        if (byte != '\n' && byte != END && byte != BROKEN)
            return STOP_AT(csv, csv->line, err, "a carriage return without a line feed");
    }
    if (byte == BROKEN)
        return csv->stopped;
    if (byte == '\n')
        skip(csv);
    return WG_OK;
}

/* One record, whatever its number of fields. The caller knows that there is a byte to read. */
static enum wg_code read_record(struct wg_csv *csv, struct wg_error *err)
{
    csv->record_size = 0;
    csv->field_count = 0;
    csv->record_line = csv->line;
    for (;;) {
        if (begin_field(csv, err) != WG_OK)
            return csv->stopped;
        int byte = peek(csv, err);
        if (byte == '"') {
            skip(csv);
            if (read_quoted(csv, err) != WG_OK)
                return csv->stopped;
            byte = peek(csv, err);
            if (byte != ',' && byte != '\r' && byte != '\n' && byte != END && byte != BROKEN)
                return STOP_AT(csv, csv->line, err, "text behind the closing quote of field %zu",
                               csv->field_count);
        } else if (read_bare(csv, err) != WG_OK) {
            return csv->stopped;
        }
        if (append(csv, "", 1, err) != WG_OK)
            return csv->stopped;
        byte = peek(csv, err);
        if (byte == BROKEN)
            return csv->stopped;
        if (byte != ',')
            return read_line_end(csv, err);
        skip(csv);
    }
}

/* Passes blank lines; `*count` of them, the first on line `*first`. A line with only a CR is blank.
 */
static enum wg_code skip_blank_lines(struct wg_csv *csv, size_t *count, size_t *first,
                                     struct wg_error *err)
{
    *count = 0;
    *first = csv->line;
    for (;;) {
        const int byte = peek(csv, err);
        if (byte == BROKEN)
            return csv->stopped;
        if (byte != '\n' && byte != '\r')
            return WG_OK;
        if (read_line_end(csv, err) != WG_OK)
            return csv->stopped;
        ++*count;
    }
}

/* -- Opening --------------------------------------------------------------------------------------
 */

static enum wg_code skip_byte_order_mark(struct wg_csv *csv, struct wg_error *err)
{
    /* A window holds at least three bytes if the file does: zlib fills the first one. */
    if (peek(csv, err) == BROKEN)
        return csv->stopped;
    if (csv->end - csv->cursor >= 3 && memcmp(csv->cursor, "\xEF\xBB\xBF", 3) == 0)
        csv->cursor += 3;
    return WG_OK;
}

/* Keeps the present record as the column names. */
static enum wg_code adopt_header(struct wg_csv *csv, struct wg_error *err)
{
    const char **columns = wg__arena_alloc(&csv->arena, csv->field_count, sizeof *columns);
    if (columns == NULL)
        return stop_memory(csv, err);
    for (size_t i = 0; i < csv->field_count; i++) {
        const char *name = csv->record + csv->fields[i];
        if (*name == '\0')
            return STOP_AT(csv, csv->record_line, err, "column %zu has no name", i + 1);
        for (size_t j = 0; j < i; j++) {
            if (strcmp(columns[j], name) == 0)
                return STOP_AT(csv, csv->record_line, err, "columns %zu and %zu are both '%.*s'",
                               j + 1, i + 1, shown(name, TEXT_SHOWN_MAX), name);
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
    if (skip_byte_order_mark(csv, err) != WG_OK)
        return csv->stopped;
    size_t blanks = 0;
    size_t first = 0;
    if (skip_blank_lines(csv, &blanks, &first, err) != WG_OK)
        return csv->stopped;
    const int byte = peek(csv, err);
    if (byte == BROKEN)
        return csv->stopped;
    if (byte == END)
        return STOP_AT(csv, first, err, "the file is empty, expected a header line");
    if (blanks != 0)
        return STOP_AT(csv, first, err, "a blank line, expected the header");
    if (read_record(csv, err) != WG_OK)
        return csv->stopped;
    return adopt_header(csv, err);
}

static enum wg_code new_reader(struct wg_csv **out, const char *name, struct wg_error *err)
{
    const size_t length = strlen(name);
    const char *tail = name;
    if (length > NAME_SHOWN_MAX) { /* the end of a path tells more than its beginning */
        tail = name + length - NAME_SHOWN_MAX;
        while (((unsigned char)*tail & 0xC0) == 0x80)
            tail++;
    }
    const size_t size = strlen(tail) + 1;
    struct wg_csv *csv = wg__alloc_zeroed(1, sizeof *csv);
    if (csv == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", name);
    csv->name = wg__alloc(size + 3);
    if (csv->name == NULL) {
        wg__csv_close(csv);
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", name);
    }
    const size_t dots = tail != name ? 3 : 0;
    memcpy(csv->name, "...", dots);
    memcpy(csv->name + dots, tail, size);
    wg__arena_init(&csv->arena);
    csv->line = 1;
    *out = csv;
    return WG_OK;
}

/* Opens the descriptor and hands it to zlib; a failure leaves nothing open. */
static enum wg_code open_file(struct wg_csv *csv, const char *path, struct wg_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return wg__fail_errno(err, errno, "%s: cannot open", csv->name);
    struct stat status;
    if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
        (void)close(fd);
        return wg__fail_errno(err, EISDIR, "%s: cannot read", csv->name);
    }
    csv->file = gzdopen(fd, "rb");
    if (csv->file == NULL) {
        (void)close(fd);
        return stop_memory(csv, err);
    }
    (void)gzbuffer(csv->file, WINDOW_SIZE); /* only speed: the smaller default works as well */
    csv->window = wg__alloc(WINDOW_SIZE);
    if (csv->window == NULL)
        return stop_memory(csv, err);
    csv->cursor = csv->window;
    csv->end = csv->window;
    return WG_OK;
}

enum wg_code wg__csv_open(struct wg_csv **out, const char *path, struct wg_error *err)
{
    struct wg_csv *csv = NULL;
    enum wg_code code = new_reader(&csv, path, err);
    if (code != WG_OK)
        return code;
    code = open_file(csv, path, err);
    if (code == WG_OK)
        code = read_header(csv, err);
    if (code != WG_OK) {
        wg__csv_close(csv);
        return code;
    }
    *out = csv;
    return WG_OK;
}

enum wg_code wg__csv_open_memory(struct wg_csv **out, const char *name, const char *bytes,
                                 size_t length, struct wg_error *err)
{
    struct wg_csv *csv = NULL;
    enum wg_code code = new_reader(&csv, name, err);
    if (code != WG_OK)
        return code;
    csv->cursor = length != 0 ? bytes : "";
    csv->end = csv->cursor + length;
    code = read_header(csv, err);
    if (code != WG_OK) {
        wg__csv_close(csv);
        return code;
    }
    *out = csv;
    return WG_OK;
}

void wg__csv_close(struct wg_csv *csv)
{
    if (csv == NULL)
        return;
    if (csv->file != NULL)
        (void)gzclose(csv->file); /* opened for reading: nothing can be lost here */
    wg__arena_fini(&csv->arena);
    wg__free(csv->record);
    wg__free(csv->window);
    wg__free(csv->name);
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
        return csv->stopped;
    return append(csv, "", 1, err);
}

enum wg_code wg__csv_next(struct wg_csv *csv, bool *has_record, struct wg_error *err)
{
    if (csv->stopped != WG_OK)
        return wg__fail(err, csv->stopped, "%s: reading ended at an earlier error", csv->name);
    if (csv->blanks_owed == 0) {
        size_t blanks = 0;
        size_t first = 0;
        if (skip_blank_lines(csv, &blanks, &first, err) != WG_OK)
            return csv->stopped;
        const int byte = peek(csv, err);
        if (byte == BROKEN)
            return csv->stopped;
        if (byte == END) {
            *has_record = false;
            return WG_OK;
        }
        if (blanks != 0 && csv->column_count > 1)
            return STOP_AT(csv, first, err, "a blank line between records");
        csv->blanks_owed = blanks;
        csv->blanks_first = first;
    }
    const enum wg_code code = csv->blanks_owed != 0 ? give_blank(csv, err) : read_record(csv, err);
    if (code != WG_OK)
        return code;
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
        const size_t size = (size_t)shown(title, TEXT_SHOWN_MAX);
        if (length + size + sizeof ", ..." > sizeof list) {
            memcpy(list + length, ", ...", sizeof ", ...");
            break;
        }
        memcpy(list + length, ", ", 2);
        memcpy(list + length + 2, title, size);
        length += 2 + size;
        list[length] = '\0';
    }
    return wg__fail(err, WG_EDATA, "%s: no column '%.*s'; its columns are: %s", csv->name,
                    shown(name, TEXT_SHOWN_MAX), name, list + 2);
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
    return wg__csv_fail(csv, column, err, "'%.*s' is not a number", shown(text, TEXT_SHOWN_MAX),
                        text);
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
                            shown(text, TEXT_SHOWN_MAX), text, min, max);
    *out = (unsigned)value;
    return WG_OK;
}
