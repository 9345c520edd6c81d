/* SPDX-License-Identifier: MIT
 *
 * NVML: the condition of a GPU: temperature, utilisation, memory, performance state, persistence.
 *
 * Threads: any thread.
 */
#include <math.h>
#include <string.h>

#include "vgpu/nvml_library.h"

/* Calls with one number that is read under the lock. */
static int put_reading(enum vgpu_function function, nvml_device device, unsigned *out,
                       double (*reading)(const struct vgpu_gpu *gpu))
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, function, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    vgpu_call_enter(&call);
    vgpu_put_uint(&call, out, reading(call.gpu));
    vgpu_call_leave(&call);
    return NVML_OK;
}

static double temperature_c(const struct vgpu_gpu *gpu)
{
    return gpu->temperature_c;
}

static double performance_state(const struct vgpu_gpu *gpu)
{
    return gpu->utilization > 0.0 ? 0.0 : 8.0;
}

static double persistence(const struct vgpu_gpu *gpu)
{
    return gpu->is_persistent;
}

VGPU_NVML(nvmlDeviceGetTemperature, nvml_device device, int sensor, unsigned *out_c)
{
    if (sensor != NVML_TEMPERATURE_DIE && vgpu_current() != NULL)
        return NVML_E_INVALID_ARGUMENT;
    return put_reading(VGPU_FN_nvmlDeviceGetTemperature, device, out_c, temperature_c);
}

VGPU_NVML(nvmlDeviceGetTemperatureV, nvml_device device, struct nvml_temperature *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetTemperatureV, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    if (out->version != NVML_VERSION_WORD(struct nvml_temperature, 1))
        return NVML_E_ARGUMENT_VERSION_MISMATCH;
    if (out->sensor != NVML_TEMPERATURE_DIE)
        return NVML_E_INVALID_ARGUMENT;
    unsigned degrees = 0;
    vgpu_call_enter(&call);
    vgpu_put_uint(&call, &degrees, call.gpu->temperature_c);
    vgpu_call_leave(&call);
    out->temperature_c = (int)degrees;
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceGetMarginTemperature, nvml_device device, struct nvml_margin_temperature *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetMarginTemperature, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    if (out->version != NVML_VERSION_WORD(struct nvml_margin_temperature, 1))
        return NVML_E_ARGUMENT_VERSION_MISMATCH;
    unsigned degrees = 0;
    vgpu_call_enter(&call);
    vgpu_put_uint(&call, &degrees, call.gpu->model.slowdown_c - call.gpu->temperature_c);
    vgpu_call_leave(&call);
    out->margin_c = (int)degrees;
    return NVML_OK;
}

/* The chip shuts down some degrees above its slowdown: 5 here, as data sheets of boards show. */
VGPU_NVML(nvmlDeviceGetTemperatureThreshold, nvml_device device, int which, unsigned *out_c)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetTemperatureThreshold, device);
    if (code != NVML_OK)
        return code;
    if (out_c == NULL || which < 0)
        return NVML_E_INVALID_ARGUMENT;
    const double slowdown_c = call.gpu->model.slowdown_c;
    if (slowdown_c <= 0.0)
        return NVML_E_NOT_SUPPORTED;
    if (which == NVML_THRESHOLD_SHUTDOWN)
        vgpu_put_uint(&call, out_c, slowdown_c + 5.0);
    else if (which == NVML_THRESHOLD_SLOWDOWN || which == NVML_THRESHOLD_GPU_MAX)
        vgpu_put_uint(&call, out_c, slowdown_c);
    else
        return NVML_E_NOT_SUPPORTED;
    return NVML_OK;
}

/* The memory's share is that of its power in what the load adds. */
VGPU_NVML(nvmlDeviceGetUtilizationRates, nvml_device device, struct nvml_utilization *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetUtilizationRates, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    const struct vgpu_model *model = &call.gpu->model;
    vgpu_call_enter(&call);
    const double memory_w = call.gpu->memory_power_w - model->memory_idle_w;
    const double most_w = model->memory_load_w - model->memory_idle_w;
    const double memory = most_w > 0.0 ? fmin(1.0, fmax(0.0, memory_w / most_w)) : 0.0;
    vgpu_put_uint(&call, &out->gpu_percent, 100.0 * call.gpu->utilization);
    vgpu_put_uint(&call, &out->memory_percent, 100.0 * memory);
    vgpu_call_leave(&call);
    return NVML_OK;
}

struct memory {
    uint64_t total, reserved, used;
};

/* "3g.40gb": 40 GiB. A profile that does not say has the whole memory. */
static uint64_t profile_bytes(const struct vgpu_model *model, int mig_index)
{
    const char *text = strchr(model->mig_profiles[mig_index], '.');
    uint64_t gib = 0;
    for (; text != NULL && text[1] >= '0' && text[1] <= '9' && gib < 10000; text++)
        gib = 10 * gib + (uint64_t)(text[1] - '0');
    return gib > 0 ? gib << 30 : model->memory_bytes;
}

/* The driver keeps 1/128 for itself; processes cannot have more than the rest. A MIG device has
 * what its profile says, and the processes are counted on the whole GPU. */
static struct memory read_memory(struct vgpu_call *call)
{
    struct memory memory = {.total = call->gpu->model.memory_bytes};
    memory.reserved = memory.total / 128;
    vgpu_call_enter(call);
    for (size_t i = 0; i < VGPU_LOADS_MAX; i++) {
        if (call->gpu->loads[i].pid != 0)
            memory.used += call->gpu->loads[i].memory_bytes;
    }
    vgpu_call_leave(call);
    if (call->mig_index >= 0) {
        memory.total = profile_bytes(&call->gpu->model, call->mig_index);
        memory.reserved = memory.total / 128;
        memory.used = 0;
    }
    if (memory.used > memory.total - memory.reserved)
        memory.used = memory.total - memory.reserved;
    return memory;
}

VGPU_NVML(nvmlDeviceGetMemoryInfo, nvml_device device, struct nvml_memory *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_any(&call, VGPU_FN_nvmlDeviceGetMemoryInfo, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    const struct memory memory = read_memory(&call);
    vgpu_put_u64(&call, &out->total, memory.total);
    vgpu_put_u64(&call, &out->free, memory.total - memory.reserved - memory.used);
    vgpu_put_u64(&call, &out->used, memory.reserved + memory.used);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceGetMemoryInfo_v2, nvml_device device, struct nvml_memory_v2 *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_any(&call, VGPU_FN_nvmlDeviceGetMemoryInfo_v2, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    if (out->version != NVML_VERSION_WORD(struct nvml_memory_v2, 2))
        return NVML_E_ARGUMENT_VERSION_MISMATCH;
    const struct memory memory = read_memory(&call);
    vgpu_put_u64(&call, &out->total, memory.total);
    vgpu_put_u64(&call, &out->reserved, memory.reserved);
    vgpu_put_u64(&call, &out->free, memory.total - memory.reserved - memory.used);
    vgpu_put_u64(&call, &out->used, memory.used);
    return NVML_OK;
}

/* The window through which the host sees the memory: on data centre GPUs the next power of two (256
 * GiB on an H200 of 143771 MiB, 64 GiB on an L40S of 48 GiB, says nvidia-smi). nvitop ends when a
 * MIG device has none. */
VGPU_NVML(nvmlDeviceGetBAR1MemoryInfo, nvml_device device, struct nvml_memory *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin_any(&call, VGPU_FN_nvmlDeviceGetBAR1MemoryInfo, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    const struct memory memory = read_memory(&call);
    uint64_t total = UINT64_C(1) << 20;
    while (total < call.gpu->model.memory_bytes)
        total *= 2;
    vgpu_put_u64(&call, &out->total, total);
    vgpu_put_u64(&call, &out->free, total - memory.used);
    vgpu_put_u64(&call, &out->used, memory.used);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceGetPerformanceState, nvml_device device, unsigned *out)
{
    return put_reading(VGPU_FN_nvmlDeviceGetPerformanceState, device, out, performance_state);
}

VGPU_NVML(nvmlDeviceGetPowerState, nvml_device device, unsigned *out)
{
    return put_reading(VGPU_FN_nvmlDeviceGetPowerState, device, out, performance_state);
}

VGPU_NVML(nvmlDeviceGetPersistenceMode, nvml_device device, unsigned *out)
{
    return put_reading(VGPU_FN_nvmlDeviceGetPersistenceMode, device, out, persistence);
}

VGPU_NVML(nvmlDeviceSetPersistenceMode, nvml_device device, unsigned mode)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceSetPersistenceMode, device);
    if (code != NVML_OK)
        return code;
    if (mode > 1)
        return NVML_E_INVALID_ARGUMENT;
    if (!vgpu_may_set(&call))
        return NVML_E_NO_PERMISSION;
    vgpu_call_enter(&call);
    call.gpu->is_persistent = mode == 1;
    vgpu_call_leave(&call);
    return NVML_OK;
}
