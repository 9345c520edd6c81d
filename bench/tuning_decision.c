/* SPDX-License-Identifier: MIT
 *
 * What a decision of a tuner costs: time and memory of each policy, over 5 005 configurations (as
 * many as the published method's largest board has) and over 100 000.
 *
 *     ninja -C build/release bench/tuning_decision
 *     build/release/bench/tuning_decision [DECISIONS]
 *
 * The space is a board of four clocks, limits and batches with a smooth time and power; 40 trials
 * with 2 % noise are told, each decided for, then DECISIONS more (20) are timed: from a tell to the
 * next question. Times are of the processor, which other work on the machine does not change; the
 * largest one by the wall clock is beside them. Memory is the largest resident set of a process of
 * its own, libraries included. Prints JSON.
 *
 * Threads: one a process.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "math/normal.h"
#include "math/statistics.h"
#include "optimize/tuner.h"

enum { TRIALS = 40, DECISIONS = 20, DECISIONS_MAX = 1000, KNOBS = 4, LEVELS_MAX = 32 };

static const double noise = 0.02;

/* Levels of the GPU's and the memory's clock, of the power limit and of the batch. */
static const size_t spaces[][KNOBS] = {{13, 11, 7, 5}, {25, 20, 20, 10}};

struct figures {
    double create_ms, first_trials_ms, median_ms, largest_ms, largest_wall_ms, peak_mb;
};

static void require(enum wg_code code, const struct wg_error *err)
{
    if (code == WG_OK)
        return;
    (void)fprintf(stderr, "tuning_decision: %s\n", err->text);
    exit(EXIT_FAILURE);
}

static struct wg_tuning_space *make_space(const size_t *counts)
{
    static const enum wg_tuning_role roles[KNOBS] = {WG_TUNING_GPU_CLOCK, WG_TUNING_MEM_CLOCK,
                                                     WG_TUNING_POWER_LIMIT, WG_TUNING_BATCH};
    static const char *const names[KNOBS] = {"gpu_mhz", "mem_mhz", "cap_w", "batch"};
    static double levels[KNOBS][LEVELS_MAX];
    struct wg_tuning_knob knobs[KNOBS];
    struct wg_tuning_space *space = NULL;
    struct wg_error err;

    for (size_t k = 0; k < KNOBS; k++) {
        for (size_t i = 0; i < counts[k]; i++)
            levels[k][i] = roles[k] == WG_TUNING_BATCH ? pow(2, (double)i) : 1 + (double)i;
        knobs[k] = (struct wg_tuning_knob){.name = names[k],
                                           .role = roles[k],
                                           .levels = levels[k],
                                           .count = counts[k],
                                           .default_level =
                                               roles[k] == WG_TUNING_BATCH ? 0 : counts[k] - 1};
    }
    require(wg__tuning_space_box(&space, knobs, KNOBS, NULL, NULL, &err), &err);
    return space;
}

static struct wg_trial measure(const struct wg_tuning_space *space, size_t c, struct wg_rng *rng)
{
    double share[KNOBS];

    for (size_t k = 0; k < KNOBS; k++)
        share[k] =
            (double)(wg__tuning_level(space, c, k) + 4) / (double)(space->knobs[k].count + 3);
    const double f = fmin(share[0], 0.4 + 0.6 * share[2]), b = wg__tuning_value(space, c, 3);
    const double time_s = 0.1 + (1 + b) / 2 / f + 0.3 * (1 + b) / 2 / share[1];
    const double power_w = 0.4 + f * f * f + 0.15 * share[1];

    return (struct wg_trial){.configuration = c,
                             .objective = time_s * power_w / b * exp(noise * wg__rng_normal(rng)),
                             .figures = {time_s * exp(noise * wg__rng_normal(rng))}};
}

/* Tells the answer to the tuner's question and asks for the next one. */
static void step(struct wg_tuner *tuner, const struct wg_tuning_space *space, struct wg_rng *rng,
                 struct wg_tuner_question *question)
{
    const struct wg_trial trial = measure(space, question->configuration, rng);
    struct wg_error err;

    require(wg__tuner_tell(tuner, &trial, &err), &err);
    require(wg__tuner_ask(tuner, question, &err), &err);
    if (question->kind == WG_TUNER_DONE) {
        (void)fprintf(stderr, "tuning_decision: the tuner ended too soon: %s\n", question->why);
        exit(EXIT_FAILURE);
    }
}

static struct figures measure_policy(enum wg_tuner_policy policy, const size_t *counts,
                                     size_t decisions)
{
    struct wg_tuning_space *space = make_space(counts);
    const struct wg_tuner_config config = {
        .space = space,
        .goal = {.objective = WG_TUNING_ENERGY,
                 .limit_count = 1,
                 .limits = {{.name = "time_s", .kind = WG_TUNING_TIME, .bound = 3}}},
        .policy = policy,
        .seed = 1,
        .noise = noise,
        .max_trials = TRIALS + DECISIONS_MAX + 1,
        .never_stops = true,
        .xi = NAN};
    static double times_ms[DECISIONS_MAX];
    struct wg_tuner_question question;
    struct wg_tuner *tuner = NULL;
    struct figures out = {0};
    struct rusage usage;
    struct wg_error err;
    struct wg_rng rng;

    wg__rng_init(&rng, 9);
    uint64_t from_ns = wg__clock_thread_ns();
    require(wg__tuner_new(&tuner, &config, &err), &err);
    out.create_ms = (double)(wg__clock_thread_ns() - from_ns) / 1e6;
    require(wg__tuner_ask(tuner, &question, &err), &err);
    from_ns = wg__clock_thread_ns();
    for (size_t i = 0; i < TRIALS; i++)
        step(tuner, space, &rng, &question);
    out.first_trials_ms = (double)(wg__clock_thread_ns() - from_ns) / 1e6;
    for (size_t i = 0; i < decisions; i++) {
        const uint64_t wall_ns = wg__clock_ns();

        from_ns = wg__clock_thread_ns();
        step(tuner, space, &rng, &question);
        times_ms[i] = (double)(wg__clock_thread_ns() - from_ns) / 1e6;
        out.largest_wall_ms = fmax(out.largest_wall_ms, (double)(wg__clock_ns() - wall_ns) / 1e6);
    }
    wg__sort(times_ms, decisions);
    out.median_ms = times_ms[decisions / 2];
    out.largest_ms = times_ms[decisions - 1];
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        out.peak_mb = (double)usage.ru_maxrss / 1024;
    wg__tuner_free(tuner);
    wg__tuning_space_free(space);
    return out;
}

/* The same in a process of its own; false: it failed. */
static bool measure_apart(enum wg_tuner_policy policy, const size_t *counts, size_t decisions,
                          struct figures *out)
{
    int ends[2], status = 0;

    if (pipe(ends) != 0)
        return false;
    const pid_t child = fork();
    if (child < 0)
        return false;
    if (child == 0) {
        const struct figures figures = measure_policy(policy, counts, decisions);

        _exit(write(ends[1], &figures, sizeof figures) != (ssize_t)sizeof figures);
    }
    (void)close(ends[1]);
    const bool is_read = read(ends[0], out, sizeof *out) == (ssize_t)sizeof *out;
    (void)close(ends[0]);
    return waitpid(child, &status, 0) == child && status == 0 && is_read;
}

static void write_figures(struct wg_json *json, enum wg_tuner_policy policy, const size_t *counts,
                          const struct figures *figures)
{
    size_t configurations = 1;

    for (size_t k = 0; k < KNOBS; k++)
        configurations *= counts[k];
    wg__json_object(json);
    wg__json_member_string(json, "policy", wg__tuner_policy_word(policy));
    wg__json_member_uint(json, "configurations", configurations);
    wg__json_member_uint(json, "trials", TRIALS);
    wg__json_member_double(json, "create_ms", figures->create_ms);
    wg__json_member_double(json, "first_trials_ms", figures->first_trials_ms);
    wg__json_member_double(json, "decision_median_ms", figures->median_ms);
    wg__json_member_double(json, "decision_largest_ms", figures->largest_ms);
    wg__json_member_double(json, "decision_largest_wall_ms", figures->largest_wall_ms);
    wg__json_member_double(json, "peak_resident_mb", figures->peak_mb);
    wg__json_close(json);
}

int main(int argc, char **argv)
{
    uint64_t decisions = DECISIONS;
    struct wg_buffer text;
    struct wg_json json;
    int status = 0;

    if (argc > 2 || (argc == 2 && (!wg__parse_uint64(argv[1], &decisions) || decisions < 1 ||
                                   decisions > DECISIONS_MAX))) {
        (void)fprintf(stderr, "usage: tuning_decision [DECISIONS]\n");
        return 2;
    }
    wg__buffer_init(&text);
    wg__json_init(&json, &text);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.bench.tuning_decision/1");
    wg__json_key(&json, "results");
    wg__json_array(&json);
    for (size_t s = 0; s < sizeof spaces / sizeof *spaces; s++)
        for (unsigned p = 0; p < WG_TUNER_POLICY_COUNT; p++) {
            const enum wg_tuner_policy policy = (enum wg_tuner_policy)p;
            struct figures figures;

            if (measure_apart(policy, spaces[s], decisions, &figures))
                write_figures(&json, policy, spaces[s], &figures);
            else
                status = 1;
        }
    wg__json_close(&json);
    wg__json_close(&json);
    (void)printf("%s\n", text.data);
    wg__buffer_fini(&text);
    return status;
}
