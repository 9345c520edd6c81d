/* SPDX-License-Identifier: MIT
 *
 * Independent Gaussian processes over a tuning's objective and limits: what the two generic
 * policies share.
 *
 * Each quantity (0: the objective, i + 1: limit i) has its own process over the knobs' axes, on a
 * scale of its own:
 *
 *     value = side * log(figure)      with logarithms, where all figures are positive
 *     value = side * figure           else
 *     y     = (value - offset) / scale
 *
 * `side` is -1 of a minimum and 1 else: less is always better.
 * What an observation's own error exceeds the tuning's common one by is noise of its own, where
 * `use_errors` asks for it. A CUT trial's figure is a bound: it is taken at the bound with a noise
 * of WG_TUNING_CUT_ERROR, for the truth lies beyond.
 *
 * Axes go from 0 to 1 over a knob's levels, linearly, or by the logarithm where the caller says.
 *
 * Owns: its arrays.    Threads: one at a time.
 */
#ifndef WG_OPTIMIZE_TUNING_SURROGATE_H
#define WG_OPTIMIZE_TUNING_SURROGATE_H

#include "math/gaussian_process.h"
#include "optimize/tuning_policy.h"

enum { WG_TUNING_QUANTITIES_MAX = 1 + WG_TUNING_LIMITS_MAX };

/* The relative standard error of a figure that is a bound only. */
#define WG_TUNING_CUT_ERROR 0.25

struct wg_tuning_quantity {
    struct wg_gp gp;
    bool is_log;
    double side, offset, scale;
    double bound; /* of a limit, as a value */
};

struct wg_tuning_surrogate {
    const struct wg_tuning_space *space;
    size_t quantity_count;
    struct wg_tuning_quantity quantities[WG_TUNING_QUANTITIES_MAX];
    double *axis[WG_TUNING_KNOBS_MAX]; /* the place of each level */
    double *x, *y, *extra;             /* of the observations being gathered */
    size_t capacity;                   /* of these */
};

/* `is_log[k]`: the axis of knob k is logarithmic. WG_ENOMEM. */
enum wg_code wg__tuning_surrogate_init(struct wg_tuning_surrogate *surrogate,
                                       const struct wg_tuning_view *view, const bool *is_log,
                                       struct wg_error *err);
void wg__tuning_surrogate_fini(struct wg_tuning_surrogate *surrogate);

/* Takes in the trials of the view that `counts` does not reject (NULL: all), on logarithms or not;
 * `by_deviation`: scale is the population standard deviation (1 where that is 0), else 1, but for
 * quantities without logarithms or of kind OTHER, whose size tells nothing. The offset is the mean.
 * The processes are not fitted by it. */
struct wg_tuning_gathering {
    bool use_logs, by_deviation, use_errors;
    const bool *counts; /* [view->trial_count] */
};
enum wg_code wg__tuning_surrogate_gather(struct wg_tuning_surrogate *surrogate,
                                         const struct wg_tuning_view *view,
                                         const struct wg_tuning_gathering *how,
                                         struct wg_error *err);

/* Values (not y) of all quantities at up to WG_GP_BLOCK configurations. A quantity without
 * observations is NAN. */
struct wg_tuning_block {
    size_t next; /* where the walk goes on */
    size_t count;
    size_t configurations[WG_GP_BLOCK];
    double mean[WG_TUNING_QUANTITIES_MAX][WG_GP_BLOCK];
    double sd[WG_TUNING_QUANTITIES_MAX][WG_GP_BLOCK];
};

/* A walk over the configurations that are wanted, from a block of zeros on; false: there are no
 * more. All processes must be fitted. */
typedef bool wg_tuning_wants(const void *context, const struct wg_tuning_view *view,
                             size_t configuration);
bool wg__tuning_surrogate_walk(struct wg_tuning_surrogate *surrogate,
                               const struct wg_tuning_view *view, wg_tuning_wants *wants,
                               const void *context, struct wg_tuning_block *block);

/* The logarithm of the probability that configuration `at` of the block meets all limits; a limit
 * of which nothing is known is met by half. */
double wg__tuning_log_feasible(const struct wg_tuning_surrogate *surrogate,
                               const struct wg_tuning_block *block, size_t at);

/* As wg_tuning_policy_ops' forecast. */
bool wg__tuning_surrogate_forecast(struct wg_tuning_surrogate *surrogate, size_t configuration,
                                   struct wg_tuning_forecast *out);

#endif
