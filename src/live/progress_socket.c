/* SPDX-License-Identifier: MIT
 *
 * The Unix stream socket of the progress.
 *
 * When there is no descriptor left for a client that waits, a level-triggered epoll would wake us
 * without end. So we keep one in reserve: it is closed, the client is accepted and closed, which
 * tells it that nobody listens, and the reserve is opened anew.
 *
 * Owns: the socket, its file, and the clients' descriptors.    Threads: one at a time.
 */
#include "live/progress_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/runtime_dir.h"
#include "live/line_splitter.h"
#include "live/progress_line.h"

enum { BACKLOG = 1024, CHUNK = 16384, ACCEPTS = 64, LAST_READS = 64 };

struct client {
    struct wg_progress_source source;
    struct wg_progress_socket *socket;
    struct client *next, *before;
    int fd;
    struct wg_line_splitter lines;
    char line[WG_PROGRESS_LINE_MAX + 2];
};

struct wg_progress_socket {
    struct wg_progress_source source;
    struct wg_progress_feed *feed;
    int fd, epoll_fd, reserve_fd;
    bool is_bound;
    bool has_folder; /* of its own */
    struct client *clients;
    size_t client_count;
    struct sockaddr_un address;
};

static void take_line(const char *line, size_t length, bool is_cut, void *context)
{
    wg__progress_feed_line(context, line, length, is_cut);
}

static void drop(struct client *client)
{
    struct wg_progress_socket *socket = client->socket;
    wg__lines_end(&client->lines, take_line, socket->feed);
    (void)close(client->fd); /* which takes it out of the epoll instance */
    if (client->before != NULL)
        client->before->next = client->next;
    else
        socket->clients = client->next;
    if (client->next != NULL)
        client->next->before = client->before;
    socket->client_count--;
    wg__free(client);
}

/* Reads once; false: it has ended. */
static bool read_client(struct client *client, bool *more_out)
{
    char chunk[CHUNK];
    const ssize_t got = recv(client->fd, chunk, sizeof chunk, MSG_DONTWAIT);
    *more_out = got == (ssize_t)sizeof chunk;
    if (got > 0)
        wg__lines_split(&client->lines, chunk, (size_t)got, take_line, client->socket->feed);
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static void client_ready(struct wg_progress_source *source, uint32_t events)
{
    struct client *client = (struct client *)source;
    (void)events;
    bool more = false;
    if (!read_client(client, &more))
        drop(client);
}

static void add_client(struct wg_progress_socket *socket, int fd)
{
    struct client *client =
        socket->client_count < WG_PROGRESS_CLIENTS_MAX ? wg__alloc(sizeof *client) : NULL;
    if (client == NULL) {
        (void)close(fd);
        return;
    }
    *client = (struct client){
        .source.ready = client_ready, .socket = socket, .next = socket->clients, .fd = fd};
    client->lines.data = client->line;
    client->lines.capacity = sizeof client->line;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = &client->source};
    if (epoll_ctl(socket->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        (void)close(fd);
        wg__free(client);
        return;
    }
    if (socket->clients != NULL)
        socket->clients->before = client;
    socket->clients = client;
    socket->client_count++;
}

static int open_reserve(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* There is no descriptor for the client that waits. */
static void turn_away(struct wg_progress_socket *socket)
{
    if (socket->reserve_fd >= 0)
        (void)close(socket->reserve_fd);
    const int fd = accept4(socket->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        (void)close(fd);
    socket->reserve_fd = open_reserve();
}

static void socket_ready(struct wg_progress_source *source, uint32_t events)
{
    struct wg_progress_socket *socket = (struct wg_progress_socket *)source;
    (void)events;
    for (unsigned i = 0; i < ACCEPTS; i++) {
        const int fd = accept4(socket->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            add_client(socket, fd);
        } else if (errno == EMFILE || errno == ENFILE) {
            turn_away(socket);
        } else if (errno != EINTR && errno != ECONNABORTED) {
            return;
        }
    }
}

/* Whether the socket's file is left over: nobody listens behind it. */
static bool is_left_over(const struct sockaddr_un *address)
{
    struct stat status;
    if (lstat(address->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode))
        return false;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    const bool is_refused = connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                            errno == ECONNREFUSED;
    (void)close(fd);
    return is_refused;
}

static enum wg_code choose_path(struct wg_progress_socket *socket, const char *path,
                                struct wg_error *err)
{
    char *own = socket->address.sun_path;
    const size_t room = sizeof socket->address.sun_path;
    socket->address.sun_family = AF_UNIX;
    if (path != NULL) {
        const size_t length = strlen(path);
        if (length == 0 || length >= room)
            return wg__fail(err, WG_EINVAL,
                            "the progress socket's path has %zu bytes; it may have 1 to %zu",
                            length, room - 1);
        memcpy(own, path, length + 1);
        return WG_OK;
    }
    static const char name[] = "/wattgov-progress-XXXXXX", end[] = "/socket";
    const char *folder = wg__runtime_dir();
    /* A socket's path is short; that of a folder need not be. */
    if (strlen(folder) + sizeof name + sizeof end > room)
        folder = "/tmp";
    const int length = snprintf(own, room, "%s%s", folder, name);
    if (mkdtemp(own) == NULL)
        return wg__fail_errno(err, errno, "cannot make the folder '%s'", own);
    socket->has_folder = true;
    (void)snprintf(own + length, room - (size_t)length, "%s", end);
    return WG_OK;
}

static enum wg_code bind_path(struct wg_progress_socket *socket, int error_number,
                              struct wg_error *err)
{
    const struct sockaddr *address = (const struct sockaddr *)&socket->address;
    const char *path = socket->address.sun_path;
    if (socket->fd < 0)
        return wg__fail_errno(err, error_number, "cannot make the progress socket");
    int failed = bind(socket->fd, address, sizeof socket->address);
    if (failed != 0 && errno == EADDRINUSE) {
        if (!is_left_over(&socket->address))
            return wg__fail(err, WG_EBUSY,
                            "'%s' exists already; the progress socket needs a new "
                            "path",
                            path);
        (void)unlink(path);
        failed = bind(socket->fd, address, sizeof socket->address);
    }
    if (failed != 0)
        return wg__fail_errno(err, errno, "cannot make the progress socket '%s'", path);
    socket->is_bound = true;
    if (chmod(path, 0600) != 0 || listen(socket->fd, BACKLOG) != 0)
        return wg__fail_errno(err, errno, "cannot listen on the progress socket '%s'", path);
    return WG_OK;
}

enum wg_code wg__progress_socket_open(struct wg_progress_socket **out, const char *path,
                                      int epoll_fd, struct wg_progress_feed *feed,
                                      struct wg_error *err)
{
    struct wg_progress_socket *made = wg__alloc_zeroed(1, sizeof *made);
    if (made == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for the progress socket");
    made->source.ready = socket_ready;
    made->feed = feed;
    made->epoll_fd = epoll_fd;
    made->reserve_fd = open_reserve();
    made->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int error_number = errno;
    enum wg_code code = choose_path(made, path, err);
    if (code == WG_OK)
        code = bind_path(made, error_number, err);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &made->source};
    if (code == WG_OK && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, made->fd, &event) != 0)
        code = wg__fail_errno(err, errno, "cannot wait for the progress socket");
    if (code != WG_OK) {
        wg__progress_socket_close(made);
        return code;
    }
    *out = made;
    return WG_OK;
}

const char *wg__progress_socket_path(const struct wg_progress_socket *socket)
{
    return socket->address.sun_path;
}

size_t wg__progress_socket_clients(const struct wg_progress_socket *socket)
{
    return socket->client_count;
}

void wg__progress_socket_close(struct wg_progress_socket *socket)
{
    if (socket == NULL)
        return;
    while (socket->clients != NULL) {
        bool more = true;
        for (unsigned i = 0; i < LAST_READS && more; i++)
            more = read_client(socket->clients, &more) && more;
        drop(socket->clients);
    }
    char *path = socket->address.sun_path;
    if (socket->is_bound)
        (void)unlink(path);
    char *slash = strrchr(path, '/');
    if (socket->has_folder && slash != NULL) {
        *slash = '\0';
        (void)rmdir(path);
    }
    if (socket->fd >= 0)
        (void)close(socket->fd);
    if (socket->reserve_fd >= 0)
        (void)close(socket->reserve_fd);
    wg__free(socket);
}
