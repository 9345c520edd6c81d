/* SPDX-License-Identifier: MIT
 *
 * Convolutions and pooling: windows that slide over the spatial axes.
 *
 *     out = floor((in + pads - (dilation * (kernel - 1) + 1)) / stride) + 1
 *
 * Transposed convolutions turn the formula round. auto_pad chooses pads so that the output is
 * ceil(in / stride) long, or uses none. With ceil_mode the quotient is rounded up, but a window
 * that would start in the right padding isn't counted.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include <string.h>

#include "model/shape_pass.h"

enum { SPATIAL_MAX = WG_DIMS_MAX - 2 };

enum auto_pad { PAD_EXPLICIT, PAD_SAME, PAD_VALID };

struct windows {
    size_t axes;
    enum auto_pad auto_pad;
    bool is_ceil;
    struct wg_dim kernel[SPATIAL_MAX];
    int64_t stride[SPATIAL_MAX], dilation[SPATIAL_MAX];
    int64_t pad_begin[SPATIAL_MAX], pad_end[SPATIAL_MAX];
};

/* A list of one positive number per spatial axis; 1 where it isn't there. */
static enum wg_code read_steps(const struct wg_shape_node *n, const char *name, size_t axes,
                               int64_t *out)
{
    size_t count = 0;
    const int64_t *ints = wg__shape_ints(n, name, &count);
    for (size_t i = 0; i < axes; i++)
        out[i] = 1;
    if (ints == NULL || count == 0)
        return WG_OK;
    if (count != axes)
        return wg__shape_refuse(n, "%s has %zu elements for %zu spatial axes", name, count, axes);
    for (size_t i = 0; i < axes; i++) {
        if (ints[i] < 1 || ints[i] > INT32_MAX)
            return wg__shape_refuse(n, "%s has the element %lld, expected 1 or more", name,
                                    (long long)ints[i]);
        out[i] = ints[i];
    }
    return WG_OK;
}

static enum wg_code read_pads(const struct wg_shape_node *n, struct windows *w)
{
    size_t count = 0;
    const int64_t *pads = wg__shape_ints(n, "pads", &count);
    w->auto_pad = PAD_EXPLICIT;
    if (wg__shape_text_is(n, "auto_pad", "VALID"))
        w->auto_pad = PAD_VALID;
    else if (wg__shape_text_is(n, "auto_pad", "SAME_UPPER") ||
             wg__shape_text_is(n, "auto_pad", "SAME_LOWER"))
        w->auto_pad = PAD_SAME;
    if (pads == NULL || count == 0 || w->auto_pad != PAD_EXPLICIT)
        return WG_OK;
    if (count != 2 * w->axes)
        return wg__shape_refuse(n, "pads has %zu elements for %zu spatial axes, expected %zu",
                                count, w->axes, 2 * w->axes);
    for (size_t i = 0; i < count; i++) {
        if (pads[i] < -INT32_MAX || pads[i] > INT32_MAX)
            return wg__shape_refuse(n, "pads has the element %lld", (long long)pads[i]);
        *(i < w->axes ? &w->pad_begin[i] : &w->pad_end[i - w->axes]) = pads[i];
    }
    return WG_OK;
}

/* The windows over a tensor of `rank` dimensions; the kernel's size is told by an attribute, or by
 * the weights' shape. */
static enum wg_code read_windows(const struct wg_shape_node *n, size_t rank,
                                 const struct wg_shape *weights, struct windows *w)
{
    size_t count = 0;
    *w = (struct windows){.axes = rank - 2};
    if (rank < 2)
        return wg__shape_refuse(n, "input '%.60s' has %zu dimensions, expected at least 2",
                                wg__shape_name(n, 0), rank);
    enum wg_code code = read_steps(n, "strides", w->axes, w->stride);
    if (code == WG_OK)
        code = read_steps(n, "dilations", w->axes, w->dilation);
    if (code == WG_OK)
        code = read_pads(n, w);
    if (code != WG_OK)
        return code;
    w->is_ceil = wg__shape_int(n, "ceil_mode", 0) == 1;
    const int64_t *kernel = wg__shape_ints(n, "kernel_shape", &count);
    if (kernel != NULL && count != w->axes)
        return wg__shape_refuse(n, "kernel_shape has %zu elements for %zu spatial axes", count,
                                w->axes);
    for (size_t i = 0; i < w->axes; i++) {
        w->kernel[i] = weights != NULL ? weights->dims[2 + i] : wg__dim_unknown;
        if (kernel == NULL)
            continue;
        if (kernel[i] < 1 || kernel[i] > INT32_MAX)
            return wg__shape_refuse(n, "kernel_shape has the element %lld", (long long)kernel[i]);
        code = wg__dim_agree(n, wg__dim(kernel[i]), w->kernel[i],
                             "kernel_shape and the weights' shape", &w->kernel[i]);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static enum wg_code slide(const struct wg_shape_node *n, const struct windows *w, size_t axis,
                          struct wg_dim in, struct wg_dim *out)
{
    const int64_t stride = w->stride[axis];
    *out = wg__dim_unknown;
    if (!wg__dim_known(in)) /* a window that moves by one and is padded to fit keeps the name */
        return WG_OK;
    if (in.value > INT64_MAX / 4)
        return wg__shape_refuse(n, "a dimension of %lld is too large", (long long)in.value);
    if (w->auto_pad == PAD_SAME) {
        *out = wg__dim((in.value + stride - 1) / stride);
        return WG_OK;
    }
    if (!wg__dim_known(w->kernel[axis]))
        return WG_OK;
    if (w->kernel[axis].value > INT32_MAX)
        return wg__shape_refuse(n, "a kernel of %lld", (long long)w->kernel[axis].value);
    const int64_t window = w->dilation[axis] * (w->kernel[axis].value - 1) + 1;
    const int64_t padded = in.value + w->pad_begin[axis] + w->pad_end[axis];
    if (padded < window)
        return wg__shape_refuse(n, "a window of %lld doesn't fit into '%.60s', %lld with padding",
                                (long long)window, wg__shape_name(n, 0), (long long)padded);
    int64_t positions = (padded - window) / stride;
    if (w->is_ceil && (padded - window) % stride != 0 &&
        (positions + 1) * stride < in.value + w->pad_begin[axis])
        positions++;
    *out = wg__dim(positions + 1);
    return WG_OK;
}

static enum wg_code slide_all(struct wg_shape_node *n, const struct windows *w,
                              const struct wg_shape *x, struct wg_dim channels, size_t outputs)
{
    struct wg_shape out = wg__shape_of_rank(x->rank);
    out.dims[0] = x->dims[0];
    out.dims[1] = channels;
    for (size_t i = 0; i < w->axes; i++) {
        const enum wg_code code = slide(n, w, i, x->dims[2 + i], &out.dims[2 + i]);
        if (code != WG_OK)
            return code;
    }
    for (size_t i = 0; i < outputs; i++)
        wg__shape_set(n, i, &out);
    return WG_OK;
}

/* The weights hold the channels of one group. */
static enum wg_code check_channels(const struct wg_shape_node *n, const struct wg_shape *x,
                                   struct wg_dim per_group)
{
    struct wg_dim channels;
    const int64_t group = wg__shape_int(n, "group", 1);
    if (group < 1)
        return wg__shape_refuse(n, "group is %lld, expected 1 or more", (long long)group);
    enum wg_code code = wg__dim_times(n, per_group, wg__dim(group), &channels);
    if (code == WG_OK && wg__dim_known(channels) && wg__dim_known(x->dims[1]) &&
        channels.value != x->dims[1].value)
        code = wg__shape_refuse(n,
                                "'%.40s' has %lld channels, its weights are for %lld (%lld a "
                                "group, %lld groups)",
                                wg__shape_name(n, 0), (long long)x->dims[1].value,
                                (long long)channels.value, (long long)per_group.value,
                                (long long)group);
    return code;
}

static enum wg_code convolve(struct wg_shape_node *n, size_t weights_input)
{
    struct windows w;
    const struct wg_shape *x = wg__shape_in(n, 0), *weights = wg__shape_in(n, weights_input);
    if (x == NULL || weights == NULL)
        return WG_OK;
    if (weights->rank != x->rank)
        return wg__shape_refuse(n, "'%.40s' has %zu dimensions and its weights '%.40s' %zu",
                                wg__shape_name(n, 0), x->rank, wg__shape_name(n, weights_input),
                                weights->rank);
    enum wg_code code = read_windows(n, x->rank, weights, &w);
    if (code == WG_OK)
        code = check_channels(n, x, weights->dims[1]);
    return code == WG_OK ? slide_all(n, &w, x, weights->dims[0], 1) : code;
}

static enum wg_code conv(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 0, 0);
    return convolve(n, 1);
}

static enum wg_code conv_integer(struct wg_shape_node *n)
{
    wg__shape_set_type(n, 0, WG_ELEM_INT32);
    return convolve(n, 1);
}

static enum wg_code qlinear_conv(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 7, 0);
    return convolve(n, 3);
}

static enum wg_code deform_conv(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 0, 0);
    return convolve(n, 1);
}

static enum wg_code pool(struct wg_shape_node *n, size_t outputs)
{
    struct windows w;
    const struct wg_shape *x = wg__shape_in(n, 0);
    if (x == NULL)
        return WG_OK;
    const enum wg_code code = read_windows(n, x->rank, NULL, &w);
    return code == WG_OK ? slide_all(n, &w, x, x->dims[1], outputs) : code;
}

static enum wg_code average_pool(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 0, 0);
    return pool(n, 1);
}

static enum wg_code max_pool(struct wg_shape_node *n)
{
    wg__shape_pass_type(n, 0, 0);
    wg__shape_set_type(n, 1, WG_ELEM_INT64);
    return pool(n, 2);
}

static enum wg_code global_pool(struct wg_shape_node *n)
{
    const struct wg_shape *x = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    if (x == NULL)
        return WG_OK;
    if (x->rank < 2)
        return wg__shape_refuse(n, "input '%.60s' has %zu dimensions, expected at least 2",
                                wg__shape_name(n, 0), x->rank);
    struct wg_shape out = *x;
    for (size_t i = 2; i < out.rank; i++)
        out.dims[i] = wg__dim(1);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* --- The other way round ---------------------------------------------------------------------- */

static enum wg_code unslide(const struct wg_shape_node *n, const struct windows *w, size_t axis,
                            int64_t extra, struct wg_dim in, struct wg_dim *out)
{
    *out = wg__dim_unknown;
    if (!wg__dim_known(in))
        return WG_OK;
    if (in.value > INT64_MAX / INT32_MAX / 4)
        return wg__shape_refuse(n, "a dimension of %lld is too large", (long long)in.value);
    if (w->auto_pad == PAD_SAME) {
        *out = wg__dim(in.value * w->stride[axis]);
        return WG_OK;
    }
    if (!wg__dim_known(w->kernel[axis]))
        return WG_OK;
    if (w->kernel[axis].value > INT32_MAX)
        return wg__shape_refuse(n, "a kernel of %lld", (long long)w->kernel[axis].value);
    const int64_t window = w->dilation[axis] * (w->kernel[axis].value - 1) + 1;
    const int64_t length =
        w->stride[axis] * (in.value - 1) + extra + window - w->pad_begin[axis] - w->pad_end[axis];
    if (length < 0)
        return wg__shape_refuse(n, "its output would be %lld long", (long long)length);
    *out = wg__dim(length);
    return WG_OK;
}

static enum wg_code unslide_all(struct wg_shape_node *n, const struct windows *w,
                                const struct wg_shape *x, struct wg_shape *out)
{
    size_t shape_count = 0, extra_count = 0;
    const int64_t *shape = wg__shape_ints(n, "output_shape", &shape_count);
    const int64_t *extra = wg__shape_ints(n, "output_padding", &extra_count);
    for (size_t i = 0; i < w->axes; i++) {
        const int64_t more = extra_count == w->axes ? extra[i] : 0;
        if (more < 0 || more > INT32_MAX)
            return wg__shape_refuse(n, "output_padding has the element %lld", (long long)more);
        enum wg_code code = WG_OK;
        if (shape != NULL && shape_count >= w->axes && shape[shape_count - w->axes + i] > 0)
            out->dims[2 + i] = wg__dim(shape[shape_count - w->axes + i]);
        else
            code = unslide(n, w, i, more, x->dims[2 + i], &out->dims[2 + i]);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static enum wg_code conv_transpose(struct wg_shape_node *n)
{
    struct windows w;
    const struct wg_shape *x = wg__shape_in(n, 0), *weights = wg__shape_in(n, 1);
    const int64_t group = wg__shape_int(n, "group", 1);
    wg__shape_pass_type(n, 0, 0);
    if (x == NULL || weights == NULL)
        return WG_OK;
    if (weights->rank != x->rank || group < 1)
        return wg__shape_refuse(n, "'%.40s' has %zu dimensions and its weights '%.40s' %zu",
                                wg__shape_name(n, 0), x->rank, wg__shape_name(n, 1), weights->rank);
    enum wg_code code = read_windows(n, x->rank, weights, &w);
    if (code != WG_OK)
        return code;
    struct wg_shape out = wg__shape_of_rank(x->rank);
    struct wg_dim agreed;
    out.dims[0] = x->dims[0];
    code = wg__dim_agree(n, x->dims[1], weights->dims[0], "channels of input and weights", &agreed);
    if (code == WG_OK)
        code = wg__dim_times(n, weights->dims[1], wg__dim(group), &out.dims[1]);
    if (code == WG_OK)
        code = unslide_all(n, &w, x, &out);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

static enum wg_code max_unpool(struct wg_shape_node *n)
{
    struct windows w;
    struct wg_shape_list wanted;
    const struct wg_shape *x = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    if (x == NULL)
        return WG_OK;
    struct wg_shape out = wg__shape_of_rank(x->rank);
    enum wg_code code = wg__shape_list(n, NULL, 2, &wanted);
    if (code == WG_OK && wanted.is_given) {
        for (size_t i = 0; i < out.rank && wanted.is_known && wanted.count == out.rank; i++)
            out.dims[i] = wg__dim(wanted.values[i] >= 0 ? wanted.values[i] : WG_DIM_UNKNOWN);
        wg__shape_set(n, 0, &out);
        return WG_OK;
    }
    if (code == WG_OK)
        code = read_windows(n, x->rank, NULL, &w);
    if (code != WG_OK)
        return code;
    out.dims[0] = x->dims[0];
    out.dims[1] = x->dims[1];
    for (size_t i = 0; code == WG_OK && i < w.axes; i++)
        code = unslide(n, &w, i, 0, x->dims[2 + i], &out.dims[2 + i]);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

/* The spatial axes of Col2Im's image: as many as its size has elements; 0: not known. */
static size_t image_axes(const struct wg_shape_node *n, const struct wg_shape_list *image)
{
    const struct wg_shape *shape = wg__shape_in(n, 1);
    if (image->is_known && image->count != 0)
        return image->count <= SPATIAL_MAX ? image->count : 0;
    if (shape == NULL || shape->rank != 1 || !wg__dim_known(shape->dims[0]) ||
        shape->dims[0].value > SPATIAL_MAX)
        return 0;
    return (size_t)shape->dims[0].value;
}

static enum wg_code block_elements(const struct wg_shape_node *n, const struct wg_shape_list *block,
                                   int64_t *out)
{
    *out = 1;
    for (size_t i = 0; i < block->count && block->is_known; i++) {
        if (block->values[i] < 1 || __builtin_mul_overflow(*out, block->values[i], out))
            return wg__shape_refuse(n, "a block of %lld", (long long)block->values[i]);
    }
    return WG_OK;
}

/* (N, C * block elements, blocks) -> (N, C, image...) */
static enum wg_code col2im(struct wg_shape_node *n)
{
    struct wg_shape_list image, block;
    const struct wg_shape *x = wg__shape_in(n, 0);
    int64_t elements = 1;
    wg__shape_pass_type(n, 0, 0);
    enum wg_code code = wg__shape_list(n, NULL, 1, &image);
    if (code == WG_OK)
        code = wg__shape_list(n, NULL, 2, &block);
    if (code == WG_OK)
        code = block_elements(n, &block, &elements);
    const size_t axes = code == WG_OK ? image_axes(n, &image) : 0;
    if (axes == 0)
        return code;
    struct wg_shape out = wg__shape_of_rank(2 + axes);
    for (size_t i = 0; i < axes && image.is_known; i++)
        out.dims[2 + i] = wg__dim(image.values[i] >= 0 ? image.values[i] : WG_DIM_UNKNOWN);
    if (x != NULL && x->rank == 3) {
        out.dims[0] = x->dims[0];
        if (block.is_known && block.count == axes && wg__dim_known(x->dims[1]))
            out.dims[1] = wg__dim(x->dims[1].value / elements);
    }
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static const struct wg_shape_op ops[] = {
    {"AveragePool", average_pool, NULL},
    {"Col2Im", col2im, NULL},
    {"Conv", conv, NULL},
    {"ConvInteger", conv_integer, NULL},
    {"ConvTranspose", conv_transpose, NULL},
    {"DeformConv", deform_conv, NULL},
    {"GlobalAveragePool", global_pool, NULL},
    {"GlobalLpPool", global_pool, NULL},
    {"GlobalMaxPool", global_pool, NULL},
    {"LpPool", average_pool, NULL},
    {"MaxPool", max_pool, NULL},
    {"MaxUnpool", max_unpool, NULL},
    {"QLinearConv", qlinear_conv, NULL},
};

const struct wg_shape_family wg__shape_ops_convolution = {"", ops, sizeof ops / sizeof ops[0]};
