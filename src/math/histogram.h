/* SPDX-License-Identifier: MIT
 *
 * Counts of positive numbers in bins whose width grows with them, for quantiles of many.
 *
 * A bin is a double's exponent and its first 10 bits: 1024 bins an octave, so a quantile, the
 * middle of its bin, is off by at most 0.05 %, whatever is counted and in whatever order. Memory
 * does not grow with the count, and histograms add up exactly.
 *
 * Owns: its counts, unless they are the caller's.    Threads: one at a time; the atomic add:
 * several.
 */
#ifndef WG_MATH_HISTOGRAM_H
#define WG_MATH_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From 2^-24 s (60 ns) to 2^24 s; what lies outside is counted in the first or last bin, what is
 * not positive (NaN too) in the first. */
enum {
    WG_HISTOGRAM_BITS = 10,
    WG_HISTOGRAM_OCTAVES = 48,
    WG_HISTOGRAM_BINS = WG_HISTOGRAM_OCTAVES << WG_HISTOGRAM_BITS
};

struct wg_histogram {
    uint64_t *counts; /* WG_HISTOGRAM_BINS */
};

bool wg__histogram_init(struct wg_histogram *histogram); /* false: no memory */
void wg__histogram_fini(struct wg_histogram *histogram);

void wg__histogram_add(struct wg_histogram *histogram, double value);
/* For counts that processes share. */
void wg__histogram_add_atomic(struct wg_histogram *histogram, double value);
uint64_t wg__histogram_count(const struct wg_histogram *histogram);
/* The middle of the bin of the ceil(share * n)-th smallest; NAN when empty. share in [0, 1]. */
double wg__histogram_quantile(const struct wg_histogram *histogram, double share);

#endif
