/* SPDX-License-Identifier: MIT
 *
 * What the load generator itself costs: requests a second of one core, and what it adds to a
 * latency.
 *
 *     load_generator      prints JSON; run it from a release build
 *
 * The peer is a thread here that answers each request at once with 100 bytes, so
 * that what is measured is ours (and the kernel's). CPU time is that of the generator's thread.
 *
 * Owns: its server.    Threads: two.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "live/load_generator.h"
#include "schedule/arrivals.h"

static const char answer_text[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 54\r\n\r\n"
    "{\"model_name\":\"m\",\"outputs\":[{\"name\":\"y\",\"data\":[0]}]}";

__attribute__((noreturn)) static void die(const char *what)
{
    (void)fprintf(stderr, "load_generator: %s\n", what);
    exit(1);
}

/* -- The server: one epoll, one answer a request ------------------------------------------------
 */

static void take_connection(int epoll, int listener)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    const int one = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static void *serve(void *context)
{
    const int listener = *(const int *)context;
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    (void)epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        struct epoll_event events[64];
        const int count = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < count; i++) {
            const int fd = events[i].data.fd;
            char request[4096];
            if (fd == listener)
                take_connection(epoll, listener);
            else if (recv(fd, request, sizeof request, 0) <= 0)
                (void)close(fd);
            else
                (void)send(fd, answer_text, sizeof answer_text - 1, MSG_NOSIGNAL);
        }
    }
    return NULL;
}

static void open_server(char *url, size_t size)
{
    static int listener;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    pthread_t thread;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 ||
        listen(listener, 1024) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&thread, NULL, serve, &listener) != 0)
        die("no server");
    (void)snprintf(url, size, "http://127.0.0.1:%u/v2/models/m/infer", ntohs(address.sin_port));
}

/* -- The target ---------------------------------------------------------------------------------
 */

struct target {
    struct wg_load_target load;
    const char *url;
    struct wg_http_headers *headers;
};

static void begin(struct wg_load_target *load, struct wg_load_attempt *attempt,
                  struct wg_http_request *out)
{
    (void)attempt;
    const struct target *target = (const struct target *)load;
    out->url = target->url;
    out->headers = target->headers;
    out->body = "{\"inputs\":[]}";
    out->length = 13;
}

static enum wg_load_verdict judge(struct wg_load_target *load, struct wg_load_attempt *attempt,
                                  const struct wg_http_answer *answer,
                                  char why[static WG_WORKLOAD_WHY_SIZE])
{
    (void)load;
    (void)attempt;
    why[0] = '\0';
    return answer->status == 200 ? WG_LOAD_GOOD : WG_LOAD_BAD;
}

static double thread_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* One window; `arrivals` NULL: closed loop of `outstanding`. */
static void measure(struct target *target, const char *arrivals, size_t outstanding, bool is_last)
{
    struct wg_error err = {.code = WG_OK};
    struct wg_http_client *client = NULL;
    struct wg_load_generator *generator = NULL;
    struct wg_arrivals *stream = NULL;
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    if (wg__http_client_open(&client, outstanding, 1 << 20, &err) != WG_OK ||
        (arrivals != NULL && wg__arrivals_open(&stream, arrivals, &rng, &err) != WG_OK))
        die(err.text);
    const struct wg_load_config config = {.client = client,
                                          .target = &target->load,
                                          .arrivals = stream,
                                          .outstanding = outstanding,
                                          .timeout_s = 10};
    const struct wg_workload_plan plan = {.min_s = 3, .max_s = 3, .hung_s = 10};
    struct wg_load_result result;
    wg__load_result_init(&result);
    const double before_s = thread_s();
    const uint64_t begin_ns = wg__clock_ns();
    if (wg__load_generator_open(&generator, &config, &err) != WG_OK ||
        wg__load_generator_run(generator, &plan, &result, &err) != WG_OK)
        die(err.text);
    if (result.outcome != WG_WORKLOAD_OK)
        die(result.why);
    const double busy = (thread_s() - before_s) / ((double)(wg__clock_ns() - begin_ns) * 1e-9);
    const double rate = (double)result.answered / result.time_s;
    (void)printf("  {\"arrivals\": \"%s\", \"outstanding\": %zu, \"requests_per_s\": %.0f, "
                 "\"core_share\": %.3f, \"requests_per_core_s\": %.0f, \"p50_us\": %.1f, "
                 "\"p99_us\": %.1f",
                 arrivals != NULL ? arrivals : "closed", outstanding, rate, busy, rate / busy,
                 wg__load_window_percentile(&result.latency, 0.5).value * 1e6,
                 wg__load_window_percentile(&result.latency, 0.99).value * 1e6);
    if (arrivals != NULL)
        (void)printf(", \"send_lag_p50_us\": %.1f, \"send_lag_p99_us\": %.1f",
                     wg__load_window_percentile(&result.lag, 0.5).value * 1e6,
                     wg__load_window_percentile(&result.lag, 0.99).value * 1e6);
    (void)printf("}%s\n", is_last ? "" : ",");
    wg__load_result_fini(&result);
    wg__load_generator_close(generator);
    wg__arrivals_close(stream);
    wg__http_client_close(client);
}

int main(void)
{
    static const char *const lines[] = {"Content-Type: application/json", "Expect:", NULL};
    static const struct wg_load_target_ops ops = {.begin = begin, .judge = judge};
    char url[80];
    struct wg_error err = {.code = WG_OK};
    struct target target = {.load.ops = &ops, .url = url};
    open_server(url, sizeof url);
    if (wg__http_headers_new(&target.headers, lines, &err) != WG_OK)
        die(err.text);
    (void)printf("{\"schema\": \"wattgov.bench.load_generator/1\", \"windows\": [\n");
    measure(&target, NULL, 1, false);
    measure(&target, NULL, 16, false);
    measure(&target, NULL, 256, false);
    measure(&target, "poisson:100", 64, false);
    measure(&target, "poisson:2000", 64, true);
    (void)printf("]}\n");
    wg__http_headers_free(target.headers);
    return 0;
}
