/* SPDX-License-Identifier: MIT
 *
 * The policy `wattgov` over random tables of costs: it converges, and the bill keeps near what the
 * default would have cost.
 *
 * A table has 2 to 12 batch sizes in octaves. Epochs follow a curve with a knee at either end and a
 * deviation of its own at every batch size, epochs get cheaper with the batch size, and batch sizes
 * far beyond a knee never reach the target. No run differs from another of the same arm.
 */
#include "support/governor_stage.h"

static const struct wg_governor_constants *const c = &wg__governor_constants;

enum { TABLES = 100, RECURRENCES = 200 };

static struct toy_world draw_table(uint64_t seed, uint64_t attempt)
{
    struct wg_rng tables, rng;
    wg__rng_init(&tables, seed);
    rng = wg__rng_split(&tables, attempt);
    const size_t arms = 2 + wg__rng_below(&rng, 11);
    struct toy_world world = make_world(arms, wg__rng_below(&rng, (uint32_t)arms));
    const double base = 4 + 40 * wg__rng_uniform(&rng);
    const double upper = 10 * wg__rng_uniform(&rng), lower = upper - 1 - 5 * wg__rng_uniform(&rng);
    const double steep = 1 + wg__rng_uniform(&rng), saving = 0.1 + 0.7 * wg__rng_uniform(&rng);
    const double fails_above = upper + 1 + 3 * wg__rng_uniform(&rng),
                 fails_below = lower - 1 - 3 * wg__rng_uniform(&rng);
    double most = 0;
    for (size_t i = 0; i < arms; i++) {
        const double x = (double)i;
        world.epochs[i] = round(base * (1 + exp2(x - upper)) * (1 + exp2(steep * (lower - x))) *
                                exp2(0.05 * wg__rng_normal(&rng)));
        world.epoch_j[i] = 100 * exp2(-saving * x) + 10;
        if (x > fails_above || x < fails_below)
            world.epochs[i] = (double)INFINITY;
        else
            most = fmax(most, world.epochs[i]);
    }
    world.max_epochs = (unsigned)fmin(1.2 * most, 500) + 1;
    world.survey_j = 0.02 * run_cost_j(&world, world.default_arm);
    world.has_metric = wg__rng_below(&rng, 2) == 0;
    return world;
}

/* A table whose default somebody could have chosen: it works, and is at most three times as dear as
 * the best. */
static struct toy_world make_table(uint64_t seed)
{
    for (uint64_t attempt = 0;; attempt++) {
        const struct toy_world world = draw_table(seed, attempt);
        if (world.epochs[world.default_arm] <= world.max_epochs &&
            run_cost_j(&world, world.default_arm) <= 3 * run_cost_j(&world, cheapest_arm(&world)))
            return world;
    }
}

/* What the guard is not asked for: the surveys, the first epochs with profiling in them, and how
 * far one trial may overrun its expected bill. In runs of the default. */
static const double unguarded_runs = 3;

static void converges_and_keeps_its_bill_over_random_tables(void **state)
{
    (void)state;
    unsigned converged = 0;
    double worst_runs = 0;
    for (uint64_t seed = 0; seed < TABLES; seed++) {
        const struct toy_world world = make_table(seed);
        const double default_j = run_cost_j(&world, world.default_arm) * toy_max_limit_factor;
        struct stage stage = open_stage(&world, seed);
        for (unsigned n = 1; n <= RECURRENCES; n++) {
            (void)recur(&stage);
            const double allowed_runs = n + c->debt_runs + c->debt_per_run * n;
            worst_runs = fmax(worst_runs, stage.paid_j / default_j - allowed_runs);
        }
        check_close(stage.governor->spent_j, stage.paid_j, 1e-9);
        const size_t best = stage.driver.ops->best_arm(stage.driver.policy);
        const double ratio = run_cost_j(&world, best) / run_cost_j(&world, cheapest_arm(&world));
        converged += ratio <= 1.05;
        close_stage(&stage);
    }
    assert_true(worst_runs <= unguarded_runs);
    assert_true(converged >= 95);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(converges_and_keeps_its_bill_over_random_tables),
    };
    return run_tests(tests);
}
