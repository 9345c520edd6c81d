/* SPDX-License-Identifier: MIT
 *
 * A GEMM kernel's geometry: the tile of C that a thread block computes, and how the grid follows.
 *
 *     thread blocks = batch * ceil(m / tile_m) * ceil(n / tile_n) * split_k
 *
 * All tiles do full work, so m = tile_m + 1 costs two rows of them (tile quantisation); the blocks
 * run in waves over the SMs, and a last wave that is not full costs as much as a full one (wave
 * quantisation). Kernel names tell tiles in several orders: cuBLAS' sgemm_AxB counts A over n (it
 * thinks column-major), xmma and CUTLASS' AxB over m, cudnn_AxB over m = N*P*Q (research with
 * grids of 134,913 profiled kernels).
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_KERNEL_H
#define WG_WAVE_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "wave/gemm.h"

struct wg_kernel {
    unsigned tile_m, tile_n, tile_k; /* 0: not known */
    unsigned threads;                /* of a thread block; 0: not known */
    unsigned slices;                 /* of k, that a block's warps share out; 0: not told */
    unsigned split_k;                /* thread blocks that share one tile's k; at least 1 */
    unsigned cluster_m, cluster_n;   /* thread blocks scheduled together (Hopper on); at least 1 */
    bool is_persistent;              /* one block an SM takes tile after tile */
};

/* Reads tile, threads, cluster and persistence from a kernel's or tactic's name; what the name
 * doesn't tell is left at "not known". false: no tile in it. */
bool wg__kernel_parse(const char *name, struct wg_kernel *out);

/* 0 when the tile is not known. */
uint64_t wg__kernel_blocks(const struct wg_kernel *kernel, const struct wg_gemm *gemm);
/* Work asked for over work done by whole tiles: m*n / (ceil*tile_m * ceil*tile_n), in (0, 1]. */
double wg__kernel_tile_efficiency(const struct wg_kernel *kernel, const struct wg_gemm *gemm);

/* Resources of a thread block, for occupancy. */
struct wg_block_needs {
    unsigned threads;
    unsigned registers_per_thread;
    double shared_memory_bytes;
};

/* Thread blocks that one SM holds at once: the least of what threads, blocks, registers (given out
 * in units of 256 a warp) and shared memory (plus 1 KiB a block from Ampere on) allow (CUDA C++
 * Programming Guide, compute capabilities). 0: not even one fits. */
unsigned wg__occupancy(const struct wg_gpu_spec *gpu, const struct wg_block_needs *needs);

/* The share of the last wave's slots that hold no block, as a share of all slots:
 * 1 - waves / ceil(waves). Nsight Compute's rule says 1 / (1 + whole waves) instead, whatever the
 * partial wave holds. */
double wg__tail_share(double waves);

#endif
