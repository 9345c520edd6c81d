/* SPDX-License-Identifier: MIT
 *
 * Computing a staircase over a range that the user gave, or over one that fits: see wave_sweep.h.
 */
#include "cli/wave_sweep.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "wave/layer_predict.h"

/* What sizes must be multiples of. */
static uint64_t granularity(const struct wg_layer *layer, enum wg_sweep_axis axis)
{
    const struct wg_conv *conv = &layer->conv;
    const bool is_width = axis == WG_SWEEP_FILTERS || axis == WG_SWEEP_CHANNELS;
    if (layer->kind != WG_LAYER_CONV || !is_width || conv->groups <= 1)
        return 1;
    if (!wg__conv_is_depthwise(conv))
        return conv->groups;
    return axis == WG_SWEEP_FILTERS && conv->filters >= conv->c ? conv->filters / conv->c : 1;
}

/* Fills what was not given and counts. */
static enum wg_code choose_range(const struct wg_layer *layer, uint64_t present,
                                 struct wg_wave_sweep_opts *opts, size_t *count_out,
                                 struct wg_error *err)
{
    const uint64_t unit = granularity(layer, opts->axis);
    const bool has_step = opts->step > 0, has_from = opts->from > 0;
    if (present > UINT32_MAX || opts->to > UINT32_MAX || opts->from > UINT32_MAX)
        return wg__fail(err, WG_EINVAL, "sizes above %" PRIu32 " are not swept", UINT32_MAX);
    if (opts->to == 0)
        opts->to = opts->from > present ? 2 * opts->from : 2 * present;
    if (!has_step)
        opts->step = unit;
    if (!has_from)
        opts->from = opts->step;
    if (opts->from > opts->to)
        return wg__fail(err, WG_EINVAL, "the range from %" PRIu64 " to %" PRIu64 " is empty",
                        opts->from, opts->to);
    uint64_t count = (opts->to - opts->from) / opts->step + 1;
    while (!has_step && count > WG_WAVE_SWEEP_POINTS_DEFAULT) {
        opts->step *= 2; /* sizes in use are multiples of powers of two */
        if (!has_from)
            opts->from = opts->step;
        count = (opts->to - opts->from) / opts->step + 1;
    }
    if (count > WG_WAVE_SWEEP_POINTS_MAX)
        return wg__fail(err, WG_EINVAL,
                        "%" PRIu64 " sizes from %" PRIu64 " to %" PRIu64
                        " are more than %d; a larger --step makes them fewer",
                        count, opts->from, opts->to, WG_WAVE_SWEEP_POINTS_MAX);
    *count_out = (size_t)count;
    return WG_OK;
}

/* The present size stands among the points, wherever the range lies. */
static enum wg_code insert_present(struct wg_wave_sweep *sweep, const struct wg_kernel_model *model,
                                   struct wg_error *err)
{
    size_t at = 0;
    while (at < sweep->count && sweep->points[at].value < sweep->present)
        at++;
    sweep->now = at;
    if (at < sweep->count && sweep->points[at].value == sweep->present)
        return WG_OK;
    memmove(&sweep->points[at + 1], &sweep->points[at],
            (sweep->count - at) * sizeof *sweep->points);
    sweep->count++;
    return wg__sweep(model, sweep->layer, sweep->axis, sweep->samples, sweep->present, 1, 1,
                     &sweep->points[at], err);
}

static void count_flops(struct wg_wave_sweep *sweep)
{
    for (size_t i = 0; i < sweep->count; i++) {
        struct wg_layer at;
        struct wg_gemm gemm;
        sweep->flops[i] = (double)NAN;
        if (wg__layer_resize(sweep->layer, sweep->axis, sweep->samples, sweep->points[i].value, &at,
                             NULL) == WG_OK &&
            wg__layer_gemm(&at, &gemm))
            sweep->flops[i] = wg__gemm_flops(&gemm);
    }
}

enum wg_code wg__wave_sweep(struct wg_wave_sweep *out, const struct wg_kernel_model *model,
                            const struct wg_layer *layer, const struct wg_wave_sweep_opts *opts,
                            struct wg_error *err)
{
    struct wg_wave_sweep_opts range = *opts;
    struct wg_layer ignored;
    out->layer = layer;
    out->axis = opts->axis;
    out->samples = opts->samples;
    out->present = wg__layer_size(layer, opts->axis, opts->samples);
    out->dtype = layer->kind == WG_LAYER_CONV ? layer->conv.dtype : layer->gemm.dtype;
    enum wg_code code = wg__layer_resize(layer, opts->axis, opts->samples,
                                         out->present > 0 ? out->present : 1, &ignored, err);
    if (code == WG_OK)
        code = choose_range(layer, out->present, &range, &out->count, err);
    if (code != WG_OK)
        return code;
    out->points = wg__alloc_zeroed(out->count + 1, sizeof *out->points);
    out->flops = wg__alloc_zeroed(out->count + 1, sizeof *out->flops);
    if (out->points == NULL || out->flops == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    code = wg__sweep(model, layer, opts->axis, opts->samples, range.from, range.step, out->count,
                     out->points, err);
    if (code == WG_OK)
        code = insert_present(out, model, err);
    if (code == WG_OK)
        code = wg__stair_find(out->points, out->count, out->present, 0.01, &out->stair, err);
    if (code == WG_OK)
        count_flops(out);
    return code;
}

void wg__wave_sweep_fini(struct wg_wave_sweep *sweep)
{
    if (sweep == NULL)
        return;
    wg__free(sweep->points);
    wg__free(sweep->flops);
    *sweep = (struct wg_wave_sweep){0};
}
