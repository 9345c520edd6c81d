/* SPDX-License-Identifier: MIT
 *
 * Builds a graph tensor by tensor and node by node.
 *
 * Arrays grow by doubling within the arena: what a smaller array took is lost, which is less than
 * what the last one takes.
 *
 * Owns: see the header.    Threads: one thread at a time.
 */
#include "model/graph_build.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { TENSORS_FIRST = 16, NODES_FIRST = 16, SLOTS_FIRST = 64 };

static enum wg_code out_of_memory(const struct wg_graph_build *build, struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "graph '%s': out of memory", build->graph->name);
}

enum wg_code wg__graph_build_init(struct wg_graph_build *build, struct wg_arena *arena,
                                  const char *name, struct wg_graph_build *outer,
                                  struct wg_error *err)
{
    *build = (struct wg_graph_build){.outer = outer};
    struct wg_graph *graph = wg__arena_alloc(arena, 1, sizeof *graph);
    char *copy = wg__arena_strdup(arena, name);
    uint32_t *slots = wg__alloc_zeroed(SLOTS_FIRST, sizeof *slots);
    if (graph == NULL || copy == NULL || slots == NULL) {
        wg__free(slots);
        return wg__fail(err, WG_ENOMEM, "graph '%s': out of memory", name);
    }
    graph->name = copy;
    graph->arena = arena;
    graph->outer = outer != NULL ? outer->graph : NULL;
    build->graph = graph;
    build->slots = slots;
    build->slot_count = SLOTS_FIRST;
    return WG_OK;
}

void wg__graph_build_fini(struct wg_graph_build *build)
{
    wg__free(build->slots);
    *build = (struct wg_graph_build){0};
}

/* The slot that holds `name`, or the free one where it belongs. */
static size_t slot_of(const struct wg_graph_build *build, const char *name)
{
    size_t slot = (size_t)wg__hash_mix(wg__hash_text(WG_HASH_START, name));
    for (;; slot++) {
        const uint32_t held = build->slots[slot & (build->slot_count - 1)];
        if (held == 0 || strcmp(build->graph->tensors[held - 1].name, name) == 0)
            return slot & (build->slot_count - 1);
    }
}

int32_t wg__graph_build_find(const struct wg_graph_build *build, const char *name)
{
    return (int32_t)build->slots[slot_of(build, name)] - 1;
}

static bool grow_slots(struct wg_graph_build *build)
{
    const size_t count = build->slot_count * 2;
    uint32_t *slots = wg__alloc_zeroed(count, sizeof *slots);
    if (slots == NULL)
        return false;
    wg__free(build->slots);
    build->slots = slots;
    build->slot_count = count;
    for (size_t i = 0; i < build->graph->tensor_count; i++)
        slots[slot_of(build, build->graph->tensors[i].name)] = (uint32_t)i + 1;
    return true;
}

/* A larger copy of an array in the arena, where there is no room for one more; NULL: no memory. */
static void *with_room(struct wg_arena *arena, void *array, size_t count, size_t *room, size_t size,
                       size_t first)
{
    if (count < *room)
        return array;
    const size_t wanted = *room != 0 ? *room * 2 : first;
    void *larger = wg__arena_alloc(arena, wanted, size);
    if (larger == NULL)
        return NULL;
    if (count != 0)
        memcpy(larger, array, count * size);
    *room = wanted;
    return larger;
}

enum wg_code wg__graph_build_reserve(struct wg_graph_build *build, size_t tensors, size_t nodes,
                                     struct wg_error *err)
{
    struct wg_graph *graph = build->graph;
    assert(build->tensor_room == 0 && build->node_room == 0);
    graph->tensors = wg__arena_alloc(graph->arena, tensors, sizeof *graph->tensors);
    graph->nodes = wg__arena_alloc(graph->arena, nodes, sizeof *graph->nodes);
    if (graph->tensors == NULL || graph->nodes == NULL)
        return wg__fail(err, WG_ENOMEM, "graph '%s': out of memory", graph->name);
    build->tensor_room = tensors;
    build->node_room = nodes;
    return WG_OK;
}

enum wg_code wg__graph_build_declare(struct wg_graph_build *build, const char *name, int32_t *out,
                                     struct wg_error *err)
{
    const int32_t found = wg__graph_build_find(build, name);
    if (found >= 0) {
        *out = found;
        return WG_OK;
    }
    struct wg_graph *graph = build->graph;
    if (graph->tensor_count >= INT32_MAX / 2)
        return wg__fail(err, WG_EUNSUPPORTED, "graph '%s': more than %d tensors", graph->name,
                        INT32_MAX / 2);
    struct wg_tensor *tensors = with_room(graph->arena, graph->tensors, graph->tensor_count,
                                          &build->tensor_room, sizeof *tensors, TENSORS_FIRST);
    if (tensors == NULL)
        return out_of_memory(build, err);
    graph->tensors = tensors;
    if ((graph->tensor_count + 1) * 2 > build->slot_count && !grow_slots(build))
        return out_of_memory(build, err);
    tensors[graph->tensor_count] = (struct wg_tensor){.name = name, .producer = -1, .outer = -1};
    build->slots[slot_of(build, name)] = (uint32_t)graph->tensor_count + 1;
    *out = (int32_t)graph->tensor_count++;
    return WG_OK;
}

enum wg_code wg__graph_build_resolve(struct wg_graph_build *build, const char *name, int32_t *out,
                                     struct wg_error *err)
{
    *out = wg__graph_build_find(build, name);
    if (*out >= 0 || build->outer == NULL)
        return WG_OK;
    int32_t outer = -1;
    enum wg_code code = wg__graph_build_resolve(build->outer, name, &outer, err);
    if (code != WG_OK || outer < 0)
        return code;
    const struct wg_tensor *source = &build->outer->graph->tensors[outer];
    code = wg__graph_build_declare(build, source->name, out, err);
    if (code != WG_OK)
        return code;
    struct wg_tensor *captured = &build->graph->tensors[*out];
    *captured = *source;
    captured->producer = -1;
    captured->outer = outer;
    return WG_OK;
}

enum wg_code wg__graph_build_node(struct wg_graph_build *build, const struct wg_node *node,
                                  struct wg_error *err)
{
    struct wg_graph *graph = build->graph;
    struct wg_node *nodes = with_room(graph->arena, graph->nodes, graph->node_count,
                                      &build->node_room, sizeof *nodes, NODES_FIRST);
    if (nodes == NULL)
        return out_of_memory(build, err);
    graph->nodes = nodes;
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] < 0)
            continue;
        struct wg_tensor *made = &graph->tensors[node->outputs[i]];
        if (made->producer >= 0)
            return wg__fail(err, WG_EDATA, "node '%s' makes '%s', which node '%s' makes already",
                            node->name, made->name, nodes[made->producer].name);
        made->producer = (int32_t)graph->node_count;
    }
    nodes[graph->node_count++] = *node;
    return WG_OK;
}
