/* SPDX-License-Identifier: MIT
 *
 * How far a job is by what its ranks say.
 */
#include "live/progress_count.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "support/check.h"

static const uint64_t s = 1000000000;

/* Says numbers of rank 0, a second apart; the job is at `expected` behind the last one. */
static void expect_after(const double *numbers, size_t length, double expected)
{
    struct wg_progress_count count;
    wg__progress_count_init(&count);
    double before = -1;
    for (size_t i = 0; i < length; i++) {
        const bool is_further = wg__progress_count_add(&count, 0, numbers[i], (i + 1) * s);
        assert_true(is_further == (count.value > before));
        before = count.value;
    }
    check_close(count.value, expected, 0);
    wg__progress_count_fini(&count);
}

#define EXPECT_AFTER(expected, ...)                                                                \
    expect_after((const double[]){__VA_ARGS__},                                                    \
                 sizeof((const double[]){__VA_ARGS__}) / sizeof(double), (expected))

static void one_rank_is_the_job(void **state)
{
    (void)state;
    EXPECT_AFTER(3, 1, 2, 3);
    EXPECT_AFTER(0, 0);
    EXPECT_AFTER(20, 10, 10, 20, 20);
    EXPECT_AFTER(1.5, 0.5, 1, 1.5); /* epochs may be in parts */
}

static void a_restart_counts_on_from_where_the_rank_was(void **state)
{
    (void)state;
    EXPECT_AFTER(150, 149, 150, 100);
    EXPECT_AFTER(150, 149, 150, 100, 101);
    EXPECT_AFTER(152, 149, 150, 100, 101, 102);
    EXPECT_AFTER(160, 149, 150, 100, 101, 102, 110);
    EXPECT_AFTER(155, 150, 100, 101, 102, 103, 50, 51, 52, 52);
}

static void a_number_that_begins_anew_with_each_epoch_adds_up(void **state)
{
    (void)state;
    EXPECT_AFTER(15, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5);
    EXPECT_AFTER(80, 10, 20, 30, 40, 10, 20, 30, 40);
    EXPECT_AFTER(8, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4); /* what counts from 0 says 0 for nothing done */
}

static void a_late_number_is_no_restart(void **state)
{
    (void)state;
    EXPECT_AFTER(7, 5, 4, 6, 5, 7, 6);    /* two that do not say who they are */
    EXPECT_AFTER(8, 7, 5, 4, 6, 3, 8, 7); /* overtaken lines: they do not rise */
    EXPECT_AFTER(9, 8, 5, 6, 9);
}

static void a_wild_number_is_not_believed(void **state)
{
    (void)state;
    const double wild = 9007199254740992.0; /* 2^53 */
    EXPECT_AFTER(3, 1, 2, wild, 3);
    EXPECT_AFTER(2, 1, 2, wild);
    EXPECT_AFTER(4, 1, 2, wild, wild, wild, 3, 4);         /* they do not rise */
    EXPECT_AFTER(5, 3, 1, 2, wild, 4, 5);                  /* nor are they part of a restart */
    EXPECT_AFTER(5, 1, wild - 2, 2, wild - 1, 3, wild, 5); /* nor follow each other */
}

static void a_resumed_job_may_begin_high_and_large_strides_are_believed(void **state)
{
    (void)state;
    EXPECT_AFTER(5e9 + 2, 5e9, 5e9 + 1, 5e9 + 2);
    EXPECT_AFTER(16e6, 4e6, 8e6, 12e6, 16e6); /* tokens */
    EXPECT_AFTER(16e6, 0, 4e6, 8e6, 12e6, 16e6);
    EXPECT_AFTER(0, 0, 4e6, 8e6);
    EXPECT_AFTER(1e6, 0, 1e6);
}

static void the_job_is_as_far_as_its_slowest_rank(void **state)
{
    (void)state;
    struct wg_progress_count count;
    wg__progress_count_init(&count);
    for (unsigned rank = 0; rank < 4; rank++)
        (void)wg__progress_count_add(&count, rank, 0, s);
    assert_false(wg__progress_count_add(&count, 0, 5, s));
    assert_false(wg__progress_count_add(&count, 1, 3, s));
    assert_false(wg__progress_count_add(&count, 3, 4, s));
    assert_true(wg__progress_count_add(&count, 2, 7, s));
    check_close(count.value, 3, 0);
    assert_true(wg__progress_count_add(&count, 1, 9, s));
    check_close(count.value, 4, 0);
    wg__progress_count_fini(&count);
}

static void a_rank_that_joins_later_begins_where_the_job_is(void **state)
{
    (void)state;
    struct wg_progress_count count;
    wg__progress_count_init(&count);
    (void)wg__progress_count_add(&count, 0, 100, s);
    assert_false(wg__progress_count_add(&count, 1, 1, s));
    assert_false(wg__progress_count_add(&count, 0, 101, s));
    assert_true(wg__progress_count_add(&count, 1, 2, s));
    check_close(count.value, 101, 0);
    assert_int_equal(count.count, 2);
    wg__progress_count_fini(&count);
}

static void a_silent_rank_no_longer_holds_the_job_back(void **state)
{
    (void)state;
    struct wg_progress_count count;
    wg__progress_count_init(&count);
    (void)wg__progress_count_add(&count, 0, 1, s);
    (void)wg__progress_count_add(&count, 1, 1, s);
    bool is_further = false;
    uint64_t t_s = 1;
    while (!is_further && t_s < 100) {
        t_s++;
        is_further = wg__progress_count_add(&count, 0, (double)t_s, t_s * s);
    }
    assert_true(is_further);
    assert_in_range(t_s, 61, 63);
    check_close(count.value, (double)t_s, 0);
    /* It comes back, behind: the job's number does not. */
    assert_false(wg__progress_count_add(&count, 1, 5, ++t_s * s));
    const double before = count.value;
    assert_false(wg__progress_count_add(&count, 0, before + 10, t_s * s));
    assert_true(wg__progress_count_add(&count, 1, before + 2, t_s * s));
    check_close(count.value, before + 2, 0);
    wg__progress_count_fini(&count);
}

/* The minimum that is kept against the one that is looked for, over random ranks and steps. */
static void the_kept_minimum_is_the_minimum(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 41);
    for (unsigned round = 0; round < 50; round++) {
        enum { RANKS = 17 };
        double at[RANKS] = {0};
        struct wg_progress_count count;
        wg__progress_count_init(&count);
        for (unsigned rank = 0; rank < RANKS; rank++)
            (void)wg__progress_count_add(&count, rank, 0, s);
        for (unsigned i = 0; i < 2000; i++) {
            const unsigned rank = wg__rng_below(&rng, RANKS);
            at[rank] += floor(wg__rng_uniform(&rng) * 3);
            (void)wg__progress_count_add(&count, rank, at[rank], s);
            double least = at[0];
            for (unsigned other = 1; other < RANKS; other++)
                least = fmin(least, at[other]);
            check_close(count.value, least, 0);
        }
        wg__progress_count_fini(&count);
    }
}

static void ranks_beyond_the_most_or_without_memory_are_left_out(void **state)
{
    (void)state;
    struct wg_progress_count count;
    wg__progress_count_init(&count);
    wg__alloc_fail_from(1);
    assert_false(wg__progress_count_add(&count, 0, 1, s));
    wg__alloc_fail_from(0);
    assert_int_equal(count.count, 0);
    for (unsigned rank = 0; rank < WG_PROGRESS_RANKS_MAX + 10; rank++)
        (void)wg__progress_count_add(&count, 7 * rank, 1, s);
    assert_int_equal(count.count, WG_PROGRESS_RANKS_MAX);
    assert_false(wg__progress_count_add(&count, 1, 1, s));
    wg__progress_count_fini(&count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_rank_is_the_job),
        cmocka_unit_test(a_restart_counts_on_from_where_the_rank_was),
        cmocka_unit_test(a_number_that_begins_anew_with_each_epoch_adds_up),
        cmocka_unit_test(a_late_number_is_no_restart),
        cmocka_unit_test(a_wild_number_is_not_believed),
        cmocka_unit_test(a_resumed_job_may_begin_high_and_large_strides_are_believed),
        cmocka_unit_test(the_job_is_as_far_as_its_slowest_rank),
        cmocka_unit_test(a_rank_that_joins_later_begins_where_the_job_is),
        cmocka_unit_test(a_silent_rank_no_longer_holds_the_job_back),
        cmocka_unit_test(the_kept_minimum_is_the_minimum),
        cmocka_unit_test(ranks_beyond_the_most_or_without_memory_are_left_out),
    };
    return run_tests(tests);
}
