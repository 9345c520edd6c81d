/* SPDX-License-Identifier: MIT
 *
 * A scheduler as simple as can be, in place of schedule/scheduler.c: for tests of the world around
 * it, whose closed forms are known. First come, first served, at once, in batches up to max_rows
 * (NONE: one by one); whoever waits past the deadline is dropped; a job's iterations run as wholes
 * beside inference. Include it once in a test program.
 *
 * It can be told to behave badly, too.
 */
#ifndef WG_TESTS_SUPPORT_FIFO_SCHEDULER_H
#define WG_TESTS_SUPPORT_FIFO_SCHEDULER_H

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "schedule/scheduler.h"

enum fifo_fault { FIFO_GOOD, FIFO_LOSES, FIFO_SLEEPS, FIFO_NEVER_SLEEPS, FIFO_DOUBLES };
enum { FIFO_CAPACITY = 1 << 13 };

static enum fifo_fault fifo_fault;

/* The clocks that it asks for, in turn, at each batch; 0: none. */
static size_t fifo_rungs;

struct wg_scheduler {
    struct wg_scheduler_setup setup;
    double slo_s;
    unsigned max_rows;
    struct wg_request ring[FIFO_CAPACITY];
    size_t head, count;
    struct wg_request batch[WG_BATCH_ROWS_MAX];
    bool batch_runs, step_runs;
    struct wg_finetune_job job;
    size_t batches, asked_clocks;
};

enum wg_code wg__scheduler_open(struct wg_scheduler **out, const struct wg_scheduler_setup *setup,
                                struct wg_error *err)
{
    struct wg_scheduler *scheduler = wg__alloc_zeroed(1, sizeof *scheduler);
    if (scheduler == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    scheduler->setup = *setup;
    scheduler->slo_s = setup->models[0].slo_s;
    scheduler->max_rows = setup->batcher == WG_BATCHER_NONE ? 1 : setup->models[0].max_rows;
    *out = scheduler;
    return WG_OK;
}

void wg__scheduler_close(struct wg_scheduler *scheduler)
{
    wg__free(scheduler);
}

enum wg_code wg__scheduler_tell(struct wg_scheduler *scheduler, const struct wg_event *event,
                                struct wg_error *err)
{
    switch (event->kind) {
    case WG_EVENT_ARRIVE: {
        if (scheduler->count == FIFO_CAPACITY)
            return wg__fail(err, WG_ENOMEM, "the ring is full");
        const size_t at = (scheduler->head + scheduler->count++) % FIFO_CAPACITY;
        scheduler->ring[at] = event->request;
        scheduler->ring[at].arrived_s = event->now_s;
        scheduler->ring[at].deadline_s = event->now_s + scheduler->slo_s;
        break;
    }
    case WG_EVENT_BATCH_ENDED:
        scheduler->batch_runs = false;
        break;
    case WG_EVENT_STEP_ENDED:
        scheduler->step_runs = false;
        break;
    case WG_EVENT_JOB:
        scheduler->job = event->job;
        break;
    case WG_EVENT_JOB_CANCEL:
        scheduler->job = (struct wg_finetune_job){0};
        break;
    case WG_EVENT_SLO:
        scheduler->slo_s = event->slo_s;
        break;
    case WG_EVENT_CANCEL:
    case WG_EVENT_CLOCKS_CHANGED:
    case WG_EVENT_KIND_COUNT:
        break;
    }
    return WG_OK;
}

static bool fifo_step(struct wg_scheduler *scheduler, struct wg_action *out)
{
    if (scheduler->step_runs || scheduler->job.batch == 0)
        return false;
    if (scheduler->job.iterations == 0) {
        out->kind = WG_ACTION_JOB_DONE;
        out->id = scheduler->job.id;
        scheduler->job.batch = 0;
        return true;
    }
    scheduler->step_runs = true;
    scheduler->job.iterations--;
    out->kind = WG_ACTION_RUN_STEP;
    out->step = (struct wg_finetune_step){
        .rows = scheduler->job.batch, .begins_iteration = true, .ends_iteration = true};
    return true;
}

static struct wg_request fifo_pop(struct wg_scheduler *scheduler)
{
    const struct wg_request request = scheduler->ring[scheduler->head];
    scheduler->head = (scheduler->head + 1) % FIFO_CAPACITY;
    scheduler->count--;
    return request;
}

static void fifo_batch(struct wg_scheduler *scheduler, struct wg_action *out)
{
    size_t count = 0;
    while (count < scheduler->max_rows && scheduler->count > 0)
        scheduler->batch[count++] = fifo_pop(scheduler);
    if (fifo_fault == FIFO_DOUBLES && count > 1)
        scheduler->batch[1] = scheduler->batch[0];
    scheduler->batch_runs = true;
    scheduler->batches++;
    out->kind = WG_ACTION_RUN_BATCH;
    out->batch =
        (struct wg_batch){.rows = (unsigned)count, .count = count, .requests = scheduler->batch};
}

bool wg__scheduler_ask(struct wg_scheduler *scheduler, double now_s, struct wg_action *out)
{
    if (scheduler->asked_clocks < scheduler->batches && fifo_rungs > 0) {
        out->kind = WG_ACTION_SET_CLOCKS;
        out->rung = ++scheduler->asked_clocks % fifo_rungs;
        return true;
    }
    if (fifo_fault == FIFO_SLEEPS && now_s > 5.0)
        return fifo_step(scheduler, out);
    if (scheduler->count > 0 && scheduler->ring[scheduler->head].deadline_s < now_s) {
        out->kind = WG_ACTION_ANSWER;
        out->id = fifo_pop(scheduler).id;
        out->answer = WG_ANSWER_PAST;
        return true;
    }
    if (fifo_fault == FIFO_LOSES && scheduler->count > 2)
        (void)fifo_pop(scheduler);
    if (!scheduler->batch_runs && scheduler->count > 0) {
        fifo_batch(scheduler, out);
        return true;
    }
    return fifo_step(scheduler, out);
}

double wg__scheduler_wake_s(const struct wg_scheduler *scheduler)
{
    (void)scheduler;
    return fifo_fault == FIFO_NEVER_SLEEPS ? 0.0 : HUGE_VAL;
}

#endif
