/* SPDX-License-Identifier: MIT
 *
 * The load model against queueing theory, small cases by hand, and a second simulator that goes
 * from event to event.
 */
#include "schedule/load_model.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/arrivals.h"
#include "support/check.h"
#include "support/scratch.h"

/* One request at a time, in `service_s`. */
static struct wg_load_server single(double service_s, double cv, unsigned replicas)
{
    return (struct wg_load_server){
        .point_count = 1,
        .batch = {1.0},
        .service_s = {service_s},
        .busy_power_w = {200.0},
        .idle_power_w = 20.0,
        .service_cv = cv,
        .max_batch = 1,
        .replicas = replicas,
    };
}

static struct wg_arrivals *open_moments(const char *text, const char *options)
{
    struct scratch scratch;
    scratch_open(&scratch);
    scratch_write(scratch_path(&scratch, "t"), text, strlen(text));
    char wish[1024];
    (void)snprintf(wish, sizeof wish, "trace:%s,as=moments%s", scratch.path, options);
    struct wg_arrivals *arrivals = open_arrivals(wish, 11);
    scratch_close(&scratch);
    return arrivals;
}

static struct wg_load_result simulate_stream(const struct wg_load_server *server,
                                             struct wg_arrivals *arrivals, size_t requests)
{
    struct wg_load_result result = {0};
    struct wg_error err = {0};
    struct wg_rng rng;
    wg__rng_init(&rng, 12);
    if (wg__load_simulate(server, arrivals, requests, &rng, &result, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_int_equal(result.requests, requests);
    wg__arrivals_close(arrivals);
    return result;
}

static struct wg_load_result simulate(const struct wg_load_server *server, const char *arrivals,
                                      size_t requests)
{
    return simulate_stream(server, open_arrivals(arrivals, 11), requests);
}

/* The standard error of the mean wait of n consecutive requests of M/M/1 at service time 1 (Daley
 * 1968): waits are correlated, ever more so near saturation. Those of less varied queues are less.
 */
static double wait_error(double load, size_t n)
{
    const double variance =
        load * (2.0 + load * (5.0 + load * (load - 4.0))) / pow(1.0 - load, 4.0);
    return sqrt(variance / (double)n);
}

/* Mean wait of M/G/1 by Pollaczek and Khinchine: load (1 + cv^2) / (2 (1 - load)). */
static void one_server_waits_as_pollaczek_and_khinchine_say(void **state)
{
    (void)state;
    enum { REQUESTS = 400000 };
    static const double loads[] = {0.3, 0.5, 0.8};
    static const double variations[] = {0.0, 0.3, 1.0, 1.5};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        for (size_t k = 0; k < sizeof variations / sizeof *variations; k++) {
            const double cv = variations[k];
            const struct wg_load_server server = single(loads[i], cv, 1);
            const struct wg_load_result result = simulate(&server, "poisson:1", REQUESTS);
            const double wait = loads[i] * (1.0 + cv * cv) / (2.0 * (1.0 - loads[i]));
            const double error = wait_error(loads[i], REQUESTS) * fmax(1.0, cv * cv);
            check_close_abs(result.mean_s / loads[i], 1.0 + wait, 0.0, 4.5 * error);
            check_close_abs(result.utilization, loads[i], 0.015, 0.0);
            check_close_abs(result.energy_per_request_j, 200.0 * loads[i] + 20.0 * (1.0 - loads[i]),
                            0.015, 0.0);
            assert_true(result.is_stable);
        }
    }
}

/* The time in M/M/1 is exponential with mean s/(1 - load). */
static void percentiles_of_one_exponential_server_are_exponential(void **state)
{
    (void)state;
    const struct wg_load_server server = single(0.5, 1.0, 1);
    const struct wg_load_result result = simulate(&server, "poisson:1", 1000000);
    check_close(result.p50_s, log(2.0), 0.02);
    check_close(result.p90_s, log(10.0), 0.02);
    check_close(result.p95_s, log(20.0), 0.02);
    check_close(result.p99_s, log(100.0), 0.03);
    check_close(result.p999_s, log(1000.0), 0.08);
}

/* Probability that all c servers are busy at offered load a. */
static double erlang_c(unsigned c, double a)
{
    double blocked = 1.0; /* Erlang B by its recursion */
    for (unsigned i = 1; i <= c; i++)
        blocked = a * blocked / (i + a * blocked);
    return c * blocked / (c - a * (1.0 - blocked));
}

static void several_servers_wait_as_erlang_says(void **state)
{
    (void)state;
    static const unsigned counts[] = {2, 4, 9};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const unsigned c = counts[i];
        const double offered = 0.75 * c; /* at service time 1 */
        char arrivals[64];
        (void)snprintf(arrivals, sizeof arrivals, "poisson:%.17g", offered);
        const struct wg_load_server server = single(1.0, 1.0, c);
        const struct wg_load_result result = simulate(&server, arrivals, 600000);
        const double wait = erlang_c(c, offered) / (c - offered);
        check_close_abs(result.mean_s, 1.0 + wait, 0.02, 0.0);
        check_close(result.utilization, 0.75, 0.01);
        assert_true(result.is_stable);
    }
}

static void even_arrivals_at_a_fixed_time_never_wait(void **state)
{
    (void)state;
    const struct wg_load_server server = single(0.05, 0.0, 1);
    const struct wg_load_result result = simulate(&server, "uniform:10", 5000);
    check_close(result.mean_s, 0.05, 1e-9);
    check_close(result.p50_s, 0.05, 1e-9);
    check_close(result.p999_s, 0.05, 1e-9);
    check_close(result.utilization, 0.5, 1e-9);
    check_close(result.energy_per_request_j, 0.05 * 200.0 + 0.05 * 20.0, 1e-9);
    check_close(result.mean_batch, 1.0, 0.0);
}

static void a_queue_that_grows_without_end_is_said_to(void **state)
{
    (void)state;
    struct wg_load_server server = single(0.15, 0.0, 1);
    struct wg_load_result result = simulate(&server, "uniform:10", 1000);
    assert_false(result.is_stable);
    check_close(result.utilization, 1.0, 0.0);
    check_close(result.energy_per_request_j, 0.15 * 200.0, 1e-12);
    /* Request n leaves .05 s later than the one before it: 0.15 + 0.05 n, n = 100 .. 1099. */
    check_close(result.mean_s, 0.15 + 0.05 * 599.5, 1e-9);
    check_close(result.p50_s, 0.15 + 0.05 * 599.5, 1e-9);
    server.replicas = 2;
    result = simulate(&server, "uniform:10", 1000);
    assert_true(result.is_stable);
    check_close(result.mean_s, 0.15, 1e-9);

    server = (struct wg_load_server){
        .point_count = 2,
        .batch = {1.0, 4.0},
        .service_s = {0.15, 0.3}, /* 6.7 a second alone, 13.3 in fours */
        .max_batch = 4,
        .replicas = 1,
    };
    assert_true(simulate(&server, "poisson:12", 20000).is_stable);
    assert_false(simulate(&server, "poisson:14", 20000).is_stable);
}

static const struct wg_load_server batching = {
    .point_count = 3,
    .batch = {1.0, 2.0, 4.0},
    .service_s = {1.0, 1.5, 2.5},
    .busy_power_w = {100.0, 120.0, 160.0},
    .idle_power_w = 10.0,
    .max_batch = 4,
    .replicas = 1,
    .delay_s = 0.5,
};

/*      0 0.2 0.4            wait until 0.5, served by 2.5 (three: 2 s, 140 W)
 *      3 3.1 3.2 3.3        full at 3.3, served by 5.8 (2.5 s, 160 W)
 *     10                    waits until 10.5, served by 11.5; the next pass begins at 11 */
static void a_batch_leaves_when_it_is_full_or_has_waited(void **state)
{
    (void)state;
    const struct wg_load_result result = simulate_stream(
        &batching, open_moments("0\n.2\n.4\n3\n3.1\n3.2\n3.3\n10\n", ",window=0:11"), 8);
    check_close(result.mean_s, (2.5 + 2.3 + 2.1 + 2.8 + 2.7 + 2.6 + 2.5 + 1.5) / 8.0, 1e-12);
    check_close(result.p50_s, 2.5, 1e-12);
    check_close(result.p90_s, 2.7 + 0.3 * 0.1, 1e-12);
    check_close(result.mean_batch, 8.0 / 3.0, 1e-12);
    check_close(result.utilization, 5.5 / 11.0, 1e-12);
    check_close(result.energy_per_request_j,
                (2.0 * 140.0 + 2.5 * 160.0 + 1.0 * 100.0 + 5.5 * 10.0) / 8.0, 1e-12);
}

/* Both replicas take one at once; the third waits for the one that is free first, at 1. */
static void replicas_serve_side_by_side(void **state)
{
    (void)state;
    const struct wg_load_server server = single(1.0, 0.0, 2);
    const struct wg_load_result result =
        simulate_stream(&server, open_moments("0\n.1\n.3\n4\n", ""), 3);
    check_close(result.mean_s, (1.0 + 1.0 + 1.7) / 3.0, 1e-12);
    check_close(result.utilization, 3.0 / 8.0, 1e-12);
    check_close(result.energy_per_request_j, (3.0 * 200.0 + 5.0 * 20.0) / 3.0, 1e-12);
}

static void a_full_batch_of_even_arrivals_is_exact(void **state)
{
    (void)state;
    struct wg_load_server server = batching;
    server.delay_s = 100.0;
    const struct wg_load_result result = simulate(&server, "uniform:1", 400);
    /* Fours fill in 3 s and take 2.5 s of 4. */
    check_close(result.mean_s, 1.5 + 2.5, 1e-12);
    check_close(result.p50_s, 4.0, 1e-12);
    check_close(result.utilization, 2.5 / 4.0, 1e-12);
    check_close(result.energy_per_request_j, (2.5 * 160.0 + 1.5 * 10.0) / 4.0, 1e-12);
    check_close(result.mean_batch, 4.0, 0.0);
}

/* A batch of two takes longer or shorter, in steps between what was measured. */
static void times_between_measured_batches_lie_on_a_line(void **state)
{
    (void)state;
    struct wg_load_server server = {
        .point_count = 2,
        .batch = {4.0, 8.0},
        .service_s = {1.0, 1.5},
        .busy_power_w = {10.0, 10.0},
        .replicas = 1,
        .delay_s = 1e6,
    };
    static const struct {
        unsigned batch;
        double service_s;
    } cases[] = {{1, 0.625}, {2, 0.75}, {4, 1.0}, {6, 1.25}, {8, 1.5}, {16, 2.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        server.max_batch = cases[i].batch;
        const struct wg_load_result result =
            simulate(&server, "uniform:.1", (size_t)cases[i].batch * 10);
        check_close(result.energy_per_request_j * cases[i].batch, 10.0 * cases[i].service_s, 1e-12);
    }
    server.service_s[0] = 0.5; /* superlinear: not below the line through the origin */
    server.max_batch = 1;
    check_close(simulate(&server, "uniform:.1", 10).energy_per_request_j, 1.25, 1e-12);
    server.service_s[0] = 2.0; /* a noisy pair that falls: not below the last */
    server.max_batch = 16;
    check_close(simulate(&server, "uniform:.1", 160).energy_per_request_j, 15.0 / 16.0, 1e-12);
}

/* -- A second simulator ----------------------------------------------------------------------- */

enum { SMALL = 300, REPLICAS = 3 };

struct events {
    const struct wg_load_server *server;
    const double *arrivals_s; /* SMALL, max_batch more, infinity */
    double free_s[REPLICAS];
    size_t head;
    double sum_s;
};

/* The first moment behind `now_s` at which something happens. */
static double next_event(const struct events *events, double now_s, size_t arrived)
{
    double next_s = events->arrivals_s[arrived];
    for (unsigned i = 0; i < events->server->replicas; i++) {
        if (events->free_s[i] > now_s)
            next_s = fmin(next_s, events->free_s[i]);
    }
    const double due_s = events->arrivals_s[events->head] + events->server->delay_s;
    return arrived > events->head && due_s > now_s ? fmin(next_s, due_s) : next_s;
}

/* Serves what can be served at `now_s`; false: nothing. */
static bool dispatch(struct events *events, double now_s, size_t arrived)
{
    const struct wg_load_server *server = events->server;
    const size_t waiting = arrived - events->head;
    if (waiting == 0 ||
        (waiting < server->max_batch && now_s < events->arrivals_s[events->head] + server->delay_s))
        return false;
    unsigned replica = 0;
    while (replica < server->replicas && events->free_s[replica] > now_s)
        replica++;
    if (replica == server->replicas)
        return false;
    const size_t size = waiting < server->max_batch ? waiting : server->max_batch;
    events->free_s[replica] = now_s + 0.5 + 0.5 * (double)size; /* as batching has it */
    for (size_t i = 0; i < size; i++, events->head++) {
        if (events->head < SMALL)
            events->sum_s += events->free_s[replica] - events->arrivals_s[events->head];
    }
    return true;
}

static double mean_by_events(const struct wg_load_server *server, const double *arrivals_s)
{
    struct events events = {.server = server, .arrivals_s = arrivals_s};
    double now_s = 0.0;
    size_t arrived = 0;
    while (events.head < SMALL) {
        while (arrivals_s[arrived] <= now_s)
            arrived++;
        if (!dispatch(&events, now_s, arrived))
            now_s = next_event(&events, now_s, arrived);
    }
    return events.sum_s / (double)SMALL;
}

static void agrees_with_a_simulator_that_goes_from_event_to_event(void **state)
{
    (void)state;
    struct wg_rng rng;
    wg__rng_init(&rng, 4);
    for (unsigned round = 0; round < 300; round++) {
        struct wg_load_server server = batching;
        server.max_batch = 1 + wg__rng_below(&rng, 4);
        server.replicas = 1 + wg__rng_below(&rng, REPLICAS);
        server.delay_s = wg__rng_below(&rng, 4) * 0.4;
        double moments_s[2 * SMALL];
        char text[2 * SMALL * 26];
        size_t length = 0;
        double now_s = 0.0;
        const size_t count = SMALL + SMALL / 10 + 8;
        for (size_t i = 0; i < count; i++) {
            /* The warm-up is over, and the queue empty, long before the measured ones. */
            now_s += i == SMALL / 10 ? 1e4 : -log(wg__rng_uniform(&rng)) * 0.8;
            moments_s[i] = now_s;
            length += (size_t)snprintf(text + length, sizeof text - length, "%.17g\n", now_s);
        }
        moments_s[count] = HUGE_VAL;
        const struct wg_load_result result =
            simulate_stream(&server, open_moments(text, ""), SMALL);
        const double expected_s = mean_by_events(&server, moments_s + SMALL / 10);
        check_close(result.mean_s, expected_s, 1e-6);
    }
}

/* -- Properties ---------------------------------------------------------------------------------
 */

static void percentiles_rise_and_so_do_latencies_with_the_rate(void **state)
{
    (void)state;
    double last_s = 0.0;
    for (unsigned rate = 1; rate < 10; rate++) { /* the same arrivals, closer together */
        char arrivals[64];
        (void)snprintf(arrivals, sizeof arrivals, "poisson:%u", rate);
        const struct wg_load_server server = single(0.1, 0.0, 1);
        const struct wg_load_result r = simulate(&server, arrivals, 20000);
        assert_true(r.p50_s <= r.p90_s && r.p90_s <= r.p95_s && r.p95_s <= r.p99_s);
        assert_true(r.p99_s <= r.p999_s && r.p50_s >= 0.1 - 1e-9);
        assert_true(r.mean_s >= last_s);
        last_s = r.mean_s;
    }
}

static void waiting_longer_fills_batches_and_saves_energy(void **state)
{
    (void)state;
    struct wg_load_server server = batching;
    server.idle_power_w = 0.0;
    server.busy_power_w[2] = 120.0; /* so that each step up saves */
    double last_j = HUGE_VAL;
    double last_batch = 0.0;
    for (unsigned i = 0; i < 6; i++) {
        server.delay_s = i * 0.5;
        const struct wg_load_result result = simulate(&server, "poisson:.5", 100000);
        assert_true(result.mean_batch > last_batch);
        assert_true(result.energy_per_request_j < last_j);
        last_batch = result.mean_batch;
        last_j = result.energy_per_request_j;
    }
}

static void energy_is_power_times_time_busy_and_idle(void **state)
{
    (void)state;
    static const char *const arrivals[] = {"uniform:2", "uniform:.7", "uniform:.1"};
    for (size_t i = 0; i < sizeof arrivals / sizeof *arrivals; i++) {
        struct wg_load_server server = batching;
        server.busy_power_w[0] = server.busy_power_w[1] = server.busy_power_w[2] = 90.0;
        server.replicas = 2;
        server.service_cv = 0.4;
        struct wg_arrivals *stream = open_arrivals(arrivals[i], 11);
        const double rate = wg__arrivals_rate(stream);
        const struct wg_load_result r = simulate_stream(&server, stream, 3000);
        const double power_w = 2.0 * (90.0 * r.utilization + 10.0 * (1.0 - r.utilization));
        check_close(r.energy_per_request_j, power_w / rate, 1e-9);
    }
}

static void names_percentiles(void **state)
{
    (void)state;
    const struct wg_load_result result = {
        .mean_s = 1.0, .p50_s = 2.0, .p90_s = 3.0, .p95_s = 4.0, .p99_s = 5.0, .p999_s = 6.0};
    check_close(wg__load_percentile(&result, "mean"), 1.0, 0.0);
    check_close(wg__load_percentile(&result, "p50"), 2.0, 0.0);
    check_close(wg__load_percentile(&result, "p90"), 3.0, 0.0);
    check_close(wg__load_percentile(&result, "p95"), 4.0, 0.0);
    check_close(wg__load_percentile(&result, "p99"), 5.0, 0.0);
    check_close(wg__load_percentile(&result, "p99.9"), 6.0, 0.0);
    assert_true(isnan(wg__load_percentile(&result, "p98")));
}

#define REFUSES(text, ...)                                                                         \
    do {                                                                                           \
        struct wg_load_server server = batching;                                                   \
        __VA_ARGS__;                                                                               \
        refuse(&server, 10, text);                                                                 \
    } while (0)

static void refuse(const struct wg_load_server *server, size_t requests, const char *text)
{
    struct wg_load_result result;
    struct wg_error err = {0};
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    struct wg_arrivals *arrivals = open_arrivals("uniform:1", 11);
    assert_int_equal(wg__load_simulate(server, arrivals, requests, &rng, &result, &err), WG_EINVAL);
    assert_string_equal(err.text, text);
    wg__arrivals_close(arrivals);
}

static void refuses_a_server_that_cannot_be(void **state)
{
    (void)state;
    REFUSES("load model: max_batch is 0, expected 1 to 65536", server.max_batch = 0);
    REFUSES("load model: replicas is 0, expected 1 to 4096", server.replicas = 0);
    REFUSES("load model: delay_s is -1 s", server.delay_s = -1.0);
    REFUSES("load model: idle_power_w is nan W", server.idle_power_w = (double)NAN);
    REFUSES("load model: service_cv is 11, expected 0 to 10", server.service_cv = 11.0);
    REFUSES("load model: 0 measured batches, expected 1 to 64", server.point_count = 0);
    REFUSES("load model: batch[1] is 1, expected batches that rise, 1 to 65536",
            server.batch[1] = 1.0);
    REFUSES("load model: service_s[2] is 0 s", server.service_s[2] = 0.0);
    REFUSES("load model: busy_power_w[0] is -2 W", server.busy_power_w[0] = -2.0);
    REFUSES("load model: only batch 1 was measured, which tells nothing of max_batch 4: measure a "
            "second one",
            server.point_count = 1);
    refuse(&batching, 0, "load model: 0 requests, expected 1 to 134217728");
}

static void survives_every_failing_allocation(void **state)
{
    (void)state;
    enum wg_code code = WG_ENOMEM;
    for (size_t nth = 1; code != WG_OK; nth++) {
        assert_true(nth < 20);
        struct wg_load_result result;
        struct wg_error err = {0};
        struct wg_rng rng;
        wg__rng_init(&rng, 1);
        struct wg_arrivals *arrivals = open_arrivals("uniform:1", 11);
        wg__alloc_fail_from(nth);
        code = wg__load_simulate(&batching, arrivals, 100, &rng, &result, &err);
        wg__alloc_fail_from(0);
        assert_true(code == WG_OK || code == WG_ENOMEM);
        wg__arrivals_close(arrivals);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_server_waits_as_pollaczek_and_khinchine_say),
        cmocka_unit_test(percentiles_of_one_exponential_server_are_exponential),
        cmocka_unit_test(several_servers_wait_as_erlang_says),
        cmocka_unit_test(even_arrivals_at_a_fixed_time_never_wait),
        cmocka_unit_test(a_queue_that_grows_without_end_is_said_to),
        cmocka_unit_test(a_batch_leaves_when_it_is_full_or_has_waited),
        cmocka_unit_test(replicas_serve_side_by_side),
        cmocka_unit_test(a_full_batch_of_even_arrivals_is_exact),
        cmocka_unit_test(times_between_measured_batches_lie_on_a_line),
        cmocka_unit_test(agrees_with_a_simulator_that_goes_from_event_to_event),
        cmocka_unit_test(percentiles_rise_and_so_do_latencies_with_the_rate),
        cmocka_unit_test(waiting_longer_fills_batches_and_saves_energy),
        cmocka_unit_test(energy_is_power_times_time_busy_and_idle),
        cmocka_unit_test(names_percentiles),
        cmocka_unit_test(refuses_a_server_that_cannot_be),
        cmocka_unit_test(survives_every_failing_allocation),
    };
    return run_tests(tests);
}
