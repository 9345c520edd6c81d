/* SPDX-License-Identifier: MIT
 *
 * What became of a job; see job_summary.h.
 */
#include "cli/job_summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "math/normal.h"

static struct wg_job_share *share_of(struct wg_job_summary *summary, const struct wg_store_run *run)
{
    for (size_t i = 0; i < summary->share_count; i++)
        if (summary->shares[i].count == run->gpu_count &&
            strcmp(summary->shares[i].model, run->gpu_model) == 0)
            return &summary->shares[i];
    struct wg_job_share *longer =
        wg__realloc_array(summary->shares, summary->share_count + 1, sizeof *summary->shares);
    if (longer == NULL)
        return NULL;
    summary->shares = longer;
    struct wg_job_share *share = &summary->shares[summary->share_count++];
    *share = (struct wg_job_share){
        .count = run->gpu_count, .best = SIZE_MAX, .default_j = NAN, .default_sd_j = NAN};
    memcpy(share->model, run->gpu_model, sizeof share->model);
    for (size_t i = 0; i < WG_STORE_BATCH_SIZES_MAX; i++)
        share->batch[i].limit_w = NAN;
    return share;
}

/* Appends the run; NULL: out of memory. */
static struct wg_job_entry *add_entry(struct wg_job_summary *summary, size_t share,
                                      const struct wg_store_run *run)
{
    if (summary->entry_count == summary->entry_capacity) {
        const size_t capacity = summary->entry_capacity * 2 + 64;
        struct wg_job_entry *longer =
            wg__realloc_array(summary->entries, capacity, sizeof *summary->entries);
        if (longer == NULL)
            return NULL;
        summary->entries = longer;
        summary->entry_capacity = capacity;
    }
    struct wg_job_entry *entry = &summary->entries[summary->entry_count++];
    *entry = (struct wg_job_entry){.run = run->id,
                                   .recurrence = run->recurrence,
                                   .attempt = run->attempt,
                                   .batch_size = run->batch_size,
                                   .is_survey = run->is_survey,
                                   .state = run->state,
                                   .share = share,
                                   .epochs = isnan(run->epochs) ? run->last_epoch : run->epochs,
                                   .limit_w = run->setting,
                                   .energy_j = run->energy_j,
                                   .time_s = run->time_s,
                                   .cost_j = run->cost_j,
                                   .paid_j = summary->paid_j};
    return entry;
}

static double or_0(double value)
{
    return isnan(value) ? 0 : value;
}

/* Whether the recurrence has now reached its target: a run that was taken back may reach it beside
 * its successor, which counts once. */
static bool add_to_bill(struct wg_job_summary *summary, const struct wg_job_share *share,
                        const struct wg_store_run *run)
{
    if (run->recurrence >= summary->job.next_recurrence)
        return false;
    const bool is_default = run->batch_size == summary->job.default_batch;
    struct wg_job_bill *bill = &summary->bills[run->recurrence];
    bill->paid_j += or_0(run->cost_j);
    if (is_default && !isnan(run->saved_sd_j)) {
        bill->unrestrained_j += run->cost_j + run->saved_j;
        bill->unrestrained_sd_j += run->saved_sd_j;
    } else if (is_default) {
        bill->unknown_j += or_0(run->cost_j);
    }
    bill->share = (size_t)(share - summary->shares);
    if (run->state != WG_RUN_REACHED || run->is_survey || bill->has_reached)
        return false;
    bill->has_reached = true;
    bill->at_default = is_default;
    return true;
}

static void count_end(struct wg_job_batch *batch, const struct wg_store_run *run)
{
    batch->runs++;
    if (!isnan(run->setting))
        batch->limit_w = run->setting;
    if (run->state != WG_RUN_REACHED) {
        batch->failed++;
        return;
    }
    batch->reached++;
    batch->epochs += run->epochs;
    batch->energy_j += run->energy_j;
    batch->time_s += run->time_s;
    batch->cost_j += run->cost_j;
    batch->cost_squares += run->cost_j * run->cost_j;
    if (isnan(run->saved_sd_j)) {
        batch->unknown_j += run->cost_j;
        return;
    }
    batch->unrestrained_j += run->cost_j + run->saved_j;
    batch->unrestrained_sd_j += run->saved_sd_j;
}

static bool add_run(void *context, const struct wg_store_run *run)
{
    struct wg_job_summary *summary = context;
    const size_t arm = wg__job_arm(&summary->job, run->batch_size);
    struct wg_job_share *share = share_of(summary, run);
    if (share == NULL || arm == SIZE_MAX) {
        summary->failed = share == NULL;
        return share != NULL;
    }
    struct wg_job_entry *entry = add_entry(summary, (size_t)(share - summary->shares), run);
    if (entry == NULL) {
        summary->failed = true;
        return false;
    }
    if (run->state == WG_RUN_OPEN) {
        summary->open++;
        return true;
    }
    summary->paid_j += or_0(run->cost_j);
    summary->energy_j += or_0(run->energy_j);
    summary->time_s += or_0(run->time_s);
    entry->paid_j = summary->paid_j;
    entry->completes = add_to_bill(summary, share, run);
    summary->completed += entry->completes;
    if (run->state == WG_RUN_CRASHED || run->state == WG_RUN_RETURNED ||
        run->state == WG_RUN_EXPIRED)
        summary->crashed++;
    else if (!run->is_survey)
        count_end(&share->batch[arm], run);
    else
        share->batch[arm].surveys += run->state == WG_RUN_REACHED;
    return true;
}

/* What a recurrence would cost at the default, on this type of GPU. */
static void judge_default(struct wg_job_share *share, size_t arm, double max_limit_factor)
{
    const struct wg_job_batch *batch = &share->batch[arm];
    const double factor = max_limit_factor > 0 ? max_limit_factor : 1, n = batch->reached;
    share->default_factor = factor;
    if (n >= 2) {
        const double mean = batch->cost_j / n;
        const double variance = fmax(0, batch->cost_squares - n * mean * mean) / (n - 1);
        share->default_j = (batch->unrestrained_j + factor * batch->unknown_j) / n;
        share->default_sd_j =
            hypot(share->default_j / mean * sqrt(variance / n), batch->unrestrained_sd_j / n);
    } else if (share->has_belief[arm]) {
        static const double sds_of_80_percent = 1.2815515655446004;
        const struct wg_batch_belief *belief = &share->belief[arm];
        share->default_j = factor * belief->cost_j;
        share->default_sd_j = factor * (belief->high_j - belief->low_j) / (2 * sds_of_80_percent);
    }
}

static void add_beliefs(struct wg_job_summary *summary, const struct wg_job_policy *policy)
{
    const size_t default_arm = wg__job_arm(&summary->job, summary->job.default_batch);
    for (size_t i = 0; i < summary->share_count; i++) {
        struct wg_job_share *share = &summary->shares[i];
        double factor = 0;
        for (size_t g = 0; g < policy->gpu_count; g++) {
            const struct wg_job_gpu *gpu = &policy->gpus[g];
            if (gpu->count != share->count || strcmp(gpu->model, share->model) != 0)
                continue;
            factor = gpu->max_limit_factor[default_arm];
            for (size_t arm = 0; arm < summary->job.batch_count && policy->ops->believe; arm++)
                share->has_belief[arm] =
                    policy->ops->believe(gpu->policy, arm, &share->belief[arm]);
            share->best = policy->ops->best_arm(gpu->policy);
        }
        judge_default(share, default_arm, factor);
    }
}

static void sum_savings(struct wg_job_summary *summary)
{
    double saved = 0, variance = 0;
    for (size_t i = 0; i < summary->share_count; i++) {
        const struct wg_job_share *share = &summary->shares[i];
        double error_j = 0;   /* of the profiles */
        double elsewhere = 0; /* recurrences that reached the target at another batch size */
        for (uint64_t r = 0; r < summary->job.next_recurrence; r++) {
            const struct wg_job_bill *bill = &summary->bills[r];
            if (bill->share != i)
                continue;
            saved -= bill->paid_j;
            summary->completed_j += bill->has_reached ? bill->paid_j : 0;
            if (bill->has_reached && !bill->at_default) {
                elsewhere++;
                continue;
            }
            saved += bill->unrestrained_j + share->default_factor * bill->unknown_j;
            error_j += bill->unrestrained_sd_j;
        }
        variance += error_j * error_j;
        if (elsewhere > 0) {
            saved += elsewhere * share->default_j;
            variance += elsewhere * elsewhere * share->default_sd_j * share->default_sd_j;
        }
    }
    const double half = WG_NORMAL_975 * sqrt(variance);
    if (summary->completed == 0)
        saved = NAN;
    summary->saved_j = saved;
    summary->saved_low_j = saved - half;
    summary->saved_high_j = saved + half;
}

static bool count_run(void *context, const struct wg_store_run *run)
{
    (void)run;
    ++*(uint64_t *)context;
    return true;
}

/* A bill a recurrence. Each had a run, so a damaged number of them shows. */
static enum wg_code make_bills(struct wg_store *store, struct wg_job_summary *summary,
                               struct wg_error *err)
{
    const struct wg_store_job *job = &summary->job;
    uint64_t runs = 0;
    const enum wg_code code = store->ops->run_each(store, job->id, count_run, &runs, err);
    if (code != WG_OK)
        return code;
    if (job->next_recurrence > runs)
        return wg__fail(err, WG_EDATA,
                        "store '%s' is damaged: job '%s' has %llu recurrences, but %llu runs",
                        store->ops->location(store), job->name,
                        (unsigned long long)job->next_recurrence, (unsigned long long)runs);
    summary->bills = wg__alloc_zeroed((size_t)job->next_recurrence + 1, sizeof *summary->bills);
    return summary->bills != NULL ? WG_OK
                                  : wg__fail(err, WG_ENOMEM, "job '%s': out of memory", job->name);
}

enum wg_code wg__job_summarize(struct wg_store *store, const struct wg_store_job *job,
                               struct wg_job_summary *out, struct wg_error *err)
{
    struct wg_job_policy *policy = NULL;
    *out = (struct wg_job_summary){.job = *job};
    enum wg_code code = make_bills(store, out, err);
    if (code == WG_OK)
        code = store->ops->run_each(store, job->id, add_run, out, err);
    if (code == WG_OK && out->failed)
        code = wg__fail(err, WG_ENOMEM, "job '%s': out of memory", job->name);
    if (code == WG_OK)
        code = wg__job_policy_open(&policy, store, job, false, err);
    if (code == WG_OK) {
        add_beliefs(out, policy);
        sum_savings(out);
    }
    wg__job_policy_free(policy);
    if (code != WG_OK)
        wg__job_summary_fini(out);
    return code;
}

void wg__job_summary_fini(struct wg_job_summary *summary)
{
    wg__free(summary->shares);
    wg__free(summary->entries);
    wg__free(summary->bills);
    summary->bills = NULL;
    summary->shares = NULL;
    summary->entries = NULL;
}
