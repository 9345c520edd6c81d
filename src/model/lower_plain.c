/* SPDX-License-Identifier: MIT
 *
 * Operators that multiply nothing: views, what fuses into the layer before, and what moves bytes.
 *
 * A node fuses only into the last layer that it waits for, and only with as many elements as that
 * layer has written: the scaling by a squeeze-and-excitation gate waits for a small layer and
 * writes a large map, so it is a kernel of its own.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include <string.h>

#include "model/lower_parts.h"

static bool is_float(int elem_type)
{
    return elem_type == WG_ELEM_FLOAT || elem_type == WG_ELEM_FLOAT16 ||
           elem_type == WG_ELEM_BFLOAT16 || elem_type == WG_ELEM_DOUBLE;
}

/* What an operator that multiplies nothing has learned: scales, biases, tables. A single number is
 * part of a formula, but for a normalisation of one channel, and a Resize's are sizes. */
static uint64_t count_learned(struct wg_lower *lower, const struct wg_node *node)
{
    uint64_t sum = 0;
    const bool is_norm = strstr(node->op, "Normalization") != NULL;
    const bool is_batch_norm = strcmp(node->op, "BatchNormalization") == 0; /* 3, 4: statistics */
    if (strcmp(node->op, "Resize") == 0 || strcmp(node->op, "Upsample") == 0)
        return 0;
    for (size_t i = 0; i < node->input_count && !(is_batch_norm && i > 2); i++) {
        const struct wg_tensor *tensor = wg__lower_input(lower, node, i);
        if (tensor != NULL && is_float(tensor->elem_type) &&
            wg__lower_size(lower, tensor) > (is_norm ? 0 : 1))
            sum += wg__lower_count(lower, node->inputs[i]);
    }
    return sum;
}

static bool is_view(const char *op)
{
    static const char *const list[] = {
        "Cast",     "CastLike", "DequantizeLinear", "Dropout", "DynamicQuantizeLinear",
        "Flatten",  "Identity", "QuantizeLinear",   "Reshape", "Squeeze",
        "Unsqueeze"};
    return wg__lower_is_one_of(op, list, sizeof list / sizeof *list);
}

static const char *const elementwise[] = {"Abs",
                                          "Add",
                                          "And",
                                          "BiasGelu",
                                          "Ceil",
                                          "Celu",
                                          "Clip",
                                          "Cos",
                                          "Div",
                                          "Elu",
                                          "Equal",
                                          "Erf",
                                          "Exp",
                                          "Expand",
                                          "FastGelu",
                                          "Floor",
                                          "Gelu",
                                          "Greater",
                                          "GreaterOrEqual",
                                          "HardSigmoid",
                                          "HardSwish",
                                          "IsInf",
                                          "IsNaN",
                                          "LeakyRelu",
                                          "Less",
                                          "LessOrEqual",
                                          "Log",
                                          "Max",
                                          "Mean",
                                          "Min",
                                          "Mish",
                                          "Mod",
                                          "Mul",
                                          "Neg",
                                          "Not",
                                          "Or",
                                          "PRelu",
                                          "Pow",
                                          "QLinearAdd",
                                          "QLinearLeakyRelu",
                                          "QLinearMul",
                                          "QLinearSigmoid",
                                          "QuickGelu",
                                          "Reciprocal",
                                          "Relu",
                                          "Round",
                                          "Selu",
                                          "Sigmoid",
                                          "Sign",
                                          "Sin",
                                          "Softplus",
                                          "Softsign",
                                          "Sqrt",
                                          "Sub",
                                          "Sum",
                                          "Swish",
                                          "Tanh",
                                          "ThresholdedRelu",
                                          "Where",
                                          "Xor"};

static bool is_elementwise(const char *op)
{
    return wg__lower_is_one_of(op, elementwise, sizeof elementwise / sizeof *elementwise);
}

/* Operators that read no more than they write. */
static bool is_selection(const char *op)
{
    static const char *const list[] = {"Compress", "Gather", "GatherElements",
                                       "GatherND", "Slice",  "Split"};
    return wg__lower_is_one_of(op, list, sizeof list / sizeof *list);
}

static double bytes_of(const struct wg_lower *lower, const struct wg_tensor *tensor)
{
    const double elements = (double)wg__lower_size(lower, tensor);
    if (is_float(tensor->elem_type) || tensor->elem_type == WG_ELEM_UNKNOWN)
        return elements * wg__dtype_bytes(lower->opts.dtype);
    return elements * wg__elem_bits(tensor->elem_type) / 8.0;
}

/* Whether a tensor has no elements, surely. */
static bool is_empty(const struct wg_tensor *tensor)
{
    for (size_t i = 0; tensor->shape.is_known && i < tensor->shape.rank; i++) {
        if (tensor->shape.dims[i].value == 0)
            return true;
    }
    return false;
}

/* Elements without a size of their own: texts. */
static bool is_sizeless(const struct wg_tensor *tensor)
{
    return tensor->elem_type != WG_ELEM_UNKNOWN && wg__elem_bits(tensor->elem_type) == 0;
}

static bool is_size_known(const struct wg_lower *lower, const struct wg_tensor *tensor)
{
    return is_empty(tensor) || (wg__lower_size(lower, tensor) != 0 && !is_sizeless(tensor));
}

/* What a node reads and writes; false where a size is not known. */
static bool traffic_of(const struct wg_lower *lower, const struct wg_node *node, double *in,
                       double *out)
{
    *in = *out = 0.0;
    for (size_t i = 0; i < node->input_count; i++) {
        const struct wg_tensor *tensor = wg__lower_input(lower, node, i);
        if (tensor == NULL)
            continue;
        *in += bytes_of(lower, tensor);
        if (!is_size_known(lower, tensor) && !wg__lower_input_state(lower, node, i)->is_static)
            return false;
    }
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] < 0)
            continue;
        const struct wg_tensor *tensor = &lower->scope->graph->tensors[node->outputs[i]];
        *out += bytes_of(lower, tensor);
        if (!is_size_known(lower, tensor))
            return false;
    }
    return true;
}

/* Reads its inputs and writes its outputs. Where a size is not known, which is so behind operators
 * whose results depend on data, there is no layer: a part of the bytes would be a wrong number.
 * What moves nothing is none either. */
enum wg_code wg__lower_bytes(struct wg_lower *lower, const struct wg_node *node)
{
    double in = 0.0;
    double out = 0.0;
    if (!traffic_of(lower, node, &in, &out)) {
        lower->out->left_out_count++;
        return WG_OK;
    }
    if (out <= 0.0)
        return WG_OK;
    if (is_selection(node->op) && in > out)
        in = out;
    struct wg_layer layer = {.op = node->op,
                             .kind = WG_LAYER_BYTES,
                             .gemm = {.dtype = lower->opts.dtype},
                             .bytes = in + out,
                             .parameters = count_learned(lower, node)};
    const struct wg_label label = node->outputs[0] >= 0
                                      ? wg__lower_state(lower, node->outputs[0])->label
                                      : (struct wg_label){.axis = -1};
    const enum wg_code code = wg__lower_channels(lower, &label, &layer.out);
    if (code != WG_OK)
        return code;
    if (label.axis >= 0) {
        size_t rank = 0;
        uint64_t dims[WG_DIMS_MAX];
        if (wg__lower_dims(lower, &lower->scope->graph->tensors[node->outputs[0]], &rank, dims))
            layer.bytes_channels = dims[label.axis];
    }
    return wg__lower_add(lower, node, &layer);
}

/* The last layer that a node waits for, where the node can be part of it; -1: it can't. */
static int32_t host_of(const struct wg_lower *lower, const struct wg_node *node)
{
    int32_t last = -1;
    uint64_t elements = 0;
    const bool can = is_elementwise(node->op) || strcmp(node->op, "BatchNormalization") == 0;
    for (size_t i = 0; i < node->input_count && can; i++) {
        const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, i);
        if (state == NULL || state->is_static || state->maker < last)
            continue;
        const uint64_t of_input = wg__lower_size(lower, wg__lower_input(lower, node, i));
        elements = state->maker > last || of_input > elements ? of_input : elements;
        last = state->maker;
    }
    if (last < 0 || (size_t)last < lower->fusable_first ||
        lower->layers[last].kind == WG_LAYER_BYTES || node->outputs[0] < 0 || elements == 0 ||
        elements != wg__lower_size(lower, &lower->scope->graph->tensors[node->outputs[0]]))
        return -1;
    return last;
}

static void hand_on(struct wg_lower *lower, const struct wg_node *node, int32_t maker)
{
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] >= 0)
            wg__lower_state(lower, node->outputs[i])->maker = maker;
    }
}

static void fuse(struct wg_lower *lower, const struct wg_node *node, int32_t host)
{
    struct wg_layer *layer = &lower->layers[host];
    const uint64_t learned = count_learned(lower, node);
    layer->parameters += learned;
    if (learned != 0 && strcmp(node->op, "Add") == 0) {
        layer->conv.has_bias = layer->kind == WG_LAYER_CONV || layer->conv.has_bias;
        layer->gemm.has_bias = layer->kind == WG_LAYER_GEMM || layer->gemm.has_bias;
    }
    hand_on(lower, node, host);
}

enum wg_code wg__lower_plain(struct wg_lower *lower, const struct wg_node *node, bool is_ours)
{
    wg_lower_axes_fn axes = is_ours ? wg__lower_axes_of(node->op) : NULL;
    if (axes == NULL && is_ours && is_elementwise(node->op))
        axes = wg__lower_axes_elementwise;
    if (axes == NULL)
        axes = wg__lower_axes_unknown;
    const enum wg_code code = axes(lower, node);
    if (code != WG_OK)
        return code;
    if (is_ours && is_view(node->op)) {
        const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, 0);
        hand_on(lower, node, state != NULL ? state->maker : -1);
        return WG_OK;
    }
    const int32_t host = is_ours ? host_of(lower, node) : -1;
    if (host < 0)
        return wg__lower_bytes(lower, node);
    fuse(lower, node, host);
    return WG_OK;
}
