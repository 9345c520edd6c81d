/* SPDX-License-Identifier: MIT
 *
 * What the made-up machine of nvml_fake.h is: its GPUs, and what each of them answers.
 *
 * `fake_reset` makes two healthy GPUs, a test then changes what it is about. Whatever the driver
 * can answer can be set: a code for any call of any GPU, from its Nth call on; any field's type,
 * value and code; symbols that are missing; the layout of process lists.
 *
 * Owns: one global machine.    Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_NVML_FAKE_MACHINE_H
#define WG_TESTS_SUPPORT_NVML_FAKE_MACHINE_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include "device/nvml.h"
#include "support/check.h"

enum fake_call {
#define X(member, need, arguments, name, newest, older, oldest) FAKE_##member,
    WG_NVML_CALLS(X)
#undef X
        FAKE_CALLS
};

enum { FAKE_GPUS_MAX = 80, FAKE_FIELDS_MAX = 16, FAKE_PROCESSES_MAX = 300, FAKE_MIG_MAX = 4 };

struct fake_field {
    unsigned id, scope;
    int type, result;
    union nvml_value value;
};

struct fake_gpu {
    char name[NVML_NAME_SIZE], uuid[NVML_UUID_SIZE];
    unsigned bus;
    unsigned architecture;
    int capability[2];
    unsigned cores, max_mhz;
    int is_persistent;
    unsigned long long memory_total, memory_used;
    unsigned usage_mw;
    unsigned long long energy_mj;
    unsigned limit_mw, enforced_mw, default_mw, min_mw, max_mw;
    unsigned sm_mhz, memory_mhz;
    int temperature_c;
    struct nvml_utilization utilization;
    unsigned long long reasons;
    struct fake_field fields[FAKE_FIELDS_MAX];
    size_t field_count;
    unsigned memory_clocks[4], graphics_clocks[8];
    unsigned memory_clock_count, graphics_clock_count;
    unsigned locked_mhz[2], locked_memory_mhz[2]; /* least, most; 0, 0: not locked */
    unsigned mig_mode, mig_count;
    char mig_uuids[FAKE_MIG_MAX][NVML_UUID_SIZE];
    struct nvml_process_r535 processes[2][FAKE_PROCESSES_MAX]; /* compute, graphics */
    unsigned process_count[2];
    size_t process_size; /* bytes of an entry of _v2 and _v3 */
    int codes[FAKE_CALLS];
    unsigned from_call[FAKE_CALLS]; /* the code is answered from this call on; 0, 1: the first */
    unsigned calls[FAKE_CALLS];
};

struct fake_machine {
    struct fake_gpu gpus[FAKE_GPUS_MAX];
    unsigned count;
    char driver[NVML_VERSION_SIZE];
    const char *missing[8]; /* symbols */
    bool has_no_library;
    bool may_set; /* a test that sets */
    bool is_open;
    pid_t init_pid;
    int init_count;
    unsigned init_flags;
    unsigned loads, unloads, shutdowns;
    int codes[FAKE_CALLS]; /* of calls that concern no GPU */
    unsigned calls[FAKE_CALLS];
};

static struct fake_machine fake;

struct fake_mig {
    unsigned gpu, instance;
};
static struct fake_mig fake_migs[FAKE_GPUS_MAX][FAKE_MIG_MAX];

static inline struct fake_field *fake_find_field(struct fake_gpu *gpu, unsigned id, unsigned scope)
{
    for (size_t i = 0; i < gpu->field_count; i++) {
        if (gpu->fields[i].id == id && gpu->fields[i].scope == scope)
            return &gpu->fields[i];
    }
    return NULL;
}

/* Of a field that is there. */
static inline struct fake_field *fake_known_field(struct fake_gpu *gpu, unsigned id, unsigned scope)
{
    struct fake_field *field = fake_find_field(gpu, id, scope);
    if (field == NULL)
        fail_msg("the fake GPU has no field %u of scope %u", id, scope);
    return field;
}

static inline void fake_set_field(struct fake_gpu *gpu, unsigned id, unsigned scope, int type,
                                  unsigned long long value)
{
    struct fake_field *field = fake_find_field(gpu, id, scope);
    if (field == NULL) {
        assert_true(gpu->field_count < FAKE_FIELDS_MAX);
        field = &gpu->fields[gpu->field_count++];
    }
    *field = (struct fake_field){.id = id, .scope = scope, .type = type};
    if (type == NVML_TYPE_UINT)
        field->value.as_uint = (unsigned)value;
    else
        field->value.as_ull = value;
}

/* Like an H100 under driver 550: everything there but module power. */
static inline void fake_make_gpu(struct fake_gpu *gpu, unsigned index)
{
    *gpu = (struct fake_gpu){
        .name = "NVIDIA H100 80GB HBM3",
        .bus = 0x1a + index,
        .architecture = NVML_ARCH_HOPPER,
        .capability = {9, 0},
        .cores = 16896,
        .max_mhz = 1980,
        .is_persistent = 1,
        .memory_total = 80000000000ULL,
        .memory_used = 1000000000ULL,
        .usage_mw = 301000,
        .energy_mj = 5000000,
        .limit_mw = 600000,
        .enforced_mw = 500000,
        .default_mw = 700000,
        .min_mw = 200000,
        .max_mw = 700000,
        .sm_mhz = 1755,
        .memory_mhz = 2619,
        .temperature_c = 54,
        .utilization = {87, 40},
        .reasons = NVML_REASON_POWER_LIMIT,
        .memory_clocks = {2619, 1593},
        .memory_clock_count = 2,
        .graphics_clocks = {1980, 1965, 1965, 210},
        .graphics_clock_count = 4,
        .process_size = sizeof(struct nvml_process),
    };
    (void)snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%08x-1111-2222-3333-444444444444", index + 1);
    fake_set_field(gpu, NVML_FIELD_ENERGY_MJ, 0, NVML_TYPE_ULONG_LONG, 123456789);
    fake_set_field(gpu, NVML_FIELD_POWER_INSTANT_MW, 0, NVML_TYPE_UINT, 310500);
    fake_set_field(gpu, NVML_FIELD_POWER_AVERAGE_MW, 0, NVML_TYPE_UINT, 305250);
    fake_set_field(gpu, NVML_FIELD_POWER_AVERAGE_MW, 2, NVML_TYPE_UINT, 61000);
    fake_set_field(gpu, NVML_FIELD_POWER_LIMIT_REQUESTED_MW, 0, NVML_TYPE_UINT, 600000);
    fake_set_field(gpu, NVML_FIELD_POWER_LIMIT_CURRENT_MW, 0, NVML_TYPE_UINT, 500000);
    fake_set_field(gpu, NVML_FIELD_THROTTLED_POWER_NS, 0, NVML_TYPE_ULONG_LONG, 2500000000ULL);
    fake_set_field(gpu, NVML_FIELD_THROTTLED_SW_THERMAL_NS, 0, NVML_TYPE_ULONG_LONG, 0);
}

static inline void fake_reset(void)
{
    memset(&fake, 0, sizeof fake);
    fake.count = 2;
    (void)snprintf(fake.driver, sizeof fake.driver, "550.54.15");
    for (unsigned i = 0; i < FAKE_GPUS_MAX; i++)
        fake_make_gpu(&fake.gpus[i], i);
    for (unsigned i = 0; i < FAKE_GPUS_MAX; i++) {
        for (unsigned j = 0; j < FAKE_MIG_MAX; j++)
            fake_migs[i][j] = (struct fake_mig){i, j};
    }
}

#endif
