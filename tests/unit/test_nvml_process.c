/* SPDX-License-Identifier: MIT
 *
 * Process lists of every layout that NVIDIA's drivers have had (field report 39).
 */
#include "device/nvml.h"

#include "support/nvml_found.h"

enum { ROOM = 400 };

static void add_process(struct fake_gpu *gpu, int kind, unsigned pid, unsigned long long memory)
{
    gpu->processes[kind][gpu->process_count[kind]++] = (struct nvml_process_r535){
        .pid = pid, .memory = memory, .gpu_instance = UINT32_MAX, .compute_instance = UINT32_MAX};
}

/* Three of compute, two of graphics, one pid in both. */
static void add_some(struct fake_gpu *gpu)
{
    add_process(gpu, 0, 1001, 5000);
    add_process(gpu, 0, 1002, 6000);
    add_process(gpu, 0, 1003, UINT64_MAX); /* not available */
    add_process(gpu, 1, 1002, 7000);
    add_process(gpu, 1, 2001, 100);
}

static enum wg_code list_of(struct found *found, struct wg_process *out, size_t capacity,
                            size_t *count)
{
    struct wg_device *device = device_of(found, 0);
    *count = 9999;
    return device->ops->read_processes(device, out, capacity, count, &found->err);
}

static void expect_some(struct found *found)
{
    struct wg_process processes[ROOM];
    size_t count = 0;
    assert_int_equal(list_of(found, processes, ROOM, &count), WG_OK);
    assert_int_equal(count, 4);
    static const struct wg_process expected[] = {
        {1001, 5000}, {1002, 7000}, {1003, UINT64_MAX}, {2001, 100}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(processes[i].pid, expected[i].pid);
        assert_int_equal(processes[i].memory_bytes, expected[i].memory_bytes);
    }
}

static void every_version_and_layout_gives_the_same_list(void **state)
{
    (void)state;
    static const size_t sizes[] = {16, 24, 32}; /* of _v3: R510's surprise, usual, R535.43-.86 */
    for (size_t oldest = 1; oldest <= 3; oldest++) {
        for (size_t i = 0; i < 3; i++) {
            fake_reset();
            add_some(&fake.gpus[0]);
            fake.gpus[0].process_size = sizes[i];
            if (oldest < 3) {
                fake_remove_symbol("nvmlDeviceGetComputeRunningProcesses_v3");
                fake_remove_symbol("nvmlDeviceGetGraphicsRunningProcesses_v3");
            }
            if (oldest < 2) {
                fake_remove_symbol("nvmlDeviceGetComputeRunningProcesses_v2");
                fake_remove_symbol("nvmlDeviceGetGraphicsRunningProcesses_v2");
            }
            struct found found;
            found_probe(&found, "0");
            expect_some(&found);
            found_end(&found);
        }
    }
}

static void a_long_list_of_the_largest_entries_overruns_nothing(void **state)
{
    (void)state;
    static const size_t sizes[] = {16, 24, 32};
    for (size_t i = 0; i < 3; i++) {
        fake_reset();
        struct fake_gpu *gpu = &fake.gpus[0];
        gpu->process_size = sizes[i];
        for (unsigned j = 0; j < FAKE_PROCESSES_MAX; j++)
            add_process(gpu, 0, 5000 + j, j);
        struct found found;
        found_probe(&found, "0");
        struct wg_process processes[ROOM];
        size_t count = 0;
        assert_int_equal(list_of(&found, processes, 10, &count), WG_OK);
        assert_int_equal(count, FAKE_PROCESSES_MAX); /* more than there was room for */
        assert_int_equal(processes[9].pid, 5009);
        assert_int_equal(list_of(&found, processes, ROOM, &count), WG_OK);
        for (unsigned j = 0; j < FAKE_PROCESSES_MAX; j++) {
            assert_int_equal(processes[j].pid, 5000 + j);
            assert_int_equal(processes[j].memory_bytes, j);
        }
        found_end(&found);
    }
}

/* Field report 61: "not found" is what an idle GPU answers. */
static void an_idle_gpu_has_no_processes(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        fake_reset();
        if (i == 1)
            fake.gpus[0].codes[FAKE_compute_v3] = fake.gpus[0].codes[FAKE_graphics_v3] =
                NVML_E_NOT_FOUND;
        struct found found;
        found_probe(&found, "0");
        size_t count = 0;
        assert_int_equal(list_of(&found, NULL, 0, &count), WG_OK);
        assert_int_equal(count, 0);
        found_end(&found);
    }
}

static void one_of_the_two_lists_is_enough(void **state)
{
    (void)state;
    fake_reset();
    add_some(&fake.gpus[0]);
    fake.gpus[0].codes[FAKE_graphics_v3] = NVML_E_NOT_SUPPORTED;
    struct found found;
    found_probe(&found, "0");
    struct wg_process processes[ROOM];
    size_t count = 0;
    assert_int_equal(list_of(&found, processes, ROOM, &count), WG_OK);
    assert_int_equal(count, 3);
    fake.gpus[0].codes[FAKE_compute_v3] = NVML_E_NO_PERMISSION;
    assert_int_equal(list_of(&found, processes, ROOM, &count), WG_EPERM);
    expect_text(found.err.text, "nvmlDeviceGetComputeRunningProcesses_v3: error 4");
    found_end(&found);
}

static void a_version_that_is_given_up_is_passed_over(void **state)
{
    (void)state;
    fake_reset();
    add_some(&fake.gpus[0]);
    fake.gpus[0].codes[FAKE_compute_v3] = NVML_E_DEPRECATED;
    fake.gpus[0].codes[FAKE_graphics_v3] = NVML_E_FUNCTION_NOT_FOUND;
    struct found found;
    found_probe(&found, "0");
    expect_some(&found);
    found_end(&found);
}

static void a_list_that_always_grows_ends(void **state)
{
    (void)state;
    fake_reset();
    fake.gpus[0].codes[FAKE_compute_v3] = NVML_E_INSUFFICIENT_SIZE;
    fake.gpus[0].codes[FAKE_graphics_v3] = NVML_E_INSUFFICIENT_SIZE;
    struct found found;
    found_probe(&found, "0");
    size_t count = 0;
    assert_int_equal(list_of(&found, NULL, 0, &count), WG_EIO);
    expect_text(found.err.text, "error 7");
    found_end(&found);
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    fake_reset();
    for (unsigned j = 0; j < FAKE_PROCESSES_MAX; j++)
        add_process(&fake.gpus[0], 0, 5000 + j, j);
    struct found found;
    found_probe(&found, "0");
    for (size_t nth = 1;; nth++) {
        struct wg_process processes[ROOM];
        size_t count = 0;
        wg__alloc_fail_from(nth);
        const enum wg_code code = list_of(&found, processes, ROOM, &count);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_int_equal(count, 9999); /* written on success only */
        assert_true(nth < 50);
    }
    found_end(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_and_layout_gives_the_same_list),
        cmocka_unit_test(a_long_list_of_the_largest_entries_overruns_nothing),
        cmocka_unit_test(an_idle_gpu_has_no_processes),
        cmocka_unit_test(one_of_the_two_lists_is_enough),
        cmocka_unit_test(a_version_that_is_given_up_is_passed_over),
        cmocka_unit_test(a_list_that_always_grows_ends),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return run_tests(tests);
}
