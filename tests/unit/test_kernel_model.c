/* SPDX-License-Identifier: MIT
 *
 * Tests of wave/kernel_model.h and wave/calibration.h: a made-up GPU whose times follow the formula
 * is calibrated back, and what comes out is told with its origin.
 */
#include "wave/kernel_model.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/check.h"
#include "support/wave_stage.h"
#include "wave/calibration_set.h"
#include "wave/choice_tree.h"
#include "wave/correction.h"

enum { ROWS = 600, FEW = 120 };

static const struct wg_gpu_spec gpu = {
    .id = "made-up",
    .name = "Made Up",
    .arch = "ampere",
    .cc_major = 8,
    .sms = 100,
    .fp32_lanes_per_sm = 64,
    .boost_clock_hz = 1e9,
    .memory_bandwidth_bytes_per_s = 1e12,
    .l2_bytes = 4e7,
    .memory_bytes = 4e10,
    .tdp_w = 250.0,
    .idle_w = NAN,
    .dense_flops = {[WG_DTYPE_FP32] = 12.8e12},
};

/* Whole waves of 128x128 tiles at 90 % of the peak, 10 us to start, a floor of 20 us. */
static double true_time_s(const struct wg_gemm *gemm)
{
    double blocks = ceil((double)gemm->m / 128.0) * ceil((double)gemm->n / 128.0);
    double block_s = 2.0 * 128.0 * 128.0 * ((double)gemm->k + 16.0) / (0.9 * 12.8e12 / 100.0);
    double compute = ceil(blocks / 100.0) * block_s + 10e-6;
    double memory = wg__gemm_bytes(gemm) / 0.7e12;
    double both = pow(pow(compute, 4.0) + pow(memory, 4.0), 0.25);
    return pow(pow(both, 4.0) + pow(20e-6, 4.0), 0.25);
}

static void make_rows(struct wg_measured rows[static ROWS], bool told)
{
    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = (struct wg_measured){.op = "linear"};
        rows[i].gemm = (struct wg_gemm){.dtype = WG_DTYPE_FP32,
                                        .batch = 1,
                                        .m = 16 + wg__rng_below(&rng, 4000),
                                        .n = 16 + wg__rng_below(&rng, 4000),
                                        .k = 16 + wg__rng_below(&rng, 4000)};
        rows[i].time_s = true_time_s(&rows[i].gemm);
        if (told)
            rows[i].kernel =
                (struct wg_kernel){.tile_m = 128, .tile_n = 128, .threads = 256, .split_k = 1};
    }
}

static struct wg_calibration *calibrated(void)
{
    static struct wg_measured rows[ROWS];
    struct wg_calibration *calibration = NULL;
    make_rows(rows, true);
    assert_int_equal(wg__calibrate(&calibration, &gpu, rows, ROWS, NULL), WG_OK);
    return calibration;
}

static void finds_the_numbers_that_made_the_times(void **state)
{
    (void)state;
    struct wg_calibration *calibration = calibrated();
    assert_int_equal(wg__calibration_count(calibration), 1);
    const struct wg_calibrated *entry = wg__calibration_at(calibration, 0);
    check_close(entry->params.flops_share, 0.9, 0.02);
    check_close(entry->params.floor_s, 20e-6, 0.25);
    check_close(entry->params.start_s, 10e-6, 0.4);
    assert_true(entry->params.known.mape < 0.02);
    assert_true(entry->params.chosen.mape < 0.02);
    wg__calibration_free(calibration);
}

static struct wg_kernel_model *model_of(const struct wg_calibration *calibration,
                                        const struct wg_gpu_spec *spec)
{
    struct wg_kernel_model *model = NULL;
    assert_int_equal(wg__kernel_model_new(&model, spec, calibration, NULL), WG_OK);
    return model;
}

static struct wg_prediction predicted(const struct wg_kernel_model *model, uint64_t m, uint64_t n,
                                      uint64_t k)
{
    const struct wg_gemm gemm = {.dtype = WG_DTYPE_FP32, .batch = 1, .m = m, .n = n, .k = k};
    struct wg_prediction out;
    assert_int_equal(wg__kernel_model_gemm(model, &gemm, NULL, &out, NULL), WG_OK);
    return out;
}

static void predicts_sizes_that_were_not_measured(void **state)
{
    (void)state;
    struct wg_calibration *calibration = calibrated();
    struct wg_kernel_model *model = model_of(calibration, &gpu);
    for (uint64_t m = 100; m < 20000; m = m * 3 / 2) {
        const struct wg_gemm gemm = {
            .dtype = WG_DTYPE_FP32, .batch = 1, .m = m, .n = 900, .k = 777};
        struct wg_prediction out = predicted(model, m, 900, 777);
        check_close(out.time_s / true_time_s(&gemm), 1.0, 0.05);
        assert_int_equal(out.origin, WG_ORIGIN_MODEL);
        assert_true(out.low_s <= out.time_s && out.time_s <= out.high_s);
        assert_int_equal(out.blocks, ((m + 127) / 128) * 8);
    }
    wg__kernel_model_free(model);
    wg__calibration_free(calibration);
}

static void steps_where_a_wave_begins(void **state)
{
    (void)state;
    struct wg_calibration *calibration = calibrated();
    struct wg_kernel_model *model = model_of(calibration, &gpu);
    struct wg_prediction full = predicted(model, UINT64_C(128) * 100, 128, 4096);
    struct wg_prediction more = predicted(model, UINT64_C(128) * 100 + 1, 128, 4096);
    check_close(full.waves, 1.0, 1e-9);
    check_close(full.wave_efficiency, 1.0, 1e-9);
    assert_true(full.tail_s < 1e-3 * full.time_s);
    assert_true(more.time_s > 1.8 * full.time_s);
    check_close(more.tail_s / more.time_s, 1.0 - 1.01 / 2.0, 0.05);
    wg__kernel_model_free(model);
    wg__calibration_free(calibration);
}

static void tells_a_measured_size_as_measured(void **state)
{
    (void)state;
    static struct wg_measured rows[ROWS];
    struct wg_calibration *calibration = NULL;
    make_rows(rows, true);
    for (size_t i = 0; i < 40; i++) { /* a sweep with a bump of its own at one size */
        rows[i].gemm = (struct wg_gemm){
            .dtype = WG_DTYPE_FP32, .batch = 1, .m = 64 * (i + 1), .n = 1024, .k = 1024};
        rows[i].time_s = true_time_s(&rows[i].gemm) * (i == 20 ? 1.5 : 1.1);
    }
    assert_int_equal(wg__calibrate(&calibration, &gpu, rows, ROWS, NULL), WG_OK);
    struct wg_kernel_model *model = model_of(calibration, &gpu);
    for (size_t i = 0; i < 40; i++) {
        struct wg_prediction out = predicted(model, 64 * (i + 1), 1024, 1024);
        assert_int_equal(out.origin, WG_ORIGIN_MEASURED);
        check_close(out.time_s / rows[i].time_s, 1.0, 1e-9);
        assert_true(out.low_s < out.time_s && out.time_s < out.high_s);
    }
    const struct wg_gemm between = {
        .dtype = WG_DTYPE_FP32, .batch = 1, .m = 64 * 4 + 40, .n = 1024, .k = 1024};
    struct wg_prediction out = predicted(model, between.m, 1024, 1024);
    assert_int_equal(out.origin, WG_ORIGIN_INTERPOLATED);
    check_close(out.time_s / (1.1 * true_time_s(&between)), 1.0, 0.02);
    wg__kernel_model_free(model);
    wg__calibration_free(calibration);
}

static void tells_a_relatives_numbers_as_transferred_and_wide(void **state)
{
    (void)state;
    struct wg_calibration *calibration = calibrated();
    struct wg_gpu_spec other = gpu;
    other.id = "another";
    other.sms = 50;
    struct wg_kernel_model *own = model_of(calibration, &gpu);
    struct wg_kernel_model *model = model_of(calibration, &other);
    struct wg_prediction near = predicted(own, 4000, 4000, 4000);
    struct wg_prediction out = predicted(model, 4000, 4000, 4000);
    assert_int_equal(out.origin, WG_ORIGIN_TRANSFERRED);
    assert_true(out.high_s / out.low_s > 2.0 * near.high_s / near.low_s);
    wg__kernel_model_free(own);
    wg__kernel_model_free(model);
    wg__calibration_free(calibration);
}

/* As clocks that fall to two thirds within some milliseconds make them. */
static void heat(struct wg_measured rows[static ROWS])
{
    for (size_t i = 0; i < ROWS; i++)
        rows[i].time_s *= 1.0 + 0.5 * rows[i].time_s / (rows[i].time_s + 2e-3);
}

static void power_limits_carry_over_by_what_a_flop_costs(void **state)
{
    (void)state;
    static struct wg_measured rows[ROWS];
    struct wg_calibration *calibration = NULL;
    make_rows(rows, true);
    heat(rows);
    assert_int_equal(wg__calibrate(&calibration, &gpu, rows, FEW, NULL), WG_OK);
    const double cost = wg__calibration_at(calibration, 0)->params.hot_cost;
    check_close(cost, 0.5, 0.3); /* few rows are long enough to tell */
    struct wg_gpu_spec ample = gpu, tight = gpu;
    ample.id = "ample";
    ample.tdp_w = 500.0;
    tight.id = "tight";
    tight.tdp_w = 125.0;
    struct wg_kernel_model *own = model_of(calibration, &gpu);
    struct wg_kernel_model *more = model_of(calibration, &ample);
    struct wg_kernel_model *less = model_of(calibration, &tight);
    const double own_s = predicted(own, 40000, 40000, 4000).time_s;
    /* 1 + cost times the limit would do for full clocks; half the limit lets half the clocks be. */
    check_close(own_s / predicted(more, 40000, 40000, 4000).time_s, 1.0 + cost, 0.02);
    check_close(predicted(less, 40000, 40000, 4000).time_s / own_s, 2.0, 0.02);
    const double short_s = predicted(own, 128, 128, 64).time_s;
    check_close(predicted(less, 128, 128, 64).time_s / short_s, 1.0, 0.02);
    wg__kernel_model_free(own);
    wg__kernel_model_free(more);
    wg__kernel_model_free(less);
    wg__calibration_free(calibration);
}

/* A prediction of a 256x128 kernel by a GPU of which others were measured, with times that are off
 * by up to `noise`; `other` knows the kernel, at 0.9 of its peak. */
static struct wg_prediction of_a_foreign_kernel(double noise, struct wg_prediction *by_other)
{
    static struct wg_measured rows[ROWS];
    static const struct wg_kernel kernel = {
        .tile_m = 256, .tile_n = 128, .threads = 256, .split_k = 1};
    const struct wg_gemm gemm = {
        .dtype = WG_DTYPE_FP32, .batch = 1, .m = 25600, .n = 12800, .k = 4096};
    struct wg_gpu_spec other = gpu;
    other.id = "other";
    struct wg_calibration *calibration = NULL, *elsewhere = NULL;
    struct wg_rng rng;
    struct wg_prediction out;
    make_rows(rows, true);
    for (size_t i = 0; i < ROWS; i++)
        rows[i].kernel.tile_m = 256;
    assert_int_equal(wg__calibrate(&elsewhere, &other, rows, FEW, NULL), WG_OK);
    make_rows(rows, true);
    wg__rng_init(&rng, 3);
    for (size_t i = 0; i < ROWS; i++)
        rows[i].time_s *= 3.0 * exp(noise * (2.0 * wg__rng_uniform(&rng) - 1.0));
    assert_int_equal(wg__calibrate(&calibration, &gpu, rows, FEW, NULL), WG_OK);
    assert_int_equal(wg__calibration_merge(calibration, elsewhere, NULL), WG_OK);
    struct wg_kernel_model *model = model_of(calibration, &gpu);
    struct wg_kernel_model *others = model_of(calibration, &other);
    assert_int_equal(wg__kernel_model_gemm(model, &gemm, &kernel, &out, NULL), WG_OK);
    assert_int_equal(wg__kernel_model_gemm(others, &gemm, &kernel, by_other, NULL), WG_OK);
    wg__kernel_model_free(model);
    wg__kernel_model_free(others);
    wg__calibration_free(calibration);
    wg__calibration_free(elsewhere);
    return out;
}

static void a_kernel_not_measured_here_is_told_by_who_knows_it(void **state)
{
    (void)state;
    struct wg_prediction other;
    struct wg_prediction out =
        of_a_foreign_kernel(0.0, &other); /* a formula that holds extrapolates */
    assert_int_equal(out.origin, WG_ORIGIN_MODEL);
    assert_true(out.time_s > 2.0 * other.time_s);
    out = of_a_foreign_kernel(1.0, &other);
    assert_int_equal(out.origin, WG_ORIGIN_TRANSFERRED);
    check_close(out.time_s / other.time_s, 1.0, 0.05);
    assert_true(out.high_s / out.low_s > other.high_s / other.low_s);
    assert_int_equal(out.kernel.tile_m, 256);
}

/* Large convolutions whose algorithms take long to begin say nothing of what a launch costs. */
static void no_launch_takes_longer_than_the_shortest_convolution(void **state)
{
    (void)state;
    static struct wg_measured rows[FEW];
    struct wg_rng rng;
    wg__rng_init(&rng, 5);
    for (size_t i = 0; i < FEW; i++) {
        const uint64_t channels = i == 0 ? 4 : 64 + wg__rng_below(&rng, 400);
        rows[i] = (struct wg_measured){.op = "conv", .is_conv = true};
        rows[i].conv = wave_conv.conv;
        rows[i].conv.n = i == 0 ? 1 : 8;
        rows[i].conv.c = rows[i].conv.filters = channels;
        rows[i].time_s = i == 0 ? 30e-6 : 400e-6 + wg__conv_flops(&rows[i].conv) / 12.8e12;
    }
    struct wg_calibration *calibration = NULL;
    assert_int_equal(wg__calibrate_without_errors(&calibration, &gpu, rows, FEW, NULL), WG_OK);
    const struct wg_calibrated *entry = wg__calibration_at(calibration, 0);
    assert_int_equal(entry->op, WG_OP_CONV3X3);
    assert_true(entry->params.floor_s <= 30e-6);
    assert_true(entry->params.start_s <= 15e-6);
    wg__calibration_free(calibration);
}

static void reads_what_it_writes(void **state)
{
    (void)state;
    struct wg_calibration *calibration = calibrated(), *again = NULL;
    struct wg_buffer first, second;
    wg__buffer_init(&first);
    wg__buffer_init(&second);
    wg__calibration_write(calibration, &first);
    struct wg_error err = {.code = WG_OK};
    (void)wg__calibration_read(&again, "it", first.data, first.length, &err);
    assert_string_equal(err.text, "");
    wg__calibration_write(again, &second);
    assert_int_equal(first.length, second.length);
    assert_memory_equal(first.data, second.data, first.length);
    wg__buffer_fini(&first);
    wg__buffer_fini(&second);
    wg__calibration_free(calibration);
    wg__calibration_free(again);
}

static void refuses_a_calibration_cut_short_or_out_of_range(void **state)
{
    (void)state;
    struct wg_calibration *calibration = calibrated(), *again = NULL;
    struct wg_buffer text;
    struct wg_error err;
    wg__buffer_init(&text);
    wg__calibration_write(calibration, &text);
    for (size_t length = 0; length < text.length; length += 97)
        assert_int_equal(wg__calibration_read(&again, "it", text.data, length, &err), WG_EDATA);
    char *at = strstr(text.data, "\"floor_s\":");
    at[10] = '-';
    assert_int_equal(wg__calibration_read(&again, "it", text.data, text.length, &err), WG_EDATA);
    assert_null(again);
    wg__buffer_fini(&text);
    wg__calibration_free(calibration);
}

static void needs_rows_enough(void **state)
{
    (void)state;
    static struct wg_measured rows[ROWS];
    struct wg_calibration *calibration = NULL;
    struct wg_error err;
    make_rows(rows, true);
    assert_int_equal(wg__calibrate(&calibration, &gpu, rows, 19, &err), WG_EDATA);
    assert_non_null(strstr(err.text, "at least 20"));
    assert_int_equal(wg__calibrate(&calibration, &gpu, NULL, 0, &err), WG_EDATA);
}

static void survives_each_failing_allocation(void **state)
{
    (void)state;
    static struct wg_measured rows[ROWS];
    make_rows(rows, true);
    for (size_t nth = 1;; nth++) {
        struct wg_calibration *calibration = NULL;
        struct wg_kernel_model *model = NULL;
        wg__alloc_fail_from(nth);
        enum wg_code code = wg__calibrate(&calibration, &gpu, rows, 60, NULL);
        if (code == WG_OK)
            code = wg__kernel_model_new(&model, &gpu, calibration, NULL);
        wg__alloc_fail_from(0);
        wg__kernel_model_free(model);
        wg__calibration_free(calibration);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_true(nth < 1000);
    }
}

static void knows_every_measured_gpu_by_itself(void **state)
{
    (void)state;
    struct wg_gpu_table *table = NULL;
    struct wg_calibration *calibration = NULL;
    assert_int_equal(wg__gpu_table_open_built_in(&table, NULL), WG_OK);
    assert_int_equal(wg__calibration_built_in(&calibration, NULL), WG_OK);
    for (size_t i = 0; i < wg__gpu_table_count(table); i++) {
        const struct wg_gpu_spec *spec = wg__gpu_table_at(table, i);
        struct wg_kernel_model *model = model_of(calibration, spec);
        struct wg_prediction out = predicted(model, 4096, 4096, 4096);
        double flops = 2.0 * 4096.0 * 4096.0 * 4096.0;
        double share = flops / out.time_s / spec->dense_flops[WG_DTYPE_FP32];
        assert_true(share > 0.2 && share < 1.1);
        assert_true(out.low_s < out.time_s && out.time_s < out.high_s);
        wg__kernel_model_free(model);
    }
    wg__calibration_free(calibration);
    wg__gpu_table_close(table);
}

static double corrected_time_s(const struct wg_calibrated *entry, size_t feature_count)
{
    struct wg_calibration *calibration = NULL;
    struct wg_calibrated copy = *entry;
    assert_int_equal(wg__calibration_new(&calibration, NULL), WG_OK);
    copy.points = NULL;
    copy.point_count = 0;
    struct wg_forest *forest = wg__alloc_zeroed(1, sizeof *forest);
    assert_non_null(forest);
    forest->feature_count = feature_count;
    forest->depth = 1;
    forest->tree_count = 1;
    forest->bias = 1.0;
    forest->trees[0].feature[0] = (uint8_t)(feature_count - 1);
    copy.correction = copy.own_correction = forest;
    assert_int_equal(wg__calibration_put(calibration, &copy, NULL), WG_OK);
    struct wg_kernel_model *model = model_of(calibration, &gpu);
    double time_s = predicted(model, 900, 900, 777).time_s;
    wg__kernel_model_free(model);
    wg__calibration_free(calibration);
    return time_s;
}

static void takes_no_correction_that_asks_for_other_features(void **state)
{
    (void)state;
    struct wg_calibration *calibration = calibrated();
    wg__calibration_drop_points(calibration);
    struct wg_kernel_model *model = model_of(calibration, &gpu);
    const struct wg_calibrated *entry = wg__calibration_at(calibration, 0);
    const double plain_s = predicted(model, 900, 900, 777).time_s;
    check_close(corrected_time_s(entry, WG_CORRECTION_FEATURES), plain_s * exp(1.0), 1e-12);
    check_close(corrected_time_s(entry, WG_CORRECTION_FEATURES + 1), plain_s, 1e-12);
    check_close(corrected_time_s(entry, WG_CORRECTION_FEATURES - 1), plain_s, 1e-12);
    wg__kernel_model_free(model);
    wg__calibration_free(calibration);
}

static void learns_which_kernel_is_taken_where(void **state)
{
    (void)state;
    static struct wg_tree_sample samples[400];
    struct wg_kernel_params params = {.option_count = 2};
    struct wg_rng rng;
    wg__rng_init(&rng, 3);
    for (size_t i = 0; i < 400; i++) {
        const struct wg_gemm gemm = {.batch = 1,
                                     .m = 1 + wg__rng_below(&rng, 1000),
                                     .n = 1 + wg__rng_below(&rng, 1000),
                                     .k = 64};
        wg__choice_tree_features(&gemm, samples[i].features);
        samples[i].option = gemm.m > 300 && gemm.n > 300 ? 1 : 0;
    }
    assert_int_equal(wg__choice_tree_grow(&params, samples, 400, NULL), WG_OK);
    /* Away from the border, where samples are thin. */
    for (uint64_t m = 150; m < 1000; m += 300)
        for (uint64_t n = 150; n < 1000; n += 300) {
            const struct wg_gemm gemm = {.batch = 1, .m = m, .n = n, .k = 64};
            uint64_t options = wg__choice_tree_options(&params, &gemm);
            assert_int_equal(options, m > 300 && n > 300 ? 2 : 1);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_numbers_that_made_the_times),
        cmocka_unit_test(predicts_sizes_that_were_not_measured),
        cmocka_unit_test(steps_where_a_wave_begins),
        cmocka_unit_test(tells_a_measured_size_as_measured),
        cmocka_unit_test(tells_a_relatives_numbers_as_transferred_and_wide),
        cmocka_unit_test(power_limits_carry_over_by_what_a_flop_costs),
        cmocka_unit_test(a_kernel_not_measured_here_is_told_by_who_knows_it),
        cmocka_unit_test(no_launch_takes_longer_than_the_shortest_convolution),
        cmocka_unit_test(reads_what_it_writes),
        cmocka_unit_test(refuses_a_calibration_cut_short_or_out_of_range),
        cmocka_unit_test(needs_rows_enough),
        cmocka_unit_test(survives_each_failing_allocation),
        cmocka_unit_test(knows_every_measured_gpu_by_itself),
        cmocka_unit_test(takes_no_correction_that_asks_for_other_features),
        cmocka_unit_test(learns_which_kernel_is_taken_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
