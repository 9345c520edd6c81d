/* SPDX-License-Identifier: MIT
 *
 * A model's graph: nodes, tensors with shapes, constants, whatever file it came from.
 *
 * Tensors are values with a name and at most one producer; a dimension is a number, a name
 * ("batch") or unknown. Subgraphs (If, Loop, Scan) hang at their node's attribute and see the
 * tensors around them. Constants keep where their bytes lie (in the mapped file or beside it);
 * nothing is copied before somebody asks, so a model of gigabytes opens in milliseconds.
 *
 * Owns: a graph owns all in its arena, and the mapped file.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_GRAPH_H
#define WG_MODEL_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { WG_DIMS_MAX = 16, WG_DIM_UNKNOWN = -1 };

struct wg_dim {
    int64_t value;    /* WG_DIM_UNKNOWN when not a number */
    const char *name; /* "batch"; NULL: none */
};

struct wg_shape {
    bool is_known; /* the rank is */
    size_t rank;
    struct wg_dim dims[WG_DIMS_MAX];
};

struct wg_constant {
    int elem_type;        /* ONNX TensorProto.DataType */
    const uint8_t *bytes; /* raw little-endian; NULL: in typed fields or outside (see below) */
    size_t byte_count;
    const char *external; /* file beside the model; NULL: none */
    uint64_t external_offset, external_length;
    const uint8_t *typed; /* packed typed field (float_data, int64_data..), wire format; NULL */
    size_t typed_length;
    int typed_field; /* its number in TensorProto */
};

struct wg_tensor {
    const char *name;
    int elem_type; /* 0: not known */
    struct wg_shape shape;
    int32_t producer;                   /* node index, -1: input or constant */
    const struct wg_constant *constant; /* NULL: none */
    const int64_t *values; /* shape inference: the value, where it is a small known int tensor */
    size_t value_count;
};

struct wg_graph;

struct wg_attribute {
    const char *name;
    int type; /* ONNX AttributeProto.AttributeType */
    float f;
    int64_t i;
    const char *s; /* not 0-terminated beyond s_length: bytes may hold 0 */
    size_t s_length;
    const float *floats;
    const int64_t *ints;
    const char *const *strings;
    size_t count; /* of floats, ints, strings */
    const struct wg_constant *tensor;
    struct wg_shape tensor_shape;
    struct wg_graph *graph;
};

struct wg_node {
    const char *name; /* made up ("Conv_12") where the file has none */
    const char *op;
    const char *domain;    /* "": ONNX's own */
    const int32_t *inputs; /* tensor indices; -1: left out */
    size_t input_count;
    const int32_t *outputs;
    size_t output_count;
    const struct wg_attribute *attributes;
    size_t attribute_count;
};

struct wg_graph {
    const char *name;
    struct wg_graph *outer; /* of a subgraph; NULL */
    struct wg_arena *arena;
    struct wg_tensor *tensors;
    size_t tensor_count;
    struct wg_node *nodes; /* in the file's order, which is topological */
    size_t node_count;
    const int32_t *inputs; /* without constants */
    size_t input_count;
    const int32_t *outputs;
    size_t output_count;
};

struct wg_opset {
    const char *domain;
    int64_t version;
};

struct wg_model {
    struct wg_arena arena;
    struct wg_graph *graph;
    const char *producer;
    int64_t ir_version;
    const struct wg_opset *opsets;
    size_t opset_count;
    const struct wg_graph *const
        *functions; /* model-local functions, named by graph name; may be 0 */
    size_t function_count;
    const char *folder; /* where external data lies */
    const uint8_t *map; /* the file */
    size_t map_length;
};

void wg__model_close(struct wg_model *model); /* accepts NULL */

const struct wg_attribute *wg__node_attribute(const struct wg_node *node, const char *name);
int64_t wg__node_int(const struct wg_node *node, const char *name, int64_t fallback);
int64_t wg__model_opset(const struct wg_model *model, const char *domain); /* 0: not imported */

#endif
