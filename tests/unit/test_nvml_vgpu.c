/* SPDX-License-Identifier: MIT
 *
 * The NVIDIA backend on the virtual GPU, through dlopen and through the whole machine: values
 * against the true ones, calls counted by the library, faults from outside.
 */
#include "device/nvml.h"

#include <sched.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "device/machine.h"
#include "support/check.h"
#include "support/tree.h"
#include "support/vgpu.h"

#define BIT(metric) (1u << WG_METRIC_##metric)

/* A virtual machine of two GPUs, and wattgov's machine on it. */
struct seen {
    struct vgpu_stage stage;
    char library[1024];
    struct tree root; /* no /proc; its /sys is that of a host whose own GPU sleeps */
    struct wg_machine *machine;
    struct wg_error err;
};

static void seen_begin(struct seen *seen, const char *folder)
{
    *seen = (struct seen){0};
    const struct vgpu_model models[2] = {vgpu_stage_model(0), vgpu_stage_model(1)};
    vgpu_stage_open_now(&seen->stage, models, 2);
    tree_open(&seen->root);
    static const struct tree_entry host[] = {
        {.path = "/sys/bus/pci/devices/0000:1a:00.0/vendor", .text = "0x10de\n"},
        {.path = "/sys/bus/pci/devices/0000:1a:00.0/class", .text = "0x030000\n"},
        {.path = "/sys/bus/pci/devices/0000:1a:00.0/power/runtime_status", .text = "suspended\n"},
    };
    TREE_ADD(&seen->root, host);
    assert_int_equal(setenv("WATTGOV_VGPU", seen->stage.path, 1), 0);
    const char *build = getenv("WATTGOV_BUILD_ROOT");
    (void)snprintf(seen->library, sizeof seen->library, "%s/vgpu/%s/libnvidia-ml.so.1",
                   build != NULL ? build : ".", folder);
}

static void seen_open(struct seen *seen, const char *selector, unsigned timeout_ms)
{
    static const struct wg_backend *const backends[] = {&wg__backend_nvml, NULL};
    const struct wg_machine_setup setup = {.backends = backends, .nvml_library = seen->library};
    const char *const selectors[] = {selector != NULL ? selector : "all"};
    const struct wg_machine_opts opts =
        WG_MACHINE_OPTS(.root = seen->root.root, .gpus = selectors, .gpu_count = 1,
                        .call_timeout_ms = timeout_ms);
    if (wg__machine_open_setup(&seen->machine, &setup, &opts, &seen->err) != WG_OK)
        fail_msg("%s", seen->err.text);
}

static void seen_end(struct seen *seen)
{
    wg_machine_close(seen->machine);
    /* Field report 38: a GPU can be reset when nobody has NVML open. */
    assert_int_equal(atomic_load(&seen->stage.machine->init_count), 0);
    assert_int_equal(unsetenv("WATTGOV_VGPU"), 0);
    vgpu_stage_close(&seen->stage);
    tree_close(&seen->root);
}

static struct wg_device *device_of(const struct seen *seen, size_t i)
{
    assert_true(i < wg_machine_device_count(seen->machine));
    return wg_machine_device(seen->machine, i);
}

static void add_fault(struct seen *seen, struct vgpu_fault fault)
{
    assert_int_equal(vgpu_fault_add(seen->stage.machine, &fault, NULL), WG_OK);
}

static uint64_t calls_of(const struct seen *seen, size_t gpu)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < VGPU_FUNCTIONS_MAX; i++)
        sum += atomic_load(&seen->stage.machine->gpus[gpu].calls[i]);
    return sum;
}

static void expect_text(const char *text, const char *part)
{
    if (text == NULL || strstr(text, part) == NULL)
        fail_msg("'%s' lacks '%s'", text != NULL ? text : "(null)", part);
}

static void what_is_read_is_what_is_true(void **state)
{
    (void)state;
    struct seen seen;
    seen_begin(&seen, "lib");
    seen_open(&seen, NULL, 0);
    assert_int_equal(wg_machine_device_count(seen.machine), 2);
    struct wg_device *device = device_of(&seen, 1);
    const struct wg_device_info *info = wg_device_get_info(device);
    assert_int_equal(info->state, WG_OK);
    assert_string_equal(info->label, "gpu1");
    assert_string_equal(info->uuid, seen.stage.machine->gpus[1].model.uuid);
    assert_string_equal(info->pci, "0000:1b:00.0");
    assert_string_equal(info->driver, "580.65.06");
    assert_string_equal(info->architecture, "hopper");
    struct wg_sample sample;
    assert_int_equal(wg_device_read(device, UINT32_MAX, &sample, &seen.err), WG_OK);
    check_close(sample.values[WG_METRIC_POWER_W], 100, 1e-9); /* idle */
    check_close(sample.values[WG_METRIC_POWER_LIMIT_W], 500, 1e-9);
    check_close(sample.values[WG_METRIC_CLOCK_HZ], 300e6, 1e-9);
    assert_true(sample.has_throttle && (sample.throttle & WG_THROTTLE_IDLE) != 0);
    /* The counter is true at its last tick, which is 20 ms ago at most, and counts whole mJ. */
    struct vgpu_gpu *gpu = &seen.stage.machine->gpus[1];
    const uint64_t half_ns = sample.span_ns / 2 + 1;
    const double newest_j = vgpu_true_energy_j(gpu, sample.t_ns + half_ns) - gpu->counter_base_j;
    const double oldest_j = newest_j - 100 * (0.02 + 2e-9 * (double)half_ns);
    assert_true(sample.values[WG_METRIC_ENERGY_J] <= newest_j + 1e-3);
    assert_true(sample.values[WG_METRIC_ENERGY_J] >= oldest_j - 2e-3);
    seen_end(&seen);
}

/* Field reports 65 and 67, counted by the other side. */
static void a_gpu_that_is_not_chosen_gets_no_call_and_a_look_is_one(void **state)
{
    (void)state;
    struct seen seen;
    seen_begin(&seen, "lib");
    seen_open(&seen, "1", 0);
    struct wg_device *device = device_of(&seen, 0);
    assert_string_equal(wg_device_get_info(device)->label, "gpu1");
    const uint64_t before = calls_of(&seen, 1);
    struct wg_sample sample;
    for (int i = 0; i < 10; i++)
        assert_int_equal(wg_device_read(device, BIT(POWER_W) | BIT(ENERGY_J), &sample, NULL),
                         WG_OK);
    assert_int_equal(calls_of(&seen, 1) - before, 10);
    assert_int_equal(vgpu_calls(seen.stage.machine, 1, "nvmlDeviceGetHandleByIndex_v2"), 1);
    assert_int_equal(calls_of(&seen, 0), 0);
    seen_end(&seen);
}

/* Field reports 34 and 36. */
static void a_gpu_that_falls_off_the_bus_is_lost_alone(void **state)
{
    (void)state;
    struct seen seen;
    seen_begin(&seen, "lib");
    seen_open(&seen, NULL, 0);
    add_fault(&seen, (struct vgpu_fault){.kind = VGPU_FAULT_LOST, .gpu = 0});
    struct wg_sample sample;
    assert_int_equal(wg_device_read(device_of(&seen, 0), UINT32_MAX, &sample, &seen.err), WG_ELOST);
    expect_text(seen.err.text, "gpu0: nvmlDeviceGetFieldValues: error 15: the GPU is lost");
    assert_int_equal(wg_device_read(device_of(&seen, 1), UINT32_MAX, &sample, NULL), WG_OK);
    seen_end(&seen);
}

/* Field report 35: the call that hangs is named, the other GPU answers. */
static void a_gpu_that_hangs_costs_only_itself(void **state)
{
    (void)state;
    struct seen seen;
    seen_begin(&seen, "lib");
    seen_open(&seen, NULL, 1000); /* enough for the healthy one on a busy machine */
    struct vgpu_fault hang = {.kind = VGPU_FAULT_HANG, .gpu = 0};
    (void)snprintf(hang.function, sizeof hang.function, "nvmlDeviceGetFieldValues");
    add_fault(&seen, hang);
    struct wg_sample sample;
    assert_int_equal(wg_device_read(device_of(&seen, 0), UINT32_MAX, &sample, &seen.err),
                     WG_ETIMEOUT);
    expect_text(seen.err.text, "gpu0: nvmlDeviceGetFieldValues");
    assert_int_equal(wg_device_read(device_of(&seen, 1), UINT32_MAX, &sample, NULL), WG_OK);
    vgpu_fault_clear(seen.stage.machine);
    /* The thread that hung returns in its own time; then the GPU is read on. */
    const uint64_t until_ns = wg__clock_ns() + 20000000000U;
    enum wg_code code = WG_ETIMEOUT;
    while (code == WG_ETIMEOUT && wg__clock_ns() < until_ns) {
        code = wg_device_read(device_of(&seen, 0), BIT(POWER_W), &sample, &seen.err);
        (void)sched_yield();
    }
    assert_int_equal(code, WG_OK);
    seen_end(&seen);
}

static void every_code_of_the_batch_is_reported_with_its_number(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum wg_code meaning;
    } cases[] = {{4, WG_EPERM}, {10, WG_ETIMEOUT}, {15, WG_ELOST}, {16, WG_ELOST},
                 {17, WG_EIO},  {27, WG_EIO},      {999, WG_EIO},  {3, WG_EUNSUPPORTED}};
    struct seen seen;
    seen_begin(&seen, "lib");
    seen_open(&seen, "0", 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct vgpu_fault fault = {
            .kind = VGPU_FAULT_ERROR, .gpu = 0, .code = cases[i].code, .calls = 1};
        (void)snprintf(fault.function, sizeof fault.function, "nvmlDeviceGetFieldValues");
        add_fault(&seen, fault);
        struct wg_sample sample;
        assert_int_equal(wg_device_read(device_of(&seen, 0), BIT(POWER_W), &sample, &seen.err),
                         cases[i].meaning);
        char words[32];
        (void)snprintf(words, sizeof words, "error %d: ", cases[i].code);
        expect_text(seen.err.text, words);
        vgpu_fault_clear(seen.stage.machine);
        assert_int_equal(wg_device_read(device_of(&seen, 0), BIT(POWER_W), &sample, NULL), WG_OK);
    }
    seen_end(&seen);
}

/* Field reports 39 and 40. */
static void old_drivers_libraries_are_read_and_list_processes(void **state)
{
    (void)state;
    static const char *const folders[] = {"lib", "lib-r535", "lib-r418"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        struct seen seen;
        seen_begin(&seen, folders[i]);
        const struct vgpu_load load = {
            .utilization = 1, .intensity = 0.5, .memory_bytes = 7ULL << 30};
        assert_int_equal(vgpu_set_load(&seen.stage.machine->gpus[0], &load, NULL), WG_OK);
        seen_open(&seen, "0", 0);
        struct wg_device *device = device_of(&seen, 0);
        if (wg_device_get_info(device)->state != WG_OK)
            fail_msg("%s", wg_device_get_info(device)->state_text);
        struct wg_sample sample;
        assert_int_equal(wg_device_read(device, UINT32_MAX, &sample, NULL), WG_OK);
        const uint32_t always = BIT(POWER_W) | BIT(ENERGY_J) | BIT(CLOCK_HZ) | BIT(TEMPERATURE_C) |
                                BIT(UTILIZATION) | BIT(MEMORY_USED_BYTES) | BIT(POWER_LIMIT_W) |
                                BIT(ENFORCED_POWER_LIMIT_W);
        assert_int_equal(sample.present & always, always);
        struct wg_process processes[8];
        size_t count = 0;
        if (wg_device_read_processes(device, processes, 8, &count, &seen.err) != WG_OK)
            fail_msg("%s: %s", folders[i], seen.err.text);
        assert_int_equal(count, 1);
        assert_int_equal(processes[0].pid, getpid());
        assert_int_equal(processes[0].memory_bytes, 7ULL << 30);
        seen_end(&seen);
    }
}

static void quiesce_closes_nvml_and_resume_reads_on(void **state)
{
    (void)state;
    struct seen seen;
    seen_begin(&seen, "lib");
    seen_open(&seen, NULL, 0);
    assert_true(atomic_load(&seen.stage.machine->init_count) > 0);
    assert_int_equal(wg_machine_quiesce(seen.machine, NULL), WG_OK);
    assert_int_equal(atomic_load(&seen.stage.machine->init_count), 0);
    struct wg_sample sample;
    assert_int_equal(wg_device_read(device_of(&seen, 0), BIT(POWER_W), &sample, NULL), WG_ESTATE);
    assert_int_equal(wg_machine_resume(seen.machine, NULL), WG_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(wg_device_read(device_of(&seen, i), BIT(POWER_W), &sample, NULL), WG_OK);
    seen_end(&seen);
}

/* Field report 5, with a library that knows its process. */
static void a_forked_child_reads_on(void **state)
{
    (void)state;
    struct seen seen;
    seen_begin(&seen, "lib");
    seen_open(&seen, "1", 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct wg_sample sample;
        const enum wg_code code =
            wg_device_read(device_of(&seen, 0), BIT(POWER_W), &sample, &seen.err);
        if (code != WG_OK)
            (void)fprintf(stderr, "child: %s\n", seen.err.text);
        wg_machine_close(seen.machine);
        _exit(code == WG_OK ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    struct wg_sample sample;
    assert_int_equal(wg_device_read(device_of(&seen, 0), BIT(POWER_W), &sample, NULL), WG_OK);
    seen_end(&seen);
}

/* Field reports 42 and 43 at the start. */
static void a_driver_that_refuses_is_the_backends_state_with_a_remedy(void **state)
{
    (void)state;
    struct seen seen;
    seen_begin(&seen, "lib");
    struct vgpu_fault fault = {.kind = VGPU_FAULT_ERROR, .gpu = -1, .code = 18};
    (void)snprintf(fault.function, sizeof fault.function, "nvmlInitWithFlags");
    add_fault(&seen, fault);
    static const struct wg_backend *const backends[] = {&wg__backend_nvml, NULL};
    const struct wg_machine_setup setup = {.backends = backends, .nvml_library = seen.library};
    const struct wg_machine_opts opts = WG_MACHINE_OPTS(.root = seen.root.root);
    assert_int_equal(wg__machine_open_setup(&seen.machine, &setup, &opts, &seen.err), WG_OK);
    assert_int_equal(wg_machine_device_count(seen.machine), 0);
    const struct wg_backend_info *info = wg_machine_backend(seen.machine, 0);
    assert_int_equal(info->state, WG_EIO);
    expect_text(info->text, "nvmlInitWithFlags: error 18: driver and library are of different");
    expect_text(info->remedy, "reboot");
    seen_end(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_is_what_is_true),
        cmocka_unit_test(a_gpu_that_is_not_chosen_gets_no_call_and_a_look_is_one),
        cmocka_unit_test(a_gpu_that_falls_off_the_bus_is_lost_alone),
        cmocka_unit_test(a_gpu_that_hangs_costs_only_itself),
        cmocka_unit_test(every_code_of_the_batch_is_reported_with_its_number),
        cmocka_unit_test(old_drivers_libraries_are_read_and_list_processes),
        cmocka_unit_test(quiesce_closes_nvml_and_resume_reads_on),
        cmocka_unit_test(a_forked_child_reads_on),
        cmocka_unit_test(a_driver_that_refuses_is_the_backends_state_with_a_remedy),
    };
    return run_tests(tests);
}
