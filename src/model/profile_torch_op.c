/* SPDX-License-Identifier: MIT
 *
 * Operators of PyTorch as GEMMs and convolutions.
 *
 *     aten::mm, _scaled_mm                    a[m, k], b[k, n]
 *     aten::addmm, _addmm_activation          bias, a, b
 *     aten::bmm, baddbmm                      a[b, m, k], b[b, k, n] (behind what is added)
 *     aten::cudnn_convolution(_relu, ..)      x, w, .. padding, stride, dilation, groups
 *     aten::convolution, _convolution, conv2d x, w, bias, stride, padding, dilation, .., groups
 *
 * Sizes are in "Input Dims", a list for each argument, numbers in "Concrete Inputs", a text for
 * each argument ("[1, 1]"). Backward operators run kernels of two products and stay unknown.
 *
 * Threads: one thread at a time.
 */
#include "model/profile_torch_op.h"

#include <string.h>

#include "model/profile_json.h"

struct product {
    const char *name;
    size_t a; /* the argument that is the left matrix */
    size_t rank;
};

static const struct product products[] = {
    {"aten::mm", 0, 2},  {"aten::_scaled_mm", 0, 2}, {"aten::addmm", 1, 2},
    {"aten::bmm", 0, 3}, {"aten::baddbmm", 1, 3},    {"aten::_addmm_activation", 1, 2},
};

struct convolution {
    const char *name;
    size_t stride, padding, dilation, groups; /* their arguments */
    size_t transposed;                        /* 0: there is no such argument */
};

static const struct convolution convolutions[] = {
    {"aten::cudnn_convolution", 3, 2, 4, 5, 0},
    {"aten::cudnn_convolution_relu", 3, 4, 5, 6, 0},
    {"aten::cudnn_convolution_add_relu", 5, 6, 7, 8, 0},
    {"aten::convolution", 3, 4, 5, 8, 6},
    {"aten::_convolution", 3, 4, 5, 8, 6},
    {"aten::conv2d", 3, 4, 5, 6, 0},
};

/* -- Arguments ----------------------------------------------------------------------------- */

static bool read_dims(const json_t *args, size_t index, size_t rank, uint64_t *out)
{
    const json_t *dims = json_array_get(json_object_get(args, "Input Dims"), index);
    if (json_array_size(dims) != rank)
        return false;
    for (size_t i = 0; i < rank; i++)
        if (!wg__json_whole(json_array_get(dims, i), &out[i]) || out[i] == 0)
            return false;
    return true;
}

static bool read_dtype(const json_t *args, size_t index, enum wg_dtype *out)
{
    static const struct {
        const char *name;
        enum wg_dtype dtype;
    } types[] = {{"float", WG_DTYPE_FP32},
                 {"c10::Half", WG_DTYPE_FP16},
                 {"c10::BFloat16", WG_DTYPE_BF16},
                 {"signed char", WG_DTYPE_INT8},
                 {"c10::Float8_e4m3fn", WG_DTYPE_FP8},
                 {"c10::Float8_e5m2", WG_DTYPE_FP8}};
    const char *type =
        json_string_value(json_array_get(json_object_get(args, "Input type"), index));
    for (size_t i = 0; type != NULL && i < sizeof types / sizeof *types; i++) {
        if (strcmp(type, types[i].name) == 0) {
            *out = types[i].dtype;
            return true;
        }
    }
    return false;
}

/* Whole numbers of "[1, 1]", "(1, 1)" or "1" for height and width. */
static bool read_pair(const json_t *args, size_t index, uint64_t out[2])
{
    const char *p =
        json_string_value(json_array_get(json_object_get(args, "Concrete Inputs"), index));
    size_t count = 0;
    while (p != NULL && *p != '\0') {
        uint64_t value = 0;
        size_t digits = 0;
        for (; *p >= '0' && *p <= '9' && digits < 9; p++, digits++)
            value = value * 10 + (uint64_t)(*p - '0');
        if (digits == 0) {
            if (strchr("[](), ", *p) == NULL)
                return false;
            p++;
        } else if (count == 2) {
            return false;
        } else {
            out[count++] = value;
        }
    }
    if (count == 1)
        out[1] = out[0];
    return count != 0;
}

/* -- Operators ----------------------------------------------------------------------------- */

static bool read_product(const json_t *args, const struct product *op, struct wg_layer *layer)
{
    uint64_t a[3] = {0}, b[3] = {0};
    struct wg_gemm gemm = {.batch = 1};
    if (!read_dims(args, op->a, op->rank, a) || !read_dims(args, op->a + 1, op->rank, b) ||
        !read_dtype(args, op->a, &gemm.dtype))
        return false;
    const size_t last = op->rank == 3 ? 2 : 1;
    if (a[last] != b[last - 1] || (op->rank == 3 && a[0] != b[0]))
        return false;
    gemm.batch = op->rank == 3 ? a[0] : 1;
    gemm.m = a[last - 1];
    gemm.k = a[last];
    gemm.n = b[last];
    gemm.has_bias = op->a == 1;
    if ((double)gemm.batch * (double)gemm.m * (double)gemm.n > 4611686018427387904.0) /* 2^62 */
        return false;
    layer->kind = WG_LAYER_GEMM;
    layer->gemm = gemm;
    layer->in.constant = gemm.k;
    layer->out.constant = gemm.n;
    return true;
}

static bool read_convolution(const json_t *args, const struct convolution *op,
                             struct wg_layer *layer)
{
    uint64_t x[4], w[4], stride[2], pad[2], dilation[2], groups[2];
    struct wg_conv conv = {0};
    const char *transposed =
        json_string_value(json_array_get(json_object_get(args, "Concrete Inputs"), op->transposed));
    if (!read_dims(args, 0, 4, x) || !read_dims(args, 1, 4, w) ||
        !read_dtype(args, 0, &conv.dtype) || !read_pair(args, op->stride, stride) ||
        !read_pair(args, op->padding, pad) || !read_pair(args, op->dilation, dilation) ||
        !read_pair(args, op->groups, groups))
        return false;
    if (op->transposed != 0 && (transposed == NULL || strcmp(transposed, "False") != 0))
        return false;
    conv.n = x[0];
    conv.c = x[1];
    conv.h = x[2];
    conv.w = x[3];
    conv.filters = w[0];
    conv.r = w[2];
    conv.s = w[3];
    conv.stride_h = stride[0];
    conv.stride_w = stride[1];
    conv.pad_top = conv.pad_bottom = pad[0];
    conv.pad_left = conv.pad_right = pad[1];
    conv.dilation_h = dilation[0];
    conv.dilation_w = dilation[1];
    conv.groups = groups[0];
    struct wg_gemm gemm;
    if (wg__conv_gemm(&conv, WG_CONV_FORWARD, &gemm, NULL) != WG_OK || w[1] * conv.groups != conv.c)
        return false;
    layer->kind = WG_LAYER_CONV;
    layer->conv = conv;
    layer->in.constant = conv.c;
    layer->out.constant = conv.filters;
    layer->parameters = w[0] * w[1] * w[2] * w[3];
    return true;
}

bool wg__torch_op_read(const json_t *event, struct wg_layer *layer)
{
    const char *name = json_string_value(json_object_get(event, "name"));
    const json_t *args = json_object_get(event, "args");
    for (size_t i = 0; name != NULL && i < sizeof products / sizeof *products; i++)
        if (strcmp(name, products[i].name) == 0)
            return read_product(args, &products[i], layer);
    for (size_t i = 0; name != NULL && i < sizeof convolutions / sizeof *convolutions; i++)
        if (strcmp(name, convolutions[i].name) == 0)
            return read_convolution(args, &convolutions[i], layer);
    return false;
}
