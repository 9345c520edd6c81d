/* SPDX-License-Identifier: MIT
 *
 * The physical predictor's line and its learning: predictor.h says what it predicts.
 *
 * Weighted least squares of t / s on the features over s, where s is what was predicted: errors
 * count as shares. Three things make up the normal equations:
 *
 *     batches told, and at first the samples     forgotten by a factor a batch
 *     the first fit as a prior                   never forgotten
 *     the effects of batch sizes                 batch_effects.h
 *
 * The prior is theta = first (1 + each part's own error + one that all share), errors of 30 %. It
 * is a batch or less in weight, so what batches show soon outweighs it; but where they show nothing
 * it is all there is, and says what is plausible: that other batches, at other clocks, are slower
 * too when those seen are. Forgetting without it is the wind-up of recursive least squares: a
 * million like batches leave one number known, and the rest drifts with the noise.
 *
 * Prior and effects weigh by the variance of the noise, which is estimated on the way.
 *
 * Owns: nothing; the caller's memory.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_PREDICTOR_PHYSICAL_H
#define WG_SCHEDULE_PREDICTOR_PHYSICAL_H

#include <stdbool.h>
#include <stddef.h>

#include "math/nnls.h"
#include "schedule/batch_effects.h"
#include "schedule/predictor.h"

enum wg_time_scale { WG_SCALE_NONE, WG_SCALE_GPU, WG_SCALE_MEM, WG_SCALE_COUNT };

/* (fixed + per_row * rows) over a clock; rows of the step beside the batch if `is_beside`. */
struct wg_feature {
    double fixed, per_row;
    enum wg_time_scale scale;
    bool is_beside;
};

/* The line's seconds, sorted by what they scale with. */
struct wg_line_times {
    double fixed[WG_SCALE_COUNT], per_row[WG_SCALE_COUNT];
    double beside_fixed[WG_SCALE_COUNT], beside_per_row[WG_SCALE_COUNT];
};

struct wg_physical {
    size_t count; /* of features */
    struct wg_feature features[WG_NNLS_MAX];
    double forgetting;
    double prior[WG_NNLS_MAX][WG_NNLS_MAX]; /* to be multiplied by the noise */
    double prior_moment[WG_NNLS_MAX];
    bool is_seen[WG_NNLS_MAX];             /* the feature was not 0 somewhere */
    double unit;                           /* weight of the next batch; grows */
    double gram[WG_NNLS_MAX][WG_NNLS_MAX]; /* lower triangle */
    double moment[WG_NNLS_MAX];
    double noise;       /* variance of a time as a share of its prediction */
    struct wg_nnls fit; /* theta, and the warm start */
    struct wg_line_times line;
    struct wg_batch_effects effects;
    double slowness[WG_SCALE_COUNT]; /* 1 / clocks of the last batch: effects are exact there */
};

/* Samples are valid; the shapes of `setup` too. */
void wg__physical_init(struct wg_physical *physical, const struct wg_predictor_setup *setup,
                       const struct wg_predictor_sample *samples, size_t count);

double wg__physical_time(const struct wg_physical *physical,
                         const struct wg_predictor_point *point);

/* A valid sample; `predicted_s` is wg__physical_time of it. */
void wg__physical_tell(struct wg_physical *physical, const struct wg_predictor_sample *sample,
                       double predicted_s);

#endif
