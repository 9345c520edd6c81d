/* SPDX-License-Identifier: MIT
 *
 * `wattgov record`: all that a machine's devices answer, kept in a file for replay.
 *
 * Whatever ends it, Ctrl-C, the time or the command, the recording is whole: each line is in the
 * file when it was read, and the last one says that it was closed.
 */
#include <stdio.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/device_args.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/record_threads.h"
#include "live/child.h"

static const double s_per_year = 365 * 24 * 3600.0;

struct args {
    struct wg_device_args devices;
    const char *output;
    double interval_s;
    double duration_s; /* 0: none */
    struct wg_option_command command;
};

static const struct wg_option options[] = {
    {.name = "output",
     .letter = 'o',
     WG_OPTION_STRING(struct args, output),
     .value = "FILE",
     .is_required = true,
     .help = "Where the recording goes."},
    WG_DEVICE_OPTIONS(struct args, devices),
    {.name = "interval",
     WG_OPTION_DURATION(struct args, interval_s),
     .value = "TIME",
     .min = 0.001,
     .max = 60,
     .help = "Time between two questions to a device."},
    {.name = "duration",
     WG_OPTION_DURATION(struct args, duration_s),
     .value = "TIME",
     .min = 0.001,
     .max = s_per_year,
     .fallback = "until Ctrl-C, or until the command ends",
     .help = "How long to record."},
};

static const struct wg_option_set set = {
    .command = "wattgov record",
    .summary =
        "Records what this machine's devices are and what they answer, so that it can be looked "
        "into elsewhere: the other commands replay it with --device replay:FILE.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "examples:\n"
              "  wattgov record --output machine.trace --duration 10s\n"
              "  wattgov record -o machine.trace -- python train.py\n"
              "  wattgov devices --device replay:machine.trace",
    WG_OPTION_COMMAND(struct args, command),
};

static uint64_t nanoseconds(double seconds)
{
    return (uint64_t)(seconds * 1e9);
}

/* Waits for the end of the command, of the time, or for Ctrl-C. A disk that is full ends it too,
 * but not a command that runs. */
static void wait_for_end(const struct args *args, struct wg_signals *signals,
                         struct wg_child *child, struct wg_record_threads *threads)
{
    const bool has_command = args->command.count > 0;
    const uint64_t start_ns = wg__clock_ns();
    const uint64_t end_ns =
        args->duration_s > 0 ? start_ns + nanoseconds(args->duration_s) : UINT64_MAX;
    for (bool has_ended = false; !has_ended;) {
        const uint64_t look_ns = wg__clock_ns() + nanoseconds(args->interval_s);
        bool to_group = false;
        const int signal =
            wg__signals_wait(signals, look_ns < end_ns ? look_ns : end_ns, &to_group);
        if (signal == 0) {
            has_ended = wg__clock_ns() >= end_ns ||
                        (!has_command && wg__record_threads_has_failed(threads));
        } else if (signal == SIGCHLD) {
            wg__child_check(child);
            has_ended = child->has_ended;
        } else if (!has_command) {
            has_ended = true;
        } else {
            wg__child_pass(child, signal, to_group);
        }
    }
}

/* Records around the command, or the time. Writes `*status_out` also when it fails. */
static enum wg_code record(const struct args *args, struct wg_machine *machine,
                           struct wg_signals *signals, int *status_out, struct wg_error *err)
{
    struct wg_record_threads *threads = NULL;
    struct wg_child child = {0};
    enum wg_code code = wg__record_threads_start(&threads, machine, args->output,
                                                 nanoseconds(args->interval_s), err);
    if (code != WG_OK)
        return code;
    if (args->command.count > 0)
        code = wg__child_start(&child, args->command.words, signals, NULL, err);
    if (code == WG_OK)
        wait_for_end(args, signals, &child, threads);
    *status_out = child.status;
    const size_t device_count = wg_machine_device_count(machine);
    size_t answer_count = 0;
    double time_s = 0;
    struct wg_error write_error;
    const enum wg_code written =
        wg__record_threads_stop(threads, &answer_count, &time_s, &write_error);
    if (code == WG_OK && written != WG_OK) {
        *err = write_error;
        code = written;
    }
    if (code == WG_OK)
        (void)fprintf(stderr, "wattgov record: %s: %zu answer%s of %zu device%s in %.1f s\n",
                      args->output, answer_count, answer_count == 1 ? "" : "s", device_count,
                      device_count == 1 ? "" : "s", time_s);
    return code;
}

static int run(int argc, char *argv[])
{
    struct args args = {.devices = WG_DEVICE_ARGS_DEFAULT, .interval_s = 0.1};
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err;
    const struct wg_output_file file = {.option = "output", .path = args.output};
    enum wg_code code = wg__output_files_check(&file, 1, &err);
    if (code == WG_OK && args.command.count > 0 && args.duration_s > 0)
        code = wg__fail(&err, WG_EINVAL,
                        "--duration is for recording without a command; a command ends by itself");
    if (code != WG_OK)
        return wg__command_fail(&set, &err);
    struct wg_signals signals;
    struct wg_machine *machine = NULL;
    wg__signals_block(&signals, args.command.count > 0);
    code = wg__device_args_open(&args.devices, &machine, &err);
    if (code == WG_OK)
        code = record(&args, machine, &signals, &status, &err);
    wg_machine_close(machine);
    if (code != WG_OK) {
        const int failure = wg__command_fail(&set, &err);
        status = status != WG_EXIT_OK ? status : failure;
    }
    wg__signals_restore(&signals);
    return status;
}

const struct wg_command wg__command_record = {
    .name = "record", .summary = "Keep what a machine's devices answer, for replay", .run = run};
