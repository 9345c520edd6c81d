/* SPDX-License-Identifier: MIT
 *
 * PyTorch's traces: kernels joined to the operators that launched them.
 *
 * The events have the fields and the order that Kineto writes; the numbers are made up.
 */
#include "model/profile.h"

#include <string.h>

#include <zlib.h>

#include "base/buffer.h"
#include "support/check.h"
#include "support/scratch.h"

#define DEVICES                                                                                    \
    "\"schemaVersion\": 1,\n\"deviceProperties\": [\n{\"id\": 0, \"name\": \"NVIDIA H100\", "      \
    "\"numSms\": 132},\n{\"id\": 1, \"name\": \"NVIDIA A100-SXM4-40GB\", \"computeMajor\": 8, "    \
    "\"numSms\": 108}\n],\n"

#define OPERATOR(name, id, dims, type, inputs)                                                     \
    "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"" name                                       \
    "\", \"pid\": 9, \"tid\": 9, \"ts\": 100, \"dur\": 130, \"args\": {\"External id\": " #id      \
    ", \"Record function id\": 0, \"Concrete Inputs\": [" inputs "], \"Input type\": [" type       \
    "], \"Input Dims\": [" dims "], \"Ev Idx\": 191}}"

#define KERNEL(name, id, at, dur, grid)                                                            \
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"" name                                       \
    "\", \"pid\": 1, \"tid\": 7, \"ts\": " #at ", \"dur\": " #dur                                  \
    ", \"args\": {\"External id\": " #id ", \"queued\": 0, \"device\": 1, \"context\": 1, "        \
    "\"stream\": 7, \"correlation\": 5, \"registers per thread\": 128, \"shared memory\": 13056, " \
    "\"blocks per SM\": 0.72, \"warps per SM\": 2.9, \"grid\": " grid                              \
    ", \"block\": [128, 1, 1], \"est. achieved occupancy %\": 5}}"

#define META "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 9, \"args\": {\"name\": \"p\"}}"

static struct wg_profile read_text(const char *text)
{
    struct wg_profile profile = {0};
    struct wg_error err = {0};
    if (wg__profile_read_memory(&profile, "t.json", text, strlen(text), &err) != WG_OK)
        fail_msg("%s", err.text);
    return profile;
}

static void joins_kernels_to_their_operators(void **state)
{
    (void)state;
    struct wg_profile profile = read_text(
        "{" DEVICES "\"traceEvents\": [" META ",\n" OPERATOR(
            "aten::addmm", 192, "[1408], [8, 512], [512, 1408], [], []",
            "\"c10::Half\", \"c10::Half\", \"c10::Half\", \"Scalar\", \"Scalar\"",
            "\"\", \"\", \"\", \"1\", \"1\"") ",\n" OPERATOR("aten::relu", 193, "[8, 1408]",
                                                             "\"c10::Half\"", "\"\"") ",\n"
        /* The second stream's kernel stands first, and ran last. */
        KERNEL("void relu<float>(int)", 193, 400.5, 2.25, "[9, 2, 1]") ",\n" KERNEL(
            "splitKreduce", 192, 310, 3,
            "[4, 1, 1]") ",\n" KERNEL("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn",
                                      192, 300, 20.5,
                                      "[11, 1, 3]") "\n],\n\"traceName\": \"t.json\"}");
    assert_int_equal(profile.kind, WG_PROFILE_TORCH);
    assert_string_equal(profile.device, "NVIDIA A100-SXM4-40GB"); /* the kernels' one */
    assert_int_equal(profile.sms, 108);
    assert_int_equal(profile.launch_count, 3);
    assert_int_equal(profile.network.layer_count, 2);
    const struct wg_layer *linear = &profile.network.layers[0];
    assert_string_equal(linear->name, "aten::addmm#1");
    assert_string_equal(linear->op, "aten::addmm");
    assert_int_equal(linear->kind, WG_LAYER_GEMM);
    assert_int_equal(linear->gemm.m, 8);
    assert_int_equal(linear->gemm.n, 1408);
    assert_int_equal(linear->gemm.k, 512);
    assert_int_equal(linear->gemm.dtype, WG_DTYPE_FP16);
    assert_true(linear->gemm.has_bias);
    assert_int_equal(linear->blocks, 33); /* of the longest kernel */
    assert_int_equal(linear->kernel.threads, 128);
    assert_int_equal(linear->kernel.tile_n, 128);
    check_close(linear->measured_s, 23.5e-6, 1e-12);
    const struct wg_layer *relu = &profile.network.layers[1];
    assert_string_equal(relu->name, "aten::relu#2");
    assert_int_equal(relu->gemm.m, 0);
    check_close(relu->measured_s, 2.25e-6, 1e-12);
    const struct wg_launch *launch = &profile.launches[0];
    assert_string_equal(launch->layer, linear->name);
    assert_int_equal(launch->grid[2], 3);
    check_close(launch->registers_per_thread, 128.0, 0.0);
    check_close(launch->shared_memory_bytes, 13056.0, 0.0);
    assert_int_equal(launch->sms, 108);
    wg__profile_fini(&profile);
}

/* One operator and its kernel as the layer that they make. */
static struct wg_profile read_operator(const char *event, const char *kernel)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_printf(&text,
                      "[%s,{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"ts\":1,\"dur\":2,"
                      "\"args\":{\"External id\":7,\"grid\":[1,1,1]}}]",
                      event, kernel);
    struct wg_profile profile = read_text(text.data);
    wg__buffer_fini(&text);
    assert_int_equal(profile.network.layer_count, 1);
    return profile;
}

static void reads_products_in_each_form(void **state)
{
    (void)state;
    static const struct {
        const char *event;
        uint64_t batch, m, n, k;
    } cases[] = {
        {OPERATOR("aten::mm", 7, "[5, 7], [7, 3]", "\"float\", \"float\"", "\"\", \"\""), 1, 5, 3,
         7},
        {OPERATOR("aten::bmm", 7, "[2, 5, 7], [2, 7, 3]", "\"float\", \"float\"", "\"\""), 2, 5, 3,
         7},
        {OPERATOR("aten::baddbmm", 7, "[2, 5, 3], [2, 5, 7], [2, 7, 3]",
                  "\"float\", \"float\", \"float\"", "\"\""),
         2, 5, 3, 7},
        /* Nothing is guessed from what doesn't fit, or is of a type that no table has. */
        {OPERATOR("aten::mm", 7, "[5, 7], [8, 3]", "\"float\", \"float\"", "\"\""), 0, 0, 0, 0},
        {OPERATOR("aten::mm", 7, "[5, 7], [7, 3]", "\"double\", \"double\"", "\"\""), 0, 0, 0, 0},
        {OPERATOR("aten::mm", 7, "", "", ""), 0, 0, 0, 0},
        {OPERATOR("aten::mm", 7, "[5, -7], [7, 3]", "\"float\"", "\"\""), 0, 0, 0, 0},
        {OPERATOR("aten::mm", 7, "[0, 7], [7, 3]", "\"float\"", "\"\""), 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_profile profile = read_operator(cases[i].event, "k");
        const struct wg_gemm *gemm = &profile.network.layers[0].gemm;
        assert_int_equal(profile.network.layers[0].kind, WG_LAYER_GEMM);
        if (gemm->batch != cases[i].batch || gemm->m != cases[i].m || gemm->n != cases[i].n ||
            gemm->k != cases[i].k)
            fail_msg("case %zu: %s", i, cases[i].event);
        wg__profile_fini(&profile);
    }
    static const struct {
        const char *kernel;
        enum wg_dtype dtype;
    } kernels[] = {{"sm80_xmma_gemm_f32f32_tf32f32_f32", WG_DTYPE_TF32},
                   {"ampere_s1688gemm_fp32_128x128_ldg8", WG_DTYPE_TF32},
                   {"cutlass_80_tensorop_s1688gemm_128x256", WG_DTYPE_TF32},
                   {"nvjet_sss_128x256_32x4_2x1_v_bz_TNN", WG_DTYPE_TF32},
                   {"ampere_sgemm_128x64_tn", WG_DTYPE_FP32},
                   {"cutlass_80_simt_sgemm_256x128_8x4_tn_align1", WG_DTYPE_FP32}};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        struct wg_profile profile = read_operator(cases[0].event, kernels[i].kernel);
        assert_int_equal(profile.network.layers[0].gemm.dtype, kernels[i].dtype);
        wg__profile_fini(&profile);
    }
}

#define IMAGES "[4, 6, 32, 20], [16, 3, 3, 5], []"
#define HALVES "\"c10::BFloat16\", \"c10::BFloat16\", \"\""

static void reads_convolutions_in_each_form(void **state)
{
    (void)state;
    static const char *const events[] = {
        OPERATOR("aten::cudnn_convolution", 7, IMAGES, HALVES,
                 "\"\", \"\", \"[1, 2]\", \"[2, 1]\", \"[1, 1]\", \"2\", \"True\""),
        OPERATOR("aten::_convolution", 7, IMAGES, HALVES,
                 "\"\", \"\", \"\", \"[2, 1]\", \"[1, 2]\", \"[1, 1]\", \"False\", \"[0, 0]\", "
                 "\"2\", \"False\""),
        OPERATOR("aten::conv2d", 7, IMAGES, HALVES,
                 "\"\", \"\", \"\", \"[2, 1]\", \"[1, 2]\", \"[1, 1]\", \"2\""),
    };
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        struct wg_profile profile = read_operator(events[i], "k");
        const struct wg_layer *layer = &profile.network.layers[0];
        assert_int_equal(layer->kind, WG_LAYER_CONV);
        const struct wg_conv *conv = &layer->conv;
        assert_int_equal(conv->dtype, WG_DTYPE_BF16);
        assert_int_equal(conv->n, 4);
        assert_int_equal(conv->c, 6);
        assert_int_equal(conv->h, 32);
        assert_int_equal(conv->w, 20);
        assert_int_equal(conv->filters, 16);
        assert_int_equal(conv->r, 3);
        assert_int_equal(conv->s, 5);
        assert_int_equal(conv->stride_h, 2);
        assert_int_equal(conv->stride_w, 1);
        assert_int_equal(conv->pad_top, 1);
        assert_int_equal(conv->pad_right, 2);
        assert_int_equal(conv->groups, 2);
        assert_int_equal(layer->parameters, 16 * 3 * 3 * 5);
        wg__profile_fini(&profile);
    }
    struct wg_profile profile = read_operator(
        OPERATOR("aten::_convolution", 7, IMAGES, HALVES,
                 "\"\", \"\", \"\", \"[2, 1]\", \"[1, 2]\", \"[1, 1]\", \"True\", \"[0, 0]\", "
                 "\"2\", \"False\""),
        "k");
    assert_int_equal(profile.network.layers[0].kind, WG_LAYER_GEMM); /* transposed: not known */
    assert_int_equal(profile.network.layers[0].gemm.m, 0);
    wg__profile_fini(&profile);
}

static void kernels_without_an_operator_are_layers_of_their_own(void **state)
{
    (void)state;
    struct wg_profile profile = read_text("[" META "," KERNEL("a", 0, 2, 1, "[1, 1, 1]") "," KERNEL(
        "b", 0, 1, 0, "[2, 2]") "," KERNEL("c", 4, 3, 1, "[0, 1, 1]") "]");
    assert_int_equal(profile.network.layer_count, 3);
    assert_string_equal(profile.launches[0].name, "b");
    assert_string_equal(profile.network.layers[0].name, "kernel#1");
    assert_int_equal(profile.network.layers[0].blocks, 4);
    check_close(profile.network.layers[0].measured_s, 0.0, 0.0); /* no time is not told */
    assert_int_equal(profile.network.layers[2].blocks, 0);       /* no such grid */
    assert_string_equal(profile.device, "");
    wg__profile_fini(&profile);
}

static void expect_error(const char *text, const char *expected)
{
    struct wg_profile profile = {0};
    struct wg_error err = {0};
    assert_int_equal(wg__profile_read_memory(&profile, "t.json", text, strlen(text), &err),
                     WG_EDATA);
    if (strncmp(err.text, expected, strlen(expected)) != 0)
        fail_msg("'%s', expected '%s'", err.text, expected);
}

static void says_what_is_wrong_with_a_trace(void **state)
{
    (void)state;
    expect_error("{\"traceEvents\": []}", "t.json: no kernel in the trace: was a GPU profiled?");
    expect_error("[" META "]", "t.json: no kernel in the trace: was a GPU profiled?");
    expect_error("{\"traceEvents\": [\n" META ",\n{\"cat\": \"kernel\",, }]}",
                 "t.json:3: an event is no JSON: ");
    expect_error("{\"traceEvents\": [\n" META, "t.json:2: the file ends, expected ',' or ']'");
    expect_error("{\"traceEvents\": {}}", "t.json:1: found '{', expected an array");
    expect_error("{\"traceEvents\": [], }", "t.json:1: found '}', expected a key in quotes");
}

/* More than a window of events, gzipped as the profiler does for names that end with .gz. */
static void reads_a_long_trace_gzipped(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    struct wg_buffer text;
    struct scratch scratch;
    wg__buffer_init(&text);
    wg__buffer_puts(&text, "{\"traceEvents\":[" META);
    for (int i = 1; i <= COUNT; i++)
        wg__buffer_printf(&text,
                          ",\n{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"args\":{"
                          "\"External id\":%d,\"Input Dims\":[[%d,7],[7,3]],\"Input type\":["
                          "\"float\",\"float\"]}},\n{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\""
                          ",\"ts\":%d.5,\"dur\":1,\"args\":{\"External id\":%d,\"grid\":[%d,1,1]}}",
                          i, i, COUNT - i, i, i);
    wg__buffer_puts(&text, "]}");
    scratch_open(&scratch);
    gzFile file = gzopen(scratch_path(&scratch, "t.json.gz"), "wb");
    assert_int_equal(gzwrite(file, text.data, (unsigned)text.length), text.length);
    assert_int_equal(gzclose(file), Z_OK);
    wg__buffer_fini(&text);
    struct wg_profile profile = {0};
    struct wg_error err = {0};
    if (wg__profile_read(&profile, scratch.path, NULL, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(profile.network.layer_count, COUNT);
    for (size_t i = 0; i < COUNT; i++) /* in the order of time, which was turned round */
        assert_int_equal(profile.network.layers[i].gemm.m, COUNT - i);
    wg__profile_fini(&profile);
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_kernels_to_their_operators),
        cmocka_unit_test(reads_products_in_each_form),
        cmocka_unit_test(reads_convolutions_in_each_form),
        cmocka_unit_test(kernels_without_an_operator_are_layers_of_their_own),
        cmocka_unit_test(says_what_is_wrong_with_a_trace),
        cmocka_unit_test(reads_a_long_trace_gzipped),
    };
    return run_tests(tests);
}
