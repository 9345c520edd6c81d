/* SPDX-License-Identifier: MIT
 *
 * Reading measurements: the records of a CSV, chosen, counted, their names shared.
 *
 * Owns: see the header.    Threads: one thread at a time.
 */
#include "model/measurements.h"

#include <math.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/csv.h"
#include "model/measurement_columns.h"
#include "model/measurement_row.h"

enum { CAPACITY_FIRST = 64, CHOICES_MAX = 16, CHOICE_NAME_SIZE = 64 };

/* "COLUMN=VALUE", resolved. */
struct choice {
    size_t column;
    const char *value;
};

struct reader {
    struct wg_csv *csv;
    const char *name; /* of the file */
    const struct wg_measurements_opts *opts;
    struct wg_measurement_columns columns;
    struct choice choices[CHOICES_MAX];
    struct wg_measurements *out;
    size_t capacity;
    const char *names[WG_MEASUREMENT_NAMES_MAX]; /* of GPUs and operators, in the arena */
    size_t name_count;
    size_t last; /* the index that was asked for last: rows come in runs */
};

static enum wg_code out_of_memory(const struct reader *reader, struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "%s: out of memory", reader->name);
}

/* -- Choosing ------------------------------------------------------------------------------ */

static enum wg_code open_choices(struct reader *reader, struct wg_error *err)
{
    if (reader->opts->where_count > CHOICES_MAX)
        return wg__fail(err, WG_EINVAL, "%zu conditions, at most %d are possible",
                        reader->opts->where_count, CHOICES_MAX);
    for (size_t i = 0; i < reader->opts->where_count; i++) {
        const char *text = reader->opts->where[i];
        const char *equals = strchr(text, '=');
        char column[CHOICE_NAME_SIZE];
        if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof column)
            return wg__fail(err, WG_EINVAL, "'%.80s' is no condition, expected COLUMN=VALUE", text);
        memcpy(column, text, (size_t)(equals - text));
        column[equals - text] = '\0';
        struct wg_error cause;
        if (wg__csv_column(reader->csv, column, &reader->choices[i].column, &cause) != WG_OK)
            return wg__fail(err, WG_EINVAL, "condition '%.80s': %s", text, cause.text);
        reader->choices[i].value = equals + 1;
    }
    return WG_OK;
}

static bool is_chosen(const struct reader *reader)
{
    for (size_t i = 0; i < reader->opts->where_count; i++)
        if (strcmp(wg__csv_text(reader->csv, reader->choices[i].column),
                   reader->choices[i].value) != 0)
            return false;
    return true;
}

/* -- Names --------------------------------------------------------------------------------- */

/* The one pointer of a name; NULL for a field that is missing or empty. */
static enum wg_code share_name(struct reader *reader, enum wg_measurement_key key, const char **out,
                               struct wg_error *err)
{
    const int at = reader->columns.at[key];
    const char *text = at == WG_MEASUREMENT_NO_COLUMN ? "" : wg__csv_text(reader->csv, (size_t)at);
    *out = NULL;
    if (*text == '\0')
        return WG_OK;
    for (size_t i = 0; i < reader->name_count; i++) {
        const size_t index = (reader->last + i) % reader->name_count;
        if (strcmp(reader->names[index], text) == 0) {
            *out = reader->names[index];
            reader->last = index;
            return WG_OK;
        }
    }
    if (reader->name_count == WG_MEASUREMENT_NAMES_MAX)
        return wg__csv_fail(reader->csv, (size_t)at, err, "more than %d different names",
                            WG_MEASUREMENT_NAMES_MAX);
    const char *copy = wg__arena_strdup(&reader->out->arena, text);
    if (copy == NULL)
        return out_of_memory(reader, err);
    reader->last = reader->name_count;
    reader->names[reader->name_count++] = copy;
    *out = copy;
    return WG_OK;
}

/* -- Rows ---------------------------------------------------------------------------------- */

static enum wg_code push(struct reader *reader, const struct wg_measured *row, struct wg_error *err)
{
    struct wg_measurements *out = reader->out;
    if (out->count == WG_MEASUREMENTS_MAX)
        return wg__fail(err, WG_EDATA, "%s:%zu: more than %d measurements", reader->name,
                        wg__csv_line(reader->csv), WG_MEASUREMENTS_MAX);
    if (out->count == reader->capacity) {
        const size_t capacity = reader->capacity == 0 ? CAPACITY_FIRST : 2 * reader->capacity;
        struct wg_measured *rows = wg__realloc_array(out->rows, capacity, sizeof *rows);
        if (rows == NULL)
            return out_of_memory(reader, err);
        out->rows = rows;
        reader->capacity = capacity;
    }
    out->rows[out->count++] = *row;
    return WG_OK;
}

/* A convolution's pass comes with its time column where there are several: other passes have other
 * dimensions as GEMMs, and no kernel of this record. */
static enum wg_code set_pass(const struct wg_measurement_time *time, struct wg_measured *row,
                             struct wg_error *err)
{
    if (time->pass < 0)
        return WG_OK;
    row->pass = (enum wg_conv_pass)time->pass;
    row->kernel = (struct wg_kernel){.split_k = 1, .cluster_m = 1, .cluster_n = 1};
    row->blocks = 0;
    return wg__conv_gemm(&row->conv, row->pass, &row->gemm, err);
}

static enum wg_code read_record(struct reader *reader, struct wg_error *err)
{
    struct wg_measured row;
    enum wg_code code = wg__measurement_row(reader->csv, &reader->columns, reader->opts, &row, err);
    if (code == WG_OK)
        code = share_name(reader, WG_MEASUREMENT_GPU, &row.gpu, err);
    if (code == WG_OK)
        code = share_name(reader, WG_MEASUREMENT_OP, &row.op, err);
    for (size_t i = 0; i < reader->columns.time_count && code == WG_OK; i++) {
        const struct wg_measurement_time *time = &reader->columns.times[i];
        code = wg__measurement_time(reader->csv, time, &row.time_s, err);
        if (code == WG_OK && isnan(row.time_s)) {
            reader->out->unmeasured++;
            continue;
        }
        if (code == WG_OK)
            code = set_pass(time, &row, err);
        if (code == WG_OK)
            code = push(reader, &row, err);
    }
    return code;
}

static enum wg_code no_dtype(const struct reader *reader, struct wg_error *err)
{
    const char *option = reader->opts->dtype_option;
    if (option == NULL)
        return wg__fail(err, WG_EDATA,
                        "%s:1: no column dtype, and no precision is given for the file",
                        reader->name);
    return wg__fail(err, WG_EDATA, "%s:1: no column dtype; %s says of which the data are",
                    reader->name, option);
}

static enum wg_code no_rows(const struct reader *reader, struct wg_error *err)
{
    const char *which = reader->opts->where_count != 0 ? " that meets the conditions" : "";
    if (reader->out->unmeasured == 0)
        return wg__fail(err, WG_EDATA, "%s: no measurement in it%s", reader->name, which);
    return wg__fail(err, WG_EDATA, "%s: no measurement in it%s: %zu without a time", reader->name,
                    which, reader->out->unmeasured);
}

static enum wg_code read_records(struct reader *reader, struct wg_error *err)
{
    enum wg_code code =
        wg__measurement_columns_find(&reader->columns, reader->csv, reader->name, err);
    if (code == WG_OK && reader->columns.at[WG_MEASUREMENT_DTYPE] == WG_MEASUREMENT_NO_COLUMN &&
        !reader->opts->has_dtype)
        code = no_dtype(reader, err);
    if (code == WG_OK)
        code = open_choices(reader, err);
    for (bool has_record = true; code == WG_OK && has_record;) {
        code = wg__csv_next(reader->csv, &has_record, err);
        if (code == WG_OK && has_record && is_chosen(reader))
            code = read_record(reader, err);
    }
    if (code == WG_OK && reader->out->count == 0)
        code = no_rows(reader, err);
    return code;
}

/* Reads and closes `csv`. */
static enum wg_code read_csv(struct wg_measurements *out, struct wg_csv *csv, const char *name,
                             const struct wg_measurements_opts *opts, struct wg_error *err)
{
    static const struct wg_measurements_opts usual;
    struct wg_measurements measurements = {0};
    wg__arena_init(&measurements.arena);
    enum wg_code code = WG_ENOMEM;
    struct reader *reader = wg__alloc_zeroed(1, sizeof *reader);
    if (reader != NULL) {
        reader->csv = csv;
        reader->name = name;
        reader->opts = opts != NULL ? opts : &usual;
        reader->out = &measurements;
        code = read_records(reader, err);
    } else {
        (void)wg__fail(err, WG_ENOMEM, "%s: out of memory", name);
    }
    wg__free(reader);
    wg__csv_close(csv);
    if (code == WG_OK)
        *out = measurements;
    else
        wg__measurements_fini(&measurements);
    return code;
}

/* Measurements that lack a column, too: then their reader says which, where others would say that
 * it is no profile. */
static bool is_meant(const struct wg_csv *csv, const char *path)
{
    struct wg_measurement_columns columns;
    size_t at;
    return wg__measurement_columns_find(&columns, csv, path, NULL) == WG_OK ||
           (wg__csv_column(csv, "m", &at, NULL) == WG_OK &&
            (wg__csv_column(csv, "n", &at, NULL) == WG_OK ||
             wg__csv_column(csv, "k", &at, NULL) == WG_OK));
}

bool wg__measurements_are(const char *path)
{
    struct wg_csv *csv = NULL;
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) /* a pipe would be used up */
        return false;
    const bool are = wg__csv_open(&csv, path, NULL) == WG_OK && is_meant(csv, path);
    wg__csv_close(csv);
    return are;
}

enum wg_code wg__measurements_read(struct wg_measurements *out, const char *path,
                                   const struct wg_measurements_opts *opts, struct wg_error *err)
{
    struct wg_csv *csv = NULL;
    const enum wg_code code = wg__csv_open(&csv, path, err);
    return code == WG_OK ? read_csv(out, csv, path, opts, err) : code;
}

enum wg_code wg__measurements_read_memory(struct wg_measurements *out, const char *name,
                                          const char *bytes, size_t length,
                                          const struct wg_measurements_opts *opts,
                                          struct wg_error *err)
{
    struct wg_csv *csv = NULL;
    const enum wg_code code = wg__csv_open_memory(&csv, name, bytes, length, err);
    return code == WG_OK ? read_csv(out, csv, name, opts, err) : code;
}

void wg__measurements_fini(struct wg_measurements *measurements)
{
    if (measurements == NULL)
        return;
    wg__free(measurements->rows);
    wg__arena_fini(&measurements->arena);
    *measurements = (struct wg_measurements){0};
}

/* -- One GPU's ----------------------------------------------------------------------------- */

static bool is_of(const struct wg_gpu_table *table, const char *name, const struct wg_gpu_spec *gpu)
{
    const struct wg_gpu_spec *found = NULL;
    if (name == NULL || strcasecmp(name, gpu->id) == 0 || strcasecmp(name, gpu->name) == 0)
        return true; /* a user's own GPU is not in the table */
    return wg__gpu_table_find(table, name, &found, NULL) == WG_OK &&
           strcmp(found->id, gpu->id) == 0;
}

static enum wg_code none_left(const struct wg_measurements *measurements,
                              const struct wg_gpu_spec *gpu, struct wg_error *err)
{
    const char *listed[8];
    size_t count = 0;
    struct wg_buffer text;
    wg__buffer_init(&text);
    for (size_t i = 0; i < measurements->count && count < sizeof listed / sizeof *listed; i++) {
        size_t at = 0;
        while (at < count && listed[at] != measurements->rows[i].gpu)
            at++;
        if (at < count)
            continue;
        listed[count++] = measurements->rows[i].gpu;
        wg__buffer_printf(&text, "%s%.40s", count == 1 ? "" : ", ", measurements->rows[i].gpu);
    }
    const enum wg_code code = wg__fail(err, WG_EDATA, "no measurement is of %s, but of %s", gpu->id,
                                       text.failed || text.data == NULL ? "?" : text.data);
    wg__buffer_fini(&text);
    return code;
}

enum wg_code wg__measurements_keep(struct wg_measurements *measurements,
                                   const struct wg_gpu_table *table, const struct wg_gpu_spec *gpu,
                                   struct wg_error *err)
{
    /* Rows come in runs of one GPU, and equal names are one pointer. */
    const char *last = NULL;
    bool is_last_kept = true;
    size_t kept = 0;
    for (int pass = 0; pass < 2; pass++) { /* counts first: nothing is lost when none is left */
        kept = 0;
        for (size_t i = 0; i < measurements->count; i++) {
            const char *name = measurements->rows[i].gpu;
            if (name != last)
                is_last_kept = is_of(table, name, gpu);
            last = name;
            if (is_last_kept && pass == 1)
                measurements->rows[kept] = measurements->rows[i];
            kept += is_last_kept;
        }
        if (kept == 0)
            return none_left(measurements, gpu, err);
    }
    measurements->of_other_gpus += measurements->count - kept;
    measurements->count = kept;
    return WG_OK;
}
