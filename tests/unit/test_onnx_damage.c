/* SPDX-License-Identifier: MIT
 *
 * The ONNX reader over damaged files: a small real model cut at every byte, with every bit turned,
 * and read with every allocation failing. The sanitizers watch; an error names its offset.
 *
 * What opens in spite of the damage is walked, so that nothing in it points to nowhere.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/onnx.h"
#include "support/check.h"
#include "support/onnx_bytes.h"

/* Every message of the reader: constants raw, typed, external and sparse, attributes of each kind,
 * a subgraph, a function, metadata, types of tensors and of sequences. */
static struct wg_buffer tensor_bytes(const char *name)
{
    struct wg_buffer tensor = bytes_new();
    put_bytes(&tensor, 1, "\2\3", 2);
    put_varint(&tensor, 2, WG_ELEM_INT8);
    put_text(&tensor, 8, name);
    return tensor;
}

static void put_attribute(struct wg_buffer *node, const char *name, int type, unsigned field,
                          const char *bytes, size_t length)
{
    struct wg_buffer attribute = bytes_new();
    put_text(&attribute, 1, name);
    put_varint(&attribute, 20, (uint64_t)type);
    put_bytes(&attribute, field, bytes, length);
    put_message(node, 5, &attribute);
}

static void put_constants(struct wg_buffer *graph)
{
    struct wg_buffer raw = tensor_bytes("w");
    put_bytes(&raw, 9, "\1\2\3\4\5\6", 6);
    put_message(graph, 5, &raw);
    struct wg_buffer typed = tensor_bytes("t");
    put_bytes(&typed, 5, "\1\2\3\4\5\6", 6);
    put_message(graph, 5, &typed);
    struct wg_buffer external = tensor_bytes("e");
    struct wg_buffer entry = bytes_new();
    put_text(&entry, 1, "location");
    put_text(&entry, 2, "w.bin");
    put_message(&external, 13, &entry);
    put_varint(&external, 14, 1);
    put_message(graph, 5, &external);
    struct wg_buffer sparse = bytes_new();
    struct wg_buffer values = tensor_bytes("s");
    put_message(&sparse, 1, &values);
    put_bytes(&sparse, 3, "\2\3", 2);
    put_message(graph, 15, &sparse);
}

static struct wg_buffer small_model(void)
{
    const int64_t dims[] = {2, -1};
    struct wg_buffer graph = bytes_new();
    struct wg_buffer inner = bytes_new();
    struct wg_buffer within = node_bytes("Mul", "x", "w", "z");
    put_message(&inner, 1, &within);
    struct wg_buffer branch = value_info("z", WG_ELEM_FLOAT, 2, dims);
    put_message(&inner, 12, &branch);
    struct wg_buffer node = node_bytes("If", "x", NULL, "y");
    put_attribute(&node, "then_branch", WG_ATTRIBUTE_GRAPH, 6, inner.data, inner.length);
    put_attribute(&node, "ints", WG_ATTRIBUTE_INTS, 8, "\1\2", 2);
    put_attribute(&node, "floats", WG_ATTRIBUTE_FLOATS, 7, "\0\0\x80\x3f", 4);
    put_attribute(&node, "strings", WG_ATTRIBUTE_STRINGS, 9, "ab", 2);
    put_attribute(&node, "text", WG_ATTRIBUTE_STRING, 4, "ab", 2);
    wg__buffer_fini(&inner);
    struct wg_buffer late = node_bytes("Constant", NULL, NULL, "c");
    put_attribute(&late, "value_ints", WG_ATTRIBUTE_INTS, 8, "\1\2", 2);
    put_message(&graph, 1, &node);
    put_message(&graph, 1, &late);
    put_constants(&graph);
    struct wg_buffer input = value_info("x", WG_ELEM_FLOAT, 2, dims);
    struct wg_buffer output = value_info("y", WG_ELEM_FLOAT, 2, dims);
    put_message(&graph, 11, &input);
    put_message(&graph, 12, &output);
    struct wg_buffer bytes = model_bytes(&graph);
    struct wg_buffer function = bytes_new();
    struct wg_buffer body = node_bytes("Relu", "a", NULL, "b");
    put_text(&function, 1, "F");
    put_text(&function, 4, "a");
    put_text(&function, 5, "b");
    put_message(&function, 7, &body);
    put_message(&bytes, 25, &function);
    struct wg_buffer entry = bytes_new();
    put_text(&entry, 1, "k");
    put_message(&bytes, 14, &entry);
    return bytes;
}

static size_t walk_tensors(const struct wg_model *model, const struct wg_graph *graph)
{
    size_t sum = 0;
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct wg_tensor *tensor = &graph->tensors[i];
        int64_t ints[8];
        double doubles[8];
        size_t count = 0;
        sum += strlen(tensor->name);
        assert_true(tensor->producer < (int32_t)graph->node_count);
        assert_true(tensor->outer < 0 || graph->outer != NULL);
        assert_true(tensor->shape.rank <= WG_DIMS_MAX);
        if (tensor->constant == NULL)
            continue;
        (void)wg__constant_ints(model, tensor->constant, ints, 8, &count, NULL);
        (void)wg__constant_doubles(model, tensor->constant, doubles, 8, &count, NULL);
        sum += count;
    }
    return sum;
}

static size_t walk(const struct wg_model *model, const struct wg_graph *graph)
{
    size_t sum = walk_tensors(model, graph);
    for (size_t i = 0; i < graph->node_count; i++) {
        const struct wg_node *node = &graph->nodes[i];
        sum += strlen(node->name) + strlen(node->op) + strlen(node->domain);
        for (size_t j = 0; j < node->input_count; j++)
            assert_true(node->inputs[j] < (int32_t)graph->tensor_count);
        for (size_t j = 0; j < node->output_count; j++)
            assert_true(node->outputs[j] < (int32_t)graph->tensor_count);
        for (size_t j = 0; j < node->attribute_count; j++) {
            const struct wg_attribute *attribute = &node->attributes[j];
            sum += strlen(attribute->name);
            for (size_t k = 0; k < attribute->count; k++) {
                if (attribute->type == WG_ATTRIBUTE_INTS)
                    sum += attribute->ints[k] != 0;
                else if (attribute->type == WG_ATTRIBUTE_FLOATS)
                    sum += attribute->floats[k] != 0.0F;
                else
                    sum += strlen(attribute->strings[k]);
            }
            if (attribute->graph != NULL)
                sum += walk(model, attribute->graph);
        }
    }
    return sum;
}

/* Opens a copy of exactly that size; whether it opened. */
static bool open_exactly(const char *bytes, size_t length)
{
    struct wg_model *model = NULL;
    struct wg_error err = {0};
    uint8_t *copy = malloc(length != 0 ? length : 1);
    assert_non_null(copy);
    if (length != 0)
        memcpy(copy, bytes, length);
    const enum wg_code code = wg__onnx_open_memory(&model, "m.onnx", copy, length, &err);
    if (code == WG_OK) {
        (void)walk(model, model->graph);
        wg__model_close(model);
    } else {
        assert_true(code == WG_EDATA || code == WG_EUNSUPPORTED);
        assert_true(strncmp(err.text, "m.onnx: ", 8) == 0);
    }
    free(copy);
    return code == WG_OK;
}

static void opens_the_whole_model(void **state)
{
    (void)state;
    struct wg_buffer bytes = small_model();
    assert_true(open_exactly(bytes.data, bytes.length));
    wg__buffer_fini(&bytes);
}

/* A cut between two fields of the model leaves a shorter model; any other cut is an error. */
static void every_truncation_fails_cleanly(void **state)
{
    (void)state;
    size_t opened = 0;
    struct wg_buffer bytes = small_model();
    for (size_t length = 0; length < bytes.length; length++)
        opened += open_exactly(bytes.data, length);
    assert_int_equal(opened, 2); /* behind the graph, behind the function */
    wg__buffer_fini(&bytes);
}

static void every_turned_bit_is_survived(void **state)
{
    (void)state;
    struct wg_buffer bytes = small_model();
    for (size_t bit = 0; bit < bytes.length * 8; bit++) {
        bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ 1 << bit % 8);
        (void)open_exactly(bytes.data, bytes.length);
        bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ 1 << bit % 8);
    }
    wg__buffer_fini(&bytes);
}

static void every_byte_that_is_replaced_is_survived(void **state)
{
    (void)state;
    static const char others[] = {0, 1, '\x7f', '\x80', '\xff'};
    struct wg_buffer bytes = small_model();
    for (size_t at = 0; at < bytes.length; at++) {
        const char kept = bytes.data[at];
        for (size_t i = 0; i < sizeof others; i++) {
            bytes.data[at] = others[i];
            (void)open_exactly(bytes.data, bytes.length);
        }
        bytes.data[at] = kept;
    }
    wg__buffer_fini(&bytes);
}

/* Names of a kilobyte make the arena ask for a block at nearly every one. */
static struct wg_buffer wide_model(void)
{
    char name[1025];
    struct wg_buffer graph = bytes_new();
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 40; i++) {
        char other[1025];
        memcpy(other, name, sizeof name);
        name[0] = (char)('0' + i);
        struct wg_buffer node = node_bytes("Relu", i == 0 ? "x" : other, NULL, name);
        put_message(&graph, 1, &node);
    }
    struct wg_buffer input = value_info("x", WG_ELEM_FLOAT, 0, NULL);
    put_message(&graph, 11, &input);
    return model_bytes(&graph);
}

static void survives_each_failing_allocation(void **state)
{
    (void)state;
    struct wg_buffer models[] = {small_model(), wide_model()};
    for (size_t i = 0; i < 2; i++) {
        size_t nth = 1;
        for (;; nth++) {
            struct wg_model *model = NULL;
            struct wg_error err = {0};
            wg__alloc_fail_from(nth);
            const enum wg_code code = wg__onnx_open_memory(
                &model, "m", (const uint8_t *)models[i].data, models[i].length, &err);
            wg__alloc_fail_from(0);
            wg__model_close(model);
            if (code == WG_OK)
                break;
            assert_int_equal(code, WG_ENOMEM);
            assert_non_null(strstr(err.text, "out of memory"));
        }
        assert_true(nth > 4);
        wg__buffer_fini(&models[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_the_whole_model),
        cmocka_unit_test(every_truncation_fails_cleanly),
        cmocka_unit_test(every_turned_bit_is_survived),
        cmocka_unit_test(every_byte_that_is_replaced_is_survived),
        cmocka_unit_test(survives_each_failing_allocation),
    };
    return run_tests(tests);
}
