/* SPDX-License-Identifier: MIT
 *
 * The policy `grid` against orders written down by hand, and over random cost tables.
 */
#include "base/alloc.h"
#include "support/batch_driver.h"

static const struct wg_batch_policy_ops *const ops = &wg__batch_policy_grid;
static const struct wg_batch_options no_options;

static void run_pair(struct batch_driver *driver, size_t arm, int limit, bool reached,
                     double cost_j)
{
    const struct wg_batch_step step = ask_step(driver);
    if (step.arm != arm || step.limit != limit)
        fail_msg("pair (%zu, %d) was asked, not (%zu, %d)", step.arm, step.limit, arm, limit);
    tell_step(driver, &step, reached, 10, cost_j);
}

static void walks_outward_with_limits_descending_and_keeps_the_cheapest(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(3, 1, 2);
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    assert_int_equal(ops->best_arm(driver.policy), 1);
    run_pair(&driver, 1, 1, true, 10.0);
    run_pair(&driver, 1, 0, true, 9.0);
    run_pair(&driver, 0, 1, true, 8.0);
    run_pair(&driver, 0, 0, true, 7.0);
    run_pair(&driver, 2, 1, true, 6.0);
    run_pair(&driver, 2, 0, true, 6.5);
    for (unsigned i = 0; i < 20; i++)
        run_pair(&driver, 2, 1, true, 6.0);
    assert_int_equal(ops->best_arm(driver.policy), 2);
    stop_driver(&driver);
}

static void goes_on_one_sided_where_the_other_side_ends(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(5, 3, 1);
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    const size_t order[] = {3, 2, 4, 1, 0};
    for (size_t i = 0; i < 5; i++)
        run_pair(&driver, order[i], 0, true, 10.0);
    run_pair(&driver, 3, 0, true, 10.0); /* all equal: the first tried */
    stop_driver(&driver);
}

static void drops_a_batch_size_with_all_its_limits_when_it_fails_once(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(3, 0, 3);
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    run_pair(&driver, 0, 2, true, 10.0);
    run_pair(&driver, 0, 1, true, 9.0);
    run_pair(&driver, 0, 0, true, 11.0);
    run_pair(&driver, 1, 2, true, 1.0);
    run_pair(&driver, 1, 1, false, 50.0); /* (1, 0) is not tried, and (1, 2) not kept */
    run_pair(&driver, 2, 2, false, 50.0);
    run_pair(&driver, 0, 1, true, 9.0);
    assert_int_equal(ops->best_arm(driver.policy), 0);
    stop_driver(&driver);
}

static void moves_on_when_the_mean_of_the_cheapest_rises(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(1, 0, 2);
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    run_pair(&driver, 0, 1, true, 10.0);
    run_pair(&driver, 0, 0, true, 8.0);
    run_pair(&driver, 0, 0, true, 11.0); /* mean 9.5 */
    run_pair(&driver, 0, 0, true, 14.0); /* mean 11 */
    run_pair(&driver, 0, 1, true, 13.0); /* mean 11.5 */
    run_pair(&driver, 0, 0, true, 11.0);
    stop_driver(&driver);
}

static void falls_back_to_the_default_when_everything_failed(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(3, 1, 2);
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    run_pair(&driver, 1, 1, false, 10.0);
    run_pair(&driver, 0, 1, false, 10.0);
    run_pair(&driver, 2, 1, false, 10.0);
    for (unsigned i = 0; i < 30; i++)
        run_pair(&driver, 1, 1, i % 2 == 0, 10.0);
    assert_int_equal(ops->best_arm(driver.policy), 1);
    stop_driver(&driver);
}

static void hands_out_each_pair_once_to_runs_in_flight(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(2, 0, 2);
    const struct wg_batch_options options = {.concurrent = true};
    struct batch_driver driver = start_driver(ops, &job, &options, 1);
    struct wg_batch_step step[6];
    for (size_t i = 0; i < 6; i++)
        step[i] = ask_step(&driver);
    const size_t arms[] = {0, 0, 1, 1, 0, 0};
    const int limits[] = {1, 0, 1, 0, 1, 1}; /* nothing is known yet: then the default */
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(step[i].arm, arms[i]);
        assert_int_equal(step[i].limit, limits[i]);
    }
    tell_step(&driver, &step[3], true, 10, 5.0); /* they may end in any order */
    tell_step(&driver, &step[0], true, 10, 6.0);
    run_pair(&driver, 1, 0, true, 5.0);
    tell_step(&driver, &step[2], false, 10, 9.0); /* arm 1 failed: its results no longer count */
    run_pair(&driver, 0, 1, true, 6.0);
    stop_driver(&driver);
}

static void stops_only_at_the_last_epoch(void **state)
{
    (void)state;
    struct wg_batch_job job = make_batch_job(2, 0, 1);
    job.max_epochs = 7;
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    run_pair(&driver, 0, 0, true, 1e-3);
    const struct wg_batch_step step = ask_step(&driver);
    tell_epoch_cost(&driver, step.arm, 1e9);
    assert_int_equal(allowed_epochs(&driver, &step, 1000), 7);
    stop_driver(&driver);
}

/* Over random tables without noise: nothing that failed is asked again, every pair is asked at most
 * once before the cheapest is kept, and the cheapest is the least of the table's usable entries. */
static void finds_the_cheapest_pair_of_random_tables(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 99);
    for (unsigned trial = 0; trial < 300; trial++) {
        const size_t arms = 1 + wg__rng_below(&rng, 8), limits = 1 + wg__rng_below(&rng, 6);
        const size_t default_arm = wg__rng_below(&rng, (uint32_t)arms);
        const struct wg_batch_job job = make_batch_job(arms, default_arm, limits);
        double cost_j[8][6], least_j = (double)INFINITY;
        bool fails[8];
        for (size_t arm = 0; arm < arms; arm++) {
            fails[arm] = arm != default_arm && wg__rng_below(&rng, 3) == 0;
            for (size_t limit = 0; limit < limits; limit++) {
                cost_j[arm][limit] = wg__rng_uniform(&rng);
                if (!fails[arm] && cost_j[arm][limit] < least_j)
                    least_j = cost_j[arm][limit];
            }
        }
        struct batch_driver driver = start_driver(ops, &job, &no_options, trial);
        bool asked[8][6] = {{false}}, has_failed[8] = {false};
        for (size_t i = 0; i < arms * limits + 5; i++) {
            const struct wg_batch_step step = ask_step(&driver);
            assert_false(has_failed[step.arm]);
            const double cost = cost_j[step.arm][step.limit];
            assert_true(!asked[step.arm][step.limit] || cost == least_j);
            asked[step.arm][step.limit] = true;
            has_failed[step.arm] = fails[step.arm];
            tell_step(&driver, &step, !fails[step.arm], 10, cost);
        }
        const struct wg_batch_step step = ask_step(&driver);
        assert_true(cost_j[step.arm][step.limit] == least_j);
        stop_driver(&driver);
    }
}

static void reports_that_memory_ran_out(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(2, 0, 3);
    struct wg_batch_policy *policy = NULL;
    wg__alloc_fail_from(1);
    const enum wg_code code = ops->create(&policy, &job, &no_options, NULL);
    wg__alloc_fail_from(0);
    assert_int_equal(code, WG_ENOMEM);
    assert_null(policy);
    ops->destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_outward_with_limits_descending_and_keeps_the_cheapest),
        cmocka_unit_test(goes_on_one_sided_where_the_other_side_ends),
        cmocka_unit_test(drops_a_batch_size_with_all_its_limits_when_it_fails_once),
        cmocka_unit_test(moves_on_when_the_mean_of_the_cheapest_rises),
        cmocka_unit_test(falls_back_to_the_default_when_everything_failed),
        cmocka_unit_test(hands_out_each_pair_once_to_runs_in_flight),
        cmocka_unit_test(stops_only_at_the_last_epoch),
        cmocka_unit_test(finds_the_cheapest_pair_of_random_tables),
        cmocka_unit_test(reports_that_memory_ran_out),
    };
    return run_tests(tests);
}
