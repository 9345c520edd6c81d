/* SPDX-License-Identifier: MIT
 *
 * Tiles from rows, numbers from params_fit, the choice from choice_tree.
 *
 * Threads: pure, any thread.
 */
#include "wave/class_fit.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "math/statistics.h"
#include "wave/calibration.h"
#include "wave/choice_tree.h"
#include "wave/kernel_choice.h"
#include "wave/params_fit.h"
#include "wave/relative.h"
#include "wave/tensor_tiles.h"

enum {
    KERNELS_MAX = 256, /* different ones counted; the most used become tiles */
    TILE_ROWS_LEAST = 20,
    OPTION_ROWS_LEAST = 10,
    ROUNDS = 4 /* of choosing and fitting, where no kernel is told */
};

/* Convolutions that were measured tell little of kernels that small filters do not take. */
static const double CONV_FIRMNESS = 6.0;

struct tally {
    struct wg_kernel kernel;
    size_t rows;
    size_t first; /* row, for ties */
};

static bool is_same_tile(const struct wg_kernel *a, const struct wg_kernel *b)
{
    return a->tile_m == b->tile_m && a->tile_n == b->tile_n && a->threads == b->threads &&
           a->slices == b->slices;
}

static int most_rows_first(const void *a, const void *b)
{
    const struct tally *first = a, *second = b;
    if (first->rows != second->rows)
        return first->rows < second->rows ? 1 : -1;
    return (first->first > second->first) - (first->first < second->first);
}

/* Makes the most used kernels the tiles; returns how many rows tell one. */
static size_t find_tiles(struct wg_kernel_params *params, const struct wg_class_row *rows,
                         size_t count)
{
    struct tally tallies[KERNELS_MAX] = {0};
    size_t kernels = 0, told = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        if (rows[i].kernel.tile_m == 0 || rows[i].kernel.tile_n == 0)
            continue;
        told++;
        while (at < kernels && !is_same_tile(&tallies[at].kernel, &rows[i].kernel))
            at++;
        if (at == kernels && kernels < KERNELS_MAX)
            tallies[kernels++] = (struct tally){rows[i].kernel, 0, i};
        if (at < kernels)
            tallies[at].rows++;
    }
    qsort(tallies, kernels, sizeof *tallies, most_rows_first);
    params->tile_count = 0;
    for (size_t i = 0; i < kernels && i < WG_TILES_MAX; i++)
        if (i == 0 || tallies[i].rows >= TILE_ROWS_LEAST)
            wg__tile_params_init(&params->tiles[params->tile_count++], &tallies[i].kernel);
    return told;
}

/* WG_TILES_MAX: none of the tiles. */
static size_t tile_index(const struct wg_kernel_params *params, const struct wg_kernel *kernel)
{
    for (size_t t = 0; t < params->tile_count; t++)
        if (is_same_tile(&params->tiles[t].kernel, kernel))
            return t;
    return WG_TILES_MAX;
}

/* The first estimate of the launch floor: times near the least. */
static enum wg_code first_floor(struct wg_kernel_params *params, const struct wg_class_row *rows,
                                size_t count, struct wg_error *err)
{
    double *times = wg__realloc_array(NULL, count, sizeof *times);
    if (times == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu times", count);
    for (size_t i = 0; i < count; i++)
        times[i] = rows[i].time_s;
    params->floor_s = fmax(wg__quantile_inplace(times, count, 0.01), 1e-7);
    wg__free(times);
    return WG_OK;
}

static size_t told_rows(const struct wg_kernel_params *params, const struct wg_class_row *rows,
                        size_t count, struct wg_fit_row *out)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t tile = tile_index(params, &rows[i].kernel);
        if (rows[i].kernel.tile_m > 0 && tile < WG_TILES_MAX)
            out[kept++] =
                (struct wg_fit_row){rows[i].gemm,   rows[i].bytes,          rows[i].time_s,
                                    (unsigned)tile, rows[i].kernel.split_k, rows[i].winograd};
    }
    return kept;
}

/* Gives each row the kernel that the parameters at hand would choose. */
static void choose_rows(const struct wg_kernel_params *params, const struct wg_gpu_spec *gpu,
                        const struct wg_class_row *rows, size_t count, struct wg_fit_row *out)
{
    struct wg_wave_machine machine;
    wg__wave_machine_init(&machine, gpu, rows[0].gemm.dtype, params);
    for (size_t i = 0; i < count; i++) {
        struct wg_wave_work work;
        struct wg_kernel_choice choice;
        wg__wave_work_init(&work, &machine, &rows[i].gemm, rows[i].bytes);
        wg__kernel_choose(params, &machine, &work, rows[i].winograd, &choice);
        out[i] = (struct wg_fit_row){rows[i].gemm,          rows[i].bytes,  rows[i].time_s,
                                     (unsigned)choice.tile, choice.split_k, rows[i].winograd};
    }
}

/* The nearest of the splits that libraries use, in ratio. */
static unsigned usual_split(unsigned split)
{
    static const unsigned usual[] = {1, 2, 3, 4, 6, 8, 10, 12, 16, 18, 24, 27, 32};
    unsigned best = 1;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (fabs(log((double)usual[i] / split)) < fabs(log((double)best / split)))
            best = usual[i];
    return best;
}

static size_t option_index(const struct wg_kernel_params *params, unsigned tile, unsigned split_k)
{
    for (size_t i = 0; i < params->option_count; i++)
        if (params->options[i].tile == tile && params->options[i].split_k == split_k)
            return i;
    return WG_CHOICES_MAX;
}

static void find_options(struct wg_kernel_params *params, const struct wg_fit_row *rows,
                         size_t count)
{
    struct tally tallies[KERNELS_MAX] = {0};
    size_t kinds = 0;
    for (size_t i = 0; i < count; i++) {
        struct wg_kernel kind = {.tile_m = rows[i].tile, .split_k = usual_split(rows[i].split_k)};
        size_t at = 0;
        while (at < kinds && (tallies[at].kernel.tile_m != kind.tile_m ||
                              tallies[at].kernel.split_k != kind.split_k))
            at++;
        if (at == kinds && kinds < KERNELS_MAX)
            tallies[kinds++] = (struct tally){kind, 0, i};
        if (at < kinds)
            tallies[at].rows++;
    }
    qsort(tallies, kinds, sizeof *tallies, most_rows_first);
    params->option_count = 0;
    for (size_t i = 0; i < kinds && i < WG_CHOICES_MAX; i++)
        if (i == 0 || tallies[i].rows >= OPTION_ROWS_LEAST)
            params->options[params->option_count++] =
                (struct wg_kernel_option){tallies[i].kernel.tile_m, tallies[i].kernel.split_k};
}

static enum wg_code learn_choice(struct wg_kernel_params *params, const struct wg_fit_row *rows,
                                 size_t count, struct wg_error *err)
{
    struct wg_tree_sample *samples = wg__realloc_array(NULL, count, sizeof *samples);
    if (samples == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu kernel choices", count);
    find_options(params, rows, count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t option = option_index(params, rows[i].tile, usual_split(rows[i].split_k));
        if (option == WG_CHOICES_MAX)
            continue;
        samples[kept].option = (unsigned)option;
        wg__choice_tree_features(&rows[i].gemm, samples[kept++].features);
    }
    enum wg_code code = wg__choice_tree_grow(params, samples, kept, err);
    wg__free(samples);
    return code;
}

static enum wg_code fit_told(struct wg_kernel_params *params, const struct wg_gpu_spec *gpu,
                             const struct wg_class_row *rows, size_t count,
                             struct wg_fit_row *scratch, struct wg_error *err)
{
    size_t kept = told_rows(params, rows, count, scratch);
    enum wg_code code = wg__params_fit(params, gpu, scratch, kept, 1.0, err);
    if (code == WG_OK)
        code = learn_choice(params, scratch, kept, err);
    return code;
}

/* Small filters multiply less by Winograd's minimal filtering (Lavin and Gray, CVPR 2016):
 * F(2x2,3x3) 2.25 times less, in one kernel; F(4x4,3x3) 4 times less, with passes over memory
 * before and after that only long k pays for. What is left of that after transforms, the fit says.
 */
static void add_winograd(struct wg_kernel_params *params)
{
    for (size_t t = 0; t < params->tile_count; t++)
        if (params->tiles[t].is_winograd)
            return;
    static const struct wg_kernel fused = {
        .tile_m = 128, .tile_n = 32, .threads = 256, .cluster_m = 1, .cluster_n = 1};
    static const struct wg_kernel staged = {
        .tile_m = 512, .tile_n = 64, .threads = 256, .cluster_m = 1, .cluster_n = 1};
    const struct wg_kernel *const kernels[] = {&fused, &staged};
    const double efficiencies[] = {1.5, 2.5};
    for (size_t i = 0; i < 2 && params->tile_count < WG_TILES_MAX; i++) {
        struct wg_tile_params *tile = &params->tiles[params->tile_count++];
        wg__tile_params_init(tile, kernels[i]);
        tile->is_winograd = true;
        tile->start_s = 50e-6;
        tile->efficiency = efficiencies[i];
    }
}

/* Tiles of the nearest relative that is built in. Convolutions take those of linear layers, whether
 * or not some are built in: fitting again gives what fitting gave. */
static enum wg_code borrow_tiles(struct wg_kernel_params *params, const struct wg_gpu_spec *gpu,
                                 enum wg_dtype dtype, enum wg_op_class op, struct wg_error *err)
{
    struct wg_calibration *known = NULL;
    const struct wg_calibrated *entry = NULL;
    bool is_transferred = false;
    bool is_conv = op >= WG_OP_CONV && op <= WG_OP_WGRAD;
    enum wg_op_class like = is_conv ? WG_OP_LINEAR : op;
    enum wg_code code = wg__calibration_built_in(&known, err);
    if (code == WG_OK &&
        !wg__relative_find(known, gpu, dtype, like, NULL, params, &is_transferred, &entry))
        code = wg__fail(err, WG_EDATA, "%s: no relative knows kernels for %s %s", gpu->id,
                        wg__dtype_name(dtype), wg__op_class_name(op));
    wg__calibration_free(known);
    params->node_count = 0;
    params->option_count = 0;
    if (code == WG_OK && is_conv)
        add_winograd(params);
    return code;
}

static enum wg_code fit_untold(struct wg_kernel_params *params, const struct wg_gpu_spec *gpu,
                               enum wg_op_class op, const struct wg_class_row *rows, size_t count,
                               struct wg_fit_row *scratch, struct wg_error *err)
{
    bool is_conv = op >= WG_OP_CONV && op <= WG_OP_WGRAD;
    double floor_s = params->floor_s;
    enum wg_code code = WG_OK;
    if (wg__dtype_has_tensor_tiles(rows[0].gemm.dtype))
        wg__tensor_tiles(params);
    else
        code = borrow_tiles(params, gpu, rows[0].gemm.dtype, op, err);
    if (is_conv) /* a convolution is several launches: its least time is no floor */
        floor_s = params->floor_s;
    for (int round = 0; round < ROUNDS && code == WG_OK; round++) {
        params->floor_s = floor_s;
        choose_rows(params, gpu, rows, count, scratch);
        code = wg__params_fit(params, gpu, scratch, count, is_conv ? CONV_FIRMNESS : 1.0, err);
    }
    return code;
}

enum wg_code wg__class_fit(struct wg_kernel_params *out, const struct wg_gpu_spec *gpu,
                           enum wg_op_class op, const struct wg_class_row *rows, size_t count,
                           struct wg_error *err)
{
    wg__params_init(out);
    enum wg_code code = first_floor(out, rows, count, err);
    if (code != WG_OK)
        return code;
    struct wg_fit_row *scratch = wg__realloc_array(NULL, count, sizeof *scratch);
    if (scratch == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for fitting %zu rows", count);
    if (find_tiles(out, rows, count) * 2 >= count)
        code = fit_told(out, gpu, rows, count, scratch, err);
    else
        code = fit_untold(out, gpu, op, rows, count, scratch, err);
    wg__free(scratch);
    return code;
}
