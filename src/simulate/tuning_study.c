/* SPDX-License-Identifier: MIT
 *
 * Running a tuning study: see tuning_study.h.
 *
 *     task = (policy, seed); a worker takes the next one, runs both runs of it (tuning_run.h) and
 *     writes into places that are the task's alone
 *
 * The seeds of all policies are interleaved, so that no worker is left alone with the slowest
 * policy. Workers are processes (workers.h): all that a task writes is shared memory.
 *
 * Owns: the times of decisions.    Threads: one.
 */
#include "simulate/tuning_study.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "math/statistics.h"
#include "simulate/tuning_sum.h"
#include "simulate/workers.h"

enum { TIMES_KEPT_MAX = 1 << 20 /* of a policy's decisions */ };

/* The times of a policy's decisions; shared. */
struct times {
    double *ms;
    size_t capacity;
    atomic_size_t *count; /* may pass the capacity: what does not fit is not kept */
};

struct runner {
    const struct wg_tuning_study_request *request;
    struct wg_tuning_study *study;
    struct wg_tuning_stopwatch watch; /* of one run; each process has its own copy */
    atomic_size_t *counts;            /* [policy]; shared */
    struct times times[WG_TUNER_POLICY_COUNT];
};

size_t wg__tuning_study_trials(const struct wg_tuning_study_request *request)
{
    const size_t count = request->scene->grid->space->count;
    if (request->max_trials != 0)
        return request->max_trials;
    return count < WG_TUNER_TRIALS_DEFAULT ? count : WG_TUNER_TRIALS_DEFAULT;
}

/* Adds the times of a run to its policy's. */
static void keep_times(struct times *all, const struct wg_tuning_stopwatch *run)
{
    const size_t from = atomic_fetch_add(all->count, run->count);
    for (size_t i = 0; i < run->count && from + i < all->capacity; i++)
        all->ms[from + i] = run->ms[i];
}

static enum wg_code run_task(void *context, size_t task, struct wg_error *err)
{
    struct runner *runner = context;
    const struct wg_tuning_study_request *request = runner->request;
    struct wg_tuning_study *study = runner->study;
    const size_t policy = task % request->policy_count, i = task / request->policy_count;
    const struct wg_tuning_setup setup = {
        .scene = request->scene,
        .policy = request->policies[policy],
        .seed = request->first_seed + i,
        .stop_share = request->stop_share,
        .xi = request->xi,
        .max_trials = study->max_trials,
        .hit_cap = study->hit_cap,
        .validate = request->validate,
    };
    const size_t place = policy * study->seeds + i;
    struct wg_tuning_outcome *out = &study->outcomes[place];
    runner->watch.count = 0;
    enum wg_code code = wg__tuning_run_to_end(&setup, &runner->watch, NULL, NULL, out, NULL, err);
    if (code == WG_OK)
        code = wg__tuning_run_on(&setup, NULL, &out->first_hit,
                                 &study->returned_after[place * study->max_trials], err);
    keep_times(&runner->times[policy], &runner->watch);
    return code;
}

static enum wg_code fail_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "out of memory");
}

static enum wg_code run_tasks(struct runner *runner, struct wg_error *err)
{
    const struct wg_tuning_study_request *request = runner->request;
    const struct wg_workers_request workers = {
        .tasks = runner->study->task_count,
        .processes = request->processes,
        .run = run_task,
        .context = runner,
        .progress = request->progress,
        .progress_context = request->progress_context,
    };
    return wg__workers_run(&workers, err);
}

static enum wg_code check(const struct wg_tuning_study_request *request, struct wg_error *err)
{
    if (request->policy_count == 0 || request->policy_count > WG_TUNER_POLICY_COUNT)
        return wg__fail(err, WG_EINVAL, "%zu policies; expected 1 to %d", request->policy_count,
                        WG_TUNER_POLICY_COUNT);
    if (request->seeds == 0 || request->seeds > WG_TUNING_SEEDS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu seeds; expected 1 to %d", request->seeds,
                        WG_TUNING_SEEDS_MAX);
    if (request->processes == 0 || request->processes > WG_WORKERS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu processes; expected 1 to %d", request->processes,
                        WG_WORKERS_MAX);
    if (request->max_trials > WG_TUNING_TRIALS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu trials; expected at most %d", request->max_trials,
                        WG_TUNING_TRIALS_MAX);
    return WG_OK;
}

static enum wg_code lay_out(struct runner *runner, struct wg_error *err)
{
    const struct wg_tuning_study_request *request = runner->request;
    struct wg_tuning_study *study = runner->study;
    const size_t available = request->scene->target.available;
    study->scene = request->scene;
    study->seeds = request->seeds;
    study->max_trials = wg__tuning_study_trials(request);
    study->hit_cap = available < WG_TUNING_HIT_CAP ? available : WG_TUNING_HIT_CAP;
    study->summary_count = request->policy_count;
    study->task_count = request->policy_count * request->seeds;
    study->outcomes = wg__shared_alloc(study->task_count, sizeof *study->outcomes);
    study->returned_after =
        wg__shared_alloc(study->task_count, study->max_trials * sizeof *study->returned_after);
    study->summaries =
        wg__arena_alloc(&study->arena, request->policy_count, sizeof *study->summaries);
    const size_t decisions = 2 * study->max_trials + 64; /* of one run, at most */
    runner->watch.ms = wg__alloc_zeroed(decisions, sizeof *runner->watch.ms);
    runner->watch.capacity = decisions;
    runner->counts = wg__shared_alloc(WG_TUNER_POLICY_COUNT, sizeof *runner->counts);
    if (study->outcomes == NULL || study->returned_after == NULL || study->summaries == NULL ||
        runner->watch.ms == NULL || runner->counts == NULL)
        return fail_memory(err);
    size_t kept = request->seeds * decisions;
    if (kept > TIMES_KEPT_MAX)
        kept = TIMES_KEPT_MAX;
    for (size_t i = 0; i < request->policy_count; i++) {
        struct times *times = &runner->times[i];
        times->ms = wg__shared_alloc(kept, sizeof *times->ms);
        times->capacity = kept;
        times->count = &runner->counts[i];
        if (times->ms == NULL)
            return fail_memory(err);
    }
    return WG_OK;
}

static void fini(struct runner *runner)
{
    for (size_t i = 0; i < WG_TUNER_POLICY_COUNT; i++)
        wg__shared_free(runner->times[i].ms, runner->times[i].capacity,
                        sizeof *runner->times[i].ms);
    wg__shared_free(runner->counts, WG_TUNER_POLICY_COUNT, sizeof *runner->counts);
    wg__free(runner->watch.ms);
}

static enum wg_code run(struct runner *runner, struct wg_error *err)
{
    const struct wg_tuning_study_request *request = runner->request;
    struct wg_tuning_study *study = runner->study;
    enum wg_code code = check(request, err);
    if (code == WG_OK)
        code = lay_out(runner, err);
    if (code == WG_OK && request->started != NULL)
        request->started(request->progress_context, study->task_count);
    if (code == WG_OK)
        code = run_tasks(runner, err);
    for (size_t i = 0; i < request->policy_count && code == WG_OK; i++) {
        code = wg__tuning_sum(study, i, request->policies[i], err);
        const struct times *times = &runner->times[i];
        size_t count = atomic_load(times->count);
        if (count > times->capacity)
            count = times->capacity;
        if (code != WG_OK || count == 0)
            continue;
        study->summaries[i].decision_ms_p50 = wg__quantile_inplace(times->ms, count, 0.5);
        study->summaries[i].decision_ms_p99 = wg__quantile_inplace(times->ms, count, 0.99);
    }
    return code;
}

enum wg_code wg__tuning_study_run(const struct wg_tuning_study_request *request,
                                  struct wg_tuning_study **out, struct wg_error *err)
{
    struct runner *runner = wg__alloc_zeroed(1, sizeof *runner);
    struct wg_tuning_study *study = wg__alloc_zeroed(1, sizeof *study);
    enum wg_code code = WG_OK;
    if (runner == NULL || study == NULL) {
        code = fail_memory(err);
        goto out;
    }
    wg__arena_init(&study->arena);
    runner->request = request;
    runner->study = study;
    code = run(runner, err);
    fini(runner);
out:
    wg__free(runner);
    if (code != WG_OK)
        wg__tuning_study_free(study);
    else
        *out = study;
    return code;
}

void wg__tuning_study_free(struct wg_tuning_study *study)
{
    if (study == NULL)
        return;
    wg__shared_free(study->outcomes, study->task_count, sizeof *study->outcomes);
    wg__shared_free(study->returned_after, study->task_count,
                    study->max_trials * sizeof *study->returned_after);
    wg__arena_fini(&study->arena);
    wg__free(study);
}
