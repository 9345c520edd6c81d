/* SPDX-License-Identifier: MIT
 *
 * The table of recurring jobs: what a trace alone does not say.
 *
 * A CSV file with one job a line: job, dataset, network, optimizer (the keys of the traces), metric
 * (its name, for people), direction (`higher` or `lower` is better), target_metric, max_epochs,
 * default_batch_size; and, where the columns exist:
 *   batch_sizes           `all` (default): each batch size with training runs must have power rows;
 *                         `profiled`: those without power rows are left out (they may not fit the
 * GPU) critical_batch_scale  2: a batch size b needs the epochs that b/2 needed (drift studies;
 * default 1) epoch_time_scale      multiplies the seconds per epoch (default 1) The table of Zeus's
 * six workloads is built in from data/training_jobs.csv.
 *
 * Owns: its strings.    Threads: read-only after opening.
 */
#ifndef WG_SIMULATE_JOB_TABLE_H
#define WG_SIMULATE_JOB_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

struct wg_training_job {
    const char *name;
    const char *dataset;
    const char *network;
    const char *optimizer;
    const char *metric;
    bool higher_is_better;
    double target_metric;
    unsigned max_epochs;
    double default_batch_size;
    bool only_profiled; /* leave out batch sizes without power rows */
    double critical_batch_scale;
    double epoch_time_scale;
    bool default_may_fail; /* not in the table: set for a job that another one turns into */
};

struct wg_job_table {
    struct wg_arena arena;
    const char *source; /* the file, for messages */
    size_t count;
    struct wg_training_job *jobs;
};

/* Reads `path`, or the built-in table when `path` is NULL. Errors name file, line and column. */
enum wg_code wg__job_table_open(struct wg_job_table **out, const char *path, struct wg_error *err);
void wg__job_table_close(struct wg_job_table *table);

/* The job called `name`; NULL when there is none. */
const struct wg_training_job *wg__job_table_find(const struct wg_job_table *table,
                                                 const char *name);

#endif
