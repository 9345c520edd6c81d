/* SPDX-License-Identifier: MIT
 *
 * Residual networks (He et al. 2016), with the names of torchvision's modules.
 *
 *     resnet18         224 x 224, 2+2+2+2 blocks of two 3x3     11,689,512 parameters  1.81 G
 *     resnet50         224 x 224, 3+4+6+3 bottlenecks           25,557,032             4.09 G
 *     resnet56-cifar   32 x 32, 9+9+9 blocks of two 3x3            855,770             0.126 G
 *
 * Where a block halves the map a 1x1 convolution brings the shortcut along. (He's CIFAR networks
 * pad the shortcut with zeros instead, 853,018 parameters. Work on pruning since then projects, and
 * a plan can then choose all widths.)
 *
 * Threads: one thread at a time.
 */
#include "model/built_in_nets.h"

struct stages {
    int counts[4]; /* blocks a stage */
    int64_t width; /* of the first stage; each further one's is twice as wide */
    int64_t expansion;
    bool is_bottleneck;
};

static int32_t conv_norm(struct wg_net *net, int32_t x, const char *conv, const char *norm,
                         int64_t in, int64_t out, const struct wg_net_window *window)
{
    x = wg__net_conv(net, x, conv, in, out, window);
    return wg__net_batch_norm(net, x, norm, out);
}

/* The `nth` convolution of a block, its norm, and all but the last one's activation. */
static int32_t part(struct wg_net *net, int32_t x, const char *block, int nth, int64_t in,
                    int64_t out, int64_t kernel, int64_t stride, bool is_last)
{
    const struct wg_net_window window = {.kernel = kernel, .stride = stride, .pad = kernel / 2};
    x = conv_norm(net, x, wg__net_name(net, "%s.conv%d", block, nth),
                  wg__net_name(net, "%s.bn%d", block, nth), in, out, &window);
    return is_last ? x : wg__net_relu(net, x, wg__net_name(net, "%s.relu%d", block, nth));
}

static int32_t residual_block(struct wg_net *net, int32_t x, const char *block,
                              const struct stages *stages, int64_t in, int64_t width,
                              int64_t stride)
{
    const int64_t out = width * stages->expansion;
    int32_t y = -1;
    if (stages->is_bottleneck) {
        y = part(net, x, block, 1, in, width, 1, 1, false);
        y = part(net, y, block, 2, width, width, 3, stride, false);
        y = part(net, y, block, 3, width, out, 1, 1, true);
    } else {
        y = part(net, x, block, 1, in, width, 3, stride, false);
        y = part(net, y, block, 2, width, out, 3, 1, true);
    }
    if (stride != 1 || in != out) {
        const struct wg_net_window window = {.kernel = 1, .stride = stride};
        x = conv_norm(net, x, wg__net_name(net, "%s.downsample.0", block),
                      wg__net_name(net, "%s.downsample.1", block), in, out, &window);
    }
    y = wg__net_add(net, y, x, wg__net_name(net, "%s.add", block));
    return wg__net_relu(net, y, wg__net_name(net, "%s.relu", block));
}

/* All stages, the pooling and the classifier behind them; `in`: channels of x. */
static int32_t body(struct wg_net *net, int32_t x, const struct stages *stages, int64_t in,
                    int64_t classes)
{
    int64_t width = stages->width;
    for (int stage = 0; stage < 4 && stages->counts[stage] != 0; stage++) {
        for (int i = 0; i < stages->counts[stage]; i++) {
            const char *name = wg__net_name(net, "layer%d.%d", stage + 1, i);
            x = residual_block(net, x, name, stages, in, width, stage != 0 && i == 0 ? 2 : 1);
            in = width * stages->expansion;
        }
        width *= 2;
    }
    return wg__net_linear(net, wg__net_mean_pool(net, x), "fc", in, classes);
}

static int32_t imagenet(struct wg_net *net, const struct stages *stages)
{
    const struct wg_net_window first = {.kernel = 7, .stride = 2, .pad = 3};
    const struct wg_net_window pooling = {.kernel = 3, .stride = 2, .pad = 1};
    int32_t x = conv_norm(net, wg__built_in_image(net, 224), "conv1", "bn1", 3, 64, &first);
    x = wg__net_relu(net, x, "relu");
    return body(net, wg__net_max_pool(net, x, "maxpool", &pooling), stages, 64, 1000);
}

int32_t wg__built_in_resnet18(struct wg_net *net)
{
    return imagenet(net, &(struct stages){{2, 2, 2, 2}, 64, 1, false});
}

int32_t wg__built_in_resnet50(struct wg_net *net)
{
    return imagenet(net, &(struct stages){{3, 4, 6, 3}, 64, 4, true});
}

int32_t wg__built_in_resnet56_cifar(struct wg_net *net)
{
    const struct wg_net_window first = {.kernel = 3, .stride = 1, .pad = 1};
    int32_t x = conv_norm(net, wg__built_in_image(net, 32), "conv1", "bn1", 3, 16, &first);
    x = wg__net_relu(net, x, "relu");
    return body(net, x, &(struct stages){{9, 9, 9, 0}, 16, 1, false}, 16, 10);
}
