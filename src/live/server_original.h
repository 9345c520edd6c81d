/* SPDX-License-Identifier: MIT
 *
 * The file that keeps what a model's configuration was while a server has another one.
 *
 *     {"server": "http://127.0.0.1:8000", "model": "m", "config": "{...}"}
 *
 * It is there only in between: who is killed leaves it behind, and whoever comes next gives back
 * what stands in it.
 *
 * Owns: nothing.    Threads: any, one at a time.
 */
#ifndef WG_LIVE_SERVER_ORIGINAL_H
#define WG_LIVE_SERVER_ORIGINAL_H

#include "base/error.h"

/* `config` NULL: not known, so that of the server's repository is meant. */
enum wg_code wg__server_original_write(const char *path, const char *server, const char *model,
                                       const char *config, struct wg_error *err);

/* NULL: there is no such file, it is of another server or model, or the configuration is not known.
 * The caller frees `*config_out` with wg__free. WG_EDATA: a file that is something else. */
enum wg_code wg__server_original_read(char **config_out, const char *path, const char *server,
                                      const char *model, struct wg_error *err);

#endif
