/* SPDX-License-Identifier: MIT
 *
 * Small files of the kernel: text and numbers below /sys, /proc and /dev.
 *
 * A file there is not stored anywhere: each read from offset 0 asks the driver anew. So a file that
 * is read at each tick stays open and one pread does the work of open, read and close. When its
 * device goes away the file stays open but answers ENODEV, which is told apart from a number that
 * could not be had.
 *
 * Nothing here allocates but the listing of a folder and `wg__sysfs_path`, which take an arena.
 *
 * Owns: nothing but open descriptors.    Threads: any thread, one at a time per file.
 */
#include "device/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"

enum {
    NUMBER_MAX = 64,     /* the longest text of a number */
    NAMES_MAX = 1 << 16, /* of a folder: a server with all its virtual functions has thousands */
};

/* root + path in `out`; false when it does not fit. */
static bool join(char out[static WG_SYSFS_PATH_MAX], const char *root, const char *path)
{
    const int length = snprintf(out, WG_SYSFS_PATH_MAX, "%s%s", root, path);
    return length >= 0 && length < WG_SYSFS_PATH_MAX;
}

static enum wg_code fail_long(const char *path, struct wg_error *err)
{
    return wg__fail(err, WG_EINVAL, "%s: with its root the path is longer than %d bytes", path,
                    WG_SYSFS_PATH_MAX - 1);
}

static enum wg_code fail_read(int error_number, const char *path, struct wg_error *err)
{
    switch (error_number) {
    case ENODEV:
    case EOPNOTSUPP:
    case EAGAIN:
    case ENODATA:
        (void)wg__fail_errno(err, error_number, "reading %s", path);
        if (err != NULL)
            err->code = WG_EUNSUPPORTED;
        return WG_EUNSUPPORTED;
    default:
        return wg__fail_errno(err, error_number, "reading %s", path);
    }
}

/* -- Open files -------------------------------------------------------------------------------- */

enum wg_code wg__sysfs_open(struct wg_sysfs_file *file, const char *root, const char *path,
                            struct wg_error *err)
{
    *file = (struct wg_sysfs_file){.fd = -1, .path = path};
    char full[WG_SYSFS_PATH_MAX];
    if (!join(full, root, path))
        return fail_long(path, err);
    file->fd = open(full, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (file->fd < 0)
        return wg__fail_errno(err, errno, "opening %s", path);
    return WG_OK;
}

void wg__sysfs_close(struct wg_sysfs_file *file)
{
    if (file == NULL || file->fd < 0)
        return;
    (void)close(file->fd);
    file->fd = -1;
}

enum wg_code wg__sysfs_read_bytes(const struct wg_sysfs_file *file, void *out, size_t size,
                                  size_t *length_out, struct wg_error *err)
{
    if (file->fd < 0)
        return wg__fail(err, WG_ESTATE, "reading %s: it is not open", file->path);
    size_t length = 0;
    while (length < size) {
        const ssize_t got =
            pread(file->fd, (unsigned char *)out + length, size - length, (off_t)length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_read(errno, file->path, err);
        if (got == 0)
            break;
        length += (size_t)got;
    }
    *length_out = length;
    return WG_OK;
}

enum wg_code wg__sysfs_read_text(const struct wg_sysfs_file *file, char *out, size_t size,
                                 struct wg_error *err)
{
    size_t length = 0;
    const enum wg_code code = wg__sysfs_read_bytes(file, out, size, &length, err);
    if (code != WG_OK)
        return code;
    if (length == size) /* no room for the zero: there may be more */
        return wg__fail(err, WG_EDATA, "%s: longer than %zu bytes", file->path, size - 1);
    if (length > 0 && out[length - 1] == '\n')
        length--;
    out[length] = '\0';
    return WG_OK;
}

/* Files of one number may pad it with blanks. */
static enum wg_code read_number(const struct wg_sysfs_file *file, char out[static NUMBER_MAX],
                                struct wg_error *err)
{
    const enum wg_code code = wg__sysfs_read_text(file, out, NUMBER_MAX, err);
    if (code != WG_OK)
        return code;
    size_t end = strlen(out);
    while (end > 0 && (out[end - 1] == ' ' || out[end - 1] == '\n'))
        end--;
    out[end] = '\0';
    return WG_OK;
}

enum wg_code wg__sysfs_read_uint(const struct wg_sysfs_file *file, uint64_t *out,
                                 struct wg_error *err)
{
    char text[NUMBER_MAX];
    const enum wg_code code = read_number(file, text, err);
    if (code != WG_OK)
        return code;
    if (!wg__parse_uint64(text, out))
        return wg__fail(err, WG_EDATA, "%s: '%s' is no whole number from 0 to 2^64 - 1", file->path,
                        text);
    return WG_OK;
}

enum wg_code wg__sysfs_read_int(const struct wg_sysfs_file *file, int64_t *out,
                                struct wg_error *err)
{
    char text[NUMBER_MAX];
    const enum wg_code code = read_number(file, text, err);
    if (code != WG_OK)
        return code;
    const bool is_negative = text[0] == '-';
    uint64_t size = 0;
    if (!wg__parse_uint64(text + is_negative, &size) ||
        size > (uint64_t)INT64_MAX + (is_negative ? 1u : 0u))
        return wg__fail(err, WG_EDATA, "%s: '%s' is no whole number of 64 bits", file->path, text);
    /* -(2^63) has no positive twin: negate below it. */
    *out = !is_negative || size == 0 ? (int64_t)size : -(int64_t)(size - 1) - 1;
    return WG_OK;
}

/* -- Files that are read once ------------------------------------------------------------------ */

enum wg_code wg__sysfs_text(const char *root, const char *path, char *out, size_t size,
                            struct wg_error *err)
{
    struct wg_sysfs_file file;
    enum wg_code code = wg__sysfs_open(&file, root, path, err);
    if (code != WG_OK)
        return code;
    code = wg__sysfs_read_text(&file, out, size, err);
    wg__sysfs_close(&file);
    return code;
}

enum wg_code wg__sysfs_uint(const char *root, const char *path, uint64_t *out, struct wg_error *err)
{
    struct wg_sysfs_file file;
    enum wg_code code = wg__sysfs_open(&file, root, path, err);
    if (code != WG_OK)
        return code;
    code = wg__sysfs_read_uint(&file, out, err);
    wg__sysfs_close(&file);
    return code;
}

/* The kernel's files ignore O_TRUNC; in a fake tree the new number must not end with digits of the
 * old one. */
enum wg_code wg__sysfs_write(const char *root, const char *path, const char *text,
                             struct wg_error *err)
{
    char full[WG_SYSFS_PATH_MAX];
    if (!join(full, root, path))
        return fail_long(path, err);
    const int fd = open(full, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return wg__fail_errno(err, errno, "opening %s to write '%s'", path, text);
    const size_t length = strlen(text);
    ssize_t written = 0;
    do {
        written = write(fd, text, length);
    } while (written < 0 && errno == EINTR);
    const int error_number = errno;
    (void)close(fd);
    if (written == (ssize_t)length)
        return WG_OK;
    if (written >= 0)
        return wg__fail(err, WG_EIO, "writing '%s' to %s: only %zd bytes were taken", text, path,
                        written);
    if (error_number == ENODEV || error_number == EOPNOTSUPP) {
        (void)wg__fail_errno(err, error_number, "writing '%s' to %s", text, path);
        if (err != NULL)
            err->code = WG_EUNSUPPORTED;
        return WG_EUNSUPPORTED;
    }
    return wg__fail_errno(err, error_number, "writing '%s' to %s", text, path);
}

/* -- Folders ----------------------------------------------------------------------------------- */

static int compare_names(const void *left, const void *right)
{
    return strverscmp(*(const char *const *)left, *(const char *const *)right);
}

/* The next entry that is wanted; NULL at the end or with errno set. */
static const char *next_name(DIR *stream, const char *prefix)
{
    const size_t length = strlen(prefix);
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == NULL)
            return NULL;
        if (entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, length) == 0)
            return entry->d_name;
    }
}

/* Copies the names, at most as many as were counted: a folder may change meanwhile. */
static enum wg_code copy_names(DIR *stream, const char *prefix, struct wg_arena *arena,
                               const char *const **names_out, size_t *count_out)
{
    size_t room = 0;
    while (next_name(stream, prefix) != NULL)
        room++;
    if (room > NAMES_MAX)
        return WG_EDATA;
    rewinddir(stream);
    const char **names = wg__arena_alloc(arena, room, sizeof *names);
    if (names == NULL)
        return WG_ENOMEM;
    size_t count = 0;
    const char *name = NULL;
    while (count < room && (name = next_name(stream, prefix)) != NULL) {
        names[count] = wg__arena_strdup(arena, name);
        if (names[count] == NULL)
            return WG_ENOMEM;
        count++;
    }
    qsort(names, count, sizeof *names, compare_names);
    *names_out = names;
    *count_out = count;
    return WG_OK;
}

enum wg_code wg__sysfs_list(const char *root, const char *folder, const char *prefix,
                            struct wg_arena *arena, const char *const **names_out,
                            size_t *count_out, struct wg_error *err)
{
    char full[WG_SYSFS_PATH_MAX];
    if (!join(full, root, folder))
        return fail_long(folder, err);
    DIR *stream = opendir(full);
    if (stream == NULL) {
        if (errno != ENOENT)
            return wg__fail_errno(err, errno, "listing %s", folder);
        *names_out = NULL;
        *count_out = 0;
        return WG_OK;
    }
    const enum wg_code code = copy_names(stream, prefix, arena, names_out, count_out);
    (void)closedir(stream);
    if (code == WG_EDATA)
        return wg__fail(err, code, "listing %s: more than %d entries", folder, NAMES_MAX);
    if (code != WG_OK)
        return wg__fail(err, code, "listing %s: out of memory", folder);
    return WG_OK;
}

bool wg__sysfs_exists(const char *root, const char *path)
{
    char full[WG_SYSFS_PATH_MAX];
    return join(full, root, path) && access(full, F_OK) == 0;
}

bool wg__sysfs_is_writable(const char *root, const char *path)
{
    char full[WG_SYSFS_PATH_MAX];
    struct stat status;
    return join(full, root, path) && stat(full, &status) == 0 && S_ISREG(status.st_mode) &&
           (status.st_mode & 0222) != 0 && faccessat(AT_FDCWD, full, W_OK, AT_EACCESS) == 0;
}

const char *wg__sysfs_path(struct wg_arena *arena, const char *format, ...)
{
    char text[WG_SYSFS_PATH_MAX];
    va_list args;
    va_start(args, format);
    const int length = wg__format(text, sizeof text, format, args);
    va_end(args);
    /* One that is cut would name another file: an empty path names none. */
    if (length < 0 || (size_t)length >= sizeof text)
        text[0] = '\0';
    return wg__arena_strdup(arena, text);
}
