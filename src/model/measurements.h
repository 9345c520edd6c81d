/* SPDX-License-Identifier: MIT
 *
 * Measured times of GEMMs and convolutions, from CSV: what a calibration is fitted to.
 *
 *     GEMM   gpu, op, dtype, B, m, n, k, a time
 *     conv   gpu, op or pass, dtype, N, C, K, R, S, H, W, stride, pad, dilation, groups, a time
 *     both   kernel (its name), grid ("9x32x1") or gx, gy, gz, tile ("128x64") or tile1, tile2
 *            (as the name has them), tile_m, tile_n, tile_k, threads, split_k
 *
 * Columns stand in any order, others are ignored; plain or gzipped. Case tells two columns apart
 * only where a file has both kinds of rows (n and N); there op, or an empty C, tells which a row
 * is. S and W are R and H where they are left out, stride, dilation and groups 1, pad 0. stride_h,
 * stride_w, dilation_h, dilation_w, pad_h, pad_w may differ, and pad_bottom from pad_h, pad_right
 * from pad_w. The time is the first of ms, us, median_ms, time_ms, latency_ms,
 * mean_ms, min_ms (each also _us, and time_s); or fwd_ms, dgrad_ms, wgrad_ms of the passes of one
 * convolution. A time that says nothing ("", nan, N/A) was not measured: its row is counted, not
 * kept.
 *
 * A tile without the kernel's name has no sure order (cuBLAS' sgemm_AxB counts A over n, others
 * over m). The grid decides, and split-K follows from it; a tile that doesn't explain the grid is
 * left unknown (a Winograd kernel's is of another product). Without a grid A is over m.
 *
 * Owns: measurements own their rows and texts.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_MEASUREMENTS_H
#define WG_MODEL_MEASUREMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "wave/calibration.h"

enum { WG_MEASUREMENTS_MAX = 4000000, WG_MEASUREMENT_NAMES_MAX = 1024 };

struct wg_measurements_opts {
    bool has_dtype; /* dtype is that of files that have no such column */
    enum wg_dtype dtype;
    const char *dtype_option; /* how a user gives it, for messages; NULL: not by an option */
    const char *const *where; /* "COLUMN=VALUE": only rows where it is so ("split=test") */
    size_t where_count;
};

struct wg_measurements {
    struct wg_arena arena; /* gpu and op texts; equal ones are one pointer */
    struct wg_measured *rows;
    size_t count;
    size_t unmeasured;    /* rows, or passes, without a time */
    size_t of_other_gpus; /* that wg__measurements_keep has left out */
};

/* Whether a file begins with a header of measurements, even where it lacks a column; false also
 * where it cannot be read, or only once. */
bool wg__measurements_are(const char *path);

/* WG_ENOENT, WG_EPERM, WG_EIO: the file; WG_EDATA: "FILE:LINE: column 'm': ...", a column that is
 * missing, no row at all, too many; WG_EINVAL: `where` is none or names no column; WG_ENOMEM.
 * `opts` may be NULL. */
enum wg_code wg__measurements_read(struct wg_measurements *out, const char *path,
                                   const struct wg_measurements_opts *opts, struct wg_error *err);
/* The same over memory; `name` stands for the file in messages. */
enum wg_code wg__measurements_read_memory(struct wg_measurements *out, const char *name,
                                          const char *bytes, size_t length,
                                          const struct wg_measurements_opts *opts,
                                          struct wg_error *err);

/* Keeps the rows of `gpu`, as the table understands their names, and those that name none. WG_EDATA
 * when none is left: the message lists the GPUs that there are. */
enum wg_code wg__measurements_keep(struct wg_measurements *measurements,
                                   const struct wg_gpu_table *table, const struct wg_gpu_spec *gpu,
                                   struct wg_error *err);
void wg__measurements_fini(struct wg_measurements *measurements);

#endif
