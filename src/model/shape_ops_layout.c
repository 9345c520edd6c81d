/* SPDX-License-Identifier: MIT
 *
 * Operators that rearrange a tensor as a whole: Reshape, Transpose, Concat, Split and their kin.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include <string.h>

#include "model/shape_evaluate.h"
#include "model/shape_pass.h"

/* --- Reshape ---------------------------------------------------------------------------------- */

/* The wanted dimensions as values: of an input, or of the attribute that opset 1 had. */
static enum wg_code wanted_shape(const struct wg_shape_node *n, struct wg_value *out,
                                 size_t *count_out, bool *has_out)
{
    size_t count = 0;
    const int64_t *ints = n->opset < 5 ? wg__shape_ints(n, "shape", &count) : NULL;
    const struct wg_value *values = NULL;
    *has_out = false;
    if (ints == NULL) {
        const enum wg_code code = wg__shape_values(n, 1, &values, &count);
        if (code != WG_OK || values == NULL)
            return code;
    }
    if (count > WG_DIMS_MAX)
        return wg__shape_refuse(n, "a shape of %zu dimensions, at most %d are held", count,
                                WG_DIMS_MAX);
    for (size_t i = 0; i < count; i++)
        out[i] = ints != NULL ? (struct wg_value){.kind = WG_VALUE_INT, .i = ints[i]} : values[i];
    *count_out = count;
    *has_out = true;
    return WG_OK;
}

/* One dimension as told; `*rest` becomes its axis where it is -1. */
static enum wg_code told_dim(const struct wg_shape_node *n, const struct wg_shape *data, size_t i,
                             struct wg_value told, struct wg_dim *out, size_t *rest)
{
    *out = wg__dim_unknown;
    if (told.kind == WG_VALUE_NAMED)
        out->name = told.name;
    if (told.kind != WG_VALUE_INT)
        return WG_OK;
    if (told.i > 0 || (told.i == 0 && wg__shape_int(n, "allowzero", 0) != 0)) {
        *out = wg__dim(told.i);
    } else if (told.i == 0) {
        if (data != NULL && i >= data->rank)
            return wg__shape_refuse(n, "0 keeps dimension %zu, but '%.60s' has only %zu", i,
                                    wg__shape_name(n, 0), data->rank);
        if (data != NULL)
            *out = data->dims[i];
    } else if (told.i == -1) {
        if (*rest != WG_DIMS_MAX)
            return wg__shape_refuse(n, "more than one dimension is -1");
        *rest = i;
    } else {
        return wg__shape_refuse(n, "a dimension of %lld", (long long)told.i);
    }
    return WG_OK;
}

/* Names that stand on both sides cancel; what is left must be numbers. */
static bool cancel(const struct wg_shape *data, const struct wg_shape *out, size_t rest,
                   int64_t *have, int64_t *need)
{
    bool used[WG_DIMS_MAX] = {false};
    *have = *need = 1;
    for (size_t i = 0; i < out->rank; i++) {
        size_t j = 0;
        if (i == rest)
            continue;
        if (wg__dim_known(out->dims[i])) {
            if (__builtin_mul_overflow(*need, out->dims[i].value, need))
                return false;
            continue;
        }
        while (j < data->rank && (used[j] || wg__dim_known(data->dims[j]) ||
                                  !wg__dim_same(data->dims[j], out->dims[i])))
            j++;
        if (j == data->rank)
            return false;
        used[j] = true;
    }
    for (size_t j = 0; j < data->rank; j++) {
        if (used[j])
            continue;
        if (!wg__dim_known(data->dims[j]) ||
            __builtin_mul_overflow(*have, data->dims[j].value, have))
            return false;
    }
    return true;
}

static enum wg_code fill_rest(const struct wg_shape_node *n, const struct wg_shape *data,
                              struct wg_shape *out, size_t rest)
{
    int64_t have = 0, need = 0;
    if (data == NULL)
        return WG_OK;
    if (!cancel(data, out, rest, &have, &need))
        return WG_OK;
    if (rest == WG_DIMS_MAX) {
        if (have != need)
            return wg__shape_refuse(n, "'%.40s' has %lld elements, the new shape %lld",
                                    wg__shape_name(n, 0), (long long)have, (long long)need);
        return WG_OK;
    }
    if (need == 0)
        return WG_OK;
    if (have % need != 0)
        return wg__shape_refuse(n, "%lld elements of '%.40s' don't divide by %lld", (long long)have,
                                wg__shape_name(n, 0), (long long)need);
    out->dims[rest] = wg__dim(have / need);
    return WG_OK;
}

static enum wg_code reshape(struct wg_shape_node *n)
{
    struct wg_value wanted[WG_DIMS_MAX];
    const struct wg_shape *data = wg__shape_in(n, 0), *of_shape = wg__shape_in(n, 1);
    size_t count = 0, rest = WG_DIMS_MAX;
    bool has = false;
    wg__shape_pass_type(n, 0, 0);
    enum wg_code code = wanted_shape(n, wanted, &count, &has);
    if (code != WG_OK)
        return code;
    if (!has) { /* its length tells the rank */
        if (of_shape != NULL && of_shape->rank == 1 && wg__dim_known(of_shape->dims[0]) &&
            of_shape->dims[0].value <= WG_DIMS_MAX) {
            const struct wg_shape out = wg__shape_of_rank((size_t)of_shape->dims[0].value);
            wg__shape_set(n, 0, &out);
        }
        return WG_OK;
    }
    struct wg_shape out = wg__shape_of_rank(count);
    for (size_t i = 0; i < count; i++) {
        code = told_dim(n, data, i, wanted[i], &out.dims[i], &rest);
        if (code != WG_OK)
            return code;
    }
    /* an element not known might be -1, or 0 */
    code = fill_rest(n, data, &out, rest);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

static enum wg_code flatten(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    int64_t axis = wg__shape_int(n, "axis", 1);
    wg__shape_pass_type(n, 0, 0);
    if (data == NULL)
        return WG_OK;
    const int64_t rank = (int64_t)data->rank;
    if (axis < 0)
        axis += rank;
    if (axis < 0 || axis > rank)
        return wg__shape_refuse(n, "axis %lld is outside a tensor of %zu dimensions",
                                (long long)wg__shape_int(n, "axis", 1), data->rank);
    struct wg_shape out = wg__shape_of_rank(2);
    enum wg_code code = wg__shape_product(n, data, 0, (size_t)axis, &out.dims[0]);
    if (code == WG_OK)
        code = wg__shape_product(n, data, (size_t)axis, data->rank, &out.dims[1]);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

/* --- Axes come and go ------------------------------------------------------------------------- */

static enum wg_code squeeze(struct wg_shape_node *n)
{
    struct wg_shape_list axes;
    bool gone[WG_DIMS_MAX] = {false};
    const struct wg_shape *data = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    enum wg_code code = wg__shape_list(n, "axes", 1, &axes);
    if (code != WG_OK || data == NULL || !axes.is_known)
        return code;
    for (size_t i = 0; i < axes.count; i++) {
        size_t axis = 0;
        code = wg__shape_axis(n, axes.values[i], data->rank, &axis);
        if (code != WG_OK)
            return code;
        if (wg__dim_known(data->dims[axis]) && data->dims[axis].value != 1)
            return wg__shape_refuse(n, "axis %zu of '%.60s' is %lld long, not 1", axis,
                                    wg__shape_name(n, 0), (long long)data->dims[axis].value);
        gone[axis] = true;
    }
    struct wg_shape out = {.is_known = true};
    for (size_t i = 0; i < data->rank; i++) {
        if (!axes.is_given && !wg__dim_known(data->dims[i]))
            return WG_OK; /* it goes if it's 1 */
        if (axes.is_given ? gone[i] : data->dims[i].value == 1)
            continue;
        out.dims[out.rank++] = data->dims[i];
    }
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code unsqueeze(struct wg_shape_node *n)
{
    struct wg_shape_list axes;
    bool is_new[WG_DIMS_MAX] = {false};
    const struct wg_shape *data = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    enum wg_code code = wg__shape_list(n, "axes", 1, &axes);
    if (code != WG_OK || data == NULL || !axes.is_known || !axes.is_given)
        return code;
    const size_t rank = data->rank + axes.count;
    if (rank > WG_DIMS_MAX)
        return wg__shape_refuse(n, "its output would have %zu dimensions", rank);
    for (size_t i = 0; i < axes.count; i++) {
        size_t axis = 0;
        code = wg__shape_axis(n, axes.values[i], rank, &axis);
        if (code != WG_OK)
            return code;
        if (is_new[axis])
            return wg__shape_refuse(n, "axis %zu is there twice", axis);
        is_new[axis] = true;
    }
    struct wg_shape out = wg__shape_of_rank(rank);
    for (size_t i = 0, from = 0; i < rank; i++)
        out.dims[i] = is_new[i] ? wg__dim(1) : data->dims[from++];
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code transpose(struct wg_shape_node *n)
{
    size_t count = 0;
    unsigned seen = 0;
    const struct wg_shape *data = wg__shape_in(n, 0);
    const int64_t *perm = wg__shape_ints(n, "perm", &count);
    wg__shape_pass_type(n, 0, 0);
    if (data == NULL)
        return WG_OK;
    if (perm != NULL && count != data->rank && count != 0)
        return wg__shape_refuse(n, "perm has %zu elements, '%.60s' %zu dimensions", count,
                                wg__shape_name(n, 0), data->rank);
    struct wg_shape out = wg__shape_of_rank(data->rank);
    for (size_t i = 0; i < data->rank; i++) {
        const int64_t from = perm != NULL && count != 0 ? perm[i] : (int64_t)(data->rank - 1 - i);
        if (from < 0 || from >= (int64_t)data->rank || (seen >> from & 1) != 0)
            return wg__shape_refuse(n, "perm is no order of %zu axes", data->rank);
        seen |= 1U << from;
        out.dims[i] = data->dims[from];
    }
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* --- Concat and Split ------------------------------------------------------------------------- */

static enum wg_code add_part(struct wg_shape_node *n, struct wg_shape *out, size_t axis,
                             const struct wg_shape *part)
{
    if (part->rank != out->rank)
        return wg__shape_refuse(n, "its inputs have %zu and %zu dimensions", out->rank, part->rank);
    for (size_t i = 0; i < out->rank; i++) {
        enum wg_code code = WG_OK;
        if (i != axis)
            code = wg__dim_agree(n, out->dims[i], part->dims[i], "dimensions beside its axis",
                                 &out->dims[i]);
        else if (!wg__dim_known(part->dims[i]) || !wg__dim_known(out->dims[i]))
            out->dims[i] = wg__dim_unknown;
        else
            code = wg__dim_plus(n, out->dims[i], part->dims[i], &out->dims[i]);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static enum wg_code concat(struct wg_shape_node *n)
{
    size_t axis = 0;
    const struct wg_shape *first = NULL;
    wg__shape_pass_type(n, 0, 0);
    for (size_t i = 0; i < n->node->input_count; i++) {
        if (wg__shape_in(n, i) == NULL)
            return WG_OK;
    }
    first = wg__shape_in(n, 0);
    if (first == NULL)
        return WG_OK;
    enum wg_code code =
        wg__shape_axis(n, wg__shape_int(n, "axis", n->opset < 4 ? 1 : 0), first->rank, &axis);
    struct wg_shape out = *first;
    for (size_t i = 1; code == WG_OK && i < n->node->input_count; i++)
        code = add_part(n, &out, axis, wg__shape_in(n, i));
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

/* Parts of equal length, the last one shorter from opset 18 on. */
static enum wg_code equal_parts(struct wg_shape_node *n, const struct wg_shape *data, size_t axis)
{
    const int64_t parts = wg__shape_int(n, "num_outputs", (int64_t)n->node->output_count);
    struct wg_shape out = *data;
    if (parts < 1)
        return wg__shape_refuse(n, "%lld outputs", (long long)parts);
    const struct wg_dim whole = data->dims[axis];
    out.dims[axis] = wg__dim_unknown;
    if (wg__dim_known(whole) && n->opset < 18 && whole.value % parts != 0)
        return wg__shape_refuse(n, "%lld does not divide into %lld equal parts",
                                (long long)whole.value, (long long)parts);
    const int64_t length = wg__dim_known(whole) ? (whole.value + parts - 1) / parts : 0;
    for (size_t i = 0; i < n->node->output_count; i++) {
        if (wg__dim_known(whole)) {
            const int64_t left = whole.value - length * (int64_t)i;
            out.dims[axis] = wg__dim(left < length ? left : length);
            if (left < 0)
                return wg__shape_refuse(n, "%lld does not divide into %lld parts",
                                        (long long)whole.value, (long long)parts);
        }
        wg__shape_set(n, i, &out);
    }
    return WG_OK;
}

/* Lengths told by an attribute of any count, or an input. */
static enum wg_code told_parts(struct wg_shape_node *n, const struct wg_shape *data, size_t axis,
                               const int64_t *lengths, size_t count)
{
    int64_t sum = 0;
    struct wg_shape out = *data;
    for (size_t i = 0; i < count; i++) {
        if (lengths[i] < 0 || __builtin_add_overflow(sum, lengths[i], &sum))
            return wg__shape_refuse(n, "a part of %lld", (long long)lengths[i]);
    }
    if (wg__dim_known(data->dims[axis]) && sum != data->dims[axis].value)
        return wg__shape_refuse(n, "parts of %lld together, '%.60s' has %lld", (long long)sum,
                                wg__shape_name(n, 0), (long long)data->dims[axis].value);
    for (size_t i = 0; i < count && i < n->node->output_count; i++) {
        out.dims[axis] = wg__dim(lengths[i]);
        wg__shape_set(n, i, &out);
    }
    return WG_OK;
}

/* Lengths of an input, some of which may not be known. */
static enum wg_code input_parts(struct wg_shape_node *n, const struct wg_shape *data, size_t axis)
{
    int64_t lengths[WG_DIMS_MAX];
    const struct wg_value *values = NULL;
    size_t count = 0;
    struct wg_shape out = *data;
    const enum wg_code code = wg__shape_values(n, 1, &values, &count);
    if (code != WG_OK)
        return code;
    bool all = values != NULL && count <= WG_DIMS_MAX;
    for (size_t i = 0; i < n->node->output_count; i++) {
        const bool has = values != NULL && i < count && values[i].kind == WG_VALUE_INT;
        out.dims[axis] = wg__dim(has && values[i].i >= 0 ? values[i].i : WG_DIM_UNKNOWN);
        wg__shape_set(n, i, &out);
    }
    for (size_t i = 0; all && i < count; i++) {
        lengths[i] = values[i].i;
        all = values[i].kind == WG_VALUE_INT;
    }
    return all ? told_parts(n, data, axis, lengths, count) : WG_OK;
}

static enum wg_code split(struct wg_shape_node *n)
{
    size_t axis = 0, count = 0;
    const struct wg_shape *data = wg__shape_in(n, 0);
    for (size_t i = 0; i < n->node->output_count; i++)
        wg__shape_pass_type(n, 0, i);
    if (data == NULL)
        return WG_OK;
    const enum wg_code code = wg__shape_axis(n, wg__shape_int(n, "axis", 0), data->rank, &axis);
    if (code != WG_OK)
        return code;
    const int64_t *told = wg__shape_ints(n, "split", &count);
    if (told != NULL)
        return told_parts(n, data, axis, told, count);
    return wg__shape_has(n, 1) ? input_parts(n, data, axis) : equal_parts(n, data, axis);
}

/* --- Repetition ------------------------------------------------------------------------------- */

static enum wg_code tile(struct wg_shape_node *n)
{
    const struct wg_value *repeats = NULL;
    size_t count = 0;
    const struct wg_shape *data = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    if (data == NULL)
        return WG_OK;
    struct wg_shape out = wg__shape_of_rank(data->rank);
    enum wg_code code = wg__shape_values(n, 1, &repeats, &count);
    if (repeats != NULL && count != data->rank)
        return wg__shape_refuse(n, "%zu repeats for '%.60s', which has %zu dimensions", count,
                                wg__shape_name(n, 0), data->rank);
    for (size_t i = 0; code == WG_OK && repeats != NULL && i < data->rank; i++) {
        if (repeats[i].kind == WG_VALUE_INT && repeats[i].i >= 0)
            code = wg__dim_times(n, data->dims[i], wg__dim(repeats[i].i), &out.dims[i]);
        else if (repeats[i].kind == WG_VALUE_NAMED && data->dims[i].value == 1)
            out.dims[i].name = repeats[i].name;
    }
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

static enum wg_code expand(struct wg_shape_node *n)
{
    const struct wg_value *wanted = NULL;
    size_t count = 0;
    const struct wg_shape *data = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    enum wg_code code = wg__shape_values(n, 1, &wanted, &count);
    if (code != WG_OK || data == NULL)
        return code;
    const struct wg_shape *of_shape = wg__shape_in(n, 1);
    if (wanted == NULL && of_shape != NULL && of_shape->rank == 1 &&
        wg__dim_known(of_shape->dims[0]))
        count = (size_t)of_shape->dims[0].value;
    else if (wanted == NULL)
        return WG_OK;
    if (count > WG_DIMS_MAX)
        return wg__shape_refuse(n, "a shape of %zu dimensions", count);
    struct wg_shape told = wg__shape_of_rank(count), out;
    for (size_t i = 0; i < count && wanted != NULL; i++) {
        if (wanted[i].kind == WG_VALUE_INT && wanted[i].i >= 0)
            told.dims[i] = wg__dim(wanted[i].i);
        else if (wanted[i].kind == WG_VALUE_NAMED)
            told.dims[i].name = wanted[i].name;
    }
    code = wg__shape_broadcast(n, data, &told, &out);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

/* --- Padding ---------------------------------------------------------------------------------- */

static enum wg_code pad_axes(const struct wg_shape_node *n, const struct wg_shape *data,
                             const struct wg_shape_list *pads, const struct wg_shape_list *axes,
                             struct wg_shape *out)
{
    const size_t padded = axes->is_given ? axes->count : data->rank;
    if (pads->count != 2 * padded)
        return wg__shape_refuse(n, "%zu pads for %zu axes", pads->count, padded);
    *out = *data;
    for (size_t i = 0; i < padded; i++) {
        size_t axis = 0;
        int64_t length = 0;
        enum wg_code code =
            wg__shape_axis(n, axes->is_given ? axes->values[i] : (int64_t)i, data->rank, &axis);
        if (code != WG_OK)
            return code;
        const int64_t before = pads->values[i], behind = pads->values[padded + i];
        if (before == 0 && behind == 0)
            continue;
        out->dims[axis] = wg__dim_unknown;
        if (!wg__dim_known(data->dims[axis]))
            continue;
        if (__builtin_add_overflow(data->dims[axis].value, before, &length) ||
            __builtin_add_overflow(length, behind, &length) || length < 0)
            return wg__shape_refuse(n, "pads %lld and %lld of a dimension of %lld",
                                    (long long)before, (long long)behind,
                                    (long long)data->dims[axis].value);
        out->dims[axis] = wg__dim(length);
    }
    return WG_OK;
}

static enum wg_code pad(struct wg_shape_node *n)
{
    struct wg_shape_list pads, axes;
    const struct wg_shape *data = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    enum wg_code code = wg__shape_list(n, n->opset < 2 ? "paddings" : "pads", 1, &pads);
    if (code == WG_OK)
        code = wg__shape_list(n, NULL, 3, &axes);
    if (code != WG_OK || data == NULL)
        return code;
    struct wg_shape out = wg__shape_of_rank(data->rank);
    if (pads.is_given && pads.is_known && axes.is_known)
        code = pad_axes(n, data, &pads, &axes, &out);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

static const struct wg_shape_op ops[] = {
    {"Concat", concat, wg__evaluate_concat},          {"Expand", expand, wg__evaluate_expand},
    {"Flatten", flatten, wg__evaluate_pass},          {"Pad", pad, NULL},
    {"Reshape", reshape, wg__evaluate_pass},          {"Split", split, wg__evaluate_split},
    {"Squeeze", squeeze, wg__evaluate_pass},          {"Tile", tile, wg__evaluate_tile},
    {"Transpose", transpose, wg__evaluate_transpose}, {"Unsqueeze", unsqueeze, wg__evaluate_pass},
};

const struct wg_shape_family wg__shape_ops_layout = {"", ops, sizeof ops / sizeof ops[0]};
