/* SPDX-License-Identifier: MIT
 *
 * How long a GEMM or a convolution takes on a GPU: whole waves of tiles, memory, split-K, a floor.
 *
 * The idea (docs/internals/wave-model.md): a compute-bound kernel lasts ceil(blocks per SM) times a
 * tile's time; memory bounds it from below; both meet in a p-norm; launching costs a floor. Which
 * kernel the library picks is part of the model: measured neighbours first, then the least
 * predicted time among the tiles of the GPU's generation. Parameters come from a calibration.
 *
 * A time is never without its range and origin. MEASURED: this very shape was in the calibration's
 * points. INTERPOLATED: between measured points of the same (n, k) within one step of waves. MODEL:
 * the fitted formula. TRANSFERRED: the formula with parameters of a relative and this GPU's data
 * sheet; its range is as wide as transfers were wrong.
 *
 * Owns: a model copies what it is opened with.    Threads: predict is pure, any thread.
 */
#ifndef WG_WAVE_KERNEL_MODEL_H
#define WG_WAVE_KERNEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wave/calibration.h"
#include "wave/gemm.h"
#include "wave/gpu.h"
#include "wave/kernel.h"

enum wg_origin {
    WG_ORIGIN_MEASURED,
    WG_ORIGIN_INTERPOLATED,
    WG_ORIGIN_MODEL,
    WG_ORIGIN_TRANSFERRED,
    WG_ORIGIN_COUNT
};
enum wg_bound { WG_BOUND_COMPUTE, WG_BOUND_MEMORY, WG_BOUND_LAUNCH, WG_BOUND_COUNT };

const char *wg__origin_name(enum wg_origin origin); /* "measured", ... */
const char *wg__bound_name(enum wg_bound bound);    /* "compute", ... */

struct wg_prediction {
    double time_s;
    double low_s, high_s; /* holds the true time with 90 % */
    enum wg_origin origin;
    enum wg_bound bound;
    struct wg_kernel kernel; /* the one given, or the one that the library is thought to choose */
    bool is_winograd;        /* it is thought to choose one that does fewer operations */
    uint64_t blocks;
    double waves; /* blocks / (SMs * blocks that run on one at once, as this kernel's rule) */
    double tile_efficiency; /* (0, 1] */
    double wave_efficiency; /* waves / ceil(waves) */
    double tail_s;          /* the part of time_s that a full last wave would not have cost */
    double compute_s, memory_s, launch_s;
};

struct wg_kernel_model;

/* `gpu` and `calibration` are copied. Without parameters for gpu and dtype those of the nearest
 * relative are scaled by data sheet, which shows in `origin`. WG_EUNSUPPORTED: the GPU has no such
 * dtype; WG_ENOMEM. */
enum wg_code wg__kernel_model_new(struct wg_kernel_model **out, const struct wg_gpu_spec *gpu,
                                  const struct wg_calibration *calibration, struct wg_error *err);
void wg__kernel_model_free(struct wg_kernel_model *model);

/* `known`: the kernel, where a profile tells it; NULL: chosen as the library would. No allocation.
 * Times are those of the kernel as the calibration measured it. WG_EINVAL: a size of 0;
 * WG_EUNSUPPORTED: no parameters for the dtype. */
enum wg_code wg__kernel_model_gemm(const struct wg_kernel_model *model, const struct wg_gemm *gemm,
                                   const struct wg_kernel *known, struct wg_prediction *out,
                                   struct wg_error *err);
enum wg_code wg__kernel_model_conv(const struct wg_kernel_model *model, const struct wg_conv *conv,
                                   enum wg_conv_pass pass, const struct wg_kernel *known,
                                   struct wg_prediction *out, struct wg_error *err);
/* A layer without multiplications (element-wise, pooling, norm): bytes over bandwidth, and the
 * floor. */
enum wg_code wg__kernel_model_bytes(const struct wg_kernel_model *model, enum wg_dtype dtype,
                                    double bytes, struct wg_prediction *out, struct wg_error *err);

#endif
