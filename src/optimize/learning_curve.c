/* SPDX-License-Identifier: MIT
 *
 * Forecasts from learning curves: see learning_curve.h for the idea.
 *
 * Each finished run gives one forecast; the median of them counts, since one odd run must not stop
 * others.
 *
 * Threads: one at a time.
 */
#include "optimize/learning_curve.h"

#include <math.h>
#include <string.h>

/* Before errors were seen: the sd in octaves per quarter of the way, worth so many errors. */
static const double prior_sd[WG_CURVE_STAGES] = {1.0, 0.8, 0.5, 0.3};
static const double prior_errors = 4;

static bool is_better(bool higher_is_better, double a, double b)
{
    return higher_is_better ? a > b : a < b;
}

/* Takes out the inner point whose neighbours are nearest to each other, in octaves. */
static void drop_most_crowded(struct wg_learning_curve *curve)
{
    size_t at = 1;
    double least = INFINITY;
    for (size_t i = 1; i + 1 < curve->count; i++) {
        const double ratio = (double)curve->points[i + 1].epoch / curve->points[i - 1].epoch;
        if (ratio < least) {
            least = ratio;
            at = i;
        }
    }
    curve->count--;
    memmove(&curve->points[at], &curve->points[at + 1],
            (curve->count - at) * sizeof curve->points[0]);
}

void wg__learning_curve_tell(struct wg_learning_curve *curve, bool higher_is_better, unsigned epoch,
                             double metric)
{
    /* What holds before any training says nothing of the pace, and 0 epochs have no logarithm. */
    if (epoch == 0 || isnan(metric))
        return;
    if (curve->count > 0 &&
        !is_better(higher_is_better, metric, curve->points[curve->count - 1].metric))
        return;
    if (curve->count == WG_CURVE_POINTS_MAX)
        drop_most_crowded(curve);
    curve->points[curve->count].metric = metric;
    curve->points[curve->count].epoch = epoch;
    curve->count++;
}

/* The epoch at which `curve` had reached `metric`, 0 when it never did; `*next_out` is the epoch of
 * its first point that is better than `metric`, 0 when there is none. */
static unsigned epoch_of(const struct wg_learning_curve *curve, bool higher_is_better,
                         double metric, unsigned *next_out)
{
    unsigned reached = 0;
    *next_out = 0;
    for (size_t i = 0; i < curve->count; i++) {
        const bool better = is_better(higher_is_better, curve->points[i].metric, metric);
        if (reached == 0 && (better || curve->points[i].metric == metric))
            reached = curve->points[i].epoch;
        if (better) {
            *next_out = curve->points[i].epoch;
            break;
        }
    }
    return reached;
}

/* The forecast of one finished run: log2 of the epochs in all, and the share of its own way at
 * which it was where the other is now. */
static bool forecast_by(const struct wg_learning_curve *known, unsigned total_epochs,
                        bool higher_is_better, const struct wg_learning_curve *curve,
                        unsigned epochs_done, double *log2_out, double *share_out)
{
    unsigned reached = 0, next = known->points[0].epoch;
    if (curve->count > 0)
        reached = epoch_of(known, higher_is_better, curve->points[curve->count - 1].metric, &next);
    bool has = false;
    if (reached > 0) {
        *log2_out = log2((double)curve->points[curve->count - 1].epoch * total_epochs / reached);
        *share_out = (double)reached / total_epochs;
        has = true;
    }
    /* The next value has not been reached yet, so it will take more epochs than were done. */
    if (next > 0) {
        const double at_least = log2((double)epochs_done * total_epochs / next);
        if (has ? at_least > *log2_out : epochs_done > next) {
            *log2_out = at_least;
            *share_out = (double)next / total_epochs;
            has = true;
        }
    }
    return has;
}

static size_t stage_of(double share)
{
    const double stage = share * (double)WG_CURVE_STAGES;
    return stage < WG_CURVE_STAGES - 1 ? (size_t)stage : WG_CURVE_STAGES - 1;
}

bool wg__curve_book_forecast(const struct wg_learning_curve_book *book,
                             const struct wg_learning_curve *curve, unsigned epochs_done,
                             struct wg_curve_forecast *out)
{
    double all[WG_CURVES_MAX], shares[WG_CURVES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < book->count; i++) {
        double log2_epochs, share;
        if (!forecast_by(&book->curves[i], book->total_epochs[i], book->higher_is_better, curve,
                         epochs_done, &log2_epochs, &share))
            continue;
        size_t at = count++;
        for (; at > 0 && all[at - 1] > log2_epochs; at--) {
            all[at] = all[at - 1];
            shares[at] = shares[at - 1];
        }
        all[at] = log2_epochs;
        shares[at] = share;
    }
    if (count == 0)
        return false;
    const size_t middle = (count - 1) / 2, stage = stage_of(shares[middle]);
    out->log2_epochs = 0.5 * (all[middle] + all[count / 2]);
    out->sd = sqrt((prior_errors * prior_sd[stage] * prior_sd[stage] + book->squared_error[stage]) /
                   (prior_errors + book->error_count[stage]));
    out->stage = stage;
    return true;
}

/* Forecasts a finished run from each of its points, as if it were still running. */
static void learn_errors(struct wg_learning_curve_book *book, const struct wg_learning_curve *curve,
                         unsigned total_epochs)
{
    struct wg_learning_curve so_far = {0};
    for (size_t i = 0; i + 1 < curve->count; i++) {
        so_far.points[so_far.count++] = curve->points[i];
        struct wg_curve_forecast forecast;
        if (!wg__curve_book_forecast(book, &so_far, curve->points[i].epoch, &forecast))
            continue;
        const double error = log2(total_epochs) - forecast.log2_epochs;
        book->squared_error[forecast.stage] += error * error;
        book->error_count[forecast.stage]++;
    }
}

void wg__curve_book_add(struct wg_learning_curve_book *book, const struct wg_learning_curve *curve,
                        unsigned total_epochs)
{
    if (curve->count == 0)
        return;
    learn_errors(book, curve, total_epochs);
    book->curves[book->next] = *curve;
    book->total_epochs[book->next] = total_epochs;
    book->next = (book->next + 1) % WG_CURVES_MAX;
    if (book->count < WG_CURVES_MAX)
        book->count++;
}
