/* SPDX-License-Identifier: MIT
 *
 * Normalisations: the first output is like the input, others hold means and variances.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_pass.h"

/* Training gives running mean and variance too, of as many channels as there are. */
static enum wg_code batch_normalization(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    struct wg_shape channels = wg__shape_of_rank(1);
    wg__shape_pass(n, 0, 0);
    if (data != NULL && data->rank > 1)
        channels.dims[0] = data->dims[1];
    for (size_t i = 1; i < 5; i++) {
        const struct wg_shape *given = i < 3 ? wg__shape_in(n, i + 2) : NULL;
        if (given != NULL && given->rank == 1 && wg__dim_known(given->dims[0]))
            channels.dims[0] = given->dims[0];
        wg__shape_pass_type(n, n->opset >= 14 ? 3 : 0, i);
        wg__shape_set(n, i, &channels);
    }
    return WG_OK;
}

/* Mean and inverse deviation keep their axes as 1. */
static enum wg_code layer_normalization(struct wg_shape_node *n)
{
    size_t axis = 0;
    const struct wg_shape *data = wg__shape_in(n, 0);
    const int64_t stash = wg__shape_int(n, "stash_type", WG_ELEM_FLOAT);
    wg__shape_pass(n, 0, 0);
    for (size_t i = 1; i < 3; i++)
        wg__shape_set_type(n, i, stash > 0 && stash <= INT32_MAX ? (int)stash : WG_ELEM_UNKNOWN);
    if (data == NULL)
        return WG_OK;
    const enum wg_code code = wg__shape_axis(n, wg__shape_int(n, "axis", -1), data->rank, &axis);
    if (code != WG_OK)
        return code;
    struct wg_shape means = *data;
    for (size_t i = axis; i < means.rank; i++)
        means.dims[i] = wg__dim(1);
    wg__shape_set(n, 1, &means);
    wg__shape_set(n, 2, &means);
    return WG_OK;
}

static const struct wg_shape_op ops[] = {
    {"BatchNormalization", batch_normalization, NULL},
    {"GroupNormalization", wg__shape_same, NULL},
    {"InstanceNormalization", wg__shape_same, NULL},
    {"LRN", wg__shape_same, NULL},
    {"LayerNormalization", layer_normalization, NULL},
    {"LpNormalization", wg__shape_same, NULL},
    {"MeanVarianceNormalization", wg__shape_same, NULL},
    {"RMSNormalization", wg__shape_same, NULL},
};

const struct wg_shape_family wg__shape_ops_normalize = {"", ops, sizeof ops / sizeof ops[0]};
