/* SPDX-License-Identifier: MIT
 *
 * The choice of the next arm: the guard written a second time, the schedule of exploration counted,
 * and choices that are plain.
 *
 * Only an exploring decision draws random numbers, so whether one was exploring shows in the
 * generator.
 */
#include <string.h>

#include "support/governor_stage.h"

static const struct wg_governor_constants *const c = &wg__governor_constants;

static bool is_exploring(struct stage *stage, double explored, size_t *arm_out)
{
    const struct wg_rng before = stage->driver.rng;
    stage->governor->explored = explored;
    *arm_out = wg__governor_choose(stage->governor, &stage->driver.rng);
    return before.counter != stage->driver.rng.counter || before.left != stage->driver.rng.left;
}

/* Costs and epochs of any kind; some arms never reach the target. */
static struct toy_world make_random_world(struct wg_rng *rng)
{
    const size_t arms = 1 + wg__rng_below(rng, 10);
    struct toy_world world = make_world(arms, wg__rng_below(rng, (uint32_t)arms));
    for (size_t i = 0; i < arms; i++) {
        world.epochs[i] = 2 + 60 * wg__rng_uniform(rng);
        if (i != world.default_arm && wg__rng_below(rng, 6) == 0)
            world.epochs[i] = (double)INFINITY;
        world.epoch_j[i] = 1 + 30 * wg__rng_uniform(rng);
    }
    world.noise_sd = 0.3 * wg__rng_uniform(rng);
    return world;
}

/* The guard, from what the header of governor_choice.c and the research note say. */
static bool may_take(const struct wg_governor *governor, size_t arm)
{
    const size_t of_default = governor->job.default_arm;
    const double incumbent_j = governor->incumbent_j, expected_j = governor->expected_j[arm];
    if (arm == governor->incumbent || expected_j <= c->guard_slack * incumbent_j * (1 + 1e-12))
        return true;
    double default_run_j = governor->expected_j[of_default], price_j;
    if (governor->cost[of_default].is_profiled)
        default_run_j *= governor->cost[of_default].profile.epoch_cost_max_limit_j /
                         governor->cost[of_default].profile.epoch_cost_j;
    (void)wg__governor_stop_epochs(governor, arm, &price_j);
    const double in_flight = (double)governor->in_flight;
    const double runs = (double)governor->completed + in_flight;
    const double bill_j = governor->spent_j + in_flight * incumbent_j +
                          (expected_j > price_j + incumbent_j ? expected_j : price_j + incumbent_j);
    return bill_j <=
           default_run_j * (runs + 1 + c->debt_runs + c->debt_per_run * runs) * (1 + 1e-12);
}

static void never_takes_an_arm_that_the_guard_forbids(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 21);
    unsigned explored = 0, trials = 0, forbidden = 0;
    for (uint64_t world_seed = 0; world_seed < 60; world_seed++) {
        const struct toy_world world = make_random_world(&rng);
        struct stage stage = open_stage(&world, world_seed);
        for (unsigned runs = 0; runs < 15; runs++) {
            (void)recur(&stage);
            wg__governor_refresh(stage.governor);
            const double explored_before = stage.governor->explored;
            const double spent_j = stage.governor->spent_j;
            for (unsigned rich = 0; rich < 3; rich++) { /* as it is, then in debt, then rich */
                stage.governor->spent_j = spent_j * (rich == 0 ? 1 : rich == 1 ? 1.5 : 0.2);
                size_t arm;
                explored += is_exploring(&stage, 0, &arm);
                assert_true(arm < world.arm_count);
                assert_true(may_take(stage.governor, arm));
                trials += arm != stage.governor->incumbent;
                for (size_t i = 0; i < world.arm_count; i++)
                    forbidden += !may_take(stage.governor, i);
            }
            stage.governor->explored = explored_before;
            stage.governor->spent_j = spent_j;
        }
        close_stage(&stage);
    }
    assert_int_equal(explored, 60 * 15 * 3);
    assert_true(trials > 100 && forbidden > 100); /* there was something to choose and to forbid */
}

/* A default that was run once, and nothing else known: deep in debt every other arm that is
 * expected to be dearer is forbidden. */
static void in_debt_only_cheaper_arms_are_tried(void **state)
{
    (void)state;
    const struct toy_world world = make_world(5, 2);
    struct stage stage = open_stage(&world, 4);
    (void)recur(&stage);
    stage.governor->spent_j = 1e12;
    wg__governor_refresh(stage.governor);
    for (unsigned i = 0; i < 50; i++) {
        size_t arm;
        (void)is_exploring(&stage, 0, &arm);
        assert_true(arm == stage.governor->incumbent ||
                    stage.governor->expected_j[arm] <=
                        c->guard_slack * stage.governor->incumbent_j);
    }
    close_stage(&stage);
}

static void a_single_arm_is_the_only_choice(void **state)
{
    (void)state;
    const struct toy_world world = make_world(1, 0);
    struct stage stage = open_stage(&world, 1);
    for (unsigned i = 0; i < 20; i++) {
        (void)recur(&stage);
        wg__governor_refresh(stage.governor);
        size_t arm;
        (void)is_exploring(&stage, 0, &arm);
        assert_int_equal(arm, 0);
    }
    close_stage(&stage);
}

/* Every arm has been run so often that nothing is left to learn. */
static void certain_knowledge_picks_the_incumbent(void **state)
{
    (void)state;
    struct toy_world world = make_world(5, 2);
    const double epochs[] = {10, 10, 12, 16, 30}, costs[] = {40, 20, 10, 6, 5};
    memcpy(world.epochs, epochs, sizeof epochs);
    memcpy(world.epoch_j, costs, sizeof costs);
    struct stage stage = open_stage(&world, 1);
    (void)recur(&stage);
    struct wg_governor *governor = stage.governor;
    for (unsigned arm = 0; arm < 5; arm++) {
        (void)profile_arm(&stage, arm);
        for (unsigned run = 0; run < 50; run++)
            governor->observations[governor->observation_count++] = (struct wg_epochs_observation){
                .arm = (unsigned char)arm, .log2_epochs = log2(epochs[arm])};
    }
    governor->spent_j = -1e9; /* the guard would allow anything */
    governor->version++;
    wg__governor_refresh(governor);
    assert_int_equal(governor->incumbent, 3); /* 96 J, the next 120 J */
    for (unsigned i = 0; i < 100; i++) {
        size_t arm;
        assert_true(is_exploring(&stage, 0, &arm));
        assert_int_equal(arm, 3);
    }
    close_stage(&stage);
}

/* Arm 3 costs half as much per epoch as the default that ran once, and it is next to it. */
static void a_promising_neighbour_is_tried_at_once(void **state)
{
    (void)state;
    struct toy_world world = make_world(5, 2);
    world.epoch_j[3] = 5;
    world.epochs[4] = world.epochs[0] = (double)INFINITY;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct stage stage = open_stage(&world, seed);
        (void)recur(&stage);
        assert_int_equal(stage.last_arm, 2);
        (void)recur(&stage);
        assert_int_equal(stage.last_arm, 3);
        close_stage(&stage);
    }
}

/* Two unlucky runs, or a curve that rises too steeply, hide the best arm; the second look finds it.
 */
static void a_second_look_is_taken_at_each_doubling_and_finds_what_the_curve_hides(void **state)
{
    (void)state;
    const struct toy_world world = make_world(3, 0);
    struct stage stage = open_stage(&world, 1);
    (void)recur(&stage);
    wg__governor_refresh(stage.governor);
    struct wg_governor *g = stage.governor;
    g->model.mean[1] =
        g->model.mean[0] + 3; /* as if the curve had a knee right above the default */
    g->model.mean[2] = g->model.mean[0] + 6;
    g->cost[2].epoch_j = 0.5 * g->cost[0].epoch_j;
    g->spent_j = 0; /* no debt */
    size_t arm;
    const unsigned first = (unsigned)c->second_look_first;
    for (unsigned n = first; n < 5000; n *= 2) {
        (void)is_exploring(&stage, n, &arm);
        assert_int_equal(arm, 2); /* half the price per epoch, if it needs no more of them */
    }
    unsigned looks = 0;
    for (unsigned n = first; n < 4 * first; n++) {
        const bool draws = is_exploring(&stage, n, &arm);
        looks += !draws && arm == 2;
    }
    assert_int_equal(looks, 2);
    g->model.failure_count[2] = 1; /* it was looked at, and failed */
    (void)is_exploring(&stage, first, &arm);
    assert_int_not_equal(arm, 2);
    close_stage(&stage);
}

/* How many of the decisions after `from` .. `to` - 1 recurrences explore. */
static unsigned count_exploring(struct stage *stage, unsigned from, unsigned to)
{
    unsigned count = 0;
    for (unsigned n = from; n < to; n++) {
        size_t arm;
        const bool exploring = is_exploring(stage, n, &arm);
        const bool is_look = n >= c->second_look_first && (n & (n - 1)) == 0;
        assert_true(exploring || is_look || arm == stage->governor->incumbent);
        count += exploring;
    }
    return count;
}

/* All of the first few, then about explore_later / n of them: explore_later ln(1 + m /
 * explore_later) of the next m. */
static void exploration_becomes_rarer_and_never_ends(void **state)
{
    (void)state;
    const struct toy_world world = make_world(2, 0);
    struct stage stage = open_stage(&world, 1);
    (void)recur(&stage);
    wg__governor_refresh(stage.governor);
    const unsigned first = (unsigned)floor(c->explore_first);
    assert_int_equal(count_exploring(&stage, 0, first), first);
    const double expected =
        c->explore_first + c->explore_later * log1p((1000 - c->explore_first) / c->explore_later);
    check_close_abs(count_exploring(&stage, 0, 1000), expected, 0, 1.5);
    for (unsigned n = 1000; n <= 100000; n *= 10) /* as many in each tenfold: ln 10 of them */
        check_close_abs(count_exploring(&stage, n, 10 * n), c->explore_later * log(10), 0, 1.5);
    close_stage(&stage);
}

/* What is in flight is not decided again: with every run of an arm pending, it teaches less. Here
 * that the choice stays lawful, and spreads, with many in flight. */
static void runs_in_flight_spread_over_arms_under_the_guard(void **state)
{
    (void)state;
    struct toy_world world = make_world(7, 2);
    for (size_t i = 0; i < 7; i++)
        world.epoch_j[i] = 10 * exp2(-0.4 * ((double)i - 2));
    struct stage stage = open_stage(&world, 3);
    (void)recur(&stage);
    unsigned taken[7] = {0};
    for (uint64_t i = 1; i <= 12; i++) {
        const struct wg_batch_step step =
            ask_for(&stage, (struct wg_batch_request){.recurrence = i});
        taken[step.arm]++;
        (void)profile_arm(&stage, step.arm);
        assert_int_equal(stage.governor->in_flight, i);
    }
    unsigned different = 0;
    for (size_t i = 0; i < 7; i++)
        different += taken[i] > 0;
    assert_true(different >= 2);
    close_stage(&stage);
}

static void choices_repeat_from_the_seed(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 8);
    for (unsigned trial = 0; trial < 20; trial++) {
        const struct toy_world world = make_random_world(&rng);
        struct stage a = open_stage(&world, trial), b = open_stage(&world, trial);
        for (unsigned runs = 0; runs < 10; runs++) {
            check_close(recur(&a), recur(&b), 0);
            assert_int_equal(a.last_arm, b.last_arm);
        }
        close_stage(&a);
        close_stage(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_takes_an_arm_that_the_guard_forbids),
        cmocka_unit_test(in_debt_only_cheaper_arms_are_tried),
        cmocka_unit_test(a_single_arm_is_the_only_choice),
        cmocka_unit_test(certain_knowledge_picks_the_incumbent),
        cmocka_unit_test(a_promising_neighbour_is_tried_at_once),
        cmocka_unit_test(a_second_look_is_taken_at_each_doubling_and_finds_what_the_curve_hides),
        cmocka_unit_test(exploration_becomes_rarer_and_never_ends),
        cmocka_unit_test(runs_in_flight_spread_over_arms_under_the_guard),
        cmocka_unit_test(choices_repeat_from_the_seed),
    };
    return run_tests(tests);
}
