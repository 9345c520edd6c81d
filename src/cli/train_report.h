/* SPDX-License-Identifier: MIT
 *
 * What `wattgov train` says at the end: a table for people, an object of schema wattgov.train/1, a
 * page with plots.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_CLI_TRAIN_REPORT_H
#define WG_CLI_TRAIN_REPORT_H

#include "cli/quantity.h"
#include "live/train_runner.h"

struct wg_buffer;
struct wg_table;

struct wg_train_report {
    char *const *command;
    const char *objective;                     /* as it was given: "cost:0.5" */
    const struct wg_device_info *const *infos; /* of the job's GPUs */
    size_t gpu_count;
    const struct wg_train_request *request;
    const struct wg_train_result *result;
    /* Observed only: the share of the objective's cost that the curves of other jobs let expect to
     * be saved; NAN: no idea. */
    double expected_cost_share;
};

/* The numbers that all three show of a row of the profile. */
struct wg_train_row {
    const struct wg_train_point *point;
    double step_j;       /* energy of a step */
    double energy_ratio; /* of a step, over the largest setting's; NAN: that was not measured */
    double speed_ratio;
    double cost_ratio; /* of the objective */
    bool is_best;
    bool is_remembered; /* from an earlier run, and not measured again */
};
/* Row `i` of a stage's profile. */
void wg__train_row(const struct wg_train_report *report, const struct wg_train_stage *stage,
                   size_t i, struct wg_train_row *out);

/* The profile of a stage as a table; the caller writes and frees it. */
void wg__train_table(const struct wg_train_report *report, const struct wg_train_stage *stage,
                     struct wg_table *out);

/* What becomes of a stage's best setting: "held", while the search goes on "best so far", and of a
 * job that was only observed "as it stands". */
const char *wg__train_standing(const struct wg_train_report *report,
                               const struct wg_train_stage *stage);

enum { WG_SETTING_TEXT_SIZE = 2 * WG_QUANTITY_TEXT_SIZE + 8 };

/* "in 7.1 % more time". */
void wg__train_slower_text(char out[static WG_QUANTITY_TEXT_SIZE], double slower_share);

/* What was saved, or why not, in words: completes "saved". */
void wg__train_verdict(const struct wg_train_report *report, struct wg_buffer *out);

void wg__train_text(const struct wg_train_report *report, bool with_color, struct wg_buffer *out);
void wg__train_json(const struct wg_train_report *report, struct wg_buffer *out);
void wg__train_page(const struct wg_train_report *report, struct wg_buffer *out);

#endif
