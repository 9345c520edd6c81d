/* SPDX-License-Identifier: MIT
 *
 * Adding up the runs of a tuning study: see tuning_sum.h.
 *
 * Threads: pure.
 */
#include "simulate/tuning_sum.h"

#include <math.h>

#include "base/alloc.h"
#include "math/statistics.h"

static const double near_5 = 1.05;
static const double near_10 = 1.10;

struct wg_tuning_share wg__tuning_share(size_t hits, size_t count)
{
    if (count == 0)
        return (struct wg_tuning_share){(double)NAN, (double)NAN, (double)NAN};
    struct wg_tuning_share out = {.share = (double)hits / (double)count};
    wg__wilson95(hits, count, &out.low, &out.high);
    return out;
}

static struct wg_tuning_mean mean_of(const double *values, size_t count)
{
    if (count == 0)
        return (struct wg_tuning_mean){(double)NAN, (double)NAN, (double)NAN};
    const double mean = wg__mean(values, count), half = wg__mean_halfwidth95(values, count);
    return (struct wg_tuning_mean){mean, mean - half, mean + half};
}

static void sum_hits(const struct wg_tuning_study *study, double *values,
                     struct wg_tuning_summary *out)
{
    for (size_t i = 0; i < study->seeds; i++) {
        const size_t hit = out->outcomes[i].first_hit;
        out->misses += hit == 0;
        values[i] = (double)(hit != 0 ? hit : study->hit_cap + 1);
        for (size_t n = hit; hit != 0 && n <= study->hit_cap; n++)
            out->hit_by[n - 1] += 1 / (double)study->seeds;
    }
    out->first_hit = mean_of(values, study->seeds);
    out->first_hit_sd = wg__sd_sample(values, study->seeds);
    out->first_hit_p95 = wg__quantile_inplace(values, study->seeds, 0.95);
    const struct wg_tuning_target *target = &study->scene->target;
    const struct wg_tuning_failures *failures = &study->scene->failures;
    const bool is_exact = out->policy == WG_TUNER_RANDOM && failures->crash + failures->hang == 0 &&
                          target->available == study->scene->grid->space->count;
    out->first_hit_exact =
        is_exact ? (double)(target->available + 1) / (double)(target->near_optimal + 1)
                 : (double)NAN;
}

static void sum_trials(const struct wg_tuning_study *study, double *values,
                       struct wg_tuning_summary *out)
{
    size_t failed = 0, validated = 0;
    for (size_t i = 0; i < study->seeds; i++) {
        values[i] = (double)out->outcomes[i].trials;
        failed += out->outcomes[i].failed_trials;
        validated += out->outcomes[i].is_validated;
        out->ends[out->outcomes[i].end]++;
    }
    out->trials = mean_of(values, study->seeds);
    out->trials_p95 = wg__quantile_inplace(values, study->seeds, 0.95);
    out->failed_trials = (double)failed / (double)study->seeds;
    out->validated = (double)validated / (double)study->seeds;
}

static void sum_returned(const struct wg_tuning_study *study, double *values,
                         struct wg_tuning_summary *out)
{
    const struct wg_tuning_scene *scene = study->scene;
    const double *costs = scene->grid->costs, least = scene->target.least;
    const size_t none = scene->grid->space->count;
    const double usual = costs[scene->grid->space->default_configuration];
    size_t near = 0, nearly = 0, feasible = 0, over = 0;
    for (size_t i = 0; i < study->seeds; i++) {
        const size_t c = out->outcomes[i].returned;
        if (c == none)
            continue;
        if (!scene->target.is_feasible[c]) {
            over++;
            continue;
        }
        near += costs[c] <= near_5 * least;
        nearly += costs[c] <= near_10 * least;
        values[feasible++] = costs[c] / least - 1;
    }
    out->within_5 = wg__tuning_share(near, study->seeds);
    out->within_10 = wg__tuning_share(nearly, study->seeds);
    out->feasible = wg__tuning_share(feasible, study->seeds);
    out->over_limit = wg__tuning_share(over, study->seeds);
    out->regret = mean_of(values, feasible);
    for (size_t i = 0; i < feasible; i++)
        values[i] = 1 - (values[i] + 1) * least / usual;
    out->saving = mean_of(values, feasible);
}

static void sum_after(const struct wg_tuning_study *study, const uint32_t *returned,
                      struct wg_tuning_summary *out)
{
    const struct wg_tuning_scene *scene = study->scene;
    for (size_t n = 0; n < study->max_trials; n++) {
        size_t near = 0, feasible = 0, over = 0;
        double regret = 0;
        for (size_t i = 0; i < study->seeds; i++) {
            const size_t c = returned[i * study->max_trials + n];
            if (c == scene->grid->space->count)
                continue;
            near += scene->target.is_near[c];
            over += !scene->target.is_feasible[c];
            feasible += scene->target.is_feasible[c];
            if (scene->target.is_feasible[c])
                regret += scene->grid->costs[c] / scene->target.least - 1;
        }
        out->after[n] = (struct wg_tuning_after){
            .within_5 = (double)near / (double)study->seeds,
            .over_limit = (double)over / (double)study->seeds,
            .regret = feasible > 0 ? regret / (double)feasible : (double)NAN,
        };
    }
}

enum wg_code wg__tuning_sum(struct wg_tuning_study *study, size_t index,
                            enum wg_tuner_policy policy, struct wg_error *err)
{
    struct wg_tuning_summary *out = &study->summaries[index];
    *out = (struct wg_tuning_summary){.policy = policy,
                                      .outcomes = &study->outcomes[index * study->seeds]};
    double *values = wg__alloc_zeroed(study->seeds, sizeof *values);
    out->hit_by = wg__arena_alloc(&study->arena, study->hit_cap, sizeof *out->hit_by);
    out->after = wg__arena_alloc(&study->arena, study->max_trials, sizeof *out->after);
    if (values == NULL || out->hit_by == NULL || out->after == NULL) {
        wg__free(values);
        return wg__fail(err, WG_ENOMEM, "out of memory");
    }
    sum_hits(study, values, out);
    sum_trials(study, values, out);
    sum_returned(study, values, out);
    sum_after(study, &study->returned_after[index * study->seeds * study->max_trials], out);
    wg__free(values);
    return WG_OK;
}
