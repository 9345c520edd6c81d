/* SPDX-License-Identifier: MIT
 *
 * The ONNX reader: files written byte by byte become graphs.
 */
#include "model/onnx.h"

#include "support/check.h"
#include "support/onnx_bytes.h"
#include "support/scratch.h"

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

/* A graph around nodes and constants that are in it already. */
static void expect_failure(struct wg_buffer *graph, enum wg_code code, const char *expected)
{
    struct wg_model *model = NULL;
    struct wg_error err = {0};
    struct wg_buffer bytes = model_bytes(graph);
    assert_int_equal(
        wg__onnx_open_memory(&model, "m.onnx", (const uint8_t *)bytes.data, bytes.length, &err),
        code);
    assert_null(model);
    if (strstr(err.text, expected) == NULL)
        fail_msg("'%s' is not in '%s'", expected, err.text);
    wg__buffer_fini(&bytes);
}

static void put_node(struct wg_buffer *graph, const char *op, const char *first, const char *second,
                     const char *output)
{
    struct wg_buffer node = node_bytes(op, first, second, output);
    put_message(graph, 1, &node);
}

static void put_input(struct wg_buffer *graph, unsigned field, const char *name)
{
    const int64_t dims[] = {1};
    struct wg_buffer info = value_info(name, WG_ELEM_FLOAT, 1, dims);
    put_message(graph, field, &info);
}

static void put_constant(struct wg_buffer *graph, const char *name)
{
    struct wg_buffer tensor = bytes_new();
    put_varint(&tensor, 1, 5);
    put_varint(&tensor, 2, WG_ELEM_FLOAT);
    put_text(&tensor, 8, name);
    put_message(graph, 5, &tensor);
}

static void takes_no_constant_for_an_input(void **state)
{
    (void)state;
    struct wg_buffer graph = bytes_new();
    put_node(&graph, "Mul", "x", "w", "y");
    put_constant(&graph, "w");
    put_input(&graph, 11, "w"); /* as files of IR 3 do */
    put_input(&graph, 11, "x");
    struct wg_buffer bytes = model_bytes(&graph);
    struct wg_model *model = open_bytes(&bytes);
    assert_int_equal(model->graph->input_count, 1);
    assert_string_equal(model->graph->tensors[model->graph->inputs[0]].name, "x");
    const struct wg_tensor *w = &model->graph->tensors[model->graph->nodes[0].inputs[1]];
    assert_non_null(w->constant);
    assert_int_equal(w->shape.dims[0].value, 5); /* the constant's own */
    wg__model_close(model);
    wg__buffer_fini(&bytes);
}

static void sorts_nodes_that_come_before_what_they_read(void **state)
{
    (void)state;
    struct wg_buffer graph = bytes_new();
    put_node(&graph, "C", "b", "a", "c");
    put_node(&graph, "B", "a", NULL, "b");
    put_node(&graph, "A", "x", NULL, "a");
    put_node(&graph, "D", "x", NULL, "d");
    put_input(&graph, 11, "x");
    struct wg_buffer bytes = model_bytes(&graph);
    struct wg_model *model = open_bytes(&bytes);
    const struct wg_graph *read = model->graph;
    static const char *const order[] = {"A", "B", "C", "D"};
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(read->nodes[i].op, order[i]);
        assert_int_equal(read->tensors[read->nodes[i].outputs[0]].producer, i);
    }
    assert_string_equal(read->nodes[0].name, "A_2"); /* its place in the file */
    wg__model_close(model);
    wg__buffer_fini(&bytes);
}

static void refuses_nodes_that_read_from_each_other(void **state)
{
    (void)state;
    struct wg_buffer graph = bytes_new();
    put_node(&graph, "A", "x", "b", "a");
    put_node(&graph, "B", "a", NULL, "b");
    put_input(&graph, 11, "x");
    expect_failure(&graph, WG_EDATA, "m.onnx: nodes read from each other, at or before 'A_0'");
    graph = bytes_new();
    put_node(&graph, "A", "a", NULL, "a");
    expect_failure(&graph, WG_EDATA, "m.onnx: nodes read from each other");
}

static void refuses_names_that_mean_nothing_or_two_things(void **state)
{
    (void)state;
    struct wg_buffer graph = bytes_new();
    put_node(&graph, "Relu", "x", NULL, "y");
    expect_failure(&graph, WG_EDATA, "m.onnx: at byte 10: a node reads 'x', which nothing makes");
    graph = bytes_new();
    put_input(&graph, 11, "x");
    put_node(&graph, "Relu", "x", NULL, "y");
    put_node(&graph, "Relu", "x", NULL, "y");
    expect_failure(&graph, WG_EDATA, "node 'Relu_1' makes 'y', which is there already");
    graph = bytes_new();
    put_constant(&graph, "y");
    put_node(&graph, "Relu", "y", NULL, "y");
    expect_failure(&graph, WG_EDATA, "makes 'y', which is there already");
    graph = bytes_new();
    put_constant(&graph, "y");
    put_constant(&graph, "y");
    expect_failure(&graph, WG_EDATA, "initializer 'y' is there twice");
    graph = bytes_new();
    put_input(&graph, 11, "x");
    put_input(&graph, 11, "x");
    expect_failure(&graph, WG_EDATA, "input 'x' is there twice");
    graph = bytes_new();
    put_input(&graph, 11, "x");
    put_node(&graph, "Relu", "x", NULL, "x");
    expect_failure(&graph, WG_EDATA, "input 'x' is made by node 'Relu_0', too");
    graph = bytes_new();
    put_input(&graph, 12, "y");
    expect_failure(&graph, WG_EDATA, "output 'y', which nothing makes");
    graph = bytes_new();
    put_node(&graph, "Relu", "a\xff", NULL, "y");
    expect_failure(&graph, WG_EDATA, "NodeProto.input is no UTF-8");
    graph = bytes_new();
    put_node(&graph, "", NULL, NULL, "y");
    expect_failure(&graph, WG_EDATA, "a node without op_type");
}

/* A node with a subgraph that it takes. */
static struct wg_buffer node_with_graph(const char *op, const char *input, const char *output,
                                        struct wg_buffer *inner)
{
    struct wg_buffer node = node_bytes(op, input, NULL, output);
    struct wg_buffer attribute = bytes_new();
    put_text(&attribute, 1, "then_branch");
    put_message(&attribute, 6, inner);
    put_message(&node, 5, &attribute);
    return node;
}

static void captures_tensors_of_the_graphs_around(void **state)
{
    (void)state;
    struct wg_buffer innermost = bytes_new();
    put_node(&innermost, "Neg", "x", NULL, "r");
    put_input(&innermost, 12, "r");
    struct wg_buffer inner = bytes_new();
    struct wg_buffer inner_node = node_with_graph("If", "c", "s", &innermost);
    put_node(&inner, "Relu", "h", NULL, "r"); /* the same name as in the graph within */
    put_message(&inner, 1, &inner_node);
    put_input(&inner, 12, "s");
    struct wg_buffer graph = bytes_new();
    struct wg_buffer node = node_with_graph("If", "c", "y", &inner);
    put_message(&graph, 1, &node); /* before the node that makes what its subgraph reads */
    put_node(&graph, "Abs", "x", NULL, "h");
    put_input(&graph, 11, "x");
    put_input(&graph, 11, "c");
    struct wg_buffer bytes = model_bytes(&graph);
    struct wg_model *model = open_bytes(&bytes);

    assert_string_equal(model->graph->nodes[0].op, "Abs");
    const struct wg_attribute *branch = wg__node_attribute(&model->graph->nodes[1], "then_branch");
    assert_int_equal(branch->type, WG_ATTRIBUTE_GRAPH);
    const struct wg_graph *sub = branch->graph;
    assert_ptr_equal(sub->outer, model->graph);
    const struct wg_tensor *h = &sub->tensors[sub->nodes[0].inputs[0]];
    assert_string_equal(h->name, "h");
    assert_int_equal(h->producer, -1);
    assert_string_equal(model->graph->tensors[h->outer].name, "h");
    const struct wg_graph *deep = wg__node_attribute(&sub->nodes[1], "then_branch")->graph;
    const struct wg_tensor *x = &deep->tensors[deep->nodes[0].inputs[0]];
    assert_string_equal(sub->tensors[x->outer].name, "x"); /* captured by the one between, too */
    assert_string_equal(model->graph->tensors[sub->tensors[x->outer].outer].name, "x");
    assert_int_equal(deep->tensors[deep->nodes[0].outputs[0]].outer, -1);
    wg__model_close(model);
    wg__buffer_fini(&bytes);
}

static void bounds_the_depth_of_graphs(void **state)
{
    (void)state;
    for (int depth = 32; depth <= 33; depth++) {
        struct wg_buffer graph = bytes_new();
        put_node(&graph, "Abs", "x", NULL, "y");
        for (int i = 1; i < depth; i++) {
            struct wg_buffer node = node_with_graph("If", "x", "y", &graph);
            graph = bytes_new();
            put_message(&graph, 1, &node);
        }
        put_input(&graph, 11, "x");
        if (depth == 33) {
            expect_failure(&graph, WG_EDATA, "graphs within graphs deeper than 32");
            continue;
        }
        struct wg_buffer bytes = model_bytes(&graph);
        wg__model_close(open_bytes(&bytes));
        wg__buffer_fini(&bytes);
    }
}

static void reads_metadata_and_functions(void **state)
{
    (void)state;
    struct wg_buffer function = bytes_new();
    struct wg_buffer node = node_bytes("Elu", "a", NULL, "b");
    struct wg_buffer attribute = bytes_new();
    put_text(&attribute, 1, "alpha");
    put_varint(&attribute, 20, WG_ATTRIBUTE_FLOAT);
    put_text(&attribute, 21, "slope");
    put_message(&node, 5, &attribute);
    put_text(&function, 1, "Soft");
    put_text(&function, 4, "a");
    put_text(&function, 5, "b");
    put_text(&function, 6, "slope");
    put_message(&function, 7, &node);
    put_text(&function, 10, "my");
    struct wg_buffer entry = bytes_new();
    put_text(&entry, 1, "stage");
    put_text(&entry, 2, "test");
    struct wg_buffer graph = bytes_new();
    struct wg_buffer bytes = model_bytes(&graph);
    put_text(&bytes, 2, "maker");
    put_text(&bytes, 99, "a field of later days");
    put_message(&bytes, 14, &entry);
    put_message(&bytes, 25, &function);
    struct wg_model *model = open_bytes(&bytes);
    assert_string_equal(model->producer, "maker");
    assert_int_equal(model->metadata_count, 1);
    assert_string_equal(model->metadata[0].key, "stage");
    assert_string_equal(model->metadata[0].value, "test");
    assert_int_equal(model->function_count, 1);
    assert_string_equal(model->functions[0].domain, "my");
    assert_string_equal(model->functions[0].name, "Soft");
    const struct wg_graph *body = model->functions[0].body;
    assert_int_equal(body->input_count, 1);
    assert_int_equal(body->output_count, 1);
    assert_string_equal(wg__node_attribute(&body->nodes[0], "alpha")->ref, "slope");
    wg__model_close(model);
    wg__buffer_fini(&bytes);
}

static void refuses_files_that_are_no_models(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t length;
        enum wg_code code;
        const char *text;
    } cases[] = {
        {"", 0, WG_EDATA, "m: at byte 0: the file ends without an IR version: no ONNX model"},
        {"\x08\x08", 2, WG_EDATA, "m: at byte 2: the file ends without a graph: no ONNX model"},
        {"\x08\x02\x3a\x00", 4, WG_EUNSUPPORTED, "m: IR version 2, expected 3 or later"},
        {"\x08\x08\x3a\x00\x3a\x00", 6, WG_EDATA,
         "m: at byte 4: a second graph; the first is at byte 2"},
        {"\x0d\0\0\0\0", 5, WG_EDATA,
         "m: at byte 0: ModelProto.ir_version has wire type 5, expected 0"},
        {"PK\3\4", 4, WG_EDATA, "m: at byte 2: a field of number 0"},
        {"{\"layers\": []}", 14, WG_EDATA, "m: at byte 0: field 15 is a group"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_model *model = NULL;
        struct wg_error err = {0};
        assert_int_equal(wg__onnx_open_memory(&model, "m", (const uint8_t *)cases[i].bytes,
                                              cases[i].length, &err),
                         cases[i].code);
        if (strstr(err.text, cases[i].text) != err.text)
            fail_msg("case %zu: '%s'", i, err.text);
    }
}

static void says_what_is_wrong_with_a_path(void **state)
{
    (void)state;
    struct scratch scratch;
    struct wg_model *model = NULL;
    struct wg_error err = {0};
    scratch_open(&scratch);
    assert_int_equal(wg__onnx_open(&model, scratch_path(&scratch, "no.onnx"), &err), WG_ENOENT);
    assert_int_equal(wg__onnx_open(&model, scratch.folder, &err), WG_EIO);
    assert_non_null(strstr(err.text, "not a regular file"));
    scratch_write(scratch_path(&scratch, "empty.onnx"), "", 0);
    assert_int_equal(wg__onnx_open(&model, scratch_path(&scratch, "empty.onnx"), &err), WG_EDATA);
    assert_non_null(strstr(err.text, "at byte 0"));
    assert_null(model);
    scratch_close(&scratch);
}

/* Pages that were passed are given back while a large file is read, and come again when asked for;
 * bytes that the caller holds are never touched. */
static void reads_what_lies_in_pages_that_were_given_back(void **state)
{
    (void)state;
    enum { WEIGHTS = 5, NUMBERS = 150 * 1000 };
    struct scratch scratch;
    int64_t *numbers = calloc(NUMBERS, sizeof *numbers);
    assert_non_null(numbers);
    struct wg_buffer graph = bytes_new();
    for (int i = 0; i < WEIGHTS; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "w%d", i);
        numbers[0] = 1000 + i;
        struct wg_buffer tensor = bytes_new();
        put_varint(&tensor, 1, NUMBERS);
        put_varint(&tensor, 2, WG_ELEM_INT64);
        put_text(&tensor, 8, name);
        put_bytes(&tensor, 9, numbers, NUMBERS * sizeof *numbers);
        put_message(&graph, 5, &tensor);
        struct wg_buffer node = node_bytes("Neg", name, NULL, name + 1);
        put_message(&graph, 1, &node);
    }
    struct wg_buffer bytes = model_bytes(&graph);
    scratch_open(&scratch);
    scratch_write(scratch_path(&scratch, "m.onnx"), bytes.data, bytes.length);
    for (int is_file = 0; is_file < 2; is_file++) {
        struct wg_model *model = NULL;
        struct wg_error err = {0};
        const enum wg_code code =
            is_file ? wg__onnx_open(&model, scratch_path(&scratch, "m.onnx"), &err)
                    : wg__onnx_open_memory(&model, "m", (const uint8_t *)bytes.data, bytes.length,
                                           &err);
        if (code != WG_OK)
            fail_msg("%s", err.text);
        assert_int_equal(model->graph->node_count, WEIGHTS);
        for (int i = 0; i < WEIGHTS; i++) {
            const struct wg_node *node = &model->graph->nodes[i];
            const struct wg_tensor *weight = &model->graph->tensors[node->inputs[0]];
            int64_t first = 0;
            size_t count = 0;
            assert_int_equal(wg__constant_ints(model, weight->constant, &first, 1, &count, &err),
                             WG_OK);
            assert_int_equal(first, 1000 + weight->name[1] - '0');
        }
        wg__model_close(model);
    }
    scratch_close(&scratch);
    wg__buffer_fini(&bytes);
    free(numbers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_nodes_inputs_and_outputs),
        cmocka_unit_test(takes_no_constant_for_an_input),
        cmocka_unit_test(sorts_nodes_that_come_before_what_they_read),
        cmocka_unit_test(refuses_nodes_that_read_from_each_other),
        cmocka_unit_test(refuses_names_that_mean_nothing_or_two_things),
        cmocka_unit_test(captures_tensors_of_the_graphs_around),
        cmocka_unit_test(bounds_the_depth_of_graphs),
        cmocka_unit_test(reads_metadata_and_functions),
        cmocka_unit_test(refuses_files_that_are_no_models),
        cmocka_unit_test(says_what_is_wrong_with_a_path),
        cmocka_unit_test(reads_what_lies_in_pages_that_were_given_back),
    };
    return run_tests(tests);
}
