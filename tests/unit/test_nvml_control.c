/* SPDX-License-Identifier: MIT
 *
 * Setting an NVIDIA GPU: which call gets which numbers, and what its refusals mean.
 */
#include "support/nvml_found.h"

static struct wg_device *open_gpu(struct found *found)
{
    fake_reset();
    fake.may_set = true;
    found_probe(found, "0");
    return device_of(found, 0);
}

static void a_limit_is_set_in_milliwatts_and_read_back(void **state)
{
    (void)state;
    struct found found;
    struct wg_device *device = open_gpu(&found);
    double value = 0;
    assert_int_equal(device->ops->get(device, WG_KNOB_POWER_LIMIT, &value, NULL), WG_OK);
    check_close(value, 600, 1e-12);
    assert_int_equal(device->ops->set(device, WG_KNOB_POWER_LIMIT, 412.5, NULL), WG_OK);
    assert_int_equal(fake.gpus[0].limit_mw, 412500);
    assert_int_equal(device->ops->get(device, WG_KNOB_POWER_LIMIT, &value, NULL), WG_OK);
    check_close(value, 412.5, 1e-12);
    assert_int_equal(device->ops->set(device, WG_KNOB_POWER_LIMIT, NAN, NULL), WG_OK);
    assert_int_equal(fake.gpus[0].limit_mw, 700000); /* the default */
    assert_int_equal(fake.gpus[1].calls[FAKE_set_limit], 0);
    found_end(&found);
}

static void clocks_are_locked_from_the_least_on_and_unlocked(void **state)
{
    (void)state;
    struct found found;
    struct wg_device *device = open_gpu(&found);
    double value = 0;
    assert_int_equal(device->ops->set(device, WG_KNOB_GPU_CLOCK, 1965e6, NULL), WG_OK);
    assert_int_equal(fake.gpus[0].locked_mhz[0], 210);
    assert_int_equal(fake.gpus[0].locked_mhz[1], 1965);
    assert_int_equal(device->ops->set(device, WG_KNOB_MEMORY_CLOCK, 1593e6, NULL), WG_OK);
    assert_int_equal(fake.gpus[0].locked_memory_mhz[0], 1593);
    assert_int_equal(fake.gpus[0].locked_memory_mhz[1], 1593);
    assert_int_equal(device->ops->get(device, WG_KNOB_GPU_CLOCK, &value, NULL), WG_OK);
    assert_true(isnan(value));
    assert_int_equal(device->ops->set(device, WG_KNOB_GPU_CLOCK, NAN, NULL), WG_OK);
    assert_int_equal(fake.gpus[0].locked_mhz[1], 0);
    assert_int_equal(fake.gpus[0].locked_memory_mhz[1], 1593);
    assert_int_equal(device->ops->set(device, WG_KNOB_MEMORY_CLOCK, NAN, NULL), WG_OK);
    assert_int_equal(fake.gpus[0].locked_memory_mhz[1], 0);
    found_end(&found);
}

static void refusals_have_their_meaning_and_what_to_do(void **state)
{
    (void)state;
    static const struct {
        int nvml;
        enum wg_code code;
        const char *part;
    } cases[] = {
        {NVML_E_NO_PERMISSION, WG_EPERM, "error 4: no permission (mW 300000); run as root"},
        {NVML_E_INVALID_ARGUMENT, WG_EINVAL, "error 2: invalid argument (mW 300000)"},
        {NVML_E_NOT_SUPPORTED, WG_EUNSUPPORTED, "error 3: not supported by this GPU"},
        {NVML_E_GPU_IS_LOST, WG_ELOST, "error 15: the GPU is lost"},
        {NVML_E_TIMEOUT, WG_ETIMEOUT, "error 10: the driver gave up"},
        {NVML_E_UNKNOWN, WG_EIO, "error 999: unknown error of the driver (mW 300000); in a cont"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct found found;
        struct wg_device *device = open_gpu(&found);
        struct wg_error err = {0};
        fake.gpus[0].codes[FAKE_set_limit] = cases[i].nvml;
        assert_int_equal(device->ops->set(device, WG_KNOB_POWER_LIMIT, 300, &err), cases[i].code);
        assert_int_equal(err.code, cases[i].code);
        expect_text(err.text, "nvmlDeviceSetPowerManagementLimit");
        expect_text(err.text, cases[i].part);
        found_end(&found);
    }
}

static void a_reading_that_fails_or_is_a_sentinel_is_told(void **state)
{
    (void)state;
    struct found found;
    struct wg_device *device = open_gpu(&found);
    struct wg_error err = {0};
    double value = 0;
    fake.gpus[0].codes[FAKE_limit] = NVML_E_GPU_IS_LOST;
    assert_int_equal(device->ops->get(device, WG_KNOB_POWER_LIMIT, &value, &err), WG_ELOST);
    fake.gpus[0].codes[FAKE_limit] = NVML_OK;
    fake.gpus[0].limit_mw = UINT32_MAX;
    assert_int_equal(device->ops->get(device, WG_KNOB_POWER_LIMIT, &value, &err), WG_EDATA);
    expect_text(err.text, "is no limit");
    found_end(&found);
}

static void numbers_that_nvml_cannot_take_are_not_sent(void **state)
{
    (void)state;
    struct found found;
    struct wg_device *device = open_gpu(&found);
    assert_int_equal(device->ops->set(device, WG_KNOB_POWER_LIMIT, -1, NULL), WG_EINVAL);
    assert_int_equal(device->ops->set(device, WG_KNOB_GPU_CLOCK, 0, NULL), WG_EINVAL);
    assert_int_equal(device->ops->set(device, WG_KNOB_MEMORY_CLOCK, INFINITY, NULL), WG_EINVAL);
    assert_int_equal(device->ops->set(device, WG_KNOB_CPU_CLOCK, 1e9, NULL), WG_EUNSUPPORTED);
    assert_int_equal(fake.gpus[0].calls[FAKE_set_limit], 0);
    assert_int_equal(fake.gpus[0].calls[FAKE_lock_gpu_clocks], 0);
    found_end(&found);
}

/* What could not be given back is not a knob. */
static void a_library_that_locks_and_cannot_unlock_has_no_writable_clock(void **state)
{
    (void)state;
    fake_reset();
    fake.missing[0] = "nvmlDeviceResetGpuLockedClocks";
    struct found found;
    found_probe(&found, "0");
    const struct wg_knob_info *knobs = device_of(&found, 0)->info.knobs;
    assert_false(knobs[WG_KNOB_GPU_CLOCK].is_writable);
    assert_true(knobs[WG_KNOB_MEMORY_CLOCK].is_writable);
    found_end(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_is_set_in_milliwatts_and_read_back),
        cmocka_unit_test(clocks_are_locked_from_the_least_on_and_unlocked),
        cmocka_unit_test(refusals_have_their_meaning_and_what_to_do),
        cmocka_unit_test(a_reading_that_fails_or_is_a_sentinel_is_told),
        cmocka_unit_test(numbers_that_nvml_cannot_take_are_not_sent),
        cmocka_unit_test(a_library_that_locks_and_cannot_unlock_has_no_writable_clock),
    };
    return run_tests(tests);
}
