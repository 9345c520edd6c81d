/* SPDX-License-Identifier: MIT
 *
 * Layers as matrix multiplications: C[m, n] = A[m, k] * B[k, n], `batch` times.
 *
 * m counts rows (samples, tokens, output pixels), n output features (filters), k what is summed
 * over. A convolution is the implicit GEMM that cuDNN's kernels compute (NVIDIA, "Convolutional
 * Layers User's Guide"):
 *
 *     pass                  m          n    k
 *     forward               N*P*Q      F    C*R*S
 *     activation gradient   N*H*W      C    F*R*S / (stride_h * stride_w)
 *     weight gradient       C*R*S      F    N*P*Q
 *
 * where P = (H + pads - dilation*(R-1) - 1) / stride + 1 and Q likewise, with F and C per group and
 * `batch` = groups when there are several.
 *
 * Owns: nothing.    Threads: pure, any thread.
 */
#ifndef WG_WAVE_GEMM_H
#define WG_WAVE_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wave/gpu.h"

struct wg_gemm {
    enum wg_dtype dtype;
    uint64_t batch; /* independent products: heads * samples, groups; 1 for a linear layer */
    uint64_t m, n, k;
    bool has_bias;
};

struct wg_conv {
    enum wg_dtype dtype;
    uint64_t n, c, h, w;    /* samples, input channels, input height and width */
    uint64_t filters, r, s; /* output channels, filter height and width */
    uint64_t stride_h, stride_w;
    uint64_t pad_top, pad_left, pad_bottom, pad_right;
    uint64_t dilation_h, dilation_w;
    uint64_t groups; /* c for a depth-wise convolution */
    bool has_bias;
};

enum wg_conv_pass { WG_CONV_FORWARD, WG_CONV_DGRAD, WG_CONV_WGRAD, WG_CONV_PASS_COUNT };

/* Height and width of the output. WG_EINVAL: a size of 0, a filter larger than the padded input,
 * groups that divide neither c nor filters, or a product beyond 2^63. */
enum wg_code wg__conv_output(const struct wg_conv *conv, uint64_t *p_out, uint64_t *q_out,
                             struct wg_error *err);
enum wg_code wg__conv_gemm(const struct wg_conv *conv, enum wg_conv_pass pass, struct wg_gemm *out,
                           struct wg_error *err);
bool wg__conv_is_depthwise(const struct wg_conv *conv); /* one input channel a group */

/* How many tiles of `tile` from 1 cover `size`. */
static inline uint64_t wg__tiles_over(uint64_t size, uint64_t tile)
{
    return size / tile + (size % tile != 0 ? 1 : 0);
}

/* Floating-point operations: 2 a multiply-add, bias not counted. */
double wg__gemm_flops(const struct wg_gemm *gemm);
/* A and B read once, C written once: the least that memory must carry. */
double wg__gemm_bytes(const struct wg_gemm *gemm);
/* The same of a convolution: its input, not the k-fold matrix, is read. NAN: wg__conv_output fails.
 */
double wg__conv_flops(const struct wg_conv *conv);
double wg__conv_bytes(const struct wg_conv *conv);

#endif
