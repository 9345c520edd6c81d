/* SPDX-License-Identifier: MIT
 *
 * A streaming JSON writer.
 *
 * Keeps the nesting, the commas and the escapes right; asserts that keys stand in objects only and
 * that everything is closed. Numbers are printed with the fewest digits that read back to the same
 * double (up to 17), independently of the locale; infinities and NaN, which JSON lacks, become
 * null.
 *
 * Owns: nothing; writes into the caller's buffer.    Threads: one thread at a time.
 */
#ifndef WG_BASE_JSON_H
#define WG_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum { WG_JSON_DEPTH_MAX = 32 };

struct wg_json {
    struct wg_buffer *out;
    unsigned depth;
    char closer[WG_JSON_DEPTH_MAX]; /* '}' or ']' per level */
    bool has_member[WG_JSON_DEPTH_MAX];
    bool after_key;
};

void wg__json_init(struct wg_json *json, struct wg_buffer *out);
void wg__json_object(struct wg_json *json); /* opens { */
void wg__json_array(struct wg_json *json);  /* opens [ */
void wg__json_close(struct wg_json *json);  /* closes the innermost */
void wg__json_key(struct wg_json *json, const char *key);
void wg__json_string(struct wg_json *json, const char *text); /* NULL: null; bad UTF-8: U+FFFD */
void wg__json_double(struct wg_json *json, double value);
void wg__json_uint(struct wg_json *json, uint64_t value);
void wg__json_bool(struct wg_json *json, bool value);
void wg__json_null(struct wg_json *json);

/* Shortcuts for a member of an object. */
void wg__json_member_string(struct wg_json *json, const char *key, const char *text);
void wg__json_member_double(struct wg_json *json, const char *key, double value);
void wg__json_member_uint(struct wg_json *json, const char *key, uint64_t value);
void wg__json_member_bool(struct wg_json *json, const char *key, bool value);
void wg__json_member_doubles(struct wg_json *json, const char *key, const double *values,
                             size_t count);

#endif
