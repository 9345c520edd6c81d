/* SPDX-License-Identifier: MIT
 *
 * A network as the planner sees it: layers that cost time, and widths that several of them share.
 *
 * A width is a number of channels that can be chosen once for all tensors that are tied to it: a
 * residual addition ties its branches, a depth-wise convolution its input to its output. A layer's
 * input or output is a sum of parts, each `multiple` channels for each channel of a width (a
 * concatenation has several parts; a flattened 7x7 map has multiple 49), plus a constant.
 *
 *     conv1 -> [w0] -> conv2 -> [w1] --+--> add -> [w1] -> concat(w1, w0) -> fc (in: 1*w1 + 1*w0)
 *                       skip ----------+
 *
 * Built by src/model from a graph; pure data here.
 *
 * Owns: a network owns all in its arena.    Threads: one thread at a time; reading: any.
 */
#ifndef WG_WAVE_NETWORK_H
#define WG_WAVE_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "wave/gemm.h"
#include "wave/kernel.h"

enum wg_layer_kind {
    WG_LAYER_CONV,
    WG_LAYER_GEMM,  /* linear, attention: gemm.batch products */
    WG_LAYER_BYTES, /* moves `bytes` and multiplies little */
    WG_LAYER_KIND_COUNT
};

struct wg_channel_part {
    uint32_t width; /* index into the network's widths */
    uint32_t multiple;
};

struct wg_channels {
    const struct wg_channel_part *parts;
    size_t part_count;
    uint64_t constant; /* channels that no width moves */
};

struct wg_layer {
    const char *name; /* of the node, unique within the network */
    const char *op;   /* "Conv", "Gemm", "MatMul", "Add", ... */
    enum wg_layer_kind kind;
    struct wg_conv conv;        /* CONV: dimensions at the present widths */
    struct wg_gemm gemm;        /* GEMM: the same; BYTES: dtype only, whose bandwidth class it is */
    double bytes;               /* BYTES: read and written, at the present widths */
    uint64_t bytes_channels;    /* BYTES: channels of `out` at the present widths, which bytes and
                                   parameters follow; 0: no width moves them */
    struct wg_channels in, out; /* CONV: c and filters; GEMM: k and n; BYTES: out only */
    uint64_t parameters;        /* at the present widths */
    const char *kernel_name;    /* from a profile; NULL */
    struct wg_kernel kernel;    /* tile 0: not known */
    uint64_t blocks;            /* of a profiled grid; 0: not known */
    double measured_s;          /* 0: not measured */
};

struct wg_width {
    const char *name; /* of the first tensor that has it */
    uint32_t channels;
    uint32_t alignment; /* it must stay a multiple of this (groups, heads); at least 1 */
    bool is_fixed;      /* the network's input, output, or tied to something that cannot change */
};

struct wg_network {
    struct wg_arena arena;
    const char *name;
    struct wg_layer *layers; /* in execution order */
    size_t layer_count;
    struct wg_width *widths;
    size_t width_count;
    size_t left_out_count; /* nodes that are in no layer, though they cost time: see lower.h */
};

/* Frees all; accepts NULL members. */
void wg__network_fini(struct wg_network *network);

/* `layer` with its dimensions, bytes and parameters at other widths: `channels[w]` for each width
 * of the network. A side without parts stays as it is. A grouped convolution keeps its channels a
 * group, a depth-wise one its one. The kernel stays (the library may choose another one); the
 * profiled blocks and the measured time hold for the present widths only and go. WG_EINVAL: groups
 * do not divide, no channel is left, or a product beyond 2^63. */
enum wg_code wg__layer_at(const struct wg_layer *layer, const uint32_t *channels,
                          struct wg_layer *out, struct wg_error *err);

#endif
