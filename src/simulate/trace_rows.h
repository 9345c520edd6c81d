/* SPDX-License-Identifier: MIT
 *
 * The rows of a trace as read: shared by trace.c, which reads them, and case.c, which joins them.
 *
 * Owns: nothing by itself; the trace owns rows and strings.    Threads: read-only after opening.
 */
#ifndef WG_SIMULATE_TRACE_ROWS_H
#define WG_SIMULATE_TRACE_ROWS_H

#include "simulate/trace.h"

enum { WG_TRACE_GPUS_MAX = 64 };

struct wg_trace_key {
    const char *dataset;
    const char *network;
    const char *optimizer;
    double batch_size;
};

struct wg_run_row {
    struct wg_trace_key key;
    const char *run;
    double target_metric;
    unsigned target_epoch; /* 0: never */
    size_t line;
};

struct wg_power_row {
    struct wg_trace_key key;
    double limit_w;
    double epoch_time_s;
    double power_w;
    size_t line;
};

struct wg_gpu_trace {
    const char *name;
    const char *path;
    double max_power_w;
    size_t row_count;
    struct wg_power_row *rows;
};

struct wg_training_trace {
    struct wg_arena arena;
    const char *runs_path;
    size_t run_count;
    struct wg_run_row *runs;
    size_t gpu_count;
    struct wg_gpu_trace gpus[WG_TRACE_GPUS_MAX];
};

bool wg__trace_key_is_job(const struct wg_trace_key *key, const struct wg_training_job *job);

#endif
