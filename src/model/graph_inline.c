/* SPDX-License-Identifier: MIT
 *
 * Puts the bodies of a model's own functions where they are called.
 *
 *     call  y = F(x)             F(a) -> b:   t = Relu(a)           y = Relu, Neg of x:
 *                                             b = Neg(t)            F_0/t = Relu(x)
 *                                                                   y     = Neg(F_0/t)
 *
 * Tensors of the calling graph keep their numbers, since subgraphs refer to them; those of a body
 * are added behind. A body's subgraphs are copied, since each call has tensors of its own.
 *
 * Owns: nothing; what is made is the arena's.    Threads: one thread at a time.
 */
#include "model/graph_inline.h"

#include <stdio.h>
#include <string.h>

#include "model/onnx_constant.h"

enum { DEPTH_MAX = 32, NODES_FIRST = 16 };

struct inliner {
    const struct wg_model *model;
    struct wg_arena *arena;
    const char *name;
    size_t part_count; /* nodes and tensors that bodies have brought so far */
    unsigned depth;    /* of calls and of subgraphs */
    struct wg_error *err;
};

/* A graph whose nodes are being written anew. */
struct target {
    struct wg_graph *graph;
    size_t tensor_room;
    struct wg_node *nodes;
    size_t count, room;
};

/* One call: what a body's tensors and attributes are in the graph that calls. */
struct call {
    const struct wg_function *function;
    const struct wg_node *node;
    const char *prefix;
    int32_t *map; /* of the body's tensors; -1: left out */
};

static enum wg_code inline_graph(struct inliner *inliner, struct wg_graph *graph);
static enum wg_code emit(struct inliner *inliner, struct target *target,
                         const struct wg_node *node);

static enum wg_code out_of_memory(const struct inliner *inliner)
{
    return wg__fail(inliner->err, WG_ENOMEM, "%s: out of memory", inliner->name);
}

static const struct wg_function *function_of(const struct inliner *inliner,
                                             const struct wg_node *node)
{
    for (size_t i = 0; i < inliner->model->function_count; i++) {
        const struct wg_function *function = &inliner->model->functions[i];
        if (strcmp(function->name, node->op) == 0 && strcmp(function->domain, node->domain) == 0)
            return function;
    }
    return NULL;
}

/* "PREFIX/NAME" */
static const char *below(const struct inliner *inliner, const char *prefix, const char *name)
{
    const size_t size = strlen(prefix) + strlen(name) + 2;
    char *text = wg__arena_alloc(inliner->arena, size, 1);
    if (text != NULL)
        (void)snprintf(text, size, "%s/%s", prefix, name);
    return text;
}

/* A larger copy where there is no room for one more. */
static void *with_room(const struct inliner *inliner, void *array, size_t count, size_t *room,
                       size_t size)
{
    if (count < *room)
        return array;
    const size_t wanted = count != 0 ? count * 2 : NODES_FIRST;
    void *larger = wg__arena_alloc(inliner->arena, wanted, size);
    if (larger == NULL)
        return NULL;
    if (count != 0)
        memcpy(larger, array, count * size);
    *room = wanted;
    return larger;
}

static enum wg_code add_tensor(struct inliner *inliner, struct target *target,
                               const struct wg_tensor *body, const char *prefix, int32_t *out)
{
    struct wg_graph *graph = target->graph;
    struct wg_tensor *tensors = with_room(inliner, graph->tensors, graph->tensor_count,
                                          &target->tensor_room, sizeof *tensors);
    const char *name = below(inliner, prefix, body->name);
    if (tensors == NULL || name == NULL)
        return out_of_memory(inliner);
    graph->tensors = tensors;
    tensors[graph->tensor_count] = *body;
    tensors[graph->tensor_count].name = name;
    tensors[graph->tensor_count].producer = -1;
    *out = (int32_t)graph->tensor_count++;
    return WG_OK;
}

/* --- Copies of a body's parts ----------------------------------------------------------------- */

static const struct wg_attribute *attribute_of_call(const struct call *call, const char *name)
{
    const struct wg_attribute *given = wg__node_attribute(call->node, name);
    for (size_t i = 0; given == NULL && i < call->function->default_count; i++) {
        if (strcmp(call->function->defaults[i].name, name) == 0)
            given = &call->function->defaults[i];
    }
    return given;
}

static enum wg_code copy_graph(struct inliner *inliner, const struct call *call,
                               struct wg_graph *outer, const int32_t *map,
                               const struct wg_graph *graph, struct wg_graph **out);

/* Attributes that stand for the call's get their value there, or go where it has none. */
static enum wg_code copy_attributes(struct inliner *inliner, const struct call *call,
                                    struct wg_graph *outer, const int32_t *map,
                                    const struct wg_node *node, struct wg_node *out)
{
    struct wg_attribute *copies =
        wg__arena_alloc(inliner->arena, node->attribute_count, sizeof *copies);
    if (copies == NULL)
        return out_of_memory(inliner);
    size_t count = 0;
    for (size_t i = 0; i < node->attribute_count; i++) {
        const struct wg_attribute *attribute = &node->attributes[i];
        const struct wg_attribute *value =
            attribute->ref != NULL ? attribute_of_call(call, attribute->ref) : attribute;
        if (value == NULL)
            continue;
        copies[count] = *value;
        copies[count].name = attribute->name;
        if (attribute->ref == NULL && attribute->graph != NULL) {
            const enum wg_code code =
                copy_graph(inliner, call, outer, map, attribute->graph, &copies[count].graph);
            if (code != WG_OK)
                return code;
        }
        count++;
    }
    out->attributes = copies;
    out->attribute_count = count;
    return WG_OK;
}

static enum wg_code copy_indices(const struct inliner *inliner, const int32_t *indices,
                                 size_t count, const int32_t *map, const int32_t **out)
{
    int32_t *copy = wg__arena_alloc(inliner->arena, count, sizeof *copy);
    if (copy == NULL)
        return out_of_memory(inliner);
    for (size_t i = 0; i < count; i++)
        copy[i] = indices[i] >= 0 ? map[indices[i]] : -1;
    *out = copy;
    return WG_OK;
}

/* A subgraph of a body for one call: the same tensors, which capture those of the caller. */
static enum wg_code copy_graph(struct inliner *inliner, const struct call *call,
                               struct wg_graph *outer, const int32_t *map,
                               const struct wg_graph *graph, struct wg_graph **out)
{
    struct wg_graph *copy = wg__arena_alloc(inliner->arena, 1, sizeof *copy);
    int32_t *same = wg__arena_alloc(inliner->arena, graph->tensor_count, sizeof *same);
    if (copy == NULL || same == NULL)
        return out_of_memory(inliner);
    if (inliner->depth == DEPTH_MAX)
        return wg__fail(inliner->err, WG_EDATA, "%s: functions deeper than %d", inliner->name,
                        DEPTH_MAX);
    *copy = *graph;
    copy->outer = outer;
    copy->tensors = wg__arena_alloc(inliner->arena, graph->tensor_count, sizeof *copy->tensors);
    copy->nodes = wg__arena_alloc(inliner->arena, graph->node_count, sizeof *copy->nodes);
    if (copy->tensors == NULL || copy->nodes == NULL)
        return out_of_memory(inliner);
    for (size_t i = 0; i < graph->tensor_count; i++) {
        copy->tensors[i] = graph->tensors[i];
        if (graph->tensors[i].outer >= 0)
            copy->tensors[i].outer = map[graph->tensors[i].outer];
        same[i] = (int32_t)i;
    }
    inliner->depth++;
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < graph->node_count && code == WG_OK; i++) {
        copy->nodes[i] = graph->nodes[i];
        code = copy_attributes(inliner, call, copy, same, &graph->nodes[i], &copy->nodes[i]);
    }
    inliner->depth--;
    *out = copy;
    return code;
}

/* --- Calls ------------------------------------------------------------------------------------ */

static enum wg_code append(struct inliner *inliner, struct target *target,
                           const struct wg_node *node)
{
    struct wg_node *nodes =
        with_room(inliner, target->nodes, target->count, &target->room, sizeof *nodes);
    if (nodes == NULL)
        return out_of_memory(inliner);
    target->nodes = nodes;
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] >= 0)
            target->graph->tensors[node->outputs[i]].producer = (int32_t)target->count;
    }
    nodes[target->count++] = *node;
    return wg__onnx_constant_node(inliner->arena, target->graph, node, inliner->err);
}

/* What a body hands straight through, or gives out twice. */
static enum wg_code append_identity(struct inliner *inliner, struct target *target,
                                    const struct call *call, int32_t from, int32_t to)
{
    int32_t *ends = wg__arena_alloc(inliner->arena, 2, sizeof *ends);
    if (ends == NULL)
        return out_of_memory(inliner);
    ends[0] = from;
    ends[1] = to;
    const struct wg_node node = {.name = below(inliner, call->prefix, "Identity"),
                                 .op = "Identity",
                                 .domain = "",
                                 .inputs = &ends[0],
                                 .input_count = 1,
                                 .outputs = &ends[1],
                                 .output_count = 1};
    return node.name != NULL ? append(inliner, target, &node) : out_of_memory(inliner);
}

/* The call's tensors for the body's inputs and outputs, new ones for what is between. */
static enum wg_code map_tensors(struct inliner *inliner, struct target *target, struct call *call)
{
    const struct wg_graph *body = call->function->body;
    const struct wg_node *node = call->node;
    enum wg_code code = WG_OK;
    bool *is_mapped = wg__arena_alloc(inliner->arena, body->tensor_count, sizeof *is_mapped);
    call->map = wg__arena_alloc(inliner->arena, body->tensor_count, sizeof *call->map);
    if (is_mapped == NULL || call->map == NULL)
        return out_of_memory(inliner);
    for (size_t i = 0; i < body->input_count; i++) {
        call->map[body->inputs[i]] = i < node->input_count ? node->inputs[i] : -1;
        is_mapped[body->inputs[i]] = true;
    }
    for (size_t i = 0; i < body->output_count && i < node->output_count; i++) {
        const int32_t inner = body->outputs[i];
        if (node->outputs[i] < 0)
            continue;
        if (is_mapped[inner])
            continue; /* an Identity follows the body */
        call->map[inner] = node->outputs[i];
        is_mapped[inner] = true;
    }
    for (size_t i = 0; i < body->tensor_count && code == WG_OK; i++) {
        if (!is_mapped[i])
            code = add_tensor(inliner, target, &body->tensors[i], call->prefix, &call->map[i]);
    }
    return code;
}

static enum wg_code emit_body(struct inliner *inliner, struct target *target,
                              const struct call *call)
{
    const struct wg_graph *body = call->function->body;
    for (size_t i = 0; i < body->node_count; i++) {
        struct wg_node node = body->nodes[i];
        node.name = below(inliner, call->prefix, node.name);
        if (node.name == NULL)
            return out_of_memory(inliner);
        enum wg_code code =
            copy_indices(inliner, node.inputs, node.input_count, call->map, &node.inputs);
        if (code == WG_OK)
            code = copy_indices(inliner, node.outputs, node.output_count, call->map, &node.outputs);
        if (code == WG_OK)
            code = copy_attributes(inliner, call, target->graph, call->map, &body->nodes[i], &node);
        if (code == WG_OK)
            code = emit(inliner, target, &node);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static enum wg_code emit_call(struct inliner *inliner, struct target *target,
                              const struct wg_function *function, const struct wg_node *node)
{
    struct call call = {.function = function, .node = node, .prefix = node->name};
    if (inliner->depth == DEPTH_MAX)
        return wg__fail(inliner->err, WG_EDATA,
                        "%s: functions that call each other, by way of '%.100s'", inliner->name,
                        function->name);
    inliner->part_count += 1 + function->body->node_count + function->body->tensor_count;
    if (inliner->part_count > WG_INLINE_PARTS_MAX)
        return wg__fail(inliner->err, WG_EUNSUPPORTED,
                        "%s: functions of more than %d nodes and tensors in all", inliner->name,
                        WG_INLINE_PARTS_MAX);
    inliner->depth++;
    for (size_t i = 0; i < node->output_count; i++) { /* the call is gone; a body may lack some */
        if (node->outputs[i] >= 0)
            target->graph->tensors[node->outputs[i]].producer = -1;
    }
    enum wg_code code = map_tensors(inliner, target, &call);
    if (code == WG_OK)
        code = emit_body(inliner, target, &call);
    const struct wg_graph *body = function->body;
    for (size_t i = 0; i < body->output_count && i < node->output_count && code == WG_OK; i++) {
        const int32_t inner = call.map[body->outputs[i]];
        if (node->outputs[i] >= 0 && inner != node->outputs[i] && inner >= 0)
            code = append_identity(inliner, target, &call, inner, node->outputs[i]);
    }
    inliner->depth--;
    return code;
}

static enum wg_code emit(struct inliner *inliner, struct target *target, const struct wg_node *node)
{
    const struct wg_function *function = function_of(inliner, node);
    if (function != NULL)
        return emit_call(inliner, target, function, node);
    for (size_t i = 0; i < node->attribute_count; i++) {
        if (node->attributes[i].graph == NULL)
            continue;
        const enum wg_code code = inline_graph(inliner, node->attributes[i].graph);
        if (code != WG_OK)
            return code;
    }
    return append(inliner, target, node);
}

static enum wg_code inline_graph(struct inliner *inliner, struct wg_graph *graph)
{
    struct target target = {.graph = graph, .tensor_room = graph->tensor_count};
    if (inliner->depth == DEPTH_MAX)
        return wg__fail(inliner->err, WG_EDATA, "%s: functions deeper than %d", inliner->name,
                        DEPTH_MAX);
    inliner->depth++;
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < graph->node_count && code == WG_OK; i++)
        code = emit(inliner, &target, &graph->nodes[i]);
    inliner->depth--;
    if (code != WG_OK)
        return code;
    graph->nodes = target.nodes;
    graph->node_count = target.count;
    return WG_OK;
}

enum wg_code wg__graph_inline(struct wg_model *model, const char *name, struct wg_error *err)
{
    struct inliner inliner = {.model = model, .arena = &model->arena, .name = name, .err = err};
    return model->function_count != 0 ? inline_graph(&inliner, model->graph) : WG_OK;
}
