/* SPDX-License-Identifier: MIT
 *
 * Every vendor that wattgov knows, in the order in which its devices are listed.
 *
 * A table instead of constructors: what is in the program can be read here, and a test gives
 * machine.c a table of its own.
 *
 * Threads: constant.
 */
#include <stddef.h>

#include "device/backend.h"

const struct wg_backend *const wg__backends[] = {
    &wg__backend_nvml,   &wg__backend_amdgpu, &wg__backend_intel,
    &wg__backend_jetson, &wg__backend_rapl,   NULL,
};

const struct wg_backend *const wg__backends_replay[] = {
    &wg__backend_replay,
    NULL,
};
