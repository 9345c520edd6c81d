/* SPDX-License-Identifier: MIT
 *
 * The life of a tuning; see tune_runner.h.
 *
 *     meter -> checkpoint -> devices, guard -> (default, for relative limits) -> tuner -> trials
 *           -> give back -> result
 *
 * The guard stands before the first write. A trial is in the checkpoint before the next one begins.
 */
#include "live/tune_runner.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "live/tune_checkpoint.h"
#include "live/tune_parts.h"

enum {
    LINE_SIZE = 640,
    READY_TIMEOUT_MS = 2000,
    SAMPLE_MS = 50,
    DEFAULT_TRIES = 5,
    ASKED_MOST = 200, /* a state of more trials is told without deciding after each of them, */
    THROWN_MOST = 5,  /* in a row: four of one configuration, and the next one */
    COOLS_MOST = 20,  /* times the longest wait after a throttled window, in all */
    ASKED_LAST = 8    /* but for so many at its end: a confirmation may be under way */
};

void wg__tune_say(struct wg_tune_run *run, const char *format, ...)
{
    char line[LINE_SIZE];
    if (run->request->say == NULL)
        return;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    run->request->say(line, run->request->context);
}

/* -- Getting ready ---------------------------------------------------------------------------- */

/* What the workload itself has to make precise; what we derive follows from it. */
static void find_precise(struct wg_tune_run *run)
{
    static const char *const own[] = {"energy_j", "power_w",     "time_s", "energy_per_request_j",
                                      "requests", "utilization", NULL};
    const struct wg_tune_goal *goal = run->request->goal;
    size_t count = 0;
    for (size_t i = 0; i <= goal->limit_count; i++) {
        const struct wg_expression *expression =
            i == 0 ? goal->objective.expression : goal->limits[i - 1].expression;
        for (size_t n = 0; n < wg__expression_name_count(expression); n++) {
            const char *name = wg__expression_name(expression, n);
            size_t at = 0;
            while (own[at] != NULL && strcmp(own[at], name) != 0)
                at++;
            if (own[at] == NULL && count < WG_TUNE_PRECISE_MAX)
                run->precise[count++] = name;
        }
    }
    run->precise[count] = NULL;
}

static enum wg_code open_meter(struct wg_tune_run *run, struct wg_error *err)
{
    const struct wg_tune_request *request = run->request;
    const struct wg_meter_opts opts = WG_METER_OPTS(.sample_period_ms = SAMPLE_MS);
    if (!wg__tune_energy_is_metered(&request->energy) && request->knobs->devices.gpu_count == 0)
        return WG_OK;
    const enum wg_code code = wg_meter_open(&run->meter, request->machine, &opts, err);
    if (code == WG_OK)
        (void)wg_meter_wait_ready(run->meter, READY_TIMEOUT_MS, NULL);
    return code;
}

static bool has_relative(const struct wg_tune_goal *goal)
{
    for (size_t i = 0; i < goal->limit_count; i++)
        if (goal->limits[i].is_relative)
            return true;
    return false;
}

/* Bounds as far as they are known without a measurement. */
static void find_bounds(struct wg_tune_run *run)
{
    const struct wg_tune_goal *goal = run->request->goal;
    for (size_t i = 0; i < WG_TUNING_LIMITS_MAX; i++) {
        const bool is_known = i < goal->limit_count && !goal->limits[i].is_relative;
        run->result->bounds[i] = is_known ? goal->limits[i].bound : (double)NAN;
    }
}

static bool has_bounds(const struct wg_tune_run *run)
{
    for (size_t i = 0; i < run->request->goal->limit_count; i++)
        if (!isfinite(run->result->bounds[i]))
            return false;
    return true;
}

/* -- Trials ----------------------------------------------------------------------------------- */

static void save(struct wg_tune_run *run)
{
    const struct wg_tune_request *request = run->request;
    const char *path = request->state_path;
    struct wg_error err;
    if (path == NULL)
        return;
    enum wg_code code = WG_OK;
    if (run->state_lock < 0)
        code = wg__tune_checkpoint_claim(path, &run->state_lock, &err);
    if (code == WG_OK)
        code = wg__tune_checkpoint_write(path, request, run->result, &err);
    if (code == WG_OK)
        code = wg__tune_checkpoint_claim(path, &run->state_lock, &err);
    if (code != WG_OK && run->result->unsaved++ == 0)
        wg__tune_say(run, "what was measured is not kept: %s", err.text);
}

static void clear_trial(struct wg_tune_trial *trial)
{
    wg__free(trial->figures);
    *trial = (struct wg_tune_trial){0};
}

/* Measures a configuration into the next place of the list; kept only when it has not ended. */
static enum wg_code try_next(struct wg_tune_run *run, const struct wg_tuner_question *question,
                             struct wg_tune_trial **out, bool *has_ended, struct wg_error *err)
{
    const struct wg_tune_request *request = run->request;
    struct wg_tune_result *result = run->result;
    struct wg_tune_trial *trial = &result->trials[result->count];
    *trial = (struct wg_tune_trial){.reason = question->reason};
    memcpy(trial->why, question->why, sizeof trial->why);
    if (request->asked != NULL)
        request->asked(question, result->count + 1, request->context);
    const enum wg_code code = wg__tune_try(run, question->configuration, trial, has_ended, err);
    if (code != WG_OK || *has_ended) {
        clear_trial(trial);
        return code;
    }
    result->count++;
    *out = trial;
    return WG_OK;
}

static void report(struct wg_tune_run *run, const struct wg_tune_trial *trial)
{
    if (run->request->told != NULL)
        run->request->told(trial, run->result->count, run->request->context);
}

/* Relative limits need the default's own figures before there can be a tuner. */
static enum wg_code measure_default(struct wg_tune_run *run, bool *has_ended, struct wg_error *err)
{
    const struct wg_tune_request *request = run->request;
    struct wg_tune_result *result = run->result;
    struct wg_tuner_question question = {
        .kind = WG_TUNER_MEASURE,
        .configuration = request->knobs->space->default_configuration,
        .reason = WG_TUNER_DEFAULT,
        .why = "the default comes first: limits are relative to it"};
    struct wg_tune_trial *trial = NULL;
    for (unsigned i = 0; i < DEFAULT_TRIES; i++) {
        const enum wg_code code = try_next(run, &question, &trial, has_ended, err);
        if (code != WG_OK || *has_ended)
            return code;
        report(run, trial);
        if (trial->told.outcome != WG_TRIAL_DISCARDED)
            break;
    }
    if (trial == NULL || trial->told.outcome != WG_TRIAL_MEASURED)
        return wg__fail(err, WG_EDATA,
                        "limits are relative to the default configuration, and that could not be "
                        "measured (%s): %s",
                        trial != NULL ? wg__trial_outcome_word(trial->told.outcome) : "interrupted",
                        trial != NULL ? trial->failure : "");
    for (size_t i = 0; i < request->goal->limit_count; i++)
        if (request->goal->limits[i].is_relative)
            result->bounds[i] = request->goal->limits[i].bound * trial->told.figures[i];
    save(run);
    return WG_OK;
}

static enum wg_code make_tuner(struct wg_tune_run *run, struct wg_error *err)
{
    const struct wg_tune_request *request = run->request;
    const struct wg_tune_goal *goal = request->goal;
    struct wg_tuner_config config = {
        .space = request->knobs->space,
        .goal = {.objective = goal->objective.kind, .limit_count = goal->limit_count},
        .policy = request->policy,
        .seed = request->seed,
        .noise = request->precision,
        .stop_share = request->stop_share,
        .max_trials = request->max_trials,
        .validate = request->validate,
        .default_first = true,
        .xi = NAN,
        .cpu_apart = true};
    for (size_t i = 0; i < goal->limit_count; i++)
        config.goal.limits[i] = (struct wg_tuning_limit){.name = goal->limits[i].text,
                                                         .kind = goal->limits[i].kind,
                                                         .bound = run->result->bounds[i],
                                                         .is_minimum = goal->limits[i].is_minimum};
    for (size_t k = 0; k < request->knobs->count; k++)
        if (request->knobs->knobs[k].switch_s > 0)
            config.trial_s = fmax(1, request->min_windows * request->min_window_s);
    return wg__tuner_new(&run->result->tuner, &config, err);
}

/* Tells the tuner what is in the list already: it decides in between, as it did then. Decisions
 * cost more, the more was told, so of very many trials only the last ones are decided on. */
static enum wg_code replay(struct wg_tune_run *run, struct wg_error *err)
{
    struct wg_tune_result *result = run->result;
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < result->count && code == WG_OK && !wg__tune_should_stop(run); i++) {
        const bool decides = result->count <= ASKED_MOST || i + ASKED_LAST >= result->count;
        code = decides ? wg__tuner_tell(result->tuner, &result->trials[i].told, err)
                       : wg__tuner_recall(result->tuner, &result->trials[i].told, err);
    }
    return code;
}

/* Whether there is no use in going on: one configuration was thrown away as often as may be, and so
 * was the next one; or waiting to cool down has taken what may be waited in all. */
static bool is_held_down(struct wg_tune_run *run, const struct wg_tune_trial *trial)
{
    struct wg_tune_result *result = run->result;
    const enum wg_trial_outcome outcome = trial->told.outcome;
    if (outcome == WG_TRIAL_MEASURED || outcome == WG_TRIAL_CUT)
        run->thrown = 0;
    else if (outcome == WG_TRIAL_DISCARDED)
        run->thrown++;
    if (outcome != WG_TRIAL_DISCARDED ||
        (run->thrown < THROWN_MOST &&
         !(run->cooled_s > (double)COOLS_MOST * run->request->cool_s && run->request->cool_s > 0)))
        return false;
    wg__tune_say(run, "nothing can be measured like this, so it ends: %s", trial->failure);
    result->was_held = true;
    return true;
}

static bool is_out_of_time(struct wg_tune_run *run)
{
    const double max_time_s = run->request->max_time_s;
    if (max_time_s > 0 && wg__tune_now_s() - run->start_s >= max_time_s)
        run->result->ended_by_time = true;
    return run->result->ended_by_time;
}

static enum wg_code loop(struct wg_tune_run *run, struct wg_error *err)
{
    struct wg_tune_result *result = run->result;
    while (result->count < WG_TUNE_TRIALS_MAX && !is_out_of_time(run)) {
        struct wg_tuner_question question;
        struct wg_tune_trial *trial = NULL;
        bool has_ended = wg__tune_should_stop(run);
        if (has_ended)
            return WG_OK;
        enum wg_code code = wg__tuner_ask(result->tuner, &question, err);
        if (code != WG_OK || question.kind == WG_TUNER_DONE)
            return code;
        code = try_next(run, &question, &trial, &has_ended, err);
        if (code != WG_OK || has_ended)
            return code;
        code = wg__tuner_tell(result->tuner, &trial->told, err);
        save(run);
        report(run, trial);
        if (code != WG_OK || is_held_down(run, trial))
            return code;
    }
    return WG_OK;
}

static enum wg_code tune(struct wg_tune_run *run, struct wg_error *err)
{
    const struct wg_tune_request *request = run->request;
    bool has_ended = false;
    enum wg_code code = WG_OK;
    find_bounds(run);
    if (request->resume)
        code = wg__tune_checkpoint_read(request->state_path, request, run->result, err);
    if (code == WG_OK && request->state_path != NULL) /* reading gives up a lock that is there */
        code = wg__tune_checkpoint_claim(request->state_path, &run->state_lock, err);
    if (code == WG_OK)
        code = wg__tune_take_devices(run, err);
    if (code == WG_OK && has_relative(request->goal) && !has_bounds(run))
        code = measure_default(run, &has_ended, err);
    if (code != WG_OK || has_ended)
        return code;
    code = make_tuner(run, err);
    if (code == WG_OK)
        code = replay(run, err);
    if (code == WG_OK)
        code = loop(run, err);
    return code;
}

/* The workload as it was found, or as it is returned. */
static void leave_workload(struct wg_tune_run *run)
{
    const struct wg_tune_request *request = run->request;
    struct wg_tune_result *result = run->result;
    struct wg_workload *workload = request->workload;
    const size_t best = result->best.configuration;
    char note[WG_WORKLOAD_WHY_SIZE] = "";
    struct wg_error err = {.code = WG_OK};
    enum wg_code code = WG_OK;
    if (request->leaves_returned && best < request->knobs->space->count) {
        struct wg_tune_levels levels;
        enum wg_workload_outcome outcome = WG_WORKLOAD_OK;
        wg__tune_levels_of(request->knobs->space, best, &levels);
        code = wg__tune_leave_workload(run, &levels, &outcome, note, &err);
        if (code == WG_OK && outcome == WG_WORKLOAD_OK)
            (void)snprintf(note, sizeof note, "the workload is left with what is returned");
        result->workload_not_restored = outcome != WG_WORKLOAD_OK;
    } else if (workload->ops->give_back != NULL) {
        workload->is_interrupted = result->signal != 0;
        code = workload->ops->give_back(workload, note, &err);
    }
    result->workload_not_restored |= code != WG_OK;
    (void)snprintf(result->workload_end, sizeof result->workload_end, "%.*s",
                   (int)sizeof result->workload_end - 1, code != WG_OK ? err.text : note);
    if (result->workload_end[0] != '\0')
        wg__tune_say(run, "%s", result->workload_end);
}

/* An end that the tuner knows nothing of. */
static void explain_end(struct wg_tune_result *result, const struct wg_tune_request *request)
{
    char *why = result->best.why, name[WG_SIGNAL_NAME_SIZE];
    const size_t size = sizeof result->best.why;
    if (result->was_foreign) {
        (void)snprintf(why, size, "somebody else has set a knob");
    } else if (result->signal != 0) {
        wg__signal_name(name, result->signal);
        (void)snprintf(why, size, "interrupted by %s", name);
    } else if (result->ended_by_time) {
        (void)snprintf(why, size, "no trial begins after %.4g s", request->max_time_s);
    } else if (result->was_held && result->count > 0) {
        (void)snprintf(why, size, "nothing can be measured: %.150s",
                       result->trials[result->count - 1].failure);
    }
}

static enum wg_code finish(struct wg_tune_run *run, struct wg_error *err)
{
    struct wg_tune_result *result = run->result;
    result->time_s = wg__tune_now_s() - run->start_s;
    wg_window_free(run->watch.window);
    run->watch.window = NULL;
    wg__device_hold_close(&run->hold);
    result->not_restored = run->hold.not_restored;
    wg_meter_close(run->meter);
    const enum wg_code code =
        result->tuner != NULL ? wg__tuner_result(result->tuner, &result->best, err) : WG_OK;
    leave_workload(run);
    explain_end(result, run->request);
    return code;
}

enum wg_code wg__tune_run(const struct wg_tune_request *request, struct wg_tune_result *out,
                          struct wg_error *err)
{
    *out = (struct wg_tune_result){.idle_w = NAN};
    out->best.configuration = out->best.runner_up = request->knobs->space->count;
    struct wg_tune_run *run = wg__alloc_zeroed(1, sizeof *run);
    out->trials = wg__alloc_zeroed(WG_TUNE_TRIALS_MAX + 1, sizeof *out->trials);
    if (run == NULL || out->trials == NULL) {
        wg__free(run);
        return wg__fail(err, WG_ENOMEM, "out of memory");
    }
    run->request = request;
    run->result = out;
    run->hold.guard.pidfd = -1;
    run->state_lock = -1;
    run->start_s = wg__tune_now_s();
    run->watch =
        (struct wg_tune_watch){.begin_s = NAN, .end_s = NAN, .clock_hz = NAN, .temperature_c = NAN};
    for (size_t i = 0; i < WG_TUNING_LEVELS_MAX; i++)
        run->idle_w[i] = NAN;
    find_precise(run);
    enum wg_code code = open_meter(run, err);
    if (code == WG_OK)
        code = tune(run, err);
    struct wg_error other;
    const enum wg_code finished = finish(run, &other);
    if (code == WG_OK && finished != WG_OK) {
        code = finished;
        if (err != NULL)
            *err = other;
    }
    if (code != WG_OK) {
        out->has_failed = true;
        out->best.is_validated = out->best.is_certain = false;
        (void)snprintf(out->best.why, sizeof out->best.why, "%.*s", WG_TUNER_WHY_SIZE - 1,
                       err != NULL ? err->text : "an error");
    }
    if (run->state_lock >= 0)
        (void)close(run->state_lock);
    wg__free(run);
    return code;
}

void wg__tune_result_fini(struct wg_tune_result *result)
{
    for (size_t i = 0; result->trials != NULL && i < result->count; i++)
        wg__free(result->trials[i].figures);
    wg__free(result->trials);
    wg__tuner_free(result->tuner);
    *result = (struct wg_tune_result){0};
}
