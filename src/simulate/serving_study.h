/* SPDX-License-Identifier: MIT
 *
 * Many runs of every policy under every arrival law: the cells of `wattgov simulate serving`.
 *
 * All policies meet the same moments and the same noise streams (by seed). A trace begins at a
 * random place in each run. Runs go in blocks of seeds over processes; sums of doubles are added up
 * in the order of the seeds, so all but the speeds is the same however many there are.
 *
 * Requests of one run are not independent: a burst makes many of them late together. So beside
 * Wilson's interval there is one that only takes runs as independent. With v of n requests violated
 * in a run, the rate is R = sum v / sum n, a ratio of sums, and its error
 *
 *     sqrt(sum (v - R n)^2 / (runs (runs - 1))) / mean n        times Student's t
 *
 * Owns: its cells.    Threads: the caller's; starts processes.
 */
#ifndef WG_SIMULATE_SERVING_STUDY_H
#define WG_SIMULATE_SERVING_STUDY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "simulate/serving.h"

enum { WG_SERVING_POLICIES_MAX = 16, WG_SERVING_LAWS_MAX = 16, WG_SERVING_SEEDS_MAX = 1000000 };

struct wg_serving_policy {
    const char *name; /* "none", "greedy", "polythrottle", "wattgov", "floor" */
    enum wg_finetune_policy finetune;
    enum wg_batcher_kind batcher;
    enum wg_drop_kind drop;
};

struct wg_serving_study_request {
    struct wg_serving_setup base; /* what the policies share */
    size_t policy_count;
    struct wg_serving_policy policies[WG_SERVING_POLICIES_MAX];
    size_t law_count;
    const char *laws[WG_SERVING_LAWS_MAX]; /* texts for schedule/arrivals.h */
    uint64_t first_seed;
    size_t seeds;
    size_t processes;
    void (*started)(void *context, size_t tasks); /* NULL: nobody listens */
    void (*progress)(void *context);              /* after each of the tasks; NULL likewise */
    void *progress_context;
};

struct wg_serving_cell {
    size_t policy, law;
    struct wg_serving_sum sum;
    double rate;                /* requests a second of the law */
    double p50_s, p95_s, p99_s; /* of what was served; NAN: nothing was */
    double violation_rate;      /* (late + dropped) / requests; NAN: no request */
    double wilson95[2];         /* takes requests as independent; 0 to 1 without any */
    double seeds95[2];          /* by how the runs differ: knows of bursts; NAN: fewer than two runs
                                   or no request */
};

struct wg_serving_study {
    size_t cell_count;
    struct wg_serving_cell *cells; /* law by law, in it policy by policy */
    double events_per_s;           /* a second of processor time */
    double requests_per_s;
};

/* WG_EINVAL: the request; else the codes of the arrivals, of wg__serving_run, and of workers. */
enum wg_code wg__serving_study_run(const struct wg_serving_study_request *request,
                                   struct wg_serving_study **out, struct wg_error *err);
void wg__serving_study_free(struct wg_serving_study *study);

/* The run of one cell and seed again, with its timeline: what the study's has added up. */
enum wg_code wg__serving_study_rerun(const struct wg_serving_study_request *request, size_t policy,
                                     size_t law, uint64_t seed, const struct wg_timeline *timeline,
                                     struct wg_serving_sum *sum_out, struct wg_error *err);

#endif
