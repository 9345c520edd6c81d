/* SPDX-License-Identifier: MIT
 *
 * Running a tuning study: see tuning_study.h.
 *
 *     task = (policy, seed); a worker takes the next one, runs both runs of it (tuning_run.h) and
 *     writes into places that are the task's alone
 *
 * The seeds of all policies are interleaved, so that no thread is left alone with the slowest
 * policy. The first error by the order of the tasks is reported.
 *
 * Owns: its workers.    Threads: the mutex guards what stands below it.
 */
#include "simulate/tuning_study.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "math/statistics.h"
#include "simulate/tuning_sum.h"

enum { TRIALS_USUAL = 30, TIMES_KEPT_MAX = 1 << 20 /* of a policy's decisions */ };

struct runner {
    const struct wg_tuning_study_request *request;
    struct wg_tuning_study *study;
    size_t task_count;
    atomic_size_t next_task;
    atomic_bool has_failed;

    pthread_mutex_t mutex;
    size_t failed_task;
    enum wg_code code;
    struct wg_error error;
    struct wg_tuning_stopwatch watches[WG_TUNER_POLICY_COUNT]; /* all runs of a policy; owned */
};

struct worker {
    struct runner *runner;
    struct wg_tuning_stopwatch watch; /* one run; owned */
    pthread_t thread;
};

size_t wg__tuning_study_trials(const struct wg_tuning_study_request *request)
{
    const size_t count = request->scene->grid->space->count;
    if (request->max_trials != 0)
        return request->max_trials;
    return count < TRIALS_USUAL ? count : TRIALS_USUAL;
}

static enum wg_code run_task(struct worker *worker, size_t task, struct wg_error *err)
{
    struct runner *runner = worker->runner;
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
    worker->watch.count = 0;
    enum wg_code code = wg__tuning_run_to_end(&setup, &worker->watch, NULL, NULL, out, NULL, err);
    if (code == WG_OK)
        code = wg__tuning_run_on(&setup, NULL, &out->first_hit,
                                 &study->returned_after[place * study->max_trials], err);
    return code;
}

/* Adds the times of a run to its policy's. The mutex is held. */
static void keep_times(struct wg_tuning_stopwatch *all, const struct wg_tuning_stopwatch *run)
{
    for (size_t i = 0; i < run->count && all->count < all->capacity; i++)
        all->ms[all->count++] = run->ms[i];
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct runner *runner = worker->runner;
    for (;;) {
        const size_t task = atomic_fetch_add(&runner->next_task, 1);
        if (task >= runner->task_count || atomic_load(&runner->has_failed))
            return NULL;
        struct wg_error err = {0};
        const enum wg_code code = run_task(worker, task, &err);
        (void)pthread_mutex_lock(&runner->mutex);
        keep_times(&runner->watches[task % runner->request->policy_count], &worker->watch);
        if (code != WG_OK && task < runner->failed_task) {
            runner->failed_task = task;
            runner->code = code;
            runner->error = err;
            atomic_store(&runner->has_failed, true);
        }
        (void)pthread_mutex_unlock(&runner->mutex);
        if (runner->request->progress != NULL)
            runner->request->progress(runner->request->progress_context);
    }
}

static enum wg_code fail_memory(struct wg_error *err)
{
    return wg__fail(err, WG_ENOMEM, "out of memory");
}

static enum wg_code init_watch(struct wg_tuning_stopwatch *watch, size_t capacity,
                               struct wg_error *err)
{
    watch->ms = wg__alloc_zeroed(capacity, sizeof *watch->ms);
    watch->capacity = capacity;
    return watch->ms != NULL ? WG_OK : fail_memory(err);
}

/* The calling thread works too, so a system that grants no further thread only makes it slower. */
static enum wg_code run_tasks(struct runner *runner, struct wg_error *err)
{
    size_t count = runner->request->threads;
    if (count > runner->task_count)
        count = runner->task_count;
    struct worker *workers = wg__alloc_zeroed(count, sizeof *workers);
    if (workers == NULL)
        return fail_memory(err);
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < count && code == WG_OK; i++) {
        workers[i].runner = runner;
        code = init_watch(&workers[i].watch, 2 * runner->study->max_trials + 64, err);
    }
    if (code == WG_OK) {
        size_t started = 1;
        while (started < count &&
               pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0)
            started++;
        (void)work(&workers[0]);
        for (size_t i = 1; i < started; i++)
            (void)pthread_join(workers[i].thread, NULL);
        code = runner->code;
        if (code != WG_OK && err != NULL)
            *err = runner->error;
    }
    for (size_t i = 0; i < count; i++)
        wg__free(workers[i].watch.ms);
    wg__free(workers);
    return code;
}

static enum wg_code check(const struct wg_tuning_study_request *request, struct wg_error *err)
{
    if (request->policy_count == 0 || request->policy_count > WG_TUNER_POLICY_COUNT)
        return wg__fail(err, WG_EINVAL, "%zu policies; expected 1 to %d", request->policy_count,
                        WG_TUNER_POLICY_COUNT);
    if (request->seeds == 0 || request->seeds > WG_TUNING_SEEDS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu seeds; expected 1 to %d", request->seeds,
                        WG_TUNING_SEEDS_MAX);
    if (request->threads == 0 || request->threads > WG_TUNING_THREADS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu threads; expected 1 to %d", request->threads,
                        WG_TUNING_THREADS_MAX);
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
    runner->task_count = request->policy_count * request->seeds;
    struct wg_arena *arena = &study->arena;
    study->outcomes = wg__arena_alloc(arena, runner->task_count, sizeof *study->outcomes);
    study->returned_after = wg__arena_alloc(arena, runner->task_count,
                                            study->max_trials * sizeof *study->returned_after);
    study->summaries = wg__arena_alloc(arena, request->policy_count, sizeof *study->summaries);
    if (study->outcomes == NULL || study->returned_after == NULL || study->summaries == NULL)
        return fail_memory(err);
    size_t kept = request->seeds * (2 * study->max_trials + 64);
    if (kept > TIMES_KEPT_MAX)
        kept = TIMES_KEPT_MAX;
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < request->policy_count && code == WG_OK; i++)
        code = init_watch(&runner->watches[i], kept, err);
    return code;
}

static enum wg_code run(struct runner *runner, struct wg_error *err)
{
    const struct wg_tuning_study_request *request = runner->request;
    struct wg_tuning_study *study = runner->study;
    enum wg_code code = check(request, err);
    if (code == WG_OK)
        code = lay_out(runner, err);
    if (code == WG_OK && request->started != NULL)
        request->started(request->progress_context, runner->task_count);
    if (code == WG_OK)
        code = run_tasks(runner, err);
    for (size_t i = 0; i < request->policy_count && code == WG_OK; i++) {
        code = wg__tuning_sum(study, i, request->policies[i], err);
        const struct wg_tuning_stopwatch *watch = &runner->watches[i];
        if (code != WG_OK || watch->count == 0)
            continue;
        study->summaries[i].decision_ms_p50 = wg__quantile_inplace(watch->ms, watch->count, 0.5);
        study->summaries[i].decision_ms_p99 = wg__quantile_inplace(watch->ms, watch->count, 0.99);
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
    runner->failed_task = SIZE_MAX;
    atomic_init(&runner->next_task, 0);
    atomic_init(&runner->has_failed, false);
    (void)pthread_mutex_init(&runner->mutex, NULL); /* cannot fail on Linux without attributes */
    code = run(runner, err);
    (void)pthread_mutex_destroy(&runner->mutex);
    for (size_t i = 0; i < WG_TUNER_POLICY_COUNT; i++)
        wg__free(runner->watches[i].ms);
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
    wg__arena_fini(&study->arena);
    wg__free(study);
}
