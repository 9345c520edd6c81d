/* SPDX-License-Identifier: MIT
 *
 * What a line over batch sizes can't show: a GPU works in whole waves, so the time of a batch is a
 * staircase. Each batch size that was seen has an effect of its own, d, a share of the line's time,
 *
 *     t = line(b) (1 + d(b)) + noise        d ~ N(first(b), spread^2)
 *
 * a random effect: shrunk towards the first fit's (0 where that saw nothing) as far as noise and
 * few batches of that size ask for. It is estimated together with the line and not after it: what
 * all sizes share is the line's. The normal equations have the shape of an arrow, and taking the
 * effects out of them leaves the line's own, less v v' / (w + k) a size (v: the sum of a size's
 * rows, w: their weight, k = noise / spread^2).
 *
 * For predicting, the effects become two numbers a size, so that t = alpha A + g B + ... with A
 * what is fixed and B what a row costs at the clocks asked for:
 *
 *     T(b) = line(b) (1 + d(b)), made to never fall (pool adjacent violators)
 *     alpha = min(1, T / A)    g = max(0, (T - A) / B)
 *
 * Both never fall with b, so neither does t, whatever the clocks make of A and B.
 *
 * Owns: nothing; the caller's memory.    Threads: one at a time.
 */
#ifndef WG_SCHEDULE_BATCH_EFFECTS_H
#define WG_SCHEDULE_BATCH_EFFECTS_H

#include <stddef.h>
#include <stdint.h>

#include "math/nnls.h"

/* Sizes up to 64 each have a place, larger ones share 16 an octave, those beyond ROWS_MAX none. */
enum { WG_EFFECT_ROWS_MAX = 1024, WG_EFFECT_SIZES_MAX = 128 };

struct wg_effect {
    double rows;
    double row_sum[WG_NNLS_MAX]; /* v */
    double weight;               /* w */
    double target_sum;           /* of what the line's and the effect's parts add up to */
    double first;                /* of the first fit */
    double effect;               /* d */
};

struct wg_batch_effects {
    size_t count;
    struct wg_effect sizes[WG_EFFECT_SIZES_MAX]; /* rows rising */
    double alpha[WG_EFFECT_SIZES_MAX];
    double rows[WG_EFFECT_SIZES_MAX];     /* g */
    uint8_t upto[WG_EFFECT_ROWS_MAX + 1]; /* how many sizes have at most that many rows */
};

void wg__batch_effects_init(struct wg_batch_effects *effects);

/* The size that `rows` belong to, made if there is none; NULL: it can't have one. */
struct wg_effect *wg__batch_effects_find(struct wg_batch_effects *effects, double rows);

/* Multiplies all weights by a factor. */
void wg__batch_effects_scale(struct wg_batch_effects *effects, double factor);

/* Takes the effects out of the line's normal equations (lower triangle; then it fills the upper
 * one); `shrink` is k. What is beyond the equations' count is zero, here and in `row_sum`. */
void wg__batch_effects_reduce(const struct wg_batch_effects *effects, double shrink,
                              struct wg_nnls *equations);

/* The effects that go with the line's solution `x`. */
void wg__batch_effects_solve(struct wg_batch_effects *effects, double shrink, const double *x);

/* What they make of a line of `fixed` + `per_row` b seconds, for wg__batch_effects_at. */
void wg__batch_effects_shape(struct wg_batch_effects *effects, double shrink, double fixed,
                             double per_row);

/* Rows >= 0 as `alpha` and `g`; between sizes and beyond them. */
void wg__batch_effects_at(const struct wg_batch_effects *effects, double rows, double *alpha_out,
                          double *rows_out);

#endif
