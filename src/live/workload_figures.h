/* SPDX-License-Identifier: MIT
 *
 * What a measured command printed, as figures by name.
 *
 *     {"p99_s": 0.031, "requests": 640}         the last line (or the whole) that is a JSON object
 *     latency_s                                 or CSV: a header and rows of numbers
 *     0.0213
 *     0.0229
 *
 * JSON: numbers are figures, true and false are 1 and 0, objects within give "outer.inner", and a
 * list of numbers is taken as a column. A column of one row is a figure by its name; of several,
 * one row a request: NAME (the mean; of requests, energy_j, busy_s, time_s and tokens, which rows
 * have parts of, the sum), NAME_p50, NAME_p90, NAME_p95, NAME_p99 and `rows`. A column `latency_s`
 * gives mean_s, p50_s, p90_s, p95_s, p99_s and `requests` too, unless they are told. A figure
 * NAME_error is the relative standard error of NAME. Whatever else stands in the output is no
 * concern of ours.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_LIVE_WORKLOAD_FIGURES_H
#define WG_LIVE_WORKLOAD_FIGURES_H

#include <stddef.h>

#include "live/workload.h"

/* Fills figures and `requests` of the sample (NAN: not told). WG_EDATA: there are none, too many,
 * or CSV that is malformed; WG_ENOMEM. */
enum wg_code wg__workload_figures_parse(const char *text, size_t length,
                                        struct wg_workload_sample *out, struct wg_error *err);

/* The figure of that name; NULL: none. */
const struct wg_workload_figure *wg__workload_figure_find(const struct wg_workload_sample *sample,
                                                          const char *name);

/* Its value; NAN: there is none. */
double wg__workload_figure_value(const struct wg_workload_sample *sample, const char *name);

/* Adds one or replaces it; false: no room, or the name is too long. */
bool wg__workload_figure_put(struct wg_workload_sample *sample, const char *name, double value);

/* Whether one line of output is a JSON object of figures, such as a command prints as it goes. */
bool wg__workload_figures_line(const char *line, size_t length, struct wg_workload_sample *out);

#endif
