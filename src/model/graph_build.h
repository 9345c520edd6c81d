/* SPDX-License-Identifier: MIT
 *
 * Builds a graph tensor by tensor and node by node; readers and the built-in networks use it.
 *
 *     struct wg_graph_build build;
 *     wg__graph_build_init(&build, arena, "name", NULL);
 *     wg__graph_build_declare(&build, "x", &x, err);     made here: an input, a constant, an output
 *     wg__graph_build_node(&build, &node, err);          its outputs' producer is set
 *     wg__graph_build_fini(&build);                      the graph stays, in the arena
 *
 * Names are found through a hash table with open addressing, which lives as long as the builder. A
 * name that a subgraph doesn't declare is looked for in the graphs around it, and becomes a
 * captured tensor of the subgraph and of each graph between.
 *
 * Owns: the table of names; all else is the arena's.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_GRAPH_BUILD_H
#define WG_MODEL_GRAPH_BUILD_H

#include "model/graph.h"

struct wg_graph_build {
    struct wg_graph *graph;
    struct wg_graph_build *outer; /* of a subgraph; NULL */
    size_t tensor_room, node_room;
    uint32_t *slots; /* index + 1 of a tensor, 0: free; a power of two, at most half full */
    size_t slot_count;
};

/* `outer` must outlive the builder; `name` is copied. On failure there is nothing to fini. */
enum wg_code wg__graph_build_init(struct wg_graph_build *build, struct wg_arena *arena,
                                  const char *name, struct wg_graph_build *outer,
                                  struct wg_error *err);
/* Room for as many as the caller knows of, exactly, where none was made yet. */
enum wg_code wg__graph_build_reserve(struct wg_graph_build *build, size_t tensors, size_t nodes,
                                     struct wg_error *err);
void wg__graph_build_fini(struct wg_graph_build *build); /* accepts one that was only zeroed */

/* The index of a tensor that this graph has; -1: none. */
int32_t wg__graph_build_find(const struct wg_graph_build *build, const char *name);
/* Adds a tensor of unknown shape, or finds the one there is; a new one keeps `name` itself, which
 * lives as long as the arena. */
enum wg_code wg__graph_build_declare(struct wg_graph_build *build, const char *name, int32_t *out,
                                     struct wg_error *err);
/* The tensor that `name` means here, captured where a graph around this one has it; -1: none. */
enum wg_code wg__graph_build_resolve(struct wg_graph_build *build, const char *name, int32_t *out,
                                     struct wg_error *err);
/* Appends a copy of `node`, whose arrays and texts live as long as the arena, and sets its outputs'
 * producer. WG_EDATA: an output that another node makes already. */
enum wg_code wg__graph_build_node(struct wg_graph_build *build, const struct wg_node *node,
                                  struct wg_error *err);

#endif
