/* SPDX-License-Identifier: MIT
 *
 * Small random networks for tests of the planner, with times that are staircases or noise, and all
 * their plans one by one.
 *
 * Nothing here uses the code under test: a layer's channels, parameters and operations are counted
 * from the network's description once more.
 *
 * Owns: a stage owns its arrays.    Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_PLAN_NETWORKS_H
#define WG_TESTS_SUPPORT_PLAN_NETWORKS_H

#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "support/check.h"
#include "wave/plan.h"

enum { STAGE_LAYERS = 24, STAGE_WIDTHS = 8, STAGE_PARTS = 4 };

struct plan_stage {
    struct wg_network network;
    struct wg_layer layers[STAGE_LAYERS];
    struct wg_width widths[STAGE_WIDTHS];
    struct wg_channel_part parts[STAGE_LAYERS][2][STAGE_PARTS];
    uint32_t pruned[STAGE_WIDTHS];
    double importance[STAGE_WIDTHS];
    bool is_noise; /* times are drawn instead of counted in waves */
    struct wg_rng rng;
};

static inline uint64_t plan_side(const struct wg_channels *side, const uint32_t *channels)
{
    uint64_t sum = side->constant;
    for (size_t i = 0; i < side->part_count; i++)
        sum += (uint64_t)side->parts[i].multiple * channels[side->parts[i].width];
    return sum;
}

/* Whole waves of tiles of 24 filters over 5 processors; or noise from 1 to 2 microseconds. */
static inline double plan_time(bool is_noise, const struct wg_layer *layer, uint64_t in,
                               uint64_t out)
{
    if (is_noise) {
        const uint64_t hash = wg__hash_mix(wg__hash_text(in * 1000003 + out, layer->name));
        return (1 + (double)(hash % 1000) / 1000) * 1e-6;
    }
    if (layer->kind == WG_LAYER_BYTES)
        return 1e-6 + 1e-9 * (double)out;
    const uint64_t rows = layer->kind == WG_LAYER_GEMM ? 1 : 4;
    const uint64_t waves = (rows * ((out + 23) / 24) + 4) / 5;
    return 2e-6 + 1e-8 * (double)waves * (double)(in + 20);
}

static inline double plan_layer_time(const void *context, const struct wg_layer *layer)
{
    const struct plan_stage *stage = context;
    const bool is_conv = layer->kind == WG_LAYER_CONV;
    const uint64_t in = is_conv ? layer->conv.c : layer->gemm.k;
    const uint64_t out = is_conv ? layer->conv.filters : layer->gemm.n;
    if (layer->kind == WG_LAYER_BYTES)
        return plan_time(stage->is_noise, layer, 0, (uint64_t)llround(layer->bytes));
    return plan_time(stage->is_noise, layer, in, out);
}

static inline struct wg_layer *stage_layer(struct plan_stage *stage, enum wg_layer_kind kind)
{
    static const char *const names[STAGE_LAYERS] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                                    "i", "j", "k", "l", "m", "n", "o", "p",
                                                    "q", "r", "s", "t", "u", "v", "w", "x"};
    const size_t index = stage->network.layer_count++;
    struct wg_layer *layer = &stage->layers[index];
    *layer = (struct wg_layer){.name = names[index], .op = "Op", .kind = kind};
    layer->in.parts = stage->parts[index][0];
    layer->out.parts = stage->parts[index][1];
    return layer;
}

static inline void stage_part(struct wg_channels *side, uint32_t width, uint32_t multiple)
{
    struct wg_channel_part *parts = (struct wg_channel_part *)side->parts;
    parts[side->part_count++] = (struct wg_channel_part){width, multiple};
}

/* Fills in a layer's dimensions from its parts, at the network's own widths. */
static inline void stage_close(struct plan_stage *stage, struct wg_layer *layer, bool is_depthwise)
{
    uint32_t channels[STAGE_WIDTHS];
    for (size_t w = 0; w < stage->network.width_count; w++)
        channels[w] = stage->widths[w].channels;
    const uint64_t in = plan_side(&layer->in, channels);
    const uint64_t out = plan_side(&layer->out, channels);
    if (layer->kind == WG_LAYER_CONV) {
        layer->conv = (struct wg_conv){.n = 1,
                                       .c = in,
                                       .h = 8,
                                       .w = 8,
                                       .filters = out,
                                       .r = 3,
                                       .s = 3,
                                       .stride_h = 1,
                                       .stride_w = 1,
                                       .pad_top = 1,
                                       .pad_left = 1,
                                       .pad_bottom = 1,
                                       .pad_right = 1,
                                       .dilation_h = 1,
                                       .dilation_w = 1,
                                       .groups = is_depthwise ? in : 1,
                                       .has_bias = true};
        layer->parameters = 9 * out * (is_depthwise ? 1 : in) + out;
    } else if (layer->kind == WG_LAYER_GEMM) {
        layer->gemm = (struct wg_gemm){.batch = 1, .m = 4, .n = out, .k = in};
        layer->parameters = in * out;
    } else {
        layer->bytes = (double)out;
        layer->bytes_channels = out;
    }
}

static inline uint32_t stage_width(struct plan_stage *stage, bool is_fixed)
{
    static const char *const names[STAGE_WIDTHS] = {"w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"};
    const uint32_t index = (uint32_t)stage->network.width_count++;
    const uint32_t channels = is_fixed ? 10 : 16 + 4 * wg__rng_below(&stage->rng, 7);
    stage->widths[index] = (struct wg_width){names[index], channels, 1, is_fixed};
    return index;
}

/* A convolution, most often with a width of its own, from one or several widths. */
static inline void stage_grow(struct plan_stage *stage, uint32_t newest)
{
    const uint32_t kind = wg__rng_below(&stage->rng, 6);
    const bool is_depthwise = kind == 0;
    struct wg_layer *layer = stage_layer(stage, WG_LAYER_CONV);
    stage_part(&layer->in, newest, 1);
    if (kind >= 4 && newest > 1) /* a concatenation */
        stage_part(&layer->in, wg__rng_below(&stage->rng, newest), 1);
    if (kind == 5 && newest > 2)
        stage_part(&layer->in, wg__rng_below(&stage->rng, newest), 2);
    if (is_depthwise)
        stage_part(&layer->out, newest, 1);
    else if (kind == 1) /* ends in a residual addition */
        stage_part(&layer->out, wg__rng_below(&stage->rng, newest + 1), 1);
    else
        stage_part(&layer->out, stage_width(stage, false), 1);
    stage_close(stage, layer, is_depthwise);
    if (wg__rng_below(&stage->rng, 3) == 0) {
        struct wg_layer *bytes = stage_layer(stage, WG_LAYER_BYTES);
        stage_part(&bytes->out, layer->out.parts[0].width, 1);
        stage_close(stage, bytes, false);
    }
}

/* A network of `widths` free widths, its input and its output fixed. */
static inline void stage_init(struct plan_stage *stage, uint64_t seed, uint32_t widths)
{
    memset(stage, 0, sizeof *stage);
    wg__rng_init(&stage->rng, seed);
    stage->network.layers = stage->layers;
    stage->network.widths = stage->widths;
    stage->is_noise = seed % 3 == 0;
    const uint32_t input = stage_width(stage, true);
    struct wg_layer *stem = stage_layer(stage, WG_LAYER_CONV);
    stage_part(&stem->in, input, 1);
    stage_part(&stem->out, stage_width(stage, false), 1);
    stage_close(stage, stem, false);
    while (stage->network.width_count < 1 + widths && stage->network.layer_count < STAGE_LAYERS - 4)
        stage_grow(stage, (uint32_t)stage->network.width_count - 1);
    struct wg_layer *linear = stage_layer(stage, WG_LAYER_GEMM);
    stage_part(&linear->in, (uint32_t)stage->network.width_count - 1, 49);
    linear->out.constant = 10;
    stage_close(stage, linear, false);
    for (size_t w = 0; w < stage->network.width_count; w++) {
        const uint32_t channels = stage->widths[w].channels;
        stage->pruned[w] =
            stage->widths[w].is_fixed ? channels : channels - wg__rng_below(&stage->rng, 8);
        stage->importance[w] = 0.5 + wg__rng_uniform(&stage->rng);
    }
}

struct plan_sums {
    double time_s, parameters, flops;
    double weighed_parameters, weighed_flops; /* by importance */
    double value;                             /* what counts where one of them does */
};

/* All sums of the network at these widths, as a plan with these options counts them. */
static inline struct plan_sums stage_sums(const struct plan_stage *stage,
                                          const struct wg_plan_opts *opts, const uint32_t *channels)
{
    struct plan_sums sums = {0};
    for (size_t i = 0; i < stage->network.layer_count; i++) {
        const struct wg_layer *layer = &stage->layers[i];
        const uint64_t in = plan_side(&layer->in, channels);
        const uint64_t out = plan_side(&layer->out, channels);
        double parameters = 0;
        double flops = 0;
        if (layer->kind == WG_LAYER_CONV) {
            const uint64_t of_group = layer->conv.groups > 1 ? 1 : in;
            parameters = (double)(9 * of_group * out + out);
            flops = 2.0 * 64 * 9 * (double)(of_group * out);
        } else if (layer->kind == WG_LAYER_GEMM) {
            parameters = (double)(in * out);
            flops = 2.0 * 4 * (double)(in * out);
        }
        sums.time_s +=
            plan_time(stage->is_noise, layer, layer->kind == WG_LAYER_BYTES ? 0 : in, out);
        sums.parameters += parameters;
        sums.flops += flops;
        const double weight = opts->importance != NULL && layer->out.part_count > 0
                                  ? opts->importance[layer->out.parts[0].width]
                                  : 1;
        sums.weighed_parameters += weight * parameters;
        sums.weighed_flops += weight * flops;
    }
    const bool is_of_flops = opts->kept == 0 && opts->flops_kept > 0;
    sums.value = is_of_flops ? sums.weighed_flops : sums.weighed_parameters;
    return sums;
}

/* What a plan must gain: each is minus infinity where it is not asked for. */
struct plan_need {
    double gain, flops;
};

struct plan_best {
    bool is_found;
    double cost, gain;
    uint32_t channels[STAGE_WIDTHS];
    size_t count; /* of all plans */
};

static inline void stage_visit(const struct plan_stage *stage, const struct wg_plan_opts *opts,
                               struct plan_need need, const uint32_t *channels,
                               struct plan_best *best)
{
    const bool by_value = opts->goal == WG_PLAN_PARAMETERS || opts->goal == WG_PLAN_GROW;
    const struct plan_sums sums = stage_sums(stage, opts, channels);
    const double cost = by_value ? -sums.value : sums.time_s;
    const double gain = by_value ? -sums.time_s : sums.value;
    const double slack = 1e-12 * fabs(best->cost);
    best->count++;
    if (gain < need.gain - 1e-12 * fabs(need.gain) || sums.weighed_flops < need.flops * (1 - 1e-12))
        return;
    if (best->is_found && !(cost < best->cost - slack) &&
        !(cost <= best->cost + slack && gain > best->gain))
        return;
    *best = (struct plan_best){.is_found = true, .cost = cost, .gain = gain, .count = best->count};
    memcpy(best->channels, channels, stage->network.width_count * sizeof *channels);
}

/* Tries each candidate of width `at` and of those behind it. */
static inline void stage_visit_all(const struct plan_stage *stage, const struct wg_plan_opts *opts,
                                   struct plan_need need, size_t at, uint32_t *channels,
                                   struct plan_best *best)
{
    if (at == stage->network.width_count) {
        stage_visit(stage, opts, need, channels, best);
        return;
    }
    const uint32_t present = channels[at];
    const double least = opts->goal == WG_PLAN_GROW ? 1 : opts->least;
    bool has_present = false;
    for (uint32_t c = opts->alignment; c <= opts->most * present; c += opts->alignment) {
        if (stage->widths[at].is_fixed || c < least * present ||
            (opts->goal == WG_PLAN_ALIGN && c > stage->widths[at].channels))
            continue;
        has_present = has_present || c == present;
        channels[at] = c;
        stage_visit_all(stage, opts, need, at + 1, channels, best);
    }
    channels[at] = present;
    if (!has_present)
        stage_visit_all(stage, opts, need, at + 1, channels, best);
}

/* The best of all plans; `opts` without defaults left open. */
static inline struct plan_best stage_best(const struct plan_stage *stage,
                                          const struct wg_plan_opts *opts)
{
    uint32_t channels[STAGE_WIDTHS];
    for (size_t w = 0; w < stage->network.width_count; w++)
        channels[w] = opts->pruned != NULL ? opts->pruned[w] : stage->widths[w].channels;
    const bool by_value = opts->goal == WG_PLAN_PARAMETERS || opts->goal == WG_PLAN_GROW;
    const struct plan_sums present = stage_sums(stage, opts, channels);
    const double limit_s = opts->limit_s > 0 ? opts->limit_s : present.time_s;
    struct plan_best best = {.is_found = false};
    const bool keeps_both = opts->kept > 0 && opts->flops_kept > 0;
    const double kept = opts->kept > 0 ? opts->kept : opts->flops_kept;
    const struct plan_need need = {
        .gain = by_value ? -limit_s : kept * present.value,
        .flops = !by_value && keeps_both ? opts->flops_kept * present.weighed_flops : -HUGE_VAL};
    stage_visit_all(stage, opts, need, 0, channels, &best);
    return best;
}

#endif
