/* SPDX-License-Identifier: MIT
 *
 * Finding NVIDIA GPUs: which are listed, which are touched, what sleeps, and out of memory.
 */
#include "device/nvml.h"

#include "support/nvml_found.h"

static void a_gpu_is_described_as_the_driver_does(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, NULL);
    assert_int_equal(found.list.count, 2);
    const struct wg_device *device = device_of(&found, 1);
    const struct wg_device_info *info = &device->info;
    assert_int_equal(device->driver_index_plus_1, 2);
    assert_int_equal(info->kind, WG_DEVICE_GPU);
    assert_string_equal(info->name, "NVIDIA H100 80GB HBM3");
    assert_string_equal(info->uuid, fake.gpus[1].uuid);
    assert_string_equal(info->id, fake.gpus[1].uuid);
    assert_string_equal(info->pci, "0000:1b:00.0");
    assert_string_equal(info->driver, "550.54.15");
    assert_string_equal(info->architecture, "hopper");
    assert_string_equal(info->backend, "nvml");
    assert_int_equal(info->memory_bytes, 80000000000ULL);
    assert_true(info->is_persistent);
    assert_true(info->counts_in_total);
    assert_false(info->is_mig);
    assert_int_equal(info->numa_node, UINT_MAX);
    found_end(&found);
}

static void architectures_have_words_and_ga100_has_its_own(void **state)
{
    (void)state;
    static const struct {
        unsigned architecture;
        int major, minor;
        const char *word;
    } cases[] = {
        {NVML_ARCH_KEPLER, 3, 5, "kepler"},
        {NVML_ARCH_MAXWELL, 5, 2, "maxwell"},
        {NVML_ARCH_PASCAL, 6, 0, "pascal"},
        {NVML_ARCH_VOLTA, 7, 0, "volta"},
        {NVML_ARCH_TURING, 7, 5, "turing"},
        {NVML_ARCH_AMPERE, 8, 6, "ampere"},
        {NVML_ARCH_AMPERE, 8, 0, "ampere-ga100"},
        {NVML_ARCH_ADA, 8, 9, "ada"},
        {NVML_ARCH_HOPPER, 9, 0, "hopper"},
        {NVML_ARCH_BLACKWELL, 10, 0, "blackwell"},
        {UINT_MAX, 13, 0, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int is_old = 0; is_old < 2; is_old++) { /* a driver without the call */
            fake_reset();
            fake.count = 1;
            fake.gpus[0].architecture = cases[i].architecture;
            fake.gpus[0].capability[0] = cases[i].major;
            fake.gpus[0].capability[1] = cases[i].minor;
            if (is_old != 0)
                fake_remove_symbol("nvmlDeviceGetArchitecture");
            if (is_old != 0 && cases[i].word == NULL)
                continue; /* 13.0 is later than Blackwell: taken for it */
            struct found found;
            found_probe(&found, NULL);
            const char *word = device_of(&found, 0)->info.architecture;
            if (cases[i].word == NULL)
                assert_null(word);
            else
                assert_string_equal(word, cases[i].word);
            found_end(&found);
        }
    }
}

/* Field report 67: a GPU that is not chosen is not asked anything. */
static void a_gpu_that_is_not_chosen_is_not_touched(void **state)
{
    (void)state;
    fake_reset();
    fake.count = 4;
    struct found found;
    found_probe(&found, "2");
    assert_int_equal(found.list.count, 1);
    struct wg_device *device = device_of(&found, 0);
    assert_string_equal(device->info.uuid, fake.gpus[2].uuid);
    assert_int_equal(device->driver_index_plus_1, 3);
    struct wg_sample sample;
    assert_int_equal(device->ops->read(device, UINT32_MAX, &sample, NULL), WG_OK);
    assert_int_equal(calls_of(&fake.gpus[0]), 0);
    assert_int_equal(calls_of(&fake.gpus[1]), 0);
    assert_int_equal(calls_of(&fake.gpus[3]), 0);
    found_end(&found);
}

static void a_uuid_is_found_by_its_beginning(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_probe(&found, "GPU-00000002"); /* field report 16 */
    assert_int_equal(found.list.count, 1);
    assert_string_equal(device_of(&found, 0)->info.uuid, fake.gpus[1].uuid);
    found_end(&found);
}

static void a_pci_address_is_found_with_and_without_the_kernels_list(void **state)
{
    (void)state; /* field report 14: the node is each GPU's own */
    for (int has_kernel = 0; has_kernel < 2; has_kernel++) {
        fake_reset();
        struct found found;
        found_begin(&found);
        if (has_kernel != 0) {
            add_kernel_gpu(&found, "0000:1b:00.0", "active\n");
            add_kernel_gpu(&found, "0000:1a:00.0", "active\n");
        }
        found_open(&found, "0000:1b:00.0");
        assert_int_equal(found.code, WG_OK);
        assert_int_equal(found.list.count, 1);
        struct wg_device *device = device_of(&found, 0);
        assert_int_equal(device->ops->probe(device, &found.err), WG_OK);
        assert_string_equal(device->info.uuid, fake.gpus[1].uuid);
        assert_int_equal(device->info.numa_node, has_kernel != 0 ? 1 : UINT_MAX);
        if (has_kernel != 0)
            assert_int_equal(calls_of(&fake.gpus[0]), 0);
        found_end(&found);
    }
}

static void a_driver_that_counts_in_another_order_is_noticed(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_begin(&found);
    add_kernel_gpu(&found, "0000:05:00.0", "active\n");
    add_kernel_gpu(&found, "0000:1a:00.0", "active\n");
    found_open(&found, "0000:05:00.0");
    assert_int_equal(found.code, WG_OK);
    struct wg_device *device = device_of(&found, 0);
    assert_int_equal(device->ops->probe(device, &found.err), WG_ESTATE);
    expect_text(found.err.text, "choose it by its UUID");
    found_end(&found);
}

/* No limit of 64, of anything. */
static void eighty_gpus_are_listed(void **state)
{
    (void)state;
    fake_reset();
    fake.count = FAKE_GPUS_MAX;
    struct found found;
    found_probe(&found, NULL);
    assert_int_equal(found.list.count, FAKE_GPUS_MAX);
    assert_string_equal(device_of(&found, 79)->info.uuid, fake.gpus[79].uuid);
    found_end(&found);
}

static void a_selector_that_fits_several_is_the_users_error(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_begin(&found);
    found_open(&found, "GPU-000000");
    assert_int_equal(found.code, WG_EINVAL);
    assert_int_equal(found.list.count, 0);
    found_end(&found);
}

/* Newer JetPacks have an NVML that knows the GPU of the board. */
static void the_gpu_of_a_jetson_is_marked_and_does_not_count_beside_its_rails(void **state)
{
    (void)state;
    static const struct tree_entry board[] = {
        {.path = "/etc/nv_tegra_release", .text = "# R36 (release), REVISION: 4.0, GCID: 1\n"}};
    static const struct tree_entry rail[] = {
        {.path = "/sys/bus/i2c/drivers/ina238/2-0044/hwmon/hwmon7/power1_input", .text = "6000\n"}};
    for (int i = 0; i < 3; i++) { /* another machine, a board, and one with a rail */
        fake_reset();
        fake.count = 2;
        (void)snprintf(fake.gpus[0].name, sizeof fake.gpus[0].name, "Orin (nvgpu)");
        struct found found;
        found_begin(&found);
        if (i > 0)
            TREE_ADD(&found.tree, board);
        if (i > 1)
            TREE_ADD(&found.tree, rail);
        found_open(&found, NULL);
        const struct wg_device_info *own = &device_of(&found, 0)->info;
        const struct wg_device_info *card = &device_of(&found, 1)->info;
        for (size_t j = 0; j < 2; j++) {
            struct wg_device *device = device_of(&found, j);
            assert_int_equal(device->ops->probe(device, &found.err), WG_OK);
        }
        assert_string_equal(own->name,
                            i > 0 ? "Orin (nvgpu) (also listed as jetson:gpu)" : "Orin (nvgpu)");
        assert_int_equal(own->counts_in_total, i < 2);
        assert_string_equal(card->name, "NVIDIA H100 80GB HBM3"); /* in a slot of the board */
        assert_true(card->counts_in_total);
        found_end(&found);
    }
}

static void open_visible(struct found *found, const char *visible)
{
    fake_reset();
    found_begin(found);
    assert_int_equal(wg__selection_new(&found->selection, NULL, 0, visible, NULL, NULL), WG_OK);
    found->config.selection = found->selection;
    found_open(found, NULL);
}

/* Who sits in a job of Slurm must be told why there is no GPU. */
static void an_environment_that_leaves_no_gpu_is_named_with_its_value_and_why(void **state)
{
    (void)state;
    static const struct {
        const char *visible, *text;
    } cases[] = {
        {"99", "CUDA_VISIBLE_DEVICES='99' fits none of the 2 GPUs"},
        {"GPU-dead", "CUDA_VISIBLE_DEVICES='GPU-dead' fits none of the 2 GPUs"},
        {"MIG-12", "CUDA_VISIBLE_DEVICES='MIG-12' fits none of the 2 GPUs"},
        {"", "CUDA_VISIBLE_DEVICES='' (it is empty) leaves no GPU"},
        {"-1", "CUDA_VISIBLE_DEVICES='-1' (it has an entry that is no index) leaves no GPU"},
        {"NoDevFiles",
         "CUDA_VISIBLE_DEVICES='NoDevFiles' (it has an entry that is no index) leaves no GPU"},
        {"0,0", "CUDA_VISIBLE_DEVICES='0,0' (CUDA sees none when an entry is given twice) leaves "
                "no GPU"},
        {"GPU-1,GPU-1", "CUDA_VISIBLE_DEVICES='GPU-1,GPU-1' (CUDA sees none when an entry is given "
                        "twice) leaves no GPU"},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         "CUDA_VISIBLE_DEVICES='xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' (it has an entry that "
         "is no index) leaves no GPU"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct found found;
        open_visible(&found, cases[i].visible);
        assert_int_equal(found.code, WG_ENODEV);
        assert_string_equal(found.err.text, cases[i].text);
        assert_string_equal(found.remedy, "unset CUDA_VISIBLE_DEVICES, or choose with --gpu all");
        found_end(&found);
    }
    struct found found;
    open_visible(&found, "1,x"); /* not all of it is good, but something is there */
    assert_int_equal(found.code, WG_OK);
    assert_int_equal(found.list.count, 1);
    found_end(&found);
}

/* Another vendor's GPU may fit it: machine.c asks when all have been seen. */
static void a_selector_that_fits_none_chooses_none(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_begin(&found);
    found_open(&found, "7");
    assert_int_equal(found.code, WG_ENODEV);
    assert_string_equal(found.err.text, "no GPU of this kind is chosen");
    assert_null(found.remedy);
    assert_int_equal(found.list.count, 0);
    assert_int_equal(wg__selection_check(found.selection, NULL), WG_EINVAL);
    found_end(&found);
}

static void no_library_is_no_device_or_a_fault_by_what_is_on_the_bus(void **state)
{
    (void)state;
    for (int has_gpu = 0; has_gpu < 2; has_gpu++) {
        fake_reset();
        fake.has_no_library = true;
        struct found found;
        found_begin(&found);
        if (has_gpu != 0)
            add_kernel_gpu(&found, "0000:1a:00.0", "active\n");
        found_open(&found, NULL);
        assert_int_equal(found.code, has_gpu != 0 ? WG_EIO : WG_ENODEV);
        assert_int_equal(found.err.code, found.code);
        expect_text(found.remedy, "libnvidia-ml1");
        found_end(&found);
    }
}

static void a_driver_without_gpus_has_none(void **state)
{
    (void)state;
    fake_reset();
    fake.count = 0;
    struct found found;
    found_begin(&found);
    found_open(&found, NULL);
    assert_int_equal(found.code, WG_ENODEV);
    expect_text(found.err.text, "has no GPU");
    found_end(&found);
}

static void nothing_chosen_loads_nothing(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_begin(&found);
    found_open(&found, "none");
    assert_int_equal(found.code, WG_ENODEV);
    assert_int_equal(fake.loads, 0);
    found_end(&found);
}

/* Field reports 44 and 81. */
static void a_laptop_gpu_that_sleeps_is_not_woken(void **state)
{
    (void)state;
    fake_reset();
    fake.count = 1;
    struct found found;
    found_begin(&found);
    add_kernel_gpu(&found, "0000:01:00.0", "suspended\n");
    static const struct tree_entry others[] = {
        {.path = "/sys/bus/pci/devices/0000:00:02.0/vendor", .text = "0x8086\n"},
        {.path = "/sys/bus/pci/devices/0000:00:02.0/class", .text = "0x030000\n"},
        {.path = "/sys/bus/pci/devices/0000:01:00.1/vendor", .text = "0x10de\n"}, /* its sound */
        {.path = "/sys/bus/pci/devices/0000:01:00.1/class", .text = "0x040300\n"},
        {.path = "/proc/driver/nvidia/gpus/0000:01:00.0/information",
         .text = "Model: \t\t NVIDIA\nGPU UUID: \t GPU-00000001-1111\nBus: \t PCIe\n"},
    };
    TREE_ADD(&found.tree, others);
    found_open(&found, NULL);
    assert_int_equal(found.code, WG_OK);
    assert_int_equal(found.list.count, 1);
    struct wg_device *device = device_of(&found, 0);
    assert_string_equal(device->info.pci, "0000:01:00.0");
    assert_string_equal(device->info.uuid, "GPU-00000001-1111");
    assert_int_equal(device->ops->probe(device, &found.err), WG_ESTATE);
    expect_text(found.err.text, "suspended");
    expect_text(found.err.text, "not woken");
    assert_int_equal(fake.loads, 0); /* not even NVML itself */
    found_end(&found);
}

static void a_sleeping_gpu_beside_one_that_works_sleeps_on(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_begin(&found);
    add_kernel_gpu(&found, "0000:1a:00.0", "suspended\n");
    add_kernel_gpu(&found, "0000:1b:00.0", "active\n");
    found_open(&found, NULL);
    assert_int_equal(found.code, WG_OK);
    assert_int_equal(found.list.count, 2);
    struct wg_device *asleep = device_of(&found, 0);
    struct wg_device *awake = device_of(&found, 1);
    assert_int_equal(asleep->ops->probe(asleep, &found.err), WG_ESTATE);
    assert_int_equal(awake->ops->probe(awake, &found.err), WG_OK);
    assert_int_equal(calls_of(&fake.gpus[0]), 0);
    /* When something else has woken it, it is read like any other. */
    tree_set(&found.tree, "/sys/bus/pci/devices/0000:1a:00.0/power/runtime_status", "active\n");
    assert_int_equal(asleep->ops->probe(asleep, &found.err), WG_OK);
    assert_string_equal(asleep->info.uuid, fake.gpus[0].uuid);
    found_end(&found);
}

static void only_the_sleeping_one_chosen_loads_nothing(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_begin(&found);
    add_kernel_gpu(&found, "0000:1a:00.0", "suspended\n");
    add_kernel_gpu(&found, "0000:1b:00.0", "active\n");
    found_open(&found, "0");
    assert_int_equal(found.code, WG_OK);
    assert_int_equal(found.list.count, 1);
    assert_int_equal(fake.loads, 0);
    found_end(&found);
}

static void a_gpu_of_another_driver_is_not_counted(void **state)
{
    (void)state;
    fake_reset();
    struct found found;
    found_begin(&found);
    add_kernel_gpu(&found, "0000:1a:00.0", "active\n");
    add_kernel_gpu(&found, "0000:19:00.0", "suspended\n"); /* passed to a virtual machine */
    add_kernel_gpu(&found, "0000:1b:00.0", "active\n");
    static const struct tree_entry drivers[] = {
        {.path = "/sys/bus/pci/devices/0000:19:00.0/driver",
         .link = "../../../bus/pci/drivers/vfio-pci"},
        {.path = "/sys/bus/pci/devices/0000:1a:00.0/driver",
         .link = "../../../bus/pci/drivers/nvidia"},
    };
    TREE_ADD(&found.tree, drivers);
    found_open(&found, "0000:1b:00.0");
    assert_int_equal(found.code, WG_OK);
    struct wg_device *device = device_of(&found, 0);
    assert_int_equal(device->ops->probe(device, &found.err), WG_OK);
    assert_string_equal(device->info.uuid, fake.gpus[1].uuid);
    assert_int_equal(calls_of(&fake.gpus[0]), 0);
    found_end(&found);
}

/* Field reports 31 to 33: instances belong to one GPU, which is there once. */
static void a_mig_uuid_chooses_its_gpu_once(void **state)
{
    (void)state;
    static const char *const selectors[] = {"MIG-aaaa", "GPU-00000001", "MIG-aaaa,MIG-bbbb"};
    for (size_t i = 0; i < sizeof selectors / sizeof selectors[0]; i++) {
        fake_reset();
        struct fake_gpu *gpu = &fake.gpus[0];
        gpu->mig_mode = 1;
        gpu->mig_count = 4;
        (void)snprintf(gpu->mig_uuids[0], NVML_UUID_SIZE, "MIG-aaaa");
        (void)snprintf(gpu->mig_uuids[2], NVML_UUID_SIZE, "MIG-bbbb"); /* place 1 is free */
        struct found found;
        found_probe(&found, selectors[i]);
        assert_int_equal(found.list.count, 1);
        const struct wg_device_info *info = &device_of(&found, 0)->info;
        assert_true(info->is_mig);
        assert_int_equal(info->mig_count, 2);
        assert_string_equal(info->mig_uuids[0], "MIG-aaaa");
        assert_string_equal(info->mig_uuids[1], "MIG-bbbb");
        assert_string_equal(info->uuid, gpu->uuid);
        found_end(&found);
    }
}

static void cuda_order_asks_for_speeds(void **state)
{
    (void)state;
    fake_reset();
    fake.gpus[1].max_mhz = 2500; /* CUDA's device 0 is the fastest (field report 17) */
    struct found found;
    found_probe(&found, "cuda:0");
    assert_int_equal(found.list.count, 1);
    assert_string_equal(device_of(&found, 0)->info.uuid, fake.gpus[1].uuid);
    assert_int_equal(fake.gpus[0].calls[FAKE_uuid], 0);
    found_end(&found);
}

/* -- Memory ------------------------------------------------------------------------------------ */

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    for (size_t nth = 1;; nth++) {
        fake_reset();
        fake.gpus[0].mig_mode = 1;
        fake.gpus[0].mig_count = 2;
        (void)snprintf(fake.gpus[0].mig_uuids[1], NVML_UUID_SIZE, "MIG-bbbb");
        struct found found;
        found_begin(&found);
        add_kernel_gpu(&found, "0000:1a:00.0", "active\n");
        add_kernel_gpu(&found, "0000:1b:00.0", "active\n");
        const char *const selectors[] = {"MIG-bbbb", "1"};
        assert_int_equal(wg__selection_new(&found.selection, selectors, 2, NULL, NULL, NULL),
                         WG_OK);
        found.config.selection = found.selection;
        wg__alloc_fail_from(nth);
        found_open(&found, NULL);
        enum wg_code code = found.code;
        if (code == WG_OK)
            assert_int_equal(found.list.count, 2);
        for (size_t i = 0; code == WG_OK && i < found.list.count; i++) {
            struct wg_device *device = device_of(&found, i);
            code = device->ops->probe(device, &found.err);
        }
        wg__alloc_fail_from(0);
        found_end(&found);
        if (code == WG_OK)
            break;
        if (code != WG_ENOMEM)
            fail_msg("allocation %zu: %s", nth, found.err.text);
        assert_true(nth < 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_is_described_as_the_driver_does),
        cmocka_unit_test(architectures_have_words_and_ga100_has_its_own),
        cmocka_unit_test(a_gpu_that_is_not_chosen_is_not_touched),
        cmocka_unit_test(a_uuid_is_found_by_its_beginning),
        cmocka_unit_test(a_pci_address_is_found_with_and_without_the_kernels_list),
        cmocka_unit_test(a_driver_that_counts_in_another_order_is_noticed),
        cmocka_unit_test(eighty_gpus_are_listed),
        cmocka_unit_test(a_selector_that_fits_several_is_the_users_error),
        cmocka_unit_test(the_gpu_of_a_jetson_is_marked_and_does_not_count_beside_its_rails),
        cmocka_unit_test(an_environment_that_leaves_no_gpu_is_named_with_its_value_and_why),
        cmocka_unit_test(a_selector_that_fits_none_chooses_none),
        cmocka_unit_test(no_library_is_no_device_or_a_fault_by_what_is_on_the_bus),
        cmocka_unit_test(a_driver_without_gpus_has_none),
        cmocka_unit_test(nothing_chosen_loads_nothing),
        cmocka_unit_test(a_laptop_gpu_that_sleeps_is_not_woken),
        cmocka_unit_test(a_sleeping_gpu_beside_one_that_works_sleeps_on),
        cmocka_unit_test(only_the_sleeping_one_chosen_loads_nothing),
        cmocka_unit_test(a_gpu_of_another_driver_is_not_counted),
        cmocka_unit_test(a_mig_uuid_chooses_its_gpu_once),
        cmocka_unit_test(cuda_order_asks_for_speeds),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return run_tests(tests);
}
