/* SPDX-License-Identifier: MIT
 *
 * Tests of simulate/job_table.h.
 */
#include "simulate/job_table.h"

#include "base/alloc.h"
#include "support/tiny_trace.h"

#define HEADER                                                                                     \
    "job,dataset,network,optimizer,metric,direction,target_metric,max_epochs,default_batch_size"

static void check_rejects(const char *text, const char *part)
{
    struct scratch scratch;
    scratch_open(&scratch);
    tiny_write(&scratch, "jobs.csv", text);
    struct wg_job_table *table = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__job_table_open(&table, scratch.path, &err), WG_EDATA);
    assert_null(table);
    check_says(err, "jobs.csv");
    check_says(err, part);
    scratch_close(&scratch);
}

/* Zeus's six workloads: You et al., NSDI'23, table 1. */
static void has_the_workloads_of_zeus_built_in(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double target;
        unsigned max_epochs;
        double batch_size;
        bool higher_is_better;
    } expected[] = {
        {"librispeech", 40, 16, 192, false},   {"squad", 84, 6, 32, true},
        {"sentiment140", 0.84, 10, 128, true}, {"imagenet", 0.65, 100, 256, true},
        {"cifar100", 0.6, 100, 1024, true},    {"movielens-1m", 0.41, 100, 1024, true},
    };
    struct wg_job_table *table = NULL;
    struct wg_error err;
    assert_int_equal(wg__job_table_open(&table, NULL, &err), WG_OK);
    assert_int_equal(table->count, 6);
    for (size_t i = 0; i < 6; i++) {
        const struct wg_training_job *job = wg__job_table_find(table, expected[i].name);
        assert_non_null(job);
        check_close(job->target_metric, expected[i].target, 0);
        assert_int_equal(job->max_epochs, expected[i].max_epochs);
        check_close(job->default_batch_size, expected[i].batch_size, 0);
        assert_int_equal(job->higher_is_better, expected[i].higher_is_better);
        assert_true(job->only_profiled);
        check_close(job->critical_batch_scale, 1, 0);
        check_close(job->epoch_time_scale, 1, 0);
    }
    wg__job_table_close(table);
}

static void reads_the_optional_columns(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_open(&tiny);
    assert_int_equal(tiny.jobs->count, 5);
    const struct wg_training_job *slow = tiny_job(&tiny, "toy-slow");
    check_close(slow->epoch_time_scale, 2, 0);
    check_close(slow->critical_batch_scale, 1, 0);
    check_close(tiny_job(&tiny, "toy-large")->critical_batch_scale, 2, 0);
    assert_true(slow->only_profiled);
    assert_false(tiny_job(&tiny, "hopeless")->only_profiled);
    assert_string_equal(slow->dataset, "d");
    assert_string_equal(slow->network, "n");
    assert_string_equal(slow->optimizer, "sgd");
    assert_string_equal(slow->metric, "accuracy");
    tiny_close(&tiny);
}

static void goes_without_the_optional_columns(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    tiny_write(&scratch, "jobs.csv", HEADER "\na,d,n,sgd,loss,lower,1.5,10,8\n");
    struct wg_job_table *table = NULL;
    struct wg_error err;
    assert_int_equal(wg__job_table_open(&table, scratch.path, &err), WG_OK);
    assert_int_equal(table->count, 1);
    assert_false(table->jobs[0].only_profiled);
    assert_false(table->jobs[0].higher_is_better);
    check_close(table->jobs[0].critical_batch_scale, 1, 0);
    check_close(table->jobs[0].epoch_time_scale, 1, 0);
    assert_string_equal(table->source, scratch.path);
    wg__job_table_close(table);
    scratch_close(&scratch);
}

static void finds_only_what_is_there(void **state)
{
    (void)state;
    struct tiny tiny;
    tiny_open(&tiny);
    assert_null(wg__job_table_find(tiny.jobs, "to"));
    assert_null(wg__job_table_find(tiny.jobs, "TOY"));
    assert_null(wg__job_table_find(tiny.jobs, ""));
    tiny_close(&tiny);
}

static void rejects_bad_tables(void **state)
{
    (void)state;
    check_rejects("", "empty");
    check_rejects(HEADER "\n", "no jobs");
    check_rejects("job,dataset\na,d\n", "network");
    check_rejects(HEADER "\n,d,n,sgd,loss,lower,1.5,10,8\n", "jobs.csv:2");
    check_rejects(HEADER "\na,d,n,sgd,loss,down,1.5,10,8\n", "'lower' or 'higher', not 'down'");
    check_rejects(HEADER "\na,d,n,sgd,loss,lower,nan,10,8\n", "target_metric");
    check_rejects(HEADER "\na,d,n,sgd,loss,lower,1.5,0,8\n", "max_epochs");
    check_rejects(HEADER "\na,d,n,sgd,loss,lower,1.5,1.5,8\n", "max_epochs");
    check_rejects(HEADER "\na,d,n,sgd,loss,lower,1.5,10,0\n", "default_batch_size");
    check_rejects(HEADER "\na,d,n,sgd,loss,lower,1.5,10,-8\n", "above 0");
    check_rejects(HEADER "\na,d,n,sgd,loss,lower,1,10,8\na,d,n,sgd,loss,lower,1,10,8\n",
                  "jobs.csv:3: job 'a' stands twice");
    check_rejects(HEADER ",batch_sizes\na,d,n,sgd,loss,lower,1,10,8,some\n", "batch_sizes");
    check_rejects(HEADER ",epoch_time_scale\na,d,n,sgd,loss,lower,1,10,8,0\n", "above 0");
    check_rejects(HEADER ",epoch_time_scale\na,d,n,sgd,loss,lower,1,10,8,1e300\n",
                  "from 1e-06 to 1e+06");
    check_rejects(HEADER "\na,d,n,sgd,loss,lower,1.5,10,1e13\n", "default_batch_size");
    check_rejects(HEADER ",critical_batch_scale\na,d,n,sgd,loss,lower,1,10,8,x\n",
                  "critical_batch_scale");
}

static void rejects_a_missing_file(void **state)
{
    (void)state;
    struct wg_job_table *table = NULL;
    struct wg_error err;
    assert_int_equal(wg__job_table_open(&table, "/nowhere/jobs.csv", &err), WG_ENOENT);
    check_says(err, "/nowhere/jobs.csv");
    wg__job_table_close(NULL);
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    struct wg_job_table *table = NULL;
    struct wg_error err;
    enum wg_code code = WG_ENOMEM;
    size_t failures = 0;
    for (size_t nth = 1; code != WG_OK; nth++) {
        wg__alloc_fail_from(nth);
        code = wg__job_table_open(&table, NULL, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_null(table);
        failures++;
    }
    assert_true(failures > 3);
    wg__job_table_close(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_the_workloads_of_zeus_built_in),
        cmocka_unit_test(reads_the_optional_columns),
        cmocka_unit_test(goes_without_the_optional_columns),
        cmocka_unit_test(finds_only_what_is_there),
        cmocka_unit_test(rejects_bad_tables),
        cmocka_unit_test(rejects_a_missing_file),
        cmocka_unit_test(survives_every_failed_allocation),
    };
    return run_tests(tests);
}
