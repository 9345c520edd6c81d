/* SPDX-License-Identifier: MIT
 *
 * NVML: nvmlDeviceGetFieldValues, many meters in one call, each with a result of its own.
 *
 * Faults can name one field: "nvmlDeviceGetFieldValues:186".
 *
 * Threads: any thread.
 */
#include <stdio.h>

#include "base/clock.h"
#include "vgpu/nvml_library.h"

static void put(const struct vgpu_call *call, struct nvml_field_value *field, int type,
                double value)
{
    field->value_type = type;
    field->result = NVML_OK;
    if (type == NVML_TYPE_UINT)
        vgpu_put_uint(call, &field->value.as_uint, value);
    else
        vgpu_put_ull(call, &field->value.as_ull, value);
}

static void put_sensor(const struct vgpu_call *call, struct nvml_field_value *field,
                       const struct vgpu_sensor *sensor)
{
    const struct vgpu_model *model = &call->gpu->model;
    if (field->scope_id == NVML_SCOPE_MEMORY)
        sensor = &model->memory;
    const bool has_scope = field->scope_id == NVML_SCOPE_GPU ||
                           field->scope_id == NVML_SCOPE_MEMORY ||
                           (field->scope_id == NVML_SCOPE_MODULE && model->has_module_power);
    if (has_scope && sensor->is_present)
        put(call, field, NVML_TYPE_UINT, 1e3 * vgpu_sensor_w(call->gpu, sensor, call->t_ns));
}

static void put_limit(const struct vgpu_call *call, struct nvml_field_value *field)
{
    const struct vgpu_gpu *gpu = call->gpu;
    double limit_w = gpu->limit_w;
    switch (field->field_id) {
    case NVML_FIELD_POWER_LIMIT_MIN_MW:
        limit_w = gpu->model.limit_min_w;
        break;
    case NVML_FIELD_POWER_LIMIT_MAX_MW:
        limit_w = gpu->model.limit_max_w;
        break;
    case NVML_FIELD_POWER_LIMIT_DEFAULT_MW:
        limit_w = gpu->model.limit_default_w;
        break;
    case NVML_FIELD_POWER_LIMIT_CURRENT_MW:
        limit_w = vgpu_enforced_limit_w(gpu);
        break;
    default:
        break;
    }
    if (field->scope_id == NVML_SCOPE_GPU)
        put(call, field, NVML_TYPE_UINT, 1e3 * limit_w);
}

/* Field 82 where the memory is beside the die (HBM), as its power sensor says. */
static void put_memory_temperature(const struct vgpu_call *call, struct nvml_field_value *field)
{
    if (call->gpu->model.memory.is_present)
        put(call, field, NVML_TYPE_UINT, call->gpu->temperature_c);
}

static bool driver_knows(unsigned field)
{
    if (VGPU_DRIVER < 535)
        return field < 96; /* NVML_FI_MAX of the binding of R418 */
    if (VGPU_DRIVER < 580)
        return field < 197; /* of the header of NVML 12.2 */
    return true;
}

static void answer(const struct vgpu_call *call, struct nvml_field_value *field)
{
    const struct vgpu_gpu *gpu = call->gpu;
    field->result = NVML_E_NOT_SUPPORTED;
    if (!driver_knows(field->field_id))
        return;
    switch (field->field_id) {
    case NVML_FIELD_ENERGY_MJ:
    case NVML_FIELD_ENERGY_SAME_MJ:
        if (gpu->model.has_counter)
            put(call, field, NVML_TYPE_ULONG_LONG, (double)vgpu_counter_mj(gpu, call->t_ns));
        break;
    case NVML_FIELD_POWER_AVERAGE_MW:
        put_sensor(call, field, &gpu->model.average);
        break;
    case NVML_FIELD_POWER_INSTANT_MW:
        put_sensor(call, field, &gpu->model.instant);
        break;
    case NVML_FIELD_POWER_LIMIT_MIN_MW:
    case NVML_FIELD_POWER_LIMIT_MAX_MW:
    case NVML_FIELD_POWER_LIMIT_DEFAULT_MW:
    case NVML_FIELD_POWER_LIMIT_CURRENT_MW:
    case NVML_FIELD_POWER_LIMIT_REQUESTED_MW:
        put_limit(call, field);
        break;
    case NVML_FIELD_THROTTLED_POWER_NS:
        put(call, field, NVML_TYPE_ULONG_LONG, 1e9 * gpu->throttled_power_s);
        break;
    case NVML_FIELD_THROTTLED_THERMAL_NS:
        put(call, field, NVML_TYPE_ULONG_LONG,
            1e9 * (gpu->throttled_thermal_s + gpu->throttled_hw_thermal_s));
        break;
    case NVML_FIELD_THROTTLED_SW_THERMAL_NS:
        put(call, field, NVML_TYPE_ULONG_LONG, 1e9 * gpu->throttled_thermal_s);
        break;
    case NVML_FIELD_THROTTLED_HW_THERMAL_NS:
        put(call, field, NVML_TYPE_ULONG_LONG, 1e9 * gpu->throttled_hw_thermal_s);
        break;
    case NVML_FIELD_THROTTLED_POWER_BRAKE_NS:
        put(call, field, NVML_TYPE_ULONG_LONG, 0.0);
        break;
    case NVML_FIELD_MEMORY_TEMPERATURE:
        put_memory_temperature(call, field);
        break;
    default:
        break;
    }
}

/* With faults: one field at a time, since a fault may wait. */
static void answer_alone(const struct vgpu_call *call, struct nvml_field_value *field)
{
    char part[64];
    (void)snprintf(part, sizeof part, "nvmlDeviceGetFieldValues:%u", field->field_id);
    struct vgpu_call own = *call;
    const int failed = vgpu_call_part(&own, part);
    vgpu_call_enter(&own);
    answer(&own, field);
    vgpu_call_leave(&own);
    if (failed != NVML_OK)
        field->result = failed;
}

VGPU_NVML(nvmlDeviceGetFieldValues, nvml_device device, int count, struct nvml_field_value *fields)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetFieldValues, device);
    if (code != NVML_OK)
        return code;
    if (count <= 0 || fields == NULL)
        return NVML_E_INVALID_ARGUMENT;
    const uint64_t begin_ns = wg__clock_ns();
    const uint64_t begin_us = vgpu_wall_us();
    if (atomic_load(&call.machine->fault_count) != 0) {
        for (int i = 0; i < count; i++)
            answer_alone(&call, &fields[i]);
    } else { /* all at the same moment */
        vgpu_call_enter(&call);
        for (int i = 0; i < count; i++)
            answer(&call, &fields[i]);
        vgpu_call_leave(&call);
    }
    const uint64_t latency_us = (wg__clock_ns() - begin_ns) / 1000;
    for (int i = 0; i < count; i++) {
        fields[i].t_us = (long long)begin_us;
        fields[i].latency_us = (long long)latency_us;
    }
    return NVML_OK;
}
