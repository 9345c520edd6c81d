/* SPDX-License-Identifier: MIT
 *
 * Fitting one class of work of one GPU and dtype: tiles, numbers, tree and held-out errors.
 *
 * Owns: nothing.    Threads: pure, any thread; the same rows give the same numbers.
 */
#ifndef WG_WAVE_CLASS_FIT_H
#define WG_WAVE_CLASS_FIT_H

#include "wave/forest.h"
#include "wave/kernel_params.h"

struct wg_class_row {
    struct wg_gemm gemm;
    double bytes;
    double time_s;
    struct wg_kernel kernel; /* tile 0: not told */
    bool winograd;           /* may be chosen */
};

/* Parameters from all rows. WG_ENOMEM; WG_EDATA: no relative knows tiles for rows without. */
enum wg_code wg__class_fit(struct wg_kernel_params *out, const struct wg_gpu_spec *gpu,
                           enum wg_op_class op, const struct wg_class_row *rows, size_t count,
                           struct wg_error *err);

/* What the fit leaves over on rows whose kernels are not told (wave/correction.h). `*out`: NULL
 * where there are too few rows, or kernels are told; else the caller's, to be freed. WG_ENOMEM. */
enum wg_code wg__class_correction_fit(struct wg_forest **out, const struct wg_kernel_params *params,
                                      const struct wg_gpu_spec *gpu,
                                      const struct wg_class_row *rows, size_t count,
                                      struct wg_error *err);

/* Fills known and chosen of `params` from folds over (n, k). */
enum wg_code wg__class_errors(struct wg_kernel_params *params, const struct wg_gpu_spec *gpu,
                              enum wg_op_class op, const struct wg_class_row *rows, size_t count,
                              struct wg_error *err);

#endif
