/* SPDX-License-Identifier: MIT
 *
 * Fits the numbers of the kernel model to times whose kernels are known.
 *
 * Least squares of log(predicted / measured) by Levenberg and Marquardt, with a soft L1 loss, so
 * that rows of a throttled or cold GPU do not decide, and a weak prior on each number, so that what
 * the data do not tell keeps a usual value. The formula is wave_time's own; derivatives are
 * differences, and a tile's numbers are moved over that tile's rows only.
 *
 * Owns: nothing.    Threads: pure, any thread; the same rows give the same numbers.
 */
#ifndef WG_WAVE_PARAMS_FIT_H
#define WG_WAVE_PARAMS_FIT_H

#include "wave/wave_time.h"

struct wg_fit_row {
    struct wg_gemm gemm;
    double bytes;
    double time_s;
    unsigned tile; /* index into the parameters' tiles */
    unsigned split_k;
    bool winograd; /* may be chosen for it */
};

/* `params` hold tiles (their kernels) and first values of the rest; both are refined. At most some
 * thousand rows are used, evenly taken. `firmness` multiplies the weight of the first values, but
 * for tiles of Winograd's: 1 where the rows tell their kernels. WG_ENOMEM. */
enum wg_code wg__params_fit(struct wg_kernel_params *params, const struct wg_gpu_spec *gpu,
                            const struct wg_fit_row *rows, size_t count, double firmness,
                            struct wg_error *err);

/* The values that a fit starts from, and that hold where there are no data. */
void wg__params_init(struct wg_kernel_params *params);
void wg__tile_params_init(struct wg_tile_params *tile, const struct wg_kernel *kernel);

#endif
