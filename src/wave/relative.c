/* SPDX-License-Identifier: MIT
 *
 * The nearest measured relative of a GPU, by a distance over data sheets.
 *
 * Threads: pure, any thread.
 */
#include "wave/relative.h"

#include <math.h>
#include <string.h>

/* Generations in order of age; neighbours are kin. */
static const char *const generations[] = {"kepler", "maxwell", "pascal", "volta",    "turing",
                                          "ampere", "ada",     "hopper", "blackwell"};

/* What true / predicted of a transfer spread by beyond the relative's own range: measured by
 * leaving each GPU out (bench/wave_fp32.py, section Transfer). */
static const double TRANSFER_LOW = 0.6, TRANSFER_HIGH = 1.7;
static const double FULL_SHARE = 0.95;
static const double HOT_LEAST = 0.05; /* less is no sign of a power limit */
static const double HOT_MOST = 2.0;   /* no board does with less than a third of its clocks */

static double generation_of(const char *arch)
{
    enum { COUNT = sizeof generations / sizeof *generations };
    for (int i = 0; i < COUNT; i++)
        if (strcmp(arch, generations[i]) == 0)
            return i;
    return (double)COUNT / 2.0;
}

static bool is_sixteen_bit(enum wg_dtype dtype)
{
    return dtype == WG_DTYPE_FP16 || dtype == WG_DTYPE_BF16;
}

static double dtype_distance(enum wg_op_class op, enum wg_dtype a, enum wg_dtype b)
{
    if (a == b || op == WG_OP_BYTES) /* bytes are bytes */
        return 0.0;
    if (is_sixteen_bit(a) && is_sixteen_bit(b))
        return 0.1;
    return a == WG_DTYPE_FP32 || b == WG_DTYPE_FP32 ? 100.0 : 20.0;
}

/* Linear and batched products run the same kernels. A convolution is computed as an implicit GEMM
 * by kernels like a linear layer's, those of this GPU rather than a relative's convolutions; only
 * where Winograd may serve the relative's are nearer. */
static double op_distance(enum wg_op_class wanted, enum wg_op_class found)
{
    if (wanted == found)
        return 0.0;
    if ((wanted == WG_OP_BYTES) != (found == WG_OP_BYTES))
        return wanted == WG_OP_BYTES ? 40.0 : 1e9;
    if (wanted == WG_OP_CONV && found == WG_OP_LINEAR)
        return 0.05;
    if (wanted <= WG_OP_BMM && found <= WG_OP_BMM)
        return 4.0;
    if (found == WG_OP_CONV)
        return 4.0;
    return found == WG_OP_LINEAR ? 10.0 : 15.0;
}

static double gpu_distance(const struct wg_gpu_spec *gpu, enum wg_dtype dtype,
                           const struct wg_calibrated *entry)
{
    if (strcmp(gpu->id, entry->gpu) == 0)
        return 0.0;
    if (entry->op == WG_OP_BYTES)
        dtype = WG_DTYPE_FP32;
    double intensity = gpu->dense_flops[dtype] / gpu->memory_bandwidth_bytes_per_s;
    double other = entry->dense_flops / entry->memory_bandwidth_bytes_per_s;
    /* One that its own formula describes badly is a bad relative, and one whose clocks the power
     * limit moved tells little of what its kernels reach. From few rows neither is known well. */
    double own = entry->params.chosen.mape;
    double unsure = 3.0 / sqrt(fmax(entry->params.chosen.rows, 1.0));
    return 0.1 + (isfinite(own) ? 10.0 * own + unsure : 2.0) + entry->params.hot_cost +
           0.5 * fabs(generation_of(gpu->arch) - generation_of(entry->arch)) +
           fabs(log(intensity / other)) +
           0.2 * fabs(log(gpu->dense_flops[dtype] / entry->dense_flops));
}

static void widen(struct wg_kernel_error *error)
{
    error->mape = NAN;
    error->low *= TRANSFER_LOW;
    error->high *= TRANSFER_HIGH;
}

/* Under a power limit, what a chip sustains grows with the watts that it may spend on a FLOP.
 * Within a generation a FLOP costs the same energy, so the share scales, up to where clocks end. */
static double transferred_share(const struct wg_gpu_spec *gpu, enum wg_dtype dtype,
                                const struct wg_calibrated *entry)
{
    double share = entry->params.flops_share;
    if (strcmp(gpu->arch, entry->arch) != 0 || share >= FULL_SHARE)
        return share;
    double watts = gpu->tdp_w / gpu->dense_flops[dtype] * (entry->dense_flops / entry->tdp_w);
    return isfinite(watts) ? fmin(fmax(share * watts, share), FULL_SHARE) : share;
}

/* The least energy of a FLOP among the GPUs that were seen to run into their power limits; infinite
 * where none was. `*is_newer`: than all of those is `gpu`. */
static double joules_per_flop(const struct wg_calibration *calibration,
                              const struct wg_gpu_spec *gpu, enum wg_dtype dtype, bool *is_newer)
{
    double least = INFINITY, newest = -1.0;
    for (size_t i = 0; i < wg__calibration_count(calibration); i++) {
        const struct wg_calibrated *entry = wg__calibration_at(calibration, i);
        if (entry->dtype != dtype || entry->op > WG_OP_BMM || entry->params.hot_cost < HOT_LEAST)
            continue;
        least = fmin(least, entry->tdp_w / entry->dense_flops * (1.0 + entry->params.hot_cost));
        newest = fmax(newest, generation_of(entry->arch));
    }
    *is_newer = generation_of(gpu->arch) > newest;
    return least;
}

/* How far the power limit of `gpu` pulls its clocks down, by what a FLOP costs others. What the
 * next process saves is not known: there this is but the most. */
static double transferred_heat(const struct wg_calibration *calibration,
                               const struct wg_gpu_spec *gpu, enum wg_dtype dtype,
                               const struct wg_calibrated *entry)
{
    bool is_newer = false;
    double joules = joules_per_flop(calibration, gpu, dtype, &is_newer);
    double cost = joules * gpu->dense_flops[dtype] / gpu->tdp_w - 1.0;
    if (!isfinite(cost))
        return entry->params.hot_cost;
    double most = is_newer ? fmin(entry->params.hot_cost, HOT_MOST) : HOT_MOST;
    return fmin(fmax(cost, 0.0), most);
}

/* Makes the nearest relative's parameters those of `gpu`. */
static void transfer(const struct wg_calibration *calibration, const struct wg_gpu_spec *gpu,
                     enum wg_dtype dtype, const struct wg_calibrated *entry,
                     struct wg_kernel_params *out)
{
    widen(&out->known);
    widen(&out->chosen);
    if (strcmp(gpu->id, entry->gpu) == 0) /* another class of work on the same GPU */
        return;
    if (entry->params.hot_cost > 0.0)
        out->hot_cost = transferred_heat(calibration, gpu, dtype, entry);
    else
        out->flops_share = transferred_share(gpu, dtype, entry);
}

static bool has_tile(const struct wg_calibrated *entry, const struct wg_kernel *kernel)
{
    for (size_t i = 0; kernel != NULL && i < entry->params.tile_count; i++) {
        const struct wg_kernel *has = &entry->params.tiles[i].kernel;
        if (!entry->params.tiles[i].is_winograd && has->tile_m == kernel->tile_m &&
            has->tile_n == kernel->tile_n)
            return true;
    }
    return kernel == NULL;
}

bool wg__relative_find(const struct wg_calibration *calibration, const struct wg_gpu_spec *gpu,
                       enum wg_dtype dtype, enum wg_op_class op, const struct wg_kernel *kernel,
                       struct wg_kernel_params *out, bool *is_transferred,
                       const struct wg_calibrated **out_entry)
{
    const struct wg_calibrated *nearest = NULL;
    double least = INFINITY;
    for (size_t i = 0; i < wg__calibration_count(calibration); i++) {
        const struct wg_calibrated *entry = wg__calibration_at(calibration, i);
        double distance = dtype_distance(entry->op, dtype, entry->dtype) +
                          op_distance(op, entry->op) + gpu_distance(gpu, dtype, entry);
        if (distance < least && has_tile(entry, kernel)) {
            least = distance;
            nearest = entry;
        }
    }
    if (nearest == NULL)
        return false;
    *out = nearest->params;
    *out_entry = nearest;
    *is_transferred = least > 0.0;
    if (*is_transferred)
        transfer(calibration, gpu, dtype, nearest, out);
    return true;
}
