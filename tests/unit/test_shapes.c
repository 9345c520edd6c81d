/* SPDX-License-Identifier: MIT
 *
 * Shape inference on graphs of a node or few; tests/integration/onnx_shapes.py compares thousands
 * of models with onnx's own inference. Expected shapes follow from the operators' specification.
 */
#include "model/shapes.h"

#include "support/shape_stage.h"

static void keeps_names_through_elementwise_operators(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 13);
    stage_input(&stage, "a", WG_ELEM_FLOAT, "batch,1,?,5");
    stage_input(&stage, "b", WG_ELEM_FLOAT, "7,sequence,1");
    stage_node(&stage, "Relu", "a", "r", NULL, 0);
    stage_node(&stage, "Add", "r b", "sum", NULL, 0);
    stage_node(&stage, "Greater", "r b", "more", NULL, 0);
    stage_infer(&stage);
    stage_check(&stage, "r", "batch,1,?,5");
    stage_check(&stage, "sum", "batch,7,?,5");
    int32_t index = 0;
    assert_int_equal(stage_tensor(&stage, "sum", &index)->elem_type, WG_ELEM_FLOAT);
    assert_int_equal(stage_tensor(&stage, "more", &index)->elem_type, WG_ELEM_BOOL);
    stage_close(&stage);
}

static void slides_windows_with_stride_padding_and_dilation(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 13);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "n,8,32,33");
    stage_input(&stage, "w", WG_ELEM_FLOAT, "16,4,3,5");
    const struct wg_attribute conv[] = {STAGE_INTS("strides", 2, 1), STAGE_INTS("pads", 1, 0, 1, 2),
                                        STAGE_INTS("dilations", 1, 2), STAGE_INT("group", 2)};
    stage_node(&stage, "Conv", "x w", "y", conv, 4);
    const struct wg_attribute same[] = {STAGE_TEXT("auto_pad", "SAME_UPPER"),
                                        STAGE_INTS("strides", 2, 2), STAGE_INT("group", 2)};
    stage_node(&stage, "Conv", "x w", "s", same, 3);
    const struct wg_attribute up[] = {STAGE_INTS("strides", 2, 3),
                                      STAGE_INTS("output_padding", 1, 0),
                                      STAGE_INTS("pads", 1, 0, 0, 2)};
    stage_input(&stage, "v", WG_ELEM_FLOAT, "8,6,3,5");
    stage_node(&stage, "ConvTranspose", "x v", "u", up, 3);
    stage_infer(&stage);
    stage_check(&stage, "y", "n,16,16,27"); /* (34 - 3) / 2 + 1, (35 - 9) / 1 + 1 */
    stage_check(&stage, "s", "n,16,16,17");
    stage_check(&stage, "u", "n,6,65,99"); /* 2 * 31 + 1 + 3 - 1, 3 * 32 + 5 - 2 */
    stage_close(&stage);
}

/* 4 wide, window 2, stride 3: a second window would start at 3 and is counted; padded by 1 at the
 * end, 5 wide with stride 4: it starts at 4, in the data, and is counted; with stride 5 it would
 * start at 5, in the padding. */
static void counts_only_windows_that_start_in_the_data(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        int64_t stride, pad_end;
        const char *expected;
    } cases[] = {{"1,1,4", 3, 0, "1,1,2"}, {"1,1,5", 4, 1, "1,1,2"}, {"1,1,5", 5, 1, "1,1,1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shape_stage stage;
        stage_open(&stage, 19);
        stage_input(&stage, "x", WG_ELEM_FLOAT, cases[i].shape);
        const int64_t stride = cases[i].stride, pads[] = {0, cases[i].pad_end}, kernel = 2;
        const struct wg_attribute pool[] = {
            {.name = "strides", .type = WG_ATTRIBUTE_INTS, .ints = &stride, .count = 1},
            {.name = "pads", .type = WG_ATTRIBUTE_INTS, .ints = pads, .count = 2},
            {.name = "kernel_shape", .type = WG_ATTRIBUTE_INTS, .ints = &kernel, .count = 1},
            STAGE_INT("ceil_mode", 1)};
        stage_node(&stage, "MaxPool", "x", "y", pool, 4);
        stage_infer(&stage);
        stage_check(&stage, "y", cases[i].expected);
        stage_close(&stage);
    }
}

static void computes_a_shape_along(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 13);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "batch,12,4,4");
    stage_ints(&stage, "first", "1", (const int64_t[]){0}, 1);
    stage_ints(&stage, "rest", "1", (const int64_t[]){-1}, 1);
    stage_node(&stage, "Shape", "x", "shape", NULL, 0);
    stage_node(&stage, "Gather", "shape first", "b", NULL, 0);
    const struct wg_attribute axis = STAGE_INT("axis", 0);
    stage_node(&stage, "Concat", "b rest", "wanted", &axis, 1);
    stage_node(&stage, "Reshape", "x wanted", "y", NULL, 0);
    stage_infer(&stage);
    stage_check(&stage, "y", "batch,192");
    stage_close(&stage);
}

static void takes_axes_from_attribute_or_input(void **state)
{
    (void)state;
    for (int64_t opset = 11; opset <= 13; opset += 2) {
        struct shape_stage stage;
        stage_open(&stage, opset);
        stage_input(&stage, "x", WG_ELEM_FLOAT, "1,5,1");
        stage_ints(&stage, "axes", "1", (const int64_t[]){-1}, 1);
        const struct wg_attribute axes = STAGE_INTS("axes", -1);
        const size_t count = opset < 13 ? 1 : 0;
        stage_node(&stage, "Squeeze", count ? "x" : "x axes", "s", &axes, count);
        stage_node(&stage, "ReduceSum", count ? "x" : "x axes", "r", &axes, count);
        stage_node(&stage, "Unsqueeze", count ? "x" : "x axes", "u", &axes, count);
        stage_infer(&stage);
        stage_check(&stage, "s", "1,5");
        stage_check(&stage, "r", "1,5,1");
        stage_check(&stage, "u", "1,5,1,1");
        stage_close(&stage);
    }
}

static void multiplies_matrices_and_vectors(void **state)
{
    (void)state;
    static const char *const cases[][3] = {{"3,4", "4,5", "3,5"},
                                           {"4", "4,5", "5"},
                                           {"3,4", "4", "3"},
                                           {"4", "4", ""},
                                           {"b,1,3,4", "7,4,5", "b,7,3,5"},
                                           {"b,s,768", "768,64", "b,s,64"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shape_stage stage;
        stage_open(&stage, 13);
        stage_input(&stage, "a", WG_ELEM_FLOAT, cases[i][0]);
        stage_input(&stage, "b", WG_ELEM_FLOAT, cases[i][1]);
        stage_node(&stage, "MatMul", "a b", "y", NULL, 0);
        stage_infer(&stage);
        stage_check(&stage, "y", cases[i][2]);
        stage_close(&stage);
    }
}

static void follows_an_equation(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"bhqd,bhkd->bhqk", "2,8,10,12"},
                                           {"...qd,...kd", "2,8,12,10"},
                                           {"bhqd, bhkd -> hb", "8,2"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shape_stage stage;
        stage_open(&stage, 13);
        stage_input(&stage, "q", WG_ELEM_FLOAT, "2,8,10,64");
        stage_input(&stage, "k", WG_ELEM_FLOAT, "2,8,12,64");
        const struct wg_attribute equation = STAGE_TEXT("equation", cases[i][0]);
        stage_node(&stage, "Einsum", "q k", "y", &equation, 1);
        stage_infer(&stage);
        stage_check(&stage, "y", cases[i][1]);
        stage_close(&stage);
    }
}

static void refuses_shapes_that_contradict_each_other(void **state)
{
    (void)state;
    const struct wg_attribute axis = STAGE_INT("axis", 1);
    static const struct {
        const char *op, *a, *b, *says;
    } cases[] = {
        {"Add", "2,3", "2,4", "3 of 'a' and 4 of 'b'"},
        {"MatMul", "2,3", "4,5", "'a' has rows of 3, 'b' columns of 4"},
        {"Gemm", "2,3,4", "4,5", "'a' has 3 dimensions, expected 2"},
        {"Conv", "1,3,8,8", "16,4,3,3", "'a' has 3 channels"},
        {"Conv", "1,3,2,8", "16,3,3,3", "a window of 3 doesn't fit into 'a'"},
        {"Concat", "2,3", "4,3", "2 and 4 are not equal"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct shape_stage stage;
        stage_open(&stage, 13);
        stage_input(&stage, "a", WG_ELEM_FLOAT, cases[i].a);
        stage_input(&stage, "b", WG_ELEM_FLOAT, cases[i].b);
        stage_node(&stage, cases[i].op, "a b", "y", &axis, 1);
        stage_refuses(&stage, cases[i].says);
        stage_close(&stage);
    }
}

static void refuses_dimensions_past_64_bits(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 13);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "4611686018427387904,4");
    const struct wg_attribute axis = STAGE_INT("axis", 2);
    stage_node(&stage, "Flatten", "x", "y", &axis, 1);
    stage_refuses(&stage, "is too large");
    stage_close(&stage);
}

static void leaves_unknown_operators_alone(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 13);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "2,3");
    stage_node_of(&stage, "com.somebody", "Relu", "x", "y", NULL, 0);
    stage_node(&stage, "Relu", "y", "z", NULL, 0);
    stage_infer(&stage);
    stage_check(&stage, "y", "none");
    stage_check(&stage, "z", "none");
    stage_close(&stage);
}

static void fills_in_what_the_file_declares_only_where_nothing_is_known(void **state)
{
    (void)state;
    struct shape_stage stage;
    int32_t index = 0;
    stage_open(&stage, 13);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "8,?");
    stage_node(&stage, "Relu", "x", "y", NULL, 0);
    stage_node_of(&stage, "com.somebody", "Fft", "x", "z", NULL, 0);
    stage_tensor(&stage, "y", &index)->shape = stage_shape(&stage, "1,width");
    stage_tensor(&stage, "z", &index)->shape = stage_shape(&stage, "8,5");
    stage_infer(&stage);
    stage_check(&stage, "y", "8,width"); /* the 1 is older than the input's 8 */
    stage_check(&stage, "z", "8,5");
    stage_close(&stage);
}

static void gives_named_dimensions_their_numbers(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 13);
    stage_input(&stage, "x:0", WG_ELEM_FLOAT, "batch,?,3");
    stage_input(&stage, "mask", WG_ELEM_FLOAT, "batch,1,1");
    stage_node(&stage, "Mul", "x:0 mask", "y", NULL, 0);
    assert_int_equal(wg__shapes_set_dim(stage.model, "batch", 8, &stage.err), WG_OK);
    assert_int_equal(wg__shapes_set_dim(stage.model, "x:0:1", 7, &stage.err), WG_OK);
    stage_infer(&stage);
    stage_check(&stage, "mask", "8,1,1");
    stage_check(&stage, "y", "8,7,3");
    stage_close(&stage);
}

static void names_the_dimensions_that_can_be_set(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 13);
    stage_input(&stage, "x", WG_ELEM_FLOAT, "batch,?,3");
    assert_int_equal(wg__shapes_set_dim(stage.model, "bach", 8, &stage.err), WG_EINVAL);
    assert_non_null(strstr(stage.err.text, "'bach'"));
    assert_non_null(strstr(stage.err.text, "x:0 (batch), x:1"));
    assert_int_equal(wg__shapes_set_dim(stage.model, "x:2", 8, &stage.err), WG_EINVAL);
    assert_int_equal(wg__shapes_set_dim(stage.model, "x:3", 8, &stage.err), WG_EINVAL);
    assert_int_equal(wg__shapes_set_dim(stage.model, "batch", 0, &stage.err), WG_EINVAL);
    stage_check(&stage, "x", "batch,?,3");
    stage_close(&stage);
}

/* 2,000 tensors of 4,096 elements would be 8 million values. */
static void holds_only_so_many_values(void **state)
{
    (void)state;
    struct shape_stage stage;
    stage_open(&stage, 13);
    stage_ints(&stage, "one", "1", (const int64_t[]){1}, 1);
    stage_ints(&stage, "wide", "1", (const int64_t[]){4096}, 1);
    for (int i = 0; i < 2000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "y%d", i);
        stage_node(&stage, "Expand", "one wide", name, NULL, 0);
    }
    stage_infer(&stage);
    size_t values = 0;
    int32_t index = 0;
    for (int i = 0; i < 2000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "y%d", i);
        stage_check(&stage, name, "4096");
        values += stage_tensor(&stage, name, &index)->value_count;
    }
    assert_in_range(values, 1, 1 << 20);
    stage_close(&stage);
}

static void survives_each_allocation_that_fails(void **state)
{
    (void)state;
    size_t failures = 0;
    for (size_t nth = 1;; nth++) {
        struct shape_stage stage;
        stage_open(&stage, 13);
        stage_input(&stage, "x", WG_ELEM_FLOAT, "batch,12,4");
        stage_ints(&stage, "rest", "1", (const int64_t[]){-1}, 1);
        stage_ints(&stage, "wide", "1", (const int64_t[]){4000}, 1);
        stage_node(&stage, "Shape", "x", "shape", NULL, 0);
        stage_node(&stage, "Expand", "rest wide", "many", NULL, 0);
        stage_node(&stage, "Neg", "many", "more", NULL, 0);
        stage_node(&stage, "SequenceConstruct", "x x", "list", NULL, 0);
        stage_node(&stage, "Reshape", "x rest", "y", NULL, 0);
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__shapes_infer(stage.model, &stage.err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            stage_check(&stage, "more", "4000");
        else
            assert_int_equal(code, WG_ENOMEM);
        stage_close(&stage);
        if (code == WG_OK)
            break;
        failures++;
    }
    assert_in_range(failures, 2, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_names_through_elementwise_operators),
        cmocka_unit_test(slides_windows_with_stride_padding_and_dilation),
        cmocka_unit_test(counts_only_windows_that_start_in_the_data),
        cmocka_unit_test(computes_a_shape_along),
        cmocka_unit_test(takes_axes_from_attribute_or_input),
        cmocka_unit_test(multiplies_matrices_and_vectors),
        cmocka_unit_test(follows_an_equation),
        cmocka_unit_test(refuses_shapes_that_contradict_each_other),
        cmocka_unit_test(refuses_dimensions_past_64_bits),
        cmocka_unit_test(leaves_unknown_operators_alone),
        cmocka_unit_test(fills_in_what_the_file_declares_only_where_nothing_is_known),
        cmocka_unit_test(gives_named_dimensions_their_numbers),
        cmocka_unit_test(names_the_dimensions_that_can_be_set),
        cmocka_unit_test(holds_only_so_many_values),
        cmocka_unit_test(survives_each_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
