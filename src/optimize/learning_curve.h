/* SPDX-License-Identifier: MIT
 *
 * Predicting a run's epochs to target from how its metric has risen so far.
 *
 * A finished run is kept as a curve: at which epoch it first reached each value of the metric. A
 * running one that needed t epochs to a value v, where a finished one needed t_r(v) of its T_r, is
 * expected to need t T_r / t_r(v) in all; and as long as it has not reached the next value, at
 * least its epochs so far scaled likewise. How far such forecasts are off is learned, too: each run
 * that reaches its target is first forecast from every point of its curve by the runs before it,
 * and the squared errors are kept by how far along it was. A job whose curves say nothing thus gets
 * forecasts that say nothing.
 *
 * Owns: a book holds its curves by value.    Threads: one at a time.
 */
#ifndef WG_OPTIMIZE_LEARNING_CURVE_H
#define WG_OPTIMIZE_LEARNING_CURVE_H

#include <stdbool.h>
#include <stddef.h>

enum { WG_CURVE_POINTS_MAX = 32, WG_CURVES_MAX = 8, WG_CURVE_STAGES = 4 };

/* Improvements of the metric, in order. When it is full the most crowded point goes, by the
 * logarithm of its epoch, so a long curve coarsens evenly in octaves and keeps its beginning. */
struct wg_learning_curve {
    size_t count;
    struct {
        double metric;
        unsigned epoch;
    } points[WG_CURVE_POINTS_MAX];
};

/* The latest finished runs. */
struct wg_learning_curve_book {
    bool higher_is_better;
    size_t count;
    size_t next;
    struct wg_learning_curve curves[WG_CURVES_MAX];
    unsigned total_epochs[WG_CURVES_MAX];
    double squared_error[WG_CURVE_STAGES]; /* sums, in octaves^2, by share of the way */
    unsigned error_count[WG_CURVE_STAGES];
};

/* Takes the metric after `epoch` epochs; ignored unless it is an improvement (NaN is ignored, and
 * so is what holds before the first epoch). */
void wg__learning_curve_tell(struct wg_learning_curve *curve, bool higher_is_better, unsigned epoch,
                             double metric);

/* Adds the curve of a run that reached its target after `total_epochs`. */
void wg__curve_book_add(struct wg_learning_curve_book *book, const struct wg_learning_curve *curve,
                        unsigned total_epochs);

struct wg_curve_forecast {
    double log2_epochs; /* to the target, in all */
    double sd;
    size_t stage; /* quarter of the way, 0..WG_CURVE_STAGES - 1 */
};

/* What the book says of a run with this curve after `epochs_done` epochs; false: nothing. */
bool wg__curve_book_forecast(const struct wg_learning_curve_book *book,
                             const struct wg_learning_curve *curve, unsigned epochs_done,
                             struct wg_curve_forecast *out);

#endif
