/* SPDX-License-Identifier: MIT
 *
 * How many epochs each batch size needs: one curve over log2 of the batch size, learned from few
 * runs.
 *
 * y_i = log2(epochs to target) of arm i is modelled as
 *
 *     y_i = e + S_h(x_i) + d_i + noise,      S_h(x) = log2(1 + 2^(x - u)) + log2(1 + 2^(k (l - x)))
 *
 * with x = log2(b / b0): flat around the default, rising by one octave per octave above the
 * critical batch size 2^u (McCandlish et al., "An Empirical Model of Large-Batch Training", 2018)
 * and by k octaves per octave below 2^l, where the learning rate or the batch statistics fail. The
 * hypotheses h = (u, l, k) lie on a fixed grid; the level e and the arms' own deviations d_i are
 * Gaussian, so that the posterior is a mixture with closed forms, O(hypotheses x arms) and no
 * matrix.
 *
 *      |                       /
 *      |  \                   /   slope 1
 *      |   \  slope -k       /
 *      |    \_______________/
 *      +-----l----b0-------u------ log2 b
 *
 * Owns: one block of tables.    Threads: one at a time.
 */
#ifndef WG_OPTIMIZE_EPOCHS_MODEL_H
#define WG_OPTIMIZE_EPOCHS_MODEL_H

#include <stddef.h>

#include "base/error.h"
#include "base/rng.h"
#include "optimize/batch_size.h"

/* Curves drawn for one decision: a power of two. */
#ifndef WG_EPOCHS_DRAWS
#define WG_EPOCHS_DRAWS 256
#endif

/* One finished run, in the order in which they ended. */
struct wg_epochs_observation {
    unsigned char arm;
    bool is_censored;   /* stopped or failed: the target was still away after these epochs */
    double log2_epochs; /* done */
    double log2_guess;  /* of a censored run: what it would have needed, as far as that is known */
};

struct wg_epochs_model {
    size_t arm_count;
    double x[WG_ARMS_MAX];          /* log2(b / b0) */
    size_t hypothesis_count;        /* (u, l, k) on the grid */
    double *shape;                  /* [hypothesis][arm] */
    double *log_prior;              /* [hypothesis] */
    double normal[WG_EPOCHS_DRAWS]; /* the strata's normal quantiles */

    /* The posterior; valid after an update. */
    double *weight; /* [hypothesis], sums to 1 */
    double *level_mean;
    double level_variance;
    double gain[WG_ARMS_MAX];          /* share of an arm's residual that is its own deviation */
    double rest[WG_ARMS_MAX];          /* variance of d_i given level and data */
    double arm_precision[WG_ARMS_MAX]; /* of the mean of the arm's observations; 0: none */
    double arm_mean[WG_ARMS_MAX];
    double mean[WG_ARMS_MAX];           /* of y_i without noise */
    double variance[WG_ARMS_MAX];       /* likewise */
    double noise_variance[WG_ARMS_MAX]; /* of one run around y_i */
    unsigned success_count[WG_ARMS_MAX];
    unsigned failure_count[WG_ARMS_MAX];
    double failure_epochs[WG_ARMS_MAX]; /* mean epochs of the failed runs */
};

/* Prepares the model for the arms of `job`, with its default at x = 0. */
enum wg_code wg__epochs_model_init(struct wg_epochs_model *model, const struct wg_batch_job *job,
                                   struct wg_error *err);
void wg__epochs_model_fini(struct wg_epochs_model *model);

/* Recomputes the posterior from all observations that count. */
void wg__epochs_model_update(struct wg_epochs_model *model,
                             const struct wg_epochs_observation *observations, size_t count);

/* Keeps the shape that is believed now as the prior of what comes, weighted by `trust` (0..1):
 * after a change of the job its curve moves, but rarely turns into another one. */
void wg__epochs_model_remember_shape(struct wg_epochs_model *model, double trust);

/* Of an arm's runs, the share that fails although others reach the target; 0 where none did. */
double wg__epochs_model_failure_share(const struct wg_epochs_model *model, size_t arm);

/* Draws WG_EPOCHS_DRAWS whole curves: y[draw * arm_count + arm]. The hypotheses are resampled
 * systematically and the Gaussian parts are Latin hypercube samples, so that few draws cover the
 * mixture evenly. */
void wg__epochs_model_sample(const struct wg_epochs_model *model, struct wg_rng *rng, double *y);

#endif
