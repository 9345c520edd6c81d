/* SPDX-License-Identifier: MIT
 *
 * Reading NVIDIA GPUs: what the probe plans, units, how many calls a look costs, blanks.
 */
#include "device/nvml.h"

#include "base/clock.h"
#include "support/nvml_found.h"

static void all_metrics_are_read_in_si_units(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, "0");
    struct wg_device *device = device_of(&found, 0);
    struct wg_sample sample;
    const uint64_t before_ns = wg__clock_ns();
    assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, NULL), WG_OK);
    const uint64_t after_ns = wg__clock_ns();
    static const struct {
        enum wg_metric metric;
        double value;
    } expected[] = {
        /* Field report 23: milliwatts and millijoules are divided once. */
        {WG_METRIC_POWER_W, 310.5},           {WG_METRIC_POWER_AVERAGE_W, 305.25},
        {WG_METRIC_MEMORY_POWER_W, 61.0},     {WG_METRIC_ENERGY_J, 123456.789},
        {WG_METRIC_CLOCK_HZ, 1755e6},         {WG_METRIC_MEMORY_CLOCK_HZ, 2619e6},
        {WG_METRIC_TEMPERATURE_C, 54},        {WG_METRIC_UTILIZATION, 0.87},
        {WG_METRIC_MEMORY_UTILIZATION, 0.40}, {WG_METRIC_MEMORY_USED_BYTES, 1e9},
        {WG_METRIC_POWER_LIMIT_W, 600},       {WG_METRIC_ENFORCED_POWER_LIMIT_W, 500},
        {WG_METRIC_THROTTLED_POWER_S, 2.5},   {WG_METRIC_THROTTLED_THERMAL_S, 0},
    };
    uint32_t present = 0;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(wg__sample_has(&sample, expected[i].metric));
        check_close(sample.values[expected[i].metric], expected[i].value, 1e-12);
        present |= 1u << expected[i].metric;
    }
    assert_int_equal(sample.present, present);
    assert_false(device->info.meters[WG_METRIC_MODULE_POWER_W].is_present);
    assert_true(sample.has_throttle);
    assert_int_equal(sample.throttle, WG_THROTTLE_POWER_LIMIT);
    /* Field report 4: the driver's wall clock does not matter. */
    assert_true(sample.t_ns >= before_ns && sample.t_ns <= after_ns);
    assert_true(sample.span_ns <= after_ns - before_ns);
    found_end(&found);
}

/* Field report 12: what was asked for and what holds are two numbers. */
static void meters_tell_their_source_and_sensor(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, "0");
    const struct wg_device_info *info = &device_of(&found, 0)->info;
    const struct wg_meter_info *power = &info->meters[WG_METRIC_POWER_W];
    assert_string_equal(power->source, "nvmlDeviceGetFieldValues(186)");
    check_close(power->update_period_s, 0.1, 1e-12);
    check_close(power->averaging_window_s, 0.025, 1e-12);
    check_close(power->resolution, 1e-3, 1e-12);
    check_close(info->meters[WG_METRIC_POWER_AVERAGE_W].averaging_window_s, 1, 1e-12);
    check_close(info->meters[WG_METRIC_ENERGY_J].update_period_s, 0.1, 1e-12);
    assert_string_equal(info->meters[WG_METRIC_MEMORY_POWER_W].source,
                        "nvmlDeviceGetFieldValues(185 of memory)");
    const struct wg_meter_info *module = &info->meters[WG_METRIC_MODULE_POWER_W];
    expect_text(module->why_not, "error 3: not supported");
    for (int i = 0; i < WG_METRIC_COUNT; i++) {
        assert_non_null(info->meters[i].source);
        assert_int_equal(info->meters[i].is_present, info->meters[i].why_not == NULL);
    }
    found_end(&found);
}

/* Field report 65: one batch, and then only what is wanted. */
static void a_look_costs_one_batch_and_what_is_wanted(void **state)
{
    (void)state;
    static const struct {
        uint32_t wanted;
        unsigned calls;
    } cases[] = {
        {BIT(POWER_W) | BIT(ENERGY_J) | BIT(MEMORY_POWER_W) | BIT(POWER_AVERAGE_W), 1},
        {BIT(POWER_W) | BIT(TEMPERATURE_C), 2},
        {BIT(UTILIZATION) | BIT(MEMORY_UTILIZATION), 1},
        {BIT(CLOCK_HZ), 2}, /* and the reasons */
        {BIT(THROTTLED_POWER_S), 2},
        {BIT(MODULE_POWER_W), 0}, /* that it has not */
        {UINT32_MAX, 7},
    };
    fake_reset();
    struct found found;
    found_probe(&found, "0");
    struct wg_device *device = device_of(&found, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const unsigned before = calls_of(&fake.gpus[0]);
        struct wg_sample sample;
        assert_int_equal(device->ops->read(device, cases[i].wanted, &sample, NULL), WG_OK);
        assert_int_equal(calls_of(&fake.gpus[0]) - before, cases[i].calls);
        assert_int_equal(sample.present & ~cases[i].wanted, 0);
    }
    /* Field reports 66 and 69: no process lists, no handles. */
    assert_int_equal(fake.gpus[0].calls[FAKE_compute_v3], 0);
    assert_int_equal(fake.gpus[0].calls[FAKE_graphics_v3], 0);
    assert_int_equal(fake.gpus[0].calls[FAKE_by_index], 1);
    found_end(&found);
}

static void a_look_allocates_nothing(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, "0");
    struct wg_device *device = device_of(&found, 0);
    struct wg_sample sample;
    wg__alloc_fail_from(0);
    assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, NULL), WG_OK);
    assert_int_equal(wg__alloc_count(), 0);
    found_end(&found);
}

/* An old driver has none of the newer calls. */
static void an_old_driver_is_read_by_single_calls(void **state)
{
    (void)state;
    fake_reset();
    static const char *const newer[] = {
        "nvmlDeviceGetFieldValues",  "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetTemperatureV", "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlInitWithFlags",         "nvmlDeviceGetArchitecture",
    };
    for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++)
        fake_remove_symbol(newer[i]);
    (void)snprintf(fake.driver, sizeof fake.driver, "418.226.00");
    fake.gpus[0].capability[0] = 7;
    struct found found;
    found_probe(&found, "0");
    struct wg_device *device = device_of(&found, 0);
    const struct wg_device_info *info = &device->info;
    assert_string_equal(info->architecture, "volta");
    struct wg_sample sample;
    assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, NULL), WG_OK);
    check_close(sample.values[WG_METRIC_POWER_W], 301, 1e-12);
    check_close(sample.values[WG_METRIC_ENERGY_J], 5000, 1e-12);
    check_close(sample.values[WG_METRIC_POWER_LIMIT_W], 600, 1e-12);
    check_close(sample.values[WG_METRIC_ENFORCED_POWER_LIMIT_W], 500, 1e-12);
    check_close(sample.values[WG_METRIC_TEMPERATURE_C], 54, 1e-12);
    check_close(sample.values[WG_METRIC_MEMORY_USED_BYTES], 1e9, 1e-12);
    assert_true(sample.has_throttle);
    assert_string_equal(info->meters[WG_METRIC_POWER_W].source, "nvmlDeviceGetPowerUsage");
    check_close(info->meters[WG_METRIC_POWER_W].averaging_window_s, 0.01, 1e-12);
    check_close(info->meters[WG_METRIC_ENERGY_J].update_period_s, 0.02, 1e-12);
    expect_text(info->meters[WG_METRIC_POWER_AVERAGE_W].why_not, "error 13");
    assert_non_null(info->meters[WG_METRIC_POWER_AVERAGE_W].remedy);
    assert_true(sample.t_ns != 0);
    found_end(&found);
}

static void the_usage_call_means_what_the_architecture_and_driver_say(void **state)
{
    (void)state;
    fake_reset();
    fake.gpus[0].architecture = NVML_ARCH_AMPERE;
    fake.gpus[0].capability[0] = 8;
    fake.gpus[0].capability[1] = 6;
    fake.gpus[0].field_count = 0;
    (void)snprintf(fake.driver, sizeof fake.driver, "530.30.02");
    struct found found;
    found_probe(&found, "0");
    check_close(device_of(&found, 0)->info.meters[WG_METRIC_POWER_W].averaging_window_s, 0.1,
                1e-12);
    found_end(&found);
}

/* Field reports 19, 20 and 62: one thing missing costs that thing, is asked for once, and is never
 * 0. */
static void what_is_not_supported_is_asked_for_once(void **state)
{
    (void)state;
    fake_reset();
    struct fake_gpu *gpu = &fake.gpus[0];
    gpu->field_count = 0;
    static const enum fake_call refused[] = {FAKE_power_usage,   FAKE_energy,
                                             FAKE_utilization,   FAKE_limit,
                                             FAKE_temperature_v, FAKE_temperature};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        gpu->codes[refused[i]] = NVML_E_NOT_SUPPORTED;
    struct found found;
    found_probe(&found, "0");
    struct wg_device *device = device_of(&found, 0);
    expect_text(device->info.meters[WG_METRIC_ENERGY_J].why_not,
                "nvmlDeviceGetTotalEnergyConsumption: error 3");
    struct wg_sample sample;
    for (int i = 0; i < 3; i++)
        assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, NULL), WG_OK);
    assert_false(wg__sample_has(&sample, WG_METRIC_POWER_W));
    assert_false(wg__sample_has(&sample, WG_METRIC_ENERGY_J));
    assert_true(wg__sample_has(&sample, WG_METRIC_CLOCK_HZ));
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_in_range(gpu->calls[refused[i]], 1, refused[i] == FAKE_limit ? 2 : 1);
    assert_int_equal(gpu->calls[FAKE_fields], 1);
    found_end(&found);
}

static void a_batch_that_is_refused_is_asked_one_by_one(void **state)
{
    (void)state;
    fake_reset();
    fake.gpus[0].codes[FAKE_fields] = NVML_E_INVALID_ARGUMENT;
    struct found found;
    found_probe(&found, "0");
    struct wg_device *device = device_of(&found, 0);
    assert_string_equal(device->info.meters[WG_METRIC_POWER_W].source, "nvmlDeviceGetPowerUsage");
    expect_text(device->info.meters[WG_METRIC_MODULE_POWER_W].why_not, "error 2");
    assert_true(fake.gpus[0].calls[FAKE_fields] > 1);
    found_end(&found);
}

static void a_scope_that_the_driver_ignores_is_no_meter(void **state)
{
    (void)state;
    fake_reset();
    struct fake_gpu *gpu = &fake.gpus[0];
    fake_set_field(gpu, NVML_FIELD_POWER_INSTANT_MW, 1, NVML_TYPE_UINT, 310500); /* as scope 0 */
    fake_set_field(gpu, NVML_FIELD_POWER_AVERAGE_MW, 2, NVML_TYPE_UINT, 0);      /* an A40 */
    struct found found;
    found_probe(&found, "0");
    const struct wg_device_info *info = &device_of(&found, 0)->info;
    assert_false(info->meters[WG_METRIC_MODULE_POWER_W].is_present);
    assert_false(info->meters[WG_METRIC_MEMORY_POWER_W].is_present);
    expect_text(info->meters[WG_METRIC_MODULE_POWER_W].why_not, "power of the whole GPU");
    found_end(&found);
}

static void a_module_with_its_own_power_is_a_meter(void **state)
{
    (void)state;
    fake_reset();
    fake_set_field(&fake.gpus[0], NVML_FIELD_POWER_INSTANT_MW, 1, NVML_TYPE_UINT, 480000);
    struct found found;
    found_probe(&found, "0");
    struct wg_device *device = device_of(&found, 0);
    struct wg_sample sample;
    assert_int_equal(device->ops->read(device, BIT(MODULE_POWER_W), &sample, NULL), WG_OK);
    check_close(sample.values[WG_METRIC_MODULE_POWER_W], 480, 1e-12);
    found_end(&found);
}

/* Field report 75: blanks and nonsense. */
static void sentinels_are_not_numbers(void **state)
{
    (void)state;
    static const struct {
        int type;
        unsigned long long value;
        bool is_good;
    } powers[] = {
        {NVML_TYPE_UINT, 250000, true},
        {NVML_TYPE_UINT, 0, true},
        {NVML_TYPE_UINT, 0xFFFFFFFF, false},
        {NVML_TYPE_UINT, 0x7FFFFFF2, false},
        {NVML_TYPE_ULONG_LONG, 250000, true},
        {NVML_TYPE_ULONG_LONG, 0xFFFFFFFF, false}, /* 4.3 MW */
        {NVML_TYPE_ULONG_LONG, 7000000, true},     /* 10 times the limit */
        {NVML_TYPE_ULONG_LONG, 7000001, false},    /* and more */
        {NVML_TYPE_ULONG_LONG, UINT64_MAX, false},
        {NVML_TYPE_ULONG_LONG, 9223372036854775794ULL, false}, /* DCGM's blank */
        {NVML_TYPE_LONG_LONG, (unsigned long long)-1LL, false},
        {NVML_TYPE_LONG_LONG, 250000, true},
        {NVML_TYPE_ULONG, 250000, true},
        {NVML_TYPE_INT, (unsigned)-5, false},
        {NVML_TYPE_INT, 250000, true},
        {NVML_TYPE_USHORT, 0xFFFF, false},
        {NVML_TYPE_USHORT, 25000, true},
        {NVML_TYPE_DOUBLE, 0x7FF8000000000000ULL, false}, /* not a number */
        {NVML_TYPE_DOUBLE, 0x410E848000000000ULL, true},  /* 250000.0 */
        {42, 250000, false},
    };
    fake_reset();
    struct found found;
    found_probe(&found, "0");
    struct wg_device *device = device_of(&found, 0);
    struct fake_gpu *gpu = &fake.gpus[0];
    struct wg_sample sample;
    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++) {
        struct fake_field *field = fake_known_field(gpu, NVML_FIELD_POWER_INSTANT_MW, 0);
        field->type = powers[i].type;
        field->value.as_ull = powers[i].value;
        assert_int_equal(device->ops->read(device, BIT(POWER_W) | BIT(ENERGY_J), &sample, NULL),
                         WG_OK);
        if (wg__sample_has(&sample, WG_METRIC_POWER_W) != powers[i].is_good)
            fail_msg("power %zu is taken for %s", i, powers[i].is_good ? "none" : "one");
    }
    found_end(&found);
}

static void blanks_of_other_meters_are_not_numbers(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, "0");
    struct wg_device *device = device_of(&found, 0);
    struct fake_gpu *gpu = &fake.gpus[0];
    struct wg_sample sample;
    /* An energy that only looks like a blank of 32 bits is one. */
    fake_set_field(gpu, NVML_FIELD_ENERGY_MJ, 0, NVML_TYPE_ULONG_LONG, 0xFFFFFFFF);
    assert_int_equal(device->ops->read(device, BIT(ENERGY_J), &sample, NULL), WG_OK);
    check_close(sample.values[WG_METRIC_ENERGY_J], 4294967.295, 1e-12);

    static const int temperatures[] = {-50, 200, INT32_MAX, -1000};
    for (size_t i = 0; i < sizeof temperatures / sizeof temperatures[0]; i++) {
        gpu->temperature_c = temperatures[i];
        assert_int_equal(
            device->ops->read(device, BIT(TEMPERATURE_C) | BIT(POWER_AVERAGE_W), &sample, NULL),
            WG_OK);
        assert_false(wg__sample_has(&sample, WG_METRIC_TEMPERATURE_C));
    }
    gpu->utilization = (struct nvml_utilization){101, UINT32_MAX};
    gpu->memory_used = UINT64_MAX;
    gpu->sm_mhz = UINT32_MAX;
    assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, NULL), WG_OK);
    assert_int_equal(sample.present & (BIT(UTILIZATION) | BIT(MEMORY_UTILIZATION) |
                                       BIT(MEMORY_USED_BYTES) | BIT(CLOCK_HZ)),
                     0);
    found_end(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_metrics_are_read_in_si_units),
        cmocka_unit_test(meters_tell_their_source_and_sensor),
        cmocka_unit_test(a_look_costs_one_batch_and_what_is_wanted),
        cmocka_unit_test(a_look_allocates_nothing),
        cmocka_unit_test(an_old_driver_is_read_by_single_calls),
        cmocka_unit_test(the_usage_call_means_what_the_architecture_and_driver_say),
        cmocka_unit_test(what_is_not_supported_is_asked_for_once),
        cmocka_unit_test(a_batch_that_is_refused_is_asked_one_by_one),
        cmocka_unit_test(a_scope_that_the_driver_ignores_is_no_meter),
        cmocka_unit_test(a_module_with_its_own_power_is_a_meter),
        cmocka_unit_test(sentinels_are_not_numbers),
        cmocka_unit_test(blanks_of_other_meters_are_not_numbers),
    };
    return run_tests(tests);
}
