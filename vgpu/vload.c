/* SPDX-License-Identifier: MIT
 *
 * The program `wattgov-vload`: a measured training job as a workload on a virtual GPU.
 *
 *     wattgov-vgpu run --machine v100 -- wattgov-vload cifar100 --gpu V100 --batch-size 1024
 *
 * The exit status is 0 when the job did what it was asked to (so many epochs, or the target), 1
 * when it did not (a target out of reach, a signal), 2 for wrong usage.
 */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "cli/options.h"
#include "cli/program.h"
#include "vgpu/program.h"
#include "vgpu/vload_run.h"

#ifndef WG_VGPU_TRACE
#define WG_VGPU_TRACE "data/zeus/trace"
#endif

struct args {
    const char *gpu, *trace, *jobs_file, *progress_file, *machine_file;
    double batch_size, target, time_scale, memory_mib;
    unsigned device, epochs, max_epochs, steps_per_epoch, samples_per_epoch, print_every;
    uint64_t seed;
};

static const struct args defaults = {
    .batch_size = NAN,
    .target = NAN,
    .time_scale = 1,
    .steps_per_epoch = 100,
    .print_every = 1,
    .seed = 1,
    .memory_mib = 1024,
};

static const struct wg_option options[] = {
    {.name = "gpu",
     WG_OPTION_STRING(struct args, gpu),
     .value = "NAME",
     .is_required = true,
     .help = "GPU of the trace on which the job was measured: V100 or A40."},
    {.name = "batch-size",
     WG_OPTION_DOUBLE(struct args, batch_size),
     .value = "N",
     .min = 1,
     .max = HUGE_VAL,
     .fallback = "the job table's",
     .help = "Batch size; one that was measured."},
    {.name = "device",
     WG_OPTION_UNSIGNED(struct args, device),
     .value = "N",
     .max = VGPU_GPUS_MAX - 1,
     .help = "The virtual GPU that it runs on."},
    {.name = "epochs",
     WG_OPTION_UNSIGNED(struct args, epochs),
     .value = "N",
     .min = 1,
     .max = 1000000,
     .fallback = "until the target",
     .help = "Runs so many epochs."},
    {.name = "target",
     WG_OPTION_DOUBLE(struct args, target),
     .value = "METRIC",
     .min = -HUGE_VAL,
     .max = HUGE_VAL,
     .fallback = "the job table's",
     .help = "Stops after the epoch that reaches this metric."},
    {.name = "max-epochs",
     WG_OPTION_UNSIGNED(struct args, max_epochs),
     .value = "N",
     .min = 1,
     .max = 1000000,
     .fallback = "the job table's",
     .help = "Gives up after so many epochs without the target."},
    {.name = "steps-per-epoch",
     WG_OPTION_UNSIGNED(struct args, steps_per_epoch),
     .value = "N",
     .min = 1,
     .max = 10000000,
     .help = "Steps in an epoch; their number is not measured."},
    {.name = "samples-per-epoch",
     WG_OPTION_UNSIGNED(struct args, samples_per_epoch),
     .value = "N",
     .min = 1,
     .max = 1000000000,
     .fallback = "not said",
     .help = "Instead of --steps-per-epoch: an epoch has N / batch size steps, the last one filled "
             "up."},
    {.name = "print-every",
     WG_OPTION_UNSIGNED(struct args, print_every),
     .value = "N",
     .min = 1,
     .max = 10000000,
     .help = "Writes a line for each Nth step, and for the last of an epoch."},
    {.name = "time-scale",
     WG_OPTION_DOUBLE(struct args, time_scale),
     .value = "X",
     .min = 0.001,
     .max = 1000000,
     .help =
         "Runs so many times faster; power stays, so the GPU's meters count an Xth of the job's "
         "energy."},
    {.name = "seed",
     WG_OPTION_SEED(struct args, seed),
     .value = "N",
     .help = "Draws which of the measured runs is replayed."},
    {.name = "memory",
     WG_OPTION_DOUBLE(struct args, memory_mib),
     .value = "N",
     .unit = "MiB",
     .min = 0,
     .max = 16777216,
     .help = "GPU memory that it holds; not measured."},
    {.name = "progress-file",
     WG_OPTION_STRING(struct args, progress_file),
     .value = "FILE",
     .fallback = "none",
     .help = "Writes the lines of progress to this file too."},
    {.name = "trace",
     WG_OPTION_STRING(struct args, trace),
     .value = "DIR",
     .fallback = "the traces that come with wattgov",
     .help = "Folder with the measured trace."},
    {.name = "jobs",
     WG_OPTION_STRING(struct args, jobs_file),
     .value = "FILE",
     .fallback = "the built-in table",
     .help = "Table of the jobs."},
    VGPU_OPTION_MACHINE_FILE(struct args, machine_file),
};

static const struct wg_option_set set = {
    .command = "wattgov-vload",
    .word = "JOB",
    .summary = "Runs a measured training job on a virtual GPU, at the speed that its power limit "
               "and clocks allow.",
    .options = options,
    .count = sizeof options / sizeof options[0],
    .epilog = "lines:\n"
              "  job NAME gpu NAME batch_size N run I/N steps_per_epoch N target METRIC\n"
              "  step I/N epoch E loss L time_s T\n"
              "  epoch E metric M time_s T energy_j J limit_w W\n"
              "  done epochs E metric M time_s T energy_j J "
              "epochs_done|target_reached|target_not_reached|stopped\n\n"
              "example:\n"
              "  wattgov-vgpu run --machine v100 -- wattgov-vload cifar100 --gpu V100 "
              "--batch-size 1024 --time-scale 100",
};

static unsigned steps_of(const struct args *args, const struct vload_job *job)
{
    return args->samples_per_epoch == 0
               ? args->steps_per_epoch
               : (unsigned)ceil(args->samples_per_epoch / job->arm->batch_size);
}

static enum wg_code start(const struct args *args, const struct vload_job *job,
                          struct vgpu_machine *machine, struct vload_end *end, struct wg_error *err)
{
    const struct wg_training_case *training = job->training;
    assert(training != NULL);
    struct wg_signals signals;
    struct vload_run run = {
        .job = job,
        .gpu = &machine->gpus[args->device],
        .signals = &signals,
        .steps_per_epoch = steps_of(args, job),
        .print_every = args->print_every,
        .epochs = args->epochs,
        .max_epochs = args->max_epochs != 0 ? args->max_epochs : training->max_epochs,
        .target = isnan(args->target) ? training->target_metric : args->target,
        .time_scale = args->time_scale,
        .memory_bytes = (uint64_t)(args->memory_mib * 1048576),
    };
    if (args->progress_file != NULL) {
        run.progress = fopen(args->progress_file, "we");
        if (run.progress == NULL)
            return wg__fail_errno(err, errno, "cannot write %s", args->progress_file);
    }
    wg__signals_block(&signals, false);
    enum wg_code code = vload_run(&run, end, err);
    wg__signals_restore(&signals);
    if (run.progress != NULL && fclose(run.progress) != 0 && code == WG_OK)
        code = wg__fail_errno(err, errno, "cannot write %s", args->progress_file);
    return code;
}

static enum wg_code find_all(const struct args *args, const char *name, struct vload_job *job,
                             struct vgpu_machine **machine, struct wg_error *err)
{
    char trace[VGPU_PATH_MAX], path[VGPU_PATH_MAX];
    enum wg_code code = WG_OK;
    if (name == NULL)
        return wg__fail(err, WG_EINVAL, "which job? wattgov-vload JOB --gpu NAME --batch-size N");
    if (args->epochs != 0 && (args->max_epochs != 0 || !isnan(args->target)))
        return wg__fail(err, WG_EINVAL, "--epochs excludes --target and --max-epochs");
    if (args->trace == NULL)
        code = vgpu_find_part(trace, "../share/wattgov/zeus/trace", WG_VGPU_TRACE, err);
    const struct vload_request request = {
        .trace_dir = args->trace != NULL ? args->trace : trace,
        .jobs_file = args->jobs_file,
        .job = name,
        .gpu = args->gpu,
        .batch_size = args->batch_size,
        .seed = args->seed,
    };
    if (code == WG_OK)
        code = vload_job_open(job, &request, err);
    if (code == WG_OK)
        code = vgpu_find_running(machine, path, args->machine_file, err);
    if (code == WG_OK && args->device >= (*machine)->gpu_count)
        code = wg__fail(err, WG_EINVAL, "--device: '%u' is not a GPU of the machine, which has %zu",
                        args->device, (*machine)->gpu_count);
    return code;
}

static int run_job(int argc, char *argv[])
{
    struct args args = defaults;
    const char *name = wg__command_word(&argc, &argv);
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    struct wg_error err;
    struct vload_job job = {0};
    struct vload_end end = {0};
    struct vgpu_machine *machine = NULL;
    enum wg_code code = find_all(&args, name, &job, &machine, &err);
    if (code == WG_OK)
        code = start(&args, &job, machine, &end, &err);
    if (code == WG_OK && (end.is_stopped || (args.epochs == 0 && !end.has_reached)))
        status = WG_EXIT_FAILED;
    vgpu_unmap(machine);
    vload_job_close(&job);
    return code == WG_OK ? status : wg__command_fail(&set, &err);
}

int main(int argc, char *argv[])
{
    return wg__program("wattgov-vload", run_job, argc, argv);
}
