/* SPDX-License-Identifier: MIT
 *
 * What the parts of a scheduler's decision cost: nanoseconds a call, the mean of many.
 *
 *     ninja -C build/release bench/serving_batcher
 *     build/release/bench/serving_batcher
 *
 * Requests of one row wait for a model whose batch of r rows takes first + more (r - 1); `oldest`
 * is what the oldest has left of its SLO, and the others came evenly within some time after it:
 *
 *     calm       5 requests, all of which can be met (the shape of PolyThrottle's Orin and B7)
 *     full       8 that come at once and fill a batch
 *     trouble    20 in half a second: most are missed
 *     overload   64 in the same time
 *     wide       64, and batches of 64 rows that cost little more than one
 *     half       64 of which half can be met, in batches of any size: the worst of 60 000 at random
 *
 * `plan` is the plan alone, `early` and `standard` are whole choices. Prints JSON.
 *
 * Threads: one.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "schedule/batcher.h"
#include "schedule/merge.h"
#include "schedule/queue.h"
#include "schedule/rate.h"

enum { VARIANTS = 64, ROWS_MAX = 64, WAITING = 1000, CALLS = 200000 };

struct scene {
    const char *name;
    size_t count;
    unsigned max_rows;
    double within_s, oldest_s;
    double first_s, more_s;
};

static const struct scene scenes[] = {
    {"calm", 5, 8, 0.4, 0.6, 0.127, 0.066},     {"full", 8, 8, 0.0, 0.7, 0.127, 0.066},
    {"trouble", 20, 8, 0.5, 0.2, 0.127, 0.066}, {"overload", 64, 8, 0.5, 0.2, 0.127, 0.066},
    {"wide", 64, 64, 0.5, 0.2, 0.061, 0.002},   {"half", 64, 52, 0.04, 1.53, 0.182, 0.044},
};

struct stage {
    struct wg_plan_item items[VARIANTS][WG_PLAN_ITEMS_MAX];
    double batch_s[ROWS_MAX + 1];
    size_t count;
    unsigned max_rows;
};

static struct stage make_stage(const struct scene *scene)
{
    struct stage stage = {.count = scene->count, .max_rows = scene->max_rows};
    struct wg_rng rng;
    wg__rng_init(&rng, 1);
    for (unsigned r = 1; r <= scene->max_rows; r++)
        stage.batch_s[r] = scene->first_s + scene->more_s * (double)(r - 1);
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t i = 0; i < scene->count; i++) {
            const double place = ((double)i + wg__rng_uniform(&rng)) / (double)scene->count;
            stage.items[v][i] = (struct wg_plan_item){
                .deadline_s = scene->oldest_s + scene->within_s * place, .rows = 1};
        }
    return stage;
}

static double per_call(uint64_t from_ns, size_t calls)
{
    return (double)(wg__clock_thread_ns() - from_ns) / (double)calls;
}

static void write_scene(struct wg_json *json, const struct scene *scene)
{
    const struct stage stage = make_stage(scene);
    const size_t calls = CALLS / scene->count;
    struct wg_plan plan = {0};
    size_t missed = 0;
    uint64_t from_ns = wg__clock_thread_ns();
    for (size_t i = 0; i < calls; i++) {
        wg__batch_plan(stage.items[i % VARIANTS], stage.count, stage.batch_s, stage.max_rows, 0.0,
                       WG_PLAN_FREE, &plan);
        missed += plan.missed;
    }
    wg__json_key(json, scene->name);
    wg__json_object(json);
    wg__json_member_double(json, "missed", (double)missed / (double)calls);
    wg__json_member_double(json, "plan", per_call(from_ns, calls));
    for (int drop = WG_DROP_COUNT - 1; drop >= 0; drop--) {
        const struct wg_batcher batcher = {.kind = WG_BATCHER_WATTGOV,
                                           .likely_share = 1.0,
                                           .drop = (enum wg_drop_kind)drop,
                                           .max_rows = stage.max_rows};
        enum wg_verdict verdicts[WG_PLAN_ITEMS_MAX];
        struct wg_batch_choice choice;
        from_ns = wg__clock_thread_ns();
        for (size_t i = 0; i < calls; i++)
            wg__batcher_choose(&batcher, stage.items[i % VARIANTS], stage.count, 0.0, stage.batch_s,
                               0.0, 0.0, verdicts, &choice);
        wg__json_member_double(json, drop == WG_DROP_EARLY ? "early" : "standard",
                               per_call(from_ns, calls));
    }
    wg__json_close(json);
}

/* One request is put in and one taken out while WAITING wait: behind all others, as it is while
 * the SLO stays the same, or before them, as it may be when it has just been cut. */
static double measure_queue(bool is_first)
{
    struct wg_queue *queue = NULL;
    struct wg_error err = {0};
    if (wg__queue_open(&queue, WAITING + 1, &err) != WG_OK) {
        (void)fprintf(stderr, "serving_batcher: %s\n", err.text);
        exit(EXIT_FAILURE);
    }
    struct wg_request request = {.rows = 1, .priority = 1};
    uint64_t from_ns = 0;
    for (uint64_t i = 0; i < CALLS + WAITING; i++) {
        if (i == WAITING)
            from_ns = wg__clock_thread_ns();
        request.id = i;
        request.arrived_s = (double)i;
        request.deadline_s = is_first && i >= WAITING ? -(double)i : (double)i;
        (void)wg__queue_push(queue, &request);
        if (i < WAITING)
            continue;
        const struct wg_request *first = wg__lane_first(queue, wg__queue_lane(queue, 0));
        (void)wg__queue_remove(queue, first->id, NULL);
    }
    const double ns = per_call(from_ns, CALLS);
    wg__queue_close(queue);
    return ns;
}

static void measure_rate(struct wg_json *json)
{
    struct wg_rate rate;
    struct wg_rng rng;
    double sum = 0.0;
    wg__rng_init(&rng, 1);
    wg__rate_init(&rate, 0.1);
    double now_s = 0.0;
    uint64_t from_ns = wg__clock_thread_ns();
    for (size_t i = 0; i < CALLS; i++) {
        now_s += 0.02 * wg__rng_uniform(&rng);
        wg__rate_tell(&rate, now_s, 1.0);
    }
    wg__json_member_double(json, "rate_tell", per_call(from_ns, CALLS));
    from_ns = wg__clock_thread_ns();
    for (size_t i = 0; i < CALLS; i++)
        sum += wg__rate_expect(&rate, now_s + 1e-9 * (double)i, 0.1, 1.28);
    wg__json_member_double(json, sum > 0.0 ? "rate_expect" : "", per_call(from_ns, CALLS));
}

static void measure_merge(struct wg_json *json)
{
    const int64_t dims[] = {1, 3, 224, 224};
    const struct wg_merge_tensor input = {
        .name = "input_1:0", .datatype = "FP32", .dims = dims, .dim_count = 4};
    const struct wg_merge_tensor output = {.name = "predictions"};
    const struct wg_merge_parameter parameters[] = {{"priority", "uint64:1"},
                                                    {"timeout", "int64:700000"}};
    const struct wg_merge_shape shape = {.model = "efficientnet-b7",
                                         .inputs = &input,
                                         .input_count = 1,
                                         .outputs = &output,
                                         .output_count = 1,
                                         .parameters = parameters,
                                         .parameter_count = 2,
                                         .has_batch_dimension = true};
    uint64_t key = 0;
    unsigned rows = 0;
    const uint64_t from_ns = wg__clock_thread_ns();
    for (size_t i = 0; i < CALLS; i++)
        (void)wg__merge_key(&shape, i, &key, &rows, NULL);
    wg__json_member_double(json, "merge_key", per_call(from_ns, CALLS));
}

int main(void)
{
    struct wg_buffer text;
    struct wg_json json;
    wg__buffer_init(&text);
    wg__json_init(&json, &text);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.bench.serving_batcher/1");
    wg__json_key(&json, "ns");
    wg__json_object(&json);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        write_scene(&json, &scenes[i]);
    wg__json_member_double(&json, "queue_last", measure_queue(false));
    wg__json_member_double(&json, "queue_first", measure_queue(true));
    measure_rate(&json);
    measure_merge(&json);
    wg__json_close(&json);
    wg__json_close(&json);
    (void)printf("%s\n", text.data);
    wg__buffer_fini(&text);
    return EXIT_SUCCESS;
}
