/* SPDX-License-Identifier: MIT
 *
 * What `wattgov train` says at the end, in its three forms, of runs that are made up here.
 */
#include "cli/train_report.h"

#include <string.h>

#include <jansson.h>

#include "base/buffer.h"
#include "support/check.h"

struct stage {
    struct wg_train_request request;
    struct wg_train_result result;
    struct wg_train_report report;
    struct wg_train_point cached[2];
    struct wg_device_info info;
    const struct wg_device_info *infos[1];
    struct wg_train_moment moments[3];
    enum wg_knob knobs[1];
    char *command[3];
};

/* 250 W costs 100 J a step, 150 W 75 J; the search chose 150 W. */
static struct wg_train_stage chosen_150_w(void)
{
    return (struct wg_train_stage){.settings = {.knob = WG_KNOB_POWER_LIMIT,
                                                .count = 2,
                                                .gpu_count = 1,
                                                .setting = {150, 250}},
                                   .best = 0,
                                   .point_count = 2,
                                   .points = {{.setting = 150,
                                               .power_w = 60,
                                               .throughput = 0.8,
                                               .measured_s = 5,
                                               .measurements = 1,
                                               .settle_s = 0.25},
                                              {.setting = 250,
                                               .power_w = 100,
                                               .throughput = 1,
                                               .measured_s = 6,
                                               .measurements = 2,
                                               .settle_s = NAN}},
                                   .steps_at = {100, 10},
                                   .search_s = 12};
}

static void stage_init(struct stage *stage)
{
    static char program[] = "train.sh", argument[] = "<fast>";
    *stage =
        (struct stage){.knobs = {WG_KNOB_POWER_LIMIT},
                       .info = {.kind = WG_DEVICE_GPU, .label = "gpu0", .id = "GPU-1", .name = "V"},
                       .command = {program, argument, NULL}};
    stage->infos[0] = &stage->info;
    stage->request =
        (struct wg_train_request){.gpu_count = 1,
                                  .knobs = stage->knobs,
                                  .knob_count = 1,
                                  .objective = {.kind = WG_OBJECTIVE_COST, .eta = 0.5}};
    struct wg_train_result *result = &stage->result;
    *result = (struct wg_train_result){.is_governed = true,
                                       .time_s = 200,
                                       .max_power_w = 250,
                                       .source = WG_TRAIN_SOURCE_TOLD,
                                       .confidence = 1,
                                       .ranks = 1,
                                       .steps = 110,
                                       .epochs = NAN,
                                       .metric = NAN,
                                       .batch_size = NAN,
                                       .stage_count = 1,
                                       .moments = stage->moments,
                                       .moment_count = 3};
    result->total.energy_j = 8500;
    result->total.power_mean_w = 42.5;
    result->stages[0] = chosen_150_w();
    for (size_t i = 0; i < 3; i++)
        stage->moments[i] =
            (struct wg_train_moment){.t_s = (double)i, .power_w = 60, .limit_w = 150};
    stage->report = (struct wg_train_report){.command = stage->command,
                                             .objective = "cost:0.5",
                                             .infos = stage->infos,
                                             .gpu_count = 1,
                                             .request = &stage->request,
                                             .result = result,
                                             .expected_cost_share = NAN};
}

static void expect_verdict(struct stage *stage, const char *expected)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__train_verdict(&stage->report, &text);
    assert_string_equal(text.data, expected);
    wg__buffer_fini(&text);
}

static void gpus_that_differ_have_a_setting_each(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_init(&stage);
    struct wg_train_settings *settings = &stage.result.stages[0].settings;
    settings->gpu_count = 2;
    settings->value[0][0] = 120; /* 150 on average */
    settings->value[0][1] = 180;
    settings->value[1][0] = settings->value[1][1] = 250;
    wg__buffer_init(&text);
    wg__train_text(&stage.report, false, &text);
    assert_non_null(strstr(text.data, "120 W .. 180 W"));
    assert_non_null(strstr(text.data, "         250 W"));
    assert_null(strstr(text.data, "150 W  "));
    wg__buffer_fini(&text);
}

static void says_what_was_saved_or_why_not(void **state)
{
    (void)state;
    struct stage stage;
    stage_init(&stage);
    /* 100 steps at 25 J less, of 8500 + 2500 J; 100 steps at 0.25 s more, of 200 - 25 s. */
    expect_verdict(&stage, "22.7 ± 0.0 % of the energy (2500.0 J) against the largest setting, in "
                           "14.3 % more time");
    const struct wg_train_stage *first = &stage.result.stages[0];
    assert_string_equal(wg__train_standing(&stage.report, first), "held");
    stage.result.stages[0].search_s = NAN;
    assert_string_equal(wg__train_standing(&stage.report, first), "best so far");
    stage.result.is_governed = false;
    assert_string_equal(wg__train_standing(&stage.report, first), "as it stands");
    stage.result.is_governed = true;
    stage.result.stages[0].search_s = 12;
    char text[WG_QUANTITY_TEXT_SIZE];
    wg__train_slower_text(text, -0.216);
    assert_string_equal(text, "in 21.6 % less time");
    stage.result.stages[0].best = 2;
    expect_verdict(&stage, "unknown: the search did not come to its end");
    stage.result.steps = NAN;
    expect_verdict(&stage, "nothing: without steps nothing is set. The command told none, and its "
                           "power showed no period that can be trusted; tell them by "
                           "$WATTGOV_PROGRESS or --step-regex");
    stage.result.is_governed = false;
    (void)snprintf(stage.result.why_not, sizeof stage.result.why_not, "--observe");
    expect_verdict(&stage, "nothing: only observed (--observe)");
    stage.report.expected_cost_share = 0.123;
    expect_verdict(&stage, "nothing: only observed (--observe); governing would save about 12 % of "
                           "the cost (cost:0.5), by the curves of other jobs at this power");
}

static void rows_compare_with_the_largest_setting(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_train_row row;
    stage_init(&stage);
    wg__train_row(&stage.report, &stage.result.stages[0], 0, &row);
    check_close(row.step_j, 75, 1e-12);
    check_close(row.energy_ratio, 0.75, 1e-12);
    check_close(row.speed_ratio, 0.8, 1e-12);
    /* (0.5 60 + 0.5 250) / 0.8 over (0.5 100 + 0.5 250) / 1 */
    check_close(row.cost_ratio, 155 / 0.8 / 175, 1e-12);
    assert_true(row.is_best);
    assert_false(row.is_remembered);
    stage.result.stages[0].points[1].measurements = 0;
    wg__train_row(&stage.report, &stage.result.stages[0], 0, &row);
    assert_true(isnan(row.energy_ratio) && isnan(row.speed_ratio) && isnan(row.cost_ratio));
}

static void what_an_earlier_run_has_measured_is_told_apart(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_init(&stage);
    stage.cached[0] = stage.result.stages[0].points[0];
    stage.cached[1] = stage.result.stages[0].points[1];
    stage.request.cached = stage.cached;
    stage.request.cached_count = 2;
    wg__buffer_init(&text);
    wg__train_text(&stage.report, false, &text);
    assert_non_null(strstr(text.data, "earlier"));
    assert_non_null(strstr(text.data, "the earlier profile still holds"));
    assert_null(strstr(text.data, "5.0 s"));
    stage.result.stages[0].points[0].measurements++; /* measured again */
    text.length = 0;
    wg__train_text(&stage.report, false, &text);
    assert_non_null(strstr(text.data, "5.0 s"));
    assert_non_null(strstr(text.data, "1 of 2 settings measured"));
    wg__buffer_fini(&text);
}

static void json_has_the_same_numbers(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    double energy_j = 0, share = 0, ratio = 0, best = 0;
    stage_init(&stage);
    wg__buffer_init(&text);
    wg__train_json(&stage.report, &text);
    json_t *root = json_loads(text.data, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_unpack(root, "{s:{s:F}, s:{s:F, s:F}, s:[{s:F, s:[{s:F}]}]}", "total",
                                 "energy_j", &energy_j, "saving", "energy_j", &share,
                                 "energy_share", &ratio, "stages", "best", &best, "profile",
                                 "energy_ratio", &ratio),
                     0);
    check_close(energy_j, 8500, 1e-12);
    check_close(share, 2500, 1e-12);
    check_close(best, 150, 1e-12);
    check_close(ratio, 0.75, 1e-12);
    json_decref(root);
    wg__buffer_fini(&text);
}

static void the_page_escapes_and_names_what_was_saved(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_init(&stage);
    wg__buffer_init(&text);
    wg__train_page(&stage.report, &text);
    assert_false(text.failed);
    assert_non_null(strstr(text.data, "train.sh &lt;fast&gt;"));
    assert_null(strstr(text.data, "<fast>"));
    assert_non_null(strstr(text.data, "Objective: cost:0.5. Saved: 22.7 ± 0.0 % of the energy"));
    assert_non_null(strstr(text.data, "held"));
    wg__buffer_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_that_differ_have_a_setting_each),
        cmocka_unit_test(says_what_was_saved_or_why_not),
        cmocka_unit_test(rows_compare_with_the_largest_setting),
        cmocka_unit_test(what_an_earlier_run_has_measured_is_told_apart),
        cmocka_unit_test(json_has_the_same_numbers),
        cmocka_unit_test(the_page_escapes_and_names_what_was_saved),
    };
    return run_tests(tests);
}
