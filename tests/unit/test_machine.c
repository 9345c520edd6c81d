/* SPDX-License-Identifier: MIT
 *
 * The machine over devices of our own, which fail and hang as told (field reports 34, 35, 36: one
 * dead GPU must not take the others with it).
 */
#include "device/machine.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/fake_machine.h"

/* -- Devices ---------------------------------------------------------------------------------- */

static void devices_are_labelled_by_kind_and_number_and_rails_by_name(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(8);
    world.devices[1].uuid = "GPU-1";
    world.devices[2].kind = WG_DEVICE_CPU;
    world.devices[3].kind = WG_DEVICE_DRAM;
    world.devices[4].kind = WG_DEVICE_RAIL;
    world.devices[4].name = "VDD_IN";
    world.devices[5] = (struct fake_script){.kind = WG_DEVICE_RAIL, .name = "VDD_IN"};
    world.devices[6] = (struct fake_script){.kind = WG_DEVICE_RAIL, .name = "5 V: all"};
    world.devices[7].kind = WG_DEVICE_RAIL;
    struct wg_machine *machine = open_patient(&world);
    static const char *const labels[] = {"gpu0",   "gpu1",     "cpu0",     "dram0",
                                         "VDD_IN", "VDD_IN-2", "5_V__all", "rail3"};
    static const char *const ids[] = {"fake/gpu0",   "GPU-1",       "fake/cpu0",     "fake/dram0",
                                      "fake/VDD_IN", "fake/VDD_IN", "fake/5 V: all", "fake/Fake 7"};
    assert_int_equal(wg_machine_device_count(machine), 8);
    for (size_t i = 0; i < 8; i++) {
        const struct wg_device_info *info = info_of(machine, i);
        assert_string_equal(info->label, labels[i]);
        assert_string_equal(info->backend, "fake");
        assert_int_equal(info->state, WG_OK);
        assert_null(info->state_text);
        if (i != 7) /* an id is made before the probe gives it a name */
            assert_string_equal(info->id, ids[i]);
        assert_true(info->meters[WG_METRIC_POWER_W].is_present);
        assert_false(info->meters[WG_METRIC_ENERGY_J].is_present);
        assert_string_equal(info->meters[WG_METRIC_ENERGY_J].source, "none");
        assert_string_equal(info->meters[WG_METRIC_ENERGY_J].why_not,
                            "fake has no such reading or setting");
        assert_true(isnan(info->knobs[WG_KNOB_POWER_LIMIT].preset));
        expect_power(machine, i, 100.0 + (double)i);
    }
    assert_null(wg_machine_device(machine, 8));
    assert_null(wg_machine_backend(machine, 1));
    wg_machine_close(machine);
    assert_int_equal(atomic_load(&world.destroyed), 8);
    wg_machine_close(NULL);
}

static void gpus_keep_the_numbers_of_their_driver_and_other_vendors_count_on(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(2);
    world.devices[0].driver_index_plus_1 = 3; /* 0 and 1 were not chosen */
    world.devices[1].driver_index_plus_1 = 6;
    fake_world_now = &world;
    static const struct wg_backend *const two[] = {&fake_backend, &fake_backend, NULL};
    struct wg_machine *machine = NULL;
    assert_int_equal(wg__machine_open_with(&machine, two, NULL, NULL), WG_OK);
    static const char *const labels[] = {"gpu2", "gpu5", "gpu8", "gpu11"};
    static const unsigned indices[] = {2, 5, 8, 11};
    assert_int_equal(wg_machine_device_count(machine), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(info_of(machine, i)->label, labels[i]);
        assert_int_equal(info_of(machine, i)->index, indices[i]);
    }
    wg_machine_close(machine);
}

static void one_hangs_in_probe_one_in_read_one_is_lost_and_the_others_answer(void **state)
{
    (void)state; /* field report 55 */
    struct fake_world world = fake_world_of(5);
    world.devices[1].probe = FAKE_HANGS;
    world.devices[2].probe = FAKE_IS_LOST;
    world.devices[3].read = FAKE_HANGS;
    world.devices[4].read = FAKE_IS_LOST;
    struct wg_machine *machine = open_hanging(&world);
    assert_int_equal(wg_machine_device_count(machine), 5);
    assert_int_equal(info_of(machine, 1)->state, WG_ETIMEOUT);
    assert_non_null(
        strstr(info_of(machine, 1)->state_text, "gpu1: fakeProbe has not returned for "));
    assert_int_equal(info_of(machine, 2)->state, WG_ELOST);
    assert_string_equal(info_of(machine, 2)->state_text,
                        "gpu2: fakeProbe failed: GPU is lost (15)");
    assert_string_equal(info_of(machine, 2)->meters[WG_METRIC_POWER_W].why_not,
                        info_of(machine, 2)->state_text);
    for (int turn = 0; turn < 2; turn++) {
        expect_power(machine, 0, 100.0);
        expect_failure(machine, 1, WG_ETIMEOUT, "gpu1: fakeProbe has not returned for ");
        expect_failure(machine, 2, WG_ELOST, "gpu2: fakeProbe failed: GPU is lost (15)");
        expect_failure(machine, 3, WG_ETIMEOUT, "gpu3: fakeRead has not returned for ");
        expect_failure(machine, 4, WG_ELOST, "gpu4: fakeRead failed: GPU is lost (15)");
    }
    wg_machine_close(machine);
    assert_int_equal(atomic_load(&world.destroyed), 3); /* those that hang are in use */
    gate_open(&world.gate);
    while (atomic_load(&world.destroyed) < 5)
        sched_yield();
}

static void eight_that_hang_cost_one_timeout(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(8);
    for (size_t i = 0; i < 8; i++)
        world.devices[i].probe = FAKE_HANGS;
    const uint64_t before_ns = wg__clock_ns();
    struct wg_machine *machine = open_hanging(&world);
    const uint64_t open_ns = wg__clock_ns() - before_ns;
    assert_true(open_ns >= HANG_MS * 1000000ULL);
    assert_true(open_ns < 8ULL * HANG_MS * 1000000ULL);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(info_of(machine, i)->state, WG_ETIMEOUT);
    wg_machine_close(machine);
    gate_open(&world.gate);
    while (atomic_load(&world.destroyed) < 8)
        sched_yield();
}

static void a_device_that_answers_late_after_all_works_again(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(1);
    world.devices[0].read = FAKE_HANGS;
    struct wg_machine *machine = open_hanging(&world);
    expect_failure(machine, 0, WG_ETIMEOUT, "fakeRead has not returned");
    assert_true(atomic_load(&wg_machine_device(machine, 0)->is_abandoned));
    gate_open(&world.gate);
    while (atomic_load(&wg_machine_device(machine, 0)->is_abandoned))
        sched_yield();
    expect_power(machine, 0, 100.0);
    wg_machine_close(machine);
    assert_int_equal(atomic_load(&world.destroyed), 1);
}

static void a_backend_that_hangs_is_reported_and_the_next_goes_on(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(2);
    world.open_hangs = true;
    struct wg_machine *machine = open_hanging(&world);
    assert_int_equal(wg_machine_device_count(machine), 0);
    assert_int_equal(wg_machine_backend_count(machine), 1);
    const struct wg_backend_info *backend = wg_machine_backend(machine, 0);
    assert_int_equal(backend->state, WG_ETIMEOUT);
    assert_string_equal(backend->name, "fake");
    assert_string_equal(backend->text, "fake: fakeInit has not returned for 0.3 s");
    wg_machine_close(machine);
    gate_open(&world.gate);
    while (atomic_load(&world.destroyed) < 2) /* found too late, given back */
        sched_yield();
}

static void a_selector_tells_of_the_driver_that_hangs(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(2);
    world.open_hangs = true;
    world.matches = true;
    fake_world_now = &world;
    static const char *const selectors[] = {"0"};
    const struct wg_machine_opts opts =
        WG_MACHINE_OPTS(.gpus = selectors, .gpu_count = 1, .call_timeout_ms = 100);
    struct wg_machine *machine = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__machine_open_with(&machine, fake_backends, &opts, &err), WG_EINVAL);
    assert_string_equal(err.text, "GPU selector '0' fits none: there is no GPU here (fake: "
                                  "fakeInit has not returned for 0.1 s)");
    gate_open(&world.gate);
    while (atomic_load(&world.destroyed) < 1) /* found too late, given back */
        sched_yield();
}

static void a_backend_that_fails_says_why_and_what_to_do(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(0);
    world.open_code = WG_EIO;
    struct wg_machine *machine = open_patient(&world);
    const struct wg_backend_info *backend = wg_machine_backend(machine, 0);
    assert_int_equal(backend->state, WG_EIO);
    assert_string_equal(backend->text, "fake: fakeInit failed: mismatch (18)");
    assert_string_equal(backend->remedy, "mend it");
    wg_machine_close(machine);
}

static void processes_are_counted_and_written_as_far_as_there_is_room(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(2);
    world.devices[1].read = FAKE_HANGS;
    struct wg_machine *machine = open_hanging(&world);
    struct wg_process processes[4] = {{0}};
    size_t count = 0;
    struct wg_device *device = wg_machine_device(machine, 0);
    assert_int_equal(wg_device_read_processes(device, processes, 2, &count, NULL), WG_OK);
    assert_int_equal(count, FAKE_PROCESSES);
    assert_int_equal(processes[1].pid, 1001);
    assert_int_equal(processes[2].pid, 0);
    assert_int_equal(wg_device_read_processes(device, processes, SIZE_MAX / 64, &count, NULL),
                     WG_OK);
    assert_int_equal(processes[2].pid, 1002);
    assert_int_equal(wg_device_read_processes(device, NULL, 0, &count, NULL), WG_OK);
    assert_int_equal(count, FAKE_PROCESSES);
    struct wg_error err = {0};
    device = wg_machine_device(machine, 1);
    assert_int_equal(wg_device_read_processes(device, processes, 4, &count, &err), WG_ETIMEOUT);
    assert_non_null(strstr(err.text, "gpu1: fakeProcesses has not returned"));
    wg_machine_close(machine);
    gate_open(&world.gate);
    while (atomic_load(&world.destroyed) < 2)
        sched_yield();
}

/* -- Options ---------------------------------------------------------------------------------- */

static void options_of_older_and_newer_callers_are_taken_unless_they_mean_something(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(1);
    fake_world_now = &world;
    struct wg_machine *machine = NULL;
    struct wg_error err = {0};
    struct {
        struct wg_machine_opts opts;
        char more[8];
    } newer = {.opts = WG_MACHINE_OPTS(.root = "/tmp//")};
    newer.opts.size = sizeof newer;
    assert_int_equal(wg__machine_open_with(&machine, fake_backends, &newer.opts, &err), WG_OK);
    assert_string_equal(world.root, "/tmp");
    wg_machine_close(machine);
    newer.more[7] = 1;
    assert_int_equal(wg__machine_open_with(&machine, fake_backends, &newer.opts, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "wg_machine_opts has something set at byte"));
    struct wg_machine_opts older = {.size = offsetof(struct wg_machine_opts, device),
                                    .root = "///",
                                    .device = "never looked at"};
    assert_int_equal(wg__machine_open_with(&machine, fake_backends, &older, &err), WG_OK);
    assert_string_equal(world.root, "");
    wg_machine_close(machine);
    const struct wg_machine_opts none = {.size = 0};
    assert_int_equal(wg__machine_open_with(&machine, fake_backends, &none, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "wg_machine_opts.size is 0, expected "));
    const struct wg_machine_opts nonsense = WG_MACHINE_OPTS(.device = "nonsense");
    assert_int_equal(wg__machine_open_with(&machine, fake_backends, &nonsense, &err), WG_EINVAL);
    assert_string_equal(err.text, "device 'nonsense': expected 'replay:FILE'");
}

static void gpus_only_leaves_the_rest_out(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(4);
    world.devices[0].kind = WG_DEVICE_CPU;
    world.devices[3].kind = WG_DEVICE_RAIL;
    struct wg_machine *machine = open_opts(&world, &WG_MACHINE_OPTS(.gpus_only = true));
    assert_int_equal(wg_machine_device_count(machine), 2);
    assert_string_equal(info_of(machine, 0)->label, "gpu0");
    assert_string_equal(info_of(machine, 1)->label, "gpu1");
    assert_int_equal(atomic_load(&world.probes), 2); /* the others were not touched */
    wg_machine_close(machine);
    assert_int_equal(atomic_load(&world.destroyed), 4);
}

/* Field reports 18 and 67. */
static void gpus_that_are_not_chosen_are_not_touched(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(4);
    world.matches = true;
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", "2", 1), 0);
    assert_int_equal(setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1), 0);
    struct wg_machine *machine = open_patient(&world);
    assert_int_equal(wg_machine_device_count(machine), 1);
    expect_power(machine, 0, 102.0);
    assert_int_equal(atomic_load(&world.probes), 1);
    wg_machine_close(machine);
    static const char *const selectors[] = {"0,3"}; /* the environment then has no say */
    machine = open_opts(&world, &WG_MACHINE_OPTS(.gpus = selectors, .gpu_count = 1));
    assert_int_equal(wg_machine_device_count(machine), 2);
    expect_power(machine, 1, 103.0);
    wg_machine_close(machine);
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
    assert_int_equal(unsetenv("CUDA_DEVICE_ORDER"), 0);
}

static void a_selector_that_fits_nothing_is_an_error_with_the_drivers_own_words(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(1);
    world.matches = true;
    fake_world_now = &world;
    static const char *const selectors[] = {"1"};
    const struct wg_machine_opts opts = WG_MACHINE_OPTS(.gpus = selectors, .gpu_count = 1);
    struct wg_machine *machine = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__machine_open_with(&machine, fake_backends, &opts, &err), WG_EINVAL);
    assert_string_equal(err.text, "GPU selector '1' fits none of the GPUs here: 0");
    assert_null(machine);
    assert_int_equal(wg_machine_open(NULL, &opts, &err), WG_EINVAL);
    assert_non_null(strstr(err.text, "out is NULL"));
    world.open_code = WG_EIO;
    assert_int_equal(wg__machine_open_with(&machine, fake_backends, &opts, &err), WG_EINVAL);
    assert_string_equal(err.text, "GPU selector '1' fits none: there is no GPU here (fake: "
                                  "fakeInit failed: mismatch (18); mend it)");
    world.open_code = WG_ENODEV; /* a library that cannot be loaded says so too */
    assert_int_equal(wg__machine_open_with(&machine, fake_backends, &opts, &err), WG_EINVAL);
    assert_string_equal(err.text, "GPU selector '1' fits none: there is no GPU here (fake: "
                                  "fakeInit failed: mismatch (18); mend it)");
}

/* -- Fork, memory -------------------------------------------------------------------------------
 */

/* Field report 5. */
static void a_forked_child_reads_even_where_the_parent_hangs(void **state)
{
    (void)state;
    struct fake_world world = fake_world_of(2);
    world.devices[1].read = FAKE_HANGS;
    struct wg_machine *machine = open_hanging(&world);
    expect_power(machine, 0, 100.0);
    expect_failure(machine, 1, WG_ETIMEOUT, "fakeRead");
    const pid_t child = fork();
    if (child == 0) {
        struct wg_sample sample;
        int status = 0;
        world.devices[1].read = FAKE_WORKS;
        for (size_t i = 0; i < 2; i++) {
            if (wg_device_read(wg_machine_device(machine, i), UINT32_MAX, &sample, NULL) != WG_OK)
                status = 1;
        }
        wg_machine_close(machine);
        if (atomic_load(&world.destroyed) != 2)
            status = 2;
        _exit(status);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    expect_power(machine, 0, 100.0);
    gate_open(&world.gate);
    wg_machine_close(machine);
    while (atomic_load(&world.destroyed) < 2)
        sched_yield();
}

static enum wg_code use_machine(struct fake_world *world, struct wg_error *err)
{
    fake_world_now = world;
    static const char *const selectors[] = {"0-2", "cuda:0"};
    const struct wg_machine_opts opts =
        WG_MACHINE_OPTS(.gpus = selectors, .gpu_count = 2, .call_timeout_ms = 60000);
    struct wg_machine *machine = NULL;
    enum wg_code code = wg__machine_open_with(&machine, fake_backends, &opts, err);
    struct wg_process processes[2];
    size_t count = 0;
    if (code == WG_OK)
        code = wg_device_read_processes(wg_machine_device(machine, 0), processes, 2, &count, err);
    if (code == WG_OK)
        code = wg_machine_quiesce(machine, err);
    world->devices[0].reopen = FAKE_IS_LOST;
    if (code == WG_OK) {
        code = wg_machine_resume(machine, err);
        code = code == WG_ELOST ? WG_OK : code;
    }
    world->devices[0].reopen = FAKE_WORKS;
    wg_machine_close(machine);
    return code;
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    size_t failures = 0;
    for (size_t nth = 1;; nth++) {
        struct fake_world world = fake_world_of(3);
        world.matches = true;
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code = use_machine(&world, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        if (code != WG_ENOMEM)
            fail_msg("allocation %zu: %s", nth, err.text);
        assert_non_null(strstr(err.text, "out of memory"));
        failures++;
    }
    assert_in_range(failures, 20, 80);
}

int main(void)
{
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    (void)unsetenv("CUDA_DEVICE_ORDER");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_labelled_by_kind_and_number_and_rails_by_name),
        cmocka_unit_test(gpus_keep_the_numbers_of_their_driver_and_other_vendors_count_on),
        cmocka_unit_test(one_hangs_in_probe_one_in_read_one_is_lost_and_the_others_answer),
        cmocka_unit_test(eight_that_hang_cost_one_timeout),
        cmocka_unit_test(a_device_that_answers_late_after_all_works_again),
        cmocka_unit_test(a_backend_that_hangs_is_reported_and_the_next_goes_on),
        cmocka_unit_test(a_selector_tells_of_the_driver_that_hangs),
        cmocka_unit_test(a_backend_that_fails_says_why_and_what_to_do),
        cmocka_unit_test(processes_are_counted_and_written_as_far_as_there_is_room),
        cmocka_unit_test(options_of_older_and_newer_callers_are_taken_unless_they_mean_something),
        cmocka_unit_test(gpus_only_leaves_the_rest_out),
        cmocka_unit_test(gpus_that_are_not_chosen_are_not_touched),
        cmocka_unit_test(a_selector_that_fits_nothing_is_an_error_with_the_drivers_own_words),
        cmocka_unit_test(a_forked_child_reads_even_where_the_parent_hangs),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
    };
    return run_tests(tests);
}
