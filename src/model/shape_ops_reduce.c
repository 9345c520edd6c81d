/* SPDX-License-Identifier: MIT
 *
 * Reductions: axes go, or become 1; and losses, which reduce as their attribute says.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_evaluate.h"
#include "model/shape_pass.h"

static enum wg_code reduce(struct wg_shape_node *n)
{
    struct wg_shape_list axes;
    bool is_reduced[WG_DIMS_MAX] = {false};
    const struct wg_shape *data = wg__shape_in(n, 0);
    const bool keeps = wg__shape_int(n, "keepdims", 1) != 0;
    wg__shape_pass_type(n, 0, 0);
    enum wg_code code = wg__shape_list(n, "axes", 1, &axes);
    if (code != WG_OK || data == NULL)
        return code;
    struct wg_shape out = wg__shape_of_rank(data->rank);
    if (!axes.is_known) {
        if (keeps)
            wg__shape_set(n, 0, &out);
        return WG_OK;
    }
    const bool all = axes.count == 0 && wg__shape_int(n, "noop_with_empty_axes", 0) == 0;
    for (size_t i = 0; i < axes.count; i++) {
        size_t axis = 0;
        code = wg__shape_axis(n, axes.values[i], data->rank, &axis);
        if (code != WG_OK)
            return code;
        is_reduced[axis] = true;
    }
    out.rank = 0;
    for (size_t i = 0; i < data->rank; i++) {
        if (!all && !is_reduced[i])
            out.dims[out.rank++] = data->dims[i];
        else if (keeps)
            out.dims[out.rank++] = wg__dim(1);
    }
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code arg_reduce(struct wg_shape_node *n)
{
    size_t axis = 0;
    const struct wg_shape *data = wg__shape_in(n, 0);
    wg__shape_set_type(n, 0, WG_ELEM_INT64);
    if (data == NULL)
        return WG_OK;
    const enum wg_code code = wg__shape_axis(n, wg__shape_int(n, "axis", 0), data->rank, &axis);
    if (code != WG_OK)
        return code;
    struct wg_shape out = *data;
    if (wg__shape_int(n, "keepdims", 1) != 0) {
        out.dims[axis] = wg__dim(1);
    } else {
        for (size_t i = axis; i + 1 < out.rank; i++)
            out.dims[i] = out.dims[i + 1];
        out.rank--;
    }
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* One loss an element of the target, or one for all. */
static enum wg_code loss(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0), *target = wg__shape_in(n, 1);
    const struct wg_shape one = wg__shape_of_rank(0);
    wg__shape_pass_type(n, 0, 0);
    if (!wg__shape_text_is(n, "reduction", "none"))
        wg__shape_set(n, 0, &one);
    else if (target != NULL)
        wg__shape_set(n, 0, target);
    if (data != NULL && target != NULL && data->rank != target->rank + 1)
        return wg__shape_refuse(n, "'%.40s' has %zu dimensions, its target %zu",
                                wg__shape_name(n, 0), data->rank, target->rank);
    wg__shape_pass(n, 0, 1);
    return WG_OK;
}

static const struct wg_shape_op ops[] = {
    {"ArgMax", arg_reduce, NULL},
    {"ArgMin", arg_reduce, NULL},
    {"NegativeLogLikelihoodLoss", loss, NULL},
    {"ReduceL1", reduce, NULL},
    {"ReduceL2", reduce, NULL},
    {"ReduceLogSum", reduce, NULL},
    {"ReduceLogSumExp", reduce, NULL},
    {"ReduceMax", reduce, wg__evaluate_reduce},
    {"ReduceMean", reduce, NULL},
    {"ReduceMin", reduce, wg__evaluate_reduce},
    {"ReduceProd", reduce, wg__evaluate_reduce},
    {"ReduceSum", reduce, wg__evaluate_reduce},
    {"ReduceSumSquare", reduce, NULL},
    {"SoftmaxCrossEntropyLoss", loss, NULL},
};

const struct wg_shape_family wg__shape_ops_reduce = {"", ops, sizeof ops / sizeof ops[0]};
