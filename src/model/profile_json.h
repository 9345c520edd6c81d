/* SPDX-License-Identifier: MIT
 *
 * JSON documents that are small enough to be read whole: jansson's work, within bounds.
 *
 * jansson's memory does not pass through wg__alloc, and it bounds the nesting (2048 levels).
 *
 * Threads: one thread at a time.
 */
#ifndef WG_MODEL_PROFILE_JSON_H
#define WG_MODEL_PROFILE_JSON_H

#include <jansson.h>

#include "base/buffer.h"
#include "model/profile_reader.h"

enum { WG_PROFILE_JSON_MAX = 1 << 28 }; /* bytes, unpacked */

/* A whole file. WG_ENOENT, WG_EPERM, WG_EIO; WG_EDATA: "FILE:LINE: ..." or too large; WG_ENOMEM.
 * The caller gives it back. */
enum wg_code wg__json_load(const struct wg_profile_file *file, json_t **out, struct wg_error *err);

/* Appends all that a source has; WG_EDATA beyond the bound. */
enum wg_code wg__profile_take_all(struct wg_source *source, struct wg_buffer *text,
                                  struct wg_error *err);

/* A whole number from 0 to 2^31, also as 3.0; false: something else, or none. */
bool wg__json_whole(const json_t *value, uint64_t *out);

#endif
