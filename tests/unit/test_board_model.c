/* SPDX-License-Identifier: MIT
 *
 * Random boards against the same formulas in double precision (tuning_oracle.py), and what physics
 * says of any board.
 */
#include "optimize/board_model.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "optimize/board_pool.h"
#include "support/board_spaces.h"
#include "tuning_golden.h"

static void check_space(struct wg_tuning_space *space, const double (*golden)[2], size_t count)
{
    struct wg_board_axes axes;
    assert_int_equal(wg__board_axes_init(&axes, space, NULL), WG_OK);
    float z[WG_BOARD_NUMBERS_MAX] = {0};
    for (size_t i = 0; i < wg__board_numbers(&axes); i++)
        z[i] = (float)(1.2 * sin(1.7 * (double)i + 1));
    struct wg_board board;
    wg__board_from(&axes, z, &board);
    size_t seen = 0;
    assert_int_equal((space->count + 6) / 7, count);
    for (size_t x = 0; x < space->count && seen < count; x += 7, seen++) {
        float log_t = 0, log_e = 0;
        wg__board_point(&axes, &board, x, &log_t, &log_e);
        check_close_abs((double)log_t, golden[seen][0], 1e-5, 1e-5);
        check_close_abs((double)log_e, golden[seen][1], 1e-5, 1e-5);
    }
    assert_int_equal(seen, count);
    wg__board_axes_fini(&axes);
    wg__tuning_space_free(space);
}

static void a_board_is_what_the_formulas_say(void **state)
{
    (void)state;
    check_space(inference_space(), golden_inference,
                sizeof golden_inference / sizeof *golden_inference);
    check_space(training_space(), golden_training,
                sizeof golden_training / sizeof *golden_training);
    check_space(fleet_space(), golden_fleet, sizeof golden_fleet / sizeof *golden_fleet);
}

/* Rows go level by level, columns configuration by configuration: one model, two ways. */
static void rows_and_columns_of_a_pool_agree(void **state)
{
    (void)state;
    enum { BOARDS = 600 }; /* more than a pool keeps rows of */
    struct wg_tuning_space *space = training_space();
    struct wg_board_axes axes;
    struct wg_board_pool *pool = NULL;
    struct wg_rng rng;
    wg__rng_init(&rng, 4);
    const uint32_t fixed[] = {3, 7, 11}, fresh[] = {0, 15};
    assert_int_equal(wg__board_axes_init(&axes, space, NULL), WG_OK);
    assert_int_equal(wg__board_pool_new(&pool, &axes, BOARDS, &rng, fixed, 3, 2, NULL), WG_OK);
    for (int turn = 0; turn < 2; turn++) {
        for (size_t p = 0; p < BOARDS; p++) {
            struct wg_board_curves row, column;
            assert_int_equal(wg__board_pool_row(pool, p, &row, NULL), WG_OK);
            size_t count = 0;
            const uint32_t *candidates = wg__board_pool_candidates(pool, &count);
            assert_int_equal(count, turn == 0 ? 3 : 5);
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(wg__board_pool_column(pool, candidates[i], &column, NULL), WG_OK);
                assert_int_equal(wg__board_pool_candidate(pool, candidates[i]), i);
                check_close_abs((double)row.log_t[i], (double)column.log_t[p], 1e-6, 1e-6);
                check_close_abs((double)row.log_e[i], (double)column.log_e[p], 1e-6, 1e-6);
            }
        }
        wg__board_pool_refresh(pool, fresh, 2);
    }
    assert_true(wg__board_pool_candidate(pool, 5) == SIZE_MAX);
    wg__board_pool_free(pool);
    wg__board_axes_fini(&axes);
    wg__tuning_space_free(space);
}

/* Without tilts and steps, a lower clock or limit never makes a request faster. */
static void a_lower_limit_never_makes_a_board_faster(void **state)
{
    (void)state;
    struct wg_tuning_space *space = fleet_space();
    struct wg_board_axes axes;
    struct wg_rng rng;
    wg__rng_init(&rng, 9);
    assert_int_equal(wg__board_axes_init(&axes, space, NULL), WG_OK);
    for (size_t i = 0; i < 200; i++) {
        const struct wg_rng own = wg__rng_split(&rng, i);
        float z[WG_BOARD_NUMBERS_MAX] = {0};
        struct wg_board board;
        wg__board_draw(&axes, &own, z);
        wg__board_from(&axes, z, &board);
        for (size_t k = 0; k < space->knob_count; k++)
            board.tilt_t[k] = board.tilt_e[k] = 0;
        for (size_t clock = 0; clock < 3; clock++)
            for (size_t limit = 0; limit < 3; limit++) {
                const size_t here[] = {clock, limit, 0, 0, 0, 0}, top[] = {2, 2, 0, 0, 0, 0};
                float t = 0, t_top = 0, e = 0;
                wg__board_point(&axes, &board, wg__tuning_space_find(space, here), &t, &e);
                wg__board_point(&axes, &board, wg__tuning_space_find(space, top), &t_top, &e);
                assert_true(isfinite((double)e) && t >= t_top - 1e-6F);
            }
    }
    wg__board_axes_fini(&axes);
    wg__tuning_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_board_is_what_the_formulas_say),
        cmocka_unit_test(rows_and_columns_of_a_pool_agree),
        cmocka_unit_test(a_lower_limit_never_makes_a_board_faster),
    };
    return run_tests(tests);
}
