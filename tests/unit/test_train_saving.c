/* SPDX-License-Identifier: MIT
 *
 * What governing has saved, against sums done by hand.
 */
#include "live/train_runner.h"

#include "support/check.h"

/* Two settings: 250 W at 100 W x 1 step/s, 150 W at 60 W x 0.8 steps/s; so a step costs 100 J or
 * 75 J. */
static struct wg_train_result one_stage(void)
{
    struct wg_train_result result = {.is_governed = true, .stage_count = 1, .time_s = 135};
    struct wg_train_stage *stage = &result.stages[0];
    stage->settings = (struct wg_train_settings){
        .knob = WG_KNOB_POWER_LIMIT, .count = 3, .gpu_count = 1, .setting = {150, 200, 250}};
    stage->best = 0;
    stage->point_count = 2;
    stage->points[0] = (struct wg_train_point){.setting = 150,
                                               .power_w = 60,
                                               .throughput = 0.8,
                                               .power_sd = 0.6,
                                               .throughput_sd = 0,
                                               .measurements = 1};
    stage->points[1] =
        (struct wg_train_point){.setting = 250, .power_w = 100, .throughput = 1, .measurements = 2};
    /* 10 steps at the largest, 5 at one that was not measured, 96 at the best. */
    stage->steps_at[2] = 10;
    stage->steps_at[1] = 5;
    stage->steps_at[0] = 96;
    result.total.energy_j = 10 * 100 + 5 * 100 + 96 * 75;
    return result;
}

static void compares_with_the_largest_setting(void **state)
{
    (void)state;
    const struct wg_train_result result = one_stage();
    struct wg_train_saving saving;
    wg__train_saving(&result, &saving);
    assert_true(saving.is_known);
    check_close(saving.energy_j, 96 * 25.0, 1e-12);
    check_close(saving.energy_share, 96 * 25.0 / 11100, 1e-12);
    check_close(saving.slower_share, (96 / 0.8 - 96) / (135 - 24.0), 1e-12);
    check_close(saving.share_error, 1.96 * 96 * 100 * 0.01 / 11100, 1e-12);
}

static void holding_the_largest_saves_exactly_nothing(void **state)
{
    (void)state;
    struct wg_train_result result = one_stage();
    struct wg_train_saving saving;
    result.stages[0].best = 2;
    result.stages[0].steps_at[2] += result.stages[0].steps_at[0];
    result.stages[0].steps_at[0] = 0;
    wg__train_saving(&result, &saving);
    assert_true(saving.is_known);
    check_close_abs(saving.energy_j, 0, 0, 1e-12);
    check_close_abs(saving.share_error, 0, 0, 1e-12);
}

static void a_second_knob_is_measured_by_the_first_ones_yardstick(void **state)
{
    (void)state;
    struct wg_train_result result = one_stage();
    struct wg_train_saving saving;
    struct wg_train_stage *second = &result.stages[1];
    result.stage_count = 2;
    second->settings = (struct wg_train_settings){
        .knob = WG_KNOB_GPU_CLOCK, .count = 2, .gpu_count = 1, .setting = {1e9, 2e9}};
    second->best = 1; /* unhindered: the limit does it all */
    second->point_count = 1;
    second->points[0] = (struct wg_train_point){
        .setting = 2e9, .power_w = 60, .throughput = 0.8, .measurements = 1};
    second->steps_at[1] = 40;
    result.total.energy_j += 40 * 75;
    wg__train_saving(&result, &saving);
    check_close(saving.energy_j, (96 + 40) * 25.0, 1e-12);
    check_close(saving.energy_share, (96 + 40) * 25.0 / 15100, 1e-12);
}

static void says_nothing_without_both_measurements(void **state)
{
    (void)state;
    struct wg_train_result result = one_stage();
    struct wg_train_saving saving;
    result.stages[0].points[1].measurements = 0;
    wg__train_saving(&result, &saving);
    assert_false(saving.is_known);
    assert_true(isnan(saving.energy_j));
    result = one_stage();
    result.stages[0].best = 3;
    wg__train_saving(&result, &saving);
    assert_false(saving.is_known);
    result = one_stage();
    result.stages[0].steps_at[1] = 12; /* of 118, at a setting that was not measured */
    wg__train_saving(&result, &saving);
    assert_false(saving.is_known);
    result = one_stage();
    result.total.energy_j = NAN;
    wg__train_saving(&result, &saving);
    assert_false(saving.is_known);
    assert_true(isnan(saving.energy_share));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_with_the_largest_setting),
        cmocka_unit_test(holding_the_largest_saves_exactly_nothing),
        cmocka_unit_test(a_second_knob_is_measured_by_the_first_ones_yardstick),
        cmocka_unit_test(says_nothing_without_both_measurements),
    };
    return run_tests(tests);
}
