/* SPDX-License-Identifier: MIT
 *
 * Reading measured training traces: see trace.h for the files. Joining them is in case.c.
 *
 * Rows are kept as read, keys as strings in one arena: the bundled traces have 4,700 rows, so a
 * linear search per case costs less than any index would in code. Batch sizes are compared as
 * numbers.
 */
#include "simulate/trace.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/csv.h"
#include "simulate/trace_rows.h"

static const char power_prefix[] = "summary_power_";

/* What no measurement exceeds: 1e9 s are 31 years. Within these bounds no cost of a replay, nor its
 * square, leaves the range of a double. */
static const double least_measured = 1e-9;
static const double most_measured = 1e9; /* W and s */
static const double largest_batch_size = 1e12;

static void *grow(void *rows, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return rows;
    size_t wanted = *capacity ? 2 * *capacity : 256;
    void *grown = wg__realloc_array(rows, wanted, size);
    if (grown)
        *capacity = wanted;
    return grown;
}

/* The same text is stored once: consecutive rows nearly always repeat their keys. */
static const char *intern(struct wg_training_trace *trace, const char *text, const char *previous)
{
    if (previous && strcmp(previous, text) == 0)
        return previous;
    return wg__arena_strdup(&trace->arena, text);
}

static enum wg_code read_key(struct wg_training_trace *trace, const struct wg_csv *csv,
                             const size_t columns[4], const struct wg_trace_key *previous,
                             struct wg_trace_key *out, struct wg_error *err)
{
    out->dataset =
        intern(trace, wg__csv_text(csv, columns[0]), previous ? previous->dataset : NULL);
    out->network =
        intern(trace, wg__csv_text(csv, columns[1]), previous ? previous->network : NULL);
    out->optimizer =
        intern(trace, wg__csv_text(csv, columns[2]), previous ? previous->optimizer : NULL);
    if (!out->dataset || !out->network || !out->optimizer)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    enum wg_code code = wg__csv_double(csv, columns[3], &out->batch_size, err);
    if (code == WG_OK && !(out->batch_size >= 1))
        code = wg__csv_fail(csv, columns[3], err, "must be at least 1, not %g", out->batch_size);
    if (code == WG_OK && out->batch_size > largest_batch_size)
        code = wg__csv_fail(csv, columns[3], err, "must be at most %g, not %g", largest_batch_size,
                            out->batch_size);
    return code;
}

static enum wg_code find_columns(const struct wg_csv *csv, const char *const names[], size_t count,
                                 size_t *out, struct wg_error *err)
{
    for (size_t i = 0; i < count; i++) {
        enum wg_code code = wg__csv_column(csv, names[i], &out[i], err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static enum wg_code read_run_row(struct wg_training_trace *trace, const struct wg_csv *csv,
                                 const size_t columns[7], struct wg_run_row *row,
                                 struct wg_error *err)
{
    const struct wg_run_row *previous =
        trace->run_count ? &trace->runs[trace->run_count - 1] : NULL;
    enum wg_code code =
        read_key(trace, csv, columns, previous ? &previous->key : NULL, &row->key, err);
    if (code != WG_OK)
        return code;
    row->run = intern(trace, wg__csv_text(csv, columns[4]), previous ? previous->run : NULL);
    if (!row->run)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    code = wg__csv_double(csv, columns[5], &row->target_metric, err);
    if (code != WG_OK)
        return code;
    double epoch;
    code = wg__csv_double_or_nan(csv, columns[6], &epoch, err);
    if (code != WG_OK)
        return code;
    if (!isnan(epoch) && !(epoch >= 1 && epoch <= 1e6 && epoch == floor(epoch)))
        return wg__csv_fail(csv, columns[6], err,
                            "expected a whole number from 1 to 1000000, or nan, not %g", epoch);
    row->target_epoch = isnan(epoch) ? 0 : (unsigned)epoch;
    row->line = wg__csv_line(csv);
    return WG_OK;
}

static enum wg_code read_runs(struct wg_training_trace *trace, const char *path,
                              struct wg_error *err)
{
    static const char *const names[] = {"dataset", "network",       "optimizer",   "batch_size",
                                        "run",     "target_metric", "target_epoch"};
    struct wg_csv *csv = NULL;
    size_t columns[7], capacity = 0;
    enum wg_code code = wg__csv_open(&csv, path, err);
    if (code == WG_OK)
        code = find_columns(csv, names, 7, columns, err);
    while (code == WG_OK) {
        bool has_record;
        code = wg__csv_next(csv, &has_record, err);
        if (code != WG_OK || !has_record)
            break;
        struct wg_run_row *grown = grow(trace->runs, trace->run_count, &capacity, sizeof *grown);
        if (!grown) {
            code = wg__fail(err, WG_ENOMEM, "out of memory");
            break;
        }
        trace->runs = grown;
        code = read_run_row(trace, csv, columns, &trace->runs[trace->run_count], err);
        if (code == WG_OK)
            trace->run_count++;
    }
    wg__csv_close(csv);
    if (code == WG_OK && trace->run_count == 0)
        code = wg__fail(err, WG_EDATA, "%s: no rows below the header", path);
    return code;
}

static enum wg_code read_power_row(struct wg_training_trace *trace, struct wg_gpu_trace *gpu,
                                   const struct wg_csv *csv, const size_t columns[7],
                                   struct wg_power_row *row, struct wg_error *err)
{
    const struct wg_power_row *previous = gpu->row_count ? &gpu->rows[gpu->row_count - 1] : NULL;
    enum wg_code code =
        read_key(trace, csv, columns, previous ? &previous->key : NULL, &row->key, err);
    double *const values[] = {&row->limit_w, &row->epoch_time_s, &row->power_w};
    for (size_t i = 0; i < 3 && code == WG_OK; i++) {
        code = wg__csv_double(csv, columns[4 + i], values[i], err);
        if (code == WG_OK && !(*values[i] > 0))
            code = wg__csv_fail(csv, columns[4 + i], err, "must be above 0, not %g", *values[i]);
        if (code == WG_OK && !(*values[i] >= least_measured && *values[i] <= most_measured))
            code = wg__csv_fail(csv, columns[4 + i], err, "expected a number from %g to %g, not %g",
                                least_measured, most_measured, *values[i]);
    }
    row->line = wg__csv_line(csv);
    return code;
}

static enum wg_code read_power(struct wg_training_trace *trace, struct wg_gpu_trace *gpu,
                               struct wg_error *err)
{
    static const char *const names[] = {"dataset",      "network",     "optimizer",
                                        "batch_size",   "power_limit", "time_per_epoch",
                                        "average_power"};
    struct wg_csv *csv = NULL;
    size_t columns[7], capacity = 0;
    enum wg_code code = wg__csv_open(&csv, gpu->path, err);
    if (code == WG_OK)
        code = find_columns(csv, names, 7, columns, err);
    while (code == WG_OK) {
        bool has_record;
        code = wg__csv_next(csv, &has_record, err);
        if (code != WG_OK || !has_record)
            break;
        struct wg_power_row *grown = grow(gpu->rows, gpu->row_count, &capacity, sizeof *grown);
        if (!grown) {
            code = wg__fail(err, WG_ENOMEM, "out of memory");
            break;
        }
        gpu->rows = grown;
        code = read_power_row(trace, gpu, csv, columns, &gpu->rows[gpu->row_count], err);
        if (code != WG_OK)
            break;
        gpu->max_power_w = fmax(gpu->max_power_w, gpu->rows[gpu->row_count].limit_w);
        gpu->row_count++;
    }
    wg__csv_close(csv);
    if (code == WG_OK && gpu->row_count == 0)
        code = wg__fail(err, WG_EDATA, "%s: no rows below the header", gpu->path);
    return code;
}

static char *join_path(struct wg_arena *arena, const char *dir, const char *name)
{
    const size_t length = strlen(dir);
    const char *slash = length > 0 && dir[length - 1] != '/' ? "/" : "";
    struct wg_buffer joined;
    wg__buffer_init(&joined);
    wg__buffer_printf(&joined, "%s%s%s", dir, slash, name);
    char *path = joined.failed ? NULL : wg__arena_strdup(arena, joined.data);
    wg__buffer_fini(&joined);
    return path;
}

/* The GPU named by a file called summary_power_<gpu>.csv or .csv.gz; its length, or 0. */
static size_t gpu_name_length(const char *file)
{
    const size_t prefix = sizeof power_prefix - 1;
    if (strncmp(file, power_prefix, prefix) != 0)
        return 0;
    static const char *const suffixes[] = {".csv.gz", ".csv"};
    const size_t length = strlen(file);
    for (size_t i = 0; i < 2; i++) {
        const size_t suffix = strlen(suffixes[i]);
        if (length > prefix + suffix && strcmp(file + length - suffix, suffixes[i]) == 0)
            return length - prefix - suffix;
    }
    return 0;
}

static enum wg_code add_gpu(struct wg_training_trace *trace, const char *dir, const char *file,
                            size_t name_length, struct wg_error *err)
{
    if (trace->gpu_count == WG_TRACE_GPUS_MAX)
        return wg__fail(err, WG_EDATA, "%s: more than %d GPUs", dir, WG_TRACE_GPUS_MAX);
    char *name = wg__arena_alloc(&trace->arena, name_length + 1, 1);
    char *path = join_path(&trace->arena, dir, file);
    if (!name || !path)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    for (size_t i = 0; i < name_length; i++)
        name[i] = (char)tolower((unsigned char)file[sizeof power_prefix - 1 + i]);
    size_t at = trace->gpu_count;
    for (; at > 0 && strcmp(trace->gpus[at - 1].name, name) > 0; at--)
        trace->gpus[at] = trace->gpus[at - 1];
    if (at > 0 && strcmp(trace->gpus[at - 1].name, name) == 0)
        return wg__fail(err, WG_EDATA, "%s: two files for GPU '%s'", dir, name);
    trace->gpus[at] = (struct wg_gpu_trace){.name = name, .path = path};
    trace->gpu_count++;
    return WG_OK;
}

static enum wg_code list_gpus(struct wg_training_trace *trace, const char *path,
                              struct wg_error *err)
{
    DIR *dir = opendir(path);
    if (!dir)
        return wg__fail(err, errno == ENOENT || errno == ENOTDIR ? WG_ENOENT : WG_EIO,
                        "%s: cannot open the trace folder: %s", path, strerror(errno));
    enum wg_code code = WG_OK;
    const struct dirent *entry;
    while (code == WG_OK && (entry = readdir(dir)) != NULL) {
        const size_t length = gpu_name_length(entry->d_name);
        if (length)
            code = add_gpu(trace, path, entry->d_name, length, err);
    }
    (void)closedir(dir);
    if (code == WG_OK && trace->gpu_count == 0)
        code = wg__fail(err, WG_ENOENT, "%s: no file summary_power_<gpu>.csv in the trace folder",
                        path);
    return code;
}

enum wg_code wg__trace_open(struct wg_training_trace **out, const char *dir, struct wg_error *err)
{
    struct wg_training_trace *trace = wg__alloc_zeroed(1, sizeof *trace);
    if (!trace)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    wg__arena_init(&trace->arena);
    enum wg_code code = list_gpus(trace, dir, err);
    if (code == WG_OK) {
        trace->runs_path = join_path(&trace->arena, dir, "summary_train.csv");
        code = trace->runs_path ? read_runs(trace, trace->runs_path, err)
                                : wg__fail(err, WG_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < trace->gpu_count && code == WG_OK; i++)
        code = read_power(trace, &trace->gpus[i], err);
    if (code != WG_OK) {
        wg__trace_close(trace);
        return code;
    }
    *out = trace;
    return WG_OK;
}

void wg__trace_close(struct wg_training_trace *trace)
{
    if (!trace)
        return;
    for (size_t i = 0; i < trace->gpu_count; i++)
        wg__free(trace->gpus[i].rows);
    wg__free(trace->runs);
    wg__arena_fini(&trace->arena);
    wg__free(trace);
}

size_t wg__trace_gpu_count(const struct wg_training_trace *trace)
{
    return trace->gpu_count;
}

const char *wg__trace_gpu(const struct wg_training_trace *trace, size_t index)
{
    return trace->gpus[index].name;
}

bool wg__trace_has_job(const struct wg_training_trace *trace, const char *gpu,
                       const struct wg_training_job *job)
{
    bool has_run = false, has_power = false;
    for (size_t i = 0; i < trace->run_count && !has_run; i++)
        has_run = wg__trace_key_is_job(&trace->runs[i].key, job);
    for (size_t g = 0; g < trace->gpu_count; g++) {
        if (strcasecmp(trace->gpus[g].name, gpu) != 0)
            continue;
        for (size_t i = 0; i < trace->gpus[g].row_count && !has_power; i++)
            has_power = wg__trace_key_is_job(&trace->gpus[g].rows[i].key, job);
    }
    return has_run && has_power;
}

bool wg__trace_key_is_job(const struct wg_trace_key *key, const struct wg_training_job *job)
{
    return strcmp(key->dataset, job->dataset) == 0 && strcmp(key->network, job->network) == 0 &&
           strcmp(key->optimizer, job->optimizer) == 0;
}
