/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of the ONNX reader, of shape inference and of lowering: any bytes give a graph or
 * one line with an offset, any graph shapes, layers and widths or one line, never a crash.
 *
 * A graph is lowered twice: with the shapes that the file claims, which may be any, and with those
 * that were inferred. Beyond what the sanitizers see, it checks that every index of a graph is
 * within it, that nodes stand behind those they read from, that elements of constants can be asked
 * for, that each layer's channels are those of its widths, and that a layer at its present widths
 * is itself.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true && ninja -C build/fuzz tests/fuzz/fuzz_onnx
 *     build/fuzz/tests/fuzz/fuzz_onnx -max_total_time=60 NEW_FOLDER tests/fuzz/corpus/onnx
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/lower.h"
#include "model/onnx.h"
#include "model/shapes.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void check_error(enum wg_code code, const struct wg_error *err)
{
    require(code != WG_ENOMEM && err->code == code);
    require(err->text[0] != '\0' && strlen(err->text) < sizeof err->text);
    require(strpbrk(err->text, "\n\r\x1B") == NULL);
}

static void check_tensor(const struct wg_model *model, const struct wg_graph *graph,
                         const struct wg_tensor *tensor)
{
    int64_t ints[16];
    double doubles[16];
    size_t count = 0;
    require(tensor->producer >= -1 && tensor->producer < (int32_t)graph->node_count);
    require(tensor->shape.rank <= WG_DIMS_MAX && tensor->name != NULL);
    require(tensor->outer < 0 ||
            (graph->outer != NULL && (size_t)tensor->outer < graph->outer->tensor_count));
    if (tensor->constant == NULL)
        return;
    if (wg__constant_ints(model, tensor->constant, ints, 16, &count, NULL) == WG_OK)
        require(count <= 16 && count <= tensor->constant->element_count);
    (void)wg__constant_doubles(model, tensor->constant, doubles, 16, &count, NULL);
}

static void check_graph(const struct wg_model *model, const struct wg_graph *graph)
{
    for (size_t i = 0; i < graph->tensor_count; i++)
        check_tensor(model, graph, &graph->tensors[i]);
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct wg_node *node = &graph->nodes[i];
        for (size_t j = 0; j < node->input_count; j++) {
            require(node->inputs[j] >= -1 && node->inputs[j] < (int32_t)graph->tensor_count);
            require(node->inputs[j] < 0 || graph->tensors[node->inputs[j]].producer < (int32_t)i);
        }
        for (size_t j = 0; j < node->output_count; j++)
            require(node->outputs[j] < 0 ||
                    graph->tensors[node->outputs[j]].producer == (int32_t)i);
        for (size_t j = 0; j < node->attribute_count; j++) {
            if (node->attributes[j].graph != NULL)
                check_graph(model, node->attributes[j].graph);
        }
    }
}

static void check_channels(const struct wg_network *network, const struct wg_channels *side,
                           uint64_t present)
{
    uint64_t sum = side->constant;
    for (size_t i = 0; i < side->part_count; i++) {
        require(side->parts[i].width < network->width_count);
        sum += (uint64_t)network->widths[side->parts[i].width].channels * side->parts[i].multiple;
    }
    require(side->part_count == 0 || sum == present);
}

/* At its present widths a layer is what it was. */
static void check_at(const struct wg_layer *layer, const uint32_t *channels)
{
    struct wg_layer at;
    require(wg__layer_at(layer, channels, &at, NULL) == WG_OK);
    require(at.parameters == layer->parameters && at.bytes_channels == layer->bytes_channels);
    require(at.conv.c == layer->conv.c && at.conv.filters == layer->conv.filters);
    require(at.gemm.n == layer->gemm.n && at.gemm.k == layer->gemm.k);
    require(at.bytes >= 0.0 && at.bytes == layer->bytes);
}

static void check_network(const struct wg_network *network)
{
    uint32_t *channels = calloc(network->width_count + 1, sizeof *channels);
    require(channels != NULL);
    for (size_t i = 0; i < network->width_count; i++) {
        const struct wg_width *width = &network->widths[i];
        require(width->alignment >= 1 && width->channels % width->alignment == 0);
        channels[i] = width->channels;
    }
    for (size_t i = 0; i < network->layer_count; i++) {
        const struct wg_layer *layer = &network->layers[i];
        check_at(layer, channels);
        if (layer->kind == WG_LAYER_BYTES) {
            check_channels(network, &layer->out, layer->bytes_channels);
            continue;
        }
        const bool is_conv = layer->kind == WG_LAYER_CONV;
        check_channels(network, &layer->in, is_conv ? layer->conv.c : layer->gemm.k);
        check_channels(network, &layer->out, is_conv ? layer->conv.filters : layer->gemm.n);
    }
    free(channels);
}

static void lower(const struct wg_model *model)
{
    struct wg_error err = {0};
    struct wg_network network;
    const struct wg_lower_opts opts = {.dtype = WG_DTYPE_FP16, .batch = 2};
    const enum wg_code code = wg__lower(&network, model, &opts, &err);
    if (code != WG_OK) {
        check_error(code, &err);
        return;
    }
    check_network(&network);
    wg__network_fini(&network);
}

/* Gives open dimensions of the inputs a number, as `--batch` and `--set-dim` do. */
static void set_dims(struct wg_model *model)
{
    const struct wg_graph *graph = model->graph;
    for (size_t i = 0; i < graph->input_count; i++) {
        const struct wg_shape *shape = &graph->tensors[graph->inputs[i]].shape;
        struct wg_error err = {0};
        if (!shape->is_known || shape->rank == 0 || shape->dims[0].name == NULL)
            continue;
        const enum wg_code code = wg__shapes_set_dim(model, shape->dims[0].name, 2, &err);
        if (code != WG_OK)
            check_error(code, &err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wg_model *model = NULL;
    struct wg_error err = {0};
    enum wg_code code = wg__onnx_open_memory(&model, "fuzz.onnx", data, size, &err);
    if (code != WG_OK) {
        check_error(code, &err);
        return 0;
    }
    check_graph(model, model->graph);
    lower(model);
    set_dims(model);
    code = wg__shapes_infer(model, &err);
    if (code == WG_OK) {
        check_graph(model, model->graph);
        lower(model);
    } else {
        check_error(code, &err);
    }
    wg__model_close(model);
    return 0;
}
