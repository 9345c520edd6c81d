/* SPDX-License-Identifier: MIT
 *
 * Kernels from ncu's and nsys' CSV, in each form that the tools print.
 */
#include "model/profile.h"

#include <string.h>

#include "base/alloc.h"
#include "model/profile_quantity.h"
#include "support/check.h"
#include "support/golden.h"

static struct wg_profile read_text(const char *text)
{
    struct wg_profile profile = {0};
    struct wg_error err = {0};
    if (wg__profile_read_memory(&profile, "p.csv", text, strlen(text), &err) != WG_OK)
        fail_msg("'%s': %s", text, err.text);
    return profile;
}

static void expect_error(const char *text, const char *expected)
{
    struct wg_profile profile = {0};
    struct wg_error err = {0};
    assert_int_equal(wg__profile_read_memory(&profile, "p.csv", text, strlen(text), &err),
                     WG_EDATA);
    assert_string_equal(err.text, expected);
}

static void check_dims(const uint64_t dims[3], uint64_t x, uint64_t y, uint64_t z)
{
    assert_int_equal(dims[0], x);
    assert_int_equal(dims[1], y);
    assert_int_equal(dims[2], z);
}

/* -- Nsight Compute ------------------------------------------------------------------------ */

static void reads_what_nsight_compute_says_of_a_kernel(void **state)
{
    (void)state;
    struct wg_profile profile = {0};
    struct wg_error err = {0};
    if (wg__profile_read(&profile, golden_path("profiles/ncu.log.gz"), NULL, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(profile.kind, WG_PROFILE_NCU);
    assert_int_equal(profile.sms, 152);
    assert_int_equal(profile.launch_count, 1);
    assert_int_equal(profile.network.layer_count, 1);
    const struct wg_launch *launch = &profile.launches[0];
    check_dims(launch->grid, 9, 32, 1);
    check_dims(launch->block, 384, 1, 1);
    check_close(launch->waves_per_sm, 1.89, 0.0);
    check_close(launch->waves_per_sm, 288.0 / 152.0, 0.003); /* one block fits on an SM */
    check_close(launch->time_s, 406240e-9, 1e-12);
    check_close(launch->registers_per_thread, 168.0, 0.0);
    check_close(launch->shared_memory_bytes, 205696.0, 0.0);
    assert_int_equal(launch->sms, 152);
    const struct wg_layer *layer = &profile.network.layers[0];
    assert_string_equal(launch->layer, layer->name);
    assert_int_equal(layer->blocks, 288);
    assert_int_equal(layer->kernel.tile_m, 64);
    assert_int_equal(layer->kernel.tile_n, 256);
    assert_int_equal(layer->kernel.threads, 384);
    assert_int_equal(layer->gemm.m, 0); /* what it multiplies is not told */
    check_close(layer->measured_s, launch->time_s, 0.0);
    wg__profile_fini(&profile);
}

#define DETAILS                                                                                    \
    "\"ID\",\"Process ID\",\"Kernel Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"

/* Older versions have no columns of grid and block; values may have commas between thousands. */
static void reads_details_without_columns_of_the_grid(void **state)
{
    (void)state;
    struct wg_profile profile = read_text(
        DETAILS "\"0\",\"7\",\"void k<int>(int)\",\"Duration\",\"usecond\",\"1,234.50\"\n"
                "\"0\",\"7\",\"void k<int>(int)\",\"Grid Size\",\"\",\"12,288\"\n"
                "\"0\",\"7\",\"void k<int>(int)\",\"Block Size\",\"\",\"256\"\n"
                "\"0\",\"7\",\"void k<int>(int)\",\"Duration\",\"usecond\",\"9\"\n"
                "\"0\",\"7\",\"void k<int>(int)\",\"Dynamic Shared Memory Per Block\",\"Kbyte/block"
                "\",\"16.38\"\n"
                "\"0\",\"7\",\"void k<int>(int)\",\"Static Shared Memory Per Block\",\"byte/block"
                "\",\"0\"\n"
                "\"1\",\"7\",\"m\",\"Grid Size\",\"\",\"3\"\n"
                "\"1\",\"8\",\"m\",\"Grid Size\",\"\",\"4\"\n");
    assert_int_equal(profile.launch_count, 3);
    check_dims(profile.launches[0].grid, 12288, 1, 1);
    check_dims(profile.launches[0].block, 256, 1, 1);
    check_close(profile.launches[0].time_s, 1234.5e-6, 1e-12); /* the first of two */
    check_close(profile.launches[0].shared_memory_bytes, 16380.0, 1e-12);
    assert_string_equal(profile.launches[0].layer, "k#1");
    check_dims(profile.launches[1].grid, 3, 1, 1);
    assert_true(isnan(profile.launches[1].time_s));
    check_dims(profile.launches[2].grid, 4, 1, 1);
    check_close(profile.network.layers[2].measured_s, 0.0, 0.0);
    wg__profile_fini(&profile);
}

static void reads_the_raw_page_with_its_row_of_units(void **state)
{
    (void)state;
    struct wg_profile profile = read_text(
        "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"gpu__time_duration.sum\","
        "\"launch__registers_per_thread\",\"launch__waves_per_multiprocessor\","
        "\"launch__shared_mem_per_block_dynamic\",\"launch__shared_mem_per_block_static\","
        "\"device__attribute_multiprocessor_count\"\n"
        "\"\",\"\",\"\",\"\",\"us\",\"register/thread\",\"\",\"Kbyte/block\",\"byte/block\",\"\"\n"
        "\"0\",\"ampere_sgemm_128x64_tn\",\"(128, 1, 1)\",\"(10, 20, 2)\",\"85.25\",\"122\","
        "\"0.93\",\"24.576\",\"512\",\"108\"\n"
        "\"1\",\"k\",\"(32, 1, 1)\",\"(1, 1, 1)\",\"2\",\"8\",\"n/a\",\"0\",\"0\",\"108\"\n");
    assert_int_equal(profile.launch_count, 2);
    assert_int_equal(profile.sms, 108);
    check_dims(profile.launches[0].grid, 10, 20, 2);
    check_close(profile.launches[0].time_s, 85.25e-6, 1e-12);
    check_close(profile.launches[0].shared_memory_bytes, 25088.0, 1e-12);
    check_close(profile.launches[0].waves_per_sm, 0.93, 0.0);
    assert_true(isnan(profile.launches[1].waves_per_sm));
    const struct wg_layer *layer = &profile.network.layers[0];
    assert_string_equal(layer->name, "ampere_sgemm_128x64_tn#1");
    assert_int_equal(layer->blocks, 400);
    assert_int_equal(layer->kernel.tile_n, 128); /* cuBLAS counts its first over n */
    wg__profile_fini(&profile);
}

/* -- Nsight Systems ------------------------------------------------------------------------ */

static void reads_the_kernels_of_a_gpu_trace(void **state)
{
    (void)state;
    struct wg_profile profile = read_text(
        "\n ** CUDA GPU Trace (cuda_gpu_trace):\n\n"
        "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),"
        "DymSMem (MB),Bytes (MB),Throughput (MBps),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name\n"
        "1000,50240,101,,,,,,,,,,8.389,167.0,Pageable,Device,NVIDIA A100-PCIE-40GB (0),1,7,"
        "[CUDA memcpy Host-to-Device]\n"
        "60000,443520,102,64,32,2,256,1,1,64,0.033,0.000,,,,,NVIDIA A100-PCIE-40GB (0),1,7,"
        "\"void gemm<double>(double *, int)\"\n"
        "510000,1500,104,7,1,1,128,2,1,24,0.000,0.000,,,,,NVIDIA A100-PCIE-40GB (0),1,7,scale\n");
    assert_int_equal(profile.kind, WG_PROFILE_NSYS);
    assert_string_equal(profile.device, "NVIDIA A100-PCIE-40GB");
    assert_int_equal(profile.launch_count, 2);
    const struct wg_launch *launch = &profile.launches[0];
    assert_string_equal(launch->name, "void gemm<double>(double *, int)");
    check_dims(launch->grid, 64, 32, 2);
    check_dims(launch->block, 256, 1, 1);
    check_close(launch->time_s, 443520e-9, 1e-12);
    check_close(launch->registers_per_thread, 64.0, 0.0);
    assert_true(isnan(launch->shared_memory_bytes)); /* megabytes of three decimals */
    check_close(profile.launches[1].shared_memory_bytes, 0.0, 0.0);
    assert_string_equal(profile.network.layers[0].name, "gemm#1");
    assert_int_equal(profile.network.layers[0].blocks, 4096);
    assert_int_equal(profile.network.layers[1].kernel.threads, 256);
    wg__profile_fini(&profile);
}

static void reads_columns_that_no_formatter_has_named(void **state)
{
    (void)state;
    struct wg_profile profile =
        read_text("Start:ts_ns,Duration:dur_ns,CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,"
                  "StcSMem:mem_B,DymSMem:mem_B,Device,Ctx,GreenCtx,Strm,Name\n"
                  "1,2000,3,4,5,6,7,8,9,10,1024,512,GPU (1),1,,7,k\n");
    const struct wg_launch *launch = &profile.launches[0];
    check_close(launch->time_s, 2e-6, 1e-12);
    check_close(launch->shared_memory_bytes, 1536.0, 0.0);
    assert_string_equal(profile.device, "GPU");
    wg__profile_fini(&profile);

    profile = read_text("Duration (\xCE\xBCs),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Name\n"
                        "1.5,4,5,6,7,8,9,k\n");
    check_close(profile.launches[0].time_s, 1.5e-6, 1e-12);
    assert_true(isnan(profile.launches[0].registers_per_thread));
    wg__profile_fini(&profile);
}

/* -- Errors -------------------------------------------------------------------------------- */

/* No block has more than 1,024 threads, and no grid more blocks than 64 bits count. */
static void tells_nothing_of_a_launch_that_no_gpu_has_run(void **state)
{
    (void)state;
    struct wg_profile profile =
        read_text("ID,Kernel Name,Block Size,Grid Size\n"
                  "0,k,\"(1024, 2, 1)\",\"(2147483647, 2147483647, 2147483647)\"\n"
                  "1,k,\"(2147483647, 2147483647, 4)\",\"(2, 1, 1)\"\n"
                  "2,k,\"(1024, 1, 1)\",\"(2147483647, 2, 1)\"\n");
    const struct wg_layer *layers = profile.network.layers;
    assert_int_equal(layers[0].blocks, 0);
    assert_int_equal(layers[0].kernel.threads, 0);
    assert_int_equal(layers[1].blocks, 2);
    assert_int_equal(layers[1].kernel.threads, 0);
    assert_int_equal(layers[2].blocks, 4294967294);
    assert_int_equal(layers[2].kernel.threads, 1024);
    wg__profile_fini(&profile);
}

static void says_which_field_is_wrong(void **state)
{
    (void)state;
    expect_error(DETAILS "0,1,k,Duration,parsec,1\n",
                 "p.csv:2: column 'Metric Value': 'parsec' is no unit of Duration");
    expect_error(DETAILS "0,1,k,Grid Size,,many\n",
                 "p.csv:2: column 'Metric Value': 'many' is not a number for Grid Size");
    expect_error(DETAILS, "p.csv: no kernel in it");
    expect_error("ID,Kernel Name,Grid Size\n0,k,(1;2)\n",
                 "p.csv:2: column 'Grid Size': '(1;2)' is no grid");
    expect_error("Duration (ns),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Name\n1,2,0,1,1,1,1,k\n",
                 "p.csv:2: column 'GrdY': '0' is not a whole number from 1 to 2^31 - 1");
    expect_error("Duration,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Name\n1,2,1,1,1,1,1,k\n",
                 "p.csv: no column Duration with a unit, as in 'Duration (ns)'");
    expect_error("Duration (ns),GrdX,GrdY,GrdZ,BlkX,BlkY,Name\n1,2,1,1,1,1,k\n",
                 "p.csv: no column 'BlkZ'; its columns are: Duration (ns), GrdX, GrdY, GrdZ, BlkX, "
                 "BlkY, Name");
}

static void knows_the_units_of_the_tools(void **state)
{
    (void)state;
    double value = 0.0;
    assert_true(wg__quantity_parse("3,995,313,115.40", &value));
    check_close(value, 3995313115.4, 1e-15);
    assert_false(wg__quantity_parse("-1", &value));
    assert_false(wg__quantity_parse("", &value));
    assert_false(wg__quantity_parse("nan", &value));
    assert_false(wg__quantity_parse(
        "1111111111111111111111111111111111111111111111111111111111111111111111", &value));
    check_close(wg__quantity_time_unit("ns"), 1e-9, 0.0);
    check_close(wg__quantity_time_unit("msecond"), 1e-3, 0.0);
    check_close(wg__quantity_time_unit("cycle"), 0.0, 0.0);
    check_close(wg__quantity_memory_unit("Kbyte/block"), 1e3, 0.0);
    check_close(wg__quantity_memory_unit("MiB"), 1048576.0, 0.0);
    check_close(wg__quantity_memory_unit("ms"), 0.0, 0.0);
}

static void walk_failing_allocations(const char *text)
{
    for (size_t nth = 1;; nth++) {
        struct wg_profile profile = {0};
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__profile_read_memory(&profile, "p", text, strlen(text), &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK) {
            assert_true(nth > 6);
            wg__profile_fini(&profile);
            return;
        }
        assert_int_equal(code, WG_ENOMEM);
        assert_int_equal(err.code, WG_ENOMEM);
    }
}

static void fails_cleanly_without_memory(void **state)
{
    (void)state;
    walk_failing_allocations(DETAILS "0,1,k,Grid Size,,3\n1,1,m,Grid Size,,3\n");
    walk_failing_allocations("Duration (ns),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Device,Name\n"
                             "1,2,1,1,1,1,1,GPU (0),k\n");
    walk_failing_allocations("{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\","
                             "\"ts\":1,\"dur\":2,\"args\":{\"External id\":5,\"grid\":[1]}}]}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_nsight_compute_says_of_a_kernel),
        cmocka_unit_test(reads_details_without_columns_of_the_grid),
        cmocka_unit_test(reads_the_raw_page_with_its_row_of_units),
        cmocka_unit_test(reads_the_kernels_of_a_gpu_trace),
        cmocka_unit_test(reads_columns_that_no_formatter_has_named),
        cmocka_unit_test(tells_nothing_of_a_launch_that_no_gpu_has_run),
        cmocka_unit_test(says_which_field_is_wrong),
        cmocka_unit_test(knows_the_units_of_the_tools),
        cmocka_unit_test(fails_cleanly_without_memory),
    };
    return run_tests(tests);
}
