/* SPDX-License-Identifier: MIT
 *
 * Channels through operators that multiply nothing: where the channel axis goes, and what it ties.
 *
 *     element-wise       axes are counted from the right; two labels on one axis are one width
 *     reshape            sizes are cut into the least blocks of equal product; a block of channels
 *                        alone stays channels, one that is merged with others into one axis gets
 *                        their product as multiple (flatten), one that is split loses its freedom
 *     concatenation      segments side by side; a split at segments' ends takes them apart again
 *     everything else    the axis stays while its size does
 *
 * An operator that is not in the table mixes channels in ways that we don't know: their widths are
 * fixed, its outputs have no label.
 *
 * Owns: nothing.    Threads: one at a time.
 */
#include <string.h>

#include "model/lower_parts.h"

/* Of a concatenation, as concatenating it with itself doubles them. DenseNet-264 has 65. */
enum { SEGMENTS_MAX = 1024 };

static uint64_t label_channels(const struct wg_lower *lower, const struct wg_label *label)
{
    uint64_t sum = 0;
    for (size_t i = 0; label->axis >= 0 && i < label->count; i++) {
        const uint32_t root = wg__lower_root(lower, label->segments[i].width);
        sum += (uint64_t)lower->widths[root].channels * label->segments[i].multiple;
    }
    return sum;
}

void wg__lower_give(struct wg_lower *lower, int32_t output, const struct wg_label *label)
{
    if (output < 0 || label->axis < 0)
        return;
    size_t rank = 0;
    uint64_t dims[WG_DIMS_MAX];
    const struct wg_tensor *tensor = &lower->scope->graph->tensors[output];
    if (wg__lower_dims(lower, tensor, &rank, dims) && (size_t)label->axis < rank &&
        dims[label->axis] == label_channels(lower, label))
        wg__lower_state(lower, output)->label = *label;
    else
        wg__lower_fix(lower, label);
}

static void fix_input(struct wg_lower *lower, const struct wg_node *node, size_t index)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, index);
    if (state != NULL)
        wg__lower_fix(lower, &state->label);
}

enum wg_code wg__lower_axes_unknown(struct wg_lower *lower, const struct wg_node *node)
{
    for (size_t i = 0; i < node->input_count; i++)
        fix_input(lower, node, i);
    return WG_OK;
}

/* --- Element-wise ----------------------------------------------------------------------------- */

/* A label, with its axis counted from the right: 1 is the last. */
struct right_label {
    struct wg_label label;
    size_t right;
};

static void meet(struct wg_lower *lower, struct right_label *base, const struct right_label *other)
{
    if (base->label.axis < 0) {
        *base = *other;
        return;
    }
    const uint64_t of_base = label_channels(lower, &base->label);
    const uint64_t of_other = label_channels(lower, &other->label);
    if (base->right == other->right && of_base == of_other) {
        wg__lower_unite(lower, &base->label, &other->label);
    } else if (base->right == other->right && of_other == 1) { /* stretched over all channels */
        wg__lower_fix(lower, &other->label);
    } else if (base->right == other->right && of_base == 1) {
        wg__lower_fix(lower, &base->label);
        *base = *other;
    } else { /* an outer product of two channel axes */
        wg__lower_fix(lower, &base->label);
        wg__lower_fix(lower, &other->label);
    }
}

/* Whether an input without a label has one element along the axis, whatever the width. */
static bool is_stretched(const struct wg_lower *lower, const struct wg_tensor *tensor, size_t right)
{
    size_t rank = 0;
    uint64_t dims[WG_DIMS_MAX];
    return wg__lower_dims(lower, tensor, &rank, dims) && (rank < right || dims[rank - right] == 1);
}

enum wg_code wg__lower_axes_elementwise(struct wg_lower *lower, const struct wg_node *node)
{
    struct right_label base = {.label = {.axis = -1}};
    for (size_t i = 0; i < node->input_count; i++) {
        const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, i);
        if (state == NULL || state->label.axis < 0)
            continue;
        const size_t rank = wg__lower_input(lower, node, i)->shape.rank;
        const struct right_label other = {state->label, rank - (size_t)state->label.axis};
        meet(lower, &base, &other);
    }
    if (base.label.axis < 0)
        return WG_OK;
    for (size_t i = 0; i < node->input_count; i++) {
        const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, i);
        if (state != NULL && state->label.axis < 0 && !state->is_static &&
            !is_stretched(lower, wg__lower_input(lower, node, i), base.right))
            wg__lower_fix(lower, &base.label);
    }
    for (size_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] < 0)
            continue;
        const size_t rank = lower->scope->graph->tensors[node->outputs[i]].shape.rank;
        base.label.axis = rank >= base.right ? (int)(rank - base.right) : -1;
        wg__lower_give(lower, node->outputs[i], &base.label);
    }
    return WG_OK;
}

/* --- The axis stays --------------------------------------------------------------------------- */

static enum wg_code axes_stay(struct wg_lower *lower, const struct wg_node *node)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, 0);
    for (size_t i = 1; i < node->input_count; i++)
        fix_input(lower, node, i);
    if (state == NULL)
        return WG_OK;
    const struct wg_label label = state->label;
    const size_t rank = wg__lower_input(lower, node, 0)->shape.rank;
    for (size_t i = 0; i < node->output_count; i++) {
        const int32_t output = node->outputs[i];
        if (output < 0)
            continue;
        if (lower->scope->graph->tensors[output].shape.rank == rank)
            wg__lower_give(lower, output, &label);
        else if (i == 0)
            wg__lower_fix(lower, &label);
    }
    return WG_OK;
}

/* Normalisation over groups of channels: each must keep the same number. */
static enum wg_code axes_group_norm(struct wg_lower *lower, const struct wg_node *node)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, 0);
    const int64_t groups = wg__node_int(node, "num_groups", wg__node_int(node, "groups", 0));
    if (state != NULL && groups > 0 && groups <= UINT32_MAX)
        wg__lower_align(lower, &state->label, (uint32_t)groups);
    else if (state != NULL)
        wg__lower_fix(lower, &state->label);
    return axes_stay(lower, node);
}

static enum wg_code axes_transpose(struct wg_lower *lower, const struct wg_node *node)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, 0);
    size_t count = 0;
    const int64_t *perm = wg__node_ints(node, "perm", &count);
    if (state == NULL || state->label.axis < 0)
        return WG_OK;
    struct wg_label label = state->label;
    const size_t rank = wg__lower_input(lower, node, 0)->shape.rank;
    if (perm != NULL && count != rank)
        return wg__lower_axes_unknown(lower, node);
    for (size_t i = 0; i < rank; i++) {
        const int64_t from = perm != NULL ? perm[i] : (int64_t)(rank - 1 - i);
        if (from == state->label.axis)
            label.axis = (int)i;
    }
    wg__lower_give(lower, node->outputs[0], &label);
    return WG_OK;
}

/* --- Reshape ---------------------------------------------------------------------------------- */

/* A walk over sizes above 1, which alone tell axes apart. */
struct axes_walk {
    const uint64_t *dims;
    size_t rank, at;
};

static size_t next_axis(struct axes_walk *walk)
{
    while (walk->at < walk->rank && walk->dims[walk->at] == 1)
        walk->at++;
    return walk->at++;
}

/* The least block of axes, one at least on each side, of equal product. */
struct block {
    size_t from_first, from_count, to_first, to_count;
    uint64_t product;
};

static bool next_block(struct axes_walk *from, struct axes_walk *to, struct block *block)
{
    const size_t a = next_axis(from);
    const size_t b = next_axis(to);
    if (a >= from->rank || b >= to->rank)
        return false;
    uint64_t of_a = from->dims[a];
    uint64_t of_b = to->dims[b];
    *block = (struct block){.from_first = a, .from_count = 1, .to_first = b, .to_count = 1};
    while (of_a != of_b) {
        struct axes_walk *shorter = of_a < of_b ? from : to;
        const size_t axis = next_axis(shorter);
        if (axis >= shorter->rank)
            return false;
        if (of_a < of_b) {
            of_a *= from->dims[axis];
            block->from_count++;
        } else {
            of_b *= to->dims[axis];
            block->to_count++;
        }
    }
    block->product = of_a;
    return true;
}

static enum wg_code axes_reshape(struct wg_lower *lower, const struct wg_node *node)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, 0);
    if (state == NULL || state->label.axis < 0 || node->outputs[0] < 0)
        return WG_OK;
    const struct wg_label label = state->label;
    uint64_t from_dims[WG_DIMS_MAX];
    uint64_t to_dims[WG_DIMS_MAX];
    struct axes_walk from = {.dims = from_dims};
    struct axes_walk to = {.dims = to_dims};
    const struct wg_tensor *output = &lower->scope->graph->tensors[node->outputs[0]];
    const bool is_known =
        wg__lower_dims(lower, wg__lower_input(lower, node, 0), &from.rank, from_dims) &&
        wg__lower_dims(lower, output, &to.rank, to_dims) &&
        wg__lower_elements(from.rank, from_dims) == wg__lower_elements(to.rank, to_dims);
    struct block block;
    while (is_known && next_block(&from, &to, &block)) {
        if (from.at <= (size_t)label.axis)
            continue;
        struct wg_label moved;
        if (block.to_count != 1 || block.from_first > (size_t)label.axis)
            break; /* split, or an axis of size 1 */
        const enum wg_code code = wg__lower_scaled(lower, &label, (int)block.to_first,
                                                   block.product / from_dims[label.axis], &moved);
        if (code == WG_OK)
            wg__lower_give(lower, node->outputs[0], &moved);
        return code;
    }
    wg__lower_fix(lower, &label);
    return WG_OK;
}

/* --- Reductions ------------------------------------------------------------------------------- */

/* Axes come as an attribute, or as an input from opset 13 or 18 on; none at all means every axis.
 */
static bool reduced_axes(const struct wg_lower *lower, const struct wg_node *node, int64_t *axes,
                         size_t *count)
{
    const struct wg_tensor *input = wg__lower_input(lower, node, 1);
    const int64_t *listed = wg__node_ints(node, "axes", count);
    if (*count > WG_DIMS_MAX)
        return false;
    for (size_t i = 0; i < *count; i++)
        axes[i] = listed[i];
    return listed != NULL || input == NULL ||
           wg__lower_ints(lower, input, axes, WG_DIMS_MAX, count);
}

static enum wg_code axes_reduce(struct wg_lower *lower, const struct wg_node *node)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, 0);
    if (state == NULL || state->label.axis < 0 || node->outputs[0] < 0)
        return WG_OK;
    int64_t axes[WG_DIMS_MAX];
    size_t count = 0;
    if (!reduced_axes(lower, node, axes, &count))
        return wg__lower_axes_unknown(lower, node);
    const int64_t rank = (int64_t)wg__lower_input(lower, node, 0)->shape.rank;
    const bool keeps = wg__node_int(node, "keepdims", 1) != 0;
    struct wg_label label = state->label;
    bool is_reduced = count == 0 && wg__node_int(node, "noop_with_empty_axes", 0) == 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        is_reduced = is_reduced || axis == state->label.axis;
        label.axis -= !keeps && axis < state->label.axis;
    }
    if (!is_reduced) /* a sum over channels works at any width */
        wg__lower_give(lower, node->outputs[0], &label);
    return WG_OK;
}

/* --- Concatenation and its inverse ------------------------------------------------------------ */

static int64_t axis_of(const struct wg_node *node, size_t rank, int64_t fallback)
{
    const int64_t axis = wg__node_int(node, "axis", fallback);
    return axis < 0 ? axis + (int64_t)rank : axis;
}

/* Appends what an input brings along the axis: its segments, or a fixed width of its size. */
static enum wg_code append(struct wg_lower *lower, const struct wg_node *node, size_t input,
                           int axis, struct wg_segment *segments, size_t *count)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, input);
    if (state->label.axis == axis) {
        memcpy(segments + *count, state->label.segments, state->label.count * sizeof *segments);
        *count += state->label.count;
        return WG_OK;
    }
    size_t rank = 0;
    uint64_t dims[WG_DIMS_MAX];
    const struct wg_tensor *tensor = wg__lower_input(lower, node, input);
    wg__lower_fix(lower, &state->label);
    const enum wg_code code = wg__lower_need_dims(lower, node, tensor, &rank, dims);
    if (code != WG_OK || (size_t)axis >= rank || dims[axis] == 0)
        return code;
    segments[*count].multiple = 1;
    return wg__lower_width(lower, tensor->name, dims[axis], true, &segments[(*count)++].width);
}

static enum wg_code axes_concat(struct wg_lower *lower, const struct wg_node *node)
{
    size_t room = 0;
    size_t labels = 0;
    const struct wg_tensor *first = wg__lower_input(lower, node, 0);
    const int64_t axis = first != NULL ? axis_of(node, first->shape.rank, 1) : 0;
    for (size_t i = 0; i < node->input_count; i++) {
        const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, i);
        if (state == NULL)
            return wg__lower_axes_unknown(lower, node);
        const bool is_along = state->label.axis == axis && state->label.axis >= 0;
        labels += is_along;
        room += is_along ? state->label.count : 1;
    }
    if (labels == 0) /* along another axis: the parts must agree on channels */
        return wg__lower_axes_elementwise(lower, node);
    if (room > SEGMENTS_MAX)
        return wg__lower_axes_unknown(lower, node);
    struct wg_segment *segments = wg__arena_alloc(&lower->scratch, room, sizeof *segments);
    if (segments == NULL)
        return wg__lower_no_memory(lower);
    struct wg_label label = {.axis = (int)axis, .segments = segments};
    for (size_t i = 0; i < node->input_count; i++) {
        const enum wg_code code = append(lower, node, i, label.axis, segments, &label.count);
        if (code != WG_OK)
            return code;
    }
    wg__lower_give(lower, node->outputs[0], &label);
    return WG_OK;
}

/* How many segments from `first` on have exactly so many channels; 0: a cut within one. */
static size_t segments_of(const struct wg_lower *lower, const struct wg_label *label, size_t first,
                          uint64_t channels)
{
    size_t count = 0;
    while (first + count < label->count) {
        const struct wg_label part = {0, label->segments + first, ++count};
        const uint64_t sum = label_channels(lower, &part);
        if (sum == channels)
            return count;
        if (sum > channels)
            return 0;
    }
    return 0;
}

static enum wg_code axes_split(struct wg_lower *lower, const struct wg_node *node)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, 0);
    if (state == NULL || state->label.axis < 0)
        return WG_OK;
    const struct wg_label label = state->label;
    if (axis_of(node, wg__lower_input(lower, node, 0)->shape.rank, 0) != label.axis)
        return axes_stay(lower, node);
    size_t first = 0;
    for (size_t i = 0; i < node->output_count; i++) {
        size_t rank = 0;
        uint64_t dims[WG_DIMS_MAX];
        const int32_t output = node->outputs[i];
        if (output < 0 ||
            !wg__lower_dims(lower, &lower->scope->graph->tensors[output], &rank, dims) ||
            (size_t)label.axis >= rank)
            break;
        const size_t count = segments_of(lower, &label, first, dims[label.axis]);
        if (count == 0)
            break;
        const struct wg_label part = {label.axis, label.segments + first, count};
        wg__lower_give(lower, output, &part);
        first += count;
    }
    const struct wg_label rest = {label.axis, label.segments + first, label.count - first};
    wg__lower_fix(lower, &rest);
    return WG_OK;
}

/* --- Gather and the like ---------------------------------------------------------------------- */

/* Rows of a constant table: an embedding, whose width is new and free. */
static enum wg_code embed(struct wg_lower *lower, const struct wg_node *node,
                          const struct wg_tensor *table)
{
    size_t rank = 0;
    uint64_t dims[WG_DIMS_MAX];
    struct wg_label label;
    const struct wg_tensor *output = &lower->scope->graph->tensors[node->outputs[0]];
    const bool is_float = table->elem_type == WG_ELEM_FLOAT ||
                          table->elem_type == WG_ELEM_FLOAT16 ||
                          table->elem_type == WG_ELEM_BFLOAT16;
    if (!is_float || wg__node_int(node, "axis", 0) != 0 || output->shape.rank == 0 ||
        !wg__lower_dims(lower, table, &rank, dims) || rank != 2 || dims[1] == 0)
        return WG_OK;
    const enum wg_code code = wg__lower_new_label(lower, output->name, (int)output->shape.rank - 1,
                                                  dims[1], false, &label);
    if (code == WG_OK)
        wg__lower_give(lower, node->outputs[0], &label);
    return code;
}

static enum wg_code axes_gather(struct wg_lower *lower, const struct wg_node *node)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, 0);
    const struct wg_tensor *data = wg__lower_input(lower, node, 0);
    const struct wg_tensor *indices = wg__lower_input(lower, node, 1);
    fix_input(lower, node, 1);
    if (state == NULL || indices == NULL || node->outputs[0] < 0)
        return WG_OK;
    if (state->is_static)
        return embed(lower, node, data);
    struct wg_label label = state->label;
    const int64_t axis = axis_of(node, data->shape.rank, 0);
    if (label.axis < 0 || axis == label.axis || !indices->shape.is_known) {
        wg__lower_fix(lower, &label);
        return WG_OK;
    }
    if (axis < label.axis)
        label.axis += (int)indices->shape.rank - 1;
    wg__lower_give(lower, node->outputs[0], &label);
    return WG_OK;
}

/* Blocks of pixels become channels. */
static enum wg_code axes_space_to_depth(struct wg_lower *lower, const struct wg_node *node)
{
    const struct wg_lower_tensor *state = wg__lower_input_state(lower, node, 0);
    const int64_t block = wg__node_int(node, "blocksize", 0);
    if (state == NULL || state->label.axis != 1 || block < 1 || block > UINT16_MAX)
        return wg__lower_axes_unknown(lower, node);
    struct wg_label label;
    const enum wg_code code =
        wg__lower_scaled(lower, &state->label, 1, (uint64_t)(block * block), &label);
    if (code == WG_OK)
        wg__lower_give(lower, node->outputs[0], &label);
    return code;
}

/* --- The table -------------------------------------------------------------------------------- */

static const struct {
    const char *op;
    wg_lower_axes_fn axes;
} axes_table[] = {
    {"AveragePool", axes_stay},
    {"BatchNormalization", axes_stay},
    {"Cast", axes_stay},
    {"CastLike", axes_stay},
    {"Concat", axes_concat},
    {"CumSum", axes_stay},
    {"DequantizeLinear", axes_stay},
    {"Dropout", axes_stay},
    {"DynamicQuantizeLinear", axes_stay},
    {"Flatten", axes_reshape},
    {"Gather", axes_gather},
    {"GlobalAveragePool", axes_stay},
    {"GlobalLpPool", axes_stay},
    {"GlobalMaxPool", axes_stay},
    {"GroupNorm", axes_group_norm},
    {"GroupNormalization", axes_group_norm},
    {"Identity", axes_stay},
    {"InstanceNormalization", axes_stay},
    {"LRN", axes_stay},
    {"LayerNormalization", axes_stay},
    {"LogSoftmax", axes_stay},
    {"LpNormalization", axes_stay},
    {"LpPool", axes_stay},
    {"MaxPool", axes_stay},
    {"MeanVarianceNormalization", axes_stay},
    {"Pad", axes_stay},
    {"QLinearAveragePool", axes_stay},
    {"QLinearGlobalAveragePool", axes_stay},
    {"QuantizeLinear", axes_stay},
    {"RMSNormalization", axes_stay},
    {"ReduceL1", axes_reduce},
    {"ReduceL2", axes_reduce},
    {"ReduceLogSum", axes_reduce},
    {"ReduceLogSumExp", axes_reduce},
    {"ReduceMax", axes_reduce},
    {"ReduceMean", axes_reduce},
    {"ReduceMin", axes_reduce},
    {"ReduceProd", axes_reduce},
    {"ReduceSum", axes_reduce},
    {"ReduceSumSquare", axes_reduce},
    {"Reshape", axes_reshape},
    {"Resize", axes_stay},
    {"SimplifiedLayerNormalization", axes_stay},
    {"Slice", axes_stay},
    {"Softmax", axes_stay},
    {"SpaceToDepth", axes_space_to_depth},
    {"Split", axes_split},
    {"Squeeze", axes_reshape},
    {"Tile", axes_stay},
    {"Transpose", axes_transpose},
    {"Unsqueeze", axes_reshape},
    {"Upsample", axes_stay},
};

wg_lower_axes_fn wg__lower_axes_of(const char *op)
{
    for (size_t i = 0; i < sizeof axes_table / sizeof *axes_table; i++) {
        if (strcmp(axes_table[i].op, op) == 0)
            return axes_table[i].axes;
    }
    return NULL;
}
