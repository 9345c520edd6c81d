/* SPDX-License-Identifier: MIT
 *
 * NVML: every function that is not ours, and the texts of the codes.
 *
 * They are declared with one argument, whatever they have: where the caller puts more of them in
 * registers or on its stack it takes them away itself, on every ABI that Linux has. The first one
 * is a GPU's handle in most; only its value is looked at. So each call is counted, and faults can
 * be injected into all.
 *
 * Threads: any thread.
 */
#include "vgpu/nvml_library.h"

static int answer(enum vgpu_function function, nvml_device device, int code)
{
    struct vgpu_machine *machine = vgpu_current();
    if (machine == NULL)
        return NVML_E_UNINITIALIZED;
    struct vgpu_call call;
    int gpu_index = -1;
    int mig_index = -1;
    if (!vgpu_handle_find(machine, device, &gpu_index, &mig_index))
        gpu_index = -1;
    const int begun = vgpu_call_begin_at(&call, function, gpu_index);
    return begun != NVML_OK ? begun : code;
}

/* The application clocks are deprecated from branch 590 on (field report 71). */
enum { OLD_CODE = VGPU_DRIVER >= 580 ? NVML_E_DEPRECATED : NVML_E_NOT_SUPPORTED };

#define DEFINE_OURS(name)
#define DEFINE_OLD(name)                                                                           \
    VGPU_NVML(name, nvml_device first)                                                             \
    {                                                                                              \
        return answer(VGPU_FN_##name, first, OLD_CODE);                                            \
    }
#define DEFINE_REST(name)                                                                          \
    VGPU_NVML(name, nvml_device first)                                                             \
    {                                                                                              \
        return answer(VGPU_FN_##name, first, NVML_E_NOT_SUPPORTED);                                \
    }
#define X(kind, since, name) DEFINE_##kind(name)
VGPU_NVML_FUNCTIONS(X)
#undef X

/* The texts are ours. Drivers before 580 did not know the codes from 28 on. */
static const char *const texts[] = {
    [NVML_OK] = "Success",
    [NVML_E_UNINITIALIZED] = "Uninitialized",
    [NVML_E_INVALID_ARGUMENT] = "Invalid Argument",
    [NVML_E_NOT_SUPPORTED] = "Not Supported",
    [NVML_E_NO_PERMISSION] = "Insufficient Permissions",
    [NVML_E_ALREADY_INITIALIZED] = "Already Initialized",
    [NVML_E_NOT_FOUND] = "Not Found",
    [NVML_E_INSUFFICIENT_SIZE] = "Insufficient Size",
    [NVML_E_INSUFFICIENT_POWER] = "Insufficient External Power",
    [NVML_E_DRIVER_NOT_LOADED] = "Driver Not Loaded",
    [NVML_E_TIMEOUT] = "Timeout",
    [NVML_E_IRQ_ISSUE] = "Interrupt Request Issue",
    [NVML_E_LIBRARY_NOT_FOUND] = "NVML Shared Library Not Found",
    [NVML_E_FUNCTION_NOT_FOUND] = "Function Not Found",
    [NVML_E_CORRUPTED_INFOROM] = "Corrupted infoROM",
    [NVML_E_GPU_IS_LOST] = "GPU is lost",
    [NVML_E_RESET_REQUIRED] = "GPU requires reset",
    [NVML_E_OPERATING_SYSTEM] = "The operating system has blocked the request",
    [NVML_E_VERSION_MISMATCH] = "Driver/library version mismatch",
    [NVML_E_IN_USE] = "In use by another client",
    [NVML_E_MEMORY] = "Insufficient memory",
    [NVML_E_NO_DATA] = "No data",
    [NVML_E_VGPU_ECC_NOT_SUPPORTED] = "ECC is enabled, which this virtual GPU cannot have",
    [NVML_E_INSUFFICIENT_RESOURCES] = "Insufficient resources",
    [NVML_E_FREQ_NOT_SUPPORTED] = "Frequency not supported",
    [NVML_E_ARGUMENT_VERSION_MISMATCH] = "Argument version mismatch",
    [NVML_E_DEPRECATED] = "Requested functionality has been deprecated",
    [NVML_E_NOT_READY] = "Not ready",
    [NVML_E_GPU_NOT_FOUND] = "GPU not found",
    [NVML_E_INVALID_STATE] = "Invalid state",
    [NVML_E_RESET_TYPE_NOT_SUPPORTED] = "Reset type not supported",
};

VGPU_API const char *nvmlErrorString(int code);
VGPU_API const char *nvmlErrorString(int code)
{
    const int known =
        VGPU_DRIVER >= 580 ? (int)(sizeof texts / sizeof texts[0]) : NVML_E_GPU_NOT_FOUND;
    return code >= 0 && code < known ? texts[code] : "Unknown Error";
}
