/* SPDX-License-Identifier: MIT
 *
 * The time of one kernel on one GPU: blocks an SM, rounded up, against memory, above a floor.
 *
 *     b         = thread blocks / SMs, B = ceil(b): what the busiest SM runs
 *     block     = 2 * tile_m * tile_n * (ceil(k / split_k) + prologue_k) / (SM's speed *
 * efficiency) compute   = block * (whole residencies in B + max(rest, saturating) where there is a
 * rest) memory    = bytes / bandwidth time      = ((compute^p + memory^p)^(4/p) + floor^4)^(1/4)
 *
 * An SM that holds r blocks at once gives each 1/r of its speed, so for a compute-bound kernel the
 * number that it can hold cancels, and what counts is blocks per SM rounded up; a kernel that needs
 * several blocks to hide latency (`saturating` > 1) steps at multiples of what an SM holds instead.
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
    double floor_s;
    double norm;
    double split_traffic;
    double reuse;
    double l2_bytes;
};

struct wg_wave_time {
    double time_s, compute_s, memory_s;
    double full_s; /* the time if blocks could be cut to fill the last wave */
    double waves;  /* in units of what the kernel's steps follow */
    uint64_t blocks;
};

void wg__wave_machine_init(struct wg_wave_machine *machine, const struct wg_gpu_spec *gpu,
                           enum wg_dtype dtype, const struct wg_kernel_params *params);

/* Only compute and memory, without roots: for comparing kernels. `bytes`: the least traffic. */
void wg__wave_parts(const struct wg_wave_machine *machine, const struct wg_tile_params *tile,
                    unsigned split_k, const struct wg_gemm *gemm, double bytes,
                    struct wg_wave_time *out);
/* Completes what wave_parts began: time_s and full_s. */
void wg__wave_finish(const struct wg_wave_machine *machine, struct wg_wave_time *out);

#endif
