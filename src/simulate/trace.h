/* SPDX-License-Identifier: MIT
 *
 * Measured training traces, joined into cases to replay.
 *
 * A folder holds `summary_train.csv` (dataset, network, batch_size, optimizer, run, target_metric,
 * target_epoch: the epoch at which a run first reached that metric, `nan` for never) and one
 * `summary_power_<gpu>.csv` per GPU (dataset, network, batch_size, optimizer, power_limit in W,
 * time_per_epoch in s, average_power in W). Other columns are ignored. A case joins one GPU and one
 * job: its arms are the batch sizes with rows in both files, its power limits must be complete for
 * every arm. docs/traces.md has the format for people who bring their own.
 *
 * Owns: all rows; cases own themselves and do not refer to the trace.
 * Threads: read-only after opening.
 */
#ifndef WG_SIMULATE_TRACE_H
#define WG_SIMULATE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "optimize/batch_size.h"
#include "optimize/power_limit.h"
#include "simulate/job_table.h"

/* A metric value and the first epoch at which a run had reached it. */
struct wg_milestone {
    double metric;
    unsigned epoch;
};

/* One recorded training run of one batch size. */
struct wg_training_run {
    unsigned target_epoch; /* 0: the target was never reached */
    size_t milestone_count;
    struct wg_milestone *milestones; /* in the order in which they were reached */
};

struct wg_training_arm {
    double batch_size;
    double epoch_time_s[WG_POWER_LIMITS_MAX]; /* per power limit */
    double power_w[WG_POWER_LIMITS_MAX];
    size_t run_count;
    struct wg_training_run *runs;
};

struct wg_training_case {
    struct wg_arena arena;
    const char *gpu;
    const char *job;
    const char *metric;
    bool higher_is_better;
    double target_metric;
    unsigned max_epochs;
    double max_power_w; /* the largest limit in the GPU's file */
    size_t limit_count;
    double limit_w[WG_POWER_LIMITS_MAX]; /* ascending */
    size_t arm_count;
    size_t default_arm;
    struct wg_training_arm arms[WG_ARMS_MAX]; /* by ascending batch size */
    size_t left_out_count;                    /* batch sizes with runs but no power rows */
    double left_out[WG_ARMS_MAX];
};

struct wg_training_trace;

/* Reads the folder `dir`. No reference to `dir` is kept. */
enum wg_code wg__trace_open(struct wg_training_trace **out, const char *dir, struct wg_error *err);
void wg__trace_close(struct wg_training_trace *trace);

/* The GPUs, by name in lower case, sorted. */
size_t wg__trace_gpu_count(const struct wg_training_trace *trace);
const char *wg__trace_gpu(const struct wg_training_trace *trace, size_t index);

/* Whether the trace has training runs, and power rows on `gpu`, of this job. */
bool wg__trace_has_job(const struct wg_training_trace *trace, const char *gpu,
                       const struct wg_training_job *job);

/* Joins `gpu` (any case) and `job`. Fails with one line that names the file and what was expected:
 * a GPU that has no file, no runs or no power rows for the job, an incomplete set of limits, a
 * default batch size without rows (one above the largest is lowered to the largest, as Zeus does),
 * a target that no run lists or that the default batch size never reaches within the job's epochs.
 */
enum wg_code wg__trace_case(const struct wg_training_trace *trace, const char *gpu,
                            const struct wg_training_job *job, struct wg_training_case **out,
                            struct wg_error *err);
void wg__case_free(struct wg_training_case *training_case);

/* Leaves in `a` and `b` only the batch sizes that both have; WG_EINVAL when none is left or a
 * default goes. For drift from one job into another. */
enum wg_code wg__case_intersect(struct wg_training_case *a, struct wg_training_case *b,
                                struct wg_error *err);

#endif
