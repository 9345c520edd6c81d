/* SPDX-License-Identifier: MIT
 *
 * Control whose stale journals are restored with another table of backends: for tests.
 */
#ifndef WG_DEVICE_CONTROL_SETUP_H
#define WG_DEVICE_CONTROL_SETUP_H

#include "device/control.h"
#include "device/machine.h"

enum wg_code wg__control_open_setup(struct wg_control **out, struct wg_machine *machine,
                                    const struct wg_control_opts *opts,
                                    const struct wg_machine_setup *setup, struct wg_error *err);

#endif
