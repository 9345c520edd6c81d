/* SPDX-License-Identifier: MIT
 *
 * The simulated world: its noise has the law that it says, failures come as often as asked for and
 * where asked for, and luck belongs to the seed and the configuration.
 */
#include "simulate/tuning_world.h"

#include <string.h>

#include "base/alloc.h"
#include "math/statistics.h"
#include "support/tuning_stage.h"

struct fixture {
    struct stage stage;
    struct wg_tuning_grid *grid;
    struct wg_tuning_scene scene;
};

static void open_scene(struct fixture *fixture, const struct wg_tuning_failures *failures,
                       double noise)
{
    struct wg_error err = {0};
    stage_open(&fixture->stage, stage_text);
    fixture->grid = stage_grid(&fixture->stage);
    if (wg__tuning_scene_init(&fixture->scene, fixture->grid, failures, noise, 0.03, &err) != WG_OK)
        fail_msg("%s", err.text);
}

static void close_scene(struct fixture *fixture)
{
    wg__tuning_scene_fini(&fixture->scene);
    wg__tuning_grid_close(fixture->grid);
    stage_close(&fixture->stage);
}

static void noise_is_lognormal_and_independent(void **state)
{
    (void)state;
    enum { SEEDS = 20000 };
    static double cost[SEEDS], time[SEEDS], product[SEEDS];
    struct fixture fixture;
    open_scene(&fixture, &(struct wg_tuning_failures){0}, 0.1);
    for (size_t i = 0; i < SEEDS; i++) {
        struct wg_tuning_world world;
        struct wg_trial trial;
        assert_int_equal(wg__tuning_world_init(&world, &fixture.scene, i, NULL), WG_OK);
        wg__tuning_world_measure(&world, 2, &trial);
        assert_int_equal(trial.outcome, WG_TRIAL_MEASURED);
        check_close(trial.objective_error, 0.03, 0);
        check_close(trial.figure_errors[0], 0.03, 0);
        cost[i] = log(trial.objective / 3) / 0.1;
        time[i] = log(trial.figures[0] / 4) / 0.1;
        product[i] = cost[i] * time[i];
        wg__tuning_world_fini(&world);
    }
    check_close_abs(wg__mean(cost, SEEDS), 0, 0, 5 / sqrt((double)SEEDS));
    check_close_abs(wg__mean(time, SEEDS), 0, 0, 5 / sqrt((double)SEEDS));
    check_close_abs(wg__mean(product, SEEDS), 0, 0, 5 / sqrt((double)SEEDS));
    check_close(wg__sd_sample(cost, SEEDS), 1, 5 / sqrt(2 * (double)SEEDS));
    check_close(wg__sd_sample(time, SEEDS), 1, 5 / sqrt(2 * (double)SEEDS));
    close_scene(&fixture);
}

static void luck_belongs_to_seed_configuration_and_repetition(void **state)
{
    (void)state;
    struct fixture fixture;
    open_scene(&fixture, &(struct wg_tuning_failures){0}, 0.1);
    struct wg_tuning_world first, second;
    struct wg_trial a[3], b[3], other;
    assert_int_equal(wg__tuning_world_init(&first, &fixture.scene, 7, NULL), WG_OK);
    assert_int_equal(wg__tuning_world_init(&second, &fixture.scene, 7, NULL), WG_OK);
    wg__tuning_world_measure(&first, 0, &a[0]);
    wg__tuning_world_measure(&first, 1, &a[1]);
    wg__tuning_world_measure(&first, 0, &a[2]);
    wg__tuning_world_measure(&second, 1, &b[1]);
    wg__tuning_world_measure(&second, 0, &b[0]);
    wg__tuning_world_measure(&second, 0, &b[2]);
    for (size_t i = 0; i < 3; i++)
        assert_true(a[i].objective == b[i].objective && a[i].figures[0] == b[i].figures[0]);
    assert_true(a[0].objective != a[2].objective);
    wg__tuning_world_fini(&second);
    assert_int_equal(wg__tuning_world_init(&second, &fixture.scene, 8, NULL), WG_OK);
    wg__tuning_world_measure(&second, 0, &other);
    assert_true(other.objective != a[0].objective);
    wg__tuning_world_fini(&first);
    wg__tuning_world_fini(&second);
    close_scene(&fixture);
}

static void shares_of_failures_are_kept_and_change_no_noise(void **state)
{
    (void)state;
    enum { SEEDS = 20000 };
    const struct wg_tuning_failures failures = {.crash = 0.1, .hang = 0.05, .restart = 0.2};
    struct fixture fixture, calm;
    size_t counts[WG_TRIAL_OUTCOME_COUNT] = {0};
    open_scene(&fixture, &failures, 0.1);
    open_scene(&calm, &(struct wg_tuning_failures){0}, 0.1);
    for (size_t i = 0; i < SEEDS; i++) {
        struct wg_tuning_world world, quiet;
        struct wg_trial trial, same;
        assert_int_equal(wg__tuning_world_init(&world, &fixture.scene, i, NULL), WG_OK);
        assert_int_equal(wg__tuning_world_init(&quiet, &calm.scene, i, NULL), WG_OK);
        wg__tuning_world_measure(&world, 0, &trial);
        wg__tuning_world_measure(&quiet, 0, &same);
        counts[trial.outcome]++;
        assert_true(trial.outcome != WG_TRIAL_MEASURED || trial.objective == same.objective);
        wg__tuning_world_fini(&world);
        wg__tuning_world_fini(&quiet);
    }
    const double sd = sqrt(0.25 / (double)SEEDS);
    check_close_abs((double)counts[WG_TRIAL_CRASHED] / (double)SEEDS, 0.1, 0, 5 * sd);
    check_close_abs((double)counts[WG_TRIAL_HUNG] / (double)SEEDS, 0.05, 0, 5 * sd);
    check_close_abs((double)counts[WG_TRIAL_DISCARDED] / (double)SEEDS, 0.2, 0, 5 * sd);
    close_scene(&fixture);
    close_scene(&calm);
}

static void memory_runs_out_at_the_most_demanding_ones_but_the_default(void **state)
{
    (void)state;
    const struct wg_tuning_failures failures = {
        .out_of_memory = 0.5, .refusal_count = 1, .refusals = {{"clock_hz", "100"}}};
    struct fixture fixture;
    open_scene(&fixture, &failures, 0);
    const bool expected[] = {false, false, true, true}; /* batch 4 */
    struct wg_tuning_world world;
    struct wg_trial trial;
    assert_int_equal(wg__tuning_world_init(&world, &fixture.scene, 1, NULL), WG_OK);
    for (size_t c = 0; c < 4; c++) {
        assert_int_equal(fixture.scene.is_out_of_memory[c], expected[c]);
        wg__tuning_world_measure(&world, c, &trial);
        assert_int_equal(trial.outcome, c % 2 == 0    ? WG_TRIAL_REFUSED
                                        : expected[c] ? WG_TRIAL_OUT_OF_MEMORY
                                                      : WG_TRIAL_MEASURED);
        if (trial.outcome == WG_TRIAL_REFUSED)
            assert_int_equal(trial.refused_knob, 1);
    }
    assert_int_equal(fixture.scene.target.available, 1);
    assert_int_equal(fixture.scene.target.optimum, 1);
    wg__tuning_world_fini(&world);
    close_scene(&fixture);
}

static void without_batch_and_replicas_the_upper_corner_is_out_of_memory(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage, "kind,batch,clock_hz,t,e\na,1,1,1,1\na,1,2,1,1\na,2,1,1,1\na,2,2,1,1\n");
    stage.request.axes[0].role = WG_TUNING_CORES;
    struct wg_tuning_grid *grid = stage_grid(&stage);
    struct wg_tuning_scene scene;
    const struct wg_tuning_failures failures = {.out_of_memory = 0.5};
    assert_int_equal(wg__tuning_scene_init(&scene, grid, &failures, 0, 0, NULL), WG_OK);
    assert_false(scene.is_out_of_memory[3]); /* the default, at the corner */
    assert_int_equal(scene.is_out_of_memory[1] + scene.is_out_of_memory[2], 1);
    wg__tuning_scene_fini(&scene);
    wg__tuning_grid_close(grid);
    stage_close(&stage);
}

static void hopeless_windows_tell_no_more_than_that(void **state)
{
    (void)state;
    struct fixture fixture;
    open_scene(&fixture, &(struct wg_tuning_failures){.cut = 1.5}, 0);
    fixture.grid->goal.limits[0].bound = 2;
    struct wg_tuning_world world;
    struct wg_trial trial;
    assert_int_equal(wg__tuning_world_init(&world, &fixture.scene, 1, NULL), WG_OK);
    wg__tuning_world_measure(&world, 2, &trial); /* 4, twice the limit */
    assert_int_equal(trial.outcome, WG_TRIAL_CUT);
    assert_true(isnan(trial.objective));
    check_close(trial.figures[0], 3, 1e-15);
    wg__tuning_world_measure(&world, 0, &trial); /* 2 */
    assert_int_equal(trial.outcome, WG_TRIAL_MEASURED);
    wg__tuning_world_fini(&world);
    close_scene(&fixture);
}

static void check_refused(const struct fixture *fixture, struct wg_tuning_failures failures,
                          const char *message)
{
    struct wg_tuning_scene scene;
    struct wg_error err = {0};
    assert_int_equal(wg__tuning_scene_init(&scene, fixture->grid, &failures, 0, 0, &err),
                     WG_EINVAL);
    if (strstr(err.text, message) == NULL)
        fail_msg("%s", err.text);
    wg__tuning_scene_fini(&scene);
}

static void failures_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    open_scene(&fixture, &(struct wg_tuning_failures){0}, 0);
    check_refused(&fixture, (struct wg_tuning_failures){.crash = 0.5, .hang = 0.5}, "at most 0.9");
    check_refused(&fixture, (struct wg_tuning_failures){.out_of_memory = 0.96}, "0..0.95");
    check_refused(&fixture, (struct wg_tuning_failures){.cut = 1}, "not above 1");
    check_refused(
        &fixture,
        (struct wg_tuning_failures){.refusal_count = 1, .refusals = {{"clock_hz", "300"}}},
        "--fail refuse: clock_hz has no level 300");
    check_refused(&fixture,
                  (struct wg_tuning_failures){
                      .refusal_count = 2, .refusals = {{"clock_hz", "100"}, {"clock_hz", "200"}}},
                  "--limit 't': no configuration");
    struct wg_tuning_scene scene;
    wg__alloc_fail_from(1);
    const enum wg_code code = wg__tuning_scene_init(
        &scene, fixture.grid, &(struct wg_tuning_failures){.out_of_memory = 0.5}, 0, 0, NULL);
    wg__alloc_fail_from(0);
    assert_int_equal(code, WG_ENOMEM);
    wg__tuning_scene_fini(&scene);
    close_scene(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_is_lognormal_and_independent),
        cmocka_unit_test(luck_belongs_to_seed_configuration_and_repetition),
        cmocka_unit_test(shares_of_failures_are_kept_and_change_no_noise),
        cmocka_unit_test(memory_runs_out_at_the_most_demanding_ones_but_the_default),
        cmocka_unit_test(without_batch_and_replicas_the_upper_corner_is_out_of_memory),
        cmocka_unit_test(hopeless_windows_tell_no_more_than_that),
        cmocka_unit_test(failures_that_cannot_be_are_refused),
    };
    return run_tests(tests);
}
