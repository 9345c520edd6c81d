/* SPDX-License-Identifier: MIT
 *
 * Statistics against numpy 2.4.6 and scipy 1.17.1:
 *
 *     x = numpy.array([3.1, -2.0, 7.25, 0.5, 11.0, 4.0, 4.0, -9.5])
 *     x.mean(), x.var(ddof=1), x.var(), x.std(ddof=1), numpy.quantile(x, share)
 *     scipy.stats.t.ppf(0.975, df), scipy.stats.gmean([1, 2, 4, 8, 16.5])
 *     scipy.stats.binomtest(hits, trials).proportion_ci(method='wilson')
 */
#include "math/statistics.h"

#include <stdlib.h>
#include <string.h>

#include "support/check.h"

static const double sample[] = {3.1, -2.0, 7.25, 0.5, 11.0, 4.0, 4.0, -9.5};
enum { SAMPLE_COUNT = 8 };

static void moments_agree_with_numpy(void **state)
{
    (void)state;
    check_close(wg__sum(sample, SAMPLE_COUNT), 18.35, 1e-15);
    check_close(wg__mean(sample, SAMPLE_COUNT), 2.29375, 1e-15);
    check_close(wg__variance_sample(sample, SAMPLE_COUNT), 38.22602678571428, 1e-15);
    check_close(wg__variance_population(sample, SAMPLE_COUNT), 33.4477734375, 1e-15);
    check_close(wg__sd_sample(sample, SAMPLE_COUNT), 6.18272001514821, 1e-15);
    assert_true(wg__min(sample, SAMPLE_COUNT) == -9.5);
    assert_true(wg__max(sample, SAMPLE_COUNT) == 11.0);
}

static void one_value_has_no_spread(void **state)
{
    (void)state;
    const double one[] = {7.5};
    assert_true(wg__mean(one, 1) == 7.5);
    assert_true(wg__variance_sample(one, 1) == 0.0);
    assert_true(wg__variance_population(one, 1) == 0.0);
    assert_true(wg__sd_sample(one, 1) == 0.0);
    assert_true(wg__min(one, 1) == 7.5 && wg__max(one, 1) == 7.5);
    check_close(wg__geomean(one, 1), 7.5, 1e-15);
    double copy[] = {7.5};
    assert_true(wg__quantile_inplace(copy, 1, 0.3) == 7.5);
    assert_true(isnan(wg__mean_halfwidth95(one, 1)));
    assert_true(wg__sum(NULL, 0) == 0.0);
}

static void sums_lose_no_digits(void **state)
{
    (void)state;
    const double cancelling[] = {1.0, 1e100, 1.0, -1e100}; /* Neumaier's own example */
    assert_true(wg__sum(cancelling, 4) == 2.0);
    enum { MANY = 1000000 };
    double *tenths = malloc(MANY * sizeof *tenths);
    assert_non_null(tenths);
    for (int i = 0; i < MANY; i++)
        tenths[i] = 0.1;
    assert_true(wg__sum(tenths, MANY) == 100000.0);
    assert_true(wg__mean(tenths, MANY) == 0.1);
    free(tenths);
}

static void a_large_mean_leaves_the_variance(void **state)
{
    (void)state;
    const double shifted[] = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
    check_close(wg__variance_sample(shifted, 4), 30.0, 1e-15);
}

static void infinite_and_unknown_values_show(void **state)
{
    (void)state;
    const double infinite[] = {1.0, (double)INFINITY, 2.0};
    assert_true(wg__sum(infinite, 3) == (double)INFINITY);
    const double unknown[] = {1.0, (double)NAN, 2.0};
    assert_true(isnan(wg__sum(unknown, 3)));
    assert_true(isnan(wg__min(unknown, 3)));
    assert_true(isnan(wg__max(unknown, 3)));
    const double first[] = {(double)NAN, 2.0};
    assert_true(isnan(wg__min(first, 2)) && isnan(wg__max(first, 2)));
}

static void the_geometric_mean_agrees_with_scipy(void **state)
{
    (void)state;
    check_close(wg__geomean((const double[]){1, 2, 4, 8, 16.5}, 5), 4.024693234171116, 1e-15);
    check_close(wg__geomean((const double[]){1e300, 1e300, 1e-300}, 3), 1e100, 1e-13);
}

static void quantiles_agree_with_numpy(void **state)
{
    (void)state;
    static const double cases[][2] = {{0.0, -9.5}, {0.1, -4.25}, {0.25, -0.125}, {0.5, 3.55},
                                      {0.61, 4.0}, {0.9, 8.375}, {1.0, 11.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double values[SAMPLE_COUNT];
        memcpy(values, sample, sizeof values);
        check_close(wg__quantile_inplace(values, SAMPLE_COUNT, cases[i][0]), cases[i][1], 1e-15);
        for (int k = 1; k < SAMPLE_COUNT; k++)
            assert_true(values[k - 1] <= values[k]);
    }
    double infinite[] = {1.0, (double)INFINITY, (double)INFINITY};
    assert_true(wg__quantile_inplace(infinite, 3, 0.75) == (double)INFINITY);
}

static void student_quantiles_agree_with_scipy(void **state)
{
    (void)state;
    static const struct {
        size_t degrees_of_freedom;
        double quantile;
    } cases[] = {{1, 12.706204736175},   {2, 4.302652729749},      {3, 3.182446305284},
                 {5, 2.570581835636},    {10, 2.228138851986},     {29, 2.045229642133},
                 {30, 2.042272456301},   {31, 2.039513446396},     {35, 2.030107928250},
                 {50, 2.008559112101},   {99, 1.984216951586},     {100, 1.983971518524},
                 {1000, 1.962339080826}, {1000000, 1.959966356814}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_close_abs(wg__student_quantile975(cases[i].degrees_of_freedom), cases[i].quantile,
                        0.0, 3e-8);
    double last = (double)INFINITY;
    for (size_t n = 1; n < 2000; n++) {
        const double quantile = wg__student_quantile975(n);
        assert_true(quantile < last && quantile > 1.959963984540054);
        last = quantile;
    }
}

static void the_confidence_interval_agrees_with_scipy(void **state)
{
    (void)state;
    /* t.ppf(0.975, 7) * x.std(ddof=1) / sqrt(8) */
    check_close(wg__mean_halfwidth95(sample, SAMPLE_COUNT), 5.168883285242668, 1e-14);
}

static void wilson_intervals_agree_with_scipy(void **state)
{
    (void)state;
    static const struct {
        uint64_t hits, trials;
        double low, high;
    } cases[] = {
        {13, 240, 0.0319251877962966, 0.09045539081826},
        {5, 240, 0.00893079611463017, 0.047833377162697},
        {4, 240, 0.00649994072183164, 0.0420621818883419},
        {1, 240, 0.000735898025082704, 0.0232200725836298},
        {0, 10, 0, 0.277532799862889},
        {10, 10, 0.722467200137111, 1},
        {0, 1, 0, 0.793450685622763},
        {1, 2, 0.0945312057342307, 0.905468794265769},
        {500000, 1000000, 0.499020019890005, 0.500979980109995},
        {3, 100000, 1.02027585445173e-05, 8.82080492517673e-05},
    };
    double low = 7.0, high = 7.0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        wg__wilson95(cases[i].hits, cases[i].trials, &low, &high);
        check_close(low, cases[i].low, 1e-12);
        check_close(high, cases[i].high, 1e-12);
    }
    wg__wilson95(0, 0, &low, &high); /* nothing is known */
    assert_true(low == 0.0 && high == 1.0);
    wg__wilson95(0, UINT64_MAX, &low, &high);
    assert_true(low == 0.0 && high > 0.0 && high < 1e-18);
    wg__wilson95(UINT64_MAX, UINT64_MAX, &low, &high);
    assert_true(low > 0.999 && high == 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_agree_with_numpy),
        cmocka_unit_test(one_value_has_no_spread),
        cmocka_unit_test(sums_lose_no_digits),
        cmocka_unit_test(a_large_mean_leaves_the_variance),
        cmocka_unit_test(infinite_and_unknown_values_show),
        cmocka_unit_test(the_geometric_mean_agrees_with_scipy),
        cmocka_unit_test(quantiles_agree_with_numpy),
        cmocka_unit_test(student_quantiles_agree_with_scipy),
        cmocka_unit_test(wilson_intervals_agree_with_scipy),
        cmocka_unit_test(the_confidence_interval_agrees_with_scipy),
    };
    return run_tests(tests);
}
