/* SPDX-License-Identifier: MIT
 *
 * Cost per epoch of every arm, and which arms to survey.
 *
 * A survey trains a few seconds at the largest limit; what its best limit would save is taken from the
 * arms whose limits have been profiled (the geometric mean of their savings: neighbours share it). An
 * arm without a survey is interpolated: ln cost is linear in log2 b between surveyed arms; below the
 * smallest one it rises by `slope_below` per octave, as launch overheads take over; above the largest it
 * is flat.
 *
 * Threads: one at a time.
 */
#include <math.h>

#include "optimize/governor.h"

/* ln of what the best limit costs relative to the largest, over the profiled arms. */
static double mean_log_saving(const struct wg_governor *governor)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < governor->job.arm_count; i++) {
        const struct wg_arm_cost *cost = &governor->cost[i];
        if (!cost->is_profiled)
            continue;
        sum += log(cost->profile.epoch_cost_j / cost->profile.epoch_cost_max_limit_j);
        count++;
    }
    return count ? sum / (double)count : 0;
}

static bool is_known(const struct wg_arm_cost *cost)
{
    return cost->is_profiled || cost->is_surveyed;
}

static double interpolate(const struct wg_governor *governor, size_t arm)
{
    const double *x = governor->model.x;
    size_t below = SIZE_MAX, above = SIZE_MAX;
    for (size_t i = 0; i < governor->job.arm_count; i++) {
        if (!is_known(&governor->cost[i]))
            continue;
        if (i < arm)
            below = i;
        if (i > arm && above == SIZE_MAX)
            above = i;
    }
    const double slope_below = wg__governor_constants.slope_below;
    if (below == SIZE_MAX && above == SIZE_MAX)
        return 1; /* nothing is known yet: all arms alike */
    if (below == SIZE_MAX)
        return governor->cost[above].epoch_j * exp(slope_below * (x[above] - x[arm]));
    if (above == SIZE_MAX)
        return governor->cost[below].epoch_j;
    const double share = (x[arm] - x[below]) / (x[above] - x[below]);
    return exp((1 - share) * log(governor->cost[below].epoch_j) +
               share * log(governor->cost[above].epoch_j));
}

void wg__governor_update_costs(struct wg_governor *governor)
{
    const double saving = exp(mean_log_saving(governor));
    for (size_t i = 0; i < governor->job.arm_count; i++) {
        struct wg_arm_cost *cost = &governor->cost[i];
        if (cost->is_profiled)
            cost->epoch_j = cost->profile.epoch_cost_j;
        else if (cost->is_surveyed)
            cost->epoch_j = cost->surveyed_j * saving;
    }
    for (size_t i = 0; i < governor->job.arm_count; i++)
        if (!is_known(&governor->cost[i]))
            governor->cost[i].epoch_j = interpolate(governor, i);
}

/* The unsurveyed arm that fills the widest gap between surveyed ones; gaps below the default count
 * half, since it is rarely the small batches that pay. */
static size_t widest_gap(const struct wg_governor *governor, uint64_t taken)
{
    const double *x = governor->model.x;
    size_t best = SIZE_MAX;
    double best_width = 0;
    for (size_t i = 0; i < governor->job.arm_count; i++) {
        if (taken >> i & 1)
            continue;
        double nearest = INFINITY;
        for (size_t j = 0; j < governor->job.arm_count; j++)
            if (taken >> j & 1)
                nearest = fmin(nearest, fabs(x[i] - x[j]));
        const double width = x[i] < 0 ? 0.5 * nearest : nearest;
        if (width > best_width) {
            best_width = width;
            best = i;
        }
    }
    return best;
}

/* Which arms to survey, once the first survey has shown what one costs. */
static void plan_surveys(struct wg_governor *governor)
{
    const size_t arms = governor->job.arm_count, default_arm = governor->job.default_arm;
    uint64_t taken = 0;
    for (size_t i = 0; i < arms; i++)
        if (is_known(&governor->cost[i]))
            taken |= UINT64_C(1) << i;
    const double budget_j = wg__governor_constants.survey_share * governor->first_run_j;
    /* Transferred knowledge makes every arm a candidate at once, so all their costs are wanted. */
    const bool wants_all = governor->first_run_j <= 0 ||
                           (double)(arms - 1) * governor->survey_paid_j <= budget_j;
    size_t allowed = arms;
    if (!wants_all) {
        const double affordable = budget_j / governor->survey_paid_j;
        allowed = affordable > 2 ? (size_t)affordable : 2;
    }
    uint64_t plan = 0;
    const size_t wanted[] = {arms - 1, default_arm + 1, default_arm > 0 ? default_arm - 1 : arms};
    size_t count = 1; /* the first survey has been done */
    for (size_t i = 0; i < 3 && count < allowed; i++)
        if (wanted[i] < arms && !(taken >> wanted[i] & 1)) {
            plan |= UINT64_C(1) << wanted[i];
            taken |= UINT64_C(1) << wanted[i];
            count++;
        }
    for (; count < allowed; count++) {
        const size_t arm = widest_gap(governor, taken);
        if (arm == SIZE_MAX)
            break;
        plan |= UINT64_C(1) << arm;
        taken |= UINT64_C(1) << arm;
    }
    governor->survey_plan = plan;
    governor->has_survey_plan = true;
}

bool wg__governor_next_survey(struct wg_governor *governor, size_t *arm_out)
{
    const size_t arms = governor->job.arm_count;
    if (!(governor->survey_paid_j > 0)) {
        /* The largest batch size first: it is wanted whatever the surveys cost. */
        for (size_t i = arms; i-- > 0;)
            if (!is_known(&governor->cost[i])) {
                *arm_out = i;
                return true;
            }
        return false;
    }
    if (!governor->has_survey_plan)
        plan_surveys(governor);
    for (size_t i = 0; i < arms; i++)
        if (governor->survey_plan >> i & 1) {
            governor->survey_plan &= ~(UINT64_C(1) << i);
            if (is_known(&governor->cost[i]))
                continue;
            *arm_out = i;
            return true;
        }
    return false;
}

double wg__governor_premium_j(const struct wg_governor *governor, size_t arm)
{
    double sum = 0;
    size_t count = 0;
    if (governor->cost[arm].is_profiled)
        return 0;
    for (size_t i = 0; i < governor->job.arm_count; i++) {
        const struct wg_arm_cost *cost = &governor->cost[i];
        if (!cost->is_profiled)
            continue;
        sum += cost->profile.first_epoch_cost_j / cost->profile.epoch_cost_j;
        count++;
    }
    return count ? governor->cost[arm].epoch_j * (sum / (double)count - 1) : 0;
}
