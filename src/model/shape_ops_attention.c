/* SPDX-License-Identifier: MIT
 *
 * Attention of opset 23, and what goes with it.
 *
 *     Q (batch, heads, queries, width), K, V likewise with their own heads and length;
 *     or (batch, length, heads * width), with the heads told by attributes.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_pass.h"

struct heads {
    struct wg_dim batch, heads, length, width;
};

static enum wg_code read_heads(const struct wg_shape_node *n, size_t input, const char *attribute,
                               struct heads *out)
{
    const struct wg_shape *shape = wg__shape_in(n, input);
    const int64_t heads = wg__shape_int(n, attribute, 0);
    if (shape->rank == 4) {
        *out = (struct heads){shape->dims[0], shape->dims[1], shape->dims[2], shape->dims[3]};
        return WG_OK;
    }
    if (shape->rank != 3)
        return wg__shape_refuse(n, "'%.40s' has %zu dimensions, expected 3 or 4",
                                wg__shape_name(n, input), shape->rank);
    *out = (struct heads){shape->dims[0], wg__dim_unknown, shape->dims[1], wg__dim_unknown};
    if (heads < 1)
        return WG_OK;
    out->heads = wg__dim(heads);
    if (wg__dim_known(shape->dims[2]) && shape->dims[2].value % heads != 0)
        return wg__shape_refuse(n, "%lld does not divide into %lld heads",
                                (long long)shape->dims[2].value, (long long)heads);
    if (wg__dim_known(shape->dims[2]))
        out->width = wg__dim(shape->dims[2].value / heads);
    return WG_OK;
}

static enum wg_code set_present(struct wg_shape_node *n, size_t past_input, size_t output,
                                const struct heads *of, struct wg_dim *total)
{
    struct wg_shape out = wg__shape_of_rank(4);
    const struct wg_shape *past = wg__shape_in(n, past_input);
    struct wg_dim before = wg__dim(0);
    if (wg__shape_has(n, past_input))
        before = past != NULL && past->rank == 4 ? past->dims[2] : wg__dim_unknown;
    out.dims[0] = of->batch;
    out.dims[1] = of->heads;
    out.dims[3] = of->width;
    const enum wg_code code = wg__dim_plus(n, before, of->length, &out.dims[2]);
    *total = out.dims[2];
    if (code == WG_OK)
        wg__shape_set(n, output, &out);
    return code;
}

static enum wg_code attention(struct wg_shape_node *n)
{
    struct heads q = {0}, k = {0}, v = {0};
    struct wg_dim total = wg__dim_unknown, unused = wg__dim_unknown;
    const struct wg_shape *query = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    wg__shape_pass_type(n, 1, 1);
    wg__shape_pass_type(n, 2, 2);
    wg__shape_pass_type(n, 0, 3);
    if (query == NULL || wg__shape_in(n, 1) == NULL || wg__shape_in(n, 2) == NULL)
        return WG_OK;
    enum wg_code code = read_heads(n, 0, "q_num_heads", &q);
    if (code == WG_OK)
        code = read_heads(n, 1, "kv_num_heads", &k);
    if (code == WG_OK)
        code = read_heads(n, 2, "kv_num_heads", &v);
    if (code == WG_OK)
        code = set_present(n, 4, 1, &k, &total);
    if (code == WG_OK)
        code = set_present(n, 5, 2, &v, &unused);
    if (code != WG_OK)
        return code;
    struct wg_shape out = *query, scores = wg__shape_of_rank(4);
    if (query->rank == 4)
        out.dims[3] = v.width;
    else
        code = wg__dim_times(n, q.heads, v.width, &out.dims[2]);
    if (code != WG_OK)
        return code;
    wg__shape_set(n, 0, &out);
    scores.dims[0] = q.batch;
    scores.dims[1] = q.heads;
    scores.dims[2] = q.length;
    scores.dims[3] = total;
    wg__shape_set(n, 3, &scores);
    return WG_OK;
}

static const struct wg_shape_op ops[] = {
    {"Attention", attention, NULL},
    {"RotaryEmbedding", wg__shape_same, NULL},
};

const struct wg_shape_family wg__shape_ops_attention = {"", ops, sizeof ops / sizeof ops[0]};
