/* SPDX-License-Identifier: MIT
 *
 * Puts a graph's nodes behind those whose outputs they read.
 *
 * A binary heap holds the nodes that can come next, the earliest of the file on top.
 *
 * Owns: working memory while it runs.    Threads: one thread at a time.
 */
#include "model/graph_order.h"

#include <string.h>

#include "base/alloc.h"

/* Calls `each` with every tensor of the graph that a node reads, by itself or in subgraphs. */
typedef void (*read_fn)(void *context, size_t node, int32_t tensor);

static void each_read(const struct wg_graph *graph, size_t node, read_fn each, void *context)
{
    const struct wg_node *reader = &graph->nodes[node];
    for (size_t i = 0; i < reader->input_count; i++) {
        if (reader->inputs[i] >= 0)
            each(context, node, reader->inputs[i]);
    }
    for (size_t i = 0; i < reader->attribute_count; i++) {
        const struct wg_graph *inner = reader->attributes[i].graph;
        for (size_t j = 0; inner != NULL && j < inner->tensor_count; j++) {
            if (inner->tensors[j].outer >= 0)
                each(context, node, inner->tensors[j].outer);
        }
    }
}

struct order {
    const struct wg_graph *graph;
    bool is_kept;  /* nothing is read before it is made */
    size_t edges;  /* reads of what a node makes */
    size_t *waits; /* of a node: reads that are not made yet */
    size_t *first; /* of a node: where its readers begin in `readers`; one more at the end */
    uint32_t *readers;
    uint32_t *heap;
    size_t heap_count;
};

static void note_read(void *context, size_t node, int32_t tensor)
{
    struct order *order = context;
    const int32_t producer = order->graph->tensors[tensor].producer;
    if (producer < 0)
        return;
    order->edges++;
    order->is_kept = order->is_kept && (size_t)producer < node;
}

static void count_read(void *context, size_t node, int32_t tensor)
{
    struct order *order = context;
    const int32_t producer = order->graph->tensors[tensor].producer;
    if (producer < 0)
        return;
    order->waits[node]++;
    order->first[producer + 1]++;
}

/* `first` moves on while readers are filled in, and is moved back afterwards. */
static void fill_read(void *context, size_t node, int32_t tensor)
{
    struct order *order = context;
    const int32_t producer = order->graph->tensors[tensor].producer;
    if (producer >= 0)
        order->readers[order->first[producer]++] = (uint32_t)node;
}

static void heap_push(struct order *order, uint32_t node)
{
    size_t at = order->heap_count++;
    while (at != 0 && order->heap[(at - 1) / 2] > node) {
        order->heap[at] = order->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    order->heap[at] = node;
}

static uint32_t heap_pop(struct order *order)
{
    const uint32_t top = order->heap[0];
    const uint32_t last = order->heap[--order->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= order->heap_count)
            break;
        if (child + 1 < order->heap_count && order->heap[child + 1] < order->heap[child])
            child++;
        if (order->heap[child] >= last)
            break;
        order->heap[at] = order->heap[child];
        at = child;
    }
    order->heap[at] = last;
    return top;
}

static void find_readers(struct order *order)
{
    const size_t count = order->graph->node_count;
    for (size_t i = 0; i < count; i++)
        each_read(order->graph, i, count_read, order);
    for (size_t i = 0; i < count; i++)
        order->first[i + 1] += order->first[i];
    for (size_t i = 0; i < count; i++)
        each_read(order->graph, i, fill_read, order);
    memmove(order->first + 1, order->first, count * sizeof *order->first);
    order->first[0] = 0;
}

/* Writes nodes in order; how many there were: less than all where some read from each other. */
static size_t sort_nodes(struct order *order, struct wg_node *sorted, int32_t *place)
{
    const struct wg_graph *graph = order->graph;
    size_t done = 0;
    find_readers(order);
    for (size_t i = 0; i < graph->node_count; i++) {
        if (order->waits[i] == 0)
            heap_push(order, (uint32_t)i);
    }
    while (order->heap_count != 0) {
        const uint32_t node = heap_pop(order);
        place[node] = (int32_t)done;
        sorted[done++] = graph->nodes[node];
        for (size_t i = order->first[node]; i < order->first[node + 1]; i++) {
            if (--order->waits[order->readers[i]] == 0)
                heap_push(order, order->readers[i]);
        }
    }
    return done;
}

static enum wg_code sort_graph(struct wg_graph *graph, struct order *order, const char *name,
                               struct wg_error *err)
{
    const size_t count = graph->node_count;
    struct wg_node *sorted = wg__arena_alloc(graph->arena, count, sizeof *sorted);
    int32_t *place = wg__alloc_zeroed(count, sizeof *place);
    enum wg_code code = WG_OK;
    order->waits = wg__alloc_zeroed(count, sizeof *order->waits);
    order->first = wg__alloc_zeroed(count + 1, sizeof *order->first);
    order->readers = wg__alloc_zeroed(order->edges, sizeof *order->readers);
    order->heap = wg__alloc_zeroed(count, sizeof *order->heap);
    if (sorted == NULL || place == NULL || order->waits == NULL || order->first == NULL ||
        order->readers == NULL || order->heap == NULL) {
        code = wg__fail(err, WG_ENOMEM, "%s: out of memory", name);
        goto out;
    }
    if (sort_nodes(order, sorted, place) != count) {
        size_t stuck = 0;
        while (order->waits[stuck] == 0)
            stuck++;
        code = wg__fail(err, WG_EDATA, "%s: nodes read from each other, at or before '%.100s'",
                        name, graph->nodes[stuck].name);
        goto out;
    }
    for (size_t i = 0; i < graph->tensor_count; i++) {
        if (graph->tensors[i].producer >= 0)
            graph->tensors[i].producer = place[graph->tensors[i].producer];
    }
    graph->nodes = sorted;
out:
    wg__free(place);
    wg__free(order->waits);
    wg__free(order->first);
    wg__free(order->readers);
    wg__free(order->heap);
    return code;
}

enum wg_code wg__graph_order(struct wg_graph *graph, const char *name, struct wg_error *err)
{
    struct order order = {.graph = graph, .is_kept = true};
    for (size_t i = 0; i < graph->node_count; i++)
        each_read(graph, i, note_read, &order);
    return order.is_kept ? WG_OK : sort_graph(graph, &order, name, err);
}
