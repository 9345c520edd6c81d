/* SPDX-License-Identifier: MIT
 *
 * Reading a trace file: CSV by its header, text by its lines, a JSON list by its commas.
 *
 * The first byte that is no blank decides: a digit, a sign or a point begins text, a bracket a
 * list, a brace JSON objects one a line, anything else a header. Lists are read as text whose
 * separators are commas and blanks; the rest of JSON occurs in no list of numbers.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "schedule/arrival_reader.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/csv.h"
#include "base/number.h"
#include "base/source.h"
#include "schedule/arrival_json.h"
#include "schedule/arrival_moment.h"

enum { WORD_SIZE = 64, LINE_MAX = 1 << 20 };

/* -- Collecting ---------------------------------------------------------------------------- */

static enum wg_code append(struct wg_arrival_numbers *numbers, double value, size_t line,
                           const char *name, struct wg_error *err)
{
    if (numbers->count == WG_ARRIVALS_MAX)
        return wg__fail(err, WG_EDATA, "%s:%zu: more than %d numbers", name, line, WG_ARRIVALS_MAX);
    if (numbers->count == numbers->capacity) {
        const size_t capacity = numbers->capacity == 0 ? 1024 : 2 * numbers->capacity;
        double *values = wg__realloc_array(numbers->values, capacity, sizeof *values);
        if (values == NULL)
            return wg__fail(err, WG_ENOMEM, "%s: out of memory", name);
        numbers->values = values;
        numbers->capacity = capacity;
    }
    if (numbers->fall_line == 0 && numbers->count != 0 &&
        value < numbers->values[numbers->count - 1])
        numbers->fall_line = line;
    if (numbers->negative_line == 0 && value < 0.0) {
        numbers->negative_line = line;
        numbers->negative = value;
    }
    if (numbers->not_count_line == 0 && (value < 0.0 || value > 1e9 || value != floor(value))) {
        numbers->not_count_line = line;
        numbers->not_count = value;
    }
    numbers->values[numbers->count++] = value;
    numbers->last_line = line;
    return WG_OK;
}

/* -- Text ---------------------------------------------------------------------------------- */

static bool is_blank(int byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r';
}

/* Whether `byte` ends a word. */
static bool separates(int byte, bool is_list)
{
    if (is_list && (is_blank(byte) || byte == ',' || byte == ']'))
        return true;
    return byte == WG_SOURCE_END || byte == WG_SOURCE_BROKEN || byte == '\n';
}

static void skip_line(struct wg_source *source, struct wg_error *err)
{
    for (int byte = wg__source_peek(source, err); !separates(byte, false);
         byte = wg__source_peek(source, err))
        wg__source_skip(source);
}

/* To the next word: over blanks, line ends and comments, or over commas in a list. Stays in front
 * of the bracket that ends a list. */
static void skip_to_word(struct wg_source *source, bool is_list, struct wg_error *err)
{
    for (;;) {
        const int byte = wg__source_peek(source, err);
        if (!is_list && byte == '#')
            skip_line(source, err);
        else if (is_blank(byte) || byte == '\n' || (is_list && byte == ','))
            wg__source_skip(source);
        else
            return;
    }
}

/* The next word: of a list, up to what separates, or the whole line without the blanks around it.
 * Empty at the end of the input or of the list. */
static enum wg_code next_word(struct wg_source *source, bool is_list, char word[WORD_SIZE],
                              size_t *line_out, struct wg_error *err)
{
    size_t length = 0;
    skip_to_word(source, is_list, err);
    *line_out = source->line;
    for (int byte = wg__source_peek(source, err); !separates(byte, is_list);
         byte = wg__source_peek(source, err)) {
        if (length + 1 == WORD_SIZE || byte == '\0')
            return wg__fail(err, WG_EDATA, "%s:%zu: expected one number a line", source->name,
                            source->line);
        word[length++] = (char)byte;
        wg__source_skip(source);
    }
    if (source->stopped != WG_OK)
        return source->stopped;
    while (length != 0 && is_blank((unsigned char)word[length - 1]))
        length--;
    word[length] = '\0';
    return WG_OK;
}

/* Behind a list: its bracket, and nothing more. */
static enum wg_code end_list(struct wg_source *source, struct wg_error *err)
{
    const size_t line = source->line;
    int byte = wg__source_peek(source, err);
    if (byte == ']') {
        do {
            wg__source_skip(source);
            byte = wg__source_peek(source, err);
        } while (is_blank(byte) || byte == '\n');
        if (byte == WG_SOURCE_END)
            return WG_OK;
    }
    if (byte == WG_SOURCE_BROKEN)
        return source->stopped;
    return wg__fail(err, WG_EDATA, "%s:%zu: expected one list of numbers, ended by ']'",
                    source->name, line);
}

static enum wg_code read_text(struct wg_arrival_numbers *numbers, struct wg_source *source,
                              struct wg_error *err)
{
    const bool is_list = *source->cursor == '[';
    if (is_list)
        wg__source_skip(source);
    for (;;) {
        char word[WORD_SIZE] = "";
        size_t line = 0;
        enum wg_code code = next_word(source, is_list, word, &line, err);
        if (code != WG_OK)
            return code;
        if (word[0] == '\0')
            return is_list ? end_list(source, err) : WG_OK;
        double value = 0.0;
        if (!wg__parse_double(word, &value))
            return wg__fail(err, WG_EDATA, "%s:%zu: '%s' is not a number, expected one%s",
                            source->name, line, word, is_list ? "" : " a line");
        code = append(numbers, value, line, source->name, err);
        if (code != WG_OK)
            return code;
    }
}

/* -- JSON objects, one a line -------------------------------------------------------------- */

/* The rest of the line, without its end. */
static enum wg_code read_line(struct wg_source *source, struct wg_buffer *line,
                              struct wg_error *err)
{
    line->length = 0;
    while (!separates(wg__source_peek(source, err), false)) {
        const char *end = memchr(source->cursor, '\n', (size_t)(source->end - source->cursor));
        const char *stop = end != NULL ? end : source->end;
        wg__buffer_append(line, source->cursor, (size_t)(stop - source->cursor));
        source->cursor = stop;
        if (line->failed)
            return wg__fail(err, WG_ENOMEM, "%s: out of memory", source->name);
        if (line->length > LINE_MAX)
            return wg__fail(err, WG_EDATA, "%s:%zu: a line longer than %d bytes", source->name,
                            source->line, LINE_MAX);
    }
    return source->stopped;
}

static enum wg_code read_object(struct wg_arrival_numbers *numbers, struct wg_source *source,
                                struct wg_buffer *line, struct wg_error *err)
{
    const enum wg_code code = read_line(source, line, err);
    if (code != WG_OK)
        return code;
    char scratch[WG_ARRIVAL_JSON_WHY_SIZE];
    double moment_s = 0.0;
    const char *why = wg__arrival_json_moment(line->data, line->length, &moment_s, scratch);
    if (why != NULL)
        return wg__fail(err, WG_EDATA, "%s:%zu: %s", source->name, source->line, why);
    return append(numbers, moment_s, source->line, source->name, err);
}

static enum wg_code read_objects(struct wg_arrival_numbers *numbers, struct wg_source *source,
                                 struct wg_error *err)
{
    struct wg_buffer line;
    wg__buffer_init(&line);
    numbers->kind = WG_ARRIVAL_MOMENTS;
    enum wg_code code = WG_OK;
    for (;;) {
        skip_to_word(source, false, err);
        const int byte = wg__source_peek(source, err);
        if (byte == WG_SOURCE_BROKEN)
            code = source->stopped;
        if (code != WG_OK || byte == WG_SOURCE_END)
            break;
        code = read_object(numbers, source, &line, err);
    }
    wg__buffer_fini(&line);
    return code;
}

/* -- CSV ----------------------------------------------------------------------------------- */

/* Column names by what they hold, in the order of preference. */
static const struct {
    const char *name;
    enum wg_arrival_kind kind;
} known_columns[] = {
    {"count", WG_ARRIVAL_COUNTS},        {"requests", WG_ARRIVAL_COUNTS},
    {"gap_s", WG_ARRIVAL_GAPS},          {"arrival_s", WG_ARRIVAL_MOMENTS},
    {"timestamp_s", WG_ARRIVAL_MOMENTS}, {"TIMESTAMP", WG_ARRIVAL_MOMENTS},
    {"timestamp", WG_ARRIVAL_MOMENTS},   {"time_s", WG_ARRIVAL_MOMENTS},
    {"time", WG_ARRIVAL_MOMENTS},
};

/* Columns that say which second a count is of; those of moments do too. */
static const char *const second_columns[] = {"second", "seconds", "second_s", "t_s"};

struct table {
    struct wg_csv *csv;
    const char *name;
    size_t column;
    size_t second_column;
    struct wg_arrival_moment first; /* of the column of moments, or of seconds */
    bool has_first;
};

static bool find_column(const struct wg_csv *csv, const char *name, size_t *out)
{
    return wg__csv_has_column(csv, name) && wg__csv_column(csv, name, out, NULL) == WG_OK;
}

/* Looks the header up; the kind stays AUTO when it says nothing. */
static void choose_columns(struct table *table, struct wg_arrival_numbers *numbers)
{
    const size_t known = sizeof known_columns / sizeof *known_columns;
    size_t chosen = 0;
    while (chosen < known && !find_column(table->csv, known_columns[chosen].name, &table->column))
        chosen++;
    if (chosen == known)
        return;
    numbers->kind = known_columns[chosen].kind;
    if (numbers->kind != WG_ARRIVAL_COUNTS)
        return;
    for (size_t i = 0; i < sizeof second_columns / sizeof *second_columns; i++)
        numbers->has_seconds = numbers->has_seconds ||
                               find_column(table->csv, second_columns[i], &table->second_column);
    for (size_t i = 0; i < known && !numbers->has_seconds; i++)
        numbers->has_seconds =
            known_columns[i].kind == WG_ARRIVAL_MOMENTS &&
            find_column(table->csv, known_columns[i].name, &table->second_column);
}

/* The first column of the present record that holds a moment. */
static enum wg_code find_numeric(struct table *table, struct wg_error *err)
{
    struct wg_arrival_moment moment;
    for (size_t i = 0; i < wg__csv_column_count(table->csv); i++) {
        if (wg__arrival_moment_parse(wg__csv_text(table->csv, i), &moment)) {
            table->column = i;
            return WG_OK;
        }
    }
    return wg__fail(err, WG_EDATA,
                    "%s:%zu: no column holds a number or a date, expected one of arrivals "
                    "(arrival_s, timestamp) or of counts a second (count, requests)",
                    table->name, wg__csv_line(table->csv));
}

/* A field as seconds from the first record's. */
static enum wg_code read_moment(struct table *table, size_t column, double *out,
                                struct wg_error *err)
{
    struct wg_arrival_moment moment;
    const char *text = wg__csv_text(table->csv, column);
    if (!wg__arrival_moment_parse(text, &moment))
        return wg__csv_fail(table->csv, column, err,
                            "'%.40s' is neither seconds nor a date with a time", text);
    if (!table->has_first) {
        table->first = moment;
        table->has_first = true;
    }
    if (moment.is_date != table->first.is_date)
        return wg__csv_fail(table->csv, column, err, "'%.40s' %s a date, unlike the row before",
                            text, moment.is_date ? "is" : "is not");
    *out = (double)(moment.whole_s - table->first.whole_s) + moment.rest_s;
    if (moment.is_date)
        *out -= table->first.rest_s;
    return WG_OK;
}

/* Seconds of a count come in order, each once; `*last` is the one before. */
static enum wg_code check_second(struct table *table, bool is_first, double *last,
                                 struct wg_error *err)
{
    double second = 0.0;
    const enum wg_code code = read_moment(table, table->second_column, &second, err);
    if (code != WG_OK)
        return code;
    if (!is_first && second < *last + 0.999)
        return wg__csv_fail(table->csv, table->second_column, err,
                            "'%.40s' is not a second after the row before, expected one row a "
                            "second in order",
                            wg__csv_text(table->csv, table->second_column));
    *last = second;
    return WG_OK;
}

static enum wg_code read_value(struct table *table, const struct wg_arrival_numbers *numbers,
                               double *out, struct wg_error *err)
{
    if (numbers->kind == WG_ARRIVAL_MOMENTS)
        return read_moment(table, table->column, out, err);
    if (numbers->kind == WG_ARRIVAL_COUNTS) {
        unsigned count = 0;
        const enum wg_code code =
            wg__csv_uint(table->csv, table->column, 0, 1000000000, &count, err);
        *out = count;
        return code;
    }
    return wg__csv_double(table->csv, table->column, out, err);
}

static enum wg_code read_table(struct table *table, struct wg_arrival_numbers *numbers,
                               struct wg_error *err)
{
    choose_columns(table, numbers);
    double second = 0.0;
    for (;;) {
        bool has_record = false;
        double value = 0.0;
        enum wg_code code = wg__csv_next(table->csv, &has_record, err);
        if (code != WG_OK || !has_record)
            return code;
        if (numbers->kind == WG_ARRIVAL_AUTO) {
            code = find_numeric(table, err);
            numbers->kind = WG_ARRIVAL_MOMENTS;
        }
        if (code == WG_OK && numbers->has_seconds)
            code = check_second(table, numbers->count == 0, &second, err);
        if (code == WG_OK)
            code = read_value(table, numbers, &value, err);
        if (code == WG_OK)
            code = append(numbers, value, wg__csv_line(table->csv), table->name, err);
        if (code != WG_OK)
            return code;
    }
}

/* -- Opening ------------------------------------------------------------------------------- */

/* Leaves the source in front of its first byte that is neither blank, mark nor comment. */
static enum wg_code sniff(struct wg_source *source, int *byte_out, struct wg_error *err)
{
    const enum wg_code code = wg__source_skip_mark(source, err);
    if (code != WG_OK)
        return code;
    int byte = wg__source_peek(source, err);
    while (is_blank(byte) || byte == '\n') {
        wg__source_skip(source);
        byte = wg__source_peek(source, err);
    }
    if (byte == WG_SOURCE_BROKEN)
        return source->stopped;
    if (byte == WG_SOURCE_END)
        return wg__fail(err, WG_EDATA, "%s:%zu: the file is empty, expected arrivals", source->name,
                        source->line);
    *byte_out = byte;
    return WG_OK;
}

static enum wg_code read_csv(struct wg_arrival_numbers *numbers,
                             const struct wg_arrival_input *input, const char *name,
                             struct wg_error *err)
{
    struct table table = {.name = name};
    enum wg_code code = input->bytes != NULL ? wg__csv_open_memory(&table.csv, input->path,
                                                                   input->bytes, input->length, err)
                                             : wg__csv_open(&table.csv, input->path, err);
    if (code == WG_OK)
        code = read_table(&table, numbers, err);
    wg__csv_close(table.csv);
    return code;
}

enum wg_code wg__arrival_numbers_read(struct wg_arrival_numbers *out,
                                      const struct wg_arrival_input *input, struct wg_error *err)
{
    struct wg_arrival_numbers numbers = {.kind = WG_ARRIVAL_AUTO};
    struct wg_source source;
    int byte = 0;
    enum wg_code code =
        input->bytes != NULL
            ? wg__source_open_memory(&source, input->path, input->bytes, input->length, err)
            : wg__source_open(&source, input->path, err);
    if (code != WG_OK)
        return code;
    code = sniff(&source, &byte, err);
    if (code == WG_OK && byte == '{')
        code = read_objects(&numbers, &source, err);
    else if (code == WG_OK && strchr("0123456789+-.[#", byte) != NULL)
        code = read_text(&numbers, &source, err);
    else if (code == WG_OK)
        code = read_csv(&numbers, input, source.name, err);
    if (code == WG_OK && numbers.count == 0)
        code = wg__fail(err, WG_EDATA, "%s:%zu: no arrivals in it, expected one at least",
                        source.name, source.line);
    wg__source_close(&source);
    if (code != WG_OK) {
        wg__arrival_numbers_fini(&numbers);
        return code;
    }
    *out = numbers;
    return WG_OK;
}

void wg__arrival_numbers_fini(struct wg_arrival_numbers *numbers)
{
    wg__free(numbers->values);
    *numbers = (struct wg_arrival_numbers){.kind = WG_ARRIVAL_AUTO};
}
