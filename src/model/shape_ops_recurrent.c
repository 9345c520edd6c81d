/* SPDX-License-Identifier: MIT
 *
 * RNN, GRU and LSTM: all states of the sequence, then the last ones.
 *
 *     X (sequence, batch, inputs) -> Y (sequence, directions, batch, hidden),
 *                                    Y_h, Y_c (directions, batch, hidden)
 *
 * With layout 1 the batch comes first.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_pass.h"

static enum wg_code recurrent(struct wg_shape_node *n)
{
    const struct wg_shape *x = wg__shape_in(n, 0);
    const bool batch_first = wg__shape_int(n, "layout", 0) != 0;
    const int64_t hidden = wg__shape_int(n, "hidden_size", WG_DIM_UNKNOWN);
    for (size_t i = 0; i < 3; i++)
        wg__shape_pass_type(n, 0, i);
    const enum wg_code code = wg__shape_want_rank(n, 0, 3);
    if (code != WG_OK)
        return code;
    struct wg_dim sequence = wg__dim_unknown, batch = wg__dim_unknown;
    if (x != NULL) {
        sequence = x->dims[batch_first ? 1 : 0];
        batch = x->dims[batch_first ? 0 : 1];
    }
    const struct wg_dim width = wg__dim(hidden > 0 ? hidden : WG_DIM_UNKNOWN);
    const struct wg_dim directions =
        wg__dim(wg__shape_text_is(n, "direction", "bidirectional") ? 2 : 1);
    struct wg_shape all = {.is_known = true, .rank = 4}, last = {.is_known = true, .rank = 3};
    all.dims[batch_first ? 1 : 0] = sequence;
    all.dims[batch_first ? 2 : 1] = directions;
    all.dims[batch_first ? 0 : 2] = batch;
    all.dims[3] = width;
    last.dims[batch_first ? 1 : 0] = directions;
    last.dims[batch_first ? 0 : 1] = batch;
    last.dims[2] = width;
    wg__shape_set(n, 0, &all);
    wg__shape_set(n, 1, &last);
    wg__shape_set(n, 2, &last);
    return WG_OK;
}

static const struct wg_shape_op ops[] = {
    {"GRU", recurrent, NULL},
    {"LSTM", recurrent, NULL},
    {"RNN", recurrent, NULL},
};

const struct wg_shape_family wg__shape_ops_recurrent = {"", ops, sizeof ops / sizeof ops[0]};
