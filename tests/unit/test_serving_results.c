/* SPDX-License-Identifier: MIT
 *
 * Figures of serving studies, and how they are written: a study is made up whose figures follow by
 * hand.
 */
#include "cli/serving_results.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/buffer.h"
#include "support/check.h"

static const struct wg_serving_profile profile = {
    .name = "made-up",
    .max_batch = 8,
    .latency = {.fixed_s = 0.06, .per_row_s = 0.07},
    .has_finetune = true,
    .step_fixed_s = 0.01,
    .step_per_row_s = 0.02,
    .update_s = 0.04,
    .inference_slowdown = 2,
    .finetune_slowdown = 2,
    .ladder = {.count = 1, .rungs = {{"max", 1, 1, 40, 10, 40}}},
};

static void room_is_the_least_share_of_the_batches_that_keep_the_slo(void **state)
{
    (void)state;
    /* At 8/s a batch of 3 takes 2/8 + 0.27 s; one of 4 would take 0.715 s. */
    struct wg_serving_room room = wg__serving_room(&profile, 0, 8, 8, 0.7);
    assert_int_equal(room.batch, 3);
    check_close(room.share, 8 * 0.27 / 3, 1e-12);
    room = wg__serving_room(&profile, 0, 8, 8, 0.72);
    assert_int_equal(room.batch, 4);
    room = wg__serving_room(&profile, 0, 8, 8, 100);
    assert_int_equal(room.batch, 8);
    room = wg__serving_room(&profile, 0, 8, 8, 0.129);
    assert_int_equal(room.batch, 0);
    assert_true(isnan(room.share));
    room = wg__serving_room(&profile, 0, 8, 8, 0.131);
    assert_int_equal(room.batch, 1);
    check_close(room.share, 8 * 0.13, 1e-12);
    /* With noise of 1 % one batch of four in a hundred takes 8 ms longer: they no longer fit. */
    struct wg_serving_profile noisy = profile;
    noisy.noise = 0.01;
    room = wg__serving_room(&noisy, 0, 8, 8, 0.72);
    assert_int_equal(room.batch, 3);
    check_close(room.share, 8 * 0.27 / 3, 1e-12);
    room = wg__serving_room(&profile, 0, 2, 8, 0.7);
    assert_int_equal(room.batch, 2);
    room = wg__serving_room(&profile, 0, 8, 0, 1);
    assert_int_equal(room.batch, 1);
    check_close_abs(room.share, 0, 0, 0);
}

static void work_is_that_of_whole_iterations(void **state)
{
    (void)state;
    struct wg_finetune_job job = {.batch = 50, .iterations = 10};
    check_close(wg__serving_work_s(&profile, 0, &job), 10 * (0.01 + 50 * 0.02 + 0.04), 1e-12);
    job.iterations = UINT64_MAX;
    assert_true(isinf(wg__serving_work_s(&profile, 0, &job)));
}

static struct wg_serving_study_request make_request(void)
{
    return (struct wg_serving_study_request){
        .base = {.profile = &profile,
                 .slo_s = 0.7,
                 .has_job = true,
                 .job = {.id = 1, .batch = 50, .iterations = 10},
                 .duration_s = 30},
        .policy_count = 3,
        .policies = {{"greedy", WG_FINETUNE_GREEDY, WG_BATCHER_TRITON, WG_DROP_STANDARD},
                     {"wattgov", WG_FINETUNE_WATTGOV, WG_BATCHER_WATTGOV, WG_DROP_EARLY},
                     {"floor", WG_FINETUNE_NONE, WG_BATCHER_WATTGOV, WG_DROP_EARLY}},
        .law_count = 1,
        .laws = {"poisson:8"},
        .first_seed = 1,
        .seeds = 4};
}

/* 4 runs of 30 s, 1000 requests. */
static struct wg_serving_cell make_cell(size_t policy)
{
    struct wg_serving_cell cell = {
        .policy = policy,
        .sum = {.runs = 4,
                .requests = 1000,
                .late = 20,
                .dropped = 30,
                .jobs_finished = 3,
                .finished_s = 60,
                .finetune_rows = 1800,
                .finetune_busy_s = 40,
                .finetune_work_s = 30,
                .both_busy_s = 20,
                .inference_busy_s = 70,
                .time_s = 121,
                .finetune_time_s = 90,
                .inference_j = 1000,
                .finetune_j = 500,
                .idle_j = 455},
        .rate = 8,
        .p50_s = 0.3,
        .p95_s = 0.6,
        .p99_s = 0.65,
        .violation_rate = 0.05,
        .wilson95 = {0.038, 0.065},
        .seeds95 = {0.03, 0.07},
    };
    cell.sum.answers[WG_ANSWER_PAST] = 30;
    cell.sum.batches[1] = 130;
    cell.sum.batches[4] = 210;
    return cell;
}

static void figures_follow_from_the_sums(void **state)
{
    (void)state;
    struct wg_serving_study_request request = make_request();
    struct wg_serving_cell cell = make_cell(0);
    struct wg_serving_figures of;
    wg__serving_figures(&request, &cell, &of);
    check_close(of.finished_s, 20, 1e-12);
    check_close(of.finished_share, 0.75, 1e-12);
    check_close(of.samples_per_s, 20, 1e-12);
    check_close(of.gpu_share, (40.0 - 10) / 120, 1e-12);
    check_close(of.energy_per_request_j, 1.5, 1e-12);
    check_close(of.batch_mean, (130.0 + 840) / 340, 1e-12);
    check_close(of.earliest_s, 10.5 / (1 - 0.72), 1e-12);
    cell.sum = (struct wg_serving_sum){.runs = 4};
    request.base.has_job = false;
    wg__serving_figures(&request, &cell, &of);
    assert_true(isnan(of.finished_s) && isnan(of.finished_share) && isnan(of.samples_per_s));
    assert_true(isnan(of.gpu_share) && isnan(of.energy_per_request_j) && isnan(of.batch_mean));
    assert_true(isnan(of.earliest_s));
}

static void the_interval_is_that_of_runs_if_they_differ(void **state)
{
    (void)state;
    struct wg_serving_cell cell = make_cell(0);
    assert_ptr_equal(wg__serving_interval(&cell), cell.seeds95);
    cell.seeds95[0] = cell.seeds95[1];
    assert_ptr_equal(wg__serving_interval(&cell), cell.wilson95);
    cell.seeds95[0] = cell.seeds95[1] = (double)NAN;
    assert_ptr_equal(wg__serving_interval(&cell), cell.wilson95);
}

static double number_of(const json_t *object, const char *path)
{
    char key[64];
    while (*path != '\0') {
        const size_t length = strcspn(path, ".");
        (void)snprintf(key, sizeof key, "%.*s", (int)length, path);
        object = json_object_get(object, key);
        path += length + (path[length] == '.');
    }
    if (!json_is_number(object))
        fail_msg("'%s' is no number", key);
    return json_number_value(object);
}

static void json_has_the_keys_that_were_promised(void **state)
{
    (void)state;
    struct wg_serving_study_request request = make_request();
    struct wg_serving_cell cells[] = {make_cell(0), make_cell(1)};
    cells[1].sum = (struct wg_serving_sum){.runs = 4};
    cells[1].violation_rate = cells[1].p99_s = cells[1].wilson95[0] = (double)NAN;
    const struct wg_serving_study study = {2, cells, 1e6, 5e5};
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__serving_json(&study, &request, &out);
    assert_false(out.failed);
    json_t *root = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "schema")),
                        "wattgov.simulate.serving/1");
    const json_t *list = json_object_get(root, "cells");
    assert_int_equal(json_array_size(list), 2);
    const json_t *cell = json_array_get(list, 0);
    static const struct {
        const char *path;
        double value;
    } expected[] = {{"requests", 1000},
                    {"late", 20},
                    {"dropped", 30},
                    {"violation_rate", 0.05},
                    {"p50_s", 0.3},
                    {"p95_s", 0.6},
                    {"p99_s", 0.65},
                    {"finetune.finished_s", 20},
                    {"finetune.finished_share", 0.75},
                    {"finetune.samples_per_s", 20},
                    {"finetune.gpu_share", 0.25},
                    {"energy_j.inference", 1000},
                    {"energy_j.finetune", 500},
                    {"energy_j.idle", 455},
                    {"batch_histogram.1", 130},
                    {"batch_histogram.4", 210},
                    {"answers.past", 30},
                    {"answers.full", 0},
                    {"room.batch", 3},
                    {"room.inference_share", 0.72}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        check_close(number_of(cell, expected[i].path), expected[i].value, 1e-12);
    assert_string_equal(json_string_value(json_object_get(cell, "policy")), "greedy");
    assert_string_equal(json_string_value(json_object_get(cell, "arrivals")), "poisson:8");
    assert_string_equal(json_string_value(json_object_get(cell, "drop")), "standard");
    check_close(json_number_value(json_array_get(json_object_get(cell, "wilson95"), 1)), 0.065, 0);
    check_close(number_of(root, "events_per_s"), 1e6, 0);
    cell = json_array_get(list, 1);
    assert_true(json_is_null(json_object_get(cell, "violation_rate")));
    assert_true(json_is_null(json_array_get(json_object_get(cell, "wilson95"), 0)));
    assert_true(json_is_null(json_object_get(json_object_get(cell, "finetune"), "finished_s")));
    assert_int_equal(json_object_size(json_object_get(cell, "batch_histogram")), 0);
    json_decref(root);
    wg__buffer_fini(&out);
}

static void csv_has_a_row_per_cell_and_blanks_for_what_is_absent(void **state)
{
    (void)state;
    struct wg_serving_study_request request = make_request();
    struct wg_serving_cell cells[] = {make_cell(0), make_cell(2)};
    cells[1].sum = (struct wg_serving_sum){.runs = 4};
    const struct wg_serving_study study = {2, cells, 1e6, 5e5};
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__serving_csv(&study, &request, &out);
    assert_false(out.failed);
    const char *second = strchr(out.data, '\n') + 1;
    const char *third = strchr(second, '\n') + 1;
    assert_memory_equal(out.data, "policy,arrivals,rate,batcher,drop,requests,late,", 48);
    assert_memory_equal(second, "greedy,poisson:8,8,triton,standard,1000,20,30,0.05,0.038,0.065,",
                        63);
    assert_memory_equal(third, "floor,poisson:8,8,wattgov,early,0,0,0,", 38);
    assert_non_null(strstr(third, ",0.65,,0,,0,0,0,0,,,0\n"));
    for (const char *line = out.data; *line != '\0'; line = strchr(line, '\n') + 1) {
        size_t commas = 0;
        for (const char *c = line; *c != '\n'; c++)
            commas += *c == ',';
        assert_int_equal(commas, 25);
    }
    wg__buffer_fini(&out);
}

static void check_text(const struct wg_serving_study_request *request, const char *const *said)
{
    struct wg_serving_cell cells[] = {make_cell(0), make_cell(1), make_cell(2)};
    cells[1].violation_rate = 0.02;
    cells[1].sum.finished_s = 75;
    cells[2].violation_rate = 0.015;
    cells[2].sum.jobs_finished = 0;
    const struct wg_serving_study study = {3, cells, 1e6, 5e5};
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__serving_text(&study, request, false, &out);
    assert_false(out.failed);
    for (size_t i = 0; said[i] != NULL; i++)
        if (strstr(out.data, said[i]) == NULL)
            fail_msg("'%s' is not in\n%s", said[i], out.data);
    for (const char *line = out.data; *line != '\0'; line = strchr(line, '\n') + 1)
        if (strcspn(line, "\n") > 120 && strchr("\xe2", *line) == NULL) /* no rule */
            fail_msg("%s", out.data);
    wg__buffer_fini(&out);
}

static void text_says_what_the_load_leaves(void **state)
{
    (void)state;
    struct wg_serving_study_request request = make_request();
    const char *const usual[] = {
        "made-up: SLO 700ms; fine-tuning of 10 iterations of 50 rows.\n4 runs of 30s each.",
        "poisson:8",
        "greedy",
        "5.00 %",
        "3.00 - 7.00",
        "20.0 s (75 %)",
        "25.0 %",
        "1.500",
        "inference takes at least 72.0 % of the GPU (in batches of 3):\n",
        "\na job that is 10.5 s of work alone can end at 37.5 s.\n",
        "wattgov's fine-tuning costs 0.50 points of violations above the floor;\n",
        "\nin the 75 % of the runs in which its job was done it took 1.25 times greedy's 20.0 s.\n",
        NULL};
    check_text(&request, usual);
    for (size_t i = 0; i < request.policy_count; i++)
        request.policies[i].batcher = WG_BATCHER_NONE;
    /* one by one they take 8 * 0.13 of the GPU, whatever they may wait */
    const char *const one_by_one[] = {
        "At 8 requests/s and an SLO of 700ms inference needs the whole GPU", NULL};
    check_text(&request, one_by_one);
    request = make_request();
    request.base.job.iterations = UINT64_MAX;
    request.base.change_count = 2;
    request.base.changes[0] = (struct wg_slo_change){10, 0.1};
    request.base.changes[1] = (struct wg_slo_change){20, 0.131};
    const char *const changed[] = {
        "SLO 700ms, from 10 s on 100ms, from 20 s on 131ms; fine-tuning without end",
        "at most 28.0 % is left.",
        "No batch answers within an SLO of 100ms: it leaves fine-tuning no room.",
        "At 8 requests/s and an SLO of 131ms inference needs the whole GPU", NULL};
    check_text(&request, changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_is_the_least_share_of_the_batches_that_keep_the_slo),
        cmocka_unit_test(work_is_that_of_whole_iterations),
        cmocka_unit_test(figures_follow_from_the_sums),
        cmocka_unit_test(the_interval_is_that_of_runs_if_they_differ),
        cmocka_unit_test(json_has_the_keys_that_were_promised),
        cmocka_unit_test(csv_has_a_row_per_cell_and_blanks_for_what_is_absent),
        cmocka_unit_test(text_says_what_the_load_leaves),
    };
    return run_tests(tests);
}
