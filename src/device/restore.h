/* SPDX-License-Identifier: MIT
 *
 * Giving back what a dead governor has left: stale journals (control.h) are found and worked off.
 *
 * A journal that somebody holds is left alone. One of an earlier boot is dropped where its settings
 * cannot have survived. Of the others each knob is restored if it still has the value that the
 * journal says was set (or cannot be read): anything else is somebody else's.
 *
 * Owns: nothing.    Threads: any; processes exclude each other by the journal's lock.
 */
#ifndef WG_DEVICE_RESTORE_H
#define WG_DEVICE_RESTORE_H

#include "base/state_dir.h"
#include "device/control.h"

struct wg_restore_summary {
    size_t journals;                  /* stale ones that were found */
    size_t live;                      /* held by somebody: left alone */
    size_t unreadable;                /* malformed or of a newer version: left in place */
    size_t restored, foreign, failed; /* knobs */
};

/* Restores all stale journals under `state_dir` (NULL: wg__state_dir's); no such directory is fine.
 * Without a stale journal it costs one directory read and opens no device. WG_EPERM, WG_EIO: the
 * directory cannot be read. Knobs that fail are counted, not an error of this. */
enum wg_code wg__restore_stale(const char *state_dir, wg_restore_report *report, void *context,
                               struct wg_restore_summary *out, struct wg_error *err);

/* The guard's side: restores the one journal that is open as `fd` and held with it. Tries anew what
 * fails, until `patience_ns` has passed. */
enum wg_code wg__restore_journal(int fd, uint64_t patience_ns, wg_restore_report *report,
                                 void *context, struct wg_restore_summary *out,
                                 struct wg_error *err);

/* Whether the journal that is open as `fd` was ended: nothing is left to restore. */
enum wg_code wg__restore_is_ended(int fd, bool *out, struct wg_error *err);

#endif
