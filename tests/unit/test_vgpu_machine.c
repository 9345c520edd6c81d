/* SPDX-License-Identifier: MIT
 *
 * Machine files of the virtual GPU: the shipped ones, `like`, identities, messages, memory.
 */
#include "vgpu/machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/nvml_abi.h"
#include "support/check.h"
#include "support/scratch.h"

static const char head[] = "id: x\ndriver: 1.2\ncuda_version: 12.4\ngpus:\n";

static const char *machines_folder(char out[static 512])
{
    const char *root = getenv("WATTGOV_SOURCE_ROOT");
    (void)snprintf(out, 512, "%s/vgpu/machines", root != NULL ? root : ".");
    return out;
}

/* Reads `text` as a machine file; the error's text begins after the path. */
static enum wg_code read_text(const char *text, struct vgpu_description *out, char error[512])
{
    char folder[512];
    struct scratch scratch;
    scratch_open(&scratch);
    scratch_write(scratch_path(&scratch, "m.yaml"), text, strlen(text));
    struct wg_error err = {0};
    const enum wg_code code = vgpu_machine_read(out, machines_folder(folder), scratch.path, &err);
    const size_t length = strlen(scratch.path);
    const bool names_path = strncmp(err.text, scratch.path, length) == 0;
    (void)snprintf(error, 512, "%s", names_path ? err.text + length : err.text);
    scratch_close(&scratch);
    return code;
}

static void expect_error(const char *gpus, const char *expected)
{
    char text[2048], error[512];
    (void)snprintf(text, sizeof text, "%s%s", head, gpus);
    struct vgpu_description machine = {0};
    if (read_text(text, &machine, error) != WG_EDATA)
        fail_msg("'%s' gives '%s'", gpus, error);
    assert_null(machine.models);
    if (strstr(error, expected) != error)
        fail_msg("'%s' gives '%s', expected '%s'", gpus, error, expected);
}

static struct vgpu_description read_shipped(const char *id)
{
    char folder[512];
    struct vgpu_description machine = {0};
    struct wg_error err = {0};
    if (vgpu_machine_read(&machine, machines_folder(folder), id, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_string_equal(machine.id, id);
    return machine;
}

static void check_shipped_model(const struct vgpu_model *model)
{
    assert_true(model->name[0] != '\0' && strlen(model->uuid) == 40 && strlen(model->pci) == 16);
    assert_true(model->limit_min_w <= model->limit_default_w);
    assert_true(model->limit_default_w <= model->limit_max_w && model->idle_w < model->load_w);
    for (size_t i = 1; i < model->clock_count; i++)
        assert_true(model->clocks_hz[i] > model->clocks_hz[i - 1]);
    assert_true(model->clock_count >= 80 && model->clock_idle_hz >= 1e8);
    assert_true(model->usage.is_present && model->usage.gain > 0 && model->instant.is_present);
    assert_true((model->pci_device_id & 0xffff) == 0x10de);
}

static void every_shipped_machine_is_sound(void **state)
{
    (void)state;
    static const char *const promised[] = {"8xh100", "a100",  "a100-mig", "a40", "h100",
                                           "h200",   "mixed", "rtx-4090", "t4",  "v100"};
    char folder[512];
    struct wg_error err;
    struct vgpu_machine_ids *ids = calloc(1, sizeof *ids);
    assert_non_null(ids);
    assert_int_equal(vgpu_machine_list(ids, machines_folder(folder), &err), WG_OK);
    assert_int_equal(ids->count, sizeof promised / sizeof promised[0]);
    for (size_t i = 0; i < ids->count; i++) {
        assert_string_equal(ids->ids[i], promised[i]);
        struct vgpu_description machine = read_shipped(ids->ids[i]);
        for (size_t gpu = 0; gpu < machine.count; gpu++)
            check_shipped_model(&machine.models[gpu]);
        vgpu_description_fini(&machine);
    }
    free(ids);
}

static void the_h200_is_that_of_the_capture(void **state)
{
    (void)state;
    struct vgpu_description machine = read_shipped("h200");
    const struct vgpu_model *gpu = &machine.models[0];
    assert_string_equal(machine.driver, "590.48.01");
    assert_string_equal(machine.nvml_version, "13.590.48.01");
    assert_int_equal(machine.cuda_version, 13010);
    assert_int_equal(gpu->architecture, NVML_ARCH_HOPPER);
    assert_int_equal(gpu->compute_major, 9);
    assert_int_equal(gpu->pci_device_id, 0x233510DE);
    assert_true(gpu->memory_bytes == UINT64_C(143771) << 20);
    check_close(gpu->clocks_hz[gpu->clock_count - 1], 1980e6, 1e-12);
    check_close(gpu->limit_min_w, 200, 0);
    /* 52 C at 627 W, as the capture under load has it. */
    check_close_abs(gpu->ambient_c + gpu->kelvin_per_watt * 627.3, 52, 0, 0.1);
    vgpu_description_fini(&machine);
}

static void sensors_are_those_that_were_measured(void **state)
{
    (void)state;
    struct vgpu_description machine = read_shipped("a100");
    check_close(machine.models[0].usage.window_s, 0.025, 1e-12);
    check_close(machine.models[0].usage.period_s, 0.1, 1e-12);
    assert_false(machine.models[0].average.is_present);
    vgpu_description_fini(&machine);
    machine = read_shipped("v100");
    check_close(machine.models[0].counter_period_s, 0.02, 1e-12);
    check_close(machine.models[0].clocks_hz[1] - machine.models[0].clocks_hz[0], 7.5e6, 1e-9);
    vgpu_description_fini(&machine);
    machine = read_shipped("mixed");
    assert_int_equal(machine.count, 3);
    assert_true(machine.models[1].has_counter);
    assert_false(machine.models[2].has_counter); /* Pascal */
    assert_false(machine.models[2].can_lock_gpu_clocks);
    vgpu_description_fini(&machine);
}

static void check_distinct(const struct vgpu_description *machine)
{
    for (size_t i = 0; i < machine->count; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(machine->models[i].uuid, machine->models[j].uuid);
            assert_string_not_equal(machine->models[i].pci, machine->models[j].pci);
        }
    }
}

static void identities_are_distinct_and_repeat(void **state)
{
    (void)state;
    struct vgpu_description machine = read_shipped("8xh100"), again = read_shipped("8xh100");
    assert_int_equal(machine.count, 8);
    check_distinct(&machine);
    for (size_t i = 0; i < 8; i++) {
        assert_string_equal(machine.models[i].uuid, again.models[i].uuid);
        /* NVML numbers GPUs by PCI address. */
        assert_true(i == 0 || strcmp(machine.models[i].pci, machine.models[i - 1].pci) > 0);
    }
    struct wg_error err;
    assert_int_equal(vgpu_description_append(&machine, &again, &err), WG_OK);
    assert_int_equal(machine.count, 16);
    check_distinct(&machine);
    assert_string_equal(machine.id, "8xh100+8xh100");
    vgpu_description_fini(&machine);
    vgpu_description_fini(&again);
}

static void machines_are_joined_up_to_the_limit(void **state)
{
    (void)state;
    struct vgpu_description eight = read_shipped("8xh100"), all = {0};
    struct wg_error err = {0};
    for (size_t i = 0; i < VGPU_GPUS_MAX / 8; i++)
        assert_int_equal(vgpu_description_append(&all, &eight, &err), WG_OK);
    check_distinct(&all);
    assert_string_equal(all.driver, eight.driver);
    assert_int_equal(vgpu_description_append(&all, &eight, &err), WG_EINVAL);
    assert_string_equal(err.text, "72 GPUs are more than the 64 that a machine has");
    vgpu_description_fini(&all);
    vgpu_description_fini(&eight);
}

static void mig_instances_have_ids_of_their_own(void **state)
{
    (void)state;
    struct vgpu_description machine = read_shipped("a100-mig");
    const struct vgpu_model *gpu = &machine.models[0];
    assert_true(gpu->is_mig && gpu->mig_count == 4 && !machine.models[1].is_mig);
    assert_string_equal(gpu->mig_profiles[0], "3g.40gb");
    for (size_t i = 0; i < gpu->mig_count; i++) {
        assert_memory_equal(gpu->mig_uuids[i], "MIG-", 4);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(gpu->mig_uuids[i], gpu->mig_uuids[j]);
    }
    vgpu_description_fini(&machine);
}

static void like_takes_all_that_is_not_overridden(void **state)
{
    (void)state;
    char text[1024], error[512];
    (void)snprintf(
        text, sizeof text,
        "%s  - like: t4\n    limit_default_w: 65\n    counter_period_ms: 0\n"
        "    instant: {window_ms: 7}\n    usage: {period_ms: 0}\n"
        "    clocks_mhz: [300, 500.5, 900]\n    uuid: GPU-mine\n    pci_address: 0a:00.0\n"
        "    usage: {period_ms: 10}\n",
        head);
    struct vgpu_description machine = {0};
    assert_int_equal(read_text(text, &machine, error), WG_EDATA); /* usage stands there twice */
    *strstr(text, "    usage: {period_ms: 0}\n") = '\0';
    (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                   "    clocks_mhz: [300, 500.5, 900]\n    uuid: GPU-mine\n"
                   "    pci_address: 0000:0a:00.0\n");
    if (read_text(text, &machine, error) != WG_OK)
        fail_msg("%s", error);
    struct vgpu_description t4 = read_shipped("t4");
    const struct vgpu_model *gpu = &machine.models[0];
    assert_string_equal(gpu->name, "Tesla T4");
    assert_string_equal(gpu->uuid, "GPU-mine");
    assert_string_equal(gpu->pci, "00000000:0A:00.0");
    check_close(gpu->limit_default_w, 65, 0);
    check_close(gpu->limit_max_w, 70, 0);
    assert_false(gpu->has_counter);
    check_close(gpu->instant.window_s, 0.007, 1e-12);
    check_close(gpu->instant.period_s, t4.models[0].instant.period_s, 0);
    assert_int_equal(gpu->clock_count, 3);
    check_close(gpu->clocks_hz[1], 500.5e6, 1e-12);
    vgpu_description_fini(&machine);
    vgpu_description_fini(&t4);
}

static void messages_name_line_column_and_what_was_expected(void **state)
{
    (void)state;
    expect_error("  - like: t4\n    limit_defaultw: 3\n", ":6:5: unknown key 'limit_defaultw'");
    expect_error("  - like: t4\n    idle_w: two\n", ":6:13: 'two' is not a number");
    expect_error("  - like: t4\n    idle_w: nan\n",
                 ":6:5: gpus[0]: idle_w: nan is not in 0.1 .. 10000");
    expect_error("  - like: t4\n  - like: t4\n    limit_default_w: 71\n",
                 ":7:5: gpus[1]: limit_default_w: is above limit_max_w");
    expect_error("  - name: x\n", ":5:3: gpus[0]: pci_device_id: is missing");
    expect_error("  - like: t4\n    clocks_mhz: [300, 300]\n",
                 ":6:5: gpus[0]: clocks_mhz: must rise, but 300 follows 300");
    expect_error("  - like: t4\n    clock_min_mhz: 300\n",
                 ":6:5: gpus[0]: clock_min_mhz: clock_min_mhz, clock_max_mhz and clock_step_mhz "
                 "need each other");
    expect_error("  - like: t4\n    clock_min_mhz: 300\n    clock_max_mhz: 1000\n"
                 "    clock_step_mhz: 15\n",
                 ":8:5: gpus[0]: clock_step_mhz: 15 does not lead from 300 to 1000");
    expect_error("  - like: t4\n    clock_min_mhz: 300\n    clock_max_mhz: 1000\n"
                 "    clock_step_mhz: 1\n",
                 ":8:5: gpus[0]: clock_step_mhz: 1 makes more than 512 clocks");
    expect_error("  - like: t4\n    clocks_mhz: [300]\n    clock_min_mhz: 300\n",
                 ":6:5: gpus[0]: clocks_mhz: a list and");
    expect_error("  - like: t4\n    architecture: amber\n",
                 ":6:5: gpus[0]: architecture: 'amber' is not kepler");
    expect_error("  - like: t4\n    compute_capability: 7\n",
                 ":6:5: gpus[0]: compute_capability: '7' is not of the form 8.0");
    expect_error("  - like: t4\n    count: 65\n", ":6:5: gpus[0]: count: 65 is not in 1 .. 64");
    expect_error("  - like: t4\n    count: 2\n    uuid: GPU-1\n", ":6:5: gpus[0]: count: 2 GPUs");
    expect_error("  - like: t4\n    uuid: 7\n", ":6:5: gpus[0]: uuid: '7' does not begin");
    expect_error("  - like: t4\n    pci_address: 1A:00\n", ":6:5: gpus[0]: pci_address: '1A:00'");
    expect_error("  - like: t4\n    uuid: GPU-1\n  - like: t4\n    uuid: GPU-1\n",
                 ":8:5: gpus[1]: uuid: is that of GPU 0 already");
    expect_error("  - like: t4\n    usage: {period_ms: 0}\n", ":6:5: gpus[0]: usage: is missing");
    expect_error("  - like: t4\n    memory: {period_ms: 10}\n",
                 ":6:5: gpus[0]: memory: needs memory_idle_w");
    expect_error("  - like: t4\n    instant: {windw: 3}\n", ":6:14: unknown key 'windw'");
    expect_error("  - like: ../t4\n", ":5:5: gpus[0]: like: '../t4' is no id");
    expect_error("  - like: t5\n", ":5:5: gpus[0]: like: 't5' is no shipped machine (8xh100, a100");
    expect_error("  - like: &x t4\n    name: *x\n", ":6:5: anchors and aliases are not supported");
}

static void a_file_that_is_no_machine_is_refused(void **state)
{
    (void)state;
    struct vgpu_description machine = {0};
    char error[512];
    assert_int_equal(read_text("", &machine, error), WG_EDATA);
    assert_string_equal(error, ": holds no machine");
    assert_int_equal(read_text("- a\n", &machine, error), WG_EDATA);
    assert_string_equal(error, ": expected keys with values (KEY: VALUE), not SEQUENCE_START");
    assert_int_equal(read_text("id: x\n", &machine, error), WG_EDATA);
    assert_non_null(strstr(error, "'driver' is missing"));
    assert_int_equal(read_text("id: [\n", &machine, error), WG_EDATA);
    char *huge = malloc((2 << 20) + 1);
    assert_non_null(huge);
    memset(huge, '#', 2 << 20);
    huge[2 << 20] = '\0';
    assert_int_equal(read_text(huge, &machine, error), WG_EDATA);
    assert_string_equal(error, ": is larger than 1048576 bytes");
    free(huge);
}

static void what_is_not_there_is_answered_with_what_there_is(void **state)
{
    (void)state;
    char folder[512];
    struct vgpu_description machine = {0};
    struct wg_error err = {0};
    machines_folder(folder);
    assert_int_equal(vgpu_machine_read(&machine, folder, "a200", &err), WG_ENOENT);
    assert_string_equal(err.text,
                        "'a200' is no shipped machine (8xh100, a100, a100-mig, a40, h100, "
                        "h200, mixed, rtx-4090, t4, v100) and no path of a file");
    assert_int_equal(vgpu_machine_read(&machine, folder, "./none.yaml", &err), WG_ENOENT);
    assert_int_equal(vgpu_machine_read(&machine, "/nowhere", "a100", &err), WG_ENOENT);
    assert_non_null(strstr(err.text, "/nowhere"));
    assert_int_equal(vgpu_machine_read(&machine, folder, "/", &err), WG_EDATA);
}

static void ids_are_known_in_any_case(void **state)
{
    (void)state;
    char folder[512];
    machines_folder(folder);
    static const char *const written[] = {"8xH100", "RTX-4090", "V100"};
    static const char *const ids[] = {"8xh100", "rtx-4090", "v100"};
    for (size_t i = 0; i < 3; i++) {
        struct vgpu_description machine = {0};
        struct wg_error err = {0};
        if (vgpu_machine_read(&machine, folder, written[i], &err) != WG_OK)
            fail_msg("%s", err.text);
        assert_string_equal(machine.id, ids[i]);
        vgpu_description_fini(&machine);
    }
}

static void circles_of_like_end(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    static const char text[] = "id: a\ndriver: 1\ncuda_version: 12\ngpus:\n  - like: a\n";
    scratch_write(scratch_path(&scratch, "a.yaml"), text, sizeof text - 1);
    struct vgpu_description machine = {0};
    struct wg_error err = {0};
    assert_int_equal(vgpu_machine_read(&machine, scratch.folder, "a", &err), WG_EDATA);
    assert_non_null(strstr(err.text, ":5:5: gpus[0]: like: "));
    scratch_close(&scratch);
}

static void every_failed_allocation_is_told_and_leaves_nothing(void **state)
{
    (void)state;
    char folder[512];
    machines_folder(folder);
    size_t n = 1;
    for (;; n++) {
        struct vgpu_description machine = {0};
        struct wg_error err = {0};
        wg__alloc_fail_from(n);
        const enum wg_code code = vgpu_machine_read(&machine, folder, "a100-mig", &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK) {
            vgpu_description_fini(&machine);
            break;
        }
        if (code != WG_ENOMEM)
            fail_msg("allocation %zu: %s", n, err.text);
        assert_null(machine.models);
    }
    assert_true(n > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shipped_machine_is_sound),
        cmocka_unit_test(the_h200_is_that_of_the_capture),
        cmocka_unit_test(sensors_are_those_that_were_measured),
        cmocka_unit_test(identities_are_distinct_and_repeat),
        cmocka_unit_test(machines_are_joined_up_to_the_limit),
        cmocka_unit_test(mig_instances_have_ids_of_their_own),
        cmocka_unit_test(like_takes_all_that_is_not_overridden),
        cmocka_unit_test(messages_name_line_column_and_what_was_expected),
        cmocka_unit_test(a_file_that_is_no_machine_is_refused),
        cmocka_unit_test(what_is_not_there_is_answered_with_what_there_is),
        cmocka_unit_test(ids_are_known_in_any_case),
        cmocka_unit_test(circles_of_like_end),
        cmocka_unit_test(every_failed_allocation_is_told_and_leaves_nothing),
    };
    return run_tests(tests);
}
