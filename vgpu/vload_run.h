/* SPDX-License-Identifier: MIT
 *
 * The steps of a job on a virtual GPU, in real or scaled time.
 *
 * Work is counted in seconds at full speed. A step of the job needs epoch_time / steps of them, and
 * gets `speed * time_scale` of them a second, where the speed is what the present limit, clock
 * locks and other loads of the GPU allow; it is asked for anew at least every 20 ms, so a limit
 * that is set meanwhile counts at once. Time is a cursor that only planned waits move, so late
 * wake-ups do not add up; only a pause of over a second (a stopped process, or one that cannot keep
 * up with its scale) is left out, of the time and of the energy.
 *
 * Scaled: with --time-scale X an epoch takes an Xth of its time. Power is as measured, so what the
 * virtual GPU's meters count meanwhile is an Xth of the job's energy; the lines give the job's own
 * time and energy (X times those).
 *
 * Under `wattgov train` the job tells its steps, epochs and metric to the governor, as any job that
 * uses the C API would ($WATTGOV_PROGRESS).
 *
 * Threads: the main thread.
 */
#ifndef WG_VGPU_VLOAD_RUN_H
#define WG_VGPU_VLOAD_RUN_H

#include <stdio.h>

#include "live/child.h"
#include "vgpu/vload_job.h"

struct vload_run {
    const struct vload_job *job;
    struct vgpu_gpu *gpu;
    struct wg_signals *signals;
    FILE *progress; /* beside stdout; NULL: none */
    unsigned steps_per_epoch, print_every;
    unsigned epochs;     /* run so many; 0: until the target */
    unsigned max_epochs; /* of a run to the target */
    double target, time_scale;
    uint64_t memory_bytes;
};

/* How it ended. */
struct vload_end {
    unsigned epochs;
    double metric;    /* after them */
    double time_s;    /* the job's own, as energy_j */
    double energy_j;  /* of the whole GPU meanwhile, in the job's own time */
    bool is_stopped;  /* by a signal */
    bool has_reached; /* the target */
};

/* Runs the job and writes its lines (docs/virtual-gpu.md). The load ends with it. WG_ESTATE: no
 * room on the GPU; WG_EIO: a line could not be written. */
enum wg_code vload_run(struct vload_run *run, struct vload_end *out, struct wg_error *err);

#endif
