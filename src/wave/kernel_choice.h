/* SPDX-License-Identifier: MIT
 *
 * Which kernel the library would run: the tile and split of k with the least predicted time.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_KERNEL_CHOICE_H
#define WG_WAVE_KERNEL_CHOICE_H

#include "wave/wave_time.h"

struct wg_kernel_choice {
    size_t tile; /* index into the parameters' tiles */
    unsigned split_k;
    struct wg_wave_time time; /* finished */
};

/* `params` hold at least one tile. `bytes`: the least traffic (wg__gemm_bytes, or less for a
 * convolution's input). */
void wg__kernel_choose(const struct wg_kernel_params *params, const struct wg_wave_machine *machine,
                       const struct wg_gemm *gemm, double bytes, struct wg_kernel_choice *out);

#endif
