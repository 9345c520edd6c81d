/* SPDX-License-Identifier: MIT
 *
 * What holds whatever the predictor is fitted to and told: its bound's promise, and times that are
 * finite, never negative and never fall with the rows.
 */
#include "schedule/predictor.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/predictor_stage.h"

/* The sanitizers make everything a dozen times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SETUPS = 4000, SEEDS = 500 };
#else
enum { SETUPS = 100000, SEEDS = 4000 };
#endif

/* The share of seeds whose 61st to 260th batch, one a seed, exceeds its bound. */
static double share_exceeded(const struct gpu *first, const struct gpu *gpu, double miss)
{
    const struct wg_predictor_setup setup = {.miss = miss};
    size_t exceeded = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        struct wg_rng rng;
        wg__rng_init(&rng, seed);
        struct wg_predictor *predictor = open_fitted(first, &setup, &rng);
        tell_batches(predictor, gpu, 60 + wg__rng_below(&rng, 200), &rng);
        const struct wg_predictor_sample next =
            run_batch(gpu, point_at(1 + wg__rng_below(&rng, STAGE_ROWS), 1), &rng);
        const double bound_s =
            wg__predictor_time(predictor, &next.point) * (1.0 + wg__predictor_margin(predictor));
        exceeded += next.time_s > bound_s;
        wg__predictor_close(predictor);
    }
    return (double)exceeded / (double)SEEDS;
}

/* Log-normal noise. */
static void the_bound_is_exceeded_as_often_as_it_says(void **state)
{
    (void)state;
    static const double misses[] = {0.02, 0.1};
    struct gpu gpu = orin;
    gpu.noise = 0.05;
    for (size_t m = 0; m < 2; m++) {
        const double share = share_exceeded(&gpu, &gpu, misses[m]);
        const double error = sqrt(misses[m] * (1.0 - misses[m]) / (double)SEEDS);
        /* At most what is promised, and no less than ceil makes of it: k / (n + 1), n >= 60. */
        if (!(share < misses[m] + 3.5 * error && share > misses[m] - 1.0 / 61.0 - 3.5 * error))
            fail_msg("exceeded by %g, promised %g", share, misses[m]);
    }
}

/* Residuals of a fit that was 30 % too fast don't keep the bound wide for the whole window, and it
 * holds all the same. */
static void after_a_fit_too_fast_the_bound_is_soon_tight_and_holds(void **state)
{
    (void)state;
    struct gpu gpu = orin, fast = orin;
    gpu.noise = fast.noise = 0.03;
    fast.scale = 0.7;
    const double share = share_exceeded(&fast, &gpu, 0.02);
    if (!(share < 0.02 + 3.5 * sqrt(0.02 * 0.98 / (double)SEEDS)))
        fail_msg("exceeded by %g, promised 0.02", share);
    double margin = 0.0;
    for (unsigned seed = 0; seed < 20; seed++) {
        struct wg_rng rng;
        wg__rng_init(&rng, seed);
        struct wg_predictor *predictor = open_fitted(&fast, &(struct wg_predictor_setup){0}, &rng);
        tell_batches(predictor, &gpu, 100, &rng);
        margin += wg__predictor_margin(predictor) / 20.0;
        wg__predictor_close(predictor);
    }
    if (!(margin < 0.2)) /* 0.44 if nothing were forgotten, 0.075 with a right fit */
        fail_msg("the margin is %g", margin);
}

/* A GPU that becomes 40 % slower within 400 batches, as when it gets hot. */
static void drift_is_followed(void **state)
{
    (void)state;
    struct gpu gpu = orin;
    gpu.noise = 0.03;
    struct wg_rng rng;
    wg__rng_init(&rng, 7);
    struct wg_predictor *predictor = open_fitted(&gpu, &(struct wg_predictor_setup){0}, &rng);
    size_t late = 0;
    for (size_t i = 0; i < 400; i++) {
        gpu.scale += 0.001;
        const struct wg_predictor_sample next =
            run_batch(&gpu, point_at(1 + wg__rng_below(&rng, STAGE_ROWS), 0), &rng);
        late += next.time_s > wg__predictor_time(predictor, &next.point) *
                                  (1.0 + wg__predictor_margin(predictor));
        wg__predictor_tell(predictor, &next);
    }
    assert_in_range(late, 0, 20); /* 8 if nothing changed */
    /* It was told of full clocks only; the others are slower all the same. */
    const struct errors errors = errors_of(predictor, &gpu);
    if (!(errors.square < 0.08 && errors.largest < 0.15))
        fail_msg("off by %g, at one point %g", errors.square, errors.largest);
    tell_batches(predictor, &gpu, 200, &rng);
    assert_true(errors_of(predictor, &gpu).square < 0.04);
    wg__predictor_close(predictor);
}

/* A stall of a hundred times the usual is one batch, and no batch's rule. */
static void one_stall_moves_little(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 8);
    struct gpu gpu = orin;
    gpu.noise = 0.03;
    struct wg_predictor *predictor = open_fitted(&gpu, &(struct wg_predictor_setup){0}, &rng);
    tell_batches(predictor, &gpu, 100, &rng);
    struct wg_predictor_sample stall = run_batch(&gpu, point_at(2, 0), &rng);
    stall.time_s *= 100.0;
    wg__predictor_tell(predictor, &stall);
    assert_true(errors_of(predictor, &gpu).largest < 0.15);
    wg__predictor_close(predictor);
}

/* A step beside the batch makes it slower; that is learned even if no sample had one. */
static void a_step_beside_the_batch_is_learned(void **state)
{
    (void)state;
    struct gpu gpu = orin;
    gpu.noise = 0.03;
    struct wg_rng rng;
    wg__rng_init(&rng, 9);
    struct wg_predictor *predictor = open_fitted(&gpu, &(struct wg_predictor_setup){0}, &rng);
    for (size_t i = 0; i < 300; i++) {
        struct wg_predictor_point point = point_at(1 + wg__rng_below(&rng, STAGE_ROWS), i % 2 * 3);
        point.finetune_rows = wg__rng_below(&rng, 2) ? 16.0 + wg__rng_below(&rng, 48) : 0.0;
        const struct wg_predictor_sample sample = run_batch(&gpu, point, &rng);
        wg__predictor_tell(predictor, &sample);
    }
    for (unsigned rows = 1; rows <= STAGE_ROWS; rows++) {
        for (unsigned step = 0; step <= 64; step += 32) {
            struct wg_predictor_point point = point_at(rows, 3);
            point.finetune_rows = step;
            check_close(wg__predictor_time(predictor, &point), true_time(&gpu, &point), 0.07);
        }
    }
    wg__predictor_close(predictor);
}

static double draw_wide(struct wg_rng *rng)
{
    return wg__rng_below(rng, 3) == 0 ? 0.0 : exp(6.0 * wg__rng_normal(rng));
}

static struct wg_predictor_sample draw_sample(struct wg_rng *rng, bool is_wild)
{
    static const double clocks[] = {1.0, 1.0, 0.75, 0.4, 0.001};
    struct wg_predictor_sample sample = {
        .point = {.rows = wg__rng_below(rng, 4) ? 1.0 + wg__rng_below(rng, 12)
                                                : exp(3.0 * wg__rng_normal(rng)),
                  .gpu_clock = clocks[wg__rng_below(rng, is_wild ? 5 : 4)],
                  .mem_clock = clocks[wg__rng_below(rng, 4)],
                  .finetune_rows = wg__rng_below(rng, 3) ? 0.0 : wg__rng_below(rng, 64)}};
    sample.time_s = exp((is_wild ? 4.0 : 1.0) * wg__rng_normal(rng));
    if (wg__rng_below(rng, 2) == 0)
        sample.time_s *= 0.1 * sample.point.rows;
    sample.point.rows = fmin(sample.point.rows, 1e6);
    sample.time_s = fmin(fmax(sample.time_s, 1e-9), 1e9);
    return sample;
}

static void expect_rising(const struct wg_predictor *predictor, struct wg_predictor_point point,
                          struct wg_rng *rng)
{
    double last_s = 0.0;
    point.rows = 0.0;
    for (unsigned i = 0; i < 24; i++) {
        const double time_s = wg__predictor_time(predictor, &point);
        if (!(isfinite(time_s) && time_s >= last_s * (1.0 - 1e-12)))
            fail_msg("%g rows take %g s, fewer took %g s", point.rows, time_s, last_s);
        last_s = time_s;
        point.rows += i < 16 ? 1.0 : exp(3.0 * wg__rng_normal(rng));
    }
}

static void times_are_finite_never_negative_and_never_fall_with_the_rows(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 10);
    for (size_t run = 0; run < SETUPS; run++) {
        const bool is_wild = run % 2 == 0;
        const struct wg_predictor_setup setup = {
            .inference = {draw_wide(&rng), draw_wide(&rng), draw_wide(&rng), draw_wide(&rng)},
            .finetune = {draw_wide(&rng), draw_wide(&rng), draw_wide(&rng), draw_wide(&rng)},
            .forgetting = run % 3 == 0 ? 0.5 : 0.0,
            .window = 5};
        struct wg_predictor_sample samples[8];
        const size_t count = 1 + wg__rng_below(&rng, 8);
        for (size_t i = 0; i < count; i++)
            samples[i] = draw_sample(&rng, is_wild);
        struct wg_predictor *predictor = NULL;
        assert_int_equal(wg__predictor_open(&predictor, &setup, samples, count, NULL), WG_OK);
        const size_t told = wg__rng_below(&rng, 16);
        for (size_t i = 0; i <= told; i++) {
            if (i == 0 || i == told)
                expect_rising(predictor, draw_sample(&rng, is_wild).point, &rng);
            const struct wg_predictor_sample sample = draw_sample(&rng, is_wild);
            wg__predictor_tell(predictor, &sample);
            assert_true(wg__predictor_margin(predictor) >= 0.0);
        }
        assert_int_equal(wg__predictor_version(predictor), told + 1);
        wg__predictor_close(predictor);
    }
}

static void whatever_is_asked_the_answer_is_a_time(void **state)
{
    (void)state;
    static const double odd[] = {
        0.0, -1.0,   1e-300,           1e300, (double)NAN, (double)INFINITY, 1e-9,
        1.0, 1025.0, -(double)INFINITY};
    const size_t count = sizeof odd / sizeof *odd;
    struct wg_rng rng;
    wg__rng_init(&rng, 11);
    for (int kind = 0; kind < 2; kind++) {
        const struct wg_predictor_setup setup = {.kind = (enum wg_predictor_kind)kind};
        struct wg_predictor *predictor = open_fitted(&orin, &setup, &rng);
        for (size_t i = 0; i < count * count * count * count; i++) {
            const struct wg_predictor_sample sample = {{odd[i % count], odd[i / count % count],
                                                        odd[i / count / count % count],
                                                        odd[i / count / count / count]},
                                                       1.0};
            const double time_s = wg__predictor_time(predictor, &sample.point);
            assert_true(isfinite(time_s) && time_s >= 0.0);
            if (i % 7 == 0)
                wg__predictor_tell(predictor, &sample);
        }
        wg__predictor_close(predictor);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bound_is_exceeded_as_often_as_it_says),
        cmocka_unit_test(after_a_fit_too_fast_the_bound_is_soon_tight_and_holds),
        cmocka_unit_test(drift_is_followed),
        cmocka_unit_test(one_stall_moves_little),
        cmocka_unit_test(a_step_beside_the_batch_is_learned),
        cmocka_unit_test(times_are_finite_never_negative_and_never_fall_with_the_rows),
        cmocka_unit_test(whatever_is_asked_the_answer_is_a_time),
    };
    return run_tests(tests);
}
