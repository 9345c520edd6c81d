/* SPDX-License-Identifier: MIT
 *
 * A whole machine of the kernel's files, opened as a program does: a server with a CPU package, its
 * memory and an AMD GPU. NVIDIA GPUs that the real machine may have are looked past.
 */
#include <string.h>

#include "support/backend.h"
#include "support/tree.h"
#include "wattgov/device.h"

#define POWERCAP "/sys/class/powercap"
#define CARD     "/sys/class/drm/card0/device"

static const struct tree_entry server[] = {
    {.path = "/proc/cpuinfo", .text = "model name\t: Some CPU\n"},
    {.path = POWERCAP "/intel-rapl:0/name", .text = "package-0\n"},
    {.path = POWERCAP "/intel-rapl:0/energy_uj", .text = "5000000\n"},
    {.path = POWERCAP "/intel-rapl:0/max_energy_range_uj", .text = "262143328850\n"},
    {.path = POWERCAP "/intel-rapl:0:0/name", .text = "dram\n"},
    {.path = POWERCAP "/intel-rapl:0:0/energy_uj", .text = "3000000\n"},
    {.path = POWERCAP "/intel-rapl:0:1/name", .text = "core\n"},
    {.path = POWERCAP "/intel-rapl:0:1/energy_uj", .text = "1000000\n"},
    {.path = POWERCAP "/intel-rapl:1/name", .text = "psys\n"},
    {.path = POWERCAP "/intel-rapl:1/energy_uj", .text = "9000000\n"},
    {.path = CARD "/vendor", .text = "0x1002\n"},
    {.path = CARD "/device", .text = "0x744c\n"},
    {.path = CARD "/uevent", .text = "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n"},
    {.path = CARD "/hwmon/hwmon5/power1_average", .text = "120000000\n"},
};

static struct wg_machine *open_machine(const struct tree *tree)
{
    struct wg_machine *machine = NULL;
    struct wg_error err;
    const struct wg_machine_opts opts = WG_MACHINE_OPTS(.root = tree->root);
    if (wg_machine_open(&machine, &opts, &err) != WG_OK)
        fail_msg("%s", err.text);
    return machine;
}

static struct wg_device *find(const struct wg_machine *machine, const char *id)
{
    for (size_t i = 0; i < wg_machine_device_count(machine); i++) {
        struct wg_device *device = wg_machine_device(machine, i);
        if (strcmp(wg_device_get_info(device)->id, id) == 0)
            return device;
    }
    fail_msg("no device %s", id);
    return NULL;
}

static double read_metric(struct wg_device *device, enum wg_metric metric)
{
    struct wg_sample sample;
    struct wg_error err;
    if (wg_device_read(device, UINT32_MAX, &sample, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_true(wg__sample_has(&sample, metric));
    return sample.values[metric];
}

static void devices_have_short_names_and_count_once(void **state)
{
    (void)state;
    static const struct {
        const char *id, *label;
        bool counts;
    } expected[] = {
        {"rapl:package-0", "cpu0", true},
        {"rapl:package-0:dram", "dram0", true},
        {"rapl:package-0:core", "core0", false},
        {"rapl:psys", "psys", false},
    };
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, server);
    struct wg_machine *machine = open_machine(&tree);
    double total_j = 0.0;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        struct wg_device *device = find(machine, expected[i].id);
        const struct wg_device_info *info = wg_device_get_info(device);
        assert_string_equal(info->label, expected[i].label);
        assert_string_equal(info->backend, "rapl");
        assert_int_equal(info->counts_in_total, expected[i].counts);
        if (info->counts_in_total)
            total_j += read_metric(device, WG_METRIC_ENERGY_J);
    }
    check_close(total_j, 8.0, 1e-12);
    struct wg_device *gpu = find(machine, "0000:03:00.0");
    assert_int_equal(wg_device_get_info(gpu)->kind, WG_DEVICE_GPU);
    check_close(read_metric(gpu, WG_METRIC_POWER_W), 120.0, 1e-12);
    wg_machine_close(machine);
    tree_close(&tree);
}

static void they_come_back_after_quiesce_wherever_they_are(void **state)
{
    (void)state; /* field report 38 */
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, server);
    struct wg_machine *machine = open_machine(&tree);
    struct wg_device *gpu = find(machine, "0000:03:00.0");
    struct wg_device *memory = find(machine, "rapl:package-0:dram");
    struct wg_error err;
    assert_int_equal(wg_machine_quiesce(machine, &err), WG_OK);
    char before[512];
    (void)snprintf(before, sizeof before, "%s", tree_path(&tree, CARD "/hwmon/hwmon5"));
    assert_int_equal(rename(before, tree_path(&tree, CARD "/hwmon/hwmon1")), 0);
    tree_remove_folder(&tree, POWERCAP "/intel-rapl:0:0");
    (void)wg_machine_resume(machine, &err); /* it tells of the memory */
    check_close(read_metric(gpu, WG_METRIC_POWER_W), 120.0, 1e-12);
    assert_int_equal(wg_device_get_info(memory)->state, WG_ELOST);
    struct wg_sample sample;
    assert_int_equal(wg_device_read(memory, UINT32_MAX, &sample, &err), WG_ELOST);
    wg_machine_close(machine);
    tree_close(&tree);
}

static void without_rights_the_state_says_so_and_the_rest_goes_on(void **state)
{
    (void)state; /* field report 63 */
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, server);
    const mode_t mode = geteuid() == 0 ? 0400 : 0;
    assert_int_equal(chmod(tree_path(&tree, POWERCAP "/intel-rapl:0/energy_uj"), mode), 0);
    tree_drop_rights();
    struct wg_machine *machine = open_machine(&tree);
    tree_regain_rights();
    const struct wg_device_info *info = wg_device_get_info(find(machine, "rapl:package-0"));
    assert_int_equal(info->state, WG_EPERM);
    assert_non_null(strstr(info->state_text, POWERCAP "/intel-rapl:0/energy_uj"));
    assert_non_null(strstr(info->meters[WG_METRIC_ENERGY_J].remedy, "root"));
    check_close(read_metric(find(machine, "0000:03:00.0"), WG_METRIC_POWER_W), 120.0, 1e-12);
    wg_machine_close(machine);
    tree_close(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_have_short_names_and_count_once),
        cmocka_unit_test(they_come_back_after_quiesce_wherever_they_are),
        cmocka_unit_test(without_rights_the_state_says_so_and_the_rest_goes_on),
    };
    return run_tests(tests);
}
