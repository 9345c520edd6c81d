/* SPDX-License-Identifier: MIT
 *
 * Restoring with another table of backends: for tests.
 */
#ifndef WG_DEVICE_RESTORE_SETUP_H
#define WG_DEVICE_RESTORE_SETUP_H

#include "device/machine.h"
#include "device/restore.h"

/* As wg__restore_stale and wg__restore_journal; `setup` NULL: as those. */
enum wg_code wg__restore_stale_setup(const char *state_dir, const struct wg_machine_setup *setup,
                                     wg_restore_report *report, void *context,
                                     struct wg_restore_summary *out, struct wg_error *err);
enum wg_code wg__restore_journal_setup(int fd, const struct wg_machine_setup *setup,
                                       uint64_t patience_ns, wg_restore_report *report,
                                       void *context, struct wg_restore_summary *out,
                                       struct wg_error *err);

#endif
