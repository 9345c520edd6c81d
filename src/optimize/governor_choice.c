/* SPDX-License-Identifier: MIT
 *
 * Which arm to run next: variance-based information-directed sampling under a guard.
 *
 * Whole cost curves are drawn from the posterior. Each arm has an expected regret Delta (its mean
 * cost above the mean of the least) and an information gain g: how much knowing which arm is best
 * moves this arm's expected cost, Var_{a*}(E[C_i | a*]), scaled by how much one noisy run would
 * tell. The arm with the least Delta^2 / g is run (Russo and Van Roy, "Learning to Optimize via
 * Information-Directed Sampling", 2018). It never plays an arm that can neither be best nor teach.
 * Left alone it explores at a nearly constant rate, which costs more than it finds once the best
 * few arms are known; so the chance to explore becomes rarer with the number of recurrences,
 * without ever ending.
 *
 * The guard keeps the promise to the user: a trial must fit into a debt against always running the
 * default, which grows slowly with the number of recurrences.
 *
 * Threads: one at a time; works in the governor's scratch memory.
 */
#include <math.h>
#include <string.h>

#include "math/normal.h"
#include "optimize/governor.h"

/* Sums over the draws. */
struct tally {
    size_t draws;
    double mean[WG_ARMS_MAX];
    double variance[WG_ARMS_MAX];
    double mean_least;
    size_t times_best[WG_ARMS_MAX];
    double mean_when_best[WG_ARMS_MAX][WG_ARMS_MAX]; /* [best][arm] */
};

/* What turns a drawn curve into a cost, per arm. */
struct pricing {
    double noise_sd;
    double mean_factor; /* of the lognormal noise */
    double fails;       /* share of runs that fail although others reach the target */
    double failed_j;    /* what such a run costs, with the incumbent's after it */
};

static struct pricing price_arm(const struct wg_governor *governor, size_t i)
{
    const double variance = governor->model.noise_variance[i];
    return (struct pricing){
        .noise_sd = sqrt(variance),
        .mean_factor = exp(0.5 * M_LN2 * M_LN2 * variance),
        .fails = wg__epochs_model_failure_share(&governor->model, i),
        .failed_j =
            governor->cost[i].epoch_j * governor->model.failure_epochs[i] + governor->incumbent_j,
    };
}

/* The cost of reaching the target at arm `i` whose curve is at `y`: a run that fails to reach it
 * within the job's epochs is paid for and followed by the incumbent's; none costs more than the
 * cap, because it would be stopped. */
static double draw_cost_j(const struct wg_governor *governor, size_t i, double y,
                          const struct pricing *pricing)
{
    const double epoch_j = governor->cost[i].epoch_j;
    const double fallback_j = governor->incumbent_j;
    const double margin = y - log2(governor->job.max_epochs + 0.5);
    double cost_j = epoch_j * exp2(y) * pricing->mean_factor;
    if (margin > -3 * pricing->noise_sd) {
        const double fails = wg__normal_cdf(margin / pricing->noise_sd);
        cost_j = (1 - fails) * fmin(cost_j, 1e3 * fallback_j) +
                 fails * (epoch_j * governor->job.max_epochs + fallback_j);
    }
    cost_j = (1 - pricing->fails) * cost_j + pricing->fails * pricing->failed_j;
    return fmin(cost_j, wg__governor_constants.cost_cap * fallback_j);
}

static void take_draws(struct wg_governor *governor, struct wg_rng *rng, struct tally *tally)
{
    const size_t arms = governor->job.arm_count;
    struct pricing pricing[WG_ARMS_MAX];
    for (size_t i = 0; i < arms; i++)
        pricing[i] = price_arm(governor, i);
    memset(tally, 0, sizeof *tally);
    tally->draws = WG_EPOCHS_DRAWS;
    wg__epochs_model_sample(&governor->model, rng, governor->draws);
    for (size_t m = 0; m < tally->draws; m++) {
        double *cost_j = governor->draws + m * arms;
        size_t best = 0;
        for (size_t i = 0; i < arms; i++) {
            cost_j[i] = draw_cost_j(governor, i, cost_j[i], &pricing[i]);
            if (cost_j[i] < cost_j[best])
                best = i;
        }
        tally->mean_least += cost_j[best];
        if (cost_j[governor->incumbent] <= (1 + wg__governor_constants.tie_share) * cost_j[best])
            best = governor->incumbent;
        tally->times_best[best]++;
        for (size_t i = 0; i < arms; i++) {
            tally->mean[i] += cost_j[i];
            tally->variance[i] += cost_j[i] * cost_j[i];
            tally->mean_when_best[best][i] += cost_j[i];
        }
    }
    const double count = (double)tally->draws;
    tally->mean_least /= count;
    for (size_t i = 0; i < arms; i++) {
        tally->mean[i] /= count;
        tally->variance[i] = fmax(0, tally->variance[i] / count - tally->mean[i] * tally->mean[i]);
    }
}

/* How much a run of `arm` would say about which arm is best, J^2. */
static double information(const struct wg_governor *governor, const struct tally *tally, size_t arm,
                          size_t pending)
{
    double gain = 0;
    for (size_t best = 0; best < governor->job.arm_count; best++) {
        if ((double)tally->times_best[best] < wg__governor_constants.least_best_draws)
            continue;
        const double count = (double)tally->times_best[best];
        const double shift = tally->mean_when_best[best][arm] / count - tally->mean[arm];
        gain += count / (double)tally->draws * shift * shift;
    }
    const double mean = tally->mean[arm];
    const double noise =
        M_LN2 * M_LN2 * governor->model.noise_variance[arm] * mean * mean * (1 + (double)pending);
    return gain * tally->variance[arm] / fmax(tally->variance[arm] + noise, 1e-300);
}

static size_t pending_on(const struct wg_governor *governor, size_t arm)
{
    size_t count = 0;
    for (size_t i = 0; i < WG_IN_FLIGHT_MAX && governor->in_flight > 0; i++)
        count += governor->flights[i].is_active && governor->flights[i].arm == arm;
    return count;
}

/* Whether running `arm` keeps the whole bill near what the default would have cost. */
static bool is_allowed(const struct wg_governor *governor, size_t arm)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    if (arm == governor->incumbent ||
        governor->expected_j[arm] <= c->guard_slack * governor->incumbent_j)
        return true;
    const struct wg_arm_cost *of_default = &governor->cost[governor->job.default_arm];
    double default_j = governor->expected_j[governor->job.default_arm];
    if (of_default->is_profiled)
        default_j *= of_default->profile.epoch_cost_max_limit_j / of_default->profile.epoch_cost_j;
    double price_j;
    (void)wg__governor_stop_epochs(governor, arm, &price_j);
    const double bill_j =
        governor->spent_j + fmax(price_j + governor->incumbent_j, governor->expected_j[arm]);
    const double done = (double)governor->completed + (double)governor->in_flight;
    return bill_j + (double)governor->in_flight * governor->incumbent_j <=
           (done + 1 + c->debt_runs + c->debt_per_run * done) * default_j;
}

/* How many of the first `runs` recurrences may explore: all of the first few, then a share that
 * falls as 1/n, so that the number grows for ever but only with the logarithm. */
static double exploring_runs(double runs)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    const double later = fmax(0, runs - c->explore_first);
    return floor(fmin(runs, c->explore_first) + c->explore_later * log1p(later / c->explore_later));
}

static bool is_exploring(const struct wg_governor *governor)
{
    const double runs = governor->explored;
    return runs < 1 || exploring_runs(runs) > exploring_runs(runs - 1);
}

/* The runs after which an arm is looked at again whatever the curves say: 128, 256, 512, ... */
static bool is_second_look(const struct wg_governor *governor)
{
    const double runs = governor->explored;
    return runs >= wg__governor_constants.second_look_first && exp2(floor(log2(runs))) == runs;
}

/* What `arm` would cost if its runs so far had been unlucky, or if it needed no more epochs than
 * the incumbent where it never ran. Infinite where it only ever failed. */
static double hopeful_cost_j(const struct wg_governor *governor, size_t arm)
{
    const struct wg_epochs_model *model = &governor->model;
    const double epoch_j = governor->cost[arm].epoch_j;
    if (model->success_count[arm] == 0)
        return model->failure_count[arm] > 0
                   ? (double)INFINITY
                   : epoch_j * exp2(fmin(model->mean[arm], model->mean[governor->incumbent]));
    const double luck =
        2 * wg__governor_constants.noise_sd / sqrt((double)model->success_count[arm]);
    return epoch_j * exp2(model->arm_mean[arm] - luck);
}

/* The arm that would gain most if the curves were wrong about it; the incumbent when none would. */
static size_t look_again(const struct wg_governor *governor)
{
    size_t best = governor->incumbent;
    double least_j = governor->incumbent_j;
    for (size_t i = 0; i < governor->job.arm_count; i++) {
        if (i == governor->incumbent || !is_allowed(governor, i))
            continue;
        const double hopeful_j = hopeful_cost_j(governor, i);
        if (hopeful_j < least_j) {
            least_j = hopeful_j;
            best = i;
        }
    }
    return best;
}

/* Squared regret over information, for each arm. */
static void rank(const struct wg_governor *governor, const struct tally *tally, double *ratio)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    for (size_t i = 0; i < governor->job.arm_count; i++) {
        double regret = tally->mean[i] - tally->mean_least;
        if (governor->model.success_count[i] == 0)
            regret += c->failure_surcharge * governor->incumbent_j;
        regret += c->first_use_weight * wg__governor_premium_j(governor, i);
        const double gain = information(governor, tally, i, pending_on(governor, i));
        ratio[i] = gain > 0 ? pow(fmax(regret, 0), c->ids_power) / gain : (double)INFINITY;
    }
}

size_t wg__governor_choose(struct wg_governor *governor, struct wg_rng *rng)
{
    if (is_second_look(governor))
        return look_again(governor);
    if (!is_exploring(governor))
        return governor->incumbent;
    struct tally tally;
    double ratio[WG_ARMS_MAX];
    take_draws(governor, rng, &tally);
    rank(governor, &tally, ratio);
    /* The best ratio that the guard allows; what the guard asks is dear, so it is asked last. */
    for (size_t tried = 0; tried < governor->job.arm_count; tried++) {
        size_t best = 0;
        for (size_t i = 1; i < governor->job.arm_count; i++)
            if (ratio[i] < ratio[best])
                best = i;
        if (!(ratio[best] < (double)INFINITY))
            break;
        if (is_allowed(governor, best))
            return best;
        ratio[best] = INFINITY;
    }
    return governor->incumbent;
}
