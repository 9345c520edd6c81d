/* SPDX-License-Identifier: MIT
 *
 * VGG16 (Simonyan and Zisserman 2015, configuration D).
 *
 *     vgg16         224 x 224, biases, three linear layers: torchvision's modules and names;
 *                   138,357,544 parameters, 15.47 G multiply-adds
 *     vgg16-cifar   32 x 32, batch norms, linear layers of 512 and 10: that of Li et al. ("Pruning
 *                   filters for efficient ConvNets", table 2); 1.5e7 and 3.13e8
 *
 * Threads: one thread at a time.
 */
#include "model/built_in_nets.h"

/* Filters of the convolutions; 0: a pooling. */
static const int64_t widths[] = {64, 64,  0,   128, 128, 0,   256, 256, 256,
                                 0,  512, 512, 512, 0,   512, 512, 512, 0};
enum { STEPS = sizeof widths / sizeof *widths, LAST_WIDTH = 512 };

/* Modules of the features count through, as torch's Sequential does; `step` of them a convolution
 * and what follows it. */
static int32_t features(struct wg_net *net, int32_t x, const char *prefix, bool has_norms)
{
    const struct wg_net_window window = {
        .kernel = 3, .stride = 1, .pad = 1, .has_bias = !has_norms};
    const struct wg_net_window pooling = {.kernel = 2, .stride = 2};
    int64_t in = 3;
    int module = 0;
    for (size_t i = 0; i < STEPS; i++) {
        if (widths[i] == 0) {
            x = wg__net_max_pool(net, x, wg__net_name(net, "%s.%d", prefix, module++), &pooling);
            continue;
        }
        x = wg__net_conv(net, x, wg__net_name(net, "%s.%d", prefix, module++), in, widths[i],
                         &window);
        if (has_norms)
            x = wg__net_batch_norm(net, x, wg__net_name(net, "%s.%d", prefix, module++), widths[i]);
        x = wg__net_relu(net, x, wg__net_name(net, "%s.%d", prefix, module++));
        in = widths[i];
    }
    return wg__net_flatten(net, x);
}

int32_t wg__built_in_vgg16(struct wg_net *net)
{
    int32_t x = features(net, wg__built_in_image(net, 224), "features", false);
    x = wg__net_linear(net, x, "classifier.0", (int64_t)LAST_WIDTH * 7 * 7, 4096);
    x = wg__net_relu(net, x, "classifier.1");
    x = wg__net_linear(net, x, "classifier.3", 4096, 4096);
    x = wg__net_relu(net, x, "classifier.4");
    return wg__net_linear(net, x, "classifier.6", 4096, 1000);
}

int32_t wg__built_in_vgg16_cifar(struct wg_net *net)
{
    int32_t x = features(net, wg__built_in_image(net, 32), "features", true);
    x = wg__net_linear(net, x, "classifier.0", LAST_WIDTH, 512);
    x = wg__net_batch_norm(net, x, "classifier.1", 512);
    x = wg__net_relu(net, x, "classifier.2");
    return wg__net_linear(net, x, "classifier.3", 512, 10);
}
