/* SPDX-License-Identifier: MIT
 *
 * The HTTP client against a server of a few lines: what it answers, byte for byte, is the test's.
 */
#include "net/http_client.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "net/http_call.h"
#include "support/check.h"

/* Answers each connection's first request with `answer`, then closes it; `is_silent`: never. */
struct server {
    int listener;
    char url[64];
    const char *answer;
    size_t length;
    bool is_silent;
    bool stays; /* does not close after its answer */
    pthread_t thread;
};

static void *serve(void *context)
{
    const struct server *server = context;
    for (;;) {
        const int fd = accept(server->listener, NULL, NULL);
        if (fd < 0)
            return NULL;
        char request[4096];
        const ssize_t got = recv(fd, request, sizeof request, 0);
        if (got > 0 && !server->is_silent)
            (void)send(fd, server->answer, server->length, MSG_NOSIGNAL);
        ssize_t more = server->is_silent || server->stays ? 1 : 0;
        while (more > 0) /* until the client goes */
            more = recv(fd, request, sizeof request, 0);
        (void)shutdown(fd, SHUT_RDWR);
        (void)close(fd);
    }
}

static void open_server(struct server *server, const char *answer, size_t length)
{
    *server = (struct server){.answer = answer, .length = length, .is_silent = answer == NULL};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server->listener < 0)
        fail();
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->listener, 64), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(server->url, sizeof server->url, "http://127.0.0.1:%u/",
                   ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void close_server(struct server *server)
{
    (void)shutdown(server->listener, SHUT_RDWR);
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    (void)close(server->listener);
}

struct seen {
    struct wg_http_answer answer;
    char body[64];
    size_t count;
};

static void on_done(void *context, const struct wg_http_answer *answer)
{
    struct seen *seen = context;
    seen->answer = *answer;
    (void)snprintf(seen->body, sizeof seen->body, "%s", answer->body);
    seen->count++;
}

/* One request to `url`; how it ended. */
static struct seen ask(const char *url, bool is_http2, double timeout_s, size_t body_max)
{
    struct wg_http_client *client = NULL;
    struct wg_error err = {0};
    struct seen seen = {.count = 0};
    assert_int_equal(wg__http_client_open(&client, 2, body_max, &err), WG_OK);
    const struct wg_http_request request = {.url = url,
                                            .body = "{}",
                                            .length = 2,
                                            .is_http2 = is_http2,
                                            .timeout_s = timeout_s,
                                            .on_done = on_done,
                                            .context = &seen};
    assert_int_equal(wg__http_start(client, &request, &err), WG_OK);
    assert_int_equal(wg__http_busy(client), 1);
    const uint64_t until_ns = wg__clock_ns() + UINT64_C(20000000000);
    while (seen.count == 0 && wg__clock_ns() < until_ns)
        assert_int_equal(wg__http_wait(client, until_ns, &err), WG_OK);
    assert_int_equal(wg__http_busy(client), 0);
    wg__http_client_close(client);
    return seen;
}

#define LITERAL(text) text, sizeof(text) - 1

static void answers_come_whole_with_their_headers(void **state)
{
    (void)state;
    struct server server;
    open_server(&server, LITERAL("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n"
                                 "inference-header-content-length: 2\r\n"
                                 "grpc-status: 3\r\n\r\nhello"));
    const struct seen seen = ask(server.url, false, 10, 100);
    assert_int_equal(seen.answer.end, WG_HTTP_ANSWERED);
    assert_int_equal(seen.answer.status, 200);
    assert_int_equal(seen.answer.json_length, 2);
    assert_int_equal(seen.answer.grpc_status, 3);
    assert_int_equal(seen.answer.length, 5);
    assert_string_equal(seen.body, "hello");
    close_server(&server);
}

static void what_breaks_is_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        size_t length;
        bool is_http2;
        enum wg_http_end end;
    } cases[] = {
        {LITERAL("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhel"), false, WG_HTTP_BROKEN},
        {LITERAL("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n012345678"), false,
         WG_HTTP_TOO_LARGE},
        {LITERAL("no HTTP at all\r\n"), false, WG_HTTP_BROKEN},
        {LITERAL("HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n"), true, WG_HTTP_BROKEN},
        {LITERAL("\0\0\0\4\0\0\0\0\0\377\377\377\377\377"), true, WG_HTTP_BROKEN},
        {"", 0, true, WG_HTTP_BROKEN},
        {NULL, 0, false, WG_HTTP_TIMED_OUT},
        {NULL, 0, true, WG_HTTP_TIMED_OUT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct server server;
        open_server(&server, cases[i].answer, cases[i].length);
        const bool is_silent = cases[i].answer == NULL;
        const struct seen seen = ask(server.url, cases[i].is_http2, is_silent ? 0.2 : 10, 8);
        if (seen.answer.end != cases[i].end)
            fail_msg("case %zu ended as %s: %s", i, wg__http_end_word(seen.answer.end),
                     seen.answer.why);
        assert_true(seen.answer.why[0] != '\0');
        close_server(&server);
    }
}

static void what_is_no_http2_is_not_waited_for(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        size_t length;
    } cases[] = {
        {LITERAL("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")},
        {LITERAL("\0\0\6\4\0\0\0\0\0\0\4\377\377\377\377")}, /* a window beyond 2^31 - 1 */
        {LITERAL("\0\0\0\4\0\0\0\0\0\0\0\4\10\0\0\0\0\0\177\377\377\377"
                 "\0\0\4\10\0\0\0\0\0\177\377\377\377")}, /* the window overflows */
        {LITERAL("\0\0\0\4\0\0\0\0\0\0\0\10\7\0\0\0\0\0\0\0\0\0\0\0\0\0")}, /* goodbye */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct server server;
        open_server(&server, cases[i].answer, cases[i].length);
        server.stays = true;
        const struct seen seen = ask(server.url, true, 10, 100);
        if (seen.answer.end != WG_HTTP_BROKEN)
            fail_msg("case %zu ended as %s: %s", i, wg__http_end_word(seen.answer.end),
                     seen.answer.why);
        close_server(&server);
    }
}

static void a_closed_port_refuses(void **state)
{
    (void)state;
    struct server server;
    open_server(&server, LITERAL(""));
    close_server(&server);
    for (int is_http2 = 0; is_http2 < 2; is_http2++) {
        const struct seen seen = ask(server.url, is_http2 != 0, 10, 100);
        assert_int_equal(seen.answer.end, WG_HTTP_REFUSED);
    }
}

static void slots_are_bounded_and_cancelling_frees_them(void **state)
{
    (void)state;
    struct server server;
    open_server(&server, NULL, 0);
    for (int is_http2 = 0; is_http2 < 2; is_http2++) {
        struct wg_http_client *client = NULL;
        struct wg_error err = {0};
        struct seen seen = {.count = 0};
        assert_int_equal(wg__http_client_open(&client, 2, 100, &err), WG_OK);
        const struct wg_http_request request = {.url = server.url,
                                                .body = "",
                                                .is_http2 = is_http2 != 0,
                                                .timeout_s = 30,
                                                .on_done = on_done,
                                                .context = &seen};
        assert_int_equal(wg__http_start(client, &request, &err), WG_OK);
        assert_int_equal(wg__http_start(client, &request, &err), WG_OK);
        assert_int_equal(wg__http_start(client, &request, &err), WG_EBUSY);
        assert_int_equal(wg__http_wait(client, wg__clock_ns() + 20000000, &err), WG_OK);
        assert_int_equal(seen.count, 0);
        wg__http_cancel(client);
        assert_int_equal(seen.count, 2);
        assert_int_equal(seen.answer.end, WG_HTTP_CANCELLED);
        assert_int_equal(wg__http_busy(client), 0);
        assert_int_equal(wg__http_start(client, &request, &err), WG_OK);
        wg__http_client_close(client); /* with one under way */
    }
    struct wg_http_client *client = NULL;
    struct wg_error err = {0};
    assert_int_equal(wg__http_client_open(&client, 0, 1, &err), WG_EINVAL);
    assert_int_equal(wg__http_client_open(&client, WG_HTTP_SLOTS_MAX + 1, 1, &err), WG_EINVAL);
    close_server(&server);
}

static enum wg_code call_once(const char *url, bool is_http2, struct wg_error *err)
{
    static const char *const lines[] = {"A: b", "Expect:", NULL};
    struct wg_http_client *client = NULL;
    struct wg_http_headers *headers = NULL;
    struct wg_http_reply reply = {.answer.status = 0};
    enum wg_code code = wg__http_client_open(&client, 1, 100, err);
    if (code == WG_OK)
        code = wg__http_headers_new(&headers, lines, err);
    const struct wg_http_request request = {
        .url = url, .headers = headers, .body = "", .is_http2 = is_http2, .timeout_s = 10};
    if (code == WG_OK)
        code = wg__http_call(client, &request, NULL, &reply, err);
    wg__buffer_fini(&reply.body);
    wg__http_client_close(client);
    wg__http_headers_free(headers);
    return code;
}

static void every_failing_allocation_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    struct server server;
    open_server(&server, LITERAL("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"));
    for (size_t nth = 1;; nth++) {
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code = call_once(server.url, false, &err);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            break;
        assert_int_equal(code, WG_ENOMEM);
        assert_in_range(nth, 1, 30);
    }
    /* HTTP/2: nghttp2's memory is ours too; the server speaks none, so a call that had all it
     * needed is broken. */
    size_t failures = 0;
    for (size_t nth = 1; nth < 300; nth++) {
        struct wg_error err = {0};
        wg__alloc_fail_from(nth);
        const enum wg_code code = call_once(server.url, true, &err);
        wg__alloc_fail_from(0);
        assert_true(code == WG_ENOMEM || code == WG_EIO);
        failures += code == WG_ENOMEM;
    }
    assert_in_range(failures, 10, 200);
    close_server(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_come_whole_with_their_headers),
        cmocka_unit_test(what_breaks_is_told_apart),
        cmocka_unit_test(what_is_no_http2_is_not_waited_for),
        cmocka_unit_test(a_closed_port_refuses),
        cmocka_unit_test(slots_are_bounded_and_cancelling_frees_them),
        cmocka_unit_test(every_failing_allocation_is_told_and_leaks_nothing),
    };
    return run_tests(tests);
}
