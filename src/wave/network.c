/* SPDX-License-Identifier: MIT
 *
 * A network's layers at other widths: see network.h.
 *
 * What a layer holds beside its filters' weights (a bias, a folded normalisation) grows with its
 * output; a layer whose parameters are counted elsewhere (shared weights: 0 here) keeps none.
 */
#include "wave/network.h"

#include <inttypes.h>
#include <math.h>

void wg__network_fini(struct wg_network *network)
{
    if (!network)
        return;
    wg__arena_fini(&network->arena);
    *network = (struct wg_network){0};
}

/* The channels that `side` has at `channels`; `present` where no width moves it. */
static enum wg_code channels_at(const struct wg_layer *layer, const struct wg_channels *side,
                                const uint32_t *channels, uint64_t present, uint64_t *out,
                                struct wg_error *err)
{
    if (side->part_count == 0) {
        *out = present;
        return WG_OK;
    }
    uint64_t sum = side->constant;
    for (size_t i = 0; i < side->part_count; i++) {
        /* Two factors of 32 bits fit; only the sum can grow beyond. */
        const uint64_t part = (uint64_t)channels[side->parts[i].width] * side->parts[i].multiple;
        if (__builtin_add_overflow(sum, part, &sum) || sum > INT64_MAX)
            return wg__fail(err, WG_EINVAL, "layer '%s': its channels add up beyond 2^63",
                            layer->name);
    }
    if (sum == 0)
        return wg__fail(err, WG_EINVAL, "layer '%s': no channels are left of %" PRIu64, layer->name,
                        present);
    *out = sum;
    return WG_OK;
}

static double ratio(uint64_t now, uint64_t before)
{
    return before == 0 ? 1 : (double)now / (double)before;
}

/* Parameters when the weights go from `before` to `now` and the output by `growth`. */
static enum wg_code set_parameters(struct wg_layer *at, double before, double now, double growth,
                                   struct wg_error *err)
{
    const double present = (double)at->parameters, rest = present - before;
    if (at->parameters == 0)
        return WG_OK;
    /* Fewer than its own weights: part of them are shared or pruned away. */
    const double count = rest < 0 ? present * now / before : now + rest * growth;
    if (!(count < 0x1p63))
        return wg__fail(err, WG_EINVAL, "layer '%s': its parameters multiply beyond 2^63",
                        at->name);
    at->parameters = (uint64_t)llround(count);
    return WG_OK;
}

static double conv_weights(const struct wg_conv *conv)
{
    const uint64_t of_group = conv->c / conv->groups;
    return (double)conv->filters * (double)of_group * (double)conv->r * (double)conv->s;
}

static enum wg_code conv_at(const struct wg_layer *layer, const uint32_t *channels,
                            struct wg_layer *at, struct wg_error *err)
{
    const struct wg_conv *before = &layer->conv;
    struct wg_conv *conv = &at->conv;
    enum wg_code code = channels_at(layer, &layer->in, channels, before->c, &conv->c, err);
    if (code == WG_OK)
        code = channels_at(layer, &layer->out, channels, before->filters, &conv->filters, err);
    if (code != WG_OK)
        return code;
    if (before->groups == 0 || before->c % before->groups != 0)
        return wg__fail(err, WG_EINVAL,
                        "layer '%s': %" PRIu64 " groups do not divide %" PRIu64 " channels",
                        layer->name, before->groups, before->c);
    const uint64_t of_group = before->c / before->groups;
    if (before->groups > 1) {
        if (conv->c % of_group != 0)
            return wg__fail(err, WG_EINVAL,
                            "layer '%s': groups of %" PRIu64 " channels do not divide %" PRIu64,
                            layer->name, of_group, conv->c);
        conv->groups = conv->c / of_group;
    }
    if (conv->filters % conv->groups != 0)
        return wg__fail(err, WG_EINVAL,
                        "layer '%s': %" PRIu64 " groups do not divide %" PRIu64 " filters",
                        layer->name, conv->groups, conv->filters);
    return set_parameters(at, conv_weights(before), conv_weights(conv),
                          ratio(conv->filters, before->filters), err);
}

static enum wg_code gemm_at(const struct wg_layer *layer, const uint32_t *channels,
                            struct wg_layer *at, struct wg_error *err)
{
    const struct wg_gemm *before = &layer->gemm;
    struct wg_gemm *gemm = &at->gemm;
    enum wg_code code = channels_at(layer, &layer->in, channels, before->k, &gemm->k, err);
    if (code == WG_OK)
        code = channels_at(layer, &layer->out, channels, before->n, &gemm->n, err);
    if (code != WG_OK)
        return code;
    return set_parameters(at, (double)before->n * (double)before->k,
                          (double)gemm->n * (double)gemm->k, ratio(gemm->n, before->n), err);
}

static enum wg_code bytes_at(const struct wg_layer *layer, const uint32_t *channels,
                             struct wg_layer *at, struct wg_error *err)
{
    const uint64_t before = layer->bytes_channels;
    if (before == 0)
        return WG_OK;
    enum wg_code code = channels_at(layer, &layer->out, channels, before, &at->bytes_channels, err);
    if (code != WG_OK)
        return code;
    const double growth = ratio(at->bytes_channels, before);
    at->bytes = layer->bytes * growth;
    return set_parameters(at, 0, 0, growth, err);
}

static bool is_as_before(const struct wg_layer *a, const struct wg_layer *b)
{
    return a->conv.c == b->conv.c && a->conv.filters == b->conv.filters && a->gemm.k == b->gemm.k &&
           a->gemm.n == b->gemm.n && a->bytes_channels == b->bytes_channels;
}

enum wg_code wg__layer_at(const struct wg_layer *layer, const uint32_t *channels,
                          struct wg_layer *out, struct wg_error *err)
{
    static enum wg_code (*const at_of_kind[WG_LAYER_KIND_COUNT])(
        const struct wg_layer *, const uint32_t *, struct wg_layer *, struct wg_error *) = {
        [WG_LAYER_CONV] = conv_at, [WG_LAYER_GEMM] = gemm_at, [WG_LAYER_BYTES] = bytes_at};
    struct wg_layer at = *layer;
    enum wg_code code = at_of_kind[layer->kind](layer, channels, &at, err);
    if (code != WG_OK)
        return code;
    if (!is_as_before(layer, &at)) {
        at.blocks = 0; /* they were profiled at the old widths */
        at.measured_s = 0;
    }
    *out = at;
    return WG_OK;
}
