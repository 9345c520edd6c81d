/* SPDX-License-Identifier: MIT
 *
 * PolyThrottle's predictor against scipy (predictor_oracle.py).
 */
#include "schedule/predictor.h"

#include <stdlib.h>

#include "base/rng.h"
#include "support/check.h"
#include "unit/predictor_golden.h"

enum { GOLDEN = sizeof golden_predictor / sizeof *golden_predictor, SAMPLES = 24 };

static struct wg_predictor *open_golden(size_t i)
{
    const struct wg_predictor_setup setup = {.kind = WG_PREDICTOR_POLYTHROTTLE,
                                             .inference = golden_predictor[i].inference,
                                             .finetune = golden_predictor[i].finetune};
    struct wg_predictor *predictor = NULL;
    struct wg_error err = {0};
    if (wg__predictor_open(&predictor, &setup, golden_predictor[i].samples, SAMPLES, &err) != WG_OK)
        fail_msg("%s", err.text);
    return predictor;
}

/* What may not fall with the rows is taken from the least batch: the largest so far. */
static double largest_until(size_t i, size_t sample)
{
    const double *predicted_s = golden_predictor[i].predicted_s;
    return fmax(predicted_s[sample], predicted_s[sample % 4]);
}

static void agrees_with_scipy_on_its_features(void **state)
{
    (void)state;
    for (size_t i = 0; i < GOLDEN; i++) {
        struct wg_predictor *predictor = open_golden(i);
        for (size_t k = 0; k < SAMPLES; k++) {
            const struct wg_predictor_point *point = &golden_predictor[i].samples[k].point;
            check_close(wg__predictor_time(predictor, point), largest_until(i, k), 1e-7);
        }
        wg__predictor_close(predictor);
    }
}

static void neither_clocks_nor_batches_move_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < GOLDEN; i++) {
        struct wg_predictor *predictor = open_golden(i);
        for (size_t k = 0; k < SAMPLES; k++) {
            struct wg_predictor_point point = golden_predictor[i].samples[k].point;
            const double before_s = wg__predictor_time(predictor, &point);
            point.gpu_clock = 0.5;
            point.mem_clock = 0.7;
            assert_true(wg__predictor_time(predictor, &point) == before_s);
            const struct wg_predictor_sample sample = {point, 10.0 * before_s};
            wg__predictor_tell(predictor, &sample);
            assert_true(wg__predictor_time(predictor, &point) == before_s);
        }
        assert_int_equal(wg__predictor_version(predictor), 0);
        assert_true(wg__predictor_margin(predictor) == 0.0);
        wg__predictor_close(predictor);
    }
}

/* Operations a byte fall with the rows where operations are mostly fixed. */
static void it_never_falls_with_the_rows(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 4);
    for (size_t run = 0; run < 5000; run++) {
        const struct wg_predictor_setup setup = {
            .kind = WG_PREDICTOR_POLYTHROTTLE,
            .inference = {wg__rng_below(&rng, 3), wg__rng_below(&rng, 2), wg__rng_below(&rng, 2),
                          wg__rng_below(&rng, 3)}};
        struct wg_predictor_sample samples[5];
        for (size_t i = 0; i < 5; i++)
            samples[i] = (struct wg_predictor_sample){{1 + wg__rng_below(&rng, 9), 1, 1, 0},
                                                      wg__rng_uniform(&rng)};
        struct wg_predictor *predictor = NULL;
        assert_int_equal(wg__predictor_open(&predictor, &setup, samples, 5, NULL), WG_OK);
        double last_s = 0.0;
        for (unsigned rows = 0; rows <= 40; rows++) {
            const struct wg_predictor_point point = {0.5 * rows, 1, 1, 0};
            const double time_s = wg__predictor_time(predictor, &point);
            assert_true(isfinite(time_s) && time_s >= last_s * (1.0 - 1e-15));
            last_s = time_s;
        }
        wg__predictor_close(predictor);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_scipy_on_its_features),
        cmocka_unit_test(neither_clocks_nor_batches_move_it),
        cmocka_unit_test(it_never_falls_with_the_rows),
    };
    return run_tests(tests);
}
