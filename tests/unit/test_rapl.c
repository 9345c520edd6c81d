/* SPDX-License-Identifier: MIT
 *
 * CPU packages and memory on fake powercap trees: a server of two sockets, an EPYC, virtual
 * machines, and what root alone may read.
 */
#include <string.h>

#include "support/backend.h"
#include "support/tree.h"

#define POWERCAP     "/sys/class/powercap"
#define SERVER_RANGE "262143328850\n"
#define DRAM_RANGE   "65712999613\n"
#define CPUFREQ      "/sys/devices/system/cpu/cpufreq"

/* Zone 0 is package 1: the number of a zone is not that of its package. */
static const struct tree_entry xeon[] = {
    {.path = "/proc/cpuinfo",
     .text = "processor\t: 0\nvendor_id\t: GenuineIntel\n"
             "model name\t: Intel(R) Xeon(R) Gold 6430\nflags\t\t: fpu vme msr\n"},
    {.path = POWERCAP "/intel-rapl/enabled", .text = "1\n"},
    {.path = POWERCAP "/intel-rapl:0/name", .text = "package-1\n"},
    {.path = POWERCAP "/intel-rapl:0/energy_uj", .text = "200000000000\n"},
    {.path = POWERCAP "/intel-rapl:0/max_energy_range_uj", .text = SERVER_RANGE},
    {.path = POWERCAP "/intel-rapl:0/constraint_0_name", .text = "long_term\n"},
    {.path = POWERCAP "/intel-rapl:0/constraint_0_power_limit_uw", .text = "270000000\n"},
    {.path = POWERCAP "/intel-rapl:0/constraint_0_max_power_uw", .text = "270000000\n"},
    {.path = POWERCAP "/intel-rapl:0/constraint_1_max_power_uw", .text = "534000000\n"},
    {.path = POWERCAP "/intel-rapl:0:0/name", .text = "dram\n"},
    {.path = POWERCAP "/intel-rapl:0:0/energy_uj", .text = "1000\n"},
    {.path = POWERCAP "/intel-rapl:0:0/max_energy_range_uj", .text = DRAM_RANGE},
    {.path = POWERCAP "/intel-rapl:1/name", .text = "package-0\n"},
    {.path = POWERCAP "/intel-rapl:1/energy_uj", .text = "100000000000\n"},
    {.path = POWERCAP "/intel-rapl:1/max_energy_range_uj", .text = SERVER_RANGE},
    {.path = POWERCAP "/intel-rapl:1/constraint_0_power_limit_uw", .text = "250000000\n"},
    {.path = POWERCAP "/intel-rapl:1/constraint_0_max_power_uw", .text = "0\n"},
    {.path = POWERCAP "/intel-rapl:1:0/name", .text = "dram\n"},
    {.path = POWERCAP "/intel-rapl:1:0/energy_uj", .text = "2000\n"},
    {.path = POWERCAP "/intel-rapl:1:0/max_energy_range_uj", .text = DRAM_RANGE},
    {.path = POWERCAP "/intel-rapl:1:1/name", .text = "core\n"},
    {.path = POWERCAP "/intel-rapl:1:1/energy_uj", .text = "3000\n"},
    {.path = POWERCAP "/intel-rapl:2/name", .text = "psys\n"},
    {.path = POWERCAP "/intel-rapl:2/energy_uj", .text = "4000\n"},
    {.path = POWERCAP "/intel-rapl:2/max_energy_range_uj", .text = SERVER_RANGE},
    {.path = POWERCAP "/intel-rapl-mmio:0/name", .text = "package-0\n"},
    {.path = POWERCAP "/intel-rapl-mmio:0/energy_uj", .text = "100000000000\n"},
    {.path = "/sys/class/hwmon/hwmon10/name", .text = "coretemp\n"},
    {.path = "/sys/class/hwmon/hwmon10/temp1_label", .text = "Package id 0\n"},
    {.path = "/sys/class/hwmon/hwmon10/temp1_input", .text = "41000\n"},
    {.path = "/sys/class/hwmon/hwmon2/name", .text = "coretemp\n"},
    {.path = "/sys/class/hwmon/hwmon2/temp1_label", .text = "Package id 1\n"},
    {.path = "/sys/class/hwmon/hwmon2/temp1_input", .text = "52000\n"},
    {.path = "/sys/class/hwmon/hwmon0/name", .text = "nvme\n"},
    {.path = "/sys/devices/system/cpu/cpu0/topology/physical_package_id", .text = "0\n"},
    {.path = "/sys/devices/system/cpu/cpu1/topology/physical_package_id", .text = "0\n"},
    {.path = "/sys/devices/system/cpu/cpu2/topology/physical_package_id", .text = "1\n"},
    {.path = CPUFREQ "/policy0/scaling_cur_freq", .text = "2000000\n"},
    {.path = CPUFREQ "/policy0/scaling_max_freq", .text = "3000000\n"},
    {.path = CPUFREQ "/policy0/cpuinfo_min_freq", .text = "800000\n"},
    {.path = CPUFREQ "/policy0/cpuinfo_max_freq", .text = "3400000\n"},
    {.path = CPUFREQ "/policy1/scaling_cur_freq", .text = "3000000\n"},
    {.path = CPUFREQ "/policy1/scaling_max_freq", .text = "3000000\n"},
    {.path = CPUFREQ "/policy1/cpuinfo_min_freq", .text = "800000\n"},
    {.path = CPUFREQ "/policy1/cpuinfo_max_freq", .text = "3600000\n"},
    {.path = CPUFREQ "/policy2/scaling_cur_freq", .text = "1000000\n"},
    {.path = CPUFREQ "/policy2/scaling_max_freq", .text = "3400000\n", .mode = 0444},
    {.path = CPUFREQ "/policy2/cpuinfo_min_freq", .text = "800000\n"},
    {.path = CPUFREQ "/policy2/cpuinfo_max_freq", .text = "3400000\n"},
    {.path = CPUFREQ "/policy2/scaling_available_frequencies",
     .text = "3400000 2100000 800000 800000 \n"},
};

static void open_xeon(struct tree *tree, struct backend_run *run)
{
    tree_open(tree);
    TREE_ADD(tree, xeon);
    backend_must_open(run, &wg__backend_rapl, tree->root);
}

static void close_tree(struct tree *tree, struct backend_run *run)
{
    backend_close(run);
    tree_close(tree);
}

static void a_server_has_its_packages_in_order_whatever_the_zones_are_called(void **state)
{
    (void)state;
    static const struct {
        const char *id, *name;
        enum wg_device_kind kind;
        bool counts;
        double energy_j;
    } expected[] = {
        {"rapl:package-0", "Intel(R) Xeon(R) Gold 6430 (package-0)", WG_DEVICE_CPU, true, 100000.0},
        {"rapl:package-0:dram", "memory of package-0", WG_DEVICE_DRAM, true, 0.002},
        {"rapl:package-0:core", "core0", WG_DEVICE_RAIL, false, 0.003},
        {"rapl:package-1", "Intel(R) Xeon(R) Gold 6430 (package-1)", WG_DEVICE_CPU, true, 200000.0},
        {"rapl:package-1:dram", "memory of package-1", WG_DEVICE_DRAM, true, 0.001},
        {"rapl:psys", "psys", WG_DEVICE_RAIL, false, 0.004},
    };
    struct tree tree;
    struct backend_run run;
    open_xeon(&tree, &run);
    assert_int_equal(run.list.count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < run.list.count; i++) {
        const struct wg_device_info *info = &run.list.items[i]->info;
        assert_string_equal(info->id, expected[i].id);
        assert_string_equal(info->name, expected[i].name);
        assert_int_equal(info->kind, expected[i].kind);
        assert_int_equal(info->counts_in_total, expected[i].counts);
        const struct wg_sample sample = backend_read(run.list.items[i]);
        check_metric(sample, WG_METRIC_ENERGY_J, expected[i].energy_j);
        assert_true(sample.t_ns > 0 && sample.span_ns < UINT64_C(60000000000));
    }
    check_complete(&run);
    close_tree(&tree, &run);
}

static void a_package_has_a_clock_a_temperature_and_a_limit(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    open_xeon(&tree, &run);
    struct wg_device *first = backend_find(&run, "rapl:package-0");
    struct wg_device *second = backend_find(&run, "rapl:package-1");
    struct wg_sample sample = backend_read(first);
    check_metric(sample, WG_METRIC_CLOCK_HZ, 2.5e9);
    check_metric(sample, WG_METRIC_TEMPERATURE_C, 41.0);
    check_metric(sample, WG_METRIC_POWER_LIMIT_W, 250.0);
    sample = backend_read(second);
    check_metric(sample, WG_METRIC_CLOCK_HZ, 1e9);
    check_metric(sample, WG_METRIC_TEMPERATURE_C, 52.0);
    check_metric(sample, WG_METRIC_POWER_LIMIT_W, 270.0);
    check_absent(second, WG_METRIC_POWER_W, "energy only");

    const struct wg_knob_info *limit = &second->info.knobs[WG_KNOB_POWER_LIMIT];
    assert_true(limit->is_present && limit->is_writable);
    check_close(limit->max, 270.0, 1e-12);
    check_close(limit->current, 270.0, 1e-12);
    assert_string_equal(limit->source, POWERCAP "/intel-rapl:0/constraint_0_power_limit_uw");
    check_no_knob(first, WG_KNOB_POWER_LIMIT, "no largest limit");

    const struct wg_knob_info *clock = &first->info.knobs[WG_KNOB_CPU_CLOCK];
    assert_true(clock->is_present && clock->is_writable);
    check_close(clock->min, 0.8e9, 1e-12);
    check_close(clock->max, 3.6e9, 1e-12);
    check_close(clock->current, 3.0e9, 1e-12);
    assert_null(clock->levels);
    clock = &second->info.knobs[WG_KNOB_CPU_CLOCK];
    assert_true(clock->is_present);
    assert_false(clock->is_writable);
    assert_string_equal(clock->why_not,
                        CPUFREQ "/policy2/scaling_max_freq: this process may not write it");
    assert_non_null(strstr(clock->remedy, "root"));
    assert_int_equal(clock->level_count, 3);
    check_close(clock->levels[0], 0.8e9, 1e-12);
    check_close(clock->levels[1], 2.1e9, 1e-12);
    check_close(clock->levels[2], 3.4e9, 1e-12);
    check_no_knob(first, WG_KNOB_GPU_CLOCK, "powercap");
    close_tree(&tree, &run);
}

static void each_zone_says_how_often_it_must_be_read(void **state)
{
    (void)state; /* field report 72: from range and the largest power */
    struct tree tree;
    struct backend_run run;
    open_xeon(&tree, &run);
    const struct wg_meter_info *meter =
        &backend_find(&run, "rapl:package-0")->info.meters[WG_METRIC_ENERGY_J];
    check_close(meter->wrap_s, 262143.32885 / 2000.0, 1e-9);
    check_close(meter->resolution, 61.035e-6, 1e-6);
    check_close(meter->update_period_s, 1e-3, 1e-12);
    meter = &backend_find(&run, "rapl:package-0:dram")->info.meters[WG_METRIC_ENERGY_J];
    check_close(meter->wrap_s, 65712.999613 / 2000.0, 1e-9);
    meter = &backend_find(&run, "rapl:psys")->info.meters[WG_METRIC_ENERGY_J];
    check_close(meter->wrap_s, 262143.32885 / 20000.0, 1e-9);
    meter = &backend_find(&run, "rapl:package-0:core")->info.meters[WG_METRIC_ENERGY_J];
    check_close(meter->wrap_s, 65000.0 / 2000.0, 1e-9); /* its range cannot be read */
    close_tree(&tree, &run);
}

static void each_zone_wraps_by_its_own_range(void **state)
{
    (void)state; /* field reports 2, 3, 73: only the memory wraps, and by its own range */
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    TREE_ADD(&tree, xeon);
    tree_set(&tree, POWERCAP "/intel-rapl:1:0/energy_uj", "65712999000\n");
    backend_open(&run, &wg__backend_rapl, tree.root);
    struct wg_device *package = backend_find(&run, "rapl:package-0");
    struct wg_device *memory = backend_find(&run, "rapl:package-0:dram");
    (void)backend_read(package);
    (void)backend_read(memory);
    tree_set(&tree, POWERCAP "/intel-rapl:1:0/energy_uj", "387\n");
    tree_set(&tree, POWERCAP "/intel-rapl:1/energy_uj", "100000250000\n");
    const struct wg_sample of_package = backend_read(package);
    const struct wg_sample of_memory = backend_read(memory);
    check_metric(of_package, WG_METRIC_ENERGY_J, 100000.25);
    check_metric(of_memory, WG_METRIC_ENERGY_J, 65713.0);
    close_tree(&tree, &run);
}

static void a_reset_counter_and_an_unknown_range_cost_one_sample_and_no_joule(void **state)
{
    (void)state; /* field report 1 */
    struct tree tree;
    struct backend_run run;
    open_xeon(&tree, &run);
    struct wg_device *package = backend_find(&run, "rapl:package-0");
    struct wg_device *core = backend_find(&run, "rapl:package-0:core");
    tree_set(&tree, POWERCAP "/intel-rapl:1/energy_uj", "1000\n");
    tree_set(&tree, POWERCAP "/intel-rapl:1:1/energy_uj", "10\n");
    struct wg_sample sample = backend_read(package);
    assert_false(wg__sample_has(&sample, WG_METRIC_ENERGY_J));
    check_metric(sample, WG_METRIC_TEMPERATURE_C, 41.0);
    sample = backend_read(core);
    assert_int_equal(sample.present, 0); /* no error: it did answer */
    tree_set(&tree, POWERCAP "/intel-rapl:1/energy_uj", "3000\n");
    tree_set(&tree, POWERCAP "/intel-rapl:1:1/energy_uj", "20\n");
    sample = backend_read(package);
    check_metric(sample, WG_METRIC_ENERGY_J, 100000.002);
    sample = backend_read(core);
    check_metric(sample, WG_METRIC_ENERGY_J, 0.00301);
    close_tree(&tree, &run);
}

static void an_epyc_has_packages_only(void **state)
{
    (void)state;
    static const struct tree_entry epyc[] = {
        {.path = "/proc/cpuinfo", .text = "model name\t: AMD EPYC 7763 64-Core Processor\n"},
        {.path = POWERCAP "/intel-rapl:0/name", .text = "package-0\n"},
        {.path = POWERCAP "/intel-rapl:0/energy_uj", .text = "41000000\n"},
        {.path = POWERCAP "/intel-rapl:0/max_energy_range_uj", .text = "65532610987\n"},
        {.path = POWERCAP "/intel-rapl:0:0/name", .text = "core\n"},
        {.path = POWERCAP "/intel-rapl:0:0/energy_uj", .text = "17\n"},
        {.path = "/sys/class/hwmon/hwmon4/name", .text = "k10temp\n"},
        {.path = "/sys/class/hwmon/hwmon4/temp1_label", .text = "Tctl\n"},
        {.path = "/sys/class/hwmon/hwmon4/temp1_input", .text = "38500\n"},
    };
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    TREE_ADD(&tree, epyc);
    backend_open(&run, &wg__backend_rapl, tree.root);
    assert_int_equal(run.code, WG_OK);
    assert_int_equal(run.list.count, 2);
    struct wg_device *package = backend_find(&run, "rapl:package-0");
    const struct wg_sample sample = backend_read(package);
    check_metric(sample, WG_METRIC_ENERGY_J, 41.0);
    check_metric(sample, WG_METRIC_TEMPERATURE_C, 38.5);
    check_no_knob(package, WG_KNOB_POWER_LIMIT, "No such file");
    check_no_knob(package, WG_KNOB_CPU_CLOCK, "no cpufreq policy");
    check_absent(package, WG_METRIC_CLOCK_HZ, "no cpufreq policy");
    check_complete(&run);
    close_tree(&tree, &run);
}

static void a_second_die_makes_the_temperature_doubtful(void **state)
{
    (void)state;
    static const struct tree_entry dies[] = {
        {.path = POWERCAP "/intel-rapl:0/name", .text = "package-0-die-1\n"},
        {.path = POWERCAP "/intel-rapl:0/energy_uj", .text = "2\n"},
        {.path = POWERCAP "/intel-rapl:1/name", .text = "package-0-die-0\n"},
        {.path = POWERCAP "/intel-rapl:1/energy_uj", .text = "1\n"},
        {.path = POWERCAP "/intel-rapl:1:0/name", .text = "uncore\n"},
        {.path = POWERCAP "/intel-rapl:1:0/energy_uj", .text = "1\n"},
        {.path = POWERCAP "/intel-rapl:2/name", .text = "package-x\n"},
        {.path = POWERCAP "/intel-rapl:2:0/name", .text = "core\n"},
        {.path = "/sys/class/hwmon/hwmon0/name", .text = "k10temp\n"},
        {.path = "/sys/class/hwmon/hwmon0/temp1_input", .text = "38500\n"},
    };
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    TREE_ADD(&tree, dies);
    backend_open(&run, &wg__backend_rapl, tree.root);
    assert_int_equal(run.list.count, 3); /* what has a name we do not know is left out */
    assert_string_equal(run.list.items[0]->info.id, "rapl:package-0-die-0");
    assert_string_equal(run.list.items[1]->info.name, "uncore0.0");
    assert_string_equal(run.list.items[2]->info.id, "rapl:package-0-die-1");
    check_absent(run.list.items[0], WG_METRIC_TEMPERATURE_C, "not one k10temp");
    close_tree(&tree, &run);
}

static void a_machine_without_rapl_is_told_apart_from_a_virtual_one(void **state)
{
    (void)state; /* field report 59 */
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    backend_open(&run, &wg__backend_rapl, tree.root);
    assert_int_equal(run.code, WG_ENODEV);
    assert_non_null(strstr(run.err.text, POWERCAP));
    assert_non_null(strstr(run.remedy, "modprobe intel_rapl_msr"));
    backend_close(&run);
    tree_add_entry(&tree, &(struct tree_entry){.path = POWERCAP "/intel-rapl/enabled", "0\n"});
    tree_add_entry(&tree, &(struct tree_entry){.path = "/proc/cpuinfo",
                                               .text = "model name\t: Xeon\n"
                                                       "flags\t\t: fpu hypervisor lm\n"});
    backend_open(&run, &wg__backend_rapl, tree.root);
    assert_int_equal(run.code, WG_ENODEV);
    assert_non_null(strstr(run.err.text, "virtual machine"));
    assert_null(run.remedy);
    close_tree(&tree, &run);
}

static void a_counter_in_a_virtual_machine_is_not_taken_at_its_word(void **state)
{
    (void)state; /* field report 76 */
    static const struct tree_entry vm[] = {
        {.path = "/proc/cpuinfo", .text = "model name\t: Xeon\nflags\t\t: fpu hypervisor\n"},
        {.path = POWERCAP "/intel-rapl:0/name", .text = "package-0\n"},
        {.path = POWERCAP "/intel-rapl:0/energy_uj", .text = "0\n"},
        {.path = POWERCAP "/intel-rapl:1/name", .text = "package-1\n"},
        {.path = POWERCAP "/intel-rapl:1/energy_uj", .text = "5\n"},
    };
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    TREE_ADD(&tree, vm);
    backend_open(&run, &wg__backend_rapl, tree.root);
    check_absent(backend_find(&run, "rapl:package-0"), WG_METRIC_ENERGY_J, "virtual machine");
    const struct wg_meter_info *meter =
        &backend_find(&run, "rapl:package-1")->info.meters[WG_METRIC_ENERGY_J];
    assert_true(meter->is_present);
    assert_non_null(strstr(meter->source, "virtual machine"));
    struct wg_sample sample;
    assert_int_equal(run.list.items[0]->ops->read(run.list.items[0], UINT32_MAX, &sample, NULL),
                     WG_OK);
    assert_int_equal(sample.present, 0);
    close_tree(&tree, &run);
}

static void what_root_alone_may_read_is_named_with_what_to_do(void **state)
{
    (void)state; /* field report 63 */
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    TREE_ADD(&tree, xeon);
    assert_int_equal(
        chmod(tree_path(&tree, POWERCAP "/intel-rapl:1/energy_uj"), geteuid() == 0 ? 0400 : 0), 0);
    tree_drop_rights();
    backend_open(&run, &wg__backend_rapl, tree.root);
    tree_regain_rights();
    assert_int_equal(run.code, WG_OK);
    struct wg_device *package = backend_find(&run, "rapl:package-0");
    const struct wg_meter_info *meter = &package->info.meters[WG_METRIC_ENERGY_J];
    assert_false(meter->is_present);
    /* Field report 62: a counter that is hidden hides nothing else. */
    const struct wg_sample rest = backend_read(package);
    assert_true(wg__sample_has(&rest, WG_METRIC_CLOCK_HZ));
    assert_true(wg__sample_has(&rest, WG_METRIC_TEMPERATURE_C));
    assert_false(wg__sample_has(&rest, WG_METRIC_ENERGY_J));
    assert_non_null(strstr(meter->why_not, "Permission denied"));
    assert_non_null(strstr(meter->remedy, "root"));
    assert_non_null(strstr(meter->remedy, "CAP_DAC_READ_SEARCH"));
    assert_non_null(strstr(meter->remedy, "bind-mount"));
    /* The others go on. */
    const struct wg_sample sample = backend_read(backend_find(&run, "rapl:package-1"));
    check_metric(sample, WG_METRIC_ENERGY_J, 200000.0);
    check_complete(&run);
    close_tree(&tree, &run);
}

static void a_zone_of_which_nothing_can_be_read_has_failed(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    static const struct tree_entry bare[] = {
        {.path = POWERCAP "/intel-rapl:0/name", .text = "package-0\n"},
        {.path = POWERCAP "/intel-rapl:0/energy_uj", .text = "17\n"},
    };
    TREE_ADD(&tree, bare);
    assert_int_equal(
        chmod(tree_path(&tree, POWERCAP "/intel-rapl:0/energy_uj"), geteuid() == 0 ? 0400 : 0), 0);
    tree_drop_rights();
    backend_open(&run, &wg__backend_rapl, tree.root);
    tree_regain_rights();
    assert_int_equal(run.code, WG_EPERM);
    assert_string_equal(run.err.text,
                        "opening " POWERCAP "/intel-rapl:0/energy_uj: Permission denied");
    close_tree(&tree, &run);
}

static void a_zone_that_vanishes_is_lost(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    open_xeon(&tree, &run);
    struct wg_device *memory = backend_find(&run, "rapl:package-1:dram");
    tree_remove_folder(&tree, POWERCAP "/intel-rapl:0:0");
    memory->ops->release(memory); /* an open file of a fake tree goes on to answer */
    struct wg_sample sample;
    struct wg_error err;
    assert_int_equal(memory->ops->read(memory, UINT32_MAX, &sample, &err), WG_ELOST);
    assert_string_equal(err.text, POWERCAP "/intel-rapl:0:0 is gone");
    assert_int_equal(memory->ops->reopen(memory, &err), WG_ELOST);
    assert_int_equal(memory->ops->probe(memory, &err), WG_ELOST);
    assert_int_equal(memory->ops->read(memory, UINT32_MAX, &sample, &err), WG_OK);
    assert_int_equal(sample.present, 0);
    close_tree(&tree, &run);
}

static void after_a_release_zones_are_found_by_name_and_totals_go_on(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    open_xeon(&tree, &run);
    struct wg_device *package = backend_find(&run, "rapl:package-0");
    package->ops->release(package);
    /* The driver is loaded anew and finds the packages the other way round. */
    tree_set(&tree, POWERCAP "/intel-rapl:0/name", "package-0\n");
    tree_set(&tree, POWERCAP "/intel-rapl:1/name", "package-1\n");
    tree_set(&tree, POWERCAP "/intel-rapl:0/energy_uj", "100000001000\n");
    struct wg_error err;
    assert_int_equal(package->ops->reopen(package, &err), WG_OK);
    struct wg_sample sample = backend_read(package);
    check_metric(sample, WG_METRIC_ENERGY_J, 100000.001);
    check_metric(sample, WG_METRIC_CLOCK_HZ, 2.5e9);
    /* A second probe forgets nothing of it either. */
    assert_int_equal(package->ops->probe(package, &err), WG_OK);
    sample = backend_read(package);
    check_metric(sample, WG_METRIC_ENERGY_J, 100000.001);
    check_complete(&run);
    close_tree(&tree, &run);
}

static void many_policies_are_read_by_a_few(void **state)
{
    (void)state;
    struct tree tree;
    tree_open(&tree);
    static const struct tree_entry entries[] = {
        {.path = POWERCAP "/intel-rapl:0/name", .text = "package-0\n"},
        {.path = POWERCAP "/intel-rapl:0/energy_uj", .text = "1\n"},
    };
    TREE_ADD(&tree, entries);
    for (unsigned i = 0; i < 80; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, CPUFREQ "/policy%u/scaling_cur_freq", i);
        tree_add_entry(&tree, &(struct tree_entry){.path = path, .text = ""});
        tree_set_number(&tree, path, 1000000 + UINT64_C(10000) * i);
    }
    struct backend_run run;
    backend_open(&run, &wg__backend_rapl, tree.root);
    const struct wg_sample sample = backend_read(run.list.items[0]);
    check_metric(sample, WG_METRIC_CLOCK_HZ, 1.35e9); /* cores 0, 10, 20 .. 70 */
    check_no_knob(run.list.items[0], WG_KNOB_CPU_CLOCK, "no range");
    close_tree(&tree, &run);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, xeon);
    const struct wg_backend_config config = {.root = tree.root};
    backend_walk(&wg__backend_rapl, &config);
    tree_close(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_has_its_packages_in_order_whatever_the_zones_are_called),
        cmocka_unit_test(a_package_has_a_clock_a_temperature_and_a_limit),
        cmocka_unit_test(each_zone_says_how_often_it_must_be_read),
        cmocka_unit_test(each_zone_wraps_by_its_own_range),
        cmocka_unit_test(a_reset_counter_and_an_unknown_range_cost_one_sample_and_no_joule),
        cmocka_unit_test(an_epyc_has_packages_only),
        cmocka_unit_test(a_second_die_makes_the_temperature_doubtful),
        cmocka_unit_test(a_machine_without_rapl_is_told_apart_from_a_virtual_one),
        cmocka_unit_test(a_counter_in_a_virtual_machine_is_not_taken_at_its_word),
        cmocka_unit_test(what_root_alone_may_read_is_named_with_what_to_do),
        cmocka_unit_test(a_zone_of_which_nothing_can_be_read_has_failed),
        cmocka_unit_test(a_zone_that_vanishes_is_lost),
        cmocka_unit_test(after_a_release_zones_are_found_by_name_and_totals_go_on),
        cmocka_unit_test(many_policies_are_read_by_a_few),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return run_tests(tests);
}
