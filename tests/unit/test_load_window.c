/* SPDX-License-Identifier: MIT
 *
 * Percentiles of a window and their errors, against what theory and many repetitions say.
 */
#include "live/load_window.h"

#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "live/load_result.h"
#include "support/check.h"

static void fill(struct wg_load_window *window, const double *values, size_t count)
{
    struct wg_error err;
    for (size_t i = 0; i < count; i++)
        assert_int_equal(wg__load_window_add(window, values[i], &err), WG_OK);
}

static double exponential(struct wg_rng *rng)
{
    return -log(wg__rng_uniform(rng));
}

static void percentiles_are_exact_in_any_order(void **state)
{
    (void)state;
    struct wg_load_window window;
    wg__load_window_init(&window);
    assert_true(isnan(wg__load_window_percentile(&window, 0.5).value));
    assert_true(isnan(wg__load_window_mean(&window).value));
    const double values[] = {5, 1, 4, 2, 3};
    fill(&window, values, 5);
    /* numpy.percentile([1..5], [50, 90, 99]) */
    check_close(wg__load_window_percentile(&window, 0.5).value, 3, 1e-15);
    check_close(wg__load_window_percentile(&window, 0.9).value, 4.6, 1e-15);
    check_close(wg__load_window_percentile(&window, 0.99).value, 4.96, 1e-15);
    check_close(wg__load_window_mean(&window).value, 3, 1e-15);
    assert_true(isinf(wg__load_window_percentile(&window, 0.99).error));
    const double more[] = {6};
    fill(&window, more, 1); /* sorted anew */
    check_close(wg__load_window_percentile(&window, 0.5).value, 3.5, 1e-15);
    wg__load_window_clear(&window);
    assert_int_equal(window.count, 0);
    wg__load_window_fini(&window);
}

/* What the errors of 200 windows of `count` latencies are in truth, beside those that were told:
 * `memory` 0: independent; else each latency is like the one before with that share. */
static void compare_errors(double q, size_t count, double memory, double *truth, double *told)
{
    double sum = 0, squares = 0, errors = 0;
    enum { WINDOWS = 200 };
    struct wg_load_window window;
    wg__load_window_init(&window);
    for (uint64_t w = 0; w < WINDOWS; w++) {
        struct wg_rng rng;
        wg__rng_init(&rng, w);
        wg__load_window_clear(&window);
        double value = exponential(&rng);
        for (size_t i = 0; i < count; i++) {
            struct wg_error err;
            if (wg__rng_uniform(&rng) >= memory)
                value = exponential(&rng);
            assert_int_equal(wg__load_window_add(&window, value, &err), WG_OK);
        }
        const struct wg_load_estimate estimate = wg__load_window_percentile(&window, q);
        sum += estimate.value;
        squares += estimate.value * estimate.value;
        errors += estimate.error;
    }
    wg__load_window_fini(&window);
    const double mean = sum / (double)WINDOWS;
    *truth = sqrt(squares / (double)WINDOWS - mean * mean) / mean;
    *told = errors / (double)WINDOWS;
}

static void errors_are_what_repetitions_show(void **state)
{
    (void)state;
    double truth = 0, told = 0;
    compare_errors(0.9, 3000, 0, &truth, &told);
    /* The quantile of an exponential: sqrt(q / ((1 - q) n)) / -ln(1 - q). */
    check_close(truth, sqrt(0.9 / (0.1 * 3000)) / -log(0.1), 0.2);
    assert_in_range((unsigned)(told / truth * 100), 90, 150);
    compare_errors(0.5, 3000, 0.9, &truth, &told); /* queues: 19 times the variance */
    check_close(truth, sqrt(19 * 0.5 / (0.5 * 3000)) / log(2), 0.25);
    assert_in_range((unsigned)(told / truth * 100), 75, 130);
    compare_errors(0.99, 20000, 0.5, &truth, &told);
    assert_in_range((unsigned)(told / truth * 100), 80, 150);
}

static void equal_latencies_are_known_exactly(void **state)
{
    (void)state;
    struct wg_load_window window;
    wg__load_window_init(&window);
    for (size_t i = 0; i < 1000; i++)
        fill(&window, (const double[]){0.25}, 1);
    assert_true(wg__load_window_percentile(&window, 0.9).error == 0);
    check_close(wg__load_window_mean(&window).error + 1, 1, 1e-12);
    assert_true(wg__load_window_lower(&window, 0.9, 3) == 0.25);
    wg__load_window_fini(&window);
}

static void a_window_is_above_a_limit_when_that_is_sure(void **state)
{
    (void)state;
    struct wg_load_window window;
    wg__load_window_init(&window);
    assert_false(wg__load_window_is_above(&window, 0.99, 1, 0, 3.1));
    for (size_t i = 0; i < 30; i++)
        fill(&window, (const double[]){i % 2 == 0 ? 2.0 : 0.5}, 1);
    assert_true(wg__load_window_is_above(&window, 0.99, 1, 0, 3.1)); /* half of them */
    assert_false(wg__load_window_is_above(&window, 0.99, 3, 0, 3.1));
    assert_false(wg__load_window_is_above(&window, 0.4, 1, 0, 3.1));
    assert_true(wg__load_window_mean_is_above(&window, 0.3, 3.1));
    assert_false(wg__load_window_mean_is_above(&window, 1.25, 3.1));
    /* Nothing was answered, but many wait for longer than the limit. */
    wg__load_window_clear(&window);
    assert_true(wg__load_window_is_above(&window, 0.99, 1, 30, 3.1));
    wg__load_window_fini(&window);
}

static void a_limit_that_is_just_met_is_rarely_taken_for_missed(void **state)
{
    (void)state;
    /* The true percentile is the limit: a cut is a mistake, looked at 40 times a window. */
    size_t mistakes = 0;
    const double limit = -log(0.01);
    struct wg_load_window window;
    wg__load_window_init(&window);
    for (uint64_t w = 0; w < 300; w++) {
        struct wg_rng rng;
        wg__rng_init(&rng, 1000 + w);
        wg__load_window_clear(&window);
        bool is_cut = false;
        double value = exponential(&rng);
        for (size_t i = 1; i <= 2000; i++) {
            if (wg__rng_uniform(&rng) >= 0.5)
                value = exponential(&rng);
            fill(&window, &value, 1);
            if (i % 50 == 0)
                is_cut = is_cut || wg__load_window_is_above(&window, 0.99, limit, 0, 3.1);
        }
        mistakes += is_cut;
    }
    wg__load_window_fini(&window);
    assert_in_range(mistakes, 0, 15);
}

static void figures_have_names(void **state)
{
    (void)state;
    struct wg_load_result result;
    struct wg_load_estimate estimate;
    wg__load_result_init(&result);
    for (size_t i = 1; i <= 1000; i++) {
        fill(&result.latency, (const double[]){(double)i}, 1);
        fill(&result.ttft, (const double[]){(double)i / 2}, 1);
    }
    result.answered = 1000;
    result.time_s = 4;
    assert_true(wg__load_figure(&result, "p99_s", &estimate));
    check_close(estimate.value, 990.01, 1e-12);
    assert_true(wg__load_figure(&result, "p999_s", &estimate));
    const double by_word = estimate.value;
    assert_true(wg__load_figure(&result, "p99.9_s", &estimate));
    check_close(estimate.value, by_word, 1e-12);
    check_close(estimate.value, 999.001, 1e-12);
    assert_true(wg__load_figure(&result, "ttft_p50_s", &estimate));
    check_close(estimate.value, 250.25, 1e-12);
    assert_true(wg__load_figure(&result, "mean_s", &estimate));
    check_close(estimate.value, 500.5, 1e-12);
    assert_true(wg__load_figure(&result, "requests_per_s", &estimate));
    check_close(estimate.value, 250, 1e-12);
    static const char *const others[] = {
        "",      "p_s",      "p0_s",  "p100_s", "p99",
        "q99_s", "energy_j", "ttft_", "pnan_s", "p99999999999999999_s"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(wg__load_figure(&result, others[i], &estimate));
    wg__load_result_fini(&result);
}

static void texts_of_exhausted_memory_are_known(void **state)
{
    (void)state;
    static const char *const yes[] = {"CUDA out of memory. Tried to allocate 2.00 GiB",
                                      "CUDA_ERROR_OUT_OF_MEMORY",
                                      "std::bad_alloc",
                                      "torch.cuda.OutOfMemoryError: x",
                                      "Failed to allocate memory for requested",
                                      "killed by the OOM killer"};
    static const char *const no[] = {"", "no room in the zoo", "memory pool created", "batch-size"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        assert_true(wg__is_out_of_memory(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        assert_false(wg__is_out_of_memory(no[i]));
}

static void failing_memory_loses_no_latency_and_leaks_nothing(void **state)
{
    (void)state;
    for (size_t nth = 1; nth <= 2; nth++) {
        struct wg_load_window window;
        struct wg_error err;
        wg__load_window_init(&window);
        wg__alloc_fail_from(nth);
        assert_int_equal(wg__load_window_add(&window, 1, &err), WG_ENOMEM);
        wg__alloc_fail_from(0);
        assert_int_equal(window.count, 0);
        assert_int_equal(wg__load_window_add(&window, 1, &err), WG_OK);
        assert_true(wg__load_window_percentile(&window, 0.5).value == 1);
        wg__load_window_fini(&window);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_exact_in_any_order),
        cmocka_unit_test(errors_are_what_repetitions_show),
        cmocka_unit_test(equal_latencies_are_known_exactly),
        cmocka_unit_test(a_window_is_above_a_limit_when_that_is_sure),
        cmocka_unit_test(a_limit_that_is_just_met_is_rarely_taken_for_missed),
        cmocka_unit_test(figures_have_names),
        cmocka_unit_test(texts_of_exhausted_memory_are_known),
        cmocka_unit_test(failing_memory_loses_no_latency_and_leaks_nothing),
    };
    return run_tests(tests);
}
