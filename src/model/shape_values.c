/* SPDX-License-Identifier: MIT
 *
 * The values of small tensors, that shapes are computed from.
 *
 * Networks compute shapes as they run: Shape, Gather, Concat, then Reshape. A value is a list of
 * elements in row-major order, each a number, a dimension's name or unknown, so that
 * [batch, 3 * 224] is still worth something. Constants are read when an operator first asks, and
 * only small ones: a weight's bytes stay on the disk.
 *
 * Owns: what is made is the model's arena's.    Threads: one thread at a time.
 */
#include "base/alloc.h"
#include "model/onnx.h"
#include "model/shape_node.h"

bool wg__type_is_int(int elem_type)
{
    switch (elem_type) {
    case WG_ELEM_UINT8:
    case WG_ELEM_INT8:
    case WG_ELEM_UINT16:
    case WG_ELEM_INT16:
    case WG_ELEM_INT32:
    case WG_ELEM_INT64:
    case WG_ELEM_BOOL:
    case WG_ELEM_UINT32:
    case WG_ELEM_UINT64:
        return true;
    default:
        return false;
    }
}

bool wg__type_is_real(int elem_type)
{
    switch (elem_type) {
    case WG_ELEM_FLOAT:
    case WG_ELEM_DOUBLE:
    case WG_ELEM_FLOAT16:
    case WG_ELEM_BFLOAT16:
        return true;
    default:
        return false;
    }
}

enum wg_code wg__shape_new_values(const struct wg_shape_node *n, size_t count,
                                  struct wg_value **out)
{
    struct wg_shape_run *run = n->run;
    *out = NULL;
    if (count > WG_SHAPE_VALUES_MAX || count > run->values_left)
        return WG_OK;
    struct wg_value *values =
        wg__arena_alloc(&run->model->arena, count != 0 ? count : 1, sizeof *values);
    if (values == NULL)
        return wg__shape_no_memory(n);
    run->values_left -= count;
    *out = values;
    return WG_OK;
}

void wg__shape_set_values(struct wg_shape_node *n, size_t output, const struct wg_value *values,
                          size_t count)
{
    struct wg_tensor *tensor = wg__shape_output(n, output);
    if (tensor == NULL)
        return;
    tensor->values = values;
    tensor->value_count = count;
}

static enum wg_code read_ints(struct wg_shape_run *run, const struct wg_constant *constant,
                              struct wg_value *values, size_t count, struct wg_error *why)
{
    int64_t *ints = wg__alloc_zeroed(count != 0 ? count : 1, sizeof *ints);
    size_t read = 0;
    if (ints == NULL)
        return WG_ENOMEM;
    enum wg_code code = wg__constant_ints(run->model, constant, ints, count, &read, why);
    if (code == WG_OK && read != count)
        code = WG_EUNSUPPORTED;
    for (size_t i = 0; code == WG_OK && i < count; i++)
        values[i] = (struct wg_value){.kind = WG_VALUE_INT, .i = ints[i]};
    wg__free(ints);
    return code;
}

static enum wg_code read_reals(struct wg_shape_run *run, const struct wg_constant *constant,
                               struct wg_value *values, size_t count, struct wg_error *why)
{
    double *reals = wg__alloc_zeroed(count != 0 ? count : 1, sizeof *reals);
    size_t read = 0;
    if (reals == NULL)
        return WG_ENOMEM;
    enum wg_code code = wg__constant_doubles(run->model, constant, reals, count, &read, why);
    if (code == WG_OK && read != count)
        code = WG_EUNSUPPORTED;
    for (size_t i = 0; code == WG_OK && i < count; i++)
        values[i] = (struct wg_value){.kind = WG_VALUE_REAL, .real = reals[i]};
    wg__free(reals);
    return code;
}

/* Weights that lie in a file that isn't here, or in a type that isn't read, are values not known.
 */
static enum wg_code read_constant(const struct wg_shape_node *n, struct wg_tensor *tensor)
{
    size_t count = 0;
    struct wg_error why;
    const struct wg_constant *constant = tensor->constant;
    const bool is_int = wg__type_is_int(constant->elem_type);
    if (!is_int && !wg__type_is_real(constant->elem_type))
        return WG_OK;
    if (!wg__shape_count(&tensor->shape, WG_SHAPE_VALUES_MAX, &count))
        return WG_OK;
    struct wg_value *values = NULL;
    enum wg_code code = wg__shape_new_values(n, count, &values);
    if (code != WG_OK || values == NULL)
        return code;
    code = is_int ? read_ints(n->run, constant, values, count, &why)
                  : read_reals(n->run, constant, values, count, &why);
    if (code == WG_ENOMEM)
        return wg__shape_no_memory(n);
    if (code != WG_OK)
        return WG_OK;
    tensor->values = values;
    tensor->value_count = count;
    return WG_OK;
}

enum wg_code wg__shape_values(const struct wg_shape_node *n, size_t input,
                              const struct wg_value **out, size_t *count_out)
{
    struct wg_tensor *tensor = wg__shape_input(n, input);
    *out = NULL;
    *count_out = 0;
    if (tensor == NULL)
        return WG_OK;
    if (tensor->values == NULL && tensor->constant != NULL) {
        const enum wg_code code = read_constant(n, tensor);
        if (code != WG_OK)
            return code;
    }
    *out = tensor->values;
    *count_out = tensor->values != NULL ? tensor->value_count : 0;
    return WG_OK;
}

enum wg_code wg__shape_int_values(const struct wg_shape_node *n, size_t input, int64_t *out,
                                  size_t capacity, size_t *count_out, bool *has_out)
{
    const struct wg_value *values = NULL;
    *has_out = false;
    const enum wg_code code = wg__shape_values(n, input, &values, count_out);
    if (code != WG_OK || values == NULL || *count_out > capacity)
        return code;
    for (size_t i = 0; i < *count_out; i++) {
        if (values[i].kind != WG_VALUE_INT)
            return WG_OK;
        out[i] = values[i].i;
    }
    *has_out = true;
    return WG_OK;
}

enum wg_code wg__shape_list(const struct wg_shape_node *n, const char *attribute, size_t input,
                            struct wg_shape_list *out)
{
    size_t count = 0;
    const int64_t *ints = attribute != NULL ? wg__shape_ints(n, attribute, &count) : NULL;
    const size_t capacity = sizeof out->values / sizeof out->values[0];
    *out = (struct wg_shape_list){.is_known = true};
    if (ints != NULL) {
        if (count > capacity)
            return wg__shape_refuse(n, "%s has %zu elements, at most %zu make sense", attribute,
                                    count, capacity);
        out->is_given = true;
        out->count = count;
        for (size_t i = 0; i < count; i++)
            out->values[i] = ints[i];
        return WG_OK;
    }
    if (!wg__shape_has(n, input))
        return WG_OK;
    out->is_given = true;
    return wg__shape_int_values(n, input, out->values, capacity, &out->count, &out->is_known);
}
