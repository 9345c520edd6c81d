/* SPDX-License-Identifier: MIT
 *
 * What `wattgov tune` says at the end, in its three forms, of results that are made up here.
 */
#include "cli/tune_report.h"

#include <string.h>

#include <jansson.h>

#include "base/buffer.h"
#include "cli/table.h"
#include "support/check.h"

enum { TRIALS = 4, FIGURES = 6 };

struct stage {
    struct wg_tune_args args;
    struct wg_tune_setup setup;
    struct wg_tune_result result;
    struct wg_tune_report report;
    struct wg_tune_knob *knob;
    struct wg_tune_trial trials[TRIALS];
    struct wg_workload_figure figures[TRIALS][FIGURES];
    char workload[32];
};

static void put_figure(struct wg_workload_figure *figure, const char *name, double value)
{
    (void)snprintf(figure->name, sizeof figure->name, "%s", name);
    figure->value = value;
}

/* A trial of 5 s at 200 W that served 333 requests flat out. */
static void add_trial(struct stage *stage, size_t configuration, double objective, double p99_s)
{
    const size_t i = stage->result.count++;
    struct wg_workload_figure *figures = stage->figures[i];
    put_figure(&figures[0], "utilization", 0.75);
    put_figure(&figures[1], "batch_mean", 1.25);
    put_figure(&figures[2], "energy_per_request_j", objective);
    put_figure(&figures[3], "p99_s", p99_s);
    put_figure(&figures[4], "requests_per_s", 66);
    put_figure(&figures[5], "power_w", 198);
    stage->trials[i] = (struct wg_tune_trial){.told = {.configuration = configuration,
                                                       .outcome = WG_TRIAL_MEASURED,
                                                       .objective = objective,
                                                       .objective_error = 0.04,
                                                       .figures = {p99_s},
                                                       .figure_errors = {0}},
                                              .reason = WG_TUNER_SAVING,
                                              .why = "it promises most",
                                              .windows = 1,
                                              .time_s = 5,
                                              .energy_j = 1000,
                                              .power_w = 200,
                                              .requests = 250,
                                              .figure_count = FIGURES,
                                              .figures = figures};
}

/* Batches 1 (the default, 4 J), 4 (3 J, twice) and 16 (2 J, over its limit). */
static void stage_init_with(struct stage *stage, const char *knob)
{
    const char *const knobs[] = {knob};
    static const char *const limits[] = {"p99_s<=100ms"};
    *stage = (struct stage){.workload = "bench.py --batch {batch}"};
    struct wg_tune_setup *setup = &stage->setup;
    assert_int_equal(wg__tune_knobs_init(&setup->knobs, &setup->devices, knobs, 1, NULL, 0, NULL),
                     WG_OK);
    assert_int_equal(wg__tune_goal_init(&setup->goal, "energy_per_request_j", limits, 1, NULL),
                     WG_OK);
    setup->args = &stage->args;
    setup->workload_text = stage->workload;
    setup->request = (struct wg_tune_request){
        .policy = WG_TUNER_WATTGOV, .seed = 7, .energy = {.kind = WG_TUNE_ENERGY_COMMAND}};
    setup->request.idle_w = 60;
    setup->energy = setup->request.energy;
    stage->result = (struct wg_tune_result){.trials = stage->trials, .bounds = {0.1}};
    stage->result.idle_w = NAN;
    add_trial(stage, 0, 4, 0.02);
    add_trial(stage, 1, 2.9, 0.04);
    add_trial(stage, 2, 2, 0.2);
    add_trial(stage, 1, 3.1, 0.06);
    stage->result.best = (struct wg_tuner_result){.end = WG_TUNER_CONVERGED,
                                                  .configuration = 1,
                                                  .is_feasible = true,
                                                  .is_validated = true,
                                                  .runner_up = 3,
                                                  .trials = 4,
                                                  .why = "enough"};
    stage->report = (struct wg_tune_report){.setup = setup,
                                            .result = &stage->result,
                                            .command = "wattgov tune --knob 'a<b'",
                                            .made_at = "2026-01-02 03:04 UTC",
                                            .host = "node7"};
}

static void stage_init(struct stage *stage)
{
    stage_init_with(stage, "batch=1,4,16:batch");
}

static void stage_fini(struct stage *stage)
{
    wg__tuner_free(stage->result.tuner);
    wg__tune_knobs_fini(&stage->setup.knobs);
    wg__tune_goal_fini(&stage->setup.goal);
}

static void with_load(struct stage *stage)
{
    stage->args.arrivals = stage->setup.request.arrivals = "poisson:50";
}

/* The tuner that was told these trials, for forecasts. */
static void with_tuner(struct stage *stage)
{
    const struct wg_tuner_config config = {
        .space = stage->setup.knobs.space,
        .goal = {.objective = WG_TUNING_ENERGY,
                 .limit_count = 1,
                 .limits = {{.name = "p99_s", .kind = WG_TUNING_TIME, .bound = 0.1}}},
        .policy = WG_TUNER_WATTGOV,
        .seed = 1,
        .xi = NAN};
    assert_int_equal(wg__tuner_new(&stage->result.tuner, &config, NULL), WG_OK);
    for (size_t i = 0; i < stage->result.count; i++)
        assert_int_equal(wg__tuner_tell(stage->result.tuner, &stage->trials[i].told, NULL), WG_OK);
}

static size_t occurrences(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

static void expect_in(const struct wg_buffer *text, const char *part)
{
    assert_false(text->failed);
    if (strstr(text->data, part) == NULL)
        fail_msg("'%s' is not in: %s", part, text->data);
}

/* -- Numbers ---------------------------------------------------------------------------------- */

static void a_saving_carries_its_error(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_tune_standing standing;
    stage_init(&stage);
    wg__tune_standing(&stage.report, 1, &standing);
    assert_int_equal(standing.trials, 2);
    check_close(standing.objective, 3, 1e-12);
    check_close(standing.objective_error, 0.04 / sqrt(2), 1e-12);
    check_close(standing.figures[0], 0.05, 1e-12);
    struct wg_tune_saving saving = wg__tune_saving(&stage.report, 1);
    check_close(saving.share, 0.25, 1e-12);
    check_close(saving.error, 0.75 * sqrt(0.04 * 0.04 / 2 + 0.04 * 0.04), 1e-12);
    stage.trials[0].told.objective_error = 0; /* not known */
    assert_true(isnan(wg__tune_saving(&stage.report, 1).error));
    stage.trials[0].told.objective_error = 0.99999999; /* so is this */
    assert_true(isnan(wg__tune_saving(&stage.report, 1).error));
    stage_fini(&stage);
}

static void a_saving_within_its_noise_is_called_so(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_init(&stage);
    wg__buffer_init(&text);
    wg__tune_saving_text(&stage.report, 1, &text);
    assert_string_equal(text.data, "-25.0 % ± 3.7 % against the default");
    wg__buffer_fini(&text);
    stage.trials[0].told.objective = 3.1;
    wg__buffer_init(&text);
    wg__tune_saving_text(&stage.report, 1, &text);
    assert_string_equal(text.data, "-3.2 % ± 4.7 % against the default (within the noise)");
    wg__buffer_fini(&text);
    stage_fini(&stage);
}

/* 60 W for a quarter of the time at 50 requests a second: 0.3 of 3 J. */
static void the_load_and_what_was_measured_are_told_apart(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_tune_at_load load;
    struct wg_buffer text;
    stage_init(&stage);
    assert_false(wg__tune_at_load(&stage.report, 1, &load));
    assert_false(wg__tune_is_at_load(&stage.report, "p99_s"));
    with_load(&stage);
    assert_true(wg__tune_at_load(&stage.report, 1, &load));
    check_close(load.idle_j, 0.3, 1e-12);
    check_close(load.request_j, 3, 1e-12);
    assert_true(wg__tune_is_at_load(&stage.report, "p99_s"));
    assert_false(wg__tune_is_at_load(&stage.report, "power_w"));
    wg__buffer_init(&text);
    wg__tune_load_text(&stage.report, 1, &text);
    assert_string_equal(text.data, "at poisson:50/s (simulated): utilization 75 %, mean batch "
                                   "1.25, 3 J a request, of which 0.3 J (10 %) idle power");
    wg__buffer_fini(&text);
    wg__buffer_init(&text);
    wg__tune_measured_text(&stage.report, 1, &text);
    assert_string_equal(text.data, "as measured: 50 requests/s, 200 W, 4 J a request");
    wg__buffer_fini(&text);
    stage_fini(&stage);
}

/* -- Words ------------------------------------------------------------------------------------ */

static void expect_standing(struct stage *stage, const char *expected)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__tune_standing_text(&stage->report, &text);
    assert_string_equal(text.data, expected);
    wg__buffer_fini(&text);
}

static void says_how_sure_the_returned_one_is(void **state)
{
    (void)state;
    struct stage stage;
    stage_init(&stage);
    expect_standing(&stage, "validated");
    stage.result.count = 3; /* batch 4 once */
    stage.result.best.is_validated = false;
    expect_standing(&stage, "measured once");
    stage.result.best.is_certain = true;
    expect_standing(&stage, "surely within its limits: no second measurement was needed");
    stage.setup.goal.limit_count = 0;
    expect_standing(&stage, "measured once, with no limit to keep");
    stage.result.best.configuration = 0;
    expect_standing(&stage, "the default: nothing is cheaper beyond the noise; measured once, with "
                            "no limit to keep");
    stage.setup.goal.limit_count = 1;
    stage.result.best.is_certain = false;
    expect_standing(&stage, "the default: nothing that keeps the limits is cheaper beyond the "
                            "noise; measured once");
    stage.result.count = 1;
    expect_standing(&stage, "the default: nothing else was measured");
    stage_fini(&stage);
}

static void expect_text(struct stage *stage, const char *expected)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__tune_text(&stage->report, false, &text);
    expect_in(&text, expected);
    wg__buffer_fini(&text);
}

static void names_the_limits_that_nothing_meets(void **state)
{
    (void)state;
    struct stage stage;
    stage_init(&stage);
    stage.result.best.is_feasible = false;
    stage.result.best.configuration = 2;
    expect_text(&stage, "nothing is known to meet the limits; nearest: p99_s 0.2 of <= 0.1\n");
    stage.result.best.configuration = 1;
    expect_text(&stage, "nothing is known to meet the limits; nearest: measured within them, and "
                        "not sure of it\n");
    stage_fini(&stage);
}

static void says_what_failed_where_nothing_was_measured(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_init(&stage);
    stage.result.count = 1;
    stage.result.best.configuration = 3;
    stage.trials[0].told.outcome = WG_TRIAL_CRASHED;
    (void)snprintf(stage.trials[0].failure, sizeof stage.trials[0].failure, "exit status 3");
    expect_text(&stage, "nothing to return\ntrial 1 crashed: exit status 3 (-v shows what the "
                        "command writes to stderr)\n");
    stage.args.verbose = true;
    expect_text(&stage, "nothing to return\ntrial 1 crashed: exit status 3\n");
    wg__buffer_init(&text);
    wg__tune_page(&stage.report, &text);
    expect_in(&text, "trial 1 crashed: exit status 3<");
    wg__buffer_fini(&text);
    stage_fini(&stage);
}

static void says_what_became_of_a_trial(void **state)
{
    (void)state;
    struct stage stage;
    stage_init(&stage);
    struct wg_tune_trial *trial = &stage.trials[0];
    assert_string_equal(wg__tune_outcome_text(&stage.report, trial), "measured");
    assert_string_equal(wg__tune_outcome_text(&stage.report, &stage.trials[2]), "over the limit");
    trial->told.outcome = WG_TRIAL_CUT;
    assert_string_equal(wg__tune_outcome_text(&stage.report, trial),
                        "overloaded: at least so much");
    trial->told.objective = NAN;
    assert_string_equal(wg__tune_outcome_text(&stage.report, trial),
                        "ended early: over the limit for sure");
    stage_fini(&stage);
}

static void an_error_in_the_middle_is_no_search_that_goes_on(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_init(&stage);
    assert_string_equal(wg__tune_end_key(&stage.report), "converged");
    stage.result.best.end = WG_TUNER_RUNNING;
    wg__buffer_init(&text);
    wg__tune_text(&stage.report, false, &text);
    expect_in(&text, "end: failed\n");
    wg__buffer_fini(&text);
    stage.result.ended_by_time = true;
    assert_string_equal(wg__tune_end_key(&stage.report), "time");
    stage.result.signal = 2;
    assert_string_equal(wg__tune_end_key(&stage.report), "interrupted");
    stage_fini(&stage);
}

/* -- The forms -------------------------------------------------------------------------------- */

static void the_text_has_all_that_counts(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_init(&stage);
    with_load(&stage);
    stage.trials[2].told.objective_error = 0.99999999;
    wg__buffer_init(&text);
    wg__tune_text(&stage.report, false, &text);
    expect_in(&text, "2 ± ?");
    expect_in(&text, "returned   batch 4 (validated)");
    expect_in(&text, "3, -25.0 % ± 3.7 % against the default\n");
    expect_in(&text, "0.05, limit <= 0.1\n");
    expect_in(&text, "default    batch 1\n");
    expect_in(&text, "largest expected saving");
    assert_int_equal(occurrences(text.data, "at poisson:50/s (simulated)"), 2);
    assert_int_equal(occurrences(text.data, "as measured: 50 requests/s"), 2);
    assert_null(strstr(text.data, "it promises most"));
    wg__buffer_fini(&text);
    stage.args.explain = stage.args.quiet = true;
    wg__buffer_init(&text);
    wg__tune_text(&stage.report, false, &text);
    assert_int_equal(occurrences(text.data, "it promises most"), 4);
    wg__buffer_fini(&text);
    stage_fini(&stage);
}

static void the_text_says_whose_idle_power_it_is(void **state)
{
    (void)state;
    static const char simulated[] = "load: poisson:50, simulated from measured times and powers";
    struct stage stage;
    char expected[160];
    stage_init(&stage);
    with_load(&stage);
    (void)snprintf(expected, sizeof expected, "%s; idle power as given\n", simulated);
    expect_text(&stage, expected);
    stage.setup.request.idle_w = 0;
    (void)snprintf(expected, sizeof expected,
                   "%s; idle power, which nothing tells, counts as 0 W\n", simulated);
    expect_text(&stage, expected);
    stage.result.idle_w = 55; /* measured */
    (void)snprintf(expected, sizeof expected, "%s\n", simulated);
    expect_text(&stage, expected);
    stage.setup.request.energy.kind = WG_TUNE_ENERGY_MODEL;
    (void)snprintf(expected, sizeof expected, "%s; idle power as stated\n", simulated);
    expect_text(&stage, expected);
    for (size_t i = 0; i < TRIALS; i++)
        put_figure(&stage.figures[i][0], "idle_power_w", 30);
    (void)snprintf(expected, sizeof expected, "%s; idle power as the workload tells it\n",
                   simulated);
    expect_text(&stage, expected);
    stage_fini(&stage);
}

static void the_text_says_whose_joules_a_request_has(void **state)
{
    (void)state;
    static const char *const objectives[] = {"energy_per_request_j", "time:p99_s"};
    struct stage stage;
    struct wg_buffer page;
    stage_init(&stage);
    stage.args.arrivals = "poisson:50"; /* sent, not simulated */
    for (size_t i = 0; i < 2; i++) {
        wg__tune_goal_fini(&stage.setup.goal);
        assert_int_equal(wg__tune_goal_init(&stage.setup.goal, objectives[i], NULL, 0, NULL),
                         WG_OK);
        expect_text(&stage, i == 0 ? "load: poisson:50, sent as it is; energy_per_request_j counts "
                                     "the requests that are offered"
                                   : "load: poisson:50, sent as it is\n");
        wg__buffer_init(&page);
        wg__tune_page(&stage.report, &page);
        assert_int_equal(occurrences(page.data, "requests that are offered"), i == 0 ? 1 : 0);
        wg__buffer_fini(&page);
    }
    stage_fini(&stage);
}

static void the_json_tells_the_load_apart(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_init(&stage);
    with_load(&stage);
    wg__buffer_init(&text);
    wg__tune_json(&stage.report, &text);
    json_t *root = json_loads(text.data, 0, NULL);
    assert_non_null(root);
    double energy_j = 0, measured_j = 0, watts = 0, idle_j = 0, saving_error = 0;
    const char *command = NULL, *made_at = NULL, *host = NULL;
    json_t *trial = json_array_get(json_object_get(root, "trials"), 1);
    assert_int_equal(json_unpack(trial, "{s:{s:F}, s:{s:F, s:F}}", "at_load",
                                 "energy_per_request_j", &energy_j, "figures",
                                 "energy_per_request_j", &measured_j, "power_w", &watts),
                     0);
    check_close(energy_j, 2.9, 1e-12);
    check_close(measured_j, 4, 1e-12); /* 1000 J for 250 requests */
    check_close(watts, 198, 1e-12);
    assert_null(json_object_get(json_object_get(trial, "figures"), "p99_s"));
    assert_true(json_is_null(json_array_get(json_object_get(trial, "limit_errors"), 0)));
    assert_int_equal(json_unpack(root, "{s:{s:{s:F}}, s:F, s:s, s:s, s:s}", "returned", "at_load",
                                 "idle_per_request_j", &idle_j, "saving_error", &saving_error,
                                 "command", &command, "made_at", &made_at, "host", &host),
                     0);
    check_close(idle_j, 0.3, 1e-12);
    check_close(saving_error, 0.75 * sqrt(0.0024), 1e-12);
    assert_string_equal(command, "wattgov tune --knob 'a<b'");
    assert_string_equal(made_at, "2026-01-02 03:04 UTC");
    assert_string_equal(host, "node7");
    assert_true(json_is_array(json_object_get(root, "gpus")));
    json_decref(root);
    wg__buffer_fini(&text);
    stage_fini(&stage);
}

static void the_page_draws_front_and_slices_with_their_bounds(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_init(&stage);
    with_tuner(&stage);
    wg__buffer_init(&text);
    wg__tune_page(&stage.report, &text);
    expect_in(&text, "Cost against p99_s");
    expect_in(&text, ">front<");
    expect_in(&text, "trial 3: batch 16; energy_per_request_j 2; p99_s 0.2");
    expect_in(&text, "energy_per_request_j over batch");
    expect_in(&text, "p99_s over batch");
    /* The front, in its two widths, and the limit's slice are tinted where it allows; two more are
     * legends of bands. */
    assert_int_equal(occurrences(text.data, "<rect class=\"b\""), 5);
    expect_in(&text, "0.05 (&lt;= 0.1)");
    expect_in(&text, "-25.0 % ± 3.7 %");
    expect_in(&text, "2026-01-02 03:04 UTC on node7");
    expect_in(&text, "policy wattgov, seed 7");
    expect_in(&text, "wattgov tune --knob &#39;a&lt;b&#39;");
    wg__buffer_fini(&text);
    stage_fini(&stage);
}

static void a_knob_of_words_has_a_table_for_its_slice(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_init_with(&stage, "precision=fp32,fp16,int8:category");
    with_tuner(&stage);
    wg__buffer_init(&text);
    wg__tune_page(&stage.report, &text);
    expect_in(&text, "believed (one standard deviation)");
    const char *table = strstr(text.data, "What is believed");
    assert_non_null(table);
    const char *int8 = strstr(table, "<td>int8</td><td>p99_s</td>");
    assert_non_null(int8);
    const char *row_end = strstr(int8, "</tr>");
    const char *measured = strstr(int8, "<td class=\"n\">0.2</td><td class=\"n\">&lt;= 0.1</td>");
    assert_true(measured != NULL && measured < row_end); /* over its limit, as one sees */
    assert_non_null(strstr(table, "<td>fp16</td><td>energy_per_request_j</td>"));
    assert_null(strstr(text.data, " over precision")); /* no chart of it */
    wg__buffer_fini(&text);
    stage_fini(&stage);
}

static void two_limits_on_a_figure_are_told_apart(void **state)
{
    (void)state;
    static const char *const limits[] = {"p99_s<=100ms", "p99_s>=1ms"};
    struct stage stage;
    struct wg_buffer text;
    stage_init(&stage);
    wg__tune_goal_fini(&stage.setup.goal);
    assert_int_equal(wg__tune_goal_init(&stage.setup.goal, "energy_per_request_j", limits, 2, NULL),
                     WG_OK);
    stage.result.bounds[1] = 0.001;
    wg__buffer_init(&text);
    wg__tune_text(&stage.report, false, &text);
    expect_in(&text, "  p99_s <= 0.1  p99_s >= 0.001  ");
    wg__buffer_fini(&text);
    wg__buffer_init(&text);
    wg__tune_page(&stage.report, &text);
    expect_in(&text, "Cost against p99_s &lt;= 0.1");
    expect_in(&text, "Cost against p99_s &gt;= 0.001");
    wg__buffer_fini(&text);
    stage_fini(&stage);
}

static void a_page_of_nothing_says_so(void **state)
{
    (void)state;
    struct stage stage;
    struct wg_buffer text;
    stage_init(&stage);
    stage.result.count = 0;
    stage.result.best.configuration = 3;
    wg__buffer_init(&text);
    wg__tune_page(&stage.report, &text);
    expect_in(&text, "Nothing was measured");
    wg__buffer_fini(&text);
    stage_fini(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_saving_carries_its_error),
        cmocka_unit_test(a_saving_within_its_noise_is_called_so),
        cmocka_unit_test(the_load_and_what_was_measured_are_told_apart),
        cmocka_unit_test(says_how_sure_the_returned_one_is),
        cmocka_unit_test(names_the_limits_that_nothing_meets),
        cmocka_unit_test(says_what_failed_where_nothing_was_measured),
        cmocka_unit_test(says_what_became_of_a_trial),
        cmocka_unit_test(an_error_in_the_middle_is_no_search_that_goes_on),
        cmocka_unit_test(the_text_has_all_that_counts),
        cmocka_unit_test(the_text_says_whose_idle_power_it_is),
        cmocka_unit_test(the_text_says_whose_joules_a_request_has),
        cmocka_unit_test(the_json_tells_the_load_apart),
        cmocka_unit_test(the_page_draws_front_and_slices_with_their_bounds),
        cmocka_unit_test(a_knob_of_words_has_a_table_for_its_slice),
        cmocka_unit_test(two_limits_on_a_figure_are_told_apart),
        cmocka_unit_test(a_page_of_nothing_says_so),
    };
    return run_tests(tests);
}
