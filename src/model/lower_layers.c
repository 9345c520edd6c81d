/* SPDX-License-Identifier: MIT
 *
 * Convolutions and matrix products as layers.
 *
 *     Conv with two spatial axes, or one (height 1)     CONV
 *     Conv with three                                   GEMM over n*d*h*w pixels
 *     ConvTranspose                                     GEMM: every input pixel times all taps
 *     Gemm, MatMul by a constant                        GEMM: a linear layer
 *     MatMul of two computed tensors                    GEMM: `batch` products (attention)
 *
 * The quantised and fused variants differ in where their operands stand. The present widths are
 * those of the weights; the input's label gives `in`, a new width `out`. A depth-wise convolution's
 * output is its input's width; a grouped one keeps the channels of a group, so its widths are tied,
 * too, and multiples of a group.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include <assert.h>
#include <string.h>

#include "model/lower_parts.h"

/* The input's label where it lies on `axis`; else its widths are fixed and there is none. */
static struct wg_label label_along(struct wg_lower *lower, const struct wg_node *node, size_t input,
                                   int axis)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, input);
    if (state != NULL && state->label.axis == axis)
        return state->label;
    if (state != NULL)
        wg__lower_fix(lower, &state->label);
    return (struct wg_label){.axis = -1};
}

static uint64_t count_input(struct wg_lower *lower, const struct wg_node *node, size_t input)
{
    return input < node->input_count && node->inputs[input] >= 0
               ? wg__lower_count(lower, node->inputs[input])
               : 0;
}

/* A computed operand that is added to the output has the output's channels. */
static void add_computed(struct wg_lower *lower, const struct wg_node *node, size_t input)
{
    const struct wg_lower_tensor *added = wg__lower_input_state(lower, node, input);
    if (added == NULL || added->is_static || node->outputs[0] < 0)
        return;
    const struct wg_label *out = &wg__lower_state(lower, node->outputs[0])->label;
    if (added->label.axis >= 0 && added->label.axis == out->axis) {
        wg__lower_unite(lower, out, &added->label);
    } else {
        wg__lower_fix(lower, out);
        wg__lower_fix(lower, &added->label);
    }
}

static enum wg_code malformed(const struct wg_lower *lower, const struct wg_node *node,
                              const char *what)
{
    return wg__fail(lower->err, WG_EDATA, "node '%.100s' (%.40s): %s", node->name, node->op, what);
}

/* --- Convolutions ----------------------------------------------------------------------------- */

/* Where a convolution's operands stand among the inputs. */
struct conv_operands {
    const char *op;
    size_t x, w, bias, added;
};

static const struct conv_operands *conv_operands_of(const char *op)
{
    static const struct conv_operands table[] = {
        {"Conv", 0, 1, 2, SIZE_MAX},
        {"ConvInteger", 0, 1, SIZE_MAX, SIZE_MAX},
        {"FusedConv", 0, 1, 2, 3},
        {"QLinearConv", 0, 3, 8, SIZE_MAX},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].op, op) == 0)
            return &table[i];
    }
    return NULL;
}

/* Sizes of a convolution, whatever its number of spatial axes. */
struct conv_sizes {
    size_t axes; /* spatial */
    uint64_t samples, channels, filters, groups;
    uint64_t in[WG_DIMS_MAX], out[WG_DIMS_MAX], kernel[WG_DIMS_MAX];
    uint64_t stride[WG_DIMS_MAX], dilation[WG_DIMS_MAX];
    uint64_t before[WG_DIMS_MAX], after[WG_DIMS_MAX]; /* padding */
};

/* A list attribute of `count` numbers within `least` .. 2^31; `fallback` where it is not there. */
static bool sizes_of(const struct wg_node *node, const char *name, size_t count, int64_t least,
                     uint64_t fallback, uint64_t *out)
{
    size_t listed = 0;
    const int64_t *values = wg__node_ints(node, name, &listed);
    if (values != NULL && listed < count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (values != NULL && (values[i] < least || values[i] > INT32_MAX))
            return false;
        out[i] = values != NULL ? (uint64_t)values[i] : fallback;
    }
    return true;
}

static bool attribute_is(const struct wg_node *node, const char *name, const char *text)
{
    const struct wg_attribute *attribute = wg__node_attribute(node, name);
    return attribute != NULL && attribute->type == WG_ATTRIBUTE_STRING &&
           attribute->s_length == strlen(text) &&
           memcmp(attribute->s, text, attribute->s_length) == 0;
}

/* The padding that gives ceil(in / stride) outputs. */
static void pad_same(struct conv_sizes *sizes, bool is_lower)
{
    for (size_t i = 0; i < sizes->axes; i++) {
        const uint64_t outputs = (sizes->in[i] + sizes->stride[i] - 1) / sizes->stride[i];
        const uint64_t reach =
            (outputs - 1) * sizes->stride[i] + sizes->dilation[i] * (sizes->kernel[i] - 1) + 1;
        const uint64_t pads = reach > sizes->in[i] ? reach - sizes->in[i] : 0;
        sizes->before[i] = is_lower ? pads - pads / 2 : pads / 2;
        sizes->after[i] = pads - sizes->before[i];
    }
}

static bool read_windows(const struct wg_node *node, struct conv_sizes *sizes)
{
    uint64_t pads[2 * WG_DIMS_MAX];
    const size_t axes = sizes->axes;
    if (!sizes_of(node, "strides", axes, 1, 1, sizes->stride) ||
        !sizes_of(node, "dilations", axes, 1, 1, sizes->dilation) ||
        !sizes_of(node, "pads", 2 * axes, 0, 0, pads))
        return false;
    const bool is_lower = attribute_is(node, "auto_pad", "SAME_LOWER");
    if (is_lower || attribute_is(node, "auto_pad", "SAME_UPPER")) {
        pad_same(sizes, is_lower);
        return true;
    }
    const bool is_valid = attribute_is(node, "auto_pad", "VALID");
    for (size_t i = 0; i < axes; i++) {
        sizes->before[i] = is_valid ? 0 : pads[i];
        sizes->after[i] = is_valid ? 0 : pads[axes + i];
    }
    return true;
}

static bool read_outputs(struct conv_sizes *sizes)
{
    for (size_t i = 0; i < sizes->axes; i++) {
        const uint64_t padded = sizes->in[i] + sizes->before[i] + sizes->after[i];
        const uint64_t reach = sizes->dilation[i] * (sizes->kernel[i] - 1) + 1;
        if (padded < reach)
            return false;
        sizes->out[i] = (padded - reach) / sizes->stride[i] + 1;
    }
    return true;
}

static enum wg_code read_conv(struct wg_lower *lower, const struct wg_node *node,
                              const struct conv_operands *operands, struct conv_sizes *sizes)
{
    size_t x_rank = 0;
    size_t w_rank = 0;
    uint64_t x[WG_DIMS_MAX];
    uint64_t w[WG_DIMS_MAX];
    const struct wg_tensor *input = wg__lower_input(lower, node, operands->x);
    const struct wg_tensor *weights = wg__lower_input(lower, node, operands->w);
    if (input == NULL || weights == NULL)
        return malformed(lower, node, "an operand is left out");
    enum wg_code code = wg__lower_need_dims(lower, node, input, &x_rank, x);
    if (code == WG_OK)
        code = wg__lower_need_dims(lower, node, weights, &w_rank, w);
    if (code != WG_OK)
        return code;
    if (x_rank < 3 || x_rank != w_rank || wg__lower_elements(x_rank, x) == 0 ||
        wg__lower_elements(w_rank, w) == 0)
        return malformed(lower, node,
                         "expected an input of 3 dimensions or more, weights of as many");
    const int64_t groups = wg__node_int(node, "group", 1);
    *sizes = (struct conv_sizes){.axes = x_rank - 2,
                                 .samples = x[0],
                                 .channels = x[1],
                                 .filters = w[0],
                                 .groups = (uint64_t)groups};
    if (groups < 1 || x[1] != w[1] * (uint64_t)groups || w[0] % (uint64_t)groups != 0)
        return malformed(lower, node, "channels, weights and groups do not go together");
    memcpy(sizes->in, x + 2, sizes->axes * sizeof *x);
    memcpy(sizes->kernel, w + 2, sizes->axes * sizeof *w);
    if (!read_windows(node, sizes))
        return malformed(lower, node, "strides, pads or dilations are out of range");
    if (!read_outputs(sizes))
        return malformed(lower, node, "the kernel is larger than the padded input");
    return WG_OK;
}

/* Two spatial axes; one becomes a height of 1. */
static struct wg_conv plane_conv(const struct wg_lower *lower, const struct conv_sizes *sizes)
{
    const size_t w = sizes->axes - 1;
    struct wg_conv conv = {.dtype = lower->opts.dtype,
                           .n = sizes->samples,
                           .c = sizes->channels,
                           .h = 1,
                           .w = sizes->in[w],
                           .filters = sizes->filters,
                           .r = 1,
                           .s = sizes->kernel[w],
                           .stride_h = 1,
                           .stride_w = sizes->stride[w],
                           .pad_left = sizes->before[w],
                           .pad_right = sizes->after[w],
                           .dilation_h = 1,
                           .dilation_w = sizes->dilation[w],
                           .groups = sizes->groups};
    if (sizes->axes == 2) {
        conv.h = sizes->in[0];
        conv.r = sizes->kernel[0];
        conv.stride_h = sizes->stride[0];
        conv.pad_top = sizes->before[0];
        conv.pad_bottom = sizes->after[0];
        conv.dilation_h = sizes->dilation[0];
    }
    return conv;
}

/* A product of sizes; past 2^63 the layer is no layer of ours. */
static bool multiply(uint64_t *product, const uint64_t *factors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (__builtin_mul_overflow(*product, factors[i], product) || *product > INT64_MAX)
            return false;
    }
    return true;
}

static bool volume_gemm(const struct wg_lower *lower, const struct conv_sizes *sizes,
                        struct wg_gemm *out)
{
    *out = (struct wg_gemm){.dtype = lower->opts.dtype,
                            .batch = sizes->groups,
                            .m = sizes->samples,
                            .n = sizes->filters / sizes->groups,
                            .k = sizes->channels / sizes->groups};
    return multiply(&out->m, sizes->out, sizes->axes) &&
           multiply(&out->k, sizes->kernel, sizes->axes);
}

/* The label of a convolution's output, given that of its input. */
static enum wg_code conv_output_label(struct wg_lower *lower, const struct wg_node *node,
                                      const struct conv_sizes *sizes, const struct wg_label *in,
                                      struct wg_label *out)
{
    *out = (struct wg_label){.axis = -1};
    if (sizes->groups == 1)
        return node->outputs[0] >= 0
                   ? wg__lower_new_label(lower, lower->scope->graph->tensors[node->outputs[0]].name,
                                         1, sizes->filters, false, out)
                   : WG_OK;
    if (in->axis < 0)
        return WG_OK;
    if (sizes->channels == 0 || sizes->filters % sizes->channels != 0) {
        wg__lower_fix(lower, in);
        return WG_OK;
    }
    const uint64_t of_group = sizes->channels / sizes->groups;
    if (of_group > UINT32_MAX)
        wg__lower_fix(lower, in);
    else
        wg__lower_align(lower, in, (uint32_t)of_group);
    return wg__lower_scaled(lower, in, 1, sizes->filters / sizes->channels, out);
}

static enum wg_code lower_conv(struct wg_lower *lower, const struct wg_node *node)
{
    const struct conv_operands *operands = conv_operands_of(node->op);
    struct conv_sizes sizes = {0};
    struct wg_layer layer = {.op = node->op, .kind = WG_LAYER_CONV};
    struct wg_label out;
    assert(operands != NULL); /* wg__lower_layer_of chose by it */
    enum wg_code code = read_conv(lower, node, operands, &sizes);
    if (code != WG_OK)
        return code;
    struct wg_label in = label_along(lower, node, operands->x, 1);
    code = conv_output_label(lower, node, &sizes, &in, &out);
    if (code != WG_OK)
        return code;
    layer.parameters =
        count_input(lower, node, operands->w) + count_input(lower, node, operands->bias);
    const bool has_bias = wg__lower_input(lower, node, operands->bias) != NULL;
    wg__lower_give(lower, node->outputs[0], &out);
    add_computed(lower, node, operands->added);
    if (sizes.axes <= 2) {
        layer.conv = plane_conv(lower, &sizes);
        layer.conv.has_bias = has_bias;
    } else {
        layer.kind = WG_LAYER_GEMM;
        if (!volume_gemm(lower, &sizes, &layer.gemm))
            return malformed(lower, node, "sizes multiply beyond 2^63");
        layer.gemm.has_bias = has_bias;
        uint64_t taps = 1;
        (void)multiply(&taps, sizes.kernel, sizes.axes);
        if (sizes.groups != 1) { /* a GEMM cannot say how groups follow widths */
            wg__lower_fix(lower, &in);
            in = out = (struct wg_label){.axis = -1};
        } else if (in.axis >= 0) {
            code = wg__lower_scaled(lower, &in, 1, taps, &in);
        }
    }
    if (code == WG_OK)
        code = wg__lower_channels(lower, &in, &layer.in);
    if (code == WG_OK)
        code = wg__lower_channels(lower, &out, &layer.out);
    return code == WG_OK ? wg__lower_add(lower, node, &layer) : code;
}

/* X [n, c, h, w], W [c, filters / groups, r, s]: each input pixel is multiplied by every tap, and
 * the products are added up where they overlap. */
static enum wg_code read_transpose(struct wg_lower *lower, const struct wg_node *node,
                                   struct wg_gemm *out, uint64_t *taps)
{
    size_t x_rank = 0;
    size_t w_rank = 0;
    uint64_t x[WG_DIMS_MAX];
    uint64_t w[WG_DIMS_MAX];
    const struct wg_tensor *input = wg__lower_input(lower, node, 0);
    const struct wg_tensor *weights = wg__lower_input(lower, node, 1);
    const int64_t groups = wg__node_int(node, "group", 1);
    if (input == NULL || weights == NULL || groups < 1)
        return malformed(lower, node, "an operand is left out, or there are no groups");
    enum wg_code code = wg__lower_need_dims(lower, node, input, &x_rank, x);
    if (code == WG_OK)
        code = wg__lower_need_dims(lower, node, weights, &w_rank, w);
    if (code != WG_OK)
        return code;
    if (x_rank < 3 || x_rank != w_rank || x[1] != w[0] || x[1] % (uint64_t)groups != 0 ||
        wg__lower_elements(x_rank, x) == 0 || wg__lower_elements(w_rank, w) == 0)
        return malformed(lower, node, "channels, weights and groups do not go together");
    *out = (struct wg_gemm){.dtype = lower->opts.dtype,
                            .batch = (uint64_t)groups,
                            .m = x[0],
                            .n = w[1],
                            .k = x[1] / (uint64_t)groups,
                            .has_bias = wg__lower_input(lower, node, 2) != NULL};
    *taps = 1;
    if (!multiply(&out->m, x + 2, x_rank - 2) || !multiply(taps, w + 2, w_rank - 2))
        return malformed(lower, node, "sizes multiply beyond 2^63");
    return WG_OK;
}

static enum wg_code lower_conv_transpose(struct wg_lower *lower, const struct wg_node *node)
{
    uint64_t taps = 1;
    struct wg_layer layer = {.op = node->op, .kind = WG_LAYER_GEMM};
    struct wg_gemm *gemm = &layer.gemm;
    enum wg_code code = read_transpose(lower, node, gemm, &taps);
    if (code != WG_OK)
        return code;
    const uint64_t filters = gemm->n;
    if (!multiply(&gemm->n, &taps, 1))
        return malformed(lower, node, "sizes multiply beyond 2^63");
    layer.parameters = count_input(lower, node, 1) + count_input(lower, node, 2);
    const bool is_whole = gemm->batch == 1 && node->outputs[0] >= 0;
    const struct wg_label in = label_along(lower, node, 0, is_whole ? 1 : -2);
    struct wg_label out = {.axis = -1};
    struct wg_label product = {.axis = -1};
    if (is_whole)
        code = wg__lower_new_label(lower, lower->scope->graph->tensors[node->outputs[0]].name, 1,
                                   filters, false, &out);
    if (code == WG_OK && is_whole)
        code = wg__lower_scaled(lower, &out, 1, taps, &product);
    if (code == WG_OK)
        code = wg__lower_channels(lower, &in, &layer.in);
    if (code == WG_OK)
        code = wg__lower_channels(lower, &product, &layer.out);
    if (code != WG_OK)
        return code;
    wg__lower_give(lower, node->outputs[0], &out);
    return wg__lower_add(lower, node, &layer);
}

/* --- Matrix products -------------------------------------------------------------------------- */

/* Where a product's operands stand, and what turns them. */
struct product_operands {
    const char *op;
    size_t a, b, bias;
    const char *turns_a, *turns_b;
};

static const struct product_operands *product_operands_of(const char *op)
{
    static const struct product_operands table[] = {
        {"FusedGemm", 0, 1, 2, "transA", "transB"},
        {"FusedMatMul", 0, 1, SIZE_MAX, "transA", "transB"},
        {"Gemm", 0, 1, 2, "transA", "transB"},
        {"MatMul", 0, 1, SIZE_MAX, "", ""},
        {"MatMulInteger", 0, 1, SIZE_MAX, "", ""},
        {"QLinearMatMul", 0, 3, SIZE_MAX, "", ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].op, op) == 0)
            return &table[i];
    }
    return NULL;
}

/* One operand: its sizes from the right, and which axis is rows, which columns. */
struct operand {
    size_t rank;
    uint64_t dims[WG_DIMS_MAX];
    int row_axis, column_axis; /* -1: a vector has no such axis */
    uint64_t rows, columns, batch;
    bool is_static;
};

static enum wg_code read_operand(struct wg_lower *lower, const struct wg_node *node, size_t index,
                                 const char *turns, bool is_left, struct operand *out)
{
    const struct wg_tensor *tensor = wg__lower_input(lower, node, index);
    if (tensor == NULL)
        return malformed(lower, node, "an operand is left out");
    *out = (struct operand){.row_axis = -1, .column_axis = -1, .rows = 1, .columns = 1, .batch = 1};
    const enum wg_code code = wg__lower_need_dims(lower, node, tensor, &out->rank, out->dims);
    if (code != WG_OK)
        return code;
    const int rank = (int)out->rank;
    if (rank == 0 || wg__lower_elements(out->rank, out->dims) == 0)
        return malformed(lower, node, "an operand without elements");
    if (rank == 1) {
        *(is_left ? &out->column_axis : &out->row_axis) = 0;
    } else {
        const bool is_turned = wg__node_int(node, turns, 0) != 0;
        out->row_axis = is_turned ? rank - 1 : rank - 2;
        out->column_axis = is_turned ? rank - 2 : rank - 1;
    }
    if (out->row_axis >= 0)
        out->rows = out->dims[out->row_axis];
    if (out->column_axis >= 0)
        out->columns = out->dims[out->column_axis];
    out->is_static = wg__lower_input_state(lower, node, index)->is_static;
    if (rank > 2 && !multiply(&out->batch, out->dims, out->rank - 2))
        return malformed(lower, node, "sizes multiply beyond 2^63");
    return WG_OK;
}

/* Leading axes broadcast; the count of products is that of the output's. */
static bool broadcast_batch(const struct operand *a, const struct operand *b, uint64_t *out)
{
    const size_t of_a = a->rank > 2 ? a->rank - 2 : 0;
    const size_t of_b = b->rank > 2 ? b->rank - 2 : 0;
    *out = 1;
    for (size_t i = 1; i <= of_a || i <= of_b; i++) {
        const uint64_t x = i <= of_a ? a->dims[of_a - i] : 1;
        const uint64_t y = i <= of_b ? b->dims[of_b - i] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        const uint64_t larger = x > y ? x : y;
        if (!multiply(out, &larger, 1))
            return false;
    }
    return true;
}

/* What is summed over, and the output's columns, where B is computed: attention, and constants from
 * the left. */
static void label_computed(struct wg_lower *lower, const struct operand *a, const struct operand *b,
                           const struct wg_label *of_b, struct wg_label *in, struct wg_label *out)
{
    const bool is_summed = of_b->axis >= 0 && of_b->axis == b->row_axis;
    if (is_summed && a->is_static) {
        *in = *of_b;
    } else if (is_summed && in->axis >= 0) {
        wg__lower_unite(lower, in, of_b);
    } else if (of_b->axis >= 0 && of_b->axis == b->column_axis) {
        *out = *of_b;
        wg__lower_fix(lower, in); /* B's rows have no width to go with A's columns */
    } else {
        wg__lower_fix(lower, of_b);
        wg__lower_fix(lower, in);
    }
}

/* Sets the layer's channels and the output's label. Rows have no width: a layer keeps its m. */
static enum wg_code label_product(struct wg_lower *lower, const struct wg_node *node,
                                  const struct product_operands *operands, const struct operand *a,
                                  const struct operand *b, struct wg_layer *layer)
{
    const int32_t output = node->outputs[0];
    if (output < 0)
        return WG_OK;
    const struct wg_tensor *made = &lower->scope->graph->tensors[output];
    const int axis = (int)made->shape.rank - 1;
    struct wg_label in =
        label_along(lower, node, operands->a, a->column_axis >= 0 ? a->column_axis : -2);
    struct wg_label out = {.axis = -1};
    enum wg_code code = WG_OK;
    if (!b->is_static)
        label_computed(lower, a, b, &wg__lower_input_state(lower, node, operands->b)->label, &in,
                       &out);
    else if (b->rank == 2)
        code = wg__lower_new_label(lower, made->name, axis, b->columns, false, &out);
    else
        wg__lower_fix(lower, &in); /* several constant matrices at once have no width */
    if (out.axis >= 0)
        out.axis = axis;
    if (code == WG_OK)
        code = wg__lower_channels(lower, &in, &layer->in);
    if (code == WG_OK)
        code = wg__lower_channels(lower, &out, &layer->out);
    wg__lower_give(lower, node->outputs[0], &out);
    add_computed(lower, node, operands->bias);
    return code;
}

static enum wg_code lower_product(struct wg_lower *lower, const struct wg_node *node)
{
    const struct product_operands *operands = product_operands_of(node->op);
    struct operand a = {0};
    struct operand b = {0};
    struct wg_layer layer = {.op = node->op, .kind = WG_LAYER_GEMM};
    assert(operands != NULL); /* wg__lower_layer_of chose by it */
    enum wg_code code = read_operand(lower, node, operands->a, operands->turns_a, true, &a);
    if (code == WG_OK)
        code = read_operand(lower, node, operands->b, operands->turns_b, false, &b);
    if (code != WG_OK)
        return code;
    struct wg_gemm *gemm = &layer.gemm;
    *gemm = (struct wg_gemm){.dtype = lower->opts.dtype,
                             .m = a.rows,
                             .n = b.columns,
                             .k = a.columns,
                             .has_bias = wg__lower_input(lower, node, operands->bias) != NULL};
    if (a.columns != b.rows || !broadcast_batch(&a, &b, &gemm->batch))
        return malformed(lower, node, "the operands' sizes do not go together");
    if (b.batch == 1 && a.row_axis < a.column_axis) { /* one matrix for all: rows join */
        if (!multiply(&gemm->m, &gemm->batch, 1))
            return malformed(lower, node, "sizes multiply beyond 2^63");
        gemm->batch = 1;
    }
    layer.parameters = count_input(lower, node, operands->a) +
                       count_input(lower, node, operands->b) +
                       count_input(lower, node, operands->bias);
    code = label_product(lower, node, operands, &a, &b, &layer);
    return code == WG_OK ? wg__lower_add(lower, node, &layer) : code;
}

wg_lower_layer_fn wg__lower_layer_of(const struct wg_node *node)
{
    if (conv_operands_of(node->op) != NULL)
        return lower_conv;
    if (product_operands_of(node->op) != NULL)
        return lower_product;
    if (strcmp(node->op, "ConvTranspose") == 0)
        return lower_conv_transpose;
    return wg__lower_sequence_of(node);
}
