/* SPDX-License-Identifier: MIT
 *
 * A measured grid: what each configuration of a space costs and how it stands to the limits, from a
 * CSV file.
 *
 * Columns are named by the caller: those that select rows, those that are knobs, and expressions
 * over columns (base/expression.h) for the objective and the limits. Rows with the same levels of
 * all knobs are replicates: a configuration has the mean of each expression over them.
 *
 *     model,image_px,n_cores,cpu_khz,inference_time_s,ina_sum_mw      --where model=xception
 *       where            knobs        limit            objective
 *
 * These means are taken for the truth. Judged by them, a configuration is near-optimal when it
 * meets all limits and costs at most 5 % more than the cheapest one that does.
 *
 * Owns: all that it holds.    Threads: read by any thread once made.
 */
#ifndef WG_SIMULATE_TUNING_GRID_H
#define WG_SIMULATE_TUNING_GRID_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "optimize/tuner.h"
#include "optimize/tuning_space.h"

enum { WG_TUNING_WHERE_MAX = 16 };

/* "column=value". The value is compared as text, where `*`, `?` and `[...]` stand for what they do
 * in a shell, and as a number where both are numbers. */
struct wg_tuning_match {
    const char *column;
    const char *value;
};

struct wg_tuning_axis {
    const char *column;
    enum wg_tuning_role role;
};

/* A limit on an expression. */
struct wg_tuning_bound {
    const char *expression;
    enum wg_tuning_kind kind;
    bool is_minimum;  /* figure >= bound, instead of <= */
    bool is_relative; /* `value` times the best of the grid: the least, or of a minimum the most */
    double value;     /* > 0 */
};

struct wg_tuning_grid_request {
    const char *path;
    size_t match_count;
    struct wg_tuning_match matches[WG_TUNING_WHERE_MAX]; /* all must hold */
    size_t axis_count;
    struct wg_tuning_axis axes[WG_TUNING_KNOBS_MAX];
    const char *objective;
    enum wg_tuning_kind objective_kind;
    size_t limit_count;
    struct wg_tuning_bound limits[WG_TUNING_LIMITS_MAX];
    /* Levels of the default configuration. Where none is given: the highest clock, number of cores
     * and replicas, and power limit, the least of all else, the first row's category. */
    size_t default_count;
    struct wg_tuning_match defaults[WG_TUNING_KNOBS_MAX];
};

struct wg_tuning_grid {
    struct wg_arena arena;
    struct wg_tuning_space *space;
    struct wg_tuning_goal goal; /* a limit's name is its expression */
    const char *source;         /* the file */
    const char *objective;      /* its expression */
    size_t rows;                /* selected ones, replicates too */
    const char *differing;      /* "model, image_px": what replicates differ in; NULL: nothing */
    double *costs;              /* [space->count]: of the objective, > 0 */
    double *figures;            /* [space->count][goal.limit_count], > 0 */
};

/* WG_EINVAL: a column, value or expression that does not fit the file (the text begins with the
 * option that gave it); WG_EDATA: what the file holds; else the codes of wg__csv_open. */
enum wg_code wg__tuning_grid_open(struct wg_tuning_grid **out,
                                  const struct wg_tuning_grid_request *request,
                                  struct wg_error *err);
void wg__tuning_grid_close(struct wg_tuning_grid *grid);

/* What is to be found. */
struct wg_tuning_target {
    bool *is_feasible;
    bool *is_near; /* feasible and within 5 % of the optimum */
    size_t feasible, near_optimal;
    size_t available; /* configurations that work */
    size_t optimum;
    double least; /* the optimum's cost */
};

/* Judges all configurations but those `out_of_reach` (NULL: none), which are neither. The arrays
 * are in `arena`. WG_EINVAL: none is feasible; the text says how far the best is. */
enum wg_code wg__tuning_grid_judge(const struct wg_tuning_grid *grid, const bool *out_of_reach,
                                   struct wg_arena *arena, struct wg_tuning_target *out,
                                   struct wg_error *err);

static inline double wg__tuning_grid_figure(const struct wg_tuning_grid *grid, size_t configuration,
                                            size_t limit)
{
    return grid->figures[configuration * grid->goal.limit_count + limit];
}

/* The level of a knob that a value names; the knob's number of levels when none does. */
size_t wg__tuning_level_named(const struct wg_tuning_knob *knob, const char *value);

#endif
