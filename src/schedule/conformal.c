/* SPDX-License-Identifier: MIT
 *
 * The window twice: in the order of time, to know which leaves, and sorted, to know the quantile.
 *
 * Owns: see the header.    Threads: one at a time.
 */
#include "schedule/conformal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "math/statistics.h"

/* Fewer that are all below, or all above, would say too little. */
enum { NEWEST_MIN = 48, HIGHEST_MIN = 5 };

bool wg__conformal_init(struct wg_conformal *conformal, size_t window, double miss)
{
    assert(window >= 1 && miss > 0.0 && miss < 1.0);
    *conformal = (struct wg_conformal){.window = window, .miss = miss};
    conformal->recent = wg__alloc_zeroed(window, sizeof *conformal->recent);
    conformal->sorted = wg__alloc_zeroed(window, sizeof *conformal->sorted);
    if (conformal->recent != NULL && conformal->sorted != NULL)
        return true;
    wg__conformal_fini(conformal);
    return false;
}

void wg__conformal_fini(struct wg_conformal *conformal)
{
    wg__free(conformal->recent);
    wg__free(conformal->sorted);
    conformal->recent = NULL;
    conformal->sorted = NULL;
}

/* How many of the sorted ones are less than `value`. */
static size_t place_of(const struct wg_conformal *conformal, double value)
{
    size_t low = 0, high = conformal->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (conformal->sorted[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The newest that are kept when the older ones are forgotten: so many that they make a margin. */
static size_t newest_of(const struct wg_conformal *conformal)
{
    const double enough = ceil(1.0 / conformal->miss) - 1.0;
    return enough > (double)NEWEST_MIN ? (size_t)enough : NEWEST_MIN;
}

/* The residual that was told so long ago; 1: the last one. */
static double told_before(const struct wg_conformal *conformal, size_t back)
{
    const size_t next = conformal->next;
    return conformal->recent[next >= back ? next - back : next + conformal->window - back];
}

/* Whether each of the newest is below the highest third of the older ones. Whatever the residuals'
 * distribution, that happens by chance less than once in 3000 times while they are exchangeable. */
static bool are_newest_lower(const struct wg_conformal *conformal, size_t newest)
{
    const size_t older = conformal->count > newest ? conformal->count - newest : 0;
    const size_t third = older / 3 + 1;
    const size_t highest = third > HIGHEST_MIN ? third : HIGHEST_MIN;
    if (older < highest)
        return false;
    const double limit = conformal->sorted[conformal->count - highest];
    for (size_t back = 1; back <= newest; back++) {
        if (told_before(conformal, back) >= limit)
            return false;
    }
    return true;
}

static void forget_older(struct wg_conformal *conformal, size_t newest)
{
    for (size_t back = 1; back <= newest; back++)
        conformal->sorted[back - 1] = told_before(conformal, back);
    wg__sort(conformal->sorted, newest);
    conformal->count = newest;
}

static void add(struct wg_conformal *conformal, double residual)
{
    double *sorted = conformal->sorted;
    const size_t to = place_of(conformal, residual);
    if (conformal->count < conformal->window) {
        memmove(sorted + to + 1, sorted + to, (conformal->count - to) * sizeof *sorted);
        sorted[to] = residual;
        conformal->count++;
    } else {
        const size_t from = place_of(conformal, conformal->recent[conformal->next]);
        if (from < to) { /* those between move down; what is new stands before `to` */
            memmove(sorted + from, sorted + from + 1, (to - from - 1) * sizeof *sorted);
            sorted[to - 1] = residual;
        } else {
            memmove(sorted + to + 1, sorted + to, (from - to) * sizeof *sorted);
            sorted[to] = residual;
        }
    }
    conformal->recent[conformal->next] = residual;
    conformal->next = conformal->next + 1 == conformal->window ? 0 : conformal->next + 1;
}

void wg__conformal_tell(struct wg_conformal *conformal, double residual)
{
    const size_t newest = newest_of(conformal);
    add(conformal, residual);
    if (are_newest_lower(conformal, newest))
        forget_older(conformal, newest);
}

double wg__conformal_margin(const struct wg_conformal *conformal, double first)
{
    const size_t count = conformal->count;
    if (count == 0)
        return first;
    /* ceil((n + 1)(1 - miss)), not one more for rounding */
    const double wanted = ((double)count + 1.0) * (1.0 - conformal->miss);
    const double rank = ceil(wanted * (1.0 - 0x1p-50));
    if (rank > (double)count)
        return fmax(fmax(first, conformal->sorted[count - 1]), 0.0);
    return fmax(conformal->sorted[rank < 1.0 ? 0 : (size_t)rank - 1], 0.0);
}
