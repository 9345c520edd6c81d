/* SPDX-License-Identifier: MIT
 *
 * Tests of the expected costs of a case (simulate/training.h, training_costs.c), against numbers
 * worked by hand from tests/golden/tiny_trace. Against Zeus's simulator: tests/integration/cli.py.
 */
#include <math.h>

#include "simulate/training.h"
#include "support/tiny_trace.h"

static void costs_per_epoch_follow_the_formula(void **state)
{
    (void)state;
    struct tiny tiny;
    struct wg_training_costs costs;
    tiny_open(&tiny);
    struct wg_training_case *toy = tiny_case(&tiny, "toy", "toy");
    wg__training_costs(toy, 0.5, &costs);
    /* (0.5 x 80 + 0.5 x 200) x 20 = 2800, and so on. */
    const double expected[][2] = {{2800, 1800}, {1305, 1400}, {1500, 1140}};
    const size_t best[] = {1, 0, 1};
    const double first_j[] = {1600, 1005, 1040}, first_s[] = {15, 8.5, 8};
    const double epochs[] = {4, 4, 16};
    for (size_t arm = 0; arm < 3; arm++) {
        check_close(costs.epoch_cost_j[arm][0], expected[arm][0], 1e-14);
        check_close(costs.epoch_cost_j[arm][1], expected[arm][1], 1e-14);
        assert_int_equal(costs.best_limit[arm], best[arm]);
        check_close(costs.first_epoch_energy_j[arm], first_j[arm], 1e-14);
        check_close(costs.first_epoch_time_s[arm], first_s[arm], 1e-14);
        check_close(costs.expected_epochs[arm], epochs[arm], 1e-14);
    }
    assert_int_equal(costs.oracle_arm, 1);
    assert_int_equal(costs.oracle_limit, 0);
    wg__case_free(toy);
    tiny_close(&tiny);
}

static void eta_weighs_energy_against_time(void **state)
{
    (void)state;
    struct tiny tiny;
    struct wg_training_costs costs;
    tiny_open(&tiny);
    struct wg_training_case *toy = tiny_case(&tiny, "toy", "toy");
    wg__training_costs(toy, 1, &costs);
    check_close(costs.epoch_cost_j[1][0], 810, 1e-14); /* joules alone */
    assert_int_equal(costs.best_limit[0], 1);          /* 1600 at both: the faster one */
    assert_int_equal(costs.best_limit[1], 0);
    wg__training_costs(toy, 0, &costs);
    check_close(costs.epoch_cost_j[1][0], 200 * 9, 1e-14); /* seconds at 200 W each */
    for (size_t arm = 0; arm < 3; arm++)
        assert_int_equal(costs.best_limit[arm], 1);
    assert_int_equal(costs.oracle_arm, 1);
    assert_int_equal(costs.oracle_limit, 1);
    wg__case_free(toy);
    tiny_close(&tiny);
}

static void a_recurrence_pays_for_its_failed_attempts(void **state)
{
    (void)state;
    struct tiny tiny;
    struct wg_training_costs costs;
    tiny_open(&tiny);
    struct wg_training_case *toy = tiny_case(&tiny, "toy", "toy");
    wg__training_costs(toy, 0.5, &costs);
    /* Batch size 32 at 200 W: half of the attempts fail after 10 epochs. Of the geometric series of
     * attempts remain (6 + 10) / 1 = 16 epochs: 96 s, 17280 J. */
    const struct wg_training_bill bill = wg__training_expected(toy, &costs, 0.5, 2, 1);
    check_close(bill.time_s, 96, 1e-14);
    check_close(bill.energy_j, 17280, 1e-14);
    check_close(bill.cost_j, 16 * 1140, 1e-14);
    wg__case_free(toy);
    struct wg_training_case *hopeless = tiny_case(&tiny, "toy", "hopeless");
    wg__training_costs(hopeless, 0.5, &costs);
    assert_true(isinf(costs.expected_epochs[1]));
    assert_int_equal(costs.oracle_arm, 0);
    wg__case_free(hopeless);
    tiny_close(&tiny);
}

static void a_run_that_needs_more_than_the_maximum_fails(void **state)
{
    (void)state;
    struct tiny tiny;
    struct wg_training_costs costs;
    tiny_open(&tiny);
    struct wg_training_case *toy = tiny_case(&tiny, "toy", "toy");
    toy->max_epochs = 4; /* of batch size 16's runs, 3 and 5 epochs long, one is left */
    wg__training_costs(toy, 0.5, &costs);
    check_close(costs.expected_epochs[0], 4, 1e-14);
    check_close(costs.expected_epochs[1], 3 + 4, 1e-14);
    assert_true(isinf(costs.expected_epochs[2]));
    wg__case_free(toy);
    tiny_close(&tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_per_epoch_follow_the_formula),
        cmocka_unit_test(eta_weighs_energy_against_time),
        cmocka_unit_test(a_recurrence_pays_for_its_failed_attempts),
        cmocka_unit_test(a_run_that_needs_more_than_the_maximum_fails),
    };
    return run_tests(tests);
}
