/* SPDX-License-Identifier: MIT
 *
 * Quantiles of the histogram against those of the sorted numbers.
 */
#include "math/histogram.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "math/normal.h"
#include "math/statistics.h"
#include "support/check.h"

static const double shares[] = {0.0, 0.001, 0.01, 0.07, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0};

static struct wg_histogram open_histogram(void)
{
    struct wg_histogram histogram = {0};
    assert_true(wg__histogram_init(&histogram));
    return histogram;
}

static void quantiles_are_those_of_the_sorted_numbers(void **state)
{
    (void)state;
    static const size_t counts[] = {1, 2, 3, 99, 100, 101, 1000, 20000};
    static double values[20000];
    struct wg_rng rng;
    wg__rng_init(&rng, 3);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        struct wg_histogram histogram = open_histogram();
        for (size_t i = 0; i < counts[c]; i++) {
            values[i] = 0.1 * exp(2.0 * wg__rng_normal(&rng));
            if (i % 2 == 0)
                wg__histogram_add(&histogram, values[i]);
            else
                wg__histogram_add_atomic(&histogram, values[i]);
        }
        wg__sort(values, counts[c]);
        assert_int_equal(wg__histogram_count(&histogram), counts[c]);
        for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
            /* The rank in whole numbers: the shares are thousandths. */
            const size_t thousandths = (size_t)lround(1000.0 * shares[s]);
            const size_t rank = (thousandths * counts[c] + 999) / 1000;
            const double exact = values[rank < 1 ? 0 : rank - 1];
            check_close(wg__histogram_quantile(&histogram, shares[s]), exact, 0.0005);
        }
        wg__histogram_fini(&histogram);
    }
}

static void every_magnitude_is_within_half_a_thousandth(void **state)
{
    (void)state;
    struct wg_histogram histogram = open_histogram();
    struct wg_rng rng;
    wg__rng_init(&rng, 4);
    for (int exponent = -24; exponent < 24; exponent++) {
        for (int i = 0; i < 5; i++) {
            const double value = i == 0   ? ldexp(1.0, exponent)
                                 : i == 1 ? ldexp(2.0 - 0x1p-52, exponent)
                                          : ldexp(1.0 + wg__rng_uniform(&rng), exponent);
            wg__histogram_add(&histogram, value);
            check_close(wg__histogram_quantile(&histogram, 0.5), value, 0.0005);
            memset(histogram.counts, 0, WG_HISTOGRAM_BINS * sizeof *histogram.counts);
        }
    }
    wg__histogram_fini(&histogram);
}

static void what_lies_outside_is_counted_at_the_ends(void **state)
{
    (void)state;
    struct wg_histogram histogram = open_histogram();
    const double low[] = {0.0, -0.0, -1.0, 1e-300, 5e-324, 0x1p-25, (double)NAN, -(double)INFINITY};
    const double high[] = {0x1p24, 1e300, (double)INFINITY};
    assert_true(isnan(wg__histogram_quantile(&histogram, 0.5)));
    for (size_t i = 0; i < sizeof low / sizeof *low; i++)
        wg__histogram_add(&histogram, low[i]);
    for (size_t i = 0; i < sizeof high / sizeof *high; i++)
        wg__histogram_add(&histogram, high[i]);
    assert_int_equal(histogram.counts[0], sizeof low / sizeof *low);
    assert_int_equal(histogram.counts[WG_HISTOGRAM_BINS - 1], sizeof high / sizeof *high);
    check_close(wg__histogram_quantile(&histogram, 0.0), 0x1p-24, 0.0005);
    check_close(wg__histogram_quantile(&histogram, 1.0), 0x1p24, 0.0005);
    wg__histogram_fini(&histogram);
    assert_null(histogram.counts);
    wg__histogram_fini(&histogram);
}

static void reports_when_memory_has_run_out(void **state)
{
    (void)state;
    struct wg_histogram histogram = {0};
    wg__alloc_fail_from(1);
    assert_false(wg__histogram_init(&histogram));
    wg__alloc_fail_from(0);
    wg__histogram_fini(&histogram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_those_of_the_sorted_numbers),
        cmocka_unit_test(every_magnitude_is_within_half_a_thousandth),
        cmocka_unit_test(what_lies_outside_is_counted_at_the_ends),
        cmocka_unit_test(reports_when_memory_has_run_out),
    };
    return run_tests(tests);
}
