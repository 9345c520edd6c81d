/* SPDX-License-Identifier: MIT
 *
 * The Gaussian bandit against posteriors worked by hand and the closed form of how often one normal
 * draw beats another.
 */
#include "optimize/thompson.h"

#include <string.h>

#include "base/alloc.h"
#include "support/check.h"

static const bool all_open[WG_ARMS_MAX] = {true, true, true, true};

static struct wg_thompson make_bandit(size_t arms, size_t window)
{
    struct wg_thompson bandit;
    assert_int_equal(wg__thompson_init(&bandit, arms, window, NULL), WG_OK);
    return bandit;
}

static void observe_all(struct wg_thompson *bandit, size_t arm, const double *rewards, size_t count)
{
    for (size_t i = 0; i < count; i++)
        wg__thompson_observe(bandit, arm, rewards[i]);
}

static void check_posterior(const struct wg_thompson *bandit, size_t arm, double mean, double sd)
{
    double got_mean = 0.0, got_sd = 0.0;
    assert_true(wg__thompson_posterior(bandit, arm, &got_mean, &got_sd));
    check_close_abs(got_mean, mean, 1e-14, 0.0);
    check_close_abs(got_sd, sd, 1e-12, 0.0);
}

/* -1, -2, -6: mean -3, population variance (4 + 1 + 9) / 3, of the mean a third of that: 14 / 9. */
static void posterior_is_the_mean_and_population_variance_over_n(void **state)
{
    (void)state;
    struct wg_thompson bandit = make_bandit(2, 0);
    observe_all(&bandit, 1, (const double[]){-1.0, -2.0, -6.0}, 3);
    check_posterior(&bandit, 1, -3.0, sqrt(14.0 / 9.0));
    double mean = 0.0, sd = 0.0;
    assert_false(wg__thompson_posterior(&bandit, 0, &mean, &sd));
    wg__thompson_fini(&bandit);
}

/* 1e9 + {1, 2, 3}: variance 2/3; the textbook E[x^2] - E[x]^2 would give noise of order 100 here.
 */
static void posterior_keeps_its_digits_far_from_zero(void **state)
{
    (void)state;
    struct wg_thompson bandit = make_bandit(1, 0);
    observe_all(&bandit, 0, (const double[]){1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0}, 3);
    check_posterior(&bandit, 0, 1e9 + 2.0, sqrt(2.0 / 9.0));
    wg__thompson_fini(&bandit);
}

/* 49 x 0.1 summed and divided by 49 is not 0.1 in binary; the deviations must be 0 all the same. */
static void equal_rewards_have_exactly_no_variance(void **state)
{
    (void)state;
    for (size_t window = 0; window <= 10; window += 10) {
        struct wg_thompson bandit = make_bandit(1, window);
        for (unsigned i = 0; i < 49; i++)
            wg__thompson_observe(&bandit, 0, -0.1);
        double mean = 0.0, sd = 1.0;
        assert_true(wg__thompson_posterior(&bandit, 0, &mean, &sd));
        assert_true(mean == -0.1 && sd == 0.0);
        wg__thompson_fini(&bandit);
    }
}

/* Of 9, 1, 3, 4, 5 with a window of 3 only 3, 4, 5 count: mean 4, variance 2/3. */
static void window_counts_only_the_last_rewards_of_each_arm(void **state)
{
    (void)state;
    struct wg_thompson bandit = make_bandit(2, 3);
    observe_all(&bandit, 0, (const double[]){9.0, 1.0}, 2);
    check_posterior(&bandit, 0, 5.0, sqrt(16.0 / 2.0));               /* not full yet */
    observe_all(&bandit, 1, (const double[]){7.0, 7.0, 7.0, 7.0}, 4); /* pushes out none of arm 0 */
    observe_all(&bandit, 0, (const double[]){3.0, 4.0, 5.0}, 3);
    check_posterior(&bandit, 0, 4.0, sqrt(2.0 / 9.0));
    check_posterior(&bandit, 1, 7.0, 0.0);
    wg__thompson_fini(&bandit);
}

static void explores_arms_with_fewer_than_two_rewards_in_random_order(void **state)
{
    (void)state;
    struct wg_thompson bandit = make_bandit(4, 0);
    observe_all(&bandit, 0, (const double[]){100.0, 100.0}, 2);
    observe_all(&bandit, 1, (const double[]){100.0}, 1);
    const bool is_open[WG_ARMS_MAX] = {true, true, true, false};
    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    unsigned picks[4] = {0};
    for (unsigned i = 0; i < 10000; i++)
        picks[wg__thompson_pick(&bandit, is_open, &rng)]++;
    assert_int_equal(picks[0], 0);
    assert_int_equal(picks[3], 0);
    check_close_abs(picks[1], 5000.0, 0.0, 250.0); /* 5 standard deviations of 50 */
    wg__thompson_fini(&bandit);
}

static void window_of_one_needs_one_reward(void **state)
{
    (void)state;
    struct wg_thompson bandit = make_bandit(2, 1);
    observe_all(&bandit, 0, (const double[]){1.0, -5.0}, 2);
    observe_all(&bandit, 1, (const double[]){-2.0}, 1);
    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(wg__thompson_pick(&bandit, all_open, &rng), 1);
    wg__thompson_fini(&bandit);
}

/* Arm 0: mean 0, sd 1 (two rewards at +-sqrt 2); arm 1: mean 1, sd 2 (1 +- 2 sqrt 2). A draw of arm
 * 1 beats one of arm 0 with probability Phi(1 / sqrt 5) = 0.672640. */
static void picks_as_often_as_the_posteriors_say(void **state)
{
    (void)state;
    struct wg_thompson bandit = make_bandit(2, 0);
    observe_all(&bandit, 0, (const double[]){-sqrt(2.0), sqrt(2.0)}, 2);
    observe_all(&bandit, 1, (const double[]){1.0 - sqrt(8.0), 1.0 + sqrt(8.0)}, 2);
    check_posterior(&bandit, 1, 1.0, 2.0);
    struct wg_rng rng;
    wg__rng_init(&rng, 11);
    const unsigned draws = 40000;
    unsigned picks = 0;
    for (unsigned i = 0; i < draws; i++)
        picks += wg__thompson_pick(&bandit, all_open, &rng) == 1;
    const double expected = 0.5 * erfc(-1.0 / sqrt(5.0) / sqrt(2.0));
    const double sd = sqrt(expected * (1.0 - expected) / draws);
    check_close_abs((double)picks / draws, expected, 0.0, 5.0 * sd);
    wg__thompson_fini(&bandit);
}

static void compares_arms_without_variance_by_their_exact_means(void **state)
{
    (void)state;
    struct wg_thompson bandit = make_bandit(4, 0);
    observe_all(&bandit, 0, (const double[]){-3.0, -3.0}, 2);
    observe_all(&bandit, 1, (const double[]){-2.0, -2.0}, 2);
    observe_all(&bandit, 2, (const double[]){-2.0, -2.0}, 2);
    observe_all(&bandit, 3, (const double[]){-1.0, -1.0}, 2);
    const bool is_open[WG_ARMS_MAX] = {true, true, true, false};
    struct wg_rng rng;
    wg__rng_init(&rng, 3);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(wg__thompson_pick(&bandit, is_open, &rng), 1); /* the tie: smaller arm */
    assert_int_equal(wg__thompson_best(&bandit, is_open), 1);
    assert_int_equal(wg__thompson_best(&bandit, all_open), 3);
    wg__thompson_fini(&bandit);
}

static void best_of_unknown_arms_is_the_first_open_one(void **state)
{
    (void)state;
    struct wg_thompson bandit = make_bandit(3, 0);
    const bool is_open[WG_ARMS_MAX] = {false, true, true};
    assert_int_equal(wg__thompson_best(&bandit, is_open), 1);
    wg__thompson_observe(&bandit, 2, -1e6);
    assert_int_equal(wg__thompson_best(&bandit, is_open), 2); /* known beats unknown */
    wg__thompson_fini(&bandit);
}

static void rejects_a_window_above_the_largest(void **state)
{
    (void)state;
    struct wg_thompson bandit;
    struct wg_error err = {0};
    assert_int_equal(wg__thompson_init(&bandit, 2, WG_THOMPSON_WINDOW_MAX + 1, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "4097"));
    assert_int_equal(wg__thompson_init(&bandit, 2, WG_THOMPSON_WINDOW_MAX, &err), WG_OK);
    wg__thompson_fini(&bandit);
}

static void reports_that_memory_for_windows_ran_out(void **state)
{
    (void)state;
    struct wg_thompson bandit;
    wg__alloc_fail_from(1);
    const enum wg_code code = wg__thompson_init(&bandit, 2, 10, NULL);
    wg__alloc_fail_from(0);
    assert_int_equal(code, WG_ENOMEM);
    wg__thompson_fini(&bandit); /* of a bandit that could not be made */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posterior_is_the_mean_and_population_variance_over_n),
        cmocka_unit_test(posterior_keeps_its_digits_far_from_zero),
        cmocka_unit_test(equal_rewards_have_exactly_no_variance),
        cmocka_unit_test(window_counts_only_the_last_rewards_of_each_arm),
        cmocka_unit_test(explores_arms_with_fewer_than_two_rewards_in_random_order),
        cmocka_unit_test(window_of_one_needs_one_reward),
        cmocka_unit_test(picks_as_often_as_the_posteriors_say),
        cmocka_unit_test(compares_arms_without_variance_by_their_exact_means),
        cmocka_unit_test(best_of_unknown_arms_is_the_first_open_one),
        cmocka_unit_test(rejects_a_window_above_the_largest),
        cmocka_unit_test(reports_that_memory_for_windows_ran_out),
    };
    return run_tests(tests);
}
