/* SPDX-License-Identifier: MIT
 *
 * Sequences and optional values: what they hold is followed as one type for all elements.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_pass.h"

static struct wg_held *held_in(const struct wg_shape_node *n, size_t input)
{
    const struct wg_tensor *tensor = wg__shape_input(n, input);
    return tensor != NULL ? tensor->held : NULL;
}

static enum wg_code construct(struct wg_shape_node *n)
{
    struct wg_shape shape = {.is_known = false};
    for (size_t i = 0; i < n->node->input_count; i++) {
        const struct wg_shape *given = wg__shape_in(n, i);
        const struct wg_shape unknown = {.is_known = false};
        if (i == 0 && given != NULL)
            shape = *given;
        else
            wg__shape_union(&shape, given != NULL ? given : &unknown);
    }
    return wg__shape_set_held(n, 0, WG_KIND_SEQUENCE, wg__shape_type_in(n, 0), &shape);
}

static enum wg_code empty(struct wg_shape_node *n)
{
    const int64_t dtype = wg__shape_int(n, "dtype", WG_ELEM_FLOAT);
    return wg__shape_set_held(n, 0, WG_KIND_SEQUENCE,
                              dtype > 0 && dtype <= INT32_MAX ? (int)dtype : WG_ELEM_UNKNOWN, NULL);
}

static enum wg_code insert(struct wg_shape_node *n)
{
    const struct wg_held *held = held_in(n, 0);
    const struct wg_shape *given = wg__shape_in(n, 1);
    struct wg_shape shape = {.is_known = false};
    if (held != NULL)
        shape = held->shape;
    if (given != NULL)
        wg__shape_union(&shape, given);
    else
        shape.is_known = false;
    const int elem_type = held != NULL && held->elem_type != WG_ELEM_UNKNOWN
                              ? held->elem_type
                              : wg__shape_type_in(n, 1);
    return wg__shape_set_held(n, 0, WG_KIND_SEQUENCE, elem_type, &shape);
}

static enum wg_code element(struct wg_shape_node *n)
{
    const struct wg_held *held = held_in(n, 0);
    if (held == NULL || held->kind != WG_KIND_SEQUENCE)
        return WG_OK;
    wg__shape_set_type(n, 0, held->elem_type);
    wg__shape_set(n, 0, &held->shape);
    return WG_OK;
}

static enum wg_code length(struct wg_shape_node *n)
{
    const struct wg_shape out = wg__shape_of_rank(0);
    wg__shape_set_type(n, 0, WG_ELEM_INT64);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* The chunks' length along the axis: the same for all where it divides, or is 1. */
static enum wg_code chunk_length(const struct wg_shape_node *n, struct wg_dim whole,
                                 struct wg_dim *out)
{
    const struct wg_value *values = NULL;
    size_t count = 0;
    const struct wg_shape *of_split = wg__shape_in(n, 1);
    *out = wg__shape_has(n, 1) ? wg__dim_unknown : wg__dim(1);
    const enum wg_code code = wg__shape_values(n, 1, &values, &count);
    if (code != WG_OK || values == NULL || count == 0)
        return code;
    for (size_t i = 0; i < count; i++) {
        if (values[i].kind != WG_VALUE_INT || values[i].i < 0 || values[i].i != values[0].i)
            return WG_OK;
    }
    if (of_split != NULL && of_split->rank == 0 &&
        (values[0].i == 0 || !wg__dim_known(whole) || whole.value % values[0].i != 0))
        return WG_OK;
    *out = wg__dim(values[0].i);
    return WG_OK;
}

static enum wg_code split(struct wg_shape_node *n)
{
    size_t axis = 0;
    const struct wg_shape *data = wg__shape_in(n, 0);
    struct wg_shape shape = {.is_known = false};
    if (data != NULL) {
        enum wg_code code = wg__shape_axis(n, wg__shape_int(n, "axis", 0), data->rank, &axis);
        shape = *data;
        if (code == WG_OK)
            code = chunk_length(n, data->dims[axis], &shape.dims[axis]);
        if (code != WG_OK)
            return code;
        if (!wg__shape_has(n, 1) && wg__shape_int(n, "keepdims", 1) == 0) {
            for (size_t i = axis; i + 1 < shape.rank; i++)
                shape.dims[i] = shape.dims[i + 1];
            shape.rank--;
        }
    }
    return wg__shape_set_held(n, 0, WG_KIND_SEQUENCE, wg__shape_type_in(n, 0), &shape);
}

static enum wg_code concat(struct wg_shape_node *n)
{
    size_t axis = 0;
    const struct wg_held *held = held_in(n, 0);
    const bool is_new = wg__shape_int(n, "new_axis", 0) != 0;
    if (held == NULL)
        return WG_OK;
    wg__shape_set_type(n, 0, held->elem_type);
    if (!held->shape.is_known)
        return WG_OK;
    struct wg_shape out = held->shape;
    enum wg_code code = WG_OK;
    if (is_new)
        code = wg__shape_push(n, &out, wg__dim_unknown);
    if (code == WG_OK)
        code = wg__shape_axis(n, wg__shape_int(n, "axis", 0), out.rank, &axis);
    if (code != WG_OK)
        return code;
    for (size_t i = out.rank - 1; is_new && i > axis; i--)
        out.dims[i] = out.dims[i - 1];
    out.dims[axis] = wg__dim_unknown;
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* A body for each element; other inputs are the same for all, or sequences walked beside it. */
static enum wg_code map(struct wg_shape_node *n)
{
    struct wg_graph *body = wg__shape_body(n, "body");
    if (body == NULL)
        return WG_OK;
    for (size_t i = 0; i < body->input_count && i < n->node->input_count; i++) {
        struct wg_tensor *to = &body->tensors[body->inputs[i]];
        const struct wg_held *held = held_in(n, i);
        const struct wg_shape *shape = held != NULL ? &held->shape : wg__shape_in(n, i);
        const int elem_type = held != NULL ? held->elem_type : wg__shape_type_in(n, i);
        if (elem_type != WG_ELEM_UNKNOWN || n->caller != NULL)
            to->elem_type = elem_type;
        if (shape != NULL && shape->is_known)
            to->shape = *shape;
        else if (n->caller != NULL)
            to->shape.is_known = false;
    }
    enum wg_code code = wg__shape_graph(n->run, body, n->caller);
    for (size_t i = 0; code == WG_OK && i < n->node->output_count && i < body->output_count; i++) {
        const struct wg_tensor *made = &body->tensors[body->outputs[i]];
        code = wg__shape_set_held(n, i, WG_KIND_SEQUENCE, made->elem_type, &made->shape);
    }
    return code;
}

/* --- Optional values -------------------------------------------------------------------------- */

static enum wg_code optional(struct wg_shape_node *n)
{
    const struct wg_held *held = held_in(n, 0);
    if (!wg__shape_has(n, 0))
        return WG_OK;
    if (held != NULL)
        return wg__shape_set_held(n, 0, WG_KIND_OPTIONAL_SEQUENCE, held->elem_type, &held->shape);
    return wg__shape_set_held(n, 0, WG_KIND_OPTIONAL, wg__shape_type_in(n, 0), wg__shape_in(n, 0));
}

static enum wg_code get_element(struct wg_shape_node *n)
{
    const struct wg_held *held = held_in(n, 0);
    if (held == NULL || held->kind == WG_KIND_SEQUENCE)
        return wg__shape_same(n);
    if (held->kind == WG_KIND_OPTIONAL_SEQUENCE)
        return wg__shape_set_held(n, 0, WG_KIND_SEQUENCE, held->elem_type, &held->shape);
    wg__shape_set_type(n, 0, held->elem_type);
    wg__shape_set(n, 0, &held->shape);
    return WG_OK;
}

static enum wg_code has_element(struct wg_shape_node *n)
{
    const struct wg_shape out = wg__shape_of_rank(0);
    wg__shape_set_type(n, 0, WG_ELEM_BOOL);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static const struct wg_shape_op ops[] = {
    {"ConcatFromSequence", concat, NULL},
    {"Optional", optional, NULL},
    {"OptionalGetElement", get_element, NULL},
    {"OptionalHasElement", has_element, NULL},
    {"SequenceAt", element, NULL},
    {"SequenceConstruct", construct, NULL},
    {"SequenceEmpty", empty, NULL},
    {"SequenceErase", wg__shape_same, NULL},
    {"SequenceInsert", insert, NULL},
    {"SequenceLength", length, NULL},
    {"SequenceMap", map, NULL},
    {"SplitToSequence", split, NULL},
};

const struct wg_shape_family wg__shape_ops_sequence = {"", ops, sizeof ops / sizeof ops[0]};
