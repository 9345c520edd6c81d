/* SPDX-License-Identifier: MIT
 *
 * The results of `wattgov simulate tuning` as JSON, as CSV and as text for a terminal.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_TUNING_RESULTS_H
#define WG_CLI_TUNING_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

#include "simulate/tuning_study.h"

struct wg_buffer;
struct wg_table;

/* A single run, trial by trial. */
struct wg_tuning_trials {
    struct wg_tuning_setup setup;
    struct wg_tuning_outcome outcome;
    struct wg_tuner_result result;
    size_t count;
    size_t capacity;
    struct wg_tuning_told {
        struct wg_tuner_question question;
        struct wg_trial trial;
        size_t number;   /* trials that counted then */
    } *items;            /* owned */
    bool has_overflowed; /* memory ran out while it was recorded */
};

/* Runs it. WG_ENOMEM and the tuner's codes. */
enum wg_code wg__tuning_trials_run(struct wg_tuning_trials *trials,
                                   const struct wg_tuning_setup *setup, struct wg_error *err);
void wg__tuning_trials_fini(struct wg_tuning_trials *trials);

/* One object with "schema":"wattgov.simulate.tuning/1". `trials` may be NULL. */
void wg__tuning_json(const struct wg_tuning_study *study,
                     const struct wg_tuning_study_request *request,
                     const struct wg_tuning_trials *trials, struct wg_buffer *out);

/* One row per run: see the command's help. */
void wg__tuning_csv(const struct wg_tuning_study *study, struct wg_buffer *out);

/* What the grid is, a table of the policies, and the single run if there is one. */
void wg__tuning_text(const struct wg_tuning_study *study,
                     const struct wg_tuning_study_request *request,
                     const struct wg_tuning_trials *trials, bool with_color, struct wg_buffer *out);

/* The tables themselves, for the report as well. The caller ends them. */
void wg__tuning_policy_table(const struct wg_tuning_study *study, struct wg_table *out);
void wg__tuning_trial_table(const struct wg_tuning_trials *trials, struct wg_table *out);

/* "n_cores 1, gpu_hz 1300500000" */
void wg__tuning_describe(const struct wg_tuning_space *space, size_t configuration,
                         struct wg_buffer *out);

/* A sentence about rows that share a configuration; nothing where none do. */
void wg__tuning_replicates_text(const struct wg_tuning_grid *grid, struct wg_buffer *out);

#endif
