/* SPDX-License-Identifier: MIT
 *
 * Gamma factors against the moments and shares of their distribution.
 */
#include "math/gamma.h"

#include "support/check.h"

/* Mean 1, variance cv^2, third central moment 2 cv^4; within five standard errors. The k-th central
 * moments of a gamma variable of mean 1 and shape 1/cv^2: 1, v, 2 v^2, 3 v^2 + 6 v^3 (v = cv^2). */
static void factors_have_the_moments_of_a_gamma_variable(void **state)
{
    (void)state;
    enum { COUNT = 400000 };
    static const double variations[] = {0.01, 0.03, 0.3, 0.9, 1.0, 1.3, 2.0};
    for (size_t i = 0; i < sizeof variations / sizeof *variations; i++) {
        const double v = variations[i] * variations[i];
        struct wg_rng rng;
        wg__rng_init(&rng, 100 + i);
        double sum = 0.0;
        double squares = 0.0;
        for (unsigned n = 0; n < COUNT; n++) {
            const double factor = wg__rng_gamma_factor(&rng, variations[i]);
            assert_true(factor >= 0.0 && isfinite(factor));
            sum += factor - 1.0;
            squares += (factor - 1.0) * (factor - 1.0);
        }
        const double fourth = 3.0 * v * v + 6.0 * v * v * v;
        check_close_abs(sum / (double)COUNT, 0.0, 0.0, 5.0 * sqrt(v / (double)COUNT));
        check_close_abs(squares / (double)COUNT, v, 0.0,
                        5.0 * sqrt((fourth - v * v) / (double)COUNT));
    }
}

/* At a shape of 4 (Erlang) the share beyond x is exp(-4x) (1 + 4x + (4x)^2/2 + (4x)^3/6). */
static void the_tail_is_that_of_erlang(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    unsigned beyond[4] = {0};
    for (unsigned n = 0; n < COUNT; n++) {
        const double factor = wg__rng_gamma_factor(&rng, 0.5);
        for (unsigned k = 0; k < 4; k++)
            beyond[k] += factor > 0.5 * (k + 1);
    }
    for (unsigned k = 0; k < 4; k++) {
        const double x = 2.0 * (k + 1);
        const double share = exp(-x) * (1.0 + x + x * x / 2.0 + x * x * x / 6.0);
        check_close_abs((double)beyond[k] / (double)COUNT, share, 0.0,
                        5.0 * sqrt(share * (1.0 - share) / (double)COUNT));
    }
}

/* The smaller ones once drew for ever: their shape is infinite. */
static void a_variation_that_is_hardly_one_is_drawn_too(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static const double variations[] = {1e-5, 1e-7, 1e-12, 1e-155, 1e-320};
    for (size_t i = 0; i < sizeof variations / sizeof *variations; i++) {
        struct wg_rng rng;
        wg__rng_init(&rng, 10 + i);
        double squares = 0.0;
        for (unsigned n = 0; n < COUNT; n++) {
            const double off = wg__rng_gamma_factor(&rng, variations[i]) - 1.0;
            squares += off * off;
        }
        const double v = variations[i] * variations[i];
        check_close_abs(squares / (double)COUNT, v, 0.0,
                        5.0 * v * sqrt(2.0 / (double)COUNT) + 1e-28);
    }
}

static void no_variation_draws_nothing(void **state)
{
    (void)state;
    struct wg_rng rng;
    struct wg_rng untouched;
    wg__rng_init(&rng, 3);
    wg__rng_init(&untouched, 3);
    check_close(wg__rng_gamma_factor(&rng, 0.0), 1.0, 0.0);
    assert_int_equal(wg__rng_u32(&rng), wg__rng_u32(&untouched));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_have_the_moments_of_a_gamma_variable),
        cmocka_unit_test(the_tail_is_that_of_erlang),
        cmocka_unit_test(a_variation_that_is_hardly_one_is_drawn_too),
        cmocka_unit_test(no_variation_draws_nothing),
    };
    return run_tests(tests);
}
