/* SPDX-License-Identifier: MIT
 *
 * Tests of simulate/trace.h: reading a folder of traces. What becomes of the rows is in
 * test_case.c.
 */
#include "simulate/trace.h"

#include "base/alloc.h"
#include "support/tiny_trace.h"

static const char runs_header[] =
    "dataset,network,batch_size,optimizer,run,target_metric,target_epoch\n";
static const char power_header[] =
    "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n";

/* Opens the scratch folder, which must fail with `code` and a message that has both parts. */
static void check_rejects(struct scratch *scratch, enum wg_code code, const char *part,
                          const char *other_part)
{
    struct wg_training_trace *trace = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__trace_open(&trace, scratch->folder, &err), code);
    assert_null(trace);
    check_says(err, part);
    check_says(err, other_part);
}

/* The tiny trace with one row more in the runs. */
static void check_rejects_run(const char *row, const char *part)
{
    struct scratch scratch;
    scratch_open(&scratch);
    tiny_copy(&scratch);
    tiny_append(&scratch, "summary_train.csv", row);
    check_rejects(&scratch, WG_EDATA, "summary_train.csv:20", part);
    scratch_close(&scratch);
}

static void check_rejects_power(const char *row, const char *part)
{
    struct scratch scratch;
    scratch_open(&scratch);
    tiny_copy(&scratch);
    tiny_append(&scratch, "summary_power_toy.csv", row);
    check_rejects(&scratch, WG_EDATA, "summary_power_toy.csv:12", part);
    scratch_close(&scratch);
}

static void lists_gpus_in_lower_case_and_sorted(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_open(&tiny);
    assert_int_equal(wg__trace_gpu_count(tiny.trace), 2);
    assert_string_equal(wg__trace_gpu(tiny.trace, 0), "tiny");
    assert_string_equal(wg__trace_gpu(tiny.trace, 1), "toy");
    tiny_close(&tiny);
}

static void knows_which_jobs_a_gpu_has(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_open(&tiny);
    assert_true(wg__trace_has_job(tiny.trace, "toy", tiny_job(&tiny, "toy")));
    assert_true(wg__trace_has_job(tiny.trace, "TINY", tiny_job(&tiny, "toy")));
    assert_true(wg__trace_has_job(tiny.trace, "toy", tiny_job(&tiny, "hopeless")));
    assert_false(wg__trace_has_job(tiny.trace, "tiny", tiny_job(&tiny, "hopeless")));
    assert_false(wg__trace_has_job(tiny.trace, "other", tiny_job(&tiny, "toy")));
    tiny_close(&tiny);
}

static void reads_the_bundled_traces(void **state)
{
    (void)state;
    char path[TINY_PATH_BYTES];
    struct wg_training_trace *trace = NULL;
    struct wg_job_table *jobs = NULL;
    struct wg_error err;
    tiny_source_path(path, "data/zeus/trace");
    assert_int_equal(wg__trace_open(&trace, path, &err), WG_OK);
    assert_int_equal(wg__job_table_open(&jobs, NULL, &err), WG_OK);
    assert_int_equal(wg__trace_gpu_count(trace), 2);
    for (size_t gpu = 0; gpu < 2; gpu++)
        for (size_t i = 0; i < jobs->count; i++)
            assert_true(wg__trace_has_job(trace, wg__trace_gpu(trace, gpu), &jobs->jobs[i]));
    wg__job_table_close(jobs);
    wg__trace_close(trace);
}

static void rejects_a_folder_that_is_missing(void **state)
{
    (void)state;
    struct wg_training_trace *trace = NULL;
    struct wg_error err;
    assert_int_equal(wg__trace_open(&trace, "/nowhere/at/all", &err), WG_ENOENT);
    check_says(err, "/nowhere/at/all");
}

static void rejects_a_folder_without_power_files(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    tiny_write(&scratch, "summary_train.csv", runs_header);
    check_rejects(&scratch, WG_ENOENT, "summary_power_<gpu>.csv", scratch.folder);
    scratch_close(&scratch);
}

static void rejects_a_folder_without_runs(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    tiny_write(&scratch, "summary_power_toy.csv", power_header);
    check_rejects(&scratch, WG_ENOENT, "summary_train.csv", scratch.folder);
    scratch_close(&scratch);
}

static void rejects_empty_files(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    tiny_copy(&scratch);
    tiny_write(&scratch, "summary_train.csv", "");
    check_rejects(&scratch, WG_EDATA, "summary_train.csv", "empty");
    tiny_write(&scratch, "summary_train.csv", runs_header);
    check_rejects(&scratch, WG_EDATA, "summary_train.csv", "no rows");
    tiny_copy(&scratch);
    tiny_write(&scratch, "summary_power_toy.csv", power_header);
    check_rejects(&scratch, WG_EDATA, "summary_power_toy.csv", "no rows");
    scratch_close(&scratch);
}

static void rejects_a_missing_column(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    tiny_copy(&scratch);
    tiny_write(&scratch, "summary_train.csv", "dataset,network,batch_size,optimizer,run\n");
    check_rejects(&scratch, WG_EDATA, "summary_train.csv", "target_metric");
    scratch_close(&scratch);
}

static void rejects_a_bad_cell_with_its_line_and_column(void **state)
{
    (void)state;
    check_rejects_run("d,n,eight,sgd,0.1,3,0.5,4", "batch_size");
    check_rejects_run("d,n,0,sgd,0.1,3,0.5,4", "at least 1");
    check_rejects_run("d,n,nan,sgd,0.1,3,0.5,4", "batch_size");
    check_rejects_run("d,n,8,sgd,0.1,3,x,4", "target_metric");
    check_rejects_run("d,n,8,sgd,0.1,3,0.5,2.5", "target_epoch");
    check_rejects_run("d,n,8,sgd,0.1,3,0.5,0", "target_epoch");
    check_rejects_run("d,n,8,sgd,0.1,3,0.5,-1", "target_epoch");
    check_rejects_run("d,n,8,sgd,0.1,3,0.5,1e9", "target_epoch");
    check_rejects_run("d,n,8", "8"); /* too short: says how many fields the header has */
    check_rejects_power("d,n,8,sgd,150,nan,100", "time_per_epoch");
    check_rejects_power("d,n,8,sgd,150,10,0", "average_power");
    check_rejects_power("d,n,8,sgd,-150,10,100", "power_limit");
    check_rejects_power("d,n,8,sgd,150,inf,100", "time_per_epoch");
    /* Beyond what can be measured, and what costs can be computed from. */
    check_rejects_run("d,n,1e13,sgd,0.1,3,0.5,1", "at most 1e+12");
    check_rejects_power("d,n,8,sgd,150,1e200,100", "time_per_epoch");
    check_rejects_power("d,n,8,sgd,150,1e-308,100", "from 1e-09 to 1e+09");
    check_rejects_power("d,n,8,sgd,150,10,2e9", "average_power");
    check_rejects_power("d,n,8,sgd,1e160,10,100", "power_limit");
}

static void rejects_two_files_for_one_gpu(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    tiny_copy(&scratch);
    tiny_write(&scratch, "summary_power_TOY.csv", power_header);
    check_rejects(&scratch, WG_EDATA, "two files", "toy");
    scratch_close(&scratch);
}

static void closing_nothing_is_fine(void **state)
{
    (void)state;
    wg__trace_close(NULL);
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    char path[TINY_PATH_BYTES];
    tiny_source_path(path, "tests/golden/tiny_trace");
    struct wg_training_trace *trace = NULL;
    struct wg_error err;
    enum wg_code code = WG_ENOMEM;
    size_t failures = 0;
    for (size_t nth = 1; code != WG_OK; nth++) {
        wg__alloc_fail_from(nth);
        code = wg__trace_open(&trace, path, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_null(trace);
        failures++;
    }
    assert_true(failures > 5);
    wg__trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_gpus_in_lower_case_and_sorted),
        cmocka_unit_test(knows_which_jobs_a_gpu_has),
        cmocka_unit_test(reads_the_bundled_traces),
        cmocka_unit_test(rejects_a_folder_that_is_missing),
        cmocka_unit_test(rejects_a_folder_without_power_files),
        cmocka_unit_test(rejects_a_folder_without_runs),
        cmocka_unit_test(rejects_empty_files),
        cmocka_unit_test(rejects_a_missing_column),
        cmocka_unit_test(rejects_a_bad_cell_with_its_line_and_column),
        cmocka_unit_test(rejects_two_files_for_one_gpu),
        cmocka_unit_test(closing_nothing_is_fine),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return run_tests(tests);
}
