/* SPDX-License-Identifier: MIT
 *
 * The simulated training job: see train_world.h.
 *
 * Time advances by slices of at most 20 ms that end at the ends of steps and at the regular ticks.
 * A step is an amount of work, drawn with its jitter; the speed is what the setting allows, coming
 * from the one before as an exponential.
 *
 * Threads: pure, any thread.
 */
#include "support/train_world.h"

#include <assert.h>
#include <math.h>

#include "base/rng.h"
#include "math/normal.h"
#include "wattgov/device.h"

static const double slice_s = 0.02, tick_s = 0.1;
static const double busy_share = 0.7, rest_share = 0.5; /* as vgpu/vload_job.h */
static const double throttled_speed = 0.7;
static const double period_seen_s = 3; /* after a setting */

struct world {
    const struct train_world_job *job;
    const struct train_world_conditions *conditions;
    struct wg_rng rng;
    double t_s, next_tick_s;
    size_t setting; /* `count`: as found, unhindered */
    double set_s;
    double old_speed, old_power_w; /* what acted when it was set */
    double work, work_done;        /* of the present step; in its mean time at speed 1 */
    double pause_left_s;
    uint64_t steps;
    double period_s, next_reckoned_s; /* of the steps that are reckoned */
    uint64_t reckoned;
    double energy_j;          /* true */
    double window_j, shown_w; /* of the sensor */
    /* sums until the first hold, pauses left out */
    double sum_s, sum_speed, sum_j;
    /* the measurement */
    double seen_s; /* the moment of the newest tick, as it was seen */
    double begin_s, begin_j;
    uint64_t begin_steps;
    double begin_share; /* of a step, done before */
};

static double normal(struct world *world)
{
    return wg__rng_normal(&world->rng);
}

static void draw_step(struct world *world)
{
    const struct train_world_conditions *conditions = world->conditions;
    const double warm = conditions->warm_s > 0
                            ? 1 + conditions->warm_share * exp(-world->t_s / conditions->warm_s)
                            : 1;

    world->work = warm * exp(conditions->step_noise * normal(world) -
                             0.5 * conditions->step_noise * conditions->step_noise);
    world->work_done = 0;
}

/* Of the way from the old setting to the present one. */
static double acted(const struct world *world)
{
    const struct train_world_conditions *conditions = world->conditions;
    const double since_s = world->t_s - world->set_s - conditions->dead_s;

    if (since_s < 0)
        return 0;
    return conditions->settle_s > 0 ? 1 - exp(-since_s / conditions->settle_s) : 1;
}

static double speed_of(const struct world *world)
{
    const double step_s = world->job->step_s[world->setting];

    return world->old_speed + (1 / step_s - world->old_speed) * acted(world);
}

static double power_of(const struct world *world)
{
    return world->old_power_w +
           (world->job->power_w[world->setting] - world->old_power_w) * acted(world);
}

static void set(struct world *world, size_t setting)
{
    world->old_speed = speed_of(world);
    world->old_power_w = power_of(world);
    world->setting = setting;
    world->set_s = world->t_s;
}

static bool is_throttled(const struct world *world)
{
    return world->t_s >= world->conditions->throttle_from_s &&
           world->t_s < world->conditions->throttle_to_s;
}

static bool is_stopped(const struct world *world)
{
    return world->conditions->steps_stop_s > 0 && world->t_s >= world->conditions->steps_stop_s &&
           world->t_s < world->conditions->steps_resume_s;
}

/* Advances one slice; true: a step has ended with it. */
static bool advance(struct world *world, bool is_held)
{
    const struct train_world_conditions *conditions = world->conditions;
    const bool has_drifted = conditions->drift_at_s > 0 && world->t_s >= conditions->drift_at_s;
    const bool is_idle = world->pause_left_s > 0 || is_stopped(world);
    const double base_speed = speed_of(world), base_w = power_of(world);
    double speed = base_speed * (has_drifted ? conditions->drift_speed : 1);
    const double mean_share = busy_share + (1 - busy_share) * rest_share;
    const bool is_busy = world->work_done < busy_share * world->work;
    double power_w = world->job->idle_w +
                     (base_w * (has_drifted ? conditions->drift_power : 1) - world->job->idle_w) *
                         (is_busy ? 1 : rest_share) / mean_share;
    double time_s = fmin(slice_s, world->next_tick_s - world->t_s);
    bool is_end = false;

    if (is_throttled(world)) {
        speed *= throttled_speed;
        power_w *= throttled_speed;
    }
    if (is_idle) {
        power_w = world->job->idle_w;
        time_s = world->pause_left_s > 0 ? fmin(time_s, world->pause_left_s) : time_s;
        world->pause_left_s = fmax(0, world->pause_left_s - time_s);
    } else {
        const double busy_left = busy_share * world->work - world->work_done;
        const double left =
            (is_busy && busy_left > 1e-12 ? busy_left : world->work - world->work_done) / speed;

        time_s = fmin(time_s, left);
        world->work_done += time_s * speed;
        is_end = world->work_done >= world->work - 1e-9;
        if (!is_held) {
            world->sum_s += time_s;
            world->sum_speed += base_speed * time_s;
            world->sum_j += base_w * time_s;
        }
    }
    world->t_s += time_s;
    world->energy_j += power_w * time_s;
    world->window_j += power_w * time_s;
    if (is_end) {
        world->steps++;
        draw_step(world);
        if (conditions->pause_every > 0 && world->steps % conditions->pause_every == 0)
            world->pause_left_s = conditions->pause_s;
    }
    return is_end;
}

/* Whether a reckoned step has ended. */
static bool reckon(struct world *world)
{
    if (world->t_s - world->set_s >= period_seen_s)
        world->period_s = world->job->step_s[world->setting];
    if (world->t_s < world->next_reckoned_s)
        return false;
    world->next_reckoned_s += world->period_s;
    world->reckoned++;
    return true;
}

/* Steps that the job has told. */
static uint64_t told_steps(const struct world *world)
{
    const size_t every = world->conditions->tell_every;

    return every > 1 ? world->steps - world->steps % every : world->steps;
}

static void measure(struct world *world, struct wg_train_measurement *out)
{
    const struct train_world_conditions *conditions = world->conditions;
    const double time_s = world->seen_s - world->begin_s;
    const double energy_j = world->energy_j - world->begin_j;
    const double sd_j =
        hypot(conditions->power_noise * energy_j * sqrt(tick_s / fmax(time_s, tick_s)),
              0.2 * conditions->counter_s * energy_j / time_s);
    const double steps = (double)(told_steps(world) - world->begin_steps);

    *out = (struct wg_train_measurement){.energy_j = energy_j + sd_j * normal(world),
                                         .energy_error_j = 1.96 * sd_j,
                                         .time_s = time_s,
                                         .steps = steps};
    if (conditions->is_blind || conditions->is_reckoned) {
        const double whole = steps + world->work_done / world->work - world->begin_share;
        const double sd = 0.01 * fmin(1, pow(10 / time_s, 1.5)) * whole;

        out->steps = whole > 3 ? whole + sd * normal(world) : (double)NAN;
        out->steps_error = 1.96 * sd;
    }
}

/* Does what the governor says; false: nothing more to do for this tick. */
static bool obey(struct world *world, struct wg_train_governor *governor,
                 const struct wg_train_order *order, struct train_world_result *out)
{
    struct wg_train_measurement measurement;

    switch (order->kind) {
    case WG_TRAIN_KEEP:
        return false;
    case WG_TRAIN_SET:
        if ((world->conditions->refused >> order->setting & 1) != 0) {
            out->refusals++;
            wg__train_governor_refuse(governor, order->setting);
            return true;
        }
        set(world, order->setting);
        out->sets++;
        out->hold_sets += isnan(out->hold_s) ? 0 : 1;
        return true;
    case WG_TRAIN_BEGIN:
        world->begin_s = world->seen_s;
        world->begin_j = world->energy_j;
        world->begin_steps = told_steps(world);
        world->begin_share = world->work_done / world->work;
        return true;
    case WG_TRAIN_END:
        measure(world, &measurement);
        wg__train_governor_tell(governor, &measurement);
        out->measurements++;
        return true;
    case WG_TRAIN_ABORT:
        out->aborts++;
        return true;
    default:
        assert(false);
        return false;
    }
}

static void feed(struct world *world, struct wg_train_governor *governor, bool is_step_end,
                 struct train_world_result *out)
{
    const struct train_world_conditions *conditions = world->conditions;
    is_step_end = is_step_end && told_steps(world) == world->steps;
    const double late_s =
        is_step_end && conditions->moment_s > 0 ? conditions->moment_s * fabs(normal(world)) : 0;
    const uint64_t steps = conditions->is_reckoned ? world->reckoned : told_steps(world);
    struct wg_train_tick tick = {
        .t_s = world->t_s + late_s,
        .steps = conditions->is_blind ? (double)NAN : (double)steps,
        .is_step_end = is_step_end && !conditions->is_blind,
        .power_w = world->shown_w,
        .clock_hz = NAN,
        .temperature_c = NAN,
        .throttle = WG_THROTTLE_POWER_LIMIT | (is_throttled(world) ? WG_THROTTLE_THERMAL : 0u),
        .is_foreign = conditions->foreign_at_s > 0 && world->t_s >= conditions->foreign_at_s,
    };
    struct wg_train_order order;
    unsigned asked = 0;

    world->seen_s = tick.t_s;
    do {
        wg__train_governor_tick(governor, &tick, &order);
        out->why = order.why[0] != '\0' ? order.why : out->why;
        asked++;
        assert(asked <= 200); /* it comes to an end */
    } while (obey(world, governor, &order, out) && !conditions->asks_once);
    (void)asked;
    if (isnan(out->hold_s) && wg__train_governor_phase(governor) == WG_TRAIN_HOLD) {
        out->hold_s = world->t_s;
        out->first_hold = world->setting;
    }
}

static double cost(const struct train_world_job *job, const struct wg_objective *objective,
                   size_t setting)
{
    return wg__objective_cost_per_s(objective, job->power_w[setting]) * job->step_s[setting];
}

/* Over the least of those that are fast enough. */
static double regret_of(const struct train_world_job *job, const struct wg_objective *objective,
                        size_t setting)
{
    double least = (double)INFINITY, fastest_s = (double)INFINITY;

    for (size_t i = 0; i < job->count; i++)
        fastest_s = fmin(fastest_s, job->step_s[i]);
    for (size_t i = 0; i < job->count; i++)
        if (objective->kind != WG_OBJECTIVE_SLOWDOWN ||
            job->step_s[i] <= objective->max_slowdown * fastest_s)
            least = fmin(least, cost(job, objective, i));
    return cost(job, objective, setting) / least - 1;
}

static void sum_up(const struct world *world, const struct wg_objective *objective,
                   struct train_world_result *out)
{
    const struct train_world_job *job = world->job;
    double fastest_s = (double)INFINITY;

    for (size_t i = 0; i < job->count; i++)
        fastest_s = fmin(fastest_s, job->step_s[i]);
    out->setting = world->setting;
    out->regret = regret_of(job, objective, world->setting);
    out->slowdown = job->step_s[world->setting] / fastest_s;
    if (isnan(out->hold_s))
        return;
    const double held_s = job->step_s[out->first_hold], held_w = job->power_w[out->first_hold];

    out->first_regret = regret_of(job, objective, out->first_hold);
    out->held_power_w = held_w;
    out->overhead_s = world->sum_s - world->sum_speed * held_s;
    out->overhead_j = world->sum_j - world->sum_speed * held_s * held_w;
}

void train_world_run(const struct train_world_job *job,
                     const struct train_world_conditions *conditions,
                     const struct wg_train_config *config, uint64_t seed, double duration_s,
                     struct train_world_result *out)
{
    struct wg_train_config own = *config;
    struct wg_train_governor *governor = NULL;
    struct wg_error err;
    const struct wg_train_point *points;
    const size_t top = job->count - 1;
    struct world world = {.job = job,
                          .conditions = conditions,
                          .next_tick_s = tick_s,
                          .setting = top,
                          .period_s = job->step_s[top],
                          .set_s = -100,
                          .old_speed = 1 / job->step_s[top],
                          .old_power_w = job->power_w[top]};

    *out = (struct train_world_result){.hold_s = NAN, .why = ""};
    own.settings = job->setting;
    own.count = job->count;
    wg__rng_init(&world.rng, seed);
    world.shown_w = job->power_w[top];
    if (wg__train_governor_new(&governor, &own, &err) != WG_OK)
        assert(false);
    draw_step(&world);
    while (world.t_s < duration_s) {
        const bool is_true_end = advance(&world, !isnan(out->hold_s));
        const bool is_end = conditions->is_reckoned ? reckon(&world) : is_true_end;

        if (world.t_s >= world.next_tick_s - 1e-9) {
            world.shown_w =
                world.window_j / tick_s * (1 + conditions->power_noise * normal(&world));
            world.window_j = 0;
            world.next_tick_s += tick_s;
            feed(&world, governor, is_end, out);
        } else if (is_end) {
            feed(&world, governor, true, out);
        }
    }
    sum_up(&world, &own.objective, out);
    out->drifts = wg__train_governor_drifts(governor);
    out->point_count = wg__train_governor_profile(governor, &points);
    for (size_t i = 0; i < out->point_count; i++) {
        out->points[i] = points[i];
        out->probed++;
        out->discarded += points[i].discarded;
        out->settle_seen_s = fmax(out->settle_seen_s, points[i].settle_s);
    }
    wg__train_governor_free(governor);
}
