/* SPDX-License-Identifier: MIT
 *
 * What governing has saved.
 *
 * A step costs power / throughput at the setting that it ran at; the largest setting's step is the
 * yardstick. Steps at settings that were not measured (while one settled) count as costing what the
 * largest does, as long as they are few; else nothing is known. The error is that of the two
 * measurements that matter: relative variances add. Time without steps (loading, evaluation) costs
 * the same in both worlds, so it is left out of the difference but not of the whole that the share
 * refers to.
 */
#include <math.h>

#include "live/train_runner.h"

static const double two_sided_95 = 1.96;
static const double unknown_most = 0.1;

/* The row of the profile for setting i; NULL: not measured. */
static const struct wg_train_point *point_of(const struct wg_train_stage *stage, size_t i)
{
    for (size_t k = 0; k < stage->point_count; k++)
        if (stage->points[k].setting == stage->settings.setting[i] &&
            stage->points[k].measurements > 0)
            return &stage->points[k];
    return NULL;
}

static double step_cost_j(const struct wg_train_point *point)
{
    return point->power_w / point->throughput;
}

static double relative_variance(const struct wg_train_point *point)
{
    const double power = point->power_sd / point->power_w;
    const double speed = point->throughput_sd / point->throughput;
    return power * power + speed * speed;
}

/* Adds what the steps of a stage have saved beside `yardstick`, the largest setting of the first
 * knob: where a second knob moves, the first stands at its best already. */
static void add_stage(const struct wg_train_stage *stage, const struct wg_train_point *yardstick,
                      struct wg_train_saving *sum, double *slower_s, double *error_j)
{
    for (size_t i = 0; i < stage->settings.count; i++) {
        const struct wg_train_point *point = point_of(stage, i);
        if (point == NULL || point == yardstick)
            continue;
        sum->energy_j += stage->steps_at[i] * (step_cost_j(yardstick) - step_cost_j(point));
        *slower_s += stage->steps_at[i] * (1 / point->throughput - 1 / yardstick->throughput);
        if (i == stage->best)
            *error_j += two_sided_95 * stage->steps_at[i] * step_cost_j(yardstick) *
                        sqrt(relative_variance(yardstick) + relative_variance(point));
    }
}

/* The share of all steps that were done at settings of which nothing is known. */
static double unknown_share(const struct wg_train_result *result)
{
    double all = 0, unknown = 0;
    for (size_t i = 0; i < result->stage_count; i++) {
        const struct wg_train_stage *stage = &result->stages[i];
        for (size_t k = 0; k < stage->settings.count; k++) {
            all += stage->steps_at[k];
            unknown += point_of(stage, k) == NULL ? stage->steps_at[k] : 0;
        }
    }
    return all > 0 ? unknown / all : 0;
}

void wg__train_saving(const struct wg_train_result *result, struct wg_train_saving *out)
{
    const struct wg_train_stage *first = &result->stages[0];
    double slower_s = 0;
    double error_j = 0;
    *out = (struct wg_train_saving){0};
    const size_t count = result->stage_count > 0 ? first->settings.count : 0;
    const struct wg_train_point *yardstick = count > 0 ? point_of(first, count - 1) : NULL;
    /* Of a run of which a part was not seen nobody knows what a share of it is. */
    const uint32_t unseen = WG_WINDOW_LOST | WG_WINDOW_HUNG | WG_WINDOW_PARTIAL;
    out->is_known = yardstick != NULL && (result->total.flags & unseen) == 0 &&
                    first->best < count && point_of(first, first->best) != NULL &&
                    unknown_share(result) <= unknown_most;
    for (size_t i = 0; i < result->stage_count && out->is_known; i++)
        add_stage(&result->stages[i], yardstick, out, &slower_s, &error_j);
    const double would_be_j = result->total.energy_j + out->energy_j;
    const double would_be_s = result->time_s - slower_s;
    if (!out->is_known || !isfinite(would_be_j) || would_be_j <= 0 || would_be_s <= 0) {
        *out = (struct wg_train_saving){
            .energy_j = NAN, .energy_share = NAN, .share_error = NAN, .slower_share = NAN};
        return;
    }
    out->energy_share = out->energy_j / would_be_j;
    out->share_error = error_j / would_be_j;
    out->slower_share = slower_s / would_be_s;
}
