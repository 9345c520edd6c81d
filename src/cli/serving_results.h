/* SPDX-License-Identifier: MIT
 *
 * The results of `wattgov simulate serving`: figures of a cell, and all of them as JSON, as CSV and
 * as text for a terminal.
 *
 * What a load leaves for fine-tuning at best has a closed form. Batches of b that come at an even
 * rate r take r t(b) / b of the GPU, and the first of their requests waits (b - 1) / r + t(b),
 * which must be within the SLO, for t(b) of 99 of a hundred batches; the least share over such b is
 * what inference takes at least.
 * Requests that come in bursts make smaller or later batches, so a policy that breaks no deadline
 * leaves less room. No b: the SLO leaves none.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_SERVING_RESULTS_H
#define WG_CLI_SERVING_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#include "simulate/serving_study.h"

struct wg_buffer;
struct wg_table;

struct wg_serving_room {
    double share;   /* of the GPU that inference takes at least; NAN: no batch keeps the SLO */
    unsigned batch; /* the one that takes it; 0: none */
};

/* At `rate` requests a second of one row each, in batches up to `max_batch`. */
struct wg_serving_room wg__serving_room(const struct wg_serving_profile *profile, size_t rung,
                                        unsigned max_batch, double rate, double slo_s);

/* The largest batch of a cell's policy: one request without a batcher. */
unsigned wg__serving_max_batch(const struct wg_serving_study_request *request,
                               const struct wg_serving_cell *cell);

/* Seconds that a job takes alone in whole iterations; HUGE_VAL for one without end. */
double wg__serving_work_s(const struct wg_serving_profile *profile, size_t rung,
                          const struct wg_finetune_job *job);

/* What follows from a cell's sums; NAN: not defined. */
struct wg_serving_figures {
    double finished_s;           /* mean over the runs that finished */
    double finished_share;       /* of the runs */
    double samples_per_s;        /* while there was a job */
    double gpu_share;            /* its work's time alone, of the duration */
    double energy_per_request_j; /* inference and idle, a served request */
    double batch_mean;
    struct wg_serving_room room;
    double earliest_s; /* when a job beside such inference ends at best; NAN: never, or no job */
};
void wg__serving_figures(const struct wg_serving_study_request *request,
                         const struct wg_serving_cell *cell, struct wg_serving_figures *out);

/* The interval of 95 % of the rate of violations that is shown: by how the runs differ, because
 * they know of bursts; where these do not differ (one run, no violation), Wilson's. Two numbers. */
const double *wg__serving_interval(const struct wg_serving_cell *cell);

/* The word of an answer that is no service: "hopeless". */
const char *wg__serving_answer_word(enum wg_answer answer);

/* One object with "schema":"wattgov.simulate.serving/1". */
void wg__serving_json(const struct wg_serving_study *study,
                      const struct wg_serving_study_request *request, struct wg_buffer *out);

/* One row per cell: see the command's help. */
void wg__serving_csv(const struct wg_serving_study *study,
                     const struct wg_serving_study_request *request, struct wg_buffer *out);

/* The set-up, a table per arrival law, and below it what the SLO leaves. */
void wg__serving_text(const struct wg_serving_study *study,
                      const struct wg_serving_study_request *request, bool with_color,
                      struct wg_buffer *out);

/* Parts of it, for the report as well: the table of a law (the caller ends it), the sentences below
 * it, and the set-up in words. */
void wg__serving_policy_table(const struct wg_serving_study *study,
                              const struct wg_serving_study_request *request, size_t law,
                              struct wg_table *out);
void wg__serving_room_text(const struct wg_serving_study *study,
                           const struct wg_serving_study_request *request, size_t law,
                           struct wg_buffer *out);
void wg__serving_setup_text(const struct wg_serving_study_request *request, struct wg_buffer *out);

#endif
