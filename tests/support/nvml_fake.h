/* SPDX-License-Identifier: MIT
 *
 * An NVML of two to many GPUs, function by function, for the tests of the NVIDIA backend.
 *
 * It is a loader (nvml_library.h), not a shared library: what it answers is what a test has made of
 * the machine (nvml_fake_machine.h), and the machine counts how often each call was made. Like the
 * real one it knows the process that has started it.
 *
 * Owns: nothing; the machine is global.    Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_NVML_FAKE_H
#define WG_TESTS_SUPPORT_NVML_FAKE_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "device/nvml.h"
#include "device/select.h"
#include "support/check.h"
#include "support/nvml_fake_machine.h"
#include "support/tree.h"

/* -- The calls ----------------------------------------------------------------------------------
 */

static inline int fake_enter_any(enum fake_call call)
{
    fake.calls[call]++;
    if (fake.init_count == 0 || fake.init_pid != getpid())
        return NVML_E_UNINITIALIZED;
    return fake.codes[call];
}

static inline int fake_enter(nvml_device device, enum fake_call call)
{
    struct fake_gpu *gpu = (struct fake_gpu *)device;
    if (fake.init_count == 0 || fake.init_pid != getpid())
        return NVML_E_UNINITIALIZED;
    assert_true(gpu >= fake.gpus && gpu < fake.gpus + FAKE_GPUS_MAX);
    gpu->calls[call]++;
    return gpu->calls[call] >= gpu->from_call[call] ? gpu->codes[call] : NVML_OK;
}

#define FAKE_GPU(device) ((struct fake_gpu *)(device))
#define FAKE_ENTER(device, call)                                                                   \
    do {                                                                                           \
        const int entered = fake_enter((device), FAKE_##call);                                     \
        if (entered != NVML_OK)                                                                    \
            return entered;                                                                        \
    } while (0)

static inline int fake_start(enum fake_call call)
{
    fake.calls[call]++;
    if (fake.codes[call] != NVML_OK)
        return fake.codes[call];
    if (fake.init_pid != getpid())
        fake.init_count = 0;
    fake.init_pid = getpid();
    fake.init_count++;
    return NVML_OK;
}

static int fake_init_with_flags(unsigned flags)
{
    fake.init_flags = flags;
    return fake_start(FAKE_init_with_flags);
}

static int fake_init(void)
{
    return fake_start(FAKE_init);
}

static int fake_shutdown(void)
{
    fake.shutdowns++;
    if (fake.init_count > 0 && fake.init_pid == getpid())
        fake.init_count--;
    return NVML_OK;
}

static int fake_copy(const char *text, char *out, unsigned size)
{
    if (strlen(text) >= size)
        return NVML_E_INSUFFICIENT_SIZE;
    memcpy(out, text, strlen(text) + 1);
    return NVML_OK;
}

static int fake_driver_version(char *out, unsigned size)
{
    const int code = fake_enter_any(FAKE_driver_version);
    return code != NVML_OK ? code : fake_copy(fake.driver, out, size);
}

static int fake_count(unsigned *out)
{
    const int code = fake_enter_any(FAKE_count);
    *out = fake.count;
    return code;
}

static int fake_by_index(unsigned index, nvml_device *out)
{
    const int code = fake_enter_any(FAKE_by_index);
    if (code != NVML_OK)
        return code;
    if (index >= fake.count)
        return NVML_E_INVALID_ARGUMENT;
    FAKE_ENTER((nvml_device)&fake.gpus[index], by_index);
    *out = (nvml_device)&fake.gpus[index];
    return NVML_OK;
}

static int fake_by_uuid(const char *uuid, nvml_device *out)
{
    const int code = fake_enter_any(FAKE_by_uuid);
    if (code != NVML_OK)
        return code;
    for (unsigned i = 0; i < fake.count; i++) {
        if (strcmp(fake.gpus[i].uuid, uuid) != 0)
            continue;
        FAKE_ENTER((nvml_device)&fake.gpus[i], by_uuid);
        *out = (nvml_device)&fake.gpus[i];
        return NVML_OK;
    }
    return NVML_E_NOT_FOUND;
}

static int fake_by_pci(const char *address, nvml_device *out)
{
    const int code = fake_enter_any(FAKE_by_pci);
    if (code != NVML_OK)
        return code;
    for (unsigned i = 0; i < fake.count; i++) {
        char own[NVML_PCI_SIZE];
        (void)snprintf(own, sizeof own, "0000:%02x:00.0", fake.gpus[i].bus);
        if (strcmp(own, address) != 0)
            continue;
        FAKE_ENTER((nvml_device)&fake.gpus[i], by_pci);
        *out = (nvml_device)&fake.gpus[i];
        return NVML_OK;
    }
    return NVML_E_NOT_FOUND;
}

static int fake_name(nvml_device device, char *out, unsigned size)
{
    FAKE_ENTER(device, name);
    return fake_copy(FAKE_GPU(device)->name, out, size);
}

static int fake_uuid(nvml_device device, char *out, unsigned size)
{
    const char *begin = (const char *)fake_migs;
    if ((const char *)device >= begin && (const char *)device < begin + sizeof fake_migs) {
        const struct fake_mig *mig = (const struct fake_mig *)device;
        return fake_copy(fake.gpus[mig->gpu].mig_uuids[mig->instance], out, size);
    }
    FAKE_ENTER(device, uuid);
    return fake_copy(FAKE_GPU(device)->uuid, out, size);
}

static int fake_pci(nvml_device device, struct nvml_pci_info *out)
{
    FAKE_ENTER(device, pci);
    *out = (struct nvml_pci_info){.bus = FAKE_GPU(device)->bus, .pci_device_id = 0x233010de};
    (void)snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", FAKE_GPU(device)->bus);
    return NVML_OK;
}

#define FAKE_NUMBER(call, type, value)                                                             \
    static int fake_##call(nvml_device device, type *out)                                          \
    {                                                                                              \
        FAKE_ENTER(device, call);                                                                  \
        *out = FAKE_GPU(device)->value;                                                            \
        return NVML_OK;                                                                            \
    }
FAKE_NUMBER(architecture, unsigned, architecture)
FAKE_NUMBER(cores, unsigned, cores)
FAKE_NUMBER(persistence, int, is_persistent)
FAKE_NUMBER(power_usage, unsigned, usage_mw)
FAKE_NUMBER(energy, unsigned long long, energy_mj)
FAKE_NUMBER(limit, unsigned, limit_mw)
FAKE_NUMBER(enforced_limit, unsigned, enforced_mw)
FAKE_NUMBER(default_limit, unsigned, default_mw)
FAKE_NUMBER(utilization, struct nvml_utilization, utilization)
FAKE_NUMBER(reasons, unsigned long long, reasons)
FAKE_NUMBER(mig_max, unsigned, mig_count)

static int fake_compute_capability(nvml_device device, int *major, int *minor)
{
    FAKE_ENTER(device, compute_capability);
    *major = FAKE_GPU(device)->capability[0];
    *minor = FAKE_GPU(device)->capability[1];
    return NVML_OK;
}

static int fake_memory_v2(nvml_device device, struct nvml_memory_v2 *out)
{
    FAKE_ENTER(device, memory_v2);
    if (out->version != 0x2000028) /* field report 41: the size, and 2 in the top byte */
        return NVML_E_ARGUMENT_VERSION_MISMATCH;
    out->total = FAKE_GPU(device)->memory_total;
    out->used = FAKE_GPU(device)->memory_used;
    return NVML_OK;
}

static int fake_memory(nvml_device device, struct nvml_memory *out)
{
    FAKE_ENTER(device, memory);
    *out = (struct nvml_memory){FAKE_GPU(device)->memory_total, 0, FAKE_GPU(device)->memory_used};
    return NVML_OK;
}

static int fake_fields(nvml_device device, int count, struct nvml_field_value *values)
{
    FAKE_ENTER(device, fields);
    for (int i = 0; i < count; i++) {
        const struct fake_field *field =
            fake_find_field(FAKE_GPU(device), values[i].field_id, values[i].scope_id);
        values[i].result = field != NULL ? field->result : NVML_E_NOT_SUPPORTED;
        values[i].t_us = 1; /* a wall clock that is wrong */
        if (field == NULL)
            continue;
        values[i].value_type = field->type;
        values[i].value = field->value;
    }
    return NVML_OK;
}

static int fake_limit_range(nvml_device device, unsigned *min, unsigned *max)
{
    FAKE_ENTER(device, limit_range);
    *min = FAKE_GPU(device)->min_mw;
    *max = FAKE_GPU(device)->max_mw;
    return NVML_OK;
}

static int fake_clock(nvml_device device, int clock, unsigned *out)
{
    FAKE_ENTER(device, clock);
    *out = clock == NVML_CLK_MEMORY ? FAKE_GPU(device)->memory_mhz : FAKE_GPU(device)->sm_mhz;
    return NVML_OK;
}

static int fake_max_clock(nvml_device device, int clock, unsigned *out)
{
    (void)clock;
    FAKE_ENTER(device, max_clock);
    *out = FAKE_GPU(device)->max_mhz;
    return NVML_OK;
}

static int fake_temperature_v(nvml_device device, struct nvml_temperature *out)
{
    FAKE_ENTER(device, temperature_v);
    if (out->version != 0x100000c)
        return NVML_E_ARGUMENT_VERSION_MISMATCH;
    out->temperature_c = FAKE_GPU(device)->temperature_c;
    return NVML_OK;
}

static int fake_temperature(nvml_device device, int sensor, unsigned *out)
{
    FAKE_ENTER(device, temperature);
    assert_int_equal(sensor, NVML_TEMPERATURE_DIE);
    *out = (unsigned)FAKE_GPU(device)->temperature_c;
    return NVML_OK;
}

static int fake_list(const unsigned *clocks, unsigned have, unsigned *count, unsigned *out)
{
    const unsigned room = *count;
    *count = have;
    if (out == NULL || room < have)
        return have == 0 ? NVML_OK : NVML_E_INSUFFICIENT_SIZE;
    memcpy(out, clocks, have * sizeof *out);
    return NVML_OK;
}

static int fake_memory_clocks(nvml_device device, unsigned *count, unsigned *out)
{
    FAKE_ENTER(device, memory_clocks);
    const struct fake_gpu *gpu = FAKE_GPU(device);
    return fake_list(gpu->memory_clocks, gpu->memory_clock_count, count, out);
}

static int fake_graphics_clocks(nvml_device device, unsigned memory_mhz, unsigned *count,
                                unsigned *out)
{
    FAKE_ENTER(device, graphics_clocks);
    const struct fake_gpu *gpu = FAKE_GPU(device);
    if (memory_mhz != gpu->memory_clocks[0])
        return NVML_E_NOT_FOUND;
    return fake_list(gpu->graphics_clocks, gpu->graphics_clock_count, count, out);
}

/* Probes and reads set nothing: a test that sets says so. */
static inline void fake_expect_set(void)
{
    if (!fake.may_set)
        fail_msg("something was set");
}

static int fake_set_limit(nvml_device device, unsigned limit_mw)
{
    fake_expect_set();
    FAKE_ENTER(device, set_limit);
    struct fake_gpu *gpu = FAKE_GPU(device);
    if (limit_mw < gpu->min_mw || limit_mw > gpu->max_mw)
        return NVML_E_INVALID_ARGUMENT;
    gpu->limit_mw = limit_mw;
    return NVML_OK;
}

static int fake_lock_gpu_clocks(nvml_device device, unsigned min_mhz, unsigned max_mhz)
{
    fake_expect_set();
    FAKE_ENTER(device, lock_gpu_clocks);
    FAKE_GPU(device)->locked_mhz[0] = min_mhz;
    FAKE_GPU(device)->locked_mhz[1] = max_mhz;
    return NVML_OK;
}

static int fake_lock_memory_clocks(nvml_device device, unsigned min_mhz, unsigned max_mhz)
{
    fake_expect_set();
    FAKE_ENTER(device, lock_memory_clocks);
    FAKE_GPU(device)->locked_memory_mhz[0] = min_mhz;
    FAKE_GPU(device)->locked_memory_mhz[1] = max_mhz;
    return NVML_OK;
}

static int fake_unlock_gpu_clocks(nvml_device device)
{
    fake_expect_set();
    FAKE_ENTER(device, unlock_gpu_clocks);
    memset(FAKE_GPU(device)->locked_mhz, 0, sizeof FAKE_GPU(device)->locked_mhz);
    return NVML_OK;
}

static int fake_unlock_memory_clocks(nvml_device device)
{
    fake_expect_set();
    FAKE_ENTER(device, unlock_memory_clocks);
    memset(FAKE_GPU(device)->locked_memory_mhz, 0, sizeof FAKE_GPU(device)->locked_memory_mhz);
    return NVML_OK;
}

static int fake_mig_mode(nvml_device device, unsigned *current, unsigned *pending)
{
    FAKE_ENTER(device, mig_mode);
    *current = *pending = FAKE_GPU(device)->mig_mode;
    return NVML_OK;
}

static int fake_mig_device(nvml_device device, unsigned index, nvml_device *out)
{
    FAKE_ENTER(device, mig_device);
    const struct fake_gpu *gpu = FAKE_GPU(device);
    if (index >= gpu->mig_count || gpu->mig_uuids[index][0] == '\0')
        return NVML_E_NOT_FOUND;
    *out = (nvml_device)&fake_migs[gpu - fake.gpus][index];
    return NVML_OK;
}

/* Writes entries of `size` bytes, and never more than it was given room for, counted in entries of
 * its own size, as a driver does. */
static inline int fake_processes(nvml_device device, int kind, size_t size, unsigned *count,
                                 void *out)
{
    const struct fake_gpu *gpu = FAKE_GPU(device);
    const unsigned room = *count;
    *count = gpu->process_count[kind];
    if (room < *count)
        return NVML_E_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++)
        memcpy((char *)out + i * size, &gpu->processes[kind][i], size);
    return NVML_OK;
}

#define FAKE_PROCESSES(call, kind, size)                                                           \
    static int fake_##call(nvml_device device, unsigned *count, void *out)                         \
    {                                                                                              \
        FAKE_ENTER(device, call);                                                                  \
        return fake_processes(device, kind, size, count, out);                                     \
    }
FAKE_PROCESSES(compute_v3, 0, FAKE_GPU(device)->process_size)
FAKE_PROCESSES(compute_v2, 0, sizeof(struct nvml_process))
FAKE_PROCESSES(compute_v1, 0, sizeof(struct nvml_process_v1))
FAKE_PROCESSES(graphics_v3, 1, FAKE_GPU(device)->process_size)
FAKE_PROCESSES(graphics_v2, 1, sizeof(struct nvml_process))
FAKE_PROCESSES(graphics_v1, 1, sizeof(struct nvml_process_v1))

/* -- The library --------------------------------------------------------------------------------
 */

static inline bool fake_is_missing(const char *name)
{
    for (size_t i = 0; i < sizeof fake.missing / sizeof fake.missing[0]; i++) {
        if (fake.missing[i] != NULL && strcmp(fake.missing[i], name) == 0)
            return true;
    }
    return false;
}

static inline void fake_remove_symbol(const char *name)
{
    for (size_t i = 0; i < sizeof fake.missing / sizeof fake.missing[0]; i++) {
        if (fake.missing[i] == NULL) {
            fake.missing[i] = name;
            return;
        }
    }
    fail_msg("no room to remove %s", name);
}

static void *fake_open_library(const char *path, char *why, size_t why_size)
{
    if (fake.has_no_library) {
        (void)snprintf(why, why_size, "%s: cannot open shared object file", path);
        return NULL;
    }
    assert_false(fake.is_open);
    fake.is_open = true;
    fake.loads++;
    return &fake;
}

static void *fake_find_symbol(void *handle, const char *name)
{
    assert_ptr_equal(handle, &fake);
    void *symbol = NULL;
    if (fake_is_missing(name))
        return NULL;
#define X(member, need, arguments, shown, newest, older, oldest)                                   \
    {                                                                                              \
        int(*const call) arguments = fake_##member;                                                \
        const char *const names[] = {newest, older, oldest};                                       \
        for (size_t i = 0; i < 3; i++) {                                                           \
            if (names[i] != NULL && strcmp(names[i], name) == 0)                                   \
                memcpy(&symbol, &call, sizeof symbol);                                             \
        }                                                                                          \
    }
    WG_NVML_CALLS(X)
#undef X
    return symbol;
}

static void fake_close_library(void *handle)
{
    assert_ptr_equal(handle, &fake);
    assert_true(fake.is_open);
    fake.is_open = false;
    fake.unloads++;
}

static const struct nvml_loader fake_loader = {fake_open_library, fake_find_symbol,
                                               fake_close_library};

#endif
