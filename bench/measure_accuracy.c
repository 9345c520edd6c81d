/* SPDX-License-Identifier: MIT
 *
 * How far the energy of a window is from the truth, on the virtual GPU.
 *
 *     wattgov-vgpu run --machine v100 -- build/release/bench/measure_accuracy [SECONDS] [SEED]
 *
 * A thread changes the load of GPU 0 each 50 to 500 ms, between about idle and about full. Windows
 * of seven lengths begin at random moments, overlapping, some 20 edges a second, as a training loop
 * with steps and phases would have them. Beside our result stands what a tool gets that reads the
 * energy counter at both edges and subtracts (Zeus 0.16): the counter is looked up in the virtual
 * GPU at the very moments of the edges, so no cost of a call blurs it. Truth is the integral of the
 * virtual GPU's power. A last part draws a constant 100 W for 3 s.
 *
 * Prints one JSON object. Takes SECONDS (60), and some 20 more for the constant part.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/rng.h"
#include "measure/meter.h"
#include "vgpu/state.h"

enum { LENGTHS = 7, WINDOWS_MAX = 4096, CONSTANT_WINDOWS = 6 };
static const double LENGTHS_S[LENGTHS] = {0.05, 0.1, 0.2, 0.5, 1, 2, 5};
static const double EDGES_A_SECOND = 20;
static const double SETTLE_S = 2;

struct edge_window {
    size_t length;
    uint64_t begin_ns, end_ns; /* wanted; then what they became */
    double counter_begin_j, counter_end_j;
    struct wg_window *window;
};

struct event {
    uint64_t t_ns;
    struct edge_window *window;
    bool is_end;
};

struct bench {
    struct vgpu_machine *vgpu;
    struct vgpu_gpu *gpu;
    struct wg_meter *meter;
    atomic_bool stops;
    uint64_t seed;
};

static void die(const char *what, const struct wg_error *err)
{
    (void)fprintf(stderr, "measure_accuracy: %s: %s\n", what, err->text);
    exit(1);
}

static void sleep_until(uint64_t t_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(t_ns / 1000000000U),
                                   .tv_nsec = (long)(t_ns % 1000000000U)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static void set_load(struct bench *bench, double utilization)
{
    struct wg_error err;
    const struct vgpu_load load = {.utilization = utilization, .intensity = 1, .memory_bytes = 1};
    if (vgpu_set_load(bench->gpu, &load, &err) != WG_OK)
        die("load", &err);
}

static void *change_load(void *argument)
{
    struct bench *bench = argument;
    struct wg_rng rng;
    wg__rng_init(&rng, bench->seed);
    uint64_t t_ns = wg__clock_ns();
    bool is_high = false;
    while (!atomic_load(&bench->stops)) {
        is_high = !is_high;
        set_load(bench, is_high ? 0.7 + 0.3 * wg__rng_uniform(&rng) : 0.2 * wg__rng_uniform(&rng));
        t_ns += (uint64_t)((50 + 450 * wg__rng_uniform(&rng)) * 1e6);
        sleep_until(t_ns);
    }
    return NULL;
}

static double counter_now(struct bench *bench)
{
    vgpu_lock(bench->gpu);
    const uint64_t now_ns = wg__clock_ns();
    vgpu_advance(bench->gpu, now_ns);
    const uint64_t mj = vgpu_counter_mj(bench->gpu, now_ns);
    vgpu_unlock(bench->gpu);
    return (double)mj / 1000;
}

static int compare_events(const void *left, const void *right)
{
    const struct event *a = left, *b = right;
    return a->t_ns < b->t_ns ? -1 : a->t_ns > b->t_ns;
}

/* Begins and ends the windows at their times. */
static void run_events(struct bench *bench, struct event *events, size_t count)
{
    struct wg_error err;
    for (size_t i = 0; i < count; i++) {
        struct edge_window *window = events[i].window;
        sleep_until(events[i].t_ns);
        if (!events[i].is_end) {
            if (wg_window_begin(&window->window, bench->meter, "bench", NULL, 0, &err) != WG_OK)
                die("begin", &err);
            window->begin_ns = window->window->begin_ns;
            window->counter_begin_j = counter_now(bench);
        } else {
            wg_window_end(window->window);
            window->end_ns = atomic_load(&window->window->end_ns);
            window->counter_end_j = counter_now(bench);
        }
    }
}

static size_t plan(struct edge_window *windows, struct event *events, double seconds,
                   struct wg_rng *rng, size_t *event_count)
{
    const size_t wanted = (size_t)(seconds * EDGES_A_SECOND / 2);
    const size_t count = wanted < WINDOWS_MAX ? wanted : WINDOWS_MAX;
    const uint64_t start_ns = wg__clock_ns() + (uint64_t)(SETTLE_S * 1e9);
    *event_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct edge_window *window = &windows[i];
        window->length = i % LENGTHS;
        const double length_s = LENGTHS_S[window->length];
        const double begin_s = (seconds - length_s) * wg__rng_uniform(rng);
        window->begin_ns = start_ns + (uint64_t)(begin_s * 1e9);
        window->end_ns = window->begin_ns + (uint64_t)(length_s * 1e9);
        events[(*event_count)++] = (struct event){window->begin_ns, window, false};
        events[(*event_count)++] = (struct event){window->end_ns, window, true};
    }
    qsort(events, *event_count, sizeof *events, compare_events);
    return count;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

struct errors {
    double values[WINDOWS_MAX];
    size_t count;
};

static void print_errors(const char *name, struct errors *errors)
{
    double sum = 0;
    for (size_t i = 0; i < errors->count; i++)
        sum += errors->values[i];
    qsort(errors->values, errors->count, sizeof errors->values[0], compare_doubles);
    const double n = (double)errors->count;
    (void)printf("\"%s\": {\"mean\": %.6f, \"median\": %.6f, \"p95\": %.6f}", name, sum / n,
                 errors->values[errors->count / 2], errors->values[errors->count * 95 / 100]);
}

static double truth_of(struct bench *bench, const struct edge_window *window)
{
    return vgpu_true_energy_j(bench->gpu, window->end_ns) -
           vgpu_true_energy_j(bench->gpu, window->begin_ns);
}

static struct wg_window_result read_window(const struct edge_window *window)
{
    struct wg_window_result result;
    struct wg_error err;
    if (wg_window_read(window->window, &result, NULL, 0, &err) != WG_OK)
        die("read", &err);
    return result;
}

static void print_length(struct bench *bench, struct edge_window *windows, size_t count,
                         size_t length)
{
    static struct errors ours, counter;
    ours.count = counter.count = 0;
    size_t covered = 0, flagged = 0, unresolved = 0;
    double claimed = 0;
    for (size_t i = length; i < count; i += LENGTHS) {
        const struct wg_window_result result = read_window(&windows[i]);
        const double truth_j = truth_of(bench, &windows[i]);
        const double error_j = fabs(result.energy_j - truth_j);
        const double counted_j = windows[i].counter_end_j - windows[i].counter_begin_j;
        ours.values[ours.count++] = error_j / truth_j;
        counter.values[counter.count++] = fabs(counted_j - truth_j) / truth_j;
        covered += error_j <= result.energy_error_j;
        claimed += result.energy_error_j / truth_j;
        const bool is_flagged = (result.flags & WG_WINDOW_BELOW_RESOLUTION) != 0;
        flagged += is_flagged;
        unresolved += result.time_s < 2 * result.resolution_s && !is_flagged;
    }
    const double n = (double)ours.count;
    (void)printf("%s\n    {\"length_s\": %g, \"windows\": %zu, ", length ? "," : "",
                 LENGTHS_S[length], ours.count);
    print_errors("wattgov", &ours);
    (void)printf(", ");
    print_errors("counter_difference", &counter);
    (void)printf(", \"covered_share\": %.4f, \"claimed_error\": %.6f, \"flagged_share\": %.4f, "
                 "\"unflagged_below_resolution\": %zu}",
                 (double)covered / n, claimed / n, (double)flagged / n, unresolved);
}

/* 100 W for 3 s, several times. */
static void print_constant(struct bench *bench)
{
    struct wg_error err;
    const struct vgpu_load load = {.utilization = 1,
                                   .intensity = 1,
                                   .memory_bytes = 1,
                                   .curve_count = 1,
                                   .curve_limit_w = {1},
                                   .curve_power_w = {100},
                                   .curve_speed = {1}};
    if (vgpu_set_load(bench->gpu, &load, &err) != WG_OK)
        die("load", &err);
    sleep_until(wg__clock_ns() + 2000000000U);
    double worst = 0, energy_j = NAN, truth_j = NAN;
    for (size_t i = 0; i < CONSTANT_WINDOWS; i++) {
        struct edge_window window = {0};
        if (wg_window_begin(&window.window, bench->meter, "constant", NULL, 0, &err) != WG_OK)
            die("begin", &err);
        sleep_until(window.window->begin_ns + 3000000000U);
        wg_window_end(window.window);
        window.begin_ns = window.window->begin_ns;
        window.end_ns = atomic_load(&window.window->end_ns);
        const struct wg_window_result result = read_window(&window);
        const double truth = truth_of(bench, &window);
        const double error = fabs(result.energy_j - truth) / truth;
        if (!(error < worst)) {
            worst = error;
            energy_j = result.energy_j;
            truth_j = truth;
        }
        wg_window_free(window.window);
    }
    (void)printf("\"constant\": {\"windows\": %d, \"worst_error\": %.6f, \"energy_j\": %.4f, "
                 "\"truth_j\": %.4f}\n",
                 CONSTANT_WINDOWS, worst, energy_j, truth_j);
}

static void measure(struct bench *bench, double seconds)
{
    static struct edge_window windows[WINDOWS_MAX];
    static struct event events[2 * WINDOWS_MAX];
    struct wg_rng rng;
    wg__rng_init(&rng, bench->seed + 1);
    size_t event_count;
    const size_t count = plan(windows, events, seconds, &rng, &event_count);
    pthread_t loader;
    if (pthread_create(&loader, NULL, change_load, bench) != 0)
        exit(1);
    run_events(bench, events, event_count);
    const double ran_s = seconds + SETTLE_S;
    const double reads = (double)atomic_load(&bench->meter->tracks[0].reads);
    (void)printf("  \"reads_per_s\": %.2f,\n  \"lengths\": [", reads / ran_s);
    for (size_t i = 0; i < LENGTHS; i++)
        print_length(bench, windows, count, i);
    (void)printf("\n  ],\n  ");
    atomic_store(&bench->stops, true);
    (void)pthread_join(loader, NULL);
    for (size_t i = 0; i < count; i++)
        wg_window_free(windows[i].window);
    print_constant(bench);
}

int main(int argc, char **argv)
{
    struct wg_error err;
    static struct bench bench;
    double seconds = 60;
    uint64_t seed = 1;
    if ((argc > 1 && !wg__parse_double(argv[1], &seconds)) ||
        (argc > 2 && !wg__parse_uint64(argv[2], &seed)) || argc > 3) {
        (void)fprintf(stderr, "usage: measure_accuracy [SECONDS] [SEED]\n");
        return 2;
    }
    bench.seed = seed;
    if (vgpu_map_from_environment(&bench.vgpu, &err) != WG_OK)
        die("virtual GPU (run this under wattgov-vgpu run)", &err);
    bench.gpu = &bench.vgpu->gpus[0];
    struct wg_machine *machine;
    const char *const first[] = {"0"};
    const struct wg_machine_opts opts =
        WG_MACHINE_OPTS(.gpus = first, .gpu_count = 1, .gpus_only = true);
    if (wg_machine_open(&machine, &opts, &err) != WG_OK ||
        wg_meter_open(&bench.meter, machine, NULL, &err) != WG_OK ||
        wg_meter_wait_ready(bench.meter, 10000, &err) != WG_OK)
        die("open", &err);
    if (wg_machine_device_count(machine) != 1) {
        (void)fprintf(stderr, "measure_accuracy: no virtual GPU was found through NVML\n");
        return 1;
    }
    (void)printf("{\n  \"schema\": \"wattgov.bench.measure-accuracy/1\",\n  \"machine\": \"%s\",\n"
                 "  \"seconds\": %g,\n  \"counter_period_s\": %g,\n",
                 bench.vgpu->id, seconds, bench.gpu->model.counter_period_s);
    measure(&bench, seconds);
    (void)printf("}\n");
    wg_meter_close(bench.meter);
    wg_machine_close(machine);
    vgpu_unmap(bench.vgpu);
    return 0;
}
