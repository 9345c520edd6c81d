/* SPDX-License-Identifier: MIT
 *
 * The policy `zeus` through its interface: walks, bounds and choices worked by hand from the
 * published algorithm. Pruning and bandit have tests of their own; here it is how they are put
 * together.
 */
#include <string.h>

#include "base/alloc.h"
#include "optimize/thompson.h"
#include "support/batch_driver.h"

static const struct wg_batch_policy_ops *const ops = &wg__batch_policy_zeus;
static const struct wg_batch_options no_options;

static void prunes_8_to_256_from_128_and_then_samples_32_64_128(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(6, 4, 7);
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    run_arm(&driver, 4, true, 10.0);
    run_arm(&driver, 3, true, 9.0);
    run_arm(&driver, 2, true, 12.0);
    run_arm(&driver, 1, false, 18.0); /* the retry takes the next arm of pruning */
    run_arm(&driver, 5, false, 18.0);
    run_arm(&driver, 3, true, 9.5);
    assert_int_equal(ops->best_arm(driver.policy), 4); /* the default until the bandit begins */
    run_arm(&driver, 2, true, 11.0);
    run_arm(&driver, 4, true, 10.5);
    bool seen[6] = {false};
    for (unsigned i = 0; i < 300; i++) {
        const struct wg_batch_step step = ask_step(&driver);
        assert_int_equal(step.limit, WG_LIMIT_BEST);
        seen[step.arm] = true;
        tell_step(&driver, &step, true, 10, 9.0 + (double)(i % 4) + (step.arm == 3 ? 0.0 : 0.3));
    }
    assert_true(!seen[0] && !seen[1] && seen[3] && !seen[5]);
    stop_driver(&driver);
}

/* A policy with one arm whose only recurrence cost `least_j`, and a run of it in flight. */
static struct batch_driver start_bounded(double beta, double least_j, double epoch_cost_j,
                                         unsigned max_epochs, struct wg_batch_step *step)
{
    struct wg_batch_job job = make_batch_job(1, 0, 1);
    job.max_epochs = max_epochs;
    const struct wg_batch_options options = {.beta = beta};
    struct batch_driver driver = start_driver(ops, &job, &options, 1);
    tell_epoch_cost(&driver, 0, epoch_cost_j);
    run_arm(&driver, 0, true, least_j);
    *step = ask_step(&driver);
    return driver;
}

static void bound_allows_the_floor_of_its_epochs(void **state)
{
    (void)state;
    const struct {
        double beta, least_j, epoch_cost_j;
        unsigned max_epochs, allowed;
    } cases[] = {
        {2.0, 30.0, 20.0, 100, 3}, /* exactly three */
        {2.0, 30.0, nextafter(20.0, 0.0), 100, 3},
        {2.0, 30.0, nextafter(20.0, 21.0), 100, 2},
        {0.0, 30.0, 20.0, 100, 3}, /* beta 0 stands for 2 */
        {-1.0, 30.0, 20.0, 100, 3},
        {1.5, 30.0, 20.0, 100, 2},
        {2.0, 30.0, 60.0, 100, 1},
        {2.0, 30.0, 60.5, 100, 0},
        {2.0, 30.0, 1.0, 7, 7}, /* the job's own end comes first */
        /* 0.1 is a little above a tenth, so ten do not fit into 1 although 1 / 0.1 rounds to 10
         * (Python: 1.0 // 0.1 == 9.0). */
        {2.0, 0.5, 0.1, 100, 9},
        {(double)INFINITY, 30.0, 1e9, 100, 100}, /* never stops early */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wg_batch_step step;
        struct batch_driver driver = start_bounded(
            cases[i].beta, cases[i].least_j, cases[i].epoch_cost_j, cases[i].max_epochs, &step);
        assert_int_equal(allowed_epochs(&driver, &step, 1000), cases[i].allowed);
        stop_driver(&driver);
    }
}

static void first_recurrence_is_bounded_by_the_job_alone(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(1, 0, 1);
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    tell_epoch_cost(&driver, 0, 1e12);
    const struct wg_batch_step step = ask_step(&driver);
    assert_int_equal(allowed_epochs(&driver, &step, 1000), 100);
    stop_driver(&driver);
}

/* The default fails for 20 J, the retry reaches the target for 10 J: the recurrence cost 30 J, so
 * 60 epochs of 1 J are allowed. Next an arm is too dear: its recurrence costs only what the retry
 * does. */
static void least_cost_counts_failed_tries_but_not_runs_that_never_were(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(3, 1, 1);
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    for (size_t arm = 0; arm < 3; arm++)
        tell_epoch_cost(&driver, arm, 1.0);
    run_arm(&driver, 1, false, 20.0);
    run_arm(&driver, 2, true, 10.0);
    struct wg_batch_step step = ask_step(&driver);
    assert_int_equal(step.arm, 2);
    assert_int_equal(allowed_epochs(&driver, &step, 1000), 60);
    tell_step(&driver, &step, false, 0, 7.0); /* pruned away: only the default is left */
    run_arm(&driver, 1, true, 9.0);
    step = ask_step(&driver);
    assert_int_equal(allowed_epochs(&driver, &step, 1000), 18);
    tell_step(&driver, &step, true, 18, 40.0);
    step = ask_step(&driver);
    assert_int_equal(allowed_epochs(&driver, &step, 1000), 18); /* a dearer one changes nothing */
    stop_driver(&driver);
}

/* Two arms: arm 1 costs 1 J, twice; arm 0 costs `dear_j`, twice. Both are exact, so the bandit
 * plays arm 1. That run is told as `epochs`, `cost_j`; returns which arm is believed in then. */
static size_t believed_after(double dear_j, unsigned epochs, double cost_j)
{
    const struct wg_batch_job job = make_batch_job(2, 0, 1);
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    run_arm(&driver, 0, true, dear_j);
    run_arm(&driver, 1, true, 1.0);
    run_arm(&driver, 1, true, 1.0);
    run_arm(&driver, 0, true, dear_j);
    const struct wg_batch_step step = ask_step(&driver);
    assert_int_equal(step.arm, 1);
    assert_int_equal(ops->best_arm(driver.policy), 1);
    tell_step(&driver, &step, false, epochs, cost_j);
    const size_t best = ops->best_arm(driver.policy);
    stop_driver(&driver);
    return best;
}

/* beta 2, least cost 1 J: an arm that could not do one epoch is observed at 200 J, whatever was
 * paid. Its mean is then (1 + 1 + 200) / 3 = 67.33 J. */
static void an_arm_too_dear_for_one_epoch_costs_100_times_the_bound(void **state)
{
    (void)state;
    assert_int_equal(believed_after(67.3, 0, 0.5), 0);
    assert_int_equal(believed_after(67.4, 0, 0.5), 1);
}

/* A stopped run is observed at what it has cost: (1 + 1 + 7) / 3 = 3. */
static void a_failed_run_is_observed_at_its_own_cost(void **state)
{
    (void)state;
    assert_int_equal(believed_after(2.99, 4, 7.0), 0);
    assert_int_equal(believed_after(3.01, 4, 7.0), 1);
}

/* Arm 0 costs 10 J until it is kept, then 24 J; arm 1 always 20 J. After two runs at 24 J all four
 * average 17 J, but the last two 24 J. */
static size_t believed_after_drift(unsigned window)
{
    const struct wg_batch_job job = make_batch_job(2, 0, 1);
    const struct wg_batch_options options = {.window = window};
    struct batch_driver driver = start_driver(ops, &job, &options, 5);
    run_arm(&driver, 0, true, 10.0);
    run_arm(&driver, 1, true, 20.0);
    run_arm(&driver, 0, true, 10.0);
    run_arm(&driver, 1, true, 20.0);
    for (unsigned drifted = 0, asks = 0; drifted < 2; asks++) {
        assert_true(asks < 200);
        const struct wg_batch_step step = ask_step(&driver);
        drifted += step.arm == 0;
        tell_step(&driver, &step, true, 10, step.arm == 0 ? 24.0 : 20.0);
    }
    const size_t best = ops->best_arm(driver.policy);
    stop_driver(&driver);
    return best;
}

static void window_forgets_what_an_arm_cost_before(void **state)
{
    (void)state;
    assert_int_equal(believed_after_drift(0), 0);
    assert_int_equal(believed_after_drift(2), 1);
}

static void concurrent_runs_take_the_cheapest_known_arm_and_do_not_move_pruning(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(3, 1, 1);
    const struct wg_batch_options options = {.concurrent = true};
    struct batch_driver driver = start_driver(ops, &job, &options, 1);
    const struct wg_batch_step first = ask_step(&driver), second = ask_step(&driver);
    assert_int_equal(first.arm, 1);
    assert_int_equal(second.arm, 1); /* nothing is known: the default */
    /* The later start of the awaited arm ends first, and counts as the awaited result. */
    tell_step(&driver, &second, true, 10, 10.0);
    const struct wg_batch_step third = ask_step(&driver);
    assert_int_equal(third.arm, 1);              /* one is still in flight */
    tell_step(&driver, &first, false, 10, 20.0); /* no longer awaited: the default stays good */
    tell_step(&driver, &third, true, 10, 11.0);

    const struct wg_batch_step down = ask_step(&driver);
    assert_int_equal(down.arm, 0); /* nothing in flight: pruning goes on */
    const struct wg_batch_step beside = ask_step(&driver);
    assert_int_equal(beside.arm, 1);
    tell_step(&driver, &beside, false, 10, 20.0); /* another arm than the awaited one */
    tell_step(&driver, &down, true, 10, 5.0);

    const struct wg_batch_step up = ask_step(&driver);
    assert_int_equal(up.arm, 2);
    const struct wg_batch_step cheapest = ask_step(&driver);
    assert_int_equal(cheapest.arm, 0); /* 5 J is the least that reached */
    tell_step(&driver, &up, true, 10, 6.0);
    tell_step(&driver, &cheapest, true, 10, 7.0);

    run_arm(&driver, 0, true, 5.0); /* the second round, from the new default */
    run_arm(&driver, 1, true, 10.0);
    const struct wg_batch_step last = ask_step(&driver);
    assert_int_equal(last.arm, 2);
    assert_int_equal(ask_step(&driver).arm, 0); /* the dearer run of arm 1 changed nothing */
    stop_driver(&driver);
}

static void concurrent_bounds_are_of_single_runs_and_set_at_the_start(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(2, 0, 1);
    const struct wg_batch_options options = {.concurrent = true};
    struct batch_driver driver = start_driver(ops, &job, &options, 1);
    tell_epoch_cost(&driver, 0, 1.0);
    const struct wg_batch_step first = ask_step(&driver), second = ask_step(&driver);
    tell_step(&driver, &first, false, 10, 20.0);
    const struct wg_batch_step retry = ask_step(&driver);
    tell_step(&driver, &retry, true, 10, 10.0);
    assert_int_equal(allowed_epochs(&driver, &second, 1000), 100); /* started without a bound */
    const struct wg_batch_step bounded = ask_step(&driver);
    assert_int_equal(bounded.arm, 0);
    assert_int_equal(allowed_epochs(&driver, &bounded, 1000), 20); /* 2 * 10 J, not 2 * 30 J */
    stop_driver(&driver);
}

static void has_room_for_the_most_runs_in_flight(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(3, 1, 1);
    const struct wg_batch_options options = {.concurrent = true};
    struct batch_driver driver = start_driver(ops, &job, &options, 1);
    struct wg_batch_step step[WG_IN_FLIGHT_MAX];
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < WG_IN_FLIGHT_MAX; i++)
            step[i] = ask_step(&driver);
        for (size_t i = WG_IN_FLIGHT_MAX; i > 0; i--)
            tell_step(&driver, &step[i - 1], true, 10, 10.0);
    }
    assert_int_equal(ask_step(&driver).arm, 2); /* after the default and down comes up */
    stop_driver(&driver);
}

static void falls_back_to_the_default_when_every_arm_was_pruned(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(5, 2, 1);
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    run_arm(&driver, 2, false, 10.0);
    run_arm(&driver, 3, false, 10.0);
    for (unsigned i = 0; i < 50; i++)
        run_arm(&driver, 2, i % 2 == 0, 10.0);
    assert_int_equal(ops->best_arm(driver.policy), 2);
    stop_driver(&driver);
}

static void survives_runs_that_never_started_before_anything_finished(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(2, 0, 1);
    struct batch_driver driver = start_driver(ops, &job, &no_options, 1);
    for (unsigned i = 0; i < 10; i++) { /* no bound, so no cost to observe */
        const struct wg_batch_step step = ask_step(&driver);
        tell_step(&driver, &step, false, 0, 0.0);
    }
    run_arm(&driver, 0, true, 10.0);
    assert_int_equal(ops->best_arm(driver.policy), 0);
    stop_driver(&driver);
}

enum { TABLE_ARMS = 10, TABLE_RECURRENCES = 60, TABLE_ASKS = TABLE_RECURRENCES * WG_ATTEMPTS_MAX };

/* Plays TABLE_RECURRENCES recurrences over a random table of costs and failures; notes the arms
 * asked. */
static size_t play_table(uint64_t table_seed, uint64_t seed, size_t *asked, bool *reached)
{
    struct wg_rng table;
    wg__rng_init(&table, table_seed);
    const size_t arms = 1 + wg__rng_below(&table, TABLE_ARMS);
    double cost_j[TABLE_ARMS], failure[TABLE_ARMS];
    for (size_t arm = 0; arm < arms; arm++) {
        cost_j[arm] = 1.0 + 3.0 * wg__rng_uniform(&table);
        failure[arm] = wg__rng_below(&table, 2) == 0 ? 0.0 : 0.5 * wg__rng_uniform(&table);
    }
    const size_t default_arm = wg__rng_below(&table, (uint32_t)arms);
    const struct wg_batch_job job = make_batch_job(arms, default_arm, 1);
    struct batch_driver driver = start_driver(ops, &job, &no_options, seed);
    for (size_t arm = 0; arm < arms; arm++)
        tell_epoch_cost(&driver, arm, cost_j[arm] / 10.0);
    size_t asks = 0;
    while (driver.next.recurrence < TABLE_RECURRENCES) {
        const struct wg_batch_step step = ask_step(&driver);
        const unsigned wanted = 8 + wg__rng_below(&table, 5);
        const unsigned allowed = allowed_epochs(&driver, &step, wanted);
        asked[asks] = step.arm;
        reached[asks] = allowed == wanted && wg__rng_uniform(&table) >= failure[step.arm];
        tell_step(&driver, &step, reached[asks], allowed, allowed * cost_j[step.arm] / 10.0);
        if (driver.next.attempt >= WG_ATTEMPTS_MAX) /* as the caller does */
            driver.next = (struct wg_batch_request){.recurrence = driver.next.recurrence + 1};
        asks++;
    }
    assert_true(ops->best_arm(driver.policy) < arms);
    stop_driver(&driver);
    return asks;
}

/* The first two runs of an arm are those of pruning. An arm that failed one of them is never seen
 * again; only the default comes back, and then alone, when no arm is left. */
static void never_asks_an_arm_that_was_pruned(void **state)
{
    (void)state;
    for (uint64_t trial = 0; trial < 500; trial++) {
        size_t asked[TABLE_ASKS];
        bool reached[TABLE_ASKS];
        const size_t asks = play_table(trial, trial + 1000, asked, reached);
        unsigned runs[TABLE_ARMS] = {0};
        bool is_pruned[TABLE_ARMS] = {false};
        for (size_t i = 0; i < asks; i++) {
            const size_t arm = asked[i];
            if (is_pruned[arm]) {
                assert_int_equal(arm, asked[0]);
                for (size_t later = i; later < asks; later++)
                    assert_int_equal(asked[later], arm);
                break;
            }
            runs[arm]++;
            is_pruned[arm] = runs[arm] <= 2 && !reached[i];
        }
    }
}

static void repeats_from_its_seed(void **state)
{
    (void)state;
    unsigned different = 0;
    for (uint64_t trial = 0; trial < 50; trial++) {
        size_t first[TABLE_ASKS], again[TABLE_ASKS], other[TABLE_ASKS];
        bool reached[TABLE_ASKS];
        const size_t asks = play_table(trial, 1, first, reached);
        assert_int_equal(play_table(trial, 1, again, reached), asks);
        assert_memory_equal(first, again, asks * sizeof first[0]);
        different += play_table(trial, 2, other, reached) != asks ||
                     memcmp(first, other, asks * sizeof first[0]) != 0;
    }
    assert_true(different > 0); /* the seed does matter */
}

static void rejects_options_out_of_range(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(2, 0, 1);
    struct wg_batch_policy *policy = NULL;
    struct wg_error err = {0};
    struct wg_batch_options options = {.beta = (double)NAN};
    assert_int_equal(ops->create(&policy, &job, &options, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "beta"));
    options = (struct wg_batch_options){.window = WG_THOMPSON_WINDOW_MAX + 1};
    assert_int_equal(ops->create(&policy, &job, &options, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "window"));
    assert_null(policy);
}

static void reports_that_memory_ran_out(void **state)
{
    (void)state;
    const struct wg_batch_job job = make_batch_job(2, 0, 1);
    const struct wg_batch_options options = {.window = 10};
    for (size_t nth = 1; nth <= 2; nth++) {
        struct wg_batch_policy *policy = NULL;
        wg__alloc_fail_from(nth);
        const enum wg_code code = ops->create(&policy, &job, &options, NULL);
        wg__alloc_fail_from(0);
        assert_int_equal(code, WG_ENOMEM);
        assert_null(policy);
    }
    ops->destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prunes_8_to_256_from_128_and_then_samples_32_64_128),
        cmocka_unit_test(bound_allows_the_floor_of_its_epochs),
        cmocka_unit_test(first_recurrence_is_bounded_by_the_job_alone),
        cmocka_unit_test(least_cost_counts_failed_tries_but_not_runs_that_never_were),
        cmocka_unit_test(an_arm_too_dear_for_one_epoch_costs_100_times_the_bound),
        cmocka_unit_test(a_failed_run_is_observed_at_its_own_cost),
        cmocka_unit_test(window_forgets_what_an_arm_cost_before),
        cmocka_unit_test(concurrent_runs_take_the_cheapest_known_arm_and_do_not_move_pruning),
        cmocka_unit_test(concurrent_bounds_are_of_single_runs_and_set_at_the_start),
        cmocka_unit_test(has_room_for_the_most_runs_in_flight),
        cmocka_unit_test(falls_back_to_the_default_when_every_arm_was_pruned),
        cmocka_unit_test(survives_runs_that_never_started_before_anything_finished),
        cmocka_unit_test(never_asks_an_arm_that_was_pruned),
        cmocka_unit_test(repeats_from_its_seed),
        cmocka_unit_test(rejects_options_out_of_range),
        cmocka_unit_test(reports_that_memory_ran_out),
    };
    return run_tests(tests);
}
