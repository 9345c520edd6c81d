/* SPDX-License-Identifier: MIT
 *
 * Tests of wave/gpu.h and of the table that is built in.
 */
#include "wave/gpu.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

#define HEADER                                                                                     \
    "id,name,aliases,arch,cc,sms,fp32_lanes_per_sm,boost_mhz,tensor_mhz,memory_bus_bits,"          \
    "memory_gbit_per_pin,memory_bandwidth_gb_per_s,memory_gb,l2_mib,tdp_w,idle_w,fp16_per_clock,"  \
    "bf16_per_clock,tf32_per_clock,fp8_per_clock,int8_per_clock,fp32_tflops,fp16_tflops\n"
#define A_GPU                                                                                      \
    "a1,NVIDIA A One,aa;ab,ampere,8.0,108,64,1410,,5120,2.43,1555,40,40,400,55,2048,2048,1024,0,"  \
    "4096,19.5,312\n"

static void check_rejects(const char *text, const char *part)
{
    struct wg_gpu_table *table = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__gpu_table_open(&table, "mine.csv", text, strlen(text), &err), WG_EDATA);
    assert_null(table);
    if (!strstr(err.text, part) || !strstr(err.text, "mine.csv"))
        fail_msg("'%s' lacks '%s' or the name", err.text, part);
}

static struct wg_gpu_table *built_in(void)
{
    struct wg_gpu_table *table = NULL;
    struct wg_error err = {0};
    if (wg__gpu_table_open_built_in(&table, &err) != WG_OK)
        fail_msg("%s", err.text);
    return table;
}

static void reads_a_row_and_the_limits_of_its_capability(void **state)
{
    (void)state;
    struct wg_gpu_table *table = NULL;
    assert_int_equal(
        wg__gpu_table_open(&table, "mine.csv", HEADER A_GPU, strlen(HEADER A_GPU), NULL), WG_OK);
    assert_int_equal(wg__gpu_table_count(table), 1);
    const struct wg_gpu_spec *gpu = wg__gpu_table_at(table, 0);
    assert_string_equal(gpu->id, "a1");
    assert_string_equal(gpu->name, "NVIDIA A One");
    assert_string_equal(gpu->arch, "ampere");
    assert_int_equal(gpu->cc_major, 8);
    assert_int_equal(gpu->cc_minor, 0);
    assert_int_equal(gpu->sms, 108);
    check_close(gpu->boost_clock_hz, 1.41e9, 1e-12);
    check_close(gpu->memory_bandwidth_bytes_per_s, 1555e9, 1e-12);
    check_close(gpu->memory_bytes, 40e9, 1e-12);
    check_close(gpu->l2_bytes, 40 * 1048576.0, 0);
    check_close(gpu->tdp_w, 400, 0);
    check_close(gpu->idle_w, 55, 0);
    check_close(gpu->dense_flops[WG_DTYPE_FP32], 2 * 108 * 64 * 1.41e9, 1e-12);
    check_close(gpu->dense_flops[WG_DTYPE_TF32], 108 * 1024 * 1.41e9, 1e-12);
    check_close(gpu->dense_flops[WG_DTYPE_FP16], 108 * 2048 * 1.41e9, 1e-12);
    check_close(gpu->dense_flops[WG_DTYPE_INT8], 108 * 4096 * 1.41e9, 1e-12);
    check_close(gpu->dense_flops[WG_DTYPE_FP8], 0, 0);
    assert_int_equal(gpu->max_threads_per_sm, 2048);
    assert_int_equal(gpu->max_blocks_per_sm, 32);
    assert_int_equal(gpu->registers_per_sm, 65536);
    check_close(gpu->shared_memory_per_sm_bytes, 164 * 1024, 0);
    check_close(gpu->max_shared_memory_per_block_bytes, 163 * 1024, 0);
    wg__gpu_table_close(table);
}

/* A sheet that contradicts its own arithmetic is how wrong numbers get into tables. */
static void refuses_rows_that_contradict_themselves(void **state)
{
    (void)state;
    check_rejects(HEADER "a1,A,,ampere,8.0,108,64,1410,,5120,2.43,1600,40,40,400,,2048,2048,1024,0,"
                         "4096,19.5,312\n",
                  "'memory_bandwidth_gb_per_s': is 1600, but the row's other numbers give 1555");
    check_rejects(HEADER "a1,A,,ampere,8.0,104,64,1410,,5120,2.43,1555,40,40,400,,2048,2048,1024,0,"
                         "4096,19.5,312\n",
                  "'fp32_tflops'");
    check_rejects(HEADER "a1,A,,ampere,8.0,108,64,1410,,5120,2.43,1555,40,40,400,,2048,2048,1024,0,"
                         "4096,19.5,624\n",
                  "'fp16_tflops'");
}

/* 50 MiB are an H100's with five stacks of memory; with six (6,144 bits) there are 60. */
static void refuses_an_l2_of_another_variant_of_the_chip(void **state)
{
    (void)state;
    check_rejects(HEADER "h1,A,,hopper,9.0,132,128,1980,,6144,6.25,4800,141,50,700,,4096,4096,2048,"
                         "8192,8192,67,\n",
                  "'l2_mib': is 50: 533.33 KiB beside each 64 bits of the 6144-bit memory bus");
    check_rejects(HEADER "a1,A,,ampere,8.6,56,128,1650,,320,16,640,20,6,200,,1024,1024,512,0,2048,"
                         "23.7,\n",
                  "'l2_mib': is 6: 1228.8 KiB");
    static const char *const fits[] = {
        HEADER "h1,A,,hopper,9.0,132,128,1980,,6144,6.25,4800,141,60,700,,4096,4096,2048,8192,8192,"
               "67,\n",
        HEADER "b1,A,,blackwell,10.0,148,128,1965,1856,8192,7.8,8000,180,126,1000,,8192,8192,4096,"
               "16384,16384,75,\n",
        HEADER "g1,A,,pascal,6.1,28,128,1582,,352,11,484,11,2.75,250,,256,0,0,0,1024,11.34,\n"};
    for (size_t i = 0; i < sizeof fits / sizeof fits[0]; i++) {
        struct wg_gpu_table *table = NULL;
        assert_int_equal(wg__gpu_table_open(&table, "mine.csv", fits[i], strlen(fits[i]), NULL),
                         WG_OK);
        wg__gpu_table_close(table);
    }
}

static void refuses_an_idle_power_at_the_limit(void **state)
{
    (void)state;
    check_rejects(HEADER "a1,A,,ampere,8.0,108,64,1410,,5120,2.43,1555,40,40,400,400,2048,2048,"
                         "1024,0,4096,19.5,312\n",
                  "'idle_w': is 400, expected less than tdp_w (400)");
}

/* What a table of sources may say of idle power alone; the other columns have the same rule. */
static enum wg_code open_with_idle(const char *idle_and_source)
{
    char text[1024];
    const int length = snprintf(
        text, sizeof text,
        "idle_w,idle_source,id,name,aliases,arch,cc,sms,fp32_lanes_per_sm,boost_mhz,tensor_mhz,"
        "memory_bus_bits,memory_gbit_per_pin,memory_bandwidth_gb_per_s,memory_gb,l2_mib,tdp_w,"
        "fp16_per_clock,bf16_per_clock,tf32_per_clock,fp8_per_clock,int8_per_clock,fp32_tflops,"
        "fp16_tflops\n%s,a1,A,,ampere,8.0,108,64,1410,,5120,2.43,1555,40,40,400,2048,2048,1024,0,"
        "4096,19.5,312\n",
        idle_and_source);
    assert_true(length > 0 && (size_t)length < sizeof text);
    struct wg_gpu_table *table = NULL;
    const enum wg_code code = wg__gpu_table_open(&table, "mine.csv", text, (size_t)length, NULL);
    wg__gpu_table_close(table);
    return code;
}

static void wants_a_source_beside_each_number_and_only_there(void **state)
{
    (void)state;
    assert_int_equal(open_with_idle("55,measured"), WG_OK);
    assert_int_equal(open_with_idle(","), WG_OK);
    assert_int_equal(open_with_idle("55,"), WG_EDATA);
    assert_int_equal(open_with_idle(",measured"), WG_EDATA);
}

/* Figures read off real devices (deviceQuery, torch, nvidia-smi), which tables get wrong. */
static void holds_what_real_devices_say_of_themselves(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        unsigned sms;
        double boost_mhz, l2_mib;
    } devices[] = {
        {"jetson-nano", 1, 922, 0.25},
        {"jetson-tx2", 2, 1300, 0.5},
        {"xavier-nx-8gb", 6, 1109, 0.5},
        {"xavier-agx-32gb", 8, 1377, 0.5},
        {"orin-nano-8gb", 8, 624, 2},
        {"orin-nx-16gb", 8, 918, 2},
        {"orin-agx-64gb", 16, 1300, 4},
        {"v100-sxm2-32gb", 80, 1530, 6},
        {"quadro-gv100", 80, 1627, 6},
        {"a100-sxm4-80gb", 108, 1410, 40},
        {"a40", 84, 1740, 6},
        {"l40s", 142, 2520, 96},
        {"gh200-96gb", 132, 1980, 60},
        {"h200-sxm-141gb", 132, 1980, 60},
        {"b200", 148, 1965, 126},
        {"jetson-thor-t5000", 20, 1575, 32},
    };
    struct wg_gpu_table *table = built_in();
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        const struct wg_gpu_spec *gpu;
        assert_int_equal(wg__gpu_table_find(table, devices[i].id, &gpu, NULL), WG_OK);
        assert_int_equal(gpu->sms, devices[i].sms);
        check_close(gpu->boost_clock_hz, devices[i].boost_mhz * 1e6, 0.01);
        check_close(gpu->l2_bytes, devices[i].l2_mib * 1048576, 0);
    }
    wg__gpu_table_close(table);
}

static void refuses_what_it_cannot_read(void **state)
{
    (void)state;
    check_rejects(HEADER, "no GPUs");
    check_rejects("id,name\n"
                  "a,b\n",
                  "arch");
    check_rejects(HEADER A_GPU A_GPU, "mine.csv:3");
    check_rejects(HEADER A_GPU "a2,AB,,ampere,8.0,108,64,1410,,5120,2.43,1555,40,40,400,,2048,2048,"
                               "1024,0,4096,19.5,312\n",
                  "is a name of a1 already");
    check_rejects(HEADER "a1,A,,ampere,8.4,108,64,1410,,5120,2.43,1555,40,40,400,,2048,2048,1024,0,"
                         "4096,19.5,312\n",
                  "8.4");
    check_rejects(HEADER "a1,A,,ampere,8,108,64,1410,,5120,2.43,1555,40,40,400,,2048,2048,1024,0,"
                         "4096,19.5,312\n",
                  "such as 8.6");
    check_rejects(HEADER "a1,A,,ampere,8.0,0,64,1410,,5120,2.43,1555,40,40,400,,2048,2048,1024,0,"
                         "4096,19.5,312\n",
                  "'sms'");
    check_rejects(HEADER "a1,A,,ampere,8.0,108,64,,,5120,2.43,1555,40,40,400,,2048,2048,1024,0,"
                         "4096,19.5,312\n",
                  "'boost_mhz'");
    check_rejects(HEADER "a1,A,,ampere,8.0,108,64,1410,,5120,2.43,1555,40,-1,400,,2048,2048,1024,0,"
                         "4096,19.5,312\n",
                  "'l2_mib'");
    check_rejects(HEADER "-,A,,ampere,8.0,108,64,1410,,5120,2.43,1555,40,40,400,,2048,2048,1024,0,"
                         "4096,19.5,312\n",
                  "'-' is no name");
}

static void answers_to_ids_aliases_and_names_however_written(void **state)
{
    (void)state;
    static const struct {
        const char *asked, *id;
    } names[] = {
        {"a100-sxm4-80gb", "a100-sxm4-80gb"},
        {"A100_SXM4_80GB", "a100-sxm4-80gb"},
        {"NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"},
        {"A100-SXM-80GB", "a100-sxm4-80gb"}, /* aiconfigurator's file */
        {"H100 SXM 80GB", "h100-sxm-80gb"},
        {"H100-SXM-80GB", "h100-sxm-80gb"},
        {"RTX-PRO-6000-BSE", "rtx-pro-6000-server"},
        {"a100", "a100-sxm4-80gb"}, /* vidur's */
        {"h100", "h100-sxm-80gb"},
        {"A100-40", "a100-pcie-40gb"}, /* neusight's */
        {"A100-80", "a100-pcie-80gb"},
        {"A100-PCIe-40GB", "a100-pcie-40gb"},
        {"A100-PCIe-80GB", "a100-pcie-80gb"},
        {"NVIDIA_A100-PCIE-40GB", "a100-pcie-40gb"},
        {"V100-PCIe-32GB", "v100-pcie-32gb"},
        {"V100", "v100-pcie-32gb"},
        {"P100", "p100-pcie-16gb"},
        {"P4", "p4"},
        {"Tesla T4", "t4"},
        {"NVIDIA H100 80GB HBM3", "h100-sxm-80gb"},
        {"Quadro P6000", "p6000"},
        {"NVIDIA GeForce RTX 4090", "rtx-4090"},
        {"orin-agx-64gb", "orin-agx-64gb"},
        {"Jetson Nano", "jetson-nano"},
        {"M40", "m40"},
    };
    struct wg_gpu_table *table = built_in();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct wg_gpu_spec *gpu = NULL;
        struct wg_error err = {0};
        if (wg__gpu_table_find(table, names[i].asked, &gpu, &err) != WG_OK)
            fail_msg("%s", err.text);
        assert_string_equal(gpu->id, names[i].id);
    }
    wg__gpu_table_close(table);
}

static void names_the_nearest_ids_of_an_unknown_one(void **state)
{
    (void)state;
    struct wg_gpu_table *table = built_in();
    const struct wg_gpu_spec *gpu = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__gpu_table_find(table, "h20o-sxm", &gpu, &err), WG_ENODEV);
    assert_null(gpu);
    assert_non_null(strstr(err.text, "'h20o-sxm'"));
    assert_non_null(strstr(err.text, "h200-sxm-141gb"));
    static const char *const nothing[] = {
        "", "-", "nvidia", "gpu that nobody has built so far, ever, anywhere, at all"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(wg__gpu_table_find(table, nothing[i], &gpu, &err), WG_ENODEV);
    wg__gpu_table_close(table);
}

/* What the table must be for the rest of the program; each number's arithmetic is checked where a
 * row is read. */
static void holds_a_plausible_table_from_pascal_to_blackwell(void **state)
{
    (void)state;
    struct wg_gpu_table *table = built_in();
    assert_true(wg__gpu_table_count(table) >= 60);
    unsigned archs = 0;
    for (size_t i = 0; i < wg__gpu_table_count(table); i++) {
        const struct wg_gpu_spec *gpu = wg__gpu_table_at(table, i);
        static const char *const known[] = {"kepler", "maxwell", "pascal", "volta",    "turing",
                                            "ampere", "ada",     "hopper", "blackwell"};
        size_t arch = 0;
        while (arch < 9 && strcmp(known[arch], gpu->arch) != 0)
            arch++;
        assert_true(arch < 9);
        archs |= 1U << arch;
        assert_true(strspn(gpu->id, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(gpu->id));
        const double flops = gpu->dense_flops[WG_DTYPE_FP32];
        assert_true(flops > 2e11 && flops < 2e14);
        /* A multiprocessor is one of few kinds, and no data sheet leaves this corridor. */
        assert_true(gpu->fp32_lanes_per_sm == 64 || gpu->fp32_lanes_per_sm == 128 ||
                    gpu->fp32_lanes_per_sm == 192);
        const double bytes_per_flop = gpu->memory_bandwidth_bytes_per_s / flops;
        assert_true(bytes_per_flop > 0.008 && bytes_per_flop < 0.2);
        assert_true(gpu->tdp_w >= 5 && gpu->tdp_w <= 1500);
        assert_true(gpu->dense_flops[WG_DTYPE_FP16] >= flops * (1 - 1e-9));
        const int has_bf16 = gpu->dense_flops[WG_DTYPE_BF16] > 0;
        assert_int_equal(has_bf16, gpu->cc_major >= 8);
        assert_int_equal(gpu->dense_flops[WG_DTYPE_TF32] > 0, gpu->cc_major >= 8);
        assert_int_equal(gpu->dense_flops[WG_DTYPE_FP8] > 0,
                         gpu->cc_major >= 9 || (gpu->cc_major == 8 && gpu->cc_minor == 9));
        if (has_bf16)
            check_close(gpu->dense_flops[WG_DTYPE_BF16], gpu->dense_flops[WG_DTYPE_FP16], 0);
        assert_true(isnan(gpu->idle_w) || (gpu->idle_w > 0 && gpu->idle_w < gpu->tdp_w));
    }
    assert_int_equal(archs, 0x1ff);
    wg__gpu_table_close(table);
}

static void parses_number_formats_in_any_case(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum wg_dtype dtype;
        unsigned bytes;
    } names[] = {{"fp32", WG_DTYPE_FP32, 4},     {"FLOAT32", WG_DTYPE_FP32, 4},
                 {"float", WG_DTYPE_FP32, 4},    {"TF32", WG_DTYPE_TF32, 4},
                 {"half", WG_DTYPE_FP16, 2},     {"float16", WG_DTYPE_FP16, 2},
                 {"bfloat16", WG_DTYPE_BF16, 2}, {"BF16", WG_DTYPE_BF16, 2},
                 {"e4m3", WG_DTYPE_FP8, 1},      {"float8_e4m3", WG_DTYPE_FP8, 1},
                 {"int8", WG_DTYPE_INT8, 1}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        enum wg_dtype dtype = WG_DTYPE_COUNT;
        assert_int_equal(wg__dtype_parse(names[i].text, &dtype, NULL), WG_OK);
        assert_int_equal(dtype, names[i].dtype);
        assert_int_equal(wg__dtype_bytes(dtype), names[i].bytes);
    }
    assert_string_equal(wg__dtype_name(WG_DTYPE_BF16), "bf16");
    struct wg_error err;
    enum wg_dtype dtype;
    assert_int_equal(wg__dtype_parse("fp64", &dtype, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "'fp64'"));
    assert_int_equal(wg__dtype_parse("", &dtype, &err), WG_EINVAL);
}

static void survives_each_allocation_that_fails(void **state)
{
    (void)state;
    struct wg_gpu_table *table = NULL;
    size_t nth = 1;
    for (;; nth++) {
        wg__alloc_fail_from(nth);
        const enum wg_code code =
            wg__gpu_table_open(&table, "mine.csv", HEADER A_GPU, strlen(HEADER A_GPU), NULL);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_null(table);
    }
    assert_true(nth > 4);
    wg__gpu_table_close(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_row_and_the_limits_of_its_capability),
        cmocka_unit_test(refuses_rows_that_contradict_themselves),
        cmocka_unit_test(refuses_an_l2_of_another_variant_of_the_chip),
        cmocka_unit_test(refuses_an_idle_power_at_the_limit),
        cmocka_unit_test(wants_a_source_beside_each_number_and_only_there),
        cmocka_unit_test(holds_what_real_devices_say_of_themselves),
        cmocka_unit_test(refuses_what_it_cannot_read),
        cmocka_unit_test(answers_to_ids_aliases_and_names_however_written),
        cmocka_unit_test(names_the_nearest_ids_of_an_unknown_one),
        cmocka_unit_test(holds_a_plausible_table_from_pascal_to_blackwell),
        cmocka_unit_test(parses_number_formats_in_any_case),
        cmocka_unit_test(survives_each_allocation_that_fails),
    };
    return run_tests(tests);
}
