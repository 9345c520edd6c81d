/* SPDX-License-Identifier: MIT
 *
 * Fewer rows that say as much; see board_rows.h.
 */
#include "optimize/board_rows.h"

#include <math.h>
#include <stdlib.h>

static const double least_sd = 1e-9; /* nothing is known better */

static int by_configuration(const void *left, const void *right)
{
    const struct wg_board_row *a = left;
    const struct wg_board_row *b = right;
    return (a->configuration > b->configuration) - (a->configuration < b->configuration);
}

static int by_size(const void *left, const void *right)
{
    const struct wg_board_row *a = left;
    const struct wg_board_row *b = right;
    const double x = fabs(a->value), y = fabs(b->value);
    return x == y ? by_configuration(a, b) : x > y ? 1 : -1;
}

size_t wg__board_rows_pool(struct wg_board_row *rows, size_t count)
{
    size_t kept = 0;
    qsort(rows, count, sizeof *rows, by_configuration);
    for (size_t i = 0; i < count;) {
        const uint32_t configuration = rows[i].configuration;
        double weight = 0, sum = 0;
        for (; i < count && rows[i].configuration == configuration; i++) {
            const double precision = 1 / pow(fmax(rows[i].sd, least_sd), 2);
            weight += precision;
            sum += precision * rows[i].value;
        }
        rows[kept++] = (struct wg_board_row){configuration, sum / weight, 1 / sqrt(weight)};
    }
    return kept;
}

size_t wg__board_rows_thin(struct wg_board_row *rows, size_t count, size_t most, double centre,
                           uint32_t always)
{
    const size_t near = most / 2;
    size_t kept = count < most ? count : most, place = count;
    if (count <= most)
        return count;
    for (size_t i = 0; i < count; i++)
        rows[i].value -= centre;
    qsort(rows, count, sizeof *rows, by_size);
    for (size_t i = 0; i < count; i++) {
        rows[i].value += centre;
        if (rows[i].configuration == always)
            place = i;
    }
    const struct wg_board_row pinned = rows[place < count ? place : 0];
    for (size_t i = near; i < kept; i++) /* never reads behind what it has written */
        rows[i] = rows[near + (i - near) * (count - near) / (kept - near)];
    for (size_t i = 0; i < kept && place < count; i++)
        if (rows[i].configuration == always)
            place = count;
    if (place < count)
        rows[kept - 1] = pinned;
    return kept;
}

size_t wg__board_rows_bound(struct wg_board_row *rows, size_t count, double centre, uint32_t always)
{
    double least = (double)INFINITY;
    if (count <= WG_BOARD_ROWS_MOST)
        return count;
    count = wg__board_rows_pool(rows, count);
    for (size_t i = 0; i < count; i++)
        least = fmin(least, rows[i].value);
    return wg__board_rows_thin(rows, count, WG_BOARD_ROWS_MOST, isnan(centre) ? least : centre,
                               always);
}
