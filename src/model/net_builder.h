/* SPDX-License-Identifier: MIT
 *
 * Draws a network layer by layer: what the built-in networks are written with.
 *
 * Tensors are indices; a layer takes one and gives the one it makes. The first failure sticks: all
 * that comes after gives -1 and does nothing, and wg__net_finish returns it. Names are those of
 * the torch modules ("layer1.0.conv1", its weight "layer1.0.conv1.weight"), so that a plan for a
 * built-in network finds its layers in the trained one. Weights have shapes and no elements.
 *
 * Owns: the model, until it is given away.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_NET_BUILDER_H
#define WG_MODEL_NET_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/graph.h"
#include "model/graph_build.h"

enum { WG_NET_INPUTS_MAX = 4 };

struct wg_net {
    struct wg_model *model;
    struct wg_graph_build build;
    int32_t inputs[WG_NET_INPUTS_MAX];
    size_t input_count;
    enum wg_code code; /* the first failure */
    struct wg_error err;
};

/* What a convolution or a pooling is besides its channels; groups 0: 1. */
struct wg_net_window {
    int64_t kernel, stride, pad, groups;
    bool has_bias;
};

void wg__net_begin(struct wg_net *net, const char *name, int64_t opset);
/* `output` becomes the graph's only one. On failure there is nothing to close. */
enum wg_code wg__net_finish(struct wg_net *net, int32_t output, struct wg_model **out,
                            struct wg_error *err);

/* "%s.%d": lives as long as the model; "" when memory has run out. */
const char *wg__net_name(struct wg_net *net, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Below, `name` and texts of attributes must live as long as the model: literals, or of
 * wg__net_name. */

/* An input; its first dimension is "batch". */
int32_t wg__net_input(struct wg_net *net, const char *name, int elem_type,
                      const struct wg_dim *dims, size_t rank);
/* A constant of numbers without values. */
int32_t wg__net_weight(struct wg_net *net, const char *name, const int64_t *dims, size_t rank);
/* A constant of integers; `values` are copied. */
int32_t wg__net_ints(struct wg_net *net, const char *name, const int64_t *values, size_t count);
/* A constant of one float. */
int32_t wg__net_float(struct wg_net *net, const char *name, float value);

/* Any node with one output, which has the node's name with "_out" behind. `attributes` and what
 * they point at are copied; -1 among inputs leaves one out. */
int32_t wg__net_node(struct wg_net *net, const char *op, const char *name, const int32_t *inputs,
                     size_t input_count, const struct wg_attribute *attributes,
                     size_t attribute_count);

int32_t wg__net_conv(struct wg_net *net, int32_t x, const char *name, int64_t in, int64_t filters,
                     const struct wg_net_window *window);
int32_t wg__net_batch_norm(struct wg_net *net, int32_t x, const char *name, int64_t channels);
int32_t wg__net_relu(struct wg_net *net, int32_t x, const char *name);
int32_t wg__net_add(struct wg_net *net, int32_t a, int32_t b, const char *name);
int32_t wg__net_max_pool(struct wg_net *net, int32_t x, const char *name,
                         const struct wg_net_window *window);
/* Means over height and width, as a matrix of samples and channels. */
int32_t wg__net_mean_pool(struct wg_net *net, int32_t x);
int32_t wg__net_flatten(struct wg_net *net, int32_t x);
/* y = x * W^T + b of matrices. */
int32_t wg__net_linear(struct wg_net *net, int32_t x, const char *name, int64_t in, int64_t out);

#endif
