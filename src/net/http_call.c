/* SPDX-License-Identifier: MIT
 *
 * One request, waited for.
 *
 * Threads: as the client.
 */
#include "net/http_call.h"

#include "base/clock.h"

static const uint64_t look_ns = 100000000;

struct call {
    struct wg_http_reply *reply;
    bool has_ended;
};

static void take(void *context, const struct wg_http_answer *answer)
{
    struct call *call = context;
    call->has_ended = true;
    call->reply->answer = *answer;
    call->reply->answer.body = NULL;
    call->reply->body.length = 0;
    wg__buffer_append(&call->reply->body, answer->body, answer->length);
    if (call->reply->body.failed)
        call->reply->answer.end = WG_HTTP_NO_MEMORY;
}

static bool is_stopped(const struct wg_http_stop *stop)
{
    return stop != NULL && stop->should_stop != NULL && stop->should_stop(stop->context);
}

enum wg_code wg__http_call(struct wg_http_client *client, const struct wg_http_request *request,
                           const struct wg_http_stop *stop, struct wg_http_reply *out,
                           struct wg_error *err)
{
    struct call call = {.reply = out};
    struct wg_http_request own = *request;
    own.on_data = NULL;
    own.on_done = take;
    own.context = &call;
    enum wg_code code = wg__http_start(client, &own, err);
    bool was_stopped = false;
    while (code == WG_OK && !call.has_ended && !was_stopped) {
        code = wg__http_wait(client, wg__clock_ns() + look_ns, err);
        was_stopped = is_stopped(stop);
    }
    if (code == WG_OK && !call.has_ended)
        code = wg__fail(err, WG_ETIMEOUT, "%s: given up: a signal came", request->url);
    if (code != WG_OK) {
        wg__http_cancel(client); /* what it lent is about to go */
        return code;
    }
    switch (out->answer.end) {
    case WG_HTTP_ANSWERED:
        return WG_OK;
    case WG_HTTP_REFUSED:
        code = WG_EUNREACHABLE;
        break;
    case WG_HTTP_TIMED_OUT:
        code = WG_ETIMEOUT;
        break;
    case WG_HTTP_NO_MEMORY:
        code = WG_ENOMEM;
        break;
    default:
        code = WG_EIO;
        break;
    }
    return wg__fail(err, code, "%s: %s", request->url, out->answer.why);
}
