/* SPDX-License-Identifier: MIT
 *
 * Predictions for measured rows: by a calibration, or each fold by a calibration of the others.
 *
 * Threads: pure, any thread; the same rows and seed give the same numbers.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "math/statistics.h"
#include "wave/evaluate.h"
#include "wave/kernel_model.h"

static double roofline(const struct wg_gpu_spec *gpu, const struct wg_measured *row)
{
    enum wg_dtype dtype = row->is_conv ? row->conv.dtype : row->gemm.dtype;
    double flops = row->is_conv ? wg__conv_flops(&row->conv) : wg__gemm_flops(&row->gemm);
    double bytes = row->is_conv ? wg__conv_bytes(&row->conv) : wg__gemm_bytes(&row->gemm);
    return fmax(flops / gpu->dense_flops[dtype], bytes / gpu->memory_bandwidth_bytes_per_s);
}

static enum wg_code predict_row(const struct wg_kernel_model *model, const struct wg_gpu_spec *gpu,
                                const struct wg_measured *row, struct wg_evaluated *out,
                                struct wg_error *err)
{
    const struct wg_kernel *known = row->kernel.tile_m > 0 ? &row->kernel : NULL;
    struct wg_prediction prediction;
    enum wg_code code =
        row->is_conv ? wg__kernel_model_conv(model, &row->conv, row->pass, known, &prediction, err)
                     : wg__kernel_model_gemm(model, &row->gemm, known, &prediction, err);
    if (code != WG_OK)
        return code;
    *out = (struct wg_evaluated){
        .row = row,
        .predicted_s = prediction.time_s,
        .low_s = prediction.low_s,
        .high_s = prediction.high_s,
        .full_s = prediction.time_s - prediction.tail_s,
        .waves = prediction.waves,
        .is_recalled = prediction.origin == WG_ORIGIN_MEASURED,
        .roofline_s = roofline(gpu, row),
    };
    return WG_OK;
}

enum wg_code wg__evaluate_predict(const struct wg_gpu_spec *gpu,
                                  const struct wg_calibration *calibration,
                                  const struct wg_measured *rows, size_t count,
                                  struct wg_evaluated *out, struct wg_error *err)
{
    struct wg_kernel_model *model = NULL;
    enum wg_code code = wg__kernel_model_new(&model, gpu, calibration, err);
    for (size_t i = 0; i < count && code == WG_OK; i++)
        code = predict_row(model, gpu, &rows[i], &out[i], err);
    wg__kernel_model_free(model);
    return code;
}

/* -- Folds ------------------------------------------------------------------------------------ */

/* All that folds work on. */
struct folding {
    const struct wg_gpu_spec *gpu;
    const struct wg_measured *rows;
    size_t count;
    unsigned folds;
    uint64_t seed;
    struct wg_measured *others; /* scratch */
    double *ratios;             /* scratch */
};

/* By a hash of the shape, so that a row more does not move the others. */
static unsigned fold_of(const struct folding *folding, const struct wg_measured *row)
{
    struct wg_gemm gemm = row->gemm;
    if (row->is_conv)
        (void)wg__conv_gemm(&row->conv, row->pass, &gemm, NULL);
    uint64_t hash = wg__hash_number(WG_HASH_START, folding->seed);
    hash = wg__hash_number(wg__hash_number(hash, gemm.n), gemm.k);
    return (unsigned)((hash >> 17) % folding->folds);
}

static enum wg_code predict_fold(const struct folding *folding, unsigned fold,
                                 struct wg_evaluated *out, struct wg_error *err)
{
    assert(folding->others != NULL);
    size_t kept = 0;
    for (size_t i = 0; i < folding->count; i++)
        if (fold_of(folding, &folding->rows[i]) != fold)
            folding->others[kept++] = folding->rows[i];
    if (kept == folding->count)
        return WG_OK; /* an empty fold */
    if (kept == 0)
        return wg__fail(err, WG_EDATA,
                        "all %zu measurements fall into one of %u folds: expected several shapes "
                        "(n, k), of which each fold is predicted from the others",
                        folding->count, folding->folds);
    struct wg_calibration *calibration = NULL;
    struct wg_kernel_model *model = NULL;
    struct wg_error cause = {0};
    enum wg_code code =
        wg__calibrate_without_errors(&calibration, folding->gpu, folding->others, kept, &cause);
    if (code != WG_OK)
        code =
            wg__fail(err, code, "without fold %u of %u: %s", fold + 1, folding->folds, cause.text);
    else
        code = wg__kernel_model_new(&model, folding->gpu, calibration, err);
    for (size_t i = 0; i < folding->count && code == WG_OK; i++)
        if (fold_of(folding, &folding->rows[i]) == fold)
            code = predict_row(model, folding->gpu, &folding->rows[i], &out[i], err);
    wg__kernel_model_free(model);
    wg__calibration_free(calibration);
    return code;
}

/* 90 % of measured over predicted, of all folds but one, around that one's predictions. */
static void range_fold(const struct folding *folding, unsigned fold, struct wg_evaluated *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < folding->count; i++)
        if (fold_of(folding, &folding->rows[i]) != fold)
            folding->ratios[kept++] = folding->rows[i].time_s / out[i].predicted_s;
    double low = (double)NAN, high = (double)NAN;
    if (kept > 0) {
        wg__sort(folding->ratios, kept);
        low = wg__quantile_sorted(folding->ratios, kept, 0.05);
        high = wg__quantile_sorted(folding->ratios, kept, 0.95);
    }
    for (size_t i = 0; i < folding->count; i++)
        if (fold_of(folding, &folding->rows[i]) == fold) {
            out[i].fold = fold + 1;
            out[i].low_s = low * out[i].predicted_s;
            out[i].high_s = high * out[i].predicted_s;
        }
}

enum wg_code wg__evaluate_folds(const struct wg_gpu_spec *gpu, const struct wg_measured *rows,
                                size_t count, unsigned folds, uint64_t seed,
                                struct wg_evaluated *out, struct wg_error *err)
{
    if (folds < 2 || folds > WG_FOLDS_MAX)
        return wg__fail(err, WG_EINVAL, "%u folds: expected 2 .. %d", folds, WG_FOLDS_MAX);
    size_t room = count > 0 ? count : 1;
    struct folding folding = {
        .gpu = gpu,
        .rows = rows,
        .count = count,
        .folds = folds,
        .seed = seed,
        .others = wg__realloc_array(NULL, room, sizeof *folding.others),
        .ratios = wg__realloc_array(NULL, room, sizeof *folding.ratios),
    };
    enum wg_code code = WG_OK;
    if (folding.others == NULL || folding.ratios == NULL)
        code = wg__fail(err, WG_ENOMEM, "out of memory for folds over %zu measurements", count);
    for (unsigned fold = 0; fold < folds && code == WG_OK; fold++)
        code = predict_fold(&folding, fold, out, err);
    for (unsigned fold = 0; fold < folds && code == WG_OK; fold++)
        range_fold(&folding, fold, out);
    wg__free(folding.others);
    wg__free(folding.ratios);
    return code;
}
