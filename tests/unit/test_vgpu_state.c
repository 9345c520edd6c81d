/* SPDX-License-Identifier: MIT
 *
 * The virtual machine: energy, meters, limits and locks by hand-moved time; several processes at
 * once; a file that is not one.
 */
#include "vgpu/state.h"

#include "device/nvml_abi.h"
#include "support/check.h"
#include "support/vgpu.h"

static uint64_t after(const struct vgpu_stage *stage, double seconds)
{
    return stage->begin_ns + (uint64_t)llround(seconds * 1e9);
}

/* 500 W for `on_s`, 100 W for `off_s`, `periods` times. */
static void run_square_wave(struct vgpu_stage *stage, double on_s, double off_s, int periods)
{
    for (int i = 0; i < periods; i++) {
        vgpu_stage_load(stage, 0, 1.0, 1.0);
        vgpu_stage_pass(stage, 0, on_s);
        vgpu_stage_load(stage, 0, 0.0, 0.0);
        vgpu_stage_pass(stage, 0, off_s);
    }
}

/* The true energy of that wave up to `t_s`. */
static double wave_energy_j(double on_s, double off_s, double t_s)
{
    const double period_s = on_s + off_s;
    const double whole = floor(t_s / period_s + 1e-12);
    const double rest_s = fmax(0.0, t_s - whole * period_s);
    return whole * (500.0 * on_s + 100.0 * off_s) + 500.0 * fmin(rest_s, on_s) +
           100.0 * fmax(0.0, rest_s - on_s);
}

/* Before the wave the GPU idled. */
static double wave_mean_w(double on_s, double off_s, double from_s, double to_s)
{
    const double before_s = fmax(0.0, -from_s);
    return (wave_energy_j(on_s, off_s, to_s) - wave_energy_j(on_s, off_s, fmax(0.0, from_s)) +
            100.0 * before_s) /
           (to_s - from_s);
}

static void a_constant_load_gives_power_times_time(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    const double before_j = vgpu_true_energy_j(gpu, after(&stage, 0.0));
    vgpu_stage_load(&stage, 0, 1.0, 1.0);
    check_close(vgpu_true_energy_j(gpu, after(&stage, 3.0)) - before_j, 1500.0, 1e-9);
    check_close(vgpu_true_energy_j(gpu, after(&stage, 1.5)) - before_j, 750.0, 1e-9);
    vgpu_stage_close(&stage);
}

static void a_year_unseen_is_one_step(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    const double before_j = vgpu_true_energy_j(gpu, after(&stage, 0.0));
    const uint64_t segments = gpu->segment_count;
    check_close(vgpu_true_energy_j(gpu, after(&stage, 365.0 * 86400)) - before_j,
                100.0 * 365 * 86400, 1e-9);
    assert_int_equal(gpu->segment_count, segments);
    vgpu_stage_close(&stage);
}

static void time_never_runs_back(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    vgpu_stage_pass(&stage, 0, 1.0);
    const double energy_j = gpu->energy_j;
    vgpu_lock(gpu);
    vgpu_advance(gpu, stage.begin_ns);
    vgpu_unlock(gpu);
    check_close(gpu->energy_j, energy_j, 0.0);
    vgpu_stage_close(&stage);
}

static void sensors_show_the_exact_mean_of_their_window_at_their_tick(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    const struct vgpu_model *model = &gpu->model;
    run_square_wave(&stage, 0.013, 0.024, 100); /* 3.7 s, out of step with every tick */
    for (int k = 0; k < 36; k++) {
        const double tick_s = 0.1 * k;
        const uint64_t asked_ns = after(&stage, tick_s + 0.0999); /* just before the next */
        if (k > 0)
            check_close(vgpu_sensor_w(gpu, &model->instant, asked_ns),
                        wave_mean_w(0.013, 0.024, tick_s - 0.025, tick_s), 1e-6);
        check_close(vgpu_sensor_w(gpu, &model->average, asked_ns),
                    wave_mean_w(0.013, 0.024, tick_s - 1.0, tick_s), 1e-6);
    }
    vgpu_stage_close(&stage);
}

static void a_sensor_without_a_window_shows_the_power_at_its_tick(void **state)
{
    (void)state;
    struct vgpu_model model = vgpu_stage_model(0);
    model.instant.window_s = 0.0;
    model.instant.gain = 1.05;
    model.instant.offset_w = -2.0;
    struct vgpu_stage stage;
    vgpu_stage_open_models(&stage, &model, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    vgpu_stage_pass(&stage, 0, 0.05);
    vgpu_stage_load(&stage, 0, 1.0, 1.0);
    vgpu_stage_pass(&stage, 0, 1.0);
    check_close(vgpu_sensor_w(gpu, &gpu->model.instant, after(&stage, 0.09)), 103.0, 1e-9);
    check_close(vgpu_sensor_w(gpu, &gpu->model.instant, after(&stage, 0.11)), 523.0, 1e-9);
    vgpu_stage_close(&stage);
}

static void the_memory_sensor_shows_the_memorys_part(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    check_close(vgpu_sensor_w(gpu, &gpu->model.memory, after(&stage, 0.0)), 20.0, 1e-9);
    vgpu_stage_load(&stage, 0, 0.5, 1.0);
    vgpu_stage_pass(&stage, 0, 2.0);
    check_close(vgpu_sensor_w(gpu, &gpu->model.memory, after(&stage, 2.0)), 40.0, 1e-9);
    vgpu_stage_close(&stage);
}

static void the_counter_is_the_true_energy_in_whole_millijoules_at_its_tick(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    const double before_j = vgpu_true_energy_j(gpu, after(&stage, 0.0));
    run_square_wave(&stage, 0.013, 0.024, 30);
    uint64_t last_mj = 0;
    for (int ms = 0; ms < 1000; ms++) {
        const uint64_t counted_mj = vgpu_counter_mj(gpu, after(&stage, 0.001 * ms));
        const int tick = ms / 20;
        const double tick_s = 0.02 * tick;
        check_close_abs(
            (double)counted_mj,
            1e3 * (before_j - gpu->counter_base_j + wave_energy_j(0.013, 0.024, tick_s)) - 0.5, 0.0,
            0.51);
        assert_true(counted_mj >= last_mj);
        last_mj = counted_mj;
    }
    vgpu_stage_close(&stage);
}

/* A counter that stood still until its first tick made the first window of a client 1 to 3 % too
 * small. */
static void a_fresh_machine_counts_and_averages_from_its_first_moment(void **state)
{
    (void)state;
    const struct vgpu_model models[2] = {vgpu_stage_model(0), vgpu_stage_model(1)};
    struct vgpu_stage stage;
    vgpu_stage_open_now(&stage, models, 2);
    for (size_t i = 0; i < 2; i++) {
        struct vgpu_gpu *gpu = &stage.machine->gpus[i];
        for (int ms = 0; ms < 45; ms++) { /* more than two ticks, wherever they fall */
            const uint64_t begin_ns = after(&stage, 0.001 * ms);
            const uint64_t counted_mj =
                vgpu_counter_mj(gpu, begin_ns + 1000000000U) - vgpu_counter_mj(gpu, begin_ns);
            check_close_abs((double)counted_mj, 100e3, 0.0, 1.01);
            check_close(vgpu_sensor_w(gpu, &gpu->model.instant, begin_ns), 100.0, 1e-9);
            check_close(vgpu_sensor_w(gpu, &gpu->model.average, begin_ns), 100.0, 1e-9);
        }
        assert_true(vgpu_counter_mj(gpu, stage.begin_ns) > UINT32_MAX);
        check_close_abs(vgpu_true_energy_j(gpu, stage.begin_ns), 0.0, 0.0, 1e-12);
    }
    const uint64_t first_mj = vgpu_counter_mj(&stage.machine->gpus[0], stage.begin_ns);
    assert_true(first_mj != vgpu_counter_mj(&stage.machine->gpus[1], stage.begin_ns));
    vgpu_stage_close(&stage);
}

static void the_ring_keeps_the_recent_past_when_it_has_wrapped(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    const double before_j = vgpu_true_energy_j(gpu, after(&stage, 0.0));
    run_square_wave(&stage, 0.001, 0.001, 6000); /* 12 s, 12,000 segments */
    assert_true(gpu->segment_count > VGPU_SEGMENTS_MAX);
    check_close(vgpu_true_energy_j(gpu, after(&stage, 12.0)) - before_j, 12.0 * 300.0, 1e-9);
    check_close(vgpu_true_energy_j(gpu, after(&stage, 8.0005)) - before_j, 8.0 * 300.0 + 0.25,
                1e-9);
    check_close(vgpu_sensor_w(gpu, &gpu->model.average, after(&stage, 12.0)), 300.0, 1e-6);
    vgpu_stage_close(&stage);
}

static void set_limit_at_hand(struct vgpu_gpu *gpu, double limit_w)
{
    vgpu_lock(gpu);
    gpu->limit_w = limit_w;
    vgpu_settle(gpu);
    vgpu_unlock(gpu);
}

static void a_limit_binds_within_one_step_of_the_clock(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    vgpu_stage_load(&stage, 0, 1.0, 1.0);
    assert_int_equal(gpu->reasons, 0);
    for (int n = 0; n < 50; n++) {
        const double limit_w = 150.0 + 7.0 * n;
        set_limit_at_hand(gpu, limit_w);
        assert_true(gpu->power_w <= limit_w);
        assert_true(vgpu_power_w(&gpu->model, gpu->clock_hz + 100e6, 1.0, 1.0) > limit_w);
        assert_int_equal(gpu->reasons, NVML_REASON_POWER_LIMIT);
    }
    set_limit_at_hand(gpu, 250.0);
    const double throttled_s = gpu->throttled_power_s;
    vgpu_stage_pass(&stage, 0, 2.5);
    check_close(gpu->throttled_power_s - throttled_s, 2.5, 1e-9);
    set_limit_at_hand(gpu, 500.0);
    vgpu_stage_pass(&stage, 0, 2.5);
    check_close(gpu->throttled_power_s - throttled_s, 2.5, 1e-9);
    vgpu_stage_close(&stage);
}

/* Field report 12. */
static void a_lower_limit_from_elsewhere_is_the_one_that_holds(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    vgpu_stage_load(&stage, 0, 1.0, 1.0);
    vgpu_lock(gpu);
    gpu->limit_w = 300.0;
    gpu->external_limit_w = 200.0;
    vgpu_settle(gpu);
    vgpu_unlock(gpu);
    check_close(vgpu_enforced_limit_w(gpu), 200.0, 0.0);
    assert_true(gpu->power_w <= 200.0);
    vgpu_stage_close(&stage);
}

static void a_clock_lock_holds_the_nearest_step_while_there_is_work(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    vgpu_set_clock_lock(gpu, 0.0, 1249e6);
    check_close(gpu->clock_hz, 300e6, 0.0);
    assert_int_equal(gpu->reasons, NVML_REASON_IDLE);
    vgpu_stage_load(&stage, 0, 1.0, 1.0);
    check_close(gpu->clock_hz, 1200e6, 0.0);
    check_close(gpu->power_w, 100.0 + 400.0 * 0.216, 1e-12);
    assert_int_equal(gpu->reasons, NVML_REASON_CLOCK_SETTING);
    set_limit_at_hand(gpu, 150.0);
    check_close(gpu->clock_hz, 1000e6, 0.0);
    assert_int_equal(gpu->reasons, NVML_REASON_POWER_LIMIT);
    vgpu_set_clock_lock(gpu, 0.0, 0.0);
    set_limit_at_hand(gpu, 500.0);
    check_close(gpu->clock_hz, 2000e6, 0.0);
    assert_int_equal(gpu->reasons, 0);
    vgpu_stage_close(&stage);
}

static void a_slower_memory_saves_its_dynamic_power_and_slows_its_share_of_the_work(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    vgpu_stage_load(&stage, 0, 1.0, 1.0);
    const struct vgpu_load load = {.utilization = 1.0, .intensity = 1.0};
    check_close(vgpu_speed(gpu, &load), 1.0, 1e-12);
    vgpu_set_memory_clock_lock(gpu, 0.0, 810e6);
    check_close(gpu->memory_clock_hz, 800e6, 0.0);
    check_close(gpu->power_w, 480.0, 1e-12);
    check_close(vgpu_speed(gpu, &load), 1.0 / 1.1,
                1e-12); /* a tenth of the time takes twice as long */
    vgpu_set_memory_clock_lock(gpu, 0.0, 0.0);
    check_close(gpu->power_w, 500.0, 1e-12);
    vgpu_set_clock_lock(gpu, 0.0, 1000e6);
    check_close(vgpu_speed(gpu, &load), 1.0 / (0.9 * 2.0 + 0.1), 1e-12);
    vgpu_stage_close(&stage);
}

static void loads_add_up_to_a_full_gpu_and_then_share_it(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    struct vgpu_load other = {.pid = (uint32_t)getppid(), .utilization = 0.25, .intensity = 0.5};
    vgpu_stage_load(&stage, 0, 0.5, 1.0);
    vgpu_lock(gpu);
    assert_int_equal(vgpu_put_load(gpu, &other, NULL), WG_OK);
    check_close(gpu->utilization, 0.75, 1e-12);
    check_close(gpu->power_w, 100.0 + 400.0 * (0.5 + 0.125), 1e-12);
    other.utilization = 1.0;
    assert_int_equal(vgpu_put_load(gpu, &other, NULL), WG_OK);
    vgpu_unlock(gpu);
    check_close(gpu->utilization, 1.0, 1e-12);
    check_close(gpu->power_w, 100.0 + 400.0 * (0.5 + 0.5) / 1.5, 1e-12);
    check_close(vgpu_speed(gpu, &other), 1.0 / 1.5, 1e-12);
    vgpu_stage_close(&stage);
}

static void a_measured_job_and_a_plain_load_stay_below_the_limit_together(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    const struct vgpu_load job = {.pid = (uint32_t)getppid(),
                                  .utilization = 0.5,
                                  .curve_count = 2,
                                  .curve_limit_w = {200, 500},
                                  .curve_power_w = {190, 460},
                                  .curve_speed = {0.5, 1.0}};
    vgpu_lock(gpu);
    assert_int_equal(vgpu_put_load(gpu, &job, NULL), WG_OK);
    vgpu_unlock(gpu);
    check_close(gpu->power_w, 100.0 + 0.5 * 360.0, 1e-12);
    vgpu_stage_load(&stage, 0, 0.5, 1.0);
    set_limit_at_hand(gpu, 300.0);
    assert_true(gpu->power_w <= 300.0);
    check_close(vgpu_speed(gpu, &job), 0.5 + 0.5 * 100.0 / 300.0, 1e-12);
    vgpu_stage_close(&stage);
}

static void the_die_warms_as_an_exponential_and_is_held_at_its_slowdown(void **state)
{
    (void)state;
    struct vgpu_model model = vgpu_stage_model(0);
    model.slowdown_c = 60.0; /* can lose 350 W */
    struct vgpu_stage stage;
    vgpu_stage_open_models(&stage, &model, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    check_close(gpu->temperature_c, 35.0, 1e-9);
    vgpu_stage_load(&stage, 0, 1.0, 1.0);
    vgpu_stage_pass(&stage, 0, 5.0);
    check_close(gpu->temperature_c, 75.0 - 40.0 * exp(-0.5), 1e-9);
    assert_int_equal(gpu->reasons, 0);
    /* It is hot after 10 s * ln(40 / 15) = 9.81 s. */
    const double hot_s = 10.0 * log(40.0 / 15.0);
    vgpu_stage_pass(&stage, 0, 15.0);
    assert_int_equal(gpu->reasons, NVML_REASON_SW_THERMAL);
    check_close(gpu->throttled_thermal_s, 20.0 - hot_s, 1e-6);
    assert_true(gpu->power_w <= 350.0);
    assert_true(vgpu_power_w(&model, gpu->clock_hz + 100e6, 1.0, 1.0) > 350.0);
    check_close(vgpu_true_energy_j(gpu, gpu->t_ns) - vgpu_true_energy_j(gpu, after(&stage, 0.0)),
                500.0 * hot_s + gpu->power_w * (20.0 - hot_s), 1e-9);
    assert_true(gpu->temperature_c <= 60.0);
    /* Less work ends it. */
    vgpu_stage_load(&stage, 0, 0.5, 1.0);
    assert_int_equal(gpu->reasons, 0);
    check_close(gpu->power_w, 300.0, 1e-12);
    vgpu_stage_close(&stage);
}

static void expect_no_machine(const struct vgpu_model *model, const char *part)
{
    struct scratch scratch;
    scratch_open(&scratch);
    struct vgpu_machine *machine = NULL;
    struct wg_error err = {0};
    assert_int_equal(
        vgpu_create(&machine, scratch_path(&scratch, "machine"), "test", model, 1, &err),
        WG_EINVAL);
    assert_null(machine);
    if (strstr(err.text, part) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, part);
    assert_int_equal(scratch_count(&scratch), 0);
    scratch_close(&scratch);
}

static void a_gpu_that_cannot_be_is_refused(void **state)
{
    (void)state;
    struct vgpu_model model = vgpu_stage_model(0);
    model.clock_count = 0;
    expect_no_machine(&model, "clocks must be positive and rise");
    model = vgpu_stage_model(0);
    model.clocks_hz[3] = model.clocks_hz[2];
    expect_no_machine(&model, "clocks must be positive and rise");
    model = vgpu_stage_model(0);
    model.memory_clock_count = VGPU_MEMORY_CLOCKS_MAX + 1;
    expect_no_machine(&model, "memory clocks");
    model = vgpu_stage_model(0);
    model.load_w = 50.0;
    expect_no_machine(&model, "at least as much under load");
    model = vgpu_stage_model(0);
    model.limit_default_w = 501.0;
    expect_no_machine(&model, "limits");
    model = vgpu_stage_model(0);
    model.counter_period_s = 0.0;
    expect_no_machine(&model, "a meter needs a period");
    model = vgpu_stage_model(0);
    model.average.period_s = 0.0;
    expect_no_machine(&model, "a meter needs a period");
}

static void a_load_beyond_the_table_is_refused(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    vgpu_lock(gpu);
    struct wg_error err = {0};
    struct vgpu_load load = {.utilization = 0.1, .intensity = 1.0};
    for (uint32_t i = 0; i < VGPU_LOADS_MAX; i++) {
        load.pid = 1000000 + i;
        assert_int_equal(vgpu_put_load(gpu, &load, &err), WG_OK);
    }
    load.pid++;
    assert_int_equal(vgpu_put_load(gpu, &load, &err), WG_ESTATE);
    load.pid--;
    load.utilization = 0.0;
    assert_int_equal(vgpu_put_load(gpu, &load, &err), WG_OK); /* ends */
    load.pid++;
    load.utilization = 1.5;
    assert_int_equal(vgpu_put_load(gpu, &load, &err), WG_EINVAL);
    load.utilization = 1.0;
    assert_int_equal(vgpu_put_load(gpu, &load, &err), WG_OK);
    vgpu_unlock(gpu);
    vgpu_stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_load_gives_power_times_time),
        cmocka_unit_test(a_year_unseen_is_one_step),
        cmocka_unit_test(time_never_runs_back),
        cmocka_unit_test(sensors_show_the_exact_mean_of_their_window_at_their_tick),
        cmocka_unit_test(a_sensor_without_a_window_shows_the_power_at_its_tick),
        cmocka_unit_test(the_memory_sensor_shows_the_memorys_part),
        cmocka_unit_test(the_counter_is_the_true_energy_in_whole_millijoules_at_its_tick),
        cmocka_unit_test(a_fresh_machine_counts_and_averages_from_its_first_moment),
        cmocka_unit_test(the_ring_keeps_the_recent_past_when_it_has_wrapped),
        cmocka_unit_test(a_limit_binds_within_one_step_of_the_clock),
        cmocka_unit_test(a_lower_limit_from_elsewhere_is_the_one_that_holds),
        cmocka_unit_test(a_clock_lock_holds_the_nearest_step_while_there_is_work),
        cmocka_unit_test(a_slower_memory_saves_its_dynamic_power_and_slows_its_share_of_the_work),
        cmocka_unit_test(loads_add_up_to_a_full_gpu_and_then_share_it),
        cmocka_unit_test(a_measured_job_and_a_plain_load_stay_below_the_limit_together),
        cmocka_unit_test(the_die_warms_as_an_exponential_and_is_held_at_its_slowdown),
        cmocka_unit_test(a_gpu_that_cannot_be_is_refused),
        cmocka_unit_test(a_load_beyond_the_table_is_refused),
    };
    return run_tests(tests);
}
