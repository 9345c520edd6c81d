/* SPDX-License-Identifier: MIT
 *
 * Learning what the formula leaves over, where the kernels are not told (wave/correction.h).
 *
 * Threads: pure, any thread; the same rows give the same forest.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "wave/class_fit.h"
#include "wave/correction.h"
#include "wave/step.h"
#include "wave/tensor_tiles.h"

enum { ROWS_LEAST = 300 }; /* fewer would be learned by heart */

static const struct wg_forest_opts forest_opts = {
    .trees = 512,
    .depth = 7,
    .rate = 0.1,
    .smoothing = 5.0,
    .row_share = 0.5,
    .feature_share = 0.5,
    .clip = 0.5,
    .step = 0.077, /* log 1.08 */
    .step_width = 0.03,
    .step_weight = 4.0,
    .seed = 1,
};

static bool is_wanted(const struct wg_class_row *rows, size_t count)
{
    size_t told = 0;
    for (size_t i = 0; i < count; i++)
        told += rows[i].kernel.tile_m > 0;
    return count >= ROWS_LEAST && 2 * told < count &&
           wg__dtype_has_tensor_tiles(rows[0].gemm.dtype);
}

/* What a fit works on; freed together. */
struct scratch {
    float *features;
    double *target, *base;
    uint32_t *order, *next;
};

static void scratch_fini(struct scratch *scratch)
{
    wg__free(scratch->features);
    wg__free(scratch->target);
    wg__free(scratch->base);
    wg__free(scratch->order);
    wg__free(scratch->next);
}

static enum wg_code scratch_init(struct scratch *scratch, size_t count, struct wg_error *err)
{
    *scratch = (struct scratch){
        .features = wg__realloc_array(NULL, count, WG_CORRECTION_FEATURES * sizeof(float)),
        .target = wg__realloc_array(NULL, count, sizeof *scratch->target),
        .base = wg__realloc_array(NULL, count, sizeof *scratch->base),
        .order = wg__realloc_array(NULL, count, sizeof *scratch->order),
        .next = wg__realloc_array(NULL, count, sizeof *scratch->next),
    };
    if (scratch->features != NULL && scratch->target != NULL && scratch->base != NULL &&
        scratch->order != NULL && scratch->next != NULL)
        return WG_OK;
    scratch_fini(scratch);
    return wg__fail(err, WG_ENOMEM, "out of memory for correcting %zu rows", count);
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_curves(const struct wg_gemm *a, const struct wg_gemm *b)
{
    int order = compare_numbers(a->batch, b->batch);
    if (order == 0)
        order = compare_numbers(a->n, b->n);
    return order == 0 ? compare_numbers(a->k, b->k) : order;
}

static int compare_rows(const void *first, const void *second, void *rows)
{
    const uint32_t a = *(const uint32_t *)first, b = *(const uint32_t *)second;
    const struct wg_class_row *of = rows;
    int order = compare_curves(&of[a].gemm, &of[b].gemm);
    if (order == 0)
        order = compare_numbers(of[a].gemm.m, of[b].gemm.m);
    return order == 0 ? compare_numbers(a, b) : order;
}

/* Which row follows on a row's curve, near enough to say whether there is a step between. */
static void find_next(const struct wg_class_row *rows, size_t count, uint32_t *order,
                      uint32_t *next)
{
    for (size_t i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
        next[i] = WG_FOREST_NO_ROW;
    }
    qsort_r(order, count, sizeof *order, compare_rows, (void *)rows);
    for (size_t i = 1; i < count; i++) {
        const struct wg_gemm *from = &rows[order[i - 1]].gemm, *to = &rows[order[i]].gemm;
        if (compare_curves(from, to) == 0 && to->m > from->m && wg__may_step(from->m, to->m))
            next[order[i - 1]] = order[i];
    }
}

static enum wg_code fit(struct wg_forest *forest, const struct wg_kernel_params *params,
                        const struct wg_gpu_spec *gpu, const struct wg_class_row *rows,
                        size_t count, struct scratch *scratch, struct wg_error *err)
{
    struct wg_wave_machine machine;
    wg__wave_machine_init(&machine, gpu, rows[0].gemm.dtype, params);
    for (size_t i = 0; i < count; i++) {
        struct wg_wave_work work;
        struct wg_kernel_choice choice;
        wg__wave_work_init(&work, &machine, &rows[i].gemm, rows[i].bytes);
        wg__kernel_choose(params, &machine, &work, rows[i].winograd, &choice);
        wg__correction_features(&machine, &work, &choice,
                                scratch->features + i * WG_CORRECTION_FEATURES);
        scratch->base[i] = log(choice.time.time_s);
        scratch->target[i] = log(rows[i].time_s) - scratch->base[i];
    }
    find_next(rows, count, scratch->order, scratch->next);
    const struct wg_forest_data data = {
        .features = scratch->features,
        .feature_count = WG_CORRECTION_FEATURES,
        .rows = count,
        .target = scratch->target,
        .base = scratch->base,
        .next = scratch->next,
    };
    return wg__forest_fit(forest, &data, &forest_opts, err);
}

enum wg_code wg__class_correction_fit(struct wg_forest **out, const struct wg_kernel_params *params,
                                      const struct wg_gpu_spec *gpu,
                                      const struct wg_class_row *rows, size_t count,
                                      struct wg_error *err)
{
    struct scratch scratch;
    *out = NULL;
    if (!is_wanted(rows, count))
        return WG_OK;
    enum wg_code code = scratch_init(&scratch, count, err);
    if (code != WG_OK)
        return code;
    struct wg_forest *forest = wg__alloc(sizeof *forest);
    code = forest != NULL ? fit(forest, params, gpu, rows, count, &scratch, err)
                          : wg__fail(err, WG_ENOMEM, "out of memory for a forest");
    scratch_fini(&scratch);
    if (code == WG_OK)
        *out = forest;
    else
        wg__free(forest);
    return code;
}
