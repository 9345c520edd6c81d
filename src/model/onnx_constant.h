/* SPDX-License-Identifier: MIT
 *
 * Constant nodes as constants. How to read elements: model/onnx.h.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_ONNX_CONSTANT_H
#define WG_MODEL_ONNX_CONSTANT_H

#include "model/graph.h"

/* Where `node` is a Constant: its output gets constant, type and shape, whichever attribute holds
 * the value. Other nodes, and values that stand for a function's attribute, are left alone. */
enum wg_code wg__onnx_constant_node(struct wg_arena *arena, struct wg_graph *graph,
                                    const struct wg_node *node, struct wg_error *err);

#endif
