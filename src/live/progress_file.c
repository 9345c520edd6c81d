/* SPDX-License-Identifier: MIT
 *
 * The file to which the job appends lines of progress.
 *
 *     0           punched                       tail    offset         size
 *     |  a hole   |  read, not given back yet   |~~~~~~~|  not read yet |
 *
 * Each read takes the tail once more: when it differs from what we remember the file was rewritten,
 * and is read from its begin.
 *
 * Owns: the descriptors.    Threads: one at a time.
 */
#include "live/progress_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/runtime_dir.h"

static const uint64_t punch_bytes = 1 << 20; /* give back this much at once */
static const uint64_t block_bytes = 4096;
/* Further behind than this (we were stopped, or somebody writes nonsense) we read only the end. */
static const uint64_t behind_max = 16 << 20;
static const uint64_t behind_kept = 1 << 16;
static const long poll_ns = 100000000;

static void take_line(const char *line, size_t length, bool is_cut, void *context)
{
    wg__progress_feed_line(context, line, length, is_cut);
}

/* Tells wg_train_* that somebody listens. Where locks are not to be had they believe it anyway. */
static void lock(int fd)
{
    const struct flock all = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    (void)fcntl(fd, F_OFD_SETLK, &all);
}

static void watch(struct wg_progress_file *file)
{
    if (file->watch >= 0)
        (void)inotify_rm_watch(file->notify_fd, file->watch);
    file->watch = inotify_add_watch(file->notify_fd, file->path,
                                    IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF);
}

/* Inotify, or a timer where there is no more of it. */
static enum wg_code start_notify(struct wg_progress_file *file, struct wg_error *err)
{
    file->notify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (file->notify_fd >= 0) {
        watch(file);
        if (file->watch >= 0)
            return WG_OK;
        (void)close(file->notify_fd);
    }
    file->notify_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    const struct itimerspec every = {.it_interval.tv_nsec = poll_ns, .it_value.tv_nsec = poll_ns};
    if (file->notify_fd < 0 || timerfd_settime(file->notify_fd, 0, &every, NULL) != 0)
        return wg__fail_errno(err, errno, "cannot watch '%s'", file->path);
    return WG_OK;
}

static enum wg_code make_own(struct wg_progress_file *file, struct wg_error *err)
{
    /* A name that nobody has: the time makes a second one differ where the first is taken. */
    for (unsigned i = 0; i < 16; i++) {
        const int length =
            snprintf(file->path, sizeof file->path, "%s/wattgov-progress-%ld-%llx",
                     wg__runtime_dir(), (long)getpid(), (unsigned long long)wg__clock_ns());
        if (length < 0 || (size_t)length >= sizeof file->path)
            return wg__fail(err, WG_EINVAL, "the folder for temporary files has too long a name");
        file->fd = open(file->path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        file->is_own = file->can_punch = file->fd >= 0;
        if (file->fd >= 0)
            return WG_OK;
        if (errno != EEXIST)
            break;
    }
    return wg__fail_errno(err, errno, "cannot make the progress file '%s'", file->path);
}

static enum wg_code open_given(struct wg_progress_file *file, const char *path,
                               struct wg_error *err)
{
    const int length = snprintf(file->path, sizeof file->path, "%s", path);
    if (*path == '\0' || length < 0 || (size_t)length >= sizeof file->path)
        return wg__fail(err, WG_EINVAL, "the progress file's path is empty or too long");
    /* Not to wait for the other end of a FIFO. */
    file->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    struct stat status;
    if (file->fd < 0 || fstat(file->fd, &status) != 0)
        return wg__fail_errno(err, errno, "cannot open the progress file '%s'", path);
    if (!S_ISREG(status.st_mode))
        return wg__fail(err, WG_EINVAL, "the progress file '%s' is no regular file", path);
    file->offset = (uint64_t)status.st_size;
    const uint64_t from = file->offset > WG_PROGRESS_TAIL ? file->offset - WG_PROGRESS_TAIL : 0;
    const ssize_t got = pread(file->fd, file->tail, (size_t)(file->offset - from), (off_t)from);
    file->tail_length = got > 0 && (uint64_t)got == file->offset - from ? (size_t)got : 0;
    return WG_OK;
}

enum wg_code wg__progress_file_open(struct wg_progress_file *file, const char *path,
                                    struct wg_error *err)
{
    *file = (struct wg_progress_file){.fd = -1, .notify_fd = -1, .watch = -1};
    file->lines.data = file->line;
    file->lines.capacity = sizeof file->line;
    enum wg_code code = path == NULL ? make_own(file, err) : open_given(file, path, err);
    if (code == WG_OK) {
        lock(file->fd);
        code = start_notify(file, err);
    }
    if (code != WG_OK)
        wg__progress_file_close(file, NULL);
    return code;
}

static void begin_anew(struct wg_progress_file *file, struct wg_progress_feed *feed)
{
    wg__lines_end(&file->lines, take_line, feed); /* what has no line end will get none */
    file->offset = file->punched = 0;
    file->tail_length = 0;
}

static void give_back(struct wg_progress_file *file)
{
    const uint64_t kept = file->offset > WG_PROGRESS_TAIL ? file->offset - WG_PROGRESS_TAIL : 0;
    const uint64_t end = kept / block_bytes * block_bytes;
    if (!file->can_punch || end < file->punched + punch_bytes)
        return;
    if (fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)file->punched,
                  (off_t)(end - file->punched)) == 0)
        file->punched = end;
    else
        file->can_punch = false;
}

/* When the path names another file by now, or none: that one is read from now on. */
static void follow_path(struct wg_progress_file *file, struct wg_progress_feed *feed)
{
    struct stat ours, theirs;
    if (fstat(file->fd, &ours) != 0)
        return;
    if (stat(file->path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
        ours.st_ino == theirs.st_ino)
        return;
    /* In /tmp others may have put something there: it has to be ours, and no link. */
    const int follow = file->is_own ? O_NOFOLLOW : 0;
    const int fd = open(
        file->path, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | follow, 0600);
    if (fd < 0)
        return;
    if (fstat(fd, &theirs) != 0 || !S_ISREG(theirs.st_mode) ||
        (file->is_own && theirs.st_uid != geteuid())) {
        (void)close(fd);
        return;
    }
    begin_anew(file, feed);
    (void)close(file->fd);
    file->fd = fd;
    lock(fd);
    if (file->watch >= 0)
        watch(file);
}

/* Reads the tail once more and what is behind it; the new bytes stand at chunk + tail_length. -1:
 * the file was rewritten; 0: nothing new. */
static ssize_t read_chunk(struct wg_progress_file *file, size_t most)
{
    const ssize_t got = pread(file->fd, file->chunk, file->tail_length + most,
                              (off_t)(file->offset - file->tail_length));
    if (got < 0)
        return 0;
    if ((size_t)got < file->tail_length || memcmp(file->chunk, file->tail, file->tail_length) != 0)
        return -1;
    return got - (ssize_t)file->tail_length;
}

static void take_chunk(struct wg_progress_file *file, struct wg_progress_feed *feed, size_t length)
{
    const size_t total = file->tail_length + length;
    const char *bytes = file->chunk + file->tail_length;
    file->tail_length = total < WG_PROGRESS_TAIL ? total : WG_PROGRESS_TAIL;
    memcpy(file->tail, file->chunk + total - file->tail_length, file->tail_length);
    file->offset += length;
    wg__lines_split(&file->lines, bytes, length, take_line, feed);
}

static void catch_up(struct wg_progress_file *file)
{
    struct stat status;
    if (fstat(file->fd, &status) != 0 || status.st_size < 0)
        return;
    const uint64_t size = (uint64_t)status.st_size;
    if (size <= file->offset || size - file->offset <= behind_max)
        return;
    file->offset = size - behind_kept;
    file->tail_length = 0;
    file->lines.length = 0;
    file->lines.is_skipping = true;
}

bool wg__progress_file_read(struct wg_progress_file *file, struct wg_progress_feed *feed,
                            size_t budget)
{
    char events[4096];
    while (read(file->notify_fd, events, sizeof events) > 0)
        ;
    catch_up(file);
    size_t done = 0;
    bool has_restarted = false;
    while (done < budget) {
        const size_t left = budget - done;
        const ssize_t got = read_chunk(file, left < WG_PROGRESS_CHUNK ? left : WG_PROGRESS_CHUNK);
        if (got < 0 && !has_restarted) {
            has_restarted = true;
            begin_anew(file, feed);
            continue;
        }
        if (got <= 0)
            break;
        take_chunk(file, feed, (size_t)got);
        done += (size_t)got;
    }
    give_back(file);
    if (done >= budget)
        return true;
    follow_path(file, feed);
    return false;
}

void wg__progress_file_close(struct wg_progress_file *file, struct wg_progress_feed *feed)
{
    if (feed != NULL)
        wg__lines_end(&file->lines, take_line, feed);
    if (file->is_own)
        (void)unlink(file->path);
    if (file->fd >= 0)
        (void)close(file->fd);
    if (file->notify_fd >= 0)
        (void)close(file->notify_fd);
    file->fd = file->notify_fd = -1;
    file->is_own = false;
}
