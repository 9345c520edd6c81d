/* SPDX-License-Identifier: MIT
 *
 * Reads a served model's profile from YAML; what the file holds is in simulate/serving_profile.h.
 *
 * A table of fields drives the reading, so that each key has its range, and whatever is wrong is
 * told in one line: the file, the line, the field, what stands there and what is expected.
 *
 *     orin.yaml:7: latency.per_row_s: '-1' is not a number in 0 .. 1000000 (s)
 *
 * Owns: nothing.    Threads: one at a time.
 */
#ifndef WG_CLI_SERVING_PROFILE_FILE_H
#define WG_CLI_SERVING_PROFILE_FILE_H

#include <stddef.h>

#include "base/error.h"
#include "simulate/serving_profile.h"

/* WG_EDATA: "FILE:LINE: ..."; WG_ENOENT, WG_EPERM, WG_EIO: it cannot be read; WG_ENOMEM. */
enum wg_code wg__serving_profile_read(struct wg_serving_profile *out, const char *path,
                                      struct wg_error *err);

/* The same of bytes in memory; `name` stands for the file's. */
enum wg_code wg__serving_profile_parse(struct wg_serving_profile *out, const char *name,
                                       const char *bytes, size_t length, struct wg_error *err);

#endif
