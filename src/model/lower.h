/* SPDX-License-Identifier: MIT
 *
 * From a graph with shapes to the network that the analysis and the planner see (wave/network.h).
 *
 * Conv, ConvTranspose, Gemm, MatMul, Einsum of matrix form, Attention and the quantised ones become
 * CONV and GEMM layers; what a library fuses into them (bias, batch norm, activation, a residual
 * addition behind a convolution) adds none; what remains becomes BYTES. Widths are tied by
 * union-find over channel axes: element-wise operators unite, concatenation adds parts, flattening
 * multiplies, depth-wise convolution unites input and output, whatever mixes channels in a way not
 * known fixes its widths, the model's inputs and outputs too.
 *
 * Two kinds of nodes cost time and become no layer, because any figure would be a guess: the bodies
 * of loops, whose number of turns depends on data, and operators whose sizes are not known, such as
 * behind those whose results depend on data, or in a branch meant for other inputs. The network
 * counts them (`left_out_count`), so that a reader knows that the total lacks something.
 *
 * Owns: the network is the caller's; it keeps no reference to the model.    Threads: one at a time.
 */
#ifndef WG_MODEL_LOWER_H
#define WG_MODEL_LOWER_H

#include "model/graph.h"
#include "wave/network.h"

struct wg_lower_opts {
    enum wg_dtype dtype; /* of all multiplications */
    uint64_t batch;      /* the first dimension of the inputs, where it is not a number; 0: 1 */
};

/* WG_EDATA: a layer's dimensions are not known (names the node and the dimension to set);
 * WG_ENOMEM. */
enum wg_code wg__lower(struct wg_network *out, const struct wg_model *model,
                       const struct wg_lower_opts *opts, struct wg_error *err);

#endif
