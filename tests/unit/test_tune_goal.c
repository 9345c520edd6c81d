/* SPDX-License-Identifier: MIT
 *
 * Objective, limits, quantities, forbidden combinations, templates: the texts of a tuning.
 */
#include "live/tune_goal.h"

#include <string.h>

#include "base/alloc.h"
#include "live/tune_energy.h"
#include "live/tune_forbid.h"
#include "live/tune_quantity.h"
#include "live/tune_template.h"
#include "live/workload_figures.h"
#include "support/check.h"

static struct wg_workload_sample sample;

static void reads_limits_with_units_and_relative_ones(void **state)
{
    (void)state;
    const char *const limits[] = {"p99_s <= 100ms", "other:accuracy>=0.9", "mean_s<=1.5x",
                                  "power_w<=250W"};
    struct wg_tune_goal goal;
    struct wg_error err;
    assert_int_equal(wg__tune_goal_init(&goal, "energy_j / tokens", limits, 4, &err), WG_OK);
    assert_int_equal(goal.objective.kind, WG_TUNING_ENERGY);
    assert_string_equal(goal.limits[0].text, "p99_s");
    check_close(goal.limits[0].bound, 0.1, 1e-12);
    assert_int_equal(goal.limits[0].kind, WG_TUNING_TIME);
    assert_true(goal.limits[1].is_minimum);
    assert_int_equal(goal.limits[1].kind, WG_TUNING_OTHER);
    assert_true(goal.limits[2].is_relative);
    check_close(goal.limits[2].bound, 1.5, 0);
    assert_int_equal(goal.limits[3].kind, WG_TUNING_ENERGY);
    assert_true(wg__tune_goal_names(&goal, "tokens"));
    assert_false(wg__tune_goal_names(&goal, "token"));
    wg__tune_goal_fini(&goal);
}

static void terms_on_one_figure_have_labels_of_their_own(void **state)
{
    (void)state;
    const char *const limits[] = {"p99_s<=100ms", "p99_s<=1.5x", "other:accuracy>=0.9",
                                  "energy_j<=9J"};
    struct wg_tune_goal goal;
    assert_int_equal(wg__tune_goal_init(&goal, "energy_j", limits, 4, NULL), WG_OK);
    assert_string_equal(goal.objective.label, "energy_j");
    assert_string_equal(goal.limits[0].label, "p99_s <= 0.1");
    assert_string_equal(goal.limits[1].label, "p99_s <= 1.5x");
    assert_string_equal(goal.limits[2].label, "accuracy");
    assert_string_equal(goal.limits[3].label, "energy_j <= 9");
    wg__tune_goal_fini(&goal);
}

static void a_rate_is_no_time(void **state)
{
    (void)state;
    struct wg_tune_goal goal;
    struct wg_error err;
    assert_int_equal(wg__tune_goal_init(&goal, "1/requests_per_s", NULL, 0, &err), WG_OK);
    assert_int_equal(goal.objective.kind, WG_TUNING_OTHER);
    wg__tune_goal_fini(&goal);
    assert_int_equal(wg__tune_goal_init(&goal, "time:1/requests_per_s", NULL, 0, &err), WG_OK);
    assert_int_equal(goal.objective.kind, WG_TUNING_TIME);
    wg__tune_goal_fini(&goal);
}

static void errors_of_figures_make_that_of_a_term(void **state)
{
    (void)state;
    struct wg_tune_goal goal;
    struct wg_error err;
    double value = 0, error = 0;
    sample = (struct wg_workload_sample){.figure_count = 2,
                                         .figures = {{"energy_j", 30, 0.03}, {"tokens", 10, 0.04}}};
    assert_int_equal(wg__tune_goal_init(&goal, "energy_j / tokens", NULL, 0, &err), WG_OK);
    assert_int_equal(wg__tune_term_evaluate(&goal.objective, &sample, &value, &error, &err), WG_OK);
    check_close(value, 3, 1e-12);
    check_close(error, 0.05, 1e-3); /* 3 % and 4 % at right angles */
    sample.figures[1].error = 0;    /* one that is not known makes the whole not known */
    assert_int_equal(wg__tune_term_evaluate(&goal.objective, &sample, &value, &error, &err), WG_OK);
    check_close_abs(error, 0, 0, 0);
    sample.figure_count = 1;
    assert_int_equal(wg__tune_term_evaluate(&goal.objective, &sample, &value, &error, &err),
                     WG_EDATA);
    assert_non_null(strstr(err.text, "no figure 'tokens'; there are: energy_j"));
    wg__tune_goal_fini(&goal);
}

static void slo_names_percentiles(void **state)
{
    (void)state;
    char limit[WG_TUNE_TERM_SIZE];
    struct wg_error err;
    assert_int_equal(wg__tune_slo_limit("p99<=100ms", limit, &err), WG_OK);
    assert_string_equal(limit, "p99_s<=100ms");
    assert_int_equal(wg__tune_slo_limit("p99.9 <= 1", limit, &err), WG_OK);
    assert_string_equal(limit, "p999_s<= 1");
    assert_int_equal(wg__tune_slo_limit("p98<=1", limit, &err), WG_EINVAL);
    assert_int_equal(wg__tune_slo_limit("p99>=1", limit, &err), WG_EINVAL);
}

static void quantities_have_units_of_their_role(void **state)
{
    (void)state;
    double value = 0;
    assert_true(wg__tune_quantity_parse("1410", WG_TUNING_GPU_CLOCK, &value));
    check_close(value, 1410e6, 1e-12);
    assert_true(wg__tune_quantity_parse("1.2GHz", WG_TUNING_CPU_CLOCK, &value));
    check_close(value, 1.2e9, 1e-12);
    assert_true(wg__tune_quantity_parse("5 ms", WG_TUNING_DELAY, &value));
    check_close(value, 5e-3, 1e-12);
    assert_true(wg__tune_quantity_parse("1e2", WG_TUNING_BATCH, &value));
    check_close(value, 100, 0);
    assert_false(wg__tune_quantity_parse("5ms", WG_TUNING_BATCH, &value));
    assert_false(wg__tune_quantity_parse("W", WG_TUNING_POWER_LIMIT, &value));
    assert_false(wg__tune_quantity_parse("", WG_TUNING_BATCH, &value));
}

static void forbids_combinations(void **state)
{
    (void)state;
    static const double batches[] = {1, 64, 128}, indices[] = {0, 1};
    static const char *const words[] = {"fp16", "fp32"};
    const struct wg_tuning_knob knobs[] = {
        {.name = "batch", .role = WG_TUNING_BATCH, .levels = batches, .count = 3},
        {.name = "precision",
         .role = WG_TUNING_CATEGORY,
         .levels = indices,
         .labels = words,
         .count = 2}};
    struct wg_tune_forbid forbid;
    struct wg_error err;
    assert_int_equal(
        wg__tune_forbid_parse(&forbid, "batch>=64 && precision == fp32", knobs, 2, &err), WG_OK);
    for (size_t b = 0; b < 3; b++)
        for (size_t p = 0; p < 2; p++)
            assert_int_equal(wg__tune_forbid_holds(&forbid, knobs, (const size_t[]){b, p}),
                             b >= 1 && p == 1);
    static const char *const wrong[] = {
        "batch", "batch>=x", "precision>fp16", "precision==fp8", "size>1", "batch>1 &&", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(wg__tune_forbid_parse(&forbid, wrong[i], knobs, 2, &err), WG_EINVAL);
}

static void fills_templates(void **state)
{
    (void)state;
    char run[] = "run", batch[] = "--b={batch}/{batch}",
         json[] = "{\"a\": {b}} ${HOME} {precision}";
    char *const words[] = {run, batch, json, NULL};
    const struct wg_workload_setting settings[] = {{"batch", 8, NULL}, {"precision", 1, "fp32"}};
    struct wg_tune_command command;
    struct wg_error err;
    assert_int_equal(wg__tune_template_fill(&command, words, settings, 2, &err), WG_OK);
    assert_string_equal(command.words[1], "--b=8/8");
    assert_string_equal(command.words[2], "{\"a\": {b}} ${HOME} fp32");
    assert_null(command.words[3]);
    assert_string_equal(command.environment[0], "WATTGOV_TUNE_BATCH=8");
    assert_string_equal(command.environment[1], "WATTGOV_TUNE_PRECISION=fp32");
    wg__tune_command_fini(&command);
    assert_true(wg__tune_template_has(words, "batch"));
    assert_false(wg__tune_template_has(words, "batc"));
    for (size_t nth = 1;; nth++) {
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__tune_template_fill(&command, words, settings, 2, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
    }
    wg__tune_command_fini(&command);
}

static void reads_sources_of_energy(void **state)
{
    (void)state;
    struct wg_tune_energy energy;
    struct wg_error err;
    assert_int_equal(wg__tune_energy_parse("cpu", &energy, &err), WG_OK);
    assert_int_equal(energy.kind, WG_TUNE_ENERGY_CPU);
    assert_int_equal(wg__tune_energy_parse("model:busy=65,idle=20", &energy, &err), WG_OK);
    check_close(energy.busy_w, 65, 0);
    check_close(energy.idle_w, 20, 0);
    static const char *const wrong[] = {
        "", "sun", "model", "model:busy=1", "model:busy=1,idle=2", "model:busy=x,idle=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(wg__tune_energy_parse(wrong[i], &energy, &err), WG_EINVAL);
}

static void a_unit_on_a_figure_of_another_unit_is_refused(void **state)
{
    static const char *const bad[] = {"p99_ms<=100ms", "a_us<=1s",      "p99_ms/2>=3us",
                                      "energy_mJ<=5J", "power_mW<=30W", "e_kj<=2kJ"};
    static const char *const good[] = {"p99_ms<=100", "p99_ms<=1.5x", "p99_s<=100ms", "ms<=1ms",
                                       "power_mW<=30000"};
    struct wg_tune_goal goal;
    struct wg_error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(wg__tune_goal_init(&goal, "e_j", &bad[i], 1, &err), WG_EINVAL);
        assert_non_null(strstr(err.text, "without a unit"));
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(wg__tune_goal_init(&goal, "e_j", &good[i], 1, &err), WG_OK);
        wg__tune_goal_fini(&goal);
    }
}

static void a_figure_that_is_missed_says_what_it_is_made_of(void **state)
{
    static const struct {
        const char *objective, *told, *hint; /* NULL: none */
    } cases[] = {
        {"energy_per_request_j", "requests", "tells no energy_j"},
        {"energy_j / 2", "requests", "tells no energy_j"},
        {"power_w", "requests", "tells no energy_j"},
        {"energy_per_request_j", "energy_j", "or give --requests N"},
        {"time:1 / requests_per_s", "energy_j", "or give --requests N"},
        {"other:accuracy", "energy_j", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wg_tune_goal goal;
        struct wg_error err;
        double value = 0, error = 0;
        assert_int_equal(wg__tune_goal_init(&goal, cases[i].objective, NULL, 0, &err), WG_OK);
        sample.figure_count = 0;
        assert_true(wg__workload_figure_put(&sample, cases[i].told, 7));
        assert_int_equal(wg__tune_term_evaluate(&goal.objective, &sample, &value, &error, &err),
                         WG_EDATA);
        const char *end = strstr(err.text, cases[i].told); /* of what there is, the last one */
        assert_non_null(end);
        if (cases[i].hint != NULL)
            assert_non_null(strstr(end, cases[i].hint));
        else
            assert_string_equal(end, cases[i].told);
        wg__tune_goal_fini(&goal);
    }
}

static void a_unit_that_a_name_contradicts_is_refused(void **state)
{
    static const char *const bad[] = {"p99_s<=5J", "energy_j<=2ms", "power_w>=1s", "mean_s<=1W",
                                      "energy_per_request_j<=2W"};
    static const char *const good[] = {"p99_s<=5ms",        "energy_j/2<=2W", "energy_j/time_s<=2W",
                                       "requests_per_s>=5", "power_w<=30W",   "latency<=5ms",
                                       "p99_s<=5",          "p99_s<=5x"};
    struct wg_tune_goal goal;
    struct wg_error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(wg__tune_goal_init(&goal, "e_j", &bad[i], 1, &err), WG_EINVAL);
        assert_non_null(strstr(err.text, "whose name tells another"));
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(wg__tune_goal_init(&goal, "e_j", &good[i], 1, &err), WG_OK);
        wg__tune_goal_fini(&goal);
    }
}

static void at_a_load_latency_is_no_service_time_unless_that_is_said(void **state)
{
    (void)state;
    const char *limits[] = {"p99_s<=0.1", "time:p90_s<=1", "energy_j<=5", "accuracy>=0.9"};
    struct wg_tune_goal goal;
    assert_int_equal(wg__tune_goal_init(&goal, "time:mean_s", limits, 4, NULL), WG_OK);
    wg__tune_goal_at_load(&goal);
    assert_int_equal(goal.objective.kind, WG_TUNING_TIME);
    assert_int_equal(goal.limits[0].kind, WG_TUNING_OTHER);
    assert_int_equal(goal.limits[0].nature, WG_TUNING_TIME);
    assert_int_equal(goal.limits[1].kind, WG_TUNING_TIME);
    assert_int_equal(goal.limits[2].kind, WG_TUNING_ENERGY);
    wg__tune_goal_fini(&goal);
}

static void what_can_be_depends_on_what_it_is(void **state)
{
    (void)state;
    const char *limits[] = {"p99_s<=0.1", "errors<=0.1", "accuracy>=1x"};
    struct wg_tune_goal goal;
    assert_int_equal(wg__tune_goal_init(&goal, "other:requests", limits, 3, NULL), WG_OK);
    wg__tune_goal_at_load(&goal);
    assert_true(wg__tune_term_can_be(&goal.objective, 1e-300));
    assert_false(wg__tune_term_can_be(&goal.objective, 0)); /* its logarithm is taken */
    assert_false(wg__tune_term_can_be(&goal.limits[0], 0)); /* a time all the same */
    assert_true(wg__tune_term_can_be(&goal.limits[1], 0));
    assert_true(wg__tune_term_can_be(&goal.limits[2], -1));
    assert_false(wg__tune_term_can_be(&goal.limits[1], NAN));
    assert_false(wg__tune_term_can_be(&goal.limits[1], INFINITY));
    wg__tune_goal_fini(&goal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_limits_with_units_and_relative_ones),
        cmocka_unit_test(terms_on_one_figure_have_labels_of_their_own),
        cmocka_unit_test(a_rate_is_no_time),
        cmocka_unit_test(errors_of_figures_make_that_of_a_term),
        cmocka_unit_test(slo_names_percentiles),
        cmocka_unit_test(quantities_have_units_of_their_role),
        cmocka_unit_test(forbids_combinations),
        cmocka_unit_test(fills_templates),
        cmocka_unit_test(reads_sources_of_energy),
        cmocka_unit_test(a_unit_on_a_figure_of_another_unit_is_refused),
        cmocka_unit_test(a_figure_that_is_missed_says_what_it_is_made_of),
        cmocka_unit_test(a_unit_that_a_name_contradicts_is_refused),
        cmocka_unit_test(at_a_load_latency_is_no_service_time_unless_that_is_said),
        cmocka_unit_test(what_can_be_depends_on_what_it_is),
    };
    return run_tests(tests);
}
