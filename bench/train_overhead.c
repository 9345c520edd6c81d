/* SPDX-License-Identifier: MIT
 *
 * What telling progress costs the training, from C.
 *
 *     build/release/bench/train_overhead [STEPS]
 *
 * A step is wg_train_step, at three paces:
 *     bare      one after the other, the highest rate at which it may be called (mean of a round)
 *     short     100 us apart, the program computing meanwhile; each fiftieth writes a line
 *     long      6 ms apart: one in some writes a line, which is the most that a step costs
 * and to four readers:
 *     none      no governor: $WATTGOV_PROGRESS is not set
 *     file      a reader in a process of its own, which pumps whenever there is something
 *     socket    the same, by a socket
 *     hung      a socket whose reader never reads
 *
 * Prints one JSON object.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "live/progress.h"
#include "wattgov/train.h"

enum { ROUNDS = 200, PACED_MAX = 10000, LONG = 500 };
static const uint64_t short_ns = 100000, long_ns = 6000000;

struct reader {
    pid_t pid;
    struct wg_progress *progress;
};

static void die(const char *what, const struct wg_error *err)
{
    (void)fprintf(stderr, "train_overhead: %s: %s\n", what, err->text);
    exit(1);
}

static void sink(const struct wg_progress_event *event, void *context)
{
    (void)event;
    (void)context;
}

static void start_reader(struct reader *reader, bool is_socket, bool reads)
{
    struct wg_error err;
    const struct wg_progress_opts opts = {.is_socket = is_socket, .sink = sink};
    if (wg__progress_open(&reader->progress, &opts, &err) != WG_OK)
        die("reader", &err);
    reader->pid = fork();
    if (reader->pid != 0)
        return;
    for (;;) {
        struct pollfd ready = {.fd = wg__progress_fd(reader->progress), .events = POLLIN};
        (void)poll(reads ? &ready : NULL, reads ? 1 : 0, -1);
        (void)wg__progress_pump(reader->progress);
    }
}

static void stop_reader(struct reader *reader)
{
    if (reader->pid > 0) {
        (void)kill(reader->pid, SIGKILL);
        (void)waitpid(reader->pid, NULL, 0);
    }
    wg__progress_close(reader->progress);
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Nanoseconds a step, of rounds of steps that do nothing: median and worst round. */
static void time_bare(struct wg_train *train, size_t steps)
{
    static double each_ns[ROUNDS];
    for (size_t round = 0; round < ROUNDS; round++) {
        const uint64_t from_ns = wg__clock_ns();
        for (size_t i = 0; i < steps; i++)
            wg_train_step(train);
        each_ns[round] = (double)(wg__clock_ns() - from_ns) / (double)steps;
    }
    qsort(each_ns, ROUNDS, sizeof *each_ns, compare_doubles);
    (void)printf("\"bare_ns\": {\"median\": %.1f, \"p99\": %.1f}", each_ns[ROUNDS / 2],
                 each_ns[ROUNDS * 99 / 100]);
}

/* Nanoseconds of a step that comes `pace_ns` after the last one, while the program computes: with a
 * pace above 5 ms each writes a line. */
static void time_paced(const char *name, struct wg_train *train, uint64_t pace_ns, size_t count)
{
    static double each_ns[PACED_MAX];
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t until_ns = wg__clock_ns() + pace_ns;
        while (wg__clock_ns() < until_ns)
            ;
        const uint64_t from_ns = wg__clock_ns();
        wg_train_step(train);
        each_ns[i] = (double)(wg__clock_ns() - from_ns);
        sum += each_ns[i];
    }
    qsort(each_ns, count, sizeof *each_ns, compare_doubles);
    (void)printf(", \"%s_ns\": {\"mean\": %.1f, \"median\": %.1f, \"max\": %.1f}", name,
                 sum / (double)count, each_ns[count / 2], each_ns[count - 1]);
}

static void time_case(const char *name, const char *path, size_t steps, bool is_last)
{
    struct wg_train *train = NULL;
    struct wg_error err;
    const struct wg_train_opts opts = WG_TRAIN_OPTS(.path = path);
    if (wg_train_open(&train, &opts, &err) != WG_OK)
        die(name, &err);
    (void)printf("  \"%s\": {\"is_active\": %s, ", name,
                 wg_train_is_active(train) ? "true" : "false");
    time_bare(train, steps);
    time_paced("short", train, short_ns, PACED_MAX);
    time_paced("long", train, long_ns, LONG);
    (void)printf("}%s\n", is_last ? "" : ",");
    wg_train_close(train);
}

int main(int argc, char **argv)
{
    uint64_t steps = 100000;
    if (argc > 2 || (argc == 2 && (!wg__parse_uint64(argv[1], &steps) || steps == 0))) {
        (void)fprintf(stderr, "usage: train_overhead [STEPS]\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    (void)unsetenv("WATTGOV_PROGRESS");
    (void)printf("{\n  \"schema\": \"wattgov.bench.train-overhead/1\",\n");
    time_case("none", NULL, steps, false);
    static const struct {
        const char *name;
        bool is_socket, reads;
    } cases[] = {{"file", false, true}, {"socket", true, true}, {"hung", true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reader reader = {0};
        start_reader(&reader, cases[i].is_socket, cases[i].reads);
        time_case(cases[i].name, wg__progress_path(reader.progress), steps, i == 2);
        stop_reader(&reader);
    }
    (void)printf("}\n");
    return 0;
}
