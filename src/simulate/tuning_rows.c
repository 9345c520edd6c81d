/* SPDX-License-Identifier: MIT
 *
 * Reading the rows of a measured grid: see tuning_rows.h.
 *
 * One pass over the file. For the message about a selection that selects nothing, the first few
 * texts of each selecting column are kept, and whether its own value was ever met.
 *
 * Threads: one at a time.
 */
#include "simulate/tuning_rows.h"

#include <fnmatch.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "base/expression.h"
#include "base/number.h"

enum { ROWS_FIRST = 256, ROWS_MAX = 4000000, SEEN_MAX = 6, OPTION_BYTES = 320 };

/* An expression and the columns that its names stand for. */
struct formula {
    const char *option;
    const char *text;
    struct wg_expression *expression; /* owned */
    size_t columns[WG_EXPRESSION_NAMES_MAX];
};

struct reader {
    const struct wg_tuning_grid_request *request;
    struct wg_csv *csv;
    struct wg_tuning_rows *rows;
    size_t match_columns[WG_TUNING_WHERE_MAX];
    bool was_met[WG_TUNING_WHERE_MAX];
    const char *seen[WG_TUNING_WHERE_MAX][SEEN_MAX]; /* texts of the column, in the rows' arena */
    size_t seen_count[WG_TUNING_WHERE_MAX];
    size_t axis_columns[WG_TUNING_KNOBS_MAX];
    size_t formula_count;
    struct formula formulas[WG_TUNING_FIGURES_MAX];
};

/* -- Columns --------------------------------------------------------------------------------- */

/* Puts the option in front of an error that a name of its value caused. */
static enum wg_code blame(const char *option, const char *value, struct wg_error *err)
{
    const struct wg_error cause = *err;
    return wg__fail(err, cause.code == WG_ENOMEM ? WG_ENOMEM : WG_EINVAL, "--%s '%s': %s", option,
                    value, cause.text);
}

static enum wg_code find_column(const struct reader *reader, const char *option, const char *value,
                                const char *column, size_t *out, struct wg_error *err)
{
    struct wg_error cause = {0};
    if (wg__csv_column(reader->csv, column, out, &cause) == WG_OK)
        return WG_OK;
    const enum wg_code code = blame(option, value, &cause);
    if (err != NULL)
        *err = cause;
    return code;
}

static enum wg_code compile(struct reader *reader, const char *option, const char *text,
                            struct wg_error *err)
{
    struct formula *formula = &reader->formulas[reader->formula_count++];
    *formula = (struct formula){.option = option, .text = text};
    struct wg_error cause = {0};
    enum wg_code code = wg__expression_compile(&formula->expression, text, &cause);
    if (code != WG_OK)
        return wg__fail(err, code, "--%s: %s", option, cause.text);
    for (size_t i = 0; i < wg__expression_name_count(formula->expression) && code == WG_OK; i++)
        code = find_column(reader, option, text, wg__expression_name(formula->expression, i),
                           &formula->columns[i], err);
    return code;
}

static bool is_used(const struct reader *reader, size_t column)
{
    for (size_t i = 0; i < reader->request->axis_count; i++)
        if (reader->axis_columns[i] == column)
            return true;
    for (size_t f = 0; f < reader->formula_count; f++)
        for (size_t i = 0; i < wg__expression_name_count(reader->formulas[f].expression); i++)
            if (reader->formulas[f].columns[i] == column)
                return true;
    return false;
}

static enum wg_code find_asides(struct reader *reader, struct wg_error *err)
{
    struct wg_tuning_rows *rows = reader->rows;
    for (size_t c = 0; c < wg__csv_column_count(reader->csv); c++) {
        if (is_used(reader, c) || rows->aside_count == WG_TUNING_ASIDES_MAX)
            continue;
        struct wg_tuning_aside *aside = &rows->asides[rows->aside_count++];
        aside->column = c;
        aside->name = wg__arena_strdup(&rows->arena, wg__csv_column_name(reader->csv, c));
        if (aside->name == NULL)
            return wg__fail(err, WG_ENOMEM, "out of memory");
    }
    return WG_OK;
}

static enum wg_code find_columns(struct reader *reader, struct wg_error *err)
{
    const struct wg_tuning_grid_request *request = reader->request;
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < request->match_count && code == WG_OK; i++)
        code = find_column(reader, "where", request->matches[i].column, request->matches[i].column,
                           &reader->match_columns[i], err);
    for (size_t i = 0; i < request->axis_count && code == WG_OK; i++)
        code = find_column(reader, "knob", request->axes[i].column, request->axes[i].column,
                           &reader->axis_columns[i], err);
    if (code == WG_OK)
        code = compile(reader, "objective", request->objective, err);
    for (size_t i = 0; i < request->limit_count && code == WG_OK; i++)
        code = compile(reader, "limit", request->limits[i].expression, err);
    return code == WG_OK ? find_asides(reader, err) : code;
}

/* -- Rows ------------------------------------------------------------------------------------ */

static bool is_match(const char *pattern, const char *text)
{
    double wanted = 0, found = 0;
    if (fnmatch(pattern, text, 0) == 0)
        return true;
    return wg__parse_double(pattern, &wanted) && wg__parse_double(text, &found) && wanted == found;
}

/* The place of `text` among `count` others, where a new one is kept; `max`: it is one too many. */
static enum wg_code find_text(struct wg_tuning_rows *rows, const char *text, const char **texts,
                              size_t *count, size_t max, size_t *out, struct wg_error *err)
{
    size_t index = 0;
    while (index < *count && strcmp(texts[index], text) != 0)
        index++;
    *out = index;
    if (index < *count || index == max)
        return WG_OK;
    texts[index] = wg__arena_strdup(&rows->arena, text);
    if (texts[index] == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    ++*count;
    return WG_OK;
}

/* Keeps a text that was not seen before, while there is room. */
static enum wg_code keep_seen(struct reader *reader, size_t index, const char *text,
                              struct wg_error *err)
{
    size_t place = 0;
    return find_text(reader->rows, text, reader->seen[index], &reader->seen_count[index], SEEN_MAX,
                     &place, err);
}

static enum wg_code select_row(struct reader *reader, bool *is_selected, struct wg_error *err)
{
    *is_selected = true;
    for (size_t i = 0; i < reader->request->match_count; i++) {
        const char *text = wg__csv_text(reader->csv, reader->match_columns[i]);
        if (is_match(reader->request->matches[i].value, text)) {
            reader->was_met[i] = true;
            continue;
        }
        *is_selected = false;
        if (!reader->was_met[i] && keep_seen(reader, i, text, err) != WG_OK)
            return WG_ENOMEM;
    }
    return WG_OK;
}

static enum wg_code read_label(struct reader *reader, size_t axis, double *out,
                               struct wg_error *err)
{
    struct wg_tuning_rows *rows = reader->rows;
    const char *text = wg__csv_text(reader->csv, reader->axis_columns[axis]);
    size_t index = 0;
    const enum wg_code code = find_text(rows, text, rows->labels[axis], &rows->label_count[axis],
                                        WG_TUNING_LEVELS_MAX, &index, err);
    if (index == WG_TUNING_LEVELS_MAX)
        return wg__csv_fail(reader->csv, reader->axis_columns[axis], err,
                            "more than %d different values", WG_TUNING_LEVELS_MAX);
    *out = (double)index;
    return code;
}

static enum wg_code read_asides(struct reader *reader, struct wg_tuning_row *row,
                                struct wg_error *err)
{
    struct wg_tuning_rows *rows = reader->rows;
    for (size_t i = 0; i < rows->aside_count; i++) {
        struct wg_tuning_aside *aside = &rows->asides[i];
        size_t index = 0;
        if (aside->has_many)
            continue;
        const enum wg_code code =
            find_text(rows, wg__csv_text(reader->csv, aside->column), aside->texts,
                      &aside->text_count, WG_TUNING_ASIDE_TEXTS_MAX, &index, err);
        if (code != WG_OK)
            return code;
        aside->has_many = index == WG_TUNING_ASIDE_TEXTS_MAX;
        row->asides[i] = (unsigned char)index;
    }
    return WG_OK;
}

static enum wg_code read_knob(struct reader *reader, size_t axis, double *out, struct wg_error *err)
{
    const enum wg_tuning_role role = reader->request->axes[axis].role;
    const size_t column = reader->axis_columns[axis];
    if (role == WG_TUNING_CATEGORY)
        return read_label(reader, axis, out, err);
    const enum wg_code code = wg__csv_double(reader->csv, column, out, err);
    if (code != WG_OK)
        return code;
    const bool may_be_zero = role == WG_TUNING_DELAY;
    if (*out > 0 || (may_be_zero && *out == 0))
        return WG_OK;
    return wg__csv_fail(reader->csv, column, err, "%g cannot be a %s, expected a number %s 0", *out,
                        wg__tuning_role_word(role), may_be_zero ? "of at least" : "above");
}

static enum wg_code read_figure(struct reader *reader, const struct formula *formula, double *out,
                                struct wg_error *err)
{
    double values[WG_EXPRESSION_NAMES_MAX];
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < wg__expression_name_count(formula->expression) && code == WG_OK; i++)
        code = wg__csv_double(reader->csv, formula->columns[i], &values[i], err);
    if (code != WG_OK)
        return code;
    *out = wg__expression_evaluate(formula->expression, values);
    if (isfinite(*out) && *out > 0)
        return WG_OK;
    return wg__fail(err, WG_EDATA, "%s:%zu: --%s '%s' is %g there, expected a number above 0",
                    reader->request->path, wg__csv_line(reader->csv), formula->option,
                    formula->text, *out);
}

static enum wg_code add_row(struct reader *reader, struct wg_error *err)
{
    struct wg_tuning_rows *rows = reader->rows;
    if (rows->count == rows->capacity) {
        const size_t capacity = rows->capacity != 0 ? 2 * rows->capacity : ROWS_FIRST;
        struct wg_tuning_row *items = wg__realloc_array(rows->items, capacity, sizeof *items);
        if (items == NULL)
            return wg__fail(err, WG_ENOMEM, "out of memory");
        rows->items = items;
        rows->capacity = capacity;
    }
    if (rows->count == ROWS_MAX)
        return wg__fail(err, WG_EDATA, "%s:%zu: more than %d rows are selected",
                        reader->request->path, wg__csv_line(reader->csv), ROWS_MAX);
    struct wg_tuning_row *row = &rows->items[rows->count];
    *row = (struct wg_tuning_row){.line = wg__csv_line(reader->csv)};
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < reader->request->axis_count && code == WG_OK; i++)
        code = read_knob(reader, i, &row->knobs[i], err);
    for (size_t i = 0; i < reader->formula_count && code == WG_OK; i++)
        code = read_figure(reader, &reader->formulas[i], &row->figures[i], err);
    if (code == WG_OK)
        code = read_asides(reader, row, err);
    rows->count += code == WG_OK;
    return code;
}

/* No row was selected: which condition is to blame, and what its column has. */
static enum wg_code fail_empty(const struct reader *reader, struct wg_error *err)
{
    const struct wg_tuning_grid_request *request = reader->request;
    if (request->match_count == 0)
        return wg__fail(err, WG_EDATA, "%s: no rows below the header", request->path);
    for (size_t i = 0; i < request->match_count; i++) {
        if (reader->was_met[i])
            continue;
        char known[OPTION_BYTES] = "";
        size_t length = 0;
        for (size_t s = 0; s < reader->seen_count[i] && length < sizeof known; s++)
            length += (size_t)snprintf(known + length, sizeof known - length, "%s%.40s",
                                       s == 0 ? "" : ", ", reader->seen[i][s]);
        return wg__fail(err, WG_EINVAL, "--where: no row of %s has %s=%s (%s%s)", request->path,
                        request->matches[i].column, request->matches[i].value, known,
                        reader->seen_count[i] == SEEN_MAX ? ", ..." : "");
    }
    return wg__fail(err, WG_EINVAL,
                    "--where: each condition holds for some row of %s, but no row "
                    "meets all %zu",
                    request->path, request->match_count);
}

static enum wg_code read_all(struct reader *reader, struct wg_error *err)
{
    enum wg_code code = find_columns(reader, err);
    bool has_record = code == WG_OK;
    while (code == WG_OK && has_record) {
        bool is_selected = false;
        code = wg__csv_next(reader->csv, &has_record, err);
        if (code == WG_OK && has_record)
            code = select_row(reader, &is_selected, err);
        if (code == WG_OK && is_selected)
            code = add_row(reader, err);
    }
    return code == WG_OK && reader->rows->count == 0 ? fail_empty(reader, err) : code;
}

enum wg_code wg__tuning_rows_read(struct wg_tuning_rows *rows,
                                  const struct wg_tuning_grid_request *request,
                                  struct wg_error *err)
{
    memset(rows, 0, sizeof *rows);
    wg__arena_init(&rows->arena);
    struct reader *reader = wg__alloc_zeroed(1, sizeof *reader);
    if (reader == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    reader->request = request;
    reader->rows = rows;
    enum wg_code code = wg__csv_open(&reader->csv, request->path, err);
    if (code == WG_OK)
        code = read_all(reader, err);
    for (size_t i = 0; i < reader->formula_count; i++)
        wg__expression_free(reader->formulas[i].expression);
    wg__csv_close(reader->csv);
    wg__free(reader);
    return code;
}

void wg__tuning_rows_fini(struct wg_tuning_rows *rows)
{
    wg__free(rows->items);
    wg__arena_fini(&rows->arena);
    rows->items = NULL;
}
