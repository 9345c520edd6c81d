/* SPDX-License-Identifier: MIT
 *
 * The Gaussian process against 40-digit arithmetic, by mpmath in Python:
 *
 *     def k(a, b):
 *         r = sqrt(sum(((p - q) / l)**2 for p, q, l in zip(a, b, [mpf(1)/2, 2])))
 *         return (mpf(6)/5)**2 * (1 + sqrt(5)*r + 5*r*r/3) * exp(-sqrt(5)*r) + mpf(1)/4
 *     K[i,j] = k(X[i], X[j]) + (mpf(1)/1000 + extra[i] if i == j else 0)
 *     likelihood: -(y.T * K**-1 * y)/2 - log(det(K))/2 - 2*log(2*pi)
 *     mean: k.T * K**-1 * y      sd: sqrt(k(x,x) - k.T * K**-1 * k)
 */
#include "support/check.h"

#include "base/alloc.h"
#include "base/rng.h"
#include "math/gaussian_process.h"

static const double points[] = {0, 0, 0.5, 1, 1, 0.25, 0.75, 0.75};
static const double values[] = {1, -0.5, 0.25, 2};
static const double extra[] = {0, 0.01, 0, 0.04};
static const struct wg_gp_kernel kernel = {1.2, {0.5, 2}, 0.25};

static void agrees_with_forty_digits(void **state)
{
    static const double at[] = {0, 0, 0.4, 0.9, 5, -3};
    static const double means[] = {0.998031247106905009, -0.839381974572792434,
                                   0.0397289717063599046};
    static const double sds[] = {0.0316090821712628403, 0.237959419734135619, 1.27678314644204669};
    struct wg_gp gp;
    double mean[3], sd[3];

    (void)state;
    wg__gp_init(&gp, 2);
    assert_int_equal(wg__gp_set(&gp, points, values, extra, 4, NULL), WG_OK);
    check_close(wg__gp_fit(&gp, &kernel, 0.001), -16.1127813170021207, 1e-13);
    wg__gp_predict(&gp, at, 3, mean, sd);
    for (size_t i = 0; i < 3; i++) {
        check_close(mean[i], means[i], 1e-12);
        check_close(sd[i], sds[i], 1e-11);
    }
    wg__gp_fini(&gp);
}

static void without_observations_it_is_the_prior(void **state)
{
    struct wg_gp gp;
    double mean = 7, sd = 7;

    (void)state;
    wg__gp_init(&gp, 2);
    assert_int_equal(wg__gp_set(&gp, NULL, NULL, NULL, 0, NULL), WG_OK);
    check_close_abs(wg__gp_fit(&gp, &kernel, 0.001), 0, 0, 0);
    wg__gp_predict(&gp, points, 1, &mean, &sd);
    check_close_abs(mean, 0, 0, 0);
    check_close(sd, sqrt(1.2 * 1.2 + 0.25), 1e-15);
    wg__gp_fini(&gp);
    wg__gp_fini(&gp);
}

/* More points than a block holds, observations that come in several goes: the same as each alone.
 */
static void predicts_many_points_as_it_predicts_each(void **state)
{
    enum { COUNT = 2 * WG_GP_BLOCK + 5, SEEN = 40 };
    double x[COUNT * 3], y[SEEN], mean[COUNT], sd[COUNT];
    const struct wg_gp_kernel wide = {0.7, {0.3, 1, 3}, 0};
    struct wg_rng rng;
    struct wg_gp gp;

    (void)state;
    wg__rng_init(&rng, 2);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = wg__rng_uniform(&rng);
    for (size_t i = 0; i < SEEN; i++)
        y[i] = wg__rng_uniform(&rng);
    wg__gp_init(&gp, 3);
    for (size_t seen = 1; seen <= SEEN; seen += 13) {
        assert_int_equal(wg__gp_set(&gp, x, y, NULL, seen, NULL), WG_OK);
        assert_true(isfinite(wg__gp_fit(&gp, &wide, 1e-6)));
        wg__gp_predict(&gp, x, COUNT, mean, sd);
        for (size_t i = 0; i < COUNT; i++) {
            double alone, alone_sd;

            wg__gp_predict(&gp, x + 3 * i, 1, &alone, &alone_sd);
            check_close(mean[i], alone, 1e-9);
            check_close(sd[i], alone_sd, 1e-6);
            assert_true(i >= seen || fabs(mean[i] - y[i]) < 1e-3); /* it goes through the data */
        }
    }
    wg__gp_fini(&gp);
}

static void a_covariance_that_is_singular_has_no_likelihood(void **state)
{
    static const double same[] = {1, 1, 1};
    struct wg_gp gp;
    const struct wg_gp_kernel one = {1, {1}, 0};

    (void)state;
    wg__gp_init(&gp, 1);
    assert_int_equal(wg__gp_set(&gp, same, values, NULL, 3, NULL), WG_OK);
    assert_true(wg__gp_fit(&gp, &one, 0) == -(double)INFINITY);
    assert_false(gp.is_fitted);
    assert_true(isfinite(wg__gp_fit(&gp, &one, 0.1)));
    assert_true(gp.is_fitted);
    wg__gp_fini(&gp);
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    size_t failures = 0;

    (void)state;
    for (size_t nth = 1;; nth++) {
        struct wg_gp gp;

        wg__gp_init(&gp, 2);
        wg__alloc_fail_from(nth);
        const enum wg_code code = wg__gp_set(&gp, points, values, extra, 4, NULL);
        wg__alloc_fail_from(0);
        if (code == WG_ENOMEM) { /* and it can go on when memory is back */
            assert_int_equal(wg__gp_set(&gp, points, values, extra, 4, NULL), WG_OK);
            check_close(wg__gp_fit(&gp, &kernel, 0.001), -16.1127813170021207, 1e-13);
            failures++;
        }
        wg__gp_fini(&gp);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
    }
    assert_int_equal(failures, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_forty_digits),
        cmocka_unit_test(without_observations_it_is_the_prior),
        cmocka_unit_test(predicts_many_points_as_it_predicts_each),
        cmocka_unit_test(a_covariance_that_is_singular_has_no_likelihood),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return run_tests(tests);
}
