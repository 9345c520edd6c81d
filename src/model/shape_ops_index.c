/* SPDX-License-Identifier: MIT
 *
 * Operators that pick elements: Gather, Slice, TopK, OneHot and their kin; Shape and Size.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_evaluate.h"
#include "model/shape_pass.h"

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static enum wg_code shape_of(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    struct wg_shape out = wg__shape_of_rank(1);
    wg__shape_set_type(n, 0, WG_ELEM_INT64);
    if (data != NULL) {
        const int64_t rank = (int64_t)data->rank;
        int64_t first = wg__shape_int(n, "start", 0), last = wg__shape_int(n, "end", rank);
        first = clamp(first < 0 ? first + rank : first, 0, rank);
        last = clamp(last < 0 ? last + rank : last, 0, rank);
        out.dims[0] = wg__dim(last > first ? last - first : 0);
    }
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code size_of(struct wg_shape_node *n)
{
    const struct wg_shape out = wg__shape_of_rank(0);
    wg__shape_set_type(n, 0, WG_ELEM_INT64);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* dims[first..last) of a shape at the end of another. */
static enum wg_code append(struct wg_shape_node *n, struct wg_shape *out,
                           const struct wg_shape *from, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        const enum wg_code code = wg__shape_push(n, out, from->dims[i]);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static enum wg_code gather(struct wg_shape_node *n)
{
    size_t axis = 0;
    const struct wg_shape *data = wg__shape_in(n, 0), *indices = wg__shape_in(n, 1);
    struct wg_shape out = {.is_known = true};
    wg__shape_pass_type(n, 0, 0);
    if (data == NULL || indices == NULL)
        return WG_OK;
    enum wg_code code = wg__shape_axis(n, wg__shape_int(n, "axis", 0), data->rank, &axis);
    if (code == WG_OK)
        code = append(n, &out, data, 0, axis);
    if (code == WG_OK)
        code = append(n, &out, indices, 0, indices->rank);
    if (code == WG_OK)
        code = append(n, &out, data, axis + 1, data->rank);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

static enum wg_code gather_elements(struct wg_shape_node *n)
{
    const struct wg_shape *indices = wg__shape_in(n, 1);
    wg__shape_pass_type(n, 0, 0);
    if (indices != NULL)
        wg__shape_set(n, 0, indices);
    return WG_OK;
}

static enum wg_code gather_nd(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0), *indices = wg__shape_in(n, 1);
    const int64_t batch = wg__shape_int(n, "batch_dims", 0);
    struct wg_shape out = {.is_known = true};
    wg__shape_pass_type(n, 0, 0);
    if (data == NULL || indices == NULL || indices->rank == 0)
        return WG_OK;
    const struct wg_dim depth = indices->dims[indices->rank - 1];
    if (!wg__dim_known(depth))
        return WG_OK;
    if (batch < 0 || depth.value > WG_DIMS_MAX || batch + depth.value > (int64_t)data->rank)
        return wg__shape_refuse(n,
                                "%lld indices and %lld batch dimensions of '%.40s', which has "
                                "%zu dimensions",
                                (long long)depth.value, (long long)batch, wg__shape_name(n, 0),
                                data->rank);
    enum wg_code code = append(n, &out, indices, 0, indices->rank - 1);
    if (code == WG_OK)
        code = append(n, &out, data, (size_t)(batch + depth.value), data->rank);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

/* --- Slice ------------------------------------------------------------------------------------ */

/* Elements from start to end by step; INT64_MIN and INT64_MAX stand for the ends. */
static int64_t slice_length(int64_t dim, int64_t start, int64_t end, int64_t step)
{
    if (start < 0)
        start += dim;
    if (end < 0)
        end += dim;
    if (step > 0) {
        start = clamp(start, 0, dim);
        end = clamp(end, 0, dim);
        return start < end ? (end - start - 1) / step + 1 : 0;
    }
    start = clamp(start, 0, dim > 0 ? dim - 1 : 0);
    end = clamp(end, -1, dim > 0 ? dim - 1 : 0);
    return dim != 0 && start > end ? (start - end - 1) / -(step + (step == INT64_MIN)) + 1 : 0;
}

/* A whole axis keeps its name. */
static struct wg_dim slice_dim(struct wg_dim dim, struct wg_value start, struct wg_value end,
                               int64_t step)
{
    if (start.kind != WG_VALUE_INT)
        return wg__dim_unknown;
    if (start.i == 0 && step == 1 && !wg__dim_known(dim)) {
        if (end.kind == WG_VALUE_INT && end.i >= INT32_MAX)
            return dim;
        if (end.kind == WG_VALUE_NAMED &&
            wg__dim_same(dim, (struct wg_dim){.value = WG_DIM_UNKNOWN, .name = end.name}))
            return dim;
    }
    if (end.kind != WG_VALUE_INT || !wg__dim_known(dim))
        return wg__dim_unknown;
    return wg__dim(slice_length(dim.value, start.i, end.i, step));
}

/* Starts and ends are attributes before opset 10. */
static enum wg_code slice_bound(const struct wg_shape_node *n, const char *name, size_t input,
                                struct wg_value *out, size_t *count_out, bool *has_out)
{
    const struct wg_value *values = NULL;
    size_t count = 0;
    const int64_t *ints = wg__shape_ints(n, name, &count);
    *has_out = false;
    if (ints == NULL) {
        const enum wg_code code = wg__shape_values(n, input, &values, &count);
        if (code != WG_OK || values == NULL)
            return code;
    }
    if (count > WG_DIMS_MAX)
        return wg__shape_refuse(n, "%s has %zu elements", name, count);
    for (size_t i = 0; i < count; i++)
        out[i] = ints != NULL ? (struct wg_value){.kind = WG_VALUE_INT, .i = ints[i]} : values[i];
    *count_out = count;
    *has_out = true;
    return WG_OK;
}

/* Without the axes anything may change; with them, only those. */
static enum wg_code slice_blindly(struct wg_shape_node *n, const struct wg_shape *data,
                                  const struct wg_shape_list *axes)
{
    struct wg_shape out = axes->is_given && axes->is_known ? *data : wg__shape_of_rank(data->rank);
    for (size_t i = 0; axes->is_given && axes->is_known && i < axes->count; i++) {
        size_t axis = 0;
        const enum wg_code code = wg__shape_axis(n, axes->values[i], data->rank, &axis);
        if (code != WG_OK)
            return code;
        out.dims[axis] = wg__dim_unknown;
    }
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* What a slice is told; all that isn't known yet says so. */
struct slicing {
    struct wg_value starts[WG_DIMS_MAX], ends[WG_DIMS_MAX];
    struct wg_shape_list axes, steps;
    size_t count;
    bool is_known;
};

static enum wg_code read_slicing(struct wg_shape_node *n, struct slicing *s)
{
    size_t end_count = 0;
    bool has_starts = false, has_ends = false;
    s->count = 0;
    enum wg_code code = slice_bound(n, "starts", 1, s->starts, &s->count, &has_starts);
    if (code == WG_OK)
        code = slice_bound(n, "ends", 2, s->ends, &end_count, &has_ends);
    if (code == WG_OK)
        code = wg__shape_list(n, "axes", 3, &s->axes);
    if (code == WG_OK)
        code = wg__shape_list(n, NULL, 4, &s->steps);
    s->is_known = code == WG_OK && has_starts && has_ends && s->axes.is_known && s->steps.is_known;
    if (!s->is_known)
        return code;
    if (end_count != s->count || (s->axes.is_given && s->axes.count != s->count) ||
        (s->steps.is_given && s->steps.count != s->count))
        return wg__shape_refuse(n, "%zu starts, %zu ends, %zu axes, %zu steps", s->count, end_count,
                                s->axes.count, s->steps.count);
    return WG_OK;
}

static enum wg_code slice(struct wg_shape_node *n)
{
    struct slicing s;
    const struct wg_shape *data = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    enum wg_code code = read_slicing(n, &s);
    if (code != WG_OK || data == NULL)
        return code;
    if (!s.is_known)
        return slice_blindly(n, data, &s.axes);
    struct wg_shape out = *data;
    for (size_t i = 0; i < s.count; i++) {
        size_t axis = 0;
        code =
            wg__shape_axis(n, s.axes.is_given ? s.axes.values[i] : (int64_t)i, data->rank, &axis);
        if (code != WG_OK)
            return code;
        const int64_t step = s.steps.is_given ? s.steps.values[i] : 1;
        if (step == 0)
            return wg__shape_refuse(n, "a step of 0");
        out.dims[axis] = slice_dim(data->dims[axis], s.starts[i], s.ends[i], step);
    }
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* --- The best, the non-zero, the unique ------------------------------------------------------- */

static enum wg_code top_k(struct wg_shape_node *n)
{
    size_t axis = 0, count = 0;
    int64_t k = wg__shape_int(n, "k", -1);
    bool has = k >= 0;
    const struct wg_shape *data = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    wg__shape_set_type(n, 1, WG_ELEM_INT64);
    if (data == NULL)
        return WG_OK;
    enum wg_code code = wg__shape_axis(n, wg__shape_int(n, "axis", -1), data->rank, &axis);
    if (code == WG_OK && !has)
        code = wg__shape_int_values(n, 1, &k, 1, &count, &has);
    if (code != WG_OK)
        return code;
    struct wg_shape out = *data;
    out.dims[axis] = has && k >= 0 ? wg__dim(k) : wg__dim_unknown;
    if (has && k >= 0 && wg__dim_known(data->dims[axis]) && data->dims[axis].value < k)
        return wg__shape_refuse(n, "%lld of '%.60s', which has %lld", (long long)k,
                                wg__shape_name(n, 0), (long long)data->dims[axis].value);
    wg__shape_set(n, 0, &out);
    wg__shape_set(n, 1, &out);
    return WG_OK;
}

static enum wg_code non_zero(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    struct wg_shape out = wg__shape_of_rank(2);
    wg__shape_set_type(n, 0, WG_ELEM_INT64);
    if (data != NULL)
        out.dims[0] = wg__dim((int64_t)data->rank);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code unique(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    const struct wg_shape list = wg__shape_of_rank(1);
    const bool has_axis = wg__shape_attribute(n, "axis") != NULL;
    wg__shape_pass_type(n, 0, 0);
    for (size_t i = 1; i < 4; i++) {
        wg__shape_set_type(n, i, WG_ELEM_INT64);
        wg__shape_set(n, i, &list);
    }
    if (!has_axis)
        wg__shape_set(n, 0, &list);
    if (!has_axis || data == NULL)
        return WG_OK;
    size_t axis = 0;
    struct wg_shape out = *data;
    const enum wg_code code = wg__shape_axis(n, wg__shape_int(n, "axis", 0), data->rank, &axis);
    if (code != WG_OK)
        return code;
    out.dims[axis] = wg__dim_unknown;
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code compress(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    struct wg_shape out = wg__shape_of_rank(1);
    wg__shape_pass_type(n, 0, 0);
    if (wg__shape_attribute(n, "axis") != NULL) {
        size_t axis = 0;
        if (data == NULL)
            return WG_OK;
        const enum wg_code code = wg__shape_axis(n, wg__shape_int(n, "axis", 0), data->rank, &axis);
        if (code != WG_OK)
            return code;
        out = *data;
        out.dims[axis] = wg__dim_unknown;
    }
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code one_hot(struct wg_shape_node *n)
{
    size_t axis = 0, count = 0;
    int64_t depth = 0;
    bool has = false;
    const struct wg_shape *indices = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 2, 0);
    if (indices == NULL)
        return WG_OK;
    enum wg_code code = wg__shape_axis(n, wg__shape_int(n, "axis", -1), indices->rank + 1, &axis);
    if (code == WG_OK)
        code = wg__shape_int_values(n, 1, &depth, 1, &count, &has);
    struct wg_shape out = {.is_known = true};
    if (code == WG_OK)
        code = append(n, &out, indices, 0, axis);
    if (code == WG_OK)
        code = wg__shape_push(n, &out,
                              has && count == 1 && depth >= 0 ? wg__dim(depth) : wg__dim_unknown);
    if (code == WG_OK)
        code = append(n, &out, indices, axis, indices->rank);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

static const struct wg_shape_op ops[] = {
    {"Compress", compress, NULL},
    {"Gather", gather, wg__evaluate_gather},
    {"GatherElements", gather_elements, NULL},
    {"GatherND", gather_nd, NULL},
    {"NonZero", non_zero, NULL},
    {"OneHot", one_hot, NULL},
    {"ReverseSequence", wg__shape_same, NULL},
    {"Scatter", wg__shape_same, NULL},
    {"ScatterElements", wg__shape_same, NULL},
    {"ScatterND", wg__shape_same, NULL},
    {"Shape", shape_of, wg__evaluate_shape},
    {"Size", size_of, wg__evaluate_size},
    {"Slice", slice, wg__evaluate_slice},
    {"TensorScatter", wg__shape_same, NULL},
    {"TopK", top_k, NULL},
    {"Trilu", wg__shape_same, NULL},
    {"Unique", unique, NULL},
};

const struct wg_shape_family wg__shape_ops_index = {"", ops, sizeof ops / sizeof ops[0]};
