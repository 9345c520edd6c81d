/* SPDX-License-Identifier: MIT
 *
 * What is known of a scene without any replay: what the default and the oracle are expected to
 * cost, and where each setting lies in the energy-time plane.
 *
 * The yardsticks are expectations over the recorded runs (training_costs.c), not replays, so they
 * carry no luck. With a drift, both follow the job: the oracle is the best setting of each of its
 * two lives.
 *
 * Threads: pure, any thread.
 */
#include <math.h>

#include "base/alloc.h"
#include "optimize/pareto.h"
#include "simulate/study_scene.h"

static struct wg_training_bill sum_bills(struct wg_training_bill a, double times_a,
                                         struct wg_training_bill b, double times_b)
{
    return (struct wg_training_bill){
        .energy_j = times_a * a.energy_j + times_b * b.energy_j,
        .time_s = times_a * a.time_s + times_b * b.time_s,
        .cost_j = times_a * a.cost_j + times_b * b.cost_j,
    };
}

/* Expected cumulative cost of `before` for the first `drift_at` recurrences, then of `after`. */
static double *cumulate(struct wg_arena *arena, double before_j, double after_j, size_t drift_at,
                        size_t recurrences)
{
    double *sums = wg__arena_alloc(arena, recurrences, sizeof *sums);
    for (size_t i = 0; sums != NULL && i < recurrences; i++)
        sums[i] = i < drift_at ? (double)(i + 1) * before_j
                               : (double)drift_at * before_j + (double)(i + 1 - drift_at) * after_j;
    return sums;
}

/* Every setting that reaches the target, with the front marked. */
static enum wg_code describe_plane(const struct wg_training_case *of,
                                   const struct wg_training_costs *costs, double eta,
                                   struct wg_arena *arena, struct wg_study_world *out,
                                   struct wg_error *err)
{
    const size_t room = of->arm_count * of->limit_count;
    out->points = wg__arena_alloc(arena, room, sizeof *out->points);
    double *axes = wg__alloc_zeroed(room, 2 * sizeof *axes);
    size_t *front = wg__alloc_zeroed(room, sizeof *front);
    enum wg_code code = WG_OK;
    if (out->points == NULL || axes == NULL || front == NULL) {
        code = wg__fail(err, WG_ENOMEM, "out of memory");
        goto out;
    }
    double *time_s = axes, *energy_j = axes + room;
    for (size_t arm = 0; arm < of->arm_count; arm++) {
        for (size_t limit = 0; limit < of->limit_count; limit++) {
            if (!isfinite(costs->expected_epochs[arm]))
                continue;
            const struct wg_training_bill bill = wg__training_expected(of, costs, eta, arm, limit);
            time_s[out->point_count] = bill.time_s;
            energy_j[out->point_count] = bill.energy_j;
            out->points[out->point_count++] = (struct wg_study_point){
                .batch_size = of->arms[arm].batch_size,
                .power_limit_w = of->limit_w[limit],
                .energy_j = bill.energy_j,
                .time_s = bill.time_s,
            };
        }
    }
    const size_t front_count = wg__pareto_front(time_s, energy_j, out->point_count, front);
    for (size_t i = 0; i < front_count; i++)
        out->points[front[i]].is_on_front = true;
out:
    wg__free(front);
    wg__free(axes);
    return code;
}

static enum wg_code copy_names(const struct wg_training_case *of, struct wg_arena *arena,
                               struct wg_study_world *out, struct wg_error *err)
{
    out->gpu = wg__arena_strdup(arena, of->gpu);
    out->job = wg__arena_strdup(arena, of->job);
    out->metric = wg__arena_strdup(arena, of->metric);
    if (out->gpu == NULL || out->job == NULL || out->metric == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    out->target_metric = of->target_metric;
    out->max_power_w = of->max_power_w;
    out->arm_count = of->arm_count;
    for (size_t i = 0; i < of->arm_count; i++)
        out->batch_size[i] = of->arms[i].batch_size;
    out->limit_count = of->limit_count;
    for (size_t i = 0; i < of->limit_count; i++)
        out->limit_w[i] = of->limit_w[i];
    out->left_out_count = of->left_out_count;
    for (size_t i = 0; i < of->left_out_count; i++)
        out->left_out[i] = of->left_out[i];
    return WG_OK;
}

enum wg_code wg__study_world_describe(const struct wg_study_scene *scene,
                                      const struct wg_study_request *request,
                                      struct wg_arena *arena, struct wg_study_world *out,
                                      struct wg_error *err)
{
    const double eta = request->rules.eta;
    const size_t recurrences = request->rules.recurrences;
    const struct wg_training_case *before = scene->present;
    const struct wg_training_case *after = scene->drifted != NULL ? scene->drifted : before;
    const struct wg_training_costs *costs_after =
        scene->drifted != NULL ? &scene->drifted_costs : &scene->costs;
    const size_t drift_at = scene->drifted != NULL && request->rules.drift_at < recurrences
                                ? request->rules.drift_at
                                : recurrences;
    *out = (struct wg_study_world){0};
    enum wg_code code = copy_names(before, arena, out, err);
    if (code == WG_OK)
        code = describe_plane(after, costs_after, eta, arena, out, err);
    if (code != WG_OK)
        return code;
    out->default_batch_size = before->arms[before->default_arm].batch_size;
    out->oracle_batch_size = after->arms[costs_after->oracle_arm].batch_size;
    out->oracle_limit_w = after->limit_w[costs_after->oracle_limit];
    const struct wg_training_bill default_before = wg__training_default(before, &scene->costs, eta);
    const struct wg_training_bill oracle_before = wg__training_expected(
        before, &scene->costs, eta, scene->costs.oracle_arm, scene->costs.oracle_limit);
    out->default_bill = wg__training_default(after, costs_after, eta);
    out->oracle_bill = wg__training_expected(after, costs_after, eta, costs_after->oracle_arm,
                                             costs_after->oracle_limit);
    const double first = (double)drift_at, rest = (double)(recurrences - drift_at);
    out->default_total = sum_bills(default_before, first, out->default_bill, rest);
    out->oracle_total = sum_bills(oracle_before, first, out->oracle_bill, rest);
    out->cumulative_default_j =
        cumulate(arena, default_before.cost_j, out->default_bill.cost_j, drift_at, recurrences);
    out->cumulative_oracle_j =
        cumulate(arena, oracle_before.cost_j, out->oracle_bill.cost_j, drift_at, recurrences);
    if (out->cumulative_default_j == NULL || out->cumulative_oracle_j == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    return WG_OK;
}
