/* SPDX-License-Identifier: MIT
 *
 * Tempering and selection of weighted members; see the header.
 *
 * Threads: pure.
 */
#include "optimize/board_weights.h"

#include <math.h>
#include <stdlib.h>

enum { BISECTIONS = 22 };

/* A selection keeps this share of the weight. */
static const double kept_share = 0.995;

static double largest(const double *values, size_t count)
{
    double most = values[0];
    for (size_t i = 1; i < count; i++)
        most = fmax(most, values[i]);
    return most;
}

/* Effective sample size of exp(beta ll); the weights, normalised, go to `out`. */
static double weigh(const double *ll, size_t count, double most, double beta,
                    struct wg_board_weight *out)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        const double weight = exp(beta * (ll[i] - most));
        out[i] = (struct wg_board_weight){weight, (uint32_t)i};
        sum += weight;
        squares += weight * weight;
    }
    for (size_t i = 0; i < count; i++)
        out[i].weight /= sum;
    return sum * sum / squares;
}

/* Heaviest first; equal ones in the order of the members, so that a result repeats. */
static int heavier(const void *a, const void *b)
{
    const struct wg_board_weight *x = a;
    const struct wg_board_weight *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->member < y->member ? -1 : x->member > y->member;
}

/* Systematic resampling: `most` equal steps through the cumulated weights, from half a step. */
static void resample(const struct wg_board_weight *sorted, size_t count, size_t most,
                     struct wg_board_kept *out)
{
    const double step = 1 / (double)most;
    double until = sorted[0].weight;
    size_t at = 0;
    for (size_t i = 0; i < most; i++) {
        const double u = ((double)i + 0.5) * step;
        while (until < u && at + 1 < count)
            until += sorted[++at].weight;
        out->members[i] = sorted[at].member;
        out->weights[i] = step;
    }
    out->count = most;
}

static void keep_heaviest(const struct wg_board_weight *sorted, size_t count, size_t most,
                          struct wg_board_kept *out)
{
    double sum = 0;
    size_t kept = 0;
    while (kept < most && kept < count && sum < kept_share)
        sum += sorted[kept++].weight;
    for (size_t i = 0; i < kept; i++) {
        out->members[i] = sorted[i].member;
        out->weights[i] = sorted[i].weight / sum;
    }
    out->count = kept;
}

void wg__board_weights(const double *log_likelihoods, size_t count, double least_effective,
                       size_t most, struct wg_board_weight *scratch, struct wg_board_kept *out)
{
    const double top = largest(log_likelihoods, count);
    double effective = weigh(log_likelihoods, count, top, 1, scratch);
    out->beta = 1;
    if (effective < least_effective) {
        double lo = 0, hi = 1;
        for (int i = 0; i < BISECTIONS; i++) {
            const double middle = (lo + hi) / 2;
            if (weigh(log_likelihoods, count, top, middle, scratch) >= least_effective)
                lo = middle;
            else
                hi = middle;
        }
        out->beta = lo;
        effective = weigh(log_likelihoods, count, top, lo, scratch);
    }
    qsort(scratch, count, sizeof *scratch, heavier);
    if (effective > 0.9 * (double)most)
        resample(scratch, count, most, out);
    else
        keep_heaviest(scratch, count, most, out);
}
