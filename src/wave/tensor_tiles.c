/* SPDX-License-Identifier: MIT
 *
 * The tiles of tensor-core kernels, as a table.
 *
 * Threads: pure, any thread.
 */
#include "wave/tensor_tiles.h"

#include <math.h>

#include "wave/params_fit.h"

static const struct {
    unsigned m, n, threads;
} tiles[] = {
    {256, 128, 256}, {128, 256, 256}, {128, 128, 256}, {256, 64, 256},
    {64, 256, 256},  {128, 64, 128},  {64, 128, 128},  {64, 64, 128},
    {32, 128, 128},  {128, 32, 128},  {64, 32, 64},    {16, 64, 64},
};

static const double AREA_COST = 0.12; /* efficiency lost a halving of the tile, at first */

bool wg__dtype_has_tensor_tiles(enum wg_dtype dtype)
{
    return dtype != WG_DTYPE_FP32;
}

void wg__tensor_tiles(struct wg_kernel_params *params)
{
    params->tile_count = sizeof tiles / sizeof *tiles;
    for (size_t t = 0; t < params->tile_count; t++) {
        struct wg_kernel kernel = {.tile_m = tiles[t].m,
                                   .tile_n = tiles[t].n,
                                   .threads = tiles[t].threads,
                                   .split_k = 1,
                                   .cluster_m = 1,
                                   .cluster_n = 1};
        wg__tile_params_init(&params->tiles[t], &kernel);
        params->tiles[t].efficiency =
            exp(AREA_COST * (log2((double)tiles[t].m * tiles[t].n) - 15.0));
        params->tiles[t].prologue_k = 64.0;
        params->tiles[t].overlap = 0.2;
    }
    params->option_count = 0;
    params->node_count = 0;
}
