/* SPDX-License-Identifier: MIT
 *
 * What the functions of our libnvidia-ml.so.1 answer: identity, power, limits, fields, clocks,
 * processes, MIG, and what they refuse.
 */
#include <unistd.h>

#include "base/clock.h"
#include "support/check.h"
#include "support/nvml_library.h"
#include "support/vgpu.h"
#include "vgpu/state.h"

static void *library;
static struct vgpu_stage stage;
static nvml_device device; /* the first GPU */

static void open_folder(const char *folder)
{
    library = nvml_library_open(folder);
    NVML_FUNCTION(library, nvmlInit_v2, void);
    NVML_FUNCTION(library, nvmlDeviceGetHandleByIndex_v2, unsigned, nvml_device *);
    assert_int_equal(nvmlInit_v2(), NVML_OK);
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_OK);
}

static void close_folder(void)
{
    NVML_FUNCTION(library, nvmlShutdown, void);
    assert_int_equal(nvmlShutdown(), NVML_OK);
    (void)dlclose(library);
}

static int open_stage(void **state)
{
    (void)state;
    struct vgpu_model models[2] = {vgpu_stage_model(0), vgpu_stage_model(1)};
    models[1].is_mig = true;
    models[1].mig_count = 2;
    (void)snprintf(models[1].mig_uuids[0], VGPU_TEXT_MAX, "MIG-11111111");
    (void)snprintf(models[1].mig_uuids[1], VGPU_TEXT_MAX, "MIG-22222222");
    (void)snprintf(models[1].mig_profiles[0], 32, "3g.40gb");
    (void)snprintf(models[1].mig_profiles[1], 32, "1g.10gb");
    vgpu_stage_open_now(&stage, models, 2);
    stage.machine->anyone_may_set = true;
    assert_int_equal(setenv("WATTGOV_VGPU", stage.path, 1), 0);
    open_folder("lib");
    return 0;
}

static int close_stage(void **state)
{
    (void)state;
    close_folder();
    assert_int_equal(unsetenv("WATTGOV_VGPU"), 0);
    vgpu_stage_close(&stage);
    return 0;
}

static void set_fault(struct vgpu_fault fault)
{
    assert_int_equal(vgpu_fault_add(stage.machine, &fault, NULL), WG_OK);
}

static void set_load(double utilization, uint64_t memory_bytes)
{
    const struct vgpu_load load = {
        .utilization = utilization, .intensity = 1.0, .memory_bytes = memory_bytes};
    assert_int_equal(vgpu_set_load(&stage.machine->gpus[0], &load, NULL), WG_OK);
}

static void texts_are_whole_or_too_long_for_the_buffer(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetName, nvml_device, char *, unsigned);
    NVML_FUNCTION(library, nvmlDeviceGetUUID, nvml_device, char *, unsigned);
    NVML_FUNCTION(library, nvmlSystemGetDriverVersion, char *, unsigned);
    NVML_FUNCTION(library, nvmlSystemGetNVMLVersion, char *, unsigned);
    char text[NVML_UUID_SIZE] = "untouched";
    const char name[] = "NVIDIA Test 100";
    assert_int_equal(nvmlDeviceGetName(device, text, sizeof name - 1), NVML_E_INSUFFICIENT_SIZE);
    assert_string_equal(text, "untouched");
    assert_int_equal(nvmlDeviceGetName(device, text, sizeof name), NVML_OK);
    assert_string_equal(text, name);
    assert_int_equal(nvmlDeviceGetUUID(device, text, sizeof text), NVML_OK);
    assert_string_equal(text, "GPU-00000000-0000-0000-0000-000000000000");
    assert_int_equal(nvmlSystemGetDriverVersion(text, sizeof text), NVML_OK);
    assert_string_equal(text, "580.65.06");
    assert_int_equal(nvmlSystemGetNVMLVersion(text, sizeof text), NVML_OK);
    assert_string_equal(text, "13.580.65.06");
}

static void gpus_are_found_by_index_uuid_and_address(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetHandleByIndex_v2, unsigned, nvml_device *);
    NVML_FUNCTION(library, nvmlDeviceGetHandleByUUID, const char *, nvml_device *);
    NVML_FUNCTION(library, nvmlDeviceGetHandleByPciBusId_v2, const char *, nvml_device *);
    NVML_FUNCTION(library, nvmlDeviceGetIndex, nvml_device, unsigned *);
    nvml_device found = NULL;
    unsigned index = 9;
    assert_int_equal(nvmlDeviceGetHandleByIndex_v2(2, &found), NVML_E_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetHandleByUUID("GPU-00000000-0000-0000-0000-000000000001", &found),
                     NVML_OK);
    assert_int_equal(nvmlDeviceGetIndex(found, &index), NVML_OK);
    assert_int_equal(index, 1);
    /* Field report 16: a prefix is not resolved. */
    assert_int_equal(nvmlDeviceGetHandleByUUID("GPU-00000000", &found), NVML_E_NOT_FOUND);
    const char *const addresses[] = {"00000000:1B:00.0", "0000:1b:00.0", "0:1B:0"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2(addresses[i], &found), NVML_OK);
        assert_int_equal(nvmlDeviceGetIndex(found, &index), NVML_OK);
        assert_int_equal(index, 1);
    }
    assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2("0000:99:00.0", &found), NVML_E_NOT_FOUND);
    const char *const malformed[] = {"", "1b:00.0", "0000:1b:zz.0", "000000000:1b:00.0"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(nvmlDeviceGetHandleByPciBusId_v2(malformed[i], &found),
                         NVML_E_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceGetIndex((nvml_device)&index, &index), NVML_E_INVALID_ARGUMENT);
}

static void old_pci_calls_write_no_more_than_their_struct(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetPciInfo, nvml_device, void *);
    NVML_FUNCTION(library, nvmlDeviceGetPciInfo_v2, nvml_device, void *);
    NVML_FUNCTION(library, nvmlDeviceGetPciInfo_v3, nvml_device, void *);
    struct nvml_pci_info info;
    memset(&info, 0x5a, sizeof info);
    assert_int_equal(nvmlDeviceGetPciInfo(device, &info), NVML_OK);
    assert_string_equal(info.bus_id_legacy, "0000:1A:00.0");
    assert_int_equal(info.pci_subsystem_id, 0x5a5a5a5a);
    assert_int_equal(nvmlDeviceGetPciInfo_v2(device, &info), NVML_OK);
    assert_int_equal(info.pci_subsystem_id, 0);
    assert_int_equal(info.bus_id[0], 0x5a);
    assert_int_equal(nvmlDeviceGetPciInfo_v3(device, &info), NVML_OK);
    assert_string_equal(info.bus_id, "00000000:1A:00.0");
    assert_int_equal(info.bus, 0x1a);
    assert_int_equal(info.pci_device_id, 0x123410de);
}

static void power_and_energy_are_what_the_machine_draws(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetPowerUsage, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetTotalEnergyConsumption, nvml_device, unsigned long long *);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    unsigned power_mw = 0;
    assert_int_equal(nvmlDeviceGetPowerUsage(device, &power_mw), NVML_OK);
    assert_int_equal(power_mw, 100000);
    unsigned long long energy_mj = 0;
    const uint64_t before_ns = wg__clock_ns();
    assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(device, &energy_mj), NVML_OK);
    const uint64_t after_ns = wg__clock_ns();
    /* The last tick was at most 20 ms before. */
    const double counted_j = 1e-3 * (double)energy_mj + gpu->counter_base_j;
    assert_true(counted_j <= vgpu_true_energy_j(gpu, after_ns));
    assert_true(counted_j >= vgpu_true_energy_j(gpu, before_ns - 20000000U) - 1e-3);
}

static void meters_that_are_not_there_are_not_supported(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetPowerUsage, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetTotalEnergyConsumption, nvml_device, unsigned long long *);
    NVML_FUNCTION(library, nvmlDeviceSetGpuLockedClocks, nvml_device, unsigned, unsigned);
    struct vgpu_model *model = &stage.machine->gpus[0].model;
    model->usage.is_present = false;
    model->has_counter = false;
    model->can_lock_gpu_clocks = false;
    unsigned power_mw = 0;
    unsigned long long energy_mj = 0;
    assert_int_equal(nvmlDeviceGetPowerUsage(device, &power_mw), NVML_E_NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(device, &energy_mj), NVML_E_NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceSetGpuLockedClocks(device, 500, 500), NVML_E_NOT_SUPPORTED);
}

static void limits_are_set_within_their_range(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceSetPowerManagementLimit, nvml_device, unsigned);
    NVML_FUNCTION(library, nvmlDeviceGetPowerManagementLimit, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetEnforcedPowerLimit, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetPowerManagementDefaultLimit, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetPowerManagementLimitConstraints, nvml_device, unsigned *,
                  unsigned *);
    unsigned a = 0;
    unsigned b = 0;
    assert_int_equal(nvmlDeviceGetPowerManagementLimitConstraints(device, &a, &b), NVML_OK);
    assert_true(a == 150000 && b == 500000);
    assert_int_equal(nvmlDeviceSetPowerManagementLimit(device, 149999), NVML_E_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceSetPowerManagementLimit(device, 500001), NVML_E_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceSetPowerManagementLimit(device, 150000), NVML_OK);
    assert_int_equal(nvmlDeviceSetPowerManagementLimit(device, 300123), NVML_OK);
    set_fault((struct vgpu_fault){.kind = VGPU_FAULT_CAP, .gpu = 0, .value = 200.0});
    assert_int_equal(nvmlDeviceGetPowerManagementLimit(device, &a), NVML_OK);
    assert_int_equal(nvmlDeviceGetEnforcedPowerLimit(device, &b), NVML_OK);
    assert_true(a == 300123 && b == 200000);
    assert_int_equal(nvmlDeviceGetPowerManagementDefaultLimit(device, &a), NVML_OK);
    assert_int_equal(a, 500000);
}

/* Field report 41. */
static void version_words_are_checked(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceSetPowerManagementLimit_v2, nvml_device, void *);
    NVML_FUNCTION(library, nvmlDeviceGetMemoryInfo_v2, nvml_device, void *);
    NVML_FUNCTION(library, nvmlDeviceGetTemperatureV, nvml_device, void *);
    NVML_FUNCTION(library, nvmlDeviceGetMarginTemperature, nvml_device, void *);
    struct nvml_power_value value = {.version = 2, .scope = NVML_SCOPE_GPU, .power_mw = 250000};
    assert_int_equal(nvmlDeviceSetPowerManagementLimit_v2(device, &value),
                     NVML_E_ARGUMENT_VERSION_MISMATCH);
    value.version = NVML_VERSION_WORD(struct nvml_power_value, 2);
    value.scope = NVML_SCOPE_MODULE;
    assert_int_equal(nvmlDeviceSetPowerManagementLimit_v2(device, &value), NVML_E_NOT_SUPPORTED);
    value.scope = NVML_SCOPE_GPU;
    assert_int_equal(nvmlDeviceSetPowerManagementLimit_v2(device, &value), NVML_OK);
    check_close(stage.machine->gpus[0].limit_w, 250.0, 1e-12);
    struct nvml_memory_v2 memory = {.version = 2};
    assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device, &memory), NVML_E_ARGUMENT_VERSION_MISMATCH);
    memory.version = NVML_VERSION_WORD(struct nvml_memory_v2, 2);
    assert_int_equal(nvmlDeviceGetMemoryInfo_v2(device, &memory), NVML_OK);
    assert_true(memory.total == 64ULL << 30 &&
                memory.reserved + memory.free + memory.used == memory.total);
    struct nvml_temperature temperature = {.version = 1};
    assert_int_equal(nvmlDeviceGetTemperatureV(device, &temperature),
                     NVML_E_ARGUMENT_VERSION_MISMATCH);
    temperature.version = NVML_VERSION_WORD(struct nvml_temperature, 1);
    assert_int_equal(nvmlDeviceGetTemperatureV(device, &temperature), NVML_OK);
    assert_int_equal(temperature.temperature_c, 35);
    struct nvml_margin_temperature margin = {.version = 0};
    assert_int_equal(nvmlDeviceGetMarginTemperature(device, &margin),
                     NVML_E_ARGUMENT_VERSION_MISMATCH);
    margin.version = NVML_VERSION_WORD(struct nvml_margin_temperature, 1);
    assert_int_equal(nvmlDeviceGetMarginTemperature(device, &margin), NVML_OK);
    assert_int_equal(margin.margin_c, 55);
}

static void fields_have_their_own_results_types_and_scopes(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetFieldValues, nvml_device, int, struct nvml_field_value *);
    set_load(1.0, 0);
    set_fault((struct vgpu_fault){.kind = VGPU_FAULT_CAP, .gpu = 0, .value = 200.0});
    vgpu_set_limit(&stage.machine->gpus[0], 400.0);
    const struct {
        unsigned field, scope;
        int result, type;
        unsigned value; /* 0: any */
    } expected[] = {
        {NVML_FIELD_ENERGY_MJ, 0, NVML_OK, NVML_TYPE_ULONG_LONG, 0},
        {NVML_FIELD_POWER_AVERAGE_MW, 0, NVML_OK, NVML_TYPE_UINT, 0},
        {NVML_FIELD_POWER_INSTANT_MW, 0, NVML_OK, NVML_TYPE_UINT, 0},
        {NVML_FIELD_POWER_INSTANT_MW, NVML_SCOPE_MEMORY, NVML_OK, NVML_TYPE_UINT, 0},
        {NVML_FIELD_POWER_INSTANT_MW, NVML_SCOPE_MODULE, NVML_E_NOT_SUPPORTED, 0, 0},
        {NVML_FIELD_POWER_INSTANT_MW, 7, NVML_E_NOT_SUPPORTED, 0, 0},
        {NVML_FIELD_POWER_LIMIT_MIN_MW, 0, NVML_OK, NVML_TYPE_UINT, 150000},
        {NVML_FIELD_POWER_LIMIT_MAX_MW, 0, NVML_OK, NVML_TYPE_UINT, 500000},
        {NVML_FIELD_POWER_LIMIT_DEFAULT_MW, 0, NVML_OK, NVML_TYPE_UINT, 500000},
        {NVML_FIELD_POWER_LIMIT_CURRENT_MW, 0, NVML_OK, NVML_TYPE_UINT, 200000},
        {NVML_FIELD_POWER_LIMIT_REQUESTED_MW, 0, NVML_OK, NVML_TYPE_UINT, 400000},
        {NVML_FIELD_THROTTLED_POWER_NS, 0, NVML_OK, NVML_TYPE_ULONG_LONG, 0},
        {NVML_FIELD_THROTTLED_HW_THERMAL_NS, 0, NVML_OK, NVML_TYPE_ULONG_LONG, 0},
        {NVML_FIELD_MEMORY_TEMPERATURE, 0, NVML_OK, NVML_TYPE_UINT, 35},
        {1, 0, NVML_E_NOT_SUPPORTED, 0, 0},
        {100000, 0, NVML_E_NOT_SUPPORTED, 0, 0},
    };
    enum { COUNT = sizeof expected / sizeof expected[0] };
    struct nvml_field_value fields[COUNT] = {0};
    for (size_t i = 0; i < COUNT; i++) {
        fields[i].field_id = expected[i].field;
        fields[i].scope_id = expected[i].scope;
    }
    assert_int_equal(nvmlDeviceGetFieldValues(device, COUNT, fields), NVML_OK);
    for (size_t i = 0; i < COUNT; i++) {
        if (fields[i].result != expected[i].result || fields[i].value_type != expected[i].type ||
            (expected[i].value != 0 && fields[i].value.as_uint != expected[i].value))
            fail_msg("field %u of scope %u: result %d, type %d, value %u", fields[i].field_id,
                     fields[i].scope_id, fields[i].result, fields[i].value_type,
                     fields[i].value.as_uint);
        assert_true(fields[i].t_us > 1600000000000000);
    }
    assert_int_equal(nvmlDeviceGetFieldValues(device, 0, fields), NVML_E_INVALID_ARGUMENT);
    assert_int_equal(vgpu_calls(stage.machine, 0, "nvmlDeviceGetFieldValues"), 2);
}

/* Field report 62: one meter fails, the others go on. */
static void one_field_can_fail_or_lie_alone(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetFieldValues, nvml_device, int, struct nvml_field_value *);
    set_fault((struct vgpu_fault){.kind = VGPU_FAULT_ERROR,
                                  .gpu = 0,
                                  .function = "nvmlDeviceGetFieldValues:186",
                                  .code = NVML_E_UNKNOWN});
    set_fault((struct vgpu_fault){.kind = VGPU_FAULT_VALUE,
                                  .gpu = 0,
                                  .function = "nvmlDeviceGetFieldValues:83",
                                  .value = 0x1p64});
    struct nvml_field_value fields[3] = {
        {.field_id = NVML_FIELD_POWER_INSTANT_MW},
        {.field_id = NVML_FIELD_ENERGY_MJ},
        {.field_id = NVML_FIELD_POWER_LIMIT_MIN_MW},
    };
    assert_int_equal(nvmlDeviceGetFieldValues(device, 3, fields), NVML_OK);
    assert_int_equal(fields[0].result, NVML_E_UNKNOWN);
    assert_int_equal(fields[1].result, NVML_OK);
    assert_true(fields[1].value.as_ull == UINT64_MAX);
    assert_int_equal(fields[2].value.as_uint, 150000);
}

/* Field reports 30, 75. */
static void sentinels_come_in_place_of_values(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetPowerUsage, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetTotalEnergyConsumption, nvml_device, unsigned long long *);
    set_fault((struct vgpu_fault){.kind = VGPU_FAULT_VALUE, .gpu = 0, .value = 4294967295.0});
    unsigned power_mw = 0;
    unsigned long long energy_mj = 0;
    assert_int_equal(nvmlDeviceGetPowerUsage(device, &power_mw), NVML_OK);
    assert_int_equal(power_mw, UINT32_MAX);
    assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(device, &energy_mj), NVML_OK);
    assert_true(energy_mj == UINT32_MAX);
    vgpu_fault_clear(stage.machine);
    set_fault((struct vgpu_fault){.kind = VGPU_FAULT_VALUE, .gpu = 0, .value = -1.0});
    assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(device, &energy_mj), NVML_OK);
    assert_true(energy_mj == UINT64_MAX);
}

static void clocks_are_listed_locked_and_clamped(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetSupportedMemoryClocks, nvml_device, unsigned *, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetSupportedGraphicsClocks, nvml_device, unsigned, unsigned *,
                  unsigned *);
    NVML_FUNCTION(library, nvmlDeviceSetGpuLockedClocks, nvml_device, unsigned, unsigned);
    NVML_FUNCTION(library, nvmlDeviceSetMemoryLockedClocks, nvml_device, unsigned, unsigned);
    NVML_FUNCTION(library, nvmlDeviceResetGpuLockedClocks, nvml_device);
    NVML_FUNCTION(library, nvmlDeviceGetClockInfo, nvml_device, int, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetCurrentClocksEventReasons, nvml_device,
                  unsigned long long *);
    unsigned count = 0;
    unsigned mhz[32] = {0};
    assert_int_equal(nvmlDeviceGetSupportedMemoryClocks(device, &count, NULL),
                     NVML_E_INSUFFICIENT_SIZE);
    assert_int_equal(count, 2);
    assert_int_equal(nvmlDeviceGetSupportedMemoryClocks(device, &count, mhz), NVML_OK);
    assert_true(mhz[0] == 1600 && mhz[1] == 800);
    count = 17;
    assert_int_equal(nvmlDeviceGetSupportedGraphicsClocks(device, 1600, &count, mhz),
                     NVML_E_INSUFFICIENT_SIZE);
    assert_int_equal(count, 18);
    assert_int_equal(nvmlDeviceGetSupportedGraphicsClocks(device, 1600, &count, mhz), NVML_OK);
    assert_true(mhz[0] == 2000 && mhz[17] == 300);
    assert_int_equal(nvmlDeviceGetSupportedGraphicsClocks(device, 1601, &count, mhz),
                     NVML_E_NOT_FOUND);
    set_load(1.0, 0);
    assert_int_equal(nvmlDeviceSetGpuLockedClocks(device, 900, 800), NVML_E_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceSetGpuLockedClocks(device, 0, 0), NVML_E_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceSetGpuLockedClocks(device, 0xffffff01U, 800),
                     NVML_E_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceSetGpuLockedClocks(device, 300, 1234), NVML_OK);
    assert_int_equal(nvmlDeviceGetClockInfo(device, NVML_CLK_SM, mhz), NVML_OK);
    assert_int_equal(mhz[0], 1200);
    unsigned long long reasons = 0;
    assert_int_equal(nvmlDeviceGetCurrentClocksEventReasons(device, &reasons), NVML_OK);
    assert_int_equal(reasons, NVML_REASON_CLOCK_SETTING);
    assert_int_equal(nvmlDeviceSetGpuLockedClocks(device, 0xffffff02U, 0xffffff02U), NVML_OK);
    assert_int_equal(nvmlDeviceGetClockInfo(device, NVML_CLK_SM, mhz), NVML_OK);
    assert_int_equal(mhz[0], 2000);
    assert_int_equal(nvmlDeviceSetGpuLockedClocks(device, 1, 1), NVML_OK);
    assert_int_equal(nvmlDeviceGetClockInfo(device, NVML_CLK_SM, mhz), NVML_OK);
    assert_int_equal(mhz[0], 300);
    assert_int_equal(nvmlDeviceResetGpuLockedClocks(device), NVML_OK);
    assert_int_equal(nvmlDeviceSetMemoryLockedClocks(device, 800, 800), NVML_OK);
    assert_int_equal(nvmlDeviceGetClockInfo(device, NVML_CLK_MEMORY, mhz), NVML_OK);
    assert_int_equal(mhz[0], 800);
    assert_int_equal(nvmlDeviceGetClockInfo(device, 4, mhz), NVML_E_INVALID_ARGUMENT);
}

/* Field report 71: the getters of application clocks are gone on new drivers, locks are not. */
static void application_clocks_are_deprecated(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetApplicationsClock, nvml_device, int, unsigned *);
    unsigned mhz = 0;
    assert_int_equal(nvmlDeviceGetApplicationsClock(device, NVML_CLK_SM, &mhz), NVML_E_DEPRECATED);
}

/* Field report 39: each call has the struct that its driver had, and writes no more of it. */
static void expect_processes(const char *name, size_t size)
{
    int (*processes)(nvml_device, unsigned *, void *) =
        (int (*)(nvml_device, unsigned *, void *))nvml_symbol(library, name);
    unsigned char bytes[64];
    memset(bytes, 0x5a, sizeof bytes);
    unsigned count = 0;
    assert_int_equal(processes(device, &count, NULL), NVML_E_INSUFFICIENT_SIZE);
    assert_int_equal(count, 1);
    assert_int_equal(processes(device, &count, bytes), NVML_OK);
    struct nvml_process_v1 process;
    memcpy(&process, bytes, sizeof process);
    assert_int_equal(process.pid, getpid());
    assert_true(process.memory == 3ULL << 30);
    for (size_t i = 0; i < sizeof bytes; i++) {
        if (i >= size && bytes[i] != 0x5a)
            fail_msg("%s writes byte %zu", name, i);
    }
    assert_int_not_equal(bytes[size - 1], 0x5a);
}

static void processes_have_the_layout_of_their_driver(void **state)
{
    (void)state;
    set_load(0.5, 3ULL << 30);
    expect_processes("nvmlDeviceGetComputeRunningProcesses", 16);
    expect_processes("nvmlDeviceGetComputeRunningProcesses_v2", 24);
    expect_processes("nvmlDeviceGetComputeRunningProcesses_v3", 24);
    close_folder();
    open_folder("lib-r535");
    expect_processes("nvmlDeviceGetComputeRunningProcesses_v2", 24);
    expect_processes("nvmlDeviceGetComputeRunningProcesses_v3", 32);
    close_folder();
    open_folder("lib-r418");
    expect_processes("nvmlDeviceGetComputeRunningProcesses", 16);
    assert_null(dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v2"));
}

/* Field report 61. */
static void an_idle_gpu_has_no_process_samples(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetProcessUtilization, nvml_device,
                  struct nvml_process_sample *, unsigned *, unsigned long long);
    struct nvml_process_sample samples[2];
    unsigned count = 2;
    assert_int_equal(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_E_NOT_FOUND);
    set_load(0.42, 0);
    assert_int_equal(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_OK);
    assert_int_equal(count, 1);
    assert_int_equal(samples[0].pid, getpid());
    assert_int_equal(samples[0].sm_percent, 42);
}

static void samples_are_the_sensors_ticks_since_the_last_one_seen(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetSamples, nvml_device, int, unsigned long long, int *,
                  unsigned *, struct nvml_sample *);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    gpu->model.instant.period_s = 0.001;
    gpu->model.instant.window_s = 0.001;
    struct nvml_sample samples[200];
    unsigned count = 200;
    int type = 0;
    assert_int_equal(nvmlDeviceGetSamples(device, NVML_SAMPLES_POWER, 0, &type, &count, samples),
                     NVML_OK);
    assert_int_equal(type, NVML_TYPE_UINT);
    assert_int_equal(count, 120); /* of before the machine was made, too */
    for (unsigned i = 1; i < count; i++)
        assert_true(samples[i].t_us > samples[i - 1].t_us);
    assert_int_equal(samples[0].value.as_uint, 100000);
    unsigned more = 200;
    assert_int_equal(
        nvmlDeviceGetSamples(device, NVML_SAMPLES_POWER, UINT64_MAX, &type, &more, samples),
        NVML_E_NOT_FOUND);
}

static void the_condition_follows_the_load(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetUtilizationRates, nvml_device, struct nvml_utilization *);
    NVML_FUNCTION(library, nvmlDeviceGetPerformanceState, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetMemoryInfo, nvml_device, struct nvml_memory *);
    NVML_FUNCTION(library, nvmlDeviceSetPersistenceMode, nvml_device, unsigned);
    NVML_FUNCTION(library, nvmlDeviceGetPersistenceMode, nvml_device, unsigned *);
    unsigned value = 9;
    assert_int_equal(nvmlDeviceGetPerformanceState(device, &value), NVML_OK);
    assert_int_equal(value, 8);
    set_load(0.63, 1ULL << 30);
    assert_int_equal(nvmlDeviceGetPerformanceState(device, &value), NVML_OK);
    assert_int_equal(value, 0);
    struct nvml_utilization rates;
    assert_int_equal(nvmlDeviceGetUtilizationRates(device, &rates), NVML_OK);
    assert_int_equal(rates.gpu_percent, 63);
    struct nvml_memory memory;
    assert_int_equal(nvmlDeviceGetMemoryInfo(device, &memory), NVML_OK);
    assert_true(memory.used == (1ULL << 30) + (64ULL << 30) / 128);
    assert_true(memory.total == memory.used + memory.free);
    assert_int_equal(nvmlDeviceSetPersistenceMode(device, 2), NVML_E_INVALID_ARGUMENT);
    assert_int_equal(nvmlDeviceSetPersistenceMode(device, 1), NVML_OK);
    assert_int_equal(nvmlDeviceGetPersistenceMode(device, &value), NVML_OK);
    assert_int_equal(value, 1);
}

/* Field reports 31, 32: the board is measured, its parts are not. */
static void mig_devices_have_an_identity_and_no_power(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlDeviceGetMigMode, nvml_device, unsigned *, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetHandleByUUID, const char *, nvml_device *);
    NVML_FUNCTION(library, nvmlDeviceGetMigDeviceHandleByIndex, nvml_device, unsigned,
                  nvml_device *);
    NVML_FUNCTION(library, nvmlDeviceIsMigDeviceHandle, nvml_device, unsigned *);
    NVML_FUNCTION(library, nvmlDeviceGetDeviceHandleFromMigDeviceHandle, nvml_device,
                  nvml_device *);
    NVML_FUNCTION(library, nvmlDeviceGetMemoryInfo, nvml_device, struct nvml_memory *);
    NVML_FUNCTION(library, nvmlDeviceGetName, nvml_device, char *, unsigned);
    NVML_FUNCTION(library, nvmlDeviceGetTotalEnergyConsumption, nvml_device, unsigned long long *);
    NVML_FUNCTION(library, nvmlDeviceGetIndex, nvml_device, unsigned *);
    unsigned now = 9;
    unsigned later = 9;
    assert_int_equal(nvmlDeviceGetMigMode(device, &now, &later), NVML_OK);
    assert_true(now == 0 && later == 0);
    nvml_device mig = NULL;
    assert_int_equal(nvmlDeviceGetHandleByUUID("MIG-22222222", &mig), NVML_OK);
    assert_int_equal(nvmlDeviceIsMigDeviceHandle(mig, &now), NVML_OK);
    assert_int_equal(now, 1);
    nvml_device parent = NULL;
    assert_int_equal(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &parent), NVML_OK);
    assert_int_equal(nvmlDeviceGetIndex(parent, &now), NVML_OK);
    assert_int_equal(now, 1);
    nvml_device first = NULL;
    assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(parent, 0, &first), NVML_OK);
    assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(parent, 2, &mig), NVML_E_NOT_FOUND);
    assert_int_equal(nvmlDeviceGetMigDeviceHandleByIndex(parent, 8, &mig), NVML_E_INVALID_ARGUMENT);
    struct nvml_memory memory;
    assert_int_equal(nvmlDeviceGetMemoryInfo(first, &memory), NVML_OK);
    assert_true(memory.total == 40ULL << 30);
    char name[NVML_NAME_SIZE];
    assert_int_equal(nvmlDeviceGetName(first, name, sizeof name), NVML_OK);
    assert_string_equal(name, "NVIDIA Test 100 MIG 3g.40gb");
    unsigned long long energy_mj = 0;
    assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(first, &energy_mj), NVML_E_NOT_SUPPORTED);
    assert_int_equal(nvmlDeviceGetTotalEnergyConsumption(parent, &energy_mj), NVML_OK);
    const struct vgpu_load load = {.utilization = 1.0, .intensity = 1.0};
    assert_int_equal(vgpu_set_load(&stage.machine->gpus[1], &load, NULL), WG_OK);
}

/* Field report 37. */
static void waiting_for_an_event_ends_at_its_time(void **state)
{
    (void)state;
    NVML_FUNCTION(library, nvmlEventSetCreate, void **);
    NVML_FUNCTION(library, nvmlDeviceRegisterEvents, nvml_device, unsigned long long, void *);
    NVML_FUNCTION(library, nvmlEventSetWait_v2, void *, void *, unsigned);
    NVML_FUNCTION(library, nvmlEventSetFree, void *);
    void *set = NULL;
    char data[64];
    assert_int_equal(nvmlEventSetCreate(&set), NVML_OK);
    assert_int_equal(nvmlDeviceRegisterEvents(device, 8, set), NVML_OK);
    assert_int_equal(nvmlDeviceRegisterEvents(device, 1ULL << 50, set), NVML_E_NOT_SUPPORTED);
    const uint64_t begin_ns = wg__clock_ns();
    assert_int_equal(nvmlEventSetWait_v2(set, data, 20), NVML_E_TIMEOUT);
    assert_true(wg__clock_ns() - begin_ns >= 20000000U);
    assert_int_equal(nvmlEventSetFree(set), NVML_OK);
    assert_int_equal(nvmlEventSetWait_v2(NULL, data, 20), NVML_E_INVALID_ARGUMENT);
}

#define stage_test(name) cmocka_unit_test_setup_teardown(name, open_stage, close_stage)

int main(void)
{
    const struct CMUnitTest tests[] = {
        stage_test(texts_are_whole_or_too_long_for_the_buffer),
        stage_test(gpus_are_found_by_index_uuid_and_address),
        stage_test(old_pci_calls_write_no_more_than_their_struct),
        stage_test(power_and_energy_are_what_the_machine_draws),
        stage_test(meters_that_are_not_there_are_not_supported),
        stage_test(limits_are_set_within_their_range),
        stage_test(version_words_are_checked),
        stage_test(fields_have_their_own_results_types_and_scopes),
        stage_test(one_field_can_fail_or_lie_alone),
        stage_test(sentinels_come_in_place_of_values),
        stage_test(clocks_are_listed_locked_and_clamped),
        stage_test(application_clocks_are_deprecated),
        stage_test(processes_have_the_layout_of_their_driver),
        stage_test(an_idle_gpu_has_no_process_samples),
        stage_test(samples_are_the_sensors_ticks_since_the_last_one_seen),
        stage_test(the_condition_follows_the_load),
        stage_test(mig_devices_have_an_identity_and_no_power),
        stage_test(waiting_for_an_event_ends_at_its_time),
    };
    return run_tests(tests);
}
