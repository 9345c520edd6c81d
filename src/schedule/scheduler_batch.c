/* SPDX-License-Identifier: MIT
 *
 * The next batch: which lane is served, and what is given up.
 *
 * Of several lanes the one whose batch must begin soonest is served first (the least of deadline
 * minus bound; a higher priority before that). Bounds of a batch's time are kept in a table a
 * model, filled as far as the queue needs it, and thrown away when clocks, company or what the
 * predictor has learned change.
 *
 * Threads: one at a time.
 */
#include <math.h>

#include "schedule/scheduler_parts.h"

const double *wg__scheduler_bounds(struct wg_scheduler *scheduler, unsigned m, unsigned rows,
                                   unsigned beside)
{
    struct wg_scheduler_model *model = &scheduler->models[m];
    const size_t version = wg__predictor_version(model->predictor);
    if (model->bound_version != version || model->bound_rung != scheduler->rung ||
        model->bound_beside != beside) {
        model->bound_version = version;
        model->bound_rung = scheduler->rung;
        model->bound_beside = beside;
        model->bound_filled = 0;
    }
    if (model->bound_filled >= rows)
        return model->bound_s;
    const struct wg_rung *clocks = &scheduler->setup.clock_setup.ladder.rungs[scheduler->rung];
    const double factor = 1.0 + wg__predictor_margin(model->predictor);
    struct wg_predictor_point point = {
        .gpu_clock = clocks->gpu_clock, .mem_clock = clocks->mem_clock, .finetune_rows = beside};
    for (unsigned r = model->bound_filled + 1; r <= rows; r++) {
        point.rows = r;
        model->bound_s[r] = factor * wg__predictor_time(model->predictor, &point);
    }
    model->bound_filled = rows;
    return model->bound_s;
}

void wg__scheduler_push_answer(struct wg_scheduler *scheduler, uint64_t id, enum wg_answer answer)
{
    const size_t place =
        (scheduler->answer_head + scheduler->answer_count++) % scheduler->answer_capacity;
    scheduler->answers[place] = (struct wg_scheduler_answer){.id = id, .answer = answer};
    if (answer == WG_ANSWER_PAST || answer == WG_ANSWER_HOPELESS || answer == WG_ANSWER_SACRIFICED)
        wg__clock_governor_tell(&scheduler->governor, HUGE_VAL);
}

/* Rows of the step that runs now: the company of a batch. */
static unsigned company(const struct wg_scheduler *scheduler)
{
    return scheduler->step.runs ? scheduler->step.step.rows : 0;
}

static unsigned rows_of(const struct wg_lane *lane, unsigned max_rows)
{
    return lane->rows < max_rows ? (unsigned)lane->rows : max_rows;
}

/* The lane that is served next; NULL: nobody waits. */
static const struct wg_lane *pick_lane(struct wg_scheduler *scheduler)
{
    const size_t count = wg__queue_lane_count(scheduler->queue);
    const struct wg_lane *best = count > 0 ? wg__queue_lane(scheduler->queue, 0) : NULL;
    unsigned best_priority = 0;
    double best_s = 0.0;
    for (size_t i = 0; i < count && count > 1; i++) {
        const struct wg_lane *lane = wg__queue_lane(scheduler->queue, i);
        const struct wg_request *first = wg__lane_first(scheduler->queue, lane);
        const unsigned rows = rows_of(lane, scheduler->models[lane->model].max_rows);
        const double begin_s =
            first->deadline_s -
            wg__scheduler_bounds(scheduler, lane->model, rows, company(scheduler))[rows];
        if (i > 0 && (first->priority > best_priority ||
                      (first->priority == best_priority && !(begin_s < best_s))))
            continue;
        best = lane;
        best_priority = first->priority;
        best_s = begin_s;
    }
    return best;
}

struct choice_input {
    uint64_t ids[WG_PLAN_ITEMS_MAX];
    struct wg_plan_item items[WG_PLAN_ITEMS_MAX];
    size_t count;
    double oldest_s; /* arrival */
};

static void gather(const struct wg_scheduler *scheduler, const struct wg_lane *lane,
                   struct choice_input *out)
{
    out->count = 0;
    out->oldest_s = HUGE_VAL;
    for (const struct wg_request *r = wg__lane_first(scheduler->queue, lane);
         r != NULL && out->count < WG_PLAN_ITEMS_MAX; r = wg__lane_next(scheduler->queue, r)) {
        out->ids[out->count] = r->id;
        out->items[out->count++] = (struct wg_plan_item){
            .deadline_s = r->deadline_s, .rows = r->rows, .priority = r->priority};
        out->oldest_s = fmin(out->oldest_s, r->arrived_s);
    }
}

static enum wg_answer answer_of(enum wg_verdict verdict)
{
    return verdict == WG_VERDICT_PAST       ? WG_ANSWER_PAST
           : verdict == WG_VERDICT_HOPELESS ? WG_ANSWER_HOPELESS
                                            : WG_ANSWER_SACRIFICED;
}

static void apply(struct wg_scheduler *scheduler, const struct choice_input *input,
                  const enum wg_verdict *verdicts)
{
    scheduler->batch.count = 0;
    for (size_t i = 0; i < input->count; i++) {
        if (verdicts[i] == WG_VERDICT_WAIT)
            continue;
        struct wg_request request;
        if (!wg__queue_remove(scheduler->queue, input->ids[i], &request))
            continue;
        if (verdicts[i] == WG_VERDICT_TAKE)
            scheduler->batch.requests[scheduler->batch.count++] = request;
        else
            wg__scheduler_push_answer(scheduler, request.id, answer_of(verdicts[i]));
    }
}

static void begin_batch(struct wg_scheduler *scheduler, unsigned m, unsigned rows,
                        struct wg_action *out)
{
    const struct wg_scheduler_model *model = &scheduler->models[m];
    struct wg_scheduler_batch *batch = &scheduler->batch;
    const unsigned beside = company(scheduler);
    const double bound_s = wg__scheduler_bounds(scheduler, m, rows, beside)[rows];
    batch->runs = true;
    batch->is_pure = true;
    batch->model = m;
    batch->rows = rows;
    batch->begin_s = scheduler->now_s;
    batch->bound_s = bound_s;
    batch->predicted_s = bound_s / (1.0 + wg__predictor_margin(model->predictor));
    batch->rung = scheduler->rung;
    batch->beside = beside;
    if (scheduler->step.runs)
        scheduler->step.is_pure = false;
    out->kind = WG_ACTION_RUN_BATCH;
    out->batch = (struct wg_batch){.model = m,
                                   .rows = rows,
                                   .count = batch->count,
                                   .requests = batch->requests,
                                   .predicted_s = batch->predicted_s,
                                   .bound_s = bound_s};
}

bool wg__scheduler_ask_batch(struct wg_scheduler *scheduler, struct wg_action *out)
{
    const struct wg_lane *lane = pick_lane(scheduler);
    if (lane == NULL)
        return false;
    const unsigned m = lane->model;
    const unsigned rows = rows_of(lane, scheduler->models[m].max_rows);
    struct choice_input input;
    gather(scheduler, lane, &input);
    const struct wg_batcher batcher = {
        .kind = scheduler->setup.batcher,
        .drop = scheduler->setup.drop,
        .max_rows = scheduler->models[m].max_rows,
        .delay_s = scheduler->setup.batch_delay_s,
    };
    enum wg_verdict verdicts[WG_PLAN_ITEMS_MAX];
    struct wg_batch_choice choice;
    wg__batcher_choose(&batcher, input.items, input.count, input.oldest_s,
                       wg__scheduler_bounds(scheduler, m, rows, company(scheduler)),
                       scheduler->now_s, scheduler->now_s, verdicts, &choice);
    if (choice.wake_s < scheduler->wake_s)
        scheduler->wake_s = choice.wake_s;
    if (choice.take_count + choice.drop_count == 0)
        return false;
    apply(scheduler, &input, verdicts);
    if (choice.take_count == 0)
        return false;
    begin_batch(scheduler, m, choice.rows, out);
    return true;
}

void wg__scheduler_drop_past(struct wg_scheduler *scheduler)
{
    for (size_t i = wg__queue_lane_count(scheduler->queue); i > 0; i--) {
        const struct wg_lane *lane = wg__queue_lane(scheduler->queue, i - 1);
        for (size_t left = lane->count; left > 0; left--) {
            const struct wg_request *first = wg__lane_first(scheduler->queue, lane);
            if (first->deadline_s > scheduler->now_s) {
                scheduler->wake_s = fmin(scheduler->wake_s, first->deadline_s);
                break;
            }
            const uint64_t id = first->id;
            (void)wg__queue_remove(scheduler->queue, id, NULL);
            wg__scheduler_push_answer(scheduler, id, WG_ANSWER_PAST);
        }
    }
}
