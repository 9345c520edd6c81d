/* SPDX-License-Identifier: MIT
 *
 * The inside of the HTTP client: http_client.c (slots, curl, waiting), http_h2.c (HTTP/2 without
 * TLS) and http_headers.c.
 *
 * Owns: see http_client.h.    Threads: one at a time.
 */
#ifndef WG_NET_HTTP_PARTS_H
#define WG_NET_HTTP_PARTS_H

#include <curl/curl.h>

#include "base/buffer.h"
#include "net/curl_library.h"
#include "net/h2c.h"
#include "net/http_client.h"

enum { WG_HTTP_HEADERS_MAX = 16 };

struct wg_http_slot {
    struct wg_http_client *client;
    CURL *easy; /* NULL: not made yet, HTTP/2 needs none */
    struct wg_http_request request;
    bool is_h2;
    int32_t h2_id;
    unsigned h2_status;
    enum wg_http_end h2_end;
    uint64_t deadline_ns; /* of HTTP/2 */
    struct wg_buffer body;
    size_t json_length;
    size_t seen; /* bytes of the body, kept or not */
    int grpc_status;
    bool is_running;
    bool is_too_large;
    char grpc_message[WG_HTTP_WHY_SIZE];
    char why[CURL_ERROR_SIZE];
};

struct wg_http_client {
    struct wg_curl curl;
    CURLM *multi;
    int epoll;
    uint64_t alarm_ns; /* when curl wants to be called; UINT64_MAX: not */
    size_t body_max;
    size_t ended; /* since wait began */
    struct wg_http_slot *slots;
    struct wg_http_slot **free; /* a stack */
    size_t slot_count;
    size_t free_count;
    bool is_global;
    struct wg_h2c *h2c;             /* NULL: none yet */
    bool h2c_writes;                /* the epoll asks for that too */
    size_t h2_busy;                 /* requests on it */
    uint64_t h2_look_ns;            /* when to look for time-outs */
    struct wg_http_slot **h2_ended; /* a stack, `h2_ended_count` */
    size_t h2_ended_count;
};

/* curl's list, made without curl, and the same as HTTP/2 wants it: names in lower case, without
 * empty ones. */
struct wg_http_headers {
    struct curl_slist *list, *last;
    char *texts[WG_HTTP_HEADERS_MAX]; /* "name\0value" */
    struct wg_h2c_header pairs[WG_HTTP_HEADERS_MAX];
    size_t count;
};

/* The headers of answers that we look at, of both protocols; others are passed over. */
void wg__http_take_header(struct wg_http_slot *slot, const char *name, size_t name_length,
                          const char *value, size_t value_length);

/* Bytes of a body, of both protocols; false: no more of them. */
bool wg__http_take_body(struct wg_http_slot *slot, const char *bytes, size_t length);

/* Frees the slot, then calls the request back: the call may start the next one in it. `result` is
 * curl's word, 0 of HTTP/2. */
void wg__http_finish(struct wg_http_slot *slot, CURLcode result, enum wg_http_end end,
                     uint64_t now_ns);

/* HTTP/2: starts what is in the slot; looks at the connection and calls back what has ended; ends
 * what is late. */
enum wg_code wg__http_start_h2(struct wg_http_slot *slot, struct wg_error *err);
void wg__http_work_h2(struct wg_http_client *client);
void wg__http_collect_h2(struct wg_http_client *client);
void wg__http_end_late_h2(struct wg_http_client *client, uint64_t now_ns);

#endif
