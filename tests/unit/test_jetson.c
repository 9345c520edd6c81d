/* SPDX-License-Identifier: MIT
 *
 * Jetson boards on fake trees: TX2 with iio files, Xavier and AGX Orin without a total, Orin Nano
 * with one, Thor, and what is missing.
 */
#include <string.h>

#include "device/select.h"
#include "support/backend.h"
#include "support/tree.h"

#define INA3221  "/sys/bus/i2c/drivers/ina3221"
#define INA3221X "/sys/bus/i2c/drivers/ina3221x"
#define DEVFREQ  "/sys/class/devfreq"
#define CPUFREQ  "/sys/devices/system/cpu/cpufreq"
#define EMC      "/sys/kernel/debug/bpmp/debug/clk/emc"

/* A channel of an INA3221 under hwmon. */
#define RAIL(hwmon, channel, label, millivolts, milliamperes)                                      \
    {.path = hwmon "/in" channel "_label", .text = label "\n"},                                    \
        {.path = hwmon "/in" channel "_input", .text = millivolts "\n"},                           \
        {.path = hwmon "/curr" channel "_input", .text = milliamperes "\n"}

#define NANO_HWMON INA3221 "/1-0040/hwmon/hwmon3"
#define NANO_GPU   DEVFREQ "/17000000.gpu"

static const struct tree_entry orin_nano[] = {
    {.path = "/etc/nv_tegra_release", .text = "# R36 (release), REVISION: 2.0, GCID: 1\n"},
    {.path = "/proc/device-tree/model", .text = "NVIDIA Jetson Orin Nano Developer Kit"},
    {.path = "/var/lib/nvpmodel/status", .text = "pmode:0000\n"},
    {.path = "/etc/nvpmodel.conf", .text = "< POWER_MODEL ID=0 NAME=15W >\n"},
    {.path = INA3221 "/bind", .text = ""},
    {.path = INA3221 "/uevent", .text = ""},
    RAIL(NANO_HWMON, "2", "VDD_CPU_GPU_CV", "5000", "300"),
    RAIL(NANO_HWMON, "1", "VDD_IN", "5040", "1000"),
    RAIL(NANO_HWMON, "3", "VDD_SOC", "5000", "240"),
    {.path = NANO_HWMON "/in7_label", .text = "sum of shunt voltages\n"},
    {.path = NANO_HWMON "/in7_input", .text = "760\n"},
    {.path = NANO_HWMON "/update_interval", .text = "66\n"},
    {.path = NANO_GPU "/device/of_node/name", .text = "gpu", .length = 4},
    {.path = NANO_GPU "/device/load", .text = "425\n"},
    {.path = NANO_GPU "/cur_freq", .text = "408000000\n"},
    {.path = NANO_GPU "/max_freq", .text = "510000000\n"},
    {.path = NANO_GPU "/min_freq", .text = "306000000\n"},
    {.path = NANO_GPU "/available_frequencies",
     .text = "306000000 408000000 510000000 624750000\n"},
    {.path = DEVFREQ "/15340000.vic/device/of_node/name", .text = "vic", .length = 4},
    {.path = EMC "/rate", .text = "2133000000\n"},
    {.path = EMC "/min_rate", .text = "204000000\n"},
    {.path = EMC "/max_rate", .text = "2133000000\n"},
    {.path = "/sys/class/thermal/thermal_zone0/type", .text = "cpu-thermal\n"},
    {.path = "/sys/class/thermal/thermal_zone0/temp", .text = "48500\n"},
    {.path = "/sys/class/thermal/thermal_zone1/type", .text = "gpu-thermal\n"},
    {.path = "/sys/class/thermal/thermal_zone1/temp", .text = "47250\n"},
    {.path = CPUFREQ "/policy0/scaling_cur_freq", .text = "1510400\n"},
    {.path = CPUFREQ "/policy0/scaling_max_freq", .text = "1510400\n"},
    {.path = CPUFREQ "/policy0/cpuinfo_min_freq", .text = "115200\n"},
    {.path = CPUFREQ "/policy0/cpuinfo_max_freq", .text = "1510400\n"},
    {.path = CPUFREQ "/policy0/scaling_available_frequencies", .text = "115200 729600 1510400 \n"},
};

static void open_tree(struct tree *tree, struct backend_run *run, const struct tree_entry *entries,
                      size_t count)
{
    tree_open(tree);
    tree_add(tree, entries, count);
    backend_must_open(run, &wg__backend_jetson, tree->root);
    check_complete(run);
}

#define OPEN_TREE(tree, run, entries)                                                              \
    open_tree((tree), (run), (entries), sizeof(entries) / sizeof(entries)[0])

static void close_tree(struct tree *tree, struct backend_run *run)
{
    backend_close(run);
    tree_close(tree);
}

/* Checks the rails that were found, in order, and the sum of those that count. */
struct rail {
    const char *name;
    double power_w;
    bool counts;
};

static void check_rails(const struct backend_run *run, const struct rail *expected, size_t count,
                        double total_w)
{
    size_t found = 0;
    double sum_w = 0.0;
    for (size_t i = 0; i < run->list.count; i++) {
        struct wg_device *device = run->list.items[i];
        if (device->info.kind != WG_DEVICE_RAIL) {
            assert_false(device->info.counts_in_total);
            continue;
        }
        assert_true(found < count);
        assert_string_equal(device->info.name, expected[found].name);
        assert_int_equal(device->info.counts_in_total, expected[found].counts);
        const struct wg_sample sample = backend_read(device);
        check_metric(sample, WG_METRIC_POWER_W, expected[found].power_w);
        if (device->info.counts_in_total)
            sum_w += sample.values[WG_METRIC_POWER_W];
        check_absent(device, WG_METRIC_ENERGY_J, "does not count energy");
        found++;
    }
    assert_int_equal(found, count);
    check_close(sum_w, total_w, 1e-12);
}

#define CHECK_RAILS(run, expected, total_w)                                                        \
    check_rails((run), (expected), sizeof(expected) / sizeof(expected)[0], (total_w))

static void a_rail_that_holds_the_others_is_the_total(void **state)
{
    (void)state; /* field report 83, and B 16 */
    static const struct rail rails[] = {
        {"VDD_IN", 5.04, true}, {"VDD_CPU_GPU_CV", 1.5, false}, {"VDD_SOC", 1.2, false}};
    struct tree tree;
    struct backend_run run;
    OPEN_TREE(&tree, &run, orin_nano);
    assert_int_equal(run.list.count, 5);
    CHECK_RAILS(&run, rails, 5.04);
    const struct wg_device *total = backend_find(&run, "jetson:1-0040:VDD_IN");
    const struct wg_meter_info *meter = &total->info.meters[WG_METRIC_POWER_W];
    assert_string_equal(meter->source, NANO_HWMON "/curr1_input");
    check_close(meter->update_period_s, 0.066, 1e-12);
    close_tree(&tree, &run);
}

static void the_gpu_has_clocks_a_load_and_no_power_of_its_own(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    OPEN_TREE(&tree, &run, orin_nano);
    struct wg_device *gpu = backend_find(&run, "jetson:gpu");
    assert_int_equal(gpu->info.kind, WG_DEVICE_GPU);
    assert_string_equal(gpu->info.name,
                        "NVIDIA Jetson Orin Nano Developer Kit GPU (nvpmodel 0: 15W)");
    assert_string_equal(gpu->info.driver, "L4T R36 (release), REVISION: 2.0");
    const struct wg_sample sample = backend_read(gpu);
    check_metric(sample, WG_METRIC_CLOCK_HZ, 408e6);
    check_metric(sample, WG_METRIC_MEMORY_CLOCK_HZ, 2133e6);
    check_metric(sample, WG_METRIC_UTILIZATION, 0.425);
    check_metric(sample, WG_METRIC_TEMPERATURE_C, 47.25);
    check_absent(gpu, WG_METRIC_POWER_W, "see the rail");
    const struct wg_knob_info *knob = &gpu->info.knobs[WG_KNOB_GPU_CLOCK];
    assert_true(knob->is_present && knob->is_writable);
    assert_int_equal(knob->level_count, 4);
    check_close(knob->min, 306e6, 1e-12);
    check_close(knob->max, 624.75e6, 1e-12);
    check_close(knob->current, 510e6, 1e-12);
    assert_string_equal(knob->source, NANO_GPU "/max_freq");
    knob = &gpu->info.knobs[WG_KNOB_MEMORY_CLOCK];
    check_close(knob->min, 204e6, 1e-12);
    check_close(knob->max, 2133e6, 1e-12);
    close_tree(&tree, &run);
}

static void the_cpus_have_a_clock_with_levels(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    OPEN_TREE(&tree, &run, orin_nano);
    struct wg_device *cpu = backend_find(&run, "jetson:cpu");
    assert_int_equal(cpu->info.kind, WG_DEVICE_CPU);
    const struct wg_sample sample = backend_read(cpu);
    check_metric(sample, WG_METRIC_CLOCK_HZ, 1510.4e6);
    check_metric(sample, WG_METRIC_TEMPERATURE_C, 48.5);
    const struct wg_knob_info *knob = &cpu->info.knobs[WG_KNOB_CPU_CLOCK];
    assert_true(knob->is_present && knob->is_writable);
    assert_int_equal(knob->level_count, 3);
    check_close(knob->levels[1], 729.6e6, 1e-12);
    close_tree(&tree, &run);
}

static void a_tx2_has_its_rails_under_iio(void **state)
{
    (void)state;
    static const struct tree_entry tx2[] = {
        {.path = "/etc/nv_tegra_release", .text = "# R32 (release), REVISION: 4.4, GCID: 2\n"},
        {.path = "/proc/device-tree/model", .text = "quill"},
        {.path = INA3221X "/0-0040/iio:device0/rail_name_0", .text = "VDD_SYS_GPU\n"},
        {.path = INA3221X "/0-0040/iio:device0/in_power0_input", .text = "1200\n"},
        {.path = INA3221X "/0-0040/iio:device0/rail_name_1", .text = "VDD_SYS_SOC\n"},
        {.path = INA3221X "/0-0040/iio:device0/in_power1_input", .text = "800\n"},
        {.path = INA3221X "/0-0040/iio:device0/rail_name_2", .text = "NC\n"},
        {.path = INA3221X "/0-0040/iio:device0/in_power2_input", .text = "0\n"},
        {.path = INA3221X "/0-0041/iio:device1/rail_name_0", .text = "VDD_IN\n"},
        {.path = INA3221X "/0-0041/iio:device1/in_power0_input", .text = "7400\n"},
        {.path = INA3221X "/0-0041/iio:device1/rail_name_1", .text = "VDD_SYS_CPU\n"},
        {.path = INA3221X "/0-0041/iio:device1/in_power1_input", .text = "950\n"},
        {.path = DEVFREQ "/17000000.gp10b/cur_freq", .text = "1300500000\n"},
        {.path = DEVFREQ "/17000000.gp10b/max_freq", .text = "1300500000\n", .mode = 0444},
        {.path = DEVFREQ "/17000000.gp10b/available_frequencies", .text = "114750000 1300500000\n"},
        {.path = "/sys/devices/gpu.0/load", .text = "1000\n"},
        {.path = "/sys/class/thermal/thermal_zone2/type", .text = "GPU-therm\n"},
        {.path = "/sys/class/thermal/thermal_zone2/temp", .text = "40000\n"},
    };
    static const struct rail rails[] = {{"VDD_IN", 7.4, true},
                                        {"VDD_SYS_GPU", 1.2, false},
                                        {"VDD_SYS_SOC", 0.8, false},
                                        {"VDD_SYS_CPU", 0.95, false}};
    struct tree tree;
    struct backend_run run;
    OPEN_TREE(&tree, &run, tx2);
    CHECK_RAILS(&run, rails, 7.4);
    struct wg_device *gpu = backend_find(&run, "jetson:gpu");
    assert_string_equal(gpu->info.architecture, "pascal");
    const struct wg_sample sample = backend_read(gpu);
    check_metric(sample, WG_METRIC_UTILIZATION, 1.0);
    check_metric(sample, WG_METRIC_TEMPERATURE_C, 40.0);
    const struct wg_knob_info *knob = &gpu->info.knobs[WG_KNOB_GPU_CLOCK];
    assert_true(knob->is_present);
    assert_false(knob->is_writable);
    assert_non_null(strstr(knob->why_not, "/17000000.gp10b/max_freq"));
    assert_non_null(strstr(knob->remedy, "root"));
    check_absent(gpu, WG_METRIC_MEMORY_CLOCK_HZ, EMC "/rate: No such file");
    close_tree(&tree, &run);
}

static void without_a_total_rail_the_rails_add_up(void **state)
{
    (void)state; /* Xavier: field report B 16 */
    static const struct tree_entry xavier[] = {
        {.path = "/proc/device-tree/model", .text = "NVIDIA Jetson AGX Xavier Developer Kit"},
        RAIL(INA3221X "/1-0040/hwmon/hwmon4", "1", "GPU", "9000", "500"),
        RAIL(INA3221X "/1-0040/hwmon/hwmon4", "2", "CPU", "9000", "300"),
        RAIL(INA3221X "/1-0040/hwmon/hwmon4", "3", "SOC", "9000", "200"),
        RAIL(INA3221X "/1-0041/hwmon/hwmon5", "1", "CV", "9000", "0"),
        RAIL(INA3221X "/1-0041/hwmon/hwmon5", "2", "VDDRQ", "9000", "100"),
        RAIL(INA3221X "/1-0041/hwmon/hwmon5", "3", "SYS5V", "9000", "400"),
        {.path = DEVFREQ "/17000000.gv11b/device/of_node/name", .text = "gv11b", .length = 6},
        {.path = DEVFREQ "/17000000.gv11b/cur_freq", .text = "1377000000\n"},
    };
    static const struct rail rails[] = {{"GPU", 4.5, true},   {"CPU", 2.7, true},
                                        {"SOC", 1.8, true},   {"CV", 0.0, true},
                                        {"VDDRQ", 0.9, true}, {"SYS5V", 3.6, true}};
    struct tree tree;
    struct backend_run run;
    OPEN_TREE(&tree, &run, xavier);
    CHECK_RAILS(&run, rails, 13.5);
    struct wg_device *gpu = backend_find(&run, "jetson:gpu");
    assert_string_equal(gpu->info.name, "NVIDIA Jetson AGX Xavier Developer Kit GPU");
    check_no_knob(gpu, WG_KNOB_GPU_CLOCK, "fewer than two clocks");
    check_absent(gpu, WG_METRIC_UTILIZATION, "folder is not there");
    check_absent(gpu, WG_METRIC_TEMPERATURE_C, "no thermal zone");
    close_tree(&tree, &run);
}

static void on_an_agx_orin_the_memory_rail_hangs_behind_the_5_volts(void **state)
{
    (void)state;
    static const struct tree_entry agx_orin[] = {
        {.path = "/proc/device-tree/model", .text = "NVIDIA Jetson AGX Orin Developer Kit"},
        RAIL(INA3221 "/1-0040/hwmon/hwmon3", "1", "VDD_GPU_SOC", "20000", "400"),
        RAIL(INA3221 "/1-0040/hwmon/hwmon3", "2", "VDD_CPU_CV", "20000", "100"),
        RAIL(INA3221 "/1-0040/hwmon/hwmon3", "3", "VIN_SYS_5V0", "5000", "1000"),
        RAIL(INA3221 "/1-0041/hwmon/hwmon4", "1", "NC", "0", "0"),
        RAIL(INA3221 "/1-0041/hwmon/hwmon4", "2", "VDDQ_VDD2_1V8AO", "5000", "80"),
        RAIL(INA3221 "/1-0041/hwmon/hwmon4", "3", "NC", "0", "0"),
        {.path = DEVFREQ "/17000000.ga10b/cur_freq", .text = "306000000\n"},
    };
    static const struct rail rails[] = {{"VDD_GPU_SOC", 8.0, true},
                                        {"VDD_CPU_CV", 2.0, true},
                                        {"VIN_SYS_5V0", 5.0, true},
                                        {"VDDQ_VDD2_1V8AO", 0.4, false}};
    struct tree tree;
    struct backend_run run;
    OPEN_TREE(&tree, &run, agx_orin);
    CHECK_RAILS(&run, rails, 15.0);
    assert_string_equal(backend_find(&run, "jetson:gpu")->info.architecture, "ampere");
    close_tree(&tree, &run);
}

static void a_thor_has_a_supply_of_the_carrier(void **state)
{
    (void)state; /* field report B 17 */
    static const struct tree_entry thor[] = {
        {.path = "/proc/device-tree/model", .text = "NVIDIA Jetson AGX Thor Developer Kit"},
        RAIL(INA3221 "/2-0040/hwmon/hwmon5", "1", "VDD_GPU", "12040", "500"),
        RAIL(INA3221 "/2-0040/hwmon/hwmon5", "2", "VDD_CPU_SOC_MSS", "12040", "100"),
        {.path = "/sys/bus/i2c/drivers/ina238/2-0044/hwmon/hwmon6/power1_input",
         .text = "40125000\n"},
        {.path = DEVFREQ "/gpu-gpc-0/cur_freq", .text = "1575000000\n"},
        {.path = DEVFREQ "/gpu-nvd-0/cur_freq", .text = "990000000\n"},
    };
    static const struct rail rails[] = {
        {"VIN", 40.125, true}, {"VDD_GPU", 6.02, false}, {"VDD_CPU_SOC_MSS", 1.204, false}};
    struct tree tree;
    struct backend_run run;
    OPEN_TREE(&tree, &run, thor);
    CHECK_RAILS(&run, rails, 40.125);
    check_metric(backend_read(backend_find(&run, "jetson:gpu")), WG_METRIC_CLOCK_HZ, 1575e6);
    close_tree(&tree, &run);
}

static void rails_are_found_by_the_name_of_the_chip_too(void **state)
{
    (void)state;
    static const struct tree_entry named[] = {
        {.path = "/etc/nv_tegra_release", .text = "# R35\n"},
        {.path = "/sys/class/hwmon/hwmon1/name", .text = "ina3221\n"},
        RAIL("/sys/class/hwmon/hwmon1", "1", "VDD IN", "5000", "1000"),
        {.path = "/sys/class/hwmon/hwmon2/name", .text = "pwmfan\n"},
        RAIL("/sys/class/hwmon/hwmon2", "1", "VDD_FAN", "5000", "1000"),
    };
    static const struct rail rails[] = {{"VDD_IN", 5.0, true}};
    struct tree tree;
    struct backend_run run;
    OPEN_TREE(&tree, &run, named);
    CHECK_RAILS(&run, rails, 5.0);
    assert_string_equal(run.list.items[1]->info.id, "jetson:VDD_IN");
    close_tree(&tree, &run);
}

static void what_is_missing_is_missing_by_itself(void **state)
{
    (void)state; /* field reports B 17, B 18, B 19 */
    static const struct tree_entry bare[] = {{.path = "/etc/nv_tegra_release", .text = "# R35\n"}};
    struct tree tree;
    struct backend_run run;
    OPEN_TREE(&tree, &run, bare);
    assert_int_equal(run.list.count, 1);
    struct wg_device *cpu = backend_find(&run, "jetson:cpu");
    check_absent(cpu, WG_METRIC_CLOCK_HZ, "folder is not there");
    check_no_knob(cpu, WG_KNOB_CPU_CLOCK, "no cpufreq policy");
    struct wg_sample sample;
    assert_int_equal(cpu->ops->read(cpu, UINT32_MAX, &sample, NULL), WG_OK);
    assert_int_equal(sample.present, 0);
    close_tree(&tree, &run);

    OPEN_TREE(&tree, &run, orin_nano); /* a channel of a broken chip */
    backend_close(&run);
    tree_set(&tree, NANO_HWMON "/curr2_input", "nonsense\n");
    tree_remove(&tree, NANO_HWMON "/in3_input");
    backend_open(&run, &wg__backend_jetson, tree.root);
    assert_int_equal(run.code, WG_EDATA);
    assert_int_equal(run.list.count, 4);
    check_absent(backend_find(&run, "jetson:1-0040:VDD_CPU_GPU_CV"), WG_METRIC_POWER_W, "nonsense");
    check_metric(backend_read(backend_find(&run, "jetson:1-0040:VDD_IN")), WG_METRIC_POWER_W, 5.04);
    close_tree(&tree, &run);
}

static void debugfs_is_named_with_what_to_do(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    OPEN_TREE(&tree, &run, orin_nano);
    backend_close(&run);
    assert_int_equal(chmod(tree_path(&tree, "/sys/kernel/debug"), geteuid() == 0 ? 0700 : 0), 0);
    tree_drop_rights();
    backend_open(&run, &wg__backend_jetson, tree.root);
    tree_regain_rights();
    assert_int_equal(chmod(tree_path(&tree, "/sys/kernel/debug"), 0755), 0);
    assert_int_equal(run.code, WG_OK);
    struct wg_device *gpu = backend_find(&run, "jetson:gpu");
    check_absent(gpu, WG_METRIC_MEMORY_CLOCK_HZ, EMC "/rate: Permission denied");
    assert_non_null(strstr(gpu->info.meters[WG_METRIC_MEMORY_CLOCK_HZ].remedy, "root"));
    check_no_knob(gpu, WG_KNOB_MEMORY_CLOCK, "Permission denied");
    assert_non_null(strstr(gpu->info.knobs[WG_KNOB_MEMORY_CLOCK].remedy, "debugfs"));
    check_metric(backend_read(gpu), WG_METRIC_CLOCK_HZ, 408e6);
    check_complete(&run);
    close_tree(&tree, &run);
}

static void another_machine_has_no_jetson(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    tree_add_entry(
        &tree, &(struct tree_entry){.path = "/sys/class/hwmon/hwmon1/name", .text = "ina3221\n"});
    backend_open(&run, &wg__backend_jetson, tree.root);
    assert_int_equal(run.code, WG_ENODEV);
    assert_int_equal(run.list.count, 0);
    assert_non_null(strstr(run.err.text, "/etc/nv_tegra_release"));
    close_tree(&tree, &run);
}

static void a_gpu_that_is_not_chosen_is_not_there(void **state)
{
    (void)state;
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, orin_nano);
    static const struct {
        const char *selector;
        size_t gpus;
    } cases[] = {{"all", 1}, {"0", 1}, {"none", 0}, {"0000:01:00.0", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wg_selection *selection = NULL;
        assert_int_equal(wg__selection_new(&selection, &cases[i].selector, 1, NULL, NULL, NULL),
                         WG_OK);
        const struct wg_backend_config config = {.root = tree.root, .selection = selection};
        struct backend_run run;
        backend_open_config(&run, &wg__backend_jetson, &config);
        assert_int_equal(run.code, WG_OK);
        assert_int_equal(run.list.count, 4 + cases[i].gpus);
        backend_close(&run);
        wg__selection_free(selection);
    }
    tree_close(&tree);
}

static void after_a_boot_the_same_rails_are_found_in_other_folders(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    OPEN_TREE(&tree, &run, orin_nano);
    struct wg_device *total = backend_find(&run, "jetson:1-0040:VDD_IN");
    struct wg_device *gpu = backend_find(&run, "jetson:gpu");
    struct wg_device *cpu = backend_find(&run, "jetson:cpu");
    struct wg_device *const devices[] = {total, gpu, cpu};
    for (size_t i = 0; i < 3; i++)
        devices[i]->ops->release(devices[i]);
    char before[512];
    (void)snprintf(before, sizeof before, "%s", tree_path(&tree, NANO_HWMON));
    assert_int_equal(rename(before, tree_path(&tree, INA3221 "/1-0040/hwmon/hwmon0")), 0);
    struct wg_error err;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(devices[i]->ops->reopen(devices[i], &err), WG_OK);
    check_metric(backend_read(total), WG_METRIC_POWER_W, 5.04);
    check_metric(backend_read(gpu), WG_METRIC_UTILIZATION, 0.425);
    check_metric(backend_read(cpu), WG_METRIC_CLOCK_HZ, 1510.4e6);
    tree_remove_folder(&tree, INA3221 "/1-0040");
    tree_remove_folder(&tree, DEVFREQ);
    assert_int_equal(total->ops->reopen(total, &err), WG_ELOST);
    assert_string_equal(err.text, "no power monitor has a rail VDD_IN any more");
    assert_int_equal(gpu->ops->reopen(gpu, &err), WG_ELOST);
    close_tree(&tree, &run);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, orin_nano);
    const struct wg_backend_config config = {.root = tree.root};
    backend_walk(&wg__backend_jetson, &config);
    tree_close(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rail_that_holds_the_others_is_the_total),
        cmocka_unit_test(the_gpu_has_clocks_a_load_and_no_power_of_its_own),
        cmocka_unit_test(the_cpus_have_a_clock_with_levels),
        cmocka_unit_test(a_tx2_has_its_rails_under_iio),
        cmocka_unit_test(without_a_total_rail_the_rails_add_up),
        cmocka_unit_test(on_an_agx_orin_the_memory_rail_hangs_behind_the_5_volts),
        cmocka_unit_test(a_thor_has_a_supply_of_the_carrier),
        cmocka_unit_test(rails_are_found_by_the_name_of_the_chip_too),
        cmocka_unit_test(what_is_missing_is_missing_by_itself),
        cmocka_unit_test(debugfs_is_named_with_what_to_do),
        cmocka_unit_test(another_machine_has_no_jetson),
        cmocka_unit_test(a_gpu_that_is_not_chosen_is_not_there),
        cmocka_unit_test(after_a_boot_the_same_rails_are_found_in_other_folders),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return run_tests(tests);
}
