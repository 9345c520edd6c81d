/* SPDX-License-Identifier: MIT
 *
 * A user's own GPU from YAML: what the table (data/wave/gpus.csv) does not have, or has otherwise.
 *
 *     like: a100-sxm4-80gb            the rest is as there; without it all but idle_w,
 *     id: a100-capped                 dense_tflops and the limits of an SM must be given
 *     boost_clock_mhz: 1095
 *
 *     compute_capability: "8.6"       limits of an SM follow, unless they are given too
 *     sms: 46
 *     fp32_lanes_per_sm: 128
 *     boost_clock_mhz: 1725
 *     memory_bandwidth_gb_per_s: 448
 *     memory_gb: 8
 *     l2_mib: 4
 *     tdp_w: 220
 *     idle_w: 14
 *     dense_tflops: {tf32: 20.3, fp16: 40.6, bf16: 40.6, int8: 162}    TOPS where whole numbers
 *
 * FP32 follows from SMs, lanes and clock. With `like`, the other rates follow SMs and clock in
 * proportion unless dense_tflops names them; without it what is not named is not supported.
 *
 * Owns: texts go to the caller's arena.    Threads: the main thread.
 */
#ifndef WG_CLI_GPU_FILE_H
#define WG_CLI_GPU_FILE_H

#include "base/arena.h"
#include "cli/yaml_file.h"
#include "wave/gpu.h"

/* `like` is looked up in `table`. WG_ENOENT, WG_EPERM, WG_EIO: the file cannot be read; WG_EDATA:
 * "FILE:LINE: ..."; WG_ENOMEM. */
enum wg_code wg__gpu_file_read(const char *path, const struct wg_gpu_table *table,
                               struct wg_arena *arena, struct wg_gpu_spec *out,
                               struct wg_error *err);

#endif
