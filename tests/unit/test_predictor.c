/* SPDX-License-Identifier: MIT
 *
 * The physical predictor on GPUs whose times are known: what it recovers, how it mends a wrong
 * first fit, how often its bound holds; and what it refuses.
 */
#include "schedule/predictor.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/predictor_stage.h"

/* The sanitizers make everything a dozen times slower. What is forgotten is gone after 40,000. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { BATCHES = 100000 };
#else
enum { BATCHES = 1000000 };
#endif

static const struct wg_predictor_setup defaults = {0};
static const struct wg_work_shape orin_work = {.operations_fixed = 61e9,
                                               .operations_per_row = 66e9,
                                               .bytes_fixed = 61e6,
                                               .bytes_per_row = 66e6};

static void few_samples_tell_the_time_at_all_clocks(void **state)
{
    (void)state;
    static const double at[][2] = {{1, 0}, {8, 0}, {1, 4}, {8, 4}, {2, 2}, {4, 3}};
    for (int known = 0; known < 2; known++) {
        struct wg_predictor_setup setup = {0};
        if (known)
            setup.inference = orin_work;
        struct wg_predictor_sample samples[6];
        struct wg_rng rng;
        wg__rng_init(&rng, 1);
        for (size_t i = 0; i < 6; i++)
            samples[i] = run_batch(&orin, point_at(at[i][0], (size_t)at[i][1]), &rng);
        struct wg_predictor *predictor = NULL;
        assert_int_equal(wg__predictor_open(&predictor, &setup, samples, 6, NULL), WG_OK);
        const struct errors errors = errors_of(predictor, &orin);
        if (!(errors.largest < 0.01))
            fail_msg("known %d: off by %g", known, errors.largest);
        wg__predictor_close(predictor);
    }
}

static void a_staircase_is_kept_a_size_at_a_time(void **state)
{
    (void)state;
    struct gpu gpu = orin;
    gpu.wave = 4.0;
    struct wg_rng rng;
    wg__rng_init(&rng, 2);
    struct wg_predictor *predictor = open_fitted(&gpu, &defaults, &rng);
    tell_batches(predictor, &gpu, 500, &rng);
    const struct errors errors = errors_of(predictor, &gpu);
    if (!(errors.largest < 0.01))
        fail_msg("off by %g", errors.largest);
    wg__predictor_close(predictor);
}

/* The samples come from `first`, the batches from `truth`; both with 3 % noise. */
static void expect_mended(struct gpu first, struct gpu truth, const char *what)
{
    const unsigned seeds = 20;
    first.noise = truth.noise = 0.03;
    double before = 0.0, square = 0.0, mean = 0.0;
    for (unsigned seed = 0; seed < seeds; seed++) {
        struct wg_rng rng;
        wg__rng_init(&rng, seed);
        struct wg_predictor *predictor = open_fitted(&first, &defaults, &rng);
        before = fmax(before, errors_of(predictor, &truth).largest);
        tell_batches(predictor, &truth, 200, &rng);
        const struct errors errors = errors_of(predictor, &truth);
        if (!(errors.square <= 0.045 && errors.largest <= 0.12))
            fail_msg("%s, seed %u: off by %g, at one point %g", what, seed, errors.square,
                     errors.largest);
        square += errors.square * errors.square / seeds;
        mean += errors.mean / seeds;
        wg__predictor_close(predictor);
    }
    assert_true(before > 0.2);
    if (!(sqrt(square) <= 0.03 && fabs(mean) <= 0.015))
        fail_msg("%s: off by %g, %g in the mean", what, sqrt(square), mean);
}

static void a_wrong_first_fit_is_mended_within_200_batches(void **state)
{
    (void)state;
    struct gpu wrong = orin;
    wrong.scale = 1.3;
    expect_mended(wrong, orin, "30 % too slow");
    wrong.scale = 0.7;
    expect_mended(wrong, orin, "30 % too fast");
    wrong = orin;
    wrong.fixed_s *= 2.0;
    expect_mended(wrong, orin, "fixed part doubled");
    wrong = orin;
    wrong.gpu_share = 0.0;
    expect_mended(wrong, orin, "GPU's clock without effect");
    wrong = orin;
    wrong.odd_rows = 4;
    wrong.odd_factor = 1.3;
    expect_mended(wrong, orin, "one size too slow");
    wrong.odd_factor = 0.7;
    expect_mended(wrong, orin, "one size too fast");
}

/* Nothing but batches of one row at full clocks, 20 % slower than the first fit says. */
static void a_million_like_batches_do_not_wind_it_up(void **state)
{
    (void)state;
    struct gpu gpu = orin, slower = orin;
    slower.scale = 1.2;
    gpu.noise = slower.noise = 0.03;
    struct wg_rng rng;
    wg__rng_init(&rng, 5);
    struct wg_predictor *predictor = open_fitted(&gpu, &defaults, &rng);
    for (size_t i = 0; i < BATCHES; i++) {
        const struct wg_predictor_sample sample = run_batch(&slower, point_at(1.0, 0), &rng);
        wg__predictor_tell(predictor, &sample);
    }
    for (unsigned rows = 1; rows <= 64; rows *= 2) {
        for (size_t clocks = 0; clocks < STAGE_CLOCKS; clocks++) {
            const struct wg_predictor_point point = point_at(rows, clocks);
            const double ratio = wg__predictor_time(predictor, &point) / true_time(&orin, &point);
            if (!(ratio > 1.0 && ratio < 1.3))
                fail_msg("%u rows at clocks %zu take %g of the first fit", rows, clocks, ratio);
        }
    }
    const struct wg_predictor_point point = point_at(1.0, 0);
    check_close(wg__predictor_time(predictor, &point), true_time(&slower, &point), 0.02);
    assert_int_equal(wg__predictor_version(predictor), BATCHES);
    wg__predictor_close(predictor);
}

/* -- What is refused ------------------------------------------------------------------------- */

static void expect_refused(const struct wg_predictor_setup *setup,
                           const struct wg_predictor_sample *sample, const char *expected)
{
    struct wg_predictor *predictor = NULL;
    struct wg_error err = {0};
    const struct wg_predictor_sample samples[] = {{point_at(1, 0), 0.1}, *sample};
    assert_int_equal(wg__predictor_open(&predictor, setup, samples, 2, &err), WG_EINVAL);
    assert_string_equal(err.text, expected);
    assert_null(predictor);
}

static void a_bad_field_of_the_setup_is_named(void **state)
{
    (void)state;
    const struct wg_predictor_sample good = {point_at(2, 0), 0.2};
    const double nan = (double)NAN;
#define REFUSED(expected, ...)                                                                     \
    expect_refused(&(struct wg_predictor_setup){__VA_ARGS__}, &good, "predictor: " expected)
    REFUSED("forgetting is 1, expected 0.5 to less than 1", .forgetting = 1.0);
    REFUSED("forgetting is 0.4, expected 0.5 to less than 1", .forgetting = 0.4);
    REFUSED("forgetting is nan, expected 0.5 to less than 1", .forgetting = nan);
    REFUSED("miss is 0.6, expected more than 0 to 0.5", .miss = 0.6);
    REFUSED("miss is -0.1, expected more than 0 to 0.5", .miss = -0.1);
    REFUSED("window is 65537, expected 1 .. 65536", .window = 65537);
    REFUSED("margin is -1, expected 0 .. 1e+06", .margin = -1.0);
    REFUSED("margin is inf, expected 0 .. 1e+06", .margin = (double)INFINITY);
    REFUSED("inference.operations_fixed is -1, expected 0 .. 1e30",
            .inference.operations_fixed = -1.0);
    REFUSED("inference.operations_per_row is nan, expected 0 .. 1e30",
            .inference.operations_per_row = nan);
    REFUSED("inference.bytes_fixed is 2e+30, expected 0 .. 1e30", .inference.bytes_fixed = 2e30);
    REFUSED("finetune.bytes_per_row is -2, expected 0 .. 1e30", .finetune.bytes_per_row = -2.0);
#undef REFUSED
    const unsigned unknown = 7;
    struct wg_predictor_setup setup = {0};
    memcpy(&setup.kind, &unknown, sizeof setup.kind);
    expect_refused(&setup, &good, "predictor: no kind 7");
}

static void a_bad_field_of_a_sample_is_named(void **state)
{
    (void)state;
    static const struct {
        struct wg_predictor_sample sample;
        const char *expected;
    } cases[] = {
        {{{0, 1, 1, 0}, 0.1}, "predictor: sample 2: rows is 0, expected more than 0 to 1e6"},
        {{{2e6, 1, 1, 0}, 0.1}, "predictor: sample 2: rows is 2e+06, expected more than 0 to 1e6"},
        {{{1, 0, 1, 0}, 0.1}, "predictor: sample 2: gpu_clock is 0, expected 0.001 .. 1"},
        {{{1, 1, 1.5, 0}, 0.1}, "predictor: sample 2: mem_clock is 1.5, expected 0.001 .. 1"},
        {{{1, 1, 1, -1}, 0.1}, "predictor: sample 2: finetune_rows is -1, expected 0 .. 1e6"},
        {{{1, 1, 1, 0}, 0}, "predictor: sample 2: time_s is 0, expected 1e-9 .. 1e9"},
        {{{1, 1, 1, 0}, (double)INFINITY},
         "predictor: sample 2: time_s is inf, expected 1e-9 .. 1e9"},
        {{{1, (double)NAN, 1, 0}, 1}, "predictor: sample 2: gpu_clock is nan, expected 0.001 .. 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refused(&defaults, &cases[i].sample, cases[i].expected);
    struct wg_predictor *predictor = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__predictor_open(&predictor, &defaults, NULL, 0, &err), WG_EINVAL);
    assert_string_equal(err.text, "predictor: no sample to fit");
    /* Told, the same are not learned from. */
    struct wg_rng rng;
    wg__rng_init(&rng, 6);
    predictor = open_fitted(&orin, &defaults, &rng);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        wg__predictor_tell(predictor, &cases[i].sample);
    assert_int_equal(wg__predictor_version(predictor), 0);
    assert_true(errors_of(predictor, &orin).largest < 0.01);
    assert_true(wg__predictor_margin(predictor) == 0.1);
    wg__predictor_close(predictor);
}

static void reports_when_memory_has_run_out(void **state)
{
    (void)state;
    const struct wg_predictor_sample sample = {point_at(1, 0), 0.1};
    enum wg_code code = WG_ENOMEM;
    size_t nth = 1;
    for (; code != WG_OK; nth++) {
        struct wg_predictor *predictor = NULL;
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        code = wg__predictor_open(&predictor, &defaults, &sample, 1, &err);
        wg__alloc_fail_from(0);
        if (code != WG_OK) {
            assert_int_equal(code, WG_ENOMEM);
            assert_string_equal(err.text, "predictor: out of memory");
            assert_null(predictor);
        } else {
            (void)wg__alloc_count();
            wg__predictor_tell(predictor, &sample);
            wg__predictor_close(predictor);
        }
    }
    assert_int_equal(nth, 5);
    wg__predictor_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_samples_tell_the_time_at_all_clocks),
        cmocka_unit_test(a_staircase_is_kept_a_size_at_a_time),
        cmocka_unit_test(a_wrong_first_fit_is_mended_within_200_batches),
        cmocka_unit_test(a_million_like_batches_do_not_wind_it_up),
        cmocka_unit_test(a_bad_field_of_the_setup_is_named),
        cmocka_unit_test(a_bad_field_of_a_sample_is_named),
        cmocka_unit_test(reports_when_memory_has_run_out),
    };
    return run_tests(tests);
}
