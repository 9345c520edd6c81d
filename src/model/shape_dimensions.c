/* SPDX-License-Identifier: MIT
 *
 * Gives named and unknown dimensions of a model's inputs their numbers.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include <string.h>

#include "base/buffer.h"
#include "base/number.h"
#include "model/shapes.h"

static bool replace_in_shape(struct wg_shape *shape, const char *name, int64_t value)
{
    bool found = false;
    for (size_t i = 0; shape->is_known && i < shape->rank; i++) {
        struct wg_dim *dim = &shape->dims[i];
        if (dim->value != WG_DIM_UNKNOWN || dim->name == NULL || strcmp(dim->name, name) != 0)
            continue;
        *dim = (struct wg_dim){.value = value};
        found = true;
    }
    return found;
}

/* A name means the same dimension in the graph and all within it. */
static void replace(struct wg_graph *graph, const char *name, int64_t value)
{
    for (size_t i = 0; i < graph->tensor_count; i++) {
        (void)replace_in_shape(&graph->tensors[i].shape, name, value);
        if (graph->tensors[i].held != NULL)
            (void)replace_in_shape(&graph->tensors[i].held->shape, name, value);
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        for (size_t j = 0; j < graph->nodes[i].attribute_count; j++) {
            struct wg_graph *body = graph->nodes[i].attributes[j].graph;
            if (body != NULL)
                replace(body, name, value);
        }
    }
}

static bool has_name(const struct wg_graph *graph, const char *name)
{
    for (size_t i = 0; i < graph->input_count; i++) {
        const struct wg_tensor *tensor = &graph->tensors[graph->inputs[i]];
        const struct wg_shape *shape = tensor->held != NULL ? &tensor->held->shape : &tensor->shape;
        for (size_t j = 0; shape->is_known && j < shape->rank; j++) {
            const struct wg_dim dim = shape->dims[j];
            if (dim.value == WG_DIM_UNKNOWN && dim.name != NULL && strcmp(dim.name, name) == 0)
                return true;
        }
    }
    return false;
}

/* "x:0": an input's name may hold colons, the axis is behind the last one. */
static struct wg_dim *find_axis(struct wg_graph *graph, const char *name)
{
    uint64_t axis = 0;
    const char *colon = strrchr(name, ':');
    if (colon == NULL || !wg__parse_uint64(colon + 1, &axis))
        return NULL;
    for (size_t i = 0; i < graph->input_count; i++) {
        struct wg_tensor *tensor = &graph->tensors[graph->inputs[i]];
        if (strlen(tensor->name) == (size_t)(colon - name) &&
            strncmp(tensor->name, name, (size_t)(colon - name)) == 0)
            return tensor->shape.is_known && axis < tensor->shape.rank ? &tensor->shape.dims[axis]
                                                                       : NULL;
    }
    return NULL;
}

static void list_dimensions(const struct wg_graph *graph, struct wg_buffer *out)
{
    for (size_t i = 0; i < graph->input_count; i++) {
        const struct wg_tensor *tensor = &graph->tensors[graph->inputs[i]];
        for (size_t j = 0; tensor->shape.is_known && j < tensor->shape.rank; j++) {
            const struct wg_dim dim = tensor->shape.dims[j];
            if (dim.value != WG_DIM_UNKNOWN)
                continue;
            wg__buffer_printf(out, "%s%.40s:%zu", out->length != 0 ? ", " : "", tensor->name, j);
            if (dim.name != NULL)
                wg__buffer_printf(out, " (%.40s)", dim.name);
        }
    }
    if (out->length == 0)
        wg__buffer_puts(out, "none");
}

static enum wg_code no_such_dimension(const struct wg_graph *graph, const char *name,
                                      struct wg_error *err)
{
    struct wg_buffer list;
    wg__buffer_init(&list);
    list_dimensions(graph, &list);
    const enum wg_code code =
        list.failed ? wg__fail(err, WG_ENOMEM, "dimension '%.60s': out of memory", name)
                    : wg__fail(err, WG_EINVAL, "no open dimension '%.60s' in the inputs; open: %s",
                               name, list.data);
    wg__buffer_fini(&list);
    return code;
}

enum wg_code wg__shapes_set_dim(struct wg_model *model, const char *name, int64_t value,
                                struct wg_error *err)
{
    if (value < 1)
        return wg__fail(err, WG_EINVAL, "dimension '%.60s' = %lld, expected 1 or more", name,
                        (long long)value);
    if (has_name(model->graph, name)) {
        replace(model->graph, name, value);
        return WG_OK;
    }
    struct wg_dim *dim = find_axis(model->graph, name);
    if (dim == NULL || dim->value != WG_DIM_UNKNOWN)
        return no_such_dimension(model->graph, name, err);
    if (dim->name != NULL)
        replace(model->graph, dim->name, value);
    else
        *dim = (struct wg_dim){.value = value};
    return WG_OK;
}
