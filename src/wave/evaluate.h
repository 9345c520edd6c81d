/* SPDX-License-Identifier: MIT
 *
 * How good predictions are, against measurements: errors, steps found, advice, the tail measure.
 *
 * A curve is what was measured of one (dtype, op, batch, n, k) over rising m. On each:
 *
 *     step    m -> next m, where m >= 64 and the next is at most 25 % more: measured time rises by
 *             more than 8 %. A prediction is a mean over what the library may do, and its rises are
 *             smaller. So a step counts as told above another rise: in folds, the one which
 *             predictions exceeded as often as there were steps, on the same dtype's other folds
 *             (no answer of the fold itself is used); without folds, 7 %.
 *     cliff   m -> m + 1 at multiples of 64: measured time rises by 10 % or more. The predicted
 *             rise ranks them; the area under the ROC curve is the chance that a cliff ranks above
 *             one that is none.
 *     advice  of the m in [m0, 1.25 * m0], for each m0 >= 64: the measured throughput at the m with
 *             the best predicted throughput, as a share of the best measured. Beside it the rule of
 *             thumb: the largest multiple of 64, 128, 256 or 512 in the window (the largest m where
 *             there is none), whichever multiple is best on these very data.
 *     tail    the predicted share of the time that idle SMs of the last wave cost, ranked against
 *             the measured loss 1 - full_s / time_s, where blocks fill more than one wave.
 *
 * Values that the data cannot give are NAN.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_EVALUATE_H
#define WG_WAVE_EVALUATE_H

#include "wave/calibration.h"

enum { WG_FOLDS_MAX = 64 };

struct wg_evaluated {
    const struct wg_measured *row;
    double predicted_s, low_s, high_s; /* low and high NAN: no range */
    double full_s;                     /* the prediction less its tail */
    double waves;
    bool is_recalled;  /* this very shape was in the calibration: no prediction to speak of */
    double roofline_s; /* the data sheet's, no more */
    unsigned fold;     /* 1, ...; 0: not predicted in folds */
};

struct wg_evaluation {
    size_t rows, recalled;
    double mape, median_ape;
    double coverage; /* share of rows within low_s .. high_s */
    double spearman_tail;
    size_t steps, cliffs, cliff_places, windows; /* measured ones; places where cliffs may be */
    double step_recall, step_precision;
    double told_rise; /* above which a predicted rise counted as a step, on average */
    double cliff_auc;
    double share_of_best, best_fixed_multiple;
    unsigned fixed_multiple; /* which; 0: no windows */
    double roofline_mape;
};

/* Predicts each row with the model. A row that the model cannot predict is an error. */
enum wg_code wg__evaluate_predict(const struct wg_gpu_spec *gpu,
                                  const struct wg_calibration *calibration,
                                  const struct wg_measured *rows, size_t count,
                                  struct wg_evaluated *out, struct wg_error *err);

/* Predicts each row by a calibration of the other folds: no row of the same (n, k) is in its fit.
 * The range of a fold comes from how wrong the other folds were. WG_EINVAL: folds beyond 2
 * .. 64. */
enum wg_code wg__evaluate_folds(const struct wg_gpu_spec *gpu, const struct wg_measured *rows,
                                size_t count, unsigned folds, uint64_t seed,
                                struct wg_evaluated *out, struct wg_error *err);

/* Sorts `rows` by curve and m, then measures. WG_ENOMEM. */
enum wg_code wg__evaluate(struct wg_evaluation *out, struct wg_evaluated *rows, size_t count,
                          struct wg_error *err);

#endif
