/* SPDX-License-Identifier: MIT
 *
 * The energy-time front by sorting.
 *
 * Indices are sorted by (time, energy, index); a sweep then keeps each point whose energy is below
 * all that came before. Heap sort, because the caller's `front` is the only memory: no allocation,
 * no qsort_r with its callback types, n log n also in the worst case.
 *
 * Threads: pure, any thread.
 */
#include "optimize/pareto.h"

#include <math.h>
#include <stdbool.h>

struct points {
    const double *time_s;
    const double *energy_j;
};

/* A total order, so the result does not depend on how the sort moves equal points. */
static bool is_before(const struct points *points, size_t a, size_t b)
{
    if (points->time_s[a] < points->time_s[b])
        return true;
    if (points->time_s[a] > points->time_s[b])
        return false;
    if (points->energy_j[a] < points->energy_j[b])
        return true;
    if (points->energy_j[a] > points->energy_j[b])
        return false;
    return a < b;
}

/* Restores the heap (largest first) below `root` in index[0 .. count). */
static void sift_down(const struct points *points, size_t *index, size_t root, size_t count)
{
    const size_t moving = index[root];

    for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && is_before(points, index[child], index[child + 1]))
            child++;
        if (!is_before(points, moving, index[child]))
            break;
        index[root] = index[child];
        root = child;
    }
    index[root] = moving;
}

static void sort(const struct points *points, size_t *index, size_t count)
{
    for (size_t root = count / 2; root > 0; root--)
        sift_down(points, index, root - 1, count);
    for (size_t end = count; end > 1; end--) {
        const size_t last = index[0];

        index[0] = index[end - 1];
        index[end - 1] = last;
        sift_down(points, index, 0, end - 1);
    }
}

size_t wg__pareto_front(const double *time_s, const double *energy_j, size_t count, size_t *front)
{
    const struct points points = {.time_s = time_s, .energy_j = energy_j};
    size_t finite_count = 0;
    size_t front_count = 0;
    double least_energy_j = INFINITY;

    for (size_t i = 0; i < count; i++)
        if (isfinite(time_s[i]) && isfinite(energy_j[i]))
            front[finite_count++] = i;
    sort(&points, front, finite_count);
    for (size_t i = 0; i < finite_count; i++) {
        const size_t point = front[i];

        if (energy_j[point] < least_energy_j) {
            least_energy_j = energy_j[point];
            front[front_count++] = point;
        }
    }
    return front_count;
}
