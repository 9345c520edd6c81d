/* SPDX-License-Identifier: MIT
 *
 * What a posterior goes by, when very much was measured.
 *
 * A decision costs the third power of its rows. Measurements of one configuration become one row,
 * which loses nothing: their mean, weighed by how precise each is, and its error. What is still too
 * much is thinned: half of the rows that stay are those nearest to where it matters (the least
 * cost, the bound of a limit), the others are spread evenly over the rest.
 *
 * Pure.    Owns: nothing.    Threads: any.
 */
#ifndef WG_OPTIMIZE_BOARD_ROWS_H
#define WG_OPTIMIZE_BOARD_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "optimize/board_posterior.h"

enum { WG_BOARD_ROWS_MOST = 300 };

/* Both, where there are more than ROWS_MOST; `centre` NAN: the least value. */
size_t wg__board_rows_bound(struct wg_board_row *rows, size_t count, double centre,
                            uint32_t always);

/* One row a configuration; returns how many are left, by configuration. */
size_t wg__board_rows_pool(struct wg_board_row *rows, size_t count);

/* At most `most` (at least 2) of them; the row of `always` stays. Returns how many. */
size_t wg__board_rows_thin(struct wg_board_row *rows, size_t count, size_t most, double centre,
                           uint32_t always);

#endif
