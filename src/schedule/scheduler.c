/* SPDX-License-Identifier: MIT
 *
 * Opening a scheduler, and the order in which an ask looks for something to do:
 *
 *     1. answers that wait: who is refused or dropped hears it at once
 *     2. the end of a job
 *     3. clocks: a change takes a while to act, so it is ordered before the batch that needs it
 *     4. fine-tuning: its policy decides knowing the whole queue
 *     5. the next batch, unless a step has the GPU alone
 *
 * Defaults of the policy of micro-steps: a step lasts 0.08 of the SLO, requests may wait until 0.9
 * of it. docs/results/serving-tried.md has what else was measured.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "schedule/scheduler.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "schedule/scheduler_parts.h"

enum { QUEUE_CAPACITY = 1024, ANSWERS_SPARE = 256 };

#define STEP_SHARE     0.08
#define DEADLINE_SHARE 0.9
#define MIN_SHARE      0.02
#define RATE_SLOT_S    0.25
#define IDLE_LOOK_S    1.0
#define UPDATE_MAX_S   1e6

/* -- Opening ---------------------------------------- */

static enum wg_code check_share(const char *what, double value, struct wg_error *err)
{
    if (!(value >= 0.0 && value <= 1.0))
        return wg__fail(err, WG_EINVAL, "%s %g, expected 0 to 1", what, value);
    return WG_OK;
}

static enum wg_code check_models(const struct wg_scheduler_setup *setup, struct wg_error *err)
{
    if (setup->model_count == 0 || setup->model_count > WG_SERVING_MODELS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu models, expected 1 to %d", setup->model_count,
                        WG_SERVING_MODELS_MAX);
    for (size_t m = 0; m < setup->model_count; m++) {
        const struct wg_serving_model *model = &setup->models[m];
        if (model->max_rows == 0 || model->max_rows > WG_BATCH_ROWS_MAX)
            return wg__fail(err, WG_EINVAL, "model %zu: largest batch %u, expected 1 to %d", m,
                            model->max_rows, WG_BATCH_ROWS_MAX);
        if (!(model->slo_s > 0.0 && isfinite(model->slo_s)))
            return wg__fail(err, WG_EINVAL, "model %zu: SLO %g s, expected more than 0", m,
                            model->slo_s);
    }
    return WG_OK;
}

static enum wg_code check_setup(const struct wg_scheduler_setup *setup, struct wg_error *err)
{
    enum wg_code code = check_models(setup, err);
    if (code != WG_OK)
        return code;
    if (setup->queue_capacity > WG_QUEUE_CAPACITY_MAX)
        return wg__fail(err, WG_EINVAL, "queue of %zu requests, expected at most %d",
                        setup->queue_capacity, WG_QUEUE_CAPACITY_MAX);
    if (setup->batcher >= WG_BATCHER_COUNT || setup->drop >= WG_DROP_COUNT ||
        setup->finetune >= WG_FINETUNE_COUNT || setup->clocks > WG_CLOCKS_GOVERNED)
        return wg__fail(err, WG_EINVAL, "an unknown batcher, drop rule, policy or clock mode");
    if (!(setup->batch_delay_s >= 0.0 && isfinite(setup->batch_delay_s)))
        return wg__fail(err, WG_EINVAL, "batch delay %g s, expected 0 or more",
                        setup->batch_delay_s);
    if (!(setup->update_s >= 0.0 && setup->update_s <= UPDATE_MAX_S))
        return wg__fail(err, WG_EINVAL, "update of %g s, expected 0 to %g", setup->update_s,
                        UPDATE_MAX_S);
    if (setup->first_rung >= setup->clock_setup.ladder.count)
        return wg__fail(err, WG_EINVAL, "first rung %zu of %zu", setup->first_rung,
                        setup->clock_setup.ladder.count);
    code = check_share("step share", setup->step_share, err);
    if (code == WG_OK)
        code = check_share("deadline share", setup->deadline_share, err);
    return code == WG_OK ? check_share("least share", fmax(setup->min_share, 0.0), err) : code;
}

static enum wg_code open_model(struct wg_scheduler_model *out, const struct wg_serving_model *model,
                               struct wg_error *err)
{
    out->max_rows = model->max_rows;
    out->slo_s = model->slo_s;
    out->bound_s = wg__alloc(((size_t)model->max_rows + 1) * sizeof *out->bound_s);
    if (out->bound_s == NULL)
        return wg__fail(err, WG_ENOMEM, "scheduler: out of memory");
    out->bound_s[0] = 0.0;
    wg__rate_init(&out->rate, RATE_SLOT_S);
    const enum wg_code code = wg__predictor_open(&out->predictor, &model->predictor, model->samples,
                                                 model->sample_count, err);
    if (code == WG_OK)
        out->bound_version = wg__predictor_version(out->predictor);
    return code;
}

static double or_own(double value, double own)
{
    return value == 0.0 ? own : value;
}

static enum wg_code open_parts(struct wg_scheduler *scheduler,
                               const struct wg_scheduler_setup *setup, struct wg_error *err)
{
    enum wg_code code = wg__clock_governor_init(&scheduler->governor, &setup->clock_setup, err);
    unsigned most = 0;
    for (size_t m = 0; m < setup->model_count && code == WG_OK; m++) {
        code = open_model(&scheduler->models[m], &setup->models[m], err);
        most = setup->models[m].max_rows > most ? setup->models[m].max_rows : most;
    }
    if (code == WG_OK)
        code = wg__queue_open(&scheduler->queue, scheduler->setup.queue_capacity, err);
    if (code == WG_OK && setup->step_sample_count > 0)
        code = wg__predictor_open(&scheduler->step_predictor,
                                  &(struct wg_predictor_setup){.kind = WG_PREDICTOR_PHYSICAL},
                                  setup->step_samples, setup->step_sample_count, err);
    if (code != WG_OK)
        return code;
    scheduler->answer_capacity = scheduler->setup.queue_capacity + ANSWERS_SPARE;
    scheduler->answers = wg__alloc(scheduler->answer_capacity * sizeof *scheduler->answers);
    scheduler->batch.requests = wg__alloc(most * sizeof *scheduler->batch.requests);
    if (scheduler->answers == NULL || scheduler->batch.requests == NULL)
        return wg__fail(err, WG_ENOMEM, "scheduler: out of memory");
    return WG_OK;
}

enum wg_code wg__scheduler_open(struct wg_scheduler **out, const struct wg_scheduler_setup *setup,
                                struct wg_error *err)
{
    enum wg_code code = check_setup(setup, err);
    if (code != WG_OK)
        return code;
    struct wg_scheduler *scheduler = wg__alloc_zeroed(1, sizeof *scheduler);
    if (scheduler == NULL)
        return wg__fail(err, WG_ENOMEM, "scheduler: out of memory");
    scheduler->setup = *setup;
    scheduler->setup.models = NULL;
    scheduler->setup.step_samples = NULL;
    if (setup->queue_capacity == 0)
        scheduler->setup.queue_capacity = QUEUE_CAPACITY;
    scheduler->setup.step_share = or_own(setup->step_share, STEP_SHARE);
    scheduler->setup.deadline_share = or_own(setup->deadline_share, DEADLINE_SHARE);
    scheduler->setup.min_share = or_own(setup->min_share, MIN_SHARE);
    scheduler->update_s = setup->update_s;
    scheduler->rung = scheduler->wanted_rung = setup->first_rung;
    scheduler->governor.rung = setup->first_rung;
    scheduler->now_s = -HUGE_VAL;
    scheduler->wake_s = HUGE_VAL;
    scheduler->room_since_s = scheduler->missed_since_s = -HUGE_VAL;
    scheduler->share_since_s = -HUGE_VAL;
    code = open_parts(scheduler, setup, err);
    if (code != WG_OK) {
        wg__scheduler_close(scheduler);
        return code;
    }
    *out = scheduler;
    return WG_OK;
}

void wg__scheduler_close(struct wg_scheduler *scheduler)
{
    if (scheduler == NULL)
        return;
    for (size_t m = 0; m < WG_SERVING_MODELS_MAX; m++) {
        wg__predictor_close(scheduler->models[m].predictor);
        wg__free(scheduler->models[m].bound_s);
    }
    wg__predictor_close(scheduler->step_predictor);
    wg__queue_close(scheduler->queue);
    wg__free(scheduler->answers);
    wg__free(scheduler->batch.requests);
    wg__free(scheduler);
}

/* -- Asking ---------------------------------------- */

static bool ask_answer(struct wg_scheduler *scheduler, struct wg_action *out)
{
    if (scheduler->answer_count == 0)
        return false;
    const struct wg_scheduler_answer *answer = &scheduler->answers[scheduler->answer_head];
    out->kind = WG_ACTION_ANSWER;
    out->id = answer->id;
    out->answer = answer->answer;
    scheduler->answer_head = (scheduler->answer_head + 1) % scheduler->answer_capacity;
    scheduler->answer_count--;
    return true;
}

static bool ask_job_done(struct wg_scheduler *scheduler, struct wg_action *out)
{
    if (!scheduler->has_done_job)
        return false;
    scheduler->has_done_job = false;
    out->kind = WG_ACTION_JOB_DONE;
    out->id = scheduler->done_job;
    return true;
}

/* The time that is left until the tightest request must be served, at the highest clocks. */
static double slack_s(struct wg_scheduler *scheduler, double begin_s, double *rows_out)
{
    double least_s = HUGE_VAL;
    const size_t lanes = wg__queue_lane_count(scheduler->queue);
    const struct wg_rung *fastest = &scheduler->setup.clock_setup.ladder.rungs[0];
    for (size_t i = 0; i < lanes; i++) {
        const struct wg_lane *lane = wg__queue_lane(scheduler->queue, i);
        const struct wg_scheduler_model *model = &scheduler->models[lane->model];
        const struct wg_predictor_point point = {
            .rows = fmin((double)lane->rows, (double)model->max_rows),
            .gpu_clock = fastest->gpu_clock,
            .mem_clock = fastest->mem_clock,
        };
        const double batch_s = (1.0 + wg__predictor_margin(model->predictor)) *
                               wg__predictor_time(model->predictor, &point);
        const double deadline_s = wg__lane_first(scheduler->queue, lane)->deadline_s;
        if (deadline_s - batch_s - begin_s < least_s) {
            least_s = deadline_s - batch_s - begin_s;
            *rows_out = point.rows;
        }
    }
    return least_s;
}

static bool ask_clocks(struct wg_scheduler *scheduler, struct wg_action *out)
{
    if (scheduler->setup.clocks != WG_CLOCKS_GOVERNED || scheduler->wanted_rung != scheduler->rung)
        return false;
    /* One ladder holds for all models: the busiest one decides. */
    unsigned busiest = 0;
    double rate = -1.0;
    for (unsigned m = 0; m < scheduler->setup.model_count; m++) {
        const double mean = wg__rate_mean(&scheduler->models[m].rate, scheduler->now_s);
        if (mean > rate) {
            rate = mean;
            busiest = m;
        }
    }
    struct wg_scheduler_model *model = &scheduler->models[busiest];
    double begin_s = scheduler->now_s;
    if (scheduler->batch.runs)
        begin_s = fmax(begin_s, scheduler->batch.begin_s + scheduler->batch.predicted_s);
    wg__finetune_count_time(scheduler);
    const bool has_job = scheduler->jobs.count > 0;
    double rows = 0.0;
    const double least_s = slack_s(scheduler, begin_s, &rows);
    const struct wg_clock_view view = {
        .now_s = scheduler->now_s,
        .rate = rate,
        .dispersion = wg__rate_dispersion(&model->rate, scheduler->now_s),
        .slo_s = model->slo_s,
        .slack_s = least_s,
        .rows = rows,
        .finetune_share = scheduler->share,
        .step_s = has_job ? scheduler->setup.step_share * model->slo_s : 0.0,
        .predictor = model->predictor,
    };
    const size_t rung = wg__clock_governor_ask(&scheduler->governor, &view);
    if (rung == scheduler->rung)
        return false;
    scheduler->wanted_rung = rung;
    out->kind = WG_ACTION_SET_CLOCKS;
    out->rung = rung;
    return true;
}

/* Nothing may ever happen to an idle GPU, but what is expected to come changes by itself: a job may
 * begin, and clocks that were right for a crowd are too high for nobody. HUGE_VAL: nothing waits
 * for that. */
static double look_again_s(const struct wg_scheduler *scheduler)
{
    const bool has_job =
        scheduler->setup.finetune == WG_FINETUNE_WATTGOV && wg__finetune_is_pending(scheduler);
    if (has_job)
        return scheduler->now_s + RATE_SLOT_S;
    const size_t count = scheduler->setup.clock_setup.ladder.count;
    const struct wg_rung *rungs = scheduler->setup.clock_setup.ladder.rungs;
    for (size_t i = 0; scheduler->setup.clocks == WG_CLOCKS_GOVERNED && i < count; i++)
        if (rungs[i].idle_power_w < rungs[scheduler->rung].idle_power_w)
            return scheduler->now_s + IDLE_LOOK_S;
    return HUGE_VAL;
}

bool wg__scheduler_ask(struct wg_scheduler *scheduler, double now_s, struct wg_action *out)
{
    if (now_s > scheduler->now_s)
        scheduler->now_s = now_s;
    scheduler->wake_s = HUGE_VAL;
    if (ask_answer(scheduler, out) || ask_job_done(scheduler, out) || ask_clocks(scheduler, out))
        return true;
    if (wg__finetune_ask(scheduler, &out->step)) {
        out->kind = WG_ACTION_RUN_STEP;
        return true;
    }
    const bool is_taken =
        scheduler->batch.runs || (scheduler->step.runs && scheduler->step.step.is_alone);
    if (is_taken)
        wg__scheduler_drop_past(scheduler);
    else if (wg__scheduler_ask_batch(scheduler, out))
        return true;
    if (!is_taken)
        scheduler->wake_s = fmin(scheduler->wake_s, look_again_s(scheduler));
    return ask_answer(scheduler, out);
}

double wg__scheduler_wake_s(const struct wg_scheduler *scheduler)
{
    return scheduler->wake_s;
}

static enum wg_finetune_state finetune_state(const struct wg_scheduler *scheduler)
{
    if (scheduler->jobs.count == 0)
        return WG_FINETUNE_IDLE;
    if (scheduler->setup.finetune == WG_FINETUNE_WATTGOV && isfinite(scheduler->room_since_s) &&
        !scheduler->has_room)
        return WG_FINETUNE_NO_ROOM;
    return scheduler->credit_s > 0.0 && scheduler->share < scheduler->setup.min_share
               ? WG_FINETUNE_STARVED
               : WG_FINETUNE_RUNNING;
}

void wg__scheduler_view(struct wg_scheduler *scheduler, double now_s, struct wg_scheduler_view *out)
{
    if (now_s > scheduler->now_s)
        scheduler->now_s = now_s;
    wg__finetune_count_time(scheduler);
    double rate = 0.0;
    for (size_t m = 0; m < scheduler->setup.model_count; m++)
        rate += wg__rate_mean(&scheduler->models[m].rate, scheduler->now_s);
    *out = (struct wg_scheduler_view){
        .waiting = wg__queue_count(scheduler->queue),
        .batch_runs = scheduler->batch.runs,
        .step_runs = scheduler->step.runs,
        .rung = scheduler->rung,
        .rate = rate,
        .margin = wg__predictor_margin(scheduler->models[0].predictor),
        .finetune = finetune_state(scheduler),
        .finetune_share = scheduler->share,
        .iterations_left =
            scheduler->jobs.count > 0 ? scheduler->jobs.jobs[scheduler->jobs.head].iterations : 0,
    };
}
