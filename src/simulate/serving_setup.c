/* SPDX-License-Identifier: MIT
 *
 * Measurements of a profile: see serving_setup.h.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "simulate/serving_setup.h"

#include <math.h>

#define SECONDS_MAX 1e9

enum {
    BATCHES_MAX = 11, /* 1, 2, 4 .. 1024: of WG_BATCH_ROWS_MAX */
    STEPS_MAX = 33,   /* 1, 2, 4 .. 2^31, and the job's batch */
    SAMPLES_MAX = WG_RUNGS_MAX * BATCHES_MAX * 2,
    STEP_SAMPLES_MAX = WG_RUNGS_MAX * STEPS_MAX
};

/* -- What can be --------------------------------------------------------------------------- */

static bool is_duration(double seconds)
{
    return seconds > 0.0 && seconds <= SECONDS_MAX;
}

static enum wg_code check_changes(const struct wg_serving_setup *setup, struct wg_error *err)
{
    if (!is_duration(setup->slo_s))
        return wg__fail(err, WG_EINVAL, "SLO of %g s: expected above 0 to %g s", setup->slo_s,
                        SECONDS_MAX);
    if (setup->change_count > WG_SLO_CHANGES_MAX)
        return wg__fail(err, WG_EINVAL, "%zu changes of the SLO: expected at most %d",
                        setup->change_count, WG_SLO_CHANGES_MAX);
    for (size_t i = 0; i < setup->change_count; i++) {
        const struct wg_slo_change *change = &setup->changes[i];
        const double least_s = i > 0 ? setup->changes[i - 1].at_s : 0.0;
        if (!(change->at_s >= least_s && change->at_s <= SECONDS_MAX))
            return wg__fail(err, WG_EINVAL,
                            "SLO change %zu at %g s: expected moments that rise, %g s to %g s", i,
                            change->at_s, least_s, SECONDS_MAX);
        if (!is_duration(change->slo_s))
            return wg__fail(err, WG_EINVAL, "SLO change %zu to %g s: expected above 0 to %g s", i,
                            change->slo_s, SECONDS_MAX);
    }
    return WG_OK;
}

static enum wg_code check_job(const struct wg_serving_setup *setup, struct wg_error *err)
{
    if (!setup->has_job)
        return WG_OK;
    if (!setup->profile->has_finetune || !setup->believed->has_finetune)
        return wg__fail(err, WG_EINVAL, "fine-tuning: the profile '%s' does not tell of its steps",
                        setup->profile->name);
    if (setup->job.batch == 0 || setup->job.iterations == 0)
        return wg__fail(err, WG_EINVAL,
                        "fine-tuning job of batch %u and %llu iterations: expected 1 at least",
                        setup->job.batch, (unsigned long long)setup->job.iterations);
    return WG_OK;
}

static enum wg_code check_believed(const struct wg_serving_setup *setup, struct wg_error *err)
{
    const struct wg_serving_profile *profile = setup->profile;
    const struct wg_serving_profile *believed = setup->believed;
    if (believed->ladder.count != profile->ladder.count)
        return wg__fail(err, WG_EINVAL, "the believed profile has %zu rungs, the true one %zu",
                        believed->ladder.count, profile->ladder.count);
    if (believed->max_batch > profile->max_batch)
        return wg__fail(err, WG_EINVAL,
                        "the believed profile has batches up to %u, the true one up to %u",
                        believed->max_batch, profile->max_batch);
    if (setup->rung >= profile->ladder.count)
        return wg__fail(err, WG_EINVAL, "rung %zu: the profile '%s' has %zu", setup->rung,
                        profile->name, profile->ladder.count);
    return WG_OK;
}

enum wg_code wg__serving_check(const struct wg_serving_setup *setup, struct wg_error *err)
{
    enum wg_code code = wg__profile_check(setup->profile, err);
    if (code == WG_OK && setup->believed != setup->profile)
        code = wg__profile_check(setup->believed, err);
    if (code == WG_OK)
        code = check_believed(setup, err);
    if (code == WG_OK)
        code = check_changes(setup, err);
    if (code == WG_OK)
        code = check_job(setup, err);
    if (code == WG_OK && !is_duration(setup->duration_s))
        return wg__fail(err, WG_EINVAL, "duration of %g s: expected above 0 to %g s",
                        setup->duration_s, SECONDS_MAX);
    return code;
}

/* -- Measuring ----------------------------------------------------------------------------- */

/* Next of 1, 2, 4 .. and `most`; 0: there is none. */
static unsigned next_rows(unsigned rows, unsigned most)
{
    if (rows == most)
        return 0;
    return rows > most / 2 ? most : 2 * rows;
}

/* The rungs that may act. */
static void rung_range(const struct wg_serving_setup *setup, size_t *first_out, size_t *end_out)
{
    const bool is_fixed = setup->clocks == WG_CLOCKS_FIXED;
    *first_out = is_fixed ? setup->rung : 0;
    *end_out = is_fixed ? setup->rung + 1 : setup->believed->ladder.count;
}

static bool runs_beside(enum wg_finetune_policy policy)
{
    return policy == WG_FINETUNE_GREEDY || policy == WG_FINETUNE_POLYTHROTTLE;
}

static struct wg_predictor_sample sample_at(const struct wg_serving_profile *profile, size_t rung,
                                            double rows, double beside_rows, double time_s)
{
    const struct wg_rung *clocks = &profile->ladder.rungs[rung];
    return (struct wg_predictor_sample){
        .point = {rows, clocks->gpu_clock, clocks->mem_clock, beside_rows},
        .time_s = time_s,
    };
}

static size_t measure_batches(const struct wg_serving_setup *setup,
                              struct wg_predictor_sample *samples)
{
    const struct wg_serving_profile *profile = setup->believed;
    const bool has_beside = setup->has_job && runs_beside(setup->finetune);
    size_t first = 0;
    size_t end = 0;
    size_t count = 0;
    rung_range(setup, &first, &end);
    for (size_t rung = first; rung < end; rung++) {
        for (unsigned rows = 1; rows != 0; rows = next_rows(rows, profile->max_batch)) {
            const double time_s = wg__profile_batch_s(profile, rung, rows);
            samples[count++] = sample_at(profile, rung, rows, 0.0, time_s);
            if (has_beside)
                samples[count++] = sample_at(profile, rung, rows, setup->job.batch,
                                             time_s * profile->inference_slowdown);
        }
    }
    return count;
}

static size_t measure_steps(const struct wg_serving_setup *setup,
                            struct wg_predictor_sample *samples)
{
    const struct wg_serving_profile *profile = setup->believed;
    size_t first = 0;
    size_t end = 0;
    size_t count = 0;
    if (!setup->has_job)
        return 0;
    rung_range(setup, &first, &end);
    for (size_t rung = first; rung < end; rung++) {
        for (unsigned rows = 1; rows != 0; rows = next_rows(rows, setup->job.batch))
            samples[count++] =
                sample_at(profile, rung, rows, 0.0, wg__profile_step_s(profile, rung, rows, false));
    }
    return count;
}

enum wg_code wg__serving_open_scheduler(struct wg_scheduler **out,
                                        const struct wg_serving_setup *setup, struct wg_error *err)
{
    struct wg_predictor_sample samples[SAMPLES_MAX];
    struct wg_predictor_sample step_samples[STEP_SAMPLES_MAX];
    const struct wg_serving_profile *believed = setup->believed;
    const struct wg_serving_model model = {
        .max_rows = believed->max_batch,
        .slo_s = setup->slo_s,
        .predictor.kind = setup->finetune == WG_FINETUNE_POLYTHROTTLE ? WG_PREDICTOR_POLYTHROTTLE
                                                                      : WG_PREDICTOR_PHYSICAL,
        .samples = samples,
        .sample_count = measure_batches(setup, samples),
    };
    const struct wg_scheduler_setup wish = {
        .model_count = 1,
        .models = &model,
        .queue_capacity = setup->queue_capacity,
        .batcher = setup->batcher,
        .batch_delay_s = setup->batch_delay_s,
        .drop = setup->drop,
        .finetune = setup->finetune,
        .step_samples = step_samples,
        .step_sample_count = measure_steps(setup, step_samples),
        .update_s = setup->has_job ? believed->update_s : 0.0,
        .step_share = setup->step_share,
        .deadline_share = setup->deadline_share,
        .min_share = setup->min_share,
        .clocks = setup->clocks,
        .clock_setup = {.ladder = believed->ladder, .max_rows = believed->max_batch},
        .first_rung = setup->rung,
    };
    return wg__scheduler_open(out, &wish, err);
}
