/* SPDX-License-Identifier: MIT
 *
 * The time of one kernel on one GPU: blocks an SM, rounded up, against memory, above a floor.
 *
 *     b       = thread blocks / SMs; B = b rounded up to a multiple of step
 *     block   = 2 * tile_m * tile_n * (ceil(k / split_k) + prologue_k) / (SM's speed * efficiency)
 *     compute = block * ((1 - overlap) * B + overlap * b + fill) * slow(k)
 *               + start, + the tile's own start, + split where k is split
 *     slow(k) = (1 + long_cost * x / (1 + x)) * (1 + straddle * rows of k that lie in two sectors),
 *               x = (k / long_k)^long_power
 *     memory  = (bytes + reread * bytes that the L2 cache lost before their next use) / bandwidth
 *     hot     = compute * (1 + hot_cost * compute / (compute + hot_s))
 *     time    = ((hot^p + memory^p)^(4/p) + floor^4)^(1/4)
 *
 * An SM that holds r blocks at once gives each 1/r of its speed, so for a compute-bound kernel the
 * number that it can hold cancels, and what counts is blocks per SM rounded up. Of 26 FP32 kernels
 * on five GPUs none was fitted better by steps of 2 blocks or more. Where the power limit holds the
 * clocks (T4, P4), idle SMs let the others run faster, and `overlap` comes out near 1: no steps.
 * Measured: docs/internals/wave-model.md.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_WAVE_TIME_H
#define WG_WAVE_WAVE_TIME_H

#include <stdint.h>

#include "wave/gemm.h"
#include "wave/kernel_params.h"

/* A GPU with parameters, in absolute units: made once, used for each kernel tried. */
struct wg_wave_machine {
    double sms;
    double sm_flops_per_s; /* sustained, at tile efficiency 1 */
    double bandwidth_bytes_per_s;
    double floor_s, start_s, split_s;
    double norm;
    double split_traffic;
    double long_k, long_power, long_cost;
    double reread, straddle, l2_bytes;
    double hot_s, hot_cost;
};

/* What is asked of a kernel, with what is the same for all kernels tried. */
struct wg_wave_work {
    struct wg_gemm gemm;
    double bytes; /* the least traffic */
    double slow;  /* slow(k) */
};

struct wg_wave_time {
    double time_s, compute_s, memory_s;
    double met_s;  /* of computing and memory together, before the floor */
    double full_s; /* the time if blocks could be cut to fill the last wave */
    double waves;  /* in units of what the kernel's steps follow */
    uint64_t blocks;
};

/* What is the same for all tiles at one split of k. */
struct wg_wave_split {
    unsigned split_k;
    double k;       /* that a block runs through */
    double start_s; /* more where k is split */
    double memory_s;
};

/* How a kernel's blocks lie on the SMs. */
struct wg_wave_grid {
    double block_s; /* one block's time on an SM */
    double blocks, per_sm;
    double whole_per_sm; /* a multiple of the tile's step */
};

void wg__wave_machine_init(struct wg_wave_machine *machine, const struct wg_gpu_spec *gpu,
                           enum wg_dtype dtype, const struct wg_kernel_params *params);

/* `bytes`: wg__gemm_bytes, or less for a convolution's input. */
void wg__wave_work_init(struct wg_wave_work *work, const struct wg_wave_machine *machine,
                        const struct wg_gemm *gemm, double bytes);

void wg__wave_split_init(struct wg_wave_split *split, const struct wg_wave_machine *machine,
                         const struct wg_wave_work *work, unsigned split_k);
/* Tiles that cover the product, which is thread blocks before k is split. */
double wg__wave_tiles(const struct wg_kernel *kernel, const struct wg_gemm *gemm);

/* ceil of what is not negative, without a call. */
static inline double wg__wave_whole(double value)
{
    if (!(value < 0x1p52))
        return value; /* a whole number */
    const double below = (double)(int64_t)value;
    return below < value ? below + 1.0 : below;
}

/* The next two make a kernel's compute_s; they are here for who compares a hundred kernels. */
static inline void wg__wave_grid_init(struct wg_wave_grid *grid,
                                      const struct wg_wave_machine *machine,
                                      const struct wg_tile_params *tile, double tiles,
                                      const struct wg_wave_split *split, double slow)
{
    const double k = split->k + tile->prologue_k;
    grid->block_s = 2.0 * (double)tile->kernel.tile_m * (double)tile->kernel.tile_n * k * slow /
                    (machine->sm_flops_per_s * tile->efficiency);
    grid->blocks = tiles * (double)split->split_k;
    grid->per_sm = grid->blocks / machine->sms;
    grid->whole_per_sm = wg__wave_whole(grid->per_sm / tile->step) * tile->step;
}

static inline double wg__wave_compute_s(const struct wg_wave_machine *machine,
                                        const struct wg_tile_params *tile,
                                        const struct wg_wave_split *split,
                                        const struct wg_wave_grid *grid)
{
    const double start_s = machine->start_s + tile->start_s + split->start_s;
    const double least = grid->per_sm > 1.0 ? grid->per_sm : 1.0;
    const double per_sm = (1.0 - tile->overlap) * grid->whole_per_sm + tile->overlap * least;
    return grid->block_s * (per_sm + tile->fill) + start_s;
}

/* All but time_s, and full_s of compute only, without roots. */
void wg__wave_parts(const struct wg_wave_machine *machine, const struct wg_tile_params *tile,
                    unsigned split_k, const struct wg_wave_work *work, struct wg_wave_time *out);
/* Completes what wave_parts began: time_s, then full_s, or both. */
void wg__wave_finish_time(const struct wg_wave_machine *machine, struct wg_wave_time *out);
void wg__wave_finish_full(const struct wg_wave_machine *machine, struct wg_wave_time *out);
void wg__wave_finish(const struct wg_wave_machine *machine, struct wg_wave_time *out);

#endif
