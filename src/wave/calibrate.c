/* SPDX-License-Identifier: MIT
 *
 * Calibrating: from measurements of one GPU to parameters, a tree of choices, and honest errors.
 *
 * Rows are grouped by dtype and class of work. Where profiles tell kernels, each class' parameters
 * are fitted to them and a tree learns the choice; where none is told, the tiles of a relative are
 * taken, and fitting alternates with choosing. The errors come from five folds over (n, k): each
 * row is predicted by parameters and a tree that saw no row of the same (n, k).
 *
 * Threads: pure, any thread; the same rows give the same calibration.
 */
#include "wave/calibration.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wave/calibration_set.h"
#include "wave/class_fit.h"
#include "wave/kernel_choice.h"

enum { ROWS_LEAST = 20, POINTS_MAX = 20000 };

static enum wg_op_class class_of(const struct wg_measured *row)
{
    if (row->is_conv)
        return wg__conv_class(&row->conv, row->pass);
    bool is_bmm = row->op != NULL && strcmp(row->op, "bmm") == 0;
    return is_bmm || row->gemm.batch > 1 ? WG_OP_BMM : WG_OP_LINEAR;
}

static enum wg_dtype dtype_of(const struct wg_measured *row)
{
    return row->is_conv ? row->conv.dtype : row->gemm.dtype;
}

/* What the fit needs of a row. false: a convolution that can't be, or one that memory decides. */
static bool to_class_row(const struct wg_measured *row, struct wg_class_row *out)
{
    *out = (struct wg_class_row){.kernel = row->kernel, .time_s = row->time_s};
    if (out->kernel.split_k == 0)
        out->kernel.split_k = 1;
    if (!row->is_conv) {
        out->gemm = row->gemm;
        out->bytes = wg__gemm_bytes(&row->gemm);
        return true;
    }
    out->bytes = wg__conv_bytes(&row->conv);
    out->winograd = wg__conv_may_winograd(&row->conv);
    return !wg__conv_is_depthwise(&row->conv) &&
           wg__conv_gemm(&row->conv, row->pass, &out->gemm, NULL) == WG_OK;
}

static size_t collect(const struct wg_measured *rows, size_t count, enum wg_dtype dtype,
                      enum wg_op_class op, struct wg_class_row *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (dtype_of(&rows[i]) == dtype && class_of(&rows[i]) == op && rows[i].time_s > 0.0 &&
            to_class_row(&rows[i], &out[kept]))
            kept++;
    return kept;
}

/* One point a shape, the mean of its times. */
static enum wg_code keep_points(struct wg_calibrated *entry, const struct wg_class_row *rows,
                                size_t count, struct wg_error *err)
{
    if (count > POINTS_MAX)
        return WG_OK;
    entry->points = wg__realloc_array(NULL, count, sizeof *entry->points);
    if (entry->points == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu measured points", count);
    for (size_t i = 0; i < count; i++)
        entry->points[i] = (struct wg_point){rows[i].gemm.batch,
                                             rows[i].gemm.m,
                                             rows[i].gemm.n,
                                             rows[i].gemm.k,
                                             entry->op >= WG_OP_CONV ? rows[i].bytes : 0.0,
                                             rows[i].time_s};
    qsort(entry->points, count, sizeof *entry->points, wg__point_compare);
    size_t kept = 0;
    for (size_t i = 0, same; i < count; i += same, kept++) {
        struct wg_point *point = &entry->points[kept];
        double sum = 0.0;
        for (same = 0; i + same < count; same++) {
            if (wg__point_compare(&entry->points[i], &entry->points[i + same]) != 0)
                break;
            sum += entry->points[i + same].time_s;
        }
        *point = entry->points[i];
        point->time_s = sum / (double)same;
    }
    entry->point_count = kept;
    return WG_OK;
}

static void copy_text(char out[static WG_GPU_ID_SIZE], const char *text)
{
    size_t length = strnlen(text, WG_GPU_ID_SIZE - 1);
    memcpy(out, text, length);
    out[length] = '\0';
}

static enum wg_code calibrate_class(struct wg_calibration *calibration,
                                    const struct wg_gpu_spec *gpu, enum wg_dtype dtype,
                                    enum wg_op_class op, const struct wg_class_row *rows,
                                    size_t count, bool with_errors, struct wg_error *err)
{
    struct wg_calibrated entry = {
        .dtype = dtype,
        .op = op,
        .row_count = count,
        .dense_flops = gpu->dense_flops[dtype],
        .memory_bandwidth_bytes_per_s = gpu->memory_bandwidth_bytes_per_s,
        .tdp_w = gpu->tdp_w,
    };
    copy_text(entry.gpu, gpu->id);
    copy_text(entry.arch, gpu->arch);
    enum wg_code code = wg__class_fit(&entry.params, gpu, op, rows, count, err);
    if (code == WG_OK)
        code =
            wg__class_correction_fit(&entry.own_correction, &entry.params, gpu, rows, count, err);
    entry.correction = entry.own_correction;
    if (code == WG_OK && with_errors)
        code = wg__class_errors(&entry.params, gpu, op, rows, count, err);
    if (code == WG_OK)
        code = keep_points(&entry, rows, count, err);
    if (code == WG_OK)
        code = wg__calibration_put(calibration, &entry, err);
    if (code != WG_OK)
        wg__calibrated_fini(&entry);
    return code;
}

static enum wg_code calibrate_all(struct wg_calibration *calibration, const struct wg_gpu_spec *gpu,
                                  const struct wg_measured *rows, size_t count,
                                  struct wg_class_row *scratch, bool with_errors,
                                  struct wg_error *err)
{
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++)
        for (int op = 0; op < WG_OP_BYTES && gpu->dense_flops[dtype] > 0.0; op++) {
            size_t kept = collect(rows, count, (enum wg_dtype)dtype, (enum wg_op_class)op, scratch);
            if (kept < ROWS_LEAST)
                continue;
            enum wg_code code =
                calibrate_class(calibration, gpu, (enum wg_dtype)dtype, (enum wg_op_class)op,
                                scratch, kept, with_errors, err);
            if (code != WG_OK)
                return code;
        }
    if (calibration->count == 0)
        return wg__fail(err, WG_EDATA,
                        "cannot calibrate %s from %zu measurements: expected at least %d of one "
                        "dtype that the GPU has and one kind of layer",
                        gpu->id, count, ROWS_LEAST);
    return WG_OK;
}

static enum wg_code calibrate(struct wg_calibration **out, const struct wg_gpu_spec *gpu,
                              const struct wg_measured *rows, size_t count, bool with_errors,
                              struct wg_error *err)
{
    struct wg_calibration *calibration = NULL;
    enum wg_code code = wg__calibration_new(&calibration, err);
    struct wg_class_row *scratch = wg__realloc_array(NULL, count > 0 ? count : 1, sizeof *scratch);
    if (code == WG_OK && scratch == NULL)
        code = wg__fail(err, WG_ENOMEM, "out of memory for %zu measurements", count);
    if (code == WG_OK)
        code = calibrate_all(calibration, gpu, rows, count, scratch, with_errors, err);
    wg__free(scratch);
    if (code == WG_OK)
        *out = calibration;
    else
        wg__calibration_free(calibration);
    return code;
}

enum wg_code wg__calibrate(struct wg_calibration **out, const struct wg_gpu_spec *gpu,
                           const struct wg_measured *rows, size_t count, struct wg_error *err)
{
    return calibrate(out, gpu, rows, count, true, err);
}

enum wg_code wg__calibrate_without_errors(struct wg_calibration **out,
                                          const struct wg_gpu_spec *gpu,
                                          const struct wg_measured *rows, size_t count,
                                          struct wg_error *err)
{
    return calibrate(out, gpu, rows, count, false, err);
}
