/* SPDX-License-Identifier: MIT
 *
 * The drawings of the built-in networks, one function each; see built_in.h.
 *
 * Each draws into `net`, which was begun, and gives the output.
 *
 * Threads: one thread at a time.
 */
#ifndef WG_MODEL_BUILT_IN_NETS_H
#define WG_MODEL_BUILT_IN_NETS_H

#include "model/net_builder.h"

/* "input": batch x 3 x side x side. */
int32_t wg__built_in_image(struct wg_net *net, int64_t side);

int32_t wg__built_in_vgg16(struct wg_net *net);
int32_t wg__built_in_vgg16_cifar(struct wg_net *net);
int32_t wg__built_in_resnet18(struct wg_net *net);
int32_t wg__built_in_resnet50(struct wg_net *net);
int32_t wg__built_in_resnet56_cifar(struct wg_net *net);
int32_t wg__built_in_mobilenet_v2(struct wg_net *net);
int32_t wg__built_in_bert_base(struct wg_net *net);

#endif
