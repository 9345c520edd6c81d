/* SPDX-License-Identifier: MIT
 *
 * The table of recurring jobs: see job_table.h for the columns.
 *
 * The built-in table is the file data/training_jobs.csv itself, made into bytes by
 * tools/embed, so that a folder of traces alone is enough and no job is described in code.
 */
#include "simulate/job_table.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "simulate/built_in_jobs.h"

enum { JOBS_MAX = 4096, EPOCHS_MAX = 1000000 };

/* Far beyond any use, and such that no cost leaves the range of a double. */
static const double largest_scale = 1e6;
static const double largest_batch_size = 1e12;

static enum wg_code copy_text(struct wg_job_table *table, const struct wg_csv *csv,
                              const char *column, const char **out, struct wg_error *err)
{
    size_t index;
    enum wg_code code = wg__csv_column(csv, column, &index, err);
    if (code != WG_OK)
        return code;
    const char *text = wg__csv_text(csv, index);
    if (text[0] == '\0')
        return wg__csv_fail(csv, index, err, "is empty");
    *out = wg__arena_strdup(&table->arena, text);
    return *out ? WG_OK : wg__fail(err, WG_ENOMEM, "out of memory");
}

/* A number from 1 / `most` to `most`. */
static enum wg_code read_positive(const struct wg_csv *csv, const char *column, bool required,
                                  double most, double *out, struct wg_error *err)
{
    if (!required && !wg__csv_has_column(csv, column))
        return WG_OK;
    size_t index;
    enum wg_code code = wg__csv_column(csv, column, &index, err);
    if (code == WG_OK)
        code = wg__csv_double(csv, index, out, err);
    if (code == WG_OK && !(*out > 0))
        code = wg__csv_fail(csv, index, err, "must be above 0, not %g", *out);
    if (code == WG_OK && !(*out >= 1 / most && *out <= most))
        code = wg__csv_fail(csv, index, err, "expected a number from %g to %g, not %g", 1 / most,
                            most, *out);
    return code;
}

/* One of two words; `*out` is whether it is the second. A column that is optional may be missing.
 */
static enum wg_code read_choice(const struct wg_csv *csv, const char *column, bool required,
                                const char *first, const char *second, bool *out,
                                struct wg_error *err)
{
    if (!required && !wg__csv_has_column(csv, column))
        return WG_OK;
    size_t index;
    enum wg_code code = wg__csv_column(csv, column, &index, err);
    if (code != WG_OK)
        return code;
    const char *text = wg__csv_text(csv, index);
    *out = strcmp(text, second) == 0;
    if (!*out && strcmp(text, first) != 0)
        return wg__csv_fail(csv, index, err, "expected '%s' or '%s', not '%s'", first, second,
                            text);
    return WG_OK;
}

static enum wg_code read_job(struct wg_job_table *table, const struct wg_csv *csv,
                             struct wg_training_job *job, struct wg_error *err)
{
    *job = (struct wg_training_job){.critical_batch_scale = 1, .epoch_time_scale = 1};
    const struct {
        const char *column;
        const char **out;
    } texts[] = {{"job", &job->name},
                 {"dataset", &job->dataset},
                 {"network", &job->network},
                 {"optimizer", &job->optimizer},
                 {"metric", &job->metric}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        enum wg_code code = copy_text(table, csv, texts[i].column, texts[i].out, err);
        if (code != WG_OK)
            return code;
    }
    size_t column;
    enum wg_code code = wg__csv_column(csv, "target_metric", &column, err);
    if (code == WG_OK)
        code = wg__csv_double(csv, column, &job->target_metric, err);
    if (code == WG_OK)
        code = wg__csv_column(csv, "max_epochs", &column, err);
    if (code == WG_OK)
        code = wg__csv_uint(csv, column, 1, EPOCHS_MAX, &job->max_epochs, err);
    if (code == WG_OK)
        code = read_positive(csv, "default_batch_size", true, largest_batch_size,
                             &job->default_batch_size, err);
    if (code == WG_OK)
        code = read_choice(csv, "direction", true, "lower", "higher", &job->higher_is_better, err);
    if (code == WG_OK)
        code = read_choice(csv, "batch_sizes", false, "all", "profiled", &job->only_profiled, err);
    if (code == WG_OK)
        code = read_positive(csv, "critical_batch_scale", false, largest_scale,
                             &job->critical_batch_scale, err);
    if (code == WG_OK)
        code = read_positive(csv, "epoch_time_scale", false, largest_scale, &job->epoch_time_scale,
                             err);
    return code;
}

static enum wg_code read_all(struct wg_job_table *table, struct wg_csv *csv, struct wg_error *err)
{
    size_t capacity = 0;
    for (;;) {
        bool has_record;
        enum wg_code code = wg__csv_next(csv, &has_record, err);
        if (code != WG_OK)
            return code;
        if (!has_record)
            break;
        if (table->count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            if (capacity > JOBS_MAX)
                return wg__fail(err, WG_EDATA, "%s: more than %d jobs", table->source, JOBS_MAX);
            struct wg_training_job *grown = wg__realloc_array(table->jobs, capacity, sizeof *grown);
            if (!grown)
                return wg__fail(err, WG_ENOMEM, "out of memory");
            table->jobs = grown;
        }
        struct wg_training_job job;
        code = read_job(table, csv, &job, err);
        if (code != WG_OK)
            return code;
        if (wg__job_table_find(table, job.name))
            return wg__fail(err, WG_EDATA, "%s:%zu: job '%s' stands twice", table->source,
                            wg__csv_line(csv), job.name);
        table->jobs[table->count++] = job;
    }
    return table->count ? WG_OK
                        : wg__fail(err, WG_EDATA, "%s: no jobs below the header", table->source);
}

enum wg_code wg__job_table_open(struct wg_job_table **out, const char *path, struct wg_error *err)
{
    struct wg_job_table *table = wg__alloc_zeroed(1, sizeof *table);
    if (!table)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    wg__arena_init(&table->arena);
    struct wg_csv *csv = NULL;
    enum wg_code code;
    table->source = wg__arena_strdup(&table->arena, path ? path : "built-in job table");
    if (!table->source)
        code = wg__fail(err, WG_ENOMEM, "out of memory");
    else if (path)
        code = wg__csv_open(&csv, path, err);
    else
        code = wg__csv_open_memory(&csv, table->source, built_in_jobs, sizeof built_in_jobs, err);
    if (code == WG_OK)
        code = read_all(table, csv, err);
    wg__csv_close(csv);
    if (code != WG_OK) {
        wg__job_table_close(table);
        return code;
    }
    *out = table;
    return WG_OK;
}

void wg__job_table_close(struct wg_job_table *table)
{
    if (!table)
        return;
    wg__free(table->jobs);
    wg__arena_fini(&table->arena);
    wg__free(table);
}

const struct wg_training_job *wg__job_table_find(const struct wg_job_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->jobs[i].name, name) == 0)
            return &table->jobs[i];
    return NULL;
}
