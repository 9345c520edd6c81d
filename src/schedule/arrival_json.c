/* SPDX-License-Identifier: MIT
 *
 * Reading the moment of a JSON object.
 *
 * JSON is jansson's work; its memory does not pass through wg__alloc.
 *
 * Threads: pure, any thread.
 */
#include "schedule/arrival_json.h"

#include <stdio.h>

#include <jansson.h>

static const struct {
    const char *key;
    double unit_s;
} keys[] = {{"arrival_s", 1.0}, {"timestamp_s", 1.0}, {"timestamp", 1e-3}};

const char *wg__arrival_json_moment(const char *text, size_t length, double *out,
                                    char why[WG_ARRIVAL_JSON_WHY_SIZE])
{
    json_error_t error;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) {
        (void)snprintf(why, WG_ARRIVAL_JSON_WHY_SIZE, "no JSON: %.100s", error.text);
        return why;
    }
    const json_t *value = NULL;
    double unit_s = 1.0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && value == NULL; i++) {
        value = json_object_get(object, keys[i].key);
        unit_s = keys[i].unit_s;
    }
    if (json_is_number(value))
        *out = json_number_value(value) * unit_s;
    else
        (void)snprintf(why, WG_ARRIVAL_JSON_WHY_SIZE,
                       "expected an object with a number arrival_s, timestamp_s or timestamp");
    const char *said = json_is_number(value) ? NULL : why;
    json_decref(object);
    return said;
}
