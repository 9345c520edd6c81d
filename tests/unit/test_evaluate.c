/* SPDX-License-Identifier: MIT
 *
 * Tests of wave/evaluate.h: measures against values counted by hand.
 */
#include "wave/evaluate.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

enum { MOST = 64 };

struct curve {
    struct wg_measured measured[MOST];
    struct wg_evaluated rows[MOST];
    size_t count;
};

static void add(struct curve *curve, uint64_t n, uint64_t m, double measured, double predicted)
{
    size_t i = curve->count++;
    curve->measured[i] = (struct wg_measured){
        .gemm = {.dtype = WG_DTYPE_FP16, .batch = 1, .m = m, .n = n, .k = 64}, .time_s = measured};
    curve->rows[i] = (struct wg_evaluated){.row = &curve->measured[i],
                                           .predicted_s = predicted,
                                           .low_s = predicted * 0.9,
                                           .high_s = predicted * 1.1,
                                           .full_s = predicted,
                                           .waves = 0.5,
                                           .roofline_s = measured / 2};
}

static void counts_errors_and_what_the_range_holds(void **state)
{
    (void)state;
    struct curve curve = {.count = 0};
    struct wg_evaluation out;
    add(&curve, 8, 8, 10, 11);
    add(&curve, 8, 16, 10, 8);
    add(&curve, 8, 24, 10, 10);
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    assert_int_equal(out.rows, 3);
    check_close(out.mape, 0.1, 1e-12);
    check_close(out.median_ape, 0.1, 1e-12);
    check_close(out.roofline_mape, 0.5, 1e-12);
    check_close(out.coverage, 2.0 / 3, 1e-12); /* 8.8 holds not 10 */
    assert_true(isnan(out.step_recall) && isnan(out.step_precision) && isnan(out.cliff_auc));
    assert_true(isnan(out.share_of_best) && isnan(out.best_fixed_multiple));
    assert_true(isnan(out.spearman_tail));
}

static void counts_steps_of_near_sizes_on_one_curve(void **state)
{
    (void)state;
    struct curve curve = {.count = 0};
    struct wg_evaluation out;
    add(&curve, 8, 72, 11, 11); /* rows come in any order: found and told */
    add(&curve, 8, 64, 10, 10);
    add(&curve, 8, 80, 12.5, 11); /* a step, not told */
    add(&curve, 8, 88, 12.5, 12); /* told, no step */
    add(&curve, 8, 200, 50, 50);  /* too far to be one */
    add(&curve, 16, 208, 90, 90); /* another curve */
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    assert_int_equal(out.steps, 2);
    check_close(out.step_recall, 0.5, 1e-12);
    check_close(out.step_precision, 0.5, 1e-12);
}

static void parts_curves_of_operators_from_those_that_name_none(void **state)
{
    (void)state;
    static const char *const ops[] = {"b", NULL, "a", NULL, "b", "a"};
    struct curve curve = {.count = 0};
    struct wg_evaluation out;
    /* On each curve 64 -> 80 is a step; between two curves there would be others. */
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const double scale = ops[i] == NULL ? 1 : ops[i][0] == 'a' ? 10 : 100;
        add(&curve, 8, i < 3 ? 64 : 80, scale * (i < 3 ? 1 : 1.2), scale * (i < 3 ? 1 : 1.2));
        curve.measured[i].op = ops[i];
    }
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    assert_int_equal(out.steps, 3);
    check_close(out.step_recall, 1.0, 1e-12);
    check_close(out.step_precision, 1.0, 1e-12);
}

static void counts_rows_that_were_recalled(void **state)
{
    (void)state;
    struct curve curve = {.count = 0};
    struct wg_evaluation out;
    add(&curve, 8, 8, 10, 11);
    add(&curve, 8, 16, 10, 10);
    curve.rows[1].is_recalled = true;
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    assert_int_equal(out.rows, 2);
    assert_int_equal(out.recalled, 1);
}

static void add_in_fold(struct curve *curve, unsigned fold, const double *measured,
                        const double *predicted)
{
    for (size_t i = 0; i < 4; i++) {
        add(curve, UINT64_C(8) * fold, 64 + 8 * i, measured[i], predicted[i]);
        curve->rows[curve->count - 1].fold = fold;
    }
}

static void tells_steps_of_a_fold_by_what_the_others_exceed(void **state)
{
    (void)state;
    struct curve curve = {.count = 0};
    struct wg_evaluation out;
    /* One step in three in both. Above the second of 5, 3 and 1 %: one of 4, 2 and 1 %. Above the
     * second of these: two of 5, 3 and 1 %, one of them no step. */
    add_in_fold(&curve, 1, (double[]){10, 12, 12, 12},
                (double[]){10, 10.4, 10.4 * 1.02, 10.4 * 1.02 * 1.01});
    add_in_fold(&curve, 2, (double[]){10, 11, 11, 11},
                (double[]){10, 10.5, 10.5 * 1.03, 10.5 * 1.03 * 1.01});
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    assert_int_equal(out.steps, 2);
    check_close(out.step_recall, 1.0, 1e-12);
    check_close(out.step_precision, 2.0 / 3, 1e-12);
    check_close(out.told_rise, (0.03 + 0.02) / 2, 1e-9);
    /* The same without folds: above 7 %. */
    for (size_t i = 0; i < curve.count; i++)
        curve.rows[i].fold = 0;
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    check_close(out.step_recall, 0.0, 1e-12);
    check_close(out.told_rise, 0.07, 1e-9);
    /* Other folds without a step, or of another dtype, teach nothing. */
    for (size_t i = 0; i < curve.count; i++) {
        curve.rows[i].fold = i < 4 ? 1 : 2;
        curve.measured[i].gemm.dtype =
            curve.measured[i].gemm.n == 8 ? WG_DTYPE_FP16 : WG_DTYPE_BF16;
    }
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    check_close(out.told_rise, 0.07, 1e-9);
}

static void ranks_cliffs_by_the_rise_told(void **state)
{
    (void)state;
    static const double rises[][2] = {{1.2, 1.3}, {1.0, 1.2}, {1.15, 1.1}, {1.05, 1.0}};
    struct curve curve = {.count = 0};
    struct wg_evaluation out;
    for (size_t i = 0; i < 4; i++) {
        add(&curve, 8 + i, 128, 10, 10);
        add(&curve, 8 + i, 129, 10 * rises[i][0], 10 * rises[i][1]);
    }
    add(&curve, 99, 80, 10, 10); /* no multiple of 64 */
    add(&curve, 99, 81, 20, 5);
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    assert_int_equal(out.cliff_places, 4);
    assert_int_equal(out.cliffs, 2);
    check_close(out.cliff_auc, 0.75, 1e-12); /* of 4 pairs, 1.1 < 1.2 is wrong */
    for (size_t i = 0; i < curve.count; i++)
        curve.rows[i].predicted_s = 1.0;
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    check_close(out.cliff_auc, 0.5, 1e-12); /* ties say nothing */
}

static void measures_advice_against_the_best_of_each_window(void **state)
{
    (void)state;
    struct curve curve = {.count = 0};
    struct wg_evaluation out;
    add(&curve, 8, 120, 10, 10); /* 12 a second */
    add(&curve, 8, 128, 10, 12); /* 12.8: the best, and the multiple of 64 */
    add(&curve, 8, 136, 17, 11); /* 8: advised */
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    assert_int_equal(out.windows, 2);
    check_close(out.share_of_best, (8 / 12.8 + 8 / 12.8) / 2, 1e-12);
    check_close(out.best_fixed_multiple, 1.0, 1e-12);
    assert_int_equal(out.fixed_multiple, 64);
}

static void ranks_tails_of_full_grids(void **state)
{
    (void)state;
    struct curve curve = {.count = 0};
    struct wg_evaluation out;
    for (unsigned i = 0; i < 40; i++) {
        add(&curve, 8, 8 + i, 10 + i, 10 + i);
        curve.rows[i].full_s = 10;
        curve.rows[i].waves = 2.5;
    }
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    check_close(out.spearman_tail, 1.0, 1e-12);
    for (unsigned i = 0; i < 40; i++)
        curve.rows[i].predicted_s = 100.0 - curve.rows[i].row->time_s;
    assert_int_equal(wg__evaluate(&out, curve.rows, curve.count, NULL), WG_OK);
    check_close(out.spearman_tail, -1.0, 1e-12);
}

static const struct wg_gpu_spec toy = {.id = "toy",
                                       .name = "Toy",
                                       .arch = "ampere",
                                       .sms = 10,
                                       .boost_clock_hz = 1e9,
                                       .memory_bandwidth_bytes_per_s = 1e11,
                                       .tdp_w = 100,
                                       .dense_flops = {[WG_DTYPE_FP16] = 1e13}};

enum { SHAPES = 12, SIZES = 40, TOY_ROWS = SHAPES * SIZES };
static struct wg_measured toy_rows[TOY_ROWS];
static struct wg_evaluated toy_out[TOY_ROWS], toy_again[TOY_ROWS];

/* A library with one kernel of 128x128, which for an odd number of row tiles takes 1.5 as long. */
static void make_toy(void)
{
    for (size_t i = 0; i < TOY_ROWS; i++) {
        uint64_t n = 256 + 128 * (i / SIZES), m = 32 * (i % SIZES + 1), k = 1024;
        const uint64_t rows = (m + 127) / 128, columns = n / 128;
        double tiles = (double)rows, blocks = tiles * (double)columns;
        double block_s = 2.0 * 128 * 128 * (double)k / 1e12;
        toy_rows[i] = (struct wg_measured){
            .gemm = {.dtype = WG_DTYPE_FP16, .batch = 1, .m = m, .n = n, .k = k},
            .time_s = (ceil(blocks / 10) * block_s + 2e-6) * (fmod(tiles, 2.0) > 0 ? 1.5 : 1.0)};
    }
}

static void predicts_folds_from_other_shapes(void **state)
{
    (void)state;
    struct wg_evaluation out;
    struct wg_error err;
    make_toy();
    assert_int_equal(wg__evaluate_folds(&toy, toy_rows, TOY_ROWS, 3, 1, toy_out, &err), WG_OK);
    assert_int_equal(wg__evaluate_folds(&toy, toy_rows, TOY_ROWS, 3, 1, toy_again, &err), WG_OK);
    for (size_t i = 0; i < TOY_ROWS; i++)
        check_close(toy_out[i].predicted_s, toy_again[i].predicted_s, 0);
    assert_int_equal(wg__evaluate(&out, toy_out, TOY_ROWS, NULL), WG_OK);
    assert_true(out.mape < 0.2 && out.mape < out.roofline_mape / 2);
    assert_true(out.coverage > 0.75);
    assert_true(out.step_recall > 0.75 && out.step_precision > 0.75);
}

static void refuses_folds_beyond_reason(void **state)
{
    (void)state;
    struct wg_error err;
    struct wg_evaluation out;
    make_toy();
    assert_int_equal(wg__evaluate_folds(&toy, toy_rows, TOY_ROWS, 1, 1, toy_out, &err), WG_EINVAL);
    assert_int_equal(wg__evaluate_folds(&toy, toy_rows, TOY_ROWS, 65, 1, toy_out, &err), WG_EINVAL);
    assert_int_equal(wg__evaluate(&out, toy_out, 0, &err), WG_EDATA);
}

static void tells_what_folds_leave_to_learn_from(void **state)
{
    (void)state;
    struct wg_error err;
    make_toy();
    for (size_t i = 0; i < TOY_ROWS; i++)
        toy_rows[i].gemm.n = toy_rows[i].gemm.k = 512;
    assert_int_equal(wg__evaluate_folds(&toy, toy_rows, TOY_ROWS, 2, 1, toy_out, &err), WG_EDATA);
    assert_non_null(strstr(err.text, "all 480 measurements fall into one of 2 folds"));
    make_toy();
    assert_int_equal(wg__evaluate_folds(&toy, toy_rows, SIZES + 3, 64, 1, toy_out, &err), WG_EDATA);
    assert_non_null(strstr(err.text, "without fold "));
    assert_non_null(strstr(err.text, " of 64: cannot calibrate"));
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    struct curve curve = {.count = 0};
    struct wg_evaluation out;
    add(&curve, 8, 64, 10, 10);
    for (size_t nth = 1; nth <= 2; nth++) {
        wg__alloc_fail_from(nth);
        enum wg_code code = wg__evaluate(&out, curve.rows, curve.count, NULL);
        wg__alloc_fail_from(0);
        assert_int_equal(code, WG_ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_errors_and_what_the_range_holds),
        cmocka_unit_test(counts_steps_of_near_sizes_on_one_curve),
        cmocka_unit_test(parts_curves_of_operators_from_those_that_name_none),
        cmocka_unit_test(counts_rows_that_were_recalled),
        cmocka_unit_test(tells_steps_of_a_fold_by_what_the_others_exceed),
        cmocka_unit_test(ranks_cliffs_by_the_rise_told),
        cmocka_unit_test(measures_advice_against_the_best_of_each_window),
        cmocka_unit_test(ranks_tails_of_full_grids),
        cmocka_unit_test(predicts_folds_from_other_shapes),
        cmocka_unit_test(refuses_folds_beyond_reason),
        cmocka_unit_test(tells_what_folds_leave_to_learn_from),
        cmocka_unit_test(survives_lack_of_memory),
    };
    return run_tests(tests);
}
