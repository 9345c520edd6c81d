/* SPDX-License-Identifier: MIT
 *
 * Lowering: whole networks against what is published, branches, loops and what stays unknown.
 *
 * Parameters are learned numbers: weights, biases, scales and shifts, embeddings; running
 * statistics are not. Multiply-adds are those of convolutions and matrix products alone.
 */
#include "model/lower.h"

#include "model/built_in.h"
#include "support/lower_stage.h"

static struct wg_model *open_built_in(const char *name)
{
    struct wg_model *model = NULL;
    struct wg_error err = {0};
    if (wg__built_in_open(&model, name, &err) != WG_OK)
        fail_msg("%s", err.text);
    return model;
}

static void counts_what_is_published(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t parameters; /* torchvision's weights; for CIFAR by test_built_in's closed form */
        double macs, tolerance;
    } nets[] = {
        {"vgg16", 138357544, 15.47e9, 0.001},        {"resnet18", 11689512, 1.814e9, 0.001},
        {"resnet50", 25557032, 4.089e9, 0.001},      {"mobilenet-v2", 3504872, 0.3008e9, 0.001},
        {"vgg16-cifar", 14987722, 3.13e8, 0.003}, /* Li et al.: 1.5e7, 3.13e8 */
        {"resnet56-cifar", 855770, 0.1257e9, 0.001},
    };
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        for (uint64_t batch = 1; batch <= 8; batch += 7) {
            struct wg_model *model = open_built_in(nets[i].name);
            struct wg_network network = model_lower(model, batch);
            assert_int_equal(network_parameters(&network), nets[i].parameters);
            check_close(network_macs(&network), nets[i].macs * (double)batch, nets[i].tolerance);
            assert_int_equal(network.left_out_count, 0);
            wg__network_fini(&network);
            wg__model_close(model);
        }
    }
}

/* Devlin et al.: 110 M; 12 layers of 768, 12 heads, 3072 within. A token's products in a layer:
 * four of 768 x 768, two of 768 x 3072, and by each token of the sequence one of 768 twice. */
static void counts_bert_by_its_closed_form(void **state)
{
    (void)state;
    const double tokens = 128;
    struct wg_error err = {0};
    struct wg_model *model = open_built_in("bert-base");
    assert_int_equal(wg__shapes_set_dim(model, "sequence", (int64_t)tokens, &err), WG_OK);
    struct wg_network network = model_lower(model, 2);
    assert_int_equal(network_parameters(&network), 109482240);
    const double of_token = 4 * 768.0 * 768 + 2 * 768.0 * 3072 + 2 * 768.0 * tokens;
    const double pooler = 768.0 * 768;
    check_close(network_macs(&network), 2 * (12 * tokens * of_token + pooler), 0);
    const struct wg_layer *scores = layer_named(&network, "encoder.layer.3.attention.self.scores");
    assert_int_equal(scores->gemm.batch, 2 * 12);
    assert_int_equal(scores->gemm.m, 128);
    assert_int_equal(scores->gemm.n, 128);
    assert_int_equal(scores->gemm.k, 64);
    wg__network_fini(&network);
    wg__model_close(model);
}

/* What is a known name for a layer's sizes in ResNet50, and where it stands. */
static void gives_resnet50_its_layers(void **state)
{
    (void)state;
    struct wg_model *model = open_built_in("resnet50");
    struct wg_network network = model_lower(model, 4);
    size_t convs = 0;
    size_t gemms = 0;
    for (size_t i = 0; i < network.layer_count; i++) {
        convs += network.layers[i].kind == WG_LAYER_CONV;
        gemms += network.layers[i].kind == WG_LAYER_GEMM;
    }
    assert_int_equal(convs, 53); /* 1 + 16 blocks of 3 + 4 shortcuts */
    assert_int_equal(gemms, 1);
    assert_int_equal(network.layer_count, 53 + 1 + 2); /* two poolings; all else is fused */
    const struct wg_conv *conv = &layer_named(&network, "layer3.0.conv2")->conv;
    struct wg_gemm gemm;
    struct wg_error err = {0};
    assert_int_equal(wg__conv_gemm(conv, WG_CONV_FORWARD, &gemm, &err), WG_OK);
    assert_int_equal(gemm.m, 4 * 14 * 14);
    assert_int_equal(gemm.n, 256);
    assert_int_equal(gemm.k, 256 * 3 * 3);
    const struct wg_layer *fc = layer_named(&network, "fc");
    assert_int_equal(fc->gemm.m, 4);
    assert_int_equal(fc->gemm.n, 1000);
    assert_int_equal(fc->gemm.k, 2048);
    assert_int_equal(fc->parameters, 2048 * 1000 + 1000);
    wg__network_fini(&network);
    wg__model_close(model);
}

/* --- Branches and loops ----------------------------------------------------------------------- */

/* x [2, 8] by a weight of 8 x `columns`, then summed to [2, 1]. */
static struct wg_graph *product_branch(struct shape_stage *outer, const char *columns)
{
    struct shape_stage inner;
    struct wg_graph *graph = stage_enter(&inner, outer);
    stage_capture(&inner, "x");
    char shape[16];
    (void)snprintf(shape, sizeof shape, "8,%s", columns);
    stage_weight(&inner, "w", shape);
    stage_step(&inner, "MatMul", "x w", "product", NULL, 0);
    const struct wg_attribute axes[] = {STAGE_INTS("axes", 1)};
    stage_step(&inner, "ReduceSum", "product", "sum", axes, 1);
    stage_leave(&inner, "sum");
    return graph;
}

/* A branch whose rows depend on data: the count of what is not zero. */
static struct wg_graph *data_branch(struct shape_stage *outer)
{
    struct shape_stage inner;
    struct wg_graph *graph = stage_enter(&inner, outer);
    stage_capture(&inner, "x");
    stage_step(&inner, "NonZero", "x", "places", NULL, 0);
    stage_step(&inner, "Transpose", "places", "turned", NULL, 0);
    stage_leave(&inner, "turned");
    return graph;
}

static void open_branches(struct shape_stage *stage, bool is_decided, bool value)
{
    stage_open(stage, 11);
    stage_input(stage, "x", WG_ELEM_FLOAT, "2,8");
    if (is_decided)
        stage_constant(stage, "c", WG_ELEM_BOOL, "", &value, 1, 1);
    else
        stage_input(stage, "c", WG_ELEM_BOOL, "");
}

static void takes_the_branch_that_multiplies_more(void **state)
{
    (void)state;
    for (int larger_first = 0; larger_first < 2; larger_first++) {
        struct shape_stage stage;
        open_branches(&stage, false, false);
        const struct wg_attribute branches[] = {
            STAGE_GRAPH("then_branch", product_branch(&stage, larger_first ? "64" : "4")),
            STAGE_GRAPH("else_branch", product_branch(&stage, larger_first ? "4" : "64"))};
        stage_step(&stage, "If", "c", "y", branches, 2);
        struct wg_network network = stage_lower(&stage, "y", 0);
        check_close(network_macs(&network), 2 * 8 * 64, 0);
        assert_int_equal(network.layer_count, 2);
        assert_string_equal(network.layers[0].name, "y/product");
        assert_int_equal(network.left_out_count, 0);
        wg__network_fini(&network);
        stage_close(&stage);
    }
}

static void takes_the_branch_that_is_known_to_run(void **state)
{
    (void)state;
    for (int value = 0; value < 2; value++) {
        struct shape_stage stage;
        open_branches(&stage, true, value != 0);
        const struct wg_attribute branches[] = {
            STAGE_GRAPH("then_branch", product_branch(&stage, "4")),
            STAGE_GRAPH("else_branch", product_branch(&stage, "64"))};
        stage_step(&stage, "If", "c", "y", branches, 2);
        struct wg_network network = stage_lower(&stage, "y", 0);
        check_close(network_macs(&network), 2 * 8 * (value != 0 ? 4 : 64), 0);
        wg__network_fini(&network);
        stage_close(&stage);
    }
}

/* A branch whose convolution does not know its sizes, as where it is not meant for this input. */
static struct wg_graph *sizeless_branch(struct shape_stage *outer)
{
    struct shape_stage inner;
    struct wg_graph *graph = stage_enter(&inner, outer);
    stage_capture(&inner, "x");
    stage_weight(&inner, "w", "4,1,1,1");
    stage_step(&inner, "Frobnicate", "x", "unknown", NULL, 0);
    stage_step(&inner, "Conv", "unknown w", "map", NULL, 0);
    stage_leave(&inner, "map");
    return graph;
}

static void takes_the_branch_whose_sizes_are_known(void **state)
{
    (void)state;
    for (int known = 0; known < 3; known++) { /* 2: neither */
        struct shape_stage stage;
        open_branches(&stage, false, false);
        struct wg_graph *graphs[2];
        for (int i = 0; i < 2; i++)
            graphs[i] = i == known ? product_branch(&stage, "4") : sizeless_branch(&stage);
        const struct wg_attribute branches[] = {STAGE_GRAPH("then_branch", graphs[0]),
                                                STAGE_GRAPH("else_branch", graphs[1])};
        stage_step(&stage, "If", "c", "y", branches, 2);
        stage_outputs(&stage, "y");
        stage_infer(&stage);
        struct wg_network network;
        struct wg_error err = {0};
        const struct wg_lower_opts opts = {.dtype = WG_DTYPE_FP16};
        const enum wg_code code = wg__lower(&network, stage.model, &opts, &err);
        assert_int_equal(code, known == 2 ? WG_EDATA : WG_OK);
        assert_int_equal(err.text[0] != '\0', known == 2);
        if (code == WG_OK) {
            check_close(network_macs(&network), 2 * 8 * 4, 0);
            assert_int_equal(network.left_out_count, 2);
            wg__network_fini(&network);
        }
        stage_close(&stage);
    }
}

/* Exporters guard a Squeeze by a condition: with another size that branch cannot run. */
static void gives_the_outputs_of_the_branch_that_can_run(void **state)
{
    (void)state;
    struct shape_stage stage;
    struct shape_stage inner;
    struct wg_graph *graphs[2];
    open_branches(&stage, false, false);
    for (int i = 0; i < 2; i++) {
        graphs[i] = stage_enter(&inner, &stage);
        stage_capture(&inner, "x");
        const struct wg_attribute axes[] = {STAGE_INTS("axes", 0)};
        stage_step(&inner, i == 0 ? "Squeeze" : "Relu", "x", "out", axes, i == 0 ? 1 : 0);
        stage_leave(&inner, "out");
    }
    const struct wg_attribute branches[] = {STAGE_GRAPH("then_branch", graphs[0]),
                                            STAGE_GRAPH("else_branch", graphs[1])};
    stage_step(&stage, "If", "c", "y", branches, 2);
    stage_infer(&stage);
    stage_check(&stage, "y", "2,8");
    stage_close(&stage);
}

/* A weight that both branches read belongs to the one that stays, and to nobody else. */
static void counts_the_parameters_of_the_branch_that_stays(void **state)
{
    (void)state;
    for (int larger = 0; larger < 2; larger++) {
        struct shape_stage stage;
        struct wg_graph *graphs[2];
        open_branches(&stage, false, false);
        stage_weight(&stage, "shared", "8,8");
        stage_weight(&stage, "bias", "8");
        stage_step(&stage, "MatMul", "x shared", "before", NULL, 0);
        stage_weight(&stage, "w", "8,8");
        for (int i = 0; i < 2; i++) {
            struct shape_stage inner;
            graphs[i] = stage_enter(&inner, &stage);
            stage_capture(&inner, "before");
            stage_capture(&inner, "shared");
            stage_capture(&inner, "bias");
            stage_capture(&inner, "w");
            stage_step(&inner, "Add", "before bias", "biased", NULL, 0);
            stage_step(&inner, "MatMul", "biased w", "a", NULL, 0);
            if (i == larger)
                stage_step(&inner, "MatMul", "a shared", "b", NULL, 0);
            stage_leave(&inner, i == larger ? "b" : "a");
        }
        const struct wg_attribute branches[] = {STAGE_GRAPH("then_branch", graphs[0]),
                                                STAGE_GRAPH("else_branch", graphs[1])};
        stage_step(&stage, "If", "c", "y", branches, 2);
        stage_weight(&stage, "last", "8,3");
        stage_step(&stage, "MatMul", "before last", "z", NULL, 0);
        stage_step(&stage, "MatMul", "before w", "u", NULL, 0);
        struct wg_network network = stage_lower(&stage, "y z u", 0);
        check_close(network_macs(&network), 2 * 8 * (4 * 8 + 3), 0);
        assert_int_equal(network_parameters(&network), 64 + 8 + 64 + 24);
        assert_int_equal(network.layers[0].parameters, 64); /* the bias is added in the branch */
        assert_int_equal(layer_named(&network, "u")->parameters, 0);
        wg__network_fini(&network);
        stage_close(&stage);
    }
}

/* Only what the branch that counts leaves out is told. */
static void tells_what_the_counted_branch_leaves_out(void **state)
{
    (void)state;
    for (int data_first = 0; data_first < 2; data_first++) {
        struct shape_stage stage;
        open_branches(&stage, false, false);
        struct wg_graph *product = product_branch(&stage, "4");
        struct wg_graph *data = data_branch(&stage);
        const struct wg_attribute branches[] = {
            STAGE_GRAPH("then_branch", data_first ? data : product),
            STAGE_GRAPH("else_branch", data_first ? product : data)};
        stage_step(&stage, "If", "c", "y", branches, 2);
        struct wg_network network = stage_lower(&stage, "y", 0);
        assert_int_equal(network.left_out_count, 0);
        assert_int_equal(network.layer_count, 2);
        wg__network_fini(&network);
        stage_close(&stage);
    }
}

static void leaves_loops_out_and_tells_it(void **state)
{
    (void)state;
    struct shape_stage stage;
    struct shape_stage inner;
    stage_open(&stage, 13);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "2,8");
    stage_input(&stage, "turns", WG_ELEM_INT64, "");
    stage_input(&stage, "go", WG_ELEM_BOOL, "");
    stage_weight(&stage, "w1", "8,16");
    stage_step(&stage, "MatMul", "x w1", "first", NULL, 0);
    struct wg_graph *body = stage_enter(&inner, &stage);
    stage_capture(&inner, "first");
    stage_input(&inner, "turn", WG_ELEM_INT64, "");
    stage_input(&inner, "go_in", WG_ELEM_BOOL, "");
    stage_input(&inner, "sum_in", WG_ELEM_FLOAT, "2,16");
    stage_step(&inner, "Identity", "go_in", "go_out", NULL, 0);
    stage_step(&inner, "Add", "sum_in first", "sum_out", NULL, 0);
    /* the inputs' list is that of `inner`, which ends before the graph does */
    int32_t *kept = stage_room(&stage, 3, sizeof *kept);
    memcpy(kept, inner.inputs, 3 * sizeof *kept);
    body->inputs = kept;
    stage_leave(&inner, "go_out sum_out");
    const struct wg_attribute attributes[] = {STAGE_GRAPH("body", body)};
    stage_step(&stage, "Loop", "turns go first", "y", attributes, 1);
    struct wg_network network = stage_lower(&stage, "y", 0);
    assert_int_equal(network.layer_count, 1);
    assert_int_equal(network.left_out_count, 2); /* both nodes of the body */
    assert_true(width_of(&network, &network.layers[0].out, 0)->is_fixed);
    wg__network_fini(&network);
    stage_close(&stage);
}

/* --- What moves bytes ------------------------------------------------------------------------- */

static void leaves_out_what_depends_on_data(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 13);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "4,8");
    stage_step(&stage, "Softmax", "x", "s", NULL, 0);
    stage_step(&stage, "NonZero", "s", "places", NULL, 0);
    stage_step(&stage, "Transpose", "places", "y", NULL, 0);
    struct wg_network network = stage_lower(&stage, "y", 0);
    assert_int_equal(network.layer_count, 1);
    assert_int_equal(network.left_out_count, 2);
    assert_int_equal(network.layers[0].kind, WG_LAYER_BYTES);
    assert_int_equal(network.layers[0].gemm.dtype, WG_DTYPE_FP16);
    check_close(network.layers[0].bytes, 2 * 4 * 8 * 2, 0);
    wg__network_fini(&network);
    stage_close(&stage);
}

static void counts_bytes_by_the_type_of_elements(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 13);
    stage_input(&stage, "x", WG_ELEM_INT64, "4,8");
    stage_input(&stage, "d", WG_ELEM_INT64, "16,2");
    stage_input(&stage, "names", WG_ELEM_STRING, "4");
    stage_input(&stage, "none", WG_ELEM_FLOAT, "0,8");
    stage_step(&stage, "Transpose", "x", "turned", NULL, 0);
    const struct wg_attribute axis[] = {STAGE_INT("axis", 0)};
    stage_step(&stage, "Concat", "names names", "texts", axis, 1); /* who knows how long */
    stage_step(&stage, "Softmax", "none", "nothing", NULL, 0);     /* moves nothing */
    struct wg_network network = stage_lower(&stage, "turned texts nothing", 0);
    assert_int_equal(network.layer_count, 1);
    check_close(network.layers[0].bytes, 2 * 4 * 8 * 8, 0);
    assert_int_equal(network.left_out_count, 1);
    wg__network_fini(&network);
    stage_close(&stage);
}

static void names_the_dimension_that_a_layer_lacks(void **state)
{
    (void)state;
    struct shape_stage stage;
    struct wg_network network;
    const struct wg_lower_opts opts = {.dtype = WG_DTYPE_FP16};
    stage_open(&stage, 13);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "batch,3,height,8");
    stage_weight(&stage, "w", "4,3,3,3");
    stage_step(&stage, "Conv", "x w", "y", NULL, 0);
    stage_outputs(&stage, "y");
    stage_infer(&stage);
    assert_int_equal(wg__lower(&network, stage.model, &opts, &stage.err), WG_EDATA);
    assert_non_null(strstr(stage.err.text, "dimension 2 ('height') of 'x' is not known"));
    stage_close(&stage);
}

static void gives_all_back_when_memory_runs_out(void **state)
{
    (void)state;
    struct wg_model *model = open_built_in("resnet56-cifar");
    struct wg_error err = {0};
    const struct wg_lower_opts opts = {.dtype = WG_DTYPE_FP16, .batch = 1};
    assert_int_equal(wg__shapes_infer(model, &err), WG_OK);
    enum wg_code code = WG_ENOMEM;
    size_t nth = 1;
    for (; code == WG_ENOMEM && nth < 1000; nth++) {
        struct wg_network network = {0};
        wg__alloc_fail_from(nth);
        code = wg__lower(&network, model, &opts, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            wg__network_fini(&network);
    }
    assert_int_equal(code, WG_OK);
    assert_true(nth > 5);
    wg__model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_is_published),
        cmocka_unit_test(counts_bert_by_its_closed_form),
        cmocka_unit_test(gives_resnet50_its_layers),
        cmocka_unit_test(takes_the_branch_that_multiplies_more),
        cmocka_unit_test(takes_the_branch_that_is_known_to_run),
        cmocka_unit_test(takes_the_branch_whose_sizes_are_known),
        cmocka_unit_test(gives_the_outputs_of_the_branch_that_can_run),
        cmocka_unit_test(counts_the_parameters_of_the_branch_that_stays),
        cmocka_unit_test(tells_what_the_counted_branch_leaves_out),
        cmocka_unit_test(leaves_loops_out_and_tells_it),
        cmocka_unit_test(leaves_out_what_depends_on_data),
        cmocka_unit_test(counts_bytes_by_the_type_of_elements),
        cmocka_unit_test(names_the_dimension_that_a_layer_lacks),
        cmocka_unit_test(gives_all_back_when_memory_runs_out),
    };
    return run_tests(tests);
}
