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

/* ONNX' TensorProto.DataType, with the bits of an element. */
#define WG_ELEMS(X)                                                                                \
    X(FLOAT, 1, 32)                                                                                \
    X(UINT8, 2, 8)                                                                                 \
    X(INT8, 3, 8)                                                                                  \
    X(UINT16, 4, 16)                                                                               \
    X(INT16, 5, 16)                                                                                \
    X(INT32, 6, 32)                                                                                \
    X(INT64, 7, 64)                                                                                \
    X(STRING, 8, 0)                                                                                \
    X(BOOL, 9, 8)                                                                                  \
    X(FLOAT16, 10, 16)                                                                             \
    X(DOUBLE, 11, 64)                                                                              \
    X(UINT32, 12, 32)                                                                              \
    X(UINT64, 13, 64)                                                                              \
    X(COMPLEX64, 14, 64)                                                                           \
    X(COMPLEX128, 15, 128)                                                                         \
    X(BFLOAT16, 16, 16)                                                                            \
    X(FLOAT8E4M3FN, 17, 8)                                                                         \
    X(FLOAT8E4M3FNUZ, 18, 8)                                                                       \
    X(FLOAT8E5M2, 19, 8)                                                                           \
    X(FLOAT8E5M2FNUZ, 20, 8)                                                                       \
    X(UINT4, 21, 4)                                                                                \
    X(INT4, 22, 4)                                                                                 \
    X(FLOAT4E2M1, 23, 4)                                                                           \
    X(FLOAT8E8M0, 24, 8)

enum wg_elem {
    WG_ELEM_UNKNOWN = 0,
#define X(name, number, bits) WG_ELEM_##name = number,
    WG_ELEMS(X)
#undef X
};

/* ONNX' AttributeProto.AttributeType; kinds that no operator uses are left out. */
enum wg_attribute_type {
    WG_ATTRIBUTE_FLOAT = 1,
    WG_ATTRIBUTE_INT = 2,
    WG_ATTRIBUTE_STRING = 3,
    WG_ATTRIBUTE_TENSOR = 4,
    WG_ATTRIBUTE_GRAPH = 5,
    WG_ATTRIBUTE_FLOATS = 6,
    WG_ATTRIBUTE_INTS = 7,
    WG_ATTRIBUTE_STRINGS = 8,
    WG_ATTRIBUTE_SPARSE_TENSOR = 11
};

struct wg_dim {
    int64_t value;    /* WG_DIM_UNKNOWN when not a number */
    const char *name; /* "batch"; NULL: none */
};

struct wg_shape {
    bool is_known; /* the rank is */
    size_t rank;
    struct wg_dim dims[WG_DIMS_MAX];
};

/* Where a constant's elements are: in one of three places, or nowhere (a graph without weights). */
struct wg_constant {
    int elem_type;          /* enum wg_elem, or a number that we do not know */
    uint64_t element_count; /* of the shape */
    const uint8_t *bytes;   /* raw, little-endian; NULL: elsewhere */
    size_t byte_count;
    const char *external;                      /* file beside the model; NULL: none */
    uint64_t external_offset, external_length; /* length 0: to the file's end */
    const uint8_t *typed; /* the TensorProto, whose field typed_field holds the elements; NULL */
    size_t typed_length;
    int typed_field;
    bool is_sparse; /* the elements are not readable, only their shape is */
};

/* What a sequence or an optional value holds; its elements are tensors. */
enum wg_kind { WG_KIND_SEQUENCE, WG_KIND_OPTIONAL, WG_KIND_OPTIONAL_SEQUENCE, WG_KIND_COUNT };

struct wg_held {
    enum wg_kind kind;
    int elem_type;
    struct wg_shape shape; /* of each of them */
};

/* An element of a value that shape inference follows. */
enum wg_value_kind { WG_VALUE_UNKNOWN, WG_VALUE_NAMED, WG_VALUE_INT, WG_VALUE_REAL };

struct wg_value {
    enum wg_value_kind kind;
    union {
        int64_t i;
        double real;
        const char *name; /* that of a dimension */
    };
};

struct wg_tensor {
    const char *name;
    int elem_type; /* 0: not known */
    struct wg_shape shape;
    struct wg_held *held; /* a sequence or optional, and then no tensor; NULL: a tensor */
    int32_t producer;     /* node index, -1: input, constant or captured */
    int32_t outer; /* captured by a subgraph: its index in the outer graph; -1: this graph's */
    const struct wg_constant *constant; /* NULL: none; that of a Constant node, too */
    const struct wg_value *values;      /* where it is small, and known to shape inference; NULL */
    size_t value_count;
};

struct wg_graph;

struct wg_attribute {
    const char *name;
    int type; /* enum wg_attribute_type, or a number that we do not know */
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
    const char *ref; /* in a function's body: the attribute of the call that stands here; NULL */
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
    struct wg_node *nodes; /* each behind all whose outputs it reads */
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

/* An operator that the model defines itself. */
struct wg_function {
    const char *domain, *name;
    struct wg_graph *body;
    const struct wg_attribute *defaults; /* of attributes that a call leaves out */
    size_t default_count;
};

struct wg_metadata {
    const char *key, *value;
};

struct wg_model {
    struct wg_arena arena;
    struct wg_graph *graph;
    const char *producer;
    int64_t ir_version;
    const struct wg_opset *opsets;
    size_t opset_count;
    const struct wg_metadata *metadata;
    size_t metadata_count;
    const struct wg_function *functions; /* model-local; calls are replaced by their bodies */
    size_t function_count;
    const char *folder; /* where external data lies */
    const uint8_t *map; /* the file */
    size_t map_length;
};

/* An empty model with its arena; `graph` is NULL. NULL: out of memory. */
struct wg_model *wg__model_new(void);
void wg__model_close(struct wg_model *model); /* accepts NULL */

const char *wg__elem_name(int elem_type); /* "FLOAT"; "unknown" */
unsigned wg__elem_bits(int elem_type);    /* 0: none that is fixed, or unknown */

const struct wg_attribute *wg__node_attribute(const struct wg_node *node, const char *name);
int64_t wg__node_int(const struct wg_node *node, const char *name, int64_t fallback);
/* The list of an INTS attribute; NULL, and a count of 0, where there is none. */
const int64_t *wg__node_ints(const struct wg_node *node, const char *name, size_t *count);
int64_t wg__model_opset(const struct wg_model *model, const char *domain); /* 0: not imported */

#endif
