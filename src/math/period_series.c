/* SPDX-License-Identifier: MIT
 *
 * Bins, drift, autocorrelation: see period_series.h.
 *
 * A sample holds until the next; a bin is the mean of what held. The autocorrelation is that of
 * pairs of bins that both count, so left-out bins shorten it and do not bend it.
 *
 * Threads: pure, any thread.
 */
#include "math/period_series.h"

#include <math.h>

#include "base/alloc.h"
#include "math/statistics.h"

static const double bins_most = 8192;

/* Takes a parabola off, by orthogonal polynomials over the bins that count. */
static void detrend(struct wg_period_series *series)
{
    const double n = (double)series->count;
    double sum[3] = {0}, norm[3] = {0};
    const double x2_mean = (1 - 1 / (n * n)) / 12 * 4; /* of x in -1..1 */

    for (size_t i = 0; i < series->count; i++) {
        const double x = (2 * (double)i + 1) / n - 1;
        const double basis[3] = {1, x, x * x - x2_mean};

        for (size_t k = 0; k < 3; k++) {
            sum[k] += basis[k] * series->value[i];
            norm[k] += basis[k] * basis[k];
        }
    }
    for (size_t i = 0; i < series->count; i++) {
        const double x = (2 * (double)i + 1) / n - 1;

        series->value[i] -=
            sum[0] / norm[0] + sum[1] / norm[1] * x + sum[2] / norm[2] * (x * x - x2_mean);
    }
}

/* The mean of the signal, held from each sample to the next, over each bin. */
static void fill_bins(struct wg_period_series *series, const double *t_s, const double *value,
                      size_t count)
{
    size_t at = 0;

    for (size_t i = 0; i < series->count; i++) {
        const double from_s = t_s[0] + (double)i * series->bin_s, to_s = from_s + series->bin_s;
        double sum = 0, time_s = 0, s = from_s;

        while (at + 1 < count && t_s[at + 1] <= from_s)
            at++;
        for (size_t k = at; s < to_s; k++) {
            const double end_s = k + 1 < count ? fmin(t_s[k + 1], to_s) : to_s;

            sum += value[k] * (end_s - s);
            time_s += end_s - s;
            s = end_s;
            if (k + 1 >= count)
                break;
        }
        series->value[i] = time_s > 0 ? sum / time_s : value[at];
        series->mask[i] = 1;
    }
}

bool wg__period_correlate(const struct wg_period_part *part, size_t lags, double *r)
{
    const double *x = part->series->value + part->first, *m = part->series->mask + part->first;
    double sum = 0, weight = 0, variance = 0;

    for (size_t i = 0; i < part->count; i++) {
        sum += m[i] * x[i];
        weight += m[i];
    }
    if (2 * weight < (double)WG_PERIOD_BINS_LEAST)
        return false;
    const double mean = sum / weight;

    for (size_t i = 0; i < part->count; i++)
        variance += m[i] * (x[i] - mean) * (x[i] - mean);
    variance /= weight;
    if (!(variance > 1e-12 * (1e-12 + part->series->mean * part->series->mean)))
        return false;
    for (size_t lag = 0; lag <= lags; lag++) {
        double product = 0, pairs = 0;

        for (size_t i = lag; i < part->count; i++) {
            const double w = m[i] * m[i - lag];

            product += w * (x[i] - mean) * (x[i - lag] - mean);
            pairs += w;
        }
        r[lag] = pairs >= 4 ? product / pairs / variance : 0;
    }
    return true;
}

void wg__period_series_fini(struct wg_period_series *series)
{
    wg__free(series->value);
    wg__free(series->mask);
    wg__free(series->r);
}

enum wg_code wg__period_series_init(struct wg_period_series *series, const double *t_s,
                                    const double *value, size_t count, double bin_s,
                                    double lag_share, struct wg_error *err)
{
    const double span_s = t_s[count - 1] - t_s[0];

    *series = (struct wg_period_series){.bin_s = fmax(bin_s, span_s / bins_most)};
    series->count = (size_t)floor(span_s / series->bin_s);
    series->lags = (size_t)((double)series->count * lag_share);
    series->mean = wg__mean(value, count);
    series->value = wg__alloc_zeroed(series->count + 1, sizeof *series->value);
    series->mask = wg__alloc_zeroed(series->count + 1, sizeof *series->mask);
    series->r = wg__alloc_zeroed(series->count + 1, sizeof *series->r);
    if (series->value == NULL || series->mask == NULL || series->r == NULL) {
        wg__period_series_fini(series);
        return wg__fail(err, WG_ENOMEM, "no memory for the period of %zu samples", count);
    }
    fill_bins(series, t_s, value, count);
    detrend(series);
    return WG_OK;
}
