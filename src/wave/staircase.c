/* SPDX-License-Identifier: MIT
 *
 * Staircases: one size of a layer moved, and what the curve says about the present one; see
 * staircase.h.
 */
#include "wave/staircase.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "wave/layer_predict.h"

static const double worth_telling = 0.03; /* of a larger size that is faster */

const char *wg__sweep_axis_name(enum wg_sweep_axis axis)
{
    static const char *const names[] = {"filters", "channels", "batch", "resolution"};
    static_assert(sizeof names / sizeof names[0] == WG_SWEEP_AXIS_COUNT, "a name each");
    return axis < WG_SWEEP_AXIS_COUNT ? names[axis] : "size";
}

static bool is_multiple(uint64_t size, uint64_t samples)
{
    return samples > 0 && size > 0 && size % samples == 0;
}

/* The size of a GEMM that counts samples; NULL: none does. */
static uint64_t *samples_of(struct wg_gemm *gemm, uint64_t samples)
{
    if (gemm->batch > 1 && is_multiple(gemm->batch, samples))
        return &gemm->batch;
    return is_multiple(gemm->m, samples) ? &gemm->m : NULL;
}

uint64_t wg__layer_size(const struct wg_layer *layer, enum wg_sweep_axis axis, uint64_t samples)
{
    const bool is_conv = layer->kind == WG_LAYER_CONV, is_gemm = layer->kind == WG_LAYER_GEMM;
    switch (axis) {
    case WG_SWEEP_FILTERS:
        return is_conv ? layer->conv.filters : is_gemm ? layer->gemm.n : 0;
    case WG_SWEEP_CHANNELS:
        return is_conv ? layer->conv.c : is_gemm ? layer->gemm.k : 0;
    case WG_SWEEP_BATCH:
        return samples;
    case WG_SWEEP_RESOLUTION:
        return is_conv ? layer->conv.h : 0;
    case WG_SWEEP_AXIS_COUNT:
        break;
    }
    return 0;
}

static enum wg_code fail_axis(const struct wg_layer *layer, enum wg_sweep_axis axis,
                              struct wg_error *err)
{
    return wg__fail(err, WG_EINVAL, "layer '%s' (%s) has no %s", layer->name, layer->op,
                    wg__sweep_axis_name(axis));
}

static enum wg_code fail_groups(const struct wg_layer *layer, const char *what, uint64_t value,
                                uint64_t groups, struct wg_error *err)
{
    return wg__fail(err, WG_EINVAL, "layer '%s': %" PRIu64 " %s are no multiple of %" PRIu64,
                    layer->name, value, what, groups);
}

/* `size` at `value` samples instead of `samples`. */
static enum wg_code scale(const struct wg_layer *layer, uint64_t *size, uint64_t samples,
                          uint64_t value, struct wg_error *err)
{
    uint64_t grown;
    if (__builtin_mul_overflow(*size / samples, value, &grown) || grown > INT64_MAX)
        return wg__fail(err, WG_EINVAL, "layer '%s': a batch of %" PRIu64 " multiplies beyond 2^63",
                        layer->name, value);
    *size = grown;
    return WG_OK;
}

static enum wg_code resize_batch(const struct wg_layer *layer, uint64_t samples, uint64_t value,
                                 struct wg_layer *at, struct wg_error *err)
{
    if (samples == 0)
        return fail_axis(layer, WG_SWEEP_BATCH, err);
    if (layer->kind == WG_LAYER_CONV)
        return is_multiple(layer->conv.n, samples) ? scale(layer, &at->conv.n, samples, value, err)
                                                   : WG_OK;
    if (layer->kind == WG_LAYER_GEMM) {
        uint64_t *size = samples_of(&at->gemm, samples);
        return size != NULL ? scale(layer, size, samples, value, err) : WG_OK;
    }
    at->bytes = layer->bytes * ((double)value / (double)samples);
    return WG_OK;
}

static enum wg_code resize_conv(const struct wg_layer *layer, enum wg_sweep_axis axis,
                                uint64_t value, struct wg_layer *at, struct wg_error *err)
{
    const struct wg_conv *conv = &layer->conv;
    if (axis == WG_SWEEP_RESOLUTION) {
        const double width = (double)conv->w * ((double)value / (double)conv->h);
        if (conv->h == 0 || !(width < 0x1p62))
            return fail_axis(layer, axis, err);
        at->conv.h = value;
        at->conv.w = width < 1 ? 1 : (uint64_t)llround(width);
        return WG_OK;
    }
    if (wg__conv_is_depthwise(conv)) {
        const uint64_t multiplier = conv->filters / conv->c;
        const bool is_filters = axis == WG_SWEEP_FILTERS;
        if (multiplier == 0 || (is_filters && value % multiplier != 0))
            return fail_groups(layer, wg__sweep_axis_name(axis), value, multiplier, err);
        at->conv.c = is_filters ? value / multiplier : value;
        at->conv.groups = at->conv.c;
        return __builtin_mul_overflow(at->conv.c, multiplier, &at->conv.filters)
                   ? fail_axis(layer, axis, err)
                   : WG_OK;
    }
    if (conv->groups == 0 || value % conv->groups != 0)
        return fail_groups(layer, wg__sweep_axis_name(axis), value, conv->groups, err);
    if (axis == WG_SWEEP_FILTERS)
        at->conv.filters = value;
    else
        at->conv.c = value;
    return WG_OK;
}

enum wg_code wg__layer_resize(const struct wg_layer *layer, enum wg_sweep_axis axis,
                              uint64_t samples, uint64_t value, struct wg_layer *out,
                              struct wg_error *err)
{
    struct wg_layer at = *layer;
    enum wg_code code = WG_OK;
    if (value == 0)
        return wg__fail(err, WG_EINVAL, "layer '%s': %s of 0", layer->name,
                        wg__sweep_axis_name(axis));
    if (axis == WG_SWEEP_BATCH)
        code = resize_batch(layer, samples, value, &at, err);
    else if (layer->kind == WG_LAYER_CONV)
        code = resize_conv(layer, axis, value, &at, err);
    else if (layer->kind == WG_LAYER_GEMM && axis == WG_SWEEP_FILTERS)
        at.gemm.n = value;
    else if (layer->kind == WG_LAYER_GEMM && axis == WG_SWEEP_CHANNELS)
        at.gemm.k = value;
    else
        code = fail_axis(layer, axis, err);
    if (code != WG_OK)
        return code;
    if (value != wg__layer_size(layer, axis, samples)) {
        at.blocks = 0; /* they were profiled at the old size */
        at.measured_s = 0;
    }
    *out = at;
    return WG_OK;
}

enum wg_code wg__sweep(const struct wg_kernel_model *model, const struct wg_layer *layer,
                       enum wg_sweep_axis axis, uint64_t samples, uint64_t first, uint64_t step,
                       size_t count, struct wg_sweep_point *points, struct wg_error *err)
{
    uint64_t last;
    if (count > 0 && (__builtin_mul_overflow(step, (uint64_t)(count - 1), &last) ||
                      __builtin_add_overflow(last, first, &last)))
        return wg__fail(err, WG_EINVAL, "%zu steps of %" PRIu64 " from %" PRIu64 " pass 2^64",
                        count, step, first);
    for (size_t i = 0; i < count; i++) {
        struct wg_layer at;
        points[i].value = first + step * i;
        enum wg_code code = wg__layer_resize(layer, axis, samples, points[i].value, &at, err);
        if (code == WG_OK)
            code = wg__layer_predict(model, &at, &points[i].prediction, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

enum wg_code wg__stair_find(const struct wg_sweep_point *points, size_t count, uint64_t value,
                            double tolerance, struct wg_stair *out, struct wg_error *err)
{
    size_t at = 0;
    while (at < count && points[at].value != value)
        at++;
    if (at == count)
        return wg__fail(err, WG_EINVAL, "the sweep's %zu points do not hold %" PRIu64, count,
                        value);
    const double time_s = points[at].prediction.time_s;
    struct wg_stair stair = {.value = value,
                             .below = value,
                             .above = value,
                             .time_s = time_s,
                             .below_s = time_s,
                             .above_s = time_s,
                             .faster_s = time_s * (1 - worth_telling)};
    for (size_t i = at; i-- > 0 && stair.below == value;)
        if (points[i].prediction.time_s < time_s * (1 - tolerance)) {
            stair.below = points[i].value;
            stair.below_s = points[i].prediction.time_s;
        }
    for (size_t i = at + 1; i < count; i++) {
        const double larger_s = points[i].prediction.time_s;
        if (larger_s <= time_s * (1 + tolerance)) {
            stair.above = points[i].value;
            stair.above_s = larger_s;
        }
        if (larger_s <= stair.faster_s) {
            stair.faster = points[i].value;
            stair.faster_s = larger_s;
        }
    }
    if (stair.faster == 0)
        stair.faster_s = time_s;
    if (stair.below < value)
        stair.saved_s_per_channel = (time_s - stair.below_s) / (double)(value - stair.below);
    *out = stair;
    return WG_OK;
}

static double rise_at(const struct wg_sweep_point *points, size_t index)
{
    return points[index].prediction.time_s - points[index - 1].prediction.time_s;
}

bool wg__sweep_is_step(const struct wg_sweep_point *points, size_t count, size_t index, double rise)
{
    if (index == 0 || index >= count)
        return false;
    const double own_s = rise_at(points, index);
    if (!(own_s > rise * points[index - 1].prediction.time_s))
        return false;
    double neighbours_s = 0;
    unsigned neighbours = 0;
    if (index >= 2) {
        neighbours_s += fmax(rise_at(points, index - 1), 0);
        neighbours++;
    }
    if (index + 1 < count) {
        neighbours_s += fmax(rise_at(points, index + 1), 0);
        neighbours++;
    }
    return neighbours == 0 || own_s > 2 * neighbours_s / neighbours;
}
