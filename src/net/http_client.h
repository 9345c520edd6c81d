/* SPDX-License-Identifier: MIT
 *
 * Many HTTP requests at once from one thread: HTTP/1.1 with connections kept, and HTTP/2 by prior
 * knowledge (h2c), as gRPC speaks it.
 *
 * A client has a fixed number of slots; a request takes one until it has ended. Nothing happens but
 * in `wg__http_wait`, which sleeps until the network or its deadline wakes it (to the nanosecond,
 * as far as the kernel goes: requests of an open loop start on time) and calls the requests back.
 *
 *     start --> slot --> on_data ... --> on_done (the slot is free again: it may start the next)
 *
 * libcurl does the protocols (docs/decisions/0008-network-client.md); its sockets are watched by an
 * epoll of our own, so that a thousand idle connections cost nothing.
 *
 * Owns: connections and the bodies of answers.    Threads: a client belongs to one.
 */
#ifndef WG_NET_HTTP_CLIENT_H
#define WG_NET_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { WG_HTTP_SLOTS_MAX = 16384, WG_HTTP_WHY_SIZE = 200 };

struct wg_http_client;
struct wg_http_headers;

enum wg_http_end {
    WG_HTTP_ANSWERED,  /* whole; any status */
    WG_HTTP_REFUSED,   /* nobody listens there, or the name is not known */
    WG_HTTP_TIMED_OUT, /* after timeout_s */
    WG_HTTP_BROKEN,    /* the connection ended, or what came is no HTTP */
    WG_HTTP_TOO_LARGE, /* the body went beyond the client's bound */
    WG_HTTP_NO_MEMORY, /* ours */
    WG_HTTP_CANCELLED
};

struct wg_http_answer {
    enum wg_http_end end;
    unsigned status;  /* of the HTTP answer; 0: none came */
    int grpc_status;  /* of the trailer; -1: it has none */
    const char *body; /* ended by a zero byte; valid during the call; "" with on_data */
    size_t length;
    size_t json_length;         /* Inference-Header-Content-Length; 0: none */
    uint64_t ended_ns;          /* wg__clock_ns() when the last byte was seen */
    char why[WG_HTTP_WHY_SIZE]; /* of another end than ANSWERED; of gRPC: its message */
};

struct wg_http_request {
    const char *url;
    const struct wg_http_headers *headers; /* NULL: none; must live until the request has ended */
    const char *body; /* NULL: GET, else POST; must live until the request has ended */
    size_t length;
    bool is_http2;
    double timeout_s; /* > 0 */
    /* Pieces of the body as they come, not kept then; NULL: it is kept for on_done. */
    void (*on_data)(void *context, const char *bytes, size_t length);
    void (*on_done)(void *context, const struct wg_http_answer *answer);
    void *context;
};

/* `slots` requests at most at once, bodies of at most `body_max` bytes. WG_EINVAL, WG_ENOMEM,
 * WG_EIO. */
enum wg_code wg__http_client_open(struct wg_http_client **out, size_t slots, size_t body_max,
                                  struct wg_error *err);
/* Requests that run are dropped without a call. */
void wg__http_client_close(struct wg_http_client *client);

/* Lines "Name: value", ended by NULL. WG_ENOMEM. */
enum wg_code wg__http_headers_new(struct wg_http_headers **out, const char *const *lines,
                                  struct wg_error *err);
void wg__http_headers_free(struct wg_http_headers *headers);

size_t wg__http_busy(const struct wg_http_client *client);

/* WG_EBUSY: no slot is free; WG_EINVAL: a URL that is none; WG_ENOMEM. */
enum wg_code wg__http_start(struct wg_http_client *client, const struct wg_http_request *request,
                            struct wg_error *err);

/* Until something ended (it was called back) or `deadline_ns` of wg__clock_ns(). WG_EIO. */
enum wg_code wg__http_wait(struct wg_http_client *client, uint64_t deadline_ns,
                           struct wg_error *err);

/* Ends all that runs, called back with CANCELLED; their connections are closed. */
void wg__http_cancel(struct wg_http_client *client);

/* "refused", for messages. */
const char *wg__http_end_word(enum wg_http_end end);

#endif
