/* SPDX-License-Identifier: MIT
 *
 * Fine-tuning beside inference: the two policies that wattgov is compared with.
 *
 * `greedy` runs a job from the moment it comes. `polythrottle` asks its predictor before each
 * iteration: if the batch that runs and then what waits, taken as the next batch, would still meet
 * their deadlines while an iteration runs beside them, the iteration begins, and then it cannot be
 * stopped. The paper leaves open how the batch is chosen and what becomes of the one that runs; to
 * count both, and all that waits, is the strictest reading that its text bears, so the fairest to
 * it.
 *
 * Source: PolyThrottle (2023), section 6.
 *
 * Threads: one at a time.
 */
#include <math.h>

#include "schedule/scheduler_parts.h"

unsigned wg__finetune_greedy(struct wg_scheduler *scheduler)
{
    return wg__finetune_rows_left(scheduler);
}

/* When the batch that runs ends beside a step of `rows` rows; false: too late for one of its
 * requests. */
static bool running_ends(struct wg_scheduler *scheduler, unsigned rows, double *end_s_out)
{
    const struct wg_scheduler_batch *batch = &scheduler->batch;
    *end_s_out = scheduler->now_s;
    if (!batch->runs)
        return true;
    const double beside_s =
        wg__scheduler_bounds(scheduler, batch->model, batch->rows, rows)[batch->rows];
    const double done = (scheduler->now_s - batch->begin_s) / batch->predicted_s;
    *end_s_out = scheduler->now_s + fmax(0.0, 1.0 - done) * beside_s;
    for (size_t i = 0; i < batch->count; i++)
        if (batch->requests[i].deadline_s < *end_s_out)
            return false;
    return true;
}

/* Whether a batch of the lane's requests, or of the first one to come, keeps its deadline beside a
 * step of `rows` rows. */
static bool keeps_deadline(struct wg_scheduler *scheduler, unsigned m, const struct wg_lane *lane,
                           double begin_s, unsigned rows)
{
    const unsigned max_rows = scheduler->models[m].max_rows;
    double deadline_s = begin_s + scheduler->models[m].slo_s;
    unsigned batch = 1;
    if (lane != NULL) {
        deadline_s = HUGE_VAL;
        for (const struct wg_request *r = wg__lane_first(scheduler->queue, lane); r != NULL;
             r = wg__lane_next_level(scheduler->queue, r))
            deadline_s = fmin(deadline_s, r->deadline_s);
        batch = lane->rows < max_rows ? (unsigned)lane->rows : max_rows;
    }
    return begin_s + wg__scheduler_bounds(scheduler, m, batch, rows)[batch] <= deadline_s;
}

unsigned wg__finetune_polythrottle(struct wg_scheduler *scheduler)
{
    const unsigned rows = wg__finetune_rows_left(scheduler);
    double begin_s = 0.0;
    if (!running_ends(scheduler, rows, &begin_s))
        return 0;
    const size_t lanes = wg__queue_lane_count(scheduler->queue);
    for (size_t i = 0; i < lanes; i++) {
        const struct wg_lane *lane = wg__queue_lane(scheduler->queue, i);
        if (!keeps_deadline(scheduler, lane->model, lane, begin_s, rows))
            return 0;
    }
    if (lanes == 0)
        for (unsigned m = 0; m < scheduler->setup.model_count; m++)
            if (!keeps_deadline(scheduler, m, NULL, begin_s, rows))
                return 0;
    return rows;
}
