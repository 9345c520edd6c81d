/* SPDX-License-Identifier: MIT
 *
 * A toy world for the wattgov policy: each batch size needs so many epochs at so many joules, with
 * or without noise. The stage answers surveys and profiles as a caller does and keeps the bill.
 *
 *     struct toy_world world = make_world(5, 2);
 *     world.epochs[3] = 12;
 *     struct stage stage = open_stage(&world, 1);
 *     double cost_j = recur(&stage);
 *     close_stage(&stage);
 *
 * Threads: belongs to one test.
 */
#ifndef WG_TESTS_SUPPORT_GOVERNOR_STAGE_H
#define WG_TESTS_SUPPORT_GOVERNOR_STAGE_H

#include "math/normal.h"
#include "optimize/governor.h"
#include "support/batch_driver.h"

/* What an epoch costs at the largest limit and with profiling in it, in epochs at the best limit.
 */
static const double toy_max_limit_factor = 1.1, toy_first_epoch_factor = 1.5;

struct toy_world {
    size_t arm_count;
    size_t default_arm;
    unsigned max_epochs;
    double epochs[WG_ARMS_MAX];  /* to the target; INFINITY: never */
    double epoch_j[WG_ARMS_MAX]; /* at its best limit */
    double survey_j;
    double noise_sd; /* of log2 epochs */
    bool has_metric; /* rises evenly from 0 to the target */
};

struct stage {
    struct toy_world world;
    struct batch_driver driver;
    struct wg_governor *governor;
    struct wg_rng luck;
    double profiled_j[WG_ARMS_MAX]; /* told last; 0: never */
    double paid_j, surveys_j;
    unsigned surveys[WG_ARMS_MAX], runs[WG_ARMS_MAX], failures[WG_ARMS_MAX];
    size_t last_arm;
};

/* All arms alike: 10 epochs of 10 J, surveys at 1 J. */
static inline struct toy_world make_world(size_t arms, size_t default_arm)
{
    struct toy_world world = {
        .arm_count = arms, .default_arm = default_arm, .max_epochs = 100, .survey_j = 1};
    for (size_t i = 0; i < arms; i++) {
        world.epochs[i] = 10;
        world.epoch_j[i] = 10;
    }
    return world;
}

/* The larger the batch, the cheaper an epoch; above 64 (arm 3) the epochs double. Cheapest: arm 4.
 */
static inline struct toy_world make_ladder(void)
{
    struct toy_world world = make_world(7, 2);
    for (size_t i = 0; i < 7; i++) {
        world.epoch_j[i] = 40 * exp2(-0.6 * (double)i);
        world.epochs[i] = round(20 * (1 + exp2(1.5 * ((double)i - 4.5))));
    }
    return world;
}

static inline struct stage open_stage_with(const struct toy_world *world,
                                           const struct wg_batch_options *options, uint64_t seed)
{
    struct stage stage = {.world = *world};
    struct wg_batch_job job = make_batch_job(world->arm_count, world->default_arm, 5);
    job.max_epochs = world->max_epochs;
    stage.driver = start_driver(&wg__batch_policy_wattgov, &job, options, seed);
    stage.governor = (struct wg_governor *)stage.driver.policy;
    wg__rng_init(&stage.luck, seed + 1000000);
    return stage;
}

static inline struct stage open_stage(const struct toy_world *world, uint64_t seed)
{
    const struct wg_batch_options options = {0};
    return open_stage_with(world, &options, seed);
}

static inline void close_stage(struct stage *stage)
{
    stop_driver(&stage->driver);
    stage->governor = NULL;
}

/* The next run for `request`; what it asks for before is answered and paid. */
static inline struct wg_batch_step ask_for(struct stage *stage, struct wg_batch_request request)
{
    const struct wg_batch_policy_ops *ops = stage->driver.ops;
    const struct toy_world *world = &stage->world;
    for (size_t asks = 0; asks <= world->arm_count; asks++) {
        struct wg_batch_step step = {.kind = WG_STEP_SURVEY, .arm = SIZE_MAX};
        ops->ask(stage->driver.policy, &request, &stage->driver.rng, &step);
        assert_true(step.arm < world->arm_count);
        if (step.kind == WG_STEP_RUN)
            return step;
        assert_int_equal(stage->surveys[step.arm]++, 0); /* once is enough */
        stage->paid_j += world->survey_j;
        stage->surveys_j += world->survey_j;
        ops->tell_survey(stage->driver.policy, step.arm,
                         world->epoch_j[step.arm] * toy_max_limit_factor, world->survey_j);
    }
    fail_msg("surveys without end");
    return (struct wg_batch_step){0};
}

/* Tells the profile of `arm` when it is new; returns what the first epoch costs above others. */
static inline double profile_arm(struct stage *stage, size_t arm)
{
    const double epoch_j = stage->world.epoch_j[arm], before_j = stage->profiled_j[arm];
    if (epoch_j >= before_j && epoch_j <= before_j)
        return 0;
    const double factor = before_j > 0 ? 1 : toy_first_epoch_factor;
    const struct wg_batch_profile profile = {.epoch_cost_j = epoch_j,
                                             .epoch_cost_max_limit_j =
                                                 epoch_j * toy_max_limit_factor,
                                             .first_epoch_cost_j = epoch_j * factor};
    stage->driver.ops->tell_profile(stage->driver.policy, arm, &profile);
    stage->profiled_j[arm] = epoch_j;
    return epoch_j * (factor - 1);
}

/* Trains `step` to its end and tells it; returns whether it reached the target. */
static inline bool train(struct stage *stage, const struct wg_batch_step *step)
{
    const struct wg_batch_policy_ops *ops = stage->driver.ops;
    const struct toy_world *world = &stage->world;
    const size_t arm = step->arm;
    const double extra_j = profile_arm(stage, arm);
    const double drawn = world->epochs[arm] * exp2(world->noise_sd * wg__rng_normal(&stage->luck));
    const double needed = fmax(1, round(drawn));
    unsigned done = 0;
    while (done < world->max_epochs && done < needed) {
        const double metric = world->has_metric && done > 0 ? done / needed : (double)NAN;
        if (!ops->may_continue(stage->driver.policy, step->ticket, done, metric))
            break;
        done++;
    }
    const struct wg_batch_outcome outcome = {.reached = done >= needed,
                                             .epochs = done,
                                             .cost_j = done * world->epoch_j[arm] +
                                                       (done > 0 ? extra_j : 0)};
    ops->tell_run(stage->driver.policy, step->ticket, &outcome);
    stage->paid_j += outcome.cost_j;
    stage->runs[arm]++;
    stage->failures[arm] += !outcome.reached;
    stage->last_arm = arm;
    return outcome.reached;
}

/* One recurrence with all its attempts; returns what it cost. */
static inline double recur(struct stage *stage)
{
    const double before_j = stage->paid_j;
    struct wg_batch_request *next = &stage->driver.next;
    for (next->attempt = 0; next->attempt < WG_ATTEMPTS_MAX; next->attempt++) {
        const struct wg_batch_step step = ask_for(stage, *next);
        if (train(stage, &step))
            break;
    }
    *next = (struct wg_batch_request){.recurrence = next->recurrence + 1};
    return stage->paid_j - before_j;
}

/* What a run of `arm` costs once it is profiled. */
static inline double run_cost_j(const struct toy_world *world, size_t arm)
{
    return fmax(1, round(world->epochs[arm])) * world->epoch_j[arm];
}

static inline size_t cheapest_arm(const struct toy_world *world)
{
    size_t best = world->default_arm;
    for (size_t i = 0; i < world->arm_count; i++)
        if (world->epochs[i] <= world->max_epochs && run_cost_j(world, i) < run_cost_j(world, best))
            best = i;
    return best;
}

#endif
