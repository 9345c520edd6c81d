/* SPDX-License-Identifier: MIT
 *
 * What came of a tuning, for people and for programs.
 *
 * Owns: nothing.    Threads: the main thread.
 */
#ifndef WG_CLI_TUNE_REPORT_H
#define WG_CLI_TUNE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/tune_args.h"

struct wg_buffer;
struct wg_table;

struct wg_tune_report {
    const struct wg_tune_setup *setup;
    const struct wg_tune_result *result;
    const char *command; /* the whole command line; NULL: not known */
    const char *made_at; /* "2026-11-30 12:54 UTC"; NULL: not known */
    const char *host;    /* NULL: not known */
};

/* A configuration as it was measured: means over its MEASURED trials. */
struct wg_tune_standing {
    size_t trials; /* 0: the rest is NAN */
    double objective;
    double objective_error; /* relative standard error; NAN: not known */
    double figures[WG_TUNING_LIMITS_MAX];
};
void wg__tune_standing(const struct wg_tune_report *report, size_t configuration,
                       struct wg_tune_standing *out);

/* The mean of a figure over the MEASURED trials of a configuration; NAN: not told. */
double wg__tune_standing_figure(const struct wg_tune_report *report, size_t configuration,
                                const char *name);

/* Of figures that --arrivals simulated: they are those at the load. Everything else is of the
 * window as it was measured. */
bool wg__tune_is_at_load(const struct wg_tune_report *report, const char *name);

/* What the simulated load makes of a configuration. */
struct wg_tune_at_load {
    double utilization, batch_mean; /* NAN: not told */
    double request_j;               /* energy of a request, idle power included */
    double idle_j;                  /* of that: drawn while nothing was served; NAN: rate unknown */
};
/* False: no load was simulated. */
bool wg__tune_at_load(const struct wg_tune_report *report, size_t configuration,
                      struct wg_tune_at_load *out);
/* "at poisson:50/s (simulated): utilization 65 %, mean batch 1.26, 0.42 of 3.65 J a request (12 %)
 * are idle power"; nothing where no load was simulated. */
void wg__tune_load_text(const struct wg_tune_report *report, size_t configuration,
                        struct wg_buffer *out);
/* "as measured: 66.5 requests/s, 222.9 W, 3.35 J a request": of the windows, whatever the load. */
void wg__tune_measured_text(const struct wg_tune_report *report, size_t configuration,
                            struct wg_buffer *out);

/* Why a trial was made, in a few words: "once more, to be sure". */
const char *wg__tune_reason_text(enum wg_tuner_reason reason);

/* How sure the returned configuration is: "validated"; and that it is the default, if it is. */
void wg__tune_standing_text(const struct wg_tune_report *report, struct wg_buffer *out);

/* Whose the joules of a request are where arrivals are sent as they are; "": no request's joules
 * are asked for. */
const char *wg__tune_offered_text(const struct wg_tune_report *report);

/* What failed first, and how to learn more; nothing where nothing did. */
void wg__tune_failure_text(const struct wg_tune_report *report, struct wg_buffer *out);

/* "2026-11-30 12:54 UTC on node7: gpu0 NVIDIA A100-SXM4-80GB; wattgov 0.6, policy wattgov, seed 1".
 */
void wg__tune_made_text(const struct wg_tune_report *report, struct wg_buffer *out);

/* Whether a figure of a limit breaks its bound. */
bool wg__tune_is_missed(const struct wg_tune_report *report, size_t limit, double value);

/* How much cheaper than the default, and the standard error of that, both as shares; NAN: unknown.
 */
struct wg_tune_saving {
    double share, error;
};
struct wg_tune_saving wg__tune_saving(const struct wg_tune_report *report, size_t configuration);
/* "-14.0 % ± 18.0 % against the default (within the noise)"; nothing where it is not known. */
void wg__tune_saving_text(const struct wg_tune_report *report, size_t configuration,
                          struct wg_buffer *out);

/* "0.03421 ± 1.2 %": a figure and its relative standard error, as far as that is known. */
enum { WG_TUNE_FIGURE_SIZE = 48 };
void wg__tune_figure_text(char out[static WG_TUNE_FIGURE_SIZE], double value, double error);

/* What became of a trial, for people: "over the limit", "overloaded: at least so much". */
const char *wg__tune_outcome_text(const struct wg_tune_report *report,
                                  const struct wg_tune_trial *trial);

/* "converged", "budget", "exhausted", "interrupted", "time", "foreign", "failed". */
const char *wg__tune_end_key(const struct wg_tune_report *report);

/* "the energy counter of gpu0"; whether the goal or the load needs energy at all. */
void wg__tune_report_energy(const struct wg_tune_report *report,
                            char out[static WG_TUNE_ENERGY_TEXT_SIZE]);

/* The trials as a table; the caller's columns must outlive it. */
enum { WG_TUNE_COLUMNS_MAX = WG_TUNING_KNOBS_MAX + WG_TUNING_LIMITS_MAX + 4 };
struct wg_table_column;
void wg__tune_table(const struct wg_tune_report *report, struct wg_table_column *columns,
                    struct wg_table *table);

/* What was returned, the runner-up and the default with all that counts. */
void wg__tune_summary_table(const struct wg_tune_report *report, struct wg_table_column *columns,
                            struct wg_table *table);

void wg__tune_text(const struct wg_tune_report *report, bool with_color, struct wg_buffer *out);
void wg__tune_json(const struct wg_tune_report *report, struct wg_buffer *out);
/* Slices of what is believed, along each knob through the returned configuration: objective and
 * limits. A part of the page. */
struct wg_page;
void wg__tune_slices(struct wg_page *page, const struct wg_tune_report *report);
void wg__tune_page(const struct wg_tune_report *report, struct wg_buffer *out);

/* The returned configuration as a file for `wattgov tune apply` (tune_result.h). */
void wg__tune_result_yaml(const struct wg_tune_report *report, struct wg_buffer *out);

#endif
