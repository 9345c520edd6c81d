/* SPDX-License-Identifier: MIT
 *
 * Operators that make tensors out of little: constants, ranges, random numbers.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include <math.h>

#include "model/shape_evaluate.h"
#include "model/shape_pass.h"

/* A type told by an attribute; `fallback` where it isn't there. */
static void told_type(struct wg_shape_node *n, const char *name, int fallback)
{
    const int64_t told = wg__shape_int(n, name, fallback);
    wg__shape_set_type(n, 0, told > 0 && told <= INT32_MAX ? (int)told : WG_ELEM_UNKNOWN);
}

/* What the reader hasn't turned into a constant: a function's Constant whose value the call tells.
 */
static enum wg_code constant(struct wg_shape_node *n)
{
    const struct wg_attribute *value = wg__shape_attribute(n, "value");
    struct wg_shape out = wg__shape_of_rank(0);
    if (value != NULL && value->tensor != NULL) {
        wg__shape_set_type(n, 0, value->tensor->elem_type);
        wg__shape_set(n, 0, &value->tensor_shape);
        return WG_OK;
    }
    static const struct {
        const char *name;
        int elem_type;
        bool is_list;
    } kinds[] = {
        {"value_int", WG_ELEM_INT64, false},     {"value_ints", WG_ELEM_INT64, true},
        {"value_float", WG_ELEM_FLOAT, false},   {"value_floats", WG_ELEM_FLOAT, true},
        {"value_string", WG_ELEM_STRING, false}, {"value_strings", WG_ELEM_STRING, true},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        value = wg__shape_attribute(n, kinds[i].name);
        if (value == NULL)
            continue;
        if (kinds[i].is_list)
            out = (struct wg_shape){
                .is_known = true, .rank = 1, .dims = {wg__dim((int64_t)value->count)}};
        wg__shape_set_type(n, 0, kinds[i].elem_type);
        wg__shape_set(n, 0, &out);
        return WG_OK;
    }
    return WG_OK;
}

static enum wg_code evaluate_constant(struct wg_shape_node *n)
{
    struct wg_value *made = NULL;
    const struct wg_attribute *one = wg__shape_attribute(n, "value_int");
    const struct wg_attribute *list = wg__shape_attribute(n, "value_ints");
    const struct wg_attribute *found = one != NULL ? one : list;
    if (found == NULL)
        return WG_OK;
    const size_t count = found == one ? 1 : found->count;
    const enum wg_code code = wg__shape_new_values(n, count, &made);
    if (code != WG_OK || made == NULL)
        return code;
    for (size_t i = 0; i < count; i++)
        made[i] =
            (struct wg_value){.kind = WG_VALUE_INT, .i = found == one ? found->i : found->ints[i]};
    wg__shape_set_values(n, 0, made, count);
    return WG_OK;
}

static enum wg_code constant_of_shape(struct wg_shape_node *n)
{
    const struct wg_value *wanted = NULL;
    size_t count = 0;
    const struct wg_attribute *value = wg__shape_attribute(n, "value");
    const struct wg_shape *of_shape = wg__shape_in(n, 0);
    wg__shape_set_type(
        n, 0, value != NULL && value->tensor != NULL ? value->tensor->elem_type : WG_ELEM_FLOAT);
    const enum wg_code code = wg__shape_values(n, 0, &wanted, &count);
    if (code != WG_OK)
        return code;
    if (wanted == NULL) {
        if (of_shape == NULL || of_shape->rank != 1 || !wg__dim_known(of_shape->dims[0]))
            return WG_OK;
        count = (size_t)of_shape->dims[0].value;
    }
    if (count > WG_DIMS_MAX)
        return wg__shape_refuse(n, "a shape of %zu dimensions, at most %d are held", count,
                                WG_DIMS_MAX);
    struct wg_shape out = wg__shape_of_rank(count);
    for (size_t i = 0; i < count && wanted != NULL; i++) {
        if (wanted[i].kind == WG_VALUE_INT && wanted[i].i < 0)
            return wg__shape_refuse(n, "a dimension of %lld", (long long)wanted[i].i);
        if (wanted[i].kind == WG_VALUE_INT)
            out.dims[i] = wg__dim(wanted[i].i);
        else if (wanted[i].kind == WG_VALUE_NAMED)
            out.dims[i].name = wanted[i].name;
    }
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code like(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    told_type(n, "dtype", wg__shape_type_in(n, 0));
    if (data != NULL)
        wg__shape_set(n, 0, data);
    return WG_OK;
}

static enum wg_code random_numbers(struct wg_shape_node *n)
{
    size_t count = 0;
    const int64_t *dims = wg__shape_ints(n, "shape", &count);
    told_type(n, "dtype", WG_ELEM_FLOAT);
    if (dims == NULL)
        return WG_OK;
    if (count > WG_DIMS_MAX)
        return wg__shape_refuse(n, "a shape of %zu dimensions", count);
    struct wg_shape out = wg__shape_of_rank(count);
    for (size_t i = 0; i < count; i++)
        out.dims[i] = wg__dim(dims[i] >= 0 ? dims[i] : WG_DIM_UNKNOWN);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code multinomial(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    const int64_t samples = wg__shape_int(n, "sample_size", 1);
    struct wg_shape out = wg__shape_of_rank(2);
    told_type(n, "dtype", WG_ELEM_INT32);
    if (data != NULL && data->rank == 2)
        out.dims[0] = data->dims[0];
    out.dims[1] = wg__dim(samples >= 0 ? samples : WG_DIM_UNKNOWN);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* --- Ranges ----------------------------------------------------------------------------------- */

static bool range_length(const struct wg_value *first, const struct wg_value *limit,
                         const struct wg_value *delta, int64_t *out)
{
    int64_t span = 0;
    if (first->kind == WG_VALUE_INT && limit->kind == WG_VALUE_INT && delta->kind == WG_VALUE_INT) {
        if (delta->i == 0 || __builtin_sub_overflow(limit->i, first->i, &span) ||
            (delta->i == -1 && span == INT64_MIN))
            return false;
        const int64_t whole = span / delta->i;
        const bool is_more = span % delta->i != 0 && (span < 0) == (delta->i < 0);
        *out = whole + is_more > 0 ? whole + is_more : 0;
        return true;
    }
    if (first->kind != WG_VALUE_REAL || limit->kind != WG_VALUE_REAL ||
        delta->kind != WG_VALUE_REAL)
        return false;
    const double length = ceil((limit->real - first->real) / delta->real);
    if (!(length < 0x1p60))
        return false;
    *out = length > 0 ? (int64_t)length : 0;
    return true;
}

static enum wg_code range(struct wg_shape_node *n)
{
    const struct wg_value *ends[3] = {NULL, NULL, NULL};
    struct wg_shape out = wg__shape_of_rank(1);
    bool all = true;
    wg__shape_pass_type(n, 0, 0);
    for (size_t i = 0; i < 3; i++) {
        size_t count = 0;
        const enum wg_code code = wg__shape_values(n, i, &ends[i], &count);
        if (code != WG_OK)
            return code;
        all = all && ends[i] != NULL && count == 1;
    }
    int64_t length = 0;
    if (all && range_length(ends[0], ends[1], ends[2], &length))
        out.dims[0] = wg__dim(length);
    else if (all && ends[1]->kind == WG_VALUE_NAMED && ends[0]->kind == WG_VALUE_INT &&
             ends[0]->i == 0 && ends[2]->kind == WG_VALUE_INT && ends[2]->i == 1)
        out.dims[0].name = ends[1]->name; /* 0, 1, .., sequence - 1 */
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* Blackman, Hamming and Hann windows of a length. */
static enum wg_code window(struct wg_shape_node *n)
{
    int64_t length = 0;
    size_t count = 0;
    bool has = false;
    struct wg_shape out = wg__shape_of_rank(1);
    told_type(n, "output_datatype", WG_ELEM_FLOAT);
    const enum wg_code code = wg__shape_int_values(n, 0, &length, 1, &count, &has);
    if (code != WG_OK)
        return code;
    if (has && count == 1 && length >= 0)
        out.dims[0] = wg__dim(length);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* (dft_length / 2 + 1, mel bins) */
static enum wg_code mel_weights(struct wg_shape_node *n)
{
    int64_t bins = 0, length = 0;
    size_t count = 0, length_count = 0;
    bool has = false, has_length = false;
    struct wg_shape out = wg__shape_of_rank(2);
    told_type(n, "output_datatype", WG_ELEM_FLOAT);
    enum wg_code code = wg__shape_int_values(n, 0, &bins, 1, &count, &has);
    if (code == WG_OK)
        code = wg__shape_int_values(n, 1, &length, 1, &length_count, &has_length);
    if (code != WG_OK)
        return code;
    if (has_length && length_count == 1 && length >= 0)
        out.dims[0] = wg__dim(length / 2 + 1);
    if (has && count == 1 && bins >= 0)
        out.dims[1] = wg__dim(bins);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static const struct wg_shape_op ops[] = {
    {"Bernoulli", like, NULL},
    {"BlackmanWindow", window, NULL},
    {"Constant", constant, evaluate_constant},
    {"ConstantOfShape", constant_of_shape, wg__evaluate_constant_of_shape},
    {"EyeLike", like, NULL},
    {"HammingWindow", window, NULL},
    {"HannWindow", window, NULL},
    {"MelWeightMatrix", mel_weights, NULL},
    {"Multinomial", multinomial, NULL},
    {"RandomNormal", random_numbers, NULL},
    {"RandomNormalLike", like, NULL},
    {"RandomUniform", random_numbers, NULL},
    {"RandomUniformLike", like, NULL},
    {"Range", range, wg__evaluate_range},
};

const struct wg_shape_family wg__shape_ops_generate = {"", ops, sizeof ops / sizeof ops[0]};
