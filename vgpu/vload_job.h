/* SPDX-License-Identifier: MIT
 *
 * A measured training job as work for a virtual GPU.
 *
 * Power and speed by power limit are those of the trace's row of this GPU, job and batch size; the
 * metric is that of one of its recorded runs, drawn by the seed: what a run had reached after each
 * epoch, linear between the epochs at which it passed the recorded values.
 *
 * Owns: the case.    Threads: read-only after opening.
 */
#ifndef WG_VGPU_VLOAD_JOB_H
#define WG_VGPU_VLOAD_JOB_H

#include "simulate/trace.h"
#include "vgpu/state.h"

/* A step is busy for its first part and half idle for the rest (input, optimiser), so that power
 * shows its period. Over a step the mean power is the measured one. */
#define VLOAD_BUSY_SHARE       0.7
#define VLOAD_REST_UTILIZATION 0.5
#define VLOAD_MEAN_UTILIZATION (VLOAD_BUSY_SHARE + (1 - VLOAD_BUSY_SHARE) * VLOAD_REST_UTILIZATION)

struct vload_job {
    struct wg_training_case *training;
    const struct wg_training_arm *arm;
    const struct wg_training_run *run;
    size_t run_index;
    double epoch_time_s; /* at the largest limit */
};

struct vload_request {
    const char *trace_dir;
    const char *jobs_file; /* NULL: the built-in table */
    const char *job, *gpu;
    double batch_size; /* NAN: the job's default */
    uint64_t seed;
};

/* WG_EINVAL names what is not known and lists what is. */
enum wg_code vload_job_open(struct vload_job *out, const struct vload_request *request,
                            struct wg_error *err);
void vload_job_close(struct vload_job *job);

/* The metric after so many epochs, which may be broken; and the share of the way from the beginning
 * to the run's best that is left then: 1 .. 0. */
double vload_job_metric(const struct vload_job *job, double epochs);
double vload_job_rest(const struct vload_job *job, double epochs);
bool vload_job_has_reached(const struct vload_job *job, double metric, double target);

/* The load at full utilisation on a GPU of this model. */
void vload_job_load(const struct vload_job *job, const struct vgpu_model *model,
                    struct vgpu_load *out);

#endif
