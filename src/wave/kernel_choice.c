/* SPDX-License-Identifier: MIT
 *
 * The kernel with the least predicted time.
 *
 * Most candidates fall out by their larger part alone, before any root is taken.
 *
 * Threads: pure, any thread.
 */
#include "wave/kernel_choice.h"

#include <math.h>

void wg__kernel_choose(const struct wg_kernel_params *params, const struct wg_wave_machine *machine,
                       const struct wg_gemm *gemm, double bytes, struct wg_kernel_choice *out)
{
    double best_s = INFINITY;
    for (size_t t = 0; t < params->tile_count; t++) {
        const struct wg_tile_params *tile = &params->tiles[t];
        for (size_t s = 0; s < params->split_count; s++) {
            unsigned split_k = params->splits[s];
            if (split_k > 1 && gemm->k < 64 * (uint64_t)split_k)
                break; /* libraries leave a block some k to run through */
            struct wg_wave_time time;
            wg__wave_parts(machine, tile, split_k, gemm, bytes, &time);
            if (fmax(time.compute_s, time.memory_s) >= best_s)
                continue;
            wg__wave_finish(machine, &time);
            if (time.time_s >= best_s)
                continue;
            best_s = time.time_s;
            *out = (struct wg_kernel_choice){.tile = t, .split_k = split_k, .time = time};
        }
    }
}
