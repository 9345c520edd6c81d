/* SPDX-License-Identifier: MIT
 *
 * com.microsoft: what ONNX Runtime's optimiser and its exporters leave in files.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_matrix.h"
#include "model/shape_pass.h"

static enum wg_code fused_conv(struct wg_shape_node *n)
{
    return wg__shape_op_find("", "Conv")->infer(n);
}

static enum wg_code fused_gemm(struct wg_shape_node *n)
{
    return wg__shape_op_find("", "Gemm")->infer(n);
}

static enum wg_code fused_matmul(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 0, 0);
    if (wg__shape_int(n, "transBatchA", 0) != 0 || wg__shape_int(n, "transBatchB", 0) != 0)
        return WG_OK;
    return wg__shape_product_of(n, 0, 1, wg__shape_int(n, "transA", 0) != 0,
                                wg__shape_int(n, "transB", 0) != 0);
}

/* x, x_scale, x_zero, y, y_scale, y_zero, z_scale, z_zero */
static enum wg_code qlinear_binary(struct wg_shape_node *n)
{
    struct wg_shape out;
    const struct wg_shape *a = wg__shape_in(n, 0), *b = wg__shape_in(n, 3);
    wg__shape_pass_type(n, 0, 0);
    if (a == NULL || b == NULL)
        return WG_OK;
    const enum wg_code code = wg__shape_broadcast(n, a, b, &out);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

/* A, B, a_scale, b_scale, a_zero, b_zero, bias -> float */
static enum wg_code matmul_integer_to_float(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 2, 0);
    return wg__shape_product_of(n, 0, 1, false, false);
}

/* A, B, b_scale, b_zero, bias */
static enum wg_code dynamic_quantize_matmul(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 0, 0);
    return wg__shape_product_of(n, 0, 1, false, false);
}

/* The weights of 4 or so bits are packed; their shape is told by attributes. */
static enum wg_code matmul_n_bits(struct wg_shape_node *n)
{
    const struct wg_shape *a = wg__shape_in(n, 0);
    const int64_t columns = wg__shape_int(n, "N", 0);
    wg__shape_pass_type(n, 0, 0);
    if (a == NULL || a->rank == 0 || columns < 1)
        return WG_OK;
    struct wg_shape out = *a;
    out.dims[out.rank - 1] = wg__dim(columns);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* (batch, length, width) with weights (width, q + k + v): an output as wide as v, a third of them
 * where nothing else is told. */
static enum wg_code attention(struct wg_shape_node *n)
{
    size_t count = 0;
    const struct wg_shape *x = wg__shape_in(n, 0), *weights = wg__shape_in(n, 1);
    const int64_t *widths = wg__shape_ints(n, "qkv_hidden_sizes", &count);
    wg__shape_pass_type(n, 0, 0);
    if (x == NULL || x->rank != 3)
        return WG_OK;
    struct wg_shape out = *x;
    out.dims[2] = wg__dim_unknown;
    if (count == 3 && widths[2] > 0)
        out.dims[2] = wg__dim(widths[2]);
    else if (weights != NULL && weights->rank == 2 && wg__dim_known(weights->dims[1]))
        out.dims[2] = wg__dim(weights->dims[1].value / 3);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code quantized_attention(struct wg_shape_node *n)
{
    const enum wg_code code = attention(n);
    wg__shape_pass_type(n, 3, 0); /* that of the input's scale */
    return code;
}

/* Outputs: the sum normalised; mean, inverse deviation; the sum itself. */
static enum wg_code skip_normalization(struct wg_shape_node *n)
{
    wg__shape_pass(n, 0, 0);
    wg__shape_pass(n, 0, 3);
    return WG_OK;
}

/* ids (batch, length), segment ids, word embedding (words, width) .. */
static enum wg_code embed_normalization(struct wg_shape_node *n)
{
    const struct wg_shape *ids = wg__shape_in(n, 0), *words = wg__shape_in(n, 2);
    struct wg_shape out = wg__shape_of_rank(3), mask = wg__shape_of_rank(1);
    wg__shape_pass_type(n, 2, 0);
    wg__shape_set_type(n, 1, WG_ELEM_INT32);
    if (ids == NULL || words == NULL || ids->rank != 2 || words->rank != 2)
        return WG_OK;
    out.dims[0] = ids->dims[0];
    out.dims[1] = ids->dims[1];
    out.dims[2] = words->dims[1];
    mask.dims[0] = ids->dims[0];
    wg__shape_set(n, 0, &out);
    wg__shape_set(n, 1, &mask);
    return WG_OK;
}

static enum wg_code quantize(struct wg_shape_node *n)
{
    return wg__shape_op_find("", "QuantizeLinear")->infer(n);
}

static enum wg_code dequantize(struct wg_shape_node *n)
{
    const enum wg_code code = wg__shape_same(n);
    wg__shape_pass_type(n, 1, 0);
    return code;
}

static const struct wg_shape_op ops[] = {
    {"Attention", attention, NULL},
    {"BiasGelu", wg__shape_same, NULL},
    {"DequantizeLinear", dequantize, NULL},
    {"DynamicQuantizeMatMul", dynamic_quantize_matmul, NULL},
    {"EmbedLayerNormalization", embed_normalization, NULL},
    {"FastGelu", wg__shape_same, NULL},
    {"FusedConv", fused_conv, NULL},
    {"FusedGemm", fused_gemm, NULL},
    {"FusedMatMul", fused_matmul, NULL},
    {"Gelu", wg__shape_same, NULL},
    {"MatMulIntegerToFloat", matmul_integer_to_float, NULL},
    {"MatMulNBits", matmul_n_bits, NULL},
    {"QAttention", quantized_attention, NULL},
    {"QLinearAdd", qlinear_binary, NULL},
    {"QLinearLeakyRelu", wg__shape_same, NULL},
    {"QLinearMul", qlinear_binary, NULL},
    {"QLinearSigmoid", wg__shape_same, NULL},
    {"QuantizeLinear", quantize, NULL},
    {"QuickGelu", wg__shape_same, NULL},
    {"RotaryEmbedding", wg__shape_same, NULL},
    {"SimplifiedLayerNormalization", wg__shape_same, NULL},
    {"SkipLayerNormalization", skip_normalization, NULL},
    {"SkipSimplifiedLayerNormalization", skip_normalization, NULL},
};

const struct wg_shape_family wg__shape_ops_microsoft = {"com.microsoft", ops,
                                                        sizeof ops / sizeof ops[0]};
