/* SPDX-License-Identifier: MIT
 *
 * The ONNX reader: files written byte by byte become graphs.
 */
#include "model/onnx.h"

#include "support/check.h"
#include "support/onnx_bytes.h"

static struct wg_model *open_bytes(const struct wg_buffer *bytes)
{
    struct wg_model *model = NULL;
    struct wg_error err = {0};
    if (wg__onnx_open_memory(&model, "m.onnx", (const uint8_t *)bytes->data, bytes->length, &err) !=
        WG_OK)
        fail_msg("does not open: %s", err.text);
    return model;
}

static void reads_nodes_inputs_and_outputs(void **state)
{
    (void)state;
    const int64_t dims[] = {2, -1};
    struct wg_buffer relu = node_bytes("Relu", "x", NULL, "h");
    struct wg_buffer add = node_bytes("Add", "h", "x", "y");
    struct wg_buffer input = value_info("x", WG_ELEM_FLOAT, 2, dims);
    struct wg_buffer output = value_info("y", WG_ELEM_FLOAT, 2, dims);
    struct wg_buffer graph = bytes_new();
    put_text(&add, 3, "sum");
    put_message(&graph, 1, &relu);
    put_message(&graph, 1, &add);
    put_message(&graph, 11, &input);
    put_message(&graph, 12, &output);
    struct wg_buffer bytes = model_bytes(&graph);
    struct wg_model *model = open_bytes(&bytes);

    const struct wg_graph *read = model->graph;
    assert_int_equal(model->ir_version, 8);
    assert_int_equal(wg__model_opset(model, ""), 17);
    assert_int_equal(read->node_count, 2);
    assert_string_equal(read->nodes[0].name, "Relu_0");
    assert_string_equal(read->nodes[1].name, "sum");
    assert_int_equal(read->input_count, 1);
    const struct wg_tensor *x = &read->tensors[read->inputs[0]];
    assert_string_equal(x->name, "x");
    assert_int_equal(x->elem_type, WG_ELEM_FLOAT);
    assert_int_equal(x->shape.rank, 2);
    assert_int_equal(x->shape.dims[0].value, 2);
    assert_int_equal(x->shape.dims[1].value, WG_DIM_UNKNOWN);
    assert_int_equal(x->producer, -1);
    assert_int_equal(read->tensors[read->outputs[0]].producer, 1);
    assert_int_equal(read->nodes[1].inputs[1], read->inputs[0]);
    wg__model_close(model);
    wg__buffer_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_nodes_inputs_and_outputs),
    };
    return run_tests(tests);
}
