/* SPDX-License-Identifier: MIT
 *
 * Running a command for a window; see workload_command.h.
 */
#include "live/workload_command.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "live/group_reaper.h"
#include "live/tune_template.h"
#include "live/workload_figures.h"

enum { TAIL_SIZE = 8192, TICK_MS = 50, LINE_MAX_BYTES = 1 << 16 };

static const double grace_s = 2;           /* between SIGTERM and SIGKILL */
static const double total_patience = 10;   /* hung in any case, in patiences */
static const double hopeless_factor = 1.5; /* of a line that tells no error */
static const double hopeless_deviations = 2;

struct command {
    struct wg_workload base;
    struct wg_workload_command_opts opts;
    struct wg_tune_command filled;
    struct wg_group_reaper reaper; /* of the group that runs, should we be killed */
};

/* One run. */
struct run {
    struct command *command;
    const struct wg_workload_plan *plan;
    bool is_measured; /* marks count */
    struct wg_child child;
    int out, err; /* our ends; -1: closed */
    int pidfd;    /* -1: none */
    double start_s;
    double heard_s;        /* output came last */
    double begin_s, end_s; /* of the window; NAN: not told */
    struct wg_buffer text;
    size_t seen;              /* bytes of `text` that were looked at line by line */
    char tail[TAIL_SIZE + 1]; /* of stderr */
    size_t tail_length;
    unsigned hopeless_lines;
    struct wg_workload_sample interim; /* of the last line */
    enum wg_workload_outcome verdict;  /* why it was ended; OK: it was not */
};

static double now_s(void)
{
    return (double)wg__clock_ns() / 1e9;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

bool wg__workload_is_out_of_memory(const char *words, int status)
{
    static const char *const signs[] = {
        "out of memory",         "OutOfMemory",        "OUT_OF_MEMORY", "std::bad_alloc",
        "MemoryError",           "RESOURCE_EXHAUSTED", "ALLOC_FAILED",  "cudaErrorMemoryAllocation",
        "cannot allocate memory"};
    if (status == WG_EXIT_SIGNAL + SIGKILL)
        return true;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcasestr(words, signs[i]) != NULL)
            return true;
    return false;
}

/* -- What it prints --------------------------------------------------------------------------- */

/* Lines as a command prints them while it runs: hopeless when the latency is surely above. */
static void judge_line(struct run *run, const char *line, size_t length)
{
    const struct wg_workload_plan *plan = run->plan;
    if (plan->cut_name == NULL || length > LINE_MAX_BYTES ||
        !wg__workload_figures_line(line, length, &run->interim))
        return;
    const struct wg_workload_figure *figure =
        wg__workload_figure_find(&run->interim, plan->cut_name);
    if (figure == NULL)
        return;
    const bool has_error = figure->error > 0;
    const double least = has_error ? figure->value * (1 - hopeless_deviations * figure->error)
                                   : figure->value / hopeless_factor;
    run->hopeless_lines = least > plan->cut_above ? run->hopeless_lines + 1 : 0;
    if (run->hopeless_lines >= (has_error ? 1 : 2) && run->is_measured)
        run->verdict = WG_WORKLOAD_CUT;
}

static bool is_line(const char *line, size_t length, const char *word)
{
    while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == ' '))
        length--;
    return length == strlen(word) && memcmp(line, word, length) == 0;
}

static void mark(struct run *run, bool begins)
{
    double *moment = begins ? &run->begin_s : &run->end_s;
    if (!isnan(*moment) || (!begins && isnan(run->begin_s)))
        return;
    *moment = now_s();
    if (run->is_measured && run->plan->mark != NULL)
        run->plan->mark(begins, run->plan->context);
}

static void take_lines(struct run *run)
{
    for (;;) {
        const char *line = run->text.data + run->seen;
        const char *newline = memchr(line, '\n', run->text.length - run->seen);
        if (newline == NULL)
            return;
        const size_t length = (size_t)(newline - line);
        if (is_line(line, length, "wattgov: begin"))
            mark(run, true);
        else if (is_line(line, length, "wattgov: end"))
            mark(run, false);
        else
            judge_line(run, line, length);
        run->seen += length + 1;
    }
}

static void keep_tail(struct run *run, const char *bytes, size_t length)
{
    if (length > TAIL_SIZE) {
        bytes += length - TAIL_SIZE;
        length = TAIL_SIZE;
    }
    const size_t keep =
        run->tail_length + length > TAIL_SIZE ? TAIL_SIZE - length : run->tail_length;
    memmove(run->tail, run->tail + run->tail_length - keep, keep);
    for (size_t i = 0; i < length; i++) /* a text for searching */
        run->tail[keep + i] = bytes[i] != '\0' ? bytes[i] : ' ';
    run->tail_length = keep + length;
    run->tail[run->tail_length] = '\0';
}

/* Reads what is there; false: nothing more will come. */
static bool pump(struct run *run, int *fd, bool is_out)
{
    char bytes[16384];
    while (*fd >= 0) {
        const ssize_t got = read(*fd, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return true;
        if (got <= 0) {
            close_fd(fd);
            return false;
        }
        run->heard_s = now_s();
        if (is_out && run->text.length + (size_t)got <= WG_WORKLOAD_OUTPUT_MAX) {
            wg__buffer_append(&run->text, bytes, (size_t)got);
            if (!run->text.failed)
                take_lines(run);
        } else if (is_out) {
            run->verdict = WG_WORKLOAD_CRASHED;
        } else {
            keep_tail(run, bytes, (size_t)got);
            if (run->command->opts.shows_stderr)
                (void)!write(STDERR_FILENO, bytes, (size_t)got);
        }
    }
    return false;
}

/* -- Life ------------------------------------------------------------------------------------- */

static enum wg_code start(struct run *run, struct wg_error *err)
{
    int out[2] = {-1, -1}, errors[2] = {-1, -1};
    struct command *command = run->command;
    enum wg_code code = WG_OK;
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0)
        code = wg__fail_errno(err, errno, "no pipe for the command");
    run->out = out[0];
    run->err = errors[0];
    if (code == WG_OK) {
        (void)fcntl(run->out, F_SETFL, O_NONBLOCK);
        (void)fcntl(run->err, F_SETFL, O_NONBLOCK);
        const struct wg_child_setup setup = {.out = out[1],
                                             .err = errors[1],
                                             .is_detached = true,
                                             .environment =
                                                 (const char *const *)command->filled.environment};
        run->start_s = run->heard_s = now_s();
        code =
            wg__child_start(&run->child, command->filled.words, command->opts.signals, &setup, err);
    }
    close_fd(&out[1]);
    close_fd(&errors[1]);
    if (code == WG_OK) {
        wg__group_reaper_tell(&command->reaper, run->child.pid);
        run->pidfd = (int)syscall(SYS_pidfd_open, run->child.pid, 0);
    }
    return code;
}

/* Waits for output or its end, one tick at most. */
static void tick(struct run *run)
{
    struct pollfd polled[3] = {{.fd = run->out, .events = POLLIN},
                               {.fd = run->err, .events = POLLIN},
                               {.fd = run->pidfd, .events = POLLIN}};
    (void)poll(polled, 3, run->pidfd >= 0 ? TICK_MS : 5);
    (void)pump(run, &run->out, true);
    (void)pump(run, &run->err, false);
    wg__child_check(&run->child);
}

/* Ends what is left of the group. */
static void end_group(struct run *run)
{
    const pid_t group = run->child.pid;
    if (group <= 0)
        return;
    if (!run->child.has_ended) {
        (void)kill(-group, SIGTERM);
        const double until_s = now_s() + grace_s;
        while (!run->child.has_ended && now_s() < until_s)
            tick(run);
    }
    (void)kill(-group, SIGKILL);
    while (!run->child.has_ended)
        tick(run);
    wg__group_reaper_tell(&run->command->reaper, 0);
}

static void watch(struct run *run)
{
    const struct wg_workload_plan *plan = run->plan;
    while (!run->child.has_ended && run->verdict == WG_WORKLOAD_OK) {
        tick(run);
        const double t_s = now_s();
        if (run->child.has_ended || run->verdict != WG_WORKLOAD_OK)
            break;
        if (plan->should_stop != NULL && plan->should_stop(plan->context))
            run->verdict = WG_WORKLOAD_INTERRUPTED;
        else if (plan->hung_s > 0 && (t_s - run->heard_s > plan->hung_s ||
                                      t_s - run->start_s > total_patience * plan->hung_s))
            run->verdict = WG_WORKLOAD_HUNG;
    }
    mark(run, false);
    end_group(run);
    (void)pump(run, &run->out, true);
    (void)pump(run, &run->err, false);
}

/* The last line of stderr that says something. */
static void last_words(const struct run *run, char *out, size_t size)
{
    size_t end = run->tail_length;
    while (end > 0 && strchr(" \t\r\n", run->tail[end - 1]) != NULL)
        end--;
    size_t begin = end;
    while (begin > 0 && run->tail[begin - 1] != '\n')
        begin--;
    (void)snprintf(out, size, "%.*s", (int)(end - begin), run->tail + begin);
}

static void explain_failure(const struct run *run, char why[WG_WORKLOAD_WHY_SIZE])
{
    char words[128], name[WG_SIGNAL_NAME_SIZE];
    last_words(run, words, sizeof words);
    const char *joint = words[0] != '\0' ? ": " : "";
    if (run->child.signal != 0) {
        wg__signal_name(name, run->child.signal);
        (void)snprintf(why, WG_WORKLOAD_WHY_SIZE, "ended by %s%s%s", name, joint, words);
    } else {
        (void)snprintf(why, WG_WORKLOAD_WHY_SIZE, "exit status %d%s%s", run->child.status, joint,
                       words);
    }
}

/* What became of the run; `why` of a failure. */
static enum wg_workload_outcome judge(const struct run *run, char why[WG_WORKLOAD_WHY_SIZE])
{
    why[0] = '\0';
    switch (run->verdict) {
    case WG_WORKLOAD_HUNG:
        (void)snprintf(why, WG_WORKLOAD_WHY_SIZE, "no output for %.0f s, no end after %.0f s",
                       now_s() - run->heard_s, now_s() - run->start_s);
        return WG_WORKLOAD_HUNG;
    case WG_WORKLOAD_CRASHED:
        (void)snprintf(why, WG_WORKLOAD_WHY_SIZE, "it printed more than %d MiB",
                       WG_WORKLOAD_OUTPUT_MAX >> 20);
        return WG_WORKLOAD_CRASHED;
    case WG_WORKLOAD_CUT:
        (void)snprintf(why, WG_WORKLOAD_WHY_SIZE, "%.100s is above %.4g for sure",
                       run->plan->cut_name, run->plan->cut_above);
        return WG_WORKLOAD_CUT;
    case WG_WORKLOAD_INTERRUPTED:
        return run->verdict;
    default:
        break;
    }
    if (run->child.status == 0)
        return WG_WORKLOAD_OK;
    explain_failure(run, why);
    return wg__workload_is_out_of_memory(run->tail, run->child.status) ? WG_WORKLOAD_OUT_OF_MEMORY
                                                                       : WG_WORKLOAD_CRASHED;
}

static void read_figures(struct run *run, struct wg_workload_sample *out, struct wg_error *err,
                         enum wg_code *code)
{
    struct wg_error cause;
    if (out->outcome == WG_WORKLOAD_CUT) {
        memcpy(out->figures, run->interim.figures, sizeof out->figures);
        out->figure_count = run->interim.figure_count;
        out->requests = run->interim.requests;
        return;
    }
    *code = wg__workload_figures_parse(run->text.data != NULL ? run->text.data : "",
                                       run->text.length, out, &cause);
    if (*code == WG_EDATA) {
        *code = WG_OK;
        out->outcome = WG_WORKLOAD_CRASHED;
        (void)snprintf(out->why, sizeof out->why, "%.*s", WG_WORKLOAD_WHY_SIZE - 1, cause.text);
    } else if (*code != WG_OK) {
        *err = cause;
    }
}

static enum wg_code run_once(struct command *command, const struct wg_workload_plan *plan,
                             bool is_measured, struct wg_workload_sample *out, struct wg_error *err)
{
    struct run *run = wg__alloc_zeroed(1, sizeof *run);
    if (run == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    run->command = command;
    run->plan = plan;
    run->is_measured = is_measured;
    run->out = run->err = run->pidfd = -1;
    run->begin_s = run->end_s = NAN;
    wg__buffer_init(&run->text);
    out->figure_count = 0;
    out->requests = NAN;
    enum wg_code code = start(run, err);
    if (code == WG_OK) {
        watch(run);
        const double end_s = isnan(run->end_s) ? now_s() : run->end_s;
        out->time_s = end_s - (isnan(run->begin_s) ? run->start_s : run->begin_s);
        out->outcome = judge(run, out->why);
        if (run->text.failed)
            code = wg__fail(err, WG_ENOMEM, "out of memory");
        else if (is_measured && (out->outcome == WG_WORKLOAD_OK || out->outcome == WG_WORKLOAD_CUT))
            read_figures(run, out, err, &code);
        if (isnan(out->requests) && command->opts.requests > 0)
            out->requests = command->opts.requests;
    }
    close_fd(&run->out);
    close_fd(&run->err);
    close_fd(&run->pidfd);
    wg__buffer_fini(&run->text);
    wg__free(run);
    return code;
}

/* -- The workload ----------------------------------------------------------------------------- */

static enum wg_code set(struct wg_workload *workload, const struct wg_workload_setting *settings,
                        size_t count, enum wg_workload_outcome *outcome,
                        char why[WG_WORKLOAD_WHY_SIZE], struct wg_error *err)
{
    struct command *command = (struct command *)workload;
    wg__tune_command_fini(&command->filled);
    *outcome = WG_WORKLOAD_OK;
    why[0] = '\0';
    return wg__tune_template_fill(&command->filled, command->opts.words, settings, count, err);
}

static enum wg_code warm_up(struct wg_workload *workload, const struct wg_workload_plan *plan,
                            enum wg_workload_outcome *outcome, char why[WG_WORKLOAD_WHY_SIZE],
                            struct wg_error *err)
{
    struct wg_workload_sample *sample = wg__alloc_zeroed(1, sizeof *sample);
    if (sample == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    const enum wg_code code = run_once((struct command *)workload, plan, false, sample, err);
    *outcome = sample->outcome;
    memcpy(why, sample->why, WG_WORKLOAD_WHY_SIZE);
    wg__free(sample);
    return code;
}

static enum wg_code measure(struct wg_workload *workload, const struct wg_workload_plan *plan,
                            struct wg_workload_sample *out, struct wg_error *err)
{
    return run_once((struct command *)workload, plan, true, out, err);
}

static enum wg_code recover(struct wg_workload *workload, struct wg_error *err)
{
    (void)workload; /* nothing is left of a run that has ended, and the next one is a new process */
    (void)err;
    return WG_OK;
}

static void command_close(struct wg_workload *workload)
{
    struct command *command = (struct command *)workload;
    wg__group_reaper_stop(&command->reaper);
    wg__tune_command_fini(&command->filled);
    wg__free(command);
}

enum wg_code wg__workload_command_open(struct wg_workload **out,
                                       const struct wg_workload_command_opts *opts,
                                       struct wg_error *err)
{
    static const struct wg_workload_ops ops = {.set = set,
                                               .warm_up = warm_up,
                                               .measure = measure,
                                               .recover = recover,
                                               .close = command_close};
    struct command *command = wg__alloc_zeroed(1, sizeof *command);
    if (command == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    command->base.ops = &ops;
    command->opts = *opts;
    wg__group_reaper_start(&command->reaper);
    *out = &command->base;
    return WG_OK;
}
