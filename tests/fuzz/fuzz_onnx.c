/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of the ONNX reader and of lowering: any bytes give a graph or one line with an
 * offset, any graph layers and widths or one line, never a crash.
 *
 * Beyond what the sanitizers see, it checks that every index of a graph is within it, that nodes
 * stand behind those they read from, that elements of constants can be asked for, and that each
 * layer's channels are those of its widths.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true && ninja -C build/fuzz tests/fuzz/fuzz_onnx
 *     build/fuzz/tests/fuzz/fuzz_onnx -max_total_time=60 NEW_FOLDER tests/fuzz/corpus/onnx
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/lower.h"
#include "model/onnx.h"

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

static void check_network(const struct wg_network *network)
{
    for (size_t i = 0; i < network->width_count; i++) {
        const struct wg_width *width = &network->widths[i];
        require(width->alignment >= 1 && width->channels % width->alignment == 0);
    }
    for (size_t i = 0; i < network->layer_count; i++) {
        const struct wg_layer *layer = &network->layers[i];
        if (layer->kind == WG_LAYER_BYTES) {
            check_channels(network, &layer->out, layer->bytes_channels);
            continue;
        }
        const bool is_conv = layer->kind == WG_LAYER_CONV;
        check_channels(network, &layer->in, is_conv ? layer->conv.c : layer->gemm.k);
        check_channels(network, &layer->out, is_conv ? layer->conv.filters : layer->gemm.n);
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
    struct wg_network network;
    const struct wg_lower_opts opts = {.dtype = WG_DTYPE_FP16, .batch = 2};
    code = wg__lower(&network, model, &opts, &err);
    if (code == WG_OK) {
        check_network(&network);
        wg__network_fini(&network);
    } else {
        check_error(code, &err);
    }
    wg__model_close(model);
    return 0;
}
