/* SPDX-License-Identifier: MIT
 *
 * What became of a job: its runs, one by one and by batch size, and what was saved against the
 * default.
 *
 * The savings compare what was paid for a recurrence (failed runs, retries and surveys too) with
 * what it would have cost at the default batch size and the largest power limit:
 *
 *     it reached the target at another size   the mean of the default's own runs once there are
 *                                             two, else what the policy expects of the default
 *     else                                    what its runs at the default would have cost at that
 *                                             limit: they would have gone the same way
 *
 * What a run would have cost at that limit its own profile has told at its end (job_runner.h). Of a
 * run without one the cost is scaled by what the newest profile of the default says, its search and
 * all that is no step included.
 *
 * So a job that ran nothing but the default, at that limit, has saved 0 and that is certain; runs
 * at other sizes of a recurrence that was given up were paid for nothing. The interval is of 95 %,
 * from the spread of the default's mean and the error of the profiles, which many runs may share,
 * so it does not become less by their number; GPU types are summed.
 *
 * Owns: the history.    Threads: one at a time.
 */
#ifndef WG_CLI_JOB_SUMMARY_H
#define WG_CLI_JOB_SUMMARY_H

#include "base/buffer.h"
#include "live/job_policy.h"
#include "store/store.h"

struct wg_job_batch {
    unsigned surveys;                        /* that have told something */
    unsigned runs, reached, failed;          /* that ended; failed: and stopped */
    double epochs, energy_j, time_s, cost_j; /* sums over those that reached */
    double cost_squares;
    double unrestrained_j, unrestrained_sd_j; /* at the largest limit, where that is known ... */
    double unknown_j;                         /* ... and the cost of the others */
    double limit_w; /* power limit of the newest run that tells one; NAN: none does */
};

/* A GPU type's part. */
struct wg_job_share {
    char model[WG_STORE_TEXT_SIZE];
    unsigned count;
    struct wg_job_batch batch[WG_STORE_BATCH_SIZES_MAX];
    bool has_belief[WG_STORE_BATCH_SIZES_MAX];
    struct wg_batch_belief belief[WG_STORE_BATCH_SIZES_MAX];
    size_t best;                    /* batch size number */
    double default_j, default_sd_j; /* of a recurrence; NAN: not known */
    double default_factor;          /* cost at the largest power limit over that of its runs */
};

/* What was paid for a recurrence, and where it ended. */
struct wg_job_bill {
    double paid_j;
    double unrestrained_j, unrestrained_sd_j, unknown_j; /* likewise, at the default alone */
    size_t share;                                        /* number of its last run's GPU type */
    bool has_reached;                                    /* the target */
    bool at_default;                                     /* at the default */
};

/* A run or survey. */
struct wg_job_entry {
    int64_t run;
    uint64_t recurrence;
    unsigned attempt;
    uint32_t batch_size;
    bool is_survey;
    bool completes; /* its recurrence: the first run of it that reached the target */
    enum wg_run_state state;
    size_t share;                                     /* number of its GPU type */
    double epochs, limit_w, energy_j, time_s, cost_j; /* NAN: not known */
    double paid_j;                                    /* for it and all that began before */
};

struct wg_job_summary {
    struct wg_store_job job;
    size_t share_count;
    struct wg_job_share *shares;
    uint64_t completed;
    size_t open;
    unsigned crashed;                          /* returned and expired ones too */
    double paid_j, energy_j, time_s;           /* of all runs */
    double completed_j;                        /* paid for recurrences that reached the target */
    struct wg_job_bill *bills;                 /* one for each of job.next_recurrence */
    double saved_j, saved_low_j, saved_high_j; /* NAN: not known yet */
    size_t entry_count, entry_capacity;
    struct wg_job_entry *entries; /* in the order of their start */
    bool failed;                  /* out of memory */
};

enum wg_code wg__job_summarize(struct wg_store *store, const struct wg_store_job *job,
                               struct wg_job_summary *out, struct wg_error *err);
void wg__job_summary_fini(struct wg_job_summary *summary);

void wg__job_summary_json(const struct wg_job_summary *summary, struct wg_buffer *out);
void wg__job_summary_text(const struct wg_job_summary *summary, bool with_color,
                          struct wg_buffer *out);
void wg__job_summary_html(const struct wg_job_summary *summary, const char *command,
                          struct wg_buffer *out);

#endif
