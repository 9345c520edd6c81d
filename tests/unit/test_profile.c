/* SPDX-License-Identifier: MIT
 *
 * TensorRT's engines as networks, and what is no profile at all.
 *
 * The oracle for waves is arithmetic on the dimensions and tiles that the engines of
 * tests/golden/profiles name.
 */
#include "model/profile.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/golden.h"
#include "support/scratch.h"

static struct wg_profile read_golden(const char *name)
{
    struct wg_profile profile = {0};
    struct wg_error err = {0};
    char path[64];
    (void)snprintf(path, sizeof path, "profiles/%s", name);
    if (wg__profile_read(&profile, golden_path(path), NULL, &err) != WG_OK)
        fail_msg("%s", err.text);
    return profile;
}

static struct wg_profile read_text(const char *text)
{
    struct wg_profile profile = {0};
    struct wg_error err = {0};
    if (wg__profile_read_memory(&profile, "p", text, strlen(text), &err) != WG_OK)
        fail_msg("'%s': %s", text, err.text);
    return profile;
}

static void expect_error(const char *text, const char *expected)
{
    struct wg_profile profile = {0};
    struct wg_error err = {0};
    assert_int_equal(wg__profile_read_memory(&profile, "p", text, strlen(text), &err), WG_EDATA);
    assert_string_equal(err.text, expected);
    assert_null(profile.network.layers);
}

static const struct wg_layer *layer_named(const struct wg_profile *profile, const char *name)
{
    for (size_t i = 0; i < profile->network.layer_count; i++)
        if (strcmp(profile->network.layers[i].name, name) == 0)
            return &profile->network.layers[i];
    fail_msg("no layer '%s'", name);
    return NULL;
}

static uint64_t blocks_of(const struct wg_layer *layer)
{
    struct wg_gemm gemm;
    assert_int_equal(layer->kind, WG_LAYER_CONV);
    assert_int_equal(wg__conv_gemm(&layer->conv, WG_CONV_FORWARD, &gemm, NULL), WG_OK);
    return wg__kernel_blocks(&layer->kernel, &gemm);
}

static void gives_an_engines_waves_as_worked_out_by_hand(void **state)
{
    (void)state;
    struct wg_profile profile = read_golden("tensorrt-fp16.graph.json.gz");
    assert_int_equal(profile.kind, WG_PROFILE_TENSORRT);
    assert_string_equal(profile.device, "NVIDIA A100 80GB PCIe");
    assert_int_equal(profile.sms, 108);
    assert_int_equal(profile.batch, 32);
    static const struct {
        const char *name;
        uint64_t blocks;
        double waves, time_ms;
    } layers[] = {{"Conv_3 + Relu_4", 392, 3.63, 0.053248},
                  {"Conv_15", 98, 0.91, 0.04096},
                  {"Conv_16 + Add_17 + Relu_18", 196, 1.81, 0.017408},
                  {"Conv_26", 100, 0.93, 0.04096}};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const struct wg_layer *layer = layer_named(&profile, layers[i].name);
        assert_int_equal(blocks_of(layer), layers[i].blocks);
        check_close_abs((double)blocks_of(layer) / profile.sms, layers[i].waves, 0.0, 0.005);
        check_close(layer->measured_s, layers[i].time_ms * 1e-3, 1e-12);
        assert_int_equal(layer->conv.dtype, WG_DTYPE_FP16);
        assert_int_equal(layer->conv.n, 32);
    }
    const struct wg_layer *first = layer_named(&profile, "Conv_0 + Relu_1");
    assert_int_equal(first->conv.c, 3);
    assert_int_equal(first->conv.h, 224);
    assert_int_equal(first->conv.r, 7);
    assert_int_equal(first->conv.stride_h, 2);
    assert_int_equal(first->conv.pad_bottom, 3);
    assert_int_equal(first->parameters, 9408 + 64); /* as "Weights" and "Bias" count */
    assert_int_equal(blocks_of(first), 0);          /* its kernel names no tile */
    wg__profile_fini(&profile);
}

static void finds_the_blocks_of_every_convolution_that_names_a_tile(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t convs, tiled;
    } engines[] = {{"tensorrt-fp16.graph.json.gz", 21, 20},
                   {"tensorrt-fp32.graph.json.gz", 21, 21},
                   {"tensorrt-qat.graph.json.gz", 21, 21},
                   {"tensorrt-qat-residual.graph.json.gz", 20, 20},
                   {"tensorrt-qat-residual-qgap.graph.json.gz", 20, 20}};
    for (size_t i = 0; i < sizeof engines / sizeof *engines; i++) {
        struct wg_profile profile = read_golden(engines[i].name);
        size_t convs = 0, tiled = 0;
        double total_s = 0.0;
        for (size_t at = 0; at < profile.network.layer_count; at++) {
            const struct wg_layer *layer = &profile.network.layers[at];
            assert_true(layer->measured_s > 0.0); /* all but NoOps take time */
            total_s += layer->measured_s;
            if (layer->kind != WG_LAYER_CONV)
                continue;
            convs++;
            tiled += blocks_of(layer) != 0;
        }
        assert_int_equal(convs, engines[i].convs);
        assert_int_equal(tiled, engines[i].tiled);
        assert_true(total_s > 0.3e-3 && total_s < 3e-3);
        wg__profile_fini(&profile);
    }
}

static void tells_the_types_that_engines_multiply(void **state)
{
    (void)state;
    struct wg_profile fp32 = read_golden("tensorrt-fp32.graph.json.gz");
    assert_string_equal(fp32.device, "NVIDIA A100 80GB PCIe"); /* of metadata.json */
    assert_int_equal(fp32.sms, 108);
    assert_int_equal(layer_named(&fp32, "Conv_0 + Relu_1")->conv.dtype, WG_DTYPE_FP32);
    assert_int_equal(layer_named(&fp32, "Conv_3 + Relu_4")->conv.dtype, WG_DTYPE_TF32);
    wg__profile_fini(&fp32);

    struct wg_profile qat = read_golden("tensorrt-qat.graph.json.gz");
    assert_string_equal(qat.device, "");
    const struct wg_layer *conv =
        layer_named(&qat, "layer1.0.conv1.weight + QuantizeLinear_20 + Conv_22");
    assert_int_equal(conv->conv.dtype, WG_DTYPE_INT8);
    assert_int_equal(conv->kernel.tile_m, 192);
    assert_int_equal(conv->kernel.tile_n, 64);
    wg__profile_fini(&qat);
}

/* Reads 32 x 64 x 112 x 112 halves, writes 32 x 64 x 56 x 56. */
static void counts_the_bytes_that_other_layers_move(void **state)
{
    (void)state;
    struct wg_profile profile = read_golden("tensorrt-fp16.graph.json.gz");
    const struct wg_layer *pool = layer_named(&profile, "MaxPool_2");
    assert_int_equal(pool->kind, WG_LAYER_BYTES);
    check_close(pool->bytes, 2.0 * 32 * 64 * (112 * 112 + 56 * 56), 0.0);
    wg__profile_fini(&profile);
}

#define TENSOR(dims) "{\"Dimensions\":[" dims "],\"Format/Datatype\":\"Row major linear FP16\"}"
#define LAYER(type, in, out)                                                                       \
    "{\"Name\":\"a\",\"LayerType\":\"" type "\",\"Inputs\":[" in "],\"Outputs\":[" out "]}"

static void reads_products_of_matrices(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t batch, m, n, k;
    } cases[] = {
        {LAYER("MatrixMultiply", TENSOR("8,12,128,64") "," TENSOR("8,12,64,96"),
               TENSOR("8,12,128,96")),
         96, 128, 96, 64},
        {LAYER("MatrixMultiply", TENSOR("8,64,128") "," TENSOR("8,96,64"), TENSOR("8,128,96")), 8,
         128, 96, 64}, /* both transposed */
        {LAYER("CaskGemmMatrixMultiply", TENSOR("8,128,768"), TENSOR("8,128,3072")), 1, 1024, 3072,
         768}, /* by weights */
        {LAYER("MatrixMultiply", TENSOR("8,64") "," TENSOR("63,9"), TENSOR("8,9")), 0, 0, 0, 0},
        {LAYER("gemm", "{\"Dimensions\":[8,768],\"Datatype\":\"BFloat16\"}", TENSOR("8,3072")), 1,
         8, 3072, 768}, /* as later versions write it */
        {LAYER("gemm", TENSOR("8,768"), TENSOR("8,64") "," TENSOR("8,64")), 0, 0, 0, 0},
        {LAYER("Myelin", TENSOR("8,64"), TENSOR("8,9")), 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text, "{\"Layers\":[%s]}", cases[i].text);
        struct wg_profile profile = read_text(text);
        const struct wg_layer *layer = &profile.network.layers[0];
        assert_int_equal(layer->kind, WG_LAYER_GEMM);
        assert_int_equal(layer->gemm.batch, cases[i].batch);
        assert_int_equal(layer->gemm.m, cases[i].m);
        assert_int_equal(layer->gemm.n, cases[i].n);
        assert_int_equal(layer->gemm.k, cases[i].k);
        wg__profile_fini(&profile);
    }
}

/* What is called a convolution but makes another output is transposed, or fused with a pooling. */
static void leaves_a_convolution_unknown_whose_output_is_another(void **state)
{
    (void)state;
    static const struct {
        const char *output;
        bool is_known;
    } cases[] = {{"2,16,28,28", true}, {"2,16,112,112", false}, {"2,16,14,14", false},
                 {"2,8,28,28", false}, {"4,16,28,28", false},   {"2,16,784", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "{\"Layers\":[{\"Name\":\"a\",\"LayerType\":\"CaskConvolution\","
                       "\"ParameterType\":\"Convolution\",\"Kernel\":[3,3],\"Stride\":[2,2],"
                       "\"PrePadding\":[1,1],\"PostPadding\":[1,1],\"OutMaps\":16,\"Inputs\":[%s],"
                       "\"Outputs\":[{\"Dimensions\":[%s]}]}]}",
                       TENSOR("2,4,56,56"), cases[i].output);
        struct wg_profile profile = read_text(text);
        const struct wg_layer *layer = &profile.network.layers[0];
        assert_int_equal(layer->kind, cases[i].is_known ? WG_LAYER_CONV : WG_LAYER_GEMM);
        assert_int_equal(profile.batch, cases[i].is_known ? 2 : 0);
        assert_int_equal(layer->gemm.m, 0);
        wg__profile_fini(&profile);
    }
}

static void joins_times_of_another_name(void **state)
{
    (void)state;
    static const char graph[] =
        "{\"Layers\":[" LAYER("Myelin", "", "") "," LAYER("Myelin", "", "") "]}";
    static const char times[] = "[{\"count\":10},{\"name\":\"a\",\"averageMs\":2},"
                                "{\"name\":\"noop\",\"averageMs\":1},{\"name\":\"a\",\"averageMs\""
                                ":4,\"medianMs\":3}]";
    static const char others[] = "[{\"name\":\"b\",\"averageMs\":1}]";
    struct scratch scratch;
    struct wg_profile profile = {0};
    struct wg_error err = {0};
    char path[600];
    scratch_open(&scratch);
    scratch_write(scratch_path(&scratch, "t.json"), times, strlen(times));
    (void)snprintf(path, sizeof path, "%s", scratch.path);
    scratch_write(scratch_path(&scratch, "g.json"), graph, strlen(graph));
    assert_int_equal(wg__profile_read(&profile, scratch.path, path, &err), WG_OK);
    check_close(profile.network.layers[0].measured_s, 2e-3, 1e-12);
    check_close(profile.network.layers[1].measured_s, 3e-3, 1e-12);
    wg__profile_fini(&profile);

    assert_int_equal(wg__profile_read(&profile, scratch.path, "/nonexistent/t.json", &err),
                     WG_ENOENT);
    scratch_write(scratch_path(&scratch, "t.json"), others, sizeof others - 1);
    assert_int_equal(wg__profile_read(&profile, scratch_path(&scratch, "g.json"), path, &err),
                     WG_EDATA);
    assert_non_null(strstr(err.text, "t.json: none of its names is that of a layer"));
    scratch_close(&scratch);
}

/* As `wattgov wave import <(ssh gpu cat trace.json)` has it. */
static void reads_a_pipe_which_can_be_read_once_only(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"Layers\":[" LAYER("Myelin", "", "") "]}",
        "Duration (ns),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Name\n1,2,1,1,1,1,1,k\n",
        "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"ts\":1,\"dur\":2,\"args\":{\"External "
        "id\":5}},{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::relu\",\"args\":{\"External "
        "id\":"
        "5}}]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct wg_profile profile = {0};
        struct wg_error err = {0};
        int ends[2];
        char path[64];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        assert_int_equal(write(ends[1], texts[i], strlen(texts[i])), strlen(texts[i]));
        assert_int_equal(close(ends[1]), 0);
        (void)snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        if (wg__profile_read(&profile, path, NULL, &err) != WG_OK)
            fail_msg("%s", err.text);
        assert_int_equal(profile.network.layer_count, 1);
        wg__profile_fini(&profile);
        assert_int_equal(close(ends[0]), 0);
    }
}

static void says_what_is_no_profile(void **state)
{
    (void)state;
    expect_error("{\"a\":1}",
                 "p: JSON without \"Layers\" (TensorRT's --exportLayerInfo) or \"traceEvents\" "
                 "(PyTorch's profiler)");
    expect_error("[{\"count\":1}]", "p: TensorRT's times (--exportProfile), expected the layers "
                                    "that they are of (--exportLayerInfo)");
    expect_error("[1]", "p: a JSON array, but not of trace events");
    expect_error("{\"a\":", "p:1: the file ends, expected the end of a value");
    expect_error("m,n,k\n1,2,3\n", "p: neither JSON (TensorRT, PyTorch) nor CSV of ncu (\"Kernel "
                                   "Name\") or nsys (\"GrdX\"): p:3: no header with a column "
                                   "'Kernel Name'");
    expect_error("", "p: neither JSON (TensorRT, PyTorch) nor CSV of ncu (\"Kernel Name\") or nsys "
                     "(\"GrdX\"): p:1: no header with a column 'Kernel Name'");
    expect_error("{\"Layers\":[\"conv1\"]}", "p: layer 1: only its name is there; export with "
                                             "--profilingVerbosity=detailed");
    expect_error("{\"Layers\":[{\"Name\":\"a\"}]}", "p: layer 1: no text \"LayerType\"");
    expect_error("{\"Layers\":{}}", "p: \"Layers\" is no array of 1 to 1000000 layers");
    expect_error("{\"Layers\":[" LAYER("NoOp", "", "") "]}", "p: no layer in it costs time");
    struct wg_profile profile = {0};
    struct wg_error err = {0};
    static const char broken[] = "{\"Layers\":[\n{]}";
    assert_int_equal(wg__profile_read_memory(&profile, "p", broken, strlen(broken), &err),
                     WG_EDATA);
    assert_int_equal(strncmp(err.text, "p:2: no JSON: ", 14), 0);
    assert_int_equal(wg__profile_read(&profile, "/nonexistent/p", NULL, &err), WG_ENOENT);
}

static void fails_cleanly_without_memory(void **state)
{
    (void)state;
    static const char text[] = "{\"Layers\":[" LAYER("Myelin", "", "") "]}";
    for (size_t nth = 1;; nth++) {
        struct wg_profile profile = {0};
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__profile_read_memory(&profile, "p", text, strlen(text), &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK) {
            assert_true(nth > 4);
            wg__profile_fini(&profile);
            break;
        }
        assert_int_equal(code, WG_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_an_engines_waves_as_worked_out_by_hand),
        cmocka_unit_test(finds_the_blocks_of_every_convolution_that_names_a_tile),
        cmocka_unit_test(tells_the_types_that_engines_multiply),
        cmocka_unit_test(counts_the_bytes_that_other_layers_move),
        cmocka_unit_test(reads_products_of_matrices),
        cmocka_unit_test(leaves_a_convolution_unknown_whose_output_is_another),
        cmocka_unit_test(joins_times_of_another_name),
        cmocka_unit_test(reads_a_pipe_which_can_be_read_once_only),
        cmocka_unit_test(says_what_is_no_profile),
        cmocka_unit_test(fails_cleanly_without_memory),
    };
    return run_tests(tests);
}
