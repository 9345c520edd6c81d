/* SPDX-License-Identifier: MIT
 *
 * Our libnvidia-ml.so.1 as a whole: every function with no arguments at all, every code from every
 * function, initialisation, fork, several processes, old drivers' libraries.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/check.h"
#include "support/nvml_library.h"
#include "support/vgpu.h"
#include "vgpu/nvml_functions.h"
#include "vgpu/state.h"

static const struct {
    const char *name;
    int since;
} functions[] = {
#define X(kind, since, name) {#name, since},
    VGPU_NVML_FUNCTIONS(X)
#undef X
};

enum { FUNCTION_COUNT = sizeof functions / sizeof functions[0] };

typedef int (*any_function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static void *library;
static struct vgpu_stage stage;

static any_function find(size_t i)
{
    return (any_function)nvml_symbol(library, functions[i].name);
}

static bool is_named(size_t i, const char *prefix)
{
    return strncmp(functions[i].name, prefix, strlen(prefix)) == 0;
}

/* Those that answer before and after initialisation alike. */
static bool is_special(size_t i)
{
    return is_named(i, "nvmlInit") || is_named(i, "nvmlErrorString") || is_named(i, "nvmlShutdown");
}

static bool takes_device(size_t i)
{
    return is_named(i, "nvmlDevice") && !is_named(i, "nvmlDeviceGetCount") &&
           !is_named(i, "nvmlDeviceGetHandleBy");
}

static int open_stage(void **state)
{
    (void)state;
    const struct vgpu_model models[3] = {vgpu_stage_model(0), vgpu_stage_model(1),
                                         vgpu_stage_model(2)};
    vgpu_stage_open_now(&stage, models, 3);
    assert_int_equal(setenv("WATTGOV_VGPU", stage.path, 1), 0);
    library = nvml_library_open("lib");
    return 0;
}

static int close_stage(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlShutdown, void);
    while (nvmlShutdown() == NVML_OK)
        continue;
    (void)dlclose(library);
    assert_int_equal(unsetenv("WATTGOV_VGPU"), 0);
    vgpu_stage_close(&stage);
    return 0;
}

static nvml_device init_and_get(unsigned index)
{
    NVML_FUNCTION(library, nvmlInit_v2, void);
    NVML_FUNCTION(library, nvmlDeviceGetHandleByIndex_v2, unsigned, nvml_device *);
    assert_int_equal(nvmlInit_v2(), NVML_OK);
    nvml_device device = NULL;
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_OK);
    return device;
}

static void set_fault(struct vgpu_fault fault)
{
    assert_int_equal(vgpu_fault_add(stage.machine, &fault, NULL), WG_OK);
}

static void without_a_machine_no_driver_is_loaded(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlInit_v2, void);
    NVML_FUNCTION(library, nvmlInitWithFlags, unsigned);
    assert_int_equal(unsetenv("WATTGOV_VGPU"), 0);
    assert_int_equal(nvmlInit_v2(), NVML_E_DRIVER_NOT_LOADED);
    assert_int_equal(setenv("WATTGOV_VGPU", "/nonexistent", 1), 0);
    assert_int_equal(nvmlInitWithFlags(0), NVML_E_DRIVER_NOT_LOADED);
    assert_int_equal(setenv("WATTGOV_VGPU", "/dev/null", 1), 0);
    assert_int_equal(nvmlInit_v2(), NVML_E_VERSION_MISMATCH);
}

static void every_function_is_uninitialized_before_init(void **state)
{
    (void)state;
    for (size_t i = 0; i < FUNCTION_COUNT; i++) {
        const any_function function = find(i);
        if (!is_special(i) && function(0, 0, 0, 0, 0, 0) != NVML_E_UNINITIALIZED)
            fail_msg("%s does not say so", functions[i].name);
    }
    NVML_FUNCTION(library, nvmlShutdown, void);
    assert_int_equal(nvmlShutdown(), NVML_E_UNINITIALIZED);
}

static void no_function_trips_over_null_and_zero(void **state)
{
    (void)state;
    const uintptr_t device = (uintptr_t)init_and_get(0);
    for (size_t i = 0; i < FUNCTION_COUNT; i++) {
        if (is_special(i))
            continue;
        const int without = find(i)(0, 0, 0, 0, 0, 0);
        if (without == NVML_OK && !is_named(i, "nvmlEvent"))
            fail_msg("%s is content with nothing", functions[i].name);
        if (takes_device(i))
            (void)find(i)(device, 0, 0, 0, 0, 0);
    }
}

/* Wherever a client meets a code, it can be made to. */
static void every_code_can_come_from_every_function(void **state)
{
    (void)state;
    const uintptr_t device = (uintptr_t)init_and_get(0);
    NVML_FUNCTION(library, nvmlShutdown, void);
    for (int n = 0; n <= NVML_E_RESET_TYPE_NOT_SUPPORTED; n++) {
        const int code = n != 0 ? n : NVML_E_UNKNOWN;
        set_fault((struct vgpu_fault){.kind = VGPU_FAULT_ERROR, .gpu = -1, .code = code});
        for (size_t i = 0; i < FUNCTION_COUNT; i++) {
            if (is_named(i, "nvmlErrorString"))
                continue;
            const int answer = find(i)(device, 0, 0, 0, 0, 0);
            if (answer != code)
                fail_msg("%s answers %d, not %d", functions[i].name, answer, code);
        }
        vgpu_fault_clear(stage.machine);
    }
    assert_int_equal(nvmlShutdown(), NVML_OK); /* the failed ones have changed nothing */
    assert_int_equal(nvmlShutdown(), NVML_E_UNINITIALIZED);
}

static void codes_have_texts(void **state)
{
    (void)state;
    const char *(*text)(int) = (const char *(*)(int))nvml_symbol(library, "nvmlErrorString");
    for (int code = 0; code <= NVML_E_RESET_TYPE_NOT_SUPPORTED; code++) {
        assert_non_null(text(code));
        assert_string_not_equal(text(code), "Unknown Error");
    }
    assert_string_equal(text(NVML_E_UNKNOWN), "Unknown Error");
    assert_string_equal(text(-1), "Unknown Error");
    assert_string_equal(text(31), "Unknown Error");
}

static void inits_are_counted(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlInit_v2, void);
    NVML_FUNCTION(library, nvmlInitWithFlags, unsigned);
    NVML_FUNCTION(library, nvmlShutdown, void);
    NVML_FUNCTION(library, nvmlDeviceGetCount_v2, unsigned *);
    unsigned count = 0;
    assert_int_equal(nvmlInit_v2(), NVML_OK);
    assert_int_equal(nvmlInitWithFlags(NVML_INIT_NO_ATTACH), NVML_OK);
    assert_int_equal(stage.machine->init_count, 2);
    assert_int_equal(nvmlShutdown(), NVML_OK);
    assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_OK);
    assert_int_equal(count, 3);
    assert_int_equal(nvmlShutdown(), NVML_OK);
    assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_E_UNINITIALIZED);
    assert_int_equal(stage.machine->init_count, 0);
}

static void an_init_after_the_last_shutdown_sees_another_machine(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlInit_v2, void);
    NVML_FUNCTION(library, nvmlShutdown, void);
    NVML_FUNCTION(library, nvmlDeviceGetCount_v2, unsigned *);
    unsigned count = 0;
    assert_int_equal(nvmlInit_v2(), NVML_OK);
    assert_int_equal(nvmlShutdown(), NVML_OK);
    struct vgpu_stage other;
    const struct vgpu_model model = vgpu_stage_model(0);
    vgpu_stage_open_now(&other, &model, 1);
    assert_int_equal(setenv("WATTGOV_VGPU", other.path, 1), 0);
    assert_int_equal(nvmlInit_v2(), NVML_OK);
    assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_OK);
    assert_int_equal(count, 1);
    assert_int_equal(nvmlShutdown(), NVML_OK);
    vgpu_stage_close(&other);
}

static int run_in_child(int (*body)(void))
{
    const pid_t child = fork();
    if (child == 0)
        _exit(body());
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int ask_limit(void)
{
    NVML_FUNCTION(library, nvmlDeviceGetPowerManagementLimit, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetHandleByIndex_v2, unsigned, nvml_device *);
    nvml_device device = NULL;
    unsigned limit_mw = 0;
    if (nvmlDeviceGetHandleByIndex_v2(0, &device) != NVML_E_UNINITIALIZED)
        return 1;
    NVML_FUNCTION(library, nvmlInit_v2, void);
    if (nvmlInit_v2() != NVML_OK || nvmlDeviceGetHandleByIndex_v2(0, &device) != NVML_OK)
        return 2;
    if (nvmlDeviceGetPowerManagementLimit(device, &limit_mw) != NVML_OK)
        return 3;
    return limit_mw == 234000 ? 0 : 4;
}

/* Field report 5; and two processes see the same limit. */
static void a_child_of_fork_must_init_again_and_sees_the_same_gpu(void **state)
{
    (void)state;
    nvml_device device = init_and_get(0);
    NVML_FUNCTION(library, nvmlDeviceSetPowerManagementLimit, nvml_device, unsigned);
    NVML_FUNCTION(library, nvmlDeviceGetPowerManagementLimit, nvml_device, unsigned *);
    unsigned limit_mw = 0;
    stage.machine->anyone_may_set = true;
    assert_int_equal(nvmlDeviceSetPowerManagementLimit(device, 234000), NVML_OK);
    assert_int_equal(run_in_child(ask_limit), 0);
    assert_int_equal(nvmlDeviceGetPowerManagementLimit(device, &limit_mw), NVML_OK);
    assert_int_equal(limit_mw, 234000);
}

static int set_as_nobody(void)
{
    NVML_FUNCTION(library, nvmlInit_v2, void);
    NVML_FUNCTION(library, nvmlDeviceGetHandleByIndex_v2, unsigned, nvml_device *);
    NVML_FUNCTION(library, nvmlDeviceSetPowerManagementLimit, nvml_device, unsigned);
    NVML_FUNCTION(library, nvmlDeviceSetGpuLockedClocks, nvml_device, unsigned, unsigned);
    NVML_FUNCTION(library, nvmlDeviceResetMemoryLockedClocks, nvml_device);
    NVML_FUNCTION(library, nvmlDeviceSetPersistenceMode, nvml_device, unsigned);
    nvml_device device = NULL;
    if (nvmlInit_v2() != NVML_OK || nvmlDeviceGetHandleByIndex_v2(0, &device) != NVML_OK)
        return 1;
    if (geteuid() == 0 && seteuid(65534) != 0)
        return 2;
    if (nvmlDeviceSetPowerManagementLimit(device, 200000) != NVML_E_NO_PERMISSION ||
        nvmlDeviceSetGpuLockedClocks(device, 500, 500) != NVML_E_NO_PERMISSION ||
        nvmlDeviceResetMemoryLockedClocks(device) != NVML_E_NO_PERMISSION ||
        nvmlDeviceSetPersistenceMode(device, 1) != NVML_E_NO_PERMISSION)
        return 3;
    stage.machine->anyone_may_set = true;
    return nvmlDeviceSetPowerManagementLimit(device, 200000) == NVML_OK ? 0 : 4;
}

static int init_as_nobody(void)
{
    NVML_FUNCTION(library, nvmlInit_v2, void);
    if (seteuid(65534) != 0)
        return 1;
    return nvmlInit_v2() == NVML_E_NO_PERMISSION ? 0 : 2;
}

static void a_machine_of_another_user_may_not_be_opened(void **state)
{
    (void)state;
    if (geteuid() == 0) /* nobody else can become somebody else */
        assert_int_equal(run_in_child(init_as_nobody), 0);
}

static void only_root_may_set_unless_the_machine_says_anyone_may(void **state)
{
    (void)state;
    assert_int_equal(run_in_child(set_as_nobody), 0);
}

/* Field reports 34, 36: one GPU falls off the bus at its third call; the others go on. */
static void a_lost_gpu_leaves_the_others_alone(void **state)
{
    (void)state;
    nvml_device lost = init_and_get(1);
    nvml_device other = init_and_get(2);
    NVML_FUNCTION(library, nvmlDeviceGetPowerUsage, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetUUID, nvml_device, char *, unsigned);
    NVML_FUNCTION(library, nvmlDeviceGetHandleByIndex_v2, unsigned, nvml_device *);
    NVML_FUNCTION(library, nvmlDeviceGetCount_v2, unsigned *);
    set_fault((struct vgpu_fault){.kind = VGPU_FAULT_LOST, .gpu = 1, .from_call = 3});
    unsigned value = 0;
    char uuid[NVML_UUID_SIZE];
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(nvmlDeviceGetPowerUsage(lost, &value),
                         i < 3 ? NVML_OK : NVML_E_GPU_IS_LOST);
        assert_int_equal(nvmlDeviceGetPowerUsage(other, &value), NVML_OK);
    }
    assert_int_equal(nvmlDeviceGetUUID(lost, uuid, sizeof uuid), NVML_E_GPU_IS_LOST);
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &lost), NVML_E_GPU_IS_LOST);
    assert_int_equal(nvmlDeviceGetCount_v2(&value), NVML_OK);
    assert_int_equal(value, 3);
}

/* Field reports 65, 67: budgets of calls can be asserted, for each GPU apart. */
static void calls_are_counted_by_function_and_gpu(void **state)
{
    (void)state;
    nvml_device device = init_and_get(2);
    NVML_FUNCTION(library, nvmlDeviceGetPowerUsage, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetCount_v2, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetFanSpeed, nvml_device, unsigned *);
    unsigned value = 0;
    for (int i = 0; i < 5; i++)
        assert_int_equal(nvmlDeviceGetPowerUsage(device, &value), NVML_OK);
    assert_int_equal(nvmlDeviceGetFanSpeed(device, &value), NVML_E_NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetCount_v2(&value), NVML_OK);
    assert_int_equal(vgpu_calls(stage.machine, 2, "nvmlDeviceGetPowerUsage"), 5);
    assert_int_equal(vgpu_calls(stage.machine, 2, "nvmlDeviceGetFanSpeed"), 1);
    assert_int_equal(vgpu_calls(stage.machine, 2, "nvmlDeviceGetHandleByIndex_v2"), 1);
    assert_int_equal(vgpu_calls(stage.machine, -1, "nvmlDeviceGetCount_v2"), 1);
    assert_int_equal(vgpu_calls(stage.machine, -1, "nvmlInit_v2"), 1);
    for (unsigned i = 0; vgpu_function_name(i) != NULL; i++)
        assert_int_equal(vgpu_calls(stage.machine, 0, vgpu_function_name(i)), 0);
}

/* Field reports 44, 81: whoever asks a suspended GPU wakes it, and so does an attaching init. */
static void a_suspended_gpu_wakes_when_it_is_asked(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlInitWithFlags, unsigned);
    NVML_FUNCTION(library, nvmlDeviceGetHandleByIndex_v2, unsigned, nvml_device *);
    NVML_FUNCTION(library, nvmlDeviceGetCount_v2, unsigned *);
    for (size_t i = 0; i < 3; i++)
        stage.machine->gpus[i].is_suspended = true;
    unsigned count = 0;
    nvml_device device = NULL;
    assert_int_equal(nvmlInitWithFlags(NVML_INIT_NO_ATTACH), NVML_OK);
    assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_OK);
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(1, &device), NVML_OK);
    assert_true(stage.machine->gpus[0].is_suspended);
    assert_false(stage.machine->gpus[1].is_suspended);
    assert_int_equal(nvmlInitWithFlags(0), NVML_OK);
    assert_false(stage.machine->gpus[0].is_suspended || stage.machine->gpus[2].is_suspended);
}

struct hanging {
    nvml_device device;
    atomic_bool has_returned;
    int code;
};

static void *ask_hanging(void *argument)
{
    struct hanging *hanging = argument;
    NVML_FUNCTION(library, nvmlDeviceGetPowerUsage, nvml_device, unsigned *);
    unsigned power_mw = 0;
    hanging->code = nvmlDeviceGetPowerUsage(hanging->device, &power_mw);
    atomic_store(&hanging->has_returned, true);
    return NULL;
}

/* Field report 35. */
static void a_hanging_call_blocks_nobody_else_and_ends_with_its_fault(void **state)
{
    (void)state;
    struct hanging hanging = {.device = init_and_get(0)};
    nvml_device other = init_and_get(1);
    NVML_FUNCTION(library, nvmlDeviceGetPowerUsage, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetTotalEnergyConsumption, nvml_device, unsigned long long *);
    set_fault((struct vgpu_fault){
        .kind = VGPU_FAULT_HANG, .gpu = 0, .function = "nvmlDeviceGetPowerUsage"});
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask_hanging, &hanging), 0);
    /* It is inside when its call was counted. */
    while (vgpu_calls(stage.machine, 0, "nvmlDeviceGetPowerUsage") == 0)
        sched_yield();
    unsigned power_mw = 0;
    unsigned long long energy_mj = 0;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(nvmlDeviceGetPowerUsage(other, &power_mw), NVML_OK);
        assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(hanging.device, &energy_mj), NVML_OK);
    }
    assert_false(atomic_load(&hanging.has_returned));
    vgpu_fault_clear(stage.machine);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(hanging.code, NVML_OK);
}

static void a_delayed_call_takes_longer_and_answers(void **state)
{
    (void)state;
    nvml_device device = init_and_get(0);
    NVML_FUNCTION(library, nvmlDeviceGetPowerUsage, nvml_device, unsigned *);
    set_fault((struct vgpu_fault){.kind = VGPU_FAULT_DELAY, .gpu = 0, .value = 0.05});
    unsigned power_mw = 0;
    const uint64_t begin_ns = wg__clock_ns();
    assert_int_equal(nvmlDeviceGetPowerUsage(device, &power_mw), NVML_OK);
    assert_true(wg__clock_ns() - begin_ns >= 50000000U);
    assert_true(power_mw > 0);
}

static void *ask_often(void *argument)
{
    NVML_FUNCTION(library, nvmlDeviceGetTotalEnergyConsumption, nvml_device, unsigned long long *);
    nvml_device device = argument;
    unsigned long long last_mj = 0;
    for (int i = 0; i < 2000; i++) {
        unsigned long long energy_mj = 0;
        if (nvmlDeviceGetTotalEnergyConsumption(device, &energy_mj) != NVML_OK ||
            energy_mj < last_mj)
            return argument;
        last_mj = energy_mj;
    }
    return NULL;
}

static void many_threads_may_ask_at_once(void **state)
{
    (void)state;
    nvml_device device = init_and_get(0);
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, device), 0);
    for (size_t i = 0; i < 4; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(vgpu_calls(stage.machine, 0, "nvmlDeviceGetTotalEnergyConsumption"), 8000);
}

/* Field report 40: what a driver had is there, and nothing of what came later. */
static void old_libraries_lack_what_came_later(void **state)
{
    (void)state;
    const struct {
        const char *folder;
        int driver;
    } builds[] = {{"lib", 1000}, {"lib-r535", 535}, {"lib-r418", 418}};
    for (size_t b = 0; b < 3; b++) {
        void *old = nvml_library_open(builds[b].folder);
        for (size_t i = 0; i < FUNCTION_COUNT; i++) {
            const bool is_there = dlsym(old, functions[i].name) != NULL;
            if (is_there != (functions[i].since <= builds[b].driver))
                fail_msg("%s in %s: %d", functions[i].name, builds[b].folder, is_there);
        }
        (void)dlclose(old);
    }
}

#define stage_test(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        stage_test(without_a_machine_no_driver_is_loaded),
        stage_test(every_function_is_uninitialized_before_init),
        stage_test(no_function_trips_over_null_and_zero),
        stage_test(every_code_can_come_from_every_function),
        stage_test(codes_have_texts),
        stage_test(inits_are_counted),
        stage_test(an_init_after_the_last_shutdown_sees_another_machine),
        stage_test(a_child_of_fork_must_init_again_and_sees_the_same_gpu),
        stage_test(a_machine_of_another_user_may_not_be_opened),
        stage_test(only_root_may_set_unless_the_machine_says_anyone_may),
        stage_test(a_lost_gpu_leaves_the_others_alone),
        stage_test(calls_are_counted_by_function_and_gpu),
        stage_test(a_suspended_gpu_wakes_when_it_is_asked),
        stage_test(a_hanging_call_blocks_nobody_else_and_ends_with_its_fault),
        stage_test(a_delayed_call_takes_longer_and_answers),
        stage_test(many_threads_may_ask_at_once),
        stage_test(old_libraries_lack_what_came_later),
    };
    return run_tests(tests);
}
