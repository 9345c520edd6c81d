/* SPDX-License-Identifier: MIT
 *
 * Reading figures; see workload_figures.h.
 */
#include "live/workload_figures.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "math/statistics.h"

enum { ROWS_MAX = 1 << 20, NEST_MAX = 4 };

static const char error_end[] = "_error";

const struct wg_workload_figure *wg__workload_figure_find(const struct wg_workload_sample *sample,
                                                          const char *name)
{
    for (size_t i = 0; i < sample->figure_count; i++)
        if (strcmp(sample->figures[i].name, name) == 0)
            return &sample->figures[i];
    return NULL;
}

double wg__workload_figure_value(const struct wg_workload_sample *sample, const char *name)
{
    const struct wg_workload_figure *found = wg__workload_figure_find(sample, name);
    return found != NULL ? found->value : (double)NAN;
}

bool wg__workload_figure_put(struct wg_workload_sample *sample, const char *name, double value)
{
    const size_t length = strlen(name);
    if (length == 0 || length >= WG_WORKLOAD_NAME_SIZE)
        return false;
    for (size_t i = 0; i < sample->figure_count; i++) {
        if (strcmp(sample->figures[i].name, name) == 0) {
            sample->figures[i].value = value;
            return true;
        }
    }
    if (sample->figure_count == WG_WORKLOAD_FIGURES_MAX)
        return false;
    struct wg_workload_figure *figure = &sample->figures[sample->figure_count++];
    *figure = (struct wg_workload_figure){.value = value};
    memcpy(figure->name, name, length + 1);
    return true;
}

/* -- Columns ---------------------------------------------------------------------------------- */

static bool put_new(struct wg_workload_sample *sample, const char *name, double value)
{
    return wg__workload_figure_find(sample, name) != NULL ||
           wg__workload_figure_put(sample, name, value);
}

static bool put_part(struct wg_workload_sample *sample, const char *name, const char *part,
                     double value)
{
    char full[2 * WG_WORKLOAD_NAME_SIZE];
    (void)snprintf(full, sizeof full, "%s%s", name, part);
    return wg__workload_figure_put(sample, full, value);
}

/* What a request has a part of: the run's figure is the sum of the rows, never their mean. */
static bool is_total(const char *name)
{
    static const char *const totals[] = {"requests", "energy_j", "busy_s", "time_s", "tokens"};
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++)
        if (strcmp(name, totals[i]) == 0)
            return true;
    return false;
}

/* One value a request; `values` is put in order. */
static bool put_column(struct wg_workload_sample *sample, const char *name, double *values,
                       size_t count)
{
    static const struct {
        const char *end, *latency;
        double share;
    } parts[] = {{"_p50", "p50_s", 0.5},
                 {"_p90", "p90_s", 0.9},
                 {"_p95", "p95_s", 0.95},
                 {"_p99", "p99_s", 0.99}};
    if (count == 0)
        return true;
    const double mean = wg__mean(values, count);
    if (count == 1)
        return wg__workload_figure_put(sample, name, mean);
    const bool is_latency = strcmp(name, "latency_s") == 0;
    const double whole = is_total(name) ? mean * (double)count : mean;
    bool fits = wg__workload_figure_put(sample, name, whole) &&
                wg__workload_figure_put(sample, "rows", (double)count);
    if (is_latency)
        fits =
            fits && put_new(sample, "mean_s", mean) && put_new(sample, "requests", (double)count);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const double value = wg__quantile_inplace(values, count, parts[i].share);
        fits = fits && put_part(sample, name, parts[i].end, value);
        if (is_latency)
            fits = fits && put_new(sample, parts[i].latency, value);
    }
    return fits;
}

/* -- JSON ------------------------------------------------------------------------------------- */

static bool put_json(struct wg_workload_sample *sample, const char *prefix, const json_t *object,
                     unsigned depth);

/* A list that holds anything but numbers is no figure. */
static bool put_list(struct wg_workload_sample *sample, const char *name, const json_t *list)
{
    const size_t count = json_array_size(list);
    double *values = wg__alloc_zeroed(count + 1, sizeof *values);
    bool fits = values != NULL;
    for (size_t i = 0; i < count && values != NULL; i++) {
        const json_t *item = json_array_get(list, i);
        if (!json_is_number(item)) {
            wg__free(values);
            return true;
        }
        values[i] = json_number_value(item);
    }
    fits = fits && put_column(sample, name, values, count);
    wg__free(values);
    return fits;
}

static bool put_member(struct wg_workload_sample *sample, const char *name, const json_t *value,
                       unsigned depth)
{
    if (json_is_number(value))
        return wg__workload_figure_put(sample, name, json_number_value(value));
    if (json_is_boolean(value))
        return wg__workload_figure_put(sample, name, json_is_true(value) ? 1 : 0);
    if (json_is_array(value))
        return put_list(sample, name, value);
    if (json_is_object(value) && depth < NEST_MAX)
        return put_json(sample, name, value, depth + 1);
    return true; /* texts are no figures */
}

static bool put_json(struct wg_workload_sample *sample, const char *prefix, const json_t *object,
                     unsigned depth)
{
    const char *key;
    const json_t *value;
    /* jansson's own loop takes no pointer to const, and changes nothing. */
    for (void *at = json_object_iter((json_t *)object); at != NULL;
         at = json_object_iter_next((json_t *)object, at)) {
        char name[2 * WG_WORKLOAD_NAME_SIZE];
        key = json_object_iter_key(at);
        value = json_object_iter_value(at);
        const int length = snprintf(name, sizeof name, "%s%s%.*s", prefix,
                                    prefix[0] != '\0' ? "." : "", WG_WORKLOAD_NAME_SIZE, key);
        if (length < 0 || !put_member(sample, name, value, depth))
            return false;
    }
    return true;
}

/* -- Errors of figures, and the whole --------------------------------------------------------- */

/* NAME_error moves to the figure NAME. */
static void take_errors(struct wg_workload_sample *sample)
{
    size_t kept = 0;
    for (size_t i = 0; i < sample->figure_count; i++) {
        struct wg_workload_figure *figure = &sample->figures[i];
        const size_t length = strlen(figure->name), end = sizeof error_end - 1;
        bool is_error = false;
        if (length > end && strcmp(figure->name + length - end, error_end) == 0) {
            for (size_t k = 0; k < sample->figure_count; k++) {
                struct wg_workload_figure *of = &sample->figures[k];
                if (strlen(of->name) != length - end ||
                    strncmp(of->name, figure->name, length - end) != 0)
                    continue;
                of->error = fabs(figure->value);
                is_error = true;
            }
        }
        if (!is_error && kept++ != i)
            sample->figures[kept - 1] = *figure;
    }
    sample->figure_count = kept;
}

static void finish(struct wg_workload_sample *sample)
{
    take_errors(sample);
    sample->requests = wg__workload_figure_value(sample, "requests");
}

bool wg__workload_figures_line(const char *line, size_t length, struct wg_workload_sample *out)
{
    while (length > 0 && (line[0] == ' ' || line[0] == '\t')) {
        line++;
        length--;
    }
    if (length < 2 || line[0] != '{')
        return false;
    json_t *object = json_loadb(line, length, 0, NULL);
    out->figure_count = 0;
    const bool is_one = json_is_object(object) && put_json(out, "", object, 0);
    json_decref(object);
    if (is_one)
        finish(out);
    return is_one && out->figure_count > 0;
}

/* The last line that is an object. */
static bool find_line(const char *text, size_t length, struct wg_workload_sample *out)
{
    while (length > 0) {
        const char *newline = memrchr(text, '\n', length - 1);
        const size_t begin = newline != NULL ? (size_t)(newline - text) + 1 : 0;
        size_t end = length;
        while (end > begin && (text[end - 1] == '\n' || text[end - 1] == '\r'))
            end--;
        if (wg__workload_figures_line(text + begin, end - begin, out))
            return true;
        length = begin;
    }
    return false;
}

static enum wg_code read_rows(struct wg_csv *csv, double *values, size_t *rows,
                              struct wg_error *err)
{
    const size_t columns = wg__csv_column_count(csv);
    for (bool has_record = true;;) {
        enum wg_code code = wg__csv_next(csv, &has_record, err);
        if (code != WG_OK || !has_record)
            return code;
        for (size_t c = 0; c < columns && code == WG_OK; c++)
            code = wg__csv_double(csv, c, &values[c * ROWS_MAX / columns + *rows], err);
        if (code != WG_OK)
            return code;
        if (++*rows >= ROWS_MAX / columns)
            return wg__fail(err, WG_EDATA, "more than %zu rows", ROWS_MAX / columns);
    }
}

/* The names of the columns are in the first line of the text. */
static bool column_name(const char *text, size_t length, size_t column, char out[static 128])
{
    const char *const end = memchr(text, '\n', length);
    const char *at = text, *const stop = end != NULL ? end : text + length;
    for (size_t c = 0; at < stop; c++) {
        const char *comma = memchr(at, ',', (size_t)(stop - at));
        const char *last = comma != NULL ? comma : stop;
        if (c == column) {
            while (last > at && (last[-1] == '\r' || last[-1] == '"' || last[-1] == ' '))
                last--;
            while (at < last && (*at == '"' || *at == ' '))
                at++;
            (void)snprintf(out, 128, "%.*s", (int)(last - at), at);
            return true;
        }
        if (comma == NULL)
            return false;
        at = comma + 1;
    }
    return false;
}

static enum wg_code read_csv(const char *text, size_t length, struct wg_workload_sample *out,
                             struct wg_error *err)
{
    struct wg_csv *csv = NULL;
    size_t rows = 0;
    enum wg_code code = wg__csv_open_memory(&csv, "the command's output", text, length, err);
    if (code != WG_OK)
        return code;
    double *values = wg__alloc_zeroed(ROWS_MAX, sizeof *values);
    const size_t columns = wg__csv_column_count(csv);
    code = values != NULL ? read_rows(csv, values, &rows, err)
                          : wg__fail(err, WG_ENOMEM, "out of memory");
    wg__csv_close(csv);
    for (size_t c = 0; c < columns && code == WG_OK; c++) {
        char name[128];
        if (!column_name(text, length, c, name) ||
            !put_column(out, name, &values[c * ROWS_MAX / columns], rows))
            code = wg__fail(err, WG_EDATA, "the command's output: more than %d figures",
                            WG_WORKLOAD_FIGURES_MAX);
    }
    wg__free(values);
    if (code == WG_OK && rows == 0)
        code = wg__fail(err, WG_EDATA, "the command's output: a header without rows");
    return code;
}

enum wg_code wg__workload_figures_parse(const char *text, size_t length,
                                        struct wg_workload_sample *out, struct wg_error *err)
{
    while (length > 0 && strchr(" \t\r\n", text[0]) != NULL) {
        text++;
        length--;
    }
    while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
        length--;
    out->figure_count = 0;
    out->requests = NAN;
    if (length == 0)
        return wg__fail(err, WG_EDATA, "it printed nothing: expected JSON or CSV with figures");
    if (wg__workload_figures_line(text, length, out) || find_line(text, length, out))
        return WG_OK;
    if (memchr(text, '\n', length) == NULL)
        return wg__fail(err, WG_EDATA, "no figures in what it printed: '%.*s'",
                        (int)(length < 60 ? length : 60), text);
    out->figure_count = 0;
    struct wg_error cause;
    const enum wg_code code = read_csv(text, length, out, &cause);
    if (code == WG_OK)
        finish(out);
    else
        (void)wg__fail(err, code, "no JSON object in what it printed, and as CSV: %s", cause.text);
    return code;
}
