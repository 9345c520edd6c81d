/* SPDX-License-Identifier: MIT
 *
 * Tests of wave/staircase.h.
 */
#include "wave/staircase.h"

#include <string.h>

#include "base/rng.h"
#include "support/wave_stage.h"
#include "wave/layer_predict.h"

enum { POINTS = 64 };

/* Times in waves of `per_wave` values each, one second a wave. */
static void make_stairs(struct wg_sweep_point *points, size_t count, unsigned per_wave)
{
    for (size_t i = 0; i < count; i++) {
        points[i] = (struct wg_sweep_point){.value = i + 1};
        const size_t wave = i / per_wave + 1;
        points[i].prediction.time_s = (double)wave;
    }
}

static void reads_the_ends_of_a_stair(void **state)
{
    (void)state;
    struct wg_sweep_point points[POINTS];
    make_stairs(points, POINTS, 8); /* 1..8: 1 s, 9..16: 2 s, .. */
    struct wg_stair stair;
    for (uint64_t value = 1; value <= POINTS; value++) {
        assert_int_equal(wg__stair_find(points, POINTS, value, 0.01, &stair, NULL), WG_OK);
        const uint64_t wave = (value - 1) / 8;
        assert_int_equal(stair.value, value);
        assert_int_equal(stair.above, 8 * (wave + 1));
        assert_int_equal(stair.below, wave == 0 ? value : 8 * wave);
        check_close(stair.time_s, (double)(wave + 1), 0);
        check_close(stair.above_s, (double)(wave + 1), 0);
        check_close(stair.below_s, wave == 0 ? 1 : (double)wave, 0);
        check_close(stair.saved_s_per_channel, wave == 0 ? 0 : 1.0 / (double)(value - 8 * wave),
                    1e-12);
        assert_int_equal(stair.faster, 0);
        check_close(stair.faster_s, stair.time_s, 0);
    }
}

static void finds_what_is_larger_and_faster(void **state)
{
    (void)state;
    struct wg_sweep_point points[POINTS];
    make_stairs(points, POINTS, 8);
    points[40].prediction.time_s = 1.5; /* another kernel */
    points[41].prediction.time_s = 1.4;
    points[42].prediction.time_s = 1.45;
    struct wg_stair stair;
    assert_int_equal(wg__stair_find(points, POINTS, 10, 0.01, &stair, NULL), WG_OK);
    assert_int_equal(stair.faster, 42);
    check_close(stair.faster_s, 1.4, 0);
    assert_int_equal(stair.above, 43);   /* at no more time */
    points[41].prediction.time_s = 1.96; /* by 2 % only: not worth telling */
    points[40].prediction.time_s = points[42].prediction.time_s = 9;
    assert_int_equal(wg__stair_find(points, POINTS, 10, 0.01, &stair, NULL), WG_OK);
    assert_int_equal(stair.faster, 0);
    assert_int_equal(stair.above, 42);
}

static void takes_small_differences_for_none(void **state)
{
    (void)state;
    struct wg_sweep_point points[POINTS];
    for (size_t i = 0; i < POINTS; i++) {
        points[i] = (struct wg_sweep_point){.value = i + 1};
        points[i].prediction.time_s = 1 + 0.0001 * (double)i;
    }
    struct wg_stair stair;
    assert_int_equal(wg__stair_find(points, POINTS, 32, 0.01, &stair, NULL), WG_OK);
    assert_int_equal(stair.above, 64);
    assert_int_equal(stair.below, 32);
    assert_int_equal(wg__stair_find(points, POINTS, 32, 0, &stair, NULL), WG_OK);
    assert_int_equal(stair.above, 32);
    assert_int_equal(stair.below, 31);
    struct wg_error err;
    assert_int_equal(wg__stair_find(points, POINTS, 65, 0.01, &stair, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "do not hold 65"));
    assert_int_equal(wg__stair_find(points, 0, 1, 0.01, &stair, &err), WG_EINVAL);
}

/* The definition, over random curves: nothing larger is as fast as what stands above, and so on. */
static void keeps_its_promises_on_any_curve(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 81);
    for (int round = 0; round < 2000; round++) {
        struct wg_sweep_point points[POINTS];
        for (size_t i = 0; i < POINTS; i++) {
            points[i] = (struct wg_sweep_point){.value = 8 * (i + 1)};
            points[i].prediction.time_s = 1 + 0.25 * (double)wg__rng_below(&rng, 8);
        }
        const size_t at = wg__rng_below(&rng, POINTS);
        const double time_s = points[at].prediction.time_s;
        struct wg_stair stair;
        assert_int_equal(wg__stair_find(points, POINTS, points[at].value, 0.01, &stair, NULL),
                         WG_OK);
        assert_true(stair.above >= stair.value && stair.below <= stair.value);
        assert_true(stair.above_s <= time_s * 1.01);
        assert_true(stair.below == stair.value || stair.below_s < time_s);
        for (size_t i = 0; i < POINTS; i++) {
            const double other_s = points[i].prediction.time_s;
            if (points[i].value > stair.above)
                assert_true(other_s > time_s);
            if (points[i].value < stair.value && points[i].value > stair.below)
                assert_true(other_s >= time_s);
            if (i > at && other_s < time_s)
                assert_true(stair.faster > stair.value && stair.faster_s <= other_s);
        }
    }
}

static void tells_steps_from_ramps(void **state)
{
    (void)state;
    struct wg_sweep_point points[POINTS];
    make_stairs(points, POINTS, 8);
    for (size_t i = 0; i < POINTS; i++)
        assert_int_equal(wg__sweep_is_step(points, POINTS, i, 0.08), i > 0 && i % 8 == 0);
    for (size_t i = 0; i < POINTS; i++)
        points[i].prediction.time_s = 1 + 0.2 * (double)i;
    for (size_t i = 0; i < POINTS; i++)
        assert_false(wg__sweep_is_step(points, POINTS, i, 0.08));
    assert_false(wg__sweep_is_step(points, POINTS, POINTS, 0.08));
    make_stairs(points, POINTS, 8);
    points[8].prediction.time_s = 1.05;
    assert_false(wg__sweep_is_step(points, 9, 8, 0.08));
    assert_true(wg__sweep_is_step(points, 9, 8, 0.04));
}

static void moves_one_size_of_a_layer(void **state)
{
    (void)state;
    static const struct {
        const struct wg_layer *layer;
        enum wg_sweep_axis axis;
        uint64_t samples, value;
    } cases[] = {{&wave_conv, WG_SWEEP_FILTERS, 32, 100},
                 {&wave_conv, WG_SWEEP_CHANNELS, 32, 100},
                 {&wave_conv, WG_SWEEP_BATCH, 32, 5},
                 {&wave_conv, WG_SWEEP_BATCH, 8, 5},
                 {&wave_conv, WG_SWEEP_RESOLUTION, 32, 28}};
    static const struct wg_conv expected[] = {
        {.n = 32, .c = 256, .h = 14, .w = 14, .filters = 100},
        {.n = 32, .c = 100, .h = 14, .w = 14, .filters = 256},
        {.n = 5, .c = 256, .h = 14, .w = 14, .filters = 256},
        {.n = 20, .c = 256, .h = 14, .w = 14, .filters = 256},
        {.n = 32, .c = 256, .h = 28, .w = 28, .filters = 256}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wg_layer at;
        assert_int_equal(wg__layer_resize(cases[i].layer, cases[i].axis, cases[i].samples,
                                          cases[i].value, &at, NULL),
                         WG_OK);
        assert_int_equal(at.conv.n, expected[i].n);
        assert_int_equal(at.conv.c, expected[i].c);
        assert_int_equal(at.conv.h, expected[i].h);
        assert_int_equal(at.conv.w, expected[i].w);
        assert_int_equal(at.conv.filters, expected[i].filters);
        assert_int_equal(at.blocks, 0);
        assert_int_equal(wg__layer_size(&at, cases[i].axis,
                                        cases[i].axis == WG_SWEEP_BATCH ? cases[i].value : 32),
                         cases[i].value);
    }
}

static void grows_with_the_batch_what_counts_samples(void **state)
{
    (void)state;
    struct wg_layer at, layer = {.name = "qk", .op = "MatMul", .kind = WG_LAYER_GEMM};
    layer.gemm = (struct wg_gemm){.batch = UINT64_C(12) * 8, .m = 128, .n = 128, .k = 64};
    assert_int_equal(wg__layer_resize(&layer, WG_SWEEP_BATCH, 8, 3, &at, NULL), WG_OK);
    assert_int_equal(at.gemm.batch, 12 * 3); /* attention: heads a sample */
    assert_int_equal(at.gemm.m, 128);
    layer.gemm = (struct wg_gemm){.batch = 1, .m = UINT64_C(8) * 128, .n = 768, .k = 768};
    assert_int_equal(wg__layer_resize(&layer, WG_SWEEP_BATCH, 8, 3, &at, NULL), WG_OK);
    assert_int_equal(at.gemm.m, 3 * 128);
    layer.gemm = (struct wg_gemm){.batch = 1, .m = 9, .n = 768, .k = 768};
    assert_int_equal(wg__layer_resize(&layer, WG_SWEEP_BATCH, 8, 3, &at, NULL), WG_OK);
    assert_int_equal(at.gemm.m, 9); /* counts something else */
    layer = (struct wg_layer){.name = "add", .op = "Add", .kind = WG_LAYER_BYTES, .bytes = 800};
    assert_int_equal(wg__layer_resize(&layer, WG_SWEEP_BATCH, 8, 3, &at, NULL), WG_OK);
    check_close(at.bytes, 300, 0);
}

static void moves_all_channels_of_a_depthwise_convolution(void **state)
{
    (void)state;
    struct wg_layer at, layer = wave_conv;
    layer.conv.groups = layer.conv.c = 64;
    layer.conv.filters = 128; /* two filters a channel */
    assert_int_equal(wg__layer_resize(&layer, WG_SWEEP_FILTERS, 32, 100, &at, NULL), WG_OK);
    assert_int_equal(at.conv.c, 50);
    assert_int_equal(at.conv.groups, 50);
    assert_int_equal(at.conv.filters, 100);
    assert_int_equal(wg__layer_resize(&layer, WG_SWEEP_CHANNELS, 32, 50, &at, NULL), WG_OK);
    assert_int_equal(at.conv.filters, 100);
    assert_int_equal(wg__layer_resize(&layer, WG_SWEEP_FILTERS, 32, 99, &at, NULL), WG_EINVAL);
}

static void refuses_axes_that_a_layer_lacks(void **state)
{
    (void)state;
    struct wg_layer at, grouped = wave_conv;
    struct wg_error err;
    static const struct wg_layer add = {.name = "add", .op = "Add", .kind = WG_LAYER_BYTES};
    static const struct wg_layer linear = {.name = "fc",
                                           .op = "Gemm",
                                           .kind = WG_LAYER_GEMM,
                                           .gemm = {.batch = 1, .m = 8, .n = 8, .k = 8}};
    assert_int_equal(wg__layer_resize(&add, WG_SWEEP_FILTERS, 8, 1, &at, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "'add' (Add) has no filters"));
    assert_int_equal(wg__layer_resize(&linear, WG_SWEEP_RESOLUTION, 8, 1, &at, &err), WG_EINVAL);
    assert_int_equal(wg__layer_resize(&linear, WG_SWEEP_BATCH, 0, 1, &at, &err), WG_EINVAL);
    assert_int_equal(wg__layer_resize(&linear, WG_SWEEP_FILTERS, 8, 0, &at, &err), WG_EINVAL);
    assert_int_equal(wg__layer_resize(&wave_conv, WG_SWEEP_BATCH, 32, UINT64_MAX, &at, &err),
                     WG_EINVAL);
    assert_non_null(strstr(err.text, "beyond 2^63"));
    grouped.conv.groups = 32;
    assert_int_equal(wg__layer_resize(&grouped, WG_SWEEP_FILTERS, 32, 100, &at, &err), WG_EINVAL);
    assert_int_equal(wg__layer_resize(&grouped, WG_SWEEP_FILTERS, 32, 96, &at, &err), WG_OK);
    assert_int_equal(at.conv.groups, 32);
    assert_int_equal(wg__layer_size(&add, WG_SWEEP_FILTERS, 8), 0);
    assert_int_equal(wg__layer_size(&linear, WG_SWEEP_CHANNELS, 8), 8);
    assert_int_equal(wg__layer_size(&linear, WG_SWEEP_RESOLUTION, 8), 0);
}

static void sweeps_what_predictions_say_one_by_one(void **state)
{
    const struct wave_stage *stage = *state;
    struct wg_sweep_point points[POINTS];
    struct wg_error err = {0};
    for (int axis = 0; axis < WG_SWEEP_AXIS_COUNT; axis++) {
        if (wg__sweep(stage->model, &wave_conv, (enum wg_sweep_axis)axis, 32, 4, 3, POINTS, points,
                      &err) != WG_OK)
            fail_msg("%s", err.text);
        for (size_t i = 0; i < POINTS; i++) {
            struct wg_layer at;
            struct wg_prediction alone;
            assert_int_equal(points[i].value, 4 + 3 * i);
            assert_int_equal(wg__layer_resize(&wave_conv, (enum wg_sweep_axis)axis, 32,
                                              points[i].value, &at, NULL),
                             WG_OK);
            assert_int_equal(wg__layer_predict(stage->model, &at, &alone, NULL), WG_OK);
            check_close(points[i].prediction.time_s, alone.time_s, 0);
            assert_int_equal(points[i].prediction.blocks, alone.blocks);
        }
    }
    assert_int_equal(
        wg__sweep(stage->model, &wave_conv, WG_SWEEP_FILTERS, 32, 0, 1, 2, points, &err),
        WG_EINVAL);
    assert_int_equal(wg__sweep(stage->model, &wave_conv, WG_SWEEP_FILTERS, 32, 2, UINT64_MAX / 2, 3,
                               points, &err),
                     WG_EINVAL);
    assert_non_null(strstr(err.text, "pass 2^64"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_ends_of_a_stair),
        cmocka_unit_test(finds_what_is_larger_and_faster),
        cmocka_unit_test(takes_small_differences_for_none),
        cmocka_unit_test(keeps_its_promises_on_any_curve),
        cmocka_unit_test(tells_steps_from_ramps),
        cmocka_unit_test(moves_one_size_of_a_layer),
        cmocka_unit_test(grows_with_the_batch_what_counts_samples),
        cmocka_unit_test(moves_all_channels_of_a_depthwise_convolution),
        cmocka_unit_test(refuses_axes_that_a_layer_lacks),
        cmocka_unit_test_setup_teardown(sweeps_what_predictions_say_one_by_one, wave_stage_open,
                                        wave_stage_close),
    };
    return run_tests(tests);
}
