/* SPDX-License-Identifier: MIT
 *
 * The list of policies and the checks on a job.
 */
#include "optimize/batch_size.h"

#include <string.h>

#include "support/batch_driver.h"

static void every_policy_has_a_name_of_its_own_and_what_a_caller_must_call(void **state)
{
    (void)state;
    size_t count = 0;
    for (; wg__batch_policies[count] != NULL; count++) {
        const struct wg_batch_policy_ops *ops = wg__batch_policies[count];
        assert_true(strlen(ops->name) > 0 && strlen(ops->summary) > 0);
        assert_null(strchr(ops->summary, '\n'));
        assert_true(ops->create && ops->destroy && ops->ask && ops->tell_profile);
        assert_true(ops->tell_run && ops->best_arm);
        for (size_t other = 0; other < count; other++)
            assert_string_not_equal(ops->name, wg__batch_policies[other]->name);
    }
    assert_int_equal(count, 4);
}

static void accepts_the_smallest_and_the_largest_job(void **state)
{
    (void)state;
    struct wg_batch_job job = make_batch_job(1, 0, 1);
    job.max_epochs = 1;
    assert_int_equal(wg__batch_job_check(&job, NULL), WG_OK);
    job = make_batch_job(WG_ARMS_MAX, WG_ARMS_MAX - 1, WG_BATCH_LIMITS_MAX);
    assert_int_equal(wg__batch_job_check(&job, NULL), WG_OK);
}

static void expect_rejected(const struct wg_batch_job *job, const char *word)
{
    struct wg_error err = {0};
    assert_int_equal(wg__batch_job_check(job, &err), WG_EINVAL);
    if (strstr(err.text, word) == NULL)
        fail_msg("\"%s\" does not name %s", err.text, word);
    /* Every policy refuses it too, and leaves `out` alone. */
    for (size_t i = 0; wg__batch_policies[i] != NULL; i++) {
        struct wg_batch_policy *policy = NULL;
        const struct wg_batch_options options = {0};
        assert_int_equal(wg__batch_policies[i]->create(&policy, job, &options, NULL), WG_EINVAL);
        assert_null(policy);
    }
}

static void rejects_a_job_that_breaks_a_promise(void **state)
{
    (void)state;
    struct wg_batch_job job = make_batch_job(3, 0, 2);
    job.arm_count = 0;
    expect_rejected(&job, "not 0");
    job.arm_count = WG_ARMS_MAX + 1;
    expect_rejected(&job, "65");

    job = make_batch_job(3, 3, 2);
    expect_rejected(&job, "number 3 of 3");

    job = make_batch_job(3, 0, 0);
    expect_rejected(&job, "power limits");
    job = make_batch_job(3, 0, WG_BATCH_LIMITS_MAX + 1);
    expect_rejected(&job, "65");

    job = make_batch_job(3, 0, 2);
    job.max_epochs = 0;
    expect_rejected(&job, "epoch");

    job = make_batch_job(3, 0, 2);
    job.batch_size[2] = job.batch_size[1];
    expect_rejected(&job, "ascending");
    job.batch_size[2] = (double)NAN;
    expect_rejected(&job, "nan");
    job.batch_size[2] = (double)INFINITY;
    expect_rejected(&job, "inf");
    job = make_batch_job(3, 0, 2);
    job.batch_size[0] = 0.0;
    expect_rejected(&job, "not positive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_has_a_name_of_its_own_and_what_a_caller_must_call),
        cmocka_unit_test(accepts_the_smallest_and_the_largest_job),
        cmocka_unit_test(rejects_a_job_that_breaks_a_promise),
    };
    return run_tests(tests);
}
