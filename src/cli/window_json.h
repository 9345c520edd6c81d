/* SPDX-License-Identifier: MIT
 *
 * A window's result as members of a JSON object: the same keys in every schema that has one.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_CLI_WINDOW_JSON_H
#define WG_CLI_WINDOW_JSON_H

#include "base/json.h"
#include "wattgov/window.h"

/* Appends the members to the open object. NAN becomes null. */
void wg__window_json(struct wg_json *json, const struct wg_window_result *result);

#endif
