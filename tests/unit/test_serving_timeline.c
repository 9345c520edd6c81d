/* SPDX-License-Identifier: MIT
 *
 * Timelines of single runs, and the report that shows them: in the simulator's world, around a
 * scheduler whose actions are known.
 */
#include "cli/serving_timeline.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/report_serving.h"
#include "support/check.h"
#include "support/fifo_scheduler.h"
#include "support/xml.h"

static const struct wg_serving_profile profile = {
    .name = "made <up>",
    .source = "by & hand",
    .max_batch = 4,
    .latency = {.fixed_s = 0.05, .per_row_s = 0.05},
    .gpu_share = 1,
    .has_finetune = true,
    .step_fixed_s = 0.01,
    .step_per_row_s = 0.01,
    .inference_slowdown = 2,
    .finetune_slowdown = 2,
    .ladder = {.count = 2, .rungs = {{"max", 1, 1, 40, 10, 40}, {"low", 0.5, 1, 20, 5, 20}}},
};

static struct wg_serving_study_request make_request(void)
{
    return (struct wg_serving_study_request){
        .base = {.profile = &profile,
                 .slo_s = 0.3,
                 .queue_capacity = 100,
                 .has_job = true,
                 .job = {.id = 1, .batch = 20, .iterations = 10},
                 .duration_s = 30},
        .policy_count = 2,
        .policies = {{"none", WG_FINETUNE_NONE, WG_BATCHER_TRITON, WG_DROP_STANDARD},
                     {"wattgov", WG_FINETUNE_WATTGOV, WG_BATCHER_TRITON, WG_DROP_STANDARD}},
        .law_count = 2,
        .laws = {"poisson:8", "uniform:2"},
        .first_seed = 7,
        .seeds = 2,
        .processes = 1};
}

static size_t count_kind(const struct wg_serving_timeline *timeline, enum wg_timeline_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < timeline->count; i++)
        count += timeline->notes[i].kind == kind;
    return count;
}

static void a_timeline_holds_what_happened(void **state)
{
    (void)state;
    const struct wg_serving_study_request request = make_request();
    struct wg_serving_timeline timeline;
    struct wg_error err = {0};
    if (wg__serving_timeline_run(&timeline, &request, 0, 1, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_string_equal(timeline.title, "none");
    assert_string_equal(timeline.law, "uniform:2");
    assert_false(timeline.is_careless);
    const size_t arrived = count_kind(&timeline, WG_TIMELINE_ARRIVED);
    assert_true(arrived >= 59 && arrived <= 61);
    assert_int_equal(count_kind(&timeline, WG_TIMELINE_BATCH), arrived);
    assert_int_equal(count_kind(&timeline, WG_TIMELINE_BATCH_END), arrived);
    assert_int_equal(count_kind(&timeline, WG_TIMELINE_STEP), 0);
    for (size_t i = 1; i < timeline.count; i++)
        assert_true(timeline.notes[i].at_s >= timeline.notes[i - 1].at_s);
    wg__serving_timeline_fini(&timeline);
    if (wg__serving_timeline_run(&timeline, &request, 1, 1, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(count_kind(&timeline, WG_TIMELINE_STEP), 10);
    wg__serving_timeline_fini(&timeline);
}

static void long_runs_are_recorded_for_two_minutes(void **state)
{
    (void)state;
    struct wg_serving_study_request request = make_request();
    struct wg_serving_timeline timeline;
    request.base.duration_s = 300;
    assert_int_equal(wg__serving_timeline_run(&timeline, &request, 0, 1, NULL), WG_OK);
    assert_true(timeline.notes[timeline.count - 1].at_s <= 120);
    assert_true(timeline.notes[timeline.count - 1].at_s > 118);
    wg__serving_timeline_fini(&timeline);
}

static void memory_that_runs_out_is_told(void **state)
{
    (void)state;
    const struct wg_serving_study_request request = make_request();
    enum wg_code code = WG_ENOMEM;
    size_t nth = 1;
    for (; code == WG_ENOMEM && nth < 200; nth++) {
        struct wg_serving_timeline timeline;
        wg__alloc_fail_from(nth);
        code = wg__serving_timeline_run(&timeline, &request, 1, 0, NULL);
        wg__alloc_fail_from(0);
        wg__serving_timeline_fini(&timeline);
    }
    assert_int_equal(code, WG_OK);
    assert_true(nth > 3);
}

static void the_window_is_where_most_goes_wrong_or_the_slo_changes(void **state)
{
    (void)state;
    struct wg_serving_note notes[] = {{3, WG_TIMELINE_LATE, 1},
                                      {21.5, WG_TIMELINE_DROPPED, 2},
                                      {24, WG_TIMELINE_LATE, 3},
                                      {28, WG_TIMELINE_BATCH, 4},
                                      {28.5, WG_TIMELINE_BATCH, 4}};
    const struct wg_serving_timeline timeline = {.count = 5, .notes = notes};
    struct wg_serving_setup setup = {.duration_s = 60};
    struct wg_serving_window window = wg__serving_timeline_window(&timeline, 1, &setup);
    check_close(window.begin_s, 15, 0); /* the first whole second from which both are seen */
    check_close(window.end_s, 25, 0);
    /* What goes wrong under greedy counts only where there is nothing else. */
    struct wg_serving_note many[] = {
        {40, WG_TIMELINE_LATE, 1}, {41, WG_TIMELINE_LATE, 2}, {42, WG_TIMELINE_LATE, 3}};
    const struct wg_serving_timeline two[] = {{.count = 3, .notes = many, .is_careless = true},
                                              timeline};
    window = wg__serving_timeline_window(two, 2, &setup);
    check_close(window.begin_s, 15, 0);
    window = wg__serving_timeline_window(two, 1, &setup);
    check_close(window.begin_s, 33, 0);
    setup.change_count = 1;
    setup.changes[0].at_s = 30;
    window = wg__serving_timeline_window(&timeline, 1, &setup);
    check_close(window.begin_s, 25, 0);
    check_close(window.end_s, 35, 0);
    setup = (struct wg_serving_setup){.duration_s = 4};
    window = wg__serving_timeline_window(&timeline, 1, &setup);
    check_close_abs(window.begin_s, 0, 0, 0);
    check_close(window.end_s, 4, 0);
}

static void the_law_is_that_under_which_ours_fares_worst(void **state)
{
    (void)state;
    struct wg_serving_study_request request = make_request();
    struct wg_serving_cell cells[] = {{.policy = 0, .law = 0, .violation_rate = 0.9},
                                      {.policy = 1, .law = 0, .violation_rate = 0.01},
                                      {.policy = 0, .law = 1, .violation_rate = 0.1},
                                      {.policy = 1, .law = 1, .violation_rate = 0.02}};
    const struct wg_serving_study study = {.cell_count = 4, .cells = cells};
    assert_int_equal(wg__serving_timeline_law(&study, &request), 1);
    request.policies[1].finetune = WG_FINETUNE_POLYTHROTTLE;
    assert_int_equal(wg__serving_timeline_law(&study, &request), 0);
    for (size_t i = 0; i < 4; i++)
        cells[i].violation_rate = (double)NAN;
    assert_int_equal(wg__serving_timeline_law(&study, &request), 0);
}

static void drawing_shows_what_lies_in_the_window(void **state)
{
    (void)state;
    struct wg_serving_note notes[] = {
        {0.5, WG_TIMELINE_QUEUE, 1},  {1, WG_TIMELINE_BATCH, 3},
        {1, WG_TIMELINE_QUEUE, 0},    {9, WG_TIMELINE_QUEUE, 5},
        {9, WG_TIMELINE_CLOCKS, 1},   {11, WG_TIMELINE_BATCH_END, 0},
        {12, WG_TIMELINE_BATCH, 17},  {13, WG_TIMELINE_LATE, 9},
        {13, WG_TIMELINE_DROPPED, 9}, {14, WG_TIMELINE_BATCH_END, 0},
        {15, WG_TIMELINE_SLO, 250},   {16, WG_TIMELINE_STEP, 8},
        {18, WG_TIMELINE_CLOCKS, 0},  {25, WG_TIMELINE_STEP_END, 0},
        {26, WG_TIMELINE_BATCH, 99},  {27, WG_TIMELINE_BATCH_END, 0},
        {28, WG_TIMELINE_LATE, 99},
    };
    const struct wg_serving_timeline timeline = {.title = "a&b",
                                                 .profile = &profile,
                                                 .has_clocks = true,
                                                 .count = sizeof notes / sizeof *notes,
                                                 .notes = notes};
    const struct wg_serving_window window = {10, 20};
    struct wg_buffer out;
    wg__buffer_init(&out);
    wg__serving_timeline_write(&timeline, &window, 760, &out);
    assert_false(out.failed);
    check_well_formed(out.data);
    assert_int_equal(count_of(out.data, " rows, "), 3); /* two batches and a step */
    assert_non_null(strstr(out.data, "3 rows, 1.000 to 11.000 s"));
    assert_null(strstr(out.data, "99 rows"));
    assert_int_equal(count_of(out.data, "<title>late</title>"), 1);
    assert_int_equal(count_of(out.data, "<title>dropped</title>"), 1);
    assert_non_null(strstr(out.data, "y=\"22.0\">SLO 250ms")); /* above the marks, at 36 */
    assert_non_null(strstr(out.data, ">low</text>"));
    assert_non_null(strstr(out.data, ">max</text>"));
    assert_non_null(strstr(out.data, "a&amp;b"));
    assert_null(strstr(out.data, "nan"));
    wg__buffer_fini(&out);
}

static void write_report(const struct wg_serving_study_request *request, struct wg_buffer *out)
{
    struct wg_serving_study *study = NULL;
    struct wg_serving_timeline timelines[2] = {0};
    struct wg_error err = {0};
    if (wg__serving_study_run(request, &study, &err) != WG_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(wg__serving_timeline_run(&timelines[i], request, i, 0, &err), WG_OK);
    wg__report_serving(study, request, timelines, "wattgov simulate serving <x>", out);
    for (size_t i = 0; i < 2; i++)
        wg__serving_timeline_fini(&timelines[i]);
    wg__serving_study_free(study);
}

static void the_report_is_a_page_that_holds_together(void **state)
{
    (void)state;
    struct wg_serving_study_request request = make_request();
    struct wg_buffer out;
    for (unsigned i = 0; i < 4; i++) {
        request.base.has_job = i != 1;
        request.base.job.iterations = i == 2 ? UINT64_MAX : 10;
        request.base.clocks = i == 3 ? WG_CLOCKS_GOVERNED : WG_CLOCKS_FIXED;
        wg__buffer_init(&out);
        write_report(&request, &out);
        assert_false(out.failed);
        check_well_formed(out.data);
        assert_non_null(strstr(out.data, "made &lt;up&gt;"));
        assert_non_null(strstr(out.data, "by &amp; hand"));
        assert_non_null(strstr(out.data, "serving &lt;x&gt;"));
        assert_int_equal(count_of(out.data, "aria-label=\"timeline of wattgov"), 2);
        assert_int_equal(count_of(out.data, "Late and dropped</text>"), 2);
        assert_int_equal(count_of(out.data, "is done after</text>"), i == 0 || i == 3 ? 2 : 0);
        assert_null(strstr(out.data, "nan"));
        wg__buffer_fini(&out);
    }
}

static void a_report_without_memory_is_marked(void **state)
{
    (void)state;
    const struct wg_serving_study_request request = make_request();
    struct wg_serving_study *study = NULL;
    struct wg_serving_timeline timelines[2] = {0};
    assert_int_equal(wg__serving_study_run(&request, &study, NULL), WG_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(wg__serving_timeline_run(&timelines[i], &request, i, 0, NULL), WG_OK);
    bool has_failed = true;
    size_t failures = 0;
    for (size_t nth = 1; has_failed && nth < 100000; nth += 1 + nth / 8) {
        struct wg_buffer out;
        wg__buffer_init(&out);
        wg__alloc_fail_from(nth);
        wg__report_serving(study, &request, timelines, "x", &out);
        wg__alloc_fail_from(0);
        has_failed = out.failed;
        failures += has_failed;
        wg__buffer_fini(&out);
    }
    assert_false(has_failed);
    assert_true(failures > 10);
    for (size_t i = 0; i < 2; i++)
        wg__serving_timeline_fini(&timelines[i]);
    wg__serving_study_free(study);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timeline_holds_what_happened),
        cmocka_unit_test(long_runs_are_recorded_for_two_minutes),
        cmocka_unit_test(memory_that_runs_out_is_told),
        cmocka_unit_test(the_window_is_where_most_goes_wrong_or_the_slo_changes),
        cmocka_unit_test(the_law_is_that_under_which_ours_fares_worst),
        cmocka_unit_test(drawing_shows_what_lies_in_the_window),
        cmocka_unit_test(the_report_is_a_page_that_holds_together),
        cmocka_unit_test(a_report_without_memory_is_marked),
    };
    return run_tests(tests);
}
