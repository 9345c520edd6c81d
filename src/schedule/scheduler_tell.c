/* SPDX-License-Identifier: MIT
 *
 * What each event changes.
 *
 * An event that cannot be now is refused before anything has changed, so that a caller with a fault
 * hears of it and the scheduler's books stay right.
 *
 * Threads: one at a time.
 */
#include <math.h>

#include "schedule/scheduler_parts.h"

static enum wg_code arrive(struct wg_scheduler *scheduler, const struct wg_event *event,
                           struct wg_error *err)
{
    struct wg_request request = event->request;
    if (request.model >= scheduler->setup.model_count)
        return wg__fail(err, WG_EINVAL, "request %llu: model %u of %zu",
                        (unsigned long long)request.id, request.model,
                        scheduler->setup.model_count);
    if (request.rows == 0 || request.priority > WG_PRIORITY_LEVELS || !(request.deadline_s >= 0.0))
        return wg__fail(err, WG_EINVAL, "request %llu: rows %u, priority %u, deadline %g",
                        (unsigned long long)request.id, request.rows, request.priority,
                        request.deadline_s);
    /* Each that waits may need an answer, too. */
    if (scheduler->answer_count + wg__queue_count(scheduler->queue) >= scheduler->answer_capacity)
        return wg__fail(err, WG_EBUSY, "request %llu: %zu answers were not asked for",
                        (unsigned long long)request.id, scheduler->answer_count);
    struct wg_scheduler_model *model = &scheduler->models[request.model];
    request.arrived_s = scheduler->now_s;
    if (request.deadline_s == 0.0)
        request.deadline_s = scheduler->now_s + model->slo_s;
    if (request.priority == 0)
        request.priority = WG_PRIORITY_LEVELS;
    if (request.rows > model->max_rows) {
        wg__scheduler_push_answer(scheduler, request.id, WG_ANSWER_TOO_LARGE);
        return WG_OK;
    }
    wg__rate_tell(&model->rate, scheduler->now_s, request.rows);
    for (size_t i = 0; scheduler->batch.runs && i < scheduler->batch.count; i++)
        if (scheduler->batch.requests[i].id == request.id) {
            wg__scheduler_push_answer(scheduler, request.id, WG_ANSWER_DUPLICATE);
            return WG_OK;
        }
    switch (wg__queue_push(scheduler->queue, &request)) {
    case WG_QUEUE_PUSHED:
        break;
    case WG_QUEUE_FULL:
    case WG_QUEUE_LANES_FULL:
        wg__scheduler_push_answer(scheduler, request.id, WG_ANSWER_FULL);
        break;
    case WG_QUEUE_DUPLICATE:
        wg__scheduler_push_answer(scheduler, request.id, WG_ANSWER_DUPLICATE);
        break;
    }
    return WG_OK;
}

static void learn_batch(struct wg_scheduler *scheduler)
{
    const struct wg_scheduler_batch *batch = &scheduler->batch;
    if (!batch->is_pure || batch->rung != scheduler->rung)
        return;
    const struct wg_rung *clocks = &scheduler->setup.clock_setup.ladder.rungs[batch->rung];
    wg__predictor_tell(scheduler->models[batch->model].predictor,
                       &(struct wg_predictor_sample){.point = {.rows = batch->rows,
                                                               .gpu_clock = clocks->gpu_clock,
                                                               .mem_clock = clocks->mem_clock,
                                                               .finetune_rows = batch->beside},
                                                     .time_s = scheduler->now_s - batch->begin_s});
}

static enum wg_code batch_ended(struct wg_scheduler *scheduler, const struct wg_event *event,
                                struct wg_error *err)
{
    struct wg_scheduler_batch *batch = &scheduler->batch;
    if (!batch->runs)
        return wg__fail(err, WG_EINVAL, "a batch ended, but none runs");
    if (!event->is_failed)
        learn_batch(scheduler);
    for (size_t i = 0; i < batch->count; i++) {
        const struct wg_request *r = &batch->requests[i];
        const double slo_s = r->deadline_s - r->arrived_s;
        wg__scheduler_count_answer(
            scheduler, slo_s > 0.0 ? (scheduler->now_s - r->arrived_s) / slo_s : HUGE_VAL);
    }
    batch->runs = false;
    return WG_OK;
}

static enum wg_code step_ended(struct wg_scheduler *scheduler, const struct wg_event *event,
                               struct wg_error *err)
{
    if (!scheduler->step.runs)
        return wg__fail(err, WG_EINVAL, "a step ended, but none runs");
    if (scheduler->has_done_job)
        return wg__fail(err, WG_EBUSY, "the end of job %llu was not asked for",
                        (unsigned long long)scheduler->done_job);
    wg__finetune_step_ended(scheduler, event->is_failed);
    if (scheduler->batch.runs)
        scheduler->batch.is_pure = false;
    return WG_OK;
}

static enum wg_code change_slo(struct wg_scheduler *scheduler, const struct wg_event *event,
                               struct wg_error *err)
{
    if (event->model >= scheduler->setup.model_count)
        return wg__fail(err, WG_EINVAL, "SLO of model %u of %zu", event->model,
                        scheduler->setup.model_count);
    if (!(event->slo_s > 0.0 && isfinite(event->slo_s)))
        return wg__fail(err, WG_EINVAL, "SLO of %g s, expected more than 0", event->slo_s);
    scheduler->models[event->model].slo_s = event->slo_s;
    scheduler->room_since_s = -HUGE_VAL;
    scheduler->missed_share = 0.0; /* those missed another promise */
    return WG_OK;
}

static enum wg_code clocks_changed(struct wg_scheduler *scheduler, const struct wg_event *event,
                                   struct wg_error *err)
{
    if (event->rung >= scheduler->setup.clock_setup.ladder.count)
        return wg__fail(err, WG_EINVAL, "clocks of rung %zu of %zu", event->rung,
                        scheduler->setup.clock_setup.ladder.count);
    if (event->rung != scheduler->rung) {
        scheduler->batch.is_pure = false;
        scheduler->step.is_pure = false;
    }
    scheduler->rung = event->rung;
    scheduler->wanted_rung = event->rung;
    return WG_OK;
}

static enum wg_code cancel(struct wg_scheduler *scheduler, uint64_t id)
{
    if (wg__queue_remove(scheduler->queue, id, NULL))
        wg__scheduler_push_answer(scheduler, id, WG_ANSWER_CANCELLED);
    return WG_OK;
}

enum wg_code wg__scheduler_tell(struct wg_scheduler *scheduler, const struct wg_event *event,
                                struct wg_error *err)
{
    if (!(event->now_s >= scheduler->now_s && isfinite(event->now_s)))
        return wg__fail(err, WG_EINVAL, "an event at %.9g s behind one at %.9g s", event->now_s,
                        scheduler->now_s);
    const double before_s = scheduler->now_s;
    scheduler->now_s = event->now_s;
    enum wg_code code = WG_OK;
    switch (event->kind) {
    case WG_EVENT_ARRIVE:
        code = arrive(scheduler, event, err);
        break;
    case WG_EVENT_CANCEL:
        code = cancel(scheduler, event->id);
        break;
    case WG_EVENT_BATCH_ENDED:
        code = batch_ended(scheduler, event, err);
        break;
    case WG_EVENT_STEP_ENDED:
        code = step_ended(scheduler, event, err);
        break;
    case WG_EVENT_JOB:
        code = wg__finetune_submit(scheduler, &event->job, err);
        break;
    case WG_EVENT_JOB_CANCEL:
        code = wg__finetune_cancel(scheduler, event->id, err);
        break;
    case WG_EVENT_SLO:
        code = change_slo(scheduler, event, err);
        break;
    case WG_EVENT_CLOCKS_CHANGED:
        code = clocks_changed(scheduler, event, err);
        break;
    case WG_EVENT_KIND_COUNT:
        code = wg__fail(err, WG_EINVAL, "an event of an unknown kind");
        break;
    }
    if (code != WG_OK)
        scheduler->now_s = before_s;
    return code;
}
