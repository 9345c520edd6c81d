/* SPDX-License-Identifier: MIT
 *
 * Walks a model's graph and asks each operator for its outputs (shape_node.h has the picture).
 *
 * Nodes stand in topological order, so one walk suffices. What the file declares of an output
 * (value_info) fills in only what the operators leave unknown: files whose inputs were edited keep
 * old declarations, and what follows from the inputs is right.
 *
 * Owns: see the header.    Threads: one thread at a time.
 */
#include "model/shapes.h"

#include <string.h>

#include "base/alloc.h"
#include "model/shape_node.h"

static const struct wg_shape_family *const families[] = {
    &wg__shape_ops_elementwise, &wg__shape_ops_convolution, &wg__shape_ops_layout,
    &wg__shape_ops_index,       &wg__shape_ops_matrix,      &wg__shape_ops_reduce,
    &wg__shape_ops_normalize,   &wg__shape_ops_quantize,    &wg__shape_ops_recurrent,
    &wg__shape_ops_image,       &wg__shape_ops_generate,    &wg__shape_ops_signal,
    &wg__shape_ops_attention,   &wg__shape_ops_control,     &wg__shape_ops_sequence,
    &wg__shape_ops_microsoft,   &wg__shape_ops_ml,          &wg__shape_ops_training,
};

const struct wg_shape_op *wg__shape_op_find(const char *domain, const char *op)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        if (strcmp(families[i]->domain, domain) != 0)
            continue;
        for (size_t j = 0; j < families[i]->count; j++) {
            if (strcmp(families[i]->ops[j].op, op) == 0)
                return &families[i]->ops[j];
        }
    }
    return NULL;
}

/* --- Bodies ----------------------------------------------------------------------------------- */

static void copy_type(struct wg_tensor *to, const struct wg_tensor *from)
{
    to->elem_type = from->elem_type;
    to->shape = from->shape;
    to->held = from->held;
    to->constant = from->constant;
    to->values = from->values;
    to->value_count = from->value_count;
}

struct wg_graph *wg__shape_body(const struct wg_shape_node *n, const char *attribute)
{
    const struct wg_attribute *found = wg__shape_attribute(n, attribute);
    if (found == NULL || found->type != WG_ATTRIBUTE_GRAPH || found->graph == NULL)
        return NULL;
    struct wg_graph *body = found->graph;
    for (size_t i = 0; i < body->tensor_count; i++) {
        struct wg_tensor *tensor = &body->tensors[i];
        if (tensor->outer >= 0 && body->outer == n->graph)
            copy_type(tensor, &n->graph->tensors[tensor->outer]);
    }
    return body;
}

static const struct wg_function *find_function(const struct wg_shape_node *n)
{
    const struct wg_model *model = n->run->model;
    for (size_t i = 0; i < model->function_count; i++) {
        const struct wg_function *function = &model->functions[i];
        if (strcmp(function->domain, n->node->domain) == 0 &&
            strcmp(function->name, n->node->op) == 0)
            return function;
    }
    return NULL;
}

static void forget(struct wg_tensor *tensor)
{
    tensor->elem_type = WG_ELEM_UNKNOWN;
    tensor->shape = (struct wg_shape){.is_known = false};
    tensor->held = NULL;
    tensor->values = NULL;
    tensor->value_count = 0;
}

/* A body that is being inferred already (a function that calls itself) has no answer. */
static bool is_running(const struct wg_shape_node *n, const struct wg_function *function)
{
    for (; n != NULL; n = n->caller) {
        for (const struct wg_graph *graph = n->graph; graph != NULL; graph = graph->outer) {
            if (graph == function->body)
                return true;
        }
    }
    return false;
}

static enum wg_code infer_call(struct wg_shape_node *n, const struct wg_function *function)
{
    struct wg_graph *body = function->body;
    if (is_running(n, function))
        return WG_OK;
    for (size_t i = 0; i < body->input_count; i++) {
        struct wg_tensor *to = &body->tensors[body->inputs[i]];
        const struct wg_tensor *from = wg__shape_input(n, i);
        forget(to);
        to->constant = NULL;
        if (from != NULL)
            copy_type(to, from);
    }
    const enum wg_code code = wg__shape_graph(n->run, body, n);
    if (code != WG_OK)
        return code;
    for (size_t i = 0; i < body->output_count && i < n->node->output_count; i++) {
        struct wg_tensor *to = wg__shape_output(n, i);
        if (to == NULL)
            continue;
        const struct wg_constant *own = to->constant;
        copy_type(to, &body->tensors[body->outputs[i]]);
        if (own != NULL)
            to->constant = own;
    }
    return WG_OK;
}

/* --- A node ----------------------------------------------------------------------------------- */

/* What the file said of each of a node's outputs, while the node is inferred. */
struct declared {
    struct wg_tensor *tensors;
    size_t room;
};

static enum wg_code set_aside(struct wg_shape_node *n, struct declared *declared)
{
    const size_t count = n->node->output_count;
    if (count > declared->room) {
        struct wg_tensor *larger =
            wg__realloc_array(declared->tensors, count, sizeof *declared->tensors);
        if (larger == NULL)
            return wg__shape_no_memory(n);
        declared->tensors = larger;
        declared->room = count;
    }
    for (size_t i = 0; i < count; i++) {
        struct wg_tensor *tensor = wg__shape_output(n, i);
        if (tensor == NULL)
            continue;
        declared->tensors[i] = *tensor;
        forget(tensor);
    }
    return WG_OK;
}

/* Declared names are those of the author, so they stand before names that operators passed on. */
static void fill_in(struct wg_tensor *tensor, const struct wg_tensor *declared)
{
    if (tensor->held == NULL && tensor->elem_type == WG_ELEM_UNKNOWN && !tensor->shape.is_known)
        tensor->held = declared->held;
    if (tensor->held != NULL)
        return;
    if (tensor->elem_type == WG_ELEM_UNKNOWN)
        tensor->elem_type = declared->elem_type;
    if (!declared->shape.is_known)
        return;
    if (!tensor->shape.is_known) {
        tensor->shape = declared->shape;
        return;
    }
    if (tensor->shape.rank != declared->shape.rank)
        return;
    for (size_t i = 0; i < tensor->shape.rank; i++) {
        const struct wg_dim told = declared->shape.dims[i];
        struct wg_dim *dim = &tensor->shape.dims[i];
        if (!wg__dim_known(*dim) && (wg__dim_known(told) || told.name != NULL))
            *dim = told;
    }
}

static enum wg_code infer_node(struct wg_shape_node *n)
{
    const struct wg_function *function = find_function(n);
    if (function != NULL)
        return infer_call(n, function);
    const struct wg_shape_op *op = wg__shape_op_find(n->node->domain, n->node->op);
    if (op == NULL)
        return WG_OK;
    const enum wg_code code = op->infer != NULL ? op->infer(n) : WG_OK;
    return code == WG_OK && op->evaluate != NULL ? op->evaluate(n) : code;
}

static bool makes_constants(const struct wg_shape_node *n)
{
    for (size_t i = 0; i < n->node->output_count; i++) {
        const struct wg_tensor *tensor = wg__shape_output(n, i);
        if (tensor != NULL && tensor->constant == NULL)
            return false;
    }
    return true;
}

static enum wg_code walk(struct wg_shape_run *run, struct wg_graph *graph,
                         const struct wg_shape_node *caller, struct declared *declared)
{
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct wg_node *node = &graph->nodes[i];
        int64_t opset = wg__model_opset(run->model, node->domain);
        if (opset == 0 && node->domain[0] == '\0')
            opset = wg__model_opset(run->model, "ai.onnx");
        struct wg_shape_node n = {
            .run = run, .graph = graph, .node = node, .opset = opset, .caller = caller};
        if (makes_constants(&n))
            continue;
        enum wg_code code = set_aside(&n, declared);
        if (code == WG_OK && run->visits_left != 0) {
            run->visits_left--;
            code = infer_node(&n);
        }
        if (code != WG_OK)
            return code;
        for (size_t j = 0; j < node->output_count && caller == NULL; j++) {
            struct wg_tensor *tensor = wg__shape_output(&n, j);
            if (tensor != NULL && declared->tensors != NULL)
                fill_in(tensor, &declared->tensors[j]);
        }
    }
    return WG_OK;
}

enum wg_code wg__shape_graph(struct wg_shape_run *run, struct wg_graph *graph,
                             const struct wg_shape_node *caller)
{
    struct declared declared = {.tensors = NULL};
    if (run->depth == WG_SHAPE_DEPTH_MAX)
        run->visits_left = 0; /* whatever follows stays unknown */
    run->depth++;
    const enum wg_code code = walk(run, graph, caller, &declared);
    run->depth--;
    wg__free(declared.tensors);
    return code;
}

enum wg_code wg__shapes_infer(struct wg_model *model, struct wg_error *err)
{
    struct wg_shape_run run = {.model = model,
                               .err = err,
                               .values_left = WG_SHAPE_VALUES_TOTAL,
                               .visits_left = WG_SHAPE_VISITS_MAX};
    return wg__shape_graph(&run, model->graph, NULL);
}
