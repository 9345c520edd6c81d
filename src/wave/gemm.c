/* SPDX-License-Identifier: MIT
 *
 * Layers as matrix multiplications: see gemm.h for the table of passes.
 *
 * Sizes come from files of strangers, so every product is checked: dimensions whose products leave
 * 63 bits are refused as such, never wrapped.
 */
#include "wave/gemm.h"

#include <inttypes.h>
#include <math.h>

/* `*total` times `factor`; false when that leaves 63 bits. */
static bool multiply(uint64_t *total, uint64_t factor)
{
    return !__builtin_mul_overflow(*total, factor, total) && *total <= INT64_MAX;
}

static uint64_t divide_up(uint64_t value, uint64_t by)
{
    return value / by + (value % by != 0);
}

static bool product(uint64_t *out, uint64_t a, uint64_t b, uint64_t c)
{
    *out = 1;
    return multiply(out, a) && multiply(out, b) && multiply(out, c);
}

static enum wg_code check_sizes(const struct wg_conv *conv, struct wg_error *err)
{
    const struct {
        const char *name;
        uint64_t value;
    } sizes[] = {{"batch", conv->n},
                 {"channels", conv->c},
                 {"height", conv->h},
                 {"width", conv->w},
                 {"filters", conv->filters},
                 {"filter height", conv->r},
                 {"filter width", conv->s},
                 {"vertical stride", conv->stride_h},
                 {"horizontal stride", conv->stride_w},
                 {"vertical dilation", conv->dilation_h},
                 {"horizontal dilation", conv->dilation_w},
                 {"groups", conv->groups}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value == 0)
            return wg__fail(err, WG_EINVAL, "convolution: %s is 0, expected at least 1",
                            sizes[i].name);
    if (conv->c % conv->groups != 0 || conv->filters % conv->groups != 0)
        return wg__fail(err, WG_EINVAL,
                        "convolution: %" PRIu64 " groups do not divide %" PRIu64
                        " channels and %" PRIu64 " filters",
                        conv->groups, conv->c, conv->filters);
    return WG_OK;
}

/* One side of the output; see the formula in gemm.h. */
static enum wg_code output_side(const char *side, uint64_t size, uint64_t pad_before,
                                uint64_t pad_after, uint64_t filter, uint64_t stride,
                                uint64_t dilation, uint64_t *out, struct wg_error *err)
{
    uint64_t padded, reach;
    if (__builtin_add_overflow(size, pad_before, &padded) ||
        __builtin_add_overflow(padded, pad_after, &padded) ||
        __builtin_mul_overflow(dilation, filter - 1, &reach) ||
        __builtin_add_overflow(reach, 1, &reach) || padded > INT64_MAX || reach > INT64_MAX)
        return wg__fail(err, WG_EINVAL,
                        "convolution: %s of the padded input or filter is beyond "
                        "2^63",
                        side);
    if (reach > padded)
        return wg__fail(err, WG_EINVAL,
                        "convolution: a filter that spans %" PRIu64 " does not fit the padded "
                        "input's %s of %" PRIu64,
                        reach, side, padded);
    *out = (padded - reach) / stride + 1;
    return WG_OK;
}

enum wg_code wg__conv_output(const struct wg_conv *conv, uint64_t *p_out, uint64_t *q_out,
                             struct wg_error *err)
{
    uint64_t p = 0, q = 0, ignored;
    enum wg_code code = check_sizes(conv, err);
    if (code == WG_OK)
        code = output_side("height", conv->h, conv->pad_top, conv->pad_bottom, conv->r,
                           conv->stride_h, conv->dilation_h, &p, err);
    if (code == WG_OK)
        code = output_side("width", conv->w, conv->pad_left, conv->pad_right, conv->s,
                           conv->stride_w, conv->dilation_w, &q, err);
    if (code != WG_OK)
        return code;
    /* What the three passes multiply; once these fit, all of gemm.h's table does. */
    if (!product(&ignored, conv->n, p, q) || !product(&ignored, conv->n, conv->h, conv->w) ||
        !product(&ignored, conv->c, conv->r, conv->s) ||
        !product(&ignored, conv->filters, conv->r, conv->s))
        return wg__fail(err, WG_EINVAL, "convolution: its dimensions multiply beyond 2^63");
    *p_out = p;
    *q_out = q;
    return WG_OK;
}

enum wg_code wg__conv_gemm(const struct wg_conv *conv, enum wg_conv_pass pass, struct wg_gemm *out,
                           struct wg_error *err)
{
    uint64_t p = 0, q = 0;
    enum wg_code code = wg__conv_output(conv, &p, &q, err);
    if (code != WG_OK)
        return code;
    const uint64_t channels = conv->c / conv->groups, filters = conv->filters / conv->groups;
    struct wg_gemm gemm = {.dtype = conv->dtype, .batch = conv->groups};
    switch (pass) {
    case WG_CONV_FORWARD:
        gemm.m = conv->n * p * q;
        gemm.n = filters;
        gemm.k = channels * conv->r * conv->s;
        gemm.has_bias = conv->has_bias;
        break;
    case WG_CONV_DGRAD:
        gemm.m = conv->n * conv->h * conv->w;
        gemm.n = channels;
        /* With a stride, an input meets but every stride-th tap of each filter. */
        gemm.k = divide_up(divide_up(filters * conv->r, conv->stride_h) * conv->s, conv->stride_w);
        break;
    case WG_CONV_WGRAD:
        gemm.m = channels * conv->r * conv->s;
        gemm.n = filters;
        gemm.k = conv->n * p * q;
        break;
    case WG_CONV_PASS_COUNT:
    default:
        return wg__fail(err, WG_EINVAL, "convolution: %d is no pass", (int)pass);
    }
    *out = gemm;
    return WG_OK;
}

bool wg__conv_is_depthwise(const struct wg_conv *conv)
{
    return conv->groups > 1 && conv->groups == conv->c;
}

double wg__gemm_flops(const struct wg_gemm *gemm)
{
    return 2 * (double)gemm->batch * (double)gemm->m * (double)gemm->n * (double)gemm->k;
}

double wg__gemm_bytes(const struct wg_gemm *gemm)
{
    const double m = (double)gemm->m, n = (double)gemm->n, k = (double)gemm->k;
    return (double)gemm->batch * (m * k + k * n + m * n) * wg__dtype_bytes(gemm->dtype);
}

double wg__conv_flops(const struct wg_conv *conv)
{
    struct wg_gemm gemm;
    if (wg__conv_gemm(conv, WG_CONV_FORWARD, &gemm, NULL) != WG_OK)
        return (double)NAN;
    return wg__gemm_flops(&gemm);
}

double wg__conv_bytes(const struct wg_conv *conv)
{
    uint64_t p = 0, q = 0;
    if (wg__conv_output(conv, &p, &q, NULL) != WG_OK)
        return (double)NAN;
    const double input = (double)conv->n * (double)conv->c * (double)conv->h * (double)conv->w;
    const uint64_t of_group = conv->c / conv->groups;
    const double weights =
        (double)conv->filters * (double)of_group * (double)conv->r * (double)conv->s;
    const double output = (double)conv->n * (double)conv->filters * (double)p * (double)q;
    return (input + weights + output) * wg__dtype_bytes(conv->dtype);
}
