/* SPDX-License-Identifier: MIT
 *
 * What a PyTorch operator multiplies, from its arguments as the profiler records them.
 *
 * Threads: one thread at a time.
 */
#ifndef WG_MODEL_PROFILE_TORCH_OP_H
#define WG_MODEL_PROFILE_TORCH_OP_H

#include <stdbool.h>

#include <jansson.h>

#include "wave/network.h"

/* Sets kind and dimensions of `layer` where `event` (of the trace) is a matrix product or a
 * convolution with "Input Dims", "Input type" and, for convolutions, "Concrete Inputs"; else
 * false, and `layer` stays as it is. */
bool wg__torch_op_read(const json_t *event, struct wg_layer *layer);

#endif
