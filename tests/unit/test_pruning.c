/* SPDX-License-Identifier: MIT
 *
 * Pruning against walks worked by hand: the expected orders below follow from the rules in
 * optimize/pruning.h with pencil and paper.
 */
#include "optimize/pruning.h"

#include "base/rng.h"
#include "support/check.h"

/* One run of a walk: the arm that must be asked, and what it is told. */
struct visit {
    size_t arm;
    double cost_j;
    bool reached;
};

static void walk(struct wg_pruning *pruning, const struct visit *visits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t arm = SIZE_MAX;
        assert_true(wg__pruning_ask(pruning, &arm));
        if (arm != visits[i].arm)
            fail_msg("visit %zu: arm %zu was asked, not %zu", i, arm, visits[i].arm);
        assert_true(wg__pruning_tell(pruning, arm, visits[i].cost_j, visits[i].reached));
    }
}

static void expect_survivors(struct wg_pruning *pruning, const size_t *arms, size_t count)
{
    size_t arm = 0;
    assert_false(wg__pruning_ask(pruning, &arm));
    assert_int_equal(pruning->state, WG_PRUNING_OVER);
    assert_int_equal(pruning->candidate_count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(pruning->candidate[i], arms[i]);
}

#define WALK(pruning, ...)                                                                         \
    walk(pruning, (const struct visit[]){__VA_ARGS__},                                             \
         sizeof((const struct visit[]){__VA_ARGS__}) / sizeof(struct visit))
#define SURVIVORS(pruning, ...)                                                                    \
    expect_survivors(pruning, (const size_t[]){__VA_ARGS__},                                       \
                     sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

/* Arms 0..5 are the batch sizes 8..256, the default is 128. */
static void keeps_32_64_128_of_8_to_256_from_128(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 6, 4, 2);
    WALK(&pruning, {4, 10.0, true}, {3, 9.0, true}, {2, 12.0, true}, {1, 30.0, false},
         {5, 40.0, false});
    /* 64 was the cheapest, so the second round starts there. */
    WALK(&pruning, {3, 9.0, true}, {2, 12.0, true}, {4, 10.0, true});
    SURVIVORS(&pruning, 2, 3, 4);
}

static void goes_up_at_once_when_the_default_fails(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 5, 2, 2);
    WALK(&pruning, {2, 50.0, false}, {3, 10.0, true}, {4, 8.0, true});
    WALK(&pruning, {4, 8.0, true}, {3, 10.0, true});
    SURVIVORS(&pruning, 3, 4);
}

static void leaves_down_after_its_first_failure(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 5, 3, 2);
    WALK(&pruning, {3, 10.0, true}, {2, 50.0, false}, {4, 11.0, true});
    WALK(&pruning, {3, 10.0, true}, {4, 11.0, true});
    SURVIVORS(&pruning, 3, 4);
}

static void ends_the_round_when_up_fails(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 5, 1, 2);
    WALK(&pruning, {1, 10.0, true}, {0, 12.0, true}, {2, 50.0, false});
    WALK(&pruning, {1, 10.0, true}, {0, 12.0, true});
    SURVIVORS(&pruning, 0, 1);
}

static void visits_every_arm_twice_when_all_converge(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 4, 2, 2);
    WALK(&pruning, {2, 7.0, true}, {1, 6.0, true}, {0, 9.0, true}, {3, 8.0, true});
    WALK(&pruning, {1, 6.0, true}, {0, 9.0, true}, {2, 7.0, true}, {3, 8.0, true});
    SURVIVORS(&pruning, 0, 1, 2, 3);
}

static void second_round_starts_at_the_new_default_and_drops_too(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 5, 0, 2);
    WALK(&pruning, {0, 9.0, true}, {1, 8.0, true}, {2, 7.0, true}, {3, 5.0, true}, {4, 6.0, true});
    /* Down from 3; arm 1 fails, so arm 0 is not seen again and goes although it never failed. */
    WALK(&pruning, {3, 5.0, true}, {2, 7.0, true}, {1, 20.0, false}, {4, 6.0, true});
    SURVIVORS(&pruning, 2, 3, 4);
}

static void keeps_the_earlier_of_two_equal_costs_as_default(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 2, 0, 2);
    WALK(&pruning, {0, 5.0, true}, {1, 5.0, true});
    WALK(&pruning, {0, 5.0, true}, {1, 5.0, true});
    SURVIVORS(&pruning, 0, 1);
}

static void may_leave_no_survivor(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 5, 2, 2);
    WALK(&pruning, {2, 5.0, false}, {3, 5.0, false});
    expect_survivors(&pruning, NULL, 0);
}

static void may_lose_every_arm_in_the_second_round(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 3, 1, 2);
    WALK(&pruning, {1, 5.0, true}, {0, 9.0, false}, {2, 6.0, true});
    WALK(&pruning, {1, 9.0, false}, {2, 9.0, false});
    expect_survivors(&pruning, NULL, 0);
}

static void takes_a_job_with_one_batch_size(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 1, 0, 2);
    WALK(&pruning, {0, 5.0, true}, {0, 5.0, true});
    SURVIVORS(&pruning, 0);
}

static void asks_the_same_arm_until_it_is_told(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 3, 1, 1);
    size_t arm = SIZE_MAX;
    assert_true(wg__pruning_ask(&pruning, &arm));
    assert_int_equal(arm, 1);
    assert_true(wg__pruning_ask(&pruning, &arm));
    assert_int_equal(arm, 1);
}

static void ignores_results_that_it_does_not_await(void **state)
{
    (void)state;
    struct wg_pruning pruning;
    wg__pruning_init(&pruning, 3, 1, 1);
    assert_false(wg__pruning_tell(&pruning, 1, 5.0, true)); /* nothing was asked yet */
    size_t arm = SIZE_MAX;
    assert_true(wg__pruning_ask(&pruning, &arm));
    assert_false(wg__pruning_tell(&pruning, 0, 1.0, false)); /* another arm's */
    assert_true(wg__pruning_tell(&pruning, 1, 5.0, true));
    assert_false(wg__pruning_tell(&pruning, 1, 1.0, false)); /* told already */
    WALK(&pruning, {0, 6.0, true}, {2, 7.0, true});
    SURVIVORS(&pruning, 0, 1, 2);
    assert_false(wg__pruning_tell(&pruning, 0, 1.0, false)); /* over */
}

/* Whatever the arms cost and however often they fail: survivors are exactly the arms that reached
 * the target once in each round, no arm is asked again after a failure, and 2 n asks are enough. */
static void keeps_exactly_the_arms_that_reached_in_both_rounds(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 20240501);
    for (unsigned trial = 0; trial < 2000; trial++) {
        const size_t arms = 1 + wg__rng_below(&rng, 12);
        struct wg_pruning pruning;
        wg__pruning_init(&pruning, arms, wg__rng_below(&rng, (uint32_t)arms), 2);
        unsigned reached_count[WG_ARMS_MAX] = {0};
        bool has_failed[WG_ARMS_MAX] = {false};
        size_t arm = 0, asks = 0;
        while (wg__pruning_ask(&pruning, &arm)) {
            assert_true(arm < arms && !has_failed[arm] && ++asks <= 2 * arms);
            const bool reached = wg__rng_below(&rng, 4) > 0;
            assert_true(wg__pruning_tell(&pruning, arm, wg__rng_uniform(&rng), reached));
            has_failed[arm] = !reached;
            reached_count[arm] += reached;
        }
        size_t kept = 0;
        for (arm = 0; arm < arms; arm++) {
            if (reached_count[arm] == 2)
                assert_int_equal(pruning.candidate[kept++], arm);
        }
        assert_int_equal(pruning.candidate_count, kept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_32_64_128_of_8_to_256_from_128),
        cmocka_unit_test(goes_up_at_once_when_the_default_fails),
        cmocka_unit_test(leaves_down_after_its_first_failure),
        cmocka_unit_test(ends_the_round_when_up_fails),
        cmocka_unit_test(visits_every_arm_twice_when_all_converge),
        cmocka_unit_test(second_round_starts_at_the_new_default_and_drops_too),
        cmocka_unit_test(keeps_the_earlier_of_two_equal_costs_as_default),
        cmocka_unit_test(may_leave_no_survivor),
        cmocka_unit_test(may_lose_every_arm_in_the_second_round),
        cmocka_unit_test(takes_a_job_with_one_batch_size),
        cmocka_unit_test(asks_the_same_arm_until_it_is_told),
        cmocka_unit_test(ignores_results_that_it_does_not_await),
        cmocka_unit_test(keeps_exactly_the_arms_that_reached_in_both_rounds),
    };
    return run_tests(tests);
}
