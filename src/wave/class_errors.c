/* SPDX-License-Identifier: MIT
 *
 * How wrong a fit is on shapes that it did not see: four folds over (n, k), and one of the largest.
 *
 * Threads: pure, any thread.
 */
#include <assert.h>
#include <math.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "math/statistics.h"
#include "wave/class_fit.h"
#include "wave/correction.h"

enum { FOLDS = 5, LEAST_RATIOS = 10 };

struct ratios { /* measured / predicted */
    double *values;
    size_t count;
    double absolute; /* sum of |predicted / measured - 1| */
};

static double weights_of(const struct wg_class_row *row)
{
    return (double)row->gemm.n * (double)row->gemm.k;
}

/* The last fold is the largest n * k: what is asked for is often larger than what was measured. */
static unsigned fold_of(const struct wg_class_row *row, double large)
{
    if (weights_of(row) > large)
        return FOLDS - 1;
    uint64_t hash = wg__hash_number(wg__hash_number(WG_HASH_START, row->gemm.n), row->gemm.k);
    return (unsigned)((hash >> 17) % (FOLDS - 1));
}

static void add(struct ratios *ratios, double measured_s, double predicted_s)
{
    assert(ratios->values != NULL);
    ratios->values[ratios->count++] = measured_s / predicted_s;
    ratios->absolute += fabs(predicted_s / measured_s - 1.0);
}

static void test_row(const struct wg_kernel_params *params,
                     const struct wg_forest_index *correction,
                     const struct wg_wave_machine *machine, const struct wg_class_row *row,
                     struct ratios *known, struct ratios *chosen)
{
    struct wg_wave_work work;
    struct wg_kernel_choice choice;
    wg__wave_work_init(&work, machine, &row->gemm, row->bytes);
    wg__kernel_choose(params, machine, &work, row->winograd, &choice);
    wg__correct(correction, machine, &work, &choice);
    add(chosen, row->time_s, choice.time.time_s);
    if (row->kernel.tile_m == 0 || row->kernel.tile_n == 0)
        return;
    struct wg_tile_params tile;
    struct wg_wave_time time;
    wg__tile_of(params, &row->kernel, &tile);
    wg__wave_parts(machine, &tile, row->kernel.split_k, &work, &time);
    wg__wave_finish(machine, &time);
    add(known, row->time_s, time.time_s);
}

static enum wg_code test_fold(const struct wg_gpu_spec *gpu, enum wg_op_class op, unsigned fold,
                              double large, const struct wg_class_row *rows, size_t count,
                              struct wg_class_row *others, struct ratios *known,
                              struct ratios *chosen, struct wg_error *err)
{
    assert(others != NULL);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (fold_of(&rows[i], large) != fold)
            others[kept++] = rows[i];
    if (kept == 0)
        return WG_OK;
    struct wg_kernel_params *params = wg__alloc(sizeof *params);
    if (params == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for a fold of %zu rows", kept);
    enum wg_code code = wg__class_fit(params, gpu, op, others, kept, err);
    struct wg_forest *forest = NULL;
    struct wg_forest_index *correction = NULL;
    if (code == WG_OK)
        code = wg__class_correction_fit(&forest, params, gpu, others, kept, err);
    if (code == WG_OK)
        code = wg__forest_index_new(&correction, forest, err);
    struct wg_wave_machine machine;
    if (code == WG_OK)
        wg__wave_machine_init(&machine, gpu, rows[0].gemm.dtype, params);
    for (size_t i = 0; i < count && code == WG_OK; i++)
        if (fold_of(&rows[i], large) == fold)
            test_row(params, correction, &machine, &rows[i], known, chosen);
    wg__free(correction);
    wg__free(forest);
    wg__free(params);
    return code;
}

/* Too few rows leave the wide range of an unmeasured class. */
static void conclude(struct ratios *ratios, struct wg_kernel_error *out)
{
    if (ratios->count < LEAST_RATIOS)
        return;
    wg__sort(ratios->values, ratios->count);
    *out = (struct wg_kernel_error){
        .mape = ratios->absolute / (double)ratios->count,
        .low = fmin(wg__quantile_sorted(ratios->values, ratios->count, 0.05), 1.0),
        .high = fmax(wg__quantile_sorted(ratios->values, ratios->count, 0.95), 1.0),
        .rows = (double)ratios->count,
    };
}

enum wg_code wg__class_errors(struct wg_kernel_params *params, const struct wg_gpu_spec *gpu,
                              enum wg_op_class op, const struct wg_class_row *rows, size_t count,
                              struct wg_error *err)
{
    struct ratios known = {.values = wg__realloc_array(NULL, count, sizeof(double))};
    struct ratios chosen = {.values = wg__realloc_array(NULL, count, sizeof(double))};
    struct wg_class_row *others = wg__realloc_array(NULL, count, sizeof *others);
    enum wg_code code = WG_OK;
    if (known.values == NULL || chosen.values == NULL || others == NULL)
        code = wg__fail(err, WG_ENOMEM, "out of memory for folds over %zu rows", count);
    double large = 0.0;
    if (code == WG_OK && known.values != NULL) {
        for (size_t i = 0; i < count; i++)
            known.values[i] = weights_of(&rows[i]);
        large = wg__quantile_inplace(known.values, count, 0.8);
    }
    for (unsigned fold = 0; fold < FOLDS && code == WG_OK; fold++)
        code = test_fold(gpu, op, fold, large, rows, count, others, &known, &chosen, err);
    if (code == WG_OK) {
        conclude(&known, &params->known);
        conclude(&chosen, &params->chosen);
    }
    wg__free(known.values);
    wg__free(chosen.values);
    wg__free(others);
    return code;
}
