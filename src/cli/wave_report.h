/* SPDX-License-Identifier: MIT
 *
 * The results of `wattgov wave analyze`: for people, as JSON, as CSV, as a page.
 *
 * Owns: nothing.    Threads: any thread.
 */
#ifndef WG_CLI_WAVE_REPORT_H
#define WG_CLI_WAVE_REPORT_H

#include "cli/wave_analysis.h"
#include "cli/wave_model.h"

struct wg_buffer;

enum { WG_WAVE_GPUS_MAX = 8, WG_WAVE_CELL_SIZE = 160 };

struct wg_wave_report {
    const struct wg_wave_model *model;
    size_t count; /* GPUs, in the order in which they were asked for */
    struct wg_wave_analysis analyses[WG_WAVE_GPUS_MAX];
    const struct wg_kernel_model *kernels[WG_WAVE_GPUS_MAX];
    const char *calibration;           /* the file; NULL: what is built in */
    size_t kinds_shown;                /* of the text; those with the longest tails */
    double max_waste, max_total_waste; /* NAN: no limit */
    const char *command;
};

/* What a layer of an analysis breaks: more than `max_waste` of its time is tail. */
bool wg__wave_is_wasteful(const struct wg_wave_report *report, const struct wg_wave_row *row);
bool wg__wave_is_wasteful_in_total(const struct wg_wave_report *report,
                                   const struct wg_wave_analysis *analysis);
/* "2 layers waste more than 15 % on a100: conv1 (31.2 %), fc (16.0 %)"; false: none does. */
bool wg__wave_waste_text(const struct wg_wave_report *report, struct wg_buffer *out);

/* The network's own batch among the points; NULL: not there. */
const struct wg_batch_point *wg__wave_own_batch(const struct wg_wave_analysis *analysis);

/* What a reader must know before he trusts the numbers, a sentence each; the index from 0 on.
 * false: no more. */
bool wg__wave_caveat(const struct wg_wave_report *report, const struct wg_wave_analysis *analysis,
                     size_t index, struct wg_buffer *out);

/* A name's end, which tells more than its beginning: "..layer4.2.conv3/Conv". */
void wg__wave_name_cell(char out[static WG_WAVE_CELL_SIZE], const char *name);

struct wg_table;
/* A table of `count` kinds, which must be freed; NULL: of all layers in their order. */
void wg__wave_layer_table(const struct wg_wave_analysis *analysis, const struct wg_wave_kind *kinds,
                          size_t count, struct wg_table *out);
/* Layers side by side; more than one GPU. */
void wg__wave_compare_table(const struct wg_wave_report *report, struct wg_table *out);

void wg__wave_text(const struct wg_wave_report *report, bool with_color, struct wg_buffer *out);
void wg__wave_json(const struct wg_wave_report *report, struct wg_buffer *out);
void wg__wave_csv(const struct wg_wave_report *report, struct wg_buffer *out);
void wg__wave_page(const struct wg_wave_report *report, struct wg_buffer *out);

/* The batch sizes at which throughput is greatest among all smaller ones, at most as many as a list
 * of batch sizes may have, the greatest last: see batch_file.h. */
void wg__wave_batches_csv(const struct wg_wave_analysis *analysis, struct wg_buffer *out);

#endif
