/* SPDX-License-Identifier: MIT
 *
 * A simulated GPU that serves: the world around the scheduler (schedule/scheduler.h).
 *
 * Requests come as the arrivals say; batches and steps take the profile's time with gamma noise;
 * when both run each gets slower by the profile's factor, and their remaining work is rescaled at
 * every change of who runs and of the clocks. Requests that came before `duration_s` are all
 * answered: the run goes on until then. At `duration_s` the job is cancelled; a step under way ends
 * by itself, but what fine-tuning got is counted until there. Joules are counted until the last
 * answer, those of such a step too.
 *
 * Energy: power of the rung in force for the time that a batch runs, a step runs (both: the larger
 * one, shared by halves) or nothing runs, and the cost of changes (with inference).
 *
 * Owns: nothing after it returns.    Threads: pure, any thread.
 */
#ifndef WG_SIMULATE_SERVING_H
#define WG_SIMULATE_SERVING_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/rng.h"
#include "math/histogram.h"
#include "schedule/arrivals.h"
#include "schedule/scheduler.h"
#include "simulate/serving_profile.h"

enum { WG_SLO_CHANGES_MAX = 16 };

struct wg_slo_change {
    double at_s;
    double slo_s;
};

/* What a policy of the study is: a fine-tuning policy with its batcher and its drop rule. */
struct wg_serving_setup {
    const struct wg_serving_profile *profile;
    const struct wg_serving_profile *believed; /* what the scheduler is told; NULL: the profile */
    enum wg_finetune_policy finetune;
    enum wg_batcher_kind batcher;
    enum wg_drop_kind drop;
    double batch_delay_s;
    enum wg_clock_mode clocks;
    size_t rung;                                  /* the fixed one, or the first */
    double step_share, deadline_share, min_share; /* 0: the scheduler's own */
    size_t queue_capacity;
    double slo_s;
    size_t change_count;
    struct wg_slo_change changes[WG_SLO_CHANGES_MAX];
    bool has_job;
    struct wg_finetune_job job; /* comes at 0 s */
    double duration_s;
};

/* Times and counts of one run; sums of several are sums of fields. */
struct wg_serving_sum {
    uint64_t runs;
    uint64_t requests, late, dropped; /* late: answered behind the deadline */
    uint64_t events;                  /* told to the scheduler */
    uint64_t jobs_finished;
    double finished_s;    /* sum over the runs that finished */
    double finetune_rows; /* of steps that ended by duration_s */
    /* Both of the first two and the tail hold the time in which both ran: idle is what is left of
     * time_s - inference_busy_s - finetune_busy_s - finetune_tail_s + both_busy_s. */
    double inference_busy_s;
    double finetune_busy_s; /* until duration_s */
    double finetune_tail_s; /* behind it */
    double both_busy_s;
    double finetune_work_s; /* that what it did until duration_s would have taken alone: over that
                               time they are its share of the GPU */
    double time_s;          /* until the last answer, at least duration_s */
    double finetune_time_s; /* duration_s, or until the job was done; 0 without a job */
    double inference_j, finetune_j, idle_j;
    uint64_t clock_changes;
    uint64_t answers[WG_ANSWER_COUNT];
    uint64_t batches[WG_BATCH_ROWS_MAX + 1]; /* by rows */
};

/* Called for what happens, for a timeline; `value` as the kind says. */
enum wg_timeline_kind {
    WG_TIMELINE_ARRIVED, /* request id */
    WG_TIMELINE_BATCH,   /* rows: begins */
    WG_TIMELINE_BATCH_END,
    WG_TIMELINE_STEP, /* rows: begins */
    WG_TIMELINE_STEP_END,
    WG_TIMELINE_LATE,    /* request id */
    WG_TIMELINE_DROPPED, /* request id */
    WG_TIMELINE_QUEUE,   /* requests that wait now */
    WG_TIMELINE_SLO,     /* milliseconds */
    WG_TIMELINE_CLOCKS,  /* rung */
    WG_TIMELINE_KIND_COUNT
};
struct wg_timeline {
    void (*note)(void *context, double at_s, enum wg_timeline_kind kind, uint64_t value);
    void *context;
};

/* One run from the beginning of `arrivals` (restarted by the caller). Adds to `sum` and the
 * latencies of what was served to `latencies` (NULL: none; its counts may be shared by processes).
 * WG_EINVAL: the setup; WG_ESTATE: the scheduler lost a request or answered one twice. WG_ENOMEM.
 */
enum wg_code wg__serving_run(const struct wg_serving_setup *setup, struct wg_arrivals *arrivals,
                             const struct wg_rng *rng, struct wg_serving_sum *sum,
                             struct wg_histogram *latencies, const struct wg_timeline *timeline,
                             struct wg_error *err);

void wg__serving_sum_add(struct wg_serving_sum *sum, const struct wg_serving_sum *other);

#endif
