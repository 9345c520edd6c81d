/* SPDX-License-Identifier: MIT
 *
 * Layers and totals of an analysis; see wave_analysis.h.
 */
#include "cli/wave_analysis.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "wave/layer_predict.h"
#include "wave/stream_k.h"

/* What blocks that share tiles would save of the tail. */
static double stream_k_saving(const struct wg_wave_row *row, unsigned sms)
{
    const struct wg_prediction *of = &row->prediction;
    struct wg_stream_k stream_k;
    if (!row->has_gemm || of->kernel.tile_k == 0 || of->blocks == 0)
        return NAN;
    if (of->kernel.split_k > 1 || of->kernel.is_persistent || of->bound != WG_BOUND_COMPUTE)
        return 0; /* shares tiles already, or the SMs wait for something else */
    const uint64_t iterations = (row->gemm.k + of->kernel.tile_k - 1) / of->kernel.tile_k;
    wg__stream_k(of->blocks, iterations, sms, &stream_k);
    return fmin(stream_k.saved * of->compute_s, of->tail_s);
}

/* What a grid tells without a prediction. */
static void take_launch(struct wg_wave_row *row, unsigned sms)
{
    const struct wg_layer *layer = row->layer;
    const double waves = layer->blocks > 0 ? (double)layer->blocks / sms : (double)NAN;
    row->prediction = (struct wg_prediction){.time_s = NAN,
                                             .low_s = NAN,
                                             .high_s = NAN,
                                             .kernel = layer->kernel,
                                             .blocks = layer->blocks,
                                             .waves = waves,
                                             .tile_efficiency = NAN,
                                             .wave_efficiency = waves / ceil(waves),
                                             .tail_s = NAN};
    row->stream_k_s = NAN;
    row->waste = layer->blocks > 0 ? wg__tail_share(waves) : (double)NAN;
    row->measured_tail_s = row->waste * row->measured_s;
}

static enum wg_code analyze_row(struct wg_wave_row *row, const struct wg_kernel_model *model,
                                unsigned sms, struct wg_error *err)
{
    const struct wg_layer *layer = row->layer;
    struct wg_prediction *of = &row->prediction;
    row->has_gemm = wg__layer_gemm(layer, &row->gemm);
    row->measured_s = layer->measured_s > 0 ? layer->measured_s : (double)NAN;
    enum wg_code code = WG_EUNSUPPORTED;
    if (layer->kind == WG_LAYER_BYTES || row->has_gemm)
        code = wg__layer_predict(model, layer, of, err);
    row->is_predicted = code == WG_OK;
    row->measured_tail_s = NAN;
    if (code != WG_OK) {
        take_launch(row, sms);
        return code == WG_EUNSUPPORTED ? WG_OK : code;
    }
    row->waste = of->time_s > 0 ? of->tail_s / of->time_s : 0;
    row->stream_k_s = stream_k_saving(row, sms);
    return WG_OK;
}

static void add_row(struct wg_wave_total *total, const struct wg_wave_row *row)
{
    const struct wg_prediction *of = &row->prediction;
    if (row->measured_s > 0) {
        total->measured_s = (isnan(total->measured_s) ? 0 : total->measured_s) + row->measured_s;
        if (row->is_predicted) {
            total->compared_s += row->measured_s;
            total->compared_predicted_s += of->time_s;
        }
    }
    if (row->has_gemm)
        total->flops += row->layer->kind == WG_LAYER_CONV ? wg__conv_flops(&row->layer->conv)
                                                          : wg__gemm_flops(&row->gemm);
    if (!row->is_predicted) {
        total->unpredicted++;
        if (isfinite(row->measured_tail_s)) {
            total->launched_s += row->measured_s;
            total->launched_tail_s += row->measured_tail_s;
        }
        return;
    }
    total->predicted++;
    total->time_s += of->time_s;
    total->low_s += of->low_s;
    total->high_s += of->high_s;
    total->tail_s += of->tail_s;
    total->stream_k_s += isnan(row->stream_k_s) ? 0 : row->stream_k_s;
    total->origin_s[of->origin] += of->time_s;
    total->bound_s[of->bound] += of->time_s;
}

enum wg_code wg__wave_analyze(struct wg_wave_analysis *out, const struct wg_kernel_model *model,
                              const struct wg_gpu_spec *gpu, const struct wg_network *network,
                              struct wg_error *err)
{
    struct wg_error why = {0};
    bool has_multiplied = false, wants_to = false;
    *out = (struct wg_wave_analysis){.gpu = gpu, .network = network, .count = network->layer_count};
    if (network->layer_count == 0)
        return wg__fail(err, WG_EDATA, "%s: no layer costs time", network->name);
    out->rows = wg__alloc_zeroed(out->count, sizeof *out->rows);
    if (out->rows == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu layers", out->count);
    out->total.measured_s = NAN;
    for (size_t i = 0; i < out->count; i++) {
        struct wg_wave_row *row = &out->rows[i];
        struct wg_error cause = {0};
        row->layer = &network->layers[i];
        const enum wg_code code = analyze_row(row, model, gpu->sms, &cause);
        if (code != WG_OK)
            return wg__fail(err, code, "%s", cause.text);
        wants_to |= row->has_gemm;
        has_multiplied |= row->has_gemm && row->is_predicted;
        if (row->has_gemm && !row->is_predicted && why.code == WG_OK)
            why = cause;
        add_row(&out->total, row);
    }
    if (wants_to && !has_multiplied)
        return wg__fail(err, WG_EUNSUPPORTED, "%s", why.text);
    struct wg_wave_total *total = &out->total;
    total->waste = total->time_s > 0 ? total->tail_s / total->time_s : 0;
    total->idle_sm_s = gpu->sms * total->tail_s;
    total->idle_least_j = gpu->idle_w * total->tail_s;
    total->idle_most_j = gpu->tdp_w > 0 ? gpu->tdp_w * total->tail_s : (double)NAN;
    return WG_OK;
}

enum wg_code wg__wave_analyze_batches(struct wg_wave_analysis *analysis,
                                      const struct wg_kernel_model *model, uint64_t samples,
                                      uint32_t first, uint32_t most, struct wg_error *err)
{
    if (samples == 0 || samples > UINT32_MAX)
        return wg__fail(err, WG_EINVAL, "%s has no batch that could be changed",
                        analysis->network->name);
    const uint32_t count = most - first + 1;
    struct wg_batch_point *points = wg__alloc_zeroed(count, sizeof *points);
    if (points == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %u batch sizes", count);
    wg__free(analysis->points);
    analysis->points = points;
    analysis->point_count = 0;
    const enum wg_code code =
        wg__batches(model, analysis->network, (uint32_t)samples, first, count, points, err);
    if (code != WG_OK)
        return code;
    analysis->samples = samples;
    analysis->point_count = count;
    return WG_OK;
}

void wg__wave_analysis_fini(struct wg_wave_analysis *analysis)
{
    wg__free(analysis->rows);
    wg__free(analysis->points);
    analysis->rows = NULL;
    analysis->points = NULL;
}

/* 0: not known */
static double tail_of(const struct wg_wave_row *row)
{
    if (row->is_predicted)
        return row->prediction.tail_s;
    return isfinite(row->measured_tail_s) ? row->measured_tail_s : 0;
}

/* Both unknown, or the same. */
static bool is_same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b;
}

static bool is_alike(const struct wg_wave_row *a, const struct wg_wave_row *b)
{
    if (a->has_gemm != b->has_gemm || a->is_predicted != b->is_predicted ||
        strcmp(a->layer->op, b->layer->op) != 0)
        return false;
    if (a->has_gemm && (a->gemm.dtype != b->gemm.dtype || a->gemm.batch != b->gemm.batch ||
                        a->gemm.m != b->gemm.m || a->gemm.n != b->gemm.n || a->gemm.k != b->gemm.k))
        return false;
    const struct wg_prediction *one = &a->prediction, *two = &b->prediction;
    return is_same(one->time_s, two->time_s) && is_same(one->tail_s, two->tail_s) &&
           is_same(one->waves, two->waves) && is_same(a->measured_s, b->measured_s);
}

static int compare_kinds(const void *a, const void *b, void *context)
{
    const struct wg_wave_row *rows = context;
    const struct wg_wave_kind *one = a, *two = b;
    const double tail_one = (double)one->count * tail_of(&rows[one->row]);
    const double tail_two = (double)two->count * tail_of(&rows[two->row]);
    if (tail_one != tail_two)
        return tail_one > tail_two ? -1 : 1;
    return one->row < two->row ? -1 : 1;
}

size_t wg__wave_kinds(const struct wg_wave_analysis *analysis, struct wg_wave_kind *out)
{
    size_t count = 0;
    for (size_t i = 0; i < analysis->count; i++) {
        size_t k = 0;
        while (k < count && !is_alike(&analysis->rows[out[k].row], &analysis->rows[i]))
            k++;
        if (k == count)
            out[count++] = (struct wg_wave_kind){.row = i};
        out[k].count++;
    }
    qsort_r(out, count, sizeof *out, compare_kinds, analysis->rows);
    return count;
}
