/* SPDX-License-Identifier: MIT
 *
 * A layer's prediction is that of what it is.
 */
#include "wave/layer_predict.h"

#include <string.h>

#include "support/check.h"

struct stage {
    struct wg_gpu_table *table;
    struct wg_calibration *calibration;
    struct wg_kernel_model *model;
};

static void stage_open(struct stage *stage)
{
    const struct wg_gpu_spec *gpu = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__gpu_table_open_built_in(&stage->table, &err), WG_OK);
    assert_int_equal(wg__gpu_table_find(stage->table, "v100-sxm2-32gb", &gpu, &err), WG_OK);
    assert_int_equal(wg__calibration_built_in(&stage->calibration, &err), WG_OK);
    assert_int_equal(wg__kernel_model_new(&stage->model, gpu, stage->calibration, &err), WG_OK);
}

static void stage_close(struct stage *stage)
{
    wg__kernel_model_free(stage->model);
    wg__calibration_free(stage->calibration);
    wg__gpu_table_close(stage->table);
}

static const struct wg_conv conv = {.dtype = WG_DTYPE_FP32,
                                    .n = 8,
                                    .c = 64,
                                    .h = 56,
                                    .w = 56,
                                    .filters = 128,
                                    .r = 3,
                                    .s = 3,
                                    .stride_h = 1,
                                    .stride_w = 1,
                                    .pad_top = 1,
                                    .pad_left = 1,
                                    .pad_bottom = 1,
                                    .pad_right = 1,
                                    .dilation_h = 1,
                                    .dilation_w = 1,
                                    .groups = 1};

static void each_kind_is_asked_as_such(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_prediction whole, part;
    struct wg_error err = {0};
    stage_open(&stage);
    const struct wg_layer layers[] = {
        {.name = "conv", .kind = WG_LAYER_CONV, .conv = conv},
        {.name = "fc",
         .kind = WG_LAYER_GEMM,
         .gemm = {.dtype = WG_DTYPE_FP32, .batch = 1, .m = 1024, .n = 4096, .k = 1024}},
        {.name = "relu", .kind = WG_LAYER_BYTES, .gemm.dtype = WG_DTYPE_FP32, .bytes = 1e8}};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(wg__layer_predict(stage.model, &layers[i], &whole, &err), WG_OK);
    check_close(whole.memory_s, 1e8 / 900e9, 0.5);
    assert_int_equal(whole.blocks, 0);
    assert_int_equal(wg__kernel_model_conv(stage.model, &conv, WG_CONV_FORWARD, NULL, &part, &err),
                     WG_OK);
    assert_int_equal(wg__layer_predict(stage.model, &layers[0], &whole, &err), WG_OK);
    check_close(whole.time_s, part.time_s, 1e-15);
    assert_int_equal(wg__kernel_model_gemm(stage.model, &layers[1].gemm, NULL, &part, &err), WG_OK);
    assert_int_equal(wg__layer_predict(stage.model, &layers[1], &whole, &err), WG_OK);
    check_close(whole.time_s, part.time_s, 1e-15);
    stage_close(&stage);
}

static void a_profiled_kernel_is_taken(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_prediction whole;
    struct wg_error err = {0};
    stage_open(&stage);
    struct wg_layer layer = {
        .name = "fc",
        .kind = WG_LAYER_GEMM,
        .gemm = {.dtype = WG_DTYPE_FP32, .batch = 1, .m = 1000, .n = 1000, .k = 1000},
        .kernel = {.tile_m = 32, .tile_n = 32, .split_k = 1}};
    assert_int_equal(wg__layer_predict(stage.model, &layer, &whole, &err), WG_OK);
    assert_int_equal(whole.kernel.tile_m, 32);
    assert_int_equal(whole.blocks, 32 * 32);
    stage_close(&stage);
}

static void errors_name_the_layer(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_prediction whole;
    struct wg_error err = {0};
    stage_open(&stage);
    const struct wg_layer layer = {.name = "odd one", .kind = WG_LAYER_GEMM};
    assert_int_equal(wg__layer_predict(stage.model, &layer, &whole, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "layer 'odd one': "));
    const struct wg_layer eighth = {
        .name = "fp8",
        .kind = WG_LAYER_GEMM,
        .gemm = {.dtype = WG_DTYPE_FP8, .batch = 1, .m = 8, .n = 8, .k = 8}};
    assert_int_equal(wg__layer_predict(stage.model, &eighth, &whole, &err), WG_EUNSUPPORTED);
    stage_close(&stage);
}

static void the_product_of_a_layer_is_known_where_its_sizes_are(void **state)
{
    (void)state;
    struct wg_gemm gemm;
    const struct wg_layer layers[] = {
        {.kind = WG_LAYER_CONV, .conv = conv},
        {.kind = WG_LAYER_GEMM, .gemm = {.batch = 2, .m = 3, .n = 4, .k = 5}},
        {.kind = WG_LAYER_BYTES, .bytes = 1},
        {.kind = WG_LAYER_GEMM},
        {.kind = WG_LAYER_CONV}};
    assert_true(wg__layer_gemm(&layers[0], &gemm));
    assert_int_equal(gemm.m, 8 * 56 * 56);
    assert_int_equal(gemm.n, 128);
    assert_int_equal(gemm.k, 64 * 9);
    assert_true(wg__layer_gemm(&layers[1], &gemm));
    assert_int_equal(gemm.batch, 2);
    for (size_t i = 2; i < 5; i++)
        assert_false(wg__layer_gemm(&layers[i], &gemm));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_asked_as_such),
        cmocka_unit_test(a_profiled_kernel_is_taken),
        cmocka_unit_test(errors_name_the_layer),
        cmocka_unit_test(the_product_of_a_layer_is_known_where_its_sizes_are),
    };
    return run_tests(tests);
}
