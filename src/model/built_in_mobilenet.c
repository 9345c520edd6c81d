/* SPDX-License-Identifier: MIT
 *
 * MobileNetV2 (Sandler et al. 2018) at width 1.0 and 224 x 224, with the names of torchvision's
 * modules: 3,504,872 parameters, 0.30 G multiply-adds.
 *
 * An inverted residual block widens with a 1x1 convolution, filters each channel alone, and narrows
 * again without an activation.
 *
 * Threads: one thread at a time.
 */
#include "model/built_in_nets.h"

/* Factor of widening, channels, blocks, stride of the first (table 2 of the paper). */
static const struct {
    int64_t widening, channels;
    int blocks;
    int64_t stride;
} stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
              {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

/* Convolution, norm and, where `is_active`, the activation clipped at 6: modules `first`,
 * `first` + 1 and + 2 of `prefix`. */
static int32_t unit(struct wg_net *net, int32_t x, const char *prefix, int first, int64_t in,
                    int64_t out, const struct wg_net_window *window, bool is_active)
{
    x = wg__net_conv(net, x, wg__net_name(net, "%s.%d", prefix, first), in, out, window);
    x = wg__net_batch_norm(net, x, wg__net_name(net, "%s.%d", prefix, first + 1), out);
    if (!is_active)
        return x;
    const char *name = wg__net_name(net, "%s.%d", prefix, first + 2);
    const int32_t inputs[] = {x, wg__net_float(net, wg__net_name(net, "%s.min", name), 0.0F),
                              wg__net_float(net, wg__net_name(net, "%s.max", name), 6.0F)};
    return wg__net_node(net, "Clip", name, inputs, 3, NULL, 0);
}

static int32_t inverted_residual(struct wg_net *net, int32_t x, int feature, int64_t in,
                                 int64_t out, int64_t widening, int64_t stride)
{
    const int64_t wide = in * widening;
    const struct wg_net_window narrow = {.kernel = 1, .stride = 1};
    const struct wg_net_window alone = {.kernel = 3, .stride = stride, .pad = 1, .groups = wide};
    const char *block = wg__net_name(net, "features.%d.conv", feature);
    int module = 0;
    int32_t y = x;
    if (widening != 1)
        y = unit(net, y, wg__net_name(net, "%s.%d", block, module++), 0, in, wide, &narrow, true);
    y = unit(net, y, wg__net_name(net, "%s.%d", block, module++), 0, wide, wide, &alone, true);
    y = unit(net, y, block, module, wide, out, &narrow, false);
    return stride == 1 && in == out
               ? wg__net_add(net, y, x, wg__net_name(net, "features.%d.add", feature))
               : y;
}

int32_t wg__built_in_mobilenet_v2(struct wg_net *net)
{
    const struct wg_net_window first = {.kernel = 3, .stride = 2, .pad = 1};
    const struct wg_net_window last = {.kernel = 1, .stride = 1};
    int32_t x = unit(net, wg__built_in_image(net, 224), "features.0", 0, 3, 32, &first, true);
    int64_t in = 32;
    int feature = 1;
    for (size_t stage = 0; stage < sizeof stages / sizeof *stages; stage++) {
        for (int i = 0; i < stages[stage].blocks; i++) {
            x = inverted_residual(net, x, feature++, in, stages[stage].channels,
                                  stages[stage].widening, i == 0 ? stages[stage].stride : 1);
            in = stages[stage].channels;
        }
    }
    x = unit(net, x, "features.18", 0, in, 1280, &last, true);
    return wg__net_linear(net, wg__net_mean_pool(net, x), "classifier.1", 1280, 1000);
}
