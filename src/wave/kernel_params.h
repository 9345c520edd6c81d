/* SPDX-License-Identifier: MIT
 *
 * The numbers of the kernel model: what a calibration fits, once a GPU, dtype and class of work.
 *
 * Speeds are shares of the data sheet, so that parameters carry over to a relative of the GPU (see
 * wave/calibration.h); times are seconds. The formula they stand in is in wave/wave_time.h.
 *
 * Owns: nothing; a struct is copied whole.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_KERNEL_PARAMS_H
#define WG_WAVE_KERNEL_PARAMS_H

#include <stddef.h>

#include "wave/gpu.h"
#include "wave/kernel.h"

/* Libraries choose among other kernels for each of these, and reach other shares of the peak. */
#define WG_OP_CLASSES(X)                                                                           \
    X(LINEAR, "linear")                                                                            \
    X(BMM, "bmm")                                                                                  \
    X(CONV, "conv")                                                                                \
    X(DGRAD, "conv_dgrad")                                                                         \
    X(WGRAD, "conv_wgrad")                                                                         \
    X(BYTES, "bytes")

enum wg_op_class {
#define X(name, text) WG_OP_##name,
    WG_OP_CLASSES(X)
#undef X
        WG_OP_CLASS_COUNT
};

enum { WG_TILES_MAX = 24, WG_SPLITS_MAX = 12 };

/* One kernel that the library has. */
struct wg_tile_params {
    struct wg_kernel kernel; /* split_k is 1; what it may be split into: wg_kernel_params.splits */
    double efficiency;       /* of the sustained speed, with SMs full and k long */
    double resident;         /* thread blocks that one SM runs at once; at least 1 */
    double saturating; /* as many of them reach full speed; fewer take as long; 1 .. resident */
    double prologue_k; /* a block's start and end cost as much as so many of k */
};

/* How wrong the formula was on shapes it was not fitted to. */
struct wg_kernel_error {
    double mape;      /* mean |predicted / true - 1|; NAN: not measured */
    double low, high; /* 90 % of true / predicted lie between them */
    double rows;      /* held-out rows that these come from */
};

struct wg_kernel_params {
    double flops_share;     /* of dense_flops, that the best tile sustains under the power limit */
    double bandwidth_share; /* of memory_bandwidth_bytes_per_s */
    double floor_s;         /* launch */
    double norm;            /* p of how compute and memory meet: 1 adds, large takes the greater */
    double split_traffic;   /* bytes of split-K's partial sums that count: 0 free .. 1 all */
    double reuse; /* share of A and B that is fetched once more a row or column of tiles */
    size_t tile_count;
    struct wg_tile_params tiles[WG_TILES_MAX];
    size_t split_count;
    unsigned splits[WG_SPLITS_MAX]; /* of k that the library tries; the first is 1 */
    struct wg_kernel_error known;   /* kernel told by a profile */
    struct wg_kernel_error chosen;  /* kernel chosen by the model */
};

const char *wg__op_class_name(enum wg_op_class op);

#endif
