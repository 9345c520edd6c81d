/* SPDX-License-Identifier: MIT
 *
 * The bits of a positive double, read as a whole number, rise with it, and their upper ones are
 * its exponent and the first bits of its fraction: shifting gives the bin.
 *
 * Owns: nothing.    Threads: see the header.
 */
#include "math/histogram.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { FRACTION_BITS = 52, SHIFT = FRACTION_BITS - WG_HISTOGRAM_BITS, EXPONENT_BIAS = 1023 };

static const uint64_t first_bin = (uint64_t)(EXPONENT_BIAS - WG_HISTOGRAM_OCTAVES / 2)
                                  << WG_HISTOGRAM_BITS;

static size_t bin_of(double value)
{
    if (!(value > 0.0)) /* NaN too */
        return 0;
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    bits >>= SHIFT;
    if (bits < first_bin)
        return 0;
    const uint64_t bin = bits - first_bin;
    return bin < WG_HISTOGRAM_BINS ? (size_t)bin : WG_HISTOGRAM_BINS - 1;
}

static double middle_of(size_t bin)
{
    const uint64_t bits = (first_bin + bin) << SHIFT | (uint64_t)1 << (SHIFT - 1);
    double value = 0.0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

bool wg__histogram_init(struct wg_histogram *histogram)
{
    histogram->counts = wg__alloc_zeroed(WG_HISTOGRAM_BINS, sizeof *histogram->counts);
    return histogram->counts != NULL;
}

void wg__histogram_fini(struct wg_histogram *histogram)
{
    wg__free(histogram->counts);
    histogram->counts = NULL;
}

void wg__histogram_add(struct wg_histogram *histogram, double value)
{
    histogram->counts[bin_of(value)]++;
}

void wg__histogram_add_atomic(struct wg_histogram *histogram, double value)
{
    (void)__atomic_fetch_add(&histogram->counts[bin_of(value)], 1, __ATOMIC_RELAXED);
}

uint64_t wg__histogram_count(const struct wg_histogram *histogram)
{
    uint64_t count = 0;
    for (size_t i = 0; i < WG_HISTOGRAM_BINS; i++)
        count += histogram->counts[i];
    return count;
}

double wg__histogram_quantile(const struct wg_histogram *histogram, double share)
{
    const uint64_t count = wg__histogram_count(histogram);
    if (count == 0)
        return (double)NAN;
    /* 0.07 * 100 is a little more than 7, which must not become the eighth. */
    const double wanted = share * (double)count * (1.0 - 0x1p-51);
    uint64_t rank = wanted > 0.0 ? (uint64_t)ceil(wanted) : 1;
    rank = rank < 1 ? 1 : rank > count ? count : rank;
    size_t bin = 0;
    for (uint64_t below = histogram->counts[0]; below < rank; below += histogram->counts[bin])
        bin++;
    return middle_of(bin);
}
