/* SPDX-License-Identifier: MIT
 *
 * Which column of a CSV of measurements means what; see measurements.h.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_MODEL_MEASUREMENT_COLUMNS_H
#define WG_MODEL_MEASUREMENT_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/csv.h"
#include "base/error.h"

/*    key      names, the first that the file has is it */
#define WG_MEASUREMENT_KEYS(X)                                                                     \
    X(GPU, "gpu", "gpu_name", "device")                                                            \
    X(OP, "op", NULL, NULL)                                                                        \
    X(PASS, "pass", NULL, NULL)                                                                    \
    X(DTYPE, "dtype", "precision", NULL)                                                           \
    X(KERNEL, "kernel", "kernel_name", NULL)                                                       \
    X(GRID, "grid", NULL, NULL)                                                                    \
    X(GX, "gx", "grid_x", NULL)                                                                    \
    X(GY, "gy", "grid_y", NULL)                                                                    \
    X(GZ, "gz", "grid_z", NULL)                                                                    \
    X(TILE, "tile", NULL, NULL)                                                                    \
    X(TILE1, "tile1", NULL, NULL)                                                                  \
    X(TILE2, "tile2", NULL, NULL)                                                                  \
    X(TILE_M, "tile_m", NULL, NULL)                                                                \
    X(TILE_N, "tile_n", NULL, NULL)                                                                \
    X(TILE_K, "tile_k", NULL, NULL)                                                                \
    X(THREADS, "threads", NULL, NULL)                                                              \
    X(SPLIT_K, "split_k", "splitk", NULL)                                                          \
    X(STRIDE, "stride", NULL, NULL)                                                                \
    X(STRIDE_H, "stride_h", NULL, NULL)                                                            \
    X(STRIDE_W, "stride_w", NULL, NULL)                                                            \
    X(PAD, "pad", "padding", NULL)                                                                 \
    X(PAD_H, "pad_h", "pad_top", NULL)                                                             \
    X(PAD_W, "pad_w", "pad_left", NULL)                                                            \
    X(PAD_BOTTOM, "pad_bottom", NULL, NULL)                                                        \
    X(PAD_RIGHT, "pad_right", NULL, NULL)                                                          \
    X(DILATION, "dilation", NULL, NULL)                                                            \
    X(DILATION_H, "dilation_h", NULL, NULL)                                                        \
    X(DILATION_W, "dilation_w", NULL, NULL)                                                        \
    X(GROUPS, "groups", NULL, NULL)                                                                \
    X(BIAS, "bias", "has_bias", NULL)

/* Sizes: n and N are two columns where a file has rows of both kinds. */
#define WG_MEASUREMENT_SIZES(X)                                                                    \
    X(GEMM_B, "B", "batch")                                                                        \
    X(GEMM_M, "m", NULL)                                                                           \
    X(GEMM_N, "n", NULL)                                                                           \
    X(GEMM_K, "k", NULL)                                                                           \
    X(CONV_N, "N", NULL)                                                                           \
    X(CONV_C, "C", NULL)                                                                           \
    X(CONV_K, "K", NULL)                                                                           \
    X(CONV_R, "R", NULL)                                                                           \
    X(CONV_S, "S", NULL)                                                                           \
    X(CONV_H, "H", NULL)                                                                           \
    X(CONV_W, "W", NULL)

enum wg_measurement_key {
#define X(key, ...) WG_MEASUREMENT_##key,
    WG_MEASUREMENT_KEYS(X) WG_MEASUREMENT_SIZES(X)
#undef X
        WG_MEASUREMENT_KEY_COUNT
};

struct wg_measurement_time {
    size_t column;
    double unit_s;
    int pass; /* enum wg_conv_pass; -1: as the row says */
};

enum { WG_MEASUREMENT_TIMES_MAX = 3, WG_MEASUREMENT_NO_COLUMN = -1 };

struct wg_measurement_columns {
    int at[WG_MEASUREMENT_KEY_COUNT]; /* WG_MEASUREMENT_NO_COLUMN: none */
    bool has_gemms, has_convs;
    struct wg_measurement_time times[WG_MEASUREMENT_TIMES_MAX];
    size_t time_count;
};

/* WG_EDATA: a column is missing; the message says which are expected. */
enum wg_code wg__measurement_columns_find(struct wg_measurement_columns *out,
                                          const struct wg_csv *csv, const char *name,
                                          struct wg_error *err);

#endif
