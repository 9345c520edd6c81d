/* SPDX-License-Identifier: MIT
 *
 * A stream of the job on its way through us.
 *
 *     0            begin                       end           CHUNK
 *     | has gone on |  read, has not gone on yet |    room     |
 *
 *     while there is room              we wait until the job's end is readable
 *     while there is what did not go on we wait until the copy is writable
 *
 * Both may be at once: one read may end in the middle of a line, and the rest of that line has to
 * be seen whatever the copy's reader does.
 *
 * Owns: the descriptors.    Threads: one at a time.
 */
#include "live/progress_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "live/line_splitter.h"

enum {
    CHUNK = 65536,
    READS = 8,       /* of one stream, before the others have their turn */
    LAST_READS = 64, /* more than a pipe holds */
};

struct wg_progress_stream {
    struct wg_progress_source in, out; /* what epoll points to */
    struct wg_progress_feed *feed;
    struct wg_progress_matcher *matcher;
    int in_fd;  /* -1: the job has closed it */
    int out_fd; /* -1: no copy, or its reader has gone */
    int epoll_fd;
    bool is_socket;                   /* out_fd is one */
    bool out_waits;                   /* out_fd can be waited for; files cannot, and need not be */
    bool in_is_waited, out_is_waited; /* by epoll */
    size_t begin, end;                /* of what was read and has not gone on */
    struct wg_line_splitter lines;
    char line[WG_PROGRESS_TEXT_MAX];
    char chunk[CHUNK];
};

static void take_line(const char *line, size_t length, bool is_cut, void *context)
{
    struct wg_progress_stream *stream = context;
    (void)is_cut; /* what fitted is looked at */
    if (stream->matcher != NULL)
        wg__progress_matcher_line(stream->matcher, stream->feed, line, length);
}

static bool wait_for(struct wg_progress_stream *stream, int fd, uint32_t events,
                     struct wg_progress_source *source)
{
    struct epoll_event event = {.events = events, .data.ptr = source};
    return epoll_ctl(stream->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static void stop_waiting(struct wg_progress_stream *stream, int fd)
{
    (void)epoll_ctl(stream->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void close_copy(struct wg_progress_stream *stream)
{
    /* Closing does not take it out of the epoll instance: where it is a duplicate, the file lives
     * on, and would wake us for ever. */
    if (stream->out_is_waited)
        stop_waiting(stream, stream->out_fd);
    stream->out_is_waited = false;
    (void)close(stream->out_fd);
    stream->out_fd = -1;
    stream->begin = stream->end = 0;
}

static void close_job(struct wg_progress_stream *stream)
{
    if (stream->in_fd < 0)
        return;
    wg__lines_end(&stream->lines, take_line, stream);
    if (stream->in_is_waited)
        stop_waiting(stream, stream->in_fd);
    stream->in_is_waited = false;
    (void)close(stream->in_fd);
    stream->in_fd = -1;
}

/* Passes on what it can. */
static void write_on(struct wg_progress_stream *stream)
{
    while (stream->begin < stream->end && stream->out_fd >= 0) {
        const char *bytes = stream->chunk + stream->begin;
        const size_t length = stream->end - stream->begin;
        const ssize_t written =
            stream->is_socket ? send(stream->out_fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : write(stream->out_fd, bytes, length);
        if (written > 0)
            stream->begin += (size_t)written;
        else if (written == 0 || errno == EAGAIN)
            return;
        else if (errno != EINTR)
            close_copy(stream); /* its reader has gone, or its disk is full */
    }
    stream->begin = stream->end = 0;
}

static void settle(struct wg_progress_stream *stream)
{
    const bool has_rest = stream->begin < stream->end && stream->out_waits;
    if (stream->out_fd >= 0 && has_rest != stream->out_is_waited) {
        if (has_rest)
            (void)wait_for(stream, stream->out_fd, EPOLLOUT, &stream->out);
        else
            stop_waiting(stream, stream->out_fd);
        stream->out_is_waited = has_rest;
    }
    const bool has_room = stream->end < sizeof stream->chunk || !has_rest;
    if (stream->in_fd >= 0 && has_room != stream->in_is_waited) {
        if (has_room)
            (void)wait_for(stream, stream->in_fd, EPOLLIN, &stream->in);
        else
            stop_waiting(stream, stream->in_fd);
        stream->in_is_waited = has_room;
    }
}

/* Reads and passes on once. False: there is nothing to read now, or no room. */
static bool copy_once(struct wg_progress_stream *stream)
{
    if (stream->end == sizeof stream->chunk)
        write_on(stream);
    if (stream->in_fd < 0 || stream->end == sizeof stream->chunk)
        return false;
    char *bytes = stream->chunk + stream->end;
    const ssize_t got = read(stream->in_fd, bytes, sizeof stream->chunk - stream->end);
    if (got <= 0) {
        /* A terminal whose last user has gone answers EIO. */
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            close_job(stream);
        return false;
    }
    stream->end += (size_t)got;
    write_on(stream);
    wg__lines_split(&stream->lines, bytes, (size_t)got, take_line, stream);
    return true;
}

static void in_ready(struct wg_progress_source *source, uint32_t events)
{
    struct wg_progress_stream *stream = (struct wg_progress_stream *)source;
    (void)events;
    for (unsigned i = 0; i < READS && copy_once(stream); i++)
        ;
    settle(stream);
}

static void out_ready(struct wg_progress_source *source, uint32_t events)
{
    struct wg_progress_stream *stream =
        (struct wg_progress_stream *)((char *)source - offsetof(struct wg_progress_stream, out));
    (void)events;
    write_on(stream);
    settle(stream);
}

/* Our own descriptor of the copy, which never waits. A file or a device that can't be opened once
 * more (another user's terminal) is written to as it is. */
static void open_copy(struct wg_progress_stream *stream, int copy_fd)
{
    struct stat status;
    if (copy_fd < 0 || fstat(copy_fd, &status) != 0)
        return;
    stream->is_socket = S_ISSOCK(status.st_mode);
    if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
        char path[32];
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", copy_fd);
        stream->out_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    if (stream->out_fd < 0)
        stream->out_fd = fcntl(copy_fd, F_DUPFD_CLOEXEC, 3);
    if (stream->out_fd >= 0 && wait_for(stream, stream->out_fd, EPOLLOUT, &stream->out)) {
        stream->out_waits = true;
        stop_waiting(stream, stream->out_fd);
    }
}

enum wg_code wg__progress_stream_open(struct wg_progress_stream **out, int fd, int copy_fd,
                                      int epoll_fd, struct wg_progress_feed *feed,
                                      struct wg_progress_matcher *matcher, struct wg_error *err)
{
    struct wg_progress_stream *stream = wg__alloc(sizeof *stream);
    if (stream == NULL) {
        (void)close(fd);
        return wg__fail(err, WG_ENOMEM, "no memory for the output of the job");
    }
    *stream = (struct wg_progress_stream){.in.ready = in_ready,
                                          .out.ready = out_ready,
                                          .feed = feed,
                                          .matcher = matcher,
                                          .in_fd = fd,
                                          .out_fd = -1,
                                          .epoll_fd = epoll_fd};
    stream->lines.data = stream->line;
    stream->lines.capacity = sizeof stream->line;
    stream->lines.is_terminal = true;
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        !wait_for(stream, fd, EPOLLIN, &stream->in)) {
        const int error_number = errno;
        (void)close(fd);
        wg__free(stream);
        return wg__fail_errno(err, error_number, "cannot read the output of the job");
    }
    stream->in_is_waited = true;
    open_copy(stream, copy_fd);
    *out = stream;
    return WG_OK;
}

bool wg__progress_stream_is_copied(const struct wg_progress_stream *stream)
{
    if (stream->begin < stream->end)
        return false;
    /* Of a terminal poll also sees what is still on its way to us; FIONREAD does not. */
    struct pollfd waiting = {.fd = stream->in_fd, .events = POLLIN};
    return stream->in_fd < 0 || poll(&waiting, 1, 0) <= 0 || (waiting.revents & POLLIN) == 0;
}

void wg__progress_stream_close(struct wg_progress_stream *stream)
{
    if (stream == NULL)
        return;
    write_on(stream);
    for (unsigned i = 0; i < LAST_READS && copy_once(stream); i++)
        ;
    close_job(stream);
    if (stream->out_fd >= 0)
        (void)close(stream->out_fd);
    wg__free(stream);
}
