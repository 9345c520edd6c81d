/* SPDX-License-Identifier: MIT
 *
 * One line of data/wave/gpus.csv, read and checked by arithmetic.
 *
 * Data sheets round, copy and mix clocks, so a row states its numbers twice where it can: bus width
 * times rate beside the bandwidth, and what an SM does in a clock beside the sheet's TFLOPS. A row
 * that contradicts itself by more than 2.5 % is refused. What the program uses is the product, not
 * the rounded figure of the sheet. Refused too: an L2 that does not fit the memory bus, an idle
 * power at or above the limit, and, where the table has columns of sources, a number without one.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_WAVE_GPU_ROW_H
#define WG_WAVE_GPU_ROW_H

#include "base/arena.h"
#include "base/csv.h"
#include "wave/gpu.h"

/* What the SMs of a compute capability hold. */
struct wg_capability {
    unsigned cc_major, cc_minor;
    unsigned max_threads_per_sm, max_blocks_per_sm, registers_per_sm;
    double shared_memory_per_sm_bytes, max_shared_memory_per_block_bytes;
};

/* The present record of a table of GPUs, without what the compute capability tells. Texts, and the
 * row's aliases, separated by ';', go to `arena`. */
enum wg_code wg__gpu_row_read(const struct wg_csv *csv, struct wg_arena *arena,
                              struct wg_gpu_spec *out, const char **aliases_out,
                              struct wg_error *err);

/* The present record of data/wave/compute_capabilities.csv. */
enum wg_code wg__capability_row_read(const struct wg_csv *csv, struct wg_capability *out,
                                     struct wg_error *err);

#endif
