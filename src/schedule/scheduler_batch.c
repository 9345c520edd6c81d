/* SPDX-License-Identifier: MIT
 *
 * The next batch: which lane is served, and what is given up.
 *
 * Of several lanes those that can be met go first, of them the higher priority, then the one whose
 * batch must begin soonest (the least of deadline minus bound). Bounds of a batch's time are kept
 * in a table a model, filled as far as the queue needs it, and thrown away when clocks, company or
 * what the predictor has learned change.
 *
 * Threads: one at a time.
 */
#include <math.h>

#include "schedule/scheduler_parts.h"

/* So many hopeless requests in a row are given up before one runs all the same. */
enum { PROBE_AFTER = 16 };

#define MISSED_GAIN     0.02
#define MISSED_MEMORY_S 60.0

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

double wg__scheduler_missed_share(const struct wg_scheduler *scheduler)
{
    const double age_s = scheduler->now_s - scheduler->missed_since_s;
    return scheduler->missed_share * exp(-age_s / MISSED_MEMORY_S);
}

void wg__scheduler_count_answer(struct wg_scheduler *scheduler, double latency_share)
{
    const double missed = latency_share > 1.0 ? 1.0 : 0.0;
    const double share = wg__scheduler_missed_share(scheduler);
    scheduler->missed_share = share + MISSED_GAIN * (missed - share);
    scheduler->missed_since_s = scheduler->now_s;
    wg__clock_governor_tell(&scheduler->governor, latency_share);
}

void wg__scheduler_push_answer(struct wg_scheduler *scheduler, uint64_t id, enum wg_answer answer)
{
    const size_t place =
        (scheduler->answer_head + scheduler->answer_count++) % scheduler->answer_capacity;
    scheduler->answers[place] = (struct wg_scheduler_answer){.id = id, .answer = answer};
    if (answer == WG_ANSWER_PAST || answer == WG_ANSWER_HOPELESS || answer == WG_ANSWER_SACRIFICED)
        wg__scheduler_count_answer(scheduler, HUGE_VAL);
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

/* Why one lane is served before another. */
struct urgency {
    bool is_hopeless; /* its first request is late whatever happens */
    unsigned priority;
    double begin_s; /* at the latest, for its first request to be met in a batch of all */
};

static struct urgency judge_lane(struct wg_scheduler *scheduler, const struct wg_lane *lane)
{
    const struct wg_request *first = wg__lane_first(scheduler->queue, lane);
    const unsigned rows = rows_of(lane, scheduler->models[lane->model].max_rows);
    const double *bound_s = wg__scheduler_bounds(scheduler, lane->model, rows, company(scheduler));
    return (struct urgency){
        .is_hopeless = scheduler->now_s + bound_s[first->rows] > first->deadline_s,
        .priority = first->priority,
        .begin_s = first->deadline_s - bound_s[rows],
    };
}

static bool is_before(const struct urgency *a, const struct urgency *b)
{
    if (a->is_hopeless != b->is_hopeless)
        return b->is_hopeless;
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->begin_s < b->begin_s;
}

/* The lane that is served next of those that are not in `tried` (bit i: lane i); NULL: none. */
static const struct wg_lane *pick_lane(struct wg_scheduler *scheduler, uint64_t *tried)
{
    const size_t count = wg__queue_lane_count(scheduler->queue);
    size_t best = count;
    struct urgency best_urgency = {0};
    for (size_t i = 0; i < count; i++) {
        if ((*tried >> i & 1) != 0)
            continue;
        struct urgency urgency = {0};
        if (count > 1) /* alone it needs no judgement */
            urgency = judge_lane(scheduler, wg__queue_lane(scheduler->queue, i));
        if (best == count || is_before(&urgency, &best_urgency)) {
            best = i;
            best_urgency = urgency;
        }
    }
    if (best == count)
        return NULL;
    *tried |= UINT64_C(1) << best;
    return wg__queue_lane(scheduler->queue, best);
}

struct choice_input {
    uint64_t ids[WG_PLAN_ITEMS_MAX];
    struct wg_plan_item items[WG_PLAN_ITEMS_MAX];
    size_t count;
    double allowed_s[WG_PLAN_ITEMS_MAX]; /* from arrival to deadline */
    double oldest_s;                     /* arrival */
};

/* In a crowd that cannot be served in time even in full batches, whoever is too old for one is
 * passed over: a small batch for it takes the time of more requests than it serves. The first that
 * is looked at, of its priority; early drops tell those before it at once. */
static const struct wg_request *pass_over(struct wg_scheduler *scheduler,
                                          const struct wg_lane *lane)
{
    const struct wg_request *r = wg__lane_first(scheduler->queue, lane);
    const unsigned most = scheduler->models[lane->model].max_rows;
    if (scheduler->setup.batcher != WG_BATCHER_WATTGOV || lane->count <= WG_PLAN_ITEMS_MAX)
        return r;
    const double full_s =
        wg__scheduler_bounds(scheduler, lane->model, most, company(scheduler))[most];
    const double all_s = full_s * (double)lane->rows / most;
    if (scheduler->now_s + all_s <= wg__lane_last(scheduler->queue, lane)->deadline_s)
        return r;
    const unsigned priority = r->priority;
    size_t left = lane->count;
    while (left > WG_PLAN_ITEMS_MAX && r->priority == priority &&
           r->deadline_s < scheduler->now_s + full_s) {
        const struct wg_request *next = wg__lane_next(scheduler->queue, r);
        if (scheduler->setup.drop == WG_DROP_EARLY) {
            const uint64_t id = r->id;
            (void)wg__queue_remove(scheduler->queue, id, NULL);
            wg__scheduler_push_answer(scheduler, id, WG_ANSWER_SACRIFICED);
        }
        r = next;
        left--;
    }
    return r;
}

static void gather(struct wg_scheduler *scheduler, const struct wg_lane *lane,
                   struct choice_input *out)
{
    out->count = 0;
    out->oldest_s = HUGE_VAL;
    for (const struct wg_request *r = pass_over(scheduler, lane);
         r != NULL && out->count < WG_PLAN_ITEMS_MAX; r = wg__lane_next(scheduler->queue, r)) {
        out->ids[out->count] = r->id;
        out->allowed_s[out->count] = r->deadline_s - r->arrived_s;
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
    scheduler->step_is_due = true;
    batch->runs = true;
    batch->is_pure = true;
    batch->model = m;
    batch->rows = rows;
    batch->begin_s = scheduler->now_s;
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

/* A predictor that is wrong by far finds everything hopeless, and would never learn better, since
 * nothing runs: now and then one runs all the same. Whoever became hopeless by waiting says nothing
 * of the predictor: in a crowd those are many, and must not be served at the cost of others. */
static void probe(struct wg_scheduler_model *model, const struct choice_input *input,
                  enum wg_verdict *verdicts, struct wg_batch_choice *choice)
{
    for (size_t i = 0; i < input->count && choice->take_count == 0; i++) {
        const bool is_by_itself = model->bound_s[input->items[i].rows] > input->allowed_s[i];
        if (verdicts[i] != WG_VERDICT_HOPELESS || !is_by_itself || ++model->hopeless < PROBE_AFTER)
            continue;
        verdicts[i] = WG_VERDICT_TAKE;
        choice->rows = input->items[i].rows;
        choice->take_count = 1;
        choice->drop_count--;
    }
    if (choice->take_count > 0)
        model->hopeless = 0;
}

/* What is done for this lane now; false: nothing. */
static bool serve_lane(struct wg_scheduler *scheduler, const struct wg_lane *lane,
                       struct wg_batch_choice *choice)
{
    struct wg_scheduler_model *model = &scheduler->models[lane->model];
    const unsigned rows = rows_of(lane, model->max_rows);
    struct choice_input input;
    gather(scheduler, lane, &input);
    const struct wg_batcher batcher = {
        .kind = scheduler->setup.batcher,
        .drop = scheduler->setup.drop,
        .max_rows = model->max_rows,
        .delay_s = scheduler->setup.batch_delay_s,
        .likely_share = 1.0 / (1.0 + wg__predictor_margin(model->predictor)),
    };
    enum wg_verdict verdicts[WG_PLAN_ITEMS_MAX];
    wg__batcher_choose(&batcher, input.items, input.count, input.oldest_s,
                       wg__scheduler_bounds(scheduler, lane->model, rows, company(scheduler)),
                       scheduler->now_s, scheduler->now_s, verdicts, choice);
    if (choice->wake_s < scheduler->wake_s)
        scheduler->wake_s = choice->wake_s;
    if (choice->take_count + choice->drop_count == 0)
        return false;
    probe(model, &input, verdicts, choice);
    apply(scheduler, &input, verdicts);
    return true;
}

bool wg__scheduler_ask_batch(struct wg_scheduler *scheduler, struct wg_action *out)
{
    uint64_t tried = 0;
    for (const struct wg_lane *lane = pick_lane(scheduler, &tried); lane != NULL;
         lane = pick_lane(scheduler, &tried)) {
        const unsigned m = lane->model;
        struct wg_batch_choice choice;
        if (!serve_lane(scheduler, lane, &choice))
            continue;
        if (choice.take_count > 0)
            begin_batch(scheduler, m, choice.rows, out);
        return choice.take_count > 0; /* lanes may be numbered anew */
    }
    return false;
}

/* Of each priority level the first one is past its deadline before the others. */
void wg__scheduler_drop_past(struct wg_scheduler *scheduler)
{
    for (size_t i = wg__queue_lane_count(scheduler->queue); i > 0; i--) {
        const struct wg_request *r =
            wg__lane_first(scheduler->queue, wg__queue_lane(scheduler->queue, i - 1));
        while (r != NULL) {
            if (r->deadline_s > scheduler->now_s) {
                scheduler->wake_s = fmin(scheduler->wake_s, r->deadline_s);
                r = wg__lane_next_level(scheduler->queue, r);
                continue;
            }
            const struct wg_request *next = wg__lane_next(scheduler->queue, r);
            const uint64_t id = r->id;
            (void)wg__queue_remove(scheduler->queue, id, NULL);
            wg__scheduler_push_answer(scheduler, id, WG_ANSWER_PAST);
            r = next;
        }
    }
}
