/* SPDX-License-Identifier: MIT
 *
 * Batch sizes and their throughput: see batches.h.
 *
 * A network repeats itself: of ResNet-50's 54 layers 24 are different. Which layer stands for which
 * does not depend on the batch, but there is no memory to keep it in, so it is looked up again each
 * time; comparing costs a hundredth of a prediction.
 */
#include "wave/batches.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "wave/layer_predict.h"
#include "wave/staircase.h"

static const double no_more = 0.01;

static bool is_same_kernel(const struct wg_kernel *a, const struct wg_kernel *b)
{
    return a->tile_m == b->tile_m && a->tile_n == b->tile_n && a->tile_k == b->tile_k &&
           a->threads == b->threads && a->split_k == b->split_k && a->cluster_m == b->cluster_m &&
           a->cluster_n == b->cluster_n && a->is_persistent == b->is_persistent;
}

static bool is_same_gemm(const struct wg_gemm *a, const struct wg_gemm *b)
{
    return a->dtype == b->dtype && a->batch == b->batch && a->m == b->m && a->n == b->n &&
           a->k == b->k && a->has_bias == b->has_bias;
}

static bool is_same_conv(const struct wg_conv *a, const struct wg_conv *b)
{
    const uint64_t of_a[] = {a->n,         a->c,          a->h,          a->w,
                             a->filters,   a->r,          a->s,          a->stride_h,
                             a->stride_w,  a->pad_top,    a->pad_left,   a->pad_bottom,
                             a->pad_right, a->dilation_h, a->dilation_w, a->groups};
    const uint64_t of_b[] = {b->n,         b->c,          b->h,          b->w,
                             b->filters,   b->r,          b->s,          b->stride_h,
                             b->stride_w,  b->pad_top,    b->pad_left,   b->pad_bottom,
                             b->pad_right, b->dilation_h, b->dilation_w, b->groups};
    return a->dtype == b->dtype && a->has_bias == b->has_bias &&
           memcmp(of_a, of_b, sizeof of_a) == 0;
}

static bool is_alike(const struct wg_layer *a, const struct wg_layer *b)
{
    if (a->kind != b->kind || !is_same_kernel(&a->kernel, &b->kernel))
        return false;
    if (a->kind == WG_LAYER_CONV)
        return is_same_conv(&a->conv, &b->conv);
    return is_same_gemm(&a->gemm, &b->gemm) && a->bytes == b->bytes;
}

/* How many layers are as layer `index` is; 0 when one before it is. */
static size_t count_alike(const struct wg_network *network, size_t index)
{
    const struct wg_layer *layer = &network->layers[index];
    size_t count = 1;
    for (size_t i = 0; i < index; i++)
        if (is_alike(&network->layers[i], layer))
            return 0;
    for (size_t i = index + 1; i < network->layer_count; i++)
        count += is_alike(&network->layers[i], layer);
    return count;
}

static enum wg_code time_at(const struct wg_kernel_model *model, const struct wg_network *network,
                            uint32_t samples, uint32_t batch, double *out, struct wg_error *err)
{
    double total_s = 0;
    for (size_t i = 0; i < network->layer_count; i++) {
        const size_t count = count_alike(network, i);
        struct wg_layer at;
        struct wg_prediction prediction;
        if (count == 0)
            continue;
        enum wg_code code =
            wg__layer_resize(&network->layers[i], WG_SWEEP_BATCH, samples, batch, &at, err);
        if (code == WG_OK)
            code = wg__layer_predict(model, &at, &prediction, err);
        if (code != WG_OK)
            return code;
        total_s += prediction.time_s * (double)count;
    }
    *out = total_s;
    return WG_OK;
}

void wg__batches_judge(struct wg_batch_point *points, size_t count)
{
    double best_per_s = 0;
    for (size_t i = 0; i < count; i++)
        points[i].per_s = points[i].batch / points[i].time_s;
    for (size_t i = 0; i < count; i++) {
        struct wg_batch_point *point = &points[i];
        const bool is_last = i + 1 == count;
        point->next_s = (double)NAN;
        if (!is_last)
            point->next_s = (points[i + 1].time_s - point->time_s) /
                            (double)(points[i + 1].batch - point->batch);
        point->is_best =
            point->per_s > best_per_s && (is_last || points[i + 1].per_s <= point->per_s);
        best_per_s = fmax(best_per_s, point->per_s);
        size_t last = count - 1;
        while (last > i && points[last].time_s > point->time_s * (1 + no_more))
            last--;
        point->free_to = points[last].batch;
    }
}

enum wg_code wg__batches(const struct wg_kernel_model *model, const struct wg_network *network,
                         uint32_t samples, uint32_t first, uint32_t count,
                         struct wg_batch_point *points, struct wg_error *err)
{
    if (samples == 0 || first == 0 || count == 0 || count - 1 > UINT32_MAX - first)
        return wg__fail(err, WG_EINVAL,
                        "%" PRIu32 " batches from %" PRIu32 " on of a network given at %" PRIu32
                        " samples: expected all to be at least 1",
                        count, first, samples);
    for (uint32_t i = 0; i < count; i++) {
        points[i] = (struct wg_batch_point){.batch = first + i};
        const enum wg_code code =
            time_at(model, network, samples, first + i, &points[i].time_s, err);
        if (code != WG_OK)
            return code;
    }
    wg__batches_judge(points, count);
    return WG_OK;
}
