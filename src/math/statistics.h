/* SPDX-License-Identifier: MIT
 *
 * Descriptive statistics of small samples.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_MATH_STATISTICS_H
#define WG_MATH_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

/* Of `count` >= 1 values. Sums are compensated (Neumaier), so that adding a million like values
 * loses no digits. The sample variance divides by count - 1 and is 0 for one value; the population
 * variance divides by count. */
double wg__sum(const double *values, size_t count);
double wg__mean(const double *values, size_t count);
double wg__variance_sample(const double *values, size_t count);
double wg__variance_population(const double *values, size_t count);
double wg__sd_sample(const double *values, size_t count);

/* NaN when any value is NaN. */
double wg__min(const double *values, size_t count);
double wg__max(const double *values, size_t count);

/* Geometric mean of positive values. */
double wg__geomean(const double *values, size_t count);

/* The `share` quantile (0..1) by linear interpolation between order statistics (type 7 of Hyndman
 * and Fan, numpy's default). Sorts `values` in place. */
double wg__quantile_inplace(double *values, size_t count, double share);

/* The same of values that rise already: for several quantiles of one sample. */
double wg__quantile_sorted(const double *values, size_t count, double share);

/* Puts values in rising order; none is NaN. */
void wg__sort(double *values, size_t count);

/* The 0.975 quantile of Student's t, to 3e-8; `degrees_of_freedom` >= 1. */
double wg__student_quantile975(size_t degrees_of_freedom);

/* Wilson's score interval, 95 %, of the share `hits` of `trials` independent ones; 0 .. 1 for none.
 * Wilson, "Probable inference", JASA 22 (1927). */
void wg__wilson95(uint64_t hits, uint64_t trials, double *low_out, double *high_out);

/* The half-width of the two-sided 95 % confidence interval of the mean, by Student's t; NaN for one
 * value. */
double wg__mean_halfwidth95(const double *values, size_t count);

#endif
