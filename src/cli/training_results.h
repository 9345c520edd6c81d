/* SPDX-License-Identifier: MIT
 *
 * The results of `wattgov simulate training` as JSON, as CSV and as tables for a terminal.
 *
 * Numbers for programs are in SI units and ratios are fractions; those for people have prefixes,
 * hours and per cents. All three are made from the same study, so they cannot disagree.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_CLI_TRAINING_RESULTS_H
#define WG_CLI_TRAINING_RESULTS_H

#include <stdbool.h>
#include <stddef.h>

struct wg_buffer;
struct wg_study;
struct wg_study_request;
struct wg_study_world;
struct wg_table;

/* One object with "schema":"wattgov.simulate.training/1". */
void wg__training_json(const struct wg_study *study, const struct wg_study_request *request,
                       struct wg_buffer *out);

/* One row per case and recurrence: gpu, job, policy, recurrence, cumulative_cost_j (mean over the
 * seeds), low_j, high_j (10 % and 90 % quantiles), default_j, oracle_j (expected). */
void wg__training_csv(const struct wg_study *study, struct wg_buffer *out);

/* A table per GPU and a summary, at most 120 columns wide. */
void wg__training_text(const struct wg_study *study, const struct wg_study_request *request,
                       bool with_color, struct wg_buffer *out);

/* The tables themselves, for the report as well. The caller ends them. */
void wg__training_gpu_table(const struct wg_study *study, const char *gpu, struct wg_table *out);
void wg__training_summary_table(const struct wg_study *study, struct wg_table *out);

/* Whether the default reaches the target at all; after a drift it may not, and is then charged
 * WG_ATTEMPTS_MAX attempts in vain and the best setting for each recurrence. */
bool wg__default_reaches(const struct wg_study_world *world);

enum { WG_QUANTITY_BYTES = 32 };

/* A unit for people, chosen by a typical value, so that like values share it. */
struct wg_unit {
    double size; /* in SI units */
    const char *name;
};
struct wg_unit wg__unit_of_energy(double typical_j); /* J .. TJ */
struct wg_unit wg__unit_of_time(double typical_s);   /* s, min, h */

/* "643.4 MJ"; "23.5 %". */
void wg__format_in(char out[static WG_QUANTITY_BYTES], double value, struct wg_unit unit);
void wg__format_share(char out[static WG_QUANTITY_BYTES], double share);

#endif
