/* SPDX-License-Identifier: MIT
 *
 * What operators' shape functions share: reading a node, filling in its outputs.
 *
 * Owns: see the header.    Threads: one thread at a time.
 */
#include "model/shape_node.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

bool wg__shape_has(const struct wg_shape_node *n, size_t input)
{
    return input < n->node->input_count && n->node->inputs[input] >= 0;
}

static bool wants(const struct wg_shape_node *n, size_t output)
{
    return output < n->node->output_count && n->node->outputs[output] >= 0;
}

struct wg_tensor *wg__shape_input(const struct wg_shape_node *n, size_t input)
{
    return wg__shape_has(n, input) ? &n->graph->tensors[n->node->inputs[input]] : NULL;
}

struct wg_tensor *wg__shape_output(const struct wg_shape_node *n, size_t output)
{
    return wants(n, output) ? &n->graph->tensors[n->node->outputs[output]] : NULL;
}

const struct wg_shape *wg__shape_in(const struct wg_shape_node *n, size_t input)
{
    const struct wg_tensor *tensor = wg__shape_input(n, input);
    return tensor != NULL && tensor->held == NULL && tensor->shape.is_known ? &tensor->shape : NULL;
}

int wg__shape_type_in(const struct wg_shape_node *n, size_t input)
{
    const struct wg_tensor *tensor = wg__shape_input(n, input);
    return tensor != NULL && tensor->held == NULL ? tensor->elem_type : WG_ELEM_UNKNOWN;
}

/* --- Attributes ------------------------------------------------------------------------------- */

const struct wg_attribute *wg__shape_attribute(const struct wg_shape_node *n, const char *name)
{
    const struct wg_attribute *attribute = wg__node_attribute(n->node, name);
    while (attribute != NULL && attribute->ref != NULL) {
        n = n->caller;
        if (n == NULL)
            return NULL;
        attribute = wg__node_attribute(n->node, attribute->ref);
    }
    return attribute;
}

int64_t wg__shape_int(const struct wg_shape_node *n, const char *name, int64_t fallback)
{
    const struct wg_attribute *attribute = wg__shape_attribute(n, name);
    return attribute != NULL && attribute->type == WG_ATTRIBUTE_INT ? attribute->i : fallback;
}

const int64_t *wg__shape_ints(const struct wg_shape_node *n, const char *name, size_t *count_out)
{
    static const int64_t none = 0;
    const struct wg_attribute *attribute = wg__shape_attribute(n, name);
    *count_out = 0;
    if (attribute == NULL || attribute->type != WG_ATTRIBUTE_INTS)
        return NULL;
    *count_out = attribute->count;
    return attribute->count != 0 ? attribute->ints : &none;
}

bool wg__shape_text_is(const struct wg_shape_node *n, const char *name, const char *text)
{
    const struct wg_attribute *attribute = wg__shape_attribute(n, name);
    return attribute != NULL && attribute->type == WG_ATTRIBUTE_STRING &&
           attribute->s_length == strlen(text) &&
           memcmp(attribute->s, text, attribute->s_length) == 0;
}

/* --- Outputs ---------------------------------------------------------------------------------- */

void wg__shape_set_type(struct wg_shape_node *n, size_t output, int elem_type)
{
    struct wg_tensor *tensor = wg__shape_output(n, output);
    if (tensor != NULL)
        tensor->elem_type = elem_type;
}

void wg__shape_set(struct wg_shape_node *n, size_t output, const struct wg_shape *shape)
{
    struct wg_tensor *tensor = wg__shape_output(n, output);
    if (tensor != NULL)
        tensor->shape = *shape;
}

void wg__shape_pass_type(struct wg_shape_node *n, size_t input, size_t output)
{
    wg__shape_set_type(n, output, wg__shape_type_in(n, input));
}

void wg__shape_pass(struct wg_shape_node *n, size_t input, size_t output)
{
    const struct wg_tensor *from = wg__shape_input(n, input);
    struct wg_tensor *to = wg__shape_output(n, output);
    if (from == NULL || to == NULL)
        return;
    to->elem_type = from->elem_type;
    to->shape = from->shape;
    to->held = from->held;
}

enum wg_code wg__shape_set_held(struct wg_shape_node *n, size_t output, enum wg_kind kind,
                                int elem_type, const struct wg_shape *shape)
{
    struct wg_tensor *tensor = wg__shape_output(n, output);
    if (tensor == NULL)
        return WG_OK;
    struct wg_held *held = wg__arena_alloc(&n->run->model->arena, 1, sizeof *held);
    if (held == NULL)
        return wg__shape_no_memory(n);
    held->kind = kind;
    held->elem_type = elem_type;
    if (shape != NULL)
        held->shape = *shape;
    tensor->held = held;
    return WG_OK;
}

enum wg_code wg__shape_refuse(const struct wg_shape_node *n, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    if (wg__format(text, sizeof text, format, args) < 0)
        text[0] = '\0';
    va_end(args);
    return wg__fail(n->run->err, WG_EDATA, "node '%.60s' (%.24s): %s", n->node->name, n->node->op,
                    text);
}

enum wg_code wg__shape_no_memory(const struct wg_shape_node *n)
{
    return wg__fail(n->run->err, WG_ENOMEM, "node '%.60s' (%.24s): out of memory for its shapes",
                    n->node->name, n->node->op);
}

const char *wg__shape_name(const struct wg_shape_node *n, size_t input)
{
    const struct wg_tensor *tensor = wg__shape_input(n, input);
    return tensor != NULL ? tensor->name : "-";
}
