/* SPDX-License-Identifier: MIT
 *
 * Tests of cli/wave_sweep.h: ranges, and what is written about them.
 */
#include "cli/wave_sweep.h"

#include <string.h>

#include "base/alloc.h"
#include "base/csv.h"
#include "support/wave_stage.h"
#include "wave/layer_predict.h"

static const struct wg_layer linear = {
    .name = "fc",
    .op = "Gemm",
    .kind = WG_LAYER_GEMM,
    .gemm = {.dtype = WG_DTYPE_FP32, .batch = 1, .m = 512, .n = 1000, .k = 2048}};

static struct wg_wave_sweep swept(const struct wave_stage *stage, const struct wg_layer *layer,
                                  struct wg_wave_sweep_opts opts)
{
    struct wg_wave_sweep sweep = {0};
    struct wg_error err = {0};
    if (wg__wave_sweep(&sweep, stage->model, layer, &opts, &err) != WG_OK)
        fail_msg("%s", err.text);
    sweep.gpu = wg__gpu_table_at(stage->table, 0);
    return sweep;
}

static void chooses_a_range_around_the_present_size(void **state)
{
    static const struct {
        struct wg_wave_sweep_opts opts;
        uint64_t n, first, last;
        size_t count;
    } cases[] = {
        {{.axis = WG_SWEEP_FILTERS, .samples = 512}, 1000, 1, 2000, 2000},
        {{.axis = WG_SWEEP_FILTERS, .samples = 512}, 4096, 2, 8192, 4096},
        {{.axis = WG_SWEEP_FILTERS, .samples = 512}, 4097, 4, 8192, 2049}, /* the present one too */
        {{.axis = WG_SWEEP_FILTERS, .samples = 512, .step = 8}, 1000, 8, 2000, 250},
        {{.axis = WG_SWEEP_FILTERS, .samples = 512, .from = 900, .to = 1100, .step = 50},
         1000,
         900,
         1100,
         5},
        {{.axis = WG_SWEEP_FILTERS, .samples = 512, .from = 900, .to = 1100, .step = 7},
         1000,
         900,
         1096,
         30},
        {{.axis = WG_SWEEP_FILTERS, .samples = 512, .from = 3000}, 1000, 1000, 6000, 3002},
        {{.axis = WG_SWEEP_FILTERS, .samples = 512, .to = 500}, 1000, 1, 1000, 501},
        {{.axis = WG_SWEEP_BATCH, .samples = 512}, 1000, 1, 1024, 1024},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wg_layer layer = linear;
        layer.gemm.n = cases[i].n;
        struct wg_wave_sweep sweep = swept(*state, &layer, cases[i].opts);
        if (sweep.count != cases[i].count || sweep.points[0].value != cases[i].first ||
            sweep.points[sweep.count - 1].value != cases[i].last)
            fail_msg("case %zu: %zu points from %llu to %llu", i, sweep.count,
                     (unsigned long long)sweep.points[0].value,
                     (unsigned long long)sweep.points[sweep.count - 1].value);
        assert_int_equal(sweep.points[sweep.now].value, sweep.present);
        assert_int_equal(sweep.stair.value, sweep.present);
        for (size_t j = 1; j < sweep.count; j++)
            assert_true(sweep.points[j].value > sweep.points[j - 1].value);
        wg__wave_sweep_fini(&sweep);
    }
}

static void keeps_to_what_groups_divide(void **state)
{
    struct wg_layer layer = wave_conv;
    layer.conv.groups = 32;
    const struct wg_wave_sweep_opts opts = {.axis = WG_SWEEP_FILTERS, .samples = 32};
    struct wg_wave_sweep sweep = swept(*state, &layer, opts);
    assert_int_equal(sweep.count, 16);
    for (size_t i = 0; i < sweep.count; i++)
        assert_int_equal(sweep.points[i].value, 32 * (i + 1));
    wg__wave_sweep_fini(&sweep);
    layer.conv.groups = layer.conv.c; /* depth-wise, one filter a channel */
    sweep = swept(*state, &layer, opts);
    assert_int_equal(sweep.count, 512);
    check_close(sweep.flops[9], 2.0 * 32 * 14 * 14 * 10 * 9, 0);
    wg__wave_sweep_fini(&sweep);
}

static void refuses_ranges_that_are_none(void **state)
{
    const struct wave_stage *stage = *state;
    static const struct {
        struct wg_wave_sweep_opts opts;
        const char *part;
    } cases[] = {
        {{.axis = WG_SWEEP_FILTERS, .samples = 512, .from = 9, .to = 8}, "is empty"},
        {{.axis = WG_SWEEP_FILTERS, .samples = 512, .to = 100000, .step = 1}, "larger --step"},
        {{.axis = WG_SWEEP_FILTERS, .samples = 512, .to = 1ULL << 33}, "are not swept"},
        {{.axis = WG_SWEEP_RESOLUTION, .samples = 512}, "has no resolution"},
        {{.axis = WG_SWEEP_BATCH, .samples = 0}, "has no batch"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wg_wave_sweep sweep = {0};
        struct wg_error err = {0};
        assert_int_equal(wg__wave_sweep(&sweep, stage->model, &linear, &cases[i].opts, &err),
                         WG_EINVAL);
        if (strstr(err.text, cases[i].part) == NULL)
            fail_msg("case %zu: '%s' lacks '%s'", i, err.text, cases[i].part);
        wg__wave_sweep_fini(&sweep);
    }
}

static void writes_csv_that_reads_back(void **state)
{
    const struct wg_wave_sweep_opts opts = {
        .axis = WG_SWEEP_FILTERS, .samples = 512, .from = 990, .to = 1100, .step = 10};
    struct wg_wave_sweep sweep = swept(*state, &linear, opts);
    struct wg_buffer text;
    struct wg_csv *csv = NULL;
    size_t size, time, flops, rows = 0;
    bool has_record;
    wg__buffer_init(&text);
    wg__wave_sweep_csv(&sweep, &text);
    assert_int_equal(wg__csv_open_memory(&csv, "sweep", text.data, text.length, NULL), WG_OK);
    assert_int_equal(wg__csv_column(csv, "filters", &size, NULL), WG_OK);
    assert_int_equal(wg__csv_column(csv, "time_s", &time, NULL), WG_OK);
    assert_int_equal(wg__csv_column(csv, "flops_per_s", &flops, NULL), WG_OK);
    while (wg__csv_next(csv, &has_record, NULL) == WG_OK && has_record) {
        double time_s, per_s;
        unsigned value;
        assert_int_equal(wg__csv_uint(csv, size, 0, 100000, &value, NULL), WG_OK);
        assert_int_equal(wg__csv_double(csv, time, &time_s, NULL), WG_OK);
        assert_int_equal(wg__csv_double(csv, flops, &per_s, NULL), WG_OK);
        assert_int_equal(value, sweep.points[rows].value);
        check_close(time_s, sweep.points[rows].prediction.time_s, 0);
        check_close(per_s, 2.0 * 512 * 2048 * value / time_s, 1e-12);
        rows++;
    }
    assert_int_equal(rows, sweep.count);
    wg__csv_close(csv);
    wg__buffer_fini(&text);
    wg__wave_sweep_fini(&sweep);
}

static void tells_the_stair_in_words_json_and_a_page(void **state)
{
    const struct wg_wave_sweep_opts opts = {.axis = WG_SWEEP_FILTERS, .samples = 512};
    struct wg_wave_sweep sweep = swept(*state, &linear, opts);
    struct wg_buffer text;
    sweep.model = "net";
    sweep.stair = (struct wg_stair){.value = 1000,
                                    .below = 960,
                                    .above = 1024,
                                    .time_s = 100e-6,
                                    .below_s = 80e-6,
                                    .above_s = 100e-6,
                                    .saved_s_per_channel = 0.5e-6,
                                    .faster = 1280,
                                    .faster_s = 90e-6};
    wg__buffer_init(&text);
    wg__wave_sweep_text(&sweep, false, &text);
    static const char *const words[] = {"net: fc (Gemm) on", "free to      1024       100.0 us",
                                        "down to       960        80.0 us  saves 0.50 us a filter",
                                        "faster       1280        90.0 us  though larger",
                                        "Steps of more than 8 %"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(text.data, words[i]) == NULL)
            fail_msg("'%s' lacks '%s'", text.data, words[i]);
    wg__buffer_fini(&text);
    wg__buffer_init(&text);
    wg__wave_sweep_json(&sweep, &text);
    static const char *const members[] = {"\"schema\":\"wattgov.wave.sweep/1\"",
                                          "\"layer\":\"fc\"",
                                          "\"precision\":\"fp32\"",
                                          "\"free_to\":1024",
                                          "\"below\":960",
                                          "\"faster\":1280",
                                          "{\"value\":2000,"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++)
        if (strstr(text.data, members[i]) == NULL)
            fail_msg("JSON lacks '%s'", members[i]);
    wg__buffer_fini(&text);
    wg__buffer_init(&text);
    wg__wave_sweep_page(&sweep, &text);
    assert_false(text.failed);
    assert_non_null(strstr(text.data, "Staircase of fc"));
    assert_non_null(strstr(text.data, "<svg"));
    assert_non_null(strstr(text.data, "1280"));
    wg__buffer_fini(&text);
    wg__wave_sweep_fini(&sweep);
}

static void survives_each_allocation_that_fails(void **state)
{
    const struct wave_stage *stage = *state;
    const struct wg_wave_sweep_opts opts = {.axis = WG_SWEEP_FILTERS, .samples = 512, .to = 64};
    for (size_t nth = 1;; nth++) {
        struct wg_wave_sweep sweep = {0};
        struct wg_buffer text;
        wg__buffer_init(&text);
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__wave_sweep(&sweep, stage->model, &linear, &opts, NULL);
        sweep.gpu = wg__gpu_table_at(stage->table, 0);
        if (code == WG_OK)
            wg__wave_sweep_page(&sweep, &text);
        wg__alloc_fail_from(0);
        const bool is_done = code == WG_OK && !text.failed;
        assert_true(code == WG_OK || code == WG_ENOMEM);
        wg__buffer_fini(&text);
        wg__wave_sweep_fini(&sweep);
        if (is_done) {
            assert_true(nth > 3);
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses_a_range_around_the_present_size),
        cmocka_unit_test(keeps_to_what_groups_divide),
        cmocka_unit_test(refuses_ranges_that_are_none),
        cmocka_unit_test(writes_csv_that_reads_back),
        cmocka_unit_test(tells_the_stair_in_words_json_and_a_page),
        cmocka_unit_test(survives_each_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, wave_stage_open, wave_stage_close) != 0;
}
