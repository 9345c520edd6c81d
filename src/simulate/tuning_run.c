/* SPDX-License-Identifier: MIT
 *
 * Running a tuner in a simulated world: see tuning_run.h.
 *
 * The time of a decision is that from an answer to the next question, without the measurement: a
 * tuner may think in either. It is processor time of the thread, so that threads which share a
 * processor do not count each other's.
 *
 * Threads: as the header says.
 */
#include "simulate/tuning_run.h"

#include "base/clock.h"

/* Answers that count as no trial (refused, thrown away) end too: a tuner that asks for them without
 * end would never come back. */
enum { ASKS_PER_TRIAL_MAX = 16, ASKS_MORE = 4096 };

/* A tuner, its world, and how far they are. */
struct run {
    const struct wg_tuning_setup *setup;
    struct wg_tuning_stopwatch *stopwatch;
    struct wg_tuning_world world;
    struct wg_tuner *tuner;
    size_t cap;          /* trials */
    uint64_t thought_ns; /* since the last question: a tuner may think when it is told */
    size_t asks;
    struct wg_tuner_question question;
    struct wg_trial trial;
    struct wg_tuner_result result; /* after the last trial */
};

static enum wg_code begin(struct run *run, const struct wg_tuning_setup *setup, bool never_stops,
                          struct wg_tuning_stopwatch *stopwatch, struct wg_error *err)
{
    const struct wg_tuning_scene *scene = setup->scene;
    *run = (struct run){.setup = setup, .stopwatch = stopwatch};
    run->cap = setup->max_trials;
    if (never_stops && setup->hit_cap > run->cap)
        run->cap = setup->hit_cap;
    const struct wg_tuner_config config = {
        .space = scene->grid->space,
        .goal = scene->grid->goal,
        .policy = setup->policy,
        .seed = setup->seed,
        .noise = scene->told,
        .stop_share = setup->stop_share,
        .max_trials = run->cap,
        .validate = setup->validate && !never_stops,
        .never_stops = never_stops,
        .xi = setup->xi,
        .default_objective = scene->grid->costs[scene->grid->space->default_configuration],
    };
    const enum wg_code code = wg__tuning_world_init(&run->world, scene, setup->seed, err);
    return code == WG_OK ? wg__tuner_new(&run->tuner, &config, err) : code;
}

static void end(struct run *run)
{
    wg__tuner_free(run->tuner);
    wg__tuning_world_fini(&run->world);
}

/* One question, and its answer unless it is the end. */
static enum wg_code step(struct run *run, struct wg_error *err)
{
    const uint64_t start_ns = wg__clock_thread_ns();
    enum wg_code code = wg__tuner_ask(run->tuner, &run->question, err);
    run->thought_ns += wg__clock_thread_ns() - start_ns;
    struct wg_tuning_stopwatch *watch = run->stopwatch;
    if (watch != NULL && watch->count < watch->capacity)
        watch->ms[watch->count++] = (double)run->thought_ns / 1e6;
    if (code != WG_OK || run->question.kind == WG_TUNER_DONE)
        return code;
    if (++run->asks > ASKS_MORE + ASKS_PER_TRIAL_MAX * run->cap)
        return wg__fail(err, WG_ESTATE, "the tuner asked %zu times for %zu trials", run->asks,
                        run->cap);
    wg__tuning_world_measure(&run->world, run->question.configuration, &run->trial);
    const uint64_t told_ns = wg__clock_thread_ns();
    code = wg__tuner_tell(run->tuner, &run->trial, err);
    if (code == WG_OK)
        code = wg__tuner_result(run->tuner, &run->result, err);
    run->thought_ns = wg__clock_thread_ns() - told_ns;
    return code;
}

enum wg_code wg__tuning_run_to_end(const struct wg_tuning_setup *setup,
                                   struct wg_tuning_stopwatch *stopwatch,
                                   wg_tuning_listener *listener, void *context,
                                   struct wg_tuning_outcome *out, struct wg_tuner_result *result,
                                   struct wg_error *err)
{
    struct run run;
    enum wg_code code = begin(&run, setup, false, stopwatch, err);
    while (code == WG_OK) {
        code = step(&run, err);
        if (code != WG_OK || run.question.kind == WG_TUNER_DONE)
            break;
        if (listener != NULL)
            listener(&run.question, &run.trial, run.result.trials, context);
    }
    if (code == WG_OK)
        code = wg__tuner_result(run.tuner, &run.result, err);
    end(&run);
    if (code != WG_OK)
        return code;
    out->seed = setup->seed;
    out->trials = run.result.trials;
    out->failed_trials = run.result.failed_trials;
    out->end = run.result.end;
    out->returned = run.result.configuration;
    out->claims_feasible = run.result.is_feasible;
    out->is_validated = run.result.is_validated;
    if (result != NULL)
        *result = run.result;
    return WG_OK;
}

enum wg_code wg__tuning_run_on(const struct wg_tuning_setup *setup,
                               struct wg_tuning_stopwatch *stopwatch, size_t *first_hit,
                               uint32_t *returned_after, struct wg_error *err)
{
    const struct wg_tuning_scene *scene = setup->scene;
    struct run run;
    enum wg_code code = begin(&run, setup, true, stopwatch, err);
    size_t told = 0; /* trials of which it is known what would be returned */
    uint32_t last = (uint32_t)scene->grid->space->count;
    *first_hit = 0;
    while (code == WG_OK && (*first_hit == 0 || told < setup->max_trials)) {
        code = step(&run, err);
        if (code != WG_OK || run.question.kind == WG_TUNER_DONE)
            break;
        const size_t trials = run.result.trials;
        if (*first_hit == 0 && trials <= setup->hit_cap && run.trial.outcome == WG_TRIAL_MEASURED &&
            scene->target.is_near[run.trial.configuration])
            *first_hit = trials;
        last = (uint32_t)run.result.configuration;
        for (; told < trials && told < setup->max_trials; told++)
            returned_after[told] = last;
        if (trials >= run.cap)
            break;
    }
    for (; told < setup->max_trials; told++) /* all was tried before */
        returned_after[told] = last;
    end(&run);
    return code;
}
