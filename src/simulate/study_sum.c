/* SPDX-License-Identifier: MIT
 *
 * Adding up replays: see study_sum.h.
 *
 * Quantiles over the seeds need every seed's curve at once. With R recurrences and S seeds that is
 * R x S numbers, 80 GB at the largest study that the program accepts; so the curves are kept at C
 * recurrences, evenly spaced and with the last among them, such that C x S stays below
 * CHECKPOINT_VALUES_MAX, and the quantiles between them are interpolated. Cumulative costs are
 * nearly straight lines on that scale.
 */
#include "simulate/study_sum.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "math/statistics.h"

enum { CHECKPOINT_VALUES_MAX = 1 << 21 }; /* 16 MB */

enum wg_code wg__study_sum_init(struct wg_study_sum *sum, size_t recurrences, size_t seeds,
                                size_t bin_count, struct wg_error *err)
{
    size_t checkpoints = CHECKPOINT_VALUES_MAX / seeds;
    if (checkpoints < 2)
        checkpoints = 2;
    if (checkpoints > recurrences)
        checkpoints = recurrences;
    *sum = (struct wg_study_sum){
        .recurrences = recurrences,
        .seeds = seeds,
        .bin_count = bin_count,
        .checkpoint_count = checkpoints,
        .cumulative_j = wg__alloc_zeroed(recurrences, sizeof(double)),
        .checkpoint_j = wg__alloc_zeroed(checkpoints, seeds * sizeof(double)),
        .energy_j = wg__alloc_zeroed(seeds, sizeof(double)),
        .time_s = wg__alloc_zeroed(seeds, sizeof(double)),
        .cost_j = wg__alloc_zeroed(seeds, sizeof(double)),
        .choices = wg__alloc_zeroed(bin_count, WG_ARMS_MAX * sizeof(unsigned)),
        .finals = wg__alloc_zeroed(WG_ARMS_MAX, WG_POWER_LIMITS_MAX * sizeof(unsigned)),
    };
    if (sum->cumulative_j == NULL || sum->checkpoint_j == NULL || sum->energy_j == NULL ||
        sum->time_s == NULL || sum->cost_j == NULL || sum->choices == NULL || sum->finals == NULL) {
        wg__study_sum_fini(sum);
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu recurrences and %zu seeds",
                        recurrences, seeds);
    }
    return WG_OK;
}

void wg__study_sum_fini(struct wg_study_sum *sum)
{
    wg__free(sum->cumulative_j);
    wg__free(sum->checkpoint_j);
    wg__free(sum->energy_j);
    wg__free(sum->time_s);
    wg__free(sum->cost_j);
    wg__free(sum->choices);
    wg__free(sum->finals);
    *sum = (struct wg_study_sum){0};
}

/* How many recurrences have passed at a checkpoint: from 1 up to all of them. */
static size_t passed_at(const struct wg_study_sum *sum, size_t checkpoint)
{
    return (checkpoint + 1) * sum->recurrences / sum->checkpoint_count;
}

void wg__study_sum_add(struct wg_study_sum *sum, const struct wg_training_record *record)
{
    assert(sum->added < sum->seeds);
    const size_t seed = sum->added++;
    double energy_j = 0, time_s = 0, cost_j = 0;
    size_t checkpoint = 0;
    for (size_t r = 0; r < sum->recurrences; r++) {
        energy_j += record->energy_j[r];
        time_s += record->time_s[r];
        cost_j += record->cost_j[r];
        sum->cumulative_j[r] += cost_j;
        if (r + 1 == passed_at(sum, checkpoint))
            sum->checkpoint_j[checkpoint++ * sum->seeds + seed] = cost_j;
        sum->choices[r * sum->bin_count / sum->recurrences * WG_ARMS_MAX + record->arm[r]]++;
    }
    sum->energy_j[seed] = energy_j;
    sum->time_s[seed] = time_s;
    sum->cost_j[seed] = cost_j;
    const size_t last = sum->recurrences - 1;
    sum->finals[(size_t)record->arm[last] * WG_POWER_LIMITS_MAX + record->limit[last]]++;
    sum->attempts += record->attempts;
    sum->gave_up += record->gave_up;
}

/* Mean, spread and worst of scale * (values - shift). */
static struct wg_spread spread_of(const double *values, size_t count, double scale, double shift)
{
    return (struct wg_spread){
        .mean = scale * (wg__mean(values, count) - shift),
        .sd = scale * wg__sd_sample(values, count),
        .worst = scale * (wg__max(values, count) - shift),
    };
}

/* Writes the `share` quantile over the seeds at each recurrence; sorts the checkpoints in place. */
static void write_quantile(struct wg_study_sum *sum, double share, double *out)
{
    size_t passed = 0;
    double before = 0;
    for (size_t c = 0; c < sum->checkpoint_count; c++) {
        const double here =
            wg__quantile_inplace(&sum->checkpoint_j[c * sum->seeds], sum->seeds, share);
        const size_t end = passed_at(sum, c);
        for (size_t r = passed; r < end; r++) {
            const double way = (double)(r + 1 - passed) / (double)(end - passed);
            out[r] = r + 1 == end ? here : before + way * (here - before);
        }
        passed = end;
        before = here;
    }
}

static void write_choices(const struct wg_study_sum *sum, size_t arm_count, float *out)
{
    for (size_t bin = 0; bin < sum->bin_count; bin++) {
        const unsigned *counts = &sum->choices[bin * WG_ARMS_MAX];
        double total = 0;
        for (size_t arm = 0; arm < arm_count; arm++)
            total += counts[arm];
        for (size_t arm = 0; arm < arm_count; arm++)
            out[bin * arm_count + arm] = (float)(counts[arm] / total);
    }
}

/* The most frequent batch size of the last recurrence, and its most frequent limit; the smaller of
 * two that are equally frequent. */
static void find_final(const struct wg_study_sum *sum, const struct wg_study_world *world,
                       struct wg_study_case *out)
{
    unsigned most = 0;
    size_t best_arm = 0, best_limit = 0;
    for (size_t arm = 0; arm < world->arm_count; arm++) {
        unsigned total = 0;
        for (size_t limit = 0; limit < world->limit_count; limit++)
            total += sum->finals[arm * WG_POWER_LIMITS_MAX + limit];
        if (total > most) {
            most = total;
            best_arm = arm;
        }
    }
    const unsigned *of_arm = &sum->finals[best_arm * WG_POWER_LIMITS_MAX];
    for (size_t limit = 1; limit < world->limit_count; limit++)
        if (of_arm[limit] > of_arm[best_limit])
            best_limit = limit;
    out->final_batch_size = world->batch_size[best_arm];
    out->final_limit_w = world->limit_w[best_limit];
}

static void start_anew(struct wg_study_sum *sum)
{
    memset(sum->cumulative_j, 0, sum->recurrences * sizeof *sum->cumulative_j);
    memset(sum->choices, 0, sum->bin_count * WG_ARMS_MAX * sizeof *sum->choices);
    memset(sum->finals, 0, (size_t)WG_ARMS_MAX * (size_t)WG_POWER_LIMITS_MAX * sizeof *sum->finals);
    sum->added = 0;
    sum->attempts = sum->gave_up = 0;
}

enum wg_code wg__study_sum_finish(struct wg_study_sum *sum, const struct wg_study_world *world,
                                  struct wg_arena *arena, struct wg_study_case *out,
                                  struct wg_error *err)
{
    assert(sum->added == sum->seeds);
    const size_t recurrences = sum->recurrences, seeds = sum->seeds;
    out->cumulative_cost_j = wg__arena_alloc(arena, recurrences, sizeof(double));
    out->cumulative_low_j = wg__arena_alloc(arena, recurrences, sizeof(double));
    out->cumulative_high_j = wg__arena_alloc(arena, recurrences, sizeof(double));
    out->choices = wg__arena_alloc(arena, sum->bin_count, world->arm_count * sizeof(float));
    if (out->cumulative_cost_j == NULL || out->cumulative_low_j == NULL ||
        out->cumulative_high_j == NULL || out->choices == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    for (size_t r = 0; r < recurrences; r++)
        out->cumulative_cost_j[r] = sum->cumulative_j[r] / (double)seeds;
    write_quantile(sum, 0.1, out->cumulative_low_j);
    write_quantile(sum, 0.9, out->cumulative_high_j);
    write_choices(sum, world->arm_count, out->choices);
    find_final(sum, world, out);
    const double oracle_j = world->oracle_total.cost_j;
    out->energy_j = spread_of(sum->energy_j, seeds, 1, 0);
    out->time_s = spread_of(sum->time_s, seeds, 1, 0);
    out->cost_j = spread_of(sum->cost_j, seeds, 1, 0);
    out->cost_over_oracle = spread_of(sum->cost_j, seeds, 1 / oracle_j, 0);
    out->cost_over_default = spread_of(sum->cost_j, seeds, 1 / world->default_total.cost_j, 0);
    out->regret_oracle_runs =
        spread_of(sum->cost_j, seeds, (double)recurrences / oracle_j, oracle_j);
    out->attempts_per_recurrence = (double)sum->attempts / ((double)recurrences * (double)seeds);
    out->gave_up = (size_t)sum->gave_up;
    start_anew(sum);
    return WG_OK;
}
