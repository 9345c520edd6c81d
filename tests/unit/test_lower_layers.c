/* SPDX-License-Identifier: MIT
 *
 * Operators that multiply, as layers: their dimensions, parameters and products in closed form.
 */
#include "model/lower.h"
#include "support/lower_stage.h"

/* A graph of one operator over inputs and weights. */
struct one {
    const char *op, *domain, *inputs, *x, *w, *v, *u; /* shapes of x; w, v, u are constants */
    struct wg_attribute attributes[4];
};

static struct wg_network lower_one(struct shape_stage *stage, const struct one *of)
{
    size_t count = 0;
    const char *const shapes[] = {of->w, of->v, of->u};
    static const char *const names[] = {"w", "v", "u"};
    stage_open(stage, 17);
    stage_input(stage, "x", WG_ELEM_FLOAT, of->x);
    for (size_t i = 0; i < 3; i++) {
        if (shapes[i] != NULL)
            stage_weight(stage, names[i], shapes[i]);
    }
    while (count < 4 && of->attributes[count].name != NULL)
        count++;
    stage_node_of(stage, of->domain != NULL ? of->domain : "", of->op, of->inputs, "y",
                  of->attributes, count);
    return stage_lower(stage, "y", 0);
}

static void check_gemm(const struct wg_layer *layer, uint64_t batch, uint64_t m, uint64_t n,
                       uint64_t k, uint64_t parameters)
{
    const struct wg_gemm *gemm = &layer->gemm;
    assert_int_equal(layer->kind, WG_LAYER_GEMM);
    if (gemm->batch != batch || gemm->m != m || gemm->n != n || gemm->k != k)
        fail_msg("'%s' is %llu x (%llu, %llu, %llu)", layer->name, (unsigned long long)gemm->batch,
                 (unsigned long long)gemm->m, (unsigned long long)gemm->n,
                 (unsigned long long)gemm->k);
    assert_int_equal(layer->parameters, parameters);
}

/* --- Convolutions ----------------------------------------------------------------------------- */

#define CONV(x_shape, w_shape, bias_shape, ...)                                                    \
    {                                                                                              \
        .op = "Conv", .inputs = (bias_shape) != NULL ? "x w v" : "x w", .x = (x_shape),            \
        .w = (w_shape), .v = (bias_shape), .attributes = {                                         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

struct conv_case {
    struct one one;
    double macs; /* outputs times what each sums over */
    uint64_t parameters, groups;
};

static void check_convs(const struct conv_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct shape_stage stage;
        struct wg_network network = lower_one(&stage, &cases[i].one);
        assert_int_equal(network.layer_count, 1);
        assert_int_equal(network.layers[0].kind, WG_LAYER_CONV);
        check_close(layer_macs(&network.layers[0]), cases[i].macs, 0);
        assert_int_equal(network.layers[0].parameters, cases[i].parameters);
        assert_int_equal(network.layers[0].conv.groups, cases[i].groups);
        assert_int_equal(network.layers[0].conv.dtype, WG_DTYPE_FP16);
        wg__network_fini(&network);
        stage_close(&stage);
    }
}

static void multiplies_as_convolutions_do(void **state)
{
    (void)state;
    const struct wg_attribute pads[] = {STAGE_INTS("pads", 1, 1, 1, 1),
                                        STAGE_INTS("pads", 3, 3, 3, 3)};
    const struct wg_attribute strides[] = {STAGE_INTS("strides", 2, 2), STAGE_INTS("strides", 2, 3),
                                           STAGE_INTS("strides", 5)};
    const struct wg_attribute valid = STAGE_TEXT("auto_pad", "VALID");
    const struct wg_attribute same = STAGE_TEXT("auto_pad", "SAME_UPPER");
    const struct wg_attribute dilations = STAGE_INTS("dilations", 2, 1);
    const struct conv_case cases[] = {
        {CONV("2,3,32,32", "16,3,3,3", "16", pads[0]), 2.0 * 16 * 32 * 32 * 27, 16 * 27 + 16, 1},
        {CONV("1,3,224,224", "64,3,7,7", NULL, pads[1], strides[0]), 64.0 * 112 * 112 * 147,
         64UL * 147, 1},
        {CONV("1,4,10,12", "8,4,3,5", NULL, dilations, valid), 8.0 * 6 * 8 * 60, 8UL * 60, 1},
        {CONV("1,4,11,12", "8,4,3,3", NULL, strides[1], same), 8.0 * 6 * 4 * 36, 8UL * 36, 1},
        {CONV("3,8,100", "16,8,5", NULL, strides[2]), 3 * 16.0 * 20 * 40, 16UL * 40, 1},
    };
    check_convs(cases, sizeof cases / sizeof *cases);
}

static void multiplies_grouped_convolutions_group_by_group(void **state)
{
    (void)state;
    const struct wg_attribute pads = STAGE_INTS("pads", 1, 1, 1, 1);
    const struct wg_attribute depth_wise = STAGE_INT("group", 32);
    const struct wg_attribute four = STAGE_INT("group", 4);
    const struct conv_case cases[] = {
        {CONV("1,32,14,14", "32,1,3,3", NULL, depth_wise, pads), 32.0 * 14 * 14 * 9, 32UL * 9, 32},
        {CONV("1,32,14,14", "64,8,1,1", NULL, four), 64.0 * 14 * 14 * 8, 64UL * 8, 4},
        {CONV("1,32,14", "64,8,3", "64", four), 64.0 * 12 * 24, 64 * 24 + 64, 4},
    };
    check_convs(cases, sizeof cases / sizeof *cases);
}

static void multiplies_volumes_and_transposed_maps(void **state)
{
    (void)state;
    struct shape_stage stage;
    const struct one volume = {"Conv",       NULL, "x w v", "2,3,8,16,16",
                               "10,3,3,3,3", "10", NULL,    {{0}}};
    struct wg_network network = lower_one(&stage, &volume);
    check_gemm(&network.layers[0], 1, 2UL * 6 * 14 * 14, 10, 3UL * 27, 10 * 81 + 10);
    wg__network_fini(&network);
    stage_close(&stage);
    const struct one grouped = {"Conv",      NULL, "x w", "1,4,5,5,5",
                                "8,2,1,1,1", NULL, NULL,  {STAGE_INT("group", 2)}};
    network = lower_one(&stage, &grouped);
    check_gemm(&network.layers[0], 2, 125, 4, 2, 16);
    wg__network_fini(&network);
    stage_close(&stage);
    const struct one transposed = {"ConvTranspose", NULL, "x w v", "2,6,7,9",
                                   "6,5,2,2",       "5",  NULL,    {STAGE_INTS("strides", 2, 2)}};
    network = lower_one(&stage, &transposed);
    check_gemm(&network.layers[0], 1, 2UL * 7 * 9, 5UL * 4, 6, 6 * 5 * 4 + 5);
    wg__network_fini(&network);
    stage_close(&stage);
}

/* --- Matrix products -------------------------------------------------------------------------- */

struct gemm_case {
    struct one one;
    uint64_t batch, m, n, k, parameters;
};

static void check_gemms(const struct gemm_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct shape_stage stage;
        struct wg_network network = lower_one(&stage, &cases[i].one);
        assert_int_equal(network.layer_count, 1);
        check_gemm(&network.layers[0], cases[i].batch, cases[i].m, cases[i].n, cases[i].k,
                   cases[i].parameters);
        wg__network_fini(&network);
        stage_close(&stage);
    }
}

static void multiplies_as_matrices_do(void **state)
{
    (void)state;
    const struct wg_attribute a = STAGE_INT("transA", 1);
    const struct wg_attribute b = STAGE_INT("transB", 1);
    const struct gemm_case cases[] = {
        {{.op = "Gemm", .inputs = "x w v", .x = "4,8", .w = "8,10", .v = "10"}, 1, 4, 10, 8, 90},
        {{.op = "Gemm",
          .inputs = "x w v",
          .x = "8,4",
          .w = "10,8",
          .v = "10",
          .attributes = {a, b}},
         1,
         4,
         10,
         8,
         90},
        {{.op = "MatMul", .inputs = "x w", .x = "2,7,8", .w = "8,10"}, 1, 14, 10, 8, 80},
        {{.op = "MatMul", .inputs = "x w", .x = "2,3,7,8", .w = "3,8,10"}, 6, 7, 10, 8, 240},
        {{.op = "MatMul", .inputs = "x w", .x = "8", .w = "8,10"}, 1, 1, 10, 8, 80},
        {{.op = "MatMul", .inputs = "x w", .x = "5,8", .w = "8"}, 1, 5, 1, 8, 8},
        {{.op = "MatMul", .inputs = "w x", .x = "5,8,6", .w = "4,8"}, 5, 4, 6, 8, 32},
    };
    check_gemms(cases, sizeof cases / sizeof *cases);
    const struct gemm_case fused = {{.op = "FusedMatMul",
                                     .domain = "com.microsoft",
                                     .inputs = "x w",
                                     .x = "5,8",
                                     .w = "10,8",
                                     .attributes = {b}},
                                    1,
                                    5,
                                    10,
                                    8,
                                    80};
    check_gemms(&fused, 1);
}

static void multiplies_as_einsum_says(void **state)
{
    (void)state;
    const struct wg_attribute dense = STAGE_TEXT("equation", "abc,cde->abde");
    const struct wg_attribute scores = STAGE_TEXT("equation", "bqhd,bkhd->bhqk");
    const struct gemm_case cases[] = {
        {{.op = "Einsum", .inputs = "x w", .x = "2,3,8", .w = "8,4,5", .attributes = {dense}},
         1,
         6,
         20,
         8,
         160},
        {{.op = "Einsum", .inputs = "x w", .x = "2,7,3,8", .w = "2,9,3,8", .attributes = {scores}},
         6,
         7,
         9,
         8,
         432},
    };
    check_gemms(cases, sizeof cases / sizeof *cases);
}

/* x x^T: a product of two computed tensors, `heads` * samples times. */
static void multiplies_computed_operands_in_batches(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 17);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "2,12,64,32");
    const struct wg_attribute perm[] = {STAGE_INTS("perm", 0, 1, 3, 2)};
    stage_step(&stage, "Transpose", "x", "t", perm, 1);
    stage_step(&stage, "MatMul", "x t", "y", NULL, 0);
    struct wg_network network = stage_lower(&stage, "y", 0);
    check_gemm(layer_named(&network, "y"), 24, 64, 64, 32, 0);
    wg__network_fini(&network);
    stage_close(&stage);
}

/* --- Recurrence and attention ----------------------------------------------------------------- */

static void multiplies_recurrences_step_by_step(void **state)
{
    (void)state;
    struct shape_stage stage;
    const struct one lstm = {
        "LSTM",    NULL,
        "x w v u", "5,2,16",
        "2,32,16", "2,32,8",
        "2,64",    {STAGE_TEXT("direction", "bidirectional"), STAGE_INT("hidden_size", 8)}};
    struct wg_network network = lower_one(&stage, &lstm);
    assert_int_equal(network.layer_count, 1 + 5);
    check_gemm(&network.layers[0], 2, 5UL * 2, 4UL * 8, 16, 2UL * (32 * 16 + 32 * 8 + 64));
    for (size_t i = 1; i < 6; i++)
        check_gemm(&network.layers[i], 2, 2, 4UL * 8, 8, 0);
    wg__network_fini(&network);
    stage_close(&stage);
}

static void multiplies_attention_as_two_products(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 23);
    stage_input(&stage, "q", WG_ELEM_FLOAT, "2,8,10,64");
    stage_input(&stage, "k", WG_ELEM_FLOAT, "2,8,12,64");
    stage_input(&stage, "v", WG_ELEM_FLOAT, "2,8,12,32");
    stage_step(&stage, "Attention", "q k v", "y", NULL, 0);
    struct wg_network network = stage_lower(&stage, "y", 0);
    assert_int_equal(network.layer_count, 2);
    check_gemm(layer_named(&network, "y/scores"), 16, 10, 12, 64, 0);
    check_gemm(layer_named(&network, "y/values"), 16, 10, 32, 12, 0);
    wg__network_fini(&network);
    stage_close(&stage);
    const struct one projected = {
        "Attention", "com.microsoft", "x w v", "2,10,48",
        "48,144",    "144",           NULL,    {STAGE_INT("num_heads", 6)}};
    network = lower_one(&stage, &projected);
    assert_int_equal(network.layer_count, 3);
    check_gemm(&network.layers[0], 1, 20, 144, 48, 48 * 144 + 144);
    check_gemm(&network.layers[1], 12, 10, 10, 8, 0);
    check_gemm(&network.layers[2], 12, 10, 8, 10, 0);
    wg__network_fini(&network);
    stage_close(&stage);
}

/* --- Parameters and fusion -------------------------------------------------------------------- */

/* The same weights in two layers are parameters once; what follows from them is they, too. */
static void counts_shared_weights_once(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 17);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "4,8");
    stage_weight(&stage, "w", "8,8");
    const struct wg_attribute perm[] = {STAGE_INTS("perm", 1, 0)};
    stage_step(&stage, "Transpose", "w", "turned", perm, 1);
    stage_step(&stage, "MatMul", "x w", "a", NULL, 0);
    stage_step(&stage, "MatMul", "a turned", "y", NULL, 0);
    struct wg_network network = stage_lower(&stage, "y", 0);
    assert_int_equal(network.layer_count, 2);
    assert_int_equal(network_parameters(&network), 64);
    wg__network_fini(&network);
    stage_close(&stage);
}

/* Bias, activation and a residual addition are no layers; a second reading of the map is one. */
static void fuses_what_follows_a_layer(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 17);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "4,16");
    stage_weight(&stage, "w", "16,16");
    stage_weight(&stage, "b", "16");
    stage_step(&stage, "MatMul", "x w", "a", NULL, 0);
    stage_step(&stage, "Add", "a b", "c", NULL, 0);
    stage_step(&stage, "Relu", "c", "d", NULL, 0);
    stage_step(&stage, "Add", "d x", "e", NULL, 0);
    stage_step(&stage, "Softmax", "e", "f", NULL, 0);
    stage_step(&stage, "Relu", "f", "y", NULL, 0);
    struct wg_network network = stage_lower(&stage, "y", 0);
    assert_int_equal(network.layer_count, 3);
    check_gemm(&network.layers[0], 1, 4, 16, 16, 16 * 16 + 16);
    assert_true(network.layers[0].gemm.has_bias);
    check_close(layer_named(&network, "f")->bytes, 2 * 4 * 16 * 2, 0);
    check_close(layer_named(&network, "y")->bytes, 2 * 4 * 16 * 2, 0);
    wg__network_fini(&network);
    stage_close(&stage);
}

static void refuses_sizes_that_do_not_go_together(void **state)
{
    (void)state;
    /* Shapes are not inferred here: what the file claims meets lowering as it is. */
    static const struct {
        const char *op, *x, *w;
    } cases[] = {
        {"Conv", "1,3,8,8", "4,2,3,3"},
        {"Conv", "1,3,8", "4,3,3,3"},
        {"Conv", "1,3,8,8", "4,3,9,9"},
        {"Conv", "1,3,0,8", "4,3,1,1"},
        {"ConvTranspose", "1,3,8,8", "4,3,3,3"},
        {"MatMul", "4,8", "9,2"},
        {"MatMul", "2,4,8", "3,8,2"},
        {"MatMul", "", "8,2"},
        {"MatMul", "4294967296,4294967296,2", "2,2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shape_stage stage;
        struct wg_network network;
        const struct wg_lower_opts opts = {.dtype = WG_DTYPE_FP16};
        stage_open(&stage, 17);
        stage_input(&stage, "x", WG_ELEM_FLOAT, cases[i].x);
        stage_weight(&stage, "w", cases[i].w);
        stage_step(&stage, cases[i].op, "x w", "y", NULL, 0);
        stage_outputs(&stage, "y");
        assert_int_equal(wg__lower(&network, stage.model, &opts, &stage.err), WG_EDATA);
        assert_non_null(strstr(stage.err.text, "node 'y'"));
        stage_close(&stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiplies_as_convolutions_do),
        cmocka_unit_test(multiplies_grouped_convolutions_group_by_group),
        cmocka_unit_test(multiplies_volumes_and_transposed_maps),
        cmocka_unit_test(multiplies_as_matrices_do),
        cmocka_unit_test(multiplies_as_einsum_says),
        cmocka_unit_test(multiplies_computed_operands_in_batches),
        cmocka_unit_test(multiplies_recurrences_step_by_step),
        cmocka_unit_test(multiplies_attention_as_two_products),
        cmocka_unit_test(counts_shared_weights_once),
        cmocka_unit_test(fuses_what_follows_a_layer),
        cmocka_unit_test(refuses_sizes_that_do_not_go_together),
    };
    return run_tests(tests);
}
