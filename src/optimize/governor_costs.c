/* SPDX-License-Identifier: MIT
 *
 * Cost per epoch of every arm, and which arms to survey.
 *
 * A survey trains a few seconds at the largest limit; what its best limit would save is taken from
 * the arms whose limits have been profiled (the geometric mean of their savings: neighbours share
 * it). An arm without a survey is interpolated: ln cost is linear in log2 b between surveyed arms;
 * below the smallest one it rises by `slope_below` per octave, as launch overheads take over; above
 * the largest it is flat.
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

/* The known arms next to `arm` on either side; SIZE_MAX: none. */
struct neighbours {
    size_t below, above;
};

static struct neighbours find_neighbours(const bool *is_known_arm, size_t count, size_t arm)
{
    struct neighbours found = {SIZE_MAX, SIZE_MAX};
    for (size_t i = 0; i < count; i++) {
        if (!is_known_arm[i])
            continue;
        if (i < arm)
            found.below = i;
        if (i > arm && found.above == SIZE_MAX)
            found.above = i;
    }
    return found;
}

/* Linear in log2 b between two arms' logarithms. */
static double between(const struct wg_governor *governor, size_t below, size_t above, size_t arm,
                      double ln_below, double ln_above)
{
    const double *x = governor->model.x;
    const double share = (x[arm] - x[below]) / (x[above] - x[below]);
    return exp((1 - share) * ln_below + share * ln_above);
}

static double ln_ratio_to_elsewhere(const struct wg_governor *governor, size_t arm)
{
    return log(governor->cost[arm].epoch_j / governor->cost[arm].elsewhere_j);
}

/* Arms whose cost is known on another GPU: that cost, times what known arms cost here relative to
 * there. */
static void scale_from_elsewhere(struct wg_governor *governor, bool *is_known_arm)
{
    const size_t arms = governor->job.arm_count;
    bool has_ratio[WG_ARMS_MAX];
    for (size_t i = 0; i < arms; i++)
        has_ratio[i] = is_known_arm[i] && governor->cost[i].elsewhere_j > 0;
    for (size_t i = 0; i < arms; i++) {
        if (is_known_arm[i] || !(governor->cost[i].elsewhere_j > 0))
            continue;
        const struct neighbours n = find_neighbours(has_ratio, arms, i);
        if (n.below == SIZE_MAX && n.above == SIZE_MAX)
            continue;
        const double ratio =
            n.below == SIZE_MAX ? exp(ln_ratio_to_elsewhere(governor, n.above))
            : n.above == SIZE_MAX
                ? exp(ln_ratio_to_elsewhere(governor, n.below))
                : between(governor, n.below, n.above, i, ln_ratio_to_elsewhere(governor, n.below),
                          ln_ratio_to_elsewhere(governor, n.above));
        governor->cost[i].epoch_j = governor->cost[i].elsewhere_j * ratio;
        is_known_arm[i] = true;
    }
}

static double interpolate(const struct wg_governor *governor, const bool *is_known_arm, size_t arm)
{
    const struct wg_arm_cost *cost = governor->cost;
    const double *x = governor->model.x;
    const struct neighbours n = find_neighbours(is_known_arm, governor->job.arm_count, arm);
    if (n.below == SIZE_MAX && n.above == SIZE_MAX)
        return 1; /* nothing is known yet: all arms alike */
    if (n.below == SIZE_MAX)
        return cost[n.above].epoch_j *
               exp(wg__governor_constants.slope_below * (x[n.above] - x[arm]));
    if (n.above == SIZE_MAX)
        return cost[n.below].epoch_j;
    return between(governor, n.below, n.above, arm, log(cost[n.below].epoch_j),
                   log(cost[n.above].epoch_j));
}

void wg__governor_update_costs(struct wg_governor *governor)
{
    const double saving = exp(mean_log_saving(governor));
    const size_t arms = governor->job.arm_count;
    bool is_known_arm[WG_ARMS_MAX];
    for (size_t i = 0; i < arms; i++) {
        struct wg_arm_cost *cost = &governor->cost[i];
        is_known_arm[i] = is_known(cost);
        if (cost->is_profiled)
            cost->epoch_j = cost->profile.epoch_cost_j;
        else if (cost->is_surveyed)
            cost->epoch_j = cost->surveyed_j * saving;
    }
    scale_from_elsewhere(governor, is_known_arm);
    for (size_t i = 0; i < arms; i++)
        if (!is_known_arm[i])
            governor->cost[i].epoch_j = interpolate(governor, is_known_arm, i);
}

/* The arm that fills the widest gap between known ones, itself neither known nor left out;
 * SIZE_MAX: none. Gaps below the default count half, since it is rarely the small batches that pay.
 */
static size_t widest_gap(const struct wg_governor *governor, uint64_t known, uint64_t left_out)
{
    const double *x = governor->model.x;
    size_t best = SIZE_MAX;
    double best_width = 0;
    for (size_t i = 0; i < governor->job.arm_count; i++) {
        if ((known | left_out) >> i & 1)
            continue;
        double nearest = INFINITY;
        for (size_t j = 0; j < governor->job.arm_count; j++)
            if (known >> j & 1)
                nearest = fmin(nearest, fabs(x[i] - x[j]));
        const double width = x[i] < 0 ? 0.5 * nearest : nearest;
        if (width > best_width) {
            best_width = width;
            best = i;
        }
    }
    return best;
}

/* With knowledge from another GPU: the arms that may be the best here. */
static uint64_t plan_of_transfer(const struct wg_governor *governor, uint64_t known)
{
    double least_j = INFINITY;
    for (size_t i = 0; i < governor->job.arm_count; i++)
        least_j = fmin(least_j, governor->expected_j[i]);
    uint64_t plan = 0;
    for (size_t i = 0; i < governor->job.arm_count; i++)
        if (governor->expected_j[i] <= wg__governor_constants.survey_reach * least_j)
            plan |= UINT64_C(1) << i;
    return plan & ~known;
}

/* In budget: all arms, or the largest, the default's neighbours and the widest gaps between. */
static uint64_t plan_of_start(const struct wg_governor *governor, uint64_t known)
{
    const size_t arms = governor->job.arm_count, default_arm = governor->job.default_arm;
    const double affordable =
        wg__governor_constants.survey_share * governor->first_run_j / governor->survey_paid_j;
    const size_t allowed = (double)(arms - 1) <= affordable ? arms
                           : affordable > 2                 ? (size_t)affordable
                                                            : 2;
    uint64_t plan = 0;
    const size_t wanted[] = {arms - 1, default_arm + 1, default_arm > 0 ? default_arm - 1 : arms};
    size_t count = 1; /* the first survey has been done */
    for (size_t i = 0; count < allowed; i++) {
        const size_t arm = i < 3 ? wanted[i] : widest_gap(governor, known | plan, 0);
        if (arm == SIZE_MAX)
            break;
        if (arm >= arms || ((known | plan) >> arm & 1))
            continue;
        plan |= UINT64_C(1) << arm;
        count++;
    }
    return plan;
}

static uint64_t known_arms(const struct wg_governor *governor)
{
    uint64_t known = 0;
    for (size_t i = 0; i < governor->job.arm_count; i++)
        if (is_known(&governor->cost[i]))
            known |= UINT64_C(1) << i;
    return known;
}

bool wg__governor_has_cost(const struct wg_governor *governor)
{
    return known_arms(governor) != 0;
}

/* Where a survey costs a good part of a run (a command that takes minutes to start), the plan of
 * the start has left arms out. As runs go by, some more become affordable: of the arms that may be
 * within reach of the best by what is expected of them, the one in the widest gap. */
static bool late_survey(const struct wg_governor *governor, uint64_t known, size_t *arm_out)
{
    const struct wg_governor_constants *c = &wg__governor_constants;
    double least_j = INFINITY;
    if (governor->surveys_j + governor->survey_paid_j > c->late_survey_share * governor->spent_j)
        return false;
    for (size_t i = 0; i < governor->job.arm_count; i++)
        least_j = fmin(least_j, governor->expected_j[i]);
    uint64_t left_out = governor->surveys_asked;
    for (size_t i = 0; i < governor->job.arm_count; i++)
        if (governor->expected_j[i] > c->survey_reach * least_j)
            left_out |= UINT64_C(1) << i;
    *arm_out = widest_gap(governor, known, left_out);
    return *arm_out != SIZE_MAX;
}

/* Which arms to survey, once the first survey has shown what one costs. */
static void plan_surveys(struct wg_governor *governor)
{
    const uint64_t known = known_arms(governor);
    governor->survey_plan = governor->first_run_j > 0 ? plan_of_start(governor, known)
                                                      : plan_of_transfer(governor, known);
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
    return late_survey(governor, known_arms(governor), arm_out);
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
