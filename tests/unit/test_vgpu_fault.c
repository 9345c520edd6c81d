/* SPDX-License-Identifier: MIT
 *
 * Faults: when they act, on what, for how long, and what those that change the GPU leave behind.
 */
#include "vgpu/state.h"

#include "base/clock.h"
#include "support/check.h"
#include "support/vgpu.h"

static void add(struct vgpu_machine *machine, struct vgpu_fault fault)
{
    struct wg_error err = {0};
    if (vgpu_fault_add(machine, &fault, &err) != WG_OK)
        fail_msg("%s", err.text);
}

static bool acts(struct vgpu_machine *machine, int gpu, const char *function)
{
    struct vgpu_fault fault;
    return vgpu_fault_find(machine, gpu, function, &fault);
}

static void without_faults_nothing_is_found(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    assert_false(acts(stage.machine, 0, "nvmlDeviceGetName"));
    vgpu_stage_close(&stage);
}

static void a_fault_acts_from_its_call_on_and_for_so_many(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 2);
    add(stage.machine, (struct vgpu_fault){.kind = VGPU_FAULT_ERROR,
                                           .gpu = 0,
                                           .function = "nvmlDeviceGetName",
                                           .from_call = 3,
                                           .calls = 2,
                                           .code = 7});
    const bool expected[] = {false, false, true, true, false, false};
    for (size_t i = 0; i < 6; i++) {
        assert_false(acts(stage.machine, 1, "nvmlDeviceGetName")); /* calls that do not count */
        assert_false(acts(stage.machine, 0, "nvmlDeviceGetUUID"));
        assert_false(acts(stage.machine, -1, "nvmlDeviceGetName"));
        assert_int_equal(acts(stage.machine, 0, "nvmlDeviceGetName"), expected[i]);
    }
    vgpu_stage_close(&stage);
}

static void what_was_set_is_found_whole(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    add(stage.machine, (struct vgpu_fault){.kind = VGPU_FAULT_VALUE, .gpu = -1, .value = -1.5});
    struct vgpu_fault found;
    assert_true(vgpu_fault_find(stage.machine, -1, "nvmlDeviceGetCount_v2", &found));
    assert_int_equal(found.kind, VGPU_FAULT_VALUE);
    check_close(found.value, -1.5, 0.0);
    assert_true(acts(stage.machine, 0, "nvmlDeviceGetName"));
    /* A part of a call is found only by its own name. */
    assert_false(acts(stage.machine, 0, "nvmlDeviceGetFieldValues:186"));
    vgpu_fault_clear(stage.machine);
    assert_false(acts(stage.machine, 0, "nvmlDeviceGetName"));
    vgpu_stage_close(&stage);
}

static void two_faults_on_one_call_are_counted_apart(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    add(stage.machine,
        (struct vgpu_fault){.kind = VGPU_FAULT_ERROR, .gpu = 0, .calls = 1, .code = 3});
    add(stage.machine,
        (struct vgpu_fault){.kind = VGPU_FAULT_ERROR, .gpu = 0, .from_call = 2, .code = 4});
    struct vgpu_fault found;
    assert_true(vgpu_fault_find(stage.machine, 0, "f", &found));
    assert_int_equal(found.code, 3);
    assert_true(vgpu_fault_find(stage.machine, 0, "f", &found));
    assert_int_equal(found.code, 4);
    vgpu_stage_close(&stage);
}

static void the_table_has_an_end_and_bad_faults_are_refused(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    const struct vgpu_fault fault = {.kind = VGPU_FAULT_DELAY, .gpu = 0, .value = 0.0};
    for (int i = 0; i < VGPU_FAULTS_MAX; i++)
        add(stage.machine, fault);
    struct wg_error err = {0};
    assert_int_equal(vgpu_fault_add(stage.machine, &fault, &err), WG_ESTATE);
    vgpu_fault_clear(stage.machine);
    add(stage.machine, fault);
    const struct vgpu_fault no_gpu = {.kind = VGPU_FAULT_DELAY, .gpu = 1};
    assert_int_equal(vgpu_fault_add(stage.machine, &no_gpu, &err), WG_EINVAL);
    assert_string_equal(err.text, "the virtual machine has 1 GPU, none is number 1");
    const struct vgpu_fault no_kind = {.kind = VGPU_FAULT_KIND_COUNT, .gpu = 0};
    assert_int_equal(vgpu_fault_add(stage.machine, &no_kind, &err), WG_EINVAL);
    vgpu_stage_close(&stage);
}

static void a_reset_counter_begins_at_zero_again(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 2);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    vgpu_stage_load(&stage, 0, 1.0, 1.0);
    vgpu_stage_pass(&stage, 0, 1.0);
    assert_true(vgpu_counter_mj(gpu, gpu->t_ns) > 500000);
    const uint64_t other_mj = vgpu_counter_mj(&stage.machine->gpus[1], stage.machine->gpus[1].t_ns);
    const double energy_j = gpu->energy_j;
    add(stage.machine, (struct vgpu_fault){.kind = VGPU_FAULT_RESET, .gpu = 0});
    assert_int_equal(vgpu_counter_mj(gpu, gpu->t_ns), 0);
    vgpu_stage_pass(&stage, 0, 1.0);
    check_close_abs((double)vgpu_counter_mj(gpu, gpu->t_ns), 500000.0, 0.0, 1.0);
    check_close(gpu->energy_j - energy_j, 500.0, 1e-9); /* the true energy goes on */
    assert_int_equal(vgpu_counter_mj(&stage.machine->gpus[1], stage.machine->gpus[1].t_ns),
                     other_mj);
    assert_int_equal(stage.machine->fault_count, 0); /* nothing is left to be cleared */
    vgpu_stage_close(&stage);
}

static void a_reset_waits_for_its_call(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    add(stage.machine,
        (struct vgpu_fault){.kind = VGPU_FAULT_RESET, .gpu = 0, .function = "f", .from_call = 2});
    assert_true(vgpu_counter_mj(gpu, gpu->t_ns) > 0);
    assert_false(acts(stage.machine, 0, "f"));
    assert_true(vgpu_counter_mj(gpu, gpu->t_ns) > 0);
    assert_false(acts(stage.machine, 0, "f"));
    assert_int_equal(vgpu_counter_mj(gpu, gpu->t_ns), 0);
    vgpu_stage_close(&stage);
}

static void a_stuck_counter_stands_until_it_is_cleared(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    const uint64_t before_mj = vgpu_counter_mj(gpu, gpu->t_ns);
    add(stage.machine, (struct vgpu_fault){.kind = VGPU_FAULT_STUCK, .gpu = 0});
    vgpu_stage_pass(&stage, 0, 2.0);
    assert_int_equal(vgpu_counter_mj(gpu, gpu->t_ns), before_mj);
    vgpu_fault_clear(stage.machine);
    check_close_abs((double)(vgpu_counter_mj(gpu, gpu->t_ns) - before_mj), 200000.0, 0.0, 1.0);
    vgpu_stage_close(&stage);
}

/* Field reports 46, 48. */
static void settings_revert_as_when_the_driver_is_reloaded(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    vgpu_set_limit(gpu, 200.0);
    vgpu_set_clock_lock(gpu, 0.0, 500e6);
    vgpu_set_memory_clock_lock(gpu, 0.0, 800e6);
    add(stage.machine, (struct vgpu_fault){.kind = VGPU_FAULT_REVERT, .gpu = -1});
    check_close(gpu->limit_w, 500.0, 0.0);
    check_close(gpu->lock_max_hz, 0.0, 0.0);
    check_close(gpu->memory_lock_max_hz, 0.0, 0.0);
    check_close(gpu->memory_clock_hz, 1600e6, 0.0);
    vgpu_stage_close(&stage);
}

/* Field report 12. */
static void a_cap_from_elsewhere_holds_until_it_is_cleared(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    vgpu_stage_load(&stage, 0, 1.0, 1.0);
    add(stage.machine, (struct vgpu_fault){.kind = VGPU_FAULT_CAP, .gpu = 0, .value = 220.0});
    check_close(vgpu_enforced_limit_w(gpu), 220.0, 0.0);
    check_close(gpu->limit_w, 500.0, 0.0);
    assert_true(gpu->power_w <= 220.0);
    vgpu_fault_clear(stage.machine);
    check_close(gpu->power_w, 500.0, 1e-12);
    vgpu_stage_close(&stage);
}

static void a_forced_temperature_halves_the_clock_and_says_so(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    vgpu_stage_load(&stage, 0, 1.0, 1.0);
    add(stage.machine,
        (struct vgpu_fault){.kind = VGPU_FAULT_TEMPERATURE, .gpu = 0, .value = 95.0});
    check_close(gpu->clock_hz, 1000e6, 0.0);
    assert_int_equal(gpu->reasons, 0x48); /* hardware slowdown, hardware thermal */
    vgpu_stage_pass(&stage, 0, 2.0);
    check_close(gpu->temperature_c, 95.0, 0.0);
    check_close(gpu->throttled_hw_thermal_s, 2.0, 1e-9);
    vgpu_fault_clear(stage.machine);
    add(stage.machine,
        (struct vgpu_fault){.kind = VGPU_FAULT_TEMPERATURE, .gpu = 0, .value = 80.0});
    check_close(gpu->clock_hz, 2000e6, 0.0); /* warm is not hot */
    vgpu_stage_close(&stage);
}

static void functions_have_names_and_counters(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    unsigned count = 0;
    while (vgpu_function_name(count) != NULL)
        count++;
    assert_int_equal(count, 436);
    assert_int_equal(vgpu_calls(stage.machine, 0, "nvmlDeviceGetName"), 0);
    assert_int_equal(vgpu_calls(stage.machine, -1, "noSuchFunction"), 0);
    vgpu_stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_faults_nothing_is_found),
        cmocka_unit_test(a_fault_acts_from_its_call_on_and_for_so_many),
        cmocka_unit_test(what_was_set_is_found_whole),
        cmocka_unit_test(two_faults_on_one_call_are_counted_apart),
        cmocka_unit_test(the_table_has_an_end_and_bad_faults_are_refused),
        cmocka_unit_test(a_reset_counter_begins_at_zero_again),
        cmocka_unit_test(a_reset_waits_for_its_call),
        cmocka_unit_test(a_stuck_counter_stands_until_it_is_cleared),
        cmocka_unit_test(settings_revert_as_when_the_driver_is_reloaded),
        cmocka_unit_test(a_cap_from_elsewhere_holds_until_it_is_cleared),
        cmocka_unit_test(a_forced_temperature_halves_the_clock_and_says_so),
        cmocka_unit_test(functions_have_names_and_counters),
    };
    return run_tests(tests);
}
