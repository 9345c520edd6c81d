/* SPDX-License-Identifier: MIT
 *
 * From a graph with shapes to layers and widths: the walk.
 *
 * Each node, in order, is one of these:
 *
 *     static      follows from constants alone: computed once, costs nothing
 *     multiplies  lower_layers.c, lower_sequence.c: CONV and GEMM layers
 *     view        Reshape, Cast, Identity, quantisation: no kernel of its own worth the name
 *     fuses       element-wise, right behind the layer that makes its input, with as many elements:
 *                 bias, batch norm, activation, residual addition
 *     holds       graphs of its own: lower_branches.c
 *     moves       all else: reads its inputs, writes its outputs
 *
 * A node fuses only into the last layer that it waits for: the scaling by a squeeze-and-excitation
 * gate waits for a small layer and writes a large map, so it's a kernel of its own.
 *
 * Owns: scratch memory while it runs.    Threads: one at a time.
 */
#include "model/lower.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/lower_parts.h"
#include "model/onnx.h"

enum { LAYERS_FIRST = 64, LAYERS_MAX = 1 << 20, DEPTH_MAX = 32, NAMES_TRIES = 8 };

/* --- Tensors ---------------------------------------------------------------------------------- */

const struct wg_tensor *wg__lower_input(const struct wg_lower *lower, const struct wg_node *node,
                                        size_t index)
{
    if (index >= node->input_count || node->inputs[index] < 0)
        return NULL;
    return &lower->scope->graph->tensors[node->inputs[index]];
}

struct wg_lower_tensor *wg__lower_state(const struct wg_lower *lower, int32_t tensor)
{
    return &lower->scope->tensors[tensor];
}

struct wg_lower_tensor *wg__lower_input_state(const struct wg_lower *lower,
                                              const struct wg_node *node, size_t index)
{
    if (index >= node->input_count || node->inputs[index] < 0)
        return NULL;
    return wg__lower_state(lower, node->inputs[index]);
}

/* Whether a name stands for the samples: the first dimension of one of the model's inputs. */
static bool is_batch_name(const struct wg_lower *lower, const char *name)
{
    const struct wg_graph *graph = lower->model->graph;
    for (size_t i = 0; i < graph->input_count; i++) {
        const struct wg_shape *shape = &graph->tensors[graph->inputs[i]].shape;
        if (shape->is_known && shape->rank != 0 && shape->dims[0].name != NULL &&
            strcmp(shape->dims[0].name, name) == 0)
            return true;
    }
    return false;
}

static bool size_of(const struct wg_lower *lower, const struct wg_dim *dim, uint64_t *out)
{
    if (dim->value >= 0)
        *out = (uint64_t)dim->value;
    else if (dim->name != NULL && is_batch_name(lower, dim->name))
        *out = lower->opts.batch != 0 ? lower->opts.batch : 1;
    else
        return false;
    return true;
}

bool wg__lower_dims(const struct wg_lower *lower, const struct wg_tensor *tensor, size_t *rank,
                    uint64_t dims[WG_DIMS_MAX])
{
    if (!tensor->shape.is_known)
        return false;
    *rank = tensor->shape.rank;
    for (size_t i = 0; i < tensor->shape.rank; i++) {
        if (!size_of(lower, &tensor->shape.dims[i], &dims[i]))
            return false;
    }
    return true;
}

enum wg_code wg__lower_need_dims(const struct wg_lower *lower, const struct wg_node *node,
                                 const struct wg_tensor *tensor, size_t *rank,
                                 uint64_t dims[WG_DIMS_MAX])
{
    if (wg__lower_dims(lower, tensor, rank, dims))
        return WG_OK;
    size_t at = 0;
    uint64_t size = 0;
    while (at < tensor->shape.rank && size_of(lower, &tensor->shape.dims[at], &size))
        at++;
    if (!tensor->shape.is_known)
        return wg__fail(lower->err, WG_EDATA,
                        "node '%.100s' (%.40s): the shape of '%.100s' is not "
                        "known",
                        node->name, node->op, tensor->name);
    const char *name = tensor->shape.dims[at].name;
    return wg__fail(lower->err, WG_EDATA,
                    "node '%.100s' (%.40s): dimension %zu%s%.60s%s of '%.100s' "
                    "is not known%s",
                    node->name, node->op, at, name != NULL ? " ('" : "", name != NULL ? name : "",
                    name != NULL ? "')" : "", tensor->name,
                    name != NULL ? "; give it a value" : "");
}

uint64_t wg__lower_elements(size_t rank, const uint64_t dims[WG_DIMS_MAX])
{
    uint64_t product = 1;
    for (size_t i = 0; i < rank; i++) {
        if (__builtin_mul_overflow(product, dims[i], &product))
            return 0; /* no tensor that fits anywhere */
    }
    return product;
}

uint64_t wg__lower_size(const struct wg_lower *lower, const struct wg_tensor *tensor)
{
    size_t rank = 0;
    uint64_t dims[WG_DIMS_MAX];
    return wg__lower_dims(lower, tensor, &rank, dims) ? wg__lower_elements(rank, dims) : 0;
}

bool wg__lower_ints(const struct wg_lower *lower, const struct wg_tensor *tensor, int64_t *out,
                    size_t room, size_t *count)
{
    if (tensor->constant != NULL && tensor->constant->element_count <= room)
        return wg__constant_ints(lower->model, tensor->constant, out, room, count, NULL) == WG_OK;
    if (tensor->values == NULL || tensor->value_count > room)
        return false;
    *count = tensor->value_count;
    for (size_t i = 0; i < *count; i++) {
        if (tensor->values[i].kind != WG_VALUE_INT)
            return false;
        out[i] = tensor->values[i].i;
    }
    return true;
}

bool wg__lower_is_one_of(const char *op, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(op, list[i]) == 0)
            return true;
    }
    return false;
}

/* --- Parameters ------------------------------------------------------------------------------- */

/* Operators that hand the same numbers on in another form. */
static bool is_rewrite(const char *op)
{
    static const char *const list[] = {"Cast",     "DequantizeLinear", "Flatten",
                                       "Identity", "QuantizeLinear",   "Reshape",
                                       "Squeeze",  "Transpose",        "Unsqueeze"};
    return wg__lower_is_one_of(op, list, sizeof list / sizeof *list);
}

/* The tensor that the numbers of a static one come from, in whichever graph it is. */
static struct wg_lower_tensor *origin_of(const struct wg_lower *lower, int32_t tensor)
{
    const struct wg_lower_scope *scope = lower->scope;
    for (;;) {
        const struct wg_tensor *at = &scope->graph->tensors[tensor];
        if (at->outer >= 0 && scope->outer != NULL) {
            tensor = at->outer;
            scope = scope->outer;
            continue;
        }
        const struct wg_node *node = at->producer >= 0 ? &scope->graph->nodes[at->producer] : NULL;
        if (node == NULL || !is_rewrite(node->op) || node->input_count == 0 || node->inputs[0] < 0)
            return &scope->tensors[tensor];
        tensor = node->inputs[0];
    }
}

uint64_t wg__lower_count(struct wg_lower *lower, int32_t tensor)
{
    if (!wg__lower_state(lower, tensor)->is_static)
        return 0;
    struct wg_lower_tensor *origin = origin_of(lower, tensor);
    if (origin->is_counted)
        return 0;
    struct wg_lower_counted *note = wg__arena_alloc(&lower->scratch, 1, sizeof *note);
    if (note == NULL) {
        lower->is_out_of_memory = true;
        return 0;
    }
    *note = (struct wg_lower_counted){.tensor = origin, .before = lower->counted};
    lower->counted = note;
    origin->is_counted = true;
    return wg__lower_size(lower, &lower->scope->graph->tensors[tensor]);
}

/* --- Layers ----------------------------------------------------------------------------------- */

static enum wg_code make_room(struct wg_lower *lower)
{
    if (lower->layer_count < lower->layer_room)
        return WG_OK;
    if (lower->layer_count >= LAYERS_MAX)
        return wg__fail(lower->err, WG_EUNSUPPORTED, "network '%.100s': more than %d layers",
                        lower->model->graph->name, LAYERS_MAX);
    const size_t room = lower->layer_room != 0 ? lower->layer_room * 2 : LAYERS_FIRST;
    struct wg_layer *larger = wg__realloc_array(lower->layers, room, sizeof *larger);
    if (larger == NULL)
        return wg__lower_no_memory(lower);
    lower->layers = larger;
    lower->layer_room = room;
    return WG_OK;
}

char *wg__lower_join(struct wg_arena *arena, const char *prefix, const char *name,
                     const char *suffix)
{
    const size_t a = strlen(prefix);
    const size_t b = strlen(name);
    const size_t c = strlen(suffix);
    char *text = wg__arena_alloc(arena, a + b + c + 1, 1);
    if (text != NULL)
        (void)snprintf(text, a + b + c + 1, "%s%s%s", prefix, name, suffix);
    return text;
}

enum wg_code wg__lower_add(struct wg_lower *lower, const struct wg_node *node,
                           const struct wg_layer *layer)
{
    const enum wg_code code = make_room(lower);
    if (code != WG_OK)
        return code;
    struct wg_arena *arena = &lower->out->arena;
    struct wg_layer *added = &lower->layers[lower->layer_count];
    *added = *layer;
    added->kernel = (struct wg_kernel){.split_k = 1, .cluster_m = 1, .cluster_n = 1};
    added->name =
        wg__lower_join(arena, lower->prefix, node->name, layer->name != NULL ? layer->name : "");
    added->op = wg__arena_strdup(arena, node->op);
    if (added->name == NULL || added->op == NULL)
        return wg__lower_no_memory(lower);
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] >= 0)
            wg__lower_state(lower, node->outputs[i])->maker = (int32_t)lower->layer_count;
    }
    lower->layer_count++;
    return WG_OK;
}

/* --- The walk --------------------------------------------------------------------------------- */

static bool has_subgraph(const struct wg_node *node)
{
    for (size_t i = 0; i < node->attribute_count; i++) {
        if (node->attributes[i].graph != NULL)
            return true;
    }
    return false;
}

/* Whether a node's results are the same at every call. */
static bool is_static(const struct wg_lower *lower, const struct wg_node *node)
{
    static const char *const random[] = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                         "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
    if (strcmp(node->op, "Constant") == 0 || strcmp(node->op, "Shape") == 0 ||
        strcmp(node->op, "Size") == 0)
        return true;
    if (node->input_count == 0 || has_subgraph(node) ||
        wg__lower_is_one_of(node->op, random, sizeof random / sizeof *random))
        return false;
    for (size_t i = 0; i < node->input_count; i++) {
        const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, i);
        if (state != NULL && !state->is_static)
            return false;
    }
    return true;
}

static enum wg_code lower_node(struct wg_lower *lower, const struct wg_node *node)
{
    if (node->output_count == 0)
        return WG_OK;
    if (is_static(lower, node)) {
        for (size_t i = 0; i < node->output_count; i++) {
            if (node->outputs[i] >= 0)
                wg__lower_state(lower, node->outputs[i])->is_static = true;
        }
        return WG_OK;
    }
    const bool is_ours = node->domain[0] == '\0' || strcmp(node->domain, "com.microsoft") == 0;
    if (has_subgraph(node))
        return wg__lower_subgraphs(lower, node);
    const wg_lower_layer_fn layer = is_ours ? wg__lower_layer_of(node) : NULL;
    if (layer != NULL) {
        const enum wg_code code = layer(lower, node);
        if (code != WG_EUNSUPPORTED)
            return code;
    }
    return wg__lower_plain(lower, node, is_ours);
}

static enum wg_code open_scope(struct wg_lower *lower, const struct wg_graph *graph,
                               struct wg_lower_scope *scope)
{
    *scope = (struct wg_lower_scope){.graph = graph, .outer = lower->scope};
    scope->tensors = wg__arena_alloc(&lower->scratch, graph->tensor_count, sizeof *scope->tensors);
    if (scope->tensors == NULL)
        return wg__lower_no_memory(lower);
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct wg_tensor *tensor = &graph->tensors[i];
        struct wg_lower_tensor *state = &scope->tensors[i];
        if (tensor->outer >= 0 && scope->outer != NULL)
            *state = scope->outer->tensors[tensor->outer];
        else
            *state = (struct wg_lower_tensor){.label = {.axis = -1}, .maker = -1};
        state->is_static = state->is_static || tensor->constant != NULL || tensor->values != NULL;
    }
    return WG_OK;
}

enum wg_code wg__lower_graph(struct wg_lower *lower, const struct wg_graph *graph)
{
    struct wg_lower_scope scope;
    if (lower->depth == DEPTH_MAX)
        return wg__fail(lower->err, WG_EUNSUPPORTED, "graph '%.100s': deeper than %d graphs",
                        graph->name, DEPTH_MAX);
    enum wg_code code = open_scope(lower, graph, &scope);
    if (code != WG_OK)
        return code;
    lower->scope = &scope;
    lower->depth++;
    for (size_t i = 0; i < graph->node_count && code == WG_OK; i++) {
        code = lower_node(lower, &graph->nodes[i]);
        if (code == WG_OK && lower->is_out_of_memory)
            code = wg__lower_no_memory(lower);
    }
    for (size_t i = 0; i < graph->output_count && code == WG_OK; i++)
        wg__lower_fix(lower, &scope.tensors[graph->outputs[i]].label);
    lower->depth--;
    lower->scope = scope.outer;
    return code;
}

/* --- The network ------------------------------------------------------------------------------ */

struct named_layer {
    const char *name;
    size_t index;
};

static int by_name(const void *a, const void *b)
{
    const struct named_layer *x = a;
    const struct named_layer *y = b;
    const int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Gives all but the first layer of a name another one; false: none had to change. */
static bool rename_twins(struct wg_lower *lower, struct named_layer *sorted, enum wg_code *code)
{
    bool has_changed = false;
    const size_t count = lower->layer_count;
    for (size_t i = 0; i < count; i++)
        sorted[i] = (struct named_layer){lower->layers[i].name, i};
    qsort(sorted, count, sizeof *sorted, by_name);
    for (size_t i = 1; i < count && *code == WG_OK; i++) {
        if (strcmp(sorted[i].name, sorted[i - 1].name) != 0)
            continue;
        char suffix[32];
        (void)snprintf(suffix, sizeof suffix, "#%zu", sorted[i].index);
        struct wg_layer *layer = &lower->layers[sorted[i].index];
        layer->name = wg__lower_join(&lower->out->arena, "", layer->name, suffix);
        if (layer->name == NULL)
            *code = wg__lower_no_memory(lower);
        has_changed = true;
    }
    return has_changed;
}

static enum wg_code settle(struct wg_lower *lower)
{
    struct wg_network *out = lower->out;
    enum wg_code code = WG_OK;
    struct named_layer *sorted =
        wg__arena_alloc(&lower->scratch, lower->layer_count, sizeof *sorted);
    if (sorted == NULL)
        return wg__lower_no_memory(lower);
    for (int i = 0; i < NAMES_TRIES && code == WG_OK; i++) {
        if (!rename_twins(lower, sorted, &code))
            break;
    }
    if (code == WG_OK)
        code = wg__lower_settle_widths(lower);
    if (code != WG_OK)
        return code;
    out->layers = wg__arena_alloc(&out->arena, lower->layer_count, sizeof *out->layers);
    out->name = wg__arena_strdup(&out->arena, lower->model->graph->name);
    if (out->layers == NULL || out->name == NULL)
        return wg__lower_no_memory(lower);
    if (lower->layer_count != 0)
        memcpy(out->layers, lower->layers, lower->layer_count * sizeof *out->layers);
    out->layer_count = lower->layer_count;
    return WG_OK;
}

enum wg_code wg__lower(struct wg_network *out, const struct wg_model *model,
                       const struct wg_lower_opts *opts, struct wg_error *err)
{
    struct wg_network network = {0};
    struct wg_lower lower = {
        .model = model, .opts = *opts, .out = &network, .prefix = "", .err = err};
    wg__arena_init(&network.arena);
    wg__arena_init(&lower.scratch);
    enum wg_code code = wg__lower_graph(&lower, model->graph);
    if (code == WG_OK)
        code = settle(&lower);
    wg__free(lower.layers);
    wg__free(lower.widths);
    wg__arena_fini(&lower.scratch);
    if (code == WG_OK)
        *out = network;
    else
        wg__arena_fini(&network.arena);
    return code;
}
