/* SPDX-License-Identifier: MIT
 *
 * HTTP/2 without TLS, by nghttp2.
 *
 * What nghttp2 wants to send is gathered in `out` until the kernel takes it: headers and data of a
 * small request leave in one packet.
 *
 *     submit -> session -> out -> send            recv -> session -> calls
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "net/h2c.h"

#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "base/alloc.h"
#include "base/buffer.h"

enum {
    HEADERS_MAX = 16,
    WINDOW = 1 << 26, /* bytes of answers that may be under way; of a stream as well */
    OUT_MAX = 1 << 18,
    HOST_SIZE = 256,
    READ_SIZE = 1 << 16
};

/* A request; `user` NULL: it was cancelled. */
struct stream {
    struct stream *next, *before;
    void *user;
    const char *body;
    size_t left;
    int32_t id;
};

struct wg_h2c {
    const struct wg_h2c_calls *calls;
    nghttp2_session *session;
    struct stream *streams; /* all, for nghttp2 does not tell of those that wait for their turn */
    int socket;
    bool is_connected;
    bool is_dead;
    struct wg_buffer out; /* to be sent */
    size_t sent;          /* of it */
    char authority[HOST_SIZE];
    char why[128];
};

/* -- URLs ------------------------------------------------------------------------------------- */

/* HOST:PORT of a URL into `authority`, the path's begin. */
static bool split_url(const char *url, char authority[static HOST_SIZE], const char **path)
{
    static const char scheme[] = "http://";
    if (strncmp(url, scheme, sizeof scheme - 1) != 0)
        return false;
    const char *host = url + sizeof scheme - 1;
    const size_t length = strcspn(host, "/?#");
    if (length == 0 || length >= HOST_SIZE || memchr(host, '@', length) != NULL)
        return false;
    memcpy(authority, host, length);
    authority[length] = '\0';
    *path = host[length] == '/' ? host + length : "/";
    return true;
}

/* HOST:PORT, [v6]:PORT; the port 80 if there is none. */
static void split_authority(char *authority, const char **host, const char **port)
{
    char *colon = strrchr(authority, ':');
    char *bracket = strrchr(authority, ']');
    *host = authority;
    *port = "80";
    if (colon != NULL && (bracket == NULL || colon > bracket)) {
        *colon = '\0';
        *port = colon + 1;
    }
    if (*authority == '[' && bracket != NULL) {
        *bracket = '\0';
        *host = authority + 1;
    }
}

bool wg__h2c_is_for(const struct wg_h2c *h2c, const char *url)
{
    char authority[HOST_SIZE];
    const char *path = NULL;
    return split_url(url, authority, &path) && strcmp(authority, h2c->authority) == 0;
}

/* -- What nghttp2 calls ----------------------------------------------------------------------- */

static struct stream *find(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static void forget(struct wg_h2c *h2c, struct stream *stream)
{
    if (stream->before != NULL)
        stream->before->next = stream->next;
    else
        h2c->streams = stream->next;
    if (stream->next != NULL)
        stream->next->before = stream->before;
    wg__free(stream);
}

static int header_came(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                       size_t name_length, const uint8_t *value, size_t value_length, uint8_t flags,
                       void *context)
{
    (void)flags;
    const struct wg_h2c *h2c = context;
    const struct stream *stream = find(session, frame->hd.stream_id);
    if (stream != NULL && stream->user != NULL)
        h2c->calls->on_header(stream->user, (const char *)name, name_length, (const char *)value,
                              value_length);
    return 0;
}

static int data_came(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                     size_t length, void *context)
{
    (void)flags;
    const struct wg_h2c *h2c = context;
    const struct stream *stream = find(session, id);
    if (stream != NULL && stream->user != NULL &&
        !h2c->calls->on_data(stream->user, (const char *)bytes, length))
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    return 0;
}

static int stream_ended(nghttp2_session *session, int32_t id, uint32_t error, void *context)
{
    struct wg_h2c *h2c = context;
    struct stream *stream = find(session, id);
    if (stream == NULL)
        return 0;
    (void)nghttp2_session_set_stream_user_data(session, id, NULL);
    if (stream->user != NULL)
        h2c->calls->on_end(stream->user,
                           error == NGHTTP2_NO_ERROR ? NULL : nghttp2_http2_strerror(error));
    forget(h2c, stream);
    return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *out, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *context)
{
    (void)session;
    (void)id;
    (void)context;
    struct stream *stream = source->ptr;
    const size_t length = stream->left < room ? stream->left : room;
    if (length != 0)
        memcpy(out, stream->body, length);
    stream->body += length;
    stream->left -= length;
    if (stream->left == 0)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)length;
}

/* -- Memory ----------------------------------------------------------------------------------- */

static void *take(size_t size, void *context)
{
    (void)context;
    return wg__alloc(size);
}

static void give(void *memory, void *context)
{
    (void)context;
    wg__free(memory);
}

static void *take_zeroed(size_t count, size_t size, void *context)
{
    (void)context;
    return wg__alloc_zeroed(count, size);
}

static void *resize(void *memory, size_t size, void *context)
{
    (void)context;
    return wg__realloc_array(memory, size, 1);
}

/* -- Opening ---------------------------------------------------------------------------------- */

static bool open_session(struct wg_h2c *h2c)
{
    nghttp2_mem memory = {.malloc = take, .free = give, .calloc = take_zeroed, .realloc = resize};
    nghttp2_session_callbacks *callbacks = NULL;
    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return false;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, header_came);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data_came);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_ended);
    const int failed = nghttp2_session_client_new3(&h2c->session, callbacks, h2c, NULL, &memory);
    nghttp2_session_callbacks_del(callbacks);
    if (failed != 0)
        return false;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
    };
    return nghttp2_submit_settings(h2c->session, NGHTTP2_FLAG_NONE, settings,
                                   sizeof settings / sizeof settings[0]) == 0 &&
           nghttp2_session_set_local_window_size(h2c->session, NGHTTP2_FLAG_NONE, 0, WINDOW) == 0;
}

static enum wg_code connect_to(struct wg_h2c *h2c, const char *url, struct wg_error *err)
{
    char authority[HOST_SIZE];
    const char *host = NULL, *port = NULL;
    memcpy(authority, h2c->authority, sizeof authority);
    split_authority(authority, &host, &port);
    const struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const int failed = getaddrinfo(host, port, &wanted, &found);
    if (failed != 0)
        return wg__fail(err, WG_EUNREACHABLE, "%s: %s", url, gai_strerror(failed));
    int error_number = 0;
    for (const struct addrinfo *at = found; at != NULL && h2c->socket < 0; at = at->ai_next) {
        const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && (connect(fd, at->ai_addr, at->ai_addrlen) == 0 || errno == EINPROGRESS)) {
            h2c->socket = fd;
            break;
        }
        error_number = errno;
        if (fd >= 0)
            (void)close(fd);
    }
    freeaddrinfo(found);
    if (h2c->socket < 0)
        return wg__fail(err, WG_EUNREACHABLE, "%s: %s", url, strerrordesc_np(error_number));
    const int one = 1;
    (void)setsockopt(h2c->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return WG_OK;
}

enum wg_code wg__h2c_open(struct wg_h2c **out, const char *url, const struct wg_h2c_calls *calls,
                          struct wg_error *err)
{
    const char *path = NULL;
    struct wg_h2c *h2c = wg__alloc_zeroed(1, sizeof *h2c);
    if (h2c == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", url);
    h2c->calls = calls;
    h2c->socket = -1;
    enum wg_code code = WG_OK;
    if (!split_url(url, h2c->authority, &path))
        code = wg__fail(err, WG_EINVAL, "'%s': expected http://HOST:PORT", url);
    else if (!open_session(h2c))
        code = wg__fail(err, WG_ENOMEM, "%s: out of memory", url);
    else
        code = connect_to(h2c, url, err);
    if (code != WG_OK) {
        wg__h2c_close(h2c);
        return code;
    }
    *out = h2c;
    return WG_OK;
}

/* `why` NULL: without calls. The session must not run any more. */
static void end_streams(struct wg_h2c *h2c, const char *why)
{
    while (h2c->streams != NULL) {
        struct stream *stream = h2c->streams;
        if (why != NULL && stream->user != NULL)
            h2c->calls->on_end(stream->user, why);
        forget(h2c, stream);
    }
}

void wg__h2c_close(struct wg_h2c *h2c)
{
    if (h2c == NULL)
        return;
    end_streams(h2c, NULL);
    nghttp2_session_del(h2c->session);
    if (h2c->socket >= 0)
        (void)close(h2c->socket);
    wg__buffer_fini(&h2c->out);
    wg__free(h2c);
}

int wg__h2c_socket(const struct wg_h2c *h2c)
{
    return h2c->socket;
}

bool wg__h2c_wants_write(const struct wg_h2c *h2c)
{
    return !h2c->is_dead && (!h2c->is_connected || h2c->sent < h2c->out.length ||
                             nghttp2_session_want_write(h2c->session) != 0);
}

bool wg__h2c_is_alive(const struct wg_h2c *h2c)
{
    return !h2c->is_dead;
}

bool wg__h2c_was_connected(const struct wg_h2c *h2c)
{
    return h2c->is_connected;
}

/* -- Requests --------------------------------------------------------------------------------- */

/* nghttp2 copies names and values, and does not write to them. */
static nghttp2_nv header(const char *name, const char *value)
{
    union {
        const char *in;
        uint8_t *out;
    } lent_name, lent_value;
    lent_name.in = name;
    lent_value.in = value;
    return (nghttp2_nv){.name = lent_name.out,
                        .namelen = strlen(name),
                        .value = lent_value.out,
                        .valuelen = strlen(value)};
}

enum wg_code wg__h2c_submit(struct wg_h2c *h2c, const char *url,
                            const struct wg_h2c_header *headers, size_t header_count,
                            const char *body, size_t length, void *user, int32_t *id_out,
                            struct wg_error *err)
{
    char authority[HOST_SIZE];
    const char *path = "/";
    (void)split_url(url, authority, &path);
    nghttp2_nv list[HEADERS_MAX + 4] = {
        header(":method", "POST"),
        header(":scheme", "http"),
        header(":path", path),
        header(":authority", h2c->authority),
    };
    assert(header_count <= HEADERS_MAX);
    for (size_t i = 0; i < header_count; i++)
        list[4 + i] = header(headers[i].name, headers[i].value);
    struct stream *stream = wg__alloc(sizeof *stream);
    int32_t id = NGHTTP2_ERR_NOMEM;
    if (stream != NULL) {
        *stream = (struct stream){.user = user, .body = body, .left = length};
        const nghttp2_data_provider provider = {.source.ptr = stream, .read_callback = read_body};
        id = nghttp2_submit_request(h2c->session, NULL, list, 4 + header_count, &provider, stream);
    }
    if (id < 0) {
        wg__free(stream);
        return wg__fail(err, WG_ENOMEM, "%s: %s", url, nghttp2_strerror(id));
    }
    stream->id = *id_out = id;
    stream->next = h2c->streams;
    if (stream->next != NULL)
        stream->next->before = stream;
    h2c->streams = stream;
    return WG_OK;
}

void wg__h2c_cancel(struct wg_h2c *h2c, int32_t id)
{
    struct stream *stream = h2c->streams;
    while (stream != NULL && stream->id != id)
        stream = stream->next;
    if (h2c->is_dead || stream == NULL)
        return;
    /* Its body may go away now; it is forgotten when the session has dropped it. */
    stream->user = NULL;
    stream->body = "";
    stream->left = 0;
    (void)nghttp2_submit_rst_stream(h2c->session, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
    wg__h2c_work(h2c);
}

/* -- Work ------------------------------------------------------------------------------------- */

static void die(struct wg_h2c *h2c, const char *why)
{
    if (h2c->is_dead)
        return;
    h2c->is_dead = true;
    (void)snprintf(h2c->why, sizeof h2c->why, "%s", why);
    end_streams(h2c, h2c->why);
}

/* Whether the connection stands; what came of it when it does not. */
static bool is_connected(struct wg_h2c *h2c)
{
    if (h2c->is_connected)
        return true;
    int failed = 0;
    socklen_t size = sizeof failed;
    struct sockaddr_storage peer;
    socklen_t peer_size = sizeof peer;
    (void)getsockopt(h2c->socket, SOL_SOCKET, SO_ERROR, &failed, &size);
    if (failed != 0)
        die(h2c, strerrordesc_np(failed));
    else
        h2c->is_connected = getpeername(h2c->socket, (struct sockaddr *)&peer, &peer_size) == 0;
    return h2c->is_connected;
}

/* Gathers what the session has to say; false: the session is broken. */
static bool gather(struct wg_h2c *h2c)
{
    if (h2c->sent == h2c->out.length)
        h2c->sent = h2c->out.length = 0;
    while (h2c->out.length - h2c->sent < OUT_MAX) {
        const uint8_t *bytes = NULL;
        const ssize_t length = nghttp2_session_mem_send(h2c->session, &bytes);
        if (length <= 0)
            return length == 0;
        wg__buffer_append(&h2c->out, (const char *)bytes, (size_t)length);
        if (h2c->out.failed)
            return false;
    }
    return true;
}

static void send_out(struct wg_h2c *h2c)
{
    while (!h2c->is_dead) {
        if (!gather(h2c)) {
            die(h2c, "out of memory, or a broken HTTP/2 session");
            return;
        }
        if (h2c->sent == h2c->out.length)
            return;
        const ssize_t sent =
            send(h2c->socket, h2c->out.data + h2c->sent, h2c->out.length - h2c->sent, MSG_NOSIGNAL);
        if (sent >= 0)
            h2c->sent += (size_t)sent;
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR)
            die(h2c, strerrordesc_np(errno));
    }
}

static void receive(struct wg_h2c *h2c)
{
    uint8_t bytes[READ_SIZE];
    while (!h2c->is_dead) {
        const ssize_t got = recv(h2c->socket, bytes, sizeof bytes, 0);
        if (got == 0) {
            die(h2c, "the server has closed the connection");
        } else if (got > 0) {
            const ssize_t taken = nghttp2_session_mem_recv(h2c->session, bytes, (size_t)got);
            if (taken < 0)
                die(h2c, nghttp2_strerror((int)taken));
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            die(h2c, strerrordesc_np(errno));
        }
    }
}

void wg__h2c_work(struct wg_h2c *h2c)
{
    if (h2c->is_dead || !is_connected(h2c))
        return;
    receive(h2c);
    send_out(h2c);
    /* After a goodbye of the server, and after ours, which is how a session answers what is no
     * HTTP/2: the connection may stand, but nothing more comes of it. */
    if (!h2c->is_dead && h2c->sent == h2c->out.length &&
        nghttp2_session_want_read(h2c->session) == 0 &&
        nghttp2_session_want_write(h2c->session) == 0)
        die(h2c, "the HTTP/2 session is over: the server has said goodbye, or no HTTP/2");
}
