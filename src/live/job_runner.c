/* SPDX-License-Identifier: MIT
 *
 * One recurrence of a job, from the question to the report; see job_runner.h.
 */
#include "live/job_runner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/number.h"
#include "optimize/batch_size.h"

enum { CRASHES_DEFAULT = 2, REPORT_TRIES = 3, VARIABLES = 6, NUMBER_MAX = 32 };

static const double watch_patience_s = 0.1; /* with the store, while the command runs */

struct wg_job_watch {
    struct wg_store *store;
    const char *name;
    const struct wg_job_run_opts *opts;
    const struct wg_store_job *job;
    struct wg_store_run run;
    double next_beat_s;
    unsigned last_epoch; /* told by the command */
    double metric;
    bool was_told;   /* the metric, at least once */
    bool has_metric; /* and it was a number */
    bool has_warned; /* that it was none */
    bool is_silent;  /* the store has failed, and the user knows */
    enum wg_job_answer answer;
};

static void say(const struct wg_job_run_opts *opts, const char *line)
{
    if (opts->say != NULL)
        opts->say(opts->context, line);
}

static double now_s(const struct wg_job_run_opts *opts)
{
    return opts->now_s(opts->context);
}

/* A store that fails now may work again: the run goes on. */
static void note_trouble(struct wg_job_watch *watch, enum wg_code code, const struct wg_error *err)
{
    if (code == WG_OK) {
        watch->is_silent = false;
        return;
    }
    if (!watch->is_silent)
        say(watch->opts, err->text);
    watch->is_silent = true;
}

enum wg_job_answer wg__job_watch_epoch(struct wg_job_watch *watch, unsigned epoch,
                                       const double *metric_told)
{
    const double metric =
        metric_told != NULL && isfinite(*metric_told) ? *metric_told : (double)NAN;
    struct wg_error err;
    if (watch->run.is_survey || watch->answer != WG_JOB_CONTINUE) /* what comes after it is late */
        return watch->answer;
    if (metric_told != NULL && isnan(metric) && !watch->has_warned) {
        struct wg_error note;
        (void)wg__fail(&note, WG_EDATA, "epoch %u: the metric '%s' is not a number", epoch,
                       watch->job->metric);
        say(watch->opts, note.text);
        watch->has_warned = true;
    }
    if (epoch > watch->last_epoch)
        watch->last_epoch = epoch;
    watch->was_told |= metric_told != NULL;
    if (!isnan(metric)) {
        watch->has_metric = true;
        watch->metric = metric;
    }
    const double told_s = now_s(watch->opts);
    enum wg_job_answer answer = WG_JOB_CONTINUE;
    const enum wg_code code = wg__job_epoch(watch->store, watch->name, watch->run.id, epoch, metric,
                                            told_s, &answer, &err);
    note_trouble(watch, code, &err);
    if (code != WG_OK) { /* what can be said without the store */
        const bool reached = watch->job->higher_is_better ? metric >= watch->job->target
                                                          : metric <= watch->job->target;
        answer = reached                           ? WG_JOB_REACHED
                 : epoch >= watch->job->max_epochs ? WG_JOB_EXHAUSTED
                                                   : WG_JOB_CONTINUE;
    }
    watch->next_beat_s = told_s + watch->run.lease_s / 4;
    if (watch->answer == WG_JOB_CONTINUE)
        watch->answer = answer;
    return watch->answer;
}

void wg__job_watch_profile(struct wg_job_watch *watch, const struct wg_job_costs *costs)
{
    struct wg_error err;
    note_trouble(
        watch,
        wg__job_profile(watch->store, watch->name, watch->run.id, costs, now_s(watch->opts), &err),
        &err);
}

void wg__job_watch_tick(struct wg_job_watch *watch)
{
    struct wg_error err;
    const double at_s = now_s(watch->opts);
    if (at_s < watch->next_beat_s)
        return;
    watch->next_beat_s = at_s + watch->run.lease_s / 4;
    note_trouble(watch, wg__job_heartbeat(watch->store, watch->name, watch->run.id, at_s, &err),
                 &err);
}

/* What the placeholders stand for in this run. */
struct values {
    char batch_size[NUMBER_MAX], learning_rate[NUMBER_MAX], epochs[NUMBER_MAX], run[NUMBER_MAX];
};

static void fill_values(const struct wg_job_order *order, struct values *out)
{
    (void)snprintf(out->batch_size, sizeof out->batch_size, "%u", order->run.batch_size);
    (void)snprintf(out->epochs, sizeof out->epochs, "%u", order->job.max_epochs);
    (void)snprintf(out->run, sizeof out->run, "%lld", (long long)order->run.id);
    out->learning_rate[0] = '\0';
    if (!isnan(order->learning_rate))
        wg__format_double(out->learning_rate, order->learning_rate);
}

/* The length of the placeholder at `text`, and its value; 0: none stands there. */
static size_t placeholder(const char *text, const struct values *values, const char **value_out)
{
    const struct {
        const char *name, *value;
    } known[] = {{"{batch_size}", values->batch_size},
                 {"{learning_rate}", values->learning_rate},
                 {"{epochs}", values->epochs},
                 {"{run}", values->run}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(text, known[i].name, strlen(known[i].name)) == 0) {
            *value_out = known[i].value;
            return strlen(known[i].name);
        }
    return 0;
}

static char *fill_word(struct wg_arena *arena, const char *word, const struct values *values)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_append(&text, "", 0);
    for (const char *at = word; *at != '\0';) {
        const char *value = NULL;
        const size_t length = placeholder(at, values, &value);
        if (length > 0)
            wg__buffer_puts(&text, value);
        else
            wg__buffer_append(&text, at, 1);
        at += length > 0 ? length : 1;
    }
    char *filled = text.failed ? NULL : wg__arena_strdup(arena, text.length > 0 ? text.data : "");
    wg__buffer_fini(&text);
    return filled;
}

static char *variable(struct wg_arena *arena, const char *name, const char *value)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_printf(&text, "%s=%s", name, value);
    char *filled = text.failed ? NULL : wg__arena_strdup(arena, text.data);
    wg__buffer_fini(&text);
    return filled;
}

/* The command and its environment for this run. */
static enum wg_code prepare(struct wg_arena *arena, const struct wg_job_run_opts *opts,
                            const struct wg_job_order *order, const struct wg_job_survey_plan *plan,
                            struct wg_job_attempt *out, struct wg_error *err)
{
    struct values values = {0};
    size_t count = 0;
    fill_values(order, &values);
    while (opts->words[count] != NULL)
        count++;
    char **words = wg__arena_alloc(arena, count + 1, sizeof *words);
    const char **variables = wg__arena_alloc(arena, VARIABLES, sizeof *variables);
    bool is_whole = words != NULL && variables != NULL;
    for (size_t i = 0; i < count && is_whole; i++) {
        words[i] = fill_word(arena, opts->words[i], &values);
        is_whole = words[i] != NULL;
    }
    if (is_whole) {
        size_t used = 0;
        variables[used++] = variable(arena, "WATTGOV_BATCH_SIZE", values.batch_size);
        variables[used++] = variable(arena, "WATTGOV_EPOCHS", values.epochs);
        variables[used++] = variable(arena, "WATTGOV_RUN", values.run);
        if (order->run.is_survey)
            variables[used++] = variable(arena, "WATTGOV_SURVEY", "1");
        if (values.learning_rate[0] != '\0')
            variables[used++] = variable(arena, "WATTGOV_LEARNING_RATE", values.learning_rate);
        for (size_t i = 0; i < used && is_whole; i++)
            is_whole = variables[i] != NULL;
    }
    if (!is_whole)
        return wg__fail(err, WG_ENOMEM, "job '%s': out of memory", order->job.name);
    *out =
        (struct wg_job_attempt){.order = order,
                                .steps_per_epoch = plan->samples_per_epoch / order->run.batch_size,
                                .most_s = plan->most_s,
                                .words = words,
                                .variables = variables};
    return WG_OK;
}

/* What became of an attempt. */
static enum wg_run_state judge(const struct wg_job_watch *watch, const struct wg_job_result *result)
{
    if (result->how == WG_JOB_INTERRUPTED)
        return WG_RUN_RETURNED;
    if (watch->run.is_survey)
        return result->epochs > 0 && result->energy_j > 0 ? WG_RUN_REACHED : WG_RUN_CRASHED;
    if (!watch->was_told) /* whether the target was reached is not known */
        return WG_RUN_CRASHED;
    switch (watch->answer) {
    case WG_JOB_REACHED:
        return WG_RUN_REACHED;
    case WG_JOB_STOP:
        return WG_RUN_STOPPED;
    case WG_JOB_EXHAUSTED:
        return WG_RUN_FAILED;
    default:
        break;
    }
    /* It has ended by itself, before the target. */
    return result->exit_status != 0 ? WG_RUN_CRASHED : WG_RUN_FAILED;
}

/* Tells the store, more than once if need be: these numbers exist nowhere else. */
static enum wg_code report(const struct wg_job_watch *watch, const struct wg_job_result *result,
                           enum wg_run_state state, struct wg_job_receipt *out,
                           struct wg_error *err)
{
    const struct wg_job_report told = {.run = watch->run.id,
                                       .state = state,
                                       .epochs = watch->run.is_survey ? result->epochs
                                                                      : watch->last_epoch,
                                       .energy_j = result->energy_j,
                                       .time_s = result->time_s,
                                       .metric = watch->metric,
                                       .setting = result->setting,
                                       .steps_per_epoch = result->steps_per_epoch,
                                       .saved_j = result->saved_j,
                                       .saved_sd_j = result->saved_sd_j,
                                       .now_s = now_s(watch->opts)};
    enum wg_code code = WG_OK;
    for (unsigned i = 0; i < REPORT_TRIES; i++) {
        code = wg__job_report(watch->store, watch->name, &told, out, err);
        if (code == WG_OK || code == WG_EINVAL || code == WG_ESTATE || code == WG_ENOENT)
            return code;
    }
    struct wg_error hint;
    (void)wg__fail(&hint, code,
                   "when the store works again: wattgov job report %s %lld --%s --epochs %g "
                   "--energy %.17g --time %.17g",
                   watch->name, (long long)told.run, wg__run_state_name(state), told.epochs,
                   told.energy_j, told.time_s);
    say(watch->opts, hint.text);
    return code;
}

static void sum_up(struct wg_job_run_summary *out, const struct wg_store_run *run,
                   const struct wg_job_result *result, double cost_j)
{
    out->recurrence = run->recurrence;
    out->batch_size = run->batch_size;
    out->exit_status = result->exit_status;
    out->energy_j += result->energy_j;
    out->time_s += result->time_s;
    out->cost_j += cost_j;
    *(run->is_survey ? &out->surveys : &out->attempts) += 1;
}

/* What is remembered of an attempt to decide whether there is another. */
struct verdict {
    enum wg_run_state state;
    bool is_survey, was_told, has_metric;
};

/* One attempt: opened, run and reported. `out` says what became of it. */
static enum wg_code
attempt_once(struct wg_store *store, const char *name, const struct wg_job_run_opts *opts,
             const struct wg_job_request *request, const struct wg_job_survey_plan *plan,
             struct wg_job_run_summary *summary, struct verdict *out, struct wg_error *err)
{
    struct wg_job_order order;
    struct wg_job_attempt attempt;
    struct wg_job_receipt receipt = {0};
    struct wg_job_result result = {.setting = NAN};
    struct wg_arena arena;
    struct wg_error ignored;
    enum wg_code code = wg__job_next(store, name, request, &order, err);
    if (code != WG_OK)
        return code;
    struct wg_job_watch watch = {.store = store,
                                 .name = name,
                                 .opts = opts,
                                 .job = &order.job,
                                 .run = order.run,
                                 .next_beat_s = request->now_s + order.run.lease_s / 4,
                                 .metric = NAN};
    wg__arena_init(&arena);
    code = prepare(&arena, opts, &order, plan, &attempt, err);
    if (code == WG_OK) {
        /* Whoever waits for a lock meanwhile reads no step and passes no signal on. */
        store->ops->set_patience(store, watch_patience_s);
        code = opts->run(opts->context, &attempt, &watch, &result, err);
        store->ops->set_patience(store, 0);
    }
    wg__arena_fini(&arena);
    if (code != WG_OK) { /* it never ran: nothing is learned */
        (void)report(&watch, &(struct wg_job_result){.setting = NAN}, WG_RUN_RETURNED, &receipt,
                     &ignored);
        return code;
    }
    *out = (struct verdict){.state = judge(&watch, &result),
                            .is_survey = watch.run.is_survey,
                            .was_told = watch.was_told,
                            .has_metric = watch.has_metric};
    code = report(&watch, &result, out->state, &receipt, err);
    sum_up(summary, &order.run, &result, receipt.cost_j);
    return code;
}

/* Attempts in a row that came to the same bad end. */
struct streak {
    unsigned crashed, diverged;
};

/* Whether another attempt makes sense after one that has not reached the target; an error says why
 * not. */
static enum wg_code check_streak(const char *name, const struct wg_job_run_opts *opts,
                                 const struct verdict *last,
                                 const struct wg_job_run_summary *summary, struct streak *streak,
                                 struct wg_error *err)
{
    const unsigned crashes = opts->crashes > 0 ? opts->crashes : CRASHES_DEFAULT;
    const unsigned diverged = opts->diverged > 0 ? opts->diverged : WG_JOB_DIVERGED_MAX;
    if (last->state == WG_RUN_CRASHED && summary->exit_status == 0 && !last->was_told)
        return wg__fail(err, WG_EDATA,
                        "job '%s': the command has ended without telling its metric once; nothing "
                        "was learned from this run",
                        name);
    streak->crashed = last->state == WG_RUN_CRASHED ? streak->crashed + 1 : 0;
    streak->diverged =
        last->state != WG_RUN_CRASHED && !last->has_metric ? streak->diverged + 1 : 0;
    if (streak->crashed > crashes)
        return wg__fail(err, WG_ESTATE,
                        "job '%s': the command broke %u times in a row, the last time with exit "
                        "status %d; nothing was learned from these runs",
                        name, streak->crashed, summary->exit_status);
    if (streak->diverged >= diverged)
        return wg__fail(
            err, WG_EDATA,
            "job '%s': %u runs in a row have diverged: their metric was never a number, "
            "the last time at batch size %u; mend the command, then run the job again",
            name, streak->diverged, summary->batch_size);
    return WG_OK;
}

/* What no run of the job could give to the command: said before one is opened. */
static enum wg_code check_words(struct wg_store *store, const char *name, char *const *words,
                                struct wg_error *err)
{
    struct wg_store_job job;
    const enum wg_code code = store->ops->job_get(store, name, &job, err);
    if (code != WG_OK || !isnan(wg__job_learning_rate(&job, job.default_batch)))
        return code;
    for (size_t i = 0; words[i] != NULL; i++)
        if (strstr(words[i], "{learning_rate}") != NULL)
            return wg__fail(err, WG_EINVAL,
                            "the command wants a {learning_rate}, but job '%s' was created "
                            "without --learning-rate",
                            name);
    return WG_OK;
}

/* Whether the next attempt may be a survey, and what it needs to know. */
static enum wg_code plan_survey(struct wg_store *store, const char *name,
                                struct wg_job_request *request, struct wg_job_survey_plan *out,
                                struct wg_error *err)
{
    if (!request->may_survey)
        return WG_OK;
    const enum wg_code code = wg__job_survey_plan(store, name, request->gpu_count, out, err);
    request->may_survey = code == WG_OK && !isnan(out->samples_per_epoch);
    return code;
}

enum wg_code wg__job_run(struct wg_store *store, const char *name,
                         const struct wg_job_run_opts *opts, struct wg_job_run_summary *out,
                         struct wg_error *err)
{
    struct wg_job_request request = opts->request;
    struct streak streak = {0};
    bool has_broken_survey = false;
    *out = (struct wg_job_run_summary){0};
    enum wg_code code = check_words(store, name, opts->words, err);
    while (code == WG_OK) {
        struct verdict last;
        struct wg_job_survey_plan plan = {.samples_per_epoch = NAN};
        request.may_survey = opts->request.may_survey && !has_broken_survey;
        code = plan_survey(store, name, &request, &plan, err);
        request.now_s = now_s(opts);
        if (code == WG_OK)
            code = attempt_once(store, name, opts, &request, &plan, out, &last, err);
        if (code != WG_OK)
            return code;
        out->reached = last.state == WG_RUN_REACHED && !last.is_survey;
        out->is_interrupted = last.state == WG_RUN_RETURNED;
        if (out->reached || out->is_interrupted)
            return WG_OK;
        if (!last.is_survey)
            code = check_streak(name, opts, &last, out, &streak, err);
        else if (last.state == WG_RUN_CRASHED)
            has_broken_survey = true; /* this command cannot be looked at for some seconds */
        /* Given up: the job's next recurrence is another day's. */
        if (out->attempts >= WG_ATTEMPTS_MAX)
            return code;
        request.wants_recurrence = true;
        request.recurrence = out->recurrence;
    }
    return code;
}
