/* SPDX-License-Identifier: MIT
 *
 * What NVML's return codes mean and what can be done about them.
 *
 * The words are ours: nvmlErrorString calls everything from 28 on "Unknown Error" on branch 535,
 * and never says what to do.
 *
 * Threads: constant.
 */
#include <stddef.h>

#include "device/nvml_library.h"

#define RELOAD                                                                                     \
    "reboot, or unload the kernel modules nvidia_uvm, nvidia_drm, nvidia_modeset, nvidia and "     \
    "load "                                                                                        \
    "them again"
#define CONTAINER                                                                                  \
    "in a container: it may have lost its devices (systemctl daemon-reload does that); restart "   \
    "the container"

/* clang-format off */
static const struct nvml_code codes[] = {
    {NVML_OK, WG_OK, "success", NULL},
    {NVML_E_UNINITIALIZED, WG_EIO, "NVML is not initialised in this process", NULL},
    {NVML_E_INVALID_ARGUMENT, WG_EIO, "invalid argument", NULL},
    {NVML_E_NOT_SUPPORTED, WG_EUNSUPPORTED, "not supported by this GPU", NULL},
    {NVML_E_NO_PERMISSION, WG_EPERM, "no permission",
     "run as root, or give this user access to /dev/nvidia* (in a container: pass the GPU in)"},
    {NVML_E_ALREADY_INITIALIZED, WG_EIO, "already initialised", NULL},
    {NVML_E_NOT_FOUND, WG_EIO, "not found", NULL},
    {NVML_E_INSUFFICIENT_SIZE, WG_EIO, "the answer does not fit", NULL},
    {NVML_E_INSUFFICIENT_POWER, WG_EIO, "the GPU's power cables are not attached properly",
     "attach the external power cables of the GPU"},
    {NVML_E_DRIVER_NOT_LOADED, WG_ENODEV, "the NVIDIA driver is not loaded",
     "load it: modprobe nvidia (Debian: nvidia-driver)"},
    {NVML_E_TIMEOUT, WG_ETIMEOUT, "the driver gave up waiting for the GPU", NULL},
    {NVML_E_IRQ_ISSUE, WG_EIO, "the kernel has a problem with the GPU's interrupts",
     "look for NVRM messages in the kernel's log"},
    {NVML_E_LIBRARY_NOT_FOUND, WG_ENODEV, "NVML did not find a library of the driver",
     "install the driver's libraries completely (Debian: nvidia-driver-libs); a container needs "
     "NVIDIA_DRIVER_CAPABILITIES=utility"},
    {NVML_E_FUNCTION_NOT_FOUND, WG_EUNSUPPORTED, "this driver's library has no such call",
     "a newer driver may have it"},
    {NVML_E_CORRUPTED_INFOROM, WG_EIO, "the GPU's inforom is damaged",
     "ask the vendor of the GPU"},
    {NVML_E_GPU_IS_LOST, WG_ELOST, "the GPU is lost (fell off the bus)",
     "look for Xid 79 in the kernel's log; reset the GPU or reboot"},
    {NVML_E_RESET_REQUIRED, WG_ELOST, "the GPU needs a reset",
     "end its users, then nvidia-smi --gpu-reset, or reboot"},
    {NVML_E_OPERATING_SYSTEM, WG_EIO, "the operating system blocked the request", CONTAINER},
    {NVML_E_VERSION_MISMATCH, WG_EIO, "driver and library are of different versions", RELOAD},
    {NVML_E_IN_USE, WG_EIO, "in use", NULL},
    {NVML_E_MEMORY, WG_EIO, "out of memory in the driver", NULL},
    {NVML_E_NO_DATA, WG_EIO, "no data", NULL},
    {NVML_E_VGPU_ECC_NOT_SUPPORTED, WG_EUNSUPPORTED, "not supported by a vGPU with ECC", NULL},
    {NVML_E_INSUFFICIENT_RESOURCES, WG_EIO, "the driver lacks resources", NULL},
    {NVML_E_FREQ_NOT_SUPPORTED, WG_EUNSUPPORTED, "the frequency is not supported", NULL},
    {NVML_E_ARGUMENT_VERSION_MISMATCH, WG_EUNSUPPORTED,
     "the driver does not know this version of the request", NULL},
    {NVML_E_DEPRECATED, WG_EUNSUPPORTED, "this driver has given the call up (deprecated)", NULL},
    {NVML_E_NOT_READY, WG_EIO, "the GPU is not ready", "try again in a moment"},
    {NVML_E_GPU_NOT_FOUND, WG_ENODEV, "there is no GPU", NULL},
    {NVML_E_INVALID_STATE, WG_EIO, "not possible in the GPU's present state", NULL},
    {NVML_E_UNKNOWN, WG_EIO, "unknown error of the driver", CONTAINER},
};
/* clang-format on */

static const struct nvml_code not_listed = {-1, WG_EIO, "a code that wattgov does not know", NULL};

const struct nvml_code *wg__nvml_code(int code)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].code == code)
            return &codes[i];
    }
    return &not_listed;
}

enum wg_code wg__nvml_fail(struct wg_error *err, const char *who, const char *call, int code)
{
    const struct nvml_code *meaning = wg__nvml_code(code);
    return wg__fail(err, meaning->meaning, "%s%s%s: error %d: %s", who != NULL ? who : "",
                    who != NULL ? ": " : "", call, code, meaning->words);
}

void wg__nvml_add_remedy(struct wg_error *err, const char *remedy)
{
    if (err == NULL || remedy == NULL)
        return;
    const struct wg_error plain = *err;
    (void)wg__fail(err, plain.code, "%s; %s", plain.text, remedy);
}
