/* SPDX-License-Identifier: MIT
 *
 * What comes in while the job runs: its progress, signals, the guard's death, time.
 *
 * One thread waits for all of them with ppoll. Signals stay blocked; a signalfd only tells that one
 * is there, and live/child.h takes it, since it knows whom it was for.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "live/train_parts.h"

enum { COPY_WAIT_MS = 50 };

static const double tick_s = 0.05;        /* while it is searched */
static const double hold_tick_s = 0.2;    /* while nothing is at stake */
static const double signal_tick_s = 0.02; /* while the power is watched for a period */
static const double look_s = 2;
static const double patience_s = 10; /* without a step, before the power is asked */
static const double refusal_s = 45;  /* after which it is said that there is no period */
static const double copy_s = 10;   /* for the last lines of a command, when their reader is slow */
static const double stall_s = 0.5; /* longer without a look at the progress: we were stopped */
static const double catch_up_s = 0.3; /* for what has piled up meanwhile */
static const double kill_s = 30;      /* from SIGTERM to SIGKILL of a job that is to stop */

double wg__train_now_s(const struct wg_train_run *run)
{
    return (double)(wg__clock_ns() - run->start_ns) / 1e9;
}

/* -- Progress --------------------------------------------------------------------------------- */

static void begin_stage(struct wg_train_run *run)
{
    struct wg_error err;
    if (run->governor == NULL && wg__train_stage_begin(run, 0, &err) != WG_OK) {
        wg__train_say(run, "%s", err.text);
        run->failure = err;
    }
}

/* The job speaks for itself: its power is not asked any more. */
static void forget_signal(struct wg_train_run *run)
{
    if (run->signal == NULL)
        return;
    run->signal = NULL;
    if (run->governor == NULL)
        return;
    /* What was measured by the period stands in other units. */
    wg__train_stage_end(run);
    run->result->stages[run->stage].point_count = 0;
    for (size_t i = 0; i < WG_TRAIN_SETTINGS_MAX; i++)
        run->result->stages[run->stage].steps_at[i] = 0;
}

/* Steps of before the newest order are done under the setting of before; and of those that have
 * piled up while we did not run, the moments may be those of the reading. They count, but nothing
 * is measured by them. */
static bool is_backlog(const struct wg_train_run *run, double t_s)
{
    return t_s < run->order_s || wg__train_now_s(run) < run->behind_until_s;
}

static void take_step(struct wg_train_run *run, const struct wg_progress_event *event)
{
    const double t_s = ((double)event->t_ns - (double)run->start_ns) / 1e9;
    forget_signal(run);
    run->result->source = event->is_printed ? WG_TRAIN_SOURCE_PRINTED : WG_TRAIN_SOURCE_TOLD;
    run->result->confidence = 1;
    run->steps = event->value;
    run->step_s = t_s;
    if (isnan(run->counted_steps))
        run->counted_steps = run->steps;
    begin_stage(run);
    if (is_backlog(run, t_s)) {
        run->open.begin_steps = run->steps;
        run->open.begin_step_s = t_s;
        return;
    }
    wg__train_tick(run, t_s, true);
}

/* A job that was resumed tells neither its first epoch nor the steps before it: what counts is from
 * epoch to epoch. */
static void take_epoch(struct wg_train_run *run, double epoch)
{
    run->result->epochs = epoch;
    if (isnan(run->steps))
        return;
    if (isnan(run->first_epoch)) {
        run->first_epoch = epoch == 1 ? 0 : epoch;
        run->first_epoch_steps = epoch == 1 ? 0 : run->steps;
    }
    if (epoch > run->first_epoch)
        run->result->steps_per_epoch =
            (run->steps - run->first_epoch_steps) / (epoch - run->first_epoch);
}

void wg__train_take_event(const struct wg_progress_event *event, void *context)
{
    struct wg_train_run *run = context;
    if (run->is_over)
        return;
    switch (event->kind) {
    case WG_PROGRESS_STEP:
        take_step(run, event);
        break;
    case WG_PROGRESS_EPOCH:
        take_epoch(run, event->value);
        break;
    case WG_PROGRESS_METRIC:
        run->result->metric = event->value;
        break;
    case WG_PROGRESS_BATCH_SIZE:
        run->result->batch_size = event->value;
        break;
    case WG_PROGRESS_KIND_COUNT:
        break;
    }
    if (run->request->event != NULL && !run->request->event(event, run->request->context))
        run->wants_stop = true;
}

/* -- Power ------------------------------------------------------------------------------------ */

static void watch_power(struct wg_train_run *run, double now_s)
{
    struct wg_train_signal *signal = run->signal;
    if (signal == NULL)
        return;
    wg__train_signal_add(signal, run->sample_s, run->power_w, run->clock_hz);
    if (now_s < patience_s)
        return;
    if (!wg__train_signal_look(signal, now_s)) {
        if (now_s > refusal_s && !run->has_refused && run->governor == NULL) {
            run->has_refused = true;
            wg__train_say(run,
                          "no steps: the command reports none, and its power has no period to go "
                          "by (confidence %.2f); nothing is set. Tell the steps by "
                          "$WATTGOV_PROGRESS or --step-regex",
                          isfinite(signal->period.confidence) ? signal->period.confidence : 0);
        }
        return;
    }
    run->result->source = WG_TRAIN_SOURCE_PERIOD;
    run->result->confidence = signal->period.confidence;
    begin_stage(run);
    if (wg__train_signal_step(signal, now_s)) {
        run->steps = signal->steps;
        run->step_s = now_s;
        if (isnan(run->counted_steps))
            run->counted_steps = run->steps;
        wg__train_tick(run, now_s, true);
    }
}

/* -- Time ------------------------------------------------------------------------------------- */

static enum wg_train_phase phase_of(const struct wg_train_run *run)
{
    return run->governor != NULL ? wg__train_governor_phase(run->governor) : WG_TRAIN_WARMUP;
}

static double setting_of(const struct wg_train_run *run)
{
    const struct wg_train_settings *settings = &run->result->stages[run->stage].settings;
    return run->governor != NULL && run->control != NULL ? settings->setting[run->setting]
                                                         : (double)NAN;
}

/* Of all GPUs together. With two knobs the limit stands at its best while the clock is searched. */
static double limit_w(const struct wg_train_run *run)
{
    const struct wg_train_stage *stages = run->result->stages;
    for (size_t i = 0; i < run->result->stage_count; i++) {
        if (run->request->knobs[i] != WG_KNOB_POWER_LIMIT)
            continue;
        const bool was_searched = i < run->stage && stages[i].best < stages[i].settings.count;
        const double limit = i == run->stage ? setting_of(run)
                             : was_searched  ? stages[i].settings.setting[stages[i].best]
                                             : (double)NAN;
        return limit * (double)run->request->gpu_count;
    }
    return NAN;
}

static void tell_status(struct wg_train_run *run, double now_s)
{
    if (run->request->status == NULL)
        return;
    const struct wg_train_status status = {
        .t_s = now_s,
        .source = run->result->source,
        .phase = phase_of(run),
        .is_searching = run->governor != NULL,
        .why = run->why,
        .knob = run->request->knobs[run->stage],
        .setting = setting_of(run),
        .steps = run->steps,
        .power_w = run->power_w,
    };
    run->request->status(&status, run->request->context);
}

/* Keeps a moment for the plots. When there is no room left every second one goes. */
static void keep_moment(struct wg_train_run *run, double now_s)
{
    struct wg_train_result *result = run->result;
    if (now_s < run->next_moment_s || result->moments == NULL)
        return;
    run->next_moment_s = now_s + run->moment_every_s;
    if (result->moment_count == WG_TRAIN_MOMENTS_MAX) {
        result->moment_count /= 2;
        for (size_t i = 0; i < result->moment_count; i++)
            result->moments[i] = result->moments[2 * i];
        run->moment_every_s *= 2;
    }
    result->moments[result->moment_count++] =
        (struct wg_train_moment){.t_s = now_s, .power_w = run->power_w, .limit_w = limit_w(run)};
}

static void check_guard(struct wg_train_run *run)
{
    struct wg_error err;
    if (run->control == NULL || wg__guard_is_alive(&run->guard))
        return;
    wg__guard_stop(&run->guard);
    if (wg__guard_start(&run->guard, NULL, wg__control_journal_fd(run->control), &err) == WG_OK) {
        wg__train_say(run, "the guard has died; another one watches now");
        return;
    }
    /* Without a guard nothing may stay set. */
    wg__train_say(run, "the guard has died and cannot be replaced: %s; all is given back",
                  err.text);
    wg__train_stage_end(run);
    run->result->not_restored += wg__control_restore(run->control, NULL, NULL);
    run->is_foreign = true;
}

static void stop_job(struct wg_train_run *run, double now_s)
{
    const double survey_s = run->request->survey_s;
    run->wants_stop |= survey_s > 0 && (phase_of(run) == WG_TRAIN_HOLD || now_s >= survey_s);
    if (!run->wants_stop)
        return;
    run->result->was_stopped = true;
    if (isnan(run->stop_s)) {
        run->stop_s = now_s;
        wg__child_pass(&run->result->child, SIGTERM, false);
    } else if (now_s - run->stop_s > kill_s) {
        run->stop_s = now_s;
        wg__child_pass(&run->result->child, SIGKILL, false);
    }
}

static void pass_time(struct wg_train_run *run)
{
    const double now_s = wg__train_now_s(run);
    stop_job(run, now_s);
    if (now_s >= run->next_look_s) {
        wg__train_look(run);
        run->next_look_s = now_s + look_s;
    }
    if (now_s < run->next_tick_s)
        return;
    wg__train_tick(run, now_s, false);
    watch_power(run, now_s);
    tell_status(run, now_s);
    keep_moment(run, now_s);
    const bool holds = run->governor != NULL && phase_of(run) == WG_TRAIN_HOLD;
    const double rest_s = run->signal != NULL ? signal_tick_s : holds ? hold_tick_s : tick_s;
    run->next_tick_s = now_s + rest_s;
}

/* -- The loop --------------------------------------------------------------------------------- */

static void take_signals(struct wg_train_run *run)
{
    struct wg_child *child = &run->result->child;
    bool to_group = false;
    for (int signal; (signal = wg__signals_wait(run->request->signals, 0, &to_group)) != 0;) {
        if (signal == SIGCHLD) {
            wg__child_check(child);
        } else {
            wg__child_pass(child, signal, to_group);
            if (run->result->passed_signal == 0)
                run->result->passed_signal = signal;
        }
    }
}

static void wait(const struct wg_train_run *run, int signal_fd, struct pollfd polled[static 3])
{
    const double rest_s = fmax(0, run->next_tick_s - wg__train_now_s(run));
    const struct timespec rest = {.tv_sec = (time_t)rest_s,
                                  .tv_nsec = (long)((rest_s - floor(rest_s)) * 1e9)};
    polled[0] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = wg__progress_fd(run->progress), .events = POLLIN};
    polled[2] =
        (struct pollfd){.fd = run->control != NULL ? run->guard.pidfd : -1, .events = POLLIN};
    if (ppoll(polled, 3, &rest, NULL) < 0)
        polled[0].revents = polled[1].revents = polled[2].revents = 0;
}

/* A governor that was stopped itself (SIGSTOP, a frozen group, a host that stalls, a driver that
 * hangs) finds a heap of steps. */
static void check_stall(struct wg_train_run *run)
{
    const double now_s = wg__train_now_s(run);
    if (now_s - run->seen_s < stall_s)
        return;
    run->behind_until_s = now_s + catch_up_s;
    run->open.has_stall = true;
}

/* The command has ended, and its last lines are on their way: to a reader who may be slow, and who
 * may never come back. */
static void copy_rest(struct wg_train_run *run)
{
    const double end_s = wg__train_now_s(run) + copy_s;
    do {
        (void)wg__progress_pump(run->progress);
        struct pollfd polled = {.fd = wg__progress_fd(run->progress), .events = POLLIN};
        if (!wg__progress_is_copied(run->progress))
            (void)poll(&polled, 1, COPY_WAIT_MS);
    } while (!wg__progress_is_copied(run->progress) && wg__train_now_s(run) < end_s);
}

void wg__train_loop(struct wg_train_run *run)
{
    const int signal_fd = signalfd(-1, &run->request->signals->waited, SFD_CLOEXEC | SFD_NONBLOCK);
    wg__child_check(&run->result->child);
    run->seen_s = wg__train_now_s(run);
    while (!run->result->child.has_ended) {
        struct pollfd polled[3];
        wait(run, signal_fd, polled);
        check_stall(run);
        if (polled[0].revents != 0 || signal_fd < 0)
            take_signals(run);
        if (polled[1].revents != 0)
            (void)wg__progress_pump(run->progress);
        run->seen_s = wg__train_now_s(run);
        if (polled[2].revents != 0)
            check_guard(run);
        pass_time(run);
    }
    copy_rest(run);
    if (signal_fd >= 0)
        (void)close(signal_fd);
}
