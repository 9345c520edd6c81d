/* SPDX-License-Identifier: MIT
 *
 * AMD GPUs on fake trees: a Radeon, an MI210, the two dies of an MI250, an MI300X in a virtual
 * machine, a processor with graphics, a laptop whose GPU sleeps.
 */
#include <string.h>

#include "device/select.h"
#include "support/backend.h"
#include "support/rocm_smi_stage.h"
#include "support/tree.h"

#define DRM          "/sys/class/drm"
#define RADEON       DRM "/card1/device"
#define RADEON_HWMON RADEON "/hwmon/hwmon5"
#define UNIT_J       (1.0 / 65536.0)

static const struct tree_entry radeon[] = {
    {.path = RADEON "/vendor", .text = "0x1002\n"},
    {.path = RADEON "/device", .text = "0x744c\n"},
    {.path = RADEON "/uevent",
     .text = "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n"},
    {.path = RADEON "/numa_node", .text = "1\n"},
    {.path = RADEON "/unique_id", .text = "5f1a2b3c4d5e6f70\n"},
    {.path = RADEON "/power/runtime_status", .text = "active\n"},
    {.path = RADEON "/gpu_busy_percent", .text = "97\n"},
    {.path = RADEON "/mem_busy_percent", .text = "41\n"},
    {.path = RADEON "/mem_info_vram_total", .text = "25753026560\n"},
    {.path = RADEON "/mem_info_vram_used", .text = "1073741824\n"},
    {.path = RADEON "/pp_dpm_sclk", .text = "0: 500Mhz\n1: 1800Mhz *\n2: 2482Mhz\n"},
    {.path = RADEON "/pp_dpm_mclk", .text = "0: 96Mhz\n1: 1249Mhz *\n", .mode = 0444},
    {.path = RADEON_HWMON "/name", .text = "amdgpu\n"},
    {.path = RADEON_HWMON "/power1_average", .text = "312000000\n"},
    {.path = RADEON_HWMON "/power1_cap", .text = "339000000\n"},
    {.path = RADEON_HWMON "/power1_cap_min", .text = "305000000\n"},
    {.path = RADEON_HWMON "/power1_cap_max", .text = "389000000\n"},
    {.path = RADEON_HWMON "/power1_cap_default", .text = "339000000\n"},
    {.path = RADEON_HWMON "/temp1_input", .text = "61000\n"},
    {.path = RADEON_HWMON "/freq1_input", .text = "1803000000\n"},
    {.path = DRM "/card1-DP-1/status", .text = "connected\n"},
    {.path = DRM "/renderD128/dev", .text = "226:128\n"},
};

/* A gpu_metrics table of revision 1.`content`. */
static void set_metrics(struct tree *tree, const char *path, unsigned content, uint64_t energy)
{
    unsigned char bytes[120];
    memset(bytes, 0xff, sizeof bytes);
    const uint16_t size = sizeof bytes;
    memcpy(bytes, &size, sizeof size);
    bytes[2] = 1;
    bytes[3] = (unsigned char)content;
    memcpy(bytes + (content == 6 ? 16 : 24), &energy, sizeof energy);
    const struct tree_entry entry = {
        .path = path, .text = (const char *)bytes, .length = sizeof bytes};
    tree_add_entry(tree, &entry);
}

static void open_radeon(struct tree *tree)
{
    tree_open(tree);
    TREE_ADD(tree, radeon);
    set_metrics(tree, RADEON "/gpu_metrics", 3, 65536 * UINT64_C(1000));
}

/* Adds a card N with a PCI bus and an id. */
static void add_card(struct tree *tree, unsigned card, unsigned bus, const char *device_id)
{
    char path[128];
    char text[128];
    const struct tree_entry entry = {.path = path, .text = text};
    (void)snprintf(path, sizeof path, DRM "/card%u/device/vendor", card);
    (void)snprintf(text, sizeof text, "0x1002\n");
    tree_add_entry(tree, &entry);
    (void)snprintf(path, sizeof path, DRM "/card%u/device/device", card);
    (void)snprintf(text, sizeof text, "%s\n", device_id);
    tree_add_entry(tree, &entry);
    (void)snprintf(path, sizeof path, DRM "/card%u/device/uevent", card);
    (void)snprintf(text, sizeof text, "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:%02x:00.0\n", bus);
    tree_add_entry(tree, &entry);
}

static void close_tree(struct tree *tree, struct backend_run *run)
{
    backend_close(run);
    tree_close(tree);
}

static void a_radeon_tells_all_that_sysfs_has(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    open_radeon(&tree);
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    assert_int_equal(run.code, WG_OK);
    assert_int_equal(run.list.count, 1);
    struct wg_device *device = backend_find(&run, "GPU-5f1a2b3c4d5e6f70");
    const struct wg_device_info *info = &device->info;
    assert_int_equal(info->kind, WG_DEVICE_GPU);
    assert_string_equal(info->name, "AMD GPU 0x744c");
    assert_string_equal(info->pci, "0000:03:00.0");
    assert_string_equal(info->uuid, "GPU-5f1a2b3c4d5e6f70");
    assert_int_equal(info->numa_node, 1);
    assert_true(info->memory_bytes == UINT64_C(25753026560));
    assert_true(info->counts_in_total);

    const struct wg_sample sample = backend_read(device);
    check_metric(sample, WG_METRIC_POWER_W, 312.0);
    check_metric(sample, WG_METRIC_POWER_AVERAGE_W, 312.0);
    check_metric(sample, WG_METRIC_ENERGY_J, 1000.0);
    check_metric(sample, WG_METRIC_CLOCK_HZ, 1803e6);
    check_metric(sample, WG_METRIC_MEMORY_CLOCK_HZ, 1249e6);
    check_metric(sample, WG_METRIC_TEMPERATURE_C, 61.0);
    check_metric(sample, WG_METRIC_UTILIZATION, 0.97);
    check_metric(sample, WG_METRIC_MEMORY_UTILIZATION, 0.41);
    check_metric(sample, WG_METRIC_MEMORY_USED_BYTES, 1073741824.0);
    check_metric(sample, WG_METRIC_POWER_LIMIT_W, 339.0);
    assert_string_equal(info->meters[WG_METRIC_POWER_W].source, RADEON_HWMON "/power1_average");
    check_close(info->meters[WG_METRIC_ENERGY_J].wrap_s, 65536.0 / 2000.0, 1e-12);
    check_absent(device, WG_METRIC_THROTTLED_POWER_S, "amdgpu");

    const struct wg_knob_info *knob = &info->knobs[WG_KNOB_POWER_LIMIT];
    assert_true(knob->is_present && knob->is_writable);
    check_close(knob->min, 305.0, 1e-12);
    check_close(knob->max, 389.0, 1e-12);
    check_close(knob->preset, 339.0, 1e-12);
    check_close(knob->current, 339.0, 1e-12);
    knob = &info->knobs[WG_KNOB_GPU_CLOCK];
    assert_int_equal(knob->level_count, 3);
    check_close(knob->levels[2], 2482e6, 1e-12);
    knob = &info->knobs[WG_KNOB_MEMORY_CLOCK];
    assert_true(knob->is_present);
    assert_false(knob->is_writable);
    assert_non_null(strstr(knob->why_not, "pp_dpm_mclk"));
    check_complete(&run);
    close_tree(&tree, &run);
}

static void an_accelerator_without_an_edge_sensor_has_its_hottest_spot(void **state)
{
    (void)state; /* MI210: instantaneous power absent, 64 bits of energy, cap without a choice */
    static const struct tree_entry mi210[] = {
        {.path = DRM "/card0/device/product_name", .text = "Instinct MI210\n"},
        {.path = DRM "/card0/device/hwmon/hwmon3/power1_average", .text = "84000000\n"},
        {.path = DRM "/card0/device/hwmon/hwmon3/power1_cap", .text = "290000000\n"},
        {.path = DRM "/card0/device/hwmon/hwmon3/power1_cap_min", .text = "290000000\n"},
        {.path = DRM "/card0/device/hwmon/hwmon3/power1_cap_max", .text = "290000000\n"},
        {.path = DRM "/card0/device/hwmon/hwmon3/temp2_input", .text = "45000\n"},
        {.path = DRM "/card0/device/pp_dpm_sclk", .text = "0: 500Mhz *\n"},
    };
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    add_card(&tree, 0, 0xc1, "0x740f");
    TREE_ADD(&tree, mi210);
    set_metrics(&tree, DRM "/card0/device/gpu_metrics", 3, UINT64_C(1) << 40);
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    assert_int_equal(run.code, WG_OK);
    struct wg_device *device = backend_find(&run, "0000:c1:00.0");
    assert_string_equal(device->info.name, "Instinct MI210");
    assert_null(device->info.uuid);
    struct wg_sample sample = backend_read(device);
    check_metric(sample, WG_METRIC_TEMPERATURE_C, 45.0);
    check_metric(sample, WG_METRIC_CLOCK_HZ, 500e6);
    check_metric(sample, WG_METRIC_ENERGY_J, 16777216.0);
    check_close_abs(device->info.meters[WG_METRIC_ENERGY_J].wrap_s, 0.0, 0.0, 0.0);
    check_no_knob(device, WG_KNOB_POWER_LIMIT, "nothing to choose from"); /* field report 28 */
    check_no_knob(device, WG_KNOB_GPU_CLOCK, "fewer than two clocks");
    check_absent(device, WG_METRIC_UTILIZATION, "No such file");
    check_complete(&run);
    close_tree(&tree, &run);
}

static void the_silent_die_of_a_board_does_not_count(void **state)
{
    (void)state; /* field report 13 */
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    for (unsigned i = 0; i < 4; i++) {
        char path[128];
        add_card(&tree, i, 0x30 + i, "0x740c");
        (void)snprintf(path, sizeof path, DRM "/card%u/device/hwmon/hwmon%u/power1_average", i, i);
        const struct tree_entry power = {.path = path,
                                         .text = i == 2 || i == 0 ? "330000000\n" : "0\n"};
        if (i != 3) /* the last has no such file at all */
            tree_add_entry(&tree, &power);
        (void)snprintf(path, sizeof path, DRM "/card%u/device/gpu_metrics", i);
        set_metrics(&tree, path, 3, 65536);
    }
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    assert_int_equal(run.code, WG_OK);
    assert_int_equal(run.list.count, 4);
    double total_w = 0.0;
    for (size_t i = 0; i < 4; i++) {
        struct wg_device *device = run.list.items[i];
        const struct wg_sample sample = backend_read(device);
        assert_int_equal(device->info.counts_in_total, i % 2 == 0);
        assert_int_equal(wg__sample_has(&sample, WG_METRIC_ENERGY_J), i % 2 == 0);
        if (device->info.counts_in_total)
            total_w += sample.values[WG_METRIC_POWER_W];
    }
    check_close(total_w, 660.0, 1e-12);
    check_absent(run.list.items[1], WG_METRIC_POWER_W, "the other die");
    check_absent(run.list.items[3], WG_METRIC_ENERGY_J, "counts for both");
    check_complete(&run);
    close_tree(&tree, &run);
}

static void sentinels_of_a_virtual_machine_are_no_numbers(void **state)
{
    (void)state; /* field reports 30 and 75: MI300X, caps 0 and all ones, counter all ones */
    static const struct tree_entry mi300x[] = {
        {.path = DRM "/card0/device/hwmon/hwmon1/power1_input", .text = "142000000\n"},
        {.path = DRM "/card0/device/hwmon/hwmon1/power1_average", .text = "4294967295000000\n"},
        {.path = DRM "/card0/device/hwmon/hwmon1/power1_cap", .text = "0\n"},
        {.path = DRM "/card0/device/hwmon/hwmon1/power1_cap_min", .text = "18446744073709551615\n"},
        {.path = DRM "/card0/device/hwmon/hwmon1/power1_cap_max", .text = "18446744073709551615\n"},
        {.path = DRM "/card0/device/hwmon/hwmon1/temp1_input", .text = "65535000\n"},
        {.path = DRM "/card0/device/gpu_busy_percent", .text = "65535\n"},
        {.path = DRM "/card0/device/mem_busy_percent", .text = "-1\n"},
        {.path = DRM "/card0/device/mem_info_vram_used", .text = "18446744073709551615\n"},
        {.path = DRM "/card0/device/unique_id", .text = "0000000000000000\n"},
    };
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    add_card(&tree, 0, 1, "0x74b5");
    TREE_ADD(&tree, mi300x);
    set_metrics(&tree, DRM "/card0/device/gpu_metrics", 6, UINT64_MAX);
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    struct wg_device *device = backend_find(&run, "0000:01:00.0");
    const struct wg_sample sample = backend_read(device);
    assert_int_equal(sample.present, 1u << WG_METRIC_POWER_W);
    check_metric(sample, WG_METRIC_POWER_W, 142.0);
    check_absent(device, WG_METRIC_POWER_AVERAGE_W, "is no power_average_w");
    check_absent(device, WG_METRIC_ENERGY_J, "all ones");
    check_absent(device, WG_METRIC_TEMPERATURE_C, "No such file");
    check_absent(device, WG_METRIC_UTILIZATION, "is no utilization");
    check_absent(device, WG_METRIC_MEMORY_UTILIZATION, "is no memory_utilization");
    check_absent(device, WG_METRIC_POWER_LIMIT_W, "no limits that hold");
    check_no_knob(device, WG_KNOB_POWER_LIMIT, "no limits that hold");
    check_complete(&run);
    close_tree(&tree, &run);
}

static void a_counter_that_is_0_is_not_trusted(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    TREE_ADD(&tree, radeon);
    set_metrics(&tree, RADEON "/gpu_metrics", 3, 0);
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    check_absent(run.list.items[0], WG_METRIC_ENERGY_J, "nobody fills it");
    close_tree(&tree, &run);
}

static void a_counter_of_32_bits_wraps_and_one_that_is_reset_costs_a_sample(void **state)
{
    (void)state; /* field report 74 */
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    TREE_ADD(&tree, radeon);
    set_metrics(&tree, RADEON "/gpu_metrics", 3, UINT64_C(0xffffff00));
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    struct wg_device *device = run.list.items[0];
    set_metrics(&tree, RADEON "/gpu_metrics", 3, 0x100);
    struct wg_sample sample = backend_read(device);
    check_metric(sample, WG_METRIC_ENERGY_J, (4294967296.0 + 256.0) * UNIT_J);
    set_metrics(&tree, RADEON "/gpu_metrics", 3, 0);
    sample = backend_read(device);
    assert_false(wg__sample_has(&sample, WG_METRIC_ENERGY_J));
    check_metric(sample, WG_METRIC_POWER_W, 312.0);
    close_tree(&tree, &run);
}

static void graphics_of_a_processor_are_a_part_of_it(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    TREE_ADD(&tree, radeon);
    static const char apu[64] = {64, 0, 2, 1};
    const struct tree_entry metrics = {
        .path = RADEON "/gpu_metrics", .text = apu, .length = sizeof apu};
    tree_add_entry(&tree, &metrics);
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    check_absent(run.list.items[0], WG_METRIC_ENERGY_J, "revision 2.1");
    assert_false(run.list.items[0]->info.counts_in_total);
    close_tree(&tree, &run);
}

static void an_unknown_revision_is_asked_of_the_library(void **state)
{
    (void)state;
    struct rocm_smi_stage stage;
    rocm_smi_open_stage(&stage);
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    TREE_ADD(&tree, radeon);
    set_metrics(&tree, RADEON "/gpu_metrics", 9, 5);
    struct wg_backend_config config = {.root = tree.root, .rocm_smi_library = stage.path};
    backend_open_config(&run, &wg__backend_amdgpu, &config);
    struct wg_device *device = run.list.items[0];
    const double expected_j = (1048576.0 + 1.0) * 15.25e-6;
    check_metric(backend_read(device), WG_METRIC_ENERGY_J, expected_j);
    assert_string_equal(device->info.meters[WG_METRIC_ENERGY_J].source,
                        "rsmi_dev_energy_count_get");
    device->ops->release(device);
    assert_int_equal(stage.fake->users, 0);
    assert_int_equal(device->ops->reopen(device, NULL), WG_OK);
    assert_int_equal(stage.fake->users, 1);
    check_metric(backend_read(device), WG_METRIC_ENERGY_J, expected_j);
    backend_close(&run);

    backend_walk(&wg__backend_amdgpu, &config);

    config.rocm_smi_library = "/nowhere/librocm_smi64.so";
    backend_open_config(&run, &wg__backend_amdgpu, &config);
    device = run.list.items[0];
    check_absent(device, WG_METRIC_ENERGY_J, "revision 1.9");
    check_absent(device, WG_METRIC_ENERGY_J, "/nowhere/librocm_smi64.so");
    assert_non_null(strstr(device->info.meters[WG_METRIC_ENERGY_J].remedy, "librocm-smi64"));
    close_tree(&tree, &run);
    rocm_smi_close_stage(&stage);
}

static void a_sleeping_gpu_is_not_woken(void **state)
{
    (void)state; /* field report 44 */
    struct tree tree;
    struct backend_run run;
    open_radeon(&tree);
    tree_set(&tree, RADEON "/power/runtime_status", "suspended\n");
    /* Files that must not be touched would be found out: they cannot be read. */
    tree_remove(&tree, RADEON_HWMON "/power1_average");
    tree_add_entry(&tree, &(struct tree_entry){.path = RADEON_HWMON "/power1_average"});
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    assert_int_equal(run.code, WG_ESTATE);
    assert_string_equal(run.err.text, RADEON "/power/runtime_status says suspended: the GPU sleeps "
                                             "and is not woken");
    struct wg_device *device = run.list.items[0];
    struct wg_sample sample;
    assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, NULL), WG_ESTATE);
    tree_set(&tree, RADEON "/power/runtime_status", "active\n");
    assert_int_equal(device->ops->probe(device, NULL), WG_OK);
    check_metric(backend_read(device), WG_METRIC_TEMPERATURE_C, 61.0);
    tree_set(&tree, RADEON "/power/runtime_status", "suspended\n");
    assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, NULL), WG_ESTATE);
    close_tree(&tree, &run);
}

static void only_chosen_cards_are_there_with_the_drivers_numbers(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    open_radeon(&tree);
    add_card(&tree, 0, 0x41, "0x73bf"); /* card0, but second on the bus */
    static const struct tree_entry others[] = {
        {.path = DRM "/card7/device/vendor", .text = "0x10de\n"},
        {.path = DRM "/card7/device/device", .text = "0x2330\n"},
        {.path = DRM "/card7/device/uevent", .text = "DRIVER=nvidia\nPCI_SLOT_NAME=0000:01:00.0\n"},
        {.path = DRM "/card8/device/vendor", .text = "0x1002\n"},
        {.path = DRM "/card8/device/device", .text = "0x6811\n"},
        {.path = DRM "/card8/device/uevent", .text = "DRIVER=radeon\nPCI_SLOT_NAME=0000:02:00.0\n"},
    };
    TREE_ADD(&tree, others);
    struct wg_backend_config config = {.root = tree.root};
    backend_open_config(&run, &wg__backend_amdgpu, &config);
    assert_int_equal(run.list.count, 2);
    assert_string_equal(run.list.items[0]->info.pci, "0000:03:00.0");
    assert_string_equal(run.list.items[1]->info.pci, "0000:41:00.0");
    backend_close(&run);
    static const struct {
        const char *selector;
        const char *pci; /* NULL: none */
        unsigned index;
    } cases[] = {
        {"1", "0000:41:00.0", 1},
        {"0000:03:00.0", "0000:03:00.0", 0},
        {"GPU-5f1a2b", "0000:03:00.0", 0},
        {"none", NULL, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wg_selection *selection = NULL;
        assert_int_equal(wg__selection_new(&selection, &cases[i].selector, 1, NULL, NULL, NULL),
                         WG_OK);
        config.selection = selection;
        backend_open_config(&run, &wg__backend_amdgpu, &config);
        assert_int_equal(run.list.count, cases[i].pci != NULL);
        if (cases[i].pci != NULL) {
            assert_string_equal(run.list.items[0]->info.pci, cases[i].pci);
            assert_int_equal(run.list.items[0]->driver_index_plus_1, cases[i].index + 1);
        } else {
            assert_int_equal(run.code, WG_ENODEV);
        }
        backend_close(&run);
        wg__selection_free(selection);
    }
    tree_close(&tree);
}

static void without_a_card_or_its_driver_it_says_so(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    tree_open(&tree);
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    assert_int_equal(run.code, WG_ENODEV);
    assert_non_null(strstr(run.err.text, "vendor 0x1002"));
    assert_null(run.remedy);
    backend_close(&run);
    add_card(&tree, 0, 5, "0x6811");
    tree_set(&tree, DRM "/card0/device/uevent", "DRIVER=vfio-pci\nPCI_SLOT_NAME=0000:05:00.0\n");
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    assert_int_equal(run.code, WG_ENODEV);
    assert_non_null(strstr(run.err.text, "0000:05:00.0 is driven by vfio-pci"));
    assert_non_null(strstr(run.remedy, "modprobe amdgpu"));
    close_tree(&tree, &run);
}

static void what_may_not_be_read_names_the_groups(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    open_radeon(&tree);
    const mode_t mode = geteuid() == 0 ? 0400 : 0;
    assert_int_equal(chmod(tree_path(&tree, RADEON_HWMON "/power1_average"), mode), 0);
    assert_int_equal(chmod(tree_path(&tree, RADEON "/gpu_metrics"), mode), 0);
    tree_drop_rights();
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    tree_regain_rights();
    assert_int_equal(run.code, WG_OK); /* the other meters go on: field report 62 */
    struct wg_device *device = run.list.items[0];
    static const enum wg_metric metrics[] = {WG_METRIC_POWER_W, WG_METRIC_ENERGY_J};
    for (size_t i = 0; i < 2; i++) {
        check_absent(device, metrics[i], "Permission denied");
        assert_non_null(strstr(device->info.meters[metrics[i]].remedy, "render"));
        assert_non_null(strstr(device->info.meters[metrics[i]].remedy, "video"));
    }
    check_metric(backend_read(device), WG_METRIC_UTILIZATION, 0.97);
    check_complete(&run);
    close_tree(&tree, &run);
}

static void a_card_is_found_again_by_its_address_or_is_lost(void **state)
{
    (void)state;
    struct tree tree;
    struct backend_run run;
    open_radeon(&tree);
    backend_open(&run, &wg__backend_amdgpu, tree.root);
    struct wg_device *device = run.list.items[0];
    device->ops->release(device);
    /* The driver is loaded anew: card1 and hwmon5 are card0 and hwmon9. */
    char before[512];
    (void)snprintf(before, sizeof before, "%s", tree_path(&tree, DRM "/card1"));
    assert_int_equal(rename(before, tree_path(&tree, DRM "/card0")), 0);
    (void)snprintf(before, sizeof before, "%s", tree_path(&tree, DRM "/card0/device/hwmon/hwmon5"));
    assert_int_equal(rename(before, tree_path(&tree, DRM "/card0/device/hwmon/hwmon9")), 0);
    struct wg_error err;
    assert_int_equal(device->ops->reopen(device, &err), WG_OK);
    check_metric(backend_read(device), WG_METRIC_POWER_W, 312.0);
    device->ops->release(device);
    tree_remove_folder(&tree, DRM "/card0");
    struct wg_sample sample;
    assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, &err), WG_ELOST);
    assert_string_equal(err.text, DRM "/card0/device is gone");
    assert_int_equal(device->ops->reopen(device, &err), WG_ELOST);
    assert_non_null(strstr(err.text, "0000:03:00.0"));
    close_tree(&tree, &run);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct tree tree;
    open_radeon(&tree);
    const struct wg_backend_config config = {.root = tree.root};
    backend_walk(&wg__backend_amdgpu, &config);
    tree_close(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_radeon_tells_all_that_sysfs_has),
        cmocka_unit_test(an_accelerator_without_an_edge_sensor_has_its_hottest_spot),
        cmocka_unit_test(the_silent_die_of_a_board_does_not_count),
        cmocka_unit_test(sentinels_of_a_virtual_machine_are_no_numbers),
        cmocka_unit_test(a_counter_that_is_0_is_not_trusted),
        cmocka_unit_test(a_counter_of_32_bits_wraps_and_one_that_is_reset_costs_a_sample),
        cmocka_unit_test(graphics_of_a_processor_are_a_part_of_it),
        cmocka_unit_test(an_unknown_revision_is_asked_of_the_library),
        cmocka_unit_test(a_sleeping_gpu_is_not_woken),
        cmocka_unit_test(only_chosen_cards_are_there_with_the_drivers_numbers),
        cmocka_unit_test(without_a_card_or_its_driver_it_says_so),
        cmocka_unit_test(what_may_not_be_read_names_the_groups),
        cmocka_unit_test(a_card_is_found_again_by_its_address_or_is_lost),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return run_tests(tests);
}
