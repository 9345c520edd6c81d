/* SPDX-License-Identifier: MIT
 *
 * The time of one kernel on one GPU; see the header for the formula.
 *
 * Threads: pure, any thread.
 */
#include "wave/wave_time.h"

#include <math.h>

/* Elements of C that the blocks on one SM compute at once, about: two blocks of 128x128. */
static const double RESIDENT = 32768.0;

void wg__wave_machine_init(struct wg_wave_machine *machine, const struct wg_gpu_spec *gpu,
                           enum wg_dtype dtype, const struct wg_kernel_params *params)
{
    *machine = (struct wg_wave_machine){
        .sms = gpu->sms,
        .sm_flops_per_s = gpu->dense_flops[dtype] * params->flops_share / gpu->sms,
        .bandwidth_bytes_per_s = gpu->memory_bandwidth_bytes_per_s * params->bandwidth_share,
        .floor_s = params->floor_s,
        .start_s = params->start_s,
        .split_s = params->split_s,
        .norm = params->norm,
        .split_traffic = params->split_traffic,
        .long_k = params->long_k,
        .long_power = params->long_power,
        .long_cost = params->long_cost,
        .reread = gpu->l2_bytes > 0.0 ? params->reread : 0.0,
        .straddle = params->straddle,
        .l2_bytes = gpu->l2_bytes * params->l2_share,
        .hot_s = params->hot_s,
        .hot_cost = params->hot_cost,
    };
}

/* Memory is read in sectors of 32 bytes. Rows of k elements that are no multiple of them begin
 * within one; the share of rows whose pieces lie in two. Batched products read but one of their
 * operands along k, and show nothing of it. */
static double straddling(const struct wg_gemm *gemm)
{
    if (gemm->batch > 1)
        return 0.0;
    uint64_t sector = 32 / (uint64_t)wg__dtype_bytes(gemm->dtype);
    uint64_t common = gemm->k & (~gemm->k + 1); /* the largest power of two in k */
    return common >= sector ? 0.0 : 1.0 - (double)common / (double)sector;
}

void wg__wave_work_init(struct wg_wave_work *work, const struct wg_wave_machine *machine,
                        const struct wg_gemm *gemm, double bytes)
{
    work->gemm = *gemm;
    work->bytes = bytes;
    work->slow = 1.0;
    if (machine->long_cost > 0.0) {
        double x = pow((double)gemm->k / machine->long_k, machine->long_power);
        work->slow += machine->long_cost * (1.0 - 1.0 / (1.0 + x));
    }
    work->slow *= 1.0 + machine->straddle * straddling(gemm);
}

/* The share of `bytes` that the L2 cache does not keep until they are read again. */
static double lost(const struct wg_wave_machine *machine, double bytes)
{
    double x = bytes / machine->l2_bytes;
    return x * x / (1.0 + x * x);
}

/* Bytes that are read again from memory because the L2 cache lost them. Blocks are dealt out along
 * n first. Those that run at once share what they read; columns are read again by each next band
 * of rows, a band's rows by each next batch of columns. */
static double reread_bytes(const struct wg_wave_machine *machine, const struct wg_kernel *kernel,
                           const struct wg_wave_work *work)
{
    const struct wg_gemm *gemm = &work->gemm;
    double rows = (double)wg__tiles_over(gemm->m, kernel->tile_m),
           columns = (double)wg__tiles_over(gemm->n, kernel->tile_n);
    double resident =
        machine->sms * fmax(RESIDENT / ((double)kernel->tile_m * kernel->tile_n), 1.0);
    if (rows * columns <= resident)
        return 0.0;
    double size = wg__dtype_bytes(gemm->dtype), m = (double)gemm->m, k = (double)gemm->k;
    double column_bytes = (double)gemm->n * k * size;
    double output_bytes = m * (double)gemm->n * size;
    double row_bytes = fmax(work->bytes / (double)gemm->batch - column_bytes - output_bytes, 0.0);
    double bands = rows / fmin(rows, ceil(resident / columns));
    double batches = columns / fmin(columns, resident);
    return (double)gemm->batch * (column_bytes * (bands - 1.0) * lost(machine, column_bytes) +
                                  row_bytes * (batches - 1.0) * lost(machine, row_bytes / bands));
}

void wg__wave_split_init(struct wg_wave_split *split, const struct wg_wave_machine *machine,
                         const struct wg_wave_work *work, unsigned split_k)
{
    const struct wg_gemm *gemm = &work->gemm;
    double bytes = work->bytes;
    if (split_k > 1) /* partial sums are written and read in 32 bits */
        bytes += machine->split_traffic * 4.0 * (double)split_k * (double)gemm->batch *
                 (double)gemm->m * (double)gemm->n;
    *split = (struct wg_wave_split){
        .split_k = split_k,
        .k = (double)wg__tiles_over(gemm->k, split_k),
        .start_s = split_k > 1 ? machine->split_s : 0.0,
        .memory_s = bytes / machine->bandwidth_bytes_per_s,
    };
}

double wg__wave_tiles(const struct wg_kernel *kernel, const struct wg_gemm *gemm)
{
    return (double)gemm->batch * (double)wg__tiles_over(gemm->m, kernel->tile_m) *
           (double)wg__tiles_over(gemm->n, kernel->tile_n);
}

void wg__wave_parts(const struct wg_wave_machine *machine, const struct wg_tile_params *tile,
                    unsigned split_k, const struct wg_wave_work *work, struct wg_wave_time *out)
{
    struct wg_wave_split split;
    struct wg_wave_grid grid;
    wg__wave_split_init(&split, machine, work, split_k);
    wg__wave_grid_init(&grid, machine, tile, wg__wave_tiles(&tile->kernel, &work->gemm), &split,
                       work->slow);
    out->blocks = grid.blocks < 0x1p63 ? (uint64_t)grid.blocks : UINT64_MAX;
    out->waves = grid.per_sm / tile->step;
    out->compute_s = wg__wave_compute_s(machine, tile, &split, &grid);
    out->memory_s = split.memory_s;
    if (machine->reread > 0.0)
        out->memory_s += machine->reread * reread_bytes(machine, &tile->kernel, work) /
                         machine->bandwidth_bytes_per_s;
    out->full_s = grid.block_s * (grid.per_sm + tile->fill) +
                  (machine->start_s + tile->start_s + split.start_s);
}

/* A kernel that lasts pulls the clocks down to what the power limit sustains. */
static double heated(const struct wg_wave_machine *machine, double compute_s)
{
    if (!(machine->hot_cost > 0.0))
        return compute_s;
    return compute_s *
           (1.0 + machine->hot_cost * (1.0 - machine->hot_s / (compute_s + machine->hot_s)));
}

/* No less than the larger one, and rising with either. */
static double meet(const struct wg_wave_machine *machine, double compute_s, double memory_s)
{
    double larger = fmax(compute_s, memory_s);
    double share = fmin(compute_s, memory_s) / larger;
    double both = larger;
    if (share > 1e-3) /* less does not show */
        both *= pow(1.0 + pow(share, machine->norm), 1.0 / machine->norm);
    return both;
}

static double above_floor(const struct wg_wave_machine *machine, double met_s)
{
    double high = fmax(met_s, machine->floor_s);
    double low = fmin(met_s, machine->floor_s) / high;
    return high * sqrt(sqrt(1.0 + low * low * low * low));
}

void wg__wave_finish_time(const struct wg_wave_machine *machine, struct wg_wave_time *out)
{
    out->met_s = meet(machine, heated(machine, out->compute_s), out->memory_s);
    out->time_s = above_floor(machine, out->met_s);
}

void wg__wave_finish_full(const struct wg_wave_machine *machine, struct wg_wave_time *out)
{
    double met_s = meet(machine, heated(machine, out->full_s), out->memory_s);
    out->full_s = fmin(out->time_s, above_floor(machine, met_s));
}

void wg__wave_finish(const struct wg_wave_machine *machine, struct wg_wave_time *out)
{
    wg__wave_finish_time(machine, out);
    wg__wave_finish_full(machine, out);
}
