/* SPDX-License-Identifier: MIT
 *
 * Draws a network layer by layer.
 *
 * Owns: see the header.    Threads: one thread at a time.
 */
#include "model/net_builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

enum { NAME_SIZE = 128 };

/* -- Failing ------------------------------------------------------------------------------- */

static void stop(struct wg_net *net, enum wg_code code)
{
    if (net->code == WG_OK)
        net->code = code;
}

static void *take(struct wg_net *net, size_t count, size_t size)
{
    void *memory = net->code == WG_OK ? wg__arena_alloc(&net->model->arena, count, size) : NULL;
    if (memory == NULL && net->code == WG_OK)
        stop(net,
             wg__fail(&net->err, WG_ENOMEM, "network '%s': out of memory", net->build.graph->name));
    return memory;
}

static void *copy(struct wg_net *net, const void *bytes, size_t count, size_t size)
{
    void *memory = take(net, count, size);
    if (memory != NULL && count != 0)
        memcpy(memory, bytes, count * size);
    return memory;
}

const char *wg__net_name(struct wg_net *net, const char *format, ...)
{
    char text[NAME_SIZE];
    va_list args;
    va_start(args, format);
    const int length = wg__format(text, sizeof text, format, args);
    va_end(args);
    const char *name =
        length >= 0 && length < NAME_SIZE ? copy(net, text, (size_t)length + 1, 1) : NULL;
    return name != NULL ? name : "";
}

/* -- The model ----------------------------------------------------------------------------- */

void wg__net_begin(struct wg_net *net, const char *name, int64_t opset)
{
    *net = (struct wg_net){.model = wg__model_new()};
    if (net->model == NULL) {
        stop(net, wg__fail(&net->err, WG_ENOMEM, "network '%s': out of memory", name));
        return;
    }
    stop(net, wg__graph_build_init(&net->build, &net->model->arena, name, NULL, &net->err));
    struct wg_opset *opsets = net->code == WG_OK ? take(net, 1, sizeof *opsets) : NULL;
    if (opsets == NULL)
        return;
    *opsets = (struct wg_opset){.domain = "", .version = opset};
    net->model->opsets = opsets;
    net->model->opset_count = 1;
    net->model->producer = "wattgov";
    net->model->ir_version = 9;
    net->model->folder = "";
    net->model->graph = net->build.graph;
}

enum wg_code wg__net_finish(struct wg_net *net, int32_t output, struct wg_model **out,
                            struct wg_error *err)
{
    int32_t *outputs = copy(net, &output, 1, sizeof output);
    int32_t *inputs = copy(net, net->inputs, net->input_count, sizeof *inputs);
    if (net->code == WG_OK) {
        struct wg_graph *graph = net->model->graph;
        graph->outputs = outputs;
        graph->output_count = 1;
        graph->inputs = inputs;
        graph->input_count = net->input_count;
        *out = net->model;
    } else {
        wg__model_close(net->model);
        if (err != NULL)
            *err = net->err;
    }
    wg__graph_build_fini(&net->build);
    const enum wg_code code = net->code;
    *net = (struct wg_net){0};
    return code;
}

/* -- Tensors ------------------------------------------------------------------------------- */

static struct wg_tensor *declare(struct wg_net *net, const char *name, int elem_type, int32_t *out)
{
    *out = -1;
    if (net->code == WG_OK)
        stop(net, wg__graph_build_declare(&net->build, name, out, &net->err));
    if (net->code != WG_OK) {
        *out = -1;
        return NULL;
    }
    struct wg_tensor *tensor = &net->build.graph->tensors[*out];
    tensor->elem_type = elem_type;
    return tensor;
}

int32_t wg__net_input(struct wg_net *net, const char *name, int elem_type,
                      const struct wg_dim *dims, size_t rank)
{
    int32_t index = -1;
    struct wg_tensor *tensor = declare(net, name, elem_type, &index);
    if (tensor == NULL || net->input_count == WG_NET_INPUTS_MAX)
        return -1;
    tensor->shape = (struct wg_shape){.is_known = true, .rank = rank};
    memcpy(tensor->shape.dims, dims, rank * sizeof *dims);
    net->inputs[net->input_count++] = index;
    return index;
}

static int32_t constant(struct wg_net *net, const char *name, int elem_type, const int64_t *dims,
                        size_t rank, const void *bytes)
{
    int32_t index = -1;
    uint64_t count = 1;
    struct wg_tensor *tensor = declare(net, name, elem_type, &index);
    struct wg_constant *made = take(net, 1, sizeof *made);
    if (tensor == NULL || made == NULL)
        return -1;
    tensor->shape = (struct wg_shape){.is_known = true, .rank = rank};
    for (size_t i = 0; i < rank; i++) {
        tensor->shape.dims[i].value = dims[i];
        count *= (uint64_t)dims[i];
    }
    *made = (struct wg_constant){.elem_type = elem_type, .element_count = count};
    if (bytes != NULL) {
        made->byte_count = count * wg__elem_bits(elem_type) / 8;
        made->bytes = copy(net, bytes, made->byte_count, 1);
    }
    tensor->constant = made;
    return net->code == WG_OK ? index : -1;
}

int32_t wg__net_weight(struct wg_net *net, const char *name, const int64_t *dims, size_t rank)
{
    return constant(net, name, WG_ELEM_FLOAT, dims, rank, NULL);
}

int32_t wg__net_ints(struct wg_net *net, const char *name, const int64_t *values, size_t count)
{
    const int64_t dims[] = {(int64_t)count};
    return constant(net, name, WG_ELEM_INT64, dims, 1, values);
}

int32_t wg__net_float(struct wg_net *net, const char *name, float value)
{
    return constant(net, name, WG_ELEM_FLOAT, NULL, 0, &value);
}

/* -- Nodes --------------------------------------------------------------------------------- */

static const struct wg_attribute *
copy_attributes(struct wg_net *net, const struct wg_attribute *attributes, size_t count)
{
    struct wg_attribute *made = copy(net, attributes, count, sizeof *made);
    for (size_t i = 0; made != NULL && i < count; i++)
        if (made[i].ints != NULL)
            made[i].ints = copy(net, made[i].ints, made[i].count, sizeof *made[i].ints);
    return made;
}

int32_t wg__net_node(struct wg_net *net, const char *op, const char *name, const int32_t *inputs,
                     size_t input_count, const struct wg_attribute *attributes,
                     size_t attribute_count)
{
    int32_t index = -1;
    if (declare(net, wg__net_name(net, "%s_out", name), WG_ELEM_UNKNOWN, &index) == NULL)
        return -1;
    const struct wg_node node = {.name = name,
                                 .op = op,
                                 .domain = "",
                                 .inputs = copy(net, inputs, input_count, sizeof *inputs),
                                 .input_count = input_count,
                                 .outputs = copy(net, &index, 1, sizeof index),
                                 .output_count = 1,
                                 .attributes = copy_attributes(net, attributes, attribute_count),
                                 .attribute_count = attribute_count};
    if (net->code == WG_OK)
        stop(net, wg__graph_build_node(&net->build, &node, &net->err));
    return net->code == WG_OK ? index : -1;
}

static int32_t plain_node(struct wg_net *net, const char *op, const char *name, int32_t x)
{
    return wg__net_node(net, op, name, &x, 1, NULL, 0);
}

#define INTS(key, ...)                                                                             \
    {.name = (key),                                                                                \
     .type = WG_ATTRIBUTE_INTS,                                                                    \
     .ints = (const int64_t[]){__VA_ARGS__},                                                       \
     .count = sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)}
#define INT(key, value) {.name = (key), .type = WG_ATTRIBUTE_INT, .i = (value)}

int32_t wg__net_conv(struct wg_net *net, int32_t x, const char *name, int64_t in, int64_t filters,
                     const struct wg_net_window *window)
{
    const int64_t groups = window->groups != 0 ? window->groups : 1;
    const int64_t k = window->kernel, s = window->stride, p = window->pad;
    const int64_t dims[] = {filters, in / groups, k, k};
    const int32_t inputs[] = {
        x, wg__net_weight(net, wg__net_name(net, "%s.weight", name), dims, 4),
        window->has_bias ? wg__net_weight(net, wg__net_name(net, "%s.bias", name), dims, 1) : -1};
    const struct wg_attribute attributes[] = {INTS("dilations", 1, 1), INT("group", groups),
                                              INTS("kernel_shape", k, k), INTS("pads", p, p, p, p),
                                              INTS("strides", s, s)};
    return wg__net_node(net, "Conv", name, inputs, window->has_bias ? 3 : 2, attributes,
                        sizeof attributes / sizeof *attributes);
}

int32_t wg__net_batch_norm(struct wg_net *net, int32_t x, const char *name, int64_t channels)
{
    static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    int32_t inputs[5] = {x};
    for (size_t i = 0; i < 4; i++)
        inputs[i + 1] =
            wg__net_weight(net, wg__net_name(net, "%s.%s", name, parts[i]), &channels, 1);
    return wg__net_node(net, "BatchNormalization", name, inputs, 5, NULL, 0);
}

int32_t wg__net_relu(struct wg_net *net, int32_t x, const char *name)
{
    return plain_node(net, "Relu", name, x);
}

int32_t wg__net_add(struct wg_net *net, int32_t a, int32_t b, const char *name)
{
    return wg__net_node(net, "Add", name, (const int32_t[]){a, b}, 2, NULL, 0);
}

int32_t wg__net_max_pool(struct wg_net *net, int32_t x, const char *name,
                         const struct wg_net_window *window)
{
    const int64_t k = window->kernel, s = window->stride, p = window->pad;
    const struct wg_attribute attributes[] = {INTS("kernel_shape", k, k), INTS("pads", p, p, p, p),
                                              INTS("strides", s, s)};
    return wg__net_node(net, "MaxPool", name, &x, 1, attributes,
                        sizeof attributes / sizeof *attributes);
}

int32_t wg__net_mean_pool(struct wg_net *net, int32_t x)
{
    return wg__net_flatten(net, plain_node(net, "GlobalAveragePool", "avgpool", x));
}

int32_t wg__net_flatten(struct wg_net *net, int32_t x)
{
    const struct wg_attribute axis[] = {INT("axis", 1)};
    return wg__net_node(net, "Flatten", "flatten", &x, 1, axis, 1);
}

int32_t wg__net_linear(struct wg_net *net, int32_t x, const char *name, int64_t in, int64_t out)
{
    const int64_t dims[] = {out, in};
    const int32_t inputs[] = {x, wg__net_weight(net, wg__net_name(net, "%s.weight", name), dims, 2),
                              wg__net_weight(net, wg__net_name(net, "%s.bias", name), dims, 1)};
    const struct wg_attribute attributes[] = {INT("transB", 1)};
    return wg__net_node(net, "Gemm", name, inputs, 3, attributes, 1);
}
