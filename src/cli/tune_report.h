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
};

/* A configuration as it was measured: means over its MEASURED trials. */
struct wg_tune_standing {
    size_t trials; /* 0: the rest is NAN */
    double objective;
    double figures[WG_TUNING_LIMITS_MAX];
};
void wg__tune_standing(const struct wg_tune_report *report, size_t configuration,
                       struct wg_tune_standing *out);

/* "converged", "budget", "exhausted", "interrupted", "time", "foreign". */
const char *wg__tune_end_key(const struct wg_tune_report *report);

/* "the energy counter of gpu0"; whether the goal or the load needs energy at all. */
void wg__tune_report_energy(const struct wg_tune_report *report,
                            char out[static WG_TUNE_ENERGY_TEXT_SIZE]);

/* The trials as a table; the caller's columns must outlive it. */
enum { WG_TUNE_COLUMNS_MAX = WG_TUNING_KNOBS_MAX + WG_TUNING_LIMITS_MAX + 4 };
struct wg_table_column;
void wg__tune_table(const struct wg_tune_report *report, struct wg_table_column *columns,
                    struct wg_table *table);

void wg__tune_text(const struct wg_tune_report *report, bool with_color, struct wg_buffer *out);
void wg__tune_json(const struct wg_tune_report *report, struct wg_buffer *out);
void wg__tune_page(const struct wg_tune_report *report, struct wg_buffer *out);

/* The returned configuration as a file for `wattgov tune apply` (tune_result.h). */
void wg__tune_result_yaml(const struct wg_tune_report *report, struct wg_buffer *out);

#endif
