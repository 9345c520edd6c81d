/* SPDX-License-Identifier: MIT
 *
 * Small matrices times panels: a few columns of a long matrix, kept side by side.
 *
 * Where thousands of columns are each multiplied by the same few matrices, a panel of them stays in
 * the processor's nearest cache while all matrices pass. A library for large matrices does it too,
 * but takes its slowest path on a processor that it does not know, and sums in an order that
 * depends on the processor. Here each sum runs in the order of the inner index, and no product is
 * fused with its sum, so that a result is the same on every machine, wide vectors or not.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_MATH_PANEL_H
#define WG_MATH_PANEL_H

#include <stddef.h>

enum { WG_PANEL = 64 }; /* columns */

/* out += matrix panel, in single precision: `matrix` is [rows][inner], `panel` [inner][WG_PANEL],
 * `out` [rows][WG_PANEL]; no two of them overlap. */
void wg__panel_add_product(const float *matrix, size_t rows, size_t inner, const float *panel,
                           float *out);

#endif
