/* SPDX-License-Identifier: MIT
 *
 * The world around the scheduler: see serving.h.
 *
 *     while requests are open or duration_s has not passed
 *         the next event (event.h)  ──>  tell the scheduler
 *         ask it until it has nothing to do; each answer changes what runs, and with it the ends
 *
 * Who runs only changes at events, so time and energy are added up from one change to the next.
 *
 * Owns: nothing after it returns.    Threads: pure, any thread.
 */
#include "simulate/serving.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "math/gamma.h"
#include "simulate/event.h"
#include "simulate/gpu_share.h"
#include "simulate/serving_setup.h"

/* In the order in which those of one moment come: whoever arrives when a batch ends may be in the
 * next one, and a step that ends with the run counts. */
enum world_event { SLO, CLOCKS, ARRIVAL, BATCH_END, STEP_END, FINISH, WAKE };

enum { WAKES_MAX = 1000 /* at one moment: more are a scheduler that never sleeps */ };

struct world {
    const struct wg_serving_setup *setup;
    struct wg_arrivals *arrivals;
    struct wg_rng batch_noise, step_noise;
    struct wg_scheduler *scheduler;     /* owned */
    struct wg_histogram *latencies;     /* may be NULL */
    const struct wg_timeline *timeline; /* may be NULL */
    struct wg_error *err;

    double now_s;
    struct wg_events events;
    struct wg_gpu_share share;
    size_t rung;           /* that acts */
    size_t next_rung;      /* CLOCKS is to come */
    struct wg_batch batch; /* that runs, with its factor of noise */
    double batch_factor;
    struct wg_finetune_step step;
    double step_factor;
    size_t next_change;
    unsigned wakes;

    bool is_finished; /* duration_s has passed */
    bool has_open_job;
    double added_s; /* what ran until then is in the sum */
    uint64_t last_id;
    uint64_t open;      /* requests without an answer, */
    uint64_t open_mark; /* and the sum of their mixed ids: the same for the same ids only, but for 1
                           in 2^64 */
    struct wg_event event;
    struct wg_serving_sum sum;
};

static void note(const struct world *world, enum wg_timeline_kind kind, uint64_t value)
{
    if (world->timeline != NULL)
        world->timeline->note(world->timeline->context, world->now_s, kind, value);
}

static bool is_running(const struct world *world, enum wg_gpu_user user)
{
    return world->share.tasks[user].is_running;
}

/* -- Who runs ------------------------------------------------------------------------------ */

/* Adds time and energy up to now; to be called before anything changes. */
static void add_up(struct world *world)
{
    const struct wg_rung *rung = &world->setup->profile->ladder.rungs[world->rung];
    struct wg_serving_sum *sum = &world->sum;
    const double span_s = world->now_s - world->added_s;
    const bool has_batch = is_running(world, WG_GPU_BATCH);
    const bool has_step = is_running(world, WG_GPU_STEP);
    if (has_step && !world->is_finished) {
        sum->finetune_busy_s += span_s;
        sum->finetune_work_s +=
            has_batch ? span_s / world->setup->profile->finetune_slowdown : span_s;
    } else if (has_step) {
        sum->finetune_tail_s += span_s;
    }
    if (has_batch)
        sum->inference_busy_s += span_s;
    if (has_batch && has_step) {
        const double energy_j = span_s * fmax(rung->busy_power_w, rung->finetune_power_w);
        sum->both_busy_s += span_s;
        sum->inference_j += energy_j / 2.0;
        sum->finetune_j += energy_j / 2.0;
    } else if (has_batch) {
        sum->inference_j += span_s * rung->busy_power_w;
    } else if (has_step) {
        sum->finetune_j += span_s * rung->finetune_power_w;
    } else {
        sum->idle_j += span_s * rung->idle_power_w;
    }
    world->added_s = world->now_s;
}

static void before_change(struct world *world)
{
    add_up(world);
    wg__gpu_share_advance(&world->share, world->now_s);
}

/* Rounding may put an end a bit before now. */
static void after_change(struct world *world)
{
    const double batch_s = wg__gpu_share_end_s(&world->share, WG_GPU_BATCH);
    const double step_s = wg__gpu_share_end_s(&world->share, WG_GPU_STEP);
    wg__events_set(&world->events, BATCH_END, fmax(batch_s, world->now_s));
    wg__events_set(&world->events, STEP_END, fmax(step_s, world->now_s));
}

static double batch_alone_s(const struct world *world)
{
    return world->batch_factor *
           wg__profile_batch_s(world->setup->profile, world->rung, world->batch.rows);
}

static double step_alone_s(const struct world *world)
{
    return world->step_factor * wg__profile_step_s(world->setup->profile, world->rung,
                                                   world->step.rows, world->step.ends_iteration);
}

/* -- Requests ------------------------------------------------------------------------------ */

static void note_waiting(const struct world *world)
{
    if (world->timeline != NULL)
        note(world, WG_TIMELINE_QUEUE,
             world->open - (is_running(world, WG_GPU_BATCH) ? world->batch.count : 0));
}

static void close_request(struct world *world, uint64_t id)
{
    world->open--;
    world->open_mark -= wg__hash_mix(id);
}

static void serve(struct world *world, const struct wg_request *request)
{
    const double latency_s = world->now_s - request->arrived_s;
    close_request(world, request->id);
    if (world->latencies != NULL)
        wg__histogram_add_atomic(world->latencies, latency_s);
    if (world->now_s > request->deadline_s) {
        world->sum.late++;
        note(world, WG_TIMELINE_LATE, request->id);
    }
}

/* -- Events: each is told ------------------------------------------------------------------ */

static enum wg_code tell(struct world *world, enum wg_event_kind kind)
{
    world->event.kind = kind;
    world->event.now_s = world->now_s;
    world->sum.events++;
    return wg__scheduler_tell(world->scheduler, &world->event, world->err);
}

static void set_next_arrival(struct world *world)
{
    const double at_s = wg__arrivals_next(world->arrivals);
    wg__events_set(&world->events, ARRIVAL, at_s < world->setup->duration_s ? at_s : HUGE_VAL);
}

static enum wg_code arrive(struct world *world)
{
    const uint64_t id = ++world->last_id;
    world->sum.requests++;
    world->open++;
    world->open_mark += wg__hash_mix(id);
    world->event.request = (struct wg_request){.id = id, .rows = 1};
    note(world, WG_TIMELINE_ARRIVED, id);
    note_waiting(world);
    set_next_arrival(world);
    return tell(world, WG_EVENT_ARRIVE);
}

static enum wg_code end_batch(struct world *world)
{
    before_change(world);
    wg__gpu_share_end(&world->share, WG_GPU_BATCH);
    after_change(world);
    note(world, WG_TIMELINE_BATCH_END, world->batch.rows);
    for (size_t i = 0; i < world->batch.count; i++)
        serve(world, &world->batch.requests[i]);
    world->batch = (struct wg_batch){0}; /* its requests are gone with the next word */
    return tell(world, WG_EVENT_BATCH_ENDED);
}

static enum wg_code end_step(struct world *world)
{
    before_change(world);
    wg__gpu_share_end(&world->share, WG_GPU_STEP);
    after_change(world);
    note(world, WG_TIMELINE_STEP_END, world->step.rows);
    if (!world->is_finished)
        world->sum.finetune_rows += world->step.rows;
    return tell(world, WG_EVENT_STEP_ENDED);
}

static void set_next_slo(struct world *world)
{
    const struct wg_serving_setup *setup = world->setup;
    const bool has_one = world->next_change < setup->change_count;
    wg__events_set(&world->events, SLO,
                   has_one ? setup->changes[world->next_change].at_s : HUGE_VAL);
}

static enum wg_code change_slo(struct world *world)
{
    const double slo_s = world->setup->changes[world->next_change++].slo_s;
    set_next_slo(world);
    world->event.model = 0;
    world->event.slo_s = slo_s;
    note(world, WG_TIMELINE_SLO, (uint64_t)llround(slo_s * 1e3));
    return tell(world, WG_EVENT_SLO);
}

static enum wg_code change_clocks(struct world *world)
{
    before_change(world);
    world->rung = world->next_rung;
    if (is_running(world, WG_GPU_BATCH))
        wg__gpu_share_rescale(&world->share, WG_GPU_BATCH, batch_alone_s(world));
    if (is_running(world, WG_GPU_STEP))
        wg__gpu_share_rescale(&world->share, WG_GPU_STEP, step_alone_s(world));
    after_change(world);
    note(world, WG_TIMELINE_CLOCKS, world->rung);
    world->event.rung = world->rung;
    return tell(world, WG_EVENT_CLOCKS_CHANGED);
}

/* With the policy `none` nobody is told of the job. */
static bool has_finetuning(const struct world *world)
{
    return world->setup->has_job && world->setup->finetune != WG_FINETUNE_NONE;
}

static enum wg_code finish(struct world *world)
{
    add_up(world);
    world->is_finished = true;
    if (!world->has_open_job)
        return WG_OK;
    world->has_open_job = false;
    world->sum.finetune_time_s = world->now_s;
    if (!has_finetuning(world))
        return WG_OK;
    world->event.id = world->setup->job.id;
    return tell(world, WG_EVENT_JOB_CANCEL);
}

static enum wg_code happen(struct world *world, size_t kind)
{
    switch ((enum world_event)kind) {
    case SLO:
        return change_slo(world);
    case CLOCKS:
        return change_clocks(world);
    case ARRIVAL:
        return arrive(world);
    case BATCH_END:
        return end_batch(world);
    case STEP_END:
        return end_step(world);
    case FINISH:
        return finish(world);
    case WAKE:
        break;
    }
    return WG_OK;
}

/* -- Actions: each is done ----------------------------------------------------------------- */

static void run_batch(struct world *world, const struct wg_batch *batch)
{
    assert(!is_running(world, WG_GPU_BATCH));
    before_change(world);
    world->batch = *batch;
    world->batch_factor = wg__rng_gamma_factor(&world->batch_noise, world->setup->profile->noise);
    wg__gpu_share_begin(&world->share, WG_GPU_BATCH, batch_alone_s(world));
    after_change(world);
    world->sum.batches[batch->rows]++;
    note(world, WG_TIMELINE_BATCH, batch->rows);
    note_waiting(world);
}

static void run_step(struct world *world, const struct wg_finetune_step *step)
{
    assert(!is_running(world, WG_GPU_STEP));
    before_change(world);
    world->step = *step;
    world->step_factor = wg__rng_gamma_factor(&world->step_noise, world->setup->profile->noise);
    wg__gpu_share_begin(&world->share, WG_GPU_STEP, step_alone_s(world));
    after_change(world);
    note(world, WG_TIMELINE_STEP, step->rows);
}

static void answer(struct world *world, const struct wg_action *action)
{
    world->sum.dropped++;
    world->sum.answers[action->answer]++;
    close_request(world, action->id);
    note(world, WG_TIMELINE_DROPPED, action->id);
    note_waiting(world);
}

/* A change that is asked for while another is under way takes its place. */
static void set_clocks(struct world *world, size_t rung)
{
    const struct wg_clock_ladder *ladder = &world->setup->profile->ladder;
    world->sum.clock_changes++;
    world->sum.inference_j += ladder->change_j;
    world->next_rung = rung;
    wg__events_set(&world->events, CLOCKS, world->now_s + ladder->change_s);
}

static void end_job(struct world *world)
{
    if (!world->has_open_job)
        return;
    world->has_open_job = false;
    world->sum.jobs_finished++;
    world->sum.finished_s += world->now_s;
    world->sum.finetune_time_s = world->now_s;
}

static void act(struct world *world)
{
    struct wg_action action;
    while (wg__scheduler_ask(world->scheduler, world->now_s, &action)) {
        switch (action.kind) {
        case WG_ACTION_RUN_BATCH:
            run_batch(world, &action.batch);
            break;
        case WG_ACTION_RUN_STEP:
            run_step(world, &action.step);
            break;
        case WG_ACTION_ANSWER:
            answer(world, &action);
            break;
        case WG_ACTION_SET_CLOCKS:
            set_clocks(world, action.rung);
            break;
        case WG_ACTION_JOB_DONE:
            end_job(world);
            break;
        case WG_ACTION_KIND_COUNT:
            break;
        }
    }
    const double wake_s = wg__scheduler_wake_s(world->scheduler);
    wg__events_set(&world->events, WAKE, fmax(wake_s, world->now_s));
}

/* -- The run ------------------------------------------------------------------------------- */

static enum wg_code begin(struct world *world)
{
    const struct wg_serving_setup *setup = world->setup;
    const struct wg_serving_profile *profile = setup->profile;
    wg__events_init(&world->events);
    wg__gpu_share_init(&world->share, profile->inference_slowdown, profile->finetune_slowdown);
    world->rung = world->next_rung = setup->rung;
    wg__events_set(&world->events, FINISH, setup->duration_s);
    set_next_arrival(world);
    set_next_slo(world);
    enum wg_code code = wg__serving_open_scheduler(&world->scheduler, setup, world->err);
    if (code != WG_OK)
        return code;
    world->has_open_job = setup->has_job;
    if (has_finetuning(world)) {
        world->event.job = setup->job;
        code = tell(world, WG_EVENT_JOB);
    }
    if (code == WG_OK)
        act(world);
    return code;
}

static enum wg_code go_on(struct world *world)
{
    enum wg_code code = WG_OK;
    while (code == WG_OK && (world->open > 0 || !world->is_finished)) {
        double at_s = 0.0;
        const size_t kind = wg__events_pop(&world->events, &at_s);
        if (kind == WG_EVENTS_MAX)
            return wg__fail(world->err, WG_ESTATE,
                            "the scheduler sleeps over %llu requests at %g s",
                            (unsigned long long)world->open, world->now_s);
        world->wakes = at_s > world->now_s ? 0 : world->wakes + (kind == WAKE);
        if (world->wakes > WAKES_MAX)
            return wg__fail(world->err, WG_ESTATE, "the scheduler never sleeps at %g s", at_s);
        world->now_s = at_s;
        code = happen(world, kind);
        if (code == WG_OK)
            act(world);
    }
    if (code == WG_OK && world->open_mark != 0)
        return wg__fail(world->err, WG_ESTATE,
                        "the scheduler answered a request twice and another one never");
    return code;
}

enum wg_code wg__serving_run(const struct wg_serving_setup *setup, struct wg_arrivals *arrivals,
                             const struct wg_rng *rng, struct wg_serving_sum *sum,
                             struct wg_histogram *latencies, const struct wg_timeline *timeline,
                             struct wg_error *err)
{
    struct wg_serving_setup whole = *setup;
    if (whole.believed == NULL)
        whole.believed = whole.profile;
    enum wg_code code = wg__serving_check(&whole, err);
    if (code != WG_OK)
        return code;
    struct world world = {
        .setup = &whole,
        .arrivals = arrivals,
        .batch_noise = wg__rng_split(rng, 0),
        .step_noise = wg__rng_split(rng, 1),
        .latencies = latencies,
        .timeline = timeline,
        .err = err,
    };
    code = begin(&world);
    if (code == WG_OK)
        code = go_on(&world);
    wg__scheduler_close(world.scheduler);
    if (code != WG_OK)
        return code;
    add_up(&world);
    world.sum.runs = 1;
    world.sum.time_s = world.now_s;
    wg__serving_sum_add(sum, &world.sum);
    return WG_OK;
}

void wg__serving_sum_add(struct wg_serving_sum *sum, const struct wg_serving_sum *other)
{
    sum->runs += other->runs;
    sum->requests += other->requests;
    sum->late += other->late;
    sum->dropped += other->dropped;
    sum->events += other->events;
    sum->jobs_finished += other->jobs_finished;
    sum->finished_s += other->finished_s;
    sum->finetune_rows += other->finetune_rows;
    sum->inference_busy_s += other->inference_busy_s;
    sum->finetune_busy_s += other->finetune_busy_s;
    sum->finetune_tail_s += other->finetune_tail_s;
    sum->both_busy_s += other->both_busy_s;
    sum->finetune_work_s += other->finetune_work_s;
    sum->time_s += other->time_s;
    sum->finetune_time_s += other->finetune_time_s;
    sum->inference_j += other->inference_j;
    sum->finetune_j += other->finetune_j;
    sum->idle_j += other->idle_j;
    sum->clock_changes += other->clock_changes;
    for (size_t i = 0; i < WG_ANSWER_COUNT; i++)
        sum->answers[i] += other->answers[i];
    for (size_t i = 0; i <= WG_BATCH_ROWS_MAX; i++)
        sum->batches[i] += other->batches[i];
}
