/* SPDX-License-Identifier: MIT
 *
 * The predicted time of a network's layer, whatever its kind.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_LAYER_PREDICT_H
#define WG_WAVE_LAYER_PREDICT_H

#include <stdbool.h>

#include "wave/kernel_model.h"
#include "wave/network.h"

/* Convolutions forward, with the layer's kernel where a profile tells its tile. A BYTES layer is of
 * gemm.dtype. Errors as those of kernel_model.h, behind the layer's name. */
enum wg_code wg__layer_predict(const struct wg_kernel_model *model, const struct wg_layer *layer,
                               struct wg_prediction *out, struct wg_error *err);

/* The multiplication that the layer is; false: it is none, or its sizes are not known. */
bool wg__layer_gemm(const struct wg_layer *layer, struct wg_gemm *out);

#endif
