/* SPDX-License-Identifier: MIT
 *
 * Tests of wave/wave_time.h against closed forms: what lost cache, straddling rows and heat cost.
 */
#include "wave/wave_time.h"

#include <math.h>

#include "support/check.h"

static const struct wg_gpu_spec gpu = {
    .id = "made-up",
    .name = "Made Up",
    .arch = "volta",
    .sms = 10,
    .memory_bandwidth_bytes_per_s = 1e12,
    .l2_bytes = 1e6,
    .tdp_w = 250.0,
    .dense_flops = {[WG_DTYPE_FP32] = 1e13, [WG_DTYPE_FP16] = 1e14},
};

static const struct wg_tile_params tile = {
    .kernel = {.tile_m = 128, .tile_n = 128, .threads = 256, .split_k = 1},
    .efficiency = 1.0,
    .step = 1.0,
};

static struct wg_kernel_params plain(void)
{
    return (struct wg_kernel_params){.flops_share = 1.0,
                                     .bandwidth_share = 1.0,
                                     .floor_s = 1e-9,
                                     .norm = 4.0,
                                     .long_k = 1e4,
                                     .long_power = 1.0,
                                     .l2_share = 1.0,
                                     .hot_s = 1.0};
}

static struct wg_wave_time timed(const struct wg_kernel_params *params, const struct wg_gemm *gemm)
{
    struct wg_wave_machine machine;
    struct wg_wave_work work;
    struct wg_wave_time out;
    wg__wave_machine_init(&machine, &gpu, gemm->dtype, params);
    wg__wave_work_init(&work, &machine, gemm, wg__gemm_bytes(gemm));
    wg__wave_parts(&machine, &tile, 1, &work, &out);
    wg__wave_finish(&machine, &out);
    return out;
}

static struct wg_gemm product(uint64_t batch, uint64_t m, uint64_t n, uint64_t k)
{
    return (struct wg_gemm){.dtype = WG_DTYPE_FP32, .batch = batch, .m = m, .n = n, .k = k};
}

/* 2, 1 and 0.5 of 8 elements of a sector: rows of k odd begin anywhere in it. */
static void rows_that_straddle_sectors_cost_by_how_many_do(void **state)
{
    (void)state;
    static const struct {
        enum wg_dtype dtype;
        uint64_t batch, k;
        double share;
    } cases[] = {
        {WG_DTYPE_FP32, 1, 1001, 0.875},  {WG_DTYPE_FP32, 1, 1002, 0.75},
        {WG_DTYPE_FP32, 1, 1004, 0.5},    {WG_DTYPE_FP32, 1, 1008, 0.0},
        {WG_DTYPE_FP32, 1, 4096, 0.0},    {WG_DTYPE_FP32, 2, 1001, 0.0},
        {WG_DTYPE_FP16, 1, 1001, 0.9375}, {WG_DTYPE_FP16, 1, 1008, 0.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_kernel_params without = plain(), with = plain();
        struct wg_gemm gemm = product(cases[i].batch, 128, 128, cases[i].k);
        gemm.dtype = cases[i].dtype;
        with.straddle = 0.1;
        check_close(timed(&with, &gemm).compute_s / timed(&without, &gemm).compute_s,
                    1.0 + 0.1 * cases[i].share, 1e-12);
    }
}

/* 10 SMs hold 20 blocks of 128x128. 40 rows of 20 tiles are 40 bands, each of which reads the
 * 2560 columns anew where 1 MB of cache can't keep them. */
static void columns_that_the_cache_loses_are_read_by_each_band(void **state)
{
    (void)state;
    struct wg_kernel_params params = plain();
    const struct wg_gemm large = product(1, 5120, 2560, 10000);
    const struct wg_gemm small = product(1, 5120, 2560, 8);
    const struct wg_gemm resident = product(64, 640, 512, 10000);
    const double before_large = timed(&params, &large).memory_s;
    const double before_small = timed(&params, &small).memory_s;
    const double before_resident = timed(&params, &resident).memory_s;
    params.reread = 0.5;
    const double columns = 2560.0 * 10000.0 * 4.0;
    check_close(timed(&params, &large).memory_s - before_large,
                0.5 * 39.0 * columns * (1.0 - 1.0 / (1.0 + columns * columns / 1e12)) / 1e12, 1e-9);
    assert_true(timed(&params, &small).memory_s < 1.2 * before_small);
    check_close(timed(&params, &resident).memory_s, before_resident,
                1e-12);       /* one band a product */
    params.l2_share = 1000.0; /* a cache that holds all */
    assert_true(timed(&params, &large).memory_s < 1.3 * before_large);
}

static void a_kernel_that_lasts_is_slowed_by_the_power_limit(void **state)
{
    (void)state;
    struct wg_kernel_params cold = plain(), hot = plain();
    hot.hot_s = 1e-3;
    hot.hot_cost = 0.5;
    double last = 0.0;
    for (uint64_t m = 128; m < 128000; m *= 2) {
        const struct wg_gemm gemm = product(1, m, 1280, 8192);
        const struct wg_wave_time out = timed(&hot, &gemm), without = timed(&cold, &gemm);
        check_close(out.compute_s, without.compute_s, 1e-12); /* told as clocks would have it */
        assert_true(out.time_s / without.time_s > last);      /* more, the longer it lasts */
        assert_true(out.time_s / without.time_s < 1.5);
        assert_true(out.full_s <= out.time_s);
        last = out.time_s / without.time_s;
    }
    assert_true(last > 1.45);
    const struct wg_gemm shortest = product(1, 128, 128, 64);
    check_close(timed(&hot, &shortest).time_s / timed(&cold, &shortest).time_s, 1.0, 2e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_straddle_sectors_cost_by_how_many_do),
        cmocka_unit_test(columns_that_the_cache_loses_are_read_by_each_band),
        cmocka_unit_test(a_kernel_that_lasts_is_slowed_by_the_power_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
