/* SPDX-License-Identifier: MIT
 *
 * What a served model has of its own, while one of us has it loaded with something else.
 *
 * One at a time sets a model: a lock says who. What it had before stands in a file meanwhile: who
 * is killed leaves it behind, and whoever claims the model next finds it there and gives it back.
 * Both are of the model, not of the result or state that a run writes, so that two runs that know
 * nothing of each other cannot take each other's settings for the owner's.
 *
 *     STATE/servers/HASH.lock    the lock, empty; it stays
 *     STATE/servers/HASH.json    {"server": "http://HOST:8000", "model": "m", "config": "{...}"}
 *
 * HASH is of server and model, STATE wattgov's folder (base/state_dir.h). The lock is of the
 * process (fcntl), so children that outlive us do not have it, and the kernel knows its holder.
 *
 * Owns: a descriptor.    Threads: any, one at a time.
 */
#ifndef WG_LIVE_SERVER_ORIGINAL_H
#define WG_LIVE_SERVER_ORIGINAL_H

#include <stdbool.h>

#include "base/error.h"
#include "base/state_dir.h"

struct wg_server_claim {
    int fd; /* of the lock; -1: not claimed */
    char path[WG_STATE_DIR_MAX + 64];
};

/* WG_EBUSY: another process sets this model; the text says which. Other codes: the folder. */
enum wg_code wg__server_claim(struct wg_server_claim *claim, const char *server, const char *model,
                              struct wg_error *err);

/* Lets it go. The file stays, if there is one. */
void wg__server_unclaim(struct wg_server_claim *claim);

/* `config` NULL: not known, so that of the server's repository is meant. */
enum wg_code wg__server_original_write(const struct wg_server_claim *claim, const char *server,
                                       const char *model, const char *config, struct wg_error *err);

/* What one that was killed has left. False: nothing. `*config_out` NULL: not known; the caller
 * frees it with wg__free. WG_EDATA: a file that is something else. */
enum wg_code wg__server_original_read(const struct wg_server_claim *claim, const char *server,
                                      const char *model, bool *is_there, char **config_out,
                                      struct wg_error *err);

/* It has its own again. */
void wg__server_original_remove(const struct wg_server_claim *claim);

#endif
