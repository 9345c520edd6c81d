/* SPDX-License-Identifier: MIT
 *
 * Tests of adding up replays (simulate/study_sum.h), with records made by hand.
 */
#include "simulate/study_sum.h"

#include <math.h>

#include "base/alloc.h"
#include "support/check.h"

enum { RECURRENCES_MAX = 400 };

/* A record whose costs are set by the test. */
struct fixture {
    struct wg_study_sum sum;
    struct wg_study_world world;
    struct wg_study_case result;
    struct wg_arena arena;
    struct wg_training_record record;
    double cost_j[RECURRENCES_MAX], energy_j[RECURRENCES_MAX], time_s[RECURRENCES_MAX];
    unsigned char arm[RECURRENCES_MAX], limit[RECURRENCES_MAX];
};

static void fixture_open(struct fixture *fixture, size_t recurrences, size_t seeds, size_t bins)
{
    *fixture = (struct fixture){0};
    assert_int_equal(wg__study_sum_init(&fixture->sum, recurrences, seeds, bins, NULL), WG_OK);
    wg__arena_init(&fixture->arena);
    fixture->record = (struct wg_training_record){.cost_j = fixture->cost_j,
                                                  .energy_j = fixture->energy_j,
                                                  .time_s = fixture->time_s,
                                                  .arm = fixture->arm,
                                                  .limit = fixture->limit};
    fixture->world = (struct wg_study_world){
        .arm_count = 2,
        .batch_size = {8, 16},
        .limit_count = 2,
        .limit_w = {100, 200},
        .default_total = {.cost_j = 40},
        .oracle_total = {.cost_j = 10},
    };
}

static void fixture_close(struct fixture *fixture)
{
    wg__study_sum_fini(&fixture->sum);
    wg__arena_fini(&fixture->arena);
}

static void finish(struct fixture *fixture)
{
    assert_int_equal(wg__study_sum_finish(&fixture->sum, &fixture->world, &fixture->arena,
                                          &fixture->result, NULL),
                     WG_OK);
}

/* Three seeds, two recurrences. */
static void add_three_seeds(struct fixture *fixture)
{
    const double costs[3][2] = {{4, 8}, {5, 10}, {6, 18}};
    for (size_t seed = 0; seed < 3; seed++) {
        for (size_t r = 0; r < 2; r++) {
            fixture->cost_j[r] = costs[seed][r];
            fixture->energy_j[r] = 10 * costs[seed][r];
            fixture->time_s[r] = 100 * costs[seed][r];
            fixture->arm[r] = (unsigned char)(r == 1 && seed > 0);
            fixture->limit[r] = (unsigned char)(seed == 2);
        }
        fixture->record.attempts = 2 + seed;
        fixture->record.gave_up = seed == 1;
        wg__study_sum_add(&fixture->sum, &fixture->record);
    }
}

static void totals_and_ratios_follow_from_the_records(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 2, 3, 2);
    add_three_seeds(&fixture);
    finish(&fixture);
    /* Totals 12, 15, 24: mean 17, deviations -5, -2, 7, variance 78 / 2. */
    const struct wg_study_case *of = &fixture.result;
    check_close(of->cost_j.mean, 17, 1e-14);
    check_close(of->cost_j.sd, sqrt(39), 1e-14);
    check_close(of->cost_j.worst, 24, 1e-14);
    check_close(of->energy_j.mean, 170, 1e-14);
    check_close(of->time_s.sd, 100 * sqrt(39), 1e-14);
    check_close(of->cost_over_default.mean, 17.0 / 40, 1e-14);
    check_close(of->cost_over_oracle.mean, 1.7, 1e-14);
    check_close(of->cost_over_oracle.worst, 2.4, 1e-14);
    /* The oracle costs 5 a run; 17 - 10 is 1.4 runs. */
    check_close(of->regret_oracle_runs.mean, 1.4, 1e-14);
    check_close(of->regret_oracle_runs.worst, 2.8, 1e-14);
    check_close(of->attempts_per_recurrence, 9.0 / 6, 1e-14);
    assert_int_equal(of->gave_up, 1);
    fixture_close(&fixture);
}

static void curves_and_choices_follow_from_the_records(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 2, 3, 2);
    add_three_seeds(&fixture);
    finish(&fixture);
    const struct wg_study_case *of = &fixture.result;
    check_close(of->cumulative_cost_j[0], 5, 1e-14);
    check_close(of->cumulative_cost_j[1], 17, 1e-14);
    /* Type 7 quantiles of 4, 5, 6 and of 12, 15, 24: at 0.2 of the first gap, 0.8 of the second. */
    check_close(of->cumulative_low_j[0], 4.2, 1e-14);
    check_close(of->cumulative_high_j[0], 5.8, 1e-14);
    check_close(of->cumulative_low_j[1], 12.6, 1e-14);
    check_close(of->cumulative_high_j[1], 22.2, 1e-14);
    const double shares[] = {1, 0, 1.0 / 3, 2.0 / 3};
    for (size_t i = 0; i < 4; i++)
        check_close_abs((double)of->choices[i], shares[i], 1e-6, 0);
    /* Two of three seeds end at 16; there, 100 W and 200 W once each: the smaller. */
    check_close(of->final_batch_size, 16, 0);
    check_close(of->final_limit_w, 100, 0);
    fixture_close(&fixture);
}

static void a_sum_starts_anew_after_it_is_finished(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 2, 3, 2);
    add_three_seeds(&fixture);
    finish(&fixture);
    const struct wg_study_case first = fixture.result;
    add_three_seeds(&fixture);
    finish(&fixture);
    assert_memory_equal(&first.cost_j, &fixture.result.cost_j, sizeof first.cost_j);
    assert_memory_equal(first.cumulative_cost_j, fixture.result.cumulative_cost_j,
                        2 * sizeof(double));
    assert_memory_equal(first.choices, fixture.result.choices, 4 * sizeof(float));
    check_close(fixture.result.attempts_per_recurrence, 1.5, 1e-14);
    fixture_close(&fixture);
}

static void recurrences_share_bins_when_there_are_fewer(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, 5, 1, 2); /* bins of 3 and 2 recurrences */
    for (size_t r = 0; r < 5; r++)
        fixture.arm[r] = r == 0 || r == 4;
    wg__study_sum_add(&fixture.sum, &fixture.record);
    finish(&fixture);
    const double shares[] = {2.0 / 3, 1.0 / 3, 0.5, 0.5};
    for (size_t i = 0; i < 4; i++)
        check_close((double)fixture.result.choices[i], shares[i], 1e-6);
    fixture_close(&fixture);
}

/* So many seeds that the curves are kept at a few recurrences only. With costs that do not depend
 * on the seed's number but on the recurrence alone, all quantiles are the mean; and with equal
 * costs per recurrence, the straight lines between the checkpoints are exact. */
static void quantiles_of_many_seeds_are_interpolated(void **state)
{
    (void)state;
    enum { SEEDS = 100000 };
    struct fixture fixture;
    fixture_open(&fixture, RECURRENCES_MAX, SEEDS, 10);
    assert_in_range(fixture.sum.checkpoint_count, 2, RECURRENCES_MAX / 4);
    for (size_t r = 0; r < RECURRENCES_MAX; r++)
        fixture.cost_j[r] = 3;
    for (size_t seed = 0; seed < SEEDS; seed++)
        wg__study_sum_add(&fixture.sum, &fixture.record);
    finish(&fixture);
    for (size_t r = 0; r < RECURRENCES_MAX; r++) {
        const double expected = 3 * (double)(r + 1);
        check_close(fixture.result.cumulative_cost_j[r], expected, 1e-9);
        check_close(fixture.result.cumulative_low_j[r], expected, 1e-9);
        check_close(fixture.result.cumulative_high_j[r], expected, 1e-9);
    }
    fixture_close(&fixture);
}

static void refuses_what_does_not_fit_into_memory(void **state)
{
    (void)state;
    struct wg_study_sum sum;
    struct wg_error err;
    for (size_t nth = 1; nth <= 7; nth++) {
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__study_sum_init(&sum, 10, 10, 10, &err);
        wg__alloc_fail_from(0);
        assert_int_equal(code, WG_ENOMEM);
        assert_null(sum.cost_j);
    }
    assert_int_equal(wg__study_sum_init(&sum, 10, 10, 10, &err), WG_OK);
    wg__study_sum_fini(&sum);
    wg__study_sum_fini(&sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(totals_and_ratios_follow_from_the_records),
        cmocka_unit_test(curves_and_choices_follow_from_the_records),
        cmocka_unit_test(a_sum_starts_anew_after_it_is_finished),
        cmocka_unit_test(recurrences_share_bins_when_there_are_fewer),
        cmocka_unit_test(quantiles_of_many_seeds_are_interpolated),
        cmocka_unit_test(refuses_what_does_not_fit_into_memory),
    };
    return run_tests(tests);
}
