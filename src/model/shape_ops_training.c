/* SPDX-License-Identifier: MIT
 *
 * ai.onnx.preview.training: optimisers give back what they update.
 *
 *     R, T, X1 .., G1 .., S1 ..  ->  X1 .., S1 ..
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include "model/shape_pass.h"

/* `states` is the number of states that an optimiser keeps of each weight; behind rate and count
 * come groups of inputs: weights, gradients, states. Outputs are the groups without gradients. */
static enum wg_code update(struct wg_shape_node *n, size_t states)
{
    const size_t groups = 2 + states;
    if (n->node->input_count < 2 || (n->node->input_count - 2) % groups != 0)
        return wg__shape_refuse(n, "%zu inputs, expected 2 and a multiple of %zu",
                                n->node->input_count, groups);
    const size_t weights = (n->node->input_count - 2) / groups;
    for (size_t i = 0; i < n->node->output_count; i++)
        wg__shape_pass(n, 2 + i + (i >= weights ? weights : 0), i);
    return WG_OK;
}

static enum wg_code one_state(struct wg_shape_node *n)
{
    return update(n, 1);
}

static enum wg_code two_states(struct wg_shape_node *n)
{
    return update(n, 2);
}

static const struct wg_shape_op ops[] = {
    {"Adagrad", one_state, NULL},
    {"Adam", two_states, NULL},
    {"Momentum", one_state, NULL},
};

const struct wg_shape_family wg__shape_ops_training = {"ai.onnx.preview.training", ops,
                                                       sizeof ops / sizeof ops[0]};
