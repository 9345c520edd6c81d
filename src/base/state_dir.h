/* SPDX-License-Identifier: MIT
 *
 * Where wattgov keeps what outlives a process: journals of settings, the store of recurring jobs,
 * cached profiles.
 *
 * The first of these that applies: $WATTGOV_STATE_DIR; for root /var/lib/wattgov;
 * $XDG_STATE_HOME/wattgov; ~/.local/state/wattgov. Root has one place for all its sessions because
 * settings belong to the machine, and what `sudo` leaves of a user's environment must not decide
 * where they are looked for. An empty variable counts as unset; a relative XDG_STATE_HOME is
 * ignored, as the XDG base directory specification says; a relative WATTGOV_STATE_DIR is an error,
 * since it would name another place for a process that has another working directory.
 *
 * Threads: any, as long as none changes the environment.
 */
#ifndef WG_BASE_STATE_DIR_H
#define WG_BASE_STATE_DIR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { WG_STATE_DIR_MAX = 4096 }; /* enough for any path that the kernel takes */

/* What the rule looks at; texts may be NULL. */
struct wg_state_places {
    const char *own; /* WATTGOV_STATE_DIR */
    bool is_root;
    const char *xdg;  /* XDG_STATE_HOME */
    const char *home; /* HOME */
};

/* The rule by itself. WG_ENOENT: no home; WG_EINVAL: longer than `size`, or `own` is relative. */
enum wg_code wg__state_dir_choose(const struct wg_state_places *places, char *out, size_t size,
                                  struct wg_error *err);

/* The rule for this process. The folder is not made. */
enum wg_code wg__state_dir(char *out, size_t size, struct wg_error *err);

/* Makes the folder `path` and those above it that are missing, for this user alone (mode 0700).
 * One that exists is left as it is. Errors name the folder that could not be made. */
enum wg_code wg__state_dir_make(const char *path, struct wg_error *err);

#endif
