/* SPDX-License-Identifier: MIT
 *
 * Grids, tiles and occupancy of GEMM kernels: see kernel.h.
 */
#include "wave/kernel.h"

#include <math.h>

static uint64_t divide_up(uint64_t value, uint64_t by)
{
    return value / by + (value % by != 0);
}

uint64_t wg__kernel_blocks(const struct wg_kernel *kernel, const struct wg_gemm *gemm)
{
    if (kernel->tile_m == 0 || kernel->tile_n == 0)
        return 0;
    uint64_t blocks = divide_up(gemm->m, kernel->tile_m);
    const uint64_t factors[] = {divide_up(gemm->n, kernel->tile_n), gemm->batch,
                                kernel->split_k ? kernel->split_k : 1};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
        if (__builtin_mul_overflow(blocks, factors[i], &blocks))
            return UINT64_MAX; /* beyond any grid: as many as can be told */
    return blocks;
}

double wg__kernel_tile_efficiency(const struct wg_kernel *kernel, const struct wg_gemm *gemm)
{
    if (kernel->tile_m == 0 || kernel->tile_n == 0 || gemm->m == 0 || gemm->n == 0)
        return 1;
    const double rows = (double)divide_up(gemm->m, kernel->tile_m) * kernel->tile_m;
    const double columns = (double)divide_up(gemm->n, kernel->tile_n) * kernel->tile_n;
    return (double)gemm->m / rows * ((double)gemm->n / columns);
}

/* Registers are given out to whole warps, 256 at a time. */
static unsigned registers_of_block(const struct wg_block_needs *needs, unsigned warps)
{
    const unsigned of_warp = (needs->registers_per_thread * 32 + 255) / 256 * 256;
    return warps * of_warp;
}

unsigned wg__occupancy(const struct wg_gpu_spec *gpu, const struct wg_block_needs *needs)
{
    if (needs->threads == 0)
        return 0;
    const unsigned warps = needs->threads / 32 + (needs->threads % 32 != 0);
    unsigned blocks = gpu->max_threads_per_sm / 32 / warps;
    if (blocks > gpu->max_blocks_per_sm)
        blocks = gpu->max_blocks_per_sm;
    const unsigned registers = registers_of_block(needs, warps);
    if (registers > 0 && blocks > gpu->registers_per_sm / registers)
        blocks = gpu->registers_per_sm / registers;
    /* The system keeps 1 KiB of each block's shared memory from compute capability 8.0 on. */
    if (needs->shared_memory_bytes > gpu->max_shared_memory_per_block_bytes)
        return 0;
    const double bytes = needs->shared_memory_bytes + (gpu->cc_major >= 8 ? 1024 : 0);
    if (bytes > 0 && blocks > gpu->shared_memory_per_sm_bytes / bytes)
        blocks = (unsigned)(gpu->shared_memory_per_sm_bytes / bytes);
    return blocks;
}

double wg__tail_share(double waves)
{
    return waves > 0 ? 1 - waves / ceil(waves) : 0;
}
