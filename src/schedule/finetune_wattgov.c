/* SPDX-License-Identifier: MIT
 *
 * Micro-steps in the slack: fine-tuning that waits for nobody's deadline.
 *
 * A step runs alone, so nothing has to be known of how two kernels hinder each other: what a
 * request loses is the rest of the step, and that is bounded by its length. A step of length tau
 * may begin now if, for every model, what waits and what comes meanwhile still goes in time as one
 * batch of b rows,
 *
 *     b = waiting + E[arrivals in tau] + z sigma
 *     tau + t(b) <= oldest slack - (1 - eta) SLO
 *
 * and, where the step makes that batch larger, the echo does too: who comes while it runs must fit
 * behind it,
 *
 *     t(b) + t'(1 + E[arrivals in t(b)]) <= SLO
 *
 * t() is the predictor's bound, t' its mean (two batches in a row are seldom both slow), tau the
 * step's prediction with its own margin. So requests wait a while although the GPU could take them,
 * and go in larger batches, which cost less each: fine-tuning runs on what that saves.
 *
 * At a rate of which even the best batches within the SLO leave no time, no step would ever be
 * right. That is judged from rate and bound, and said (NO_ROOM), instead of being tried.
 *
 * Source: the rule of slack is ours; the batch that the rate brings is the fixed point of bulk
 * queues.
 *
 * Threads: one at a time.
 */
#include <math.h>

#include "schedule/scheduler_parts.h"

/* Normal quantile of the arrivals during a step. Little more than the mean: a batch that grew too
 * large can still be cut to what its oldest request bears. */
#define ARRIVALS_Z 0.3

/* Of the GPU: less than this counts as no room. */
#define ROOM_MIN 0.02

/* Nor is there room where so many of the last requests are late or dropped without a step: whoever
 * cannot serve them has nothing to give away. It is back when half of that are. */
#define MISSED_MOST 0.2

/* Of fewer rows the rate is not known, and is taken to be higher by its error. */
#define KNOWN_ROWS 8.0

/* Where the slack bears it, a step is so many times the usual: each has a cost of its own. */
#define LONG_STEP 4.0

/* So many steps of the minimum share may be owed before one makes requests wait. */
#define OWED_STEPS 4.0

/* How old the judgement of room may be. */
#define ROOM_KEEP_S 0.5

static unsigned cap_rows(double rows, unsigned max_rows)
{
    return rows >= max_rows ? max_rows : (unsigned)fmax(1.0, ceil(rows - 1e-9));
}

/* The least share of the GPU that a model's requests take: in batches as large as its SLO lets them
 * gather. 2: none is small enough. */
static double least_share(struct wg_scheduler *scheduler, unsigned m)
{
    struct wg_scheduler_model *model = &scheduler->models[m];
    const double mean = wg__rate_mean(&model->rate, scheduler->now_s);
    if (!(mean > 0.0))
        return 0.0;
    const double error = wg__rate_error(&model->rate, scheduler->now_s);
    const double rate = error * error * KNOWN_ROWS > mean * mean ? mean + error : mean;
    const unsigned most = cap_rows(1.0 + rate * model->slo_s, model->max_rows);
    const double *bound_s = wg__scheduler_bounds(scheduler, m, most, 0);
    double least = 2.0;
    for (unsigned rows = 1; rows <= most; rows++)
        if ((rows - 1) / rate + bound_s[rows] <= model->slo_s)
            least = fmin(least, rate * bound_s[rows] / rows);
    return least;
}

static bool judge_room(struct wg_scheduler *scheduler)
{
    if (scheduler->now_s - scheduler->room_since_s < ROOM_KEEP_S)
        return scheduler->has_room;
    double taken = 0.0;
    for (unsigned m = 0; m < scheduler->setup.model_count; m++)
        taken += least_share(scheduler, m);
    const double missed_most = scheduler->has_room ? MISSED_MOST : MISSED_MOST / 2.0;
    scheduler->has_room =
        taken <= 1.0 - ROOM_MIN && wg__scheduler_missed_share(scheduler) <= missed_most;
    scheduler->room_since_s = scheduler->now_s;
    return scheduler->has_room;
}

/* Whether a batch of this model goes in time when it begins at begin_s. `waiting` rows, the oldest
 * of which must be served by due_s; *end_s_out: when the batch ends. */
static bool goes_in_time(struct wg_scheduler *scheduler, unsigned m, double waiting, double due_s,
                         double begin_s, double *end_s_out)
{
    struct wg_scheduler_model *model = &scheduler->models[m];
    const double now_s = scheduler->now_s;
    const double rows = waiting + wg__rate_expect(&model->rate, now_s, begin_s - now_s, ARRIVALS_Z);
    if (rows > model->max_rows)
        return false;
    const unsigned batch = cap_rows(rows, model->max_rows);
    const double batch_s = wg__scheduler_bounds(scheduler, m, batch, 0)[batch];
    if (begin_s + batch_s > due_s)
        return false;
    *end_s_out = begin_s + batch_s;
    if (batch <= fmax(1.0, waiting)) /* the echo would be the same without the step */
        return true;
    /* By the mean: the batch after the next may be shrunk, too. */
    const double more = wg__rate_mean(&model->rate, now_s) * batch_s;
    const unsigned echo = cap_rows(1.0 + more, model->max_rows);
    const double echo_s = wg__scheduler_bounds(scheduler, m, echo, 0)[echo] /
                          (1.0 + wg__predictor_margin(model->predictor));
    return batch_s + echo_s <= model->slo_s;
}

/* When the lane must be served at the latest, `spare` of each SLO kept: of each priority level the
 * first one is the tightest. */
static double due_s_of(const struct wg_scheduler *scheduler, const struct wg_lane *lane,
                       double spare)
{
    double due_s = HUGE_VAL;
    for (const struct wg_request *r = wg__lane_first(scheduler->queue, lane); r != NULL;
         r = wg__lane_next_level(scheduler->queue, r))
        due_s = fmin(due_s, r->deadline_s - spare * (r->deadline_s - r->arrived_s));
    return due_s;
}

/* Whether everybody's deadlines bear a step of step_s. */
static bool bears(struct wg_scheduler *scheduler, double step_s)
{
    const double spare = 1.0 - scheduler->setup.deadline_share;
    double begin_s = scheduler->now_s + step_s;
    unsigned waits = 0; /* bit m: model m has a lane */
    const size_t lanes = wg__queue_lane_count(scheduler->queue);
    for (size_t i = 0; i < lanes; i++) {
        const struct wg_lane *lane = wg__queue_lane(scheduler->queue, i);
        const double due_s = due_s_of(scheduler, lane, spare);
        waits |= 1U << lane->model;
        if (!goes_in_time(scheduler, lane->model, (double)lane->rows, due_s, begin_s, &begin_s))
            return false;
    }
    for (unsigned m = 0; m < scheduler->setup.model_count; m++) {
        const double due_s = scheduler->now_s + (1.0 - spare) * scheduler->models[m].slo_s;
        double end_s = 0.0;
        if ((waits >> m & 1) == 0 && !goes_in_time(scheduler, m, 0.0, due_s, begin_s, &end_s))
            return false;
    }
    return true;
}

/* Rows of a step that lasts about `target_s`. */
static unsigned rows_of(struct wg_scheduler *scheduler, double target_s)
{
    const unsigned left = wg__finetune_rows_left(scheduler);
    const double one_s = wg__finetune_step_s(scheduler, 1);
    if (left < 2 || !(one_s < target_s))
        return 1;
    /* Time is linear in rows, up to the update. */
    const double two_s = wg__finetune_step_s(scheduler, 2);
    const double row_s = left == 2 ? one_s : two_s - one_s;
    const double rows = row_s > 0.0 ? 1.0 + (target_s - one_s) / row_s : (double)left;
    return rows >= left ? left : (unsigned)rows;
}

static double tightest_slo_s(const struct wg_scheduler *scheduler)
{
    double slo_s = scheduler->models[0].slo_s;
    for (size_t m = 1; m < scheduler->setup.model_count; m++)
        slo_s = fmin(slo_s, scheduler->models[m].slo_s);
    return slo_s;
}

/* The next shorter step to try: by halves, over the usual one, down to half of that; 0: none. */
static unsigned fewer_rows(unsigned rows, unsigned usual)
{
    if (rows > usual)
        return rows / 2 > usual ? rows / 2 : usual;
    return rows == usual ? usual / 2 : 0;
}

/* Whether some SLO is too short for one request behind another: then whoever comes second is lost,
 * and a step makes that as much more likely as it is long. */
static bool is_tight(struct wg_scheduler *scheduler)
{
    for (unsigned m = 0; m < scheduler->setup.model_count; m++)
        if (2.0 * wg__scheduler_bounds(scheduler, m, 1, 0)[1] > scheduler->models[m].slo_s)
            return true;
    return false;
}

unsigned wg__finetune_wattgov(struct wg_scheduler *scheduler)
{
    wg__finetune_count_time(scheduler);
    if (!judge_room(scheduler))
        return 0;
    const double margin = 1.0 + wg__predictor_margin(scheduler->step_predictor);
    const double usual_s = scheduler->setup.step_share * tightest_slo_s(scheduler);
    const unsigned usual = rows_of(scheduler, usual_s);
    double step_s = 0.0;
    unsigned least = 0;
    const double longest_s = is_tight(scheduler) ? usual_s : LONG_STEP * usual_s;
    for (unsigned rows = rows_of(scheduler, longest_s); rows > 0; rows = fewer_rows(rows, usual)) {
        step_s = margin * wg__finetune_step_s(scheduler, rows);
        if (bears(scheduler, step_s))
            return rows;
        least = rows;
    }
    /* Owed by the minimum share: where it harms least, that is when nobody waits, or, when that
     * never comes, between two batches. */
    if (wg__queue_count(scheduler->queue) == 0)
        return scheduler->credit_s > step_s ? least : 0;
    return scheduler->step_is_due && scheduler->credit_s > OWED_STEPS * step_s ? least : 0;
}
