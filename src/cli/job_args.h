/* SPDX-License-Identifier: MIT
 *
 * What the commands of `wattgov job` share: their arguments, and opening the store.
 *
 * Threads: the main thread.
 */
#ifndef WG_CLI_JOB_ARGS_H
#define WG_CLI_JOB_ARGS_H

#include "cli/command.h"
#include "cli/options.h"
#include "store/store.h"

/* Every command of `job` has it. */
#define WG_JOB_OPTION_STORE(type, field)                                                           \
    {.name = "store",                                                                              \
     WG_OPTION_STRING(type, field),                                                                \
     .value = "FILE",                                                                              \
     .fallback = "jobs.db in the state directory",                                                 \
     .help = "Where the jobs are remembered."}

extern const struct wg_command wg__command_job_create;
extern const struct wg_command wg__command_job_next;
extern const struct wg_command wg__command_job_report;
extern const struct wg_command wg__command_job_run;
extern const struct wg_command wg__command_job_list;
extern const struct wg_command wg__command_job_show;
extern const struct wg_command wg__command_job_export;
extern const struct wg_command wg__command_job_rm;

/* A job's name: letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 64. */
enum wg_code wg__job_check_name(const char *name, struct wg_error *err);

/* "8,16,32": distinct whole numbers from 1 on, at least two, in any order; sorted.
 * "from:FILE": those of a file (batch_file.h). */
enum wg_code wg__job_parse_batches(const char *text, struct wg_store_job *job,
                                   struct wg_error *err);

/* "acc>=0.84", "loss < 1.2": metric, direction and value. '>' means '>=', '<' means '<='. */
enum wg_code wg__job_parse_target(const char *text, struct wg_store_job *job, struct wg_error *err);

/* Moves the words before the options and takes the first, which must be a job's name. */
enum wg_code wg__job_take_name(const struct wg_option_set *set, int *argc, char ***argv,
                               const char **out, struct wg_error *err);

/* Opens a store that must be there already: to write, or only to read. */
enum wg_code wg__job_open_store(struct wg_store **out, const char *path, struct wg_error *err);
enum wg_code wg__job_open_store_to_read(struct wg_store **out, const char *path,
                                        struct wg_error *err);

/* The job; WG_ENOENT suggests the nearest name. */
enum wg_code wg__job_find(struct wg_store *store, const char *name, struct wg_store_job *out,
                          struct wg_error *err);

#endif
