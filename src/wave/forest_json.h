/* SPDX-License-Identifier: MIT
 *
 * A forest (wave/forest.h) as JSON.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#ifndef WG_WAVE_FOREST_JSON_H
#define WG_WAVE_FOREST_JSON_H

#include <jansson.h>

#include "base/json.h"
#include "wave/forest.h"

void wg__forest_write(struct wg_json *json, const struct wg_forest *forest);
/* WG_EDATA: `field` then tells which part is not as it must be ("correction.trees[3]"). */
enum wg_code wg__forest_read(const json_t *json, size_t feature_count, struct wg_forest *out,
                             char *field, size_t field_size);

#endif
