/* SPDX-License-Identifier: MIT
 *
 * How far a training process has come: one epoll instance over the file or the socket, and the
 * streams.
 *
 *     file, or socket and clients --lines---+
 *                                            +--> feed (ranks, moments) --> sink
 *     streams --copy, lines--> expressions --+
 *
 * Each pump reads a bounded number of bytes, so a job that floods us cannot keep us; what is left
 * keeps the descriptor readable.
 *
 * Owns: all of it.    Threads: one at a time.
 */
#include "live/progress.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "live/progress_feed.h"
#include "live/progress_file.h"
#include "live/progress_match.h"
#include "live/progress_socket.h"
#include "live/progress_stream.h"

enum {
    STREAMS_MAX = 16,
    BUDGET = 1 << 20, /* bytes of the file in one pump */
    LAST_BUDGET = 64 << 20,
    ROUNDS = 8,
    READY = 64,
};

struct wg_progress {
    struct wg_progress_source file_source; /* the file's notifications: every pump looks anyway */
    struct wg_progress_source more_source;
    int epoll_fd;
    int more_fd; /* readable when a pump has left something in the file */
    struct wg_progress_feed feed;
    struct wg_progress_matcher *matcher; /* NULL: no expressions */
    struct wg_progress_socket *socket;   /* NULL: a file */
    struct wg_progress_stream *streams[STREAMS_MAX];
    size_t stream_count;
    struct wg_progress_file file;
};

static void ignore(struct wg_progress_source *source, uint32_t events)
{
    (void)source;
    (void)events;
}

static bool wait_for(struct wg_progress *progress, int fd, struct wg_progress_source *source)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    return epoll_ctl(progress->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static enum wg_code open_parts(struct wg_progress *progress, const struct wg_progress_opts *opts,
                               struct wg_error *err)
{
    progress->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    progress->more_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (progress->epoll_fd < 0 || progress->more_fd < 0 ||
        !wait_for(progress, progress->more_fd, &progress->more_source))
        return wg__fail_errno(err, errno, "cannot wait for progress");
    if (opts->step_regex != NULL || opts->epoch_regex != NULL || opts->metric_regex != NULL) {
        const enum wg_code code = wg__progress_matcher_new(
            &progress->matcher, opts->step_regex, opts->epoch_regex, opts->metric_regex, err);
        if (code != WG_OK)
            return code;
    }
    if (opts->is_socket)
        return wg__progress_socket_open(&progress->socket, opts->path, progress->epoll_fd,
                                        &progress->feed, err);
    const enum wg_code code = wg__progress_file_open(&progress->file, opts->path, err);
    if (code == WG_OK && !wait_for(progress, progress->file.notify_fd, &progress->file_source))
        return wg__fail_errno(err, errno, "cannot wait for progress");
    return code;
}

enum wg_code wg__progress_open(struct wg_progress **out, const struct wg_progress_opts *opts,
                               struct wg_error *err)
{
    struct wg_progress *progress = wg__alloc_zeroed(1, sizeof *progress);
    if (progress == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for the job's progress");
    progress->file_source.ready = ignore;
    progress->more_source.ready = ignore;
    progress->epoll_fd = progress->more_fd = -1;
    progress->file.fd = progress->file.notify_fd = -1;
    wg__progress_feed_init(&progress->feed, opts->sink, opts->context, wg__clock_ns());
    const enum wg_code code = open_parts(progress, opts, err);
    if (code != WG_OK) {
        wg__progress_close(progress);
        return code;
    }
    *out = progress;
    return WG_OK;
}

const char *wg__progress_path(const struct wg_progress *progress)
{
    return progress->socket != NULL ? wg__progress_socket_path(progress->socket)
                                    : progress->file.path;
}

int wg__progress_fd(const struct wg_progress *progress)
{
    return progress->epoll_fd;
}

static void read_file(struct wg_progress *progress)
{
    if (progress->file.fd < 0)
        return;
    uint64_t count = 0;
    (void)!read(progress->more_fd, &count, sizeof count);
    count = 1;
    if (wg__progress_file_read(&progress->file, &progress->feed, BUDGET))
        (void)!write(progress->more_fd, &count, sizeof count);
}

size_t wg__progress_pump(struct wg_progress *progress)
{
    const size_t before = progress->feed.event_count;
    progress->feed.now_ns = wg__clock_ns();
    read_file(progress);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct epoll_event ready[READY];
        const int count = epoll_wait(progress->epoll_fd, ready, READY, 0);
        progress->feed.now_ns = wg__clock_ns();
        for (int i = 0; i < count; i++) {
            struct wg_progress_source *source = ready[i].data.ptr;
            source->ready(source, ready[i].events);
        }
        if (count < READY)
            break;
    }
    return progress->feed.event_count - before;
}

enum wg_code wg__progress_add_stream(struct wg_progress *progress, int fd, int copy_fd,
                                     struct wg_error *err)
{
    if (progress->stream_count == STREAMS_MAX) {
        (void)close(fd);
        return wg__fail(err, WG_ESTATE, "a job has at most %d streams", STREAMS_MAX);
    }
    const enum wg_code code =
        wg__progress_stream_open(&progress->streams[progress->stream_count], fd, copy_fd,
                                 progress->epoll_fd, &progress->feed, progress->matcher, err);
    if (code == WG_OK)
        progress->stream_count++;
    return code;
}

bool wg__progress_is_copied(const struct wg_progress *progress)
{
    for (size_t i = 0; i < progress->stream_count; i++) {
        if (!wg__progress_stream_is_copied(progress->streams[i]))
            return false;
    }
    return true;
}

unsigned wg__progress_ranks(const struct wg_progress *progress)
{
    const struct wg_progress_feed *feed = &progress->feed;
    size_t most = 0;
    for (size_t i = 0; i < WG_PROGRESS_COUNTED; i++) {
        most = feed->told[i].count > most ? feed->told[i].count : most;
        most = feed->printed[i].count > most ? feed->printed[i].count : most;
    }
    return (unsigned)most;
}

size_t wg__progress_rejected(const struct wg_progress *progress, const char **last_out)
{
    if (last_out != NULL)
        *last_out = progress->feed.rejected;
    return progress->feed.rejected_count;
}

void wg__progress_close(struct wg_progress *progress)
{
    if (progress == NULL)
        return;
    progress->feed.now_ns = wg__clock_ns();
    for (size_t i = 0; i < progress->stream_count; i++)
        wg__progress_stream_close(progress->streams[i]);
    wg__progress_socket_close(progress->socket);
    if (progress->file.fd >= 0)
        (void)wg__progress_file_read(&progress->file, &progress->feed, LAST_BUDGET);
    wg__progress_file_close(&progress->file, &progress->feed);
    wg__progress_matcher_free(progress->matcher);
    wg__progress_feed_fini(&progress->feed);
    if (progress->more_fd >= 0)
        (void)close(progress->more_fd);
    if (progress->epoll_fd >= 0)
        (void)close(progress->epoll_fd);
    wg__free(progress);
}
