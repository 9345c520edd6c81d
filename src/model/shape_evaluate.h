/* SPDX-License-Identifier: MIT
 *
 * Computes outputs' values from inputs' values (shape_values.c says what a value is).
 *
 * Each of these leaves the value unknown unless it's surely what a run would give: integer
 * overflow, rounding that runtimes disagree on, and half-precision arithmetic give unknown.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_SHAPE_EVALUATE_H
#define WG_MODEL_SHAPE_EVALUATE_H

#include "model/shape_node.h"

/* By the node's operator: arithmetic, comparison, logic; broadcast. */
enum wg_code wg__evaluate_unary(struct wg_shape_node *n);
enum wg_code wg__evaluate_binary(struct wg_shape_node *n);
enum wg_code wg__evaluate_variadic(struct wg_shape_node *n);
enum wg_code wg__evaluate_where(struct wg_shape_node *n);

/* The first input's elements in order, whatever the shape: Identity, Reshape, Squeeze. */
enum wg_code wg__evaluate_pass(struct wg_shape_node *n);
enum wg_code wg__evaluate_shape(struct wg_shape_node *n);
enum wg_code wg__evaluate_size(struct wg_shape_node *n);
enum wg_code wg__evaluate_gather(struct wg_shape_node *n);
enum wg_code wg__evaluate_concat(struct wg_shape_node *n);
enum wg_code wg__evaluate_slice(struct wg_shape_node *n);
enum wg_code wg__evaluate_split(struct wg_shape_node *n);
enum wg_code wg__evaluate_transpose(struct wg_shape_node *n);
enum wg_code wg__evaluate_expand(struct wg_shape_node *n);
enum wg_code wg__evaluate_tile(struct wg_shape_node *n);
enum wg_code wg__evaluate_constant_of_shape(struct wg_shape_node *n);
enum wg_code wg__evaluate_range(struct wg_shape_node *n);
enum wg_code wg__evaluate_reduce(struct wg_shape_node *n);

#endif
