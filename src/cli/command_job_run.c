/* SPDX-License-Identifier: MIT
 *
 * `wattgov job run`: one recurrence of a job, trained under the power governor.
 *
 * This joins three parts that do not know each other: the recurrence (live/job_runner.h), the
 * governor around a command (live/train_runner.h), and what the command tells of its progress. A
 * script may tell the metric before or after the epoch that it belongs to; a metric that reaches
 * the target counts at once.
 *
 * Threads: the main thread; the meter has its own.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/device_args.h"
#include "cli/job_args.h"
#include "cli/quantity.h"
#include "cli/train_args.h"
#include "live/job_runner.h"
#include "live/profile_cache.h"
#include "live/train_runner.h"

/* A run that is watched is missed soon, also where its job has a long lease. */
static const double lease_max_s = 600;

struct args {
    struct wg_device_args devices;
    const char *store;
    struct wg_train_args train;
    bool json, no_surveys;
    struct wg_option_command command;
};

static const struct wg_option options[] = {
    WG_DEVICE_OPTIONS(struct args, devices),
    WG_TRAIN_OPTIONS(struct args, train),
    {.name = "json",
     WG_OPTION_FLAG(struct args, json),
     .help = "Write what became of it as JSON, to standard output."},
    {.name = "no-surveys",
     WG_OPTION_FLAG(struct args, no_surveys),
     .help = "Never runs the command for some seconds only, to see what a batch size costs before "
             "it is tried."},
    WG_JOB_OPTION_STORE(struct args, store),
};

static const struct wg_option_set set = {
    .command = "wattgov job run",
    .word = "NAME",
    .summary =
        "Trains a job once, until it reaches its target: asks for the batch size, runs the command "
        "under the power governor, stops runs that are not worth going on, tries again (20 times "
        "at most, 3 when the command breaks or its metric is never a number), and remembers what "
        "was learned. Once a run has told its steps, other batch sizes are surveyed before they "
        "are tried: the command runs for some seconds at the largest limit and gets a SIGTERM; "
        "WATTGOV_SURVEY=1 tells it so. In the command {batch_size}, {learning_rate}, {epochs} and "
        "{run} are replaced; WATTGOV_BATCH_SIZE and so on say the same.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov job run bert -- python train.py --bs {batch_size}\n"
              "  wattgov job run bert --epoch-regex 'epoch (\\d+)' --metric-regex 'acc (\\S+)' \\\n"
              "      -- ./train.sh {batch_size} {learning_rate}",
    WG_OPTION_COMMAND(struct args, command),
};

struct session {
    const struct args *args;
    struct wg_store *store;
    const char *name;
    struct wg_machine *machine;
    struct wg_signals signals;
    struct wg_train_gpus gpus;

    /* The present attempt. */
    const struct wg_job_attempt *attempt;
    struct wg_job_watch *watch;
    unsigned last_epoch;    /* told to the watch */
    unsigned pending_epoch; /* done, and its metric not told yet; 0: none */
    bool has_batch_size;    /* another one than asked for was told, and that was said */
    bool holds_metric;      /* it was told, and its epoch not */
    double held_metric;
    struct wg_train_result result;
    struct wg_train_point cached[WG_POWER_LIMITS_MAX];
};

static void say(const char *line)
{
    (void)fprintf(stderr, "wattgov job run: %s\n", line);
}

static void say_of_job(void *context, const char *line)
{
    (void)context;
    say(line);
}

static void say_of_train(const char *line, void *context)
{
    if (!((const struct session *)context)->args->train.quiet)
        say(line);
}

static double now_s(void *context)
{
    (void)context;
    return wg__clock_wall_s();
}

static void keep_lease(const struct wg_train_status *status, void *context)
{
    (void)status;
    wg__job_watch_tick(((struct session *)context)->watch);
}

/* -- Progress --------------------------------------------------------------------------------- */

static bool tell_epoch(struct session *session, unsigned epoch, const double *metric)
{
    const unsigned most = session->attempt->order->job.max_epochs;
    session->last_epoch = epoch < most ? epoch : most;
    session->pending_epoch = 0;
    session->holds_metric = false;
    return wg__job_watch_epoch(session->watch, session->last_epoch, metric) == WG_JOB_CONTINUE;
}

/* An epoch is done: its metric was told before, or is still to come. One that never came is told
 * when the next epoch is done. */
static bool take_epoch(struct session *session, unsigned epoch)
{
    if (epoch <= session->last_epoch)
        return true;
    if (session->pending_epoch > 0 && session->pending_epoch < epoch &&
        !tell_epoch(session, session->pending_epoch, NULL))
        return false;
    if (session->holds_metric)
        return tell_epoch(session, epoch, &session->held_metric);
    session->pending_epoch = epoch;
    return true;
}

static bool take_metric(struct session *session, double metric)
{
    const struct wg_store_job *job = &session->attempt->order->job;
    const bool is_reached =
        isfinite(metric) && (job->higher_is_better ? metric >= job->target : metric <= job->target);
    if (session->pending_epoch > 0)
        return tell_epoch(session, session->pending_epoch, &metric);
    if (is_reached)
        return tell_epoch(session, session->last_epoch + 1, &metric);
    session->holds_metric = true;
    session->held_metric = metric;
    return true;
}

/* Ranks may tell the batch size of all together, so another number need not be wrong. */
static void check_batch_size(struct session *session, double told)
{
    const struct wg_store_run *run = &session->attempt->order->run;
    struct wg_error note;
    if (session->has_batch_size || told == run->batch_size ||
        told == (double)run->batch_size * run->gpu_count)
        return;
    session->has_batch_size = true;
    (void)wg__fail(&note, WG_EDATA,
                   "the command says that its batch size is %g, but this run is one of %u: does it "
                   "use {batch_size} or $WATTGOV_BATCH_SIZE?",
                   told, run->batch_size);
    say(note.text);
}

/* False ends the command. */
static bool take_event(const struct wg_progress_event *event, void *context)
{
    struct session *session = context;
    const char *metric = session->attempt->order->job.metric;
    const unsigned most = session->attempt->order->job.max_epochs;
    switch (event->kind) {
    case WG_PROGRESS_BATCH_SIZE:
        check_batch_size(session, event->value);
        return true;
    case WG_PROGRESS_EPOCH:
        if (!(event->value >= 1))
            return true;
        /* One beyond the last says that the last one's metric will not come. */
        return take_epoch(session, (unsigned)fmin(event->value, most + 1.0));
    case WG_PROGRESS_METRIC:
        if (event->name[0] != '\0' && strncmp(event->name, metric, sizeof event->name - 1) != 0)
            return true; /* another metric of the script */
        return take_metric(session, event->value);
    default:
        return true;
    }
}

/* What was told last, once the command has ended by itself. */
static void flush_progress(struct session *session)
{
    if (session->pending_epoch > 0)
        (void)tell_epoch(session, session->pending_epoch, NULL);
    else if (session->holds_metric)
        (void)tell_epoch(session, session->last_epoch + 1, &session->held_metric);
}

/* -- Profiles --------------------------------------------------------------------------------- */

static void fill_key(const struct session *session, char owner[WG_STORE_TEXT_SIZE + 8],
                     struct wg_store_profile_key *out)
{
    wg__job_profile_owner(session->name, owner);
    *out = (struct wg_store_profile_key){.owner = owner,
                                         .gpu_model = session->gpus.infos[0]->name,
                                         .gpu_count = (unsigned)session->gpus.count,
                                         .knob = wg_knob_key(WG_KNOB_POWER_LIMIT),
                                         .batch_size = session->attempt->order->run.batch_size};
}

/* Without a profile, or a store that gives it, everything is measured. */
static void load_profile(struct session *session, struct wg_train_request *request)
{
    char owner[WG_STORE_TEXT_SIZE + 8];
    struct wg_store_profile_key key;
    struct wg_error err;
    double when_s;
    size_t count = 0;
    fill_key(session, owner, &key);
    if (wg__store_profile_get(session->store, &key, session->cached, &count, &when_s, &err) !=
        WG_OK)
        say(err.text);
    request->cached = count > 0 ? session->cached : NULL;
    request->cached_count = count;
}

static double cost_per_step(const struct wg_objective *objective,
                            const struct wg_train_point *point)
{
    return wg__objective_cost_per_s(objective, point->power_w) / point->throughput;
}

/* Costs of an epoch, from the profile and how many steps an epoch has. */
static void tell_costs(struct session *session, struct wg_objective objective)
{
    const struct wg_train_result *result = &session->result;
    const struct wg_train_stage *stage = &result->stages[0];
    const struct wg_train_point *best = NULL, *top = NULL;
    const double steps = result->steps_per_epoch;
    objective.max_power_w = result->max_power_w;
    if (stage->best >= stage->settings.count || !(steps > 0))
        return;
    for (size_t i = 0; i < stage->point_count; i++) {
        const struct wg_train_point *point = &stage->points[i];
        if (point->setting == stage->settings.setting[stage->best])
            best = point;
        if (point->setting == stage->settings.setting[stage->settings.count - 1])
            top = point;
    }
    if (best == NULL || top == NULL)
        return;
    const double best_j = steps * cost_per_step(&objective, best);
    const double top_j = steps * cost_per_step(&objective, top);
    if (isfinite(best_j + top_j) && best_j > 0 && top_j > 0)
        wg__job_watch_profile(session->watch, &(struct wg_job_costs){best_j, top_j, best_j});
}

/* The same of a survey, which has measured one setting and no epoch. Epochs that it did; 0: it came
 * to nothing. */
static double tell_survey(struct session *session, struct wg_objective objective)
{
    const struct wg_train_result *result = &session->result;
    const struct wg_train_point *point = &result->stages[0].points[0];
    const double steps = session->attempt->steps_per_epoch;
    objective.max_power_w = result->max_power_w;
    const double epoch_j =
        result->stages[0].point_count > 0 ? steps * cost_per_step(&objective, point) : (double)NAN;
    const bool has_steps =
        result->source == WG_TRAIN_SOURCE_TOLD || result->source == WG_TRAIN_SOURCE_PRINTED;
    if (!has_steps || !isfinite(epoch_j) || !(epoch_j > 0)) {
        if (result->passed_signal == 0)
            say("the survey came to nothing: the command has told no steady steps in its time");
        return 0;
    }
    wg__job_watch_profile(session->watch, &(struct wg_job_costs){epoch_j, epoch_j, epoch_j});
    return fmin(result->steps / steps, session->attempt->order->job.max_epochs);
}

static void save_profile(struct session *session)
{
    const struct wg_train_stage *stage = &session->result.stages[0];
    char owner[WG_STORE_TEXT_SIZE + 8];
    struct wg_store_profile_key key;
    struct wg_error err;
    if (!session->result.is_governed || !isfinite(stage->search_s) || stage->point_count == 0)
        return; /* a search that was cut short would be taken for one that has found the best */
    fill_key(session, owner, &key);
    if (wg__store_profile_put(session->store, &key, wg__clock_wall_s(), stage->points,
                              stage->point_count, &err) != WG_OK)
        say(err.text);
}

/* -- One attempt ------------------------------------------------------------------------------ */

static void announce(const struct session *session)
{
    const struct wg_store_run *run = &session->attempt->order->run;
    if (!session->args->train.quiet)
        (void)fprintf(stderr,
                      "wattgov job run: %s %lld, recurrence %llu, attempt %u: batch size "
                      "%u\n",
                      run->is_survey ? "survey" : "run", (long long)run->id,
                      (unsigned long long)run->recurrence, run->attempt, run->batch_size);
}

/* What its limits have saved of a run's cost. */
static void find_saving(const struct session *session, struct wg_objective objective,
                        struct wg_job_result *out)
{
    static const double two_sided_95 = 1.96;
    const struct wg_train_result *result = &session->result;
    struct wg_train_saving saving;
    wg__train_saving(result, &saving);
    objective.max_power_w = result->max_power_w;
    if (!result->is_governed || !saving.is_known || !(saving.slower_share > -1))
        return;
    const double time_s = result->time_s / (1 + saving.slower_share);
    const double energy_j = result->total.energy_j + saving.energy_j;
    const double paid_j =
        wg__objective_cost_per_s(&objective, result->total.energy_j / result->time_s) *
        result->time_s;
    const double would_be_j = wg__objective_cost_per_s(&objective, energy_j / time_s) * time_s;
    const double sd_j = saving.share_error / two_sided_95 * would_be_j;
    if (!isfinite(would_be_j - paid_j) || !(sd_j > 0))
        return;
    out->saved_j = would_be_j - paid_j;
    out->saved_sd_j = sd_j;
}

/* What became of an attempt, once its command has ended. */
static void take_result(struct session *session, const struct wg_objective *objective,
                        struct wg_job_result *out)
{
    const struct wg_train_result *result = &session->result;
    const struct wg_train_stage *stage = &result->stages[0];
    const bool is_measured = isfinite(result->total.energy_j) && result->total.energy_j > 0;
    const bool has_best = result->is_governed && stage->best < stage->settings.count;
    const bool is_survey = session->attempt->order->run.is_survey;
    const bool has_steps = result->steps_per_epoch > 0 && result->source != WG_TRAIN_SOURCE_PERIOD;
    double epochs = 0;
    if (!result->was_stopped)
        flush_progress(session);
    if (!is_measured)
        say("the energy of this run is not known: nothing can be learned from it");
    if (is_survey) {
        epochs = tell_survey(session, *objective);
    } else {
        tell_costs(session, *objective);
        save_profile(session);
    }
    *out = (struct wg_job_result){
        .how = result->passed_signal != 0 || !is_measured ? WG_JOB_INTERRUPTED : WG_JOB_ENDED,
        .exit_status = result->was_stopped ? 0 : result->child.status,
        .energy_j = is_measured ? result->total.energy_j : 0,
        .time_s = result->time_s,
        .epochs = epochs,
        .steps_per_epoch = has_steps ? result->steps_per_epoch : 0,
        .setting = has_best ? stage->settings.setting[stage->best] : (double)NAN};
    if (!is_survey)
        find_saving(session, *objective, out);
}

static enum wg_code run_attempt(void *context, const struct wg_job_attempt *attempt,
                                struct wg_job_watch *watch, struct wg_job_result *out,
                                struct wg_error *err)
{
    struct session *session = context;
    const struct args *args = session->args;
    const enum wg_knob knob = WG_KNOB_POWER_LIMIT;
    session->attempt = attempt;
    session->watch = watch;
    session->last_epoch = session->pending_epoch = 0;
    session->holds_metric = session->has_batch_size = false;
    session->result = (struct wg_train_result){0};
    announce(session);
    struct wg_train_request request = {.machine = session->machine,
                                       .signals = &session->signals,
                                       .gpus = session->gpus.positions,
                                       .gpu_count = session->gpus.count,
                                       .knobs = &knob,
                                       .knob_count = 1,
                                       .words = attempt->words,
                                       .environment = attempt->variables,
                                       .holder = "wattgov job run",
                                       .root = args->devices.root,
                                       .neighbor_setting = attempt->order->neighbor_setting,
                                       .say = say_of_train,
                                       .event = take_event,
                                       .status = keep_lease,
                                       .context = session};
    enum wg_code code = wg__objective_parse(attempt->order->job.objective, &request.objective, err);
    if (code == WG_OK)
        code = wg__train_args_take(&args->train, &request, err);
    if (code != WG_OK)
        return code;
    if (attempt->order->run.is_survey)
        request.survey_s = attempt->most_s;
    else
        load_profile(session, &request);
    code = wg__train_run(&request, &session->result, err);
    if (code == WG_OK)
        take_result(session, &request.objective, out);
    wg__train_result_fini(&session->result);
    return code;
}

/* -- The recurrence --------------------------------------------------------------------------- */

/* The largest power of all GPUs together; NAN: a GPU has no limit to set. */
static double largest_power_w(const struct session *session)
{
    struct wg_train_settings settings;
    if (wg__train_settings_init(&settings, WG_KNOB_POWER_LIMIT, session->gpus.infos,
                                session->gpus.count, NULL) != WG_OK)
        return NAN;
    return settings.setting[settings.count - 1] * (double)session->gpus.count;
}

static void write_json(const struct session *session, const struct wg_job_run_summary *summary,
                       struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.job.run/1");
    wg__json_member_string(&json, "job", session->name);
    wg__json_member_uint(&json, "recurrence", summary->recurrence);
    wg__json_member_bool(&json, "reached", summary->reached);
    wg__json_member_bool(&json, "interrupted", summary->is_interrupted);
    wg__json_member_uint(&json, "attempts", summary->attempts);
    wg__json_member_uint(&json, "surveys", summary->surveys);
    wg__json_member_uint(&json, "batch_size", summary->batch_size);
    wg__json_member_double(&json, "energy_j", summary->energy_j);
    wg__json_member_double(&json, "time_s", summary->time_s);
    wg__json_member_double(&json, "cost_j", summary->cost_j);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

static int tell_end(const struct session *session, const struct wg_job_run_summary *summary)
{
    char energy[WG_QUANTITY_TEXT_SIZE], surveys[32] = "";
    struct wg_buffer out;
    struct wg_error err;
    int status = summary->reached ? WG_EXIT_OK : WG_EXIT_FAILED;
    wg__joules_text(energy, summary->energy_j);
    if (summary->surveys > 0)
        (void)snprintf(surveys, sizeof surveys, " and %u survey%s", summary->surveys,
                       summary->surveys == 1 ? "" : "s");
    if (!session->args->train.quiet || !summary->reached)
        (void)fprintf(stderr,
                      "wattgov job run: %s after %u attempt%s%s: %s, %.1f s, batch size %u\n",
                      summary->reached          ? "the target was reached"
                      : summary->is_interrupted ? "interrupted, and the run given back"
                                                : "given up",
                      summary->attempts, summary->attempts == 1 ? "" : "s", surveys, energy,
                      summary->time_s, summary->batch_size);
    if (!session->args->json)
        return status;
    wg__buffer_init(&out);
    write_json(session, summary, &out);
    if (wg__command_print(stdout, &out, &err) != WG_OK)
        status = wg__command_fail(&set, &err);
    wg__buffer_fini(&out);
    return status;
}

static int train(struct session *session)
{
    char host[WG_STORE_TEXT_SIZE] = "";
    struct wg_job_run_summary summary;
    struct wg_store_job job;
    struct wg_error err;
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    enum wg_code code = wg__job_open_store(&session->store, session->args->store, &err);
    if (code == WG_OK)
        code = wg__job_find(session->store, session->name, &job, &err);
    if (code == WG_OK)
        code = wg__train_gpus_find(session->machine, &session->gpus, &err);
    if (code == WG_OK && session->gpus.count == 0)
        code = wg__fail(&err, WG_ENODEV,
                        "no GPU is here whose energy could be measured: see 'wattgov devices'");
    if (code != WG_OK)
        return wg__command_fail(&set, &err);
    const struct wg_job_run_opts opts = {.request = {.gpu_model = session->gpus.infos[0]->name,
                                                     .gpu_count = (unsigned)session->gpus.count,
                                                     .max_power_w = largest_power_w(session),
                                                     .host = host,
                                                     .pid = getpid(),
                                                     .may_survey = !session->args->no_surveys,
                                                     .lease_s = fmin(job.lease_s, lease_max_s)},
                                         .words = session->args->command.words,
                                         .run = run_attempt,
                                         .context = session,
                                         .now_s = now_s,
                                         .say = say_of_job};
    code = wg__job_run(session->store, session->name, &opts, &summary, &err);
    if (code != WG_OK)
        return wg__command_fail(&set, &err);
    return tell_end(session, &summary);
}

static int run_job(int argc, char *argv[])
{
    struct args args = {.devices = WG_DEVICE_ARGS_DEFAULT};
    struct wg_error err;
    const char *name = NULL;
    int status = WG_EXIT_OK;
    enum wg_code code = wg__job_take_name(&set, &argc, &argv, &name, &err);
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    if (code == WG_OK && args.command.count == 0)
        code = wg__fail(&err, WG_EINVAL, "what to run? wattgov job run NAME -- CMD [ARG]...");
    struct session *session = code == WG_OK ? wg__alloc_zeroed(1, sizeof *session) : NULL;
    if (code == WG_OK && session == NULL)
        (void)wg__fail(&err, WG_ENOMEM, "out of memory");
    if (session == NULL)
        return wg__command_fail(&set, &err);
    session->args = &args;
    session->name = name;
    wg__signals_block(&session->signals, true);
    /* Wrong options are told before a run is opened. */
    code = wg__train_args_take(&args.train, &(struct wg_train_request){0}, &err);
    if (code == WG_OK)
        code = wg__device_args_open(&args.devices, &session->machine, &err);
    status = code == WG_OK ? train(session) : wg__command_fail(&set, &err);
    wg__signals_restore(&session->signals);
    wg_machine_close(session->machine);
    wg__store_close(session->store);
    wg__free(session);
    return status;
}

const struct wg_command wg__command_job_run = {
    .name = "run",
    .summary = "Trains a job once, under the power governor",
    .run = run_job,
};
