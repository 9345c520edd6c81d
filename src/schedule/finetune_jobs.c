/* SPDX-License-Identifier: MIT
 *
 * Fine-tuning jobs: their queue, their iterations, and the time that they were given.
 *
 * An iteration is `batch` rows; its steps add up to them, and the update comes with the last one. A
 * step that failed takes its iteration back to the beginning: the gradients of the others are lost
 * with the process that held them.
 *
 * The minimum share is an account: while a job waits and there is room it earns min_share of the
 * time, and each step spends what it took. What it is owed is bounded, and nothing is owed for a
 * time in which the SLO left no room: a night without any must not be followed by a morning without
 * service.
 *
 * Threads: one at a time.
 */
#include <math.h>

#include "schedule/scheduler_parts.h"

#define CREDIT_MAX_S   2.0
#define SHARE_MEMORY_S 10.0
#define UPDATE_GAIN    0.2

bool wg__finetune_is_pending(const struct wg_scheduler *scheduler)
{
    return scheduler->jobs.count > 0 && !scheduler->step.runs && scheduler->step_predictor != NULL;
}

static struct wg_finetune_job *job_at_work(struct wg_scheduler *scheduler)
{
    return &scheduler->jobs.jobs[scheduler->jobs.head];
}

unsigned wg__finetune_rows_left(const struct wg_scheduler *scheduler)
{
    return scheduler->jobs.jobs[scheduler->jobs.head].batch - scheduler->jobs.rows_done;
}

/* The step alone, without an update. */
static double predict_rows(const struct wg_scheduler *scheduler, size_t rung, unsigned rows)
{
    const struct wg_rung *clocks = &scheduler->setup.clock_setup.ladder.rungs[rung];
    return wg__predictor_time(scheduler->step_predictor,
                              &(struct wg_predictor_point){.rows = rows,
                                                           .gpu_clock = clocks->gpu_clock,
                                                           .mem_clock = clocks->mem_clock});
}

double wg__finetune_step_s(const struct wg_scheduler *scheduler, unsigned rows)
{
    const double update_s = rows == wg__finetune_rows_left(scheduler) ? scheduler->update_s : 0.0;
    return predict_rows(scheduler, scheduler->rung, rows) + update_s;
}

void wg__finetune_count_time(struct wg_scheduler *scheduler)
{
    const double now_s = scheduler->now_s;
    const double span_s = now_s - scheduler->share_since_s;
    if (!(span_s > 0.0))
        return;
    const double keep = exp(-span_s / SHARE_MEMORY_S);
    scheduler->share = scheduler->share * keep + (scheduler->step.runs ? 1.0 - keep : 0.0);
    scheduler->share_since_s = now_s;
    if (scheduler->jobs.count > 0 && scheduler->has_room && scheduler->setup.min_share > 0.0)
        scheduler->credit_s =
            fmin(scheduler->credit_s + scheduler->setup.min_share * span_s, CREDIT_MAX_S);
    if (scheduler->step.runs)
        scheduler->credit_s = fmax(scheduler->credit_s - span_s, -CREDIT_MAX_S);
}

/* A step of this many rows of the job at work; it runs from now on. */
static void begin_step(struct wg_scheduler *scheduler, unsigned rows, bool is_alone,
                       struct wg_finetune_step *out)
{
    wg__finetune_count_time(scheduler);
    *out = (struct wg_finetune_step){
        .job = job_at_work(scheduler)->id,
        .rows = rows,
        .begins_iteration = scheduler->jobs.rows_done == 0,
        .ends_iteration = rows == wg__finetune_rows_left(scheduler),
        .is_alone = is_alone,
    };
    scheduler->step = (struct wg_scheduler_step){
        .runs = true,
        .is_pure = !scheduler->batch.runs,
        .step = *out,
        .begin_s = scheduler->now_s,
        .rung = scheduler->rung,
    };
    scheduler->step_is_due = false;
    if (scheduler->batch.runs)
        scheduler->batch.is_pure = false;
}

bool wg__finetune_ask(struct wg_scheduler *scheduler, struct wg_finetune_step *out)
{
    if (!wg__finetune_is_pending(scheduler))
        return false;
    unsigned rows = 0;
    bool is_alone = false;
    switch (scheduler->setup.finetune) {
    case WG_FINETUNE_GREEDY:
        rows = wg__finetune_greedy(scheduler);
        break;
    case WG_FINETUNE_POLYTHROTTLE:
        rows = wg__finetune_polythrottle(scheduler);
        break;
    case WG_FINETUNE_WATTGOV:
        is_alone = true;
        rows = scheduler->batch.runs ? 0 : wg__finetune_wattgov(scheduler);
        break;
    case WG_FINETUNE_NONE:
    case WG_FINETUNE_COUNT:
        break;
    }
    if (rows == 0)
        return false;
    begin_step(scheduler, rows, is_alone, out);
    return true;
}

/* -- Events ---------------------------------------- */

enum wg_code wg__finetune_submit(struct wg_scheduler *scheduler, const struct wg_finetune_job *job,
                                 struct wg_error *err)
{
    struct wg_scheduler_jobs *jobs = &scheduler->jobs;
    if (scheduler->step_predictor == NULL)
        return wg__fail(err, WG_EINVAL, "fine-tuning job %llu: no time of a step is known",
                        (unsigned long long)job->id);
    if (job->batch == 0 || job->iterations == 0)
        return wg__fail(err, WG_EINVAL,
                        "fine-tuning job %llu: batch and iterations, expected 1 at least",
                        (unsigned long long)job->id);
    if (jobs->count == WG_JOBS_MAX)
        return wg__fail(err, WG_EBUSY, "fine-tuning job %llu: %d jobs wait already",
                        (unsigned long long)job->id, WG_JOBS_MAX);
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->jobs[(jobs->head + i) % WG_JOBS_MAX].id == job->id)
            return wg__fail(err, WG_EINVAL, "fine-tuning job %llu: it waits already",
                            (unsigned long long)job->id);
    wg__finetune_count_time(scheduler);
    jobs->jobs[(jobs->head + jobs->count++) % WG_JOBS_MAX] = *job;
    return WG_OK;
}

static void remove_head(struct wg_scheduler_jobs *jobs)
{
    jobs->head = (jobs->head + 1) % WG_JOBS_MAX;
    jobs->count--;
    jobs->rows_done = 0;
    jobs->head_is_cancelled = false;
}

enum wg_code wg__finetune_cancel(struct wg_scheduler *scheduler, uint64_t id, struct wg_error *err)
{
    struct wg_scheduler_jobs *jobs = &scheduler->jobs;
    size_t place = 0;
    while (place < jobs->count && jobs->jobs[(jobs->head + place) % WG_JOBS_MAX].id != id)
        place++;
    if (place == jobs->count)
        return wg__fail(err, WG_EINVAL, "fine-tuning job %llu: no such job",
                        (unsigned long long)id);
    if (place == 0 && scheduler->step.runs) {
        jobs->head_is_cancelled = true;
        return WG_OK;
    }
    if (place == 0) {
        remove_head(jobs);
        return WG_OK;
    }
    for (size_t i = place; i + 1 < jobs->count; i++)
        jobs->jobs[(jobs->head + i) % WG_JOBS_MAX] = jobs->jobs[(jobs->head + i + 1) % WG_JOBS_MAX];
    jobs->count--;
    return WG_OK;
}

/* Steps that were alone and undisturbed teach what a step takes. One that ends an iteration teaches
 * what the update adds, since the two can't be told apart in it. */
static void learn(struct wg_scheduler *scheduler)
{
    const struct wg_scheduler_step *step = &scheduler->step;
    const double took_s = scheduler->now_s - step->begin_s;
    if (!step->is_pure || step->rung != scheduler->rung)
        return;
    const struct wg_rung *clocks = &scheduler->setup.clock_setup.ladder.rungs[step->rung];
    if (step->step.ends_iteration) {
        const double more_s = took_s - predict_rows(scheduler, step->rung, step->step.rows);
        scheduler->update_s += UPDATE_GAIN * (fmax(more_s, 0.0) - scheduler->update_s);
        return;
    }
    wg__predictor_tell(scheduler->step_predictor,
                       &(struct wg_predictor_sample){.point = {.rows = step->step.rows,
                                                               .gpu_clock = clocks->gpu_clock,
                                                               .mem_clock = clocks->mem_clock},
                                                     .time_s = took_s});
}

void wg__finetune_step_ended(struct wg_scheduler *scheduler, bool is_failed)
{
    struct wg_scheduler_jobs *jobs = &scheduler->jobs;
    wg__finetune_count_time(scheduler);
    if (!is_failed)
        learn(scheduler);
    scheduler->step.runs = false;
    if (jobs->head_is_cancelled) {
        remove_head(jobs);
        return;
    }
    if (is_failed) {
        jobs->rows_done = 0;
        return;
    }
    jobs->rows_done += scheduler->step.step.rows;
    struct wg_finetune_job *job = job_at_work(scheduler);
    if (jobs->rows_done < job->batch)
        return;
    jobs->rows_done = 0;
    if (job->iterations == UINT64_MAX)
        return;
    job->iterations--;
    if (job->iterations > 0)
        return;
    scheduler->has_done_job = true;
    scheduler->done_job = job->id;
    remove_head(jobs);
}
