/* SPDX-License-Identifier: MIT
 *
 * The board's formulas against the same ones written out, and against what physics demands.
 */
#include "simulate/tuning_board.h"

#include "support/check.h"

static const struct wg_tuning_board board = {.v0 = 0.6,
                                             .thr = 0.4,
                                             .ps = 0.2,
                                             .ki = 0.1,
                                             .kg = 0.5,
                                             .km = 0.15,
                                             .km2 = 0.08,
                                             .s = 0.5,
                                             .w = 0.3,
                                             .a = 0.6,
                                             .t0 = 0.1,
                                             .p = 2};

static void is_the_formula(void **state)
{
    (void)state;
    double t = 0, e = 0;
    wg__tuning_board_figures(&board, 0.7, 0.5, 4, &t, &e);
    const double compute = 4.5 / 0.7, traffic = 2.7 / 0.5;
    const double expected_t = 0.1 * (1 + 0.3 / 0.7) + sqrt(compute * compute + traffic * traffic);
    const double v = 0.6 + 0.4 * 0.3 / 0.6;
    const double power = 0.2 + 0.1 * 0.7 * v * v +
                         0.5 * 0.7 * v * v * compute / expected_t * (0.5 + 0.5 * 4 / 4.5) +
                         0.15 * 0.5 + 0.08 * 0.5 * traffic / expected_t;
    check_close(t, expected_t, 1e-12);
    check_close(e, power * expected_t / 4, 1e-12);
    wg__tuning_board_figures(&board, 0.3, 1, 1, &t, &e); /* below the threshold */
    const double low_t = 0.1 * 2 + hypot(1.5 / 0.3, 0.9);
    check_close(t, low_t, 1e-12);
    const double low_p = 0.2 + 0.1 * 0.3 * 0.36 + 0.5 * 0.3 * 0.36 * 5 / low_t * (0.5 + 0.5 / 1.5) +
                         0.15 + 0.08 * 0.9 / low_t;
    check_close(e, low_p * low_t, 1e-12);
}

static void a_lower_clock_is_never_faster(void **state)
{
    (void)state;
    double slower = 0, faster = 0, e = 0;
    for (int i = 1; i < 20; i++)
        for (int batch = 1; batch <= 16; batch *= 2) {
            wg__tuning_board_figures(&board, i / 20.0, 0.5, batch, &slower, &e);
            wg__tuning_board_figures(&board, (i + 1) / 20.0, 0.5, batch, &faster, &e);
            assert_true(faster < slower);
            wg__tuning_board_figures(&board, 0.5, i / 20.0, batch, &slower, &e);
            wg__tuning_board_figures(&board, 0.5, (i + 1) / 20.0, batch, &faster, &e);
            assert_true(faster < slower);
        }
}

static void perfect_overlap_does_not_overflow(void **state)
{
    (void)state;
    struct wg_tuning_board sharp = board;
    sharp.p = 5000;
    double t = 0, e = 0;
    wg__tuning_board_figures(&sharp, 0.01, 1, 1000, &t, &e);
    check_close(t, 0.1 * 31 + 1000.5 / 0.01, 1e-9);
    assert_true(isfinite(e) && e > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_formula),
        cmocka_unit_test(a_lower_clock_is_never_faster),
        cmocka_unit_test(perfect_overlap_does_not_overflow),
    };
    return run_tests(tests);
}
