/* SPDX-License-Identifier: MIT
 *
 * Setting an NVIDIA GPU: its power limit, and locks of its clocks.
 *
 *     knob           set                                      the driver's own choice
 *     power limit    nvmlDeviceSetPowerManagementLimit        its default limit
 *     GPU clock      ...SetGpuLockedClocks(least, value)      ...ResetGpuLockedClocks
 *     memory clock   ...SetMemoryLockedClocks(value, value)   ...ResetMemoryLockedClocks
 *
 * A limit can be read back and is rounded by some drivers; a lock cannot be read. Both last until
 * the driver is unloaded, whoever set them and whether or not that process lives. A GPU clock is
 * locked to a range, from the least on, so that an idle GPU still clocks down.
 *
 * Owns: nothing.    Threads: one at a time per GPU.
 */
#include <math.h>

#include "device/nvml.h"

static const double MW = 1e-3;
static const double MHZ = 1e6;

static bool to_driver(double value, double unit, unsigned *out)
{
    const double number = nearbyint(value / unit);
    if (!(number > 0.0 && number < 1e9))
        return false;
    *out = (unsigned)number;
    return true;
}

/* A failed write names what was asked for, and what to do: nothing else has a place for it. */
static enum wg_code tell(struct nvml_gpu *gpu, const char *call, int code, const char *what,
                         double asked, struct wg_error *err)
{
    if (code == NVML_OK)
        return WG_OK;
    const struct nvml_code *meaning = wg__nvml_code(code);
    const enum wg_code told = code == NVML_E_INVALID_ARGUMENT ? WG_EINVAL : meaning->meaning;
    struct wg_error cause = {0};
    (void)wg__nvml_fail(&cause, wg__nvml_name(gpu), call, code);
    if (isnan(asked))
        (void)wg__fail(err, told, "%s", cause.text);
    else
        (void)wg__fail(err, told, "%s (%s %.0f)", cause.text, what, asked);
    wg__nvml_add_remedy(err, code == NVML_E_NO_PERMISSION ? "run as root" : meaning->remedy);
    return told;
}

static enum wg_code fail_number(enum wg_knob knob, double value, struct wg_error *err)
{
    return wg__fail(err, WG_EINVAL, "%s: %.6g %s cannot be asked of NVML", wg_knob_key(knob), value,
                    wg_knob_unit(knob));
}

static enum wg_code set_limit(struct nvml_gpu *gpu, double value, struct wg_error *err)
{
    unsigned limit_mw = 0;
    if (isnan(value)) {
        const int code = NVML_CALL(gpu, default_limit, gpu->handle, &limit_mw);
        if (code != NVML_OK)
            return tell(gpu, wg__nvml_names.default_limit, code, "", NAN, err);
    } else if (!to_driver(value, MW, &limit_mw)) {
        return fail_number(WG_KNOB_POWER_LIMIT, value, err);
    }
    const int code = NVML_CALL(gpu, set_limit, gpu->handle, limit_mw);
    return tell(gpu, wg__nvml_names.set_limit, code, "mW", limit_mw, err);
}

static enum wg_code set_gpu_clock(struct nvml_gpu *gpu, double value, struct wg_error *err)
{
    if (isnan(value)) {
        const int code = NVML_CALL(gpu, unlock_gpu_clocks, gpu->handle);
        return tell(gpu, wg__nvml_names.unlock_gpu_clocks, code, "", NAN, err);
    }
    unsigned least_mhz = 0;
    unsigned mhz = 0;
    if (!to_driver(value, MHZ, &mhz) ||
        !to_driver(gpu->base.info.knobs[WG_KNOB_GPU_CLOCK].min, MHZ, &least_mhz))
        return fail_number(WG_KNOB_GPU_CLOCK, value, err);
    const int code =
        NVML_CALL(gpu, lock_gpu_clocks, gpu->handle, least_mhz < mhz ? least_mhz : mhz, mhz);
    return tell(gpu, wg__nvml_names.lock_gpu_clocks, code, "MHz", mhz, err);
}

static enum wg_code set_memory_clock(struct nvml_gpu *gpu, double value, struct wg_error *err)
{
    if (isnan(value)) {
        const int code = NVML_CALL(gpu, unlock_memory_clocks, gpu->handle);
        return tell(gpu, wg__nvml_names.unlock_memory_clocks, code, "", NAN, err);
    }
    unsigned mhz = 0;
    if (!to_driver(value, MHZ, &mhz))
        return fail_number(WG_KNOB_MEMORY_CLOCK, value, err);
    const int code = NVML_CALL(gpu, lock_memory_clocks, gpu->handle, mhz, mhz);
    return tell(gpu, wg__nvml_names.lock_memory_clocks, code, "MHz", mhz, err);
}

enum wg_code wg__nvml_set(struct wg_device *device, enum wg_knob knob, double value,
                          struct wg_error *err)
{
    struct nvml_gpu *gpu = wg__nvml_gpu(device);
    enum wg_code code = wg__nvml_retry_before(gpu, err);
    if (code == WG_OK)
        code = wg__nvml_get_handle(gpu, err);
    if (code != WG_OK)
        return code;
    switch (knob) {
    case WG_KNOB_POWER_LIMIT:
        return set_limit(gpu, value, err);
    case WG_KNOB_GPU_CLOCK:
        return set_gpu_clock(gpu, value, err);
    case WG_KNOB_MEMORY_CLOCK:
        return set_memory_clock(gpu, value, err);
    case WG_KNOB_CPU_CLOCK:
    case WG_KNOB_COUNT:
        break;
    }
    return wg__fail(err, WG_EUNSUPPORTED, "%s: not a knob of a GPU", wg_knob_key(knob));
}

enum wg_code wg__nvml_get(struct wg_device *device, enum wg_knob knob, double *out,
                          struct wg_error *err)
{
    struct nvml_gpu *gpu = wg__nvml_gpu(device);
    *out = NAN;
    if (knob != WG_KNOB_POWER_LIMIT)
        return WG_OK; /* NVML has no call that reads a lock */
    enum wg_code code = wg__nvml_retry_before(gpu, err);
    if (code == WG_OK)
        code = wg__nvml_get_handle(gpu, err);
    if (code != WG_OK)
        return code;
    unsigned limit_mw = 0;
    const int answer = NVML_CALL(gpu, limit, gpu->handle, &limit_mw);
    wg__nvml_retry_after(gpu, answer);
    code = tell(gpu, wg__nvml_names.limit, answer, "", NAN, err);
    if (code != WG_OK)
        return code;
    if (limit_mw * MW > gpu->power_most_w)
        return wg__fail(err, WG_EDATA, "%s: %u mW is no limit", wg__nvml_names.limit, limit_mw);
    *out = limit_mw * MW;
    return WG_OK;
}
