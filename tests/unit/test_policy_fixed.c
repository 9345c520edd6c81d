/* SPDX-License-Identifier: MIT
 *
 * The policy `fixed`: it must never move.
 */
#include <string.h>

#include "base/alloc.h"
#include "support/batch_driver.h"

static const struct wg_batch_policy_ops *const ops = &wg__batch_policy_fixed;

static void asks_its_one_setting_whatever_it_is_told(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(5, 3, 7);
    const struct wg_batch_options options = {.fixed_arm = 1, .fixed_limit = 4};
    struct batch_driver driver = start_driver(ops, &job, &options, 1);
    uint64_t last_ticket = UINT64_MAX;
    for (unsigned i = 0; i < 50; i++) {
        const struct wg_batch_step step = ask_step(&driver);
        assert_int_equal(step.arm, 1);
        assert_int_equal(step.limit, 4);
        assert_true(step.ticket != last_ticket);
        last_ticket = step.ticket;
        tell_epoch_cost(&driver, 1, 1e9);
        tell_step(&driver, &step, i % 3 == 0, 5, 1e12);
        assert_int_equal(ops->best_arm(driver.policy), 1);
    }
    stop_driver(&driver);
}

static void never_stops_or_surveys(void **state)
{
    (void)state;
    assert_null(ops->may_continue);
    assert_null(ops->tell_survey);
}

static void can_run_at_the_profiled_limit(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(2, 0, 3);
    const struct wg_batch_options options = {.fixed_limit = WG_LIMIT_BEST};
    struct batch_driver driver = start_driver(ops, &job, &options, 1);
    assert_int_equal(ask_step(&driver).limit, WG_LIMIT_BEST);
    stop_driver(&driver);
}

static void rejects_settings_that_the_job_does_not_have(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(2, 0, 3);
    const struct wg_batch_options bad[] = {
        {.fixed_arm = 2}, {.fixed_limit = 3}, {.fixed_limit = -2}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct wg_batch_policy *policy = NULL;
        struct wg_error err = {0};
        assert_int_equal(ops->create(&policy, &job, &bad[i], &err), WG_EINVAL);
        assert_non_null(strstr(err.text, "policy fixed"));
        assert_null(policy);
    }
}

static void reports_that_memory_ran_out(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(2, 0, 3);
    const struct wg_batch_options options = {0};
    struct wg_batch_policy *policy = NULL;
    wg__alloc_fail_from(1);
    const enum wg_code code = ops->create(&policy, &job, &options, NULL);
    wg__alloc_fail_from(0);
    assert_int_equal(code, WG_ENOMEM);
    assert_null(policy);
    ops->destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_its_one_setting_whatever_it_is_told),
        cmocka_unit_test(never_stops_or_surveys),
        cmocka_unit_test(can_run_at_the_profiled_limit),
        cmocka_unit_test(rejects_settings_that_the_job_does_not_have),
        cmocka_unit_test(reports_that_memory_ran_out),
    };
    return run_tests(tests);
}
