/* SPDX-License-Identifier: MIT
 *
 * Where the knobs of a served model go: into its configuration, to the client, into a command.
 *
 *     dynamic_batching.max_queue_delay_microseconds        objects are made where there are none,
 *     instance_group[0].count                              lists grow by one at most
 *     parameters.threads.string_value                      `string_value` is a text
 *
 * Triton's load takes a whole configuration, not a change: so what the server had at first is kept,
 * and each configuration is a copy of it with the knobs put in.
 *
 * Pure.    Owns: nothing.    Threads: any.
 */
#ifndef WG_LIVE_SERVER_CONFIG_H
#define WG_LIVE_SERVER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "live/workload.h"

enum wg_server_place {
    WG_SERVER_PLACE_BATCH, /* client.batch */
    WG_SERVER_PLACE_CONCURRENCY,
    WG_SERVER_PLACE_MAX_TOKENS,
    WG_SERVER_PLACE_COMMAND,
    WG_SERVER_PLACE_CONFIG /* of the model */
};

/* What a path means. */
enum wg_server_place wg__server_place(const char *path);

/* The path that a knob has by its name; NULL: none. */
const char *wg__server_path(const char *knob, bool batch_by_client);

/* What the value is multiplied by when nothing is told: 1e6 for a path that ends in
 * "_microseconds", else 1. */
double wg__server_scale(const char *path);

/* Whether `command` has "{NAME}". */
bool wg__server_command_has(const char *command, const char *knob);

/* Appends `command` with the settings put in for {NAME}; other braces stay. */
void wg__server_command_fill(struct wg_buffer *out, const char *command,
                             const struct wg_workload_setting *settings, size_t count);

/* What stands at a path of a configuration: a number or a text. False: nothing of that kind. The
 * number is NAN of a text that is none. */
bool wg__server_config_value(const char *config, const char *path, double *number_out,
                             char text_out[static WG_WORKLOAD_NAME_SIZE]);

/* Whether two texts are the same configuration, however they are written. */
bool wg__server_config_is_same(const char *config, const char *other);

/* A JSON text of the configuration `base` (another one, WG_EDATA when it is no object) with `count`
 * values put at their `paths`, already scaled. WG_EINVAL: a path that cannot be, or goes through
 * something that is no object or list. The caller frees `*out` with wg__free. */
enum wg_code wg__server_config_edit(char **out, const char *base, const char *const *paths,
                                    const struct wg_workload_setting *values, size_t count,
                                    struct wg_error *err);

#endif
