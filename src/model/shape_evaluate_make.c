/* SPDX-License-Identifier: MIT
 *
 * Values made from little: ConstantOfShape, Range, and reductions.
 *
 * Owns: see shape_evaluate.h.    Threads: one thread at a time.
 */
#include <math.h>

#include "model/onnx.h"
#include "model/shape_evaluate.h"

/* The element that ConstantOfShape fills with: 0 of type float, where none is told. */
static enum wg_code filling(const struct wg_shape_node *n, struct wg_value *out)
{
    size_t count = 0;
    struct wg_error why;
    const struct wg_attribute *value = wg__shape_attribute(n, "value");
    *out = (struct wg_value){.kind = WG_VALUE_UNKNOWN};
    if (value == NULL) {
        *out = (struct wg_value){.kind = WG_VALUE_REAL, .real = 0};
        return WG_OK;
    }
    if (value->tensor == NULL)
        return WG_OK;
    enum wg_code code = WG_OK;
    struct wg_value read = {.kind = WG_VALUE_UNKNOWN};
    if (wg__type_is_int(value->tensor->elem_type)) {
        read.kind = WG_VALUE_INT;
        code = wg__constant_ints(n->run->model, value->tensor, &read.i, 1, &count, &why);
    } else if (wg__type_is_real(value->tensor->elem_type)) {
        read.kind = WG_VALUE_REAL;
        code = wg__constant_doubles(n->run->model, value->tensor, &read.real, 1, &count, &why);
    }
    if (code == WG_ENOMEM)
        return wg__shape_no_memory(n);
    if (code == WG_OK && count == 1)
        *out = read;
    return WG_OK;
}

enum wg_code wg__evaluate_constant_of_shape(struct wg_shape_node *n)
{
    struct wg_value fill, *made = NULL;
    size_t count = 0;
    const struct wg_tensor *out = wg__shape_output(n, 0);
    if (out == NULL || !wg__shape_count(&out->shape, WG_SHAPE_VALUES_MAX, &count))
        return WG_OK;
    enum wg_code code = filling(n, &fill);
    if (code != WG_OK || fill.kind == WG_VALUE_UNKNOWN)
        return code;
    code = wg__shape_new_values(n, count, &made);
    if (code != WG_OK || made == NULL)
        return code;
    for (size_t i = 0; i < count; i++)
        made[i] = fill;
    wg__shape_set_values(n, 0, made, count);
    return WG_OK;
}

/* An input that is one whole number. */
static enum wg_code get_int(const struct wg_shape_node *n, size_t input, int64_t *out, bool *has)
{
    size_t count = 0;
    const enum wg_code code = wg__shape_int_values(n, input, out, 1, &count, has);
    *has = *has && count == 1;
    return code;
}

enum wg_code wg__evaluate_range(struct wg_shape_node *n)
{
    int64_t first = 0, delta = 0;
    struct wg_value *made = NULL;
    size_t count = 0;
    bool has_first = false, has_delta = false;
    const struct wg_tensor *out = wg__shape_output(n, 0);
    if (out == NULL || !wg__shape_count(&out->shape, WG_SHAPE_VALUES_MAX, &count))
        return WG_OK;
    enum wg_code code = get_int(n, 0, &first, &has_first);
    if (code == WG_OK)
        code = get_int(n, 2, &delta, &has_delta);
    if (code == WG_OK && has_first && has_delta)
        code = wg__shape_new_values(n, count, &made);
    if (code != WG_OK || made == NULL)
        return code;
    for (size_t i = 0; i < count; i++) {
        int64_t value = 0;
        if (__builtin_mul_overflow((int64_t)i, delta, &value) ||
            __builtin_add_overflow(value, first, &value))
            return WG_OK;
        made[i] = (struct wg_value){.kind = WG_VALUE_INT, .i = value};
    }
    wg__shape_set_values(n, 0, made, count);
    return WG_OK;
}

/* One number from all elements of a list; unknown on overflow. */
static struct wg_value reduce(const char *op, const struct wg_value *values, size_t count)
{
    const struct wg_value unknown = {.kind = WG_VALUE_UNKNOWN};
    int64_t result = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t value = values[i].i;
        bool fits = true;
        if (values[i].kind != WG_VALUE_INT)
            return unknown;
        if (i == 0)
            result = value;
        else if (op[6] == 'P') /* ReduceProd */
            fits = !__builtin_mul_overflow(result, value, &result);
        else if (op[6] == 'S') /* ReduceSum */
            fits = !__builtin_add_overflow(result, value, &result);
        else if (op[7] == 'a') /* ReduceMax */
            result = value > result ? value : result;
        else /* ReduceMin */
            result = value < result ? value : result;
        if (!fits)
            return unknown;
    }
    return (struct wg_value){.kind = WG_VALUE_INT, .i = result};
}

/* Lists to one number: what shape computations do. */
enum wg_code wg__evaluate_reduce(struct wg_shape_node *n)
{
    const struct wg_value *values = NULL;
    struct wg_value *made = NULL;
    size_t count = 0, made_count = 0;
    const struct wg_shape *shape = wg__shape_in(n, 0);
    const struct wg_tensor *out = wg__shape_output(n, 0);
    if (shape == NULL || shape->rank != 1 || out == NULL ||
        !wg__shape_count(&out->shape, 1, &made_count) || made_count != 1)
        return WG_OK;
    enum wg_code code = wg__shape_values(n, 0, &values, &count);
    if (code != WG_OK || values == NULL || count == 0)
        return code;
    const struct wg_value result = count == 1 && values[0].kind != WG_VALUE_REAL
                                       ? values[0]
                                       : reduce(n->node->op, values, count);
    if (result.kind == WG_VALUE_UNKNOWN)
        return WG_OK;
    code = wg__shape_new_values(n, 1, &made);
    if (code != WG_OK || made == NULL)
        return code;
    made[0] = result;
    wg__shape_set_values(n, 0, made, 1);
    return WG_OK;
}
