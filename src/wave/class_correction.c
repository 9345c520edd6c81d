/* SPDX-License-Identifier: MIT
 *
 * Learning what the formula leaves over, where the kernels are not told (wave/correction.h).
 *
 * Threads: pure, any thread; the same rows give the same forest.
 */
#include <assert.h>
#include <math.h>

#include "base/alloc.h"
#include "wave/class_fit.h"
#include "wave/correction.h"
#include "wave/tensor_tiles.h"

enum { ROWS_LEAST = 300 }; /* fewer would be learned by heart */

static const struct wg_forest_opts forest_opts = {
    .trees = 400,
    .depth = 7,
    .rate = 0.12,
    .smoothing = 5.0,
    .row_share = 0.5,
    .feature_share = 0.5,
    .clip = 0.5,
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

static enum wg_code fit(struct wg_forest *forest, const struct wg_kernel_params *params,
                        const struct wg_gpu_spec *gpu, const struct wg_class_row *rows,
                        size_t count, float *features, double *target, struct wg_error *err)
{
    assert(features != NULL && target != NULL);
    struct wg_wave_machine machine;
    wg__wave_machine_init(&machine, gpu, rows[0].gemm.dtype, params);
    for (size_t i = 0; i < count; i++) {
        struct wg_wave_work work;
        struct wg_kernel_choice choice;
        wg__wave_work_init(&work, &machine, &rows[i].gemm, rows[i].bytes);
        wg__kernel_choose(params, &machine, &work, rows[i].winograd, &choice);
        wg__correction_features(&machine, &work, &choice, features + i * WG_CORRECTION_FEATURES);
        target[i] = log(rows[i].time_s / choice.time.time_s);
    }
    return wg__forest_fit(forest, features, WG_CORRECTION_FEATURES, target, count, &forest_opts,
                          err);
}

enum wg_code wg__class_correction_fit(struct wg_forest **out, const struct wg_kernel_params *params,
                                      const struct wg_gpu_spec *gpu,
                                      const struct wg_class_row *rows, size_t count,
                                      struct wg_error *err)
{
    *out = NULL;
    if (!is_wanted(rows, count))
        return WG_OK;
    struct wg_forest *forest = wg__alloc(sizeof *forest);
    float *features = wg__realloc_array(NULL, count, WG_CORRECTION_FEATURES * sizeof *features);
    double *target = wg__realloc_array(NULL, count, sizeof *target);
    enum wg_code code = WG_OK;
    if (forest == NULL || features == NULL || target == NULL)
        code = wg__fail(err, WG_ENOMEM, "out of memory for correcting %zu rows", count);
    if (code == WG_OK)
        code = fit(forest, params, gpu, rows, count, features, target, err);
    wg__free(features);
    wg__free(target);
    if (code == WG_OK)
        *out = forest;
    else
        wg__free(forest);
    return code;
}
