/* SPDX-License-Identifier: MIT
 *
 * NVML: clocks, their locks, and what holds them down.
 *
 * Threads: any thread.
 */
#include <math.h>

#include "vgpu/nvml_library.h"

/* A pair of these in place of a pair of clocks; the other values from 0xffffff00 on are not known.
 */
enum { CLOCK_TDP = -255, CLOCK_UNLIMITED = -254, CLOCK_SYMBOLS_BEGIN = -256 };

static bool is_symbol(unsigned clock_mhz)
{
    return (int)clock_mhz >= CLOCK_SYMBOLS_BEGIN && (int)clock_mhz < 0;
}

/* Of an enum nvml_clock; NAN: there is no such clock. The graphics, SM and video clocks are one. */
static double clock_now_hz(const struct vgpu_gpu *gpu, int type)
{
    if (type < NVML_CLK_GRAPHICS || type > NVML_CLK_VIDEO)
        return NAN;
    return type == NVML_CLK_MEMORY ? gpu->memory_clock_hz : gpu->clock_hz;
}

static double clock_max_hz(const struct vgpu_gpu *gpu, int type)
{
    const struct vgpu_model *model = &gpu->model;
    if (type < NVML_CLK_GRAPHICS || type > NVML_CLK_VIDEO)
        return NAN;
    return type == NVML_CLK_MEMORY ? model->memory_clocks_hz[model->memory_clock_count - 1]
                                   : model->clocks_hz[model->clock_count - 1];
}

static int put_clock(enum vgpu_function function, nvml_device device, int type, unsigned *out_mhz,
                     double (*clock_hz)(const struct vgpu_gpu *gpu, int type))
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, function, device);
    if (code != NVML_OK)
        return code;
    if (out_mhz == NULL)
        return NVML_E_INVALID_ARGUMENT;
    vgpu_call_enter(&call);
    const double hz = clock_hz(call.gpu, type);
    if (!isnan(hz))
        vgpu_put_uint(&call, out_mhz, hz / 1e6);
    vgpu_call_leave(&call);
    return isnan(hz) ? NVML_E_INVALID_ARGUMENT : NVML_OK;
}

VGPU_NVML(nvmlDeviceGetClockInfo, nvml_device device, int type, unsigned *out_mhz)
{
    return put_clock(VGPU_FN_nvmlDeviceGetClockInfo, device, type, out_mhz, clock_now_hz);
}

VGPU_NVML(nvmlDeviceGetMaxClockInfo, nvml_device device, int type, unsigned *out_mhz)
{
    return put_clock(VGPU_FN_nvmlDeviceGetMaxClockInfo, device, type, out_mhz, clock_max_hz);
}

VGPU_NVML(nvmlDeviceGetMaxCustomerBoostClock, nvml_device device, int type, unsigned *out_mhz)
{
    return put_clock(VGPU_FN_nvmlDeviceGetMaxCustomerBoostClock, device, type, out_mhz,
                     clock_max_hz);
}

static double application_clock_hz(const struct vgpu_gpu *gpu, int type)
{
    (void)gpu;
    (void)type;
    return NAN;
}

VGPU_NVML(nvmlDeviceGetClock, nvml_device device, int type, int which, unsigned *out_mhz)
{
    if (which == NVML_CLOCK_ID_CURRENT)
        return put_clock(VGPU_FN_nvmlDeviceGetClock, device, type, out_mhz, clock_now_hz);
    if (which == NVML_CLOCK_ID_BOOST_MAX)
        return put_clock(VGPU_FN_nvmlDeviceGetClock, device, type, out_mhz, clock_max_hz);
    return put_clock(VGPU_FN_nvmlDeviceGetClock, device, type, out_mhz, application_clock_hz);
}

/* Largest first, as the driver lists them. */
static int put_steps(const struct vgpu_call *call, const double *steps_hz, size_t step_count,
                     unsigned *count, unsigned *out_mhz)
{
    const int code = vgpu_put_count(count, out_mhz, step_count);
    for (size_t i = 0; code == NVML_OK && i < step_count; i++)
        vgpu_put_uint(call, &out_mhz[i], steps_hz[step_count - 1 - i] / 1e6);
    return code;
}

VGPU_NVML(nvmlDeviceGetSupportedMemoryClocks, nvml_device device, unsigned *count,
          unsigned *out_mhz)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetSupportedMemoryClocks, device);
    if (code != NVML_OK)
        return code;
    const struct vgpu_model *model = &call.gpu->model;
    return put_steps(&call, model->memory_clocks_hz, model->memory_clock_count, count, out_mhz);
}

VGPU_NVML(nvmlDeviceGetSupportedGraphicsClocks, nvml_device device, unsigned memory_mhz,
          unsigned *count, unsigned *out_mhz)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, VGPU_FN_nvmlDeviceGetSupportedGraphicsClocks, device);
    if (code != NVML_OK)
        return code;
    if (count == NULL)
        return NVML_E_INVALID_ARGUMENT;
    const struct vgpu_model *model = &call.gpu->model;
    bool is_supported = false;
    for (size_t i = 0; i < model->memory_clock_count; i++)
        is_supported = is_supported || llround(model->memory_clocks_hz[i] / 1e6) == memory_mhz;
    if (!is_supported)
        return NVML_E_NOT_FOUND;
    return put_steps(&call, model->clocks_hz, model->clock_count, count, out_mhz);
}

static int check_lock(const struct vgpu_call *call, bool can_lock)
{
    if (!can_lock)
        return NVML_E_NOT_SUPPORTED;
    return vgpu_may_set(call) ? NVML_OK : NVML_E_NO_PERMISSION;
}

/* Symbols: with "tdp" as the upper bound the clock stays at what the chip is sold for, which is our
 * largest step, and "unlimited" lifts the bound: both leave our GPUs unlocked. */
static int lock_range(unsigned min_mhz, unsigned max_mhz, bool *unlocks)
{
    *unlocks = false;
    if (is_symbol(min_mhz) || is_symbol(max_mhz)) {
        const int low = (int)min_mhz;
        const int high = (int)max_mhz;
        if ((low != CLOCK_TDP && low != CLOCK_UNLIMITED) ||
            (high != CLOCK_TDP && high != CLOCK_UNLIMITED))
            return NVML_E_INVALID_ARGUMENT;
        *unlocks = true;
        return NVML_OK;
    }
    return min_mhz > max_mhz || max_mhz == 0 ? NVML_E_INVALID_ARGUMENT : NVML_OK;
}

static int lock_gpu_clocks(enum vgpu_function function, nvml_device device, unsigned min_mhz,
                           unsigned max_mhz, bool resets)
{
    struct vgpu_call call;
    int code = vgpu_call_begin(&call, function, device);
    if (code == NVML_OK)
        code = check_lock(&call, call.gpu->model.can_lock_gpu_clocks);
    bool unlocks = resets;
    if (code == NVML_OK && !resets)
        code = lock_range(min_mhz, max_mhz, &unlocks);
    if (code == NVML_OK)
        vgpu_set_clock_lock(call.gpu, unlocks ? 0.0 : 1e6 * min_mhz, unlocks ? 0.0 : 1e6 * max_mhz);
    return code;
}

VGPU_NVML(nvmlDeviceSetGpuLockedClocks, nvml_device device, unsigned min_mhz, unsigned max_mhz)
{
    return lock_gpu_clocks(VGPU_FN_nvmlDeviceSetGpuLockedClocks, device, min_mhz, max_mhz, false);
}

VGPU_NVML(nvmlDeviceResetGpuLockedClocks, nvml_device device)
{
    return lock_gpu_clocks(VGPU_FN_nvmlDeviceResetGpuLockedClocks, device, 0, 0, true);
}

static int lock_memory_clocks(enum vgpu_function function, nvml_device device, unsigned min_mhz,
                              unsigned max_mhz, bool resets)
{
    struct vgpu_call call;
    int code = vgpu_call_begin(&call, function, device);
    if (code == NVML_OK)
        code = check_lock(&call, call.gpu->model.can_lock_memory_clocks);
    if (code == NVML_OK && !resets && (min_mhz > max_mhz || max_mhz == 0))
        code = NVML_E_INVALID_ARGUMENT;
    if (code == NVML_OK)
        vgpu_set_memory_clock_lock(call.gpu, 1e6 * min_mhz, 1e6 * max_mhz);
    return code;
}

VGPU_NVML(nvmlDeviceSetMemoryLockedClocks, nvml_device device, unsigned min_mhz, unsigned max_mhz)
{
    return lock_memory_clocks(VGPU_FN_nvmlDeviceSetMemoryLockedClocks, device, min_mhz, max_mhz,
                              false);
}

VGPU_NVML(nvmlDeviceResetMemoryLockedClocks, nvml_device device)
{
    return lock_memory_clocks(VGPU_FN_nvmlDeviceResetMemoryLockedClocks, device, 0, 0, true);
}

static int put_reasons(enum vgpu_function function, nvml_device device, unsigned long long *out,
                       bool is_now)
{
    struct vgpu_call call;
    const int code = vgpu_call_begin(&call, function, device);
    if (code != NVML_OK)
        return code;
    if (out == NULL)
        return NVML_E_INVALID_ARGUMENT;
    const uint64_t all = NVML_REASON_IDLE | NVML_REASON_CLOCK_SETTING | NVML_REASON_POWER_LIMIT |
                         NVML_REASON_HW_SLOWDOWN | NVML_REASON_SW_THERMAL | NVML_REASON_HW_THERMAL;
    vgpu_call_enter(&call);
    vgpu_put_u64(&call, out, is_now ? call.gpu->reasons : all);
    vgpu_call_leave(&call);
    return NVML_OK;
}

VGPU_NVML(nvmlDeviceGetCurrentClocksEventReasons, nvml_device device, unsigned long long *out)
{
    return put_reasons(VGPU_FN_nvmlDeviceGetCurrentClocksEventReasons, device, out, true);
}

VGPU_NVML(nvmlDeviceGetCurrentClocksThrottleReasons, nvml_device device, unsigned long long *out)
{
    return put_reasons(VGPU_FN_nvmlDeviceGetCurrentClocksThrottleReasons, device, out, true);
}

VGPU_NVML(nvmlDeviceGetSupportedClocksEventReasons, nvml_device device, unsigned long long *out)
{
    return put_reasons(VGPU_FN_nvmlDeviceGetSupportedClocksEventReasons, device, out, false);
}

VGPU_NVML(nvmlDeviceGetSupportedClocksThrottleReasons, nvml_device device, unsigned long long *out)
{
    return put_reasons(VGPU_FN_nvmlDeviceGetSupportedClocksThrottleReasons, device, out, false);
}
