/* SPDX-License-Identifier: MIT
 *
 * Operators that hold graphs: If, and those that run theirs nobody knows how often.
 *
 * Of an If whose condition is known its branch is lowered. Else both are, as both tie widths, and
 * the layers of the one stay that multiplies more; what the other one counted as parameters is free
 * again. Exporters write branches that cannot run with the sizes at hand (two sampling rates, one
 * input): where one branch has unknown sizes the other one stays, and the first one's nodes are
 * told as left out. Nothing fuses from within a branch into a layer outside, which would stay.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include <string.h>

#include "model/lower_parts.h"

/* Floating-point operations, for comparing branches. */
static double work_of(const struct wg_lower *lower, size_t first, size_t count)
{
    double sum = 0.0;
    for (size_t i = first; i < first + count; i++) {
        const struct wg_layer *layer = &lower->layers[i];
        if (layer->kind == WG_LAYER_CONV)
            sum += wg__conv_flops(&layer->conv);
        else if (layer->kind == WG_LAYER_GEMM)
            sum += wg__gemm_flops(&layer->gemm);
    }
    return sum;
}

static size_t nodes_within(const struct wg_node *node);

static size_t nodes_of(const struct wg_graph *graph)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->node_count; i++)
        count += nodes_within(&graph->nodes[i]);
    return count;
}

/* Nodes of the graphs within a node; itself where there are none. */
static size_t nodes_within(const struct wg_node *node)
{
    size_t count = 0;
    for (size_t i = 0; i < node->attribute_count; i++) {
        if (node->attributes[i].graph != NULL)
            count += nodes_of(node->attributes[i].graph);
    }
    return count != 0 ? count : 1;
}

/* What an operator with graphs within reads keeps its widths. */
static void fix_captured(struct wg_lower *lower, const struct wg_node *node)
{
    (void)wg__lower_axes_unknown(lower, node);
    for (size_t i = 0; i < node->attribute_count; i++) {
        const struct wg_graph *inner = node->attributes[i].graph;
        for (size_t j = 0; inner != NULL && j < inner->tensor_count; j++) {
            if (inner->tensors[j].outer >= 0)
                wg__lower_fix(lower, &wg__lower_state(lower, inner->tensors[j].outer)->label);
        }
    }
}

/* Lowers a graph of `node`, whose layers are named below it. */
static enum wg_code lower_inner(struct wg_lower *lower, const struct wg_node *node,
                                const struct wg_graph *graph)
{
    const char *prefix = lower->prefix;
    lower->prefix = wg__lower_join(&lower->scratch, prefix, node->name, "/");
    if (lower->prefix == NULL) {
        lower->prefix = prefix;
        return wg__lower_no_memory(lower);
    }
    const enum wg_code code = wg__lower_graph(lower, graph);
    lower->prefix = prefix;
    return code;
}

/* Whether a condition is a constant, and which. */
static bool is_decided(const struct wg_lower *lower, const struct wg_node *node, bool *out)
{
    int64_t value = 0;
    size_t count = 0;
    const struct wg_tensor *condition = wg__lower_input(lower, node, 0);
    if (condition == NULL || !wg__lower_ints(lower, condition, &value, 1, &count) || count != 1)
        return false;
    *out = value != 0;
    return true;
}

/* What a branch has added behind what was there before. */
struct branch {
    enum wg_code code; /* WG_EDATA: a size in it is not known */
    struct wg_error err;
    size_t layer_count, left_out_count;
    struct wg_lower_counted *counted; /* down to those from before */
};

static void mark_counted(struct wg_lower_counted *from, const struct wg_lower_counted *to,
                         bool is_counted)
{
    for (; from != to; from = from->before)
        from->tensor->is_counted = is_counted;
}

/* Lowers a branch, then takes back all but its layers. */
static struct branch try_branch(struct wg_lower *lower, const struct wg_node *node,
                                const struct wg_graph *graph)
{
    struct wg_lower_counted *counted = lower->counted;
    const size_t first = lower->layer_count;
    const size_t fusable_first = lower->fusable_first;
    const size_t left_out = lower->out->left_out_count;
    struct wg_error *err = lower->err;
    struct branch branch = {0};
    lower->fusable_first = first;
    lower->err = &branch.err;
    branch.code = lower_inner(lower, node, graph);
    lower->err = err;
    lower->fusable_first = fusable_first;
    if (branch.code != WG_OK) {
        lower->layer_count = first;
        branch.left_out_count = nodes_of(graph);
    } else {
        branch.layer_count = lower->layer_count - first;
        branch.left_out_count = lower->out->left_out_count - left_out;
        branch.counted = lower->counted;
    }
    mark_counted(lower->counted, counted, false);
    lower->counted = counted;
    lower->out->left_out_count = left_out;
    return branch;
}

/* The layers of `kept`, which begin at `at`, come right behind what was before both branches. */
static void keep_branch(struct wg_lower *lower, const struct branch *kept, size_t first, size_t at)
{
    if (at != first && kept->layer_count != 0)
        memmove(&lower->layers[first], &lower->layers[at],
                kept->layer_count * sizeof *lower->layers);
    lower->layer_count = first + kept->layer_count;
    lower->out->left_out_count += kept->left_out_count;
    if (kept->counted != NULL) {
        mark_counted(kept->counted, lower->counted, true);
        lower->counted = kept->counted;
    }
}

static enum wg_code fail_with(struct wg_lower *lower, const struct branch *branch)
{
    if (lower->err != NULL)
        *lower->err = branch->err;
    return branch->code;
}

/* Lowers both branches of an If and keeps one. */
static enum wg_code lower_both(struct wg_lower *lower, const struct wg_node *node,
                               const struct wg_graph *yes, const struct wg_graph *no)
{
    const size_t first = lower->layer_count;
    const struct branch a = try_branch(lower, node, yes);
    if (a.code != WG_OK && a.code != WG_EDATA)
        return fail_with(lower, &a);
    const size_t middle = lower->layer_count;
    const struct branch b = try_branch(lower, node, no);
    if (b.code != WG_OK && (b.code != WG_EDATA || a.code != WG_OK))
        return fail_with(lower, &b);
    bool is_first = a.code == WG_OK;
    if (is_first && b.code == WG_OK)
        is_first = work_of(lower, first, a.layer_count) >= work_of(lower, middle, b.layer_count);
    const struct branch *kept = is_first ? &a : &b;
    const struct branch *other = is_first ? &b : &a;
    keep_branch(lower, kept, first, is_first ? first : middle);
    if (other->code != WG_OK)
        lower->out->left_out_count += other->left_out_count;
    return WG_OK;
}

static const struct wg_graph *graph_of(const struct wg_node *node, const char *name)
{
    const struct wg_attribute *attribute = wg__node_attribute(node, name);
    return attribute != NULL ? attribute->graph : NULL;
}

static enum wg_code lower_if(struct wg_lower *lower, const struct wg_node *node)
{
    bool is_true = false;
    const struct wg_graph *yes = graph_of(node, "then_branch");
    const struct wg_graph *no = graph_of(node, "else_branch");
    if (yes == NULL || no == NULL)
        return wg__lower_bytes(lower, node);
    if (is_decided(lower, node, &is_true))
        return lower_inner(lower, node, is_true ? yes : no);
    return lower_both(lower, node, yes, no);
}

enum wg_code wg__lower_subgraphs(struct wg_lower *lower, const struct wg_node *node)
{
    fix_captured(lower, node);
    if (strcmp(node->op, "If") == 0)
        return lower_if(lower, node);
    lower->out->left_out_count += nodes_within(node); /* nobody knows how many turns it takes */
    return WG_OK;
}
