/* SPDX-License-Identifier: MIT
 *
 * What is shown of a profile, and that the measurements made of it read back as they were.
 */
#include "cli/wave_import.h"

#include <string.h>

#include "base/alloc.h"
#include "model/measurements.h"
#include "support/check.h"
#include "support/scratch.h"

/* A linear layer of two kernels, a batched product, a convolution, and one that is not known. */
static const char trace[] =
    "{\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA A100-SXM4-80GB\",\"numSms\":108}],"
    "\"traceEvents\":["
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::addmm\",\"args\":{\"External id\":1,"
    "\"Input Dims\":[[1408],[8,512],[512,1408]],\"Input type\":[\"c10::Half\",\"c10::Half\","
    "\"c10::Half\"]}},"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::bmm\",\"args\":{\"External id\":2,"
    "\"Input Dims\":[[96,128,64],[96,64,128]],\"Input type\":[\"float\",\"float\"]}},"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::cudnn_convolution\",\"args\":{"
    "\"External id\":3,\"Input Dims\":[[4,6,32,20],[16,3,3,5]],\"Input type\":[\"float\","
    "\"float\"],\"Concrete Inputs\":[\"\",\"\",\"[1, 2]\",\"[2, 1]\",\"[1, 1]\",\"2\"]}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"splitK, \\\"reduce\\\"\",\"ts\":1,\"dur\":3,"
    "\"args\":{\"device\":0,\"External id\":1,\"grid\":[4,1,1],\"block\":[256,1,1]}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ampere_fp16_s16816gemm_fp16_128x64_ldg8_tn\","
    "\"ts\":2,\"dur\":20.5,\"args\":{\"device\":0,\"External id\":1,\"grid\":[11,1,50],\"block\":"
    "[128,1,1],\"registers per thread\":128,\"shared memory\":13056}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"void k<int, 2>(int)\",\"ts\":3,\"dur\":7,"
    "\"args\":{\"device\":0,\"External id\":2,\"grid\":[1,1,96],\"block\":[64,1,1]}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"c\",\"ts\":4,\"dur\":9,\"args\":{\"device\":0,"
    "\"External id\":3,\"grid\":[216,1,1],\"block\":[64,1,1]}},"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"d\",\"ts\":5,\"dur\":1.25,\"args\":{\"device\":0,"
    "\"grid\":[1,1,1]}}]}";

struct stage {
    struct wg_gpu_table *table;
    const struct wg_gpu_spec *gpu;
    struct wg_wave_model model;
    struct wg_wave_import import;
};

static void open_stage(struct stage *stage, const char *text)
{
    struct wg_error err = {0};
    *stage = (struct stage){.model = {.name = "t.json", .kind = "torch"}};
    assert_int_equal(wg__gpu_table_open_built_in(&stage->table, &err), WG_OK);
    assert_int_equal(wg__gpu_table_find(stage->table, "a100-sxm4-80gb", &stage->gpu, &err), WG_OK);
    if (wg__profile_read_memory(&stage->model.read, "t.json", text, strlen(text), &err) != WG_OK)
        fail_msg("%s", err.text);
    stage->model.profile = &stage->model.read;
    stage->model.network = &stage->model.read.network;
    assert_int_equal(wg__wave_import(&stage->import, &stage->model, stage->gpu, false, &err),
                     WG_OK);
}

static void close_stage(struct stage *stage)
{
    wg__wave_import_fini(&stage->import);
    wg__profile_fini(&stage->model.read);
    wg__gpu_table_close(stage->table);
}

static void counts_blocks_per_sm_and_waves_of_a_launch(void **state)
{
    (void)state;
    struct stage stage;
    open_stage(&stage, trace);
    assert_int_equal(stage.import.count, 4);
    const struct wg_wave_import_row *linear = &stage.import.rows[0];
    assert_int_equal(linear->blocks, 550);
    check_close(linear->per_sm, 550.0 / 108.0, 1e-12);
    /* 128 registers for 4 warps of 32: 16,384 a block, of 65,536; nothing else holds fewer. */
    check_close(linear->waves, 550.0 / (108.0 * 4.0), 1e-12);
    check_close(linear->tail, 1.0 - 550.0 / 108.0 / 6.0, 1e-12);
    check_close(linear->flops, 2.0 * 8 * 512 * 1408, 0.0);
    const struct wg_wave_import_row *conv = &stage.import.rows[2];
    check_close(conv->per_sm, 2.0, 1e-12);
    check_close_abs(conv->tail, 0.0, 0.0, 1e-12);
    assert_true(isnan(conv->waves)); /* registers are not told */
    assert_false(stage.import.rows[3].has_gemm);
    assert_true(isnan(stage.import.rows[3].flops));
    check_close(stage.import.measured_s, 40.75e-6, 1e-12);
    close_stage(&stage);
}

static void makes_measurements_that_read_back_as_they_were(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer csv;
    struct wg_measurements read = {0};
    struct wg_error err = {0};
    open_stage(&stage, trace);
    wg__buffer_init(&csv);
    wg__wave_import_csv_header(&csv);
    struct wg_wave_import_written written = {.rows = 1};
    struct wg_conv *layer_conv = &stage.model.network->layers[2].conv;
    layer_conv->pad_bottom = 3; /* each its own */
    layer_conv->pad_right = 4;
    layer_conv->dilation_h = 2;
    layer_conv->dilation_w = 3;
    wg__wave_import_csv(&stage.import, &csv, &written);
    assert_int_equal(written.rows, 1 + 3);
    assert_int_equal(written.layers, 3);
    assert_int_equal(written.left_out, 1); /* the kernel that belongs to nothing */
    if (wg__measurements_read_memory(&read, "o.csv", csv.data, csv.length, NULL, &err) != WG_OK)
        fail_msg("%s in %s", err.text, csv.data);
    assert_int_equal(read.count, 3);
    assert_string_equal(read.rows[0].gpu, "NVIDIA A100-SXM4-80GB");
    for (size_t i = 0; i < 3; i++) {
        const struct wg_layer *layer = &stage.model.network->layers[i];
        const struct wg_measured *row = &read.rows[i];
        check_close(row->time_s, layer->measured_s, 1e-12);
        assert_int_equal(row->blocks, layer->blocks);
        assert_int_equal(row->is_conv, layer->kind == WG_LAYER_CONV);
        if (!row->is_conv) /* whose paddings the test has changed */
            assert_int_equal(row->gemm.m, stage.import.rows[i].gemm.m);
        assert_int_equal(row->gemm.n, stage.import.rows[i].gemm.n);
        assert_int_equal(row->gemm.k, stage.import.rows[i].gemm.k);
        assert_int_equal(row->gemm.batch, stage.import.rows[i].gemm.batch);
        assert_int_equal(row->gemm.dtype, stage.import.rows[i].gemm.dtype);
        if (row->is_conv) {
            const struct wg_conv *conv = &row->conv;
            assert_memory_equal(conv, layer_conv, sizeof *conv);
            assert_int_equal(conv->w, 20);
        }
    }
    assert_string_equal(read.rows[0].op, "linear");
    assert_string_equal(read.rows[1].op, "bmm");
    assert_string_equal(read.rows[2].op, "conv");
    assert_int_equal(read.rows[0].kernel.tile_n, 128);
    wg__measurements_fini(&read);
    wg__buffer_fini(&csv);
    close_stage(&stage);
}

static void joins_runs_of_the_same_layer_to_their_median(void **state)
{
    (void)state;
    static const double times_ms[] = {9.0, 2.0, 1.0, 4.0, 3.0}; /* the first one is cold */
    struct stage stage;
    struct wg_buffer text, csv;
    struct wg_measurements read = {0};
    struct wg_error err = {0};
    wg__buffer_init(&text);
    wg__buffer_puts(&text, "[");
    for (int i = 1; i <= 5; i++)
        wg__buffer_printf(&text,
                          "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"args\":{"
                          "\"External id\":%d,\"Input Dims\":[[5,7],[7,3]],\"Input type\":["
                          "\"float\",\"float\"]}},{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\""
                          ",\"ts\":%d,\"dur\":%g,\"args\":{\"External id\":%d,\"grid\":[%d,1,1]}},",
                          i, "k", i, 1e3 * times_ms[i - 1], i, 4);
    wg__buffer_puts(&text, "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"args\":{"
                           "\"External id\":9,\"Input Dims\":[[5,7],[7,3]],\"Input type\":["
                           "\"float\",\"float\"]}},{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\","
                           "\"ts\":0,\"dur\":5,\"args\":{\"External id\":9,\"grid\":[8,1,1]}}]");
    open_stage(&stage, text.data);
    wg__buffer_init(&csv);
    wg__wave_import_csv_header(&csv);
    struct wg_wave_import_written written = {0};
    wg__wave_import_csv(&stage.import, &csv, &written);
    assert_int_equal(written.rows, 2); /* another grid is another one */
    assert_int_equal(written.layers, 6);
    assert_int_equal(wg__measurements_read_memory(&read, "o.csv", csv.data, csv.length, NULL, &err),
                     WG_OK);
    check_close(read.rows[0].time_s, 5e-6, 1e-12); /* it ran first */
    check_close(read.rows[1].time_s, 3e-3, 1e-12);
    assert_non_null(strstr(csv.data, ",4x1x1,5,3\n"));
    wg__measurements_fini(&read);
    for (size_t nth = 1; nth < 3; nth++) {
        csv.failed = false;
        wg__alloc_fail_from(nth);
        wg__wave_import_csv(&stage.import, &csv, &written);
        wg__alloc_fail_from(0);
        assert_true(csv.failed);
    }
    wg__buffer_fini(&csv);
    wg__buffer_fini(&text);
    close_stage(&stage);
}

static void refuses_another_gpu_than_the_profile_is_of(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_wave_import import = {0};
    struct wg_error err = {0};
    const struct wg_gpu_spec *other = NULL;
    open_stage(&stage, trace);
    assert_int_equal(wg__gpu_table_find(stage.table, "h100-sxm-80gb", &other, &err), WG_OK);
    assert_int_equal(wg__wave_import(&import, &stage.model, other, true, &err), WG_EINVAL);
    assert_string_equal(err.text,
                        "--gpu: h100-sxm-80gb has 132 SMs, but t.json was recorded on 108");
    assert_null(import.rows);
    close_stage(&stage);
}

static void shows_layers_by_their_time(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    open_stage(&stage, trace);
    wg__buffer_init(&text);
    wg__wave_import_text(&stage.import, 2, false, &text);
    assert_false(text.failed);
    assert_non_null(
        strstr(text.data, "t.json: torch, NVIDIA A100-SXM4-80GB, 108 SMs, 4 layers, 0.04075 ms\n"));
    const char *linear = strstr(text.data, "aten::addmm#1"), *conv = strstr(text.data, "#3");
    assert_true(linear != NULL && conv != NULL && linear < conv);
    assert_null(strstr(text.data, "aten::bmm"));
    assert_non_null(strstr(text.data, "... and 2 more, of less time.\n"));
    wg__buffer_fini(&text);
    close_stage(&stage);
}

static void writes_null_for_what_is_not_known(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    struct wg_json json;
    open_stage(&stage, trace);
    wg__buffer_init(&text);
    wg__json_init(&json, &text);
    wg__json_object(&json);
    wg__wave_import_json(&stage.import, &json);
    wg__json_close(&json);
    assert_false(text.failed);
    assert_non_null(strstr(text.data, "\"name\":\"kernel#4\",\"op\":\"kernel\",\"dtype\":null,"
                                      "\"B\":null,\"m\":null,\"n\":null,\"k\":null,\"flops\":null,"
                                      "\"conv\":null"));
    assert_non_null(strstr(text.data, "\"grid\":[216,1,1],\"blocks\":216,\"blocks_per_sm\":2,"
                                      "\"waves\":null,\"tail_share\":0,"));
    wg__buffer_fini(&text);
    close_stage(&stage);
}

static void counts_measurements_by_gpu_operator_and_type(void **state)
{
    (void)state;
    static const char text[] = "gpu,op,dtype,m,n,k,grid,tile,ms\n"
                               "a,linear,fp16,1000,1000,1000,8,,1\n"
                               "b,linear,fp16,100,100,100,,,2\n"
                               "a,linear,fp16,1000,1000,500,64,128x128,0.25\n"
                               "a,linear,fp32,1,1,1,,,3\na,bmm,fp16,1,1,1,,,nan\n";
    struct scratch scratch;
    struct wg_wave_import_measured measured;
    struct wg_error err = {0};
    struct wg_buffer out;
    scratch_open(&scratch);
    scratch_write(scratch_path(&scratch, "m.csv"), text, sizeof text - 1);
    assert_true(wg__measurements_are(scratch.path));
    for (size_t nth = 1; nth < 9; nth++) { /* opening takes 4 of them at least */
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__wave_import_measured(&measured, scratch.path, NULL, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            fail_msg("there are only %zu allocations", nth - 1);
        assert_int_equal(code, WG_ENOMEM);
    }
    assert_int_equal(wg__wave_import_measured(&measured, scratch.path, NULL, &err), WG_OK);
    assert_int_equal(measured.count, 3);
    assert_int_equal(measured.measurements.unmeasured, 1);
    const struct wg_wave_import_group *group = &measured.groups[0];
    assert_string_equal(group->gpu, "a");
    assert_int_equal(group->rows, 2);
    assert_int_equal(group->tiles, 1);
    assert_int_equal(group->grids, 2);
    check_close(group->least_s, 0.25e-3, 1e-12);
    check_close(group->most_s, 1e-3, 1e-12);
    check_close(group->best_flops_per_s, 1e9 / 0.25e-3, 1e-12);
    assert_int_equal(measured.groups[2].dtype, WG_DTYPE_FP32);
    wg__buffer_init(&out);
    wg__wave_import_measured_text(&measured, scratch.path, false, &out);
    assert_non_null(strstr(out.data, "m.csv: measurements, 4 (and 1 without a time)\n"));
    wg__buffer_fini(&out);
    wg__wave_import_measured_fini(&measured);

    scratch_write(scratch_path(&scratch, "m.csv"), "ID,Kernel Name\n0,k\n", 19);
    assert_false(wg__measurements_are(scratch.path));
    scratch_write(scratch_path(&scratch, "m.csv"), trace, sizeof trace - 1);
    assert_false(wg__measurements_are(scratch.path));
    assert_false(wg__measurements_are("/nonexistent/m.csv"));
    scratch_close(&scratch);
}

static void fails_cleanly_without_memory(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_wave_import import = {0};
    struct wg_error err = {0};
    open_stage(&stage, trace);
    wg__alloc_fail_from(1);
    assert_int_equal(wg__wave_import(&import, &stage.model, NULL, false, &err), WG_ENOMEM);
    wg__alloc_fail_from(0);
    for (size_t nth = 1; nth < 6; nth++) {
        struct wg_buffer text;
        wg__buffer_init(&text);
        wg__alloc_fail_from(nth);
        wg__wave_import_text(&stage.import, 2, false, &text);
        wg__alloc_fail_from(0);
        assert_true(text.failed);
        wg__buffer_fini(&text);
    }
    close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_blocks_per_sm_and_waves_of_a_launch),
        cmocka_unit_test(makes_measurements_that_read_back_as_they_were),
        cmocka_unit_test(joins_runs_of_the_same_layer_to_their_median),
        cmocka_unit_test(refuses_another_gpu_than_the_profile_is_of),
        cmocka_unit_test(shows_layers_by_their_time),
        cmocka_unit_test(writes_null_for_what_is_not_known),
        cmocka_unit_test(counts_measurements_by_gpu_operator_and_type),
        cmocka_unit_test(fails_cleanly_without_memory),
    };
    return run_tests(tests);
}
