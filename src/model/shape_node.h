/* SPDX-License-Identifier: MIT
 *
 * What an operator's shape function sees: one node, its inputs' types, and its outputs to fill in.
 *
 * A function reads its inputs, says what it can of its outputs, and leaves the rest unknown. It
 * returns WG_EDATA only where the inputs contradict each other: then there is no such network.
 * Dimensions are numbers, names or unknown; the rules for names are ONNX's own: a name survives
 * where the operator passes a dimension on, and where it meets 1 or itself.
 *
 *     wg__shapes_infer -> wg__shape_graph -> per node: the table's function
 *                              ^                           |
 *                              +--- If, Loop, Scan, functions: bodies are graphs
 *
 * Only src/model/shape*.c include this.
 *
 * Owns: nothing; what is made is the model's arena's.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_SHAPE_NODE_H
#define WG_MODEL_SHAPE_NODE_H

#include "model/graph.h"

enum {
    WG_SHAPE_VALUES_MAX = 4096,        /* elements of a tensor whose value is computed along */
    WG_SHAPE_VALUES_TOTAL = 1 << 20,   /* elements of all of them together */
    WG_SHAPE_VISITS_MAX = 4 * 1000000, /* nodes visited, bodies again for each call */
    WG_SHAPE_DEPTH_MAX = 40            /* bodies within bodies */
};

/* One inference of a whole model. */
struct wg_shape_run {
    struct wg_model *model;
    struct wg_error *err;
    size_t values_left;
    size_t visits_left;
    unsigned depth;
};

struct wg_shape_node {
    struct wg_shape_run *run;
    struct wg_graph *graph;
    const struct wg_node *node;
    int64_t opset;                      /* of the node's domain; 0: not imported */
    const struct wg_shape_node *caller; /* in a function's body: the call; NULL */
};

typedef enum wg_code (*wg_shape_function)(struct wg_shape_node *n);

struct wg_shape_op {
    const char *op;
    wg_shape_function infer;
    wg_shape_function evaluate; /* the outputs' values, when shapes are known; NULL: never */
};

struct wg_shape_family {
    const char *domain;
    const struct wg_shape_op *ops;
    size_t count;
};

/* --- What the node has ------------------------------------------------------------------------ */

bool wg__shape_has(const struct wg_shape_node *n, size_t input);
struct wg_tensor *wg__shape_input(const struct wg_shape_node *n, size_t input);   /* NULL */
struct wg_tensor *wg__shape_output(const struct wg_shape_node *n, size_t output); /* NULL */
/* NULL where the input is left out, is no tensor or its rank is not known. */
const struct wg_shape *wg__shape_in(const struct wg_shape_node *n, size_t input);
int wg__shape_type_in(const struct wg_shape_node *n, size_t input); /* 0: not known */

/* Attributes, those of a function's call put in place. NULL, fallback: not there. */
const struct wg_attribute *wg__shape_attribute(const struct wg_shape_node *n, const char *name);
int64_t wg__shape_int(const struct wg_shape_node *n, const char *name, int64_t fallback);
const int64_t *wg__shape_ints(const struct wg_shape_node *n, const char *name, size_t *count_out);
bool wg__shape_text_is(const struct wg_shape_node *n, const char *name, const char *text);

/* --- What the node makes ---------------------------------------------------------------------- */

void wg__shape_set_type(struct wg_shape_node *n, size_t output, int elem_type);
void wg__shape_set(struct wg_shape_node *n, size_t output, const struct wg_shape *shape);
/* Type, shape, or both (a sequence's, too) of an input given on. */
void wg__shape_pass_type(struct wg_shape_node *n, size_t input, size_t output);
void wg__shape_pass(struct wg_shape_node *n, size_t input, size_t output);
/* A sequence or optional that holds such elements. */
enum wg_code wg__shape_set_held(struct wg_shape_node *n, size_t output, enum wg_kind kind,
                                int elem_type, const struct wg_shape *shape);

/* "node 'fc' (Gemm): ..." as WG_EDATA. */
enum wg_code wg__shape_refuse(const struct wg_shape_node *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
enum wg_code wg__shape_no_memory(const struct wg_shape_node *n);
/* The name of an input for a message; "-" where it's left out. */
const char *wg__shape_name(const struct wg_shape_node *n, size_t input);

/* --- Dimensions ------------------------------------------------------------------------------- */

extern const struct wg_dim wg__dim_unknown;

struct wg_dim wg__dim(int64_t value);
static inline bool wg__dim_known(struct wg_dim dim)
{
    return dim.value != WG_DIM_UNKNOWN;
}
bool wg__dim_same(struct wg_dim a, struct wg_dim b); /* surely equal: both numbers or names */
/* Products and sums; 1 and 0 leave the other, name and all; WG_EDATA: past INT64_MAX. */
enum wg_code wg__dim_times(const struct wg_shape_node *n, struct wg_dim a, struct wg_dim b,
                           struct wg_dim *out);
enum wg_code wg__dim_plus(const struct wg_shape_node *n, struct wg_dim a, struct wg_dim b,
                          struct wg_dim *out);
/* Two dimensions that must be equal: the better known of them. WG_EDATA: two numbers. */
enum wg_code wg__dim_agree(const struct wg_shape_node *n, struct wg_dim a, struct wg_dim b,
                           const char *what, struct wg_dim *out);
struct wg_shape wg__shape_of_rank(size_t rank); /* all dimensions unknown */
/* dims[first] .. dims[last - 1] multiplied. */
enum wg_code wg__shape_product(const struct wg_shape_node *n, const struct wg_shape *shape,
                               size_t first, size_t last, struct wg_dim *out);
/* Adds a dimension at the end; WG_EDATA: the rank passes WG_DIMS_MAX. */
enum wg_code wg__shape_push(const struct wg_shape_node *n, struct wg_shape *shape,
                            struct wg_dim dim);
/* An axis that may count from the end; WG_EDATA: outside. */
enum wg_code wg__shape_axis(const struct wg_shape_node *n, int64_t axis, size_t rank, size_t *out);
/* numpy's broadcasting of two shapes, by ONNX's rule for names. */
enum wg_code wg__shape_broadcast(const struct wg_shape_node *n, const struct wg_shape *a,
                                 const struct wg_shape *b, struct wg_shape *out);
/* WG_EDATA: the input's rank is known and isn't `rank`. */
enum wg_code wg__shape_want_rank(const struct wg_shape_node *n, size_t input, size_t rank);
/* The merged shape of two that stand for the same tensor in different runs: what differs becomes
 * unknown. */
void wg__shape_union(struct wg_shape *io, const struct wg_shape *other);

/* --- Values ----------------------------------------------------------------------------------- */

/* The input's value where it is small and known at least in part: NULL otherwise. Constants are
 * read when first asked for. */
enum wg_code wg__shape_values(const struct wg_shape_node *n, size_t input,
                              const struct wg_value **out, size_t *count_out);
/* The same as whole numbers, where all are known; *has_out tells. At most `capacity`. */
enum wg_code wg__shape_int_values(const struct wg_shape_node *n, size_t input, int64_t *out,
                                  size_t capacity, size_t *count_out, bool *has_out);
/* An axes-like list that is an attribute in older opsets and an input in newer: `has_out` false
 * when it's an input whose value isn't known; count 0 and `given_out` false when there is none. */
struct wg_shape_list {
    bool is_given, is_known;
    size_t count;
    int64_t values[WG_DIMS_MAX * 2];
};
enum wg_code wg__shape_list(const struct wg_shape_node *n, const char *attribute, size_t input,
                            struct wg_shape_list *out);
/* Room for an output's value; NULL: past a limit, and then it stays unknown. */
enum wg_code wg__shape_new_values(const struct wg_shape_node *n, size_t count,
                                  struct wg_value **out);
void wg__shape_set_values(struct wg_shape_node *n, size_t output, const struct wg_value *values,
                          size_t count); /* NULL: none */
/* Elements of a shape; false: not known, or more than `max`. */
bool wg__shape_count(const struct wg_shape *shape, size_t max, size_t *out);
bool wg__type_is_int(int elem_type);
bool wg__type_is_real(int elem_type);

/* --- Bodies ----------------------------------------------------------------------------------- */

/* Infers a graph whose inputs have been filled in; `caller`: of a function. Within functions, whose
 * bodies are inferred anew for each call, types that the file declares do not count. */
enum wg_code wg__shape_graph(struct wg_shape_run *run, struct wg_graph *graph,
                             const struct wg_shape_node *caller);
/* The subgraph at an attribute, with what it captures brought up to date; NULL: none. */
struct wg_graph *wg__shape_body(const struct wg_shape_node *n, const char *attribute);

const struct wg_shape_op *wg__shape_op_find(const char *domain, const char *op);

extern const struct wg_shape_family wg__shape_ops_attention, wg__shape_ops_control,
    wg__shape_ops_convolution, wg__shape_ops_elementwise, wg__shape_ops_generate,
    wg__shape_ops_image, wg__shape_ops_index, wg__shape_ops_layout, wg__shape_ops_matrix,
    wg__shape_ops_microsoft, wg__shape_ops_ml, wg__shape_ops_normalize, wg__shape_ops_quantize,
    wg__shape_ops_recurrent, wg__shape_ops_reduce, wg__shape_ops_sequence, wg__shape_ops_signal,
    wg__shape_ops_training;

#endif
