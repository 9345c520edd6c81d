/* SPDX-License-Identifier: MIT
 *
 * Puts a graph's nodes behind those whose outputs they read.
 *
 * ONNX asks files for this order, and nearly all keep it; such a graph stays as it is. Others are
 * sorted, by the least place in the file among the nodes that can come next (Kahn's algorithm), so
 * that the order is theirs as far as it can be. What subgraphs capture counts as read by their
 * node.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_GRAPH_ORDER_H
#define WG_MODEL_GRAPH_ORDER_H

#include "model/graph.h"

/* `name` stands for the file in messages. WG_EDATA: nodes that read from each other. */
enum wg_code wg__graph_order(struct wg_graph *graph, const char *name, struct wg_error *err);

#endif
