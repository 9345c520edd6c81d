/* SPDX-License-Identifier: MIT
 *
 * NVML: power, energy, and the power limit.
 *
 * Threads: any thread.
 */
#include <math.h>

#include "vgpu/nvml_library.h"

VGPU_NVML(nvmlDeviceGetPowerUsage, nvml_device device, unsigned *out_mw)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetPowerUsage, device);
    if (code != NVML_OK)
        return code;
    if (out_mw == NULL)
        return NVML_E_INVALID_ARGUMENT;
    if (!call.gpu->model.usage.is_present)
        return NVML_E_NOT_SUPPORTED;
    vgpu_call_enter(&call);
    vgpu_put_uint(&call, out_mw, 1e3 * vgpu_sensor_w(call.gpu, &call.gpu->model.usage, call.t_ns));
    vgpu_call_leave(&call);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceGetTotalEnergyConsumption, nvml_device device, unsigned long long *out_mj)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetTotalEnergyConsumption, device);
    if (code != NVML_OK)
        return code;
    if (out_mj == NULL)
        return NVML_E_INVALID_ARGUMENT;
    if (!call.gpu->model.has_counter)
        return NVML_E_NOT_SUPPORTED;
    vgpu_call_enter(&call);
    vgpu_put_u64(&call, out_mj, vgpu_counter_mj(call.gpu, call.t_ns));
    vgpu_call_leave(&call);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceGetPowerManagementMode, nvml_device device, unsigned *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetPowerManagementMode, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    vgpu_put_uint(&call, out, 1.0);
    return NVML_OK;
}

static int put_limit(enum vgpu_function function, nvml_device device, unsigned *out_mw,
                     double (*limit_w)(const struct vgpu_gpu *gpu))
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, function, device);
    if (code != NVML_OK)
        return code;
    if (out_mw == NULL)
        return NVML_E_INVALID_ARGUMENT;
    vgpu_call_enter(&call);
    vgpu_put_uint(&call, out_mw, 1e3 * limit_w(call.gpu));
    vgpu_call_leave(&call);
    return NVML_OK;
}

static double requested_w(const struct vgpu_gpu *gpu)
{
    return gpu->limit_w;
}

static double default_w(const struct vgpu_gpu *gpu)
{
    return gpu->model.limit_default_w;
}

VGPU_NVML(nvmlDeviceGetPowerManagementLimit, nvml_device device, unsigned *out_mw)
{
    return put_limit(VGPU_FN_nvmlDeviceGetPowerManagementLimit, device, out_mw, requested_w);
}

VGPU_NVML(nvmlDeviceGetPowerManagementDefaultLimit, nvml_device device, unsigned *out_mw)
{
    return put_limit(VGPU_FN_nvmlDeviceGetPowerManagementDefaultLimit, device, out_mw, default_w);
}

VGPU_NVML(nvmlDeviceGetEnforcedPowerLimit, nvml_device device, unsigned *out_mw)
{
    return put_limit(VGPU_FN_nvmlDeviceGetEnforcedPowerLimit, device, out_mw,
                     vgpu_enforced_limit_w);
}

VGPU_NVML(nvmlDeviceGetPowerManagementLimitConstraints, nvml_device device, unsigned *min_out_mw,
          unsigned *max_out_mw)
{
    struct vgpu_call call;
    const int code =
        vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetPowerManagementLimitConstraints, device);
    if (code != NVML_OK)
        return code;
    if (min_out_mw == NULL || max_out_mw == NULL)
        return NVML_E_INVALID_ARGUMENT;
    vgpu_put_uint(&call, min_out_mw, 1e3 * call.gpu->model.limit_min_w);
    vgpu_put_uint(&call, max_out_mw, 1e3 * call.gpu->model.limit_max_w);
    return NVML_OK;
}

static int set_limit(const struct vgpu_call *call, unsigned limit_mw)
{
    const struct vgpu_model *model = &call->gpu->model;
    if (!vgpu_may_set(call))
        return NVML_E_NO_PERMISSION;
    if (limit_mw < llround(1e3 * model->limit_min_w) ||
        limit_mw > llround(1e3 * model->limit_max_w))
        return NVML_E_INVALID_ARGUMENT;
    vgpu_set_limit(call->gpu, 1e-3 * limit_mw);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceSetPowerManagementLimit, nvml_device device, unsigned limit_mw)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceSetPowerManagementLimit, device);
    return code != NVML_OK ? code : set_limit(&call, limit_mw);
}

VGPU_NVML(nvmlDeviceSetPowerManagementLimit_v2, nvml_device device,
          const struct nvml_power_value *value)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceSetPowerManagementLimit_v2, device);
    if (code != NVML_OK)
        return code;
    if (value == NULL)
        return NVML_E_INVALID_ARGUMENT;
    if (value->version != NVML_VERSION_WORD(struct nvml_power_value, 2))
        return NVML_E_ARGUMENT_VERSION_MISMATCH;
    if (value->scope != NVML_SCOPE_GPU)
        return NVML_E_NOT_SUPPORTED;
    return set_limit(&call, value->power_mw);
}

/* What was measured in the driver's buffer, newest last: the instant sensor's ticks. The real one
 * holds about 120. */
enum { SAMPLES_MAX = 120 };

VGPU_NVML(nvmlDeviceGetSamples, nvml_device device, int type, unsigned long long last_seen_us,
          int *type_out, unsigned *count, struct nvml_sample *samples)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetSamples, device);
    if (code != NVML_OK)
        return code;
    if (count == NULL || type_out == NULL || type < 0)
        return NVML_E_INVALID_ARGUMENT;
    const struct vgpu_sensor *sensor = &call.gpu->model.instant;
    if (type != NVML_SAMPLES_POWER || !sensor->is_present)
        return NVML_E_NOT_SUPPORTED;
    *type_out = NVML_TYPE_UINT;
    if (samples == NULL) { /* asks for the size of the buffer */
        *count = SAMPLES_MAX;
        return NVML_OK;
    }
    const uint64_t period_ns = (uint64_t)llround(sensor->period_s * 1e9);
    vgpu_call_enter(&call);
    const uint64_t now_us = vgpu_wall_us();
    const uint64_t since_tick_ns = (call.t_ns - call.gpu->phase_ns % period_ns) % period_ns;
    unsigned found = 0;
    const unsigned room = *count < SAMPLES_MAX ? *count : SAMPLES_MAX;
    for (unsigned back = room; back-- > 0;) {
        const uint64_t age_ns = since_tick_ns + back * period_ns;
        if (age_ns >= call.t_ns || now_us - age_ns / 1000 <= last_seen_us)
            continue;
        samples[found] = (struct nvml_sample){.t_us = now_us - age_ns / 1000};
        vgpu_put_uint(&call, &samples[found].value.as_uint,
                      1e3 * vgpu_sensor_w(call.gpu, sensor, call.t_ns - age_ns));
        found++;
    }
    vgpu_call_leave(&call);
    *count = found;
    return found > 0 ? NVML_OK : NVML_E_NOT_FOUND;
}

VGPU_NVML(nvmlDeviceGetViolationStatus, nvml_device device, int policy, struct nvml_violation *out)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetViolationStatus, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL || policy < 0)
        return NVML_E_INVALID_ARGUMENT;
    if (policy > NVML_POLICY_THERMAL)
        return NVML_E_NOT_SUPPORTED;
    vgpu_call_enter(&call);
    out->t_us = vgpu_wall_us();
    vgpu_put_ull(&call, &out->throttled_ns,
                 1e9 * (policy == NVML_POLICY_POWER
                            ? call.gpu->throttled_power_s
                            : call.gpu->throttled_thermal_s + call.gpu->throttled_hw_thermal_s));
    vgpu_call_leave(&call);
    return NVML_OK;
}
