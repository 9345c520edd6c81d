/* SPDX-License-Identifier: MIT
 *
 * The tiles of tensor-core kernels, where no profile tells which a library has.
 *
 * By NVIDIA's guide ("Matrix Multiplication Background", 2023) cuBLAS has 256x128, 128x256,
 * 128x128, 256x64, 64x256, 128x64, 64x128 and 64x64; narrower ones are for few rows.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_TENSOR_TILES_H
#define WG_WAVE_TENSOR_TILES_H

#include "wave/kernel_params.h"

/* Whether the dtype's products run on tensor cores. */
bool wg__dtype_has_tensor_tiles(enum wg_dtype dtype);
/* Sets the tiles and splits of `params`, with the usual numbers. */
void wg__tensor_tiles(struct wg_kernel_params *params);

#endif
