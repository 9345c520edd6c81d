/* SPDX-License-Identifier: MIT
 *
 * When fine-tuning may use the GPU: the question, and one answer a policy.
 *
 *   NONE          never
 *   GREEDY        as soon as a job comes, all of it, beside inference (PolyThrottle's baseline)
 *   POLYTHROTTLE  iteration by iteration, beside inference, whenever the predicted latency of what
 *                 waits still meets the SLO (PolyThrottle, section 6)
 *   WATTGOV       in micro-steps, alone on the GPU between two batches, when what waits and what is
 *                 expected to come meanwhile still meets its deadlines after the step
 *
 * A step of `rows` rows is part of an iteration (gradients add up over micro-steps; the update
 * comes with the last one), or a whole one.
 *
 * Pure.    Owns: nothing.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_FINETUNE_H
#define WG_SCHEDULE_FINETUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WG_FINETUNES(X)                                                                            \
    X(NONE, "none") X(GREEDY, "greedy") X(POLYTHROTTLE, "polythrottle") X(WATTGOV, "wattgov")
enum wg_finetune_policy {
#define X(name, word) WG_FINETUNE_##name,
    WG_FINETUNES(X)
#undef X
        WG_FINETUNE_COUNT
};

struct wg_finetune_job {
    uint64_t id;
    unsigned batch;      /* rows of an iteration, >= 1 */
    uint64_t iterations; /* >= 1; UINT64_MAX: without end */
};

struct wg_finetune_step {
    uint64_t job;
    unsigned rows;
    bool begins_iteration;
    bool ends_iteration; /* the update follows */
    bool is_alone;       /* no batch runs beside it */
};

/* Whether the load leaves room at all. */
enum wg_finetune_state {
    WG_FINETUNE_IDLE,    /* no job */
    WG_FINETUNE_RUNNING, /* it gets what is left over */
    WG_FINETUNE_STARVED, /* below its minimum share: steps are forced where they harm least */
    WG_FINETUNE_NO_ROOM  /* at this rate the SLO leaves nothing: none is run, and this says so */
};

#endif
