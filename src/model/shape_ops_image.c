/* SPDX-License-Identifier: MIT
 *
 * Operators on images and regions: Resize, DepthToSpace, RoiAlign, sampling grids.
 *
 * Owns: nothing.    Threads: one thread at a time.
 */
#include <math.h>

#include "model/shape_pass.h"

/* --- Resize and Upsample ---------------------------------------------------------------------- */

struct resize {
    size_t axes[WG_DIMS_MAX];
    size_t count;
};

/* The axes that are resized: all, or those of the attribute that opset 18 brought. */
static enum wg_code resized_axes(const struct wg_shape_node *n, size_t rank, struct resize *out)
{
    size_t count = 0;
    const int64_t *axes = wg__shape_ints(n, "axes", &count);
    out->count = axes != NULL ? count : rank;
    if (out->count > rank)
        return wg__shape_refuse(n, "%zu axes of a tensor of %zu dimensions", count, rank);
    for (size_t i = 0; i < out->count; i++) {
        const enum wg_code code =
            wg__shape_axis(n, axes != NULL ? axes[i] : (int64_t)i, rank, &out->axes[i]);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

/* Runtimes multiply in single precision. */
static enum wg_code scaled(const struct wg_shape_node *n, struct wg_dim dim, double scale,
                           struct wg_dim *out)
{
    *out = wg__dim_unknown;
    if (!(scale > 0) || scale > 1e9)
        return wg__shape_refuse(n, "a scale of %g", scale);
    if (!wg__dim_known(dim)) {
        if (scale >= 1 && scale <= 1)
            *out = dim;
        return WG_OK;
    }
    const double length = floor((double)((float)dim.value * (float)scale));
    if (length > 0x1p60)
        return wg__shape_refuse(n, "a dimension of %lld times %g", (long long)dim.value, scale);
    *out = wg__dim((int64_t)length);
    return WG_OK;
}

static enum wg_code by_scales(struct wg_shape_node *n, const struct wg_shape *x,
                              const struct resize *resize, const struct wg_value *scales,
                              size_t count, struct wg_shape *out)
{
    if (count != resize->count)
        return wg__shape_refuse(n, "%zu scales for %zu axes", count, resize->count);
    for (size_t i = 0; i < count; i++) {
        const size_t axis = resize->axes[i];
        enum wg_code code = WG_OK;
        out->dims[axis] = wg__dim_unknown;
        if (scales[i].kind == WG_VALUE_REAL)
            code = scaled(n, x->dims[axis], scales[i].real, &out->dims[axis]);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

/* One scale for all axes, the least or the largest, halves rounded up. */
static void keep_ratio(const struct wg_shape *x, const struct resize *resize,
                       const struct wg_value *sizes, bool is_larger, struct wg_shape *out)
{
    double scale = 0;
    for (size_t i = 0; i < resize->count; i++) {
        const struct wg_dim dim = x->dims[resize->axes[i]];
        out->dims[resize->axes[i]] = wg__dim_unknown;
        if (sizes[i].kind != WG_VALUE_INT || !wg__dim_known(dim) || dim.value == 0)
            scale = NAN;
        const double own = (double)sizes[i].i / (double)dim.value;
        if (i == 0 || (is_larger ? own > scale : own < scale))
            scale = isnan(scale) ? scale : own;
    }
    for (size_t i = 0; i < resize->count && !isnan(scale); i++) {
        const double length = floor(scale * (double)x->dims[resize->axes[i]].value + 0.5);
        if (length >= 0 && length < 0x1p60)
            out->dims[resize->axes[i]] = wg__dim((int64_t)length);
    }
}

static enum wg_code by_sizes(struct wg_shape_node *n, const struct wg_shape *x,
                             const struct resize *resize, const struct wg_value *sizes,
                             size_t count, struct wg_shape *out)
{
    if (count != resize->count)
        return wg__shape_refuse(n, "%zu sizes for %zu axes", count, resize->count);
    const bool is_larger = wg__shape_text_is(n, "keep_aspect_ratio_policy", "not_smaller");
    if (is_larger || wg__shape_text_is(n, "keep_aspect_ratio_policy", "not_larger")) {
        keep_ratio(x, resize, sizes, is_larger, out);
        return WG_OK;
    }
    for (size_t i = 0; i < count; i++) {
        out->dims[resize->axes[i]] = wg__dim_unknown;
        if (sizes[i].kind == WG_VALUE_INT && sizes[i].i >= 0)
            out->dims[resize->axes[i]] = wg__dim(sizes[i].i);
        else if (sizes[i].kind == WG_VALUE_NAMED)
            out->dims[resize->axes[i]].name = sizes[i].name;
    }
    return WG_OK;
}

/* Opset 10 had scales as second input; later ones the region of interest there, then scales and
 * sizes, one of which is left out or empty. */
static enum wg_code resize(struct wg_shape_node *n)
{
    struct resize resize;
    const struct wg_value *values = NULL;
    size_t count = 0;
    const struct wg_shape *x = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    if (x == NULL)
        return WG_OK;
    enum wg_code code = resized_axes(n, x->rank, &resize);
    if (code != WG_OK)
        return code;
    struct wg_shape out = *x;
    for (size_t i = 0; i < resize.count; i++)
        out.dims[resize.axes[i]] = wg__dim_unknown;
    if (wg__shape_has(n, 3)) {
        code = wg__shape_values(n, 3, &values, &count);
        if (code == WG_OK && values != NULL)
            code = by_sizes(n, x, &resize, values, count, &out);
    } else if (!wg__shape_text_is(n, "coordinate_transformation_mode", "tf_crop_and_resize")) {
        code = wg__shape_values(n, n->opset == 10 ? 1 : 2, &values, &count);
        if (code == WG_OK && values != NULL && count != 0)
            code = by_scales(n, x, &resize, values, count, &out);
    }
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

static enum wg_code upsample(struct wg_shape_node *n)
{
    const struct wg_value *values = NULL;
    size_t count = 0;
    enum wg_code code = WG_OK;
    struct resize all = {.count = 0};
    const struct wg_shape *x = wg__shape_in(n, 0);
    const struct wg_attribute *told = wg__shape_attribute(n, "scales");
    wg__shape_pass_type(n, 0, 0);
    if (x == NULL)
        return WG_OK;
    struct wg_shape out = wg__shape_of_rank(x->rank);
    if (told != NULL && told->type == WG_ATTRIBUTE_FLOATS) {
        if (told->count != x->rank)
            return wg__shape_refuse(n, "%zu scales for %zu axes", told->count, x->rank);
        for (size_t i = 0; code == WG_OK && i < x->rank; i++)
            code = scaled(n, x->dims[i], (double)told->floats[i], &out.dims[i]);
    } else {
        code = resized_axes(n, x->rank, &all);
        if (code == WG_OK)
            code = wg__shape_values(n, 1, &values, &count);
        if (code == WG_OK && values != NULL)
            code = by_scales(n, x, &all, values, count, &out);
    }
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

/* --- Blocks ----------------------------------------------------------------------------------- */

static enum wg_code divided(const struct wg_shape_node *n, struct wg_dim dim, int64_t by,
                            struct wg_dim *out)
{
    *out = wg__dim(wg__dim_known(dim) ? dim.value / by : WG_DIM_UNKNOWN);
    if (wg__dim_known(dim) && dim.value % by != 0)
        return wg__shape_refuse(n, "%lld does not divide by %lld", (long long)dim.value,
                                (long long)by);
    return WG_OK;
}

static enum wg_code to_blocks(struct wg_shape_node *n, const struct wg_shape *x, int64_t block,
                              struct wg_shape *out)
{
    for (size_t i = 2; i < 4; i++) {
        const enum wg_code code = divided(n, x->dims[i], block, &out->dims[i]);
        if (code != WG_OK)
            return code;
    }
    return wg__dim_times(n, x->dims[1], wg__dim(block * block), &out->dims[1]);
}

static enum wg_code from_blocks(struct wg_shape_node *n, const struct wg_shape *x, int64_t block,
                                struct wg_shape *out)
{
    enum wg_code code = divided(n, x->dims[1], block * block, &out->dims[1]);
    for (size_t i = 2; code == WG_OK && i < 4; i++)
        code = wg__dim_times(n, x->dims[i], wg__dim(block), &out->dims[i]);
    return code;
}

static enum wg_code blocks(struct wg_shape_node *n, bool to_space)
{
    const struct wg_shape *x = wg__shape_in(n, 0);
    const int64_t block = wg__shape_int(n, "blocksize", 0);
    wg__shape_pass_type(n, 0, 0);
    enum wg_code code = wg__shape_want_rank(n, 0, 4);
    if (code != WG_OK || x == NULL)
        return code;
    if (block < 1 || block > INT16_MAX)
        return wg__shape_refuse(n, "blocksize is %lld", (long long)block);
    struct wg_shape out = *x;
    code = to_space ? from_blocks(n, x, block, &out) : to_blocks(n, x, block, &out);
    if (code == WG_OK)
        wg__shape_set(n, 0, &out);
    return code;
}

static enum wg_code depth_to_space(struct wg_shape_node *n)
{
    return blocks(n, true);
}

static enum wg_code space_to_depth(struct wg_shape_node *n)
{
    return blocks(n, false);
}

/* --- Regions and grids ------------------------------------------------------------------------ */

static enum wg_code grid_sample(struct wg_shape_node *n)
{
    const struct wg_shape *x = wg__shape_in(n, 0), *grid = wg__shape_in(n, 1);
    wg__shape_pass_type(n, 0, 0);
    if (x == NULL || grid == NULL)
        return WG_OK;
    if (x->rank < 3 || grid->rank != x->rank)
        return wg__shape_refuse(n, "'%.40s' has %zu dimensions, its grid %zu", wg__shape_name(n, 0),
                                x->rank, grid->rank);
    struct wg_shape out = *x;
    for (size_t i = 2; i < x->rank; i++)
        out.dims[i] = grid->dims[i - 1];
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

/* Sizes (N, C, H, W) or (N, C, D, H, W) -> (N, H, W, 2) or (N, D, H, W, 3) */
static enum wg_code affine_grid(struct wg_shape_node *n)
{
    const struct wg_value *size = NULL;
    size_t count = 0;
    const struct wg_shape *of_size = wg__shape_in(n, 1);
    wg__shape_pass_type(n, 0, 0);
    const enum wg_code code = wg__shape_values(n, 1, &size, &count);
    if (code != WG_OK)
        return code;
    if (size == NULL && of_size != NULL && of_size->rank == 1 && wg__dim_known(of_size->dims[0]))
        count = (size_t)of_size->dims[0].value;
    if (count != 4 && count != 5)
        return WG_OK;
    struct wg_shape out = wg__shape_of_rank(count);
    for (size_t i = 0; i < count && size != NULL; i++) {
        if (size[i].kind == WG_VALUE_INT && size[i].i < 0)
            return wg__shape_refuse(n, "a size of %lld", (long long)size[i].i);
        if (size[i].kind == WG_VALUE_INT && i != 1)
            out.dims[i > 0 ? i - 1 : 0] = wg__dim(size[i].i);
    }
    out.dims[count - 1] = wg__dim((int64_t)count - 2);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code roi_align(struct wg_shape_node *n)
{
    const struct wg_shape *x = wg__shape_in(n, 0), *rois = wg__shape_in(n, 1);
    struct wg_shape out = wg__shape_of_rank(4);
    const int64_t height = wg__shape_int(n, "output_height", 1);
    const int64_t width = wg__shape_int(n, "output_width", 1);
    wg__shape_pass_type(n, 0, 0);
    if (height < 1 || width < 1)
        return wg__shape_refuse(n, "an output of %lld by %lld", (long long)height,
                                (long long)width);
    if (rois != NULL && rois->rank > 0)
        out.dims[0] = rois->dims[0];
    if (x != NULL && x->rank == 4)
        out.dims[1] = x->dims[1];
    out.dims[2] = wg__dim(height);
    out.dims[3] = wg__dim(width);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code max_roi_pool(struct wg_shape_node *n)
{
    size_t count = 0;
    const struct wg_shape *x = wg__shape_in(n, 0), *rois = wg__shape_in(n, 1);
    const int64_t *pooled = wg__shape_ints(n, "pooled_shape", &count);
    wg__shape_pass_type(n, 0, 0);
    if (x == NULL || rois == NULL || x->rank < 2 || rois->rank == 0 || pooled == NULL ||
        count != x->rank - 2)
        return WG_OK;
    struct wg_shape out = *x;
    out.dims[0] = rois->dims[0];
    for (size_t i = 0; i < count; i++)
        out.dims[2 + i] = wg__dim(pooled[i] >= 0 ? pooled[i] : WG_DIM_UNKNOWN);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code center_crop_pad(struct wg_shape_node *n)
{
    struct wg_shape_list sizes = {.count = 0};
    struct resize axes = {.count = 0};
    const struct wg_shape *x = wg__shape_in(n, 0);
    wg__shape_pass_type(n, 0, 0);
    if (x == NULL)
        return WG_OK;
    enum wg_code code = resized_axes(n, x->rank, &axes);
    if (code == WG_OK)
        code = wg__shape_list(n, NULL, 1, &sizes);
    if (code != WG_OK)
        return code;
    struct wg_shape out = *x;
    if (sizes.is_known && sizes.count != axes.count)
        return wg__shape_refuse(n, "%zu sizes for %zu axes", sizes.count, axes.count);
    for (size_t i = 0; i < axes.count; i++)
        out.dims[axes.axes[i]] =
            wg__dim(sizes.is_known && sizes.values[i] >= 0 ? sizes.values[i] : WG_DIM_UNKNOWN);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code non_max_suppression(struct wg_shape_node *n)
{
    struct wg_shape out = wg__shape_of_rank(2);
    out.dims[1] = wg__dim(3); /* batch, class, box */
    wg__shape_set_type(n, 0, WG_ELEM_INT64);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static enum wg_code image_decoder(struct wg_shape_node *n)
{
    struct wg_shape out = wg__shape_of_rank(3);
    out.dims[2] = wg__dim(wg__shape_text_is(n, "pixel_format", "Grayscale") ? 1 : 3);
    wg__shape_set_type(n, 0, WG_ELEM_UINT8);
    wg__shape_set(n, 0, &out);
    return WG_OK;
}

static const struct wg_shape_op ops[] = {
    {"AffineGrid", affine_grid, NULL},
    {"CenterCropPad", center_crop_pad, NULL},
    {"DepthToSpace", depth_to_space, NULL},
    {"GridSample", grid_sample, NULL},
    {"ImageDecoder", image_decoder, NULL},
    {"MaxRoiPool", max_roi_pool, NULL},
    {"NonMaxSuppression", non_max_suppression, NULL},
    {"Resize", resize, NULL},
    {"RoiAlign", roi_align, NULL},
    {"SpaceToDepth", space_to_depth, NULL},
    {"Upsample", upsample, NULL},
};

const struct wg_shape_family wg__shape_ops_image = {"", ops, sizeof ops / sizeof ops[0]};
