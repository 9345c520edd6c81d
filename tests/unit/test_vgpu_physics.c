/* SPDX-License-Identifier: MIT
 *
 * The virtual GPU's physics against closed forms and exhaustive search.
 */
#include "vgpu/state.h"

#include "base/rng.h"
#include "support/check.h"
#include "support/vgpu.h"

static void power_follows_the_closed_form(void **state)
{
    (void)state;
    const struct vgpu_model model = vgpu_stage_model(0);
    check_close(vgpu_power_w(&model, 2000e6, 0.0, 1.0), 100.0, 1e-12);
    check_close(vgpu_power_w(&model, 2000e6, 1.0, 1.0), 500.0, 1e-12);
    check_close(vgpu_power_w(&model, 2000e6, 0.5, 1.0), 300.0, 1e-12);
    check_close(vgpu_power_w(&model, 2000e6, 0.5, 0.5), 200.0, 1e-12);
    /* Above the floor: the cube of the clock. At the floor and below: linear. */
    check_close(vgpu_power_w(&model, 1500e6, 1.0, 1.0), 100.0 + 400.0 * 0.421875, 1e-12);
    check_close(vgpu_power_w(&model, 1000e6, 1.0, 1.0), 100.0 + 400.0 * 0.125, 1e-12);
    check_close(vgpu_power_w(&model, 500e6, 1.0, 1.0), 100.0 + 400.0 * 0.0625, 1e-12);
}

static void a_job_costs_least_energy_at_a_clock_between_the_ends(void **state)
{
    (void)state;
    const struct vgpu_model model = vgpu_stage_model(0);
    size_t best = 0;
    double best_j = INFINITY;
    for (size_t i = 0; i < model.clock_count; i++) {
        const double hz = model.clocks_hz[i];
        const double energy_j = vgpu_power_w(&model, hz, 1.0, 1.0) * 2000e6 / hz;
        if (energy_j < best_j) {
            best_j = energy_j;
            best = i;
        }
    }
    assert_in_range(best, 1, model.clock_count - 2);
}

static void the_clock_for_a_limit_is_the_largest_step_that_fits(void **state)
{
    (void)state;
    const struct vgpu_model model = vgpu_stage_model(0);
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    for (int n = 0; n < 2000; n++) {
        const double limit_w = 50.0 + 500.0 * wg__rng_uniform(&rng);
        const double utilization = wg__rng_uniform(&rng);
        const double intensity = 1.5 * wg__rng_uniform(&rng);
        double expected_hz = model.clocks_hz[0];
        for (size_t i = 0; i < model.clock_count; i++) {
            if (vgpu_power_w(&model, model.clocks_hz[i], utilization, intensity) <= limit_w)
                expected_hz = model.clocks_hz[i];
        }
        check_close(vgpu_clock_for_limit(&model, limit_w, utilization, intensity), expected_hz,
                    0.0);
    }
}

static void the_nearest_step_is_found_on_both_sides_and_beyond_the_ends(void **state)
{
    (void)state;
    const double steps[] = {300e6, 400e6, 600e6};
    check_close(vgpu_nearest_step(steps, 3, 1.0), 300e6, 0.0);
    check_close(vgpu_nearest_step(steps, 3, 340e6), 300e6, 0.0);
    check_close(vgpu_nearest_step(steps, 3, 360e6), 400e6, 0.0);
    check_close(vgpu_nearest_step(steps, 3, 510e6), 600e6, 0.0);
    check_close(vgpu_nearest_step(steps, 3, 9e9), 600e6, 0.0);
}

static struct vgpu_load measured_job(void)
{
    return (struct vgpu_load){.pid = 1,
                              .utilization = 1.0,
                              .curve_count = 4,
                              .curve_limit_w = {200, 300, 400, 500},
                              .curve_power_w = {195, 290, 370, 400},
                              .curve_speed = {0.55, 0.8, 0.95, 1.0}};
}

static void a_measured_job_follows_its_curve_by_limit(void **state)
{
    (void)state;
    const struct vgpu_model model = vgpu_stage_model(0);
    const struct vgpu_load job = measured_job();
    struct vgpu_point point;
    for (size_t i = 0; i < job.curve_count; i++) {
        vgpu_curve_point(&point, &model, &job, job.curve_limit_w[i], 2000e6);
        check_close(point.power_w, job.curve_power_w[i], 1e-12);
        check_close(point.speed, job.curve_speed[i], 1e-12);
    }
    vgpu_curve_point(&point, &model, &job, 350.0, 2000e6);
    check_close(point.power_w, 330.0, 1e-12);
    check_close(point.speed, 0.875, 1e-12);
}

static void a_locked_clock_acts_as_the_limit_it_amounts_to(void **state)
{
    (void)state;
    const struct vgpu_model model = vgpu_stage_model(0);
    const struct vgpu_load job = measured_job();
    struct vgpu_point free_point;
    struct vgpu_point point;
    vgpu_curve_point(&free_point, &model, &job, 500.0, 2000e6);
    /* The job draws 400 W at 2 GHz: an intensity of 3/4. At 1.8 GHz: 100 + 300 * 0.729 = 318.7 W,
     * which it was measured to draw at a limit of 300 + 100 * 28.7 / 80 W. */
    vgpu_curve_point(&point, &model, &job, 500.0, 1800e6);
    check_close(point.clock_hz, 1800e6, 0.0);
    check_close(point.power_w, 318.7, 1e-12);
    check_close(point.speed, 0.8 + 0.15 * 28.7 / 80.0, 1e-12);
    double last_speed = free_point.speed;
    double last_w = free_point.power_w;
    for (size_t i = model.clock_count - 1; i-- > 0;) {
        vgpu_curve_point(&point, &model, &job, 500.0, model.clocks_hz[i]);
        assert_true(point.speed < last_speed && point.power_w < last_w);
        assert_true(point.speed > 0.0);
        last_speed = point.speed;
        last_w = point.power_w;
    }
}

static void a_limit_below_the_curve_is_obeyed(void **state)
{
    (void)state;
    const struct vgpu_model model = vgpu_stage_model(0);
    const struct vgpu_load job = measured_job();
    struct vgpu_point point;
    vgpu_curve_point(&point, &model, &job, 150.0, 2000e6);
    assert_true(point.power_w <= 150.0);
    assert_true(point.speed < job.curve_speed[0]);
}

static void a_curve_that_bends_back_by_noise_is_read_from_its_high_end(void **state)
{
    (void)state;
    const struct vgpu_model model = vgpu_stage_model(0);
    struct vgpu_load job = measured_job();
    job.curve_power_w[2] = 405; /* above what the largest limit gave */
    struct vgpu_point point;
    vgpu_curve_point(&point, &model, &job, 500.0, 2000e6);
    check_close(point.speed, 1.0, 1e-12);
    check_close(point.power_w, 400.0, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_follows_the_closed_form),
        cmocka_unit_test(a_job_costs_least_energy_at_a_clock_between_the_ends),
        cmocka_unit_test(the_clock_for_a_limit_is_the_largest_step_that_fits),
        cmocka_unit_test(the_nearest_step_is_found_on_both_sides_and_beyond_the_ends),
        cmocka_unit_test(a_measured_job_follows_its_curve_by_limit),
        cmocka_unit_test(a_locked_clock_acts_as_the_limit_it_amounts_to),
        cmocka_unit_test(a_limit_below_the_curve_is_obeyed),
        cmocka_unit_test(a_curve_that_bends_back_by_noise_is_read_from_its_high_end),
    };
    return run_tests(tests);
}
