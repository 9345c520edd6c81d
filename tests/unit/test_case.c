/* SPDX-License-Identifier: MIT
 *
 * Tests of joining a GPU and a job of a trace into a case (simulate/trace.h, case.c). The numbers
 * are those of tests/golden/tiny_trace.
 */
#include <math.h>

#include "base/alloc.h"
#include "support/tiny_trace.h"

/* Joins `gpu` and `job` of the scratch folder, which must fail so. */
static void check_rejects(const struct scratch *scratch, const struct wg_training_job *job,
                          enum wg_code code, const char *part, const char *other_part)
{
    struct wg_training_trace *trace = NULL;
    struct wg_training_case *made = NULL;
    struct wg_error err = {0};
    scratch_require(wg__trace_open(&trace, scratch->folder, &err) == WG_OK, err.text);
    assert_int_equal(wg__trace_case(trace, "toy", job, &made, &err), code);
    assert_null(made);
    check_says(err, part);
    check_says(err, other_part);
    wg__trace_close(trace);
}

static void joins_runs_and_power_rows(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_training_case *toy = tiny_case(&tiny, "TOY", "toy");
    assert_string_equal(toy->gpu, "toy");
    assert_string_equal(toy->job, "toy");
    assert_string_equal(toy->metric, "accuracy");
    assert_true(toy->higher_is_better);
    check_close(toy->target_metric, 0.5, 0);
    assert_int_equal(toy->max_epochs, 10);
    check_close(toy->max_power_w, 200, 0);
    assert_int_equal(toy->limit_count, 2);
    check_close(toy->limit_w[0], 100, 0);
    check_close(toy->limit_w[1], 200, 0);
    assert_int_equal(toy->arm_count, 3);
    assert_int_equal(toy->default_arm, 0);
    const double sizes[] = {8, 16, 32};
    const double times[][2] = {{20, 10}, {9, 8}, {10, 6}};
    const double powers[][2] = {{80, 160}, {90, 150}, {100, 180}};
    const unsigned epochs[][2] = {{4, 4}, {3, 5}, {6, 0}};
    for (size_t arm = 0; arm < 3; arm++) {
        check_close(toy->arms[arm].batch_size, sizes[arm], 0);
        assert_int_equal(toy->arms[arm].run_count, 2);
        for (size_t i = 0; i < 2; i++) {
            check_close(toy->arms[arm].epoch_time_s[i], times[arm][i], 0);
            check_close(toy->arms[arm].power_w[i], powers[arm][i], 0);
            assert_int_equal(toy->arms[arm].runs[i].target_epoch, epochs[arm][i]);
        }
    }
    wg__case_free(toy);
    tiny_close(&tiny);
}

static void keeps_the_milestones_in_the_order_of_time(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_training_case *toy = tiny_case(&tiny, "toy", "toy");
    const struct wg_training_run *run = &toy->arms[1].runs[1];
    assert_int_equal(run->milestone_count, 2);
    check_close(run->milestones[0].metric, 0.3, 0);
    assert_int_equal(run->milestones[0].epoch, 2);
    check_close(run->milestones[1].metric, 0.5, 0);
    assert_int_equal(run->milestones[1].epoch, 5);
    assert_int_equal(toy->arms[2].runs[1].milestone_count, 0); /* it reached nothing */
    wg__case_free(toy);
    tiny_close(&tiny);
}

static void leaves_out_what_was_not_measured(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_training_case *toy = tiny_case(&tiny, "toy", "toy");
    assert_int_equal(toy->left_out_count, 1);
    check_close(toy->left_out[0], 64, 0);
    wg__case_free(toy);
    /* The other GPU has other limits and fewer batch sizes. */
    struct wg_training_case *other = tiny_case(&tiny, "tiny", "toy-16");
    assert_int_equal(other->arm_count, 2);
    check_close(other->arms[0].batch_size, 16, 0);
    assert_int_equal(other->limit_count, 3);
    check_close(other->max_power_w, 150, 0);
    assert_int_equal(other->left_out_count, 2);
    check_close(other->left_out[0], 8, 0);
    check_close(other->left_out[1], 64, 0);
    wg__case_free(other);
    tiny_close(&tiny);
}

static void rejects_a_batch_size_without_power_rows_unless_told(void **state)
{
    (void)state;
    struct tiny tiny;
    struct scratch scratch;
    tiny_open(&tiny);
    scratch_open(&scratch);
    tiny_copy(&scratch);
    struct wg_training_job job = *tiny_job(&tiny, "toy");
    job.only_profiled = false;
    check_rejects(&scratch, &job, WG_EDATA, "summary_power_toy.csv",
                  "batch size 64 has training runs but no power rows");
    scratch_close(&scratch);
    tiny_close(&tiny);
}

static void rejects_incomplete_and_doubled_limits(void **state)
{
    (void)state;
    struct tiny tiny;
    struct scratch scratch;
    tiny_open(&tiny);
    scratch_open(&scratch);
    tiny_copy(&scratch);
    tiny_append(&scratch, "summary_power_toy.csv", "d,n,64,sgd,100,5,50");
    check_rejects(&scratch, tiny_job(&tiny, "toy"), WG_EDATA, "summary_power_toy.csv",
                  "batch size 64 has no row at 200 W");
    tiny_copy(&scratch);
    tiny_append(&scratch, "summary_power_toy.csv", "d,n,8,sgd,100,21,80");
    check_rejects(&scratch, tiny_job(&tiny, "toy"), WG_EDATA, "summary_power_toy.csv:12",
                  "batch size 8 at 100 W stands twice");
    scratch_close(&scratch);
    tiny_close(&tiny);
}

static void rejects_targets_that_cannot_be_reached(void **state)
{
    (void)state;
    struct tiny tiny;
    struct scratch scratch;
    tiny_open(&tiny);
    scratch_open(&scratch);
    tiny_copy(&scratch);
    struct wg_training_job job = *tiny_job(&tiny, "toy");
    job.target_metric = 0.9;
    check_rejects(&scratch, &job, WG_EUNREACHABLE, "summary_train.csv",
                  "target metric 0.9; expected one that the runs have: 0.3, 0.5");
    job = *tiny_job(&tiny, "hopeless");
    job.default_batch_size = 32;
    check_rejects(&scratch, &job, WG_EUNREACHABLE, "summary_train.csv: job",
                  "never reached within 10 epochs at the default batch size 32");
    job = *tiny_job(&tiny, "toy");
    job.max_epochs = 3; /* batch size 8 needs 4 */
    check_rejects(&scratch, &job, WG_EUNREACHABLE, "within 3 epochs", "'toy' on toy");
    scratch_close(&scratch);
    tiny_close(&tiny);
}

static void rejects_what_the_trace_does_not_hold(void **state)
{
    (void)state;
    struct tiny tiny;
    struct scratch scratch;
    tiny_open(&tiny);
    scratch_open(&scratch);
    tiny_copy(&scratch);
    struct wg_training_job job = *tiny_job(&tiny, "toy");
    job.default_batch_size = 12;
    check_rejects(&scratch, &job, WG_EDATA, "default batch size 12", "from 8 to 32");
    job = *tiny_job(&tiny, "toy");
    job.network = "unknown";
    check_rejects(&scratch, &job, WG_EDATA, "summary_train.csv",
                  "no training runs of d/unknown/sgd");
    struct wg_training_case *made = NULL;
    struct wg_error err;
    assert_int_equal(wg__trace_case(tiny.trace, "tiny", tiny_job(&tiny, "hopeless"), &made, &err),
                     WG_EDATA);
    check_says(err, "no power rows of d/m/sgd");
    assert_int_equal(wg__trace_case(tiny.trace, "h100", tiny_job(&tiny, "toy"), &made, &err),
                     WG_ENOENT);
    check_says(err, "summary_power_h100.csv");
    assert_null(made);
    scratch_close(&scratch);
    tiny_close(&tiny);
}

/* As Zeus does it: a default above the largest batch size that fits the GPU becomes that one. */
/* Of many targets those are named that are nearest to the one that was asked for. */
static void names_the_targets_nearest_to_a_wrong_one(void **state)
{
    (void)state;
    struct tiny tiny;
    struct scratch scratch;
    tiny_open(&tiny);
    scratch_open(&scratch);
    tiny_copy(&scratch);
    for (int i = 12; i > 0; i--) { /* 1 .. 12, beside 0.3 and 0.5 */
        char row[64];
        (void)snprintf(row, sizeof row, "d,n,8,sgd,0.1,1,%d,nan", i);
        tiny_append(&scratch, "summary_train.csv", row);
    }
    struct wg_training_job job = *tiny_job(&tiny, "toy");
    job.target_metric = 99;
    check_rejects(&scratch, &job, WG_EUNREACHABLE, "summary_train.csv",
                  "expected one that the runs have, such as: 3, 4, 5, 6, 7, 8, 9, 10, 11, 12");
    job.target_metric = 0.4;
    check_rejects(&scratch, &job, WG_EUNREACHABLE, "summary_train.csv",
                  "such as: 0.3, 0.5, 1, 2, 3, 4, 5, 6, 7, 8");
    scratch_close(&scratch);
    tiny_close(&tiny);
}

/* Two rows that say different things, or whose metrics differ by rounding alone. */
static void rejects_a_run_with_two_rows_for_the_target(void **state)
{
    (void)state;
    static const char *const rows[] = {"d,n,16,sgd,0.1,2,0.5,9",
                                       "d,n,16,sgd,0.1,2,0.5000000000001,5"};
    struct tiny tiny;
    tiny_open(&tiny);
    for (size_t i = 0; i < 2; i++) {
        struct scratch scratch;
        scratch_open(&scratch);
        tiny_copy(&scratch);
        tiny_append(&scratch, "summary_train.csv", rows[i]);
        check_rejects(&scratch, tiny_job(&tiny, "toy"), WG_EDATA, "summary_train.csv:20",
                      "run '2' of batch size 16 has target metric 0.5 twice");
        scratch_close(&scratch);
    }
    tiny_close(&tiny);
}

static void lowers_a_default_that_is_too_large(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_training_job job = *tiny_job(&tiny, "toy");
    job.default_batch_size = 1000;
    struct wg_training_case *made = NULL;
    struct wg_error err;
    assert_int_equal(wg__trace_case(tiny.trace, "toy", &job, &made, &err), WG_OK);
    assert_int_equal(made->default_arm, 2);
    wg__case_free(made);
    tiny_close(&tiny);
}

static void drops_runs_that_say_nothing_of_the_target(void **state)
{
    (void)state;
    struct tiny tiny;
    struct scratch scratch;
    tiny_open(&tiny);
    scratch_open(&scratch);
    tiny_copy(&scratch);
    tiny_append(&scratch, "summary_train.csv", "d,n,8,sgd,0.1,3,0.3,1");
    struct wg_training_trace *trace = NULL;
    struct wg_training_case *made = NULL;
    struct wg_error err;
    assert_int_equal(wg__trace_open(&trace, scratch.folder, &err), WG_OK);
    assert_int_equal(wg__trace_case(trace, "toy", tiny_job(&tiny, "toy"), &made, &err), WG_OK);
    assert_int_equal(made->arms[0].run_count, 2);
    wg__case_free(made);
    wg__trace_close(trace);
    scratch_close(&scratch);
    tiny_close(&tiny);
}

static void scales_epoch_time_and_critical_batch(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_training_case *slow = tiny_case(&tiny, "toy", "toy-slow");
    check_close(slow->arms[0].epoch_time_s[0], 40, 0);
    check_close(slow->arms[2].epoch_time_s[1], 12, 0);
    check_close(slow->arms[2].power_w[1], 180, 0);
    wg__case_free(slow);
    /* At twice the critical batch size, 16 needs what 8 needed and 32 what 16 did; 8 has no
     * smaller one and keeps its own. */
    struct wg_training_case *large = tiny_case(&tiny, "toy", "toy-large");
    const unsigned epochs[][2] = {{4, 4}, {4, 4}, {3, 5}};
    for (size_t arm = 0; arm < 3; arm++)
        for (size_t run = 0; run < 2; run++)
            assert_int_equal(large->arms[arm].runs[run].target_epoch, epochs[arm][run]);
    wg__case_free(large);
    tiny_close(&tiny);
}

static void intersects_two_jobs(void **state)
{
    (void)state;
    struct tiny tiny;
    struct wg_error err;
    tiny_open(&tiny);
    struct wg_training_case *toy = tiny_case(&tiny, "toy", "toy");
    struct wg_training_case *hopeless = tiny_case(&tiny, "toy", "hopeless");
    assert_int_equal(wg__case_intersect(toy, hopeless, &err), WG_OK);
    assert_int_equal(toy->arm_count, 2);
    assert_int_equal(hopeless->arm_count, 2);
    for (size_t arm = 0; arm < 2; arm++)
        check_close(toy->arms[arm].batch_size, hopeless->arms[arm].batch_size, 0);
    check_close(toy->arms[1].batch_size, 32, 0);
    assert_int_equal(toy->arms[1].runs[0].target_epoch, 6);
    assert_int_equal(toy->default_arm, 0);
    wg__case_free(toy);
    wg__case_free(hopeless);
    tiny_close(&tiny);
}

static void refuses_to_intersect_a_default_away(void **state)
{
    (void)state;
    struct tiny tiny;
    struct wg_error err;
    tiny_open(&tiny);
    struct wg_training_case *toy = tiny_case(&tiny, "toy", "toy-16");
    struct wg_training_case *hopeless = tiny_case(&tiny, "toy", "hopeless");
    assert_int_equal(wg__case_intersect(toy, hopeless, &err), WG_EINVAL);
    check_says(err, "default batch size 16");
    wg__case_free(toy);
    wg__case_free(hopeless);
    wg__case_free(NULL);
    tiny_close(&tiny);
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_open(&tiny);
    struct wg_training_case *made = NULL;
    struct wg_error err;
    enum wg_code code = WG_ENOMEM;
    size_t failures = 0;
    for (size_t nth = 1; code != WG_OK; nth++) {
        wg__alloc_fail_from(nth);
        code = wg__trace_case(tiny.trace, "toy", tiny_job(&tiny, "toy-large"), &made, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_null(made);
        failures++;
    }
    assert_true(failures > 1);
    wg__case_free(made);
    tiny_close(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_runs_and_power_rows),
        cmocka_unit_test(keeps_the_milestones_in_the_order_of_time),
        cmocka_unit_test(leaves_out_what_was_not_measured),
        cmocka_unit_test(rejects_a_batch_size_without_power_rows_unless_told),
        cmocka_unit_test(rejects_incomplete_and_doubled_limits),
        cmocka_unit_test(rejects_targets_that_cannot_be_reached),
        cmocka_unit_test(rejects_what_the_trace_does_not_hold),
        cmocka_unit_test(names_the_targets_nearest_to_a_wrong_one),
        cmocka_unit_test(rejects_a_run_with_two_rows_for_the_target),
        cmocka_unit_test(lowers_a_default_that_is_too_large),
        cmocka_unit_test(drops_runs_that_say_nothing_of_the_target),
        cmocka_unit_test(scales_epoch_time_and_critical_batch),
        cmocka_unit_test(intersects_two_jobs),
        cmocka_unit_test(refuses_to_intersect_a_default_away),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return run_tests(tests);
}
