/* SPDX-License-Identifier: MIT
 *
 * The conformal margin against sorting the window anew, and its promise.
 */
#include "schedule/conformal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "math/normal.h"
#include "math/statistics.h"
#include "support/check.h"

enum { TOLD = 700 };

/* The rank in whole numbers: `miss` is in thousandths. */
static double margin_by_sorting(const double *values, size_t count, size_t miss, double first)
{
    double sorted[TOLD];
    memcpy(sorted, values, count * sizeof *sorted);
    wg__sort(sorted, count);
    const size_t rank = ((count + 1) * (1000 - miss) + 999) / 1000;
    const double margin = rank > count ? fmax(first, sorted[count - 1]) : sorted[rank - 1];
    return fmax(margin, 0.0);
}

static void the_margin_is_the_quantile_of_the_window(void **state)
{
    (void)state;
    static const size_t windows[] = {1, 2, 49, 50, 200};
    static const size_t misses[] = {1, 20, 50, 333, 500};
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    for (size_t i = 0; i < 25; i++) {
        const size_t window = windows[i % 5], miss = misses[i / 5];
        struct wg_conformal conformal;
        double told[TOLD];
        assert_true(wg__conformal_init(&conformal, window, (double)miss / 1000.0));
        assert_true(wg__conformal_margin(&conformal, 0.1) == 0.1);
        for (size_t n = 0; n < TOLD; n++) {
            /* Many are alike, and some are below zero. */
            told[n] = 0.01 * wg__rng_below(&rng, 30) - 0.05;
            wg__conformal_tell(&conformal, told[n]);
            const size_t count = n + 1 < window ? n + 1 : window;
            const double expected = margin_by_sorting(told + n + 1 - count, count, miss, 0.1);
            assert_true(wg__conformal_margin(&conformal, 0.1) == expected);
        }
        wg__conformal_fini(&conformal);
    }
}

static void before_there_are_enough_the_larger_of_first_and_largest_holds(void **state)
{
    (void)state;
    struct wg_conformal conformal;
    assert_true(wg__conformal_init(&conformal, 200, 0.02));
    for (int i = 0; i < 48; i++) {
        wg__conformal_tell(&conformal, 0.001 * i);
        assert_true(wg__conformal_margin(&conformal, 0.1) == 0.1);
    }
    wg__conformal_tell(&conformal, 0.3); /* the 49th: ceil(50 * 0.98) = 49 */
    assert_true(wg__conformal_margin(&conformal, 0.1) == 0.3);
    wg__conformal_tell(&conformal, -0.5);
    assert_true(wg__conformal_margin(&conformal, 0.1) == 0.3);
    for (int i = 0; i < 50; i++)
        wg__conformal_tell(&conformal, 0.04);
    assert_true(wg__conformal_margin(&conformal, 0.1) == 0.047);
    wg__conformal_fini(&conformal);
    assert_true(wg__conformal_init(&conformal, 200, 0.02));
    wg__conformal_tell(&conformal, 0.4);
    assert_true(wg__conformal_margin(&conformal, 0.1) == 0.4);
    wg__conformal_fini(&conformal);
}

static void residuals_below_zero_leave_no_margin(void **state)
{
    (void)state;
    struct wg_conformal conformal;
    assert_true(wg__conformal_init(&conformal, 10, 0.5));
    for (int i = 0; i < 20; i++)
        wg__conformal_tell(&conformal, -1.0 - i);
    assert_true(wg__conformal_margin(&conformal, 0.1) == 0.0);
    wg__conformal_fini(&conformal);
}

/* Twenty large ones, then small ones: 49 of those are enough for a margin of their own, and the
 * last of the large ones isn't waited for. */
static void older_ones_are_forgotten_when_all_newest_are_far_lower(void **state)
{
    (void)state;
    struct wg_conformal conformal;
    assert_true(wg__conformal_init(&conformal, 200, 0.02));
    for (int i = 0; i < 20; i++)
        wg__conformal_tell(&conformal, 0.4);
    for (int i = 0; i < 48; i++) {
        wg__conformal_tell(&conformal, 0.05);
        assert_true(wg__conformal_margin(&conformal, 0.1) == 0.4);
    }
    wg__conformal_tell(&conformal, 0.05);
    assert_int_equal(conformal.count, 49);
    assert_true(wg__conformal_margin(&conformal, 0.1) == 0.05);
    for (int i = 0; i < 200; i++) { /* around the ring, and full again */
        wg__conformal_tell(&conformal, 0.05 + 0.0001 * i);
        assert_int_equal(conformal.count, i < 151 ? 50 + i : 200);
    }
    assert_true(wg__conformal_margin(&conformal, 0.1) == 0.05 + 0.0001 * 196);
    wg__conformal_fini(&conformal);
}

/* Of phases that are five times as noisy only some are high, so they stay in mind. */
static void noise_that_comes_and_goes_is_not_forgotten(void **state)
{
    (void)state;
    enum { CALM = 60, CYCLES = 500 };
    struct wg_conformal conformal;
    struct wg_rng rng;
    wg__rng_init(&rng, 3);
    size_t misses = 0;
    assert_true(wg__conformal_init(&conformal, 200, 0.02));
    for (int i = 0; i < CYCLES * (CALM + 20); i++) {
        const double sd = i % (CALM + 20) < CALM ? 0.03 : 0.15;
        const double residual = sd * wg__rng_normal(&rng);
        misses += residual > wg__conformal_margin(&conformal, 0.1);
        wg__conformal_tell(&conformal, residual);
    }
    const double share = (double)misses / (double)(CYCLES * (CALM + 20));
    if (!(share < 0.021))
        fail_msg("exceeded by %g, promised 0.02", share);
    wg__conformal_fini(&conformal);
}

/* Exceeded by 1 - k / (n + 1) of the next ones, exactly, when they are independent. */
static void it_is_exceeded_as_often_as_it_says(void **state)
{
    (void)state;
    enum { RUNS = 20000, WINDOW = 99 };
    struct wg_rng rng;
    wg__rng_init(&rng, 2);
    size_t misses = 0;
    for (size_t run = 0; run < RUNS; run++) {
        struct wg_conformal conformal;
        assert_true(wg__conformal_init(&conformal, WINDOW, 0.05));
        for (size_t i = 0; i < WINDOW; i++)
            wg__conformal_tell(&conformal, exp(wg__rng_normal(&rng)));
        if (exp(wg__rng_normal(&rng)) > wg__conformal_margin(&conformal, 0.0))
            misses++;
        wg__conformal_fini(&conformal);
    }
    check_close_abs((double)misses / (double)RUNS, 0.05, 0.0,
                    4.0 * sqrt(0.05 * 0.95 / (double)RUNS));
}

static void reports_when_memory_has_run_out(void **state)
{
    (void)state;
    for (size_t nth = 1; nth <= 2; nth++) {
        struct wg_conformal conformal;
        wg__alloc_fail_from(nth);
        assert_false(wg__conformal_init(&conformal, 10, 0.1));
        wg__alloc_fail_from(0);
        wg__conformal_fini(&conformal);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_margin_is_the_quantile_of_the_window),
        cmocka_unit_test(before_there_are_enough_the_larger_of_first_and_largest_holds),
        cmocka_unit_test(residuals_below_zero_leave_no_margin),
        cmocka_unit_test(older_ones_are_forgotten_when_all_newest_are_far_lower),
        cmocka_unit_test(noise_that_comes_and_goes_is_not_forgotten),
        cmocka_unit_test(it_is_exceeded_as_often_as_it_says),
        cmocka_unit_test(reports_when_memory_has_run_out),
    };
    return run_tests(tests);
}
