/* SPDX-License-Identifier: MIT
 *
 * Descriptive statistics of small samples.
 *
 * Every sum goes through Neumaier's compensation ("Rundungsfehleranalyse einiger Verfahren zur
 * Summation endlicher Summen", ZAMM 54, 1974): what one addition rounds away is kept and added at
 * the end. Variances take two passes, so a large mean cancels nothing.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#include "math/statistics.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "math/normal.h"

struct compensated {
    double sum;
    double lost; /* what the additions to sum rounded away */
};

static inline void add(struct compensated *total, double value)
{
    const double sum = total->sum + value;
    if (fabs(total->sum) >= fabs(value))
        total->lost += (total->sum - sum) + value;
    else
        total->lost += (value - sum) + total->sum;
    total->sum = sum;
}

/* An infinite or NaN sum has no meaningful remainder. */
static inline double result(const struct compensated *total)
{
    return isfinite(total->sum) ? total->sum + total->lost : total->sum;
}

double wg__sum(const double *values, size_t count)
{
    struct compensated total = {0};
    for (size_t i = 0; i < count; i++)
        add(&total, values[i]);
    return result(&total);
}

double wg__mean(const double *values, size_t count)
{
    assert(count >= 1);
    return wg__sum(values, count) / (double)count;
}

static double sum_of_squared_deviations(const double *values, size_t count)
{
    const double mean = wg__mean(values, count);
    struct compensated total = {0};
    for (size_t i = 0; i < count; i++)
        add(&total, (values[i] - mean) * (values[i] - mean));
    return result(&total);
}

double wg__variance_sample(const double *values, size_t count)
{
    assert(count >= 1);
    if (count == 1)
        return 0.0;
    return sum_of_squared_deviations(values, count) / (double)(count - 1);
}

double wg__variance_population(const double *values, size_t count)
{
    return sum_of_squared_deviations(values, count) / (double)count;
}

double wg__sd_sample(const double *values, size_t count)
{
    return sqrt(wg__variance_sample(values, count));
}

/* A NaN anywhere makes the result NaN: an extreme that skips unknown values would look known. */
double wg__min(const double *values, size_t count)
{
    assert(count >= 1);
    double least = values[0];
    for (size_t i = 1; i < count; i++) {
        if (values[i] < least || isnan(values[i]))
            least = values[i];
    }
    return least;
}

double wg__max(const double *values, size_t count)
{
    assert(count >= 1);
    double most = values[0];
    for (size_t i = 1; i < count; i++) {
        if (values[i] > most || isnan(values[i]))
            most = values[i];
    }
    return most;
}

double wg__geomean(const double *values, size_t count)
{
    assert(count >= 1);
    struct compensated total = {0};
    for (size_t i = 0; i < count; i++)
        add(&total, log(values[i]));
    return exp(result(&total) / (double)count);
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

void wg__sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
}

double wg__quantile_inplace(double *values, size_t count, double share)
{
    wg__sort(values, count);
    return wg__quantile_sorted(values, count, share);
}

double wg__quantile_sorted(const double *values, size_t count, double share)
{
    assert(count >= 1 && share >= 0.0 && share <= 1.0);
    const double position = share * (double)(count - 1);
    const size_t below = (size_t)position;
    if (below + 1 >= count || values[below] == values[below + 1])
        return values[below];
    /* From the nearer end, as numpy does it: exact at both. */
    const double t = position - (double)below;
    const double step = values[below + 1] - values[below];
    return t < 0.5 ? values[below] + step * t : values[below + 1] - step * (1.0 - t);
}

/* Beyond the table, the Cornish-Fisher expansion of Student's quantile in 1/df (Abramowitz and
 * Stegun 26.7.5), whose error at 31 is below 3e-8 and falls with the fifth power. */
double wg__student_quantile975(size_t degrees_of_freedom)
{
    /* scipy.stats.t.ppf(0.975, range(1, 31)) */
    static const double table[] = {
        12.7062047361747, 4.30265272974946, 3.18244630528371, 2.77644510519779, 2.57058183563631,
        2.44691185114498, 2.36462425159278, 2.30600413520417, 2.2621571627982,  2.22813885198627,
        2.20098516009164, 2.17881282966723, 2.16036865646279, 2.1447866879178,  2.13144954555978,
        2.11990529922125, 2.10981557783332, 2.10092204024104, 2.09302405440831, 2.08596344726586,
        2.07961384472768, 2.07387306790403, 2.06865761041905, 2.06389856162802, 2.0595385527533,
        2.05552943864287, 2.05183051648028, 2.04840714179525, 2.0452296421327,  2.04227245630124,
    };
    assert(degrees_of_freedom >= 1);
    const size_t table_size = sizeof table / sizeof *table;
    if (degrees_of_freedom <= table_size)
        return table[degrees_of_freedom - 1];
    const double z = WG_NORMAL_975;
    const double z2 = z * z;
    const double g1 = z * (z2 + 1.0) / 4.0;
    const double g2 = z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    const double g3 = z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    const double g4 =
        z * ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92160.0;
    const double n = 1.0 / (double)degrees_of_freedom;
    return z + n * (g1 + n * (g2 + n * (g3 + n * g4)));
}

double wg__mean_halfwidth95(const double *values, size_t count)
{
    assert(count >= 1);
    if (count == 1)
        return (double)NAN;
    return wg__student_quantile975(count - 1) * wg__sd_sample(values, count) / sqrt((double)count);
}

void wg__wilson95(uint64_t hits, uint64_t trials, double *low_out, double *high_out)
{
    assert(hits <= trials);
    if (trials == 0) {
        *low_out = 0.0;
        *high_out = 1.0;
        return;
    }
    const double z = WG_NORMAL_975;
    const double n = (double)trials;
    const double share = (double)hits / n;
    const double scale = 1.0 / (1.0 + z * z / n);
    const double centre = scale * (share + z * z / (2.0 * n));
    const double half = scale * z * sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n));
    *low_out = hits == 0 ? 0.0 : centre - half; /* exactly 0 and 1 but for rounding */
    *high_out = hits == trials ? 1.0 : centre + half;
}
