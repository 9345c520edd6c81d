/* SPDX-License-Identifier: MIT
 *
 * The HTTP client's HTTP/2 without TLS: one connection, its requests and their time-outs.
 *
 * What has ended is put on a stack while the connection works, and called back after that: a call
 * may start the next request, which must not happen from within the connection.
 *
 * Owns: nothing of its own.    Threads: one at a time.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "net/h2c.h"
#include "net/http_parts.h"

enum { TIMEOUT_LOOK_NS = 5000000 /* how exact time-outs are */ };

/* -- What HTTP/2 calls ------------------------------------------------------------------------ */

static void h2_header(void *stream, const char *name, size_t name_length, const char *value,
                      size_t value_length)
{
    wg__http_take_header(stream, name, name_length, value, value_length);
}

static bool h2_data(void *stream, const char *bytes, size_t length)
{
    return wg__http_take_body(stream, bytes, length);
}

static void h2_end(void *stream, const char *why)
{
    struct wg_http_slot *slot = stream;
    struct wg_http_client *client = slot->client;
    slot->h2_end = WG_HTTP_ANSWERED;
    if (slot->is_too_large)
        slot->h2_end = WG_HTTP_TOO_LARGE;
    else if (slot->body.failed)
        slot->h2_end = WG_HTTP_NO_MEMORY;
    else if (why != NULL)
        slot->h2_end = wg__h2c_was_connected(client->h2c) ? WG_HTTP_BROKEN : WG_HTTP_REFUSED;
    (void)snprintf(slot->why, sizeof slot->why, "%s", why != NULL ? why : "");
    client->h2_ended[client->h2_ended_count++] = slot;
}

static const struct wg_h2c_calls h2_calls = {
    .on_header = h2_header, .on_data = h2_data, .on_end = h2_end};

/* Tells the epoll what the HTTP/2 connection waits for. */
static void watch_h2c(struct wg_http_client *client)
{
    const bool writes = wg__h2c_wants_write(client->h2c);
    if (writes == client->h2c_writes)
        return;
    client->h2c_writes = writes;
    const int fd = wg__h2c_socket(client->h2c);
    struct epoll_event event = {.events = (uint32_t)EPOLLIN | (writes ? (uint32_t)EPOLLOUT : 0),
                                .data.fd = fd};
    (void)epoll_ctl(client->epoll, EPOLL_CTL_MOD, fd, &event);
}

/* A connection to where the request goes: the one that lives, or a new one. */
static enum wg_code connect_h2(struct wg_http_client *client, const char *url, struct wg_error *err)
{
    if (client->h2c != NULL) {
        if (client->h2_busy == 0)
            wg__h2c_work(client->h2c); /* sees a server that has gone meanwhile */
        if (wg__h2c_is_alive(client->h2c) && wg__h2c_is_for(client->h2c, url))
            return WG_OK;
        /* One server at a time, so its requests have ended by now, or are about to. */
        if (client->h2_busy > client->h2_ended_count)
            return wg__fail(err, WG_EBUSY, "%s: requests to another server are under way", url);
        wg__h2c_close(client->h2c);
        client->h2c = NULL;
    }
    const enum wg_code code = wg__h2c_open(&client->h2c, url, &h2_calls, err);
    if (code != WG_OK)
        return code;
    const int fd = wg__h2c_socket(client->h2c);
    struct epoll_event event = {.events = (uint32_t)EPOLLIN | (uint32_t)EPOLLOUT, .data.fd = fd};
    client->h2c_writes = true;
    if (epoll_ctl(client->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        return wg__fail_errno(err, errno, "%s: watching the connection", url);
    return WG_OK;
}

enum wg_code wg__http_start_h2(struct wg_http_slot *slot, struct wg_error *err)
{
    struct wg_http_client *client = slot->client;
    const struct wg_http_request *request = &slot->request;
    const struct wg_http_headers *headers = request->headers;
    struct wg_error own = {.code = WG_OK};
    enum wg_code code = connect_h2(client, request->url, &own);
    if (code == WG_OK)
        code = wg__h2c_submit(client->h2c, request->url, headers != NULL ? headers->pairs : NULL,
                              headers != NULL ? headers->count : 0,
                              request->body != NULL ? request->body : "", request->length, slot,
                              &slot->h2_id, &own);
    if (code == WG_EUNREACHABLE) { /* that is how the request ended, as it is with curl */
        slot->h2_end = WG_HTTP_REFUSED;
        (void)snprintf(slot->why, sizeof slot->why, "%.200s", own.text);
        client->h2_ended[client->h2_ended_count++] = slot;
        client->h2_busy++;
        return WG_OK;
    }
    if (code != WG_OK) {
        if (err != NULL)
            *err = own;
        return code;
    }
    slot->deadline_ns = wg__clock_ns() + (uint64_t)(fmin(request->timeout_s, 1e6) * 1e9);
    if (client->h2_busy++ == 0)
        client->h2_look_ns = wg__clock_ns() + TIMEOUT_LOOK_NS;
    wg__h2c_work(client->h2c);
    watch_h2c(client);
    return WG_OK;
}

/* Calls back what HTTP/2 has ended. */
void wg__http_collect_h2(struct wg_http_client *client)
{
    while (client->h2_ended_count > 0) {
        struct wg_http_slot *slot = client->h2_ended[--client->h2_ended_count];
        wg__http_finish(slot, CURLE_OK, slot->h2_end, wg__clock_ns());
    }
}

/* Ends those requests of HTTP/2 whose time is over. */
void wg__http_end_late_h2(struct wg_http_client *client, uint64_t now_ns)
{
    if (client->h2_busy == 0 || now_ns < client->h2_look_ns)
        return;
    client->h2_look_ns = now_ns + TIMEOUT_LOOK_NS;
    for (size_t i = 0; i < client->slot_count; i++) {
        struct wg_http_slot *slot = &client->slots[i];
        if (!slot->is_running || !slot->is_h2 || slot->deadline_ns > now_ns)
            continue;
        wg__h2c_cancel(client->h2c, slot->h2_id);
        wg__http_collect_h2(client); /* it may just have ended, or others have */
        if (slot->is_running && slot->is_h2 && slot->deadline_ns <= now_ns)
            wg__http_finish(slot, CURLE_OK, WG_HTTP_TIMED_OUT, now_ns);
    }
}

void wg__http_work_h2(struct wg_http_client *client)
{
    if (client->h2c != NULL) {
        wg__h2c_work(client->h2c);
        if (!wg__h2c_is_alive(client->h2c)) /* it would wake us for ever */
            (void)epoll_ctl(client->epoll, EPOLL_CTL_DEL, wg__h2c_socket(client->h2c), NULL);
        else
            watch_h2c(client);
    }
    wg__http_collect_h2(client);
}
