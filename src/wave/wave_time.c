/* SPDX-License-Identifier: MIT
 *
 * The time of one kernel on one GPU; see the header for the formula.
 *
 * Threads: pure, any thread.
 */
#include "wave/wave_time.h"

#include <math.h>

void wg__wave_machine_init(struct wg_wave_machine *machine, const struct wg_gpu_spec *gpu,
                           enum wg_dtype dtype, const struct wg_kernel_params *params)
{
    *machine = (struct wg_wave_machine){
        .sms = gpu->sms,
        .sm_flops_per_s = gpu->dense_flops[dtype] * params->flops_share / gpu->sms,
        .bandwidth_bytes_per_s = gpu->memory_bandwidth_bytes_per_s * params->bandwidth_share,
        .floor_s = params->floor_s,
        .norm = params->norm,
        .split_traffic = params->split_traffic,
        .reuse = params->reuse,
        .l2_bytes = gpu->l2_bytes,
    };
}

/* Blocks' worth of time on the busiest SM, which runs `blocks` of them. */
static double block_times(const struct wg_tile_params *tile, double blocks)
{
    double residencies = floor(blocks / tile->resident);
    double rest = blocks - residencies * tile->resident;
    return residencies * tile->resident + (rest > 0.0 ? fmax(rest, tile->saturating) : 0.0);
}

/* What the traffic grows by where tiles read A and B again and L2 does not hold them. */
static double traffic(const struct wg_wave_machine *machine, const struct wg_tile_params *tile,
                      unsigned split_k, const struct wg_gemm *gemm, double bytes)
{
    double element = wg__dtype_bytes(gemm->dtype);
    double output = (double)gemm->batch * (double)gemm->m * (double)gemm->n;
    if (split_k > 1) /* partial sums are written and read in 32 bits */
        bytes += machine->split_traffic * output * 4.0 * (double)split_k;
    double again = output * (double)gemm->k *
                   (1.0 / (double)tile->kernel.tile_m + 1.0 / (double)tile->kernel.tile_n);
    return bytes + machine->reuse * again * element;
}

void wg__wave_parts(const struct wg_wave_machine *machine, const struct wg_tile_params *tile,
                    unsigned split_k, const struct wg_gemm *gemm, double bytes,
                    struct wg_wave_time *out)
{
    const struct wg_kernel *kernel = &tile->kernel;
    uint64_t tiles = gemm->batch * ((gemm->m + kernel->tile_m - 1) / kernel->tile_m) *
                     ((gemm->n + kernel->tile_n - 1) / kernel->tile_n);
    double k = (double)((gemm->k + split_k - 1) / split_k) + tile->prologue_k;
    double block_s =
        2.0 * kernel->tile_m * kernel->tile_n * k / (machine->sm_flops_per_s * tile->efficiency);
    out->blocks = tiles * split_k;
    double per_sm = (double)out->blocks / machine->sms;
    double step = tile->saturating > 1.0 ? tile->resident : 1.0;
    out->waves = per_sm / step;
    out->compute_s = block_s * block_times(tile, ceil(per_sm));
    out->memory_s = traffic(machine, tile, split_k, gemm, bytes) / machine->bandwidth_bytes_per_s;
    out->full_s = block_s * fmax(per_sm, 1.0); /* compute only, until finish */
}

static double meet(const struct wg_wave_machine *machine, double compute_s, double memory_s)
{
    double larger = fmax(compute_s, memory_s);
    double smaller = fmin(compute_s, memory_s);
    double both = larger * pow(1.0 + pow(smaller / larger, machine->norm), 1.0 / machine->norm);
    double ratio = machine->floor_s / both;
    return both * sqrt(sqrt(1.0 + ratio * ratio * ratio * ratio));
}

void wg__wave_finish(const struct wg_wave_machine *machine, struct wg_wave_time *out)
{
    out->time_s = meet(machine, out->compute_s, out->memory_s);
    out->full_s = fmin(out->time_s, meet(machine, out->full_s, out->memory_s));
}
