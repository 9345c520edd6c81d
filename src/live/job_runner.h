/* SPDX-License-Identifier: MIT
 *
 * `wattgov job run`: one recurrence of a job, from the question to the report.
 *
 *      next --> run an attempt --> report --+--> reached: done
 *       ^       epochs, profile,            |
 *       +------ heartbeats                  +--> failed, stopped, crashed: again
 *
 * Who runs a command under a power governor is not this file's concern: an attempt is a function
 * (`wg_job_run_fn`) that is told what to run and a `watch` to tell how it goes.
 *
 * What counts as an observation: the target was reached; the policy has stopped the run; it has
 * done all its epochs. What does not: the command cannot be run, it broke, it never told its
 * metric, or the user has interrupted it; the run is then given back, and nothing is learned. A run
 * whose metric was never a number has diverged: that is an observation of its batch size, but some
 * in a row say more of the script, and end the call before hours are spent on each attempt. A
 * store that cannot be written while a run trains is no reason to end it, nor to wait: an epoch
 * that cannot be told at once is left out, and at the end the message says how to report the run by
 * hand.
 *
 * Owns: nothing beyond a call.    Threads: that of the store; the watch too.
 */
#ifndef WG_LIVE_JOB_RUNNER_H
#define WG_LIVE_JOB_RUNNER_H

#include "live/job.h"

/* What to run. Valid during the call. */
struct wg_job_attempt {
    const struct wg_job_order *order; /* is a survey when order->run.is_survey */
    double steps_per_epoch;           /* of a survey: expected at its batch size */
    double most_s;                    /* likewise: it is to end then, whatever it has seen */
    char *const *words;               /* the command, placeholders replaced; ended by NULL */
    const char *const *variables;     /* "WATTGOV_BATCH_SIZE=32", ...; ended by NULL */
};

/* How an attempt tells how it goes; made by wg__job_run. */
struct wg_job_watch;

/* The run has done `epoch` epochs and is at `metric` (NULL: not told; it may be no number).
 * Anything but WG_JOB_CONTINUE: end the command now. */
enum wg_job_answer wg__job_watch_epoch(struct wg_job_watch *watch, unsigned epoch,
                                       const double *metric);
/* The power limits were profiled; a survey: the steps were. */
void wg__job_watch_profile(struct wg_job_watch *watch, const struct wg_job_costs *costs);
/* To be called some times a minute: keeps the lease. */
void wg__job_watch_tick(struct wg_job_watch *watch);

struct wg_job_result {
    enum { WG_JOB_ENDED, WG_JOB_INTERRUPTED } how; /* by itself or on an answer; by the user */
    int exit_status;                               /* of the command; 0 when we have ended it */
    double epochs; /* a survey's: broken; of a run what the watch was told counts */
    double energy_j, time_s;
    double setting;             /* of the power knob at the end; NAN: none */
    double steps_per_epoch;     /* of a run; 0: not known */
    double saved_j, saved_sd_j; /* as wg_job_report has them */
};

/* Runs one attempt. An error means that the command could not be run at all (WG_ENOENT: there is no
 * such program). */
typedef enum wg_code wg_job_run_fn(void *context, const struct wg_job_attempt *attempt,
                                   struct wg_job_watch *watch, struct wg_job_result *out,
                                   struct wg_error *err);

enum { WG_JOB_DIVERGED_MAX = 3 };

struct wg_job_run_opts {
    struct wg_job_request request; /* `now_s` is set for each call; `may_survey`: when the job's
                                      earlier runs tell enough (wg__job_survey_plan) */
    char *const *words;            /* the command with placeholders: {batch_size}, {learning_rate},
                                      {epochs} (the most), {run}; ended by NULL */
    unsigned crashes;              /* so many in a row are tried again; 0: 2 */
    unsigned diverged;             /* so many in a row are the last; 0: WG_JOB_DIVERGED_MAX */
    wg_job_run_fn *run;
    void *context;
    double (*now_s)(void *context);
    void (*say)(void *context, const char *line); /* what the user should know; NULL: nobody */
};

struct wg_job_run_summary {
    bool reached;
    bool is_interrupted;
    uint64_t recurrence;
    unsigned attempts; /* surveys not counted */
    unsigned surveys;
    double energy_j, time_s, cost_j; /* of all of them */
    uint32_t batch_size;             /* of the last run */
    int exit_status;                 /* of its command */
};

/* WG_EDATA: the command never told the metric, or never a number; WG_ESTATE: it kept breaking; the
 * run's own error when it cannot be run; and what the store says. The summary is filled in any
 * case. */
enum wg_code wg__job_run(struct wg_store *store, const char *name,
                         const struct wg_job_run_opts *opts, struct wg_job_run_summary *out,
                         struct wg_error *err);

#endif
