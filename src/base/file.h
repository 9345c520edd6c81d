/* SPDX-License-Identifier: MIT
 *
 * Writing result files whole or not at all.
 *
 * The text goes to a temporary file in the same folder, is flushed to the disk and renamed over the
 * target, so a full disk or a kill leaves the old file or none. A target that exists and is not a
 * regular file (/dev/stdout, /dev/null, a pipe) is written in place.
 *
 * Threads: any thread.
 */
#ifndef WG_BASE_FILE_H
#define WG_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Replaces `path` by `length` bytes. Errors name the path and the cause. */
enum wg_code wg__file_write(const char *path, const char *bytes, size_t length,
                            struct wg_error *err);

/* Whether `wg__file_write(path)` could work, tried before a long computation and without touching
 * the target: the folder exists and is writable, and the target is no folder. */
enum wg_code wg__file_check_writable(const char *path, struct wg_error *err);

/* Locks the open file for this process (fcntl: no child that outlives us has it). 0; EBUSY: another
 * process has it, and `*holder_out` is its id, 0 where that is not known; else an errno. */
int wg__file_lock(int fd, long *holder_out);

/* Whether writing to both paths would write the same file, however the paths are spelled. */
bool wg__file_is_same(const char *path, const char *other);

#endif
