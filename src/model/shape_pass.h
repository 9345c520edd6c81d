/* SPDX-License-Identifier: MIT
 *
 * Shape functions that several families of operators use.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_SHAPE_PASS_H
#define WG_MODEL_SHAPE_PASS_H

#include "model/shape_node.h"

/* The first output is like the first input; of booleans. */
enum wg_code wg__shape_same(struct wg_shape_node *n);
enum wg_code wg__shape_same_bool(struct wg_shape_node *n);
/* The first output is inputs first .. first + count - 1 broadcast, where all are known. */
enum wg_code wg__shape_broadcast_all(struct wg_shape_node *n, size_t first, size_t count);

#endif
