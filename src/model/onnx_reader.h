/* SPDX-License-Identifier: MIT
 *
 * The parts of the ONNX reader, a file a group of messages; only src/model/onnx*.c include this.
 *
 *     onnx.c            the file, ModelProto
 *     onnx_graph.c      GraphProto, NodeProto, FunctionProto
 *     onnx_attribute.c  AttributeProto
 *     onnx_tensor.c     TensorProto, SparseTensorProto, TypeProto
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_ONNX_READER_H
#define WG_MODEL_ONNX_READER_H

#include "model/graph_build.h"
#include "model/onnx_wire.h"

/* Graphs within graphs; deeper ones are refused, so that the stack is bounded. */
enum { WG_ONNX_DEPTH_MAX = 32 };

struct wg_onnx_reader {
    struct wg_model *model;
    unsigned depth;          /* of the graph that is being read; the model's is 1 */
    const uint8_t *resident; /* pages from here on may be in memory; NULL: not a mapping of ours */
};

/* Tells that a walk has come to `at`: the mapping's pages before it are given back now and then, so
 * that the headers of thousands of weights do not fill memory with what lies around them. */
void wg__onnx_passed(struct wg_onnx_reader *reader, const uint8_t *at);

enum wg_code wg__onnx_out_of_memory(const struct wg_wire *wire, struct wg_error *err);

/* A text field as a 0-terminated copy in the arena. WG_EDATA: a zero byte, or no UTF-8. */
enum wg_code wg__onnx_text(struct wg_onnx_reader *reader, const struct wg_wire *wire,
                           const struct wg_wire_field *field, const char *what, const char **out,
                           struct wg_error *err);

/* Reads a graph; `outer` is the builder of the one around it, NULL for the model's. */
enum wg_code wg__onnx_graph(struct wg_onnx_reader *reader, struct wg_wire wire,
                            struct wg_graph_build *outer, struct wg_graph **out,
                            struct wg_error *err);
enum wg_code wg__onnx_function(struct wg_onnx_reader *reader, struct wg_wire wire,
                               struct wg_function *out, struct wg_error *err);
enum wg_code wg__onnx_attribute(struct wg_onnx_reader *reader, struct wg_wire wire,
                                struct wg_graph_build *build, struct wg_attribute *out,
                                struct wg_error *err);

struct wg_onnx_tensor {
    const char *name; /* "" where there is none */
    struct wg_shape shape;
    struct wg_constant *constant;
};

enum wg_code wg__onnx_tensor(struct wg_onnx_reader *reader, struct wg_wire wire,
                             struct wg_onnx_tensor *out, struct wg_error *err);
enum wg_code wg__onnx_sparse_tensor(struct wg_onnx_reader *reader, struct wg_wire wire,
                                    struct wg_onnx_tensor *out, struct wg_error *err);
/* A TypeProto: a tensor's type and shape, or what a sequence or optional holds; other kinds leave
 * all as it is. */
enum wg_code wg__onnx_type(struct wg_onnx_reader *reader, struct wg_wire wire,
                           struct wg_tensor *out, struct wg_error *err);

#endif
