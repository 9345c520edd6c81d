/* SPDX-License-Identifier: MIT
 *
 * The books that are kept beside a scheduler, and what each of its actions must be.
 *
 * They know of every request what may still become of it, and of every job where it is, so each
 * action is checked against what the headers promise when it is given. A broken promise calls
 * `broken`, which does not return.
 */
#ifndef WG_TESTS_SUPPORT_SCHEDULER_BOOKS_H
#define WG_TESTS_SUPPORT_SCHEDULER_BOOKS_H

#include <stdlib.h>

#include "schedule/scheduler_parts.h"
#include "support/scheduler_setups.h"

enum { WORLD_REQUESTS = 1024, WORLD_ASKS_MAX = 100000 };

enum fate {
    FATE_WAITS,
    FATE_REFUSED,   /* the answer `expected` is on its way */
    FATE_CANCELLED, /* likewise */
    FATE_RUNS
};

struct booked {
    struct wg_request request;
    enum fate fate;
    enum wg_answer expected;
};

struct world {
    struct chance chance, wrong;
    bool has_wrong_events;
    __attribute__((noreturn)) void (*broken)(const char *what, int line);

    struct stage_setup stage;
    bool is_orderly; /* clients whose deadlines make sense */
    uint32_t keys, priority_percent;
    double slo_s[STAGE_MODELS];
    struct wg_scheduler *scheduler;
    double now_s;
    double batch_ends_s, step_ends_s, clocks_at_s; /* HUGE_VAL: not under way */
    double wake_s;                                 /* after the last ask that found nothing */
    size_t wanted_rung;
    struct booked booked[WORLD_REQUESTS];
    size_t booked_count;
    uint64_t next_id;

    struct wg_finetune_job jobs[WG_JOBS_MAX]; /* the first is at work */
    size_t job_count;
    unsigned rows_done;
    bool head_is_cancelled, has_done_job;
    uint64_t done_job;
    struct wg_finetune_step step;
    bool is_fresh; /* all that this ask drops was decided in it */

    size_t told, served, answers[WG_ANSWER_COUNT], steps, changes;
    uint64_t hash; /* of all actions */
};

#define WORLD_REQUIRE(world, fact)                                                                 \
    do {                                                                                           \
        if (!(fact))                                                                               \
            (world)->broken(#fact, __LINE__);                                                      \
    } while (0)

/* -- Books ---------------------------------------- */

static inline void world_hash(struct world *world, uint64_t value)
{
    world->hash = (world->hash ^ value) * UINT64_C(0x100000001b3);
    world->hash ^= world->hash >> 29;
}

static inline size_t world_count(const struct world *world, enum fate fate)
{
    size_t count = 0;
    for (size_t i = 0; i < world->booked_count; i++)
        count += world->booked[i].fate == fate;
    return count;
}

static inline struct booked *world_find(struct world *world, uint64_t id, enum fate fate)
{
    for (size_t i = 0; i < world->booked_count; i++)
        if (world->booked[i].request.id == id && world->booked[i].fate == fate)
            return &world->booked[i];
    return NULL;
}

static inline void world_forget(struct world *world, struct booked *booked)
{
    *booked = world->booked[--world->booked_count];
}

static inline struct wg_scheduler_view world_view(struct world *world)
{
    struct wg_scheduler_view view;
    wg__scheduler_view(world->scheduler, world->now_s, &view);
    return view;
}

/* No request was given up whose answer is still to be asked for. */
static inline bool world_is_exact(struct world *world)
{
    return world_view(world).waiting == world_count(world, FATE_WAITS);
}

static inline size_t world_capacity(const struct world *world)
{
    return world->stage.setup.queue_capacity;
}

/* The order in which a lane is served. */
static inline bool world_is_before(const struct wg_request *a, const struct wg_request *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    if (a->deadline_s != b->deadline_s)
        return a->deadline_s < b->deadline_s;
    return a->arrived_s < b->arrived_s;
}

/* -- What an action must be ---------------------------------------- */

static inline struct booked *world_find_answered(struct world *world,
                                                 const struct wg_action *action)
{
    if (action->answer == WG_ANSWER_CANCELLED)
        return world_find(world, action->id, FATE_CANCELLED);
    if (action->answer > WG_ANSWER_DUPLICATE)
        return world_find(world, action->id, FATE_WAITS);
    for (size_t i = 0; i < world->booked_count; i++) {
        struct booked *booked = &world->booked[i];
        if (booked->request.id == action->id && booked->fate == FATE_REFUSED &&
            booked->expected == action->answer)
            return booked;
    }
    return NULL;
}

static inline void world_answer(struct world *world, const struct wg_action *action)
{
    struct booked *booked = world_find_answered(world, action);
    WORLD_REQUIRE(world, booked != NULL);
    const struct wg_request *request = &booked->request;
    const struct wg_scheduler_setup *setup = &world->stage.setup;
    switch (action->answer) {
    case WG_ANSWER_PAST:
        WORLD_REQUIRE(world, request->deadline_s <= world->now_s);
        break;
    case WG_ANSWER_HOPELESS:
        WORLD_REQUIRE(world, setup->drop == WG_DROP_EARLY);
        if (world->is_fresh) {
            const unsigned beside = world->scheduler->step.runs ? world->step.rows : 0;
            const double least_s = wg__scheduler_bounds(world->scheduler, request->model,
                                                        request->rows, beside)[request->rows];
            WORLD_REQUIRE(world, world->now_s + least_s > request->deadline_s * (1 - 1e-12));
        }
        break;
    case WG_ANSWER_SACRIFICED:
        WORLD_REQUIRE(world, setup->drop == WG_DROP_EARLY && setup->batcher == WG_BATCHER_WATTGOV);
        break;
    case WG_ANSWER_FULL:
    case WG_ANSWER_TOO_LARGE:
    case WG_ANSWER_DUPLICATE:
    case WG_ANSWER_CANCELLED:
        break;
    case WG_ANSWER_COUNT:
        WORLD_REQUIRE(world, action->answer != WG_ANSWER_COUNT);
        break;
    }
    world->answers[action->answer]++;
    world_forget(world, booked);
}

/* Who waits on in the batch's lane comes behind it, by the batchers that take in order. */
static inline void world_check_order(struct world *world, const struct wg_batch *batch)
{
    const struct wg_request *last = &batch->requests[batch->count - 1];
    for (size_t i = 1; i < batch->count; i++)
        WORLD_REQUIRE(world, !world_is_before(&batch->requests[i], &batch->requests[i - 1]));
    if (world->stage.setup.batcher == WG_BATCHER_NONE)
        WORLD_REQUIRE(world, batch->count == 1);
    /* A hopeless one that was let run as a probe was not in its turn. */
    if (world->stage.setup.batcher == WG_BATCHER_WATTGOV ||
        world->stage.setup.drop == WG_DROP_EARLY)
        return;
    for (size_t i = 0; i < world->booked_count; i++) {
        const struct booked *other = &world->booked[i];
        if (other->fate == FATE_WAITS && other->request.model == batch->model &&
            other->request.merge_key == last->merge_key && other->request.deadline_s > world->now_s)
            WORLD_REQUIRE(world, !world_is_before(&other->request, last));
    }
}

static inline void world_batch(struct world *world, const struct wg_batch *batch)
{
    WORLD_REQUIRE(world, world->batch_ends_s == HUGE_VAL);
    WORLD_REQUIRE(world, world->step_ends_s == HUGE_VAL || !world->step.is_alone);
    WORLD_REQUIRE(world, batch->count >= 1 && batch->model < world->stage.setup.model_count);
    WORLD_REQUIRE(world, batch->rows <= world->stage.models[batch->model].max_rows);
    WORLD_REQUIRE(world, batch->predicted_s > 0 && isfinite(batch->predicted_s));
    WORLD_REQUIRE(world, batch->bound_s >= batch->predicted_s * (1 - 1e-12));
    unsigned rows = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct wg_request *request = &batch->requests[i];
        struct booked *booked = world_find(world, request->id, FATE_WAITS);
        WORLD_REQUIRE(world, booked != NULL);
        WORLD_REQUIRE(world, request->model == batch->model);
        WORLD_REQUIRE(world, request->merge_key == batch->requests[0].merge_key);
        WORLD_REQUIRE(world, request->rows == booked->request.rows &&
                                 request->priority == booked->request.priority &&
                                 request->merge_key == booked->request.merge_key &&
                                 request->deadline_s == booked->request.deadline_s &&
                                 request->arrived_s == booked->request.arrived_s);
        WORLD_REQUIRE(world, request->deadline_s > world->now_s);
        booked->fate = FATE_RUNS;
        rows += request->rows;
        world_hash(world, request->id);
    }
    WORLD_REQUIRE(world, rows == batch->rows);
    world_check_order(world, batch);
    world->batch_ends_s =
        world->now_s + batch->predicted_s * draw_between(&world->chance, 0.3, 3.0);
}

static inline void world_step(struct world *world, const struct wg_finetune_step *step)
{
    const enum wg_finetune_policy policy = world->stage.setup.finetune;
    WORLD_REQUIRE(world, world->step_ends_s == HUGE_VAL && world->job_count > 0);
    WORLD_REQUIRE(world, policy != WG_FINETUNE_NONE);
    WORLD_REQUIRE(world, step->is_alone == (policy == WG_FINETUNE_WATTGOV));
    WORLD_REQUIRE(world, !step->is_alone || world->batch_ends_s == HUGE_VAL);
    const unsigned left = world->jobs[0].batch - world->rows_done;
    WORLD_REQUIRE(world, step->job == world->jobs[0].id);
    WORLD_REQUIRE(world, step->rows >= 1 && step->rows <= left);
    WORLD_REQUIRE(world, step->is_alone || step->rows == left);
    WORLD_REQUIRE(world, step->begins_iteration == (world->rows_done == 0));
    WORLD_REQUIRE(world, step->ends_iteration == (step->rows == left));
    world->step = *step;
    world->steps++;
    world_hash(world, step->rows);
    world->step_ends_s =
        world->now_s + world->stage.pace_s * draw_scale(&world->chance, 0.01, 10.0);
}

static inline void world_do(struct world *world, const struct wg_action *action)
{
    world_hash(world, (uint64_t)action->kind);
    switch (action->kind) {
    case WG_ACTION_RUN_BATCH:
        world_batch(world, &action->batch);
        break;
    case WG_ACTION_RUN_STEP:
        world_step(world, &action->step);
        break;
    case WG_ACTION_ANSWER:
        world_hash(world, action->id * WG_ANSWER_COUNT + (uint64_t)action->answer);
        world_answer(world, action);
        break;
    case WG_ACTION_SET_CLOCKS:
        world_hash(world, action->rung);
        WORLD_REQUIRE(world, world->stage.setup.clocks == WG_CLOCKS_GOVERNED);
        WORLD_REQUIRE(world, action->rung < world->stage.setup.clock_setup.ladder.count);
        WORLD_REQUIRE(world, world->clocks_at_s == HUGE_VAL);
        world->changes++;
        world->wanted_rung = action->rung;
        world->clocks_at_s =
            world->now_s + world->stage.pace_s * draw_between(&world->chance, 0.0, 5.0);
        break;
    case WG_ACTION_JOB_DONE:
        WORLD_REQUIRE(world, world->has_done_job && action->id == world->done_job);
        world->has_done_job = false;
        break;
    case WG_ACTION_KIND_COUNT:
        WORLD_REQUIRE(world, action->kind != WG_ACTION_KIND_COUNT);
        break;
    }
}

/* The scheduler has nothing more to do now. */
static inline void world_check_rest(struct world *world)
{
    const struct wg_scheduler_view view = world_view(world);
    WORLD_REQUIRE(world, view.waiting == world_count(world, FATE_WAITS));
    WORLD_REQUIRE(world, view.waiting <= world_capacity(world));
    WORLD_REQUIRE(world, view.batch_runs == (world->batch_ends_s < HUGE_VAL));
    WORLD_REQUIRE(world, view.step_runs == (world->step_ends_s < HUGE_VAL));
    WORLD_REQUIRE(world, view.margin >= 0 && view.rate >= 0);
    WORLD_REQUIRE(world, view.finetune_share >= 0 && view.finetune_share <= 1);
    WORLD_REQUIRE(world, world_count(world, FATE_REFUSED) == 0);
    WORLD_REQUIRE(world, world_count(world, FATE_CANCELLED) == 0);
    WORLD_REQUIRE(world, !world->has_done_job);
    world->wake_s = wg__scheduler_wake_s(world->scheduler);
    WORLD_REQUIRE(world, world->wake_s > world->now_s);
    for (size_t i = 0; i < world->booked_count; i++)
        if (world->booked[i].fate == FATE_WAITS) {
            WORLD_REQUIRE(world, world->booked[i].request.deadline_s > world->now_s);
            WORLD_REQUIRE(world, world->wake_s <= world->booked[i].request.deadline_s);
        }
    /* Nothing lies idle while somebody waits, but a batch that may still grow. */
    if (view.waiting > 0 && !view.batch_runs && !(view.step_runs && world->step.is_alone))
        WORLD_REQUIRE(world, world->stage.setup.batcher == WG_BATCHER_TRITON &&
                                 world->stage.setup.batch_delay_s > 0);
}

static inline void world_ask(struct world *world, size_t most)
{
    struct wg_action action;
    world->is_fresh = world_is_exact(world);
    world->wake_s = world->now_s;
    for (size_t i = 0; i < most; i++) {
        WORLD_REQUIRE(world, i < WORLD_ASKS_MAX);
        if (!wg__scheduler_ask(world->scheduler, world->now_s, &action)) {
            world_hash(world, 77);
            world_check_rest(world);
            return;
        }
        world_do(world, &action);
    }
}

#endif
