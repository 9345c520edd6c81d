/* SPDX-License-Identifier: MIT
 *
 * How fast the serving simulator runs and how long the scheduler takes to decide.
 *
 *     ninja -C build/release bench/serving_speed
 *     build/release/bench/serving_speed [PROFILE [RATE [REQUESTS]]]
 *
 * Simulated requests a second of processor time, one process: policies `none` and `wattgov`, with a
 * backlog of fine-tuning and without, at fixed and at governed clocks; Poisson arrivals (8/s on the
 * shipped Orin profile). An event is a tell and the asks that follow until there is nothing more to
 * do; its time is that of the monotonic clock around it, less what reading the clock takes, so
 * other work on the machine shows in the mean and the 99th percentile. `simulated_event_cpu_ns` is
 * processor time, and holds the simulated world, too.
 * Memory is what the process has resident after a tenth of the requests and after all of them.
 * Prints JSON.
 *
 * Threads: one.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "cli/serving_profile_file.h"
#include "math/statistics.h"
#include "simulate/serving.h"
#include "simulate/serving_setup.h"

enum { EVENTS = 200000, OVERHEAD_ROUNDS = 20001 };

static const double slo_s = 0.7;

struct variant {
    const char *name;
    enum wg_finetune_policy finetune;
    enum wg_batcher_kind batcher;
    enum wg_drop_kind drop;
    bool has_job;
    enum wg_clock_mode clocks;
};

static const struct variant variants[] = {
    {"none", WG_FINETUNE_NONE, WG_BATCHER_TRITON, WG_DROP_STANDARD, false, WG_CLOCKS_FIXED},
    {"floor", WG_FINETUNE_NONE, WG_BATCHER_WATTGOV, WG_DROP_EARLY, false, WG_CLOCKS_FIXED},
    {"floor, governed", WG_FINETUNE_NONE, WG_BATCHER_WATTGOV, WG_DROP_EARLY, false,
     WG_CLOCKS_GOVERNED},
    {"wattgov, backlog", WG_FINETUNE_WATTGOV, WG_BATCHER_WATTGOV, WG_DROP_EARLY, true,
     WG_CLOCKS_FIXED},
    {"wattgov, backlog, governed", WG_FINETUNE_WATTGOV, WG_BATCHER_WATTGOV, WG_DROP_EARLY, true,
     WG_CLOCKS_GOVERNED},
};

static void require(enum wg_code code, const struct wg_error *err)
{
    if (code == WG_OK)
        return;
    (void)fprintf(stderr, "serving_speed: %s\n", err->text);
    exit(EXIT_FAILURE);
}

static struct wg_serving_setup setup_of(const struct variant *variant,
                                        const struct wg_serving_profile *profile, double duration_s)
{
    return (struct wg_serving_setup){
        .profile = profile,
        .believed = profile,
        .finetune = variant->finetune,
        .batcher = variant->batcher,
        .drop = variant->drop,
        .clocks = variant->clocks,
        .slo_s = slo_s,
        .has_job = variant->has_job,
        .job = {.id = 1, .batch = 64, .iterations = UINT64_MAX},
        .duration_s = duration_s,
    };
}

/* -- The simulator ------------------------------------------------------------------------- */

/* Now, not the most so far: the second number of /proc/self/statm is in pages. */
static double resident_mb(void)
{
    char line[128] = "";
    uint64_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return (double)NAN;
    const bool has_line = fgets(line, sizeof line, file) != NULL;
    (void)fclose(file);
    char *second = has_line ? strchr(line, ' ') : NULL;
    if (second == NULL)
        return (double)NAN;
    second++;
    second[strcspn(second, " \n")] = '\0';
    if (!wg__parse_uint64(second, &pages))
        return (double)NAN;
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

static double run(const struct wg_serving_setup *setup, struct wg_arrivals *arrivals,
                  struct wg_serving_sum *sum)
{
    struct wg_error err;
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    wg__arrivals_restart(arrivals, &rng);
    const uint64_t from_ns = wg__clock_thread_ns();
    require(wg__serving_run(setup, arrivals, &rng, sum, NULL, NULL, &err), &err);
    return (double)(wg__clock_thread_ns() - from_ns) * 1e-9;
}

/* -- The scheduler ------------------------------------------------------------------------- */

/* What reading the clock twice takes. */
static double clock_overhead_ns(void)
{
    static double spans_ns[OVERHEAD_ROUNDS];
    for (int i = 0; i < OVERHEAD_ROUNDS; i++) {
        const uint64_t from_ns = wg__clock_ns();
        spans_ns[i] = (double)(wg__clock_ns() - from_ns);
    }
    wg__sort(spans_ns, OVERHEAD_ROUNDS);
    return spans_ns[OVERHEAD_ROUNDS / 2];
}

/* A server of the profile's times without noise; fine-tuning steps never beside a batch. */
struct line {
    const struct wg_serving_profile *profile;
    struct wg_scheduler *scheduler;
    struct wg_arrivals *arrivals;
    double now_s, next_s, batch_end_s, step_end_s, clocks_s;
    size_t rung, next_rung;
    uint64_t last_id;
};

static void choose_event(struct line *line, struct wg_event *event)
{
    *event = (struct wg_event){.kind = WG_EVENT_ARRIVE, .now_s = line->next_s};
    if (line->batch_end_s <= event->now_s)
        *event = (struct wg_event){.kind = WG_EVENT_BATCH_ENDED, .now_s = line->batch_end_s};
    if (line->step_end_s <= event->now_s)
        *event = (struct wg_event){.kind = WG_EVENT_STEP_ENDED, .now_s = line->step_end_s};
    if (line->clocks_s <= event->now_s)
        *event = (struct wg_event){
            .kind = WG_EVENT_CLOCKS_CHANGED, .now_s = line->clocks_s, .rung = line->next_rung};
    line->now_s = event->now_s;
    if (event->kind == WG_EVENT_ARRIVE) {
        event->request = (struct wg_request){.id = ++line->last_id, .rows = 1};
        line->next_s = wg__arrivals_next(line->arrivals);
    } else if (event->kind == WG_EVENT_BATCH_ENDED) {
        line->batch_end_s = HUGE_VAL;
    } else if (event->kind == WG_EVENT_STEP_ENDED) {
        line->step_end_s = HUGE_VAL;
    } else {
        line->rung = event->rung;
        line->clocks_s = HUGE_VAL;
    }
}

static void act(struct line *line, const struct wg_action *action)
{
    if (action->kind == WG_ACTION_RUN_BATCH)
        line->batch_end_s =
            line->now_s + wg__profile_batch_s(line->profile, line->rung, action->batch.rows);
    if (action->kind == WG_ACTION_RUN_STEP)
        line->step_end_s =
            line->now_s + wg__profile_step_s(line->profile, line->rung, action->step.rows,
                                             action->step.ends_iteration);
    if (action->kind == WG_ACTION_SET_CLOCKS) {
        line->next_rung = action->rung;
        line->clocks_s = line->now_s + line->profile->ladder.change_s;
    }
}

/* Fills `spans_ns`, one an event. */
static void time_events(const struct wg_serving_setup *setup, struct wg_arrivals *arrivals,
                        double *spans_ns)
{
    struct wg_error err;
    struct wg_rng rng;
    struct line line = {.profile = setup->profile,
                        .arrivals = arrivals,
                        .batch_end_s = HUGE_VAL,
                        .step_end_s = HUGE_VAL,
                        .clocks_s = HUGE_VAL};
    wg__rng_init(&rng, 2);
    wg__arrivals_restart(arrivals, &rng);
    line.next_s = wg__arrivals_next(arrivals);
    require(wg__serving_open_scheduler(&line.scheduler, setup, &err), &err);
    if (setup->has_job) {
        const struct wg_event job = {.kind = WG_EVENT_JOB, .job = setup->job};
        require(wg__scheduler_tell(line.scheduler, &job, &err), &err);
    }
    for (int i = 0; i < EVENTS; i++) {
        struct wg_event event;
        struct wg_action action;
        choose_event(&line, &event);
        uint64_t spent_ns = 0;
        uint64_t from_ns = wg__clock_ns();
        require(wg__scheduler_tell(line.scheduler, &event, &err), &err);
        while (wg__scheduler_ask(line.scheduler, line.now_s, &action)) {
            spent_ns += wg__clock_ns() - from_ns;
            act(&line, &action);
            from_ns = wg__clock_ns();
        }
        spans_ns[i] = (double)(spent_ns + wg__clock_ns() - from_ns);
    }
    wg__scheduler_close(line.scheduler);
}

/* -- Together ------------------------------------------------------------------------------ */

static void measure(const struct variant *variant, const struct wg_serving_profile *profile,
                    double rate, double requests, struct wg_json *json)
{
    static double spans_ns[EVENTS];
    struct wg_error err;
    struct wg_arrivals *arrivals = NULL;
    struct wg_rng rng;
    char text[64];
    wg__rng_init(&rng, 1);
    (void)snprintf(text, sizeof text, "poisson:%.17g", rate);
    require(wg__arrivals_open(&arrivals, text, &rng, &err), &err);
    struct wg_serving_setup setup = setup_of(variant, profile, requests / rate / 10);
    struct wg_serving_sum *sum = calloc(1, sizeof *sum);
    if (sum == NULL)
        exit(EXIT_FAILURE);
    (void)run(&setup, arrivals, sum);
    const double before_mb = resident_mb();
    *sum = (struct wg_serving_sum){0};
    setup.duration_s = requests / rate;
    const double cpu_s = run(&setup, arrivals, sum);
    const double after_mb = resident_mb();
    const double overhead_ns = clock_overhead_ns();
    time_events(&setup, arrivals, spans_ns);
    wg__sort(spans_ns, EVENTS);

    wg__json_object(json);
    wg__json_member_string(json, "policy", variant->name);
    wg__json_member_double(json, "requests", (double)sum->requests);
    wg__json_member_double(json, "violation_rate",
                           (double)(sum->late + sum->dropped) / (double)sum->requests);
    wg__json_member_double(json, "requests_per_s", (double)sum->requests / cpu_s);
    wg__json_member_double(json, "events_per_s", (double)sum->events / cpu_s);
    wg__json_member_double(json, "simulated_event_cpu_ns", 1e9 * cpu_s / (double)sum->events);
    wg__json_member_double(json, "event_ns_mean",
                           fmax(0, wg__mean(spans_ns, EVENTS) - overhead_ns));
    wg__json_member_double(json, "event_ns_p50",
                           fmax(0, wg__quantile_sorted(spans_ns, EVENTS, 0.5) - overhead_ns));
    wg__json_member_double(json, "event_ns_p99",
                           fmax(0, wg__quantile_sorted(spans_ns, EVENTS, 0.99) - overhead_ns));
    wg__json_member_double(json, "clock_overhead_ns", overhead_ns);
    wg__json_member_double(json, "resident_mb", after_mb);
    wg__json_member_double(json, "resident_growth_mb", after_mb - before_mb);
    wg__json_close(json);
    free(sum);
    wg__arrivals_close(arrivals);
}

int main(int argc, char *argv[])
{
    const char *path = argc > 1 ? argv[1] : "data/serving/orin-efficientnet-b7.yaml";
    double rate = 8;
    double requests = 2e6;
    struct wg_serving_profile profile;
    struct wg_error err;
    struct wg_buffer text;
    struct wg_json json;

    if (argc > 4 || (argc > 2 && (!wg__parse_double(argv[2], &rate) || !(rate > 0))) ||
        (argc > 3 && (!wg__parse_double(argv[3], &requests) || !(requests >= 1000)))) {
        (void)fprintf(stderr, "usage: serving_speed [PROFILE [RATE [REQUESTS]]]\n");
        return 2;
    }
    require(wg__serving_profile_read(&profile, path, &err), &err);
    wg__buffer_init(&text);
    wg__json_init(&json, &text);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.bench.serving_speed/1");
    wg__json_member_string(&json, "profile", profile.name);
    wg__json_member_double(&json, "rate", rate);
    wg__json_key(&json, "results");
    wg__json_array(&json);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        measure(&variants[i], &profile, rate, requests, &json);
    wg__json_close(&json);
    wg__json_close(&json);
    (void)printf("%s\n", text.data);
    wg__buffer_fini(&text);
    return 0;
}
