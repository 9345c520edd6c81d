/* SPDX-License-Identifier: MIT
 *
 * Forecasts from learning curves: see learning_curve.h for the idea.
 *
 * Each finished run gives one forecast; they are averaged by precision, but the result is never taken to
 * be surer than the best single one, because the curves of one job err together.
 *
 * Threads: one at a time.
 */
#include "optimize/learning_curve.h"

#include <math.h>

static const double sd_at_start = 0.8;
static const double sd_at_target = 0.15;

static bool is_better(bool higher_is_better, double a, double b)
{
    return higher_is_better ? a > b : a < b;
}

void wg__learning_curve_tell(struct wg_learning_curve *curve, bool higher_is_better,
                             unsigned epoch, double metric)
{
    if (isnan(metric) ||
        (curve->count > 0 &&
         !is_better(higher_is_better, metric, curve->points[curve->count - 1].metric)))
        return;
    if (curve->count == WG_CURVE_POINTS_MAX) {
        for (size_t i = 0; 2 * i + 1 < WG_CURVE_POINTS_MAX; i++)
            curve->points[i] = curve->points[2 * i + 1];
        curve->count = WG_CURVE_POINTS_MAX / 2;
    }
    curve->points[curve->count].metric = metric;
    curve->points[curve->count].epoch = epoch;
    curve->count++;
}

void wg__curve_book_add(struct wg_learning_curve_book *book, const struct wg_learning_curve *curve,
                        unsigned total_epochs)
{
    if (curve->count == 0)
        return;
    book->curves[book->next] = *curve;
    book->total_epochs[book->next] = total_epochs;
    book->next = (book->next + 1) % WG_CURVES_MAX;
    if (book->count < WG_CURVES_MAX)
        book->count++;
}

/* The epoch at which `curve` had reached `metric`, 0 when it never did; `*next_out` is the epoch of its
 * first point that is better than `metric`, 0 when there is none. */
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

static double sd_at_share(double share)
{
    return sd_at_start + (sd_at_target - sd_at_start) * share;
}

/* The forecast of one finished run. */
static bool forecast_by(const struct wg_learning_curve *known, unsigned total_epochs,
                        bool higher_is_better, const struct wg_learning_curve *curve,
                        unsigned epochs_done, struct wg_curve_forecast *out)
{
    bool has = false;
    if (curve->count > 0) {
        const unsigned t = curve->points[curve->count - 1].epoch;
        unsigned next;
        const unsigned reached =
            epoch_of(known, higher_is_better, curve->points[curve->count - 1].metric, &next);
        if (reached > 0) {
            out->log2_epochs = log2((double)t * total_epochs / reached);
            out->sd = sd_at_share((double)reached / total_epochs);
            has = true;
        }
        if (next == 0)
            return has;
        const double at_least = log2((epochs_done + 0.5) * total_epochs / next);
        if (!has || at_least > out->log2_epochs) {
            out->log2_epochs = at_least;
            out->sd = sd_at_share((double)next / total_epochs);
        }
        return true;
    }
    /* Not even the first value that the finished run reached. */
    const unsigned first = known->points[0].epoch;
    if (epochs_done < first)
        return false;
    out->log2_epochs = log2((epochs_done + 0.5) * total_epochs / first);
    out->sd = sd_at_share((double)first / total_epochs);
    return true;
}

bool wg__curve_book_forecast(const struct wg_learning_curve_book *book,
                             const struct wg_learning_curve *curve, unsigned epochs_done,
                             struct wg_curve_forecast *out)
{
    double weight = 0, sum = 0, least_sd = INFINITY;
    for (size_t i = 0; i < book->count; i++) {
        struct wg_curve_forecast one;
        if (!forecast_by(&book->curves[i], book->total_epochs[i], book->higher_is_better, curve,
                         epochs_done, &one))
            continue;
        weight += 1 / (one.sd * one.sd);
        sum += one.log2_epochs / (one.sd * one.sd);
        least_sd = fmin(least_sd, one.sd);
    }
    if (!(weight > 0))
        return false;
    out->log2_epochs = sum / weight;
    out->sd = least_sd;
    return true;
}
