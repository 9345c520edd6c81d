/* SPDX-License-Identifier: MIT
 *
 * `wattgov simulate serving`: policies that serve and fine-tune on one GPU, simulated.
 *
 * As with the other studies, all that was given is checked before anything is computed, so a run
 * that fails leaves nothing behind; each file is written whole or not at all.
 *
 * Threads: the main thread; the study starts processes.
 */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/progress_bar.h"
#include "cli/report_serving.h"
#include "cli/serving_args.h"
#include "cli/serving_profile_file.h"
#include "cli/serving_results.h"
#include "cli/serving_timeline.h"
#include "cli/table.h"
#include "simulate/workers.h"

static const struct wg_option options[] = {
    {.name = "profile",
     WG_OPTION_STRING(struct wg_serving_args, profile),
     .value = "FILE",
     .is_required = true,
     .help = "YAML file of the served model: times, powers, clocks."},
    {.name = "arrivals",
     WG_OPTION_LIST(struct wg_serving_args, arrivals),
     .value = "LAW",
     .fallback = "poisson:8",
     .help = "When requests come: uniform:RATE, poisson:RATE (requests/s) or "
             "trace:FILE[,rate=R][,window=burstiest|A:B]; up to 16."},
    {.name = "slo",
     WG_OPTION_STRING(struct wg_serving_args, slo),
     .value = "TIME",
     .is_required = true,
     .help = "A request shall be answered within this: 0.7 (s), 700ms; 0.000001 to 1000000 s."},
    {.name = "slo-change",
     WG_OPTION_LIST(struct wg_serving_args, slo_changes),
     .value = "AT:SLO",
     .fallback = "none",
     .help = "From the moment AT on requests have another SLO: 30:0.25; up to 16, one after "
             "another."},
    {.name = "finetune",
     WG_OPTION_STRING(struct wg_serving_args, finetune),
     .value = "JOB",
     .fallback = "batch=64,iterations=10; off where the profile has no fine-tuning",
     .help = "What is fine-tuned beside it: batch=ROWS,iterations=N (1 to 65536 rows, 1 to 1e9 "
             "iterations), backlog[,batch=ROWS] (without end) or off."},
    {.name = "policy",
     WG_OPTION_LIST(struct wg_serving_args, policies),
     .value = "NAME",
     .fallback = "all",
     .help = "Policy: none, greedy, polythrottle, wattgov or floor (wattgov without fine-tuning, "
             "always shown beside it)."},
    {.name = "batcher",
     WG_OPTION_STRING(struct wg_serving_args, batcher),
     .value = "NAME",
     .fallback = "the policy's own",
     .help = "What runs together, for all policies: wattgov (by deadlines), triton (whoever "
             "waits) or none (one request a batch)."},
    {.name = "drop",
     WG_OPTION_STRING(struct wg_serving_args, drop),
     .value = "RULE",
     .fallback = "the policy's own",
     .help = "What is given up, for all policies: standard (the deadline is past) or early (it "
             "cannot be met)."},
    {.name = "clocks",
     WG_OPTION_STRING(struct wg_serving_args, clocks),
     .value = "WHICH",
     .help = "default (the profile's fastest setting), governed, or a setting by its name."},
    {.name = "duration",
     WG_OPTION_STRING(struct wg_serving_args, duration),
     .value = "TIME",
     .help = "Requests come for so long in each run: 30 (s), 1m; 0.001 to 1000000 s."},
    {.name = "seeds",
     WG_OPTION_UNSIGNED(struct wg_serving_args, seeds),
     .value = "N",
     .min = 1,
     .max = WG_SERVING_SEEDS_MAX,
     .help = "Runs of each policy, each with its own luck."},
    {.name = "seed",
     WG_OPTION_SEED(struct wg_serving_args, seed),
     .value = "N",
     .help = "The first seed; the others follow it."},
    {.name = "believe",
     WG_OPTION_DOUBLE(struct wg_serving_args, believe),
     .value = "FACTOR",
     .min = 0.1,
     .max = 10,
     .help = "The scheduler is told times that are wrong by this factor."},
    {.name = "queue",
     WG_OPTION_UNSIGNED(struct wg_serving_args, queue),
     .value = "N",
     .min = 1,
     .max = WG_QUEUE_CAPACITY_MAX,
     .help = "So many requests may wait; more are refused at once."},
    {.name = "step-share",
     WG_OPTION_DOUBLE(struct wg_serving_args, step_share),
     .value = "SHARE",
     .min = 0,
     .min_is_excluded = true,
     .max = 1,
     .fallback = "the policy's own",
     .help = "wattgov: a step of fine-tuning lasts this share of the SLO."},
    {.name = "deadline-share",
     WG_OPTION_DOUBLE(struct wg_serving_args, deadline_share),
     .value = "SHARE",
     .min = 0,
     .min_is_excluded = true,
     .max = 1,
     .fallback = "the policy's own",
     .help = "wattgov: requests may wait for a step until this share of their SLO."},
    {.name = "min-share",
     WG_OPTION_DOUBLE(struct wg_serving_args, min_share),
     .value = "SHARE",
     .min = 0,
     .max = 0.9,
     .fallback = "the policy's own",
     .help = "wattgov: fine-tuning gets at least this share of the GPU; 0: nothing is promised."},
    {.name = "processes",
     WG_OPTION_UNSIGNED(struct wg_serving_args, processes),
     .value = "N",
     .min = 1,
     .max = WG_WORKERS_MAX,
     .fallback = "one per processor",
     .help = "Runs simulated at once, each in a process; the results do not depend on it."},
    {.name = "json",
     WG_OPTION_FLAG(struct wg_serving_args, json),
     .help = "Write JSON instead of tables."},
    {.name = "csv",
     WG_OPTION_STRING(struct wg_serving_args, csv),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a row per policy and arrival law, as plain text."},
    {.name = "html",
     WG_OPTION_STRING(struct wg_serving_args, html),
     .value = "FILE",
     .fallback = "none",
     .help = "Write a report with plots and a timeline."},
};

static const struct wg_option_set set = {
    .command = "wattgov simulate serving",
    .summary = "Simulates a GPU that serves a model under a latency limit and fine-tunes it "
               "meanwhile, and compares policies.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog =
        "examples:\n"
        "  wattgov simulate serving --profile data/serving/orin-efficientnet-b7.yaml \\\n"
        "      --arrivals uniform:8 --arrivals poisson:8 --slo 0.7 --html report.html\n"
        "  wattgov simulate serving --profile data/serving/tx2-efficientnet-b4.yaml \\\n"
        "      --arrivals poisson:4 --slo 1s --finetune backlog --policy wattgov --seeds 40\n",
};

static enum wg_code check_outputs(const struct wg_serving_args *args, struct wg_error *err)
{
    const struct wg_output_file files[] = {{.option = "csv", .path = args->csv},
                                           {.option = "html", .path = args->html}};
    return wg__output_files_check(files, sizeof files / sizeof *files, err);
}

static void start_progress(void *context, size_t runs)
{
    wg__progress_bar_init(context, "simulating", "runs", runs);
}

static void advance_progress(void *context)
{
    wg__progress_bar_advance(context, 1);
}

static enum wg_code make_report(const struct wg_serving_study *study,
                                const struct wg_serving_study_request *request, const char *command,
                                struct wg_buffer *out, struct wg_error *err)
{
    struct wg_serving_timeline timelines[WG_SERVING_POLICIES_MAX] = {0};
    const size_t law = wg__serving_timeline_law(study, request);
    enum wg_code code = WG_OK;
    for (size_t i = 0; i < request->policy_count && code == WG_OK; i++)
        code = wg__serving_timeline_run(&timelines[i], request, i, law, err);
    if (code == WG_OK)
        wg__report_serving(study, request, timelines, command, out);
    for (size_t i = 0; i < request->policy_count; i++)
        wg__serving_timeline_fini(&timelines[i]);
    return code;
}

static enum wg_code write_results(const struct wg_serving_args *args,
                                  const struct wg_serving_study *study,
                                  const struct wg_serving_study_request *request,
                                  const char *command, struct wg_error *err)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    enum wg_code code = WG_OK;
    if (args->html != NULL) { /* first: it may fail before anything is written */
        code = make_report(study, request, command, &text, err);
        if (code == WG_OK)
            code = wg__write_output(args->html, false, &text, err);
        wg__buffer_fini(&text);
    }
    if (args->csv != NULL && code == WG_OK) {
        wg__serving_csv(study, request, &text);
        code = wg__write_output(args->csv, false, &text, err);
        wg__buffer_fini(&text);
    }
    if (code == WG_OK) {
        if (args->json)
            wg__serving_json(study, request, &text);
        else
            wg__serving_text(study, request, wg__wants_color(stdout), &text);
        code = wg__command_print(stdout, &text, err);
        wg__buffer_fini(&text);
    }
    return code;
}

/* All is checked: computes and writes. */
static enum wg_code run_study(const struct wg_serving_args *args,
                              const struct wg_serving_study_request *request, const char *command,
                              struct wg_error *err)
{
    struct wg_progress_bar progress = {0};
    struct wg_serving_study *study = NULL;
    struct wg_serving_study_request with_progress = *request;
    with_progress.started = start_progress;
    with_progress.progress = advance_progress;
    with_progress.progress_context = &progress;
    enum wg_code code = wg__serving_study_run(&with_progress, &study, err);
    wg__progress_bar_fini(&progress);
    if (code == WG_OK)
        code = write_results(args, study, request, command, err);
    wg__serving_study_free(study);
    return code;
}

static int run_serving(int argc, char *argv[])
{
    struct wg_serving_args args = {
        .clocks = "default",
        .duration = "30s",
        .seeds = 400,
        .seed = 1,
        .believe = 1,
        .queue = 1024,
        .step_share = (double)NAN,
        .deadline_share = (double)NAN,
        .min_share = (double)NAN,
        .processes = (unsigned)wg__processor_count(WG_WORKERS_MAX),
    };
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err = {0};
    struct wg_buffer command;
    struct wg_serving_profile profile = {0}, believed = {0};
    struct wg_serving_study_request request;
    wg__buffer_init(&command);
    wg__command_line(set.command, argc, argv, &command);
    enum wg_code code = check_outputs(&args, &err);
    if (code == WG_OK)
        code = wg__serving_profile_read(&profile, args.profile, &err);
    if (code == WG_OK)
        code = wg__serving_request_make(&args, &profile, &believed, &request, &err);
    if (code == WG_OK)
        code = run_study(&args, &request, command.failed ? NULL : command.data, &err);
    wg__buffer_fini(&command);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

const struct wg_command wg__command_simulate_serving = {
    .name = "serving",
    .summary = "Compare policies that batch, drop and fine-tune under a latency limit",
    .run = run_serving,
};
