/* SPDX-License-Identifier: MIT
 *
 * The normal distribution against mpmath 1.4.1 at 40 digits, for the doubles nearest to the texts:
 *
 *     cdf, pdf   ncdf(mpf(z)), npdf(mpf(z))
 *     quantile   findroot(lambda z: log(ncdf(z)) - log(mpf(p)), scipy.stats.norm.ppf(p)), mirrored
 *                for p > 1/2
 */
#include "math/normal.h"

#include "support/check.h"

static void density_and_distribution_agree_with_mpmath(void **state)
{
    (void)state;
    static const struct {
        double z, cdf, pdf;
    } cases[] = {
        {0.0, 0.5, 0.39894228040143267794},
        {1.0, 0.84134474606854294859, 0.2419707245191433498},
        {-1.0, 0.15865525393145705141, 0.2419707245191433498},
        {2.5, 0.99379033467422386483, 0.017528300493568537362},
        {-5.0, 2.8665157187919391167e-7, 1.4867195147342977079e-6},
        {-10.0, 7.619853024160526066e-24, 7.6945986267064193463e-23},
        {-37.0, 5.7255712225245768227e-300, 2.1200065515246056269e-298},
        {8.0, 0.9999999999999993779, 5.052271083536892288e-15},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_close(wg__normal_cdf(cases[i].z), cases[i].cdf, 2e-13);
        check_close(wg__normal_pdf(cases[i].z), cases[i].pdf, 2e-13);
    }
    assert_true(wg__normal_cdf(-(double)INFINITY) == 0.0);
    assert_true(wg__normal_cdf((double)INFINITY) == 1.0);
    assert_true(wg__normal_pdf((double)INFINITY) == 0.0);
    assert_true(isnan(wg__normal_cdf((double)NAN)));
}

static void the_quantile_agrees_with_mpmath(void **state)
{
    (void)state;
    static const struct {
        double probability, z;
    } cases[] = {
        {0.500001, 2.5066282747057051991e-6}, {0.6, 0.25334710313579974132},
        {0.9, 1.2815515655446005935},         {0.925, 1.4395314709384562291},
        {0.926, 1.446632067158978807},        {0.975, 1.9599639845400538556},
        {0.99, 2.3263478740408407676},        {0.999, 3.0902323061678132778},
        {0.999999, 4.7534243088170877657},    {1e-3, -3.0902323061678135354},
        {0.074, -1.4466320671589785099},      {1e-6, -4.7534243088228989573},
        {1e-10, -6.3613409024040561991},      {1e-12, -7.0344838253011319326},
        {1e-20, -9.2623400897984075796},      {1e-100, -21.273453560965324294},
        {1e-300, -37.047096299361199237},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_close(wg__normal_quantile(cases[i].probability), cases[i].z, 1e-15);
    assert_true(wg__normal_quantile(0.5) == 0.0);
}

static void the_quantile_has_infinite_ends_and_no_outside(void **state)
{
    (void)state;
    assert_true(wg__normal_quantile(0.0) == -(double)INFINITY);
    assert_true(wg__normal_quantile(1.0) == (double)INFINITY);
    assert_true(isnan(wg__normal_quantile(-1e-300)));
    assert_true(isnan(wg__normal_quantile(1.0 + 0x1p-52)));
    assert_true(isnan(wg__normal_quantile((double)NAN)));
    assert_true(isfinite(wg__normal_quantile(4.9406564584124654e-324)));
    assert_true(isfinite(wg__normal_quantile(1.0 - 0x1p-53)));
}

static void the_quantile_rises_across_the_seams(void **state)
{
    (void)state;
    /* Around 0.075 (middle to tail) and exp(-25) (tail to far tail), and mirrored. */
    const double seams[] = {0.075, 1.3887943864964021e-11};
    for (size_t i = 0; i < 2; i++) {
        double last = -(double)INFINITY;
        double last_mirrored = (double)INFINITY;
        for (int k = -500; k <= 500; k++) {
            const double p = seams[i] * (1.0 + 1e-9 * k);
            const double z = wg__normal_quantile(p);
            const double mirrored = wg__normal_quantile(1.0 - p);
            assert_true(z > last && mirrored <= last_mirrored);
            last = z;
            last_mirrored = mirrored;
        }
    }
}

static void the_distribution_undoes_the_quantile(void **state)
{
    (void)state;
    for (int i = 1; i < 1000; i++)
        check_close(wg__normal_cdf(wg__normal_quantile(i / 1000.0)), i / 1000.0, 1e-14);
}

static void draws_are_standard_normal(void **state)
{
    (void)state;
    enum { BINS = 100 };
    const int draws = 200000;
    struct wg_rng rng;
    wg__rng_init(&rng, 11);
    unsigned counts[BINS] = {0};
    double sum = 0.0;
    double squares = 0.0;
    double fourths = 0.0;
    for (int i = 0; i < draws; i++) {
        const double z = wg__rng_normal(&rng);
        sum += z;
        squares += z * z;
        fourths += z * z * z * z;
        counts[(int)(wg__normal_cdf(z) * (double)BINS)]++;
    }
    /* Four standard errors of the moments 0, 1, 3 of a normal number: sqrt(1, 2, 96 / draws). */
    check_close_abs(sum / draws, 0.0, 0.0, 4.0 * 0.002236);
    check_close_abs(squares / draws, 1.0, 0.0, 4.0 * 0.003162);
    check_close_abs(fourths / draws, 3.0, 0.0, 4.0 * 0.021909);
    double x = 0.0;
    for (int i = 0; i < BINS; i++) {
        const double excess = counts[i] - draws / (double)BINS;
        x += excess * excess * (double)BINS / draws;
    }
    assert_true(x > 59.12 && x < 151.94); /* chi2.ppf([0.0005, 0.9995], 99) */
}

static void one_normal_takes_one_uniform(void **state)
{
    (void)state;
    struct wg_rng normals;
    struct wg_rng uniforms;
    wg__rng_init(&normals, 12);
    wg__rng_init(&uniforms, 12);
    for (int i = 0; i < 1000; i++)
        assert_true(wg__rng_normal(&normals) == wg__normal_quantile(wg__rng_uniform(&uniforms)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(density_and_distribution_agree_with_mpmath),
        cmocka_unit_test(the_quantile_agrees_with_mpmath),
        cmocka_unit_test(the_quantile_has_infinite_ends_and_no_outside),
        cmocka_unit_test(the_quantile_rises_across_the_seams),
        cmocka_unit_test(the_distribution_undoes_the_quantile),
        cmocka_unit_test(draws_are_standard_normal),
        cmocka_unit_test(one_normal_takes_one_uniform),
    };
    return run_tests(tests);
}
