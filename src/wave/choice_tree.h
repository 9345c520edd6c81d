/* SPDX-License-Identifier: MIT
 *
 * A decision tree over the sizes of a GEMM: which kernels a library takes where.
 *
 * Libraries choose by heuristics that no formula of times reproduces: cuBLAS runs 64x64 tiles where
 * 128x128 are predicted, and measured, to be faster. Where profiles tell kernels, a tree learns the
 * choice (Breiman et al., CART, 1984), and the formula decides only among what its leaf has seen.
 * The features are logarithms, so a threshold holds beyond the sizes that it was learnt from.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_CHOICE_TREE_H
#define WG_WAVE_CHOICE_TREE_H

#include "wave/gemm.h"
#include "wave/kernel_params.h"

enum { WG_TREE_FEATURES = 8, WG_TREE_LEAVES_MAX = 120 };

void wg__choice_tree_features(const struct wg_gemm *gemm, double out[static WG_TREE_FEATURES]);

/* The options of the leaf that `gemm` falls into; 0 without a tree. */
uint64_t wg__choice_tree_options(const struct wg_kernel_params *params, const struct wg_gemm *gemm);

/* One choice seen. */
struct wg_tree_sample {
    double features[WG_TREE_FEATURES];
    unsigned option; /* index into the parameters' options */
};

/* Grows a tree of at most WG_TREE_LEAVES_MAX leaves into `params->nodes`. Reorders `samples`.
 * WG_ENOMEM. */
enum wg_code wg__choice_tree_grow(struct wg_kernel_params *params, struct wg_tree_sample *samples,
                                  size_t count, struct wg_error *err);

#endif
