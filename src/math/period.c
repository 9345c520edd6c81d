/* SPDX-License-Identifier: MIT
 *
 * The period of a signal by its autocorrelation, made safe against multiples, chance and aliases.
 *
 * 1. The samples are averaged into equal bins of one sensor update, and a parabola (drift) is taken
 *    off. The autocorrelation r(lag) needs no phase that lasts: steps of 5 % jitter lose theirs
 *    within some twenty periods, which flattens every peak of a periodogram. The first lag whose
 *    peak is nearly as high as the highest one is the candidate.
 * 2. Multiples: a signal of period p/d has no power at the harmonics of 1/p that d does not divide.
 *    Then p is divided, by the largest such d. That is no rare case: a period of 5.4 bins repeats
 *    exactly, noise apart, after 27 only. Where a period is expected, a simple multiple that is
 *    nearer to it is given.
 * 3. Pauses: runs below the mean that last longer than a period are left out, and 1. is done again.
 * 4. The value: the phase of the strongest harmonic is followed through windows of a few periods;
 * its mean rate is the frequency. Its scatter is the error.
 * 5. Chance: noise, coloured too, has peaks in its autocorrelation, but another part of the record
 *    has others. So each of two or three parts is asked by itself, and all must say the same; and
 * the contrast between whole and half periods must be large.
 * 6. Aliases: a sensor that averages over its own update period u shows a period P < 2u as a longer
 *    one, exactly in the shape of the true signal but with the share s = f u / (1 - f u) of its
 *    swing, f being the frequency that shows. Regular samples cannot tell the two. But power does
 *    not fall below a floor (that of the idle GPU; 0 at least): when the dips that are seen,
 * divided by s, would go below it, there was no alias. Where they would not, and where the samples
 * are rarer than the updates, the confidence is at most 0.5, unless a period was expected there:
 * flagged, since the true one cannot be known.
 *
 * Rejected: a periodogram alone (Lomb, Scargle), for the jitter and since it prefers multiples of
 * the frequency where a harmonic is stronger than the fundamental.
 *
 * Threads: pure, any thread.
 */
#include "math/period.h"

#include <math.h>
#include <stdbool.h>

#include "base/alloc.h"
#include "math/period_series.h"
#include "math/statistics.h"

enum { SAMPLES_LEAST = 16, PARTS_MOST = 3, HARMONICS = 6, FOLD_BINS = 20, WINDOWS_MOST = 512 };
enum { DIVISORS_MOST = 12, DIVIDED_HARMONICS = 2 * DIVISORS_MOST };

static const double pi = 3.14159265358979323846;
static const double cycles_least = 4;    /* of the longest candidate */
static const double cycles_sure = 8;     /* fewer are never sure */
static const double bins_sure = 120;     /* chance has peaks in shorter records */
static const double bins_expected = 40;  /* it seldom has them where a period is expected */
static const double peak_share = 0.8;    /* of the highest peak: the first so high is the period */
static const double peak_width = 0.25;   /* a peak is the highest within this share of its lag */
static const double odd_share = 0.06;    /* of the harmonics' power; less: a multiple */
static const double pause_periods = 1.4; /* below the mean for longer: a pause */
static const double same_share = 0.08;   /* two estimates of one period */
static const double near_share = 0.35;   /* of what was expected */
static const double window_periods = 4;  /* of phase following */
static const double contrast_none = 0.25, contrast_sure = 0.7;
static const double dip_most = 0.9; /* of what the mean is above the floor: none falls deeper */
static const double ambiguous = 0.5;

/* Whether r has a peak at `lag` that is the highest nearby and stands out of a trough before it. */
static bool is_peak(const double *r, size_t lags, size_t lag)
{
    const size_t reach = (size_t)fmax(1, floor(peak_width * (double)lag));
    double least = r[lag];

    if (lag < 2 || lag + 1 > lags || r[lag] <= 0)
        return false;
    for (size_t i = lag - reach; i <= lag + reach && i <= lags; i++)
        if (r[i] > r[lag])
            return false;
    for (size_t i = lag / 2; i < lag; i++)
        least = fmin(least, r[i]);
    return r[lag] - least > 0.1;
}

/* The lag of the peak, between the bins, by a parabola. */
static double peak_lag(const double *r, size_t lags, size_t lag)
{
    if (lag < 1 || lag + 1 > lags)
        return (double)lag;
    const double bend = r[lag - 1] - 2 * r[lag] + r[lag + 1];
    const double shift = bend < 0 ? 0.5 * (r[lag - 1] - r[lag + 1]) / bend : 0;

    return (double)lag + fmax(-0.5, fmin(0.5, shift));
}

/* The period that the autocorrelation shows, in bins; NAN: none. */
static double first_high_peak(const double *r, size_t lags)
{
    double highest = 0;

    for (size_t lag = 2; lag < lags; lag++)
        if (is_peak(r, lags, lag))
            highest = fmax(highest, r[lag]);
    for (size_t lag = 2; lag < lags && highest > 0; lag++)
        if (r[lag] >= peak_share * highest && is_peak(r, lags, lag))
            return peak_lag(r, lags, lag);
    return NAN;
}

/* -- Harmonics ---------------------------------------------------------------------------- */

/* Power of the part at `frequency` (per bin), with a window of half a sine against leakage. */
static double power_at(const struct wg_period_part *part, double frequency, double *phase_out)
{
    const double *x = part->series->value + part->first, *m = part->series->mask + part->first;
    const double turn = 2 * pi * frequency, step = pi / (double)part->count;
    double re = 0, im = 0, weight = 0;

    for (size_t i = 0; i < part->count; i++) {
        const double w = m[i] * sin(step * ((double)i + 0.5));

        re += w * x[i] * cos(turn * (double)i);
        im -= w * x[i] * sin(turn * (double)i);
        weight += w;
    }
    if (phase_out != NULL)
        *phase_out = atan2(im, re);
    return weight > 0 ? (re * re + im * im) / (weight * weight) : 0;
}

/* Power at the harmonics 1 .. `most` of a period, in windows of some periods, since the phase does
 * not last. */
static void harmonics(const struct wg_period_series *series, double period, size_t most,
                      double *power)
{
    const size_t window = (size_t)fmin((double)series->count, ceil(2 * window_periods * period));
    size_t windows = 0;

    for (size_t k = 0; k <= most; k++)
        power[k] = 0;
    for (size_t first = 0; first + window <= series->count && windows < 16;
         first += window, windows++) {
        const struct wg_period_part part = {.series = series, .first = first, .count = window};

        for (size_t k = 1; k <= most && (double)k / period < 0.5; k++)
            power[k] += power_at(&part, (double)k / period, NULL);
    }
}

/* The period behind a multiple of it: all power is at each `d`th harmonic. */
static double without_multiples(const struct wg_period_series *series, double period)
{
    double power[DIVIDED_HARMONICS + 1];

    harmonics(series, period, DIVIDED_HARMONICS, power);
    for (size_t d = DIVISORS_MOST; d >= 2; d--) {
        double all = 0, other = 0;

        for (size_t k = 1; k <= 2 * d; k++) {
            all += power[k];
            other += k % d != 0 ? power[k] : 0;
        }
        if (period / (double)d > 2 && other < odd_share * all)
            return period / (double)d;
    }
    return period;
}

/* -- Pauses ------------------------------------------------------------------------------- */

/* Leaves out runs below the mean that are longer than the period allows. */
static void leave_pauses_out(struct wg_period_series *series, double period)
{
    size_t run = 0;

    for (size_t i = 0; i <= series->count; i++) {
        if (i < series->count && series->value[i] < 0) {
            run++;
            continue;
        }
        if ((double)run > pause_periods * period)
            for (size_t k = i - run; k < i; k++)
                series->mask[k] = 0;
        run = 0;
    }
}

/* The candidate, in bins; NAN: none. */
static double find_candidate(const struct wg_period_series *series)
{
    const struct wg_period_part whole = {.series = series, .first = 0, .count = series->count};

    if (!wg__period_correlate(&whole, series->lags, series->r))
        return NAN;
    const double lag = first_high_peak(series->r, series->lags);

    return isnan(lag) ? lag : without_multiples(series, lag);
}

/* What a candidate must be multiplied with to come nearest to what is expected; 1 when nothing
 * does. */
static double factor_expected(double period, double expected)
{
    static const double factors[] = {1, 2, 0.5, 3, 1.0 / 3};
    double factor = 1, distance = fabs(log(period / expected));

    if (!(expected > 0))
        return 1;
    for (size_t i = 1; i < sizeof factors / sizeof factors[0]; i++) {
        const double other = fabs(log(period * factors[i] / expected));

        if (other < near_share && other < distance && period * factors[i] >= 2) {
            factor = factors[i];
            distance = other;
        }
    }
    return factor;
}

/* -- The value ---------------------------------------------------------------------------- */

static bool is_whole(const struct wg_period_part *part)
{
    for (size_t i = 0; i < part->count; i++)
        if (part->series->mask[part->first + i] == 0)
            return false;
    return true;
}

/* The strongest harmonic, but the fundamental when it is strong enough. */
static size_t strongest(const struct wg_period_series *series, double period)
{
    double power[HARMONICS + 1];
    size_t found = 1;

    harmonics(series, period, HARMONICS, power);
    for (size_t k = 2; k <= 3; k++)
        if (power[k] > 4 * power[found])
            found = k;
    return found;
}

/* Follows the phase; the mean frequency's correction refines the period. `error` is of the period,
 * in bins. */
static double follow_phase(const struct wg_period_series *series, double period, double *error)
{
    const size_t harmonic = strongest(series, period);
    const size_t window = (size_t)ceil(window_periods * period);
    const size_t hop = (size_t)fmax(1, floor(period));
    double shift[WINDOWS_MOST] = {0}, last = NAN;
    size_t count = 0;

    for (size_t first = 0; first + window <= series->count && count < WINDOWS_MOST; first += hop) {
        const struct wg_period_part part = {.series = series, .first = first, .count = window};
        double phase = 0;

        if (!is_whole(&part)) {
            last = NAN;
            continue;
        }
        (void)power_at(&part, (double)harmonic / period, &phase);
        /* What the phase should have turned by from window to window is taken off. */
        phase -= 2 * pi * fmod((double)harmonic * (double)first / period, 1);
        if (!isnan(last))
            shift[count++] = remainder(phase - last, 2 * pi);
        last = phase;
    }
    *error = INFINITY;
    if (count < 3)
        return period;
    /* The sum of the shifts is the phase gained from end to end. Windows overlap: their shifts are
     * not independent, so the error is that of the sum over stretches of one window. */
    const double mean = wg__mean(shift, count);
    const double per_window = window_periods;
    double scatter = 0;
    size_t stretches = 0;

    for (size_t i = 0; i + (size_t)per_window <= count; i += (size_t)per_window, stretches++) {
        double sum = 0;

        for (size_t k = 0; k < (size_t)per_window; k++)
            sum += shift[i + k] - mean;
        scatter += sum * sum;
    }
    const double turns = 2 * pi * (double)harmonic * (double)hop / period; /* of a hop */
    const double refined = period * turns / (turns + mean);
    const double sd = sqrt(scatter / fmax(1, (double)stretches - 1)) / per_window /
                      sqrt(fmax(1, (double)count / per_window));

    *error = refined * sd / turns;
    return refined;
}

/* -- Confidence --------------------------------------------------------------------------- */

/* How much higher whole periods correlate than half ones. */
static double contrast(const double *r, size_t lags, double period)
{
    double sum = 0;
    size_t count = 0;

    for (size_t k = 1; k <= 4 && ceil((double)k * period) < (double)lags; k++, count++) {
        const size_t whole = (size_t)lround((double)k * period);
        const size_t half = (size_t)lround(((double)k - 0.5) * period);
        const size_t reach = (size_t)fmax(0, floor(0.05 * (double)k * period));
        double high = r[whole], low = r[half];

        for (size_t i = whole - reach; i <= whole + reach && i <= lags; i++)
            high = fmax(high, r[i]);
        for (size_t i = half > reach ? half - reach : 0; i <= half + reach && i <= lags; i++)
            low = fmin(low, r[i]);
        sum += high - low;
    }
    return count > 0 ? sum / (double)count : 0;
}

/* The share of the record's parts that show the same period by themselves. */
static double agreement(const struct wg_period_series *series, double period)
{
    const double cycles = (double)series->count / period;
    const size_t parts = cycles >= 4 * PARTS_MOST ? PARTS_MOST : 2;
    const size_t length = series->count / parts;
    const size_t lags = (size_t)fmin((double)length - 2, ceil((double)length / 2));
    double agreeing = 0;

    for (size_t i = 0; i < parts; i++) {
        const struct wg_period_part part = {.series = series, .first = i * length, .count = length};

        if (!wg__period_correlate(&part, lags, series->r))
            continue;
        const double found = first_high_peak(series->r, lags);

        for (unsigned multiple = 1; multiple <= 3; multiple++)
            if (fabs(found / (multiple * period) - 1) < same_share + 0.5 / period) {
                agreeing += 1;
                break;
            }
    }
    return agreeing / (double)parts;
}

/* How deep the mean period dips below the mean, as a share of what the mean is above the floor. */
static double dip(const struct wg_period_series *series, double period, double floor_value)
{
    double sum[FOLD_BINS], least = 0;
    size_t number[FOLD_BINS];
    const size_t bins = (size_t)fmin(FOLD_BINS, fmax(2, floor(2 * period)));
    const size_t window = (size_t)ceil(8 * period); /* the phase lasts so long */
    double dips = 0;
    size_t windows = 0;

    for (size_t first = 0; first + window <= series->count; first += window, windows++) {
        for (size_t b = 0; b < bins; b++)
            number[b] = 0, sum[b] = 0;
        for (size_t i = first; i < first + window; i++) {
            const double phase = fmod(((double)(i - first) + 0.5) / period, 1);
            const size_t b = (size_t)fmin((double)bins - 1, floor(phase * (double)bins));

            if (series->mask[i] == 0)
                continue;
            sum[b] += series->value[i];
            number[b]++;
        }
        least = 0;
        for (size_t b = 0; b < bins; b++)
            if (number[b] >= 4)
                least = fmin(least, sum[b] / (double)number[b]);
        dips -= least;
    }
    const double height = series->mean - floor_value;

    return windows > 0 && height > 0 ? dips / (double)windows / height : 0;
}

/* Whether the period may be an alias of a shorter one. */
static bool may_be_alias(const struct wg_period_series *series, double period, double floor_value)
{
    const double share = 1 / (period - 1); /* s of the header, with u one bin */

    return dip(series, period, floor_value) < dip_most * share;
}

static double confidence_of(const struct wg_period_series *series, double period, double error,
                            bool is_expected)
{
    const struct wg_period_part whole = {.series = series, .first = 0, .count = series->count};
    const double cycles = (double)series->count / period;

    if (!wg__period_correlate(&whole, series->lags, series->r))
        return 0;
    const double height = contrast(series->r, series->lags, period);
    const double strong =
        fmin(1, fmax(0, (height - contrast_none) / (contrast_sure - contrast_none)));
    const double steady = isfinite(error) ? fmin(1, 0.03 * period / fmax(error, 1e-9)) : 0;
    const double many =
        fmin(1, fmin(cycles / cycles_sure,
                     (double)series->count / (is_expected ? bins_expected : bins_sure)));

    return 0.99 * strong * steady * many * agreement(series, period);
}

/* -- The outside -------------------------------------------------------------------------- */

static enum wg_code check(const double *t_s, const double *value, size_t count,
                          const struct wg_period_hint *hint, struct wg_error *err)
{
    if (count < SAMPLES_LEAST)
        return wg__fail(err, WG_EINVAL, "period of %zu samples, expected at least %d", count,
                        SAMPLES_LEAST);
    if (!(isfinite(hint->update_s) && hint->update_s > 0))
        return wg__fail(err, WG_EINVAL, "period of a signal that is updated every %g s",
                        hint->update_s);
    if (!isfinite(hint->floor))
        return wg__fail(err, WG_EINVAL, "period of a signal above a floor of %g", hint->floor);
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(t_s[i]) || !isfinite(value[i]))
            return wg__fail(err, WG_EINVAL, "sample %zu of a period is %g at %g s", i, value[i],
                            t_s[i]);
        if (i > 0 && !(t_s[i] > t_s[i - 1]))
            return wg__fail(err, WG_EINVAL, "samples of a period do not rise: %g s after %g s",
                            t_s[i], t_s[i - 1]);
    }
    return WG_OK;
}

/* The usual time between samples; fewer than updates hide what happens in between. */
static enum wg_code usual_gap(const double *t_s, size_t count, double *out, struct wg_error *err)
{
    double *gap = wg__alloc_zeroed(count, sizeof *gap);

    if (gap == NULL)
        return wg__fail(err, WG_ENOMEM, "no memory for the period of %zu samples", count);
    for (size_t i = 1; i < count; i++)
        gap[i - 1] = t_s[i] - t_s[i - 1];
    *out = wg__quantile_inplace(gap, count - 1, 0.5);
    wg__free(gap);
    return WG_OK;
}

/* Finds and judges; `is_sparse`: the samples are rarer than the updates. */
static void find(struct wg_period_series *series, const struct wg_period_hint *hint, bool is_sparse,
                 struct wg_period *out)
{
    const double expected = hint->expected_s / series->bin_s;
    double error, period = find_candidate(series);

    if (!isnan(period)) {
        leave_pauses_out(series, period);
        period = find_candidate(series);
    }
    if (isnan(period))
        return;
    period = follow_phase(series, period, &error);
    const double factor = factor_expected(period, expected);
    const bool is_near = expected > 0 && fabs(log(period * factor / expected)) < near_share;

    out->confidence = confidence_of(series, period, error, is_near);
    if (!is_near && (is_sparse || may_be_alias(series, period, hint->floor)))
        out->confidence = fmin(out->confidence, ambiguous);
    if (!(period >= 2) || !(out->confidence > 0))
        return;
    out->period_s = period * factor * series->bin_s;
    out->error_s = error * factor * series->bin_s;
}

enum wg_code wg__period_find(const double *t_s, const double *value, size_t count,
                             const struct wg_period_hint *hint, struct wg_period *out,
                             struct wg_error *err)
{
    struct wg_period_series series;
    double gap_s = 0;
    enum wg_code code = check(t_s, value, count, hint, err);

    if (code == WG_OK)
        code = usual_gap(t_s, count, &gap_s, err);
    if (code != WG_OK)
        return code;
    const bool is_sparse = gap_s > 1.5 * hint->update_s;
    const double bin_s = fmax(hint->update_s, is_sparse ? gap_s : 0);

    *out = (struct wg_period){.period_s = NAN, .error_s = NAN};
    if (t_s[count - 1] - t_s[0] < (double)WG_PERIOD_BINS_LEAST * bin_s)
        return WG_OK;
    code = wg__period_series_init(&series, t_s, value, count, bin_s, 1 / cycles_least, err);
    if (code != WG_OK)
        return code;
    find(&series, hint, is_sparse, out);
    wg__period_series_fini(&series);
    return WG_OK;
}
