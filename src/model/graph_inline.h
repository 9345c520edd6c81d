/* SPDX-License-Identifier: MIT
 *
 * Puts the bodies of a model's own functions where they are called.
 *
 * What comes after, shape inference and lowering, then knows ONNX' operators only. A body's nodes
 * stand where the call stood, named "CALL/NODE"; its inputs and outputs are the call's tensors, the
 * others become new tensors, and attributes that stand for the call's are taken from there, or from
 * the function's defaults. Functions may call functions; a circle of them is refused, and so are
 * calls that multiply beyond WG_INLINE_PARTS_MAX nodes and tensors.
 *
 * Owns: nothing; what is made is the arena's.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_GRAPH_INLINE_H
#define WG_MODEL_GRAPH_INLINE_H

#include "model/graph.h"

enum { WG_INLINE_PARTS_MAX = 1 << 20 };

/* `name` stands for the file in messages. WG_EDATA: functions that call each other;
 * WG_EUNSUPPORTED: too many parts; WG_ENOMEM. */
enum wg_code wg__graph_inline(struct wg_model *model, const char *name, struct wg_error *err);

#endif
