/* SPDX-License-Identifier: MIT
 *
 * `wattgov simulate training`: policies replayed on measured traces.
 *
 * The command checks all that it was given (options, names, output paths, files) before it computes
 * anything, so a run that fails leaves nothing behind; each file is written whole or not at all.
 *
 * Threads: the main thread; the study starts its own.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/number.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/progress_bar.h"
#include "cli/report_training.h"
#include "cli/table.h"
#include "cli/training_results.h"
#include "optimize/thompson.h"
#include "simulate/study.h"
#include "simulate/workers.h"

enum {
    MANY_MAX = 100000,
    SECONDS_MAX = 1000000, /* of one measurement */
    GPUS_SHOWN_MAX = 64
};

/* What a measurement of a few seconds scatters by, relative. */
static const double probe_noise = 0.01;
static const double survey_noise = 0.02;

struct args {
    const char *trace;
    const char *jobs_file;
    struct wg_option_list gpus;
    struct wg_option_list jobs;
    struct wg_option_list policies;
    unsigned recurrences;
    unsigned seeds;
    uint64_t seed;
    double eta;
    double beta;
    double concurrency;
    unsigned window;
    double target;
    double default_batch_size;
    const char *drift;
    const char *warm_start;
    unsigned warm_recurrences;
    const char *profile_charge;
    double survey_s;
    unsigned threads;
    bool json;
    const char *csv;
    const char *html;
};

static const struct wg_option options[] = {
    {.name = "trace",
     WG_OPTION_STRING(struct args, trace),
     .value = "DIR",
     .is_required = true,
     .help = "Folder with summary_train.csv and a summary_power_<gpu>.csv per GPU."},
    {.name = "gpu",
     WG_OPTION_LIST(struct args, gpus),
     .value = "NAME",
     .fallback = "all of the trace",
     .help = "GPU to replay on."},
    {.name = "job",
     WG_OPTION_LIST(struct args, jobs),
     .value = "NAME",
     .fallback = "all that the trace has",
     .help = "Job to replay."},
    {.name = "jobs",
     WG_OPTION_STRING(struct args, jobs_file),
     .value = "FILE",
     .fallback = "jobs.csv in DIR, or the built-in table",
     .help =
         "Table of the jobs: their targets, default batch sizes and largest numbers of epochs."},
    {.name = "policy",
     WG_OPTION_LIST(struct args, policies),
     .value = "NAME",
     .fallback = "default, zeus, wattgov, oracle",
     .help = "Policy to replay: default, grid, zeus, wattgov or oracle."},
    {.name = "recurrences",
     WG_OPTION_UNSIGNED(struct args, recurrences),
     .value = "N",
     .min = 1,
     .max = MANY_MAX,
     .help = "How often the job recurs."},
    {.name = "seeds",
     WG_OPTION_UNSIGNED(struct args, seeds),
     .value = "N",
     .min = 1,
     .max = MANY_MAX,
     .help = "Replays of each case, each with its own luck."},
    {.name = "seed",
     WG_OPTION_SEED(struct args, seed),
     .value = "N",
     .help = "The first seed; the others follow it."},
    {.name = "eta",
     WG_OPTION_DOUBLE(struct args, eta),
     .value = "SHARE",
     .min = 0,
     .max = 1,
     .help = "Weight of energy against time: 1 counts energy only, 0 time only."},
    {.name = "beta",
     WG_OPTION_DOUBLE(struct args, beta),
     .value = "FACTOR",
     .min = 1,
     .max = HUGE_VAL,
     .help = "zeus: a run is stopped at this many times the least cost so far."},
    {.name = "concurrency",
     WG_OPTION_DOUBLE(struct args, concurrency),
     .value = "N",
     .min = 1,
     .max = WG_IN_FLIGHT_MAX,
     .help = "Mean number of runs of the job that are in flight at once."},
    {.name = "window",
     WG_OPTION_UNSIGNED(struct args, window),
     .value = "N",
     .min = 0,
     .max = WG_THOMPSON_WINDOW_MAX,
     .help = "Only the last N observations of each batch size count; 0 counts all."},
    {.name = "target",
     WG_OPTION_DOUBLE(struct args, target),
     .value = "METRIC",
     .min = -HUGE_VAL,
     .max = HUGE_VAL,
     .fallback = "the job table's",
     .help = "Target metric of the jobs."},
    {.name = "default",
     WG_OPTION_DOUBLE(struct args, default_batch_size),
     .value = "BATCH",
     .min = 1,
     .max = HUGE_VAL,
     .fallback = "the job table's",
     .help = "Default batch size of the jobs."},
    {.name = "drift",
     WG_OPTION_STRING(struct args, drift),
     .value = "JOB@R",
     .fallback = "none",
     .help = "Each job turns into JOB after R recurrences."},
    {.name = "warm-start",
     WG_OPTION_STRING(struct args, warm_start),
     .value = "GPU",
     .fallback = "none",
     .help = "Policies first learn on this GPU and carry over what they can."},
    {.name = "warm-recurrences",
     WG_OPTION_UNSIGNED(struct args, warm_recurrences),
     .value = "N",
     .min = 1,
     .max = MANY_MAX,
     .help = "How long they learn there."},
    {.name = "profile-charge",
     WG_OPTION_STRING(struct args, profile_charge),
     .value = "RULE",
     .help = "What profiling a new batch size costs: 'epoch' (its first epoch at the mean over all "
             "power limits, as Zeus's simulator has it) or 'seconds:S' (S seconds per power limit "
             "that is really measured)."},
    {.name = "survey-seconds",
     WG_OPTION_DOUBLE(struct args, survey_s),
     .value = "S",
     .unit = "s",
     .min = 0,
     .min_is_excluded = true,
     .max = SECONDS_MAX,
     .help = "wattgov: length of one look at a batch size's speed and power."},
    {.name = "threads",
     WG_OPTION_UNSIGNED(struct args, threads),
     .value = "N",
     .min = 1,
     .max = WG_STUDY_THREADS_MAX,
     .fallback = "one per processor",
     .help = "Threads; the results do not depend on it."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON instead of tables."},
    {.name = "csv",
     WG_OPTION_STRING(struct args, csv),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a row per GPU, job, policy and recurrence, as plain text; columns: see below."},
    {.name = "html",
     WG_OPTION_STRING(struct args, html),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a report with plots."},
};

static const struct wg_option_set set = {
    .command = "wattgov simulate training",
    .summary =
        "Replays recurring training jobs on measured energy and time, and compares policies that "
        "choose batch size and GPU power limit.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "columns of --csv:\n"
              "  gpu, job, policy, recurrence   the case, and how many recurrences have passed\n"
              "  cumulative_cost_j              cost of them all, mean over the seeds\n"
              "  low_j, high_j                  its 10 % and 90 % quantiles over the seeds\n"
              "  default_j, oracle_j            what default and oracle are expected to cost\n"
              "\n"
              "examples:\n"
              "  wattgov simulate training --trace data/zeus/trace --html report.html\n"
              "  wattgov simulate training --trace data/zeus/trace --gpu v100 --job squad \\\n"
              "      --policy zeus --policy wattgov --recurrences 50 --seeds 100 --json\n",
};

/* "epoch" or "seconds:S". */
static enum wg_code parse_charge(const char *text, struct wg_training_rules *rules,
                                 struct wg_error *err)
{
    static const char prefix[] = "seconds:";
    rules->charge = WG_CHARGE_EPOCH;
    if (strcmp(text, "epoch") == 0)
        return WG_OK;
    rules->charge = WG_CHARGE_SECONDS;
    rules->probe_noise = probe_noise;
    if (strncmp(text, prefix, sizeof prefix - 1) == 0 &&
        wg__parse_double(text + sizeof prefix - 1, &rules->probe_s) && rules->probe_s > 0 &&
        rules->probe_s <= (double)SECONDS_MAX)
        return WG_OK;
    return wg__option_reject(err, "profile-charge", text,
                             "'epoch' or 'seconds:S' with S above 0 and at most 1000000");
}

/* "JOB@R"; the job's name goes into `job`. */
static enum wg_code parse_drift(const char *text, struct wg_buffer *job,
                                struct wg_training_rules *rules, struct wg_error *err)
{
    const char *at = strrchr(text, '@');
    uint64_t recurrence = 0;
    if (at == NULL || at == text || !wg__parse_uint64(at + 1, &recurrence) || recurrence < 1 ||
        recurrence >= rules->recurrences)
        return wg__option_reject(err, "drift", text,
                                 "JOB@R with R at least 1 and below the number of recurrences");
    rules->drift_at = (size_t)recurrence;
    wg__buffer_append(job, text, (size_t)(at - text));
    return job->failed ? wg__fail(err, WG_ENOMEM, "out of memory") : WG_OK;
}

/* GPU names are compared without case, as the trace does. */
static enum wg_code check_gpu(const struct wg_training_trace *trace, const char *option,
                              const char *value, struct wg_error *err)
{
    const char *known[GPUS_SHOWN_MAX];
    size_t count = 0;
    for (size_t i = 0; i < wg__trace_gpu_count(trace); i++) {
        if (strcasecmp(wg__trace_gpu(trace, i), value) == 0)
            return WG_OK;
        if (count < GPUS_SHOWN_MAX)
            known[count++] = wg__trace_gpu(trace, i);
    }
    return wg__option_reject_name(option, value, "a GPU of the trace", known, count, err);
}

static enum wg_code check_policies(const struct wg_option_list *given, struct wg_error *err)
{
    const char *known[WG_STUDY_POLICIES_MAX] = {"default", "oracle"};
    size_t count = 2;
    for (size_t i = 0; wg__batch_policies[i] != NULL && count < WG_STUDY_POLICIES_MAX; i++)
        if (wg__batch_policies[i] != &wg__batch_policy_fixed)
            known[count++] = wg__batch_policies[i]->name;
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < given->count && code == WG_OK; i++)
        code = wg__option_check_name("policy", given->items[i], "a policy", known, count, err);
    return code;
}

static enum wg_code check_jobs(const struct args *args, const struct wg_job_table *table,
                               bool is_built_in, const char *drift_job, struct wg_error *err)
{
    const char **known = wg__alloc_zeroed(table->count, sizeof *known);
    if (known == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    struct wg_buffer kind;
    wg__buffer_init(&kind);
    wg__buffer_printf(&kind, "a job of %s%s", is_built_in ? "the " : "", table->source);
    for (size_t i = 0; i < table->count; i++)
        known[i] = table->jobs[i].name;
    enum wg_code code = kind.failed ? wg__fail(err, WG_ENOMEM, "out of memory") : WG_OK;
    for (size_t i = 0; i < args->jobs.count && code == WG_OK; i++)
        code =
            wg__option_check_name("job", args->jobs.items[i], kind.data, known, table->count, err);
    if (drift_job != NULL && code == WG_OK)
        code = wg__option_check_name("drift", drift_job, kind.data, known, table->count, err);
    wg__buffer_fini(&kind);
    wg__free(known);
    return code;
}

/* Traces of one's own need a table of one's own: the built-in one knows those of Zeus. */
static enum wg_code check_built_in(const struct args *args, const struct wg_training_trace *trace,
                                   const struct wg_job_table *table, struct wg_error *err)
{
    for (size_t i = 0; i < wg__trace_gpu_count(trace); i++)
        for (size_t j = 0; j < table->count; j++)
            if (wg__trace_has_job(trace, wg__trace_gpu(trace, i), &table->jobs[j]))
                return WG_OK;
    return wg__fail(err, WG_EINVAL,
                    "no case to replay: the trace has none of the jobs of the %s; expected a "
                    "jobs.csv in %s, or --jobs FILE",
                    table->source, args->trace);
}

/* The table that was named, else jobs.csv beside the trace, else the built-in one. */
static enum wg_code open_jobs(const struct args *args, struct wg_job_table **out, bool *is_built_in,
                              struct wg_error *err)
{
    *is_built_in = false;
    if (args->jobs_file != NULL)
        return wg__job_table_open(out, args->jobs_file, err);
    struct wg_buffer path;
    wg__buffer_init(&path);
    wg__buffer_printf(&path, "%s/jobs.csv", args->trace);
    enum wg_code code = path.failed ? wg__fail(err, WG_ENOMEM, "out of memory") : WG_OK;
    /* A link that leads nowhere is there too: the built-in table must not take its place. */
    struct stat status;
    if (code == WG_OK) {
        *is_built_in = lstat(path.data, &status) != 0;
        code = wg__job_table_open(out, *is_built_in ? NULL : path.data, err);
    }
    wg__buffer_fini(&path);
    return code;
}

/* What can be said without opening the trace. */
static enum wg_code check_args(const struct args *args, struct wg_error *err)
{
    const struct wg_output_file files[] = {{.option = "csv", .path = args->csv},
                                           {.option = "html", .path = args->html}};
    const enum wg_code code = check_policies(&args->policies, err);
    return code == WG_OK ? wg__output_files_check(files, sizeof files / sizeof *files, err) : code;
}

static void start_progress(void *context, size_t replays)
{
    wg__progress_bar_init(context, "replaying", "replays", replays);
}

static void advance_progress(void *context)
{
    wg__progress_bar_advance(context, 1);
}

static enum wg_code write_results(const struct args *args, const struct wg_study *study,
                                  const struct wg_study_request *request, const char *command,
                                  struct wg_error *err)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    enum wg_code code = WG_OK;
    if (args->csv != NULL) {
        wg__training_csv(study, &text);
        code = wg__write_output(args->csv, false, &text, err);
        wg__buffer_fini(&text);
    }
    if (args->html != NULL && code == WG_OK) {
        wg__report_training(study, request, command, &text);
        code = wg__write_output(args->html, false, &text, err);
        wg__buffer_fini(&text);
    }
    if (code == WG_OK) {
        if (args->json)
            wg__training_json(study, request, &text);
        else
            wg__training_text(study, request, wg__wants_color(stdout), &text);
        code = wg__command_print(stdout, &text, err);
        wg__buffer_fini(&text);
    }
    return code;
}

/* One --target for several jobs, and it is none of this one's. */
static void explain_target(const struct args *args, size_t job_count, struct wg_error *err)
{
    if (isnan(args->target) || args->jobs.count == 1 || job_count == 1)
        return;
    const struct wg_error cause = *err;
    (void)wg__fail(err, cause.code, "--target is for all jobs, name its job with --job: %s",
                   cause.text);
}

/* Names checked, inputs open: computes and writes. */
static enum wg_code run_study(const struct args *args, const struct wg_study_request *request,
                              bool is_built_in, const char *command, struct wg_error *err)
{
    enum wg_code code =
        is_built_in ? check_built_in(args, request->trace, request->jobs, err) : WG_OK;
    for (size_t i = 0; i < args->gpus.count && code == WG_OK; i++)
        code = check_gpu(request->trace, "gpu", args->gpus.items[i], err);
    if (code == WG_OK && args->warm_start != NULL)
        code = check_gpu(request->trace, "warm-start", args->warm_start, err);
    if (code == WG_OK)
        code = check_jobs(args, request->jobs, is_built_in, request->drift_job, err);
    if (code != WG_OK)
        return code;
    struct wg_progress_bar progress = {0};
    struct wg_study_request with_progress = *request;
    with_progress.started = start_progress;
    with_progress.progress = advance_progress;
    with_progress.progress_context = &progress;
    struct wg_study *study = NULL;
    code = wg__study_run(&with_progress, &study, err);
    wg__progress_bar_fini(&progress);
    if (code == WG_EUNREACHABLE)
        explain_target(args, request->jobs->count, err);
    if (code == WG_OK)
        code = write_results(args, study, request, command, err);
    wg__study_free(study);
    return code;
}

/* The request of `args`, but for the files. `drift_job` keeps the job's name of --drift. */
static enum wg_code make_request(const struct args *args, struct wg_buffer *drift_job,
                                 struct wg_study_request *out, struct wg_error *err)
{
    static const char *const usual[] = {"default", "zeus", "wattgov", "oracle"};
    *out = (struct wg_study_request){
        .gpus = args->gpus.count > 0 ? args->gpus.items : NULL,
        .gpu_count = args->gpus.count,
        .job_names = args->jobs.count > 0 ? args->jobs.items : NULL,
        .job_count = args->jobs.count,
        .policies = args->policies.count > 0 ? args->policies.items : usual,
        .policy_count =
            args->policies.count > 0 ? args->policies.count : sizeof usual / sizeof usual[0],
        .rules = {.eta = args->eta,
                  .survey_s = args->survey_s,
                  .survey_noise = survey_noise,
                  .concurrency = args->concurrency,
                  .recurrences = args->recurrences},
        .beta = args->beta,
        .window = args->window,
        .target_metric = args->target,
        .default_batch_size = args->default_batch_size,
        .warm_gpu = args->warm_start,
        .warm_recurrences = args->warm_recurrences,
        .first_seed = args->seed,
        .seeds = args->seeds,
        .threads = args->threads,
    };
    enum wg_code code = parse_charge(args->profile_charge, &out->rules, err);
    if (code == WG_OK && args->drift != NULL) {
        code = parse_drift(args->drift, drift_job, &out->rules, err);
        out->drift_job = drift_job->data;
    }
    return code;
}

static int run_training(int argc, char *argv[])
{
    struct args args = {
        .recurrences = 100,
        .seeds = 20,
        .seed = 1,
        .eta = 0.5,
        .beta = 2,
        .concurrency = 1,
        .target = NAN,
        .default_batch_size = NAN,
        .warm_recurrences = 100,
        .profile_charge = "epoch",
        .survey_s = 2,
        .threads = (unsigned)wg__processor_count(WG_STUDY_THREADS_MAX),
    };
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err = {0};
    struct wg_buffer drift_job, command;
    struct wg_training_trace *trace = NULL;
    struct wg_job_table *jobs = NULL;
    struct wg_study_request request;
    bool is_built_in = false;
    wg__buffer_init(&drift_job);
    wg__buffer_init(&command);
    wg__command_line(set.command, argc, argv, &command);
    enum wg_code code = make_request(&args, &drift_job, &request, &err);
    if (code == WG_OK)
        code = check_args(&args, &err);
    if (code == WG_OK)
        code = wg__trace_open(&trace, args.trace, &err);
    if (code == WG_OK)
        code = open_jobs(&args, &jobs, &is_built_in, &err);
    if (code == WG_OK) {
        request.trace = trace;
        request.jobs = jobs;
        code = run_study(&args, &request, is_built_in, command.failed ? NULL : command.data, &err);
    }
    wg__job_table_close(jobs);
    wg__trace_close(trace);
    wg__buffer_fini(&command);
    wg__buffer_fini(&drift_job);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

static const struct wg_command command_training = {
    .name = "training",
    .summary = "Compare policies for batch size and power limit of recurring training jobs",
    .run = run_training,
};

static const struct wg_command *const children[] = {
    &command_training, &wg__command_simulate_serving, &wg__command_simulate_tuning, NULL};

const struct wg_command wg__command_simulate = {
    .name = "simulate",
    .summary = "Compare policies on measured data or profiles, without a GPU",
    .children = children,
};
