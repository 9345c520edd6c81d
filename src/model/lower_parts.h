/* SPDX-License-Identifier: MIT
 *
 * The parts of lowering; only src/model/lower*.c include this.
 *
 *     lower.c            walks the nodes, decides what becomes a layer, hands the network out
 *     lower_branches.c   If, and operators whose graphs run nobody knows how often
 *     lower_widths.c     widths: union-find, and a tensor's channels as segments of widths
 *     lower_axes.c       channels through operators that move axes: Reshape, Transpose, Reduce, ..
 *     lower_layers.c     convolutions and matrix products
 *     lower_plain.c      everything that multiplies nothing
 *     lower_sequence.c   products in other clothes: recurrent operators, Einsum, Attention
 *
 * A tensor's state while the graph is walked:
 *
 *     axis, segments: which axis holds channels, and of which widths it is made, in order; the
 *         axis is -1 where no width that could change runs along the tensor
 *     maker: the layer that writes it; -1: none (an input, a constant)
 *     is_static: it follows from constants alone: weights, scales, shapes
 *
 * Owns: `struct lower` owns scratch memory; the network's is its own.    Threads: one at a time.
 */
#ifndef WG_MODEL_LOWER_PARTS_H
#define WG_MODEL_LOWER_PARTS_H

#include "model/graph.h"
#include "model/lower.h"

struct wg_segment {
    uint32_t width;
    uint32_t multiple; /* channels of the axis a channel of the width */
};

struct wg_label {
    int axis; /* -1: none */
    const struct wg_segment *segments;
    size_t count;
};

struct wg_lower_tensor {
    struct wg_label label;
    int32_t maker;
    bool is_static;
    bool is_counted; /* its elements are some layer's parameters already */
};

/* Tensors that became parameters, last first: those of a branch that does not stay are let go. */
struct wg_lower_counted {
    struct wg_lower_tensor *tensor;
    struct wg_lower_counted *before;
};

/* A graph on the way; a subgraph's hangs below that of its node. */
struct wg_lower_scope {
    const struct wg_graph *graph;
    struct wg_lower_tensor *tensors;
    struct wg_lower_scope *outer;
};

struct wg_lower_width {
    uint32_t parent; /* itself: the root of its set */
    uint32_t channels, alignment;
    bool is_fixed;
    const char *name;
};

struct wg_lower {
    const struct wg_model *model;
    struct wg_lower_opts opts;
    struct wg_network *out;
    struct wg_arena scratch;
    struct wg_lower_scope *scope;
    const char *prefix; /* of layers' names within a subgraph; "" */
    struct wg_layer *layers;
    size_t layer_count, layer_room;
    struct wg_lower_width *widths;
    size_t width_count, width_room;
    struct wg_lower_counted *counted;
    size_t fusable_first; /* layers before it are outside of an If whose branch is walked */
    unsigned depth;
    bool is_out_of_memory; /* where no code could say so */
    struct wg_error *err;
};

/* Memory that ran out anywhere below; the message stands in lower->err. */
enum wg_code wg__lower_no_memory(struct wg_lower *lower);

/* --- lower.c ---------------------------------------------------------------------------------- */

/* NULL for an input that is left out or not there. */
const struct wg_tensor *wg__lower_input(const struct wg_lower *lower, const struct wg_node *node,
                                        size_t index);
struct wg_lower_tensor *wg__lower_state(const struct wg_lower *lower, int32_t tensor);
struct wg_lower_tensor *wg__lower_input_state(const struct wg_lower *lower,
                                              const struct wg_node *node, size_t index);
/* The sizes of a tensor, names replaced by the batch; false: not all are known. */
bool wg__lower_dims(const struct wg_lower *lower, const struct wg_tensor *tensor, size_t *rank,
                    uint64_t dims[WG_DIMS_MAX]);
/* The same, or WG_EDATA with node, tensor and dimension. */
enum wg_code wg__lower_need_dims(const struct wg_lower *lower, const struct wg_node *node,
                                 const struct wg_tensor *tensor, size_t *rank,
                                 uint64_t dims[WG_DIMS_MAX]);
uint64_t wg__lower_elements(size_t rank, const uint64_t dims[WG_DIMS_MAX]);
/* Elements of a tensor; 0 where its size is not known. */
uint64_t wg__lower_size(const struct wg_lower *lower, const struct wg_tensor *tensor);
bool wg__lower_is_one_of(const char *op, const char *const *list, size_t count);
/* Small integers of a constant, or of what shape inference computed; false: not known. */
bool wg__lower_ints(const struct wg_lower *lower, const struct wg_tensor *tensor, int64_t *out,
                    size_t room, size_t *count);
/* Appends a copy of `layer`, named after the node, and makes it the maker of the node's outputs. */
enum wg_code wg__lower_add(struct wg_lower *lower, const struct wg_node *node,
                           const struct wg_layer *layer);
/* The parameters that tensor `index` stands for: its elements at first, 0 when it comes again, by
 * itself or by way of what follows from it. */
uint64_t wg__lower_count(struct wg_lower *lower, int32_t tensor);

/* Lowers a graph behind what is there; its outputs' widths are fixed. */
enum wg_code wg__lower_graph(struct wg_lower *lower, const struct wg_graph *graph);
/* The three texts in a row; NULL: out of memory. */
char *wg__lower_join(struct wg_arena *arena, const char *prefix, const char *name,
                     const char *suffix);

/* --- lower_branches.c ------------------------------------------------------------------------- */

/* A node with graphs among its attributes. */
enum wg_code wg__lower_subgraphs(struct wg_lower *lower, const struct wg_node *node);

/* --- lower_widths.c --------------------------------------------------------------------------- */

/* A new width; one of more than 2^32 channels is fixed. */
enum wg_code wg__lower_width(struct wg_lower *lower, const char *name, uint64_t channels,
                             bool is_fixed, uint32_t *out);
uint32_t wg__lower_root(const struct wg_lower *lower, uint32_t width);
void wg__lower_fix(struct wg_lower *lower, const struct wg_label *label);
void wg__lower_align(struct wg_lower *lower, const struct wg_label *label, uint32_t alignment);
/* Ties two lists of segments that stand for the same channels; what cannot be tied is fixed. */
void wg__lower_unite(struct wg_lower *lower, const struct wg_label *a, const struct wg_label *b);
/* A label of one new width along `axis` of the tensor. */
enum wg_code wg__lower_new_label(struct wg_lower *lower, const char *name, int axis,
                                 uint64_t channels, bool is_fixed, struct wg_label *out);
/* `label` with every multiple times `factor`, on another axis. */
enum wg_code wg__lower_scaled(struct wg_lower *lower, const struct wg_label *label, int axis,
                              uint64_t factor, struct wg_label *out);
/* Parts of the network for a label, in its arena; widths are roots' numbers until the end. */
enum wg_code wg__lower_channels(struct wg_lower *lower, const struct wg_label *label,
                                struct wg_channels *out);
/* Renumbers the widths that layers use and writes them into the network. */
enum wg_code wg__lower_settle_widths(struct wg_lower *lower);

/* --- lower_plain.c ---------------------------------------------------------------------------- */

/* A view, a part of the layer before, or a layer of bytes; `is_ours`: the operator is one of the
 * domains that we know. */
enum wg_code wg__lower_plain(struct wg_lower *lower, const struct wg_node *node, bool is_ours);
/* A layer that reads the inputs and writes the outputs; none where a size is not known. */
enum wg_code wg__lower_bytes(struct wg_lower *lower, const struct wg_node *node);

/* --- lower_axes.c, lower_layers.c, lower_sequence.c ------------------------------------------- */

/* Sets the labels of the node's outputs. */
typedef enum wg_code (*wg_lower_axes_fn)(struct wg_lower *lower, const struct wg_node *node);
/* NULL: what the operator does with channels is not known. */
wg_lower_axes_fn wg__lower_axes_of(const char *op);
/* Gives an output (-1: none) its label, where the label's channels are the axis' size; else fixes
 * them: a file may claim shapes that its weights contradict. */
void wg__lower_give(struct wg_lower *lower, int32_t output, const struct wg_label *label);
enum wg_code wg__lower_axes_elementwise(struct wg_lower *lower, const struct wg_node *node);
enum wg_code wg__lower_axes_unknown(struct wg_lower *lower, const struct wg_node *node);

/* Adds the layers of a node that multiplies, and labels its outputs. */
typedef enum wg_code (*wg_lower_layer_fn)(struct wg_lower *lower, const struct wg_node *node);
wg_lower_layer_fn wg__lower_layer_of(const struct wg_node *node); /* NULL: it doesn't */
wg_lower_layer_fn wg__lower_sequence_of(const struct wg_node *node);

#endif
