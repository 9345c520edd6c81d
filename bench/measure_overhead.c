/* SPDX-License-Identifier: MIT
 *
 * What measuring costs the program that is measured.
 *
 *     build/release/bench/measure_overhead                 edges, and memory over 1e6 samples
 *     wattgov-vgpu run --machine 8xh100 -- build/release/bench/measure_overhead sampling [SECONDS]
 *
 * Edges: begin + end over 1 and 8 made-up devices (tests/support/metered_devices.h) whose counters
 * tick each 20 ms, the case in which edges make the sampling threads read. Four ways to call:
 *     burst    one window after the other; the budget of edge reads is spent at once
 *     working  10 windows a second by a program that computes between them
 *     slept    the same by a program that sleeps between them: its caches are cold
 *     quiet    the first edges after 4 s without any, which wake the threads
 * A made-up driver costs nothing, so this is all ours.
 *
 * Memory: resident pages before and after 1e6 samples through one account.
 *
 * Sampling: processor time of this process while it samples the machine at 10 Hz, all threads,
 * driver calls included.
 *
 * Prints one JSON object.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/number.h"
#include "measure/meter.h"
#include "support/metered_devices.h"

enum { BURST = 20000, PACED = 60, QUIET = 4, SAMPLES = 1000000 };
static const uint64_t QUIET_NS = 4000000000U;

static void die(const char *what, const struct wg_error *err)
{
    (void)fprintf(stderr, "measure_overhead: %s: %s\n", what, err->text);
    exit(1);
}

static void sleep_until(uint64_t t_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(t_ns / 1000000000U),
                                   .tv_nsec = (long)(t_ns % 1000000000U)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void print_times(const char *name, double *times_us, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += times_us[i];
    qsort(times_us, count, sizeof *times_us, compare_doubles);
    (void)printf("\"%s\": {\"mean_us\": %.3f, \"median_us\": %.3f, \"p99_us\": %.3f}", name,
                 sum / (double)count, times_us[count / 2], times_us[count * 99 / 100]);
}

static void work_until(uint64_t t_ns)
{
    while (wg__clock_ns() < t_ns)
        ;
}

/* Begin and end, timed together; the window is freed outside. */
static double edges_us(struct wg_meter *meter, uint64_t pause_ns, void (*wait)(uint64_t t_ns))
{
    struct wg_window *window;
    struct wg_error err;
    const uint64_t from_ns = wg__clock_ns();
    if (wg_window_begin(&window, meter, "bench", NULL, 0, &err) != WG_OK)
        die("begin", &err);
    const uint64_t begun_ns = wg__clock_ns();
    if (pause_ns != 0)
        wait(begun_ns + pause_ns);
    const uint64_t again_ns = wg__clock_ns();
    wg_window_end(window);
    const uint64_t to_ns = wg__clock_ns();
    wg_window_free(window);
    return (double)(begun_ns - from_ns + (to_ns - again_ns)) * 1e-3;
}

static void time_paced(const char *name, struct wg_meter *meter, void (*wait)(uint64_t t_ns))
{
    static double times_us[PACED];
    for (size_t i = 0; i < PACED; i++) {
        wait(wg__clock_ns() + 67000000U);
        times_us[i] = edges_us(meter, 33000000, wait);
    }
    print_times(name, times_us, PACED);
    (void)printf(", ");
}

static void time_edges(size_t devices, bool is_last)
{
    static struct fake_world world;
    static double burst_us[BURST], quiet_us[QUIET];
    fake_world_init(&world, devices, 20000000);
    struct wg_machine *machine = fake_machine_open(0);
    struct wg_meter *meter;
    struct wg_error err;
    if (wg_meter_open(&meter, machine, NULL, &err) != WG_OK ||
        wg_meter_wait_ready(meter, 10000, &err) != WG_OK)
        die("open", &err);
    sleep_until(wg__clock_ns() + 1000000000U);
    (void)printf("    {\"devices\": %zu, ", devices);
    time_paced("working", meter, work_until);
    time_paced("slept", meter, sleep_until);
    for (size_t i = 0; i < QUIET; i++) {
        work_until(wg__clock_ns() + QUIET_NS);
        quiet_us[i] = edges_us(meter, 0, NULL);
    }
    print_times("quiet", quiet_us, QUIET);
    (void)printf(", ");
    for (size_t i = 0; i < BURST; i++)
        burst_us[i] = edges_us(meter, 0, NULL);
    print_times("burst", burst_us, BURST);
    (void)printf("}%s\n", is_last ? "" : ",");
    wg_meter_close(meter);
    wg_machine_close(machine);
}

static long resident_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    char line[128];
    uint64_t pages = 0;
    if (file && fgets(line, sizeof line, file)) { /* size resident ... */
        char *second = strchr(line, ' ');
        if (second) {
            second[1 + strcspn(second + 1, " ")] = '\0';
            (void)wg__parse_uint64(second + 1, &pages);
        }
    }
    if (file)
        (void)fclose(file);
    return (long)pages * 4;
}

static void print_memory(void)
{
    static struct wg_account account;
    const struct wg_device_info info = {
        .meters = {[WG_METRIC_ENERGY_J] = {.is_present = true,
                                           .resolution = 1e-3,
                                           .update_period_s = 0.02},
                   [WG_METRIC_POWER_W] = {.is_present = true, .update_period_s = 0.02}}};
    wg__account_init(&account, &info, 100000000);
    const struct wg_clock_offsets offsets = {0};
    long first_kb = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        struct wg_sample sample = {.t_ns = 1000000000U + i * 100000000U};
        sample.present = 1U << WG_METRIC_ENERGY_J | 1U << WG_METRIC_POWER_W;
        sample.values[WG_METRIC_ENERGY_J] = 20 * (double)i;
        sample.values[WG_METRIC_POWER_W] = 200;
        wg__account_add(&account, &sample, &offsets);
        if (i == 1000)
            first_kb = resident_kb();
    }
    (void)printf("  \"samples\": %d, \"resident_kb_after_1000\": %ld, \"resident_kb_after_all\": "
                 "%ld\n",
                 SAMPLES, first_kb, resident_kb());
}

static double processor_s(void)
{
    struct timespec used;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + 1e-9 * (double)used.tv_nsec;
}

static void sample_machine(double seconds)
{
    struct wg_machine *machine = NULL;
    struct wg_meter *meter = NULL;
    struct wg_error err;
    const struct wg_machine_opts opts = WG_MACHINE_OPTS(.gpus_only = true);
    const uint64_t from_ns = wg__clock_ns();
    if (wg_machine_open(&machine, &opts, &err) != WG_OK ||
        wg_meter_open(&meter, machine, NULL, &err) != WG_OK ||
        wg_meter_wait_ready(meter, 10000, &err) != WG_OK)
        die("open", &err);
    const double ready_s = (double)(wg__clock_ns() - from_ns) * 1e-9;
    sleep_until(wg__clock_ns() + 5000000000U); /* the ticks are known by then */
    struct wg_window *window;
    if (wg_window_begin(&window, meter, "sampling", NULL, 0, &err) != WG_OK)
        die("begin", &err);
    const size_t count = wg_machine_device_count(machine);
    size_t reads = 0, before = 0;
    for (size_t i = 0; i < count; i++)
        before += atomic_load(&meter->tracks[i].reads);
    const double used_s = processor_s();
    const uint64_t begin_ns = wg__clock_ns();
    sleep_until(begin_ns + (uint64_t)(seconds * 1e9));
    const double core = (processor_s() - used_s) / ((double)(wg__clock_ns() - begin_ns) * 1e-9);
    for (size_t i = 0; i < count; i++)
        reads += atomic_load(&meter->tracks[i].reads);
    (void)printf(
        "{\n  \"schema\": \"wattgov.bench.measure-overhead/1\",\n  \"devices\": %zu,\n"
        "  \"seconds\": %g,\n  \"core_share\": %.6f,\n  \"reads_per_device_per_s\": %.3f,\n"
        "  \"open_to_first_sample_s\": %.6f,\n  \"resident_kb\": %ld\n}\n",
        count, seconds, core, (double)(reads - before) / seconds / (count > 0 ? (double)count : 1),
        ready_s, resident_kb());
    wg_window_free(window);
    wg_meter_close(meter);
    wg_machine_close(machine);
}

int main(int argc, char **argv)
{
    double seconds = 20;
    if (argc > 1 && strcmp(argv[1], "sampling") == 0 && argc <= 3) {
        if (argc > 2 && !wg__parse_double(argv[2], &seconds)) {
            (void)fprintf(stderr, "measure_overhead: '%s' is no number of seconds\n", argv[2]);
            return 2;
        }
        sample_machine(seconds);
        return 0;
    }
    if (argc > 1) {
        (void)fprintf(stderr, "usage: measure_overhead [sampling [SECONDS]]\n");
        return 2;
    }
    (void)printf("{\n  \"schema\": \"wattgov.bench.measure-overhead/1\",\n  \"edges\": [\n");
    time_edges(1, false);
    time_edges(8, true);
    (void)printf("  ],\n");
    print_memory();
    (void)printf("}\n");
    return 0;
}
