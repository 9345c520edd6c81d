/* SPDX-License-Identifier: MIT
 *
 * Tests of wave/batches.h.
 */
#include "wave/batches.h"

#include <string.h>

#include "support/wave_stage.h"
#include "wave/layer_predict.h"
#include "wave/staircase.h"

enum { MOST = 48 };

/* One second a wave of 8 samples: the throughput's teeth end at multiples of 8. */
static void finds_the_teeth_of_throughput(void **state)
{
    (void)state;
    struct wg_batch_point points[MOST];
    for (uint32_t i = 0; i < MOST; i++)
        points[i] = (struct wg_batch_point){.batch = i + 1, .time_s = (i + 8.0 - i % 8) / 8.0};
    wg__batches_judge(points, MOST);
    for (uint32_t i = 0; i < MOST; i++) {
        const uint32_t batch = i + 1, wave = i / 8 + 1;
        check_close(points[i].per_s, (double)batch / wave, 1e-12);
        /* All full waves reach 8 a second, so only the first is above all smaller ones. */
        assert_int_equal(points[i].is_best, batch == 8);
        assert_int_equal(points[i].free_to, 8 * wave);
        if (batch == MOST)
            assert_true(isnan(points[i].next_s));
        else
            check_close(points[i].next_s, batch % 8 == 0 ? 1 : 0, 0);
    }
    for (uint32_t i = 0; i < MOST; i++) /* a floor of half a second: longer runs gain */
        points[i].time_s = 1.5 + (i - i % 8) / 8.0;
    wg__batches_judge(points, MOST);
    for (uint32_t i = 0; i < MOST; i++)
        assert_int_equal(points[i].is_best, (i + 1) % 8 == 0);
}

static void judges_batches_that_skip(void **state)
{
    (void)state;
    struct wg_batch_point points[] = {
        {.batch = 1, .time_s = 1}, {.batch = 4, .time_s = 1.6}, {.batch = 8, .time_s = 1.609}};
    wg__batches_judge(points, 3);
    check_close(points[0].next_s, 0.2, 1e-12);
    check_close(points[1].next_s, 0.009 / 4, 1e-9);
    assert_int_equal(points[0].free_to, 1);
    assert_int_equal(points[1].free_to, 8);
    assert_false(points[0].is_best);
    assert_false(points[1].is_best);
    assert_true(points[2].is_best);
    wg__batches_judge(points, 0);
}

/* Layers that are alike count as often as they are there. */
static void adds_up_what_each_layer_costs(void **state)
{
    const struct wave_stage *stage = *state;
    struct wg_layer layers[6] = {wave_conv,    wave_conv,    wave_conv,
                                 {.op = NULL}, {.op = NULL}, wave_conv};
    layers[1].conv.filters = 128;
    layers[3] = (struct wg_layer){
        .name = "fc",
        .op = "Gemm",
        .kind = WG_LAYER_GEMM,
        .gemm = {.dtype = WG_DTYPE_FP32, .batch = 1, .m = 32, .n = 1000, .k = 2048}};
    layers[4] =
        (struct wg_layer){.name = "add", .op = "Add", .kind = WG_LAYER_BYTES, .bytes = 32e6};
    const struct wg_network network = {.layers = layers, .layer_count = 6};
    struct wg_batch_point points[MOST];
    struct wg_error err = {0};
    if (wg__batches(stage->model, &network, 32, 1, MOST, points, &err) != WG_OK)
        fail_msg("%s", err.text);
    for (uint32_t batch = 1; batch <= MOST; batch++) {
        double total_s = 0;
        for (size_t i = 0; i < 6; i++) {
            struct wg_layer at;
            struct wg_prediction alone;
            assert_int_equal(wg__layer_resize(&layers[i], WG_SWEEP_BATCH, 32, batch, &at, &err),
                             WG_OK);
            assert_int_equal(wg__layer_predict(stage->model, &at, &alone, &err), WG_OK);
            total_s += alone.time_s;
        }
        assert_int_equal(points[batch - 1].batch, batch);
        check_close(points[batch - 1].time_s, total_s, 1e-12);
    }
}

static void a_range_has_the_same_times(void **state)
{
    const struct wave_stage *stage = *state;
    struct wg_batch_point all[MOST], some[9];
    struct wg_error err = {0};
    struct wg_layer layer = wave_conv;
    const struct wg_network network = {.name = "net", .layers = &layer, .layer_count = 1};
    assert_int_equal(wg__batches(stage->model, &network, 32, 1, MOST, all, &err), WG_OK);
    assert_int_equal(wg__batches(stage->model, &network, 32, 32, 9, some, &err), WG_OK);
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(some[i].batch, 32 + i);
        check_close(some[i].time_s, all[31 + i].time_s, 0);
    }
    assert_int_equal(wg__batches(stage->model, &network, 32, 0, 9, some, &err), WG_EINVAL);
    assert_int_equal(wg__batches(stage->model, &network, 32, UINT32_MAX, 9, some, &err), WG_EINVAL);
}

static void refuses_batches_of_nothing(void **state)
{
    const struct wave_stage *stage = *state;
    struct wg_batch_point points[1];
    const struct wg_network network = {.layers = NULL};
    struct wg_error err;
    assert_int_equal(wg__batches(stage->model, &network, 0, 1, 1, points, &err), WG_EINVAL);
    assert_int_equal(wg__batches(stage->model, &network, 1, 1, 0, points, &err), WG_EINVAL);
    struct wg_layer broken = wave_conv;
    broken.conv.groups = 7;
    const struct wg_network of_broken = {.layers = &broken, .layer_count = 1};
    assert_int_equal(wg__batches(stage->model, &of_broken, 1, 1, 1, points, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "'conv4'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_teeth_of_throughput),
        cmocka_unit_test(judges_batches_that_skip),
        cmocka_unit_test_setup_teardown(adds_up_what_each_layer_costs, wave_stage_open,
                                        wave_stage_close),
        cmocka_unit_test_setup_teardown(a_range_has_the_same_times, wave_stage_open,
                                        wave_stage_close),
        cmocka_unit_test_setup_teardown(refuses_batches_of_nothing, wave_stage_open,
                                        wave_stage_close),
    };
    return run_tests(tests);
}
