/* SPDX-License-Identifier: MIT
 *
 * Tests of cli/gpu_file.h and of cli/wave_gpu.h, as far as it needs no device.
 */
#include "cli/gpu_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "cli/wave_gpu.h"
#include "support/check.h"
#include "support/scratch.h"

#define WHOLE                                                                                      \
    "id: mine\n"                                                                                   \
    "compute_capability: \"8.6\"\n"                                                                \
    "sms: 46\n"                                                                                    \
    "fp32_lanes_per_sm: 128\n"                                                                     \
    "boost_clock_mhz: 1725\n"                                                                      \
    "memory_bandwidth_gb_per_s: 448\n"                                                             \
    "memory_gb: 8\n"                                                                               \
    "l2_mib: 4\n"                                                                                  \
    "tdp_w: 220\n"

static void write_file(struct scratch *scratch, const char *name, const char *text)
{
    FILE *file = fopen(scratch_path(scratch, name), "w");
    scratch_require(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0, name);
}

/* A file of `text` as --gpu takes it. */
static enum wg_code open_text(struct wg_wave_gpu *gpu, const char *text, struct wg_error *err)
{
    struct scratch scratch;
    scratch_open(&scratch);
    write_file(&scratch, "my-gpu.yaml", text);
    *gpu = (struct wg_wave_gpu){0};
    const enum wg_code code = wg__wave_gpu_open(gpu, scratch.path, err);
    scratch_close(&scratch);
    return code;
}

static void check_rejects(const char *text, const char *part)
{
    struct wg_wave_gpu gpu;
    struct wg_error err = {0};
    const enum wg_code code = open_text(&gpu, text, &err);
    wg__wave_gpu_close(&gpu);
    if (code != WG_EDATA || strstr(err.text, part) == NULL || strstr(err.text, ".yaml:") == NULL)
        fail_msg("'%s': %d '%s' lacks '%s'", text, code, err.text, part);
}

static void reads_a_gpu_that_stands_alone(void **state)
{
    (void)state;
    struct wg_wave_gpu gpu;
    struct wg_error err = {0};
    if (open_text(&gpu, WHOLE "idle_w: 14\ndense_tflops: {fp16: 40.6, int8: 162}\n", &err) != WG_OK)
        fail_msg("%s", err.text);
    const struct wg_gpu_spec *spec = &gpu.spec;
    assert_string_equal(spec->id, "mine");
    assert_string_equal(spec->name, "mine");
    assert_string_equal(spec->arch, "ampere");
    assert_int_equal(spec->cc_major, 8);
    assert_int_equal(spec->cc_minor, 6);
    assert_int_equal(spec->sms, 46);
    check_close(spec->boost_clock_hz, 1.725e9, 1e-12);
    check_close(spec->memory_bandwidth_bytes_per_s, 448e9, 1e-12);
    check_close(spec->memory_bytes, 8e9, 1e-12);
    check_close(spec->l2_bytes, 4 * 1048576.0, 0);
    check_close(spec->idle_w, 14, 0);
    check_close(spec->dense_flops[WG_DTYPE_FP32], 2.0 * 46 * 128 * 1.725e9, 1e-12);
    check_close(spec->dense_flops[WG_DTYPE_FP16], 40.6e12, 1e-12);
    check_close(spec->dense_flops[WG_DTYPE_INT8], 162e12, 1e-12);
    check_close(spec->dense_flops[WG_DTYPE_BF16], 0, 0); /* not named, not supported */
    assert_int_equal(spec->max_threads_per_sm, 1536);
    assert_int_equal(spec->max_blocks_per_sm, 16);
    wg__wave_gpu_close(&gpu);
}

static void takes_the_rest_from_a_gpu_that_it_is_like(void **state)
{
    (void)state;
    struct wg_wave_gpu gpu, model = {0};
    struct wg_error err = {0};
    assert_int_equal(wg__wave_gpu_open(&model, "a100-sxm4-80gb", &err), WG_OK);
    if (open_text(&gpu, "like: a100\nsms: 54\nboost_clock_mhz: 705\ndense_tflops: {tf32: 9}\n",
                  &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_string_equal(gpu.spec.id, "my-gpu"); /* the file's name */
    assert_int_equal(gpu.spec.sms, 54);
    check_close(gpu.spec.memory_bytes, model.spec.memory_bytes, 0);
    /* A quarter of SMs x clock. */
    for (int dtype = 0; dtype < WG_DTYPE_COUNT; dtype++)
        check_close(gpu.spec.dense_flops[dtype],
                    dtype == WG_DTYPE_TF32 ? 9e12 : model.spec.dense_flops[dtype] / 4, 1e-12);
    wg__wave_gpu_close(&gpu);
    if (open_text(&gpu, "like: a100\ncompute_capability: 9.0\nname: One\nid: one\n", &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_string_equal(gpu.spec.arch, "hopper");
    assert_string_equal(gpu.spec.name, "One");
    check_close(gpu.spec.shared_memory_per_sm_bytes, 228 * 1024, 0);
    wg__wave_gpu_close(&gpu);
    wg__wave_gpu_close(&model);
}

static void takes_limits_of_an_sm_that_nobody_knows(void **state)
{
    (void)state;
    static const char limits[] = "like: b200\ncompute_capability: \"99.9\"\n"
                                 "max_threads_per_sm: 4096\nmax_blocks_per_sm: 64\n"
                                 "registers_per_sm: 131072\nshared_memory_per_sm_kib: 300\n";
    char text[512];
    struct wg_wave_gpu gpu;
    struct wg_error err = {0};
    check_rejects(limits,
                  "max_shared_memory_per_block_kib is missing, and compute capability 99.9");
    (void)snprintf(text, sizeof text, "%smax_shared_memory_per_block_kib: 299\n", limits);
    if (open_text(&gpu, text, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(gpu.spec.max_threads_per_sm, 4096);
    assert_int_equal(gpu.spec.registers_per_sm, 131072);
    check_close(gpu.spec.max_shared_memory_per_block_bytes, 299 * 1024, 0);
    assert_string_equal(gpu.spec.arch, "unknown");
    wg__wave_gpu_close(&gpu);
}

/* Each line of a whole file taken out in turn; then each number made wrong. */
static void names_what_is_missing_or_wrong(void **state)
{
    (void)state;
    static const char *const keys[] = {"compute_capability",
                                       "sms",
                                       "fp32_lanes_per_sm",
                                       "boost_clock_mhz",
                                       "memory_bandwidth_gb_per_s",
                                       "memory_gb",
                                       "l2_mib",
                                       "tdp_w"};
    static const char *const bad[] = {"x", "0", "-1", "1e99", "[1]", "nan", "\"\""};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char text[sizeof WHOLE + 64] = WHOLE;
        char *line = strstr(text, keys[i]);
        char *next = strchr(line, '\n') + 1;
        char rest[sizeof WHOLE];
        (void)snprintf(rest, sizeof rest, "%s", next);
        (void)snprintf(line, sizeof text - (size_t)(line - text), "%s", rest);
        check_rejects(text, keys[i]);
        const size_t length = strlen(text);
        for (size_t j = 0; j < sizeof bad / sizeof bad[0]; j++) {
            (void)snprintf(text + length, sizeof text - length, "%s: %s\n", keys[i], bad[j]);
            check_rejects(text, keys[i]);
        }
    }
    check_rejects(WHOLE "sm: 3\n", "unknown key 'sm'");
    check_rejects("like: a1000\n", "like: no GPU 'a1000'");
    check_rejects("like: [a100]\n", "like:");
    check_rejects("[1]\n", "expected a map");
    check_rejects("like: a100\nsms: 1.5\n", "whole number");
    check_rejects("like: a100\ndense_tflops: 3\n", "dense_tflops: expected a map");
    check_rejects("like: a100\ndense_tflops: {fp64: 3}\n", "dense_tflops: 'fp64'");
    check_rejects("like: a100\ndense_tflops: {fp16: -3}\n", "fp16");
    check_rejects("like: a100\nidle_w: 401\n", "idle_w"); /* above the power limit */
    check_rejects("like: a100\nid: \"\"\n", "id: expected a text");
    check_rejects("like: a100\ncompute_capability: 8\n", "such as \"8.6\"");
    check_rejects("like: a100\nid: \"a\\x1b[31m\"\n", "printable");
}

/* `times` times `piece` where a GPU's fields belong. */
static void check_repeated(const char *piece, size_t times, const char *part)
{
    const size_t step = strlen(piece);
    char *text = calloc(times * step + 2, 1);
    assert_non_null(text);
    for (size_t i = 0; i < times; i++)
        (void)snprintf(text + i * step, step + 1, "%s", piece);
    text[times * step] = '\n';
    check_rejects(text, part);
    free(text);
}

static void leaves_yaml_of_many_anchors_at_once(void **state)
{
    (void)state;
    enum { MANY = 60000, SIZE = 24 };
    char *text = calloc(MANY, SIZE);
    assert_non_null(text);
    size_t length = 0;
    for (int i = 0; i < MANY; i++)
        length += (size_t)snprintf(text + length, SIZE, "- &a%d x\n", i);
    check_rejects(text, "more than 1024 anchors");
    free(text);
}

static void leaves_nested_yaml_at_once(void **state)
{
    (void)state;
    /* libyaml alone takes minutes for the deepest of these. */
    static const char *const openings[] = {"[", "{a: ", "- ", "? "};
    for (size_t i = 0; i < sizeof openings / sizeof openings[0]; i++)
        for (size_t depth = 65; depth < 200000; depth *= 50)
            check_repeated(openings[i], depth,
                           ".yaml:1: more than 64 lists and maps in one another");
    check_repeated("- ", 64, "expected a map of a GPU's fields");
}

static void finds_a_device_by_its_drivers_name(void **state)
{
    (void)state;
    static const struct {
        const char *name, *id;
    } names[] = {
        {"NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"},
        {"Tesla T4", "t4"},
        {"NVIDIA GeForce RTX 3090", "rtx-3090"},
        {"NVIDIA Jetson AGX Orin Developer Kit GPU (nvpmodel 0: MAXN)", "orin-agx-64gb"},
        {"NVIDIA Jetson Orin Nano GPU (nvpmodel 0: 15W)", "orin-nano-8gb"},
        {"NVIDIA Jetson Nano Developer Kit GPU", "jetson-nano"},
    };
    struct wg_gpu_table *table = NULL;
    assert_int_equal(wg__gpu_table_open_built_in(&table, NULL), WG_OK);
    const struct wg_gpu_spec *gpu = NULL;
    struct wg_error err = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (wg__wave_gpu_of_device(table, names[i].name, &gpu, &err) != WG_OK)
            fail_msg("%s", err.text);
        assert_string_equal(gpu->id, names[i].id);
    }
    assert_int_equal(wg__wave_gpu_of_device(table, "NVIDIA Z999", &gpu, &err), WG_ENODEV);
    assert_non_null(strstr(err.text, "'NVIDIA Z999'"));
    assert_non_null(strstr(err.text, "--gpu gpu.yaml"));
    wg__gpu_table_close(table);
}

static void refuses_words_that_name_no_gpu(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        enum wg_code code;
    } words[] = {{"", WG_ENODEV},
                 {"a1000", WG_ENODEV},
                 {"live:", WG_EINVAL},
                 {"no-such-file.yaml", WG_ENOENT},
                 {"./no-such-file", WG_ENOENT}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct wg_wave_gpu gpu = {0};
        struct wg_error err = {0};
        assert_int_equal(wg__wave_gpu_open(&gpu, words[i].word, &err), words[i].code);
        wg__wave_gpu_close(&gpu);
    }
    wg__wave_gpu_close(NULL);
}

static void survives_each_allocation_that_fails(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    write_file(&scratch, "my-gpu.yaml", "like: a100\ndense_tflops: {fp16: 3}\n");
    size_t nth = 1;
    for (;; nth++) {
        struct wg_wave_gpu gpu = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__wave_gpu_open(&gpu, scratch.path, NULL);
        wg__alloc_fail_from(0);
        wg__wave_gpu_close(&gpu);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
    }
    assert_true(nth > 8);
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_gpu_that_stands_alone),
        cmocka_unit_test(takes_the_rest_from_a_gpu_that_it_is_like),
        cmocka_unit_test(takes_limits_of_an_sm_that_nobody_knows),
        cmocka_unit_test(names_what_is_missing_or_wrong),
        cmocka_unit_test(leaves_yaml_of_many_anchors_at_once),
        cmocka_unit_test(leaves_nested_yaml_at_once),
        cmocka_unit_test(finds_a_device_by_its_drivers_name),
        cmocka_unit_test(refuses_words_that_name_no_gpu),
        cmocka_unit_test(survives_each_allocation_that_fails),
    };
    return run_tests(tests);
}
