/* SPDX-License-Identifier: MIT
 *
 * Fine-tuning beside inference: the two policies that wattgov is compared with.
 *
 * `greedy` runs a job from the moment it comes. `polythrottle` asks its predictor before each
 * iteration: if what waits, taken as the next batch, would still meet the oldest deadline while an
 * iteration runs beside it, the iteration begins, and then it cannot be stopped. The paper leaves
 * open how the batch is chosen; a batch of all that waits (up to the largest) is the strictest
 * reading, so the fairest to it.
 *
 * Source: PolyThrottle (2023), section 6; docs/internals/serving-finetune.md says what was read
 * into it.
 *
 * Threads: one at a time.
 */
#include <math.h>

#include "schedule/scheduler_parts.h"

unsigned wg__finetune_greedy(struct wg_scheduler *scheduler)
{
    return wg__finetune_rows_left(scheduler);
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
        deadline_s = wg__lane_first(scheduler->queue, lane)->deadline_s;
        batch = lane->rows < max_rows ? (unsigned)lane->rows : max_rows;
    }
    return begin_s + wg__scheduler_bounds(scheduler, m, batch, rows)[batch] <= deadline_s;
}

unsigned wg__finetune_polythrottle(struct wg_scheduler *scheduler)
{
    const unsigned rows = wg__finetune_rows_left(scheduler);
    double begin_s = scheduler->now_s;
    if (scheduler->batch.runs)
        begin_s = fmax(begin_s, scheduler->batch.begin_s + scheduler->batch.predicted_s);
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
