/* SPDX-License-Identifier: MIT
 *
 * An import as own measurements; see wave_import.h and model/measurements.h.
 *
 * A trace runs the same layer again and again. Layers of one product, kernel and grid become one
 * row with their median time and how many they were: a calibration should not count a layer by how
 * often somebody's trace has repeated it, nor learn from the first run, which is cold.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/csv_write.h"
#include "cli/wave_import.h"

enum { KEY_SIZE = 27 };

/* Rows that are one measurement. */
struct run_of {
    const struct wg_wave_import_row *first;
    size_t runs;
    double median_s;
};

/* -- What is the same ---------------------------------------------------------------------- */

static void fill_key(const struct wg_wave_import_row *row, uint64_t key[static KEY_SIZE])
{
    const struct wg_layer *layer = row->layer;
    const struct wg_conv *conv = &layer->conv;
    const struct wg_gemm *gemm = &row->gemm;
    const uint64_t *grid = row->launch != NULL ? row->launch->grid : (const uint64_t[3]){0};
    const uint64_t words[KEY_SIZE] = {layer->kind,
                                      gemm->dtype,
                                      gemm->batch,
                                      gemm->m,
                                      gemm->n,
                                      gemm->k,
                                      conv->n,
                                      conv->c,
                                      conv->filters,
                                      conv->r,
                                      conv->s,
                                      conv->h,
                                      conv->w,
                                      conv->stride_h,
                                      conv->stride_w,
                                      conv->pad_top,
                                      conv->pad_left,
                                      conv->pad_bottom,
                                      conv->pad_right,
                                      conv->dilation_h,
                                      conv->dilation_w,
                                      conv->groups,
                                      (uint64_t)(uintptr_t)layer->kernel_name, /* each once */
                                      grid[0],
                                      grid[1],
                                      grid[2],
                                      layer->blocks};
    memcpy(key, words, sizeof words);
}

static int compare_keys(const struct wg_wave_import_row *one, const struct wg_wave_import_row *two)
{
    uint64_t a[KEY_SIZE], b[KEY_SIZE];
    fill_key(one, a);
    fill_key(two, b);
    for (size_t i = 0; i < KEY_SIZE; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

static int by_key_and_time(const void *a, const void *b)
{
    const struct wg_wave_import_row *one = *(const struct wg_wave_import_row *const *)a;
    const struct wg_wave_import_row *two = *(const struct wg_wave_import_row *const *)b;
    const int order = compare_keys(one, two);
    if (order != 0)
        return order;
    if (one->layer->measured_s != two->layer->measured_s)
        return one->layer->measured_s < two->layer->measured_s ? -1 : 1;
    return one < two ? -1 : one > two;
}

static int by_place(const void *a, const void *b)
{
    const struct run_of *one = a, *two = b;
    return one->first < two->first ? -1 : one->first > two->first;
}

/* Rows first .. first + count - 1, which are the same and in the order of their times. */
static struct run_of join(const struct wg_wave_import_row **rows, size_t count)
{
    struct run_of run = {.first = rows[0], .runs = count};
    for (size_t i = 1; i < count; i++)
        if (rows[i] < run.first)
            run.first = rows[i];
    run.median_s =
        (rows[(count - 1) / 2]->layer->measured_s + rows[count / 2]->layer->measured_s) / 2.0;
    return run;
}

/* -- Writing ------------------------------------------------------------------------------- */

void wg__wave_import_csv_header(struct wg_buffer *out)
{
    wg__buffer_puts(out, "gpu,op,dtype,B,m,n,k,N,C,K,R,S,H,W,stride_h,stride_w,pad_h,pad_w,"
                         "pad_bottom,pad_right,dilation_h,dilation_w,groups,kernel,grid,runs,ms\n");
}

static void put_sizes(struct wg_buffer *out, const struct wg_wave_import_row *row)
{
    const struct wg_layer *layer = row->layer;
    const struct wg_conv *conv = &layer->conv;
    const struct wg_gemm *gemm = &row->gemm;
    if (layer->kind == WG_LAYER_CONV) {
        const uint64_t sizes[] = {
            conv->n,         conv->c,          conv->filters,    conv->r,
            conv->s,         conv->h,          conv->w,          conv->stride_h,
            conv->stride_w,  conv->pad_top,    conv->pad_left,   conv->pad_bottom,
            conv->pad_right, conv->dilation_h, conv->dilation_w, conv->groups};
        wg__buffer_puts(out, ",,,,");
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            wg__buffer_printf(out, "%" PRIu64 ",", sizes[i]);
    } else {
        wg__buffer_printf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",,,,,,,,,,,,,,,,,",
                          gemm->batch, gemm->m, gemm->n, gemm->k);
    }
}

static void put_run(struct wg_buffer *out, const struct run_of *run, const char *device)
{
    const struct wg_wave_import_row *row = run->first;
    const struct wg_layer *layer = row->layer;
    wg__csv_put(out, device);
    wg__buffer_printf(out, ",%s,%s,",
                      layer->kind == WG_LAYER_CONV ? "conv"
                      : row->gemm.batch > 1        ? "bmm"
                                                   : "linear",
                      wg__dtype_name(row->gemm.dtype));
    put_sizes(out, row);
    wg__csv_put(out, layer->kernel_name != NULL ? layer->kernel_name : "");
    wg__buffer_puts(out, ",");
    if (row->launch != NULL && row->launch->grid[0] != 0)
        wg__buffer_printf(out, "%" PRIu64 "x%" PRIu64 "x%" PRIu64, row->launch->grid[0],
                          row->launch->grid[1], row->launch->grid[2]);
    wg__buffer_printf(out, ",%zu,", run->runs);
    wg__csv_put_double(out, 1e3 * run->median_s);
    wg__buffer_puts(out, "\n");
}

static size_t join_all(const struct wg_wave_import_row **rows, size_t count, struct run_of *runs)
{
    size_t joined = 0;
    qsort(rows, count, sizeof *rows, by_key_and_time);
    for (size_t first = 0; first < count;) {
        size_t next = first + 1;
        while (next < count && compare_keys(rows[first], rows[next]) == 0)
            next++;
        runs[joined++] = join(&rows[first], next - first);
        first = next;
    }
    qsort(runs, joined, sizeof *runs, by_place);
    return joined;
}

void wg__wave_import_csv(const struct wg_wave_import *import, struct wg_buffer *out,
                         struct wg_wave_import_written *written)
{
    const struct wg_wave_import_row **rows = wg__alloc_zeroed(import->count, sizeof *rows);
    struct run_of *runs = wg__alloc_zeroed(import->count, sizeof *runs);
    size_t count = 0, joined = 0;
    if (rows != NULL && runs != NULL) {
        for (size_t i = 0; i < import->count; i++) {
            const struct wg_wave_import_row *row = &import->rows[i];
            if (!(row->layer->measured_s > 0.0))
                continue;
            if (row->has_gemm)
                rows[count++] = row;
            else
                written->left_out++;
        }
        joined = join_all(rows, count, runs);
        for (size_t i = 0; i < joined; i++)
            put_run(out, &runs[i], import->device);
    } else {
        out->failed = true;
    }
    wg__free(rows);
    wg__free(runs);
    written->rows += joined;
    written->layers += count;
}
