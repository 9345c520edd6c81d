/* SPDX-License-Identifier: MIT
 *
 * Shape inference: fills in the shape and type of every tensor that the inputs determine.
 *
 * Follows the operators' specification (onnx/defs), opsets 7 to 23; small integer tensors are
 * computed along (Shape, Gather, Concat, Slice, Cast, arithmetic, ...), so that a Reshape by a
 * computed shape is known. Named dimensions stay names until `wg__shapes_set_dim` gives them a
 * number. What an operator does not determine stays unknown; unknown is never guessed.
 *
 * Owns: nothing but what it adds to the model's arena.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_SHAPES_H
#define WG_MODEL_SHAPES_H

#include "model/graph.h"

/* Gives a named or unknown dimension of the inputs a value: `name` is a dimension's name ("batch"),
 * or "INPUT:AXIS" ("x:0"). WG_EINVAL: no such dimension (the message lists those that there are),
 * value below 1. */
enum wg_code wg__shapes_set_dim(struct wg_model *model, const char *name, int64_t value,
                                struct wg_error *err);

/* WG_EDATA: shapes that contradict each other; names node and tensors. An operator that is not
 * known (another domain) leaves its outputs unknown. */
enum wg_code wg__shapes_infer(struct wg_model *model, struct wg_error *err);

#endif
