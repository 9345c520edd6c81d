/* SPDX-License-Identifier: MIT
 *
 * The time of one kernel on one GPU: blocks an SM, rounded up, against memory, above a floor.
 *
 *     b       = thread blocks / SMs; B = b rounded up to a multiple of step
 *     block   = 2 * tile_m * tile_n * (ceil(k / split_k) + prologue_k) / (SM's speed * efficiency)
 *     compute = block * ((1 - overlap) * B + overlap * b + fill) * slow(k)
 *               + start, + the tile's own start, + split where k is split
 *     slow(k) = 1 + long_cost * x / (1 + x),  x = (k / long_k)^long_power
 *     memory  = bytes / bandwidth
 *     time    = ((compute^p + memory^p)^(4/p) + floor^4)^(1/4)
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
};

/* What is asked of a kernel, with what is the same for all kernels tried. */
struct wg_wave_work {
    struct wg_gemm gemm;
    double bytes; /* the least traffic */
    double slow;  /* slow(k) */
};

struct wg_wave_time {
    double time_s, compute_s, memory_s;
    double full_s; /* the time if blocks could be cut to fill the last wave */
    double waves;  /* in units of what the kernel's steps follow */
    uint64_t blocks;
};

void wg__wave_machine_init(struct wg_wave_machine *machine, const struct wg_gpu_spec *gpu,
                           enum wg_dtype dtype, const struct wg_kernel_params *params);

/* `bytes`: wg__gemm_bytes, or less for a convolution's input. */
void wg__wave_work_init(struct wg_wave_work *work, const struct wg_wave_machine *machine,
                        const struct wg_gemm *gemm, double bytes);

/* All but time_s, and full_s of compute only, without roots: enough for comparing kernels. */
void wg__wave_parts(const struct wg_wave_machine *machine, const struct wg_tile_params *tile,
                    unsigned split_k, const struct wg_wave_work *work, struct wg_wave_time *out);
/* Completes what wave_parts began. */
void wg__wave_finish(const struct wg_wave_machine *machine, struct wg_wave_time *out);

#endif
