/* SPDX-License-Identifier: MIT
 *
 * Small files of the kernel, read and written as text or numbers, below a root that tests replace.
 *
 * Each failure names the file without the root ("/sys/class/powercap/intel-rapl:0/energy_uj") and
 * the cause. A file that is read at each tick is held open (`struct wg_sysfs_file`) and read with
 * pread.
 *
 * Threads: any thread, one at a time per file.
 */
#ifndef WG_DEVICE_SYSFS_H
#define WG_DEVICE_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum { WG_SYSFS_TEXT_MAX = 4096, WG_SYSFS_PATH_MAX = 1024 };

/* A file that is kept open. `fd` is -1 when closed. */
struct wg_sysfs_file {
    int fd;
    const char *path; /* without root; the caller's, must outlive it */
};

/* Reads the whole of root + path into `out` (ends with a zero, the last newline cut). WG_ENOENT,
 * WG_EPERM, WG_EIO, WG_EUNSUPPORTED (the kernel answers ENODEV, EOPNOTSUPP, EAGAIN, ENODATA),
 * WG_EDATA when longer than `size`, WG_EINVAL when the path is longer than WG_SYSFS_PATH_MAX. */
enum wg_code wg__sysfs_text(const char *root, const char *path, char *out, size_t size,
                            struct wg_error *err);
enum wg_code wg__sysfs_uint(const char *root, const char *path, uint64_t *out,
                            struct wg_error *err);

/* Writes a text, in one write as the kernel wants it, to a file that is there. WG_EPERM: not
 * permitted; WG_EINVAL: the kernel does not take this text; WG_EUNSUPPORTED as above; WG_EBUSY. */
enum wg_code wg__sysfs_write(const char *root, const char *path, const char *text,
                             struct wg_error *err);

enum wg_code wg__sysfs_open(struct wg_sysfs_file *file, const char *root, const char *path,
                            struct wg_error *err);
void wg__sysfs_close(struct wg_sysfs_file *file);
/* As `wg__sysfs_text`, of a file that is open. */
enum wg_code wg__sysfs_read_text(const struct wg_sysfs_file *file, char *out, size_t size,
                                 struct wg_error *err);
/* The bytes as they are, at most `size`; a longer file is cut. */
enum wg_code wg__sysfs_read_bytes(const struct wg_sysfs_file *file, void *out, size_t size,
                                  size_t *length_out, struct wg_error *err);
enum wg_code wg__sysfs_read_uint(const struct wg_sysfs_file *file, uint64_t *out,
                                 struct wg_error *err);
enum wg_code wg__sysfs_read_int(const struct wg_sysfs_file *file, int64_t *out,
                                struct wg_error *err);

/* The names in a folder that begin with `prefix`, in `arena`, hidden ones left out; digits sort as
 * numbers ("hwmon2" before "hwmon10"). A folder that is not there has none. */
enum wg_code wg__sysfs_list(const char *root, const char *folder, const char *prefix,
                            struct wg_arena *arena, const char *const **names_out,
                            size_t *count_out, struct wg_error *err);
bool wg__sysfs_exists(const char *root, const char *path);
/* Whether this process may write it, as far as can be told without writing: not a file without any
 * write bit, which root may open but the kernel does not let write. */
bool wg__sysfs_is_writable(const char *root, const char *path);

/* A path made of parts, in `arena`; NULL when memory has run out. */
const char *wg__sysfs_path(struct wg_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
