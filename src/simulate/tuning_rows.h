/* SPDX-License-Identifier: MIT
 *
 * The rows of a measured grid as the file has them: see tuning_grid.h.
 *
 * Owns: see init and fini.    Threads: one at a time.
 */
#ifndef WG_SIMULATE_TUNING_ROWS_H
#define WG_SIMULATE_TUNING_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "simulate/tuning_grid.h"

enum { WG_TUNING_FIGURES_MAX = 1 + WG_TUNING_LIMITS_MAX };

/* Columns that are no knob and in no expression, and have few different texts: they may tell why
 * rows of the same configuration differ. */
enum { WG_TUNING_ASIDES_MAX = 32, WG_TUNING_ASIDE_TEXTS_MAX = 16 };

struct wg_tuning_aside {
    size_t column;
    const char *name;
    const char *texts[WG_TUNING_ASIDE_TEXTS_MAX];
    size_t text_count;
    bool has_many; /* more texts than fit: more likely a figure; left alone */
};

struct wg_tuning_row {
    size_t line;
    double knobs[WG_TUNING_KNOBS_MAX];          /* of a category: the index of its label */
    double figures[WG_TUNING_FIGURES_MAX];      /* the objective's, then the limits' */
    unsigned char asides[WG_TUNING_ASIDES_MAX]; /* which of the texts */
};

struct wg_tuning_rows {
    struct wg_arena arena; /* the labels */
    struct wg_tuning_row *items;
    size_t count;
    size_t capacity;
    const char *labels[WG_TUNING_KNOBS_MAX][WG_TUNING_LEVELS_MAX]; /* in the order of the rows */
    size_t label_count[WG_TUNING_KNOBS_MAX];
    size_t aside_count;
    struct wg_tuning_aside asides[WG_TUNING_ASIDES_MAX];
};

/* Reads the selected rows, at least one. Knobs are what their roles allow, figures above 0. */
enum wg_code wg__tuning_rows_read(struct wg_tuning_rows *rows,
                                  const struct wg_tuning_grid_request *request,
                                  struct wg_error *err);

/* Accepts rows that were only zeroed. */
void wg__tuning_rows_fini(struct wg_tuning_rows *rows);

#endif
