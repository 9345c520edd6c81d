/* SPDX-License-Identifier: MIT
 *
 * The way from a training process to its governor.
 *
 * A process may have a limit on the size of files (ulimit -f), and beyond it a write ends it by
 * SIGXFSZ. The progress file counts although it is mostly holes, so its size is looked at before.
 *
 * Owns: the descriptor.    Threads: one at a time.
 */
#include "report/train_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const uint64_t look_ns = 1000000000U;

static void close_fd(struct wg_train_link *link)
{
    if (link->fd >= 0)
        (void)close(link->fd);
    link->fd = -1;
    link->rest_length = 0;
}

/* Somebody holds a lock on the file, or cannot be asked. */
static bool is_locked(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static bool is_removed(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_nlink == 0;
}

/* False with errno. A file that is not there is not made: the governor makes it. */
static bool open_file(struct wg_train_link *link)
{
    link->fd = open(link->path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (link->fd < 0)
        return false;
    link->is_listened = is_locked(link->fd);
    return true;
}

static bool open_socket(struct wg_train_link *link)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(link->path);
    if (length >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(address.sun_path, link->path, length + 1);
    link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->fd < 0)
        return false;
    link->is_listened = connect(link->fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (link->is_listened)
        return true;
    const int error_number = errno;
    close_fd(link);
    errno = error_number;
    return false;
}

static bool open_path(struct wg_train_link *link)
{
    struct stat status;
    if (stat(link->path, &status) != 0)
        return false;
    link->is_socket = S_ISSOCK(status.st_mode);
    if (link->is_socket)
        return open_socket(link);
    if (!S_ISREG(status.st_mode)) {
        errno = EINVAL; /* a FIFO's write may block or raise SIGPIPE */
        return false;
    }
    return open_file(link);
}

enum wg_code wg__train_link_open(struct wg_train_link *link, const char *path, uint64_t now_ns,
                                 struct wg_error *err)
{
    *link = (struct wg_train_link){.fd = -1, .looked_ns = now_ns};
    const int length = snprintf(link->path, sizeof link->path, "%s", path);
    if (length < 0 || (size_t)length >= sizeof link->path) {
        link->path[0] = '\0';
        return wg__fail(err, WG_EIO, "cannot tell progress: the path has %d bytes", length);
    }
    if (open_path(link) || errno == EAGAIN) /* many ranks connect at once: again in a second */
        return WG_OK;
    if (errno == EINVAL)
        return wg__fail(err, WG_EIO,
                        "cannot tell progress to '%s': it is neither a file nor a socket", path);
    return wg__fail_errno(err, errno, "cannot tell progress to '%s'", path);
}

/* Whether the file may grow by `length` bytes. */
static bool may_grow(int fd, size_t length)
{
    struct rlimit limit;
    struct stat status;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return true;
    return fstat(fd, &status) == 0 && status.st_size >= 0 &&
           (rlim_t)status.st_size + length <= limit.rlim_cur;
}

/* What went out: all, a part, or 0. */
static size_t put(struct wg_train_link *link, const char *bytes, size_t length)
{
    while (link->fd >= 0) {
        const ssize_t written = link->is_socket
                                    ? send(link->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL)
                                    : write(link->fd, bytes, length);
        if (written >= 0)
            return (size_t)written;
        if (errno == EINTR)
            continue;
        if (link->is_socket && errno != EAGAIN) {
            close_fd(link);
            link->is_listened = false;
        }
        return 0;
    }
    return 0;
}

static bool put_rest(struct wg_train_link *link)
{
    if (link->rest_length == 0)
        return true;
    const size_t written = put(link, link->rest, link->rest_length);
    if (link->fd < 0)
        return false;
    if (written >= link->rest_length) {
        link->rest_length = 0;
        return true;
    }
    memmove(link->rest, link->rest + written, link->rest_length - written);
    link->rest_length -= written;
    return false;
}

/* Whether somebody listens; looked for once a second. */
static bool is_listened(struct wg_train_link *link, uint64_t now_ns)
{
    if (link->path[0] == '\0')
        return false;
    if (now_ns - link->looked_ns < look_ns)
        return link->is_listened;
    link->looked_ns = now_ns;
    if (link->fd >= 0 && link->is_socket)
        return link->is_listened; /* a write tells */
    if (link->fd >= 0 && is_removed(link->fd))
        close_fd(link); /* the governor has ended, or has made another */
    if (link->fd < 0)
        link->is_listened = open_path(link) && link->is_listened;
    else
        link->is_listened = is_locked(link->fd);
    return link->is_listened;
}

bool wg__train_link_write(struct wg_train_link *link, const char *lines, size_t length,
                          uint64_t now_ns)
{
    if (!is_listened(link, now_ns) || link->fd < 0)
        return false;
    if (!link->is_socket && !may_grow(link->fd, length + link->rest_length))
        return false;
    if (!put_rest(link))
        return false;
    const size_t written = put(link, lines, length);
    if (written == 0)
        return false;
    if (written < length && length - written <= sizeof link->rest) {
        link->rest_length = length - written;
        memcpy(link->rest, lines + written, link->rest_length);
    }
    return true;
}

bool wg__train_link_has_listener(const struct wg_train_link *link)
{
    if (link->fd < 0 || link->is_socket)
        return link->fd >= 0 && link->is_listened;
    return !is_removed(link->fd) && is_locked(link->fd);
}

void wg__train_link_close(struct wg_train_link *link)
{
    close_fd(link);
    link->is_listened = false;
    link->path[0] = '\0';
}
