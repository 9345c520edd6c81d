/* SPDX-License-Identifier: MIT
 *
 * NVML: the processes on a GPU, and events.
 *
 * The struct of a process grew without a change of the call's name: 16 bytes in the unversioned
 * call, 24 in _v2 and _v3, but 32 in the _v3 of the first drivers of branch 535. Each build of the
 * library writes what its driver wrote (field report 39).
 *
 * Threads: any thread.
 */
#include <string.h>

#include "vgpu/nvml_library.h"

enum layout { LAYOUT_V1, LAYOUT_V2, LAYOUT_R535 };

static const enum layout newest_layout = VGPU_DRIVER == 535 ? LAYOUT_R535 : LAYOUT_V2;

static void write_process(const struct vgpu_call *call, void *out, size_t index, enum layout layout,
                          const struct vgpu_load *load)
{
    const unsigned no_instance = 0xffffffffU;
    unsigned long long memory = 0;
    vgpu_put_u64(call, &memory, load->memory_bytes);
    if (layout == LAYOUT_V1)
        ((struct nvml_process_v1 *)out)[index] =
            (struct nvml_process_v1){.pid = load->pid, .memory = memory};
    else if (layout == LAYOUT_V2)
        ((struct nvml_process *)out)[index] =
            (struct nvml_process){load->pid, memory, no_instance, no_instance};
    else
        ((struct nvml_process_r535 *)out)[index] =
            (struct nvml_process_r535){load->pid, memory, no_instance, no_instance, 0};
}

static int put_processes(enum vgpu_function function, nvml_device device, unsigned *count,
                         void *out, enum layout layout)
{
    struct vgpu_call call;
    const int begun = vgpu_call_begin(&call, function, device);
    if (begun != NVML_OK)
        return begun;
    vgpu_call_enter(&call);
    size_t found = 0;
    for (size_t i = 0; i < VGPU_LOADS_MAX; i++)
        found += call.gpu->loads[i].pid != 0;
    const int code = vgpu_put_count(count, out, found);
    found = 0;
    for (size_t i = 0; code == NVML_OK && i < VGPU_LOADS_MAX; i++) {
        if (call.gpu->loads[i].pid != 0)
            write_process(&call, out, found++, layout, &call.gpu->loads[i]);
    }
    vgpu_call_leave(&call);
    return code;
}

VGPU_NVML(nvmlDeviceGetComputeRunningProcesses, nvml_device device, unsigned *count, void *out)
{
    return put_processes(VGPU_FN_nvmlDeviceGetComputeRunningProcesses, device, count, out,
                         LAYOUT_V1);
}

VGPU_NVML(nvmlDeviceGetComputeRunningProcesses_v2, nvml_device device, unsigned *count, void *out)
{
    return put_processes(VGPU_FN_nvmlDeviceGetComputeRunningProcesses_v2, device, count, out,
                         LAYOUT_V2);
}

VGPU_NVML(nvmlDeviceGetComputeRunningProcesses_v3, nvml_device device, unsigned *count, void *out)
{
    return put_processes(VGPU_FN_nvmlDeviceGetComputeRunningProcesses_v3, device, count, out,
                         newest_layout);
}

/* Nothing draws on our GPUs, and nothing shares them through MPS. */
static int put_none(enum vgpu_function function, nvml_device device, unsigned *count)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, function, device);
    return code != NVML_OK ? code : vgpu_put_count(count, NULL, 0);
}

VGPU_NVML(nvmlDeviceGetGraphicsRunningProcesses, nvml_device device, unsigned *count)
{
    return put_none(VGPU_FN_nvmlDeviceGetGraphicsRunningProcesses, device, count);
}

VGPU_NVML(nvmlDeviceGetGraphicsRunningProcesses_v2, nvml_device device, unsigned *count)
{
    return put_none(VGPU_FN_nvmlDeviceGetGraphicsRunningProcesses_v2, device, count);
}

VGPU_NVML(nvmlDeviceGetGraphicsRunningProcesses_v3, nvml_device device, unsigned *count)
{
    return put_none(VGPU_FN_nvmlDeviceGetGraphicsRunningProcesses_v3, device, count);
}

VGPU_NVML(nvmlDeviceGetMPSComputeRunningProcesses, nvml_device device, unsigned *count)
{
    return put_none(VGPU_FN_nvmlDeviceGetMPSComputeRunningProcesses, device, count);
}

VGPU_NVML(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvml_device device, unsigned *count)
{
    return put_none(VGPU_FN_nvmlDeviceGetMPSComputeRunningProcesses_v2, device, count);
}

VGPU_NVML(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvml_device device, unsigned *count)
{
    return put_none(VGPU_FN_nvmlDeviceGetMPSComputeRunningProcesses_v3, device, count);
}

/* One sample a process that works now; "not found" when none does, as the driver says of an idle
 * GPU (field report 61). */
VGPU_NVML(nvmlDeviceGetProcessUtilization, nvml_device device, struct nvml_process_sample *out,
          unsigned *count, unsigned long long last_seen_us)
{
    struct vgpu_call call;
    const int begun = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetProcessUtilization, device);
    if (begun != NVML_OK)
        return begun;
    if (call.gpu->model.is_mig)
        return NVML_E_NOT_SUPPORTED;
    if (count == NULL)
        return NVML_E_INVALID_ARGUMENT;
    const uint64_t now_us = vgpu_wall_us();
    vgpu_call_enter(&call);
    size_t found = 0;
    for (size_t i = 0; i < VGPU_LOADS_MAX; i++)
        found += call.gpu->loads[i].pid != 0 && call.gpu->loads[i].utilization > 0.0;
    int code = found == 0 || last_seen_us >= now_us ? NVML_E_NOT_FOUND : NVML_OK;
    if (code == NVML_OK)
        code = vgpu_put_count(count, out, found);
    found = 0;
    for (size_t i = 0; code == NVML_OK && i < VGPU_LOADS_MAX; i++) {
        const struct vgpu_load *load = &call.gpu->loads[i];
        if (load->pid == 0 || load->utilization <= 0.0)
            continue;
        out[found] = (struct nvml_process_sample){.pid = load->pid, .t_us = now_us};
        vgpu_put_uint(&call, &out[found++].sm_percent, 100.0 * load->utilization);
    }
    vgpu_call_leave(&call);
    return code;
}

/* Events: a set can be made and waited for, and nothing ever happens, since a GPU can be lost
 * without an event (field report 37) and that is the case to be tested. */
static char event_set;

VGPU_NVML(nvmlEventSetCreate, void **out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_at(&call, VGPU_FN_nvmlEventSetCreate, -1);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    *out = &event_set;
    return NVML_OK;
}

VGPU_NVML(nvmlEventSetFree, const void *set)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_at(&call, VGPU_FN_nvmlEventSetFree, -1);
    if (code != NVML_OK)
        return code;
    return set == &event_set ? NVML_OK : NVML_E_INVALID_ARGUMENT;
}

static int wait_for_event(enum vgpu_function function, const void *set, const void *data,
                          unsigned timeout_ms)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_at(&call, function, -1);
    if (code != NVML_OK)
        return code;
    if (set != &event_set || data == NULL)
        return NVML_E_INVALID_ARGUMENT;
    vgpu_rest(1e-3 * timeout_ms);
    return NVML_E_TIMEOUT;
}

VGPU_NVML(nvmlEventSetWait, const void *set, const void *data, unsigned timeout_ms)
{
    return wait_for_event(VGPU_FN_nvmlEventSetWait, set, data, timeout_ms);
}

VGPU_NVML(nvmlEventSetWait_v2, const void *set, const void *data, unsigned timeout_ms)
{
    return wait_for_event(VGPU_FN_nvmlEventSetWait_v2, set, data, timeout_ms);
}

static const unsigned long long known_events = 0x8 | 0x10 | 0x4; /* XID, clock, performance state */

VGPU_NVML(nvmlDeviceRegisterEvents, nvml_device device, unsigned long long events, const void *set)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceRegisterEvents, device);
    if (code != NVML_OK)
        return code;
    if (set != &event_set)
        return NVML_E_INVALID_ARGUMENT;
    return (events & ~known_events) == 0 ? NVML_OK : NVML_E_NOT_SUPPORTED;
}

VGPU_NVML(nvmlDeviceGetSupportedEventTypes, nvml_device device, unsigned long long *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetSupportedEventTypes, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    vgpu_put_u64(&call, out, known_events);
    return NVML_OK;
}
