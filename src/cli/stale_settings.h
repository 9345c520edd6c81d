/* SPDX-License-Identifier: MIT
 *
 * What a dead governor has left set is given back before any command does its work.
 *
 * Threads: the main thread.
 */
#ifndef WG_CLI_STALE_SETTINGS_H
#define WG_CLI_STALE_SETTINGS_H

#include <stdbool.h>

#include "device/restore.h"

struct wg_buffer;

/* Whether this command line is of a command that looks at devices: not of a guard or of `restore`,
 * which do it themselves, nor of a simulation or a question for help. */
bool wg__wants_stale_restored(int argc, char *const argv[]);

/* Restores stale journals; a line on stderr for each knob. Failures are told and fail nothing. */
void wg__restore_stale_settings(void);

/* What a knob stands at, for people: "175 W"; NAN: "the driver's own choice". */
void wg__append_setting(struct wg_buffer *out, enum wg_knob knob, double value);

/* One line about a knob: "gpu0: power_limit is back at 300 W (was 175 W, set by 'wattgov train')".
 */
void wg__restore_note_text(const struct wg_restore_note *note, struct wg_buffer *out);

#endif
