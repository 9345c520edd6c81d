/* SPDX-License-Identifier: MIT
 *
 * Writing result files whole or not at all.
 *
 *     target is ...              way
 *     nothing, a regular file    temporary file beside it -> fsync -> rename -> fsync of the folder
 *     /dev/stdout, /dev/fd/N     through that descriptor, so a shell's redirection keeps working
 *     a device, a pipe           opened and written in place
 *     a folder                   refused
 *
 * The temporary file stands in the target's folder, because a rename is atomic only within one file
 * system. It is made with O_EXCL under a name of our own instead of mkstemp, so that a new file
 * gets the permissions that the umask allows; one that replaces a file gets that file's. A symbolic
 * link stays: the file that it points to is replaced. A file without write permission is refused,
 * though a rename could replace it: somebody protected it on purpose.
 *
 * Owns: nothing; no heap.    Threads: any thread.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"

enum { NAME_TRIES = 100 };

/* Where the bytes go. */
struct target {
    char path[PATH_MAX];   /* with symbolic links resolved when the file exists */
    char folder[PATH_MAX]; /* the folder of path, "." for a bare name */
    bool exists;
    bool is_regular; /* or does not exist yet */
    int descriptor;  /* of /dev/stdout and its like; -1 otherwise */
    struct stat status;
};

/* The descriptor that a path names, or -1. Opening such a path again would begin at offset 0 of a
 * file that others write to, and a rename would pull the file from under them. */
static int named_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const size_t length = strlen(folders[i]);
        uint64_t number = 0;
        if (strncmp(path, folders[i], length) == 0 && wg__parse_uint64(path + length, &number) &&
            number <= INT_MAX)
            return (int)number;
    }
    return -1;
}

static void copy_folder(struct target *target)
{
    const char *slash = strrchr(target->path, '/');
    if (slash == NULL) {
        memcpy(target->folder, ".", 2);
        return;
    }
    const size_t length = slash == target->path ? 1 : (size_t)(slash - target->path);
    memcpy(target->folder, target->path, length);
    target->folder[length] = '\0';
}

/* Learns what stands at `path`; 0 or the errno that forbids to write there. */
static int look_at(struct target *target, const char *path)
{
    target->exists = stat(path, &target->status) == 0;
    if (!target->exists) {
        if (errno != ENOENT)
            return errno;
        return path[strlen(path) - 1] == '/' ? ENOENT : 0; /* the name of a folder */
    }
    target->is_regular = S_ISREG(target->status.st_mode);
    if (S_ISDIR(target->status.st_mode))
        return EISDIR;
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0)
        return errno;
    return target->is_regular && realpath(path, target->path) == NULL ? errno : 0;
}

static enum wg_code find_target(struct target *target, const char *path, struct wg_error *err)
{
    const size_t size = strlen(path) + 1;
    if (size == 1)
        return wg__fail(err, WG_EINVAL, "cannot write: the file name is empty");
    if (size > sizeof target->path)
        return wg__fail_errno(err, ENAMETOOLONG, "%.200s: cannot write", path);
    memcpy(target->path, path, size);
    target->is_regular = true;
    target->descriptor = named_descriptor(path);
    if (target->descriptor >= 0)
        return WG_OK;

    const int cause = look_at(target, path);
    if (cause != 0)
        return wg__fail_errno(err, cause, "%s: cannot write", path);
    copy_folder(target);
    return WG_OK;
}

/* Writes all bytes; 0 or the errno of the first failure. */
static int write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        const ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? errno : EIO;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

static enum wg_code write_in_place(const struct target *target, const char *bytes, size_t length,
                                   struct wg_error *err)
{
    if (target->descriptor >= 0) {
        const int cause = write_all(target->descriptor, bytes, length);
        return cause == 0 ? WG_OK : wg__fail_errno(err, cause, "%s: cannot write", target->path);
    }
    const int fd = open(target->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return wg__fail_errno(err, errno, "%s: cannot open", target->path);
    int cause = write_all(fd, bytes, length);
    if (close(fd) != 0 && cause == 0)
        cause = errno;
    return cause == 0 ? WG_OK : wg__fail_errno(err, cause, "%s: cannot write", target->path);
}

__attribute__((format(printf, 2, 3))) static bool make_path(char out[static PATH_MAX],
                                                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = wg__format(out, PATH_MAX, format, args);
    va_end(args);
    return length >= 0 && length < PATH_MAX;
}

/* Opens a new file beside the target; -1 with errno when that is not possible. */
static int open_temporary(const struct target *target, char path_out[static PATH_MAX])
{
    /* Private until it has the old file's permissions; a new file has no secret to keep. */
    const mode_t mode = target->exists ? 0600 : 0666;
    for (int i = 0; i < NAME_TRIES; i++) {
        if (!make_path(path_out, "%s/.wattgov-%ld-%llx", target->folder, (long)getpid(),
                       (unsigned long long)wg__clock_ns())) {
            errno = ENAMETOOLONG;
            return -1;
        }
        const int fd = open(path_out, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Gives the temporary file owner and permissions of the one that it replaces. The owner is best
 * effort: only root may give files away. The permissions come second, because chown clears bits. */
static int copy_owner_and_mode(int fd, const struct target *target)
{
    struct stat own;
    if (fstat(fd, &own) != 0)
        return errno;
    const bool is_other =
        own.st_uid != target->status.st_uid || own.st_gid != target->status.st_gid;
    if (is_other && fchown(fd, target->status.st_uid, target->status.st_gid) != 0 && errno != EPERM)
        return errno;
    return fchmod(fd, target->status.st_mode & 0777) == 0 ? 0 : errno;
}

/* Makes the rename itself last through a power cut. Some file systems cannot, and the new file
 * stands in any case, so this has no failure. */
static void flush_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    (void)close(fd);
}

/* Holds back the signals that people end programs with, until the temporary file is gone again;
 * only SIGKILL and a power cut can leave one behind. */
static void hold_signals(sigset_t *before)
{
    static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    sigset_t held;
    (void)sigemptyset(&held);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        (void)sigaddset(&held, ending[i]);
    (void)pthread_sigmask(SIG_BLOCK, &held, before); /* cannot fail with these arguments */
}

static enum wg_code replace(const struct target *target, const char *bytes, size_t length,
                            struct wg_error *err)
{
    char temporary[PATH_MAX];
    const int fd = open_temporary(target, temporary);
    if (fd < 0)
        return wg__fail_errno(err, errno, "%s: cannot create a file in its folder", target->path);
    int cause = target->exists ? copy_owner_and_mode(fd, target) : 0;
    if (cause == 0)
        cause = write_all(fd, bytes, length);
    if (cause == 0 && fsync(fd) != 0)
        cause = errno;
    if (close(fd) != 0 && cause == 0)
        cause = errno;
    if (cause == 0 && rename(temporary, target->path) != 0)
        cause = errno;
    if (cause != 0) {
        (void)unlink(temporary);
        return wg__fail_errno(err, cause, "%s: cannot write", target->path);
    }
    flush_folder(target->folder);
    return WG_OK;
}

/* Whether two targets that do not exist would be the same new file: its name in the same folder. */
static bool is_same_name(const struct target *a, const struct target *b)
{
    const char *slash_a = strrchr(a->path, '/'), *slash_b = strrchr(b->path, '/');
    struct stat folder_a, folder_b;
    return strcmp(slash_a != NULL ? slash_a + 1 : a->path,
                  slash_b != NULL ? slash_b + 1 : b->path) == 0 &&
           stat(a->folder, &folder_a) == 0 && stat(b->folder, &folder_b) == 0 &&
           folder_a.st_dev == folder_b.st_dev && folder_a.st_ino == folder_b.st_ino;
}

int wg__file_lock(int fd, long *holder_out)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    *holder_out = 0;
    if (fcntl(fd, F_SETLK, &lock) == 0)
        return 0;
    if (errno != EACCES && errno != EAGAIN)
        return errno;
    if (fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
        *holder_out = (long)lock.l_pid;
    return EBUSY;
}

bool wg__file_is_same(const char *path, const char *other)
{
    struct target a = {0}, b = {0};
    if (strcmp(path, other) == 0)
        return true;
    if (find_target(&a, path, NULL) != WG_OK || find_target(&b, other, NULL) != WG_OK)
        return false;
    if (a.descriptor >= 0 || b.descriptor >= 0)
        return a.descriptor == b.descriptor;
    if (a.exists != b.exists)
        return false;
    if (!a.exists)
        return is_same_name(&a, &b);
    return a.status.st_dev == b.status.st_dev && a.status.st_ino == b.status.st_ino;
}

enum wg_code wg__file_write(const char *path, const char *bytes, size_t length,
                            struct wg_error *err)
{
    struct target target = {0};
    const enum wg_code code = find_target(&target, path, err);
    if (code != WG_OK)
        return code;
    if (target.descriptor >= 0 || !target.is_regular)
        return write_in_place(&target, bytes, length, err);
    sigset_t before;
    hold_signals(&before);
    const enum wg_code replaced = replace(&target, bytes, length, err);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* one that came meanwhile is taken here */
    return replaced;
}

enum wg_code wg__file_check_writable(const char *path, struct wg_error *err)
{
    struct target target = {0};
    const enum wg_code code = find_target(&target, path, err);
    if (code != WG_OK)
        return code;
    if (target.descriptor >= 0) {
        const int flags = fcntl(target.descriptor, F_GETFL);
        if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY)
            return wg__fail_errno(err, EBADF, "%s: cannot write", path);
        return WG_OK;
    }
    if (target.is_regular && faccessat(AT_FDCWD, target.folder, W_OK | X_OK, AT_EACCESS) != 0)
        return wg__fail_errno(err, errno, "%s: cannot create a file in '%s'", path, target.folder);
    return WG_OK;
}
