/* SPDX-License-Identifier: MIT
 *
 * One HTTP/2 connection without TLS (h2c, prior knowledge), many requests on it: what gRPC needs.
 *
 * libcurl could do it, but 7.88, which Debian 12 has, fails on the second request of a connection
 * that began by prior knowledge (curl #10634). nghttp2 does the protocol; the socket is ours and
 * never blocks.
 *
 *     connect -> submit ... -> work (when the socket is ready) -> on_header, on_data, on_end
 *
 * Calls come from within `work` only; they must neither submit nor close. A connection that broke
 * has ended every stream, and does nothing more.
 *
 * Owns: the socket.    Threads: one at a time.
 */
#ifndef WG_NET_H2C_H
#define WG_NET_H2C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct wg_h2c;

/* A header of a request; the name in lower case. Both must live until the request has ended. */
struct wg_h2c_header {
    const char *name;
    const char *value;
};

struct wg_h2c_calls {
    void (*on_header)(void *stream, const char *name, size_t name_length, const char *value,
                      size_t value_length);
    bool (*on_data)(void *stream, const char *bytes, size_t length); /* false: enough, cancel */
    void (*on_end)(void *stream, const char *why); /* NULL: whole; else what broke it */
};

/* Begins to connect to "http://HOST:PORT..."; `calls` must outlive it. WG_EINVAL: no such URL;
 * WG_EUNREACHABLE: the name is not known; WG_ENOMEM; WG_EIO. */
enum wg_code wg__h2c_open(struct wg_h2c **out, const char *url, const struct wg_h2c_calls *calls,
                          struct wg_error *err);
/* Without calls. */
void wg__h2c_close(struct wg_h2c *h2c);

int wg__h2c_socket(const struct wg_h2c *h2c);
bool wg__h2c_wants_write(const struct wg_h2c *h2c);

/* Whether it still lives, and whether it ever was connected. */
bool wg__h2c_is_alive(const struct wg_h2c *h2c);
bool wg__h2c_was_connected(const struct wg_h2c *h2c);

/* Whether `url` goes to the same host and port. */
bool wg__h2c_is_for(const struct wg_h2c *h2c, const char *url);

/* A POST with `body`, which must live until it has ended; the request's id for cancelling. Sent by
 * the next `work`. WG_ENOMEM. */
enum wg_code wg__h2c_submit(struct wg_h2c *h2c, const char *url,
                            const struct wg_h2c_header *headers, size_t header_count,
                            const char *body, size_t length, void *user, int32_t *id_out,
                            struct wg_error *err);

/* Ends a request; no call comes for it any more. */
void wg__h2c_cancel(struct wg_h2c *h2c, int32_t id);

/* Sends and receives what is possible now. */
void wg__h2c_work(struct wg_h2c *h2c);

#endif
