/* SPDX-License-Identifier: MIT
 *
 * GraphProto, NodeProto and FunctionProto become a graph.
 *
 * Nodes come first in a file and name tensors that are described behind them, so a graph is walked
 * twice: once for what it declares (inputs, constants, and the outputs of its nodes), once for the
 * nodes themselves. By then each name that a node reads is one of the graph's own, one of a graph
 * around it, or an error. A Constant node's output is a constant like any other.
 *
 *     count    room for tensors and nodes
 *     walk 1   declare inputs, initializers, outputs of nodes
 *     walk 2   nodes with attributes (and their subgraphs), outputs, value_info
 *     order    graph_order.c: a node behind those it reads from
 *
 * Owns: nothing; what is made is the arena's.    Threads: one thread at a time.
 */
#include <stdio.h>
#include <string.h>

#include "model/graph_order.h"
#include "model/onnx_constant.h"
#include "model/onnx_reader.h"

enum { DEFAULTS_MAX = 256 };

/* A list of tensor indices that grows as a message is walked. */
struct index_list {
    int32_t *indices;
    size_t count, room;
};

struct graph_walk {
    struct wg_onnx_reader *reader;
    struct wg_graph_build build;
    struct index_list inputs, outputs;
};

static enum wg_code list_add(struct graph_walk *walk, const struct wg_wire *wire,
                             struct index_list *list, int32_t index, struct wg_error *err)
{
    if (list->count == list->room) {
        const size_t room = list->room != 0 ? list->room * 2 : 8;
        int32_t *larger = wg__arena_alloc(&walk->reader->model->arena, room, sizeof *larger);
        if (larger == NULL)
            return wg__onnx_out_of_memory(wire, err);
        if (list->count != 0)
            memcpy(larger, list->indices, list->count * sizeof *larger);
        list->indices = larger;
        list->room = room;
    }
    list->indices[list->count++] = index;
    return WG_OK;
}

/* --- Walk 1 ----------------------------------------------------------------------------------- */

/* A ValueInfoProto: its name, and its type where it has one. */
static enum wg_code read_value_info(struct wg_onnx_reader *reader, struct wg_wire wire,
                                    struct wg_tensor *out, struct wg_error *err)
{
    *out = (struct wg_tensor){.name = ""};
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number == 1) {
            code = wg__onnx_text(reader, &wire, &field, "ValueInfoProto.name", &out->name, err);
        } else if (field.number == 2) {
            code = wg__wire_expect(&wire, &field, WG_WIRE_BYTES, "ValueInfoProto.type", err);
            if (code == WG_OK)
                code = wg__onnx_type(reader, wg__wire_inside(&wire, &field), out, err);
        }
        if (code != WG_OK)
            return code;
    }
}

/* What the file says of a tensor; a constant's own type and shape stand. */
static void learn_type(struct wg_tensor *tensor, const struct wg_tensor *told)
{
    if (tensor->constant != NULL)
        return;
    if (told->elem_type != 0)
        tensor->elem_type = told->elem_type;
    if (told->shape.is_known)
        tensor->shape = told->shape;
    if (told->held != NULL)
        tensor->held = told->held;
}

static enum wg_code declare_input(struct graph_walk *walk, const struct wg_wire *wire,
                                  const struct wg_wire_field *field, struct wg_error *err)
{
    struct wg_tensor told;
    int32_t index = -1;
    enum wg_code code = wg__wire_expect(wire, field, WG_WIRE_BYTES, "GraphProto.input", err);
    if (code == WG_OK)
        code = read_value_info(walk->reader, wg__wire_inside(wire, field), &told, err);
    if (code != WG_OK)
        return code;
    code = wg__graph_build_declare(&walk->build, told.name, &index, err);
    if (code != WG_OK)
        return code;
    learn_type(&walk->build.graph->tensors[index], &told);
    return list_add(walk, wire, &walk->inputs, index, err);
}

static enum wg_code declare_constant(struct graph_walk *walk, const struct wg_wire *wire,
                                     const struct wg_wire_field *field, struct wg_error *err)
{
    struct wg_onnx_tensor read;
    int32_t index = -1;
    enum wg_code code = wg__wire_expect(wire, field, WG_WIRE_BYTES, "GraphProto.initializer", err);
    if (code != WG_OK)
        return code;
    const struct wg_wire inside = wg__wire_inside(wire, field);
    code = field->number == 5 ? wg__onnx_tensor(walk->reader, inside, &read, err)
                              : wg__onnx_sparse_tensor(walk->reader, inside, &read, err);
    if (code == WG_OK)
        code = wg__graph_build_declare(&walk->build, read.name, &index, err);
    if (code != WG_OK)
        return code;
    struct wg_tensor *tensor = &walk->build.graph->tensors[index];
    if (tensor->constant != NULL)
        return wg__wire_fail(wire, field->tag, err, "initializer '%.100s' is there twice",
                             read.name);
    tensor->constant = read.constant;
    tensor->elem_type = read.constant->elem_type;
    tensor->shape = read.shape;
    return WG_OK;
}

static enum wg_code declare_outputs_of(struct graph_walk *walk, struct wg_wire wire,
                                       struct wg_error *err)
{
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        const char *name = "";
        int32_t index = -1;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number != 2)
            continue;
        code = wg__onnx_text(walk->reader, &wire, &field, "NodeProto.output", &name, err);
        if (code == WG_OK && name[0] != '\0')
            code = wg__graph_build_declare(&walk->build, name, &index, err);
        if (code != WG_OK)
            return code;
    }
}

static enum wg_code declare_all(struct graph_walk *walk, struct wg_wire wire, struct wg_error *err)
{
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        switch (field.number) {
        case 1:
            code = wg__wire_expect(&wire, &field, WG_WIRE_BYTES, "GraphProto.node", err);
            if (code == WG_OK)
                code = declare_outputs_of(walk, wg__wire_inside(&wire, &field), err);
            break;
        case 5:
        case 15:
            code = declare_constant(walk, &wire, &field, err);
            break;
        case 11:
            code = declare_input(walk, &wire, &field, err);
            break;
        default:
            break;
        }
        if (code != WG_OK)
            return code;
        wg__onnx_passed(walk->reader, wire.at);
    }
}

/* --- Walk 2 ----------------------------------------------------------------------------------- */

struct node_counts {
    size_t inputs, outputs, attributes;
};

static enum wg_code count_parts(struct wg_wire wire, struct node_counts *out, struct wg_error *err)
{
    *out = (struct node_counts){0};
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        const enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        out->inputs += field.number == 1;
        out->outputs += field.number == 2;
        out->attributes += field.number == 5;
    }
}

/* The tensor that a node reads; -1 for one that is left out. */
static enum wg_code resolve_input(struct graph_walk *walk, const struct wg_wire *wire,
                                  const struct wg_wire_field *field, int32_t *out,
                                  struct wg_error *err)
{
    const char *name = "";
    *out = -1;
    enum wg_code code = wg__onnx_text(walk->reader, wire, field, "NodeProto.input", &name, err);
    if (code != WG_OK || name[0] == '\0')
        return code;
    code = wg__graph_build_resolve(&walk->build, name, out, err);
    if (code == WG_OK && *out < 0)
        return wg__wire_fail(wire, field->tag, err, "a node reads '%.100s', which nothing makes",
                             name);
    return code;
}

/* The arrays of a node while they are filled. */
struct node_parts {
    int32_t *inputs, *outputs;
    struct wg_attribute *attributes;
    struct wg_node node;
};

static enum wg_code node_field(struct graph_walk *walk, const struct wg_wire *wire,
                               const struct wg_wire_field *field, struct node_parts *parts,
                               struct wg_error *err)
{
    struct wg_node *node = &parts->node;
    const char *name = "";
    enum wg_code code = WG_OK;
    switch (field->number) {
    case 1:
        return resolve_input(walk, wire, field, &parts->inputs[node->input_count++], err);
    case 2:
        code = wg__onnx_text(walk->reader, wire, field, "NodeProto.output", &name, err);
        if (code == WG_OK)
            parts->outputs[node->output_count++] =
                name[0] != '\0' ? wg__graph_build_find(&walk->build, name) : -1;
        return code;
    case 3:
        return wg__onnx_text(walk->reader, wire, field, "NodeProto.name", &node->name, err);
    case 4:
        return wg__onnx_text(walk->reader, wire, field, "NodeProto.op_type", &node->op, err);
    case 5:
        code = wg__wire_expect(wire, field, WG_WIRE_BYTES, "NodeProto.attribute", err);
        if (code != WG_OK)
            return code;
        return wg__onnx_attribute(walk->reader, wg__wire_inside(wire, field), &walk->build,
                                  &parts->attributes[node->attribute_count++], err);
    case 7:
        code = wg__onnx_text(walk->reader, wire, field, "NodeProto.domain", &node->domain, err);
        if (code == WG_OK && strcmp(node->domain, "ai.onnx") == 0)
            node->domain = ""; /* two spellings of ONNX's own */
        return code;
    default:
        return WG_OK;
    }
}

static enum wg_code make_parts(struct graph_walk *walk, const struct wg_wire *wire,
                               struct node_parts *parts, struct wg_error *err)
{
    struct wg_arena *arena = &walk->reader->model->arena;
    struct node_counts counts;
    const enum wg_code code = count_parts(*wire, &counts, err);
    if (code != WG_OK)
        return code;
    *parts = (struct node_parts){.node = {.name = "", .op = "", .domain = ""}};
    parts->inputs = wg__arena_alloc(arena, counts.inputs, sizeof *parts->inputs);
    parts->outputs = wg__arena_alloc(arena, counts.outputs, sizeof *parts->outputs);
    parts->attributes = wg__arena_alloc(arena, counts.attributes, sizeof *parts->attributes);
    if (parts->inputs == NULL || parts->outputs == NULL || parts->attributes == NULL)
        return wg__onnx_out_of_memory(wire, err);
    parts->node.inputs = parts->inputs;
    parts->node.outputs = parts->outputs;
    parts->node.attributes = parts->attributes;
    return WG_OK;
}

/* "Conv_12" for the graph's node 12, where the file has no name. */
static enum wg_code name_node(struct graph_walk *walk, const struct wg_wire *wire,
                              struct wg_node *node, struct wg_error *err)
{
    char text[96];
    if (node->name[0] != '\0')
        return WG_OK;
    (void)snprintf(text, sizeof text, "%.64s_%zu", node->op, walk->build.graph->node_count);
    node->name = wg__arena_strdup(&walk->reader->model->arena, text);
    return node->name != NULL ? WG_OK : wg__onnx_out_of_memory(wire, err);
}

static enum wg_code read_node(struct graph_walk *walk, struct wg_wire wire, struct wg_error *err)
{
    const uint8_t *begin = wire.at;
    struct node_parts parts = {0};
    enum wg_code code = make_parts(walk, &wire, &parts, err);
    while (code == WG_OK) {
        bool has = false;
        struct wg_wire_field field;
        code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            break;
        code = node_field(walk, &wire, &field, &parts, err);
    }
    if (code == WG_OK && parts.node.op[0] == '\0')
        return wg__wire_fail(&wire, begin, err, "a node without op_type");
    if (code == WG_OK)
        code = name_node(walk, &wire, &parts.node, err);
    for (size_t i = 0; i < parts.node.output_count && code == WG_OK; i++) {
        const int32_t index = parts.outputs[i];
        const struct wg_tensor *made = index >= 0 ? &walk->build.graph->tensors[index] : NULL;
        if (made != NULL && (made->producer >= 0 || made->constant != NULL))
            return wg__wire_fail(&wire, begin, err,
                                 "node '%.100s' makes '%.100s', which is there "
                                 "already",
                                 parts.node.name, made->name);
    }
    if (code == WG_OK)
        code = wg__graph_build_node(&walk->build, &parts.node, err);
    if (code == WG_OK)
        code = wg__onnx_constant_node(&walk->reader->model->arena, walk->build.graph, &parts.node,
                                      err);
    return code;
}

/* An output of the graph, or a value_info; the latter may describe what is no longer there. */
static enum wg_code read_described(struct graph_walk *walk, const struct wg_wire *wire,
                                   const struct wg_wire_field *field, struct wg_error *err)
{
    struct wg_tensor told;
    int32_t index = -1;
    enum wg_code code = wg__wire_expect(wire, field, WG_WIRE_BYTES, "a ValueInfoProto", err);
    if (code == WG_OK)
        code = read_value_info(walk->reader, wg__wire_inside(wire, field), &told, err);
    if (code != WG_OK)
        return code;
    if (field->number == 13)
        index = wg__graph_build_find(&walk->build, told.name);
    else
        code = wg__graph_build_resolve(&walk->build, told.name, &index, err);
    if (code != WG_OK)
        return code;
    if (index >= 0)
        learn_type(&walk->build.graph->tensors[index], &told);
    else if (field->number == 12)
        return wg__wire_fail(wire, field->tag, err, "output '%.100s', which nothing makes",
                             told.name);
    return field->number == 12 ? list_add(walk, wire, &walk->outputs, index, err) : WG_OK;
}

static enum wg_code read_all(struct graph_walk *walk, struct wg_wire wire, struct wg_error *err)
{
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number == 1)
            code = read_node(walk, wg__wire_inside(&wire, &field), err);
        else if (field.number == 2)
            code = wg__onnx_text(walk->reader, &wire, &field, "GraphProto.name",
                                 &walk->build.graph->name, err);
        else if (field.number == 12 || field.number == 13)
            code = read_described(walk, &wire, &field, err);
        if (code != WG_OK)
            return code;
        wg__onnx_passed(walk->reader, wire.at);
    }
}

/* --- Graphs ----------------------------------------------------------------------------------- */

/* Hands the lists over; what is a constant is no input. */
static enum wg_code settle(struct graph_walk *walk, const struct wg_wire *wire,
                           struct wg_error *err)
{
    struct wg_graph *graph = walk->build.graph;
    bool *is_input = wg__arena_alloc(graph->arena, graph->tensor_count, sizeof *is_input);
    if (is_input == NULL)
        return wg__onnx_out_of_memory(wire, err);
    size_t kept = 0;
    for (size_t i = 0; i < walk->inputs.count; i++) {
        const int32_t index = walk->inputs.indices[i];
        if (graph->tensors[index].producer >= 0)
            return wg__wire_fail(
                wire, wire->at, err, "input '%.100s' is made by node '%.100s', too",
                graph->tensors[index].name, graph->nodes[graph->tensors[index].producer].name);
        if (is_input[index])
            return wg__wire_fail(wire, wire->at, err, "input '%.100s' is there twice",
                                 graph->tensors[index].name);
        is_input[index] = true;
        if (graph->tensors[index].constant == NULL)
            walk->inputs.indices[kept++] = index;
    }
    graph->inputs = walk->inputs.indices;
    graph->input_count = kept;
    graph->outputs = walk->outputs.indices;
    graph->output_count = walk->outputs.count;
    return wg__graph_order(graph, wire->name, err);
}

/* How many fields of a message have a number; what is malformed shows in the walks. */
static size_t count_fields(struct wg_wire wire, uint32_t number)
{
    size_t count = 0;
    bool has = true;
    struct wg_wire_field field;
    while (wg__wire_next(&wire, &field, &has, NULL) == WG_OK && has)
        count += field.number == number;
    return count;
}

/* Room for all that the walks will find, so that no array is made twice. */
static enum wg_code reserve(struct graph_walk *walk, struct wg_wire wire, struct wg_error *err)
{
    size_t tensors = 0;
    size_t nodes = 0;
    bool has = true;
    struct wg_wire_field field;
    while (wg__wire_next(&wire, &field, &has, NULL) == WG_OK && has) {
        nodes += field.number == 1;
        if (field.number == 1)
            tensors += count_fields(wg__wire_inside(&wire, &field), 2);
        tensors += field.number == 5 || field.number == 11 || field.number == 15;
        wg__onnx_passed(walk->reader, wire.at);
    }
    return wg__graph_build_reserve(&walk->build, tensors, nodes, err);
}

enum wg_code wg__onnx_graph(struct wg_onnx_reader *reader, struct wg_wire wire,
                            struct wg_graph_build *outer, struct wg_graph **out,
                            struct wg_error *err)
{
    if (reader->depth == WG_ONNX_DEPTH_MAX)
        return wg__wire_fail(&wire, wire.at, err, "graphs within graphs deeper than %d",
                             WG_ONNX_DEPTH_MAX);
    struct graph_walk walk = {.reader = reader};
    enum wg_code code = wg__graph_build_init(&walk.build, &reader->model->arena, "", outer, err);
    if (code != WG_OK)
        return code;
    reader->depth++;
    code = reserve(&walk, wire, err);
    if (code == WG_OK)
        code = declare_all(&walk, wire, err);
    if (code == WG_OK)
        code = read_all(&walk, wire, err);
    if (code == WG_OK)
        code = settle(&walk, &wire, err);
    reader->depth--;
    if (code == WG_OK)
        *out = walk.build.graph;
    wg__graph_build_fini(&walk.build);
    return code;
}

/* --- Functions -------------------------------------------------------------------------------- */

/* An input or output of a function is a name alone. */
static enum wg_code function_name(struct graph_walk *walk, const struct wg_wire *wire,
                                  const struct wg_wire_field *field, struct wg_error *err)
{
    const char *name = "";
    int32_t index = -1;
    enum wg_code code = wg__onnx_text(walk->reader, wire, field, "a function's tensor", &name, err);
    if (code != WG_OK)
        return code;
    if (field->number == 4) {
        code = wg__graph_build_declare(&walk->build, name, &index, err);
        return code == WG_OK ? list_add(walk, wire, &walk->inputs, index, err) : code;
    }
    index = wg__graph_build_find(&walk->build, name);
    if (index < 0)
        return wg__wire_fail(wire, field->tag, err, "output '%.100s', which nothing makes", name);
    return list_add(walk, wire, &walk->outputs, index, err);
}

/* Defaults are few; the array is made anew for each. */
static enum wg_code function_default(struct graph_walk *walk, const struct wg_wire *wire,
                                     const struct wg_wire_field *field, struct wg_function *out,
                                     struct wg_error *err)
{
    const enum wg_code code =
        wg__wire_expect(wire, field, WG_WIRE_BYTES, "FunctionProto.attribute_proto", err);
    if (code != WG_OK)
        return code;
    if (out->default_count == DEFAULTS_MAX)
        return wg__wire_fail(wire, field->tag, err, "a function with more than %d defaults",
                             DEFAULTS_MAX);
    struct wg_attribute *defaults =
        wg__arena_alloc(&walk->reader->model->arena, out->default_count + 1, sizeof *defaults);
    if (defaults == NULL)
        return wg__onnx_out_of_memory(wire, err);
    if (out->default_count != 0)
        memcpy(defaults, out->defaults, out->default_count * sizeof *defaults);
    out->defaults = defaults;
    return wg__onnx_attribute(walk->reader, wg__wire_inside(wire, field), &walk->build,
                              &defaults[out->default_count++], err);
}

/* The first walk's: names, the inputs of 4 and the outputs of each node. */
static enum wg_code function_outline(struct graph_walk *walk, const struct wg_wire *wire,
                                     const struct wg_wire_field *field, struct wg_function *out,
                                     struct wg_error *err)
{
    switch (field->number) {
    case 1:
        return wg__onnx_text(walk->reader, wire, field, "a function's name", &out->name, err);
    case 4:
        return function_name(walk, wire, field, err);
    case 7:
        return declare_outputs_of(walk, wg__wire_inside(wire, field), err);
    case 10:
        return wg__onnx_text(walk->reader, wire, field, "a function's name", &out->domain, err);
    default:
        return WG_OK;
    }
}

/* The second walk's: outputs, nodes and defaults. */
static enum wg_code function_body(struct graph_walk *walk, const struct wg_wire *wire,
                                  const struct wg_wire_field *field, struct wg_function *out,
                                  struct wg_error *err)
{
    switch (field->number) {
    case 5:
        return function_name(walk, wire, field, err);
    case 7:
        return read_node(walk, wg__wire_inside(wire, field), err);
    case 11:
        return function_default(walk, wire, field, out, err);
    default:
        return WG_OK;
    }
}

static enum wg_code walk_function(struct graph_walk *walk, struct wg_wire wire, bool is_first,
                                  struct wg_function *out, struct wg_error *err)
{
    for (;;) {
        bool has = false;
        struct wg_wire_field field;
        enum wg_code code = wg__wire_next(&wire, &field, &has, err);
        if (code != WG_OK || !has)
            return code;
        if (field.number == 7)
            code = wg__wire_expect(&wire, &field, WG_WIRE_BYTES, "FunctionProto.node", err);
        if (code == WG_OK)
            code = (is_first ? function_outline : function_body)(walk, &wire, &field, out, err);
        if (code != WG_OK)
            return code;
    }
}

enum wg_code wg__onnx_function(struct wg_onnx_reader *reader, struct wg_wire wire,
                               struct wg_function *out, struct wg_error *err)
{
    struct graph_walk walk = {.reader = reader};
    *out = (struct wg_function){.domain = "", .name = ""};
    enum wg_code code = wg__graph_build_init(&walk.build, &reader->model->arena, "", NULL, err);
    if (code != WG_OK)
        return code;
    reader->depth++;
    code = walk_function(&walk, wire, true, out, err);
    if (code == WG_OK)
        code = walk_function(&walk, wire, false, out, err);
    if (code == WG_OK)
        code = settle(&walk, &wire, err);
    reader->depth--;
    out->body = walk.build.graph;
    if (code == WG_OK)
        out->body->name = out->name;
    wg__graph_build_fini(&walk.build);
    return code;
}
