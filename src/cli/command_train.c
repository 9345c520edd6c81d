/* SPDX-License-Identifier: MIT
 *
 * `wattgov train`: the power governor around a training command.
 *
 * While the command runs, a line on stderr tells each choice; at the end the report goes there too,
 * for stdout is the command's. The exit status is the command's; only when that is 0, a report that
 * could not be written, or a setting that did not come back, makes it 1.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "cli/command.h"
#include "cli/device_args.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/quantity.h"
#include "cli/table.h"
#include "cli/train_args.h"
#include "cli/train_cache.h"
#include "cli/train_report.h"
#include "optimize/power_curve.h"
#include "optimize/power_limit.h"

struct args {
    struct wg_device_args devices;
    const char *objective;
    struct wg_option_list knobs;
    struct wg_train_args train;
    const char *progress;
    bool json;
    const char *output;
    const char *html;
    const char *name;
    unsigned batch_size;
    const char *store;
    bool no_cache;
    struct wg_option_command command;
};

static const char *const knob_choices[] = {"power_limit", "gpu_clock", NULL};

static const struct wg_option options[] = {
    {.name = "objective",
     WG_OPTION_STRING(struct args, objective),
     .value = "WHAT",
     .help =
         "What is least: energy, time, cost:ETA (ETA of energy, the rest of time), or slowdown:F "
         "(energy, at most F times as long)."},
    {.name = "knob",
     WG_OPTION_LIST(struct args, knobs),
     .value = "KNOB",
     .choices = knob_choices,
     .fallback = "power_limit",
     .help =
         "What is moved: power_limit or gpu_clock; both, one after the other, when given twice."},
    WG_DEVICE_OPTIONS(struct args, devices),
    WG_TRAIN_OPTIONS(struct args, train),
    {.name = "progress",
     WG_OPTION_STRING(struct args, progress),
     .value = "FILE|socket",
     .fallback = "a file of its own",
     .help = "What $WATTGOV_PROGRESS names for the command: a file, or a socket."},
    {.name = "name",
     WG_OPTION_STRING(struct args, name),
     .value = "NAME",
     .fallback = "the command and its folder",
     .help = "What the profile is remembered under, for the next run to begin with."},
    {.name = "batch-size",
     WG_OPTION_UNSIGNED(struct args, batch_size),
     .value = "N",
     .min = 1,
     .max = UINT_MAX,
     .fallback = "not known",
     .help = "Batch size; each has a profile of its own."},
    {.name = "store",
     WG_OPTION_STRING(struct args, store),
     .value = "FILE",
     .fallback = "jobs.db in the state directory",
     .help = "Where profiles are remembered."},
    {.name = "no-cache",
     WG_OPTION_FLAG(struct args, no_cache),
     .help = "Neither uses nor remembers a profile."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Writes JSON instead of a table."},
    {.name = "output",
     .letter = 'o',
     WG_OPTION_STRING(struct args, output),
     .value = "FILE",
     .fallback = "standard error; JSON: standard output",
     .help = "Where the table or the JSON goes."},
    {.name = "html",
     WG_OPTION_STRING(struct args, html),
     .value = "FILE",
     .help = "Writes a page with plots too."},
};

static const struct wg_option_set set = {
    .command = "wattgov train",
    .summary =
        "Runs a training command and finds, while it trains, the power limit (or clock) at which a "
        "step costs least; holds it, and gives the original back at the end, whatever the end is. "
        "Signals are passed on to the command, and its exit status is that of wattgov.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov train -- python train.py\n"
              "  wattgov train --objective slowdown:1.05 --step-regex 'step (\\d+)' -- ./train.sh\n"
              "  wattgov train --observe --html run.html -- torchrun --nproc-per-node 8 train.py",
    WG_OPTION_COMMAND(struct args, command),
};

static const double progress_first_s = 15;

struct session {
    const struct args *args;
    struct wg_machine *machine;
    struct wg_signals signals;
    struct wg_train_gpus gpus;
    enum wg_knob knobs[WG_TRAIN_STAGES_MAX];
    char holder[128];
    struct wg_train_request request;
    struct wg_train_result result;
    struct wg_train_cache_opts cache;
    struct wg_train_point cached[WG_POWER_LIMITS_MAX];
    /* What was told last. */
    enum wg_train_phase phase;
    double setting;
    bool has_steps;
    double progress_at_s, progress_every_s; /* of the next line of progress */
    double told_s, told_steps;              /* at the last one */
};

/* -- Arguments -------------------------------------------------------------------------------- */

static enum wg_code take_knobs(struct session *session, struct wg_error *err)
{
    const struct wg_option_list *given = &session->args->knobs;
    session->request.knobs = session->knobs;
    session->knobs[0] = WG_KNOB_POWER_LIMIT;
    session->request.knob_count = 1;
    if (given->count > WG_TRAIN_STAGES_MAX)
        return wg__fail(err, WG_EINVAL, "--knob: given %zu times, at most %d", given->count,
                        WG_TRAIN_STAGES_MAX);
    for (size_t i = 0; i < given->count; i++)
        session->knobs[i] =
            strcmp(given->items[i], "gpu_clock") == 0 ? WG_KNOB_GPU_CLOCK : WG_KNOB_POWER_LIMIT;
    if (given->count > 0)
        session->request.knob_count = given->count;
    if (given->count == 2 && session->knobs[0] == session->knobs[1])
        return wg__fail(err, WG_EINVAL, "--knob: %s is given twice", given->items[0]);
    return WG_OK;
}

static enum wg_code check_outputs(const struct args *args, struct wg_error *err)
{
    const struct wg_output_file files[] = {{.option = "html", .path = args->html},
                                           {.option = "output", .path = args->output}};
    return wg__output_files_check(files, sizeof files / sizeof *files, err);
}

static enum wg_code take_args(struct session *session, struct wg_error *err)
{
    const struct args *args = session->args;
    struct wg_train_request *request = &session->request;
    if (args->command.count == 0)
        return wg__fail(err, WG_EINVAL, "what to run? wattgov train [OPTION]... -- CMD [ARG]...");
    enum wg_code code = wg__objective_parse(args->objective, &request->objective, err);
    if (code != WG_OK) {
        struct wg_error inner = *err;
        return wg__fail(err, code, "--objective: %s", inner.text);
    }
    code = take_knobs(session, err);
    if (code == WG_OK)
        code = wg__train_args_take(&args->train, request, err);
    if (code == WG_OK)
        code = check_outputs(args, err);
    request->words = args->command.words;
    request->neighbor_setting = NAN;
    request->root = args->devices.root;
    request->progress.is_socket = args->progress != NULL && strcmp(args->progress, "socket") == 0;
    request->progress.path = request->progress.is_socket ? NULL : args->progress;
    (void)snprintf(session->holder, sizeof session->holder, "wattgov train: %s",
                   args->command.words[0]);
    request->holder = session->holder;
    return code;
}

/* What an earlier run has measured; without it, or without a store, everything is measured. */
static void load_cache(struct session *session)
{
    const struct args *args = session->args;
    struct wg_error err;
    if (session->gpus.count == 0 || args->no_cache || args->train.observe)
        return;
    session->cache = (struct wg_train_cache_opts){.store = args->store,
                                                  .name = args->name,
                                                  .words = args->command.words,
                                                  .gpu_model = session->gpus.infos[0]->name,
                                                  .gpu_count = session->gpus.count,
                                                  .batch_size = args->batch_size};
    if (wg__train_cache_get(&session->cache, session->knobs[0], session->cached,
                            &session->request.cached_count, &err) != WG_OK) {
        (void)fprintf(stderr, "wattgov train: no profile is remembered: %s\n", err.text);
        session->request.cached_count = 0;
    }
    session->request.cached = session->request.cached_count > 0 ? session->cached : NULL;
    if (session->request.cached != NULL && !args->train.quiet)
        (void)fprintf(stderr,
                      "wattgov train: begins with the profile of an earlier run (%zu settings); "
                      "--no-cache measures anew\n",
                      session->request.cached_count);
}

static void save_cache(const struct session *session)
{
    struct wg_error err;
    if (session->cache.words == NULL || !session->result.is_governed)
        return;
    if (wg__train_cache_put(&session->cache, &session->result.stages[0], &err) != WG_OK)
        (void)fprintf(stderr, "wattgov train: the profile is not remembered: %s\n", err.text);
}

/* -- While it runs ---------------------------------------------------------------------------- */

static void say(const char *line, void *context)
{
    (void)context;
    (void)fprintf(stderr, "wattgov train: %s\n", line);
}

/* How it goes: ever less often, for a run of days has a log of days. */
static void tell_progress(struct session *session, const struct wg_train_status *status)
{
    static const double most_s = 600;
    char value[WG_QUANTITY_TEXT_SIZE], steps[80] = "no steps yet", power[48] = "";
    if (status->t_s < session->progress_at_s)
        return;
    session->progress_every_s = fmin(2 * session->progress_every_s, most_s);
    session->progress_at_s = status->t_s + session->progress_every_s;
    if (isfinite(status->steps))
        (void)snprintf(steps, sizeof steps, "%.0f steps, %.4g a second", status->steps,
                       (status->steps - session->told_steps) / (status->t_s - session->told_s));
    if (isfinite(status->power_w))
        (void)snprintf(power, sizeof power, ", %.1f W", status->power_w);
    session->told_s = status->t_s;
    session->told_steps = isfinite(status->steps) ? status->steps : 0;
    (void)fprintf(stderr, "wattgov train: %.0f s: %s%s", status->t_s, steps, power);
    if (isfinite(status->setting)) {
        wg__knob_text(value, status->knob, status->setting);
        (void)fprintf(stderr, ", %s %s", wg_knob_key(status->knob), value);
    }
    (void)fprintf(stderr, " (%s)\n", status->why);
}

/* A line for each new phase or setting, and some of progress in between. */
static void tell(const struct wg_train_status *status, void *context)
{
    struct session *session = context;
    char value[WG_QUANTITY_TEXT_SIZE] = "";
    tell_progress(session, status);
    if (!status->is_searching)
        return;
    if (isfinite(status->setting))
        wg__knob_text(value, status->knob, status->setting);
    if (!session->has_steps) {
        session->has_steps = true;
        (void)fprintf(stderr, "wattgov train: %.1f s: steps are known (%s)\n", status->t_s,
                      wg__train_source_key(status->source));
    }
    const bool is_new = status->phase != session->phase ||
                        (isfinite(status->setting) && status->setting != session->setting);
    const bool is_told = status->phase == WG_TRAIN_MEASURE || status->phase == WG_TRAIN_HOLD;
    if (!is_new || !is_told)
        return;
    session->phase = status->phase;
    session->setting = status->setting;
    if (session->request.observe || !isfinite(status->setting))
        return;
    (void)fprintf(stderr, "wattgov train: %.1f s: %s %s %s (%s)\n", status->t_s,
                  status->phase == WG_TRAIN_HOLD ? "holding" : "measuring",
                  wg_knob_key(status->knob), value, status->why);
}

/* -- The end ---------------------------------------------------------------------------------- */

/* What the curves of measured jobs let expect of governing, from the power at the one setting that
 * was seen. The unit of speed cancels out, so a job whose steps are not known has an estimate too,
 * by its mean power. */
static double expected_cost_share(const struct session *session)
{
    const struct wg_train_result *result = &session->result;
    const struct wg_train_stage *stage = &result->stages[0];
    const bool is_measured = stage->point_count > 0;
    const double power_w = is_measured ? stage->points[0].power_w : result->total.power_mean_w;
    struct wg_train_settings settings;
    struct wg_power_search search;
    double limits_w[WG_TRAIN_SETTINGS_MAX] = {0};
    size_t index = 0;
    if (result->is_governed || session->gpus.count == 0 ||
        wg__train_settings_init(&settings, WG_KNOB_POWER_LIMIT, session->gpus.infos,
                                session->gpus.count, NULL) != WG_OK)
        return NAN;
    for (size_t i = 0; i < settings.count; i++)
        limits_w[i] = settings.setting[i] * (double)session->gpus.count;
    if (power_w < limits_w[0])
        return 0; /* no limit would act */
    struct wg_objective objective = session->request.objective;
    objective.max_power_w = result->max_power_w;
    if (wg__power_search_init(&search, &objective, WG_POWER_SEARCH_FEW_PROBES, limits_w,
                              settings.count, NAN, NULL) != WG_OK ||
        wg__power_search_tell(&search, settings.count - 1, power_w, 1, NULL) != WG_OK)
        return NAN;
    return wg__power_curve_best_gain(&search, &index);
}

static enum wg_code write_reports(const struct session *session, struct wg_error *err)
{
    const struct args *args = session->args;
    const struct wg_train_report report = {
        .command = args->command.words,
        .objective = args->objective,
        .infos = session->gpus.infos,
        .gpu_count = session->gpus.count,
        .request = &session->request,
        .result = &session->result,
        .expected_cost_share = expected_cost_share(session),
    };
    struct wg_buffer text;
    wg__buffer_init(&text);
    if (args->json)
        wg__train_json(&report, &text);
    else
        wg__train_text(&report, args->output == NULL && wg__wants_color(stderr), &text);
    enum wg_code code = wg__write_output(args->output, !args->json, &text, err);
    if (!args->json && args->output == NULL)
        code = WG_OK; /* nobody reads what we say: no reason to call a training of days failed */
    wg__buffer_fini(&text);
    if (args->html == NULL)
        return code;
    struct wg_error other;
    wg__buffer_init(&text);
    wg__train_page(&report, &text);
    const enum wg_code html_code = wg__write_output(args->html, false, &text, &other);
    wg__buffer_fini(&text);
    if (code == WG_OK && html_code != WG_OK)
        *err = other;
    return code != WG_OK ? code : html_code;
}

static void tell_end(const struct session *session)
{
    const struct wg_child *child = &session->result.child;
    const char *word = session->args->command.words[0];
    if (child->signal != 0) {
        char name[WG_SIGNAL_NAME_SIZE];
        wg__signal_name(name, child->signal);
        (void)fprintf(stderr, "wattgov train: '%s' was ended by %s\n", word, name);
    } else if (child->status != 0) {
        (void)fprintf(stderr, "wattgov train: '%s' ended with exit status %d\n", word,
                      child->status);
    }
}

static int train(struct session *session)
{
    struct wg_error err;
    session->request.machine = session->machine;
    session->request.signals = &session->signals;
    session->request.gpus = session->gpus.positions;
    session->request.gpu_count = session->gpus.count;
    session->request.say = say;
    session->request.status = session->args->train.quiet ? NULL : tell;
    session->request.context = session;
    session->progress_at_s = session->progress_every_s = progress_first_s;
    load_cache(session);
    const enum wg_code code = wg__train_run(&session->request, &session->result, &err);
    int status = session->result.child.status;
    if (code != WG_OK) {
        const int failure = wg__command_fail(&set, &err);
        return status != WG_EXIT_OK ? status : failure;
    }
    tell_end(session);
    save_cache(session);
    if (write_reports(session, &err) != WG_OK) {
        const int failure = wg__command_fail(&set, &err);
        return status != WG_EXIT_OK ? status : failure;
    }
    if (status == WG_EXIT_OK && session->result.not_restored > 0)
        status = WG_EXIT_FAILED;
    return status;
}

static int run_train(int argc, char *argv[])
{
    struct args args = {.devices = WG_DEVICE_ARGS_DEFAULT, .objective = "cost:0.5"};
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err;
    struct session *session = wg__alloc_zeroed(1, sizeof *session);
    if (session == NULL) {
        (void)wg__fail(&err, WG_ENOMEM, "out of memory");
        return wg__command_fail(&set, &err);
    }
    session->args = &args;
    session->setting = NAN;
    enum wg_code code = take_args(session, &err);
    if (code == WG_OK) {
        wg__signals_block(&session->signals, true);
        code = wg__device_args_open(&args.devices, &session->machine, &err);
        if (code == WG_OK)
            code = wg__train_gpus_find(session->machine, &session->gpus, &err);
        status = code == WG_OK ? train(session) : wg__command_fail(&set, &err);
        wg__signals_restore(&session->signals);
    } else {
        status = wg__command_fail(&set, &err);
    }
    wg__train_result_fini(&session->result);
    wg_machine_close(session->machine);
    wg__free(session);
    return status;
}

const struct wg_command wg__command_train = {
    .name = "train",
    .summary = "Run a training command at the power limit where it costs least",
    .run = run_train};
