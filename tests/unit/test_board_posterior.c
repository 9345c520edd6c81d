/* SPDX-License-Identifier: MIT
 *
 * The posterior against a dense computation that shares no code (tuning_oracle.py), from the draws
 * of the boards to the deviations; weights; and candidates of large spaces.
 */
#include "optimize/board_posterior.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "optimize/board_weights.h"
#include "optimize/tune_candidates.h"
#include "support/board_spaces.h"
#include "tuning_golden.h"

static const struct wg_board_settings settings = {.boards = 256,
                                                  .kept = 64,
                                                  .effective = 40,
                                                  .rho_sd = 0.5,
                                                  .rho_knobs = 2,
                                                  .widen_at = (double)INFINITY};

struct stage {
    struct wg_tuning_space *space;
    struct wg_board_axes axes;
    struct wg_board_pool *pool;
    struct wg_board_posterior *posterior;
};

static struct stage make_stage(void)
{
    struct stage stage = {.space = inference_space()};
    assert_int_equal(wg__board_axes_init(&stage.axes, stage.space, NULL), WG_OK);
    return stage;
}

static void start(struct stage *stage)
{
    struct wg_rng rng;
    uint32_t all[1024];
    wg__rng_init(&rng, 11);
    for (uint32_t x = 0; x < stage->space->count; x++)
        all[x] = x;
    assert_int_equal(wg__board_pool_new(&stage->pool, &stage->axes, settings.boards, &rng, all,
                                        stage->space->count, 0, NULL),
                     WG_OK);
    assert_int_equal(wg__board_posterior_new(&stage->posterior, stage->pool, &settings, NULL),
                     WG_OK);
}

static void end(struct stage *stage)
{
    wg__board_posterior_free(stage->posterior);
    wg__board_pool_free(stage->pool);
    wg__board_axes_fini(&stage->axes);
    wg__tuning_space_free(stage->space);
}

static void update(struct stage *stage, size_t count)
{
    const uint32_t tried[] = {
        (uint32_t)stage->space->default_configuration, 40, 133, 217, 300, 401};
    const double t[] = {0, 0.9, 0.5, 0.35, 0.1, 0.6}, e[] = {0, -0.2, -0.35, -0.1, -0.3, 0.1};
    struct wg_board_row rows[2][6];
    for (size_t i = 0; i < count; i++) {
        rows[0][i] = (struct wg_board_row){tried[i], t[i], 0.02};
        rows[1][i] = (struct wg_board_row){tried[i], e[i], 0.02};
    }
    const struct wg_board_channel channels[] = {{WG_TUNING_TIME, rows[0], count},
                                                {WG_TUNING_ENERGY, rows[1], count}};
    assert_int_equal(wg__board_posterior_update(
                         stage->posterior, stage->space->default_configuration, channels, 2, NULL),
                     WG_OK);
}

static void mean_and_deviation_are_those_of_a_dense_computation(void **state)
{
    (void)state;
    struct stage stage = make_stage();
    start(&stage);
    update(&stage, 6);
    for (size_t i = 0; i < sizeof golden_posterior / sizeof *golden_posterior; i++) {
        const size_t x = 5 + 61 * i;
        for (size_t q = 0; q < 2; q++) {
            check_close_abs((double)wg__board_posterior_mean(stage.posterior, q)[x],
                            golden_posterior[i][2 * q], 0, 2e-3);
            check_close_abs((double)wg__board_posterior_sd(stage.posterior, q)[x],
                            golden_posterior[i][2 * q + 1], 0.01, 0);
        }
    }
    end(&stage);
}

/* A trial takes doubt away; where it was made it leaves no more than its own noise. */
static void a_trial_leaves_its_own_noise_and_no_more(void **state)
{
    (void)state;
    struct stage stage = make_stage();
    start(&stage);
    update(&stage, 5);
    const double before = (double)wg__board_posterior_sd(stage.posterior, 0)[401];
    update(&stage, 6);
    const double after = (double)wg__board_posterior_sd(stage.posterior, 0)[401];
    assert_true(after < before && after <= 0.0201 && after > 0.01);
    check_close_abs((double)wg__board_posterior_mean(stage.posterior, 0)[401], 0.6, 0, 0.02);
    end(&stage);
}

static void weights_sum_to_one_and_keep_their_effective_size(void **state)
{
    (void)state;
    enum { COUNT = 500, MOST = 64 };
    double ll[COUNT], weights[MOST];
    uint32_t members[MOST];
    struct wg_board_weight scratch[COUNT];
    for (int flat = 0; flat < 2; flat++) {
        for (int i = 0; i < COUNT; i++)
            ll[i] = flat ? -7 : -fabs(i - 250.0) * 10 - 1000;
        struct wg_board_kept kept = {.members = members, .weights = weights};
        wg__board_weights(ll, COUNT, 40, MOST, scratch, &kept);
        double sum = 0;
        for (size_t i = 0; i < kept.count; i++)
            sum += weights[i];
        check_close(sum, 1, 1e-12);
        assert_true(kept.count <= MOST);
        assert_true(flat ? kept.beta == 1 && kept.count == MOST
                         : kept.beta < 0.01 && kept.beta > 0);
        assert_true(flat || members[0] == 250);
    }
}

static void a_large_space_is_sampled_with_its_default_and_neighbours(void **state)
{
    (void)state;
    static double levels[5][10];
    struct wg_tuning_knob knobs[5];
    const char *const names[] = {"a", "b", "c", "d", "e"};
    for (size_t k = 0; k < 5; k++) {
        for (size_t l = 0; l < 10; l++)
            levels[k][l] = 1 + (double)l;
        knobs[k] = (struct wg_tuning_knob)BOARD_KNOB(names[k], SPLIT, levels[k], 9);
    }
    struct wg_tuning_space *space = board_space(knobs, 5);
    static uint32_t fixed[WG_TUNE_WHOLE], fresh[WG_TUNE_FRESH];
    static bool is_known[100000];
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    assert_false(wg__tune_is_whole(space));
    assert_int_equal(wg__tune_fixed_part(space, &rng, fixed), WG_TUNE_PART);
    bool has_default = false;
    for (size_t i = 0; i < WG_TUNE_PART; i++) {
        has_default |= fixed[i] == space->default_configuration;
        assert_true(i == 0 || fixed[i] > fixed[i - 1]);
    }
    assert_true(has_default);
    /* Itself, 5 x 9 in one knob, 10 pairs x 6 x 6 in two. */
    assert_int_equal(wg__tune_neighbours(space, 55555, is_known, fresh, 0), 1 + 45 + 360);
    assert_int_equal(fresh[0], 55555);
    assert_int_equal(wg__tune_neighbours(space, 55555, is_known, fresh, 7), 7);
    wg__tuning_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_and_deviation_are_those_of_a_dense_computation),
        cmocka_unit_test(a_trial_leaves_its_own_noise_and_no_more),
        cmocka_unit_test(weights_sum_to_one_and_keep_their_effective_size),
        cmocka_unit_test(a_large_space_is_sampled_with_its_default_and_neighbours),
    };
    return run_tests(tests);
}
