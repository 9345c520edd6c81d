/* SPDX-License-Identifier: MIT
 *
 * The rows of a measured grid as the file has them: see tuning_grid.h.
 *
 * Owns: see init and fini.    Threads: one at a time.
 */
#ifndef WG_SIMULATE_TUNING_ROWS_H
#define WG_SIMULATE_TUNING_ROWS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "simulate/tuning_grid.h"

enum { WG_TUNING_FIGURES_MAX = 1 + WG_TUNING_LIMITS_MAX };

struct wg_tuning_row {
    size_t line;
    double knobs[WG_TUNING_KNOBS_MAX];     /* of a category: the index of its label */
    double figures[WG_TUNING_FIGURES_MAX]; /* the objective's, then the limits' */
};

struct wg_tuning_rows {
    struct wg_arena arena; /* the labels */
    struct wg_tuning_row *items;
    size_t count;
    size_t capacity;
    const char *labels[WG_TUNING_KNOBS_MAX][WG_TUNING_LEVELS_MAX]; /* in the order of the rows */
    size_t label_count[WG_TUNING_KNOBS_MAX];
};

/* Reads the selected rows, at least one. Knobs are what their roles allow, figures above 0. */
enum wg_code wg__tuning_rows_read(struct wg_tuning_rows *rows,
                                  const struct wg_tuning_grid_request *request,
                                  struct wg_error *err);

/* Accepts rows that were only zeroed. */
void wg__tuning_rows_fini(struct wg_tuning_rows *rows);

#endif
