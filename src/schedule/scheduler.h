/* SPDX-License-Identifier: MIT
 *
 * One GPU's turns: which requests run together, which are given up, when fine-tuning may step in,
 * and at what clocks. One ask/tell object for the simulator and for the gateway.
 *
 *     wg__scheduler_open(&scheduler, &setup, &err);
 *     for (;;) {
 *         (something happened) wg__scheduler_tell(scheduler, &event, &err);
 *         while (wg__scheduler_ask(scheduler, now_s, &action))
 *             (do it)
 *         (sleep until something happens, or until wg__scheduler_wake_s(scheduler))
 *     }
 *
 *           tell                                                     ask
 *     ARRIVE, CANCEL   ──> queue (lanes) ──> batcher ─────────> RUN_BATCH, ANSWER
 *     BATCH_ENDED      ──> predictor ──┐        │
 *     JOB, STEP_ENDED  ──> fine-tuning ┼────────┴─────────────> RUN_STEP
 *     CLOCKS_CHANGED   ──> governor ───┘─────────────────────── SET_CLOCKS
 *
 * Every request that is told is answered once: by the end of the batch that RUN_BATCH put it in, or
 * by an ANSWER that says why not. At most one batch and one step run at a time; whether both may is
 * the fine-tuning policy's choice.
 *
 * No clock, socket or thread inside; time is what is told, in seconds of any origin, and never
 * falls. After opening nothing is allocated.
 *
 * Owns: its state.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_SCHEDULER_H
#define WG_SCHEDULE_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "schedule/batcher.h"
#include "schedule/clock_governor.h"
#include "schedule/finetune.h"
#include "schedule/queue.h"

enum { WG_SERVING_MODELS_MAX = 16, WG_BATCH_ROWS_MAX = 1024 };

struct wg_scheduler;

enum wg_clock_mode { WG_CLOCKS_FIXED, WG_CLOCKS_GOVERNED };

struct wg_serving_model {
    unsigned max_rows; /* 1 .. WG_BATCH_ROWS_MAX */
    double slo_s;      /* of requests that bring no deadline of their own */
    struct wg_predictor_setup predictor;
    const struct wg_predictor_sample *samples; /* of the first fit */
    size_t sample_count;
};

struct wg_scheduler_setup {
    size_t model_count; /* 1 .. WG_SERVING_MODELS_MAX */
    const struct wg_serving_model *models;
    size_t queue_capacity; /* requests that wait; 0: 1024 */

    enum wg_batcher_kind batcher;
    double batch_delay_s; /* of TRITON */
    enum wg_drop_kind drop;

    enum wg_finetune_policy finetune;
    const struct wg_predictor_sample *step_samples; /* time of a step alone against its rows */
    size_t step_sample_count;                       /* 0: no fine-tuning */
    double update_s;       /* first guess of what the update at an iteration's end adds */
    double step_share;     /* a micro-step lasts this share of the SLO; 0: the policy's own */
    double deadline_share; /* eta: requests may wait until this share of their SLO; 0: own */
    double min_share;      /* of the GPU for fine-tuning while a job waits; 0: own; < 0: none */

    enum wg_clock_mode clocks;
    struct wg_clock_setup clock_setup; /* the ladder; a single rung of clocks 1 when fixed */
    size_t first_rung;                 /* that acts when it begins; and always, when fixed */
};

enum wg_event_kind {
    WG_EVENT_ARRIVE,         /* request */
    WG_EVENT_CANCEL,         /* id; of one that runs: nothing happens */
    WG_EVENT_BATCH_ENDED,    /* is_failed */
    WG_EVENT_STEP_ENDED,     /* is_failed: the iteration begins again */
    WG_EVENT_JOB,            /* job; queued behind the others */
    WG_EVENT_JOB_CANCEL,     /* id */
    WG_EVENT_SLO,            /* model, slo_s: of requests from now on */
    WG_EVENT_CLOCKS_CHANGED, /* rung: these act now */
    WG_EVENT_KIND_COUNT
};

struct wg_event {
    enum wg_event_kind kind;
    double now_s;
    /* ARRIVE: deadline_s 0 stands for now + the model's SLO, priority 0 for the lowest level;
     * arrived_s is set to now. */
    struct wg_request request;
    struct wg_finetune_job job;
    uint64_t id;
    unsigned model;
    double slo_s;
    size_t rung;
    bool is_failed;
};

enum wg_action_kind {
    WG_ACTION_RUN_BATCH,  /* batch */
    WG_ACTION_RUN_STEP,   /* step */
    WG_ACTION_ANSWER,     /* id, answer */
    WG_ACTION_SET_CLOCKS, /* rung; tell CLOCKS_CHANGED when they act */
    WG_ACTION_JOB_DONE,   /* id */
    WG_ACTION_KIND_COUNT
};

/* Why a request is not served. */
enum wg_answer {
    WG_ANSWER_FULL,      /* refused: the queue is full, or too many kinds of requests wait */
    WG_ANSWER_TOO_LARGE, /* refused: more rows than a batch may have */
    WG_ANSWER_DUPLICATE, /* refused: a request of this id waits or runs */
    WG_ANSWER_PAST,      /* dropped: as enum wg_verdict */
    WG_ANSWER_HOPELESS,
    WG_ANSWER_SACRIFICED,
    WG_ANSWER_CANCELLED,
    WG_ANSWER_COUNT
};

struct wg_batch {
    unsigned model;
    unsigned rows;
    size_t count;
    const struct wg_request *requests; /* until the next BATCH_ENDED */
    double predicted_s;                /* and its bound */
    double bound_s;
};

struct wg_action {
    enum wg_action_kind kind;
    struct wg_batch batch;
    struct wg_finetune_step step;
    uint64_t id;
    enum wg_answer answer;
    size_t rung;
};

/* WG_EINVAL: a field that cannot be, named. WG_ENOMEM. Keeps no pointer of the setup. */
enum wg_code wg__scheduler_open(struct wg_scheduler **out, const struct wg_scheduler_setup *setup,
                                struct wg_error *err);
void wg__scheduler_close(struct wg_scheduler *scheduler);

/* WG_EINVAL: an event that cannot be now (the end of what does not run, time that falls, an unknown
 * model or rung). WG_EBUSY: too many jobs wait, or too many answers were not asked for. Nothing has
 * changed then. */
enum wg_code wg__scheduler_tell(struct wg_scheduler *scheduler, const struct wg_event *event,
                                struct wg_error *err);

/* The next thing to do at `now_s`; false: nothing. What it says is taken as done. */
bool wg__scheduler_ask(struct wg_scheduler *scheduler, double now_s, struct wg_action *out);

/* Ask again at this moment even if nothing happens; HUGE_VAL: no need. */
double wg__scheduler_wake_s(const struct wg_scheduler *scheduler);

/* -- What it knows, for status pages and tests ----------------------------------------------- */

struct wg_scheduler_view {
    size_t waiting; /* requests */
    bool batch_runs, step_runs;
    size_t rung;
    double rate;   /* rows a second */
    double margin; /* of the bound, of model 0 */
    enum wg_finetune_state finetune;
    double finetune_share;    /* of the last seconds */
    uint64_t iterations_left; /* of the job at work */
};
void wg__scheduler_view(struct wg_scheduler *scheduler, double now_s,
                        struct wg_scheduler_view *out);

#endif
