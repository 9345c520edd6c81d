/* SPDX-License-Identifier: MIT
 *
 * Quantisation: shapes stay, types change.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_pass.h"

static void keep_shape(struct wg_shape_node *n)
{
    const struct wg_shape *data = wg__shape_in(n, 0);
    if (data != NULL)
        wg__shape_set(n, 0, data);
}

static enum wg_code quantize(struct wg_shape_node *n)
{
    const int64_t told = wg__shape_int(n, "output_dtype", 0);
    if (wg__shape_has(n, 2))
        wg__shape_pass_type(n, 2, 0);
    else
        wg__shape_set_type(n, 0, told > 0 && told <= INT32_MAX ? (int)told : WG_ELEM_UINT8);
    keep_shape(n);
    return WG_OK;
}

/* The result has its scale's type, since scales have types other than FLOAT. */
static enum wg_code dequantize(struct wg_shape_node *n)
{
    const int64_t told = wg__shape_int(n, "output_dtype", 0);
    if (told > 0 && told <= INT32_MAX)
        wg__shape_set_type(n, 0, (int)told);
    else if (n->opset >= 19)
        wg__shape_pass_type(n, 1, 0);
    else
        wg__shape_set_type(n, 0, WG_ELEM_FLOAT);
    keep_shape(n);
    return WG_OK;
}

static enum wg_code quantize_dynamically(struct wg_shape_node *n)
{
    const struct wg_shape one = wg__shape_of_rank(0);
    wg__shape_set_type(n, 0, WG_ELEM_UINT8);
    wg__shape_set_type(n, 1, WG_ELEM_FLOAT);
    wg__shape_set_type(n, 2, WG_ELEM_UINT8);
    keep_shape(n);
    wg__shape_set(n, 1, &one);
    wg__shape_set(n, 2, &one);
    return WG_OK;
}

static const struct wg_shape_op ops[] = {
    {"DequantizeLinear", dequantize, NULL},
    {"DynamicQuantizeLinear", quantize_dynamically, NULL},
    {"QuantizeLinear", quantize, NULL},
};

const struct wg_shape_family wg__shape_ops_quantize = {"", ops, sizeof ops / sizeof ops[0]};
