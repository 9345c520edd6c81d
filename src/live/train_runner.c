/* SPDX-License-Identifier: MIT
 *
 * The life of a training run; see train_runner.h.
 *
 *     progress, meter -> control, guard -> command -> loop -> give back -> result
 *
 * The guard stands before the first write, and the command starts last: whatever fails before it
 * costs nobody anything.
 */
#include "live/train_runner.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "live/train_parts.h"

enum { LINE_SIZE = 640, READY_TIMEOUT_MS = 2000, SAMPLE_MIN_MS = 20, SAMPLE_MAX_MS = 100 };

const char *wg__train_source_key(enum wg_train_source source)
{
    static const char *const keys[] = {
#define X(name, text) text,
        WG_TRAIN_SOURCES(X)
#undef X
    };
    return (unsigned)source < WG_TRAIN_SOURCE_COUNT ? keys[source] : "none";
}

void wg__train_say(struct wg_train_run *run, const char *format, ...)
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

/* -- What can be set -------------------------------------------------------------------------- */

static void note_why_not(struct wg_train_run *run, const char *why)
{
    (void)snprintf(run->result->why_not, sizeof run->result->why_not, "%.*s", WG_TRAIN_WHY_SIZE - 1,
                   why);
}

/* The largest limit of all GPUs together: the price of time. */
static double max_power_w(const struct wg_train_run *run)
{
    double sum_w = 0;
    for (size_t g = 0; g < run->request->gpu_count; g++) {
        const struct wg_knob_info *knob = &run->infos[g]->knobs[WG_KNOB_POWER_LIMIT];
        sum_w += knob->is_present ? knob->max : (double)NAN;
    }
    return run->request->gpu_count > 0 ? sum_w : (double)NAN;
}

static enum wg_code find_settings(struct wg_train_run *run, struct wg_error *err)
{
    const struct wg_train_request *request = run->request;
    for (size_t i = 0; i < request->knob_count; i++) {
        const enum wg_code code =
            wg__train_settings_init(&run->result->stages[i].settings, request->knobs[i], run->infos,
                                    request->gpu_count, err);
        if (code != WG_OK)
            return code;
        run->result->stages[i].best = run->result->stages[i].settings.count; /* none yet */
    }
    return WG_OK;
}

static enum wg_code take_knobs(struct wg_train_run *run, struct wg_error *err)
{
    const struct wg_train_request *request = run->request;
    const struct wg_control_opts opts = {
        .state_dir = request->state_dir, .holder = request->holder, .root = request->root};
    enum wg_code code = wg__control_open(&run->control, request->machine, &opts, err);
    if (code != WG_OK)
        return code;
    code = wg__guard_start(&run->guard, NULL, wg__control_journal_fd(run->control), err);
    for (size_t i = 0; i < request->knob_count && code == WG_OK; i++)
        for (size_t g = 0; g < request->gpu_count && code == WG_OK; g++)
            code = wg__control_take(run->control, request->gpus[g], request->knobs[i], err);
    return code;
}

static void report_restore(const struct wg_restore_note *note, void *context)
{
    struct wg_train_run *run = context;
    if (note->outcome == WG_RESTORE_FAILED)
        wg__train_say(run, "%s: %s did not come back: %s; run 'wattgov restore'", note->label,
                      wg_knob_key(note->knob), note->err->text);
    else if (note->outcome == WG_RESTORE_FOREIGN)
        wg__train_say(run, "%s: %s was set by somebody else meanwhile: left as it is", note->label,
                      wg_knob_key(note->knob));
}

/* From here on nothing is set any more. */
static void give_back(struct wg_train_run *run)
{
    if (run->control != NULL)
        run->result->not_restored += wg__control_restore(run->control, report_restore, run);
    wg__control_close(run->control);
    run->control = NULL;
    wg__guard_stop(&run->guard);
}

void wg__train_observe(struct wg_train_run *run, const char *why)
{
    give_back(run);
    run->result->is_governed = false;
    run->result->stage_count = 1;
    note_why_not(run, why);
    wg__train_say(run, "only observing: %s", why);
}

/* Gets ready to set, or to only observe. Only a knob that somebody else holds, and a lack of
 * memory, are errors. */
static enum wg_code prepare_control(struct wg_train_run *run, struct wg_error *err)
{
    const struct wg_train_request *request = run->request;
    run->result->stage_count = request->knob_count;
    if (request->gpu_count == 0) {
        note_why_not(run, "there is no GPU");
        return WG_OK;
    }
    struct wg_error why;
    enum wg_code code = find_settings(run, &why);
    if (code == WG_OK && (request->observe || request->survey_s > 0)) {
        note_why_not(run, request->observe ? "--observe" : "a survey");
        run->result->stage_count = 1;
        return WG_OK;
    }
    /* Where nothing can be chosen that may be another governor's doing: its name says more. */
    struct wg_error taking;
    const enum wg_code taken = take_knobs(run, &taking);
    if (code == WG_OK || taken == WG_EBUSY) {
        code = taken;
        why = taking;
    }
    if (code == WG_OK) {
        run->result->is_governed = true;
        return WG_OK;
    }
    if (code == WG_EBUSY || code == WG_ENOMEM) {
        give_back(run);
        *err = why;
        return code;
    }
    wg__train_observe(run, why.text);
    return WG_OK;
}

/* -- Life ------------------------------------------------------------------------------------- */

/* Samples come as often as the power meter changes, for a period to be seen. */
static unsigned sample_period_ms(const struct wg_train_run *run)
{
    double update_s = INFINITY;
    for (size_t g = 0; g < run->request->gpu_count; g++) {
        const struct wg_meter_info *meter = &run->infos[g]->meters[WG_METRIC_POWER_W];
        if (meter->is_present && meter->update_period_s > 0)
            update_s = fmin(update_s, meter->update_period_s);
    }
    if (!isfinite(update_s))
        return SAMPLE_MAX_MS;
    return (unsigned)fmax(SAMPLE_MIN_MS, fmin(SAMPLE_MAX_MS, round(update_s * 1e3)));
}

static enum wg_code open_inputs(struct wg_train_run *run, struct wg_error *err)
{
    struct wg_progress_opts opts = run->request->progress;
    opts.sink = wg__train_take_event;
    opts.context = run;
    enum wg_code code = wg__progress_open(&run->progress, &opts, err);
    if (code != WG_OK)
        return code;
    const unsigned period_ms = sample_period_ms(run);
    const struct wg_meter_opts meter_opts = WG_METER_OPTS(.sample_period_ms = period_ms);
    code = wg_meter_open(&run->meter, run->request->machine, &meter_opts, err);
    if (code != WG_OK)
        return code;
    (void)wg_meter_wait_ready(run->meter, READY_TIMEOUT_MS, NULL);
    run->signal = wg__alloc_zeroed(1, sizeof *run->signal);
    run->result->moments = wg__alloc_zeroed(WG_TRAIN_MOMENTS_MAX, sizeof *run->result->moments);
    if (run->signal == NULL || run->result->moments == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    wg__train_signal_init(run->signal, (double)period_ms * 1e-3);
    return WG_OK;
}

/* What the command is told by its environment. Python keeps the lines back that go to a pipe,
 * unless it is asked not to. */
enum { OWN_ENVIRONMENT = 2, ENVIRONMENT_SIZE = 64 };

static enum wg_code spawn_job(struct wg_train_run *run, struct wg_child_setup *setup,
                              bool reads_output, struct wg_error *err)
{
    const struct wg_train_request *request = run->request;
    const char *environment[OWN_ENVIRONMENT + ENVIRONMENT_SIZE + 1] = {0};
    const char *const path = wg__progress_path(run->progress);
    char progress[2 * PATH_MAX + 32], folder[PATH_MAX];
    size_t count = 0;
    /* The command may change its folder before it tells anything. */
    if (path[0] != '/' && getcwd(folder, sizeof folder) != NULL)
        (void)snprintf(progress, sizeof progress, "WATTGOV_PROGRESS=%s/%s", folder, path);
    else
        (void)snprintf(progress, sizeof progress, "WATTGOV_PROGRESS=%s", path);
    environment[count++] = progress;
    if (reads_output && getenv("PYTHONUNBUFFERED") == NULL)
        environment[count++] = "PYTHONUNBUFFERED=1";
    for (size_t i = 0; request->environment != NULL && request->environment[i] != NULL; i++) {
        if (i == ENVIRONMENT_SIZE)
            return wg__fail(err, WG_EINVAL, "more than %d variables for the command",
                            ENVIRONMENT_SIZE);
        environment[count++] = request->environment[i];
    }
    setup->environment = environment;
    const enum wg_code code =
        wg__child_start(&run->result->child, request->words, request->signals, setup, err);
    setup->environment = NULL;
    return code;
}

static enum wg_code start_job(struct wg_train_run *run, struct wg_error *err)
{
    const struct wg_train_request *request = run->request;
    const bool reads_output = request->progress.step_regex != NULL ||
                              request->progress.epoch_regex != NULL ||
                              request->progress.metric_regex != NULL;
    struct wg_train_output output = {.child = {.out = -1, .err = -1}, .ours = {-1, -1}};
    enum wg_code code = reads_output ? wg__train_output_open(&output, err) : WG_OK;
    if (code == WG_OK)
        code = wg_window_begin(&run->total, run->meter, "train", request->gpus, request->gpu_count,
                               err);
    run->start_ns = wg__clock_ns();
    wg__train_tick(run, 0, false); /* reads the power before the job draws any */
    wg__train_signal_idle(run->signal, run->power_w);
    if (code == WG_OK)
        code = spawn_job(run, &output.child, reads_output, err);
    if (code == WG_OK && reads_output)
        code = wg__train_output_connect(&output, run->progress, err);
    wg__train_output_close(&output);
    return code;
}

static enum wg_code finish(struct wg_train_run *run, struct wg_error *err)
{
    struct wg_train_result *result = run->result;
    result->time_s = wg__train_now_s(run);
    wg_window_end(run->total);
    wg__train_stage_end(run);
    result->steps = run->steps;
    result->ranks = wg__progress_ranks(run->progress);
    if (run->failure.code != WG_OK) {
        *err = run->failure;
        return run->failure.code;
    }
    return wg_window_read(run->total, &result->total, result->devices, WG_TRAIN_GPUS_MAX, err);
}

static void run_close(struct wg_train_run *run, struct wg_train_signal *signal)
{
    run->is_over = true; /* closing the progress reads what came since */
    wg__train_stage_end(run);
    give_back(run);
    wg_window_free(run->total);
    wg_meter_close(run->meter);
    wg__progress_close(run->progress);
    wg__free(signal);
}

enum wg_code wg__train_run(const struct wg_train_request *request, struct wg_train_result *out,
                           struct wg_error *err)
{
    *out = (struct wg_train_result){.steps = NAN,
                                    .epochs = NAN,
                                    .metric = NAN,
                                    .steps_per_epoch = NAN,
                                    .batch_size = NAN,
                                    .total.energy_j = NAN};
    for (size_t i = 0; i < WG_TRAIN_STAGES_MAX; i++)
        out->stages[i].search_s = NAN;
    if (request->gpu_count > WG_TRAIN_GPUS_MAX)
        return wg__fail(err, WG_EINVAL, "%zu GPUs, at most %d", request->gpu_count,
                        WG_TRAIN_GPUS_MAX);
    struct wg_train_run run = {.request = request,
                               .result = out,
                               .guard.pidfd = -1,
                               .why = "waiting for the first steps",
                               .steps = NAN,
                               .step_s = NAN,
                               .counted_steps = NAN,
                               .first_epoch = NAN,
                               .power_w = NAN,
                               .moment_every_s = 0.2,
                               .stop_s = NAN};
    for (size_t g = 0; g < request->gpu_count; g++)
        run.infos[g] = wg_device_get_info(wg_machine_device(request->machine, request->gpus[g]));
    out->max_power_w = max_power_w(&run);
    enum wg_code code = open_inputs(&run, err);
    struct wg_train_signal *signal = run.signal;
    if (code == WG_OK)
        code = prepare_control(&run, err);
    if (code == WG_OK)
        code = start_job(&run, err);
    if (code == WG_OK) {
        wg__train_loop(&run);
        code = finish(&run, err);
    }
    run_close(&run, signal);
    return code;
}

void wg__train_result_fini(struct wg_train_result *result)
{
    wg__free(result->moments);
    result->moments = NULL;
}
