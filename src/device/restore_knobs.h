/* SPDX-License-Identifier: MIT
 *
 * Giving back the knobs of one journal: the part that a living governor, its guard and a later
 * command share.
 *
 * Threads: one at a time.
 */
#ifndef WG_DEVICE_RESTORE_KNOBS_H
#define WG_DEVICE_RESTORE_KNOBS_H

#include "device/journal.h"
#include "device/restore.h"

/* Tries each knob that is not given back yet, once, and those that failed once more after the
 * others; counts in `summary`, where `failed` is that of this call. `machine` NULL: each fails with
 * `cause`. `tells_failures`: reports those that failed too. Returns how many did not come back. */
size_t wg__restore_knobs(struct wg_journal *journal, struct wg_machine *machine,
                         const struct wg_error *cause, bool tells_failures,
                         wg_restore_report *report, void *context,
                         struct wg_restore_summary *summary);

#endif
