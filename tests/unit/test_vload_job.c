/* SPDX-License-Identifier: MIT
 *
 * A measured job as a load: its rows, its learning curve, its errors, its memory.
 */
#include "vgpu/vload_job.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

static const char *trace_folder(char out[static 512])
{
    const char *root = getenv("WATTGOV_SOURCE_ROOT");
    (void)snprintf(out, 512, "%s/data/zeus/trace", root != NULL ? root : ".");
    return out;
}

static struct vload_request cifar100(char folder[static 512])
{
    return (struct vload_request){.trace_dir = trace_folder(folder),
                                  .job = "cifar100",
                                  .gpu = "V100",
                                  .batch_size = 1024,
                                  .seed = 1};
}

static void open_job(struct vload_job *job, const struct vload_request *request)
{
    struct wg_error err = {0};
    if (vload_job_open(job, request, &err) != WG_OK)
        fail_msg("%s", err.text);
}

static void expect_error(const struct vload_request *request, const char *expected)
{
    struct vload_job job;
    struct wg_error err = {0};
    assert_int_equal(vload_job_open(&job, request, &err), WG_EINVAL);
    if (strstr(err.text, expected) == NULL)
        fail_msg("'%s', expected '%s'", err.text, expected);
    assert_null(job.training);
}

static void the_load_has_the_measured_power_and_speed(void **state)
{
    (void)state;
    char folder[512];
    const struct vload_request request = cifar100(folder);
    struct vload_job job;
    open_job(&job, &request);
    const struct vgpu_model model = {.idle_w = 33, .load_w = 262};
    struct vgpu_load load;
    vload_job_load(&job, &model, &load);
    assert_int_equal(load.curve_count, 7);
    /* The first and last row of summary_power_v100.csv for this job and batch size. */
    check_close(load.curve_limit_w[0], 100, 0);
    check_close(load.curve_limit_w[6], 250, 0);
    check_close(load.curve_speed[6], 1, 0);
    check_close(load.curve_speed[0], 7.613333333333334 / 11.276666666666666, 1e-12);
    /* Over a step the power is idle + share of the curve's: the measured mean. */
    const double mean_w = 33 + VLOAD_MEAN_UTILIZATION * (load.curve_power_w[6] - 33);
    check_close(mean_w, 187.68996594563717, 1e-12);
    vload_job_close(&job);
}

static void a_job_draws_no_less_than_an_idle_gpu(void **state)
{
    (void)state;
    char folder[512];
    const struct vload_request request = cifar100(folder);
    struct vload_job job;
    open_job(&job, &request);
    const struct vgpu_model model = {.idle_w = 120, .load_w = 700};
    struct vgpu_load load;
    vload_job_load(&job, &model, &load);
    check_close(load.curve_power_w[0], 120, 0); /* 87 W were measured on the V100 */
    assert_true(load.curve_power_w[6] > 120);
    vload_job_close(&job);
}

/* A run as it is recorded: 0.1 after epoch 2, 0.2 and 0.3 after 4, 0.4 after 8. */
static void the_metric_is_linear_between_what_was_recorded(void **state)
{
    (void)state;
    struct wg_milestone marks[] = {{0.1, 2}, {0.2, 4}, {0.3, 4}, {0.4, 8}};
    const struct wg_training_run run = {.milestone_count = 4, .milestones = marks};
    struct wg_training_case training = {.higher_is_better = true};
    const struct vload_job job = {.training = &training, .run = &run};
    static const double expected[][2] = {{0, 0},    {1, 0.05}, {2, 0.1}, {3, 0.15},  {4, 0.3},
                                         {6, 0.35}, {8, 0.4},  {9, 0.4}, {1000, 0.4}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        check_close_abs(vload_job_metric(&job, expected[i][0]), expected[i][1], 0, 1e-12);
    check_close(vload_job_rest(&job, 0), 1, 1e-12);
    check_close(vload_job_rest(&job, 4), 0.25, 1e-12);
    check_close_abs(vload_job_rest(&job, 99), 0, 0, 1e-12);
    assert_true(vload_job_has_reached(&job, 0.3, 0.3) && !vload_job_has_reached(&job, 0.29, 0.3));
}

static void an_error_rate_falls_to_its_target(void **state)
{
    (void)state;
    struct wg_milestone marks[] = {{90, 1}, {80, 3}};
    const struct wg_training_run run = {.milestone_count = 2, .milestones = marks};
    struct wg_training_case training = {.higher_is_better = false};
    const struct vload_job job = {.training = &training, .run = &run};
    check_close(vload_job_metric(&job, 0), 100, 1e-12);
    check_close(vload_job_metric(&job, 2), 85, 1e-12);
    check_close(vload_job_rest(&job, 2), 0.25, 1e-12);
    assert_true(vload_job_has_reached(&job, 40, 40) && !vload_job_has_reached(&job, 41, 40));
}

static void a_run_that_got_nowhere_has_no_metric(void **state)
{
    (void)state;
    const struct wg_training_run run = {0};
    struct wg_training_case training = {.higher_is_better = true};
    const struct vload_job job = {.training = &training, .run = &run};
    assert_true(isnan(vload_job_metric(&job, 3)));
    check_close(vload_job_rest(&job, 3), 1, 0);
    assert_false(vload_job_has_reached(&job, vload_job_metric(&job, 3), 0.1));
}

static void the_seed_draws_the_run(void **state)
{
    (void)state;
    char folder[512];
    struct vload_request request = cifar100(folder);
    bool has_drawn[10] = {false};
    for (request.seed = 0; request.seed < 40; request.seed++) {
        struct vload_job job, again;
        open_job(&job, &request);
        open_job(&again, &request);
        assert_int_equal(job.run_index, again.run_index);
        assert_true(job.run_index < job.arm->run_count && job.arm->run_count == 10);
        has_drawn[job.run_index] = true;
        vload_job_close(&job);
        vload_job_close(&again);
    }
    size_t drawn = 0;
    for (size_t i = 0; i < 10; i++)
        drawn += has_drawn[i];
    assert_true(drawn >= 8);
}

static void what_is_not_known_is_answered_with_what_is(void **state)
{
    (void)state;
    char folder[512];
    struct vload_request request = cifar100(folder);
    request.job = "cifar";
    expect_error(&request,
                 "'cifar' is not a known job (librispeech, squad, sentiment140, imagenet, "
                 "cifar100, movielens-1m)");
    request = cifar100(folder);
    request.gpu = "h100";
    expect_error(&request, "--gpu: 'h100' is not a GPU of the trace (a40, v100)");
    request = cifar100(folder);
    request.batch_size = 1000.5;
    expect_error(&request, "--batch-size: '1000.5' is not a batch size of cifar100 that was "
                           "measured on v100 (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)");
}

static void without_a_batch_size_it_is_the_jobs_own(void **state)
{
    (void)state;
    char folder[512];
    struct vload_request request = cifar100(folder);
    request.batch_size = NAN;
    request.job = "squad";
    struct vload_job job;
    open_job(&job, &request);
    check_close(job.arm->batch_size, 32, 0);
    vload_job_close(&job);
}

static void every_failed_allocation_is_told_and_leaves_nothing(void **state)
{
    (void)state;
    char folder[512];
    const struct vload_request request = cifar100(folder);
    wg__alloc_fail_from(0);
    struct vload_job job;
    open_job(&job, &request);
    const size_t count = wg__alloc_count();
    vload_job_close(&job);
    assert_true(count > 10);
    /* Each of the first ones, and then a sample: a trace makes many. */
    for (size_t n = 1; n <= count; n += n < 64 ? 1 : 1 + count / 50) {
        struct wg_error err = {0};
        wg__alloc_fail_from(n);
        const enum wg_code code = vload_job_open(&job, &request, &err);
        wg__alloc_fail_from(0);
        if (code != WG_ENOMEM)
            fail_msg("allocation %zu of %zu: %d %s", n, count, (int)code, err.text);
        assert_null(job.training);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_load_has_the_measured_power_and_speed),
        cmocka_unit_test(a_job_draws_no_less_than_an_idle_gpu),
        cmocka_unit_test(the_metric_is_linear_between_what_was_recorded),
        cmocka_unit_test(an_error_rate_falls_to_its_target),
        cmocka_unit_test(a_run_that_got_nowhere_has_no_metric),
        cmocka_unit_test(the_seed_draws_the_run),
        cmocka_unit_test(what_is_not_known_is_answered_with_what_is),
        cmocka_unit_test(without_a_batch_size_it_is_the_jobs_own),
        cmocka_unit_test(every_failed_allocation_is_told_and_leaves_nothing),
    };
    return run_tests(tests);
}
