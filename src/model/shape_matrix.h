/* SPDX-License-Identifier: MIT
 *
 * The shape of a matrix product, for the operators that are one.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_SHAPE_MATRIX_H
#define WG_MODEL_SHAPE_MATRIX_H

#include "model/shape_node.h"

/* numpy's matmul of two inputs, their last two axes swapped first where told; sets output 0. */
enum wg_code wg__shape_product_of(struct wg_shape_node *n, size_t left, size_t right,
                                  bool is_left_transposed, bool is_right_transposed);

#endif
