/* SPDX-License-Identifier: MIT
 *
 * The analysis of a network: rows are the kernel model's, totals follow from rows.
 */
#include "cli/wave_analysis.h"

#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

enum { LAYERS = 4 };

struct stage {
    struct wg_gpu_table *table;
    const struct wg_gpu_spec *gpu;
    struct wg_calibration *calibration;
    struct wg_kernel_model *model;
    struct wg_layer layers[LAYERS];
    struct wg_network network;
};

static const struct wg_layer layers[LAYERS] = {
    {.name = "fc1",
     .op = "Gemm",
     .kind = WG_LAYER_GEMM,
     .gemm = {.dtype = WG_DTYPE_FP32, .batch = 1, .m = 1280, .n = 1600, .k = 4096},
     .measured_s = 2e-3},
    {.name = "attention",
     .op = "Gemm",
     .kind = WG_LAYER_GEMM,
     .gemm = {.dtype = WG_DTYPE_FP32, .batch = 96, .m = 512, .n = 512, .k = 64}},
    {.name = "relu",
     .op = "Gemm",
     .kind = WG_LAYER_BYTES,
     .gemm.dtype = WG_DTYPE_FP32,
     .bytes = 2e8},
    {.name = "launch only", .op = "Gemm", .kind = WG_LAYER_GEMM, .blocks = 120, .measured_s = 1e-3},
};

static void stage_open(struct stage *stage)
{
    struct wg_error err = {0};
    *stage = (struct stage){.network = {.name = "net", .layer_count = LAYERS}};
    memcpy(stage->layers, layers, sizeof layers);
    stage->network.layers = stage->layers;
    assert_int_equal(wg__gpu_table_open_built_in(&stage->table, &err), WG_OK);
    assert_int_equal(wg__gpu_table_find(stage->table, "v100-sxm2-32gb", &stage->gpu, &err), WG_OK);
    assert_int_equal(wg__calibration_built_in(&stage->calibration, &err), WG_OK);
    assert_int_equal(wg__kernel_model_new(&stage->model, stage->gpu, stage->calibration, &err),
                     WG_OK);
}

static void stage_close(struct stage *stage)
{
    wg__kernel_model_free(stage->model);
    wg__calibration_free(stage->calibration);
    wg__gpu_table_close(stage->table);
}

static void totals_are_the_sums_of_the_rows(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_wave_analysis found;
    struct wg_error err = {0};
    double time_s = 0, low_s = 0, high_s = 0, tail_s = 0;
    stage_open(&stage);
    assert_int_equal(wg__wave_analyze(&found, stage.model, stage.gpu, &stage.network, &err), WG_OK);
    assert_int_equal(found.count, LAYERS);
    for (size_t i = 0; i < 3; i++) {
        const struct wg_prediction *of = &found.rows[i].prediction;
        assert_true(found.rows[i].is_predicted);
        assert_true(of->low_s <= of->time_s && of->time_s <= of->high_s);
        assert_true(of->tail_s >= 0 && of->tail_s < of->time_s);
        check_close(found.rows[i].waste, of->tail_s / of->time_s, 1e-12);
        time_s += of->time_s;
        low_s += of->low_s;
        high_s += of->high_s;
        tail_s += of->tail_s;
    }
    const struct wg_wave_total *total = &found.total;
    check_close(total->time_s, time_s, 1e-12);
    check_close(total->low_s, low_s, 1e-12);
    check_close(total->high_s, high_s, 1e-12);
    check_close(total->tail_s, tail_s, 1e-12);
    assert_true(tail_s > 0);
    check_close(total->waste, tail_s / time_s, 1e-12);
    check_close(total->idle_sm_s, 80 * tail_s, 1e-12);
    check_close(total->idle_most_j, stage.gpu->tdp_w * tail_s, 1e-12);
    check_close(total->flops, 2.0 * 1280 * 1600 * 4096 + 2.0 * 96 * 512 * 512 * 64, 1e-12);
    assert_int_equal(total->predicted, 3);
    wg__wave_analysis_fini(&found);
    stage_close(&stage);
}

static void what_only_was_launched_has_waves_but_no_prediction(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_wave_analysis found;
    struct wg_error err = {0};
    stage_open(&stage);
    assert_int_equal(wg__wave_analyze(&found, stage.model, stage.gpu, &stage.network, &err), WG_OK);
    const struct wg_wave_row *row = &found.rows[3];
    assert_false(row->is_predicted);
    assert_true(isnan(row->prediction.time_s));
    /* 120 blocks on 80 SMs: a wave and a half, of two. */
    check_close(row->prediction.waves, 1.5, 1e-12);
    check_close(row->prediction.wave_efficiency, 0.75, 1e-12);
    check_close(row->measured_tail_s, 0.25e-3, 1e-12);
    check_close(row->waste, 0.25, 1e-12);
    assert_int_equal(found.total.unpredicted, 1);
    check_close(found.total.launched_s, 1e-3, 1e-12);
    check_close(found.total.launched_tail_s, 0.25e-3, 1e-12);
    check_close(found.total.measured_s, 3e-3, 1e-12);
    check_close(found.total.compared_s, 2e-3, 1e-12);
    check_close(found.total.compared_predicted_s, found.rows[0].prediction.time_s, 1e-12);
    wg__wave_analysis_fini(&found);
    stage_close(&stage);
}

static double tail_of(const struct wg_wave_row *row)
{
    return row->is_predicted ? row->prediction.tail_s : row->measured_tail_s;
}

static void the_longest_tails_come_first(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_wave_analysis found;
    struct wg_error err = {0};
    struct wg_wave_kind kinds[LAYERS];
    stage_open(&stage);
    assert_int_equal(wg__wave_analyze(&found, stage.model, stage.gpu, &stage.network, &err), WG_OK);
    assert_int_equal(wg__wave_kinds(&found, kinds), LAYERS);
    for (size_t i = 1; i < LAYERS; i++)
        assert_true(tail_of(&found.rows[kinds[i - 1].row]) >= tail_of(&found.rows[kinds[i].row]));
    wg__wave_analysis_fini(&found);
    /* The same layer again: one kind of two, whose tails count together. */
    stage.layers[1] = stage.layers[0];
    assert_int_equal(wg__wave_analyze(&found, stage.model, stage.gpu, &stage.network, &err), WG_OK);
    assert_int_equal(wg__wave_kinds(&found, kinds), LAYERS - 1);
    size_t at = 0;
    while (kinds[at].row != 0)
        at++;
    assert_int_equal(kinds[at].count, 2);
    for (size_t i = 0; i < LAYERS - 1; i++) {
        const double tail_s = (double)kinds[i].count * tail_of(&found.rows[kinds[i].row]);
        assert_true(i < at ? tail_s >= 2 * tail_of(&found.rows[0])
                           : tail_s <= 2 * tail_of(&found.rows[0]));
    }
    wg__wave_analysis_fini(&found);
    stage_close(&stage);
}

static void types_that_nothing_is_known_of_are_an_error(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_wave_analysis found;
    struct wg_error err = {0};
    stage_open(&stage);
    stage.layers[0].gemm.dtype = stage.layers[1].gemm.dtype = WG_DTYPE_FP8;
    assert_int_equal(wg__wave_analyze(&found, stage.model, stage.gpu, &stage.network, &err),
                     WG_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "layer 'fc1'"));
    assert_non_null(strstr(err.text, "fp8"));
    wg__wave_analysis_fini(&found);
    /* One layer of several: it has no prediction, the others have. */
    stage.layers[0].gemm.dtype = WG_DTYPE_FP32;
    assert_int_equal(wg__wave_analyze(&found, stage.model, stage.gpu, &stage.network, &err), WG_OK);
    assert_int_equal(found.total.unpredicted, 2);
    wg__wave_analysis_fini(&found);
    stage.network.layer_count = 0;
    assert_int_equal(wg__wave_analyze(&found, stage.model, stage.gpu, &stage.network, &err),
                     WG_EDATA);
    wg__wave_analysis_fini(&found);
    stage_close(&stage);
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_wave_analysis found;
    struct wg_error err = {0};
    stage_open(&stage);
    wg__alloc_fail_from(1);
    const enum wg_code code =
        wg__wave_analyze(&found, stage.model, stage.gpu, &stage.network, &err);
    wg__alloc_fail_from(0);
    assert_int_equal(code, WG_ENOMEM);
    wg__wave_analysis_fini(&found);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_are_the_sums_of_the_rows),
        cmocka_unit_test(what_only_was_launched_has_waves_but_no_prediction),
        cmocka_unit_test(the_longest_tails_come_first),
        cmocka_unit_test(types_that_nothing_is_known_of_are_an_error),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };
    return run_tests(tests);
}
