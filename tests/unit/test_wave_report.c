/* SPDX-License-Identifier: MIT
 *
 * An analysis that was made by hand, written in every form.
 */
#include "cli/wave_report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/csv.h"
#include "cli/table.h"
#include "support/check.h"
#include "support/xml.h"

enum { LAYERS = 4, POINTS = 6 };

struct stage {
    struct wg_gpu_spec gpu;
    struct wg_layer layers[LAYERS];
    struct wg_network network;
    struct wg_wave_row rows[LAYERS];
    struct wg_batch_point points[POINTS];
    struct wg_model graph;
    struct wg_wave_model model;
    struct wg_wave_report report;
};

/* Four layers: one with half a tail, one without, one that only moves bytes, one that this GPU
 * cannot do. */
static void add_layers(struct stage *stage)
{
    static const char *const names[LAYERS] = {"conv <1>", "fc, \"last\"", "relu", "odd"};
    *stage = (struct stage){
        .gpu = {.id = "toy-10", .name = "Toy", .sms = 10, .tdp_w = 100, .idle_w = NAN}};
    for (size_t i = 0; i < LAYERS; i++) {
        stage->layers[i] = (struct wg_layer){
            .name = names[i], .op = "Conv", .kind = i == 2 ? WG_LAYER_BYTES : WG_LAYER_GEMM};
        stage->rows[i] = (struct wg_wave_row){
            .layer = &stage->layers[i],
            .has_gemm = i != 2,
            .gemm = {.dtype = WG_DTYPE_FP16, .batch = 1 + i, .m = 12544, .n = 64, .k = 147},
            .is_predicted = true,
            .stream_k_s = NAN,
            .measured_s = NAN,
            .measured_tail_s = NAN,
            .prediction = {.time_s = 1e-3,
                           .low_s = 0.8e-3,
                           .high_s = 1.5e-3,
                           .origin = WG_ORIGIN_MODEL,
                           .kernel = {.tile_m = 128, .tile_n = 64, .split_k = 1},
                           .blocks = 98,
                           .waves = 9.8,
                           .tile_efficiency = 1,
                           .wave_efficiency = 0.98}};
    }
    stage->rows[0].prediction.tail_s = 0.5e-3;
    stage->rows[0].waste = 0.5;
    stage->rows[0].stream_k_s = 0.25e-3;
    stage->rows[0].measured_s = 0.9e-3;
    stage->rows[2].prediction.blocks = 0;
    stage->rows[2].prediction.kernel = (struct wg_kernel){0};
    stage->rows[3].is_predicted = false;
    stage->rows[3].waste = NAN;
    stage->rows[3].prediction =
        (struct wg_prediction){.time_s = NAN, .low_s = NAN, .high_s = NAN, .tail_s = NAN};
}

static void add_report(struct stage *stage)
{
    for (uint32_t i = 0; i < POINTS; i++)
        stage->points[i] = (struct wg_batch_point){.batch = i + 1,
                                                   .time_s = i < 4 ? 1 : 2,
                                                   .per_s = (i + 1.0) / (i < 4 ? 1 : 2),
                                                   .next_s = i == 3 ? 1 : 0,
                                                   .is_best = i < 4,
                                                   .free_to = 4};
    stage->points[POINTS - 1].next_s = NAN;
    stage->model = (struct wg_wave_model){.name = "toy.onnx",
                                          .kind = "onnx",
                                          .batch = 2,
                                          .dtype = WG_DTYPE_FP16,
                                          .graph = &stage->graph,
                                          .network = &stage->network};
    stage->report = (struct wg_wave_report){.model = &stage->model,
                                            .count = 1,
                                            .kinds_shown = SIZE_MAX,
                                            .max_waste = NAN,
                                            .max_total_waste = NAN,
                                            .command = "wattgov wave analyze toy.onnx"};
    stage->report.analyses[0] =
        (struct wg_wave_analysis){.gpu = &stage->gpu,
                                  .network = &stage->network,
                                  .rows = stage->rows,
                                  .count = LAYERS,
                                  .samples = 2,
                                  .points = stage->points,
                                  .point_count = POINTS,
                                  .total = {.time_s = 3e-3,
                                            .low_s = 2.4e-3,
                                            .high_s = 4.5e-3,
                                            .tail_s = 0.5e-3,
                                            .waste = 1 / 6.0,
                                            .idle_sm_s = 5e-3,
                                            .idle_least_j = NAN,
                                            .idle_most_j = 0.05,
                                            .measured_s = 0.9e-3,
                                            .compared_s = 0.9e-3,
                                            .compared_predicted_s = 1e-3,
                                            .predicted = 3,
                                            .unpredicted = 1,
                                            .origin_s = {[WG_ORIGIN_MODEL] = 3e-3},
                                            .bound_s = {[WG_BOUND_COMPUTE] = 3e-3}}};
}

static void stage_open(struct stage *stage)
{
    add_layers(stage);
    add_report(stage);
}

/* A least of a tenth of the most is no "0.0 J". */
static void joules_have_digits_of_any_size(void **state)
{
    (void)state;
    static const struct {
        double least_j, most_j;
        const char *text;
    } cases[] = {{1e-6, 2e-5, "at most 0.02 mJ (at the power limit), at least 0.001 mJ (idle"},
                 {0.0185, 0.135, "at most 135 mJ (at the power limit), at least 18.5 mJ (idle"},
                 {0.04, 1.5, "at most 1.5 J (at the power limit), at least 40 mJ (idle"},
                 {20, 12000, "at most 12.00 kJ (at the power limit), at least 20.0 J (idle"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage stage;
        struct wg_buffer out;
        stage_open(&stage);
        stage.report.analyses[0].total.idle_least_j = cases[i].least_j;
        stage.report.analyses[0].total.idle_most_j = cases[i].most_j;
        wg__buffer_init(&out);
        wg__wave_text(&stage.report, false, &out);
        assert_false(out.failed);
        if (strstr(out.data, cases[i].text) == NULL)
            fail_msg("'%s' is not in\n%s", cases[i].text, out.data);
        wg__buffer_fini(&out);
    }
}

static void the_text_says_it_all(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "toy.onnx at batch 2, fp16, on toy-10 (10 SMs)\n",
        "12544x64x147",
        "2*12544x64x147",
        "128x64",
        "9.80",
        "-20 +50",
        "predicted: 3.000 ms (2.400 ms .. 4.500 ms)",
        "; measured: 0.900 ms, where 1.000 ms are predicted\n",
        "recoverable: 0.500 ms, 16.7 %, are tails\n",
        "idle meanwhile: 0.005 SM-seconds, at most 50 mJ (at the power limit)\n",
        "batch: 2 -> 4 is free; most samples a second up to 6: 4 at 4 (2 at 2)\n",
        "note: 1 layer has no prediction and is in no total\n",
    };
    struct stage stage;
    struct wg_buffer out;
    stage_open(&stage);
    wg__buffer_init(&out);
    wg__wave_text(&stage.report, false, &out);
    assert_false(out.failed);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(out.data, parts[i]) == NULL)
            fail_msg("'%s' is not in\n%s", parts[i], out.data);
    assert_null(strstr(out.data, "nan"));
    wg__buffer_fini(&out);
    stage.report.kinds_shown = 1; /* that with the longest tail */
    wg__wave_text(&stage.report, false, &out);
    assert_non_null(strstr(out.data, "conv <1>"));
    assert_null(strstr(out.data, "relu"));
    assert_non_null(strstr(out.data, "The 1 of 4 kinds of layers"));
    wg__buffer_fini(&out);
}

static void the_json_has_what_the_text_has(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer out;
    stage_open(&stage);
    wg__buffer_init(&out);
    wg__wave_json(&stage.report, &out);
    json_t *root = json_loads(out.data, 0, NULL);
    assert_non_null(root);
    json_t *gpu = json_array_get(json_object_get(root, "gpus"), 0);
    json_t *total = json_object_get(gpu, "total"), *layers = json_object_get(gpu, "layers");
    assert_string_equal(json_string_value(json_object_get(root, "schema")),
                        "wattgov.wave.analyze/1");
    assert_int_equal(json_array_size(layers), LAYERS);
    check_close(json_number_value(json_object_get(total, "recoverable_s")), 0.5e-3, 1e-15);
    assert_true(json_is_null(json_object_get(total, "idle_energy_least_j")));
    assert_true(json_is_null(json_object_get(root, "max_waste")));
    json_t *bytes = json_array_get(layers, 2), *odd = json_array_get(layers, 3);
    assert_true(json_is_null(json_object_get(bytes, "gemm")));
    assert_true(json_is_null(json_object_get(bytes, "waves")));
    assert_true(json_is_null(json_object_get(odd, "time_s")));
    assert_true(json_is_null(json_object_get(odd, "bound")));
    json_t *batches = json_object_get(gpu, "batches");
    assert_int_equal(json_integer_value(json_object_get(batches, "free_to")), 4);
    assert_int_equal(json_array_size(json_object_get(batches, "points")), POINTS);
    json_decref(root);
    wg__buffer_fini(&out);
}

static void the_csv_reads_back(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer out;
    struct wg_csv *csv = NULL;
    bool has_record = false;
    size_t name = 0, tail = 0, rows = 0;
    stage_open(&stage);
    wg__buffer_init(&out);
    wg__wave_csv(&stage.report, &out);
    assert_int_equal(wg__csv_open_memory(&csv, "t", out.data, out.length, NULL), WG_OK);
    assert_int_equal(wg__csv_column(csv, "layer", &name, NULL), WG_OK);
    assert_int_equal(wg__csv_column(csv, "tail_s", &tail, NULL), WG_OK);
    while (wg__csv_next(csv, &has_record, NULL) == WG_OK && has_record) {
        assert_string_equal(wg__csv_text(csv, name), stage.layers[rows].name);
        assert_string_equal(wg__csv_text(csv, tail), rows == 0 ? "0.0005" : rows < 3 ? "0" : "");
        rows++;
    }
    assert_int_equal(rows, LAYERS);
    wg__csv_close(csv);
    wg__buffer_fini(&out);
    wg__wave_batches_csv(&stage.report.analyses[0], &out);
    assert_string_equal(out.data, "batch_size,time_s,samples_per_s,next_sample_s,free_to\n"
                                  "1,1,1,0,4\n2,1,2,0,4\n3,1,3,0,4\n4,1,4,1,4\n");
    wg__buffer_fini(&out);
}

static void more_best_batches_than_a_list_holds_keep_the_largest(void **state)
{
    (void)state;
    struct wg_batch_point points[70];
    struct wg_wave_analysis analysis = {.points = points, .point_count = 70};
    struct wg_buffer out;
    for (uint32_t i = 0; i < 70; i++)
        points[i] = (struct wg_batch_point){.batch = i + 1, .is_best = true};
    wg__buffer_init(&out);
    wg__wave_batches_csv(&analysis, &out);
    assert_int_equal(count_of(out.data, "\n"), 1 + 64);
    assert_non_null(strstr(out.data, "free_to\n7,"));
    assert_non_null(strstr(out.data, "\n70,"));
    wg__buffer_fini(&out);
}

static void the_page_is_well_formed(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer out;
    stage_open(&stage);
    wg__buffer_init(&out);
    wg__wave_page(&stage.report, &out);
    assert_false(out.failed);
    check_well_formed(out.data);
    assert_int_equal(count_of(out.data, "fill-opacity=\".3\""), 2); /* wide, phone */
    assert_non_null(strstr(out.data, "conv &lt;1&gt;"));
    assert_null(strstr(out.data, ">nan"));
    wg__buffer_fini(&out);
}

static void what_wastes_too_much_is_named(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer out;
    stage_open(&stage);
    wg__buffer_init(&out);
    assert_false(wg__wave_waste_text(&stage.report, &out));
    stage.report.max_waste = stage.report.max_total_waste = 0.5; /* more than that, not as much */
    assert_false(wg__wave_waste_text(&stage.report, &out));
    stage.report.max_waste = 0.49;
    assert_true(wg__wave_waste_text(&stage.report, &out));
    assert_string_equal(out.data, "1 layer wastes more than 49 % on toy-10: conv <1> (50.0 %)");
    wg__buffer_fini(&out);
    stage.report.max_waste = NAN;
    stage.report.max_total_waste = 0.15;
    assert_true(wg__wave_waste_text(&stage.report, &out));
    assert_string_equal(out.data, "the layers together waste 16.7 % on toy-10, more than 15 %");
    wg__buffer_fini(&out);
}

static void gpus_are_compared_by_whole_waves(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer out;
    stage_open(&stage);
    struct wg_gpu_spec larger = stage.gpu;
    larger.id = "toy-33";
    larger.sms = 33;
    stage.report.analyses[1] = stage.report.analyses[0];
    stage.report.analyses[1].gpu = &larger;
    stage.report.count = 2;
    wg__buffer_init(&out);
    wg__wave_text(&stage.report, false, &out);
    /* ceil(98 / 10) / ceil(98 / 33) */
    assert_non_null(strstr(out.data, "Speed-up over toy-10"));
    assert_int_equal(count_of(out.data, "      3.33  "), 2);
    wg__buffer_fini(&out);
    wg__wave_page(&stage.report, &out);
    check_well_formed(out.data);
    wg__buffer_fini(&out);
}

static void long_names_keep_their_ends(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer out;
    stage_open(&stage);
    stage.layers[0].name =
        "/model/encoder/\xc3\xa4\xc3\xa4\xc3\xa4/layer.11/attention/query/MatMul";
    wg__buffer_init(&out);
    wg__wave_text(&stage.report, false, &out);
    assert_non_null(strstr(out.data, "..er.11/attention/query/MatMul  "));
    wg__buffer_fini(&out);
}

static void memory_that_runs_out_is_remembered(void **state)
{
    (void)state;
    static void (*const writers[])(const struct wg_wave_report *, struct wg_buffer *) = {
        wg__wave_json, wg__wave_csv, wg__wave_page};
    struct stage stage;
    stage_open(&stage);
    for (size_t i = 0; i <= sizeof writers / sizeof *writers; i++) {
        bool failed = true;
        for (size_t nth = 1; failed && nth < 2000; nth++) {
            struct wg_buffer out;
            wg__buffer_init(&out);
            wg__alloc_fail_from(nth);
            if (i < sizeof writers / sizeof *writers)
                writers[i](&stage.report, &out);
            else
                wg__wave_text(&stage.report, false, &out);
            failed = nth <= wg__alloc_count();
            wg__alloc_fail_from(0);
            assert_int_equal(out.failed, failed);
            wg__buffer_fini(&out);
        }
        assert_false(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joules_have_digits_of_any_size),
        cmocka_unit_test(the_text_says_it_all),
        cmocka_unit_test(the_json_has_what_the_text_has),
        cmocka_unit_test(the_csv_reads_back),
        cmocka_unit_test(more_best_batches_than_a_list_holds_keep_the_largest),
        cmocka_unit_test(the_page_is_well_formed),
        cmocka_unit_test(what_wastes_too_much_is_named),
        cmocka_unit_test(gpus_are_compared_by_whole_waves),
        cmocka_unit_test(long_names_keep_their_ends),
        cmocka_unit_test(memory_that_runs_out_is_remembered),
    };
    return run_tests(tests);
}
