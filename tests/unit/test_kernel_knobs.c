/* SPDX-License-Identifier: MIT
 *
 * Setting devices that are made of the kernel's files, on fake trees: which file gets which text.
 */
#include <string.h>

#include "device/sysfs.h"
#include "support/backend.h"
#include "support/tree.h"

#define AMD      "/sys/class/drm/card1/device"
#define AMD_HW   AMD "/hwmon/hwmon5"
#define ARC      "/sys/class/drm/card2"
#define ARC_HW   ARC "/device/hwmon/hwmon4"
#define DEVFREQ  "/sys/class/devfreq/17000000.gpu"
#define EMC      "/sys/kernel/debug/bpmp/debug/clk/emc"
#define POWERCAP "/sys/class/powercap/intel-rapl:0"
#define CPU      "/sys/devices/system/cpu"
#define CPUFREQ  CPU "/cpufreq"
#define LEVEL    AMD "/power_dpm_force_performance_level"

static const struct tree_entry entries[] = {
    {.path = AMD "/vendor", .text = "0x1002\n"},
    {.path = AMD "/device", .text = "0x744c\n"},
    {.path = AMD "/uevent", .text = "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n"},
    {.path = AMD "/power/runtime_status", .text = "active\n"},
    {.path = AMD "/pp_dpm_sclk", .text = "0: 500Mhz\n1: 1800Mhz *\n2: 2482Mhz\n"},
    {.path = AMD "/pp_dpm_mclk", .text = "0: 96Mhz\n1: 456Mhz\n2: 1249Mhz *\n"},
    {.path = LEVEL, .text = "auto\n"},
    {.path = AMD_HW "/name", .text = "amdgpu\n"},
    {.path = AMD_HW "/power1_average", .text = "312000000\n"},
    {.path = AMD_HW "/power1_cap", .text = "320000000\n"},
    {.path = AMD_HW "/power1_cap_min", .text = "305000000\n"},
    {.path = AMD_HW "/power1_cap_max", .text = "389000000\n"},
    {.path = AMD_HW "/power1_cap_default", .text = "339000000\n"},
    {.path = ARC "/device/vendor", .text = "0x8086\n"},
    {.path = ARC "/device/device", .text = "0x56a0\n"},
    {.path = ARC "/device/uevent", .text = "DRIVER=i915\nPCI_SLOT_NAME=0000:04:00.0\n"},
    {.path = ARC_HW "/energy1_input", .text = "1234500000\n"},
    {.path = ARC_HW "/power1_max", .text = "190000000\n"},
    {.path = ARC_HW "/power1_rated_max", .text = "190000000\n"},
    {.path = ARC "/gt_act_freq_mhz", .text = "2050\n"},
    {.path = ARC "/gt_max_freq_mhz", .text = "2300\n"},
    {.path = ARC "/gt_RPn_freq_mhz", .text = "300\n"},
    {.path = ARC "/gt_RP0_freq_mhz", .text = "2400\n"},
    {.path = "/proc/device-tree/model", .text = "NVIDIA Jetson Orin Nano Developer Kit"},
    {.path = DEVFREQ "/device/of_node/name", .text = "gpu", .length = 4},
    {.path = DEVFREQ "/cur_freq", .text = "306000000\n"},
    {.path = DEVFREQ "/max_freq", .text = "510000000\n"},
    {.path = DEVFREQ "/available_frequencies", .text = "306000000 510000000 624750000\n"},
    {.path = EMC "/rate", .text = "2133000000\n"},
    {.path = EMC "/min_rate", .text = "204000000\n"},
    {.path = EMC "/max_rate", .text = "2133000000\n"},
    {.path = EMC "/mrq_rate_locked", .text = "0\n"},
    {.path = POWERCAP "/name", .text = "package-0\n"},
    {.path = POWERCAP "/energy_uj", .text = "200000000000\n"},
    {.path = POWERCAP "/max_energy_range_uj", .text = "262143328850\n"},
    {.path = POWERCAP "/constraint_0_power_limit_uw", .text = "125000000\n"},
    {.path = POWERCAP "/constraint_0_max_power_uw", .text = "150000000\n"},
    /* Two kinds of cores: policy8's go less far. */
    {.path = CPU "/cpu0/topology/physical_package_id", .text = "0\n"},
    {.path = CPU "/cpu8/topology/physical_package_id", .text = "0\n"},
    {.path = CPUFREQ "/policy0/scaling_cur_freq", .text = "1000000\n"},
    {.path = CPUFREQ "/policy0/cpuinfo_min_freq", .text = "800000\n"},
    {.path = CPUFREQ "/policy0/cpuinfo_max_freq", .text = "5000000\n"},
    {.path = CPUFREQ "/policy0/scaling_max_freq", .text = "5000000\n"},
    {.path = CPUFREQ "/policy8/scaling_cur_freq", .text = "1000000\n"},
    {.path = CPUFREQ "/policy8/cpuinfo_min_freq", .text = "800000\n"},
    {.path = CPUFREQ "/policy8/cpuinfo_max_freq", .text = "3800000\n"},
    {.path = CPUFREQ "/policy8/scaling_max_freq", .text = "3800000\n"},
};

struct scene {
    struct tree tree;
    struct backend_run run;
    struct wg_device *device;
    struct wg_error err;
};

static void open_scene(struct scene *scene, const struct wg_backend *backend, const char *id)
{
    *scene = (struct scene){.device = NULL};
    tree_open(&scene->tree);
    TREE_ADD(&scene->tree, entries);
    backend_must_open(&scene->run, backend, scene->tree.root);
    scene->device = backend_find(&scene->run, id);
}

static void close_scene(struct scene *scene)
{
    backend_close(&scene->run);
    tree_close(&scene->tree);
}

/* What a write of the device needs no memory for. */
static enum wg_code set(struct scene *scene, enum wg_knob knob, double value)
{
    assert_true(scene->device->info.knobs[knob].is_present);
    wg__alloc_fail_from(1);
    const enum wg_code code = scene->device->ops->set(scene->device, knob, value, &scene->err);
    wg__alloc_fail_from(0);
    return code;
}

static double get(struct scene *scene, enum wg_knob knob)
{
    double value = 0;
    if (scene->device->ops->get(scene->device, knob, &value, &scene->err) != WG_OK)
        fail_msg("%s", scene->err.text);
    return value;
}

static void expect_file(struct scene *scene, const char *path, const char *expected)
{
    char text[64] = "";
    assert_int_equal(wg__sysfs_text(scene->tree.root, path, text, sizeof text, NULL), WG_OK);
    assert_string_equal(text, expected);
}

static void an_amd_cap_is_written_in_microwatts(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, &wg__backend_amdgpu, "0000:03:00.0");
    check_close(get(&scene, WG_KNOB_POWER_LIMIT), 320, 1e-12);
    assert_int_equal(set(&scene, WG_KNOB_POWER_LIMIT, 310.5), WG_OK);
    expect_file(&scene, AMD_HW "/power1_cap", "310500000");
    check_close(get(&scene, WG_KNOB_POWER_LIMIT), 310.5, 1e-12);
    assert_int_equal(set(&scene, WG_KNOB_POWER_LIMIT, NAN), WG_OK);
    expect_file(&scene, AMD_HW "/power1_cap", "339000000");
    close_scene(&scene);
}

static void amd_clocks_are_levels_that_are_allowed_and_given_back_by_auto(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, &wg__backend_amdgpu, "0000:03:00.0");
    assert_true(isnan(get(&scene, WG_KNOB_GPU_CLOCK)));
    assert_int_equal(set(&scene, WG_KNOB_GPU_CLOCK, 1800e6), WG_OK);
    expect_file(&scene, LEVEL, "manual");
    expect_file(&scene, AMD "/pp_dpm_sclk", "0 1");
    tree_set(&scene.tree, AMD "/pp_dpm_sclk", "0: 500Mhz\n1: 1800Mhz *\n2: 2482Mhz\n");
    assert_int_equal(set(&scene, WG_KNOB_GPU_CLOCK, 100e6), WG_OK); /* the least, not none */
    expect_file(&scene, AMD "/pp_dpm_sclk", "0");
    assert_int_equal(set(&scene, WG_KNOB_MEMORY_CLOCK, 500e6), WG_OK);
    expect_file(&scene, AMD "/pp_dpm_mclk", "1");
    assert_int_equal(set(&scene, WG_KNOB_GPU_CLOCK, NAN), WG_OK);
    expect_file(&scene, LEVEL, "auto");
    close_scene(&scene);
}

static void amd_clocks_that_somebody_else_has_taken_are_left_to_him(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, &wg__backend_amdgpu, "0000:03:00.0");
    tree_set(&scene.tree, LEVEL, "profile_peak\n");
    assert_int_equal(set(&scene, WG_KNOB_GPU_CLOCK, 1800e6), WG_EBUSY);
    assert_non_null(strstr(scene.err.text, "is 'profile_peak', set by somebody else"));
    expect_file(&scene, LEVEL, "profile_peak");
    close_scene(&scene);
}

static void an_intel_gpu_has_a_limit_and_a_largest_clock(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, &wg__backend_intel, "0000:04:00.0");
    assert_int_equal(set(&scene, WG_KNOB_POWER_LIMIT, 150), WG_OK);
    expect_file(&scene, ARC_HW "/power1_max", "150000000");
    assert_int_equal(set(&scene, WG_KNOB_POWER_LIMIT, NAN), WG_EUNSUPPORTED); /* no preset */
    check_close(get(&scene, WG_KNOB_GPU_CLOCK), 2300e6, 1e-12);
    assert_int_equal(set(&scene, WG_KNOB_GPU_CLOCK, 1500e6), WG_OK);
    expect_file(&scene, ARC "/gt_max_freq_mhz", "1500");
    assert_int_equal(set(&scene, WG_KNOB_GPU_CLOCK, NAN), WG_OK);
    expect_file(&scene, ARC "/gt_max_freq_mhz", "2400");
    close_scene(&scene);
}

static void a_jetsons_gpu_and_memory_clocks_are_set_and_let_go(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, &wg__backend_jetson, "jetson:gpu");
    check_close(get(&scene, WG_KNOB_GPU_CLOCK), 510e6, 1e-12);
    assert_int_equal(set(&scene, WG_KNOB_GPU_CLOCK, 306e6), WG_OK);
    expect_file(&scene, DEVFREQ "/max_freq", "306000000");
    assert_int_equal(set(&scene, WG_KNOB_GPU_CLOCK, NAN), WG_OK);
    expect_file(&scene, DEVFREQ "/max_freq", "624750000");
    assert_true(isnan(get(&scene, WG_KNOB_MEMORY_CLOCK)));
    assert_int_equal(set(&scene, WG_KNOB_MEMORY_CLOCK, 665.6e6), WG_OK);
    expect_file(&scene, EMC "/mrq_rate_locked", "1");
    expect_file(&scene, EMC "/rate", "665600000");
    check_close(get(&scene, WG_KNOB_MEMORY_CLOCK), 665.6e6, 1e-12);
    assert_int_equal(set(&scene, WG_KNOB_MEMORY_CLOCK, NAN), WG_OK);
    expect_file(&scene, EMC "/mrq_rate_locked", "0");
    close_scene(&scene);
}

static void a_packages_limit_is_the_long_one(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, &wg__backend_rapl, "rapl:package-0");
    check_close(get(&scene, WG_KNOB_POWER_LIMIT), 125, 1e-12);
    assert_int_equal(set(&scene, WG_KNOB_POWER_LIMIT, 65), WG_OK);
    expect_file(&scene, POWERCAP "/constraint_0_power_limit_uw", "65000000");
    close_scene(&scene);
}

static void a_packages_clock_is_that_of_each_policy_within_what_it_can(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, &wg__backend_rapl, "rapl:package-0");
    check_close(get(&scene, WG_KNOB_CPU_CLOCK), 5000e6, 1e-12);
    assert_int_equal(set(&scene, WG_KNOB_CPU_CLOCK, 4200e6), WG_OK);
    expect_file(&scene, CPUFREQ "/policy0/scaling_max_freq", "4200000");
    expect_file(&scene, CPUFREQ "/policy8/scaling_max_freq", "3800000");
    check_close(get(&scene, WG_KNOB_CPU_CLOCK), 4200e6, 1e-12);
    assert_int_equal(set(&scene, WG_KNOB_CPU_CLOCK, 2000e6), WG_OK);
    expect_file(&scene, CPUFREQ "/policy8/scaling_max_freq", "2000000");
    assert_int_equal(set(&scene, WG_KNOB_CPU_CLOCK, NAN), WG_OK);
    expect_file(&scene, CPUFREQ "/policy0/scaling_max_freq", "5000000");
    expect_file(&scene, CPUFREQ "/policy8/scaling_max_freq", "3800000");
    close_scene(&scene);
}

/* A set that was cut off half way, or somebody's limit of some cores: no number gives that back. */
static void policies_with_limits_of_their_own_are_no_single_number(void **state)
{
    (void)state;
    struct scene scene;
    double value = 0;
    open_scene(&scene, &wg__backend_rapl, "rapl:package-0");
    tree_set(&scene.tree, CPUFREQ "/policy8/scaling_max_freq", "1200000\n");
    assert_int_equal(scene.device->ops->get(scene.device, WG_KNOB_CPU_CLOCK, &value, &scene.err),
                     WG_EDATA);
    assert_non_null(strstr(scene.err.text, "policy8/scaling_max_freq is 1200 MHz"));
    close_scene(&scene);
}

static void one_policy_that_refuses_stops_no_other(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, &wg__backend_rapl, "rapl:package-0");
    tree_remove(&scene.tree, CPUFREQ "/policy0/scaling_max_freq");
    assert_int_equal(set(&scene, WG_KNOB_CPU_CLOCK, 2000e6), WG_ENOENT);
    expect_file(&scene, CPUFREQ "/policy8/scaling_max_freq", "2000000");
    close_scene(&scene);
}

static void what_may_not_be_written_is_told_with_its_file(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, &wg__backend_amdgpu, "0000:03:00.0");
    tree_drop_rights();
    const enum wg_code code = set(&scene, WG_KNOB_POWER_LIMIT, 310);
    tree_regain_rights();
    if (getuid() == 0)
        assert_int_equal(code, WG_EPERM);
    tree_remove(&scene.tree, AMD_HW "/power1_cap");
    assert_int_equal(set(&scene, WG_KNOB_POWER_LIMIT, 310), WG_ENOENT);
    assert_non_null(strstr(scene.err.text, "opening " AMD_HW "/power1_cap to write '310000000'"));
    close_scene(&scene);
}

/* Numbers of folders change when a driver is loaded again. */
static void after_a_reopen_the_file_is_found_where_it_is_now(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, &wg__backend_amdgpu, "0000:03:00.0");
    scene.device->ops->release(scene.device);
    tree_remove_folder(&scene.tree, AMD_HW);
    static const struct tree_entry moved[] = {
        {.path = AMD "/hwmon/hwmon9/name", .text = "amdgpu\n"},
        {.path = AMD "/hwmon/hwmon9/power1_average", .text = "312000000\n"},
        {.path = AMD "/hwmon/hwmon9/power1_cap", .text = "339000000\n"},
    };
    TREE_ADD(&scene.tree, moved);
    assert_int_equal(scene.device->ops->reopen(scene.device, NULL), WG_OK);
    assert_int_equal(set(&scene, WG_KNOB_POWER_LIMIT, 310), WG_OK);
    expect_file(&scene, AMD "/hwmon/hwmon9/power1_cap", "310000000");
    close_scene(&scene);
}

static void numbers_that_no_file_can_mean_are_not_written(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, &wg__backend_amdgpu, "0000:03:00.0");
    assert_int_equal(set(&scene, WG_KNOB_POWER_LIMIT, -1), WG_EINVAL);
    assert_int_equal(set(&scene, WG_KNOB_POWER_LIMIT, INFINITY), WG_EINVAL);
    expect_file(&scene, AMD_HW "/power1_cap", "320000000");
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_amd_cap_is_written_in_microwatts),
        cmocka_unit_test(amd_clocks_are_levels_that_are_allowed_and_given_back_by_auto),
        cmocka_unit_test(amd_clocks_that_somebody_else_has_taken_are_left_to_him),
        cmocka_unit_test(an_intel_gpu_has_a_limit_and_a_largest_clock),
        cmocka_unit_test(a_jetsons_gpu_and_memory_clocks_are_set_and_let_go),
        cmocka_unit_test(a_packages_limit_is_the_long_one),
        cmocka_unit_test(a_packages_clock_is_that_of_each_policy_within_what_it_can),
        cmocka_unit_test(policies_with_limits_of_their_own_are_no_single_number),
        cmocka_unit_test(one_policy_that_refuses_stops_no_other),
        cmocka_unit_test(what_may_not_be_written_is_told_with_its_file),
        cmocka_unit_test(after_a_reopen_the_file_is_found_where_it_is_now),
        cmocka_unit_test(numbers_that_no_file_can_mean_are_not_written),
    };
    return run_tests(tests);
}
