/* SPDX-License-Identifier: MIT
 *
 * One request, waited for.
 *
 * Owns: the answer's body is the caller's buffer.    Threads: as the client.
 */
#ifndef WG_NET_HTTP_CALL_H
#define WG_NET_HTTP_CALL_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "net/http_client.h"

struct wg_http_reply {
    struct wg_http_answer answer; /* without its body */
    struct wg_buffer body;        /* init and fini are the caller's */
};

/* Asked some ten times a second while the answer is waited for. */
struct wg_http_stop {
    bool (*should_stop)(void *context); /* NULL: never */
    void *context;
};

/* `request` needs neither calls nor context. WG_EUNREACHABLE: refused; WG_ETIMEOUT, also where it
 * was stopped (`stop`; NULL: never); WG_EIO: broken or too large; WG_ENOMEM. Whatever status came
 * is WG_OK. Nothing else may be under way. */
enum wg_code wg__http_call(struct wg_http_client *client, const struct wg_http_request *request,
                           const struct wg_http_stop *stop, struct wg_http_reply *out,
                           struct wg_error *err);

#endif
