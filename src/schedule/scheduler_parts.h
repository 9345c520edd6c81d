/* SPDX-License-Identifier: MIT
 *
 * The inside of a scheduler, shared by the files that make it up.
 *
 *     scheduler.c            opening, and the order in which an ask looks for something to do
 *     scheduler_tell.c       what each event changes
 *     scheduler_batch.c      which lane is served next, what is dropped
 *     finetune_jobs.c        jobs, iterations, steps
 *     finetune_beside.c      policies that run steps beside inference
 *     finetune_wattgov.c     the policy of micro-steps
 *
 * Threads: one at a time.
 */
#ifndef WG_SCHEDULE_SCHEDULER_PARTS_H
#define WG_SCHEDULE_SCHEDULER_PARTS_H

#include "schedule/rate.h"
#include "schedule/scheduler.h"

enum { WG_JOBS_MAX = 64 };

struct wg_scheduler_model {
    unsigned max_rows;
    double slo_s;
    struct wg_predictor *predictor; /* owned */
    struct wg_rate rate;
    unsigned hopeless; /* given up in a row though they had not waited, no batch between */
    /* Bounds of a batch's time at `bound_rung`, beside a step of `bound_beside` rows: bound_s[r]
     * for r = 1 .. bound_filled. Owned. */
    double *bound_s;
    unsigned bound_filled;
    size_t bound_rung;
    unsigned bound_beside;
    size_t bound_version;
};

struct wg_scheduler_batch {
    bool runs;
    bool is_pure; /* the same clocks and the same company from begin to end */
    unsigned model;
    unsigned rows;
    size_t count;
    double begin_s;
    double predicted_s;
    size_t rung;
    unsigned beside;             /* rows of the step that runs with it; 0: none */
    struct wg_request *requests; /* owned; room for the largest max_rows */
};

struct wg_scheduler_step {
    bool runs;
    bool is_pure;
    struct wg_finetune_step step;
    double begin_s;
    size_t rung;
};

/* A ring. The first one is at work. */
struct wg_scheduler_jobs {
    struct wg_finetune_job jobs[WG_JOBS_MAX];
    size_t head, count;
    unsigned rows_done;     /* of its present iteration */
    bool head_is_cancelled; /* while its step runs */
};

struct wg_scheduler_answer {
    uint64_t id;
    enum wg_answer answer;
};

struct wg_scheduler {
    struct wg_scheduler_setup setup; /* its pointers are cleared */
    struct wg_scheduler_model models[WG_SERVING_MODELS_MAX];
    struct wg_queue *queue;
    double now_s; /* of the last event or question */
    double wake_s;

    struct wg_scheduler_batch batch;
    struct wg_scheduler_step step;

    struct wg_scheduler_answer *answers; /* ring; owned */
    size_t answer_head, answer_count, answer_capacity;

    struct wg_predictor *step_predictor; /* owned; NULL: no fine-tuning */
    double update_s;                     /* what an iteration's end adds */
    struct wg_scheduler_jobs jobs;
    bool has_done_job;
    uint64_t done_job;
    double credit_s;  /* of the minimum share: GPU time that fine-tuning is owed */
    bool step_is_due; /* a batch ran since the last step */
    double share;     /* of the last seconds that went to steps */
    double share_since_s;
    double missed_share;   /* of the last fifty requests or so: late or dropped */
    double missed_since_s; /* as of then; it fades with time, too */
    bool has_room;
    double room_since_s; /* judged then; -HUGE_VAL: never */

    struct wg_clock_governor governor;
    size_t rung;        /* acts */
    size_t wanted_rung; /* asked for; equals `rung` when no change is under way */
};

/* -- scheduler_batch.c ------------------------------------------------------------------------- */

/* Bounds of batches of model `m` at the rung that acts, beside a step of `beside` rows:
 * [1 .. rows]; `rows` <= max_rows. Valid until the next call. */
const double *wg__scheduler_bounds(struct wg_scheduler *scheduler, unsigned m, unsigned rows,
                                   unsigned beside);

/* A batch that may begin now, or false; drops what must be dropped. Moves wake_s. */
bool wg__scheduler_ask_batch(struct wg_scheduler *scheduler, struct wg_action *out);

/* While nothing can begin: drops what is past its deadline as soon as it is. Moves wake_s. */
void wg__scheduler_drop_past(struct wg_scheduler *scheduler);

/* The share of the last requests that were missed, as of now: fewer the longer ago they were, or a
 * crowd that is gone would count for ever. */
double wg__scheduler_missed_share(const struct wg_scheduler *scheduler);

/* A request was answered after this share of its SLO; HUGE_VAL: it was dropped. */
void wg__scheduler_count_answer(struct wg_scheduler *scheduler, double latency_share);

/* Room is left by how many waiting requests there may be. */
void wg__scheduler_push_answer(struct wg_scheduler *scheduler, uint64_t id, enum wg_answer answer);

/* -- finetune_jobs.c --------------------------------------------------------------------------- */

/* Whether a job waits and no step runs. */
bool wg__finetune_is_pending(const struct wg_scheduler *scheduler);

/* Predicted seconds of a step alone at the rung that acts; the update counts where it ends an
 * iteration. */
double wg__finetune_step_s(const struct wg_scheduler *scheduler, unsigned rows);

/* Rows until the present iteration's end. */
unsigned wg__finetune_rows_left(const struct wg_scheduler *scheduler);

/* The policy's answer: a step that begins now. */
bool wg__finetune_ask(struct wg_scheduler *scheduler, struct wg_finetune_step *out);

enum wg_code wg__finetune_submit(struct wg_scheduler *scheduler, const struct wg_finetune_job *job,
                                 struct wg_error *err);
enum wg_code wg__finetune_cancel(struct wg_scheduler *scheduler, uint64_t id, struct wg_error *err);
void wg__finetune_step_ended(struct wg_scheduler *scheduler, bool is_failed);

/* -- The policies: how many rows to run now; 0: none ---------------------------------------- */

unsigned wg__finetune_greedy(struct wg_scheduler *scheduler);
unsigned wg__finetune_polythrottle(struct wg_scheduler *scheduler);
unsigned wg__finetune_wattgov(struct wg_scheduler *scheduler);

/* Credit of the minimum share and the share of the last seconds, up to now. */
void wg__finetune_count_time(struct wg_scheduler *scheduler);

#endif
