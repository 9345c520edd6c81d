/* SPDX-License-Identifier: MIT
 *
 * The choice of the power limit and the two searches: hand-worked cases, a closed form, and
 * properties over random curves. test_power_limit_traces.c has the measured data.
 */
#include "support/check.h"

#include <stdbool.h>
#include <string.h>

#include "base/rng.h"
#include "math/normal.h"
#include "optimize/power_limit.h"

static const struct wg_objective energy = {.kind = WG_OBJECTIVE_ENERGY};

/* A curve and a search over it. */
struct curve {
    size_t count;
    double limit_w[WG_POWER_LIMITS_MAX];
    double power_w[WG_POWER_LIMITS_MAX];
    double throughput[WG_POWER_LIMITS_MAX];
};

static double cost_of(const struct curve *curve, const struct wg_objective *objective, size_t index)
{
    return wg__objective_cost_per_s(objective, curve->power_w[index]) / curve->throughput[index];
}

/* Runs a search to its end, checking on the way what holds for every search on every curve. */
static size_t search_curve(const struct curve *curve, const struct wg_objective *objective,
                           enum wg_power_search_method method, double warm_start_w,
                           size_t *probes_out)
{
    struct wg_power_search search;
    bool asked[WG_POWER_LIMITS_MAX] = {false};
    double largest = 0.0;
    size_t index, again, probes = 0;

    assert_int_equal(wg__power_search_init(&search, objective, method, curve->limit_w, curve->count,
                                           warm_start_w, NULL),
                     WG_OK);
    while (wg__power_search_ask(&search, &index)) {
        assert_true(index < curve->count);
        assert_false(asked[index]);
        if (probes == 0)
            assert_int_equal(index, curve->count - 1);
        if (method == WG_POWER_SEARCH_SWEEP)
            assert_int_equal(index, curve->count - 1 - probes);
        assert_true(wg__power_search_ask(&search, &again));
        assert_int_equal(again, index);
        asked[index] = true;
        probes++;
        largest = fmax(largest, curve->throughput[index]);
        assert_int_equal(wg__power_search_tell(&search, index, curve->power_w[index],
                                               curve->throughput[index], NULL),
                         WG_OK);
        assert_int_equal(search.probe_count, probes);
    }
    assert_true(probes >= 1);
    if (method == WG_POWER_SEARCH_SWEEP)
        assert_int_equal(probes, curve->count);
    const double floor =
        objective->kind == WG_OBJECTIVE_SLOWDOWN ? largest / objective->max_slowdown : 0.0;
    const size_t best = wg__power_search_best(&search);

    assert_true(asked[best]);
    assert_true(curve->throughput[best] >= floor * (1.0 - 1e-12));
    for (size_t i = 0; i < curve->count; i++)
        if (asked[i] && curve->throughput[i] >= floor)
            assert_true(cost_of(curve, objective, best) <=
                        cost_of(curve, objective, i) * (1.0 + 1e-12));
    if (probes_out != NULL)
        *probes_out = probes;
    return best;
}

/* The choice. */

/* Joules per unit: 200/10 = 20, 150/9 = 16.67, 100/5 = 20. eta = 0.5, Pmax = 200 W: 20, 19.44, 30.
 */
static void chooses_by_hand_worked_costs(void **state)
{
    static const struct wg_power_sample samples[] = {{100, 100, 5}, {150, 150, 9}, {200, 200, 10}};
    struct wg_objective objective = energy;
    size_t best;

    (void)state;
    assert_int_equal(wg__power_limit_best(&objective, samples, 3, &best, NULL), WG_OK);
    assert_int_equal(best, 1);
    objective = (struct wg_objective){.kind = WG_OBJECTIVE_TIME, .max_power_w = 200.0};
    assert_int_equal(wg__power_limit_best(&objective, samples, 3, &best, NULL), WG_OK);
    assert_int_equal(best, 2);
    objective = (struct wg_objective){.kind = WG_OBJECTIVE_COST, .eta = 0.5, .max_power_w = 200.0};
    assert_int_equal(wg__power_limit_best(&objective, samples, 3, &best, NULL), WG_OK);
    assert_int_equal(best, 1);
}

/* 10 / 1.1 = 9.09 is more than 9, 10 / 1.12 = 8.93 is less. */
static void slowdown_admits_what_is_fast_enough_and_nothing_else(void **state)
{
    static const struct wg_power_sample samples[] = {{100, 100, 5}, {150, 150, 9}, {200, 200, 10}};
    struct wg_objective objective = {.kind = WG_OBJECTIVE_SLOWDOWN, .max_slowdown = 1.1};
    size_t best;

    (void)state;
    assert_int_equal(wg__power_limit_best(&objective, samples, 3, &best, NULL), WG_OK);
    assert_int_equal(best, 2);
    objective.max_slowdown = 1.12;
    assert_int_equal(wg__power_limit_best(&objective, samples, 3, &best, NULL), WG_OK);
    assert_int_equal(best, 1);
    objective.max_slowdown = 1.0;
    assert_int_equal(wg__power_limit_best(&objective, samples, 3, &best, NULL), WG_OK);
    assert_int_equal(best, 2);
}

static void a_tie_goes_to_the_larger_limit(void **state)
{
    static const struct wg_power_sample samples[] = {{125, 50, 2}, {225, 50, 2}, {175, 50, 2}};
    size_t best;

    (void)state;
    assert_int_equal(wg__power_limit_best(&energy, samples, 3, &best, NULL), WG_OK);
    assert_int_equal(best, 1);
}

static void permuting_the_samples_changes_nothing(void **state)
{
    struct wg_rng rng;

    (void)state;
    wg__rng_init(&rng, 11);
    for (unsigned round = 0; round < 500; round++) {
        const uint32_t count = 1 + wg__rng_below(&rng, 12);
        const enum wg_objective_kind kind =
            (enum wg_objective_kind)wg__rng_below(&rng, WG_OBJECTIVE_KIND_COUNT);
        const struct wg_objective objective = {
            .kind = kind, .eta = 0.5, .max_slowdown = 1.3, .max_power_w = 300.0};
        struct wg_power_sample samples[12];
        size_t best;

        for (uint32_t i = 0; i < count; i++) /* few values: ties are common */
            samples[i] = (struct wg_power_sample){.limit_w = 100.0 + i,
                                                  .power_w = 50.0 + wg__rng_below(&rng, 3),
                                                  .throughput = 4.0 + wg__rng_below(&rng, 3)};
        assert_int_equal(wg__power_limit_best(&objective, samples, count, &best, NULL), WG_OK);
        const double best_w = samples[best].limit_w;

        for (uint32_t i = count; i > 1; i--) {
            const uint32_t j = wg__rng_below(&rng, i);
            const struct wg_power_sample moved = samples[j];

            samples[j] = samples[i - 1];
            samples[i - 1] = moved;
        }
        assert_int_equal(wg__power_limit_best(&objective, samples, count, &best, NULL), WG_OK);
        check_close(samples[best].limit_w, best_w, 0.0);
    }
}

static void rejects_samples_that_cannot_be(void **state)
{
    const double bad[] = {0.0, -1.0, (double)NAN, (double)INFINITY};
    struct wg_error err;
    size_t best = 99;

    (void)state;
    assert_int_equal(wg__power_limit_best(&energy, NULL, 0, &best, &err), WG_EINVAL);
    for (size_t i = 0; i < 4; i++) {
        for (size_t field = 0; field < 3; field++) {
            struct wg_power_sample samples[] = {{100, 90, 1}, {150, 140, 2}};

            *(field == 0   ? &samples[1].limit_w
              : field == 1 ? &samples[1].power_w
                           : &samples[1].throughput) = bad[i];
            assert_int_equal(wg__power_limit_best(&energy, samples, 2, &best, &err), WG_EINVAL);
        }
    }
    const struct wg_power_sample twice[] = {{100, 90, 1}, {150, 140, 2}, {100, 91, 1}};

    assert_int_equal(wg__power_limit_best(&energy, twice, 3, &best, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "100 W stands twice"));
    const struct wg_objective unset = {.kind = WG_OBJECTIVE_COST, .eta = 0.5};

    assert_int_equal(wg__power_limit_best(&unset, twice, 2, &best, &err), WG_EINVAL);
    assert_int_equal(best, 99);
}

/* The searches. */

static void init_rejects_bad_limits_and_objectives(void **state)
{
    const double ascending[] = {100, 125, 150};
    const double equal[] = {100, 125, 125};
    const double falling[] = {150, 125, 100};
    const double with_nan[] = {100, (double)NAN, 150};
    const double with_zero[] = {0, 100, 150};
    const double *const bad[] = {equal, falling, with_nan, with_zero};
    const enum wg_power_search_method few = WG_POWER_SEARCH_FEW_PROBES;
    const struct wg_objective unset = {.kind = WG_OBJECTIVE_TIME};
    struct wg_power_search search;
    struct wg_error err;

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(wg__power_search_init(&search, &energy, few, bad[i], 3, 0.0, &err),
                         WG_EINVAL);
    assert_int_equal(wg__power_search_init(&search, &energy, few, ascending, 0, 0.0, &err),
                     WG_EINVAL);
    assert_int_equal(wg__power_search_init(&search, &energy, few, ascending, 65, 0.0, &err),
                     WG_EINVAL);
    assert_int_equal(wg__power_search_init(&search, &unset, few, ascending, 3, 0.0, &err),
                     WG_EINVAL);
    assert_int_equal(wg__power_search_init(&search, &energy, WG_POWER_SEARCH_METHOD_COUNT,
                                           ascending, 3, 0.0, &err),
                     WG_EINVAL);
}

static void tell_rejects_nan_and_leaves_the_search_as_it_was(void **state)
{
    const double limits_w[] = {100, 150, 200};
    const double bad[] = {(double)NAN, 0.0, -5.0, (double)INFINITY};
    struct wg_power_search search;
    struct wg_error err;
    size_t index;

    (void)state;
    assert_int_equal(wg__power_search_init(&search, &energy, WG_POWER_SEARCH_FEW_PROBES, limits_w,
                                           3, (double)NAN, &err),
                     WG_OK);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(wg__power_search_tell(&search, 2, bad[i], 1.0, &err), WG_EINVAL);
        assert_int_equal(wg__power_search_tell(&search, 2, 190.0, bad[i], &err), WG_EINVAL);
    }
    assert_int_equal(wg__power_search_tell(&search, 3, 190.0, 1.0, &err), WG_EINVAL);
    assert_int_equal(search.probe_count, 0);
    assert_true(wg__power_search_ask(&search, &index));
    assert_int_equal(index, 2);
}

static void a_limit_told_again_keeps_the_mean(void **state)
{
    const double limits_w[] = {100, 200};
    struct wg_power_search search;

    (void)state;
    assert_int_equal(wg__power_search_init(&search, &energy, WG_POWER_SEARCH_SWEEP, limits_w, 2,
                                           (double)NAN, NULL),
                     WG_OK);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(wg__power_search_tell(&search, 1, 150.0 + 15.0 * i, 1.0 + i, NULL), WG_OK);
    assert_int_equal(search.probe_count, 1);
    check_close(search.power_w[1], 165.0, 1e-14);
    check_close(search.throughput[1], 2.0, 1e-14);
}

/* A limit at index k of `count`, evenly from 100 W. */
static void set_limits(struct curve *curve, size_t count)
{
    curve->count = count;
    for (size_t i = 0; i < count; i++)
        curve->limit_w[i] = 100.0 + 200.0 * (double)i / (double)count;
}

static const struct wg_objective all_objectives[] = {
    {.kind = WG_OBJECTIVE_ENERGY},
    {.kind = WG_OBJECTIVE_TIME, .max_power_w = 300.0},
    {.kind = WG_OBJECTIVE_COST, .eta = 0.5, .max_power_w = 300.0},
    {.kind = WG_OBJECTIVE_SLOWDOWN, .max_slowdown = 1.05},
    {.kind = WG_OBJECTIVE_SLOWDOWN, .max_slowdown = 1.0},
};
enum { OBJECTIVES = sizeof all_objectives / sizeof all_objectives[0] };

static void every_search_ends_and_holds_its_promises_on_random_curves(void **state)
{
    static const size_t counts[] = {1, 2, 3, 7, 21, 64};
    struct wg_rng rng;

    (void)state;
    wg__rng_init(&rng, 5);
    for (unsigned round = 0; round < 120; round++) {
        const double scatter = round % 3 == 0 ? 0.0 : round % 3 == 1 ? 0.03 : 2.0;
        struct curve curve;

        set_limits(&curve, counts[round % 6]);
        const double draw_w = 40.0 + 300.0 * wg__rng_uniform(&rng);

        for (size_t i = 0; i < curve.count; i++) {
            curve.power_w[i] = fmin(curve.limit_w[i], draw_w);
            curve.throughput[i] = curve.power_w[i] * exp(scatter * wg__rng_normal(&rng)) * 1e-6;
        }
        for (size_t o = 0; o < OBJECTIVES; o++) {
            for (unsigned method = 0; method < WG_POWER_SEARCH_METHOD_COUNT; method++) {
                const double warm_w = o % 2 == 0 ? (double)NAN : 90.0 + wg__rng_below(&rng, 250);

                (void)search_curve(&curve, &all_objectives[o], (enum wg_power_search_method)method,
                                   warm_w, NULL);
            }
        }
    }
}

static void extreme_scales_do_not_stop_a_search_from_ending(void **state)
{
    static const double scales[] = {1e-300, 1e-12, 1e12, 1e300};
    struct curve curve;

    (void)state;
    set_limits(&curve, 9);
    for (size_t s = 0; s < 4; s++) {
        for (size_t i = 0; i < curve.count; i++) {
            curve.power_w[i] = i % 2 == 0 ? 1e-6 : 1e6; /* far below and above every limit */
            curve.throughput[i] = scales[s] * (1.0 + (double)i);
        }
        for (size_t o = 0; o < OBJECTIVES; o++)
            (void)search_curve(&curve, &all_objectives[o], WG_POWER_SEARCH_FEW_PROBES, 150.0, NULL);
    }
}

static void a_flat_curve_costs_few_probes_and_no_regret(void **state)
{
    struct curve curve;
    size_t probes;

    (void)state;
    set_limits(&curve, 64);
    for (size_t i = 0; i < curve.count; i++) {
        curve.power_w[i] = 39.0;
        curve.throughput[i] = 4.2;
    }
    for (size_t o = 0; o < OBJECTIVES; o++) {
        const size_t best = search_curve(&curve, &all_objectives[o], WG_POWER_SEARCH_FEW_PROBES,
                                         (double)NAN, &probes);

        assert_int_equal(best, curve.count - 1);
        assert_true(probes <= 4);
    }
}

/* Clocks rise with the square root of the power above 50 W: throughput sqrt(p - 50), joules per
 * unit p / sqrt(p - 50), least at p = 100 W (its derivative is zero where p = 2 (p - 50)). Drawn at
 * most: 280 W. */
static void finds_the_optimum_of_a_closed_form_within_half_a_percent(void **state)
{
    struct curve curve;
    size_t probes;

    (void)state;
    curve.count = 20;
    for (size_t i = 0; i < curve.count; i++) {
        curve.limit_w[i] = 65.0 + 15.0 * (double)i;
        curve.power_w[i] = fmin(curve.limit_w[i], 280.0);
        curve.throughput[i] = sqrt(curve.power_w[i] - 50.0);
    }
    const size_t best =
        search_curve(&curve, &energy, WG_POWER_SEARCH_FEW_PROBES, (double)NAN, &probes);
    const double least = 100.0 / sqrt(50.0);

    assert_true(cost_of(&curve, &energy, best) <= 1.005 * least);
    assert_true(probes <= 12); /* of 20; the curve is none of the model's family */
}

/* The two best limits are within 0.4 %, so we ask for half a percent of cost, not for the very
 * limit. */
static void a_good_warm_start_saves_probes_and_a_bad_one_does_no_harm(void **state)
{
    const struct wg_objective half = all_objectives[2];
    struct curve curve;
    size_t cold, warm, misled;

    (void)state;
    set_limits(&curve, 9);
    for (size_t i = 0; i < curve.count; i++) {
        const double line = (curve.limit_w[i] - 70.0) / 90.0;

        curve.power_w[i] = fmin(curve.limit_w[i], 240.0);
        curve.throughput[i] = line * pow(1.0 + pow(line, 8.0), -0.125);
    }
    const size_t best = search_curve(&curve, &half, WG_POWER_SEARCH_SWEEP, (double)NAN, NULL);
    const double enough = 1.005 * cost_of(&curve, &half, best);
    const size_t found[] = {
        search_curve(&curve, &half, WG_POWER_SEARCH_FEW_PROBES, (double)NAN, &cold),
        search_curve(&curve, &half, WG_POWER_SEARCH_FEW_PROBES, curve.limit_w[best], &warm),
        search_curve(&curve, &half, WG_POWER_SEARCH_FEW_PROBES, 277.0, &misled),
    };

    for (size_t i = 0; i < 3; i++)
        assert_true(cost_of(&curve, &half, found[i]) <= enough);
    assert_true(warm <= cold);
    assert_true(misled <= cold + 2);
}

/* Measured again: the best limit and its neighbours, each as often as asked; a wrong first choice
 * between two of them is mended by the mean of more samples. */
static void the_best_limits_are_measured_again_until_enough(void **state)
{
    (void)state;
    static const double limits[] = {100, 125, 150, 175};
    struct wg_power_search search;
    assert_int_equal(wg__power_search_init(&search, &energy, WG_POWER_SEARCH_SWEEP, limits, 4,
                                           (double)NAN, NULL),
                     WG_OK);
    size_t index;
    /* True joules per unit: 1.2, 1.0, 1.1, 1.3; noise makes the third look best. */
    static const double first[] = {1.2, 1.0, 0.99, 1.3};
    while (wg__power_search_ask(&search, &index))
        assert_int_equal(wg__power_search_tell(&search, index, first[index], 1, NULL), WG_OK);
    assert_int_equal(wg__power_search_best(&search), 2);
    unsigned asked[4] = {0};
    static const double truth[] = {1.2, 1.0, 1.1, 1.3};
    while (wg__power_search_ask_again(&search, 3, &index)) {
        asked[index]++;
        assert_int_equal(wg__power_search_tell(&search, index, truth[index], 1, NULL), WG_OK);
    }
    assert_int_equal(wg__power_search_best(&search), 1);
    assert_int_equal(asked[1], 2);
    assert_int_equal(asked[2], 2);
    assert_true(asked[0] <= 2 && asked[3] <= 2);
    assert_false(wg__power_search_ask_again(&search, 3, &index));
    /* With one limit there is nothing but itself. */
    assert_int_equal(wg__power_search_init(&search, &energy, WG_POWER_SEARCH_SWEEP, limits, 1,
                                           (double)NAN, NULL),
                     WG_OK);
    assert_true(wg__power_search_ask(&search, &index));
    assert_int_equal(wg__power_search_tell(&search, 0, 1, 1, NULL), WG_OK);
    assert_true(wg__power_search_ask_again(&search, 2, &index));
    assert_int_equal(index, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses_by_hand_worked_costs),
        cmocka_unit_test(slowdown_admits_what_is_fast_enough_and_nothing_else),
        cmocka_unit_test(a_tie_goes_to_the_larger_limit),
        cmocka_unit_test(permuting_the_samples_changes_nothing),
        cmocka_unit_test(rejects_samples_that_cannot_be),
        cmocka_unit_test(init_rejects_bad_limits_and_objectives),
        cmocka_unit_test(tell_rejects_nan_and_leaves_the_search_as_it_was),
        cmocka_unit_test(a_limit_told_again_keeps_the_mean),
        cmocka_unit_test(the_best_limits_are_measured_again_until_enough),
        cmocka_unit_test(every_search_ends_and_holds_its_promises_on_random_curves),
        cmocka_unit_test(extreme_scales_do_not_stop_a_search_from_ending),
        cmocka_unit_test(a_flat_curve_costs_few_probes_and_no_regret),
        cmocka_unit_test(finds_the_optimum_of_a_closed_form_within_half_a_percent),
        cmocka_unit_test(a_good_warm_start_saves_probes_and_a_bad_one_does_no_harm),
    };

    return run_tests(tests);
}
