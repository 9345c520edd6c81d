/* SPDX-License-Identifier: MIT
 *
 * The parameters that the commands of `wattgov wave` predict with: those that are built in, and
 * those of --calibration, which win.
 *
 * Threads: the main thread.
 */
#ifndef WG_CLI_WAVE_CALIBRATION_H
#define WG_CLI_WAVE_CALIBRATION_H

#include "wave/calibration.h"

enum { WG_CALIBRATION_MAX_MIB = 64 };

/* `path`: plain or gzipped; NULL: only what is built in. WG_ENOENT, WG_EPERM, WG_EIO: it cannot be
 * read; WG_EDATA: it is none, or longer than 64 MiB; WG_ENOMEM. */
enum wg_code wg__wave_calibration_open(struct wg_calibration **out, const char *path,
                                       struct wg_error *err);

#endif
