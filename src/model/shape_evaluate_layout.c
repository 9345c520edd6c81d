/* SPDX-License-Identifier: MIT
 *
 * Values made from shapes, and values moved about: Shape, Gather, Concat, Slice and the like.
 *
 * The outputs' shapes are known by the time these run; they only move elements.
 *
 * Owns: see shape_evaluate.h.    Threads: one thread at a time.
 */
#include <math.h>
#include <string.h>

#include "model/shape_evaluate.h"

static struct wg_value of_dim(struct wg_dim dim)
{
    if (wg__dim_known(dim))
        return (struct wg_value){.kind = WG_VALUE_INT, .i = dim.value};
    if (dim.name != NULL)
        return (struct wg_value){.kind = WG_VALUE_NAMED, .name = dim.name};
    return (struct wg_value){.kind = WG_VALUE_UNKNOWN};
}

enum wg_code wg__evaluate_pass(struct wg_shape_node *n)
{
    const struct wg_value *values = NULL;
    size_t count = 0;
    const enum wg_code code = wg__shape_values(n, 0, &values, &count);
    if (code == WG_OK && values != NULL)
        wg__shape_set_values(n, 0, values, count);
    return code;
}

static size_t clamp_axis(int64_t axis, size_t rank)
{
    const int64_t signed_rank = (int64_t)rank;
    if (axis < 0)
        axis += signed_rank;
    if (axis < 0)
        return 0;
    return axis > signed_rank ? rank : (size_t)axis;
}

enum wg_code wg__evaluate_shape(struct wg_shape_node *n)
{
    const struct wg_shape *shape = wg__shape_in(n, 0);
    struct wg_value *made = NULL;
    if (shape == NULL)
        return WG_OK;
    const size_t first = clamp_axis(wg__shape_int(n, "start", 0), shape->rank);
    const size_t last = clamp_axis(wg__shape_int(n, "end", (int64_t)shape->rank), shape->rank);
    const size_t count = last > first ? last - first : 0;
    const enum wg_code code = wg__shape_new_values(n, count, &made);
    if (code != WG_OK || made == NULL)
        return code;
    for (size_t i = 0; i < count; i++)
        made[i] = of_dim(shape->dims[first + i]);
    wg__shape_set_values(n, 0, made, count);
    return WG_OK;
}

enum wg_code wg__evaluate_size(struct wg_shape_node *n)
{
    const struct wg_shape *shape = wg__shape_in(n, 0);
    struct wg_value *made = NULL;
    struct wg_dim size = wg__dim_unknown;
    if (shape == NULL)
        return WG_OK;
    enum wg_code code = wg__shape_product(n, shape, 0, shape->rank, &size);
    if (code == WG_OK)
        code = wg__shape_new_values(n, 1, &made);
    if (code != WG_OK || made == NULL)
        return code;
    made[0] = of_dim(size);
    wg__shape_set_values(n, 0, made, 1);
    return WG_OK;
}

/* An input's value with its shape, where the two fit; `values` NULL otherwise. */
struct source {
    const struct wg_shape *shape;
    const struct wg_value *values;
    size_t count;
};

static enum wg_code get_source(const struct wg_shape_node *n, size_t input, struct source *out)
{
    size_t expected = 0;
    *out = (struct source){.shape = wg__shape_in(n, input)};
    const enum wg_code code = wg__shape_values(n, input, &out->values, &out->count);
    if (out->shape == NULL || !wg__shape_count(out->shape, WG_SHAPE_VALUES_MAX, &expected) ||
        expected != out->count)
        out->values = NULL;
    return code;
}

/* Elements of dims first .. last - 1; all are known where this is called. */
static size_t span(const struct wg_shape *shape, size_t first, size_t last)
{
    size_t count = 1;
    for (size_t i = first; i < last; i++)
        count *= (size_t)shape->dims[i].value;
    return count;
}

/* Room for the first output, whose shape must be known and small; NULL: it isn't. */
static enum wg_code make_output(const struct wg_shape_node *n, size_t output,
                                const struct wg_shape **shape, struct wg_value **made,
                                size_t *count)
{
    const struct wg_tensor *tensor = wg__shape_output(n, output);
    *made = NULL;
    if (tensor == NULL || !wg__shape_count(&tensor->shape, WG_SHAPE_VALUES_MAX, count))
        return WG_OK;
    *shape = &tensor->shape;
    return wg__shape_new_values(n, *count, made);
}

enum wg_code wg__evaluate_gather(struct wg_shape_node *n)
{
    struct source data, indices;
    const struct wg_shape *shape = NULL;
    struct wg_value *made = NULL;
    size_t count = 0, axis = 0;
    enum wg_code code = get_source(n, 0, &data);
    if (code != WG_OK || data.values == NULL)
        return code;
    code = get_source(n, 1, &indices);
    if (code != WG_OK || indices.values == NULL)
        return code;
    code = wg__shape_axis(n, wg__shape_int(n, "axis", 0), data.shape->rank, &axis);
    if (code == WG_OK)
        code = make_output(n, 0, &shape, &made, &count);
    if (code != WG_OK || made == NULL)
        return code;
    const int64_t along = data.shape->dims[axis].value;
    const size_t inner = span(data.shape, axis + 1, data.shape->rank);
    for (size_t i = 0; i < count; i++) {
        const size_t outer = i / (inner * indices.count);
        const struct wg_value index = indices.values[i / inner % indices.count];
        if (index.kind != WG_VALUE_INT)
            continue;
        if (index.i < -along || index.i >= along)
            return wg__shape_refuse(n, "index %lld of '%.40s' is outside '%.40s', %lld long",
                                    (long long)index.i, wg__shape_name(n, 1), wg__shape_name(n, 0),
                                    (long long)along);
        const size_t at = (size_t)(index.i < 0 ? index.i + along : index.i);
        made[i] = data.values[(outer * (size_t)along + at) * inner + i % inner];
    }
    wg__shape_set_values(n, 0, made, count);
    return WG_OK;
}

/* Copies one input of a Concat to where it belongs. */
static void place_part(struct wg_value *made, const struct wg_shape *shape, size_t axis,
                       size_t offset, const struct source *part)
{
    const size_t inner = span(shape, axis + 1, shape->rank);
    const size_t whole = (size_t)shape->dims[axis].value * inner;
    const size_t length = (size_t)part->shape->dims[axis].value * inner;
    const size_t outer = span(shape, 0, axis);
    for (size_t i = 0; i < outer; i++)
        memcpy(made + i * whole + offset * inner, part->values + i * length, length * sizeof *made);
}

/* Parts whose value isn't known leave their elements unknown. */
enum wg_code wg__evaluate_concat(struct wg_shape_node *n)
{
    const struct wg_shape *shape = NULL;
    struct wg_value *made = NULL;
    struct source part;
    size_t count = 0, axis = 0, offset = 0;
    bool any = false;
    const struct wg_tensor *out = wg__shape_output(n, 0);
    if (out == NULL || !out->shape.is_known || out->shape.rank > 2 ||
        !wg__type_is_int(out->elem_type))
        return WG_OK; /* big ones are activations, not shapes */
    enum wg_code code = wg__shape_axis(n, wg__shape_int(n, "axis", 0), out->shape.rank, &axis);
    if (code == WG_OK)
        code = make_output(n, 0, &shape, &made, &count);
    for (size_t i = 0; code == WG_OK && made != NULL && i < n->node->input_count; i++) {
        const struct wg_shape *of_part = wg__shape_in(n, i);
        code = get_source(n, i, &part);
        if (code == WG_OK && part.values != NULL) {
            place_part(made, shape, axis, offset, &part);
            any = true;
        }
        if (of_part == NULL || !wg__dim_known(of_part->dims[axis]))
            return code;
        offset += (size_t)of_part->dims[axis].value;
    }
    if (code == WG_OK && any)
        wg__shape_set_values(n, 0, made, count);
    return code;
}

/* Out of a tensor, along each axis `first + i * step`. */
struct picking {
    size_t rank;
    int64_t first[WG_DIMS_MAX], step[WG_DIMS_MAX];
};

static void pick(struct wg_value *made, size_t count, const struct wg_shape *shape,
                 const struct source *data, const struct picking *picking)
{
    for (size_t i = 0; i < count; i++) {
        size_t rest = i, at = 0, stride = 1;
        for (size_t axis = shape->rank; axis-- > 0;) {
            const size_t dim = (size_t)shape->dims[axis].value;
            const int64_t index =
                picking->first[axis] + (int64_t)(rest % dim) * picking->step[axis];
            at += (size_t)index * stride;
            stride *= (size_t)data->shape->dims[axis].value;
            rest /= dim;
        }
        made[i] = data->values[at];
    }
}

/* Where a slice begins on an axis of `dim`. */
static int64_t slice_first(int64_t start, int64_t dim, int64_t step)
{
    const int64_t first = start < 0 ? start + dim : start;
    const int64_t last = dim - (step < 0);
    if (first < 0)
        return 0;
    return first > last ? last : first;
}

static enum wg_code read_slice(struct wg_shape_node *n, const struct source *data,
                               struct picking *picking, bool *has_out)
{
    struct wg_shape_list starts, axes, steps;
    enum wg_code code = wg__shape_list(n, "starts", 1, &starts);
    if (code == WG_OK)
        code = wg__shape_list(n, "axes", 3, &axes);
    if (code == WG_OK)
        code = wg__shape_list(n, NULL, 4, &steps);
    if (code != WG_OK)
        return code;
    *has_out = starts.is_known && axes.is_known && steps.is_known;
    picking->rank = data->shape->rank;
    for (size_t i = 0; i < picking->rank; i++) {
        picking->first[i] = 0;
        picking->step[i] = 1;
    }
    for (size_t i = 0; *has_out && i < starts.count; i++) {
        size_t axis = 0;
        code = wg__shape_axis(n, axes.is_given ? axes.values[i] : (int64_t)i, picking->rank, &axis);
        if (code != WG_OK)
            return code;
        picking->step[axis] = steps.is_given ? steps.values[i] : 1;
        picking->first[axis] =
            slice_first(starts.values[i], data->shape->dims[axis].value, picking->step[axis]);
    }
    return WG_OK;
}

enum wg_code wg__evaluate_slice(struct wg_shape_node *n)
{
    struct source data;
    struct picking picking = {.rank = 0};
    const struct wg_shape *shape = NULL;
    struct wg_value *made = NULL;
    size_t count = 0;
    bool has = false;
    enum wg_code code = get_source(n, 0, &data);
    if (code != WG_OK || data.values == NULL)
        return code;
    code = read_slice(n, &data, &picking, &has);
    if (code != WG_OK || !has)
        return code;
    code = make_output(n, 0, &shape, &made, &count);
    if (code != WG_OK || made == NULL || shape == NULL)
        return code;
    pick(made, count, shape, &data, &picking);
    wg__shape_set_values(n, 0, made, count);
    return WG_OK;
}

enum wg_code wg__evaluate_split(struct wg_shape_node *n)
{
    struct source data;
    struct picking picking = {.rank = 0};
    size_t axis = 0, count = 0;
    int64_t offset = 0;
    enum wg_code code = get_source(n, 0, &data);
    if (code != WG_OK || data.values == NULL)
        return code;
    code = wg__shape_axis(n, wg__shape_int(n, "axis", 0), data.shape->rank, &axis);
    if (code != WG_OK)
        return code;
    for (size_t i = 0; i < WG_DIMS_MAX; i++)
        picking.step[i] = 1;
    for (size_t i = 0; i < n->node->output_count; i++) {
        const struct wg_shape *shape = NULL;
        struct wg_value *made = NULL;
        code = make_output(n, i, &shape, &made, &count);
        if (code != WG_OK || made == NULL || shape == NULL)
            return code;
        picking.first[axis] = offset;
        offset += shape->dims[axis].value;
        if (offset > data.shape->dims[axis].value)
            return WG_OK;
        pick(made, count, shape, &data, &picking);
        wg__shape_set_values(n, i, made, count);
    }
    return WG_OK;
}

/* Reads at a multi-dimensional place, by strides of our own. */
static void gather_strided(struct wg_value *made, size_t count, const struct wg_shape *shape,
                           const struct wg_value *values, const size_t *strides,
                           const size_t *modulus)
{
    for (size_t i = 0; i < count; i++) {
        size_t rest = i, at = 0;
        for (size_t axis = shape->rank; axis-- > 0;) {
            const size_t dim = (size_t)shape->dims[axis].value;
            at += rest % dim % modulus[axis] * strides[axis];
            rest /= dim;
        }
        made[i] = values[at];
    }
}

enum wg_code wg__evaluate_transpose(struct wg_shape_node *n)
{
    struct source data;
    const struct wg_shape *shape = NULL;
    struct wg_value *made = NULL;
    size_t count = 0, perm_count = 0;
    size_t strides[WG_DIMS_MAX], modulus[WG_DIMS_MAX];
    enum wg_code code = get_source(n, 0, &data);
    if (code != WG_OK || data.values == NULL)
        return code;
    code = make_output(n, 0, &shape, &made, &count);
    if (code != WG_OK || made == NULL || shape->rank != data.shape->rank)
        return code;
    const int64_t *perm = wg__shape_ints(n, "perm", &perm_count);
    for (size_t i = 0; i < shape->rank; i++) {
        const size_t from =
            perm != NULL && perm_count == shape->rank ? (size_t)perm[i] : shape->rank - 1 - i;
        strides[i] = span(data.shape, from + 1, shape->rank);
        modulus[i] = (size_t)shape->dims[i].value;
    }
    gather_strided(made, count, shape, data.values, strides, modulus);
    wg__shape_set_values(n, 0, made, count);
    return WG_OK;
}

/* Expand repeats along dimensions of 1, Tile any: both read modulo the input's dimension. */
static enum wg_code repeat(struct wg_shape_node *n)
{
    struct source data;
    const struct wg_shape *shape = NULL;
    struct wg_value *made = NULL;
    size_t count = 0;
    size_t strides[WG_DIMS_MAX], modulus[WG_DIMS_MAX];
    enum wg_code code = get_source(n, 0, &data);
    if (code != WG_OK || data.values == NULL)
        return code;
    code = make_output(n, 0, &shape, &made, &count);
    if (code != WG_OK || made == NULL || shape->rank < data.shape->rank)
        return code;
    const size_t extra = shape->rank - data.shape->rank;
    for (size_t i = 0; i < shape->rank; i++) {
        strides[i] = i < extra ? 0 : span(data.shape, i - extra + 1, data.shape->rank);
        modulus[i] = i < extra ? 1 : (size_t)data.shape->dims[i - extra].value;
        if (modulus[i] == 0)
            modulus[i] = 1;
    }
    if (data.count == 0 && count != 0)
        return WG_OK;
    gather_strided(made, count, shape, data.values, strides, modulus);
    wg__shape_set_values(n, 0, made, count);
    return WG_OK;
}

enum wg_code wg__evaluate_expand(struct wg_shape_node *n)
{
    return repeat(n);
}

enum wg_code wg__evaluate_tile(struct wg_shape_node *n)
{
    return repeat(n);
}
