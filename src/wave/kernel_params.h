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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wave/gpu.h"
#include "wave/kernel.h"

/* Libraries choose among other kernels for each of these, and reach other shares of the peak. */
#define WG_OP_CLASSES(X)                                                                           \
    X(LINEAR, "linear")                                                                            \
    X(BMM, "bmm")                                                                                  \
    X(CONV, "conv")        /* forward */                                                           \
    X(CONV3X3, "conv_3x3") /* forward, where Winograd may serve */                                 \
    X(DGRAD, "conv_dgrad")                                                                         \
    X(WGRAD, "conv_wgrad")                                                                         \
    X(BYTES, "bytes")

enum wg_op_class {
#define X(name, text) WG_OP_##name,
    WG_OP_CLASSES(X)
#undef X
        WG_OP_CLASS_COUNT
};

enum { WG_TILES_MAX = 24, WG_SPLITS_MAX = 12, WG_CHOICES_MAX = 48, WG_TREE_NODES_MAX = 512 };

/* One kernel that the library has. */
struct wg_tile_params {
    struct wg_kernel kernel; /* split_k is 1: what k may be split into, choices or splits say */
    double efficiency;       /* of the sustained speed, with SMs full and k long */
    double fill;       /* a launch costs so many blocks more: pipelines filling and draining */
    double prologue_k; /* a block's start and end cost as much as so many of k */
    double overlap;    /* 0: whole waves; 1: what idle SMs leave, power or memory, speeds others */
    double step;       /* blocks per SM are rounded up to a multiple of it; 1 but for clusters */
    double start_s;    /* more than any kernel's start: stages that run before and after */
    bool is_winograd;  /* for 3x3 convolutions of stride 1 only */
};

/* A tile and a split of k, as a library was seen to choose. */
struct wg_kernel_option {
    unsigned tile; /* index into tiles */
    unsigned split_k;
};

/* Which options the library takes where: a binary tree over the sizes (wave/choice_tree.h). An
 * inner node sends sizes below `threshold` to `below`, others to `below + 1`. */
struct wg_tree_node {
    double threshold;
    uint64_t options; /* leaf: bit i: option i was taken here, often enough; 0: an inner node */
    unsigned feature;
    unsigned below;
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
    double floor_s;         /* the host's part of a launch, that runs beside a longer kernel */
    double start_s;         /* the GPU's part, before a kernel's first block multiplies */
    double split_s;         /* more where split-K needs a second kernel to sum up */
    double norm;            /* p of how compute and memory meet: 1 adds, large takes the greater */
    double split_traffic;   /* bytes of split-K's partial sums that count: 0 free .. 1 all */
    double long_k;          /* walks along a k much longer than this miss the TLB and DRAM pages, */
    double long_power;      /* how soon, */
    double long_cost;       /* and cost up to this share of the time more */
    double reread;          /* what a byte costs that the L2 cache lost before its next use: 0 .. */
    double straddle;        /* what rows of k cost more whose ends miss the memory's sectors */
    double l2_share;        /* of the L2 cache, that keeps what later blocks read again */
    double hot_s;           /* from about this long on, the power limit slows a kernel, */
    double hot_cost;        /* by up to this share */
    size_t tile_count;
    struct wg_tile_params tiles[WG_TILES_MAX];
    size_t split_count;
    unsigned splits[WG_SPLITS_MAX]; /* of k that are tried without a tree; the first is 1 */
    size_t option_count;
    struct wg_kernel_option options[WG_CHOICES_MAX];
    size_t node_count; /* 0: no tree: any tile and split may be chosen */
    struct wg_tree_node nodes[WG_TREE_NODES_MAX];
    struct wg_kernel_error known;  /* kernel told by a profile */
    struct wg_kernel_error chosen; /* kernel chosen by the model */
};

const char *wg__op_class_name(enum wg_op_class op);

#endif
