/* SPDX-License-Identifier: MIT
 *
 * The predicted time of a network's layer; see layer_predict.h.
 */
#include "wave/layer_predict.h"

static enum wg_code predict(const struct wg_kernel_model *model, const struct wg_layer *layer,
                            struct wg_prediction *out, struct wg_error *err)
{
    const struct wg_kernel *known = layer->kernel.tile_m > 0 ? &layer->kernel : NULL;
    if (layer->kind == WG_LAYER_CONV)
        return wg__kernel_model_conv(model, &layer->conv, WG_CONV_FORWARD, known, out, err);
    if (layer->kind == WG_LAYER_GEMM)
        return wg__kernel_model_gemm(model, &layer->gemm, known, out, err);
    return wg__kernel_model_bytes(model, layer->gemm.dtype, layer->bytes, out, err);
}

enum wg_code wg__layer_predict(const struct wg_kernel_model *model, const struct wg_layer *layer,
                               struct wg_prediction *out, struct wg_error *err)
{
    struct wg_error cause;
    const enum wg_code code = predict(model, layer, out, &cause);
    return code == WG_OK ? WG_OK : wg__fail(err, code, "layer '%s': %s", layer->name, cause.text);
}

bool wg__layer_gemm(const struct wg_layer *layer, struct wg_gemm *out)
{
    if (layer->kind == WG_LAYER_CONV)
        return layer->conv.n > 0 &&
               wg__conv_gemm(&layer->conv, WG_CONV_FORWARD, out, NULL) == WG_OK;
    *out = layer->gemm;
    return layer->kind == WG_LAYER_GEMM && layer->gemm.m > 0;
}
