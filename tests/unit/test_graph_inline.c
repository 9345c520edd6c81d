/* SPDX-License-Identifier: MIT
 *
 * Functions of a model: their bodies take the places of their calls.
 */
#include "model/graph_inline.h"

#include "model/onnx.h"
#include "support/check.h"
#include "support/onnx_bytes.h"

static void put_node(struct wg_buffer *out, unsigned field, const char *op, const char *input,
                     const char *output)
{
    struct wg_buffer node = node_bytes(op, input, NULL, output);
    put_text(&node, 3, op);
    put_message(out, field, &node);
}

/* A function of one input "a" and one output. */
static struct wg_buffer function_bytes(const char *name, const char *output)
{
    struct wg_buffer function = bytes_new();
    put_text(&function, 1, name);
    put_text(&function, 4, "a");
    put_text(&function, 5, output);
    return function;
}

/* y = F(x), named "call", with an attribute where `slope` is not 0. */
static struct wg_buffer calling_graph(float slope)
{
    struct wg_buffer graph = bytes_new();
    struct wg_buffer call = node_bytes("F", "x", NULL, "y");
    put_text(&call, 3, "call");
    if (slope != 0.0F) {
        struct wg_buffer attribute = bytes_new();
        put_text(&attribute, 1, "slope");
        put_float(&attribute, 2, slope);
        put_message(&call, 5, &attribute);
    }
    put_message(&graph, 1, &call);
    struct wg_buffer input = value_info("x", WG_ELEM_FLOAT, 0, NULL);
    struct wg_buffer output = value_info("y", WG_ELEM_FLOAT, 0, NULL);
    put_message(&graph, 11, &input);
    put_message(&graph, 12, &output);
    return graph;
}

static struct wg_model *open_with(struct wg_buffer *graph, struct wg_buffer *first,
                                  struct wg_buffer *second, struct wg_error *err)
{
    struct wg_model *model = NULL;
    struct wg_buffer bytes = model_bytes(graph);
    put_message(&bytes, 25, first);
    if (second != NULL)
        put_message(&bytes, 25, second);
    *err = (struct wg_error){0};
    (void)wg__onnx_open_memory(&model, "m", (const uint8_t *)bytes.data, bytes.length, err);
    wg__buffer_fini(&bytes); /* texts are copies, and no constant is asked for */
    return model;
}

static void replaces_a_call_by_the_body(void **state)
{
    (void)state;
    struct wg_error err;
    struct wg_buffer graph = calling_graph(0.0F);
    struct wg_buffer function = function_bytes("F", "b");
    put_node(&function, 7, "Relu", "a", "t");
    put_node(&function, 7, "Neg", "t", "b");
    struct wg_model *model = open_with(&graph, &function, NULL, &err);
    assert_non_null(model);
    const struct wg_graph *read = model->graph;
    assert_int_equal(read->node_count, 2);
    assert_string_equal(read->nodes[0].name, "call/Relu");
    assert_string_equal(read->nodes[1].op, "Neg");
    assert_int_equal(read->nodes[0].inputs[0], read->inputs[0]);
    assert_string_equal(read->tensors[read->nodes[0].outputs[0]].name, "call/t");
    assert_int_equal(read->nodes[1].inputs[0], read->nodes[0].outputs[0]);
    assert_int_equal(read->nodes[1].outputs[0], read->outputs[0]);
    assert_int_equal(read->tensors[read->outputs[0]].producer, 1);
    wg__model_close(model);
}

static void takes_attributes_from_the_call_or_the_defaults(void **state)
{
    (void)state;
    for (int given = 0; given < 2; given++) {
        struct wg_error err;
        struct wg_buffer graph = calling_graph(given ? 0.5F : 0.0F);
        struct wg_buffer function = function_bytes("F", "b");
        struct wg_buffer node = node_bytes("Elu", "a", NULL, "b");
        struct wg_buffer attribute = bytes_new();
        put_text(&attribute, 1, "alpha");
        put_varint(&attribute, 20, WG_ATTRIBUTE_FLOAT);
        put_text(&attribute, 21, "slope");
        put_message(&node, 5, &attribute);
        attribute = bytes_new(); /* nobody gives this one */
        put_text(&attribute, 1, "beta");
        put_varint(&attribute, 20, WG_ATTRIBUTE_FLOAT);
        put_text(&attribute, 21, "other");
        put_message(&node, 5, &attribute);
        put_message(&function, 7, &node);
        attribute = bytes_new();
        put_text(&attribute, 1, "slope");
        put_float(&attribute, 2, 0.25F);
        put_message(&function, 11, &attribute);
        struct wg_model *model = open_with(&graph, &function, NULL, &err);
        assert_non_null(model);
        const struct wg_attribute *alpha = wg__node_attribute(&model->graph->nodes[0], "alpha");
        assert_non_null(alpha);
        assert_int_equal(alpha->type, WG_ATTRIBUTE_FLOAT);
        assert_true(alpha->f == (given ? 0.5F : 0.25F));
        assert_null(alpha->ref);
        assert_null(wg__node_attribute(&model->graph->nodes[0], "beta"));
        wg__model_close(model);
    }
}

static void hands_through_what_a_body_gives_back(void **state)
{
    (void)state;
    struct wg_error err;
    struct wg_buffer graph = calling_graph(0.0F);
    struct wg_buffer function = function_bytes("F", "a");
    struct wg_model *model = open_with(&graph, &function, NULL, &err);
    assert_non_null(model);
    assert_int_equal(model->graph->node_count, 1);
    assert_string_equal(model->graph->nodes[0].op, "Identity");
    assert_int_equal(model->graph->nodes[0].inputs[0], model->graph->inputs[0]);
    assert_int_equal(model->graph->nodes[0].outputs[0], model->graph->outputs[0]);
    wg__model_close(model);
}

/* The fuzzer found these: the output kept the number of a node that was gone. */
static void leaves_outputs_that_a_body_lacks_without_a_producer(void **state)
{
    (void)state;
    for (int declares = 0; declares < 2; declares++) {
        struct wg_error err;
        struct wg_buffer graph = calling_graph(0.0F);
        struct wg_buffer function = bytes_new();
        put_text(&function, 1, "F");
        put_text(&function, 4, "a");
        if (declares)
            put_text(&function, 5, "b");
        struct wg_model *model = open_with(&graph, &function, NULL, &err);
        if (model == NULL) {
            assert_int_equal(err.code, WG_EDATA);
            continue;
        }
        assert_int_equal(model->graph->node_count, 0);
        assert_int_equal(model->graph->tensors[model->graph->outputs[0]].producer, -1);
        wg__model_close(model);
    }
}

static void follows_functions_that_call_functions(void **state)
{
    (void)state;
    struct wg_error err;
    struct wg_buffer graph = calling_graph(0.0F);
    struct wg_buffer function = function_bytes("F", "b");
    put_node(&function, 7, "G", "a", "b");
    struct wg_buffer other = function_bytes("G", "c");
    put_node(&other, 7, "Relu", "a", "c");
    struct wg_model *model = open_with(&graph, &function, &other, &err);
    assert_non_null(model);
    assert_int_equal(model->graph->node_count, 1);
    assert_string_equal(model->graph->nodes[0].name, "call/G/Relu");
    assert_int_equal(model->graph->nodes[0].outputs[0], model->graph->outputs[0]);
    wg__model_close(model);
}

static void copies_subgraphs_for_each_call(void **state)
{
    (void)state;
    struct wg_error err;
    struct wg_buffer graph = calling_graph(0.0F);
    put_node(&graph, 1, "F", "y", "z");
    struct wg_buffer function = function_bytes("F", "b");
    struct wg_buffer inner = bytes_new();
    put_node(&inner, 1, "Relu", "a", "r");
    struct wg_buffer attribute = bytes_new();
    put_text(&attribute, 1, "then_branch");
    put_message(&attribute, 6, &inner);
    struct wg_buffer node = node_bytes("If", "a", NULL, "b");
    put_message(&node, 5, &attribute);
    put_message(&function, 7, &node);
    struct wg_model *model = open_with(&graph, &function, NULL, &err);
    assert_non_null(model);
    static const char *const captured[] = {"x", "y"};
    for (size_t i = 0; i < 2; i++) {
        const struct wg_node *call = &model->graph->nodes[i];
        const struct wg_graph *sub = wg__node_attribute(call, "then_branch")->graph;
        assert_ptr_equal(sub->outer, model->graph);
        const struct wg_tensor *read = &sub->tensors[sub->nodes[0].inputs[0]];
        assert_string_equal(model->graph->tensors[read->outer].name, captured[i]);
    }
    wg__model_close(model);
}

static void refuses_functions_that_call_each_other(void **state)
{
    (void)state;
    struct wg_error err;
    struct wg_buffer graph = calling_graph(0.0F);
    struct wg_buffer function = function_bytes("F", "b");
    put_node(&function, 7, "F", "a", "b");
    assert_null(open_with(&graph, &function, NULL, &err));
    assert_int_equal(err.code, WG_EDATA);
    assert_string_equal(err.text, "m: functions that call each other, by way of 'F'");
    graph = calling_graph(0.0F); /* two calls in each body: 2^32 of them */
    function = function_bytes("F", "b");
    put_node(&function, 7, "G", "a", "b");
    struct wg_buffer other = function_bytes("G", "c");
    put_node(&other, 7, "F", "a", "t");
    put_node(&other, 7, "F", "a", "c");
    assert_null(open_with(&graph, &function, &other, &err));
    assert_true(err.code == WG_EDATA || err.code == WG_EUNSUPPORTED);
}

static void bounds_calls_that_multiply(void **state)
{
    (void)state;
    struct wg_error err = {0};
    struct wg_model *model = NULL;
    struct wg_buffer graph = bytes_new();
    struct wg_buffer call = node_bytes("F0", NULL, NULL, "y");
    put_message(&graph, 1, &call);
    struct wg_buffer bytes = model_bytes(&graph);
    for (int i = 0; i < 25; i++) { /* each calls the next one twice: 2^24 calls of the last */
        char names[2][8];
        (void)snprintf(names[0], sizeof names[0], "F%d", i);
        (void)snprintf(names[1], sizeof names[1], "F%d", i + 1);
        struct wg_buffer function = bytes_new();
        put_text(&function, 1, names[0]);
        struct wg_buffer first = node_bytes(names[1], NULL, NULL, "s");
        struct wg_buffer second = node_bytes(names[1], NULL, NULL, "t");
        put_message(&function, 7, &first);
        put_message(&function, 7, &second);
        put_text(&function, 5, "t");
        put_message(&bytes, 25, &function);
    }
    assert_int_equal(
        wg__onnx_open_memory(&model, "m", (const uint8_t *)bytes.data, bytes.length, &err),
        WG_EUNSUPPORTED);
    assert_string_equal(err.text, "m: functions of more than 1048576 nodes and tensors in all");
    wg__buffer_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaces_a_call_by_the_body),
        cmocka_unit_test(takes_attributes_from_the_call_or_the_defaults),
        cmocka_unit_test(hands_through_what_a_body_gives_back),
        cmocka_unit_test(leaves_outputs_that_a_body_lacks_without_a_producer),
        cmocka_unit_test(follows_functions_that_call_functions),
        cmocka_unit_test(copies_subgraphs_for_each_call),
        cmocka_unit_test(refuses_functions_that_call_each_other),
        cmocka_unit_test(bounds_calls_that_multiply),
    };
    return run_tests(tests);
}
