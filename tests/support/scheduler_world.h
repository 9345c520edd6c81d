/* SPDX-License-Identifier: MIT
 *
 * A world that drives a scheduler at random.
 *
 * Requests come, are cancelled and come twice; SLOs and clocks change; jobs come and go; batches
 * take 0.3 to 3 times what was predicted, and some fail. The scheduler is asked until it has
 * nothing more to say, or once, or not at all for a while. Events that cannot be are mixed in, from
 * a stream of their own: without them everything must go the same way. scheduler_books.h has the
 * checks.
 */
#ifndef WG_TESTS_SUPPORT_SCHEDULER_WORLD_H
#define WG_TESTS_SUPPORT_SCHEDULER_WORLD_H

#include "support/scheduler_books.h"

/* -- What happens ---------------------------------------- */

static inline enum wg_code world_tell(struct world *world, struct wg_event *event)
{
    struct wg_error err = {0};
    event->now_s = world->now_s;
    return wg__scheduler_tell(world->scheduler, event, &err);
}

static inline double world_draw_deadline(struct world *world, unsigned m)
{
    const double slo_s = world->slo_s[m];
    if (world->is_orderly)
        return draw_is(&world->chance, 60)
                   ? 0.0
                   : world->now_s + slo_s * draw_between(&world->chance, 0.3, 1.5);
    switch (draw_below(&world->chance, 8)) {
    case 0:
        return fmax(world->now_s - draw_between(&world->chance, 0.0, slo_s), 1e-300);
    case 1:
        return world->now_s;
    case 2:
        return draw_is(&world->chance, 20) ? HUGE_VAL : world->now_s + slo_s;
    case 3:
    case 4:
        return world->now_s + draw_between(&world->chance, 0.0, 2.0 * slo_s);
    default:
        return 0.0;
    }
}

/* An id that waits or runs already, if it is known for certain that it does. */
static inline uint64_t world_draw_id(struct world *world)
{
    if (!draw_is(&world->chance, 5) || world->booked_count == 0 || !world_is_exact(world))
        return world->next_id++;
    const size_t i = draw_below(&world->chance, (uint32_t)world->booked_count);
    return world->booked[i].request.id;
}

/* What must become of it, before it is told. */
static inline void world_foresee(struct world *world, struct booked *booked)
{
    const struct wg_request *request = &booked->request;
    const size_t waiting = world_view(world).waiting;
    booked->fate = FATE_REFUSED;
    if (request->rows > world->stage.models[request->model].max_rows)
        booked->expected = WG_ANSWER_TOO_LARGE;
    else if (world_find(world, request->id, FATE_WAITS) != NULL ||
             world_find(world, request->id, FATE_RUNS) != NULL)
        booked->expected = WG_ANSWER_DUPLICATE;
    else if (waiting >= world_capacity(world))
        booked->expected = WG_ANSWER_FULL;
    else
        booked->fate = FATE_WAITS;
}

static inline void world_arrive(struct world *world)
{
    struct chance *chance = &world->chance;
    if (world->booked_count == WORLD_REQUESTS)
        return;
    const unsigned m = draw_below(chance, (uint32_t)world->stage.setup.model_count);
    const unsigned most = world->stage.models[m].max_rows;
    struct wg_event event = {.kind = WG_EVENT_ARRIVE,
                             .request = {.id = world_draw_id(world),
                                         .model = m,
                                         .merge_key = draw_below(chance, world->keys),
                                         .rows = 1 + draw_below(chance, most)}};
    if (draw_is(chance, 60))
        event.request.rows = 1;
    if (draw_is(chance, 3))
        event.request.rows = most + 1 + draw_below(chance, 100);
    if (draw_is(chance, 5)) /* all models' together are fewer than the queue's lanes */
        event.request.merge_key = draw_below(chance, 10);
    if (draw_is(chance, world->priority_percent))
        event.request.priority = draw_below(chance, WG_PRIORITY_LEVELS + 1);
    event.request.deadline_s = world_draw_deadline(world, m);
    struct booked booked = {.request = event.request};
    world_foresee(world, &booked);
    WORLD_REQUIRE(world, world_tell(world, &event) == WG_OK);
    booked.request.arrived_s = world->now_s;
    if (booked.request.deadline_s == 0.0)
        booked.request.deadline_s = world->now_s + world->slo_s[m];
    if (booked.request.priority == 0)
        booked.request.priority = WG_PRIORITY_LEVELS;
    world->booked[world->booked_count++] = booked;
    world->told++;
}

static inline void world_cancel(struct world *world)
{
    struct wg_event event = {.kind = WG_EVENT_CANCEL, .id = world->next_id + 1};
    struct booked *booked = NULL;
    if (world->booked_count > 0 && world_is_exact(world)) {
        booked = &world->booked[draw_below(&world->chance, (uint32_t)world->booked_count)];
        event.id = booked->request.id;
        booked = world_find(world, event.id, FATE_WAITS);
    }
    WORLD_REQUIRE(world, world_tell(world, &event) == WG_OK);
    if (booked != NULL)
        booked->fate = FATE_CANCELLED;
}

static inline void world_remove_job(struct world *world, size_t place)
{
    for (size_t i = place; i + 1 < world->job_count; i++)
        world->jobs[i] = world->jobs[i + 1];
    world->job_count--;
    if (place == 0) {
        world->rows_done = 0;
        world->head_is_cancelled = false;
    }
}

static inline void world_job(struct world *world)
{
    struct chance *chance = &world->chance;
    struct wg_event event = {.kind = WG_EVENT_JOB,
                             .job = {.id = draw_below(chance, 100),
                                     .batch = 1 + draw_below(chance, 64),
                                     .iterations = 1 + draw_below(chance, 4)}};
    if (draw_is(chance, 20))
        event.job.iterations = UINT64_MAX;
    if (draw_is(chance, 5))
        event.job.batch = UINT32_MAX - draw_below(chance, 2);
    bool is_good = world->stage.setup.step_sample_count > 0 && world->job_count < WG_JOBS_MAX;
    for (size_t i = 0; i < world->job_count; i++)
        is_good = is_good && world->jobs[i].id != event.job.id;
    WORLD_REQUIRE(world, (world_tell(world, &event) == WG_OK) == is_good);
    if (is_good)
        world->jobs[world->job_count++] = event.job;
}

static inline void world_cancel_job(struct world *world)
{
    struct wg_event event = {.kind = WG_EVENT_JOB_CANCEL, .id = draw_below(&world->chance, 100)};
    size_t place = 0;
    if (world->job_count > 0 && draw_is(&world->chance, 90))
        event.id = world->jobs[draw_below(&world->chance, (uint32_t)world->job_count)].id;
    while (place < world->job_count && world->jobs[place].id != event.id)
        place++;
    const bool is_good = place < world->job_count;
    WORLD_REQUIRE(world, (world_tell(world, &event) == WG_OK) == is_good);
    if (is_good && place == 0 && world->step_ends_s < HUGE_VAL)
        world->head_is_cancelled = true;
    else if (is_good)
        world_remove_job(world, place);
}

static inline void world_change_slo(struct world *world)
{
    struct wg_event event = {.kind = WG_EVENT_SLO};
    event.model = draw_below(&world->chance, (uint32_t)world->stage.setup.model_count);
    event.slo_s = world->stage.pace_s * draw_scale(&world->chance, 0.1, 30.0);
    WORLD_REQUIRE(world, world_tell(world, &event) == WG_OK);
    world->slo_s[event.model] = event.slo_s;
}

static inline void world_batch_ended(struct world *world)
{
    struct wg_event event = {.kind = WG_EVENT_BATCH_ENDED, .is_failed = draw_is(&world->chance, 5)};
    WORLD_REQUIRE(world, world_tell(world, &event) == WG_OK);
    world->batch_ends_s = HUGE_VAL;
    for (size_t i = world->booked_count; i > 0; i--)
        if (world->booked[i - 1].fate == FATE_RUNS) {
            world_forget(world, &world->booked[i - 1]);
            world->served++;
        }
}

static inline void world_step_ended(struct world *world)
{
    struct wg_event event = {.kind = WG_EVENT_STEP_ENDED, .is_failed = draw_is(&world->chance, 5)};
    WORLD_REQUIRE(world, world_tell(world, &event) == WG_OK);
    world->step_ends_s = HUGE_VAL;
    if (world->head_is_cancelled) {
        world_remove_job(world, 0);
        return;
    }
    world->rows_done = event.is_failed ? 0 : world->rows_done + world->step.rows;
    if (world->rows_done < world->jobs[0].batch)
        return;
    world->rows_done = 0;
    if (world->jobs[0].iterations == UINT64_MAX)
        return;
    world->jobs[0].iterations--;
    if (world->jobs[0].iterations > 0)
        return;
    world->has_done_job = true;
    world->done_job = world->jobs[0].id;
    world_remove_job(world, 0);
}

static inline void world_clocks_changed(struct world *world)
{
    struct wg_event event = {.kind = WG_EVENT_CLOCKS_CHANGED, .rung = world->wanted_rung};
    if (draw_is(&world->chance, 10)) /* somebody else set others */
        event.rung =
            draw_below(&world->chance, (uint32_t)world->stage.setup.clock_setup.ladder.count);
    WORLD_REQUIRE(world, world_tell(world, &event) == WG_OK);
    world->clocks_at_s = HUGE_VAL;
}

/* One that cannot be; it is refused, and the two runs of a test, with such events and without them,
 * show that nothing has changed. */
static inline void world_wrong_event(struct world *world)
{
    const struct wg_scheduler_setup *setup = &world->stage.setup;
    const size_t models = setup->model_count;
    const double before_s = world->scheduler->now_s - 1e-3;
    struct wg_event event = {.id = 1000, .request = {.id = UINT64_MAX, .rows = 1}};
    const struct wg_event wrong[] = {
        {.kind = WG_EVENT_BATCH_ENDED, .now_s = -HUGE_VAL},
        {.kind = WG_EVENT_CANCEL, .now_s = before_s, .id = world->next_id - 1},
        {.kind = WG_EVENT_CANCEL, .now_s = (double)NAN, .id = world->next_id - 1},
        {.kind = WG_EVENT_CANCEL, .now_s = HUGE_VAL, .id = world->next_id - 1},
        {.kind = WG_EVENT_ARRIVE, .request = {.id = 1, .rows = 1, .model = (unsigned)models}},
        {.kind = WG_EVENT_ARRIVE, .request = {.id = 1, .rows = 0}},
        {.kind = WG_EVENT_ARRIVE, .request = {.id = 1, .rows = 1, .priority = 17}},
        {.kind = WG_EVENT_ARRIVE, .request = {.id = 1, .rows = 1, .deadline_s = -1.0}},
        {.kind = WG_EVENT_ARRIVE, .request = {.id = 1, .rows = 1, .deadline_s = (double)NAN}},
        {.kind = WG_EVENT_SLO, .slo_s = -1.0},
        {.kind = WG_EVENT_SLO, .slo_s = HUGE_VAL},
        {.kind = WG_EVENT_SLO, .slo_s = 1.0, .model = (unsigned)models},
        {.kind = WG_EVENT_CLOCKS_CHANGED, .rung = setup->clock_setup.ladder.count},
        {.kind = WG_EVENT_JOB, .job = {.id = 1000, .batch = 0, .iterations = 1}},
        {.kind = WG_EVENT_JOB, .job = {.id = 1000, .batch = 1, .iterations = 0}},
        {.kind = WG_EVENT_JOB_CANCEL, .id = 1000},
        {.kind = WG_EVENT_KIND_COUNT},
    };
    event = wrong[draw_below(&world->wrong, sizeof wrong / sizeof wrong[0])];
    if (event.now_s == 0.0)
        event.now_s = world->now_s;
    if (event.now_s == world->now_s && draw_is(&world->wrong, 20))
        event.kind = world->batch_ends_s == HUGE_VAL ? WG_EVENT_BATCH_ENDED : WG_EVENT_KIND_COUNT;
    if (event.now_s == world->now_s && draw_is(&world->wrong, 20))
        event.kind = world->step_ends_s == HUGE_VAL ? WG_EVENT_STEP_ENDED : WG_EVENT_KIND_COUNT;
    struct wg_error err = {0};
    WORLD_REQUIRE(world, wg__scheduler_tell(world->scheduler, &event, &err) == WG_EINVAL);
    WORLD_REQUIRE(world, err.text[0] != '\0');
}

static inline void world_random_event(struct world *world)
{
    const uint32_t luck = draw_below(&world->chance, 100);
    if (luck < 70)
        world_arrive(world);
    else if (luck < 78)
        world_cancel(world);
    else if (luck < 82)
        world_change_slo(world);
    else if (luck < 90)
        world_job(world);
    else if (luck < 93)
        world_cancel_job(world);
    else if (luck < 94 && world->clocks_at_s == HUGE_VAL)
        world_clocks_changed(world);
    if (world->has_wrong_events && draw_is(&world->wrong, 50))
        world_wrong_event(world);
}

/* -- Time ---------------------------------------- */

static inline double world_next_s(const struct world *world)
{
    return fmin(fmin(world->batch_ends_s, world->step_ends_s), world->clocks_at_s);
}

static inline void world_happen(struct world *world)
{
    const double now_s = world->now_s;
    if (world->batch_ends_s <= now_s)
        world_batch_ended(world);
    if (world->step_ends_s <= now_s)
        world_step_ended(world);
    if (world->clocks_at_s <= now_s)
        world_clocks_changed(world);
}

/* Until until_s, asked at every end and every wake. */
static inline void world_pass(struct world *world, double until_s)
{
    for (size_t i = 0; i < WORLD_ASKS_MAX; i++) {
        double next_s = world_next_s(world);
        if (world->wake_s > world->now_s)
            next_s = fmin(next_s, world->wake_s);
        if (next_s > until_s)
            return;
        world->now_s = fmax(world->now_s, next_s);
        world_happen(world);
        if (draw_is(&world->chance, 90))
            world_ask(world, SIZE_MAX);
    }
    world->broken("time goes on", __LINE__);
}

/* Nobody comes any more, and jobs are called off: all is answered before long. */
static inline void world_drain(struct world *world)
{
    while (world->job_count > (world->head_is_cancelled ? 1 : 0)) {
        struct wg_event event = {.kind = WG_EVENT_JOB_CANCEL};
        event.id = world->jobs[world->job_count - 1].id;
        WORLD_REQUIRE(world, world_tell(world, &event) == WG_OK);
        if (world->job_count == 1 && world->step_ends_s < HUGE_VAL)
            world->head_is_cancelled = true;
        else
            world_remove_job(world, world->job_count - 1);
    }
    world_ask(world, SIZE_MAX);
    for (size_t i = 0; world->booked_count > 0 || world->step_ends_s < HUGE_VAL; i++) {
        const double next_s = fmin(world_next_s(world), world->wake_s);
        WORLD_REQUIRE(world, i < WORLD_ASKS_MAX && next_s < HUGE_VAL);
        world->now_s = fmax(world->now_s, next_s);
        world_happen(world);
        world_ask(world, SIZE_MAX);
    }
    WORLD_REQUIRE(world, world->job_count == 0);
    size_t answered = 0;
    for (size_t i = 0; i < WG_ANSWER_COUNT; i++)
        answered += world->answers[i];
    WORLD_REQUIRE(world, answered + world->served == world->told);
}

/* `chance`, `wrong`, `has_wrong_events` and `broken` are set; the rest is zero. */
static inline void world_play(struct world *world, size_t events)
{
    struct chance *chance = &world->chance;
    struct wg_error err = {0};
    draw_setup(chance, &world->stage);
    for (size_t m = 0; m < world->stage.setup.model_count; m++)
        world->slo_s[m] = world->stage.models[m].slo_s;
    world->batch_ends_s = world->step_ends_s = world->clocks_at_s = HUGE_VAL;
    world->wake_s = HUGE_VAL;
    world->next_id = 1;
    world->now_s = draw_is(chance, 50) ? 1.0 : draw_scale(chance, 10.0, 2e9);
    WORLD_REQUIRE(world, wg__scheduler_open(&world->scheduler, &world->stage.setup, &err) == WG_OK);
    world->is_orderly = draw_is(chance, 60);
    world->keys = draw_is(chance, 60) ? 1 : 3;
    world->priority_percent = draw_is(chance, 50) ? 0 : 30;
    const double gap_s = world->stage.pace_s * draw_scale(chance, 1e-2, 2.0);
    for (size_t i = 0; i < events; i++) {
        const double next_s =
            world->now_s + (draw_is(chance, 20) ? 0.0 : 2 * gap_s) * draw_between(chance, 0.0, 1.0);
        world_pass(world, next_s);
        world->now_s = fmax(world->now_s, next_s);
        world_random_event(world);
        if (draw_is(chance, 85))
            world_ask(world, draw_is(chance, 90) ? SIZE_MAX : 1 + draw_below(chance, 3));
    }
    world_drain(world);
    wg__scheduler_close(world->scheduler);
}

#endif
