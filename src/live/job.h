/* SPDX-License-Identifier: MIT
 *
 * A recurring job, one question at a time: which batch size next, may this run go on, how did it
 * end. Any process on any machine that sees the store may ask.
 *
 * Each call is one transaction: it takes back runs whose lease has passed, rebuilds the decider
 * (job_policy.h), answers, and writes down what it said. A call that failed has changed nothing and
 * can be made again; a report that is made again is acknowledged again, and a different one about
 * the same run is refused.
 *
 *     recurrence 7:  next -> run 12 (batch 64)     report 12 --failed      waits for its retry
 *                    next -> run 13 (batch 32)     report 13 --reached     done
 *
 * Owns: nothing.    Threads: that of the store.
 */
#ifndef WG_LIVE_JOB_H
#define WG_LIVE_JOB_H

#include "store/store.h"

struct wg_job_request {
    const char *gpu_model;
    unsigned gpu_count;
    double max_power_w; /* the largest limit of these GPUs together; NAN: the job's */
    const char *host;
    int64_t pid;
    double now_s;
    double lease_s;        /* 0: the job's */
    bool may_survey;       /* the caller can do a survey */
    bool wants_recurrence; /* a retry of `recurrence`, if that still waits for one */
    uint64_t recurrence;
};

struct wg_job_order {
    struct wg_store_job job;
    struct wg_store_run run;
    double learning_rate; /* hint for this batch size; NAN: the job told none */
    double setting;       /* power limit in W that a profile found best; NAN: profile it */
    double
        neighbor_setting; /* without a profile: the best of the nearest batch size that has one */
    size_t taken_back;    /* runs of others that were */
};

/* The next run, or survey. WG_ENOENT: no such job; WG_EBUSY: WG_IN_FLIGHT_MAX runs are open. */
enum wg_code wg__job_next(struct wg_store *store, const char *name,
                          const struct wg_job_request *request, struct wg_job_order *out,
                          struct wg_error *err);

enum wg_job_answer {
    WG_JOB_CONTINUE,
    WG_JOB_REACHED,   /* the metric is at the target */
    WG_JOB_STOP,      /* says the policy: it is not worth going on */
    WG_JOB_EXHAUSTED, /* these were the job's most epochs */
    WG_JOB_ANSWER_COUNT
};

/* The words for an answer; NULL: none. */
const char *wg__job_answer_name(enum wg_job_answer answer);

/* Run `id` has done `epoch` epochs and is at `metric` (NAN: not known), at most the job's
 * most. An epoch that was told before, or is earlier than one that was, changes nothing. The lease
 * begins anew. */
enum wg_code wg__job_epoch(struct wg_store *store, const char *name, int64_t id, unsigned epoch,
                           double metric, double now_s, enum wg_job_answer *out,
                           struct wg_error *err);

/* What is known for a survey by looking at a run's first steps: their rate and power tell what an
 * epoch costs once it is known how many an epoch has, and that follows from earlier runs. */
struct wg_job_survey_plan {
    double samples_per_epoch; /* steps x batch size; NAN: no survey can be made now */
    double most_s;            /* a longer one costs more than it is worth */
};

/* No survey can be made before a run on as many GPUs has told its steps, while two batch sizes
 * disagree on the samples of an epoch (its steps then do not follow from the batch size), and once
 * WG_JOB_SURVEYS_BROKEN of them have come to nothing. */
enum { WG_JOB_SURVEYS_BROKEN = 2 };
enum wg_code wg__job_survey_plan(struct wg_store *store, const char *name, unsigned gpu_count,
                                 struct wg_job_survey_plan *out, struct wg_error *err);

/* What an epoch of the run's batch size costs, once its power limits were profiled; of a survey, by
 * the steps that it did, all three at the largest limit. Told once. */
struct wg_job_costs {
    double epoch_j, epoch_max_limit_j, first_epoch_j;
};
enum wg_code wg__job_profile(struct wg_store *store, const char *name, int64_t id,
                             const struct wg_job_costs *costs, double now_s, struct wg_error *err);

/* Run `id` is alive. */
enum wg_code wg__job_heartbeat(struct wg_store *store, const char *name, int64_t id, double now_s,
                               struct wg_error *err);

struct wg_job_report {
    int64_t run;
    enum wg_run_state state; /* REACHED, STOPPED, FAILED, CRASHED or RETURNED */
    double epochs;           /* whole ones, except of a survey */
    double energy_j, time_s;
    double metric;              /* NAN: as told last */
    double setting;             /* NAN: not known */
    double steps_per_epoch;     /* 0: not known */
    double saved_j, saved_sd_j; /* of the cost, beside the largest power limit, and the standard
                                   deviation; a deviation of 0: not known */
    double now_s;
};

struct wg_job_receipt {
    bool is_repeat;   /* the same was reported before */
    bool wants_retry; /* the recurrence now waits for its next attempt */
    uint64_t recurrence;
    double cost_j;
};

enum wg_code wg__job_report(struct wg_store *store, const char *name,
                            const struct wg_job_report *report, struct wg_job_receipt *out,
                            struct wg_error *err);

/* The cost of a run of `job` in J, equation C of optimize/objective.h. WG_EINVAL: the objective
 * needs the largest power and neither run nor job tells it. */
enum wg_code wg__job_cost(const struct wg_store_job *job, double max_power_w, double energy_j,
                          double time_s, double *out, struct wg_error *err);

/* The learning rate for `batch_size`: linear in it for SGD (Goyal et al., 2017), with its square
 * root for Adam (Malladi et al., 2022). NAN: the job has told none. */
double wg__job_learning_rate(const struct wg_store_job *job, uint32_t batch_size);

/* The owner under which a job's profiles are cached (profile_cache.h). */
void wg__job_profile_owner(const char *name, char out[WG_STORE_TEXT_SIZE + 8]);

#endif
