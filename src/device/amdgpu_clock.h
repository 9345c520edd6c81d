/* SPDX-License-Identifier: MIT
 *
 * Setting the clocks of an AMD GPU.
 *
 * Threads: as struct wg_device.
 */
#ifndef WG_DEVICE_AMDGPU_CLOCK_H
#define WG_DEVICE_AMDGPU_CLOCK_H

#include "device/kernel_device.h"

/* Allows the levels up to `value` Hz (WG_KNOB_GPU_CLOCK), or the nearest one (WG_KNOB_MEMORY_CLOCK)
 * of the card in `folder`; NAN: gives both clocks back to the driver. `*is_manual` says whether
 * this process has taken them. WG_EBUSY: somebody else has. */
enum wg_code wg__amdgpu_clock_set(struct wg_kernel_device *kernel, const char *folder,
                                  enum wg_knob knob, double value, bool *is_manual,
                                  struct wg_error *err);

#endif
