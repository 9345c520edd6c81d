/* SPDX-License-Identifier: MIT
 *
 * `wattgov job next` and `wattgov job report`: for schedulers that start runs themselves.
 *
 * Threads: the main thread.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"
#include "cli/job_args.h"
#include "live/job.h"

/* Exit status of `report --epoch` when the run should end; the word on stdout says why. */
enum { EXIT_END = 3 };

struct next_args {
    const char *store;
    const char *gpu_name;
    unsigned gpus;
    double max_power_w;
    double lease_s;
    bool survey;
    bool json;
};

static const struct wg_option next_options[] = {
    {.name = "gpu-name",
     WG_OPTION_STRING(struct next_args, gpu_name),
     .value = "MODEL",
     .help = "Model of the GPUs that the run will get: costs are learned for each apart, what "
             "does not depend on the GPU is carried over."},
    {.name = "gpus",
     WG_OPTION_UNSIGNED(struct next_args, gpus),
     .value = "N",
     .min = 1,
     .max = 100000,
     .help = "How many of them."},
    {.name = "max-power",
     WG_OPTION_DOUBLE(struct next_args, max_power_w),
     .value = "W",
     .unit = "W",
     .min = 0,
     .min_is_excluded = true,
     .max = 1e6,
     .fallback = "that of the job",
     .help = "Their largest power limit together."},
    {.name = "lease",
     WG_OPTION_DURATION(struct next_args, lease_s),
     .value = "TIME",
     .min = 1e-3,
     .max = 365 * 86400.0,
     .fallback = "that of the job",
     .help = "The run is taken back when nothing was heard of it for so long."},
    {.name = "survey",
     WG_OPTION_FLAG(struct next_args, survey),
     .help = "The answer may be a survey: train for some seconds at the largest power limit, and "
             "report the broken number of epochs."},
    {.name = "json", WG_OPTION_FLAG(struct next_args, json), .help = "Write JSON."},
    WG_JOB_OPTION_STORE(struct next_args, store),
};

static const struct wg_option_set next_set = {
    .command = "wattgov job next",
    .word = "NAME",
    .summary = "Opens the next run of a job and says which batch size it should have. Every run "
               "must be reported.",
    .options = next_options,
    .count = sizeof next_options / sizeof next_options[0],
    .epilog = "example:\n"
              "  wattgov job next bert --gpu-name 'NVIDIA A40' --gpus 2 --json\n",
};

static void write_next_json(const struct wg_job_order *order, struct wg_buffer *out)
{
    const struct wg_store_run *run = &order->run;
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.job.next/1");
    wg__json_member_string(&json, "job", order->job.name);
    wg__json_member_uint(&json, "run", (uint64_t)run->id);
    wg__json_member_string(&json, "kind", run->is_survey ? "survey" : "run");
    wg__json_member_uint(&json, "recurrence", run->recurrence);
    wg__json_member_uint(&json, "attempt", run->attempt);
    wg__json_member_uint(&json, "batch_size", run->batch_size);
    wg__json_member_double(&json, "power_limit_w", order->setting);
    wg__json_member_bool(&json, "needs_profile", isnan(order->setting));
    wg__json_member_double(&json, "learning_rate", order->learning_rate);
    wg__json_member_uint(&json, "max_epochs", order->job.max_epochs);
    wg__json_member_double(&json, "lease_s", run->lease_s);
    wg__json_member_string(&json, "gpu_model", run->gpu_model);
    wg__json_member_uint(&json, "gpu_count", run->gpu_count);
    wg__json_member_uint(&json, "taken_back", order->taken_back);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

static void write_next_text(const struct wg_job_order *order, struct wg_buffer *out)
{
    char number[WG_DOUBLE_TEXT_SIZE];
    wg__buffer_printf(out, "%-14s %lld\n", order->run.is_survey ? "survey" : "run",
                      (long long)order->run.id);
    wg__buffer_printf(out, "%-14s %u\n", "batch size", order->run.batch_size);
    wg__format_double(number, order->setting);
    if (isnan(order->setting))
        wg__buffer_printf(out, "%-14s profile\n", "power limit");
    else
        wg__buffer_printf(out, "%-14s %s W\n", "power limit", number);
    if (!isnan(order->learning_rate))
        wg__buffer_printf(out, "%-14s %.6g\n", "learning rate", order->learning_rate);
    wg__buffer_printf(out, "%-14s %llu, attempt %u\n", "recurrence",
                      (unsigned long long)order->run.recurrence, order->run.attempt);
}

static enum wg_code ask(const struct next_args *args, const char *name, struct wg_job_order *order,
                        struct wg_error *err)
{
    char host[WG_STORE_TEXT_SIZE] = "";
    struct wg_store *store = NULL;
    struct wg_store_job job;
    if (strlen(args->gpu_name) >= WG_STORE_TEXT_SIZE || !wg__utf8_is_plain(args->gpu_name))
        return wg__option_reject(err, "gpu-name", args->gpu_name,
                                 "a text of at most 127 bytes without control characters");
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '\0';
    const struct wg_job_request request = {.gpu_model = args->gpu_name,
                                           .gpu_count = args->gpus,
                                           .max_power_w = args->max_power_w > 0 ? args->max_power_w
                                                                                : (double)NAN,
                                           .host = host,
                                           .now_s = wg__clock_wall_s(),
                                           .lease_s = args->lease_s,
                                           .may_survey = args->survey};
    enum wg_code code = wg__job_open_store(&store, args->store, err);
    if (code == WG_OK)
        code = wg__job_find(store, name, &job, err);
    if (code == WG_OK)
        code = wg__job_next(store, name, &request, order, err);
    wg__store_close(store);
    return code;
}

static int run_next(int argc, char *argv[])
{
    struct next_args args = {.gpu_name = "unknown", .gpus = 1};
    struct wg_job_order order = {0};
    struct wg_buffer out;
    struct wg_error err;
    const char *name = NULL;
    int status = WG_EXIT_OK;
    enum wg_code code = wg__job_take_name(&next_set, &argc, &argv, &name, &err);
    if (!wg__command_begin(&next_set, argc, argv, &args, &status))
        return status;
    wg__buffer_init(&out);
    if (code == WG_OK)
        code = ask(&args, name, &order, &err);
    if (code == WG_OK) {
        (args.json ? write_next_json : write_next_text)(&order, &out);
        code = wg__command_print(stdout, &out, &err);
    }
    wg__buffer_fini(&out);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&next_set, &err);
}

const struct wg_command wg__command_job_next = {
    .name = "next",
    .summary = "Opens the next run and says its batch size",
    .run = run_next,
};

struct report_args {
    const char *store;
    bool reached, failed, stopped, crashed, returned;
    double epochs;
    double energy_j;
    double time_s;
    const char *metric;
    unsigned epoch;
    bool json;
};

#define AT_AN_END "none; needed with --reached, --failed and --stopped"

static const struct wg_option report_options[] = {
    {.name = "reached",
     WG_OPTION_FLAG(struct report_args, reached),
     .help = "It ended: the target was reached (a survey: it is done)."},
    {.name = "failed",
     WG_OPTION_FLAG(struct report_args, failed),
     .help = "It ended without the target."},
    {.name = "stopped",
     WG_OPTION_FLAG(struct report_args, stopped),
     .help = "It was ended because 'report --epoch' said so."},
    {.name = "crashed",
     WG_OPTION_FLAG(struct report_args, crashed),
     .help = "It broke: nothing is learned from it, and the recurrence is tried again."},
    {.name = "returned",
     WG_OPTION_FLAG(struct report_args, returned),
     .help = "It is given back: as --crashed, but nobody is to blame."},
    {.name = "epochs",
     WG_OPTION_DOUBLE(struct report_args, epochs),
     .value = "N",
     .min = 0,
     .max = WG_STORE_EPOCHS_MAX,
     .fallback = AT_AN_END,
     .help = "Epochs that it did; a survey's may be broken."},
    {.name = "energy",
     WG_OPTION_DOUBLE(struct report_args, energy_j),
     .value = "J",
     .unit = "J",
     .min = 0,
     .max = 1e15,
     .fallback = AT_AN_END,
     .help = "What its GPUs used together."},
    {.name = "time",
     WG_OPTION_DOUBLE(struct report_args, time_s),
     .value = "S",
     .unit = "s",
     .min = 0,
     .max = 1e9,
     .fallback = AT_AN_END,
     .help = "How long it took."},
    {.name = "epoch",
     WG_OPTION_UNSIGNED(struct report_args, epoch),
     .value = "N",
     .min = 1,
     .max = WG_STORE_EPOCHS_MAX,
     .fallback = "none",
     .help = "It has done N epochs and asks whether it may go on: exit status 0 continue, 3 end "
             "it (reached, stop or exhausted, says the word on standard output)."},
    {.name = "metric",
     WG_OPTION_STRING(struct report_args, metric),
     .value = "VALUE",
     .fallback = "not known",
     .help = "The target metric after that."},
    {.name = "json", WG_OPTION_FLAG(struct report_args, json), .help = "Write JSON."},
    WG_JOB_OPTION_STORE(struct report_args, store),
};

static const struct wg_option_set report_set = {
    .command = "wattgov job report",
    .word = "NAME RUN",
    .summary = "Tells how far a run is, or how it ended. The same end may be told again.",
    .options = report_options,
    .count = sizeof report_options / sizeof report_options[0],
    .epilog = "examples:\n"
              "  wattgov job report bert 12 --epoch 3 --metric 0.71\n"
              "  wattgov job report bert 12 --reached --epochs 7 --energy 81000 --time 410\n",
};

/* The numbers of an end stand with an end, and all of them with one that teaches something. */
static enum wg_code check_numbers(const struct report_args *args, enum wg_run_state state,
                                  struct wg_error *err)
{
    const bool has_some = args->epochs >= 0 || args->energy_j >= 0 || args->time_s >= 0;
    const bool has_all = args->epochs >= 0 && args->energy_j >= 0 && args->time_s >= 0;
    if (state == WG_RUN_OPEN && has_some)
        return wg__fail(err, WG_EINVAL,
                        "--epochs, --energy and --time are told at the end, not with --epoch");
    if (state != WG_RUN_OPEN && state != WG_RUN_CRASHED && state != WG_RUN_RETURNED && !has_all)
        return wg__fail(err, WG_EINVAL, "--epochs, --energy and --time must be given with --%s",
                        wg__run_state_name(state));
    return WG_OK;
}

static enum wg_code read_state(const struct report_args *args, enum wg_run_state *out,
                               struct wg_error *err)
{
    const struct {
        bool is_given;
        enum wg_run_state state;
    } flags[] = {{args->reached, WG_RUN_REACHED},
                 {args->failed, WG_RUN_FAILED},
                 {args->stopped, WG_RUN_STOPPED},
                 {args->crashed, WG_RUN_CRASHED},
                 {args->returned, WG_RUN_RETURNED}};
    const char *first = args->epoch > 0 ? "epoch" : NULL;
    *out = WG_RUN_OPEN;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        if (!flags[i].is_given)
            continue;
        const char *name = wg__run_state_name(flags[i].state);
        if (first != NULL)
            return wg__fail(err, WG_EINVAL, "--%s and --%s were both given: tell one of them",
                            first, name);
        first = name;
        *out = flags[i].state;
    }
    if (first == NULL)
        return wg__fail(err, WG_EINVAL,
                        "one of --epoch N, --reached, --failed, --stopped, --crashed and "
                        "--returned must be given");
    return check_numbers(args, *out, err);
}

static void write_answer(enum wg_job_answer answer, bool as_json, struct wg_buffer *out)
{
    if (!as_json) {
        wg__buffer_printf(out, "%s\n", wg__job_answer_name(answer));
        return;
    }
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.job.report/1");
    wg__json_member_string(&json, "answer", wg__job_answer_name(answer));
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

static void write_receipt(const struct wg_job_receipt *receipt, struct wg_buffer *out)
{
    struct wg_json json;
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.job.report/1");
    wg__json_member_uint(&json, "recurrence", receipt->recurrence);
    wg__json_member_double(&json, "cost_j", receipt->cost_j);
    wg__json_member_bool(&json, "is_repeat", receipt->is_repeat);
    wg__json_member_bool(&json, "wants_retry", receipt->wants_retry);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
}

static double at_least_0(double value)
{
    return value < 0 ? 0 : value;
}

static enum wg_code tell(struct wg_store *store, const struct report_args *args, const char *name,
                         int64_t run, enum wg_run_state state, struct wg_buffer *out,
                         int *status_out, struct wg_error *err)
{
    double metric = NAN;
    if (args->metric != NULL && !wg__parse_double(args->metric, &metric))
        return wg__option_reject(err, "metric", args->metric, "a finite number");
    if (state == WG_RUN_OPEN) {
        enum wg_job_answer answer = WG_JOB_CONTINUE;
        const enum wg_code code =
            wg__job_epoch(store, name, run, args->epoch, metric, wg__clock_wall_s(), &answer, err);
        if (code == WG_OK)
            write_answer(answer, args->json, out);
        *status_out = answer == WG_JOB_CONTINUE ? WG_EXIT_OK : EXIT_END;
        return code;
    }
    const struct wg_job_report report = {.run = run,
                                         .state = state,
                                         .epochs = at_least_0(args->epochs),
                                         .energy_j = at_least_0(args->energy_j),
                                         .time_s = at_least_0(args->time_s),
                                         .metric = metric,
                                         .setting = NAN,
                                         .now_s = wg__clock_wall_s()};
    struct wg_job_receipt receipt;
    const enum wg_code code = wg__job_report(store, name, &report, &receipt, err);
    if (code == WG_OK && args->json)
        write_receipt(&receipt, out);
    return code;
}

static enum wg_code take_run(int *argc, char ***argv, uint64_t *out, struct wg_error *err)
{
    const char *word = wg__command_word(argc, argv);
    if (word == NULL)
        return wg__fail(err, WG_EINVAL, "which run? Its number stands behind the job's name");
    if (!wg__parse_uint64(word, out) || *out == 0 || *out > INT64_MAX)
        return wg__fail(err, WG_EINVAL, "'%s' is not the number of a run", word);
    return WG_OK;
}

static int run_report(int argc, char *argv[])
{
    struct report_args args = {.epochs = -1, .energy_j = -1, .time_s = -1};
    struct wg_store *store = NULL;
    struct wg_store_job job;
    struct wg_buffer out;
    struct wg_error err;
    const char *name = NULL;
    uint64_t run = 0;
    enum wg_run_state state = WG_RUN_OPEN;
    int status = WG_EXIT_OK;
    enum wg_code code = wg__job_take_name(&report_set, &argc, &argv, &name, &err);
    if (code == WG_OK)
        code = take_run(&argc, &argv, &run, &err);
    if (!wg__command_begin(&report_set, argc, argv, &args, &status))
        return status;
    wg__buffer_init(&out);
    if (code == WG_OK)
        code = read_state(&args, &state, &err);
    if (code == WG_OK)
        code = wg__job_open_store(&store, args.store, &err);
    if (code == WG_OK)
        code = wg__job_find(store, name, &job, &err);
    if (code == WG_OK)
        code = tell(store, &args, name, (int64_t)run, state, &out, &status, &err);
    if (code == WG_OK && out.length > 0)
        code = wg__command_print(stdout, &out, &err);
    wg__store_close(store);
    wg__buffer_fini(&out);
    return code == WG_OK ? status : wg__command_fail(&report_set, &err);
}

const struct wg_command wg__command_job_report = {
    .name = "report",
    .summary = "Tells how far a run is, or how it ended",
    .run = run_report,
};
