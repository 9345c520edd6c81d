/* SPDX-License-Identifier: MIT
 *
 * `wattgov measure`: joules of a command, or of the time until Ctrl-C.
 *
 * The meter is ready before the command starts, and the window begins and ends beside it: what
 * wattgov needs to start is in neither energy nor time. The main thread only waits: for a signal,
 * for the end of the command, for the next row of --csv.
 *
 *     open machine and meter -> first samples -> begin, run CMD, end (N times) -> report
 *
 * The report stays out of the command's way: with a command, text goes to stderr, as perf stat and
 * time(1) have it, for stdout is the command's. Whatever becomes of it, the exit status is the
 * command's; only when that is 0, a report that could not be written makes it 1.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/device_args.h"
#include "cli/measure_csv.h"
#include "cli/measure_report.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/table.h"
#include "live/child.h"
#include "wattgov/window.h"

enum {
    REPEAT_MAX = 10000,
    READY_TIMEOUT_MS = 1000, /* a device that is not ready by then is measured from when it is */
};

static const double s_per_year = 365 * 24 * 3600.0;

struct args {
    struct wg_device_args devices;
    double interval_s;
    double duration_s; /* 0: none */
    unsigned repeat;
    const char *csv;
    const char *output;
    bool json;
    struct wg_option_command command;
};

static const struct wg_option options[] = {
    WG_DEVICE_OPTIONS(struct args, devices),
    {.name = "interval",
     WG_OPTION_DURATION(struct args, interval_s),
     .value = "TIME",
     .min = 0.001,
     .max = 60,
     .help = "Time between samples; more are read where a counter's tick is looked for."},
    {.name = "duration",
     WG_OPTION_DURATION(struct args, duration_s),
     .value = "TIME",
     .min = 0.001,
     .max = s_per_year,
     .fallback = "until Ctrl-C",
     .help = "Without a command: how long to measure."},
    {.name = "repeat",
     WG_OPTION_UNSIGNED(struct args, repeat),
     .value = "N",
     .min = 1,
     .max = REPEAT_MAX,
     .help = "Runs the command so many times; shows mean and spread."},
    {.name = "csv",
     WG_OPTION_STRING(struct args, csv),
     .value = "FILE",
     .help = "Writes the samples as rows, while it runs."},
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Writes JSON instead of a table."},
    {.name = "output",
     .letter = 'o',
     WG_OPTION_STRING(struct args, output),
     .value = "FILE",
     .fallback = "standard output; a table beside a command: standard error",
     .help = "Where the table or the JSON goes."},
};

static const struct wg_option_set set = {
    .command = "wattgov measure",
    .summary =
        "Measures energy, time and power of a command, or of the time until Ctrl-C, for each "
        "GPU, CPU and memory domain and in total. Signals are passed on to the command, and "
        "its exit status is that of wattgov.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov measure -- python train.py\n"
              "  wattgov measure --repeat 5 --json --output runs.json -- ./bench\n"
              "  wattgov measure --gpu 0 --interval 100ms --csv power.csv --duration 10s",
    WG_OPTION_COMMAND(struct args, command),
};

struct session {
    const struct args *args;
    struct wg_signals signals;
    struct wg_machine *machine;
    struct wg_meter *meter;
    size_t device_count;
    const struct wg_device_info *const *infos;
    const struct wg_backend_info *const *backends;
    struct wg_error *errors; /* a device: its newest error */
    const char **troubles;   /* a device: points to its text above, or NULL */
    struct wg_measure_csv csv;
    bool csv_failed;
    struct wg_measure_run *runs;
    size_t run_count;
    size_t run_capacity;
    bool is_stopped; /* by a signal: no further run begins */
};

/* --- before and after ------------------------------------------------------------------------- */

static enum wg_code check_args(const struct args *args, struct wg_error *err)
{
    if (args->repeat > 1 && args->command.count == 0)
        return wg__fail(err, WG_EINVAL, "--repeat needs a command: '-- CMD [ARG]...'");
    if (args->duration_s > 0 && args->command.count > 0)
        return wg__fail(err, WG_EINVAL,
                        "--duration is for measuring without a command; a command ends by itself");
    const struct wg_output_file files[] = {{.option = "csv", .path = args->csv},
                                           {.option = "output", .path = args->output}};
    return wg__output_files_check(files, sizeof files / sizeof *files, err);
}

static enum wg_code session_open(struct session *session, const struct args *args,
                                 struct wg_error *err)
{
    *session = (struct session){.args = args};
    wg__signals_block(&session->signals, args->command.count > 0);
    enum wg_code code = wg__device_args_open(&args->devices, &session->machine, err);
    if (code != WG_OK)
        return code;
    session->device_count = wg_machine_device_count(session->machine);
    code = wg__machine_infos(session->machine, &session->infos, err);
    if (code == WG_OK)
        code = wg__machine_backends(session->machine, &session->backends, err);
    if (code != WG_OK)
        return code;
    session->errors = wg__alloc_zeroed(session->device_count + 1, sizeof *session->errors);
    session->troubles = wg__alloc_zeroed(session->device_count + 1, sizeof *session->troubles);
    if (session->errors == NULL || session->troubles == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    code = wg__measure_csv_open(&session->csv, args->csv, session->device_count, err);
    if (code != WG_OK)
        return code;
    const struct wg_meter_opts opts =
        WG_METER_OPTS(.sample_period_ms = (unsigned)lround(args->interval_s * 1000));
    code = wg_meter_open(&session->meter, session->machine, &opts, err);
    if (code != WG_OK)
        return code;
    /* A device that is late or lost says so in its result. */
    (void)wg_meter_wait_ready(session->meter, READY_TIMEOUT_MS, NULL);
    return WG_OK;
}

static void session_close(struct session *session)
{
    for (size_t i = 0; i < session->run_count; i++)
        wg__free(session->runs[i].devices);
    wg__free(session->runs);
    wg_meter_close(session->meter);
    wg_machine_close(session->machine);
    wg__free((void *)session->infos);
    wg__free((void *)session->backends);
    wg__free((void *)session->troubles);
    wg__free(session->errors);
    (void)wg__measure_csv_close(&session->csv, NULL);
    wg__signals_restore(&session->signals);
}

/* --- while it runs ---------------------------------------------------------------------------- */

/* Writes the samples that came. A full disk stops the rows, not the measurement. */
static void write_rows(struct session *session)
{
    if (session->csv.file == NULL)
        return;
    for (size_t i = 0; i < session->device_count; i++) {
        struct wg_sample sample;
        if (wg_meter_latest(session->meter, i, &sample, NULL) == WG_OK)
            wg__measure_csv_add(&session->csv, session->run_count + 1, i, session->infos[i]->label,
                                &sample);
    }
    struct wg_error err;
    if (wg__measure_csv_flush(&session->csv, &err) != WG_OK) {
        (void)wg__command_fail(&set, &err);
        session->csv_failed = true;
    }
}

static uint64_t nanoseconds(double seconds)
{
    return (uint64_t)(seconds * 1e9);
}

/* Handles one signal. True: it ends this run. */
static bool take_signal(struct session *session, struct wg_child *child, int signal, bool to_group)
{
    if (signal == SIGCHLD) {
        wg__child_check(child);
        return child->has_ended;
    }
    session->is_stopped |= signal != SIGUSR1 && signal != SIGUSR2;
    if (session->args->command.count == 0)
        return true;
    wg__child_pass(child, signal, to_group);
    return false;
}

/* Waits for the end of the command, of the time, or for Ctrl-C. */
static void wait_for_end(struct session *session, struct wg_child *child, uint64_t start_ns)
{
    const struct args *args = session->args;
    const uint64_t end_ns =
        args->duration_s > 0 ? start_ns + nanoseconds(args->duration_s) : UINT64_MAX;
    /* Twice as often as samples come, for the two don't beat in time. */
    const uint64_t tick_ns = nanoseconds(args->interval_s / 2);
    uint64_t next_ns = start_ns + tick_ns;
    for (bool has_ended = false; !has_ended;) {
        const uint64_t wake_ns = session->csv.file != NULL && next_ns < end_ns ? next_ns : end_ns;
        bool to_group = false;
        const int signal = wg__signals_wait(&session->signals, wake_ns, &to_group);
        const uint64_t now_ns = wg__clock_ns();
        if (signal > 0)
            has_ended = take_signal(session, child, signal, to_group);
        else
            has_ended = now_ns >= end_ns;
        if (now_ns >= next_ns) {
            write_rows(session);
            next_ns = now_ns + tick_ns;
        }
    }
}

/* Keeps what a device's meter has to complain of, for the report. */
static void note_troubles(struct session *session, const struct wg_measure_run *run)
{
    for (size_t i = 0; i < session->device_count; i++) {
        struct wg_sample sample;
        const bool is_suspect =
            run->devices[i].source == WG_ENERGY_NONE ||
            (run->devices[i].flags & (WG_WINDOW_LOST | WG_WINDOW_HUNG | WG_WINDOW_GAP)) != 0;
        if (is_suspect && wg_meter_latest(session->meter, i, &sample, &session->errors[i]) != WG_OK)
            session->troubles[i] = session->errors[i].text;
    }
}

/* The place of the next run; it counts when run_count does. */
static struct wg_measure_run *next_run(struct session *session)
{
    if (session->run_count == session->run_capacity) {
        const size_t capacity = session->run_capacity == 0 ? 4 : 2 * session->run_capacity;
        struct wg_measure_run *runs =
            wg__realloc_array(session->runs, capacity, sizeof *session->runs);
        if (runs == NULL)
            return NULL;
        session->runs = runs;
        session->run_capacity = capacity;
    }
    struct wg_measure_run *run = &session->runs[session->run_count];
    *run = (struct wg_measure_run){0};
    run->devices = wg__alloc_zeroed(session->device_count + 1, sizeof *run->devices);
    return run->devices != NULL ? run : NULL;
}

/* Runs the command once, or waits once. On an error of the start, `*status_out` is 126 or 127. */
static enum wg_code measure_once(struct session *session, int *status_out, struct wg_error *err)
{
    const struct args *args = session->args;
    struct wg_measure_run *run = next_run(session);
    if (run == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    struct wg_window *window = NULL;
    enum wg_code code = wg_window_begin(&window, session->meter, "measure", NULL, 0, err);
    const uint64_t start_ns = wg__clock_ns();
    if (session->csv.start_ns == 0)
        session->csv.start_ns = start_ns;
    if (code == WG_OK && args->command.count > 0) {
        code = wg__child_start(&run->child, args->command.words, &session->signals, NULL, err);
        run->has_child = code == WG_OK;
        *status_out = run->child.status;
    }
    if (code == WG_OK) {
        wait_for_end(session, &run->child, start_ns);
        wg_window_end(window);
        run->time_s = (double)(wg__clock_ns() - start_ns) / 1e9;
        run->is_cut = session->is_stopped;
        *status_out = run->child.status;
        code = wg_window_read(window, &run->total, run->devices, session->device_count, err);
    }
    wg_window_free(window);
    if (code != WG_OK) {
        wg__free(run->devices);
        return code;
    }
    write_rows(session);
    note_troubles(session, run);
    session->run_count++;
    return WG_OK;
}

/* --- the result ------------------------------------------------------------------------------- */

/* Says on stderr how a command ended that did not end well. */
static void tell_end(const struct session *session, const struct wg_child *child)
{
    struct wg_error err;
    char name[WG_SIGNAL_NAME_SIZE], run[64] = "", rest[64] = "";
    const size_t left = session->args->repeat - session->run_count;
    if (session->args->repeat > 1)
        (void)snprintf(run, sizeof run, "run %zu of %u: ", session->run_count,
                       session->args->repeat);
    if (left > 0)
        (void)snprintf(rest, sizeof rest, "; the other %zu %s not begun", left,
                       left == 1 ? "was" : "were");
    if (child->signal != 0) {
        wg__signal_name(name, child->signal);
        (void)wg__fail(&err, WG_EIO, "%s'%s' was ended by %s%s", run,
                       session->args->command.words[0], name, rest);
    } else {
        (void)wg__fail(&err, WG_EIO, "%s'%s' ended with exit status %d%s", run,
                       session->args->command.words[0], child->status, rest);
    }
    (void)wg__command_fail(&set, &err);
}

static enum wg_code write_report(const struct session *session, int status, struct wg_error *err)
{
    const struct args *args = session->args;
    const bool has_command = args->command.count > 0;
    const struct wg_measure_report report = {
        .command = has_command ? args->command.words : NULL,
        .infos = session->infos,
        .troubles = session->troubles,
        .device_count = session->device_count,
        .backends = session->backends,
        .backend_count = wg_machine_backend_count(session->machine),
        .runs = session->runs,
        .run_count = session->run_count,
        .runs_wanted = args->repeat,
    };
    const bool to_stderr = has_command && !args->json;
    struct wg_buffer text;
    wg__buffer_init(&text);
    if (args->json)
        wg__measure_json(&report, status, &text);
    else
        wg__measure_text(
            &report, args->output == NULL && wg__wants_color(to_stderr ? stderr : stdout), &text);
    const enum wg_code code = wg__write_output(args->output, to_stderr, &text, err);
    wg__buffer_fini(&text);
    return code;
}

static int measure(struct session *session)
{
    const struct args *args = session->args;
    struct wg_error err;
    int status = WG_EXIT_OK;
    bool is_first = true;
    for (unsigned i = 0; i < args->repeat && status == WG_EXIT_OK && !session->is_stopped; i++) {
        if (measure_once(session, &status, &err) == WG_OK) {
            is_first = false;
            continue;
        }
        const int failure = wg__command_fail(&set, &err);
        if (is_first)
            return status != WG_EXIT_OK ? status : failure;
        status = status != WG_EXIT_OK ? status : failure;
    }
    if (session->runs[session->run_count - 1].child.status != WG_EXIT_OK)
        tell_end(session, &session->runs[session->run_count - 1].child);
    int own = session->csv_failed ? WG_EXIT_FAILED : WG_EXIT_OK;
    if (wg__measure_csv_close(&session->csv, &err) != WG_OK)
        own = wg__command_fail(&set, &err);
    if (write_report(session, status, &err) != WG_OK)
        own = wg__command_fail(&set, &err);
    return status != WG_EXIT_OK ? status : own;
}

static int run_measure(int argc, char *argv[])
{
    struct args args = {.devices = WG_DEVICE_ARGS_DEFAULT, .interval_s = 0.1, .repeat = 1};
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err;
    if (check_args(&args, &err) != WG_OK)
        return wg__command_fail(&set, &err);
    struct session session;
    if (session_open(&session, &args, &err) == WG_OK)
        status = measure(&session);
    else
        status = wg__command_fail(&set, &err);
    session_close(&session);
    return status;
}

const struct wg_command wg__command_measure = {.name = "measure",
                                               .summary =
                                                   "Measure energy, time and power of a command",
                                               .run = run_measure};
