/* SPDX-License-Identifier: MIT
 *
 * `wattgov-vgpu load`: work on a virtual GPU, as long as this process lives.
 *
 * A constant load is set once. A square or sine changes the load at moments counted from the start,
 * never from the last wake-up, so a late one shifts no later one. The load ends with the time, with
 * the command, with a signal, or with a SIGKILL.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/options.h"
#include "live/child.h"
#include "vgpu/program.h"

static const double pi = 3.14159265358979323846;
static const double ns_per_s = 1e9;

enum { SINE_STEPS = 64 };

struct args {
    const char *machine_file, *pattern;
    unsigned gpu;
    double utilization, low, intensity, period_s, seconds, memory_mib;
    struct wg_option_command command;
};

static const char *const patterns[] = {"constant", "square", "sine", NULL};

static const struct wg_option options[] = {
    {.name = "gpu",
     WG_OPTION_UNSIGNED(struct args, gpu),
     .value = "N",
     .max = VGPU_GPUS_MAX - 1,
     .help = "The GPU."},
    {.name = "utilization",
     WG_OPTION_DOUBLE(struct args, utilization),
     .value = "SHARE",
     .min = 0,
     .max = 1,
     .help = "Share of time that the GPU is busy; of a pattern, its largest."},
    {.name = "intensity",
     WG_OPTION_DOUBLE(struct args, intensity),
     .value = "FACTOR",
     .min = 0,
     .max = 2,
     .help = "Power of what it does, against the model's full load."},
    {.name = "memory",
     WG_OPTION_DOUBLE(struct args, memory_mib),
     .value = "N",
     .unit = "MiB",
     .min = 0,
     .max = 16777216,
     .help = "GPU memory that it holds."},
    {.name = "pattern",
     WG_OPTION_STRING(struct args, pattern),
     .value = "NAME",
     .choices = patterns,
     .help = "How the utilisation moves between its largest and --low."},
    {.name = "low",
     WG_OPTION_DOUBLE(struct args, low),
     .value = "SHARE",
     .min = 0,
     .max = 1,
     .help = "Least utilisation of a pattern."},
    {.name = "period",
     WG_OPTION_DURATION(struct args, period_s),
     .value = "TIME",
     .min = 0.002,
     .max = 3600,
     .help = "Period of a pattern."},
    {.name = "seconds",
     WG_OPTION_DOUBLE(struct args, seconds),
     .value = "S",
     .unit = "s",
     .min = 0,
     .min_is_excluded = true,
     .max = 1e7,
     .fallback = "until a signal or the end of CMD",
     .help = "How long."},
    VGPU_OPTION_MACHINE_FILE(struct args, machine_file),
};

static const struct wg_option_set set = {
    .command = "wattgov-vgpu load",
    .summary = "Keeps a virtual GPU busy, for a time or while a command runs: wattgov-vgpu load "
               "--gpu 0 --utilization 0.8 -- CMD ARGS.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog =
        "With CMD the exit status is that of CMD, else 0, also when a signal ends the load.\n\n"
        "example:\n"
        "  wattgov-vgpu load --gpu 0 --pattern square --period 200ms --seconds 10",
    WG_OPTION_COMMAND(struct args, command),
};

/* The utilisation in step `step` of the pattern, and when the step after it begins; 0: never. */
static double pattern_at(const struct args *args, uint64_t step, double *next_s)
{
    *next_s = 0;
    if (strcmp(args->pattern, "square") == 0) {
        *next_s = (double)(step + 1) * args->period_s / 2;
        return step % 2 == 0 ? args->utilization : args->low;
    }
    if (strcmp(args->pattern, "sine") == 0) {
        /* Steps of at least a millisecond: finer ones would only wake us late. */
        const double steps = fmax(2, fmin(SINE_STEPS, floor(args->period_s / 0.001)));
        *next_s = (double)(step + 1) * args->period_s / steps;
        const double phase = 2 * pi * ((double)step + 0.5) / steps;
        return args->low + (args->utilization - args->low) * (0.5 - 0.5 * cos(phase));
    }
    return args->utilization;
}

static enum wg_code set_utilization(struct vgpu_gpu *gpu, const struct args *args, double value,
                                    struct wg_error *err)
{
    const struct vgpu_load load = {
        .utilization = value,
        .intensity = args->intensity,
        .memory_bytes = (uint64_t)(args->memory_mib * 1048576),
    };
    return vgpu_set_load(gpu, &load, err);
}

/* Waits until a signal ends it or `deadline_ns`; false: it is over. */
static bool wait_until(uint64_t deadline_ns, struct wg_signals *signals, struct wg_child *child)
{
    for (;;) {
        bool to_group = false;
        const int number = wg__signals_wait(signals, deadline_ns, &to_group);
        if (number == 0)
            return true;
        if (child == NULL)
            return false;
        if (number == SIGCHLD)
            wg__child_check(child);
        else
            wg__child_pass(child, number, to_group);
        if (child->has_ended)
            return false;
    }
}

static uint64_t moment_ns(uint64_t start_ns, double seconds)
{
    return start_ns + (uint64_t)(seconds * ns_per_s);
}

static enum wg_code play(struct vgpu_gpu *gpu, const struct args *args, struct wg_signals *signals,
                         struct wg_child *child, struct wg_error *err)
{
    const uint64_t start_ns = wg__clock_ns();
    const uint64_t end_ns = args->seconds > 0 ? moment_ns(start_ns, args->seconds) : UINT64_MAX;
    for (uint64_t step = 0;; step++) {
        double next_s = 0;
        const double value = pattern_at(args, step, &next_s);
        const uint64_t next_ns = next_s > 0 ? moment_ns(start_ns, next_s) : UINT64_MAX;
        if (next_ns <= wg__clock_ns()) /* slept over it */
            continue;
        const enum wg_code code = set_utilization(gpu, args, value, err);
        if (code != WG_OK)
            return code;
        if (!wait_until(next_ns < end_ns ? next_ns : end_ns, signals, child) || end_ns <= next_ns)
            return WG_OK;
    }
}

static enum wg_code generate(struct vgpu_machine *machine, const struct args *args, int *status_out,
                             struct wg_error *err)
{
    if (args->gpu >= machine->gpu_count)
        return wg__fail(err, WG_EINVAL, "--gpu: '%u' is not a GPU of the machine, which has %zu",
                        args->gpu, machine->gpu_count);
    struct vgpu_gpu *gpu = &machine->gpus[args->gpu];
    const bool has_command = args->command.count > 0;
    struct wg_signals signals;
    wg__signals_block(&signals, has_command);
    struct wg_child child = {0};
    /* Before the command starts, so that it never sees the GPU without its load. */
    enum wg_code code = set_utilization(gpu, args, args->utilization, err);
    if (code == WG_OK && has_command &&
        wg__child_start(&child, args->command.words, &signals, NULL, err) != WG_OK) {
        (void)wg__command_fail(&set, err);
        *status_out = child.status;
    } else if (code == WG_OK) {
        code = play(gpu, args, &signals, has_command ? &child : NULL, err);
        /* The time is over before the command: it goes on without the load. */
        (void)set_utilization(gpu, &(struct args){0}, 0, NULL);
        while (has_command && !child.has_ended)
            (void)wait_until(UINT64_MAX, &signals, &child);
        *status_out = has_command ? child.status : WG_EXIT_OK;
    }
    (void)vgpu_set_load(gpu, &(struct vgpu_load){0}, NULL);
    wg__signals_restore(&signals);
    return code;
}

static int run(int argc, char *argv[])
{
    struct args args = {.pattern = "constant", .utilization = 1, .intensity = 1, .period_s = 1};
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err;
    char path[VGPU_PATH_MAX];
    struct vgpu_machine *machine = NULL;
    enum wg_code code = WG_OK;
    if (args.low > args.utilization)
        code = wg__fail(&err, WG_EINVAL, "--low: '%g' is above --utilization", args.low);
    if (code == WG_OK)
        code = vgpu_find_running(&machine, path, args.machine_file, &err);
    if (code == WG_OK)
        code = generate(machine, &args, &status, &err);
    vgpu_unmap(machine);
    return code == WG_OK ? status : wg__command_fail(&set, &err);
}

const struct wg_command vgpu_command_load = {
    .name = "load", .summary = "Keep a virtual GPU busy", .run = run};
