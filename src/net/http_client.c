/* SPDX-License-Identifier: MIT
 *
 * The HTTP client: libcurl's socket interface on an epoll of our own.
 *
 *     curl --socket_changed--> epoll set          wait: ppoll(epoll) -> curl_multi_socket_action
 *     curl --timer_changed---> alarm_ns                 -> curl_multi_info_read -> on_done
 *
 * An easy handle a slot, made once and used again, because setting one up costs more than a
 * request. The pool is a stack of free slots: the slot that was used last has its connection and
 * its caches warm.
 *
 * ppoll and not epoll_wait, whose time-out counts milliseconds: requests of an open loop would
 * start up to one late.
 *
 * HTTP/2 without TLS goes over one connection of our own (h2c.h), which is watched by the same
 * epoll: its answers end in `h2_ended` and are called back when its work is done. A new one is made
 * when it breaks.
 *
 * Proxies that the environment names are not used: what would be measured is the proxy.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "net/http_client.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/number.h"
#include "net/h2c.h"
#include "net/http_parts.h"

enum { EVENTS = 64, NO_ALARM = -1, BODY_KEPT_MAX = 1 << 20 };

/* -- What curl calls -------------------------------------------------------------------------- */

/* curl's type of call. */
// cppcheck-suppress constParameter
static int socket_changed(CURL *easy, curl_socket_t socket, int what, void *context, void *known)
{
    (void)easy;
    struct wg_http_client *client = context;
    struct epoll_event event = {.data.fd = socket};
    if (what == CURL_POLL_REMOVE) {
        /* It may be closed already, which took it out of the set. */
        (void)epoll_ctl(client->epoll, EPOLL_CTL_DEL, socket, &event);
        return 0;
    }
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        event.events |= (uint32_t)EPOLLIN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        event.events |= (uint32_t)EPOLLOUT;
    const int how = known != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if (epoll_ctl(client->epoll, how, socket, &event) != 0) {
        /* Reused numbers: what we knew of this one may be gone, or still be there. */
        const int other = how == EPOLL_CTL_ADD ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
        if (epoll_ctl(client->epoll, other, socket, &event) != 0)
            return -1;
    }
    (void)client->curl.multi_assign(client->multi, socket, client);
    return 0;
}

static int timer_changed(CURLM *multi, long timeout_ms, void *context)
{
    (void)multi;
    struct wg_http_client *client = context;
    client->alarm_ns = timeout_ms == NO_ALARM
                           ? UINT64_MAX
                           : wg__clock_ns() + (uint64_t)timeout_ms * UINT64_C(1000000);
    return 0;
}

static size_t header_came(char *line, size_t size, size_t count, void *context)
{
    const size_t length = size * count;
    const char *colon = memchr(line, ':', length);
    if (colon == NULL || colon == line) /* the status line, the blank one */
        return length;
    const char *from = colon + 1;
    const char *to = line + length;
    while (from < to && (*from == ' ' || *from == '\t'))
        from++;
    while (to > from && (to[-1] == '\r' || to[-1] == '\n' || to[-1] == ' ' || to[-1] == '\t'))
        to--;
    wg__http_take_header(context, line, (size_t)(colon - line), from, (size_t)(to - from));
    return length;
}

/* Bytes of a body, of both protocols; false: no more of them. */
bool wg__http_take_body(struct wg_http_slot *slot, const char *bytes, size_t length)
{
    slot->seen += length;
    if (slot->seen > slot->client->body_max) {
        slot->is_too_large = true;
        return false;
    }
    if (slot->request.on_data != NULL) {
        slot->request.on_data(slot->request.context, bytes, length);
        return true;
    }
    wg__buffer_append(&slot->body, bytes, length);
    return !slot->body.failed;
}

static size_t body_came(char *bytes, size_t size, size_t count, void *context)
{
    return wg__http_take_body(context, bytes, size * count) ? size * count : 0;
}

/* -- Opening and closing ---------------------------------------------------------------------- */

/* What never changes from request to request. */
static bool prepare(struct wg_http_slot *slot)
{
    if (slot->easy != NULL)
        return true;
    const struct wg_curl *curl = &slot->client->curl;
    CURL *easy = slot->easy = curl->easy_init();
    if (easy == NULL)
        return false;
    return curl->easy_setopt(easy, CURLOPT_PRIVATE, slot) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, body_came) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_WRITEDATA, slot) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, header_came) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_HEADERDATA, slot) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, slot->why) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_PIPEWAIT, 1L) == CURLE_OK;
}

static enum wg_code open_slots(struct wg_http_client *client, size_t slots)
{
    client->slots = wg__alloc_zeroed(slots, sizeof *client->slots);
    client->free = wg__alloc_zeroed(slots, sizeof(struct wg_http_slot *));
    client->h2_ended = wg__alloc_zeroed(slots, sizeof(struct wg_http_slot *));
    if (client->slots == NULL || client->free == NULL || client->h2_ended == NULL)
        return WG_ENOMEM;
    client->slot_count = slots;
    for (size_t i = slots; i-- > 0;) {
        client->slots[i].client = client;
        wg__buffer_init(&client->slots[i].body);
        client->free[client->free_count++] = &client->slots[i];
    }
    return WG_OK;
}

static bool open_multi(struct wg_http_client *client, size_t slots)
{
    const struct wg_curl *curl = &client->curl;
    client->multi = curl->multi_init();
    if (client->multi == NULL)
        return false;
    CURLM *multi = client->multi;
    const long most = (long)slots;
    return curl->multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket_changed) == CURLM_OK &&
           curl->multi_setopt(multi, CURLMOPT_SOCKETDATA, client) == CURLM_OK &&
           curl->multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer_changed) == CURLM_OK &&
           curl->multi_setopt(multi, CURLMOPT_TIMERDATA, client) == CURLM_OK &&
           curl->multi_setopt(multi, CURLMOPT_MAXCONNECTS, most) == CURLM_OK &&
           curl->multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, most) == CURLM_OK &&
           curl->multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX) == CURLM_OK;
}

enum wg_code wg__http_client_open(struct wg_http_client **out, size_t slots, size_t body_max,
                                  struct wg_error *err)
{
    if (slots == 0 || slots > WG_HTTP_SLOTS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu requests at once: 1..%d are possible", slots,
                        WG_HTTP_SLOTS_MAX);
    struct wg_http_client *client = wg__alloc_zeroed(1, sizeof *client);
    if (client == NULL)
        return wg__fail(err, WG_ENOMEM, "an HTTP client: out of memory");
    client->epoll = -1;
    client->alarm_ns = UINT64_MAX;
    client->body_max = body_max;
    enum wg_code code = wg__curl_load(&client->curl, WG_CURL_LIBRARY, err);
    if (code == WG_OK) {
        client->is_global = client->curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
        client->epoll = epoll_create1(EPOLL_CLOEXEC);
    }
    if (code == WG_OK && client->epoll < 0)
        code = wg__fail_errno(err, errno, "an epoll set for %zu requests", slots);
    else if (code == WG_OK && (!client->is_global || !open_multi(client, slots) ||
                               open_slots(client, slots) != WG_OK))
        code = wg__fail(err, WG_ENOMEM, "an HTTP client of %zu requests: out of memory", slots);
    if (code != WG_OK) {
        wg__http_client_close(client);
        return code;
    }
    *out = client;
    return WG_OK;
}

void wg__http_client_close(struct wg_http_client *client)
{
    if (client == NULL)
        return;
    for (size_t i = 0; i < client->slot_count; i++) {
        struct wg_http_slot *slot = &client->slots[i];
        if (slot->is_running && !slot->is_h2)
            (void)client->curl.multi_remove_handle(client->multi, slot->easy);
        if (slot->easy != NULL)
            client->curl.easy_cleanup(slot->easy);
        wg__buffer_fini(&slot->body);
    }
    if (client->multi != NULL)
        (void)client->curl.multi_cleanup(client->multi);
    wg__h2c_close(client->h2c);
    if (client->epoll >= 0)
        (void)close(client->epoll);
    if (client->is_global)
        client->curl.global_cleanup();
    wg__free(client->slots);
    wg__free(client->free);
    wg__free(client->h2_ended);
    wg__free(client);
}

/* -- Requests --------------------------------------------------------------------------------- */

size_t wg__http_busy(const struct wg_http_client *client)
{
    return client->slot_count - client->free_count;
}

static bool set_up(struct wg_http_slot *slot, const struct wg_http_request *request)
{
    const struct wg_curl *curl = &slot->client->curl;
    CURL *easy = slot->easy;
    const long version =
        request->is_http2 ? (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE : (long)CURL_HTTP_VERSION_1_1;
    const double timeout_ms = ceil(request->timeout_s * 1e3);
    const long timeout = timeout_ms >= 1e9 ? 1000000000L : timeout_ms < 1 ? 1L : (long)timeout_ms;
    struct curl_slist *headers = request->headers != NULL ? request->headers->list : NULL;
    if (curl->easy_setopt(easy, CURLOPT_URL, request->url) != CURLE_OK ||
        curl->easy_setopt(easy, CURLOPT_HTTP_VERSION, version) != CURLE_OK ||
        curl->easy_setopt(easy, CURLOPT_HTTPHEADER, headers) != CURLE_OK ||
        curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout) != CURLE_OK)
        return false;
    if (request->body == NULL)
        return curl->easy_setopt(easy, CURLOPT_HTTPGET, 1L) == CURLE_OK;
    return curl->easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_POSTFIELDS, request->body) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->length) ==
               CURLE_OK;
}

static void release(struct wg_http_slot *slot)
{
    if (slot->is_h2)
        slot->client->h2_busy--;
    else
        (void)slot->client->curl.multi_remove_handle(slot->client->multi, slot->easy);
    slot->is_running = false;
    slot->client->free[slot->client->free_count++] = slot;
}

static enum wg_code start_curl(struct wg_http_slot *slot, struct wg_error *err)
{
    struct wg_http_client *client = slot->client;
    if (!prepare(slot) || !set_up(slot, &slot->request) ||
        client->curl.multi_add_handle(client->multi, slot->easy) != CURLM_OK)
        return wg__fail(err, WG_ENOMEM, "%s: the request cannot be started: out of memory",
                        slot->request.url);
    /* curl has set its timer to now; without this it would begin only when somebody waits. */
    int running = 0;
    client->alarm_ns = UINT64_MAX;
    (void)client->curl.multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    return WG_OK;
}

enum wg_code wg__http_start(struct wg_http_client *client, const struct wg_http_request *request,
                            struct wg_error *err)
{
    assert(request->timeout_s > 0 && request->on_done != NULL);
    if (client->free_count == 0)
        return wg__fail(err, WG_EBUSY, "%s: all %zu requests at once are under way", request->url,
                        client->slot_count);
    struct wg_http_slot *slot = client->free[client->free_count - 1];
    slot->request = *request;
    slot->body.length = 0;
    slot->seen = 0;
    slot->json_length = 0;
    slot->grpc_status = -1;
    slot->is_too_large = false;
    slot->grpc_message[0] = '\0';
    slot->why[0] = '\0';
    slot->h2_status = 0;
    /* Over TLS the server tells in its greeting that it speaks HTTP/2: curl knows how. */
    slot->is_h2 = request->is_http2 && strncmp(request->url, "http://", 7) == 0;
    const enum wg_code code = slot->is_h2 ? wg__http_start_h2(slot, err) : start_curl(slot, err);
    if (code != WG_OK)
        return code;
    slot->is_running = true;
    client->free_count--;
    return WG_OK;
}

static enum wg_http_end end_of(CURLcode result, const struct wg_http_slot *slot)
{
    if (slot->is_too_large)
        return WG_HTTP_TOO_LARGE;
    if (slot->body.failed)
        return WG_HTTP_NO_MEMORY;
    switch (result) {
    case CURLE_OK:
        return WG_HTTP_ANSWERED;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return WG_HTTP_REFUSED;
    case CURLE_OPERATION_TIMEDOUT:
        return WG_HTTP_TIMED_OUT;
    case CURLE_OUT_OF_MEMORY:
        return WG_HTTP_NO_MEMORY;
    default:
        return WG_HTTP_BROKEN;
    }
}

__attribute__((format(printf, 2, 3))) static void say(char out[static WG_HTTP_WHY_SIZE],
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (wg__format(out, WG_HTTP_WHY_SIZE, format, args) < 0)
        out[0] = '\0';
    va_end(args);
}

static void describe(struct wg_http_answer *answer, const struct wg_http_slot *slot,
                     CURLcode result)
{
    answer->why[0] = '\0';
    if (answer->end == WG_HTTP_TOO_LARGE)
        say(answer->why, "the answer is longer than %zu bytes", slot->client->body_max);
    else if (answer->end == WG_HTTP_TIMED_OUT)
        say(answer->why, "no answer within %g s", slot->request.timeout_s);
    else if (answer->end != WG_HTTP_ANSWERED)
        say(answer->why, "%s",
            slot->why[0] != '\0' ? slot->why : slot->client->curl.easy_strerror(result));
    else if (slot->grpc_message[0] != '\0')
        say(answer->why, "%s", slot->grpc_message);
}

/* Frees the slot first: the call may start the next request in it. */
void wg__http_finish(struct wg_http_slot *slot, CURLcode result, enum wg_http_end end,
                     uint64_t now_ns)
{
    long status = (long)slot->h2_status;
    if (!slot->is_h2)
        (void)slot->client->curl.easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &status);
    struct wg_http_answer answer = {
        .end = end,
        .status = (unsigned)status,
        .grpc_status = slot->grpc_status,
        .json_length = slot->json_length,
        .ended_ns = now_ns,
    };
    describe(&answer, slot, result);
    /* The body is lent to the call, which may use the slot for another one. */
    struct wg_buffer body = slot->body;
    answer.body = body.length != 0 ? body.data : "";
    answer.length = body.length;
    wg__buffer_init(&slot->body);
    const struct wg_http_request request = slot->request;
    release(slot);
    slot->client->ended++;
    request.on_done(request.context, &answer);
    if (slot->body.data == NULL && !body.failed && body.capacity <= BODY_KEPT_MAX) {
        body.length = 0;
        slot->body = body; /* the next answer has its room */
    } else {
        wg__buffer_fini(&body);
    }
}

static void collect(struct wg_http_client *client)
{
    int left = 0;
    const CURLMsg *message;
    while ((message = client->curl.multi_info_read(client->multi, &left)) != NULL) {
        if (message->msg != CURLMSG_DONE)
            continue;
        const uint64_t now_ns = wg__clock_ns();
        const CURLcode result = message->data.result;
        struct wg_http_slot *slot = NULL;
        (void)client->curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
        wg__http_finish(slot, result, end_of(result, slot), now_ns);
    }
}

/* -- Waiting ---------------------------------------------------------------------------------- */

/* Sleeps until a socket or `until_ns`; false on a failure of the kernel. */
static bool sleep_until(const struct wg_http_client *client, uint64_t until_ns)
{
    const uint64_t now_ns = wg__clock_ns();
    const uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    const struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000U),
                                  .tv_nsec = (long)(left_ns % 1000000000U)};
    struct pollfd set = {.fd = client->epoll, .events = POLLIN};
    return ppoll(&set, 1, &left, NULL) >= 0 || errno == EINTR;
}

/* Lets curl work on what is ready now; the number of sockets. */
static int work(struct wg_http_client *client)
{
    struct epoll_event events[EVENTS];
    int running = 0;
    const int count = epoll_wait(client->epoll, events, EVENTS, 0);
    bool is_h2 = client->h2_ended_count > 0;
    for (int i = 0; i < count; i++) {
        int what = 0;
        if (client->h2c != NULL && events[i].data.fd == wg__h2c_socket(client->h2c)) {
            is_h2 = true;
            continue;
        }
        if ((events[i].events & (uint32_t)(EPOLLIN | EPOLLHUP)) != 0)
            what |= CURL_CSELECT_IN;
        if ((events[i].events & (uint32_t)EPOLLOUT) != 0)
            what |= CURL_CSELECT_OUT;
        if ((events[i].events & (uint32_t)EPOLLERR) != 0)
            what |= CURL_CSELECT_ERR;
        (void)client->curl.multi_socket_action(client->multi, events[i].data.fd, what, &running);
        collect(client); /* now, so that no answer waits for the work on others */
    }
    if (client->alarm_ns <= wg__clock_ns()) {
        client->alarm_ns = UINT64_MAX;
        (void)client->curl.multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    collect(client);
    if (is_h2)
        wg__http_work_h2(client);
    wg__http_end_late_h2(client, wg__clock_ns());
    return count;
}

enum wg_code wg__http_wait(struct wg_http_client *client, uint64_t deadline_ns,
                           struct wg_error *err)
{
    client->ended = 0;
    for (;;) {
        if (work(client) < 0 && errno != EINTR)
            return wg__fail_errno(err, errno, "waiting for answers");
        if (client->ended != 0 || wg__clock_ns() >= deadline_ns)
            return WG_OK;
        uint64_t until_ns = client->alarm_ns < deadline_ns ? client->alarm_ns : deadline_ns;
        if (client->h2_busy > 0 && client->h2_look_ns < until_ns)
            until_ns = client->h2_look_ns;
        if (!sleep_until(client, until_ns))
            return wg__fail_errno(err, errno, "waiting for answers");
    }
}

void wg__http_cancel(struct wg_http_client *client)
{
    const uint64_t now_ns = wg__clock_ns();
    /* Those that run now: a call may start others. */
    for (size_t i = 0; i < client->slot_count; i++) {
        struct wg_http_slot *slot = &client->slots[i];
        if (!slot->is_running)
            continue;
        if (slot->is_h2 && client->h2c != NULL)
            wg__h2c_cancel(client->h2c, slot->h2_id);
        wg__http_collect_h2(client);
        if (slot->is_running)
            wg__http_finish(slot, CURLE_OK, WG_HTTP_CANCELLED, now_ns);
    }
}

const char *wg__http_end_word(enum wg_http_end end)
{
    static const char *const words[] = {
        [WG_HTTP_ANSWERED] = "answered",   [WG_HTTP_REFUSED] = "refused",
        [WG_HTTP_TIMED_OUT] = "timed out", [WG_HTTP_BROKEN] = "broken",
        [WG_HTTP_TOO_LARGE] = "too large", [WG_HTTP_NO_MEMORY] = "no memory",
        [WG_HTTP_CANCELLED] = "cancelled",
    };
    return words[end];
}
