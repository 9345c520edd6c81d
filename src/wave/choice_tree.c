/* SPDX-License-Identifier: MIT
 *
 * Walking a tree of kernel choices.
 *
 * Threads: pure, any thread.
 */
#include "wave/choice_tree.h"

#include <math.h>

void wg__choice_tree_features(const struct wg_gemm *gemm, double out[static WG_TREE_FEATURES])
{
    double batch = log2((double)gemm->batch);
    double m = log2((double)gemm->m), n = log2((double)gemm->n), k = log2((double)gemm->k);
    out[0] = batch;
    out[1] = m;
    out[2] = n;
    out[3] = k;
    out[4] = batch + m + n;
    out[5] = m - n;
    out[6] = k - m - n;
    out[7] = gemm->n % 4 == 0 && gemm->k % 4 == 0 ? 1.0 : 0.0; /* vector loads */
}

uint64_t wg__choice_tree_options(const struct wg_kernel_params *params, const struct wg_gemm *gemm)
{
    if (params->node_count == 0)
        return 0;
    double features[WG_TREE_FEATURES];
    wg__choice_tree_features(gemm, features);
    const struct wg_tree_node *node = params->nodes;
    while (node->options == 0) {
        unsigned next = features[node->feature] < node->threshold ? node->below : node->below + 1;
        node = &params->nodes[next];
    }
    return node->options;
}
