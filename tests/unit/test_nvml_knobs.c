/* SPDX-License-Identifier: MIT
 *
 * What can be set on an NVIDIA GPU, found out by reading.
 */
#include "device/nvml.h"

#include "support/nvml_found.h"

static void knobs_have_ranges_and_levels(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, "0");
    const struct wg_knob_info *knobs = device_of(&found, 0)->info.knobs;
    const struct wg_knob_info *limit = &knobs[WG_KNOB_POWER_LIMIT];
    assert_true(limit->is_present && limit->is_writable);
    check_close(limit->min, 200, 1e-12);
    check_close(limit->max, 700, 1e-12);
    check_close(limit->preset, 700, 1e-12);
    check_close(limit->current, 600, 1e-12);
    const struct wg_knob_info *clock = &knobs[WG_KNOB_GPU_CLOCK];
    assert_true(clock->is_present && clock->is_writable);
    assert_int_equal(clock->level_count, 3);
    check_close(clock->levels[0], 210e6, 1e-12);
    check_close(clock->levels[1], 1965e6, 1e-12);
    check_close(clock->levels[2], 1980e6, 1e-12);
    check_close(clock->step, 15e6, 1e-12);
    assert_true(isnan(clock->current)); /* NVML cannot read a lock */
    const struct wg_knob_info *memory = &knobs[WG_KNOB_MEMORY_CLOCK];
    assert_int_equal(memory->level_count, 2);
    check_close(memory->levels[0], 1593e6, 1e-12);
    assert_true(isnan(memory->current) && isnan(memory->preset));
    assert_false(knobs[WG_KNOB_CPU_CLOCK].is_present);
    found_end(&found);
}

/* Field report 28. */
static void a_limit_without_a_range_is_no_knob(void **state)
{
    (void)state;
    fake_reset();
    fake.gpus[0].min_mw = fake.gpus[0].max_mw = 290000;
    fake.gpus[0].memory_clock_count = 1;
    struct found found;
    found_probe(&found, "0");
    const struct wg_knob_info *knobs = device_of(&found, 0)->info.knobs;
    assert_false(knobs[WG_KNOB_POWER_LIMIT].is_present);
    assert_string_equal(knobs[WG_KNOB_POWER_LIMIT].why_not, "the only power limit is 290 W");
    assert_false(knobs[WG_KNOB_MEMORY_CLOCK].is_present);
    expect_text(knobs[WG_KNOB_MEMORY_CLOCK].why_not, "the only memory clock is 2619 MHz");
    assert_true(knobs[WG_KNOB_GPU_CLOCK].is_present);
    found_end(&found);
}

/* Field report 30. */
static void limits_that_are_sentinels_are_no_knob(void **state)
{
    (void)state;
    fake_reset();
    fake.gpus[0].min_mw = 0;
    fake.gpus[0].max_mw = UINT32_MAX;
    struct found found;
    found_probe(&found, "0");
    const struct wg_knob_info *limit = &device_of(&found, 0)->info.knobs[WG_KNOB_POWER_LIMIT];
    assert_false(limit->is_present);
    expect_text(limit->why_not, "is no range");
    found_end(&found);
}

static void clocks_that_are_sentinels_are_no_levels(void **state)
{
    (void)state;
    fake_reset();
    fake.gpus[0].graphics_clocks[0] = UINT32_MAX;
    fake.gpus[0].graphics_clocks[1] = 0;
    fake.gpus[0].memory_clocks[0] = fake.gpus[0].memory_clocks[1] = UINT32_MAX;
    struct found found;
    found_probe(&found, "0");
    const struct wg_knob_info *knobs = device_of(&found, 0)->info.knobs;
    assert_false(knobs[WG_KNOB_MEMORY_CLOCK].is_present);
    expect_text(knobs[WG_KNOB_MEMORY_CLOCK].why_not, "an empty list");
    found_end(&found);

    fake_reset();
    fake.gpus[0].graphics_clocks[0] = UINT32_MAX;
    found_probe(&found, "0");
    const struct wg_knob_info *knob = &device_of(&found, 0)->info.knobs[WG_KNOB_GPU_CLOCK];
    assert_true(knob->is_present);
    assert_int_equal(knob->level_count, 2);
    check_close(knob->max, 1965e6, 1e-12);
    found_end(&found);
}

static void without_the_capability_nothing_is_writable(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_begin(&found);
    tree_set(&found.tree, "/proc/self/status", "CapEff:\t00000000a80425fb\n"); /* a container's */
    found_open(&found, "0");
    struct wg_device *device = device_of(&found, 0);
    assert_int_equal(device->ops->probe(device, NULL), WG_OK);
    const struct wg_knob_info *limit = &device->info.knobs[WG_KNOB_POWER_LIMIT];
    assert_true(limit->is_present);
    assert_false(limit->is_writable);
    expect_text(limit->why_not, "CAP_SYS_ADMIN");
    expect_text(limit->remedy, "run as root");
    found_end(&found);
}

/* Field report 71: nothing depends on the calls that R590 has given up, and code 26 of others is
 * "not supported". */
static void deprecated_calls_are_missing_capabilities(void **state)
{
    (void)state;
    fake_reset();
    fake.gpus[0].codes[FAKE_memory_clocks] = NVML_E_DEPRECATED;
    fake.gpus[0].codes[FAKE_temperature_v] = NVML_E_DEPRECATED;
    struct found found;
    found_probe(&found, "0");
    const struct wg_device_info *info = &device_of(&found, 0)->info;
    expect_text(info->knobs[WG_KNOB_GPU_CLOCK].why_not, "error 26");
    assert_true(info->meters[WG_METRIC_TEMPERATURE_C].is_present);
    assert_string_equal(info->meters[WG_METRIC_TEMPERATURE_C].source, "nvmlDeviceGetTemperature");
    found_end(&found);
}

static void old_gpus_cannot_lock_clocks(void **state)
{
    (void)state;
    static const struct {
        unsigned architecture;
        bool has_gpu_lock, has_memory_lock;
    } cases[] = {{NVML_ARCH_PASCAL, false, false},
                 {NVML_ARCH_VOLTA, true, false},
                 {NVML_ARCH_TURING, true, false},
                 {NVML_ARCH_AMPERE, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_reset();
        fake.gpus[0].architecture = cases[i].architecture;
        struct found found;
        found_probe(&found, "0");
        const struct wg_knob_info *knobs = device_of(&found, 0)->info.knobs;
        assert_int_equal(knobs[WG_KNOB_GPU_CLOCK].is_present, cases[i].has_gpu_lock);
        assert_int_equal(knobs[WG_KNOB_MEMORY_CLOCK].is_present, cases[i].has_memory_lock);
        found_end(&found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knobs_have_ranges_and_levels),
        cmocka_unit_test(a_limit_without_a_range_is_no_knob),
        cmocka_unit_test(limits_that_are_sentinels_are_no_knob),
        cmocka_unit_test(clocks_that_are_sentinels_are_no_levels),
        cmocka_unit_test(without_the_capability_nothing_is_writable),
        cmocka_unit_test(deprecated_calls_are_missing_capabilities),
        cmocka_unit_test(old_gpus_cannot_lock_clocks),
    };
    return run_tests(tests);
}
